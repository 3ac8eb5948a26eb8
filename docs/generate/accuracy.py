"""Short tables of accuracy: a few lines of `docs/accuracy.md`, so that no page says another figure than it does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from docs.generate.tables import table

from chipwise.evidence.rounds import Scored, leading

__all__ = ["ENERGY", "LINES", "Line", "accuracy_lines", "accuracy_table", "rounds_table"]

PAGE = Path(__file__).resolve().parents[1] / "accuracy.md"


@dataclass(frozen=True)
class Line:
    """The errors of one metric in one section of the page, in percent: the median of its rows, the mean over its cells
    (None where the section was printed without), and how many rows lie inside the interval."""

    median: float
    held: float
    cells: float | None = None


Place = tuple[str, str, str, str]
"""Section, heading of its table, row and metric."""

ALL = "all", "all"
LINES: Mapping[str, tuple[Place, ...]] = {
    "serving, prefill and decode together: time per output token, time to first token": (
        ("serving", "by mode", "aggregated", "tpot_ms"),
        ("serving", "by mode", "aggregated", "ttft_ms"),
    ),
    "serving, prefill and decode separated: the same": (
        ("serving", "by mode", "disaggregated", "tpot_ms"),
        ("serving", "by mode", "disaggregated", "ttft_ms"),
    ),
    "serving on a chip that no fit saw: the same": (
        ("serving with a chip never seen", "by mode", "aggregated", "tpot_ms"),
        ("serving with a chip never seen", "by mode", "aggregated", "ttft_ms"),
    ),
    "published benchmarks, their source left out: throughput, per token, first token": (
        ("published", *ALL, "tokens_per_s"),
        ("published", *ALL, "tpot_s"),
        ("published", *ALL, "ttft_s"),
    ),
    "MLPerf Inference, language models: Offline, Server, Interactive": (
        ("mlperf", "language models", "Offline", "tokens_per_s"),
        ("mlperf", "language models", "Server", "tokens_per_s"),
        ("mlperf", "language models", "Interactive", "tokens_per_s"),
    ),
    "MLPerf Inference, other networks: Offline, Server, single stream": (
        ("mlperf", "samples of fixed size", "Offline", "result"),
        ("mlperf", "samples of fixed size", "Server", "result"),
        ("mlperf", "samples of fixed size", "SingleStream", "result"),
    ),
    "llama.cpp, MLX and others on one machine: decode, prompts": (
        ("local", *ALL, "tg_tok_s"),
        ("local", *ALL, "pp_tok_s"),
    ),
    "images, video, vision, speech: latency, memory": (
        ("media", "all", "time", "latency_s"),
        ("media", "all", "memory", "peak_memory_gb"),
    ),
    "training steps: dense, mixtures of experts; memory": (
        ("training", "all", "dense", "step_time_s"),
        ("training", "all", "experts", "step_time_s"),
        ("training", "all", "dense", "memory_gb"),
    ),
    "energy per token; power at the wall": (("energy", *ALL, "joules_per_token"), ("energy", *ALL, "wall_w")),
    "GPU kernels": (("kernels", *ALL, "latency_us"),),
}
"""What the front page shows."""

ENERGY: Mapping[str, tuple[Place, ...]] = {
    "watts of chips that serve language models; at the measured rate": (
        ("energy", *ALL, "chip_w"),
        ("energy", *ALL, "chip_w at the measured rate"),
    ),
    "watts of chips that make images and videos; at the measured rate": (
        ("energy", *ALL, "chip_w samples"),
        ("energy", *ALL, "chip_w samples at the measured rate"),
    ),
    "watts of MLPerf systems at the wall; at the measured rate": (
        ("energy", *ALL, "wall_w"),
        ("energy", *ALL, "wall_w at the measured rate"),
    ),
    "joules per token, of chips; at the wall": (
        ("energy", *ALL, "joules_per_token"),
        ("energy", *ALL, "joules_per_token wall"),
    ),
    "joules per image or video, of chips": (("energy", *ALL, "joules_per_token samples"),),
}
"""What the page about energy shows."""


def accuracy_lines(text: str) -> Mapping[Place, Line]:
    """Every line of the page that has an error, by its place."""
    return dict(_lines(text))


def _lines(text: str) -> Iterator[tuple[Place, Line]]:
    section = heading = ""
    for line in text.splitlines():
        if line.startswith("## "):
            section = line[3:].strip()
        elif found := re.fullmatch(r"\*\*(.+)\*\*", line):
            heading = found[1]
        elif line.startswith("| ") and line.count("|") >= 9:
            name, metric, _, _, median, _, _, held, *more = (c.strip() for c in line.strip("|").split("|"))
            if median.endswith("%") and held.endswith("%"):
                cells = re.match(r"([\d.]+) %", more[1]) if len(more) > 1 else None
                mean = float(cells[1]) if cells else None
                yield (section, heading, name, metric), Line(float(median[:-1]), float(held[:-1]), mean)


def accuracy_table(of: str = "") -> str:
    """Errors of `LINES`, or of what `of` names, medians over rows beside means over cells, and how often their
    intervals held. Raises `KeyError` for a line that went."""
    chosen = {"": LINES, "energy": ENERGY}[of]
    known = accuracy_lines(PAGE.read_text("utf-8"))
    rows = [
        (
            what,
            ", ".join(f"{_two_digits(known[place].median)} %" for place in places),
            ", ".join(_percent(known[place].cells) for place in places),
        )
        for what, places in chosen.items()
    ]
    held = [known[place].held for places in chosen.values() for place in places]
    said = f"The 80 % intervals of these lines hold {min(held):.0f} to {max(held):.0f} % of what was measured."
    return f"{table(('what', 'median over rows', 'mean over cells'), rows)}\n\n{said}"


LED = (
    ("serving, time per output token", ("serving under a steady load", "serving"), "TPOT"),
    ("serving, time to first token", ("serving under a steady load", "serving"), "TTFT"),
    ("serving, throughput", ("serving under a steady load", "serving"), "throughput"),
    ("training, speed", ("training",), "speed"),
    ("training, memory", ("training",), "memory"),
    ("one machine: decode", ("desk",), "decode"),
    ("one machine: prompts", ("desk",), "prompts"),
    ("images, video, vision, speech: speed", ("media",), "speed"),
)
"""Lines of a round that a page leads with: words, groups of the register (the first that it has) and metric."""


def rounds_table(_: str = "") -> str:
    """What the last rounds found. Raises `StopIteration` for a line that went."""
    return "\n\n".join(_round_table(lines) for lines in leading())


def _round_table(lines: Sequence[Scored]) -> str:
    found = {(r.found.name, r.found.metric): r.found for r in lines}
    rows = [
        (
            words,
            f"{s.rows}",
            f"{_two_digits(100.0 * s.median)} %",
            f"{100.0 * s.bias:+.0f} %",
            f"{100.0 * s.coverage:.0f} %",
        )
        for words, groups, metric in LED
        for s in (next(found[g, metric] for g in groups if (g, metric) in found),)
    ]
    heads = ("what", "figures", "median error", "bias", "inside the 80 % interval")
    who = f"Round {lines[0].round}, {lines[0].date}, product at {lines[0].commit}:"
    return f"{who}\n\n{table(heads, rows)}"


def _percent(percent: float | None) -> str:
    return "-" if percent is None else f"{_two_digits(percent)} %"


def _two_digits(percent: float) -> str:
    return f"{percent:.0f}" if percent >= 10.0 else f"{percent:.1f}"
