"""The eight axes on which a piece of evidence is held against a plan, each with the reason for its mark."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cache
from typing import Literal

from chipwise.catalog.benchmarks import load_benchmarks
from chipwise.catalog.chips import load_chips
from chipwise.catalog.runtime_spec import Runtime
from chipwise.catalog.software import all_software
from chipwise.evidence.item import Item
from chipwise.values import dataclass

Mark = Literal["same", "near", "different", "unknown"]

STEP = {"same": 0.0, "near": 1.0, "unknown": 1.5, "different": 3.0}


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What of a model decides its speed: parameters, those used per token, cache per token, architecture."""

    name: str
    params: float
    active: float
    kv_bytes_per_token: float
    architecture: str

    @property
    def sparse(self) -> bool:
        """Whether a token uses a part of the parameters only."""
        return self.active < 0.7 * self.params


@dataclass(frozen=True, slots=True)
class Target:
    """What somebody plans. None or "" = not said.

    `benchmark` is that of a network which is measured by samples, not tokens, `own` whether the benchmark runs this
    very network; `sample` is what one sample of the plan is, under the names of the benchmark, and `accuracy` the share
    of the reference's accuracy that it needs, in percent.
    """

    model: ModelFacts
    chip: str
    chips: int | None = None
    precision: str = ""
    scenario: str = ""
    input_tokens: float | None = None
    output_tokens: float | None = None
    concurrency: float | None = None
    runtime: str = ""
    date: str = ""
    power_w: float | None = None
    benchmark: str = ""
    own: bool = True
    sample: Mapping[str, str] = field(default_factory=dict)
    accuracy: str = ""


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a match and the reason for its mark, in words."""

    name: str
    mark: Mark
    reason: str


def chip_axis(t: Target, item: Item) -> Axis:
    """Chip and power bin."""
    if not item.chip:
        if item.part:
            return Axis("chip", "different", f"measured on {item.part}, which is not in the catalogue")
        return Axis("chip", "unknown", "its chip is not recorded")
    if item.chip == t.chip:
        if item.power_limit_w and t.power_w and abs(math.log(item.power_limit_w / t.power_w)) > 0.05:
            said = f"same chip at {item.power_limit_w:g} W, yours has {t.power_w:g} W"
            return Axis("chip", "near", said)
        return Axis("chip", "same", f"{item.chip}")
    chips = load_chips()
    mine, theirs = chips.get(t.chip), chips.get(item.chip)
    if mine is None or theirs is None:
        return Axis("chip", "unknown", f"measured on {item.chip}")
    kin = mine.vendor == theirs.vendor and mine.family == theirs.family and abs(mine.year - theirs.year) <= 2
    a, b = mine.memory.bytes_per_s, theirs.memory.bytes_per_s
    if kin and a and b and abs(math.log(a / b)) < math.log(1.6):
        return Axis("chip", "near", f"{item.chip}: same vendor and time, {b / a:.2g}x the bandwidth")
    return Axis("chip", "different", f"measured on {item.chip}")


def count_axis(t: Target, item: Item) -> Axis:
    """Chips in all, and how they are joined as far as hosts tell."""
    if t.chips is None or item.chips is None:
        return Axis("count", "unknown", "a count was not given" if t.chips is None else "its count is unknown")
    nodes = f" in {item.nodes} hosts" if item.nodes and item.nodes > 1 else ""
    if item.chips == t.chips:
        return Axis("count", "same", f"{item.chips} chips{nodes}")
    said = f"{item.chips} chips{nodes}, yours are {t.chips}"
    return Axis("count", "near" if 0.5 <= item.chips / t.chips <= 2.0 and not nodes else "different", said)


def model_axis(t: Target, item: Item, facts: Callable[[str], ModelFacts | None]) -> Axis:
    """Size, sparsity and cache of the model."""
    if not item.model:
        return Axis("model", "unknown", "its model is not recorded")
    if t.benchmark and item.benchmark == t.benchmark:
        said = "the network of the benchmark" if t.own else f"a network of the same sort: {item.benchmark}"
        return Axis("model", "same" if t.own else "near", said)
    ran = load_benchmarks().get(item.benchmark)
    if t.benchmark or (ran is not None and not ran.model):
        return Axis("model", "different", f"{item.benchmark or item.model}: another network")
    other = facts(item.model)
    if other is None:
        return Axis("model", "unknown", f"{item.model} cannot be read here")
    if other.name == t.model.name:
        return Axis("model", "same", other.name)
    return _by_size(t.model, other)


def _by_size(mine: ModelFacts, other: ModelFacts) -> Axis:
    said = f"{other.name}: {other.params / 1e9:.3g} B, {other.active / 1e9:.3g} B a token"
    if other.sparse != mine.sparse:
        words = "experts" if other.sparse else "dense"
        return Axis("model", "different", f"{said}, {words} where yours is not")
    size = abs(math.log(other.active / mine.active))
    cache = abs(math.log(max(other.kv_bytes_per_token, 1.0) / max(mine.kv_bytes_per_token, 1.0)))
    if size < math.log(1.15) and cache < math.log(1.5) and other.architecture == mine.architecture:
        return Axis("model", "same", f"{said}: the same but for its training")
    if size < math.log(1.6) and cache < math.log(3.0):
        return Axis("model", "near", said)
    return Axis("model", "different", said)


def precision_axis(t: Target, item: Item) -> Axis:
    """Bits of the weights."""
    if not item.precision or not t.precision:
        which = "its precision is not recorded" if not item.precision else "yours was not given"
        return Axis("precision", "unknown", which)
    theirs, mine = _bits(item.precision), _bits(t.precision)
    if theirs == mine:
        return Axis("precision", "same", item.precision)
    if theirs is None or mine is None:
        return Axis("precision", "unknown", f"declared {item.precision}")
    said = f"{item.precision}, yours is {t.precision}"
    near = abs(math.log2(theirs / mine)) < 0.5
    return Axis("precision", "near" if near else "different", said)


@cache
def _bits(name: str) -> float | None:
    """Bits of a weight by the lowest format named: mixed precisions are led by it."""
    found = [int(x) for x in re.findall(r"(?:fp|int|bf|float|nf)_?(\d{1,2})", name.lower().replace("mxfp", "fp"))]
    return float(min(found)) if found else None


def load_axis(t: Target, item: Item) -> Axis:
    """Lengths, and requests in flight where the plan says them."""
    parts: list[Mark] = []
    words = []
    for mine, theirs, what in (
        (t.input_tokens, item.input_tokens, "in"),
        (t.output_tokens, item.output_tokens, "out"),
        (t.concurrency, item.concurrency, "at once"),
    ):
        if mine is None and what == "at once":
            continue  # a full machine against a full machine
        if not mine or not theirs:
            parts.append("unknown")
            continue
        off = abs(math.log(theirs / mine))
        parts.append("same" if off < math.log(1.25) else "near" if off < math.log(2.0) else "different")
        words.append(f"{theirs:,.0f} {what} against {mine:,.0f}")
    worst = max(parts, key=lambda m: STEP[m]) if parts else "unknown"
    benchmark = load_benchmarks().get(item.benchmark)
    doubt = f"; {benchmark.input_note}" if benchmark and benchmark.input_note else ""
    return Axis("load", worst, (", ".join(words) or "lengths are not recorded") + doubt)


def sample_axis(t: Target, item: Item) -> Axis:
    """What one sample is: resolution, frames, steps, seconds of audio. Areas and volumes are compared as such."""
    benchmark = load_benchmarks().get(item.benchmark)
    theirs = benchmark.sample if benchmark else {}
    if not theirs:
        return Axis("sample", "same", "one sample is always the same work")
    parts: list[Mark] = []
    words = []
    for name, value in theirs.items():
        mine = t.sample.get(name)
        if mine is None:
            parts.append("unknown")
            words.append(f"{name} {value}, yours was not given")
            continue
        a, b = _size(mine, value), _size(value, value)
        off = abs(math.log(a / b)) if a and b else math.inf
        parts.append("same" if off < math.log(1.05) else "near" if off < math.log(2.0) else "different")
        words.append(f"{name} {value} against {mine}")
    return Axis("sample", max(parts, key=lambda m: STEP[m]), ", ".join(words))


NUMBERS = re.compile(r"\d+(?:\.\d+)?")


def _size(text: str, like: str) -> float:
    """The product of the numbers of a size, as in 1024x1024; 0 where it has none. One number where `like` has several
    stands for each of them."""
    numbers = [float(x) for x in NUMBERS.findall(text)]
    if len(numbers) == 1:
        numbers *= len(NUMBERS.findall(like))
    return math.prod(numbers) if numbers else 0.0


def accuracy_axis(t: Target, item: Item) -> Axis:
    """The accuracy that a result was held to."""
    if not item.accuracy:
        return Axis("accuracy", "same", "held to the one accuracy of the benchmark")
    if not t.accuracy:
        return Axis("accuracy", "unknown", f"held to {item.accuracy} % of the reference; yours was not given")
    said = f"held to {item.accuracy} % of the reference, yours to {t.accuracy} %"
    return Axis("accuracy", "same" if float(t.accuracy) == float(item.accuracy) else "near", said)


def scenario_axis(t: Target, item: Item) -> Axis:
    """Throughput, served with limits, or one at a time."""
    if not t.scenario or not item.scenario:
        return Axis("scenario", "unknown", item.scenario or "not recorded")
    mine, theirs = _kind(t.scenario), _kind(item.scenario)
    if mine == theirs:
        return Axis("scenario", "same", item.scenario)
    near = {mine, theirs} <= {"throughput", "served", "tight"} and {mine, theirs} != {"throughput", "tight"}
    return Axis("scenario", "near" if near else "different", f"{item.scenario}, yours is {t.scenario}")


def _kind(name: str) -> str:
    words = {
        "offline": "throughput",
        "batch": "throughput",
        "throughput": "throughput",
        "serve": "served",
        "server": "served",
        "open loop": "served",
        "closed loop": "served",
        "concurrent": "served",
        "poisson": "served",
        "constant": "served",
        "interactive": "tight",
        "local": "single",
        "singlestream": "single",
        "synchronous": "single",
    }
    return words.get(name.lower(), name.lower())


def runtime_axis(t: Target, item: Item) -> Axis:
    """The software and its date."""
    if not item.runtime:
        return Axis("runtime", "unknown", "its software is not recorded")
    when = item.date or "date unknown"
    months = _months(t.date, item.date)
    if not t.runtime:
        return Axis("runtime", "unknown", f"{item.runtime[:60]} ({when}); yours was not given")
    same = _stem(t.runtime) in _plain(item.runtime)
    if same and months is not None and months <= 7:
        return Axis("runtime", "same", f"{item.runtime[:60]} ({when})")
    said = f"{item.runtime[:60]} ({when})"
    if months is not None and months > 18:
        return Axis("runtime", "different", f"{said}: {months / 12:.1f} years from yours")
    return Axis("runtime", "near" if same or months is None or months <= 12 else "different", said)


def _stem(runtime: str) -> str:
    name = runtime.partition("-")[0]
    known = all_software(Runtime).get(name)
    return _plain((known.published_as if known else "") or name)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _months(a: str, b: str) -> float | None:
    """Months between two dates as known ("2025-09", "20250911"), None where one is not."""
    parts = [re.match(r"(\d{4})-?(\d{2})?", text) for text in (a, b)]
    if not parts[0] or not parts[1]:
        return None
    first, second = (int(p.group(1)) * 12 + int(p.group(2) or 6) for p in parts if p)
    return float(abs(first - second))


def environment_axis(t: Target, item: Item) -> Axis:
    """Whose machine, and what was tuned or shared."""
    if item.measured_by_user:
        return Axis("environment", "same" if item.chip == t.chip else "near", "measured by you")
    words = [w for w in ("maxq", "virtual", "mig", "powercap") if w in item.environment]
    if words:
        return Axis("environment", "different", f"{', '.join(words)}; tuned for a submission")
    return Axis("environment", "near", f"tuned by {item.submitter} for a submission, no neighbours")
