"""validate systolic: counters that equal the table's, and one that does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipwise.api.suites.validating import validate
from chipwise.errors import UnknownNameError, UsageError

COLUMNS = (
    "row_id,dataflow,array_rows,array_cols,kind,M,N,K,cycles,utilization_pct,mapping_efficiency_pct,"
    "sram_ifmap_reads,sram_filter_reads,sram_ofmap_writes"
)


def table(folder: Path, cycles: int) -> str:
    # one fold of an output-stationary 4 x 4 array: T + R + C - 2 cycles, ofmap writes of 16 and R + C
    line = f"a,os,4,4,gemm,4,4,4,{cycles},44.4444,100,16,16,24"
    (folder / "systolic.csv").write_text(f"{COLUMNS}\n{line}\n", "utf-8")
    return str(folder / "systolic.csv")


def test_equal_counters_are_counted(tmp_path: Path) -> None:
    found = validate("systolic", table(tmp_path, 10))
    rows = {s.metric: s for s in found.tables["all"]}
    assert rows["cycles"].coverage == 1
    assert rows["cycles"].median == 0
    assert set(rows) >= {"cycles", "sram_ofmap_writes", "utilization_pct"}
    assert found.remarks == ("6 of 6 figures are equal",)


def test_a_wrong_count_shows(tmp_path: Path) -> None:
    found = validate("systolic", table(tmp_path, 11))
    assert {s.metric: s.coverage for s in found.tables["all"]}["cycles"] == 0


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="key"):
        validate("systolic", table(tmp_path, 10), "chip")
    (tmp_path / "systolic.csv").write_text(f"{COLUMNS}\n", "utf-8")
    with pytest.raises(UsageError, match="no rows"):
        validate("systolic", str(tmp_path / "systolic.csv"))
