"""Published facts of dataflow chips, each a test by its name; one stage, weights resident or streamed."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.catalog.chips import get_chip
from chipwise.cost.dataflow import PRIORS, DataflowModel, Fabric, stage_time
from chipwise.cost.device import Device
from chipwise.cost.roofline import roofline
from chipwise.units import Array
from chipwise.workload.formats import FORMATS
from chipwise.workload.op import Op, gemm, pointwise

INT8 = FORMATS["int8"]


def resnet_50() -> Array:
    """Convolutions of ResNet-50 (He et al. 2015) with the stride in the 3 x 3: output edge, filter edge,
    channels in and out; the classifier last."""
    rows, channels = [(112, 7, 3, 64)], 64
    for blocks, width, edge in ((3, 64, 56), (4, 128, 28), (6, 256, 14), (3, 512, 7)):
        for block in range(blocks):
            before = 2 * edge if block == 0 and width > 64 else edge
            rows += [(before, 1, channels, width), (edge, 3, width, width), (edge, 1, width, 4 * width)]
            if block == 0:
                rows.append((edge, 1, channels, 4 * width))
            channels = 4 * width
    return np.array([*rows, (1, 1, 2048, 1000)], dtype=float).T


def layers() -> Op:
    edge, taps, channels, filters = resnet_50()
    return gemm(edge**2, filters, taps**2 * channels, INT8, INT8)


def test_resnet_50_is_resnet_50() -> None:
    op = layers()
    assert float(np.sum(op.flops)) == pytest.approx(2 * 4.1e9, rel=0.01)
    assert float(np.sum(op.weight_bytes)) == pytest.approx(25.5e6, rel=0.01)


def test_groq_resnet_50_at_batch_1() -> None:
    # Abts et al., ISCA 2020: 20,400 images per second at batch 1, 49 us each. The way across the chip per layer
    # was set with this figure in view; the planes alone were not.
    chip = get_chip("groq-lpu1")
    cost = stage_time(layers(), Device.of(chip), DataflowModel(Fabric.of(chip)))
    seconds = float(np.sum(np.asarray(cost.total_s)))
    assert 1 / seconds == pytest.approx(20_400, rel=0.25)
    # the plain roofline says a quarter of it: whole planes for narrow layers, and the way across the chip
    assert float(np.sum(roofline(layers(), Device.of(chip)))) < 0.5 * seconds
    # most of it is the planes: with nothing but them it would be 29,000
    way = np.size(cost.total_s) * PRIORS.layer_s
    assert 1 / (seconds - way) == pytest.approx(28_900, rel=0.05)


def test_groq_holds_220_mib_at_80_terabytes_per_second() -> None:
    chip = get_chip("groq-lpu1")
    assert chip.memory.usable_bytes == pytest.approx(220 * 2**20, rel=1e-3)
    assert chip.memory.bytes_per_s == Fabric.of(chip).sram_bytes_per_s == 80e12
    # a 70 B model in 8 bit takes hundreds of chips, and has no other tier to stream from
    assert 300 < 70e9 / (chip.memory.usable_bytes or np.nan) < 310
    op = gemm(1.0, 8192.0, 8192.0, INT8, INT8)
    missing = stage_time(op, Device.of(chip), DataflowModel(Fabric.of(chip), resident=0.5))
    assert Fabric.of(chip).tier_bytes_per_s == 0
    assert float(np.asarray(missing.total_s)) > 1e9


def test_wse_3_holds_44_gb_at_21_petabytes_per_second() -> None:
    chip = get_chip("wse3-cs3")
    fabric = Fabric.of(chip)
    assert (fabric.sram_bytes, fabric.sram_bytes_per_s) == (44e9, 21e15)
    # 22 billion 16-bit weights read once: 2 us at the published rate, where HBM takes milliseconds
    op = gemm(1.0, 22e9 / 8192, 8192.0, FORMATS["fp16"], FORMATS["fp16"])
    assert float(op.weight_bytes) == pytest.approx(44e9)
    assert op.weight_bytes / fabric.sram_bytes_per_s == pytest.approx(2.1e-6, rel=0.01)
    resident = stage_time(op, Device.of(chip), DataflowModel(fabric))
    streamed = stage_time(op, Device.of(chip), DataflowModel(fabric, resident=0.0))
    # streaming them over the wafer's network takes five orders longer
    assert float(np.asarray(streamed.total_s)) / float(np.asarray(resident.total_s)) > 1e4


def test_sn40l_has_three_tiers() -> None:
    # Hot Chips 2024: 520 MiB of SRAM, 64 GiB of HBM at 1.6 TB/s, up to 1.5 TiB of DDR at 100 GB/s per socket
    chip = get_chip("sn40l")
    assert chip.sram_bytes == 520 * 2**20
    assert [tier.bytes_per_s for tier in chip.tiers] == [1.6e12, 100e9]
    assert chip.memory.label_bytes == 64 * 2**30
    assert chip.tiers[1].label_bytes == 1536e9
    fabric = Fabric.of(chip)
    op = gemm(1.0, 8192.0, 8192.0)
    kept = stage_time(op, Device.of(chip), DataflowModel(fabric))
    read = stage_time(op, Device.of(chip), DataflowModel(fabric, resident=0.0))
    assert float(np.asarray(read.total_s)) == pytest.approx(op.weight_bytes / (PRIORS.tier_share * 1.6e12), rel=0.05)
    assert float(np.asarray(read.total_s)) > 5 * float(np.asarray(kept.total_s))


def test_planes_wait_for_their_weights() -> None:
    # Abts et al.: 409,600 weights into four planes of 320 x 320 in less than 40 cycles. A product with one row is
    # bound by that, not by the row: up to 40 rows come for free, and 16-bit weights take twice as long to load
    chip = get_chip("groq-lpu1")
    model = DataflowModel(Fabric.of(chip))

    def seconds(m: float, wide: bool = False) -> float:
        op = gemm(m, 3200.0, 3200.0) if wide else gemm(m, 3200.0, 3200.0, INT8, INT8)
        return float(np.asarray(stage_time(op, Device.of(chip), model).exposed["compute"]))

    assert seconds(1) == pytest.approx(100 * 40 / 4 / (0.91 * 900e6), rel=1e-2)
    assert seconds(40) == pytest.approx(seconds(1), rel=1e-2)
    assert seconds(400) == pytest.approx(10 * seconds(1), rel=1e-2)
    assert seconds(1, wide=True) == pytest.approx(2 * seconds(1), rel=1e-2)


def test_an_operator_has_its_part_of_a_wafer_only() -> None:
    # the first row passes a region of the wafer, later ones follow while other regions work
    chip = get_chip("wse3-cs3")
    whole = DataflowModel(Fabric.of(chip))
    hundredth = whole.holding(100.0 * float(gemm(1.0, 8192.0, 8192.0).weight_bytes))

    def seconds(m: float, model: DataflowModel) -> float:
        return float(np.asarray(stage_time(gemm(m, 8192.0, 8192.0), Device.of(chip), model).total_s))

    first = seconds(1, hundredth) - seconds(1, whole)
    row = 2 * 8192.0**2 / 15.84e15
    assert first == pytest.approx(99 * row / PRIORS.row_share, rel=0.01)
    assert seconds(1000, hundredth) - seconds(1000, whole) == pytest.approx(first)
    assert seconds(2000, hundredth) - seconds(1000, hundredth) == pytest.approx(
        1000 * row / PRIORS.compute_share, rel=0.01
    )


def test_a_chip_with_dram_keeps_in_sram_only_what_leaves_room() -> None:
    model = DataflowModel(Fabric.of(get_chip("sn40l")))
    assert np.asarray(model.holding(np.array([200e6, 300e6, 16e9])).resident).tolist() == [1.0, 0.0, 0.0]
    assert float(np.asarray(DataflowModel(Fabric.of(get_chip("groq-lpu1"))).holding(2e8).resident)) == 1.0


@pytest.mark.parametrize("chip", ["groq-lpu1", "wse3-cs3", "sn40l"])
def test_stages_are_never_negative_and_grow(chip: str) -> None:
    size = 64.0 * 2.0 ** np.arange(8)
    device, fabric = Device.of(get_chip(chip)), Fabric.of(get_chip(chip))
    for op in (gemm(size, 4096.0, 4096.0), gemm(8.0, size, 4096.0), pointwise(size * 4096, 3.0)):
        cost = stage_time(op, device, DataflowModel(fabric))
        seconds = np.asarray(cost.total_s)
        assert np.all(np.diff(seconds) >= 0)
        assert all(np.all(np.asarray(part) >= -1e-18) for part in cost.exposed.values())
