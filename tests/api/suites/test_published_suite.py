"""Other people's figures: what they ask, and which of them say nothing of users."""

from __future__ import annotations

import numpy as np

from chipwise.api.suites import published
from chipwise.api.suites.published import published_question
from chipwise.catalog.harness import load_harnesses, noted_harness
from chipwise.evidence.judge import USERS
from chipwise.evidence.residuals import Residuals

ROW = {
    "id": "x", "model": "meta-llama/Llama-3.1-8B", "chip": "trainium1", "chips": "16", "tp": "32", "pp": "1", "dp": "1",
    "ep": "1", "precision": "bf16", "kv_precision": "", "runtime": "neuronx", "isl": "1024", "osl": "128",
    "concurrency_or_batch": "8", "request_rate": "", "metric": "ttft_ms", "value": "100", "date": "2024-04",
    "source": "github someone/else x", "note": "trn1.32xlarge, Batch; tp counts NeuronCores",
}  # fmt: skip


def test_a_static_batch_is_asked_as_one() -> None:
    assert published_question(ROW).harness == "static-batch"
    assert published_question({**ROW, "concurrency_or_batch": "1"}).harness is None
    assert published_question({**ROW, "note": "Real Time"}).harness is None
    assert noted_harness("nothing of it").id == ""


def test_first_tokens_of_a_static_batch_wait_for_all_its_prompts() -> None:
    def ttft(row: dict[str, str]) -> float:
        return published_question(row).run().plans[0].ttft_s.mid

    alone = ttft({**ROW, "concurrency_or_batch": "1"})
    together = ttft(ROW)
    assert 8.0 * 0.8 < together / alone < 8.0 * 1.6
    assert load_harnesses()["static-batch"].first_wave == 1.0


def test_a_layout_that_a_publication_tells_elsewhere_is_the_one_that_is_asked() -> None:
    row = {
        **ROW, "model": "Qwen/Qwen3-30B-A3B", "chip": "rtx-pro-6000-server", "chips": "4", "tp": "4",
        "runtime": "trtllm",
        "source": "github NVIDIA/TensorRT-LLM docs/source/performance/perf-overview.md (v1.0)",
    }  # fmt: skip

    def degrees(row: dict[str, str]) -> tuple[int, int, int]:
        asked = published_question(row)
        return asked.tp, asked.dp, asked.ep

    assert degrees(row) == (1, 4, 1), "its models with experts ran with enable_attention_dp"
    assert degrees({**row, "model": "meta-llama/Llama-3.3-70B-Instruct"}) == (4, 1, 1), "dense ones did not"
    assert degrees({**row, "source": row["source"].replace("1.0", "0.17")}) == (4, 1, 1)


def lines(who: str, ratio: float, tier: str, near: str = "stack", count: int = 20) -> Residuals:
    measured = ratio * np.linspace(0.9, 1.1, count)
    figure = "tpot_s" + USERS
    return Residuals.of(
        range(count), 1.0, measured, figure=figure, metric=figure, tier=tier, near=near, key=who
    )


def test_intervals_come_from_other_benchmarkers_by_the_rule_of_plans() -> None:
    found = Residuals.join(
        [lines("a", 1.0, "stack"), lines("b", 2.0, "stack"), lines("c", 9.0, published.TOGETHER)]
    )
    judged = published._judged(found)
    mine = judged.where(key="a")
    assert np.allclose(mine.high, 2.2, atol=0.05), "what b measured"
    assert not np.any((mine.low <= mine.measured) & (mine.measured <= mine.low * 1.01))
    its = judged.where(key="c")
    assert np.all(its.high < 3.0), "a batch that starts together gets what a plan would, and gives nothing"
