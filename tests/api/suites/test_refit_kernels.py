"""The kernels' numbers, fitted anew: from rows to the tables that ship."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipwise.api.suites.refit_kernels import fitted_kernels, main
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.calibrate.table import read_table, write_table
from chipwise.errors import UsageError

HEAD = "chip,op,framework,dtype,timing,m,n,k,latency_us,chip_known\n"
ROW = "h100-sxm5-80gb,gemm,vllm,bfloat16,cuda-graph replay,4096,{n},8192,{us},{known}\n"


def rows(tmp_path: Path, *lines: str) -> str:
    path = tmp_path / "kernels.csv"
    path.write_text(HEAD + "".join(lines))
    return str(path)


def test_slow_products_lower_the_share_of_the_peak(tmp_path: Path) -> None:
    def share(slowdown: float) -> float:
        # a product of 4096 x n x 8192 at 600 TFLOPS
        lines = [ROW.format(n=n, us=n * 0.112 * slowdown, known=1) for n in range(4096, 12288, 512)]
        fitted = fitted_kernels(rows(tmp_path, *lines))["kernels.csv"]
        shipped = read_table(write_table(fitted), "test")
        assert all(p.rows == fitted[name].rows and p.source for name, p in shipped.items())
        return shipped["simt.gemm.compute_share.all"].value

    assert share(2.0) < share(1.0)


def test_rows_that_do_not_count_are_no_rows(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no measured rows"):
        fitted_kernels(rows(tmp_path, ROW.format(n=4096, us=0, known=1), ROW.format(n=4096, us=500, known=0)))


def test_without_rows_nothing_is_fitted_and_nothing_written() -> None:
    with pytest.raises(UsageError, match="no rows"):
        main([])
    assert shipped_parameters().table["simt.gemm.compute_share.all"].rows
