"""`profile_export_aiperf.json` of ai-dynamo/aiperf (0.1 to 0.13 and schema 1.5, whose load stands in phases;
docs/reference/json-export-schema.md) and
`profile_export_genai_perf.json` of its predecessor GenAI-Perf (triton-inference-server/perf_analyzer).

Every metric is a block with its unit and statistics. Inter-token latency is the mean over the tokens after the first,
as chipwise's TPOT.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chipwise.catalog.submitted_names import chip_of
from chipwise.evidence.importers.values import RowRefusedError, at, number, positive, text
from chipwise.evidence.item import Item, own_item

AIPERF = "aiperf"
GENAI = "genai-perf"
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}
NEEDED = ("request_throughput", "request_latency", "input_config")


def recognise(data: object) -> str:
    """Which of the two tools wrote parsed JSON, "" for neither."""
    if not all(at(data, name) is not None for name in NEEDED) or at(data, "request_latency", "unit") is None:
        return ""
    old = at(data, "input_config", "perf_analyzer") is not None or at(data, "input_config", "model") is not None
    return GENAI if old else AIPERF


def read(data: object, file: str) -> Iterator[Item | str]:
    """The one result of a run, or the reason why it was left out."""
    try:
        yield _item(data, file, recognise(data))
    except RowRefusedError as refusal:
        yield str(refusal)


def _item(data: object, file: str, tool: str) -> Item:
    def mean(name: str) -> float | None:
        return number(at(data, name, "avg"))

    def seconds(name: str, figure: str) -> float | None:
        unit = text(at(data, name, "unit"))
        value = number(at(data, name, figure))
        if value is not None and unit not in SECONDS:
            raise RowRefusedError(f"{name} in {unit or 'no unit'}: not a time")
        return None if value is None else value * SECONDS[unit]

    tokens = positive(at(data, "output_token_throughput", "avg"), "output_token_throughput")
    config = at(data, "input_config")
    asked = _load(config, "concurrency")
    arrivals = _load(config, "request_rate", "rate")
    names = _gpus(data)
    failed = number(at(data, "error_request_count", "avg"))
    return own_item(
        tool,
        {
            "model": _model(config),
            "result": tokens,
            "unit": "Tokens/s",
            "scenario": "open loop" if arrivals and not asked else "closed loop",
            "date": text(at(data, "start_time"), 10),
            "chip": chip_of(names[0]) if len(set(names)) == 1 else "",
            "chips": len(names) if len(set(names)) == 1 else None,
            "part": names[0] if names else "",
            "runtime": text(at(config, "backend")),
            "concurrency": asked,
            "requests_per_s": mean("request_throughput"),
            "input_tokens": mean("input_sequence_length"),
            "output_tokens": mean("output_sequence_length"),
            "tokens_per_s": tokens,
            "ttft_mean_s": seconds("time_to_first_token", "avg"),
            "ttft_p99_s": seconds("time_to_first_token", "p99"),
            "tpot_mean_s": seconds("inter_token_latency", "avg"),
            "tpot_p99_s": seconds("inter_token_latency", "p99"),
            "file": file,
            "notes": tuple([f"{failed:g} requests failed"] if failed else []),
        },
    )


def _load(config: object, *names: str) -> float | None:
    """A figure of the load, wherever the version of the tool keeps it: of phases that of profiling, the last."""
    phases = at(config, "phases")
    if isinstance(phases, Mapping):
        phases = [{"name": name, **phase} for name, phase in phases.items() if isinstance(phase, Mapping)]
    timed = [p for p in phases if at(p, "name") != "warmup"] if isinstance(phases, list) else []
    places = (at(config, "loadgen"), at(config, "perf_analyzer", "stimulus"), timed[-1] if timed else None)
    return next((found for place in places for name in names if (found := number(at(place, name)))), None)


def _model(config: object) -> str:
    """The model, wherever the version of the tool keeps it."""
    for path in (("endpoint", "model_names"), ("model_names",), ("model",), ("models", "items")):
        value = at(config, *path)
        first = value[0] if isinstance(value, list) and value else value
        if found := text(at(first, "name") if isinstance(first, Mapping) else first):
            return found
    return ""


def _gpus(data: object) -> list[str]:
    """Names of the GPUs whose telemetry the tool collected, one per GPU."""
    endpoints = at(data, "telemetry_data", "endpoints")
    found = []
    for endpoint in endpoints.values() if isinstance(endpoints, Mapping) else ():
        gpus = at(endpoint, "gpus")
        found += [text(at(g, "gpu_name")) for g in gpus.values()] if isinstance(gpus, Mapping) else []
    return [name for name in found if name]
