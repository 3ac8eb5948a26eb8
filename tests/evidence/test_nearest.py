from __future__ import annotations

import math
from dataclasses import replace
from datetime import date

import pytest

from chipwise.api.nearest import nearest
from chipwise.api.suites.mlperf import MlperfAnswer, answer
from chipwise.catalog.published import load_inference_results
from chipwise.evidence.item import item_of, own_item
from chipwise.evidence.mlperf_rows import run_of
from chipwise.evidence.nearest import generates, residuals
from chipwise.workload.workload import Workload

DAY = date(2025, 10, 1)
LIKE_LLAMA2 = Workload("serve", 221, 288)


def test_the_plan_of_a_submission_finds_it() -> None:
    found = nearest(
        "meta-llama/Llama-3.1-70B", "h200-sxm-141gb", 8, LIKE_LLAMA2, precision="fp8", runtime="trtllm", day=DAY
    )
    assert found is not None
    assert (found.chip, found.chips, found.benchmark) == ("h200-sxm-141gb", 8, "llama2-70b")
    assert found.supports
    assert found.label.startswith(f"MLPerf {found.round}, 8x h200-sxm-141gb")
    assert load_inference_results()[found.result].tokens_per_s == found.tokens_per_s


def test_other_lengths_and_formats_do_not_support_a_plan() -> None:
    far = nearest("meta-llama/Llama-3.1-70B", "h200-sxm-141gb", 8, Workload("serve", 8000, 300), day=DAY)
    assert far is not None
    assert not far.supports
    assert far.marks["load"] == "different"


@pytest.mark.parametrize("chip", ["trainium2", "wse3-cs3", "a-chip-of-mine"])
def test_a_chip_that_nobody_submitted_has_no_row(chip: str) -> None:
    assert nearest("meta-llama/Llama-3.1-70B", chip, 8, LIKE_LLAMA2) is None


def test_an_unreadable_model_has_no_row() -> None:
    assert nearest("nobody/nothing", "h200-sxm-141gb", 8, LIKE_LLAMA2) is None


def test_anchoring_moves_by_a_part_of_what_rows_show() -> None:
    found = nearest("meta-llama/Llama-3.1-70B", "l40s", 8, LIKE_LLAMA2, precision="fp8", day=DAY)
    assert found is not None
    assert found.anchored(100.0) == pytest.approx(100.0 * math.exp(found.shift))
    assert 0.0 < found.weight < 1.0


def test_shipped_residuals_are_those_of_the_shipped_model() -> None:
    # priced by physics that other fits move: a stale table is noticed, a change of some percent is not
    names = list(residuals())[::40]
    off = []
    for name in names:
        result = load_inference_results()[name]
        (found,) = answer([run_of(result)])
        assert isinstance(found, MlperfAnswer), found
        assert result.tokens_per_s
        off.append(abs(math.log(result.tokens_per_s / found.rate[0]) - residuals()[name]))
    assert sorted(off)[len(off) // 2] < 0.1


def test_speech_says_nothing_of_a_language_model() -> None:
    rows = {r.benchmark: item_of(r) for r in load_inference_results().values()}
    assert not generates(rows["whisper"])
    assert not generates(rows["resnet"])
    assert generates(rows["llama2-70b"])
    mine = own_item("vllm bench serve", {"model": "x", "result": 1.0, "unit": "Tokens/s"})
    assert generates(mine)
    assert not generates(replace(mine, benchmark="whisper"))
