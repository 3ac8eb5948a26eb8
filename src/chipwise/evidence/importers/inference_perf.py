"""`summary_lifecycle_metrics.json` and `stage_N_lifecycle_metrics.json` of kubernetes-sigs/inference-perf
(0.1 to 0.6, `inference_perf/reportgen/base.py`). Times are seconds; the report names neither model nor chip.
"""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.evidence.importers.values import RowRefusedError, at, number, positive
from chipwise.evidence.item import Item, own_item

FORMAT = "inference-perf"


def recognise(data: object) -> bool:
    """Whether parsed JSON is a lifecycle report."""
    return at(data, "load_summary") is not None and at(data, "successes", "throughput") is not None


def read(data: object, file: str) -> Iterator[Item | str]:
    """The one result of a report, or the reason why it was left out."""
    try:
        yield _item(data, file)
    except RowRefusedError as refusal:
        yield str(refusal)


def _item(data: object, file: str) -> Item:
    good = at(data, "successes")
    tokens = positive(at(good, "throughput", "output_tokens_per_sec"), "output_tokens_per_sec")

    def latency(name: str, figure: str) -> float | None:
        return number(at(good, "latency", name, figure))

    # prompt_len and output_len until 0.3, prompt_tokens and output_tokens since
    prompt = number(at(good, "prompt_len", "mean")) or number(at(good, "prompt_tokens", "mean"))
    output = number(at(good, "output_len", "mean")) or number(at(good, "output_tokens", "mean"))
    failed = number(at(data, "failures", "count"))
    return own_item(
        FORMAT,
        {
            "model": "",
            "result": tokens,
            "unit": "Tokens/s",
            "scenario": "open loop",
            "requests_per_s": number(at(good, "throughput", "requests_per_sec")),
            "input_tokens": prompt,
            "output_tokens": output,
            "tokens_per_s": tokens,
            "ttft_mean_s": latency("time_to_first_token", "mean"),
            "ttft_p99_s": latency("time_to_first_token", "p99"),
            "tpot_mean_s": latency("time_per_output_token", "mean"),
            "tpot_p99_s": latency("time_per_output_token", "p99"),
            "file": file,
            "notes": (f"{failed:g} requests failed",) if failed else (),
        },
    )
