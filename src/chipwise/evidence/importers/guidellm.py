"""The report of GuideLLM (`benchmarks.json`; vllm-project/guidellm 0.2 to 0.7, which calls kinds `kind`, not `type_`).

One item per benchmark of the report. Every metric is a distribution by status; the mean over successful
requests is read, times in milliseconds except the latency of a request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chipwise.evidence.importers.values import RowRefusedError, at, number, positive, text
from chipwise.evidence.item import Item, own_item

FORMAT = "guidellm"


def recognise(data: object) -> bool:
    """Whether parsed JSON is a report of GuideLLM."""
    runs = at(data, "benchmarks")
    return isinstance(runs, list) and bool(runs) and at(runs[0], "metrics") is not None


def read(data: object, file: str) -> Iterator[Item | str]:
    """An item for every benchmark of the report, or the reason why it was left out."""
    runs = at(data, "benchmarks")
    for index, run in enumerate(runs if isinstance(runs, list) else []):
        try:
            yield _item(run, data, file)
        except RowRefusedError as refusal:
            yield f"benchmark {index}: {refusal}"


def _item(run: object, report: object, file: str) -> Item:
    metrics = at(run, "metrics")
    if not isinstance(metrics, Mapping):
        raise RowRefusedError("no metrics")

    def mean(name: str, scale: float = 1.0) -> float | None:
        return number(at(metrics, name, "successful", "mean"), scale)

    def p99(name: str, scale: float) -> float | None:
        return number(at(metrics, name, "successful", "percentiles", "p99"), scale)

    tokens = positive(mean("output_tokens_per_second"), "output_tokens_per_second")
    # time_per_output_token counts the first token; inter_token_latency does not
    notes = []
    failed = number(at(metrics, "request_totals", "errored"))
    if failed:
        notes.append(f"{failed:g} requests failed")
    return own_item(
        FORMAT,
        {
            "model": _model(run, report),
            "result": tokens,
            "unit": "Tokens/s",
            "scenario": _strategy(run),
            "runtime": _kind(at(run, "config", "backend")) or text(at(run, "worker", "backend_type")),
            "concurrency": mean("request_concurrency"),
            "requests_per_s": mean("requests_per_second"),
            "input_tokens": mean("prompt_token_count"),
            "output_tokens": mean("output_token_count"),
            "tokens_per_s": tokens,
            "ttft_mean_s": mean("time_to_first_token_ms", 1e-3),
            "ttft_p99_s": p99("time_to_first_token_ms", 1e-3),
            "tpot_mean_s": mean("inter_token_latency_ms", 1e-3),
            "tpot_p99_s": p99("inter_token_latency_ms", 1e-3),
            "file": file,
            "notes": tuple(notes),
        },
    )


def _model(run: object, report: object) -> str:
    """The model, wherever the version of the tool keeps it."""
    places: tuple[tuple[Any, tuple[str, ...]], ...] = (
        (run, ("config", "backend", "model")),
        (run, ("worker", "backend_model")),
        (run, ("benchmarker", "backend", "model")),
        (report, ("args", "model")),
        (report, ("args", "backend", "model")),
    )
    return next((found for where, path in places if (found := text(at(where, *path)))), "")


def _strategy(run: object) -> str:
    places = ("config", "args", "scheduler")
    return next((found for place in places if (found := _kind(at(run, place, "strategy")))), "")


def _kind(part: object) -> str:
    return text(at(part, "type_")) or text(at(part, "kind"))
