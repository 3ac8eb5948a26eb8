"""`vllm bench serve --save-result` (vLLM 0.6 to 0.12, `vllm/benchmarks/serve.py`) and `sglang.bench_serving`
(SGLang 0.3 to 0.5, JSON Lines, `python/sglang/bench_serving.py`): two tools with one ancestor.

Both give totals and means over the run; neither says on what it ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chipwise.evidence.importers.values import RowRefusedError, at, number, positive, text
from chipwise.evidence.item import Item, own_item

VLLM = "vllm bench serve"
SGLANG = "sglang bench_serving"


def recognise(data: object) -> str:
    """Which of the two tools wrote parsed JSON, "" for neither."""
    if not isinstance(data, Mapping) or "output_throughput" not in data or "mean_ttft_ms" not in data:
        return ""
    if "model_id" in data:
        return VLLM
    if "mean_e2e_latency_ms" in data or "total_throughput" in data or "random_input_len" in data:
        return SGLANG
    return VLLM


def read(data: object, file: str) -> Iterator[Item | str]:
    """The one result of a run, or the reason why it was left out."""
    try:
        if not isinstance(data, Mapping):
            raise RowRefusedError("no object")
        yield _item(data, file, recognise(data))
    except RowRefusedError as refusal:
        yield str(refusal)


def _item(data: Mapping[str, Any], file: str, tool: str) -> Item:
    completed = positive(data.get("completed"), "completed requests")
    tokens = positive(data.get("output_throughput"), "output_throughput")
    server = data.get("server_info") if isinstance(data.get("server_info"), Mapping) else {}
    notes = []
    if failed := number(data.get("failed")):
        notes.append(f"{failed:g} requests failed")
    accepted = number(data.get("accept_length"))
    if accepted and accepted > 1.01:
        notes.append(f"speculative decoding: {accepted:.2f} tokens a pass")
    rate = number(data.get("request_rate"))
    model = text(data.get("model_id")) or text(at(server, "model_path")) or text(data.get("model"))
    total_in, total_out = number(data.get("total_input_tokens")), number(data.get("total_output_tokens"))
    concurrency = number(data.get("max_concurrency")) or number(data.get("concurrency"))
    stack = text(at(server, "version"))
    return own_item(
        tool,
        {
            "model": model,
            "result": tokens,
            "unit": "Tokens/s",
            "scenario": "closed loop" if not rate else "open loop",
            "date": text(data.get("date"), 20)[:8],
            "runtime": " ".join(x for x in (text(data.get("backend")), stack) if x),
            "concurrency": concurrency or None,
            "requests_per_s": number(data.get("request_throughput")),
            "input_tokens": total_in / completed if total_in else None,
            "output_tokens": total_out / completed if total_out else None,
            "tokens_per_s": tokens,
            "ttft_mean_s": number(data.get("mean_ttft_ms"), 1e-3),
            "ttft_p99_s": number(data.get("p99_ttft_ms"), 1e-3),
            "tpot_mean_s": number(data.get("mean_tpot_ms"), 1e-3),
            "tpot_p99_s": number(data.get("p99_tpot_ms"), 1e-3),
            "file": file,
            "notes": tuple(notes),
        },
    )
