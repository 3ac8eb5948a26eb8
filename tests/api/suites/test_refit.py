"""Numbers of a suite, fitted anew: from rows to the tables that ship."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from chipwise.api.suites.refit import main, refitted
from chipwise.calibrate.parameter import read_table
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.calibrate.priors import priors
from chipwise.catalog.snapshot import shipped_text
from chipwise.errors import UnknownNameError, UsageError
from chipwise.evidence.discrepancy import TABLE

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
        shipped = read_table(refitted("kernels", [rows(tmp_path, *lines)])["calibrate/data/kernels.csv"], "test")
        assert all(p.rows and p.source for p in shipped.values())
        factors = {n: p.value for n, p in shipped.items() if n.startswith("simt.gemm.compute_share.")}
        return math.prod(({"simt.gemm.start_s.all": priors("gemm")["compute_share"].mid} | factors).values())

    assert share(2.0) < share(1.0)


def test_rows_that_do_not_count_are_no_rows(tmp_path: Path) -> None:
    path = rows(tmp_path, ROW.format(n=4096, us=0, known=1), ROW.format(n=4096, us=500, known=0))
    with pytest.raises(UsageError, match="no measured rows"):
        refitted("kernels", [path])


def test_without_rows_nothing_is_fitted_and_nothing_written() -> None:
    with pytest.raises(UsageError, match="no rows"):
        main([])
    assert shipped_parameters().table["simt.gemm.start_s.all"].rows


def test_what_is_not_fitted_is_named() -> None:
    with pytest.raises(UnknownNameError, match="serving"):
        main(["servin", "rows.csv"])
    with pytest.raises(UnknownNameError, match="suite to fit"):
        main(["kv_cache", "rows.csv"])


def test_the_model_of_error_is_fitted_by_the_same_door(tmp_path: Path) -> None:
    """Families without a row keep what ships; those with rows are fitted anew."""
    path = tmp_path / "token_speeds.csv"
    head = "row_id,vendor,chip,hardware_text,model,model_family,speculative,use,date,source,tokens_per_s_per_user\n"
    row = "t{i},Groq,groq-lpu1,,{m},{m},no,main,2024-09,a page,{v}\n"
    models = ("Llama 3.1 8B", "Llama 3.1 70B", "Llama 2 70B")
    path.write_text(head + "".join(row.format(i=i, m=m, v=200 + 50 * i) for i, m in enumerate(models)))
    kept = tmp_path / "kept"
    texts = refitted("discrepancy", [str(path)], str(kept))
    assert list(texts) == [TABLE]
    (lines,) = kept.iterdir()
    shorter = json.dumps(json.loads(lines.read_text())[:1])
    lines.write_text(shorter)
    assert refitted("discrepancy", [str(path)], str(kept)) != texts, "what was kept is read again"
    before, after = (
        {line for line in text.splitlines() if line.startswith("serving,")}
        for text in (shipped_text(TABLE), texts[TABLE])
    )
    assert {line.split(",")[1] for line in before} == {line.split(",")[1] for line in after}
    assert any(line.startswith("speeds,0,groq-lpu1,") for line in texts[TABLE].splitlines())
