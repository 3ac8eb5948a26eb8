"""The counter mode against SCALE-Sim v3: shipped rows, then the whole truth table where it is at hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.cost.systolic import DATAFLOWS, Dataflow, SystolicArray, counters, im2col
from chipwise.errors import UnknownNameError
from truth import rows_of

COLUMNS = (
    "cycles",
    "utilization_pct",
    "mapping_efficiency_pct",
    "sram_ifmap_reads",
    "sram_filter_reads",
    "sram_ofmap_writes",
)

# Own runs of SCALE-Sim v3 (MIT), commit 1d62b68:
# dataflow, rows, cols, m, n, k, cycles, utilisation, mapping efficiency, ifmap, filter, ofmap
SHIPPED = """
os  32  32  676  64   576 28072 86.6945  96.0227  778752 811008  46080
ws 128 128  676  64   576  5290 28.7578  45       389376  36864 216320
is 256 256  676  64   576  7470  5.09104 66.0156  389376 110592 129792
os 128 128  333 222   111  2190 22.8799  75.2014   73926  73926  75462
ws 256 256  333 222   111  1099 11.4035  37.6007   36963  24642  73926
is  16  64  333 222   111 13272 60.3833  85.9445   36963 147852 517482
os 256 256   31  33    29   539  0.084142 1.56097    899    957   1535
ws  16  64   31  33    29   250 11.6352  46.7285     899    957   2046
is  32  32   31  33    29   127 22.9934  87.793      899    957   1023
os  16  64   10 1000  100  2848 34.3015  61.0352   16000 100000  11280
ws  32  32   10 1000  100 13312  7.33651 76.2939   32000 100000  40000
is 128 128   10 1000  100  1382  4.41964  6.10352   1000 100000  10000
os  32  32    1    1    1    63  0.001575 0.097656     1      1     65
ws 128 128    1    1    1   383  0.000016 0.006104     1      1      1
is 256 256    1    1    1   767  0.000002 0.001526     1      1      1
os 128 128 1024    1    1  2040  0.003065 0.78125   1024      8   3072
is  16  64 1024    1    1  1520  0.065833 6.25      1024     16   1024
os 256 256   16  192  768  1278  2.81911  4.6875   12288 147456   3584
ws  16  64   16  192  768 15840 14.5464 100        36864 147456 147456
is  32  32   16  192  768  6864 33.5713  50        12288 147456  73728
os  16  64  832   48  224 15704 55.6327  75       186368 559104  44096
ws  32  32  832   48  224 12964 67.3918  75       372736  10752 279552
is 256 256  760   24  144  2370  1.69177 55.6641  109440  10368  18240
os  32  32  760   24  144  4944 51.8916  74.2188  109440  82944  19776
ws 256 256  200  200  200   966 12.6498  61.0352   40000  40000  40000
is  16  64  200  200  200 15288 51.1055  75.1202   40000 160000 520000
"""


def as_printed(value: float) -> float:
    """The tables were rounded to 6 decimals, then written with 6 significant digits."""
    return float(f"{round(value, 6):.6g}")


@pytest.mark.parametrize("line", SHIPPED.strip().splitlines(), ids=lambda line: "-".join(line.split()[:6]))
def test_shipped_rows_are_equal(line: str) -> None:
    dataflow, *numbers = line.split()
    rows, cols, m, n, k, *measured = map(float, numbers)
    got = counters(m, n, k, SystolicArray(rows, cols), dataflow)  # type: ignore[arg-type]
    for column, value in zip(COLUMNS, measured, strict=True):
        exact = float(getattr(got, column))
        assert (as_printed(exact) if column.endswith("_pct") else exact) == value, column


@pytest.mark.parametrize("dataflow", DATAFLOWS)
@pytest.mark.parametrize("column", COLUMNS)
def test_every_open_row_is_equal(dataflow: Dataflow, column: str) -> None:
    rows = [row for row in rows_of("systolic.csv") if row["dataflow"] == dataflow]
    array_rows, array_cols, m, n, k, measured = (
        np.array([float(row[name]) for row in rows]) for name in ("array_rows", "array_cols", "M", "N", "K", column)
    )
    got = getattr(counters(m, n, k, SystolicArray(array_rows, array_cols), dataflow), column)
    assert len(rows) > 100
    if column.endswith("_pct"):
        # half a unit of the last digit that the table gives
        np.testing.assert_allclose(got, measured, rtol=5.1e-6, atol=5.1e-7)
        got = np.array([as_printed(value) for value in got])
    np.testing.assert_array_equal(got, measured)


def test_convolutions_unfold_to_the_given_product() -> None:
    rows = [row for row in rows_of("systolic.csv") if row["kind"] == "conv"]
    names = ["ifmap_h", "ifmap_w", "filter_h", "filter_w", "channels", "num_filters", "stride_h", "stride_w"]
    assert len(rows) > 50
    for row in rows:
        got = im2col(*(float(row[name]) for name in names), partial_windows="keep")
        assert tuple(got) == (float(row["M"]), float(row["N"]), float(row["K"])), row["layer"]


def walk(m: int, n: int, k: int, rows: int, cols: int, dataflow: str) -> tuple[int, float, int, int, int]:
    """The same counters by going through the folds one by one: cycles, mapping share, three traffics."""
    on_rows, on_cols, stream = {"os": (m, n, k), "ws": (k, n, m), "is": (k, m, n)}[dataflow]
    cycles, shares, rows_fed, cols_fed, held, written = 0, [], 0, 0, 0, 0
    for left in range(0, on_cols, cols):
        for top in range(0, on_rows, rows):
            used_rows, used_cols = min(rows, on_rows - top), min(cols, on_cols - left)
            shares.append(used_rows * used_cols / (rows * cols))
            rows_fed += used_rows * stream
            cols_fed += used_cols * stream
            held += used_rows * used_cols
            if dataflow == "os":
                cycles += stream - 1 + rows + cols - 1
                written += used_rows * used_cols + rows + cols
            else:
                cycles += 2 * rows - 1 + stream + cols - 1
                written += stream * used_cols
    reads = {"os": (rows_fed, cols_fed), "ws": (rows_fed, held), "is": (held, rows_fed)}[dataflow]
    return cycles, sum(shares) / len(shares), *reads, written


sizes = st.integers(1, 90)


@given(sizes, sizes, sizes, st.integers(1, 40), st.integers(1, 40), st.sampled_from(DATAFLOWS))
def test_closed_form_equals_a_walk_over_the_folds(
    m: int, n: int, k: int, rows: int, cols: int, dataflow: Dataflow
) -> None:
    got = counters(m, n, k, SystolicArray(rows, cols), dataflow)
    cycles, share, ifmap, weights, ofmap = walk(m, n, k, rows, cols, dataflow)
    assert got.cycles == cycles
    assert got.mapping_efficiency_pct == pytest.approx(100 * share, rel=1e-12)
    assert (got.sram_ifmap_reads, got.sram_filter_reads, got.sram_ofmap_writes) == (ifmap, weights, ofmap)
    if cycles > 1:
        assert got.utilization_pct == pytest.approx(100 * m * n * k / ((cycles - 1) * rows * cols), rel=1e-12)
    else:
        assert np.isnan(got.utilization_pct)


def test_arrays_and_designs_broadcast() -> None:
    m = np.array([[10.0], [300.0]])
    rows = np.array([16.0, 32.0, 128.0])
    got = counters(m, 64.0, 100.0, SystolicArray(rows, 64.0), "ws")
    assert np.shape(got.cycles) == np.shape(got.utilization_pct) == (2, 3)
    one = counters(300.0, 64.0, 100.0, SystolicArray(32.0, 64.0), "ws")
    assert got.cycles[1, 1] == one.cycles  # type: ignore[index]


def test_unknown_dataflow_names_the_near_ones() -> None:
    with pytest.raises(UnknownNameError, match="unknown dataflow 'rs'"):
        counters(1.0, 1.0, 1.0, SystolicArray(8.0, 8.0), "rs")  # type: ignore[arg-type]
