"""Statements about chips that their data sheets answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from docs.generate.claims.claim import Checked, Number, Verdict, cited, close

from chipwise.api.loaded import describe
from chipwise.api.requests.planning import FitRequest
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.configs import bundled_configs
from chipwise.catalog.system import load_systems
from chipwise.units import format_bytes

__all__ = [
    "SHEETS",
    "clock",
    "cores",
    "h100",
    "judge_dates",
    "judge_fit",
    "judge_share",
    "judge_variants",
    "nvlink",
    "torus",
    "tpu_date",
    "two_a100",
    "wafer",
]

LLAMA = "meta-llama/Llama-3.1-70B"
LANES = 128
"""FP32 lanes ("CUDA cores") of an SM since Ampere's GA102 and Hopper: NVIDIA H100 white paper, table 3."""


def judge_variants(found: Mapping[str, tuple[float, float]], claimed: tuple[float, float]) -> Verdict:
    """Whether all variants of a product have the figures claimed, some, or none."""
    right = [all(close(a, b) for a, b in zip(pair, claimed, strict=True)) for pair in found.values()]
    return "true" if all(right) else "true with a condition" if any(right) else "false"


def h100() -> Checked:
    """Bandwidth and peak of the chips that are sold as H100."""
    variants = {name: chip for name, chip in load_chips().items() if name.startswith("h100")}
    found = {
        name: ((chip.memory.bytes_per_s or 0.0) / 1e12, (chip.peak("bf16") or 0.0) / 1e12)
        for name, chip in variants.items()
    }
    numbers = tuple(
        Number(name, f"{tb:.2f} TB/s, {tf:.0f} TFLOPS", cited(variants[name], "memory_GBps"))
        for name, (tb, tf) in found.items()
    )
    because = (
        "These are the SXM5 board's figures: 16 bit, dense, at the clock of the peak. The PCIe and NVL boards have "
        "the same name and others, and figures twice as high count zeros of structured sparsity."
    )
    return Checked(
        "An H100 has 3.35 TB/s and 989 TFLOPS.",
        judge_variants(found, (3.35, 989.0)),
        because,
        numbers,
        "chipwise chips compare h100-sxm5-80gb h100-pcie-80gb h100-nvl-94gb",
    )


def torus() -> Checked:
    """Dimensions of the fabrics of TPU pods."""
    fabrics = {
        s.id: (t.fabric, t.shape, s)
        for s in load_systems().values()
        for t in s.tiers
        if t.torus and s.id.startswith("tpu")
    }
    dims = {name: len(shape) for name, (_, shape, _) in fabrics.items()}
    verdict: Verdict = (
        "true" if set(dims.values()) == {4} else "misleading" if 4 in dims.values() else "false"
    )
    numbers = tuple(
        Number(name, f"{dims[name]}D torus, {' x '.join(map(str, shape))}", s.default.sources[0].ref)
        for name, (_, shape, s) in fabrics.items()
    )
    because = (
        "Generations have tori of two or of three dimensions; none has four. Two dimensions mean four links per chip, "
        "three mean six."
    )
    return Checked(
        "TPUs are joined in a 4D torus.", verdict, because, numbers, "chipwise systems show tpu-v4-pod"
    )


def judge_share(fitting: int, of: int) -> Verdict:
    """Whether all, some or none of the models fit."""
    return "true" if fitting == of else "true with a condition" if fitting else "false"


def wafer() -> Checked:
    """Weights of the bundled models against the SRAM of one wafer."""
    chip = get_chip("wse3-cs3")
    room = chip.memory.usable_bytes or 0.0
    names = [name for name, config in bundled_configs().items() if not config.alias]
    weights = {name: describe(name).weight_bytes for name in names}
    fitting = [name for name, size in weights.items() if size < room]
    largest = max(fitting, key=lambda name: weights[name]) if fitting else "none"
    needed = FitRequest(model=LLAMA, chips=chip.id).run().fits[0].chips
    numbers = (
        Number("SRAM of a WSE-3", format_bytes(room), cited(chip, "memory")),
        Number(f"weights of {LLAMA}", format_bytes(weights[LLAMA]), "computed from its configuration"),
        Number(f"wafers for {LLAMA}, cache included", str(needed), "computed: memory account"),
        Number("bundled models whose weights fit", f"{len(fitting)} of {len(weights)}", "computed"),
        Number("largest of them", f"{largest}, {format_bytes(weights.get(largest, 0.0))}", "computed"),
    )
    because = (
        "True for models of some 20 B parameters in 16 bit, or twice that in 8 bit. Larger ones are cut into stages "
        "over several wafers."
    )
    return Checked(
        "One wafer holds the entire model.",
        judge_share(len(fitting), len(weights)),
        because,
        numbers,
        f"chipwise fit {LLAMA} --chip wse3-cs3",
    )


def cores() -> Checked:
    """Operations per cycle of a lane and of a matrix unit."""
    chip = get_chip("h100-sxm5-80gb")
    unit = chip.matrix_unit
    assert unit.boost_clock_hz is not None
    assert unit.macs_per_clock is not None
    lane = chip.vector["fp32"] / (unit.units * LANES * unit.boost_clock_hz)
    matrix = 2.0 * unit.macs_per_clock
    verdict: Verdict = "true" if close(lane, 1.0) and close(matrix, 1.0) else "false"
    numbers = (
        Number("operations per cycle of one FP32 lane", f"{lane:.2f}", cited(chip, "vector_tflops.fp32")),
        Number(
            "operations per cycle of the matrix units of one SM",
            f"{matrix:,.0f}",
            cited(chip, "macs_per_clock"),
        ),
        Number("SMs", str(unit.units), cited(chip, "units")),
        Number("FP32 lanes per SM", str(LANES), "NVIDIA H100 white paper"),
    )
    because = (
        "A lane does a fused multiply-add per cycle, which is two operations, and what deep learning uses are the "
        "matrix units: thousands of operations per SM and cycle. Counting cores says little."
    )
    return Checked(
        "A GPU core does one operation per cycle.",
        verdict,
        because,
        numbers,
        "chipwise chips show h100-sxm5-80gb",
    )


def judge_dates(in_use: int, claimed: int) -> Verdict:
    """Whether a chip was in use in the year claimed, or before."""
    return "true" if in_use == claimed else "misleading" if in_use < claimed else "false"


def tpu_date() -> Checked:
    """The year of the first TPU."""
    chip = get_chip("tpu-v1")
    second = get_chip("tpu-v2")
    numbers = (
        Number("TPU v1 in Google's data centres", str(chip.year), cited(chip, "process")),
        Number("TPU v2, the first to train", str(second.year), cited(second, "process")),
    )
    because = (
        "2016 is the year in which Google spoke of them. The first one, for inference in 8 bit only, had worked since "
        "the year before."
    )
    return Checked(
        "TPUs came in 2016.", judge_dates(chip.year, 2016), because, numbers, "chipwise chips show tpu-v1"
    )


def judge_fit(verdicts: Sequence[str]) -> Verdict:
    """The verdicts of `fit` ("comfortable", "tight", "no") on all that may be meant."""
    if all(v == "no" for v in verdicts):
        return "false"
    return "true" if all(v == "comfortable" for v in verdicts) else "true with a condition"


def two_a100() -> Checked:
    """Memory of a 70 B model on two A100."""
    fits = {
        name: FitRequest(model=LLAMA, chips=name, count=2).run().fits[0]
        for name in ("a100-sxm4-80gb", "a100-sxm4-40gb")
    }
    model = describe(LLAMA)
    big = fits["a100-sxm4-80gb"]
    small = fits["a100-sxm4-40gb"]
    numbers = (
        Number("weights in 16 bit", format_bytes(model.weight_bytes), "computed from the configuration"),
        Number(
            "two A100 of 80 GB",
            f"{big.verdict}: room for {big.memory.cache_tokens or 0:,} tokens",
            "computed",
        ),
        Number("requests of 2,300 tokens at once", str(big.largest_batch), "computed"),
        Number(
            "two A100 of 40 GB", f"{small.verdict}: {format_bytes(small.missing_bytes)} short", "computed"
        ),
    )
    because = (
        "The weights are as said and fit on two boards of 80 GB, not of 40 GB. What is left holds the cache of a few "
        "requests, so that each pass over the weights serves few users: enough to run, not to serve many."
    )
    return Checked(
        "A 70B model needs 140 GB, so two A100 suffice.",
        judge_fit([f.verdict for f in fits.values()]),
        because,
        numbers,
        f"chipwise fit {LLAMA} --chips a100-sxm4-80gb,a100-sxm4-40gb --count 2",
    )


def clock() -> Checked:
    """What a Groq chip has more of than a GPU."""
    groq, gpu = get_chip("groq-lpu1"), get_chip("h100-sxm5-80gb")
    rates = [c.matrix_unit.boost_clock_hz or 0.0 for c in (groq, gpu)]
    bandwidth = [c.memory.bytes_per_s or 0.0 for c in (groq, gpu)]
    room = [c.memory.usable_bytes or 0.0 for c in (groq, gpu)]
    verdict: Verdict = "true" if rates[0] > rates[1] else "false"
    numbers = (
        Number("clock", f"{rates[0] / 1e6:.0f} MHz, H100 {rates[1] / 1e6:.0f} MHz", cited(groq, "boost_MHz")),
        Number(
            "bandwidth of the memory that holds weights",
            f"{bandwidth[0] / 1e12:.0f} TB/s, H100 {bandwidth[1] / 1e12:.2f} TB/s",
            cited(groq, "memory_GBps"),
        ),
        Number(
            "size of that memory",
            f"{format_bytes(room[0])}, H100 {format_bytes(room[1])}",
            cited(groq, "memory"),
        ),
    )
    because = (
        "Its clock is lower. It is fast because weights lie in SRAM next to the units, and it needs hundreds of chips "
        "because so little of them fits into one."
    )
    return Checked(
        "Groq is faster because of its clock.",
        verdict,
        because,
        numbers,
        "chipwise chips compare groq-lpu1 h100-sxm5-80gb",
    )


def nvlink() -> Checked:
    """The speed of NVLink 4 in one direction."""
    chip = get_chip("h100-sxm5-80gb")
    rate = (chip.scaleup.bytes_per_s or 0.0) / 1e9 if chip.scaleup else 0.0
    verdict: Verdict = "true" if close(rate, 900.0) else "misleading" if close(2 * rate, 900.0) else "false"
    numbers = (
        Number("one direction, all links of a chip", f"{rate:.0f} GB/s", cited(chip, "scaleup_GBps")),
        Number("both directions together", f"{2 * rate:.0f} GB/s", "twice the above"),
    )
    because = (
        "900 GB/s adds both directions. A ring of collectives sends and receives at once, at half of it each way, "
        "and that half is what belongs into a formula."
    )
    return Checked(
        "NVLink moves 900 GB/s from one H100 to another.",
        verdict,
        because,
        numbers,
        "chipwise kernel collective --kind all_reduce --bytes 1GB --ranks 8 --chip h100-sxm5-80gb",
    )


SHEETS = (h100, torus, wafer, cores, tpu_date, two_a100, clock, nvlink)
