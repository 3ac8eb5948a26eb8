"""TPU v1 (Jouppi et al., ISCA 2017, arXiv 1704.04760) from its architecture and Table 1; nothing is fitted.

Facts of the chip, each as the paper states it:
- 256 x 256 cells at 700 MHz; B rows take B cycles; a second tile of weights for double buffering (section 2);
- weights come from DRAM at 30 GiB/s (Figure 1; the DDR3 pins give 34 GB/s, Table 2). Section 7 confirms the
  rate: a step on one 64 KiB tile takes 2 us (9 steps, 18 us). A partly filled tile takes a whole step;
- 4096 accumulator rows, used as 2 x 2048 by double buffering (section 2).

Facts of the applications beyond Table 1:
- LSTM1 uses 600 x 600 matrices (section 7); sizes of MLP0, MLP1, LSTM0 and CNN0 are not published, and are
  taken to fill their tiles;
- one CNN is AlphaGo, the other "derives from Inception V2" (Table 1, section 3). Operations per weight of
  CNN0 are 2888 = 8 x 19 x 19, so CNN0 is AlphaGo and every weight meets each board point of the batch;
- CNN1 has 4 fully connected layers of intensity 32, its batch, and convolutions of shallow depth (section 4).
  Its own layers are not published. Its 175 G multiply-accumulates per batch are 5.5 G per image; of the
  published Inceptions the 299 x 299 one of Szegedy et al. (arXiv 1512.00567), 5.7 G, is the near one and
  stands in for the convolutions; the weights that it lacks are those of the fully connected layers.

Assumed: one batch at a time; layers follow one another, so the wavefront is paid per layer, except where the
array waits for weights anyway (the weight FIFO runs on meanwhile, section 2). Ignored: waits for activations
of the layer before and for input over PCIe (both in the paper's counters), hence predictions lie high.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from chipwise.cost.systolic import SystolicArray, im2col, weight_stationary
from chipwise.units import GIB
from truth import rows_of

CLOCK_HZ = 700e6
TPU = SystolicArray(256.0, 256.0, load_words_per_cycle=30 * GIB / CLOCK_HZ, accumulator_rows=2048.0)


@dataclass(frozen=True)
class App:
    """Table 1: weights, layers with weights, operations (multiply-accumulates) per weight byte, batch; and
    Table 3: achieved 8-bit operations per second, in 10^12, two per multiply-accumulate."""

    weights: float
    layers: int
    macs_per_weight: float
    batch: float
    measured_tops: float


APPS = {
    "MLP0": App(20e6, 5, 200, 200, 12.3),
    "MLP1": App(5e6, 4, 168, 168, 9.7),
    "LSTM0": App(52e6, 24, 64, 64, 3.7),
    "LSTM1": App(34e6, 37, 96, 96, 2.8),
    "CNN0": App(8e6, 16, 2888, 8, 86.0),
    "CNN1": App(100e6, 76, 1750, 32, 14.1),
}


@dataclass(frozen=True)
class Prediction:
    tops: float
    useful_mac_share: float
    """Useful cells while the array streams; the paper's "useful MACs" over "array active"."""
    weight_bound: bool


def filled_tiles(app: App) -> Prediction:
    """All weights in whole tiles, every row of which meets macs_per_weight rows of activations."""
    burst = weight_stationary(app.macs_per_weight, 256.0, app.weights / 256.0, TPU)
    weight_bound = burst.stall_cycles > app.layers * (burst.fill_cycles + burst.drain_cycles)
    exposed = 0.0 if weight_bound else (app.layers - 1) * (burst.fill_cycles + burst.drain_cycles)
    seconds = (burst.cycles + exposed) / CLOCK_HZ
    return Prediction(2e-12 * burst.macs / seconds, float(burst.macs / burst.padded_macs), bool(weight_bound))


def lstm1(app: App) -> Prediction:
    """34 M weights in 600 x 600 matrices: 9 tiles each, of which 600^2 / 768^2 = 61 % is used."""
    matrices = app.weights / 600.0**2
    one = weight_stationary(app.batch, 600.0, 600.0, TPU)
    # the first load of the next matrix hides like any other
    cycles = one.cycles + (matrices - 1.0) * one.passes * np.maximum(app.batch, TPU.load_cycles)
    return Prediction(float(2e-12 * matrices * one.macs / (cycles / CLOCK_HZ)), float(one.macs / one.padded_macs), True)


def inception() -> np.ndarray:
    """Convolutions of the 299 x 299 Inception: output edge, filter height, width, channels, filters."""
    rows = [(149, 3, 3, 3, 32), (147, 3, 3, 32, 32), (147, 3, 3, 32, 64)]
    rows += [(73, 1, 1, 64, 80), (71, 3, 3, 80, 192)]
    for depth, pooled in ((192, 32), (256, 64), (288, 64)):
        rows += [(35, 1, 1, depth, 64), (35, 1, 1, depth, 48), (35, 5, 5, 48, 64), (35, 1, 1, depth, 64)]
        rows += [(35, 3, 3, 64, 96), (35, 3, 3, 96, 96), (35, 1, 1, depth, pooled)]
    rows += [(17, 3, 3, 288, 384), (35, 1, 1, 288, 64), (35, 3, 3, 64, 96), (17, 3, 3, 96, 96)]
    for width in (128, 160, 160, 192):
        rows += [(17, 1, 1, 768, 192), (17, 1, 1, 768, width), (17, 1, 7, width, width), (17, 7, 1, width, 192)]
        rows += [(17, 1, 1, 768, width), (17, 7, 1, width, width), (17, 1, 7, width, width)]
        rows += [(17, 7, 1, width, width), (17, 1, 7, width, 192), (17, 1, 1, 768, 192)]
    rows += [(17, 1, 1, 768, 192), (8, 3, 3, 192, 320), (17, 1, 1, 768, 192), (17, 1, 7, 192, 192)]
    rows += [(17, 7, 1, 192, 192), (8, 3, 3, 192, 192)]
    for depth in (1280, 2048):
        rows += [(8, 1, 1, depth, 320), (8, 1, 1, depth, 384), (8, 1, 3, 384, 384), (8, 3, 1, 384, 384)]
        rows += [(8, 1, 1, depth, 448), (8, 3, 3, 448, 384), (8, 1, 3, 384, 384), (8, 3, 1, 384, 384)]
        rows += [(8, 1, 1, depth, 192)]
    return np.array(rows, dtype=float).T


def cnn1(app: App, *, packed: bool = True) -> Prediction:
    """Convolutions on the array, then four fully connected layers that wait for their weights.

    `packed`: im2col, the taps of a filter side by side on the rows of a tile. Otherwise one tap at a time,
    with `channels` rows in use: the two ways between which a compiler can choose.
    """
    edge, height, width, channels, filters = inception()
    conv = im2col(edge, edge, 1.0, 1.0, height * width * channels, filters, images=app.batch)
    if packed:
        burst = weight_stationary(conv.m, conv.n, conv.k, TPU)
    else:
        taps = height * width
        burst = weight_stationary(conv.m, conv.n, taps * np.ceil(channels / 256.0) * 256.0, TPU)
    conv_macs = conv.m * conv.n * conv.k
    conv_weights = float(np.sum(height * width * channels * filters))
    dense_weights = app.weights - conv_weights
    dense = weight_stationary(app.batch, 256.0, dense_weights / 256.0, TPU)
    # the stand-in has 6 % more work than CNN1 beside its dense layers: scale to the work of Table 1
    total_macs = app.weights * app.macs_per_weight
    scale = (total_macs - dense.macs) / conv_macs.sum()
    cycles = scale * (burst.cycles - burst.load_cycles).sum() + dense.cycles
    share = conv_macs.sum() / (burst.stream_cycles * TPU.cells).sum()
    return Prediction(float(2e-12 * total_macs / (cycles / CLOCK_HZ)), float(share), False)


def predict(name: str) -> Prediction:
    app = APPS[name]
    return lstm1(app) if name == "LSTM1" else cnn1(app) if name == "CNN1" else filled_tiles(app)


def test_a_tile_takes_two_microseconds() -> None:
    # section 7: 9 steps on 600 x 600 take 18 us
    assert TPU.load_cycles / CLOCK_HZ == pytest.approx(2e-6, rel=0.03)
    # section 2: the knee of the roofline at 34 GB/s is about 1350 rows
    pins = SystolicArray(256.0, 256.0, load_words_per_cycle=34e9 / CLOCK_HZ)
    assert pins.load_cycles == pytest.approx(1350, rel=0.005)


@pytest.mark.parametrize("name", ["MLP0", "MLP1", "LSTM0", "CNN0"])
def test_filled_applications_within_15_percent(name: str) -> None:
    got = predict(name)
    assert got.tops / APPS[name].measured_tops == pytest.approx(1.0, abs=0.15)
    assert got.weight_bound == (name != "CNN0")
    assert got.useful_mac_share > 0.98


def test_lstm1_fragments() -> None:
    got = predict("LSTM1")
    assert got.useful_mac_share == pytest.approx(600**2 / 768**2)
    # counted: 6.3 % useful of 10.5 % active
    assert got.useful_mac_share == pytest.approx(0.063 / 0.105, rel=0.05)
    # 35 % above the 2.8 TOPS that were measured
    assert got.tops / APPS["LSTM1"].measured_tops == pytest.approx(1.35, abs=0.05)


def test_cnn1_is_shallow_and_lies_between_two_ways_to_lay_it_out() -> None:
    app = APPS["CNN1"]
    packed, tap_by_tap = cnn1(app), cnn1(app, packed=False)
    assert tap_by_tap.useful_mac_share < packed.useful_mac_share < 0.5
    assert tap_by_tap.tops / app.measured_tops == pytest.approx(0.58, abs=0.02)
    assert packed.tops / app.measured_tops == pytest.approx(1.72, abs=0.02)


def test_the_stand_in_is_the_published_network() -> None:
    edge, height, width, channels, filters = inception()
    weights = height * width * channels * filters
    assert weights.size == 94
    assert weights.sum() == pytest.approx(21.8e6, rel=0.005)
    assert (edge**2 * weights).sum() == pytest.approx(5.71e9, rel=0.005)


def test_facts_are_those_of_the_table() -> None:
    rows = {row["app"]: row for row in rows_of("tpu_v1.csv")}
    assert rows.keys() == APPS.keys()
    for name, row in rows.items():
        assert APPS[name] == App(
            1e6 * float(row["weights_millions"]),
            int(row["layers_fc"]) + int(row["layers_conv"]),
            float(row["tpu_ops_per_weight_byte"]),
            float(row["tpu_batch"]),
            float(row["measured_tops"]),
        )
