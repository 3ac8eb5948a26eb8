"""Other people's figures: what they ask, and the intervals that they give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chipwise.api.suites.errors import judged
from chipwise.api.suites.published import published_question
from chipwise.evidence.residuals import Residuals

ROW = {
    "id": "x", "model": "meta-llama/Llama-3.1-8B", "chip": "trainium1", "chips": "16", "tp": "32", "pp": "1", "dp": "1",
    "ep": "1", "precision": "bf16", "kv_precision": "", "runtime": "neuronx", "isl": "1024", "osl": "128",
    "concurrency_or_batch": "8", "request_rate": "", "metric": "ttft_ms", "value": "100", "date": "2024-04",
    "source": "github someone/else x", "note": "trn1.32xlarge, Batch; tp counts NeuronCores",
}  # fmt: skip


def test_first_tokens_of_a_static_batch_wait_for_all_its_prompts() -> None:
    def first_s(software: str, clients: str, prompt: str = "1024") -> float:
        row = {**ROW, "concurrency_or_batch": clients, "date": software, "isl": prompt}
        return published_question(row).run().plans[0].ttft_s.mid

    alone, together = (first_s("2024-04", clients) for clients in ("1", "8"))
    assert 5.0 < together / alone < 8.5, "prompts of a batch stand before its first tokens"
    assert first_s("2024-04", "8", "32") / first_s("2024-04", "1", "32") < 4.0, "short prompts share a read of weights"
    assert first_s("2025-04", "8") < 0.5 * together, "later software lets requests join one by one"


def test_tokens_of_a_static_batch_do_not_wait_for_prompts() -> None:
    def tpot_s(software: str) -> float:
        found = published_question({**ROW, "date": software}).run().plans[0].tpot_s
        assert found is not None
        return found.mid

    assert tpot_s("2024-08") < 0.9 * tpot_s("2024-09")


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


def test_folds_are_judged_as_if_nobody_had_seen_what_they_leave_out() -> None:
    found = Residuals.of(range(2), 2.0, 2.1, metric="chip_w", chip="h100-sxm5-80gb", kind="serving", model="m")
    near, far = (judged("energy", (), found, key) for key in ("nothing", "chip"))
    assert np.all(near.low < 2.0)
    assert np.all(near.high > 2.0)
    assert np.all(far.high / far.low > near.high / near.low)
    own = replace(found, low=found.predicted, high=found.predicted)
    assert np.all(judged("energy", (), own, "chip").high == own.high), "lines that were judged stay"
    assert judged("kernels", (), found, "chip") is found
