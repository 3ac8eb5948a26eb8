"""`mlperf_log_summary.txt`: what LoadGen writes at the end of a run (v2.1 to v5.1 of the load generator).

Labels read off logs of rounds v4.0 to v6.0; TPOT lines are "Time to Output Token" and "Time per Output Token".
The file does not say on what it ran: chip, count and model come from the user.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from chipwise.evidence.importers.values import RowRefusedError, number
from chipwise.evidence.item import Item, own_item

FORMAT = "MLPerf LoadGen summary"
HEAD = "MLPerf Results Summary"
LINE = re.compile(r"^\s*(.+?)\s*:\s*(.*?)\s*$")


def recognise(content: str) -> bool:
    """Whether a text is a summary of LoadGen."""
    return HEAD in content[:2000]


def read(content: str, file: str) -> Iterator[Item | str]:
    """The one result of a summary, or the reason why it was left out."""
    values: dict[str, str] = {}
    for line in content.splitlines():
        found = LINE.match(line)
        if found:
            values.setdefault(found.group(1).lower(), found.group(2))
    try:
        yield _item(values, file)
    except RowRefusedError as refusal:
        yield str(refusal)


def _item(values: dict[str, str], file: str) -> Item:
    if values.get("mode", "PerformanceOnly") != "PerformanceOnly":
        raise RowRefusedError(f"mode {values['mode'][:40]}: not a performance run")
    if values.get("result is") != "VALID":
        raise RowRefusedError(f"LoadGen calls the result {values.get('result is', 'nothing')[:20]}, not VALID")

    def first(*names: str) -> float | None:
        return next((x for name in names if (x := number(values.get(name))) is not None), None)

    scenario = values.get("scenario", "")
    tokens = first("completed tokens per second", "tokens per second")
    samples = first("completed samples per second", "samples per second", "scheduled samples per second")
    latency_ns = first("90.0th percentile latency (ns)", "90.00 percentile latency (ns)")
    if scenario == "MultiStream":
        latency_ns = first("99.0th percentile latency (ns)", "99.00 percentile latency (ns)")
    if scenario in ("SingleStream", "MultiStream"):
        result, unit = (latency_ns or 0.0) / 1e6, "Latency (ms)"
    elif tokens:
        result, unit = tokens, "Tokens/s"
    else:
        result, unit = samples or 0.0, "Samples/s" if scenario == "Offline" else "Queries/s"
    if not result:
        raise RowRefusedError("holds no figure of performance")

    def seconds(*names: str) -> float | None:
        found = first(*names)
        return None if found is None else found / 1e9

    return own_item(
        FORMAT,
        {
            "model": "",
            "result": result,
            "unit": unit,
            "scenario": scenario,
            "runtime": values.get("sut name", "")[:120],
            "requests_per_s": samples,
            "output_tokens": tokens / samples if tokens and samples else None,
            "tokens_per_s": tokens,
            "ttft_mean_s": seconds("mean first token latency (ns)"),
            "ttft_p99_s": seconds("99.00 percentile first token latency (ns)"),
            "tpot_mean_s": seconds("mean time to output token (ns)", "mean time per output token (ns)"),
            "tpot_p99_s": seconds("99.00 percentile time to output token (ns)"),
            "file": file,
            "notes": ("valid by LoadGen; not a submission that MLCommons has checked",),
        },
    )
