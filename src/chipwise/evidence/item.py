"""One piece of evidence: a published result or a measurement of the user's own, in the same words; and why figures that
no machine can have reached are kept apart before anything is fitted."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, asdict, field, fields
from typing import Any, Literal, get_args

from chipwise.catalog.benchmarks import load_benchmarks, required_accuracy
from chipwise.catalog.chip import Chip
from chipwise.catalog.published import InferenceResult
from chipwise.values import dataclass
from chipwise.workload.graph import Graph

Origin = Literal["published", "own"]

OTHERS = ("MLCommons", "InferenceX", "LocalScore", "TensorRT-LLM performance", "NeMo performance")
"""How the formats of results begin that somebody else measured and published."""


@dataclass(frozen=True, slots=True)
class Item:
    """A measured throughput or latency with everything that is known of how it came about.

    Rates are of the whole system, times in seconds. `accuracy` is the share of the reference's accuracy that it was
    held to, in percent. None or "" = not known. `chip` is an id of the catalogue,
    "" where the part is not in it (then see `part`). `result` with its `unit` is the figure as it was reported
    after the corrections that `notes` list. `layout` are degrees,
    as in "tp=2,dp=4". `id` is the published id, or a hash of the content.
    """

    id: str
    origin: Origin
    format: str
    model: str
    result: float
    unit: str
    chip: str = ""
    part: str = ""
    chips: int | None = None
    nodes: int | None = None
    interconnect: str = ""
    precision: str = ""
    scenario: str = ""
    benchmark: str = ""
    round: str = ""
    date: str = ""
    runtime: str = ""
    layout: str = ""
    submitter: str = ""
    environment: str = ""
    power_limit_w: float | None = None
    concurrency: float | None = None
    requests_per_s: float | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    tokens_per_s: float | None = None
    ttft_mean_s: float | None = None
    ttft_p99_s: float | None = None
    tpot_mean_s: float | None = None
    tpot_p99_s: float | None = None
    file: str = ""
    notes: tuple[str, ...] = field(default=())
    accuracy: str = ""

    @property
    def measured_by_user(self) -> bool:
        """Whether the user ran it: tables and pages of others that were imported are published results still."""
        return self.origin == "own" and not self.format.startswith(OTHERS)

    @property
    def per_chip(self) -> float | None:
        """Tokens per second of one chip, None where either is unknown."""
        return self.tokens_per_s / self.chips if self.tokens_per_s is not None and self.chips else None

    @property
    def speed(self) -> float | None:
        """What one chip does in a second: tokens, else what `unit` counts; the inverse of a latency, which all chips
        share. None where nothing of that is known."""
        if self.per_chip is not None:
            return self.per_chip
        if not self.result > 0.0:
            return None
        if self.unit.startswith("Latency"):
            return (1e3 if "ms" in self.unit else 1.0) / self.result
        return self.result / self.chips if self.unit.endswith("/s") and self.chips else None


def item_of(result: InferenceResult) -> Item:
    """A published result of MLPerf Inference as evidence."""
    benchmark = load_benchmarks()[result.benchmark]
    environment = [result.variant] if result.variant else []
    if result.power_limit_w is not None:
        environment.append(f"{result.power_limit_w:g} W a chip")
    return Item(
        id=result.id,
        origin="published",
        format=f"MLPerf Inference {result.round}",
        model=benchmark.model or result.benchmark,
        result=result.result,
        unit=result.unit,
        chip=result.chip,
        part=result.accelerator,
        chips=result.chips or None,
        nodes=result.nodes,
        interconnect=result.interconnect,
        precision=result.precision,
        scenario=result.scenario,
        benchmark=result.benchmark,
        round=result.round,
        date=result.date,
        runtime=result.framework,
        submitter=result.submitter,
        environment=", ".join(environment),
        power_limit_w=result.power_limit_w,
        input_tokens=benchmark.input_tokens or None,
        output_tokens=benchmark.output_tokens or None,
        tokens_per_s=result.tokens_per_s,
        ttft_p99_s=result.ttft_p99_s,
        tpot_p99_s=result.tpot_p99_s,
        file=result.source,
        notes=(result.notes,) if result.notes else (),
        accuracy=required_accuracy(result.model),
    )


def to_json(item: Item) -> str:
    """An item as one line of JSON; the same item gives the same text."""
    return json.dumps(asdict(item), sort_keys=True, separators=(",", ":"), allow_nan=False)


def from_json(text: str) -> Item:
    """The item of a line of JSON; keys that this version does not know are left out.

    Raises `ValueError` for a line that is none: another document, a field missing or of another type.
    """
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("not an item")
    known = {f.name: str(f.type) for f in fields(Item)}
    table: dict[str, Any] = {k: v for k, v in document.items() if k in known}
    missing = sorted({f.name for f in fields(Item) if f.default is MISSING} - table.keys() - {"notes"})
    wrong = [name for name, value in table.items() if not _fits(value, known[name])]
    if missing or wrong:
        raise ValueError(f"no {missing[0]}" if missing else f"{wrong[0]} is of another type")
    return Item(**{**table, "notes": tuple(table.get("notes", ()))})


def _fits(value: object, kind: str) -> bool:
    """Whether a value of JSON is of a field's type, as it is written in `Item`."""
    if value is None:
        return "None" in kind
    if kind.startswith("tuple"):
        return isinstance(value, list) and all(isinstance(v, str) for v in value)
    if kind == "Origin":
        return value in get_args(Origin)
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        return False
    types: Mapping[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float)}
    return isinstance(value, types[kind.partition(" ")[0]])


def own_item(format_: str, values: Mapping[str, Any]) -> Item:
    """An item of the user's own with an id from its content; where the file lay does not matter.

    `values` are fields of `Item`; what is None takes the default.
    """
    table = {k: v for k, v in values.items() if v is not None}
    content = {k: v for k, v in table.items() if k != "file"}
    text = json.dumps([format_, content], sort_keys=True, default=list)
    name = "own-" + hashlib.sha256(text.encode()).hexdigest()[:12]
    return Item(id=name, origin="own", format=format_, **table)


SLACK = 1.1
"""Over a bound, for clocks above the sheet's and rounded figures, before a figure is called impossible."""
WAVES = 1.3
"""Over what clients in flight can receive (Little), before rate and times contradict each other: means over requests
and over time differ where lengths scatter."""


def impossible(item: Item, chip: Chip | None, graph: Graph | None) -> str:
    """Why a result cannot be, "" where it can.

    Time and rate: C clients that each wait TTFT + (n - 1) TPOT for n tokens receive C n / that at most. Peak: a token
    costs 2 FLOPs per active weight (6 in training), and a further one reads every active weight once from memory.
    Runs with drafts make several tokens a pass, and are held to the FLOPs alone.
    """
    if why := _contradicted(item):
        return why
    if chip is None or graph is None or not item.chips:
        return ""
    return _above_peak(item, item.chips, chip, graph) or _unread(item, item.chips, chip, graph)


def _contradicted(item: Item) -> str:
    """Where more tokens arrive than clients with such times receive."""
    n, c = item.output_tokens, item.concurrency
    if not (item.tokens_per_s and item.tpot_mean_s and n and n > 1 and c) or item.scenario == "training":
        return ""
    most = WAVES * c * n / ((item.ttft_mean_s or 0.0) + (n - 1.0) * item.tpot_mean_s)
    if item.tokens_per_s <= most:
        return ""
    return f"{item.tokens_per_s:,.0f} tokens/s, but {c:g} clients at this TPOT receive {most / WAVES:,.0f}"


def _above_peak(item: Item, chips: int, chip: Chip, graph: Graph) -> str:
    """Where the products of its tokens, and of their prompts, take more than the peak."""
    training = item.scenario == "training"
    each = 6.0 if training else 2.0
    n = item.output_tokens
    whole = 1.0 + item.input_tokens / n if item.input_tokens and n and not training else 1.0
    per_chip = (item.tokens_per_s or 0.0) * whole * each * graph.active_params() / chips
    peak = max(chip.matrix.values(), default=0.0) or max(chip.vector.values(), default=0.0)
    if not peak or per_chip <= SLACK * peak:
        return ""
    return f"{per_chip / 1e12:,.0f} TFLOP/s a chip, above its peak of {peak / 1e12:,.0f}"


def _unread(item: Item, chips: int, chip: Chip, graph: Graph) -> str:
    """Where a token takes less than reading its weights, though no draft is known."""
    memory = chip.tiers[0].bytes_per_s if chip.tiers else None
    if not item.tpot_mean_s or not memory or any("speculative" in note for note in item.notes):
        return ""
    least = graph.weight_bytes * graph.active_params() / graph.parameters / (chips * memory)
    if item.tpot_mean_s * SLACK >= least:
        return ""
    said, bound = item.tpot_mean_s * 1e3, least * 1e3
    return f"TPOT {said:.3g} ms, but reading its weights once takes {bound:.3g} ms"
