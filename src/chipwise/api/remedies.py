"""The smallest changes with which a question without a plan has one, found by asking it again: one search for every
task, and how its words and figures are said."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate, repeat
from operator import mul
from typing import Any, Generic, TypeVar

import numpy as np

from chipwise.api.media_asked import Sampling
from chipwise.catalog.preferences import preferences
from chipwise.errors import ChipwiseError
from chipwise.parallel.layout import Reason
from chipwise.report import figures
from chipwise.report.plan import Plan
from chipwise.search.choose import Refusal
from chipwise.search.space import Limits
from chipwise.units import duration_above, typed_s
from chipwise.values import dataclass
from chipwise.workload.workload import Workload

HALVINGS = 5  # questions by which a number is narrowed down
ASKS = 6  # times a change is made larger before it is given up
LATER = 1.25  # times a limit that is not kept yet, that is asked next
LOWER = 0.9  # times a rate that is not carried yet
MORE = (2, 3, 4, 6, 8)  # times the chips that one has
FULLER = 2.0  # times the rate that is carried: no less of a reserve makes more of it
TARGETS = {"ttft_s": "ttft", "tpot_s": "tpot", "e2e_s": "e2e", "latency_s": "e2e"}
"""Times that a load may be bound by, with the options that say them."""
BOUNDING = ("ttft_s", "tpot_s")  # those that bound how much of it a replica takes

Q = TypeVar("Q")
R = TypeVar("R")
L = TypeVar("L", bound=Workload | Sampling)


def working(keeps: Callable[[Q], object], *kinds: Iterable[tuple[str, Q]]) -> list[str]:
    """Of each kind of change the first with which a question has a plan that keeps what it asks, in words. A change is
    what is said of it and the question that it makes, the smallest first."""
    found = (next((words for words, changed in kind if answered(keeps, changed)), "") for kind in kinds)
    return [words for words in found if words]


def answered(keeps: Callable[[Q], R], question: Q) -> R | None:
    """What is answered to a question; None where it is an error."""
    with suppress(ChipwiseError):
        return keeps(question)
    return None


def steps(first: float, factor: float, count: int) -> Iterator[float]:
    """So many numbers, each the one before times a factor."""
    return accumulate(repeat(factor, count - 1), mul, initial=first)


@dataclass(frozen=True)
class Again(Generic[L]):
    """A question asked again: of one chip, within limits, for a load."""

    chip: str
    limits: Limits
    load: L

    def of(self, **changes: Any) -> Again[L]:
        """The same with something of its load changed."""
        return replace(self, load=replace(self.load, **changes))


@dataclass(frozen=True)
class Unmet(Generic[L]):
    """A question that no plan keeps, whatever the model: its load and limits; the chips that came `near`, with what is
    in reach on each; the `fewest` chips of a plan that keeps a question asked again (None: there is none); the plan
    that is least `beyond` the limits, with the dollars of its job. `timed`: the rate is the peak of a day, which no
    option of its own lowers."""

    load: L
    limits: Limits
    near: Sequence[Refusal]
    fewest: Callable[[Again[L]], int | None]
    beyond: Plan | None = None
    usd: float = math.inf
    timed: bool = False

    @property
    def most(self) -> Refusal | None:
        """The chip on which most of the load is carried; None where none is on any."""
        found = max(self.near, key=lambda r: r.reach.requests_per_s, default=None)
        return found if found is not None and found.reach.requests_per_s > 0.0 else None

    def less(self) -> list[str]:
        """A lower rate, and less of a reserve."""
        if self.most is None:
            return []
        return working(self.fewest, () if self.timed else self._less_load(self.most), self._fuller(self.most))

    def more(self) -> list[str]:
        """More of the chips that one has or named, higher limits, and more chips in all."""
        raised = working(self.fewest, self._raised())
        counted = any("--max-chips" in way for way in raised)
        return [*self._more_of_mine(), *raised, *([] if counted else self._more_chips())]

    def later(self) -> list[str]:
        """Later targets, and a later end of the job."""
        most = self.most
        if most is None:
            return working(self.fewest, self.targets())
        looser = (self._looser(most, name) for name in BOUNDING)
        return working(self.fewest, self.targets(), self._later_job(most), *looser)

    def _less_load(self, best: Refusal) -> Iterator[tuple[str, Again[L]]]:
        """Rates from the highest that is carried."""
        rate = self.load.rate_per_s
        if rate is not None:
            by, time = figures.per(rate)
            for lower in map(down, steps(by * min(best.reach.requests_per_s, rate), LOWER, ASKS)):
                yield f"--rate {lower}/{time}", self._asked(best.chip).of(rate_per_s=float(lower) / by)

    def _fuller(self, best: Refusal) -> Iterator[tuple[str, Again[L]]]:
        """Less of the reserve for bursts, where the load needs no more than `fullest`."""
        rate, had, carried = self.load.rate_per_s, self.load.utilisation, best.reach.requests_per_s
        if rate is None or rate > FULLER * carried:
            return
        needed = math.ceil(100.0 * had * rate / carried + 1.0) / 100.0
        if had < needed <= preferences().fullest:
            yield f"--utilisation {needed:.0%}", self._asked(best.chip).of(utilisation=needed)

    def _more_of_mine(self) -> Iterator[str]:
        """So many of the chips that one has, or named so many of, as carry what is asked."""
        short = [r for r in self.near if r.reason is Reason.BUDGET]
        for field, option in (("have", "--have"), ("at_most", "--chips")):
            given = getattr(self.limits, field)
            if len(given) != 1 or not short:
                continue
            ((chip, count),) = given.items()
            times = (*MORE, max(math.ceil(LATER * self._lacking(chip) / count), MORE[-1]))
            changed = (dict[str, Any]([(field, {chip: n * count})]) for n in times)
            asked = (Again(chip, replace(self.limits, **each), self.load) for each in changed)
            found = next(filter(None, (answered(self.fewest, one) for one in asked)), None)
            if found:
                yield f"{option} {found}x{chip}"

    def _lacking(self, chip: str) -> float:
        """About how many of a chip carry what is asked; 0 where nobody knows."""
        if self.beyond is not None and self.beyond.chip == chip:
            return float(self.beyond.chips)
        carried = sum(r.reach.requests_per_s for r in self.near if r.chip == chip)
        return self.limits.chips(chip) * (self.load.rate_per_s or 0.0) / carried if carried > 0.0 else 0.0

    def _raised(self) -> Iterator[tuple[str, Again[L]]]:
        """The limits that the plan which is least beyond them breaks, as it keeps them together."""
        p, job = self.beyond, self.load.job
        if p is None or self.limits.have:
            return
        broken = {field: (words, value) for field, words, value in self._broken(p)}
        said = [words for words, _ in broken.values()]
        changes: dict[str, Any] = {field: value for field, (_, value) in broken.items()}
        asked = Again(p.chip, replace(self.limits, **changes), self.load)
        if job is not None and job.max_usd is not None and job.max_usd < self.usd < math.inf:
            said.append(f"--max-usd {up(self.usd)}")
            asked = asked.of(job=replace(job, max_usd=float(up(self.usd))))
        if said and (len(said) > 1 or "max_chips" not in changes):  # of which alone the fewest are asked for
            yield " ".join(said), asked

    def _broken(self, p: Plan) -> Iterator[tuple[str, str, object]]:
        """The limits that a plan breaks, with the option and the value with which each would hold."""
        limits, usd = self.limits, p.usd_per_h
        if limits.max_chips is not None and p.chips > limits.max_chips:
            yield "max_chips", f"--max-chips {p.chips}", p.chips
        if p.chip in limits.few and p.chips > Limits(few=limits.few).chips(p.chip):
            yield "few", f"--chips {p.chip}", limits.few - {p.chip}
        if limits.max_usd_per_h is not None and usd is not None and usd > limits.max_usd_per_h:
            yield "max_usd_per_h", f"--max-usd-per-h {up(usd)}", float(up(usd))

    def _more_chips(self) -> Iterator[str]:
        """So many chips in all as carry what is asked."""
        if self.limits.max_chips is None or len(self.limits.have) == 1:
            return
        short = sorted((r for r in self.near if r.reason is Reason.BUDGET), key=lambda r: -r.reach.requests_per_s)
        more = replace(self.limits, max_chips=None)
        found = [n for r in short[:ASKS] if (n := answered(self.fewest, Again(r.chip, more, self.load)))]
        if found:
            yield f"--max-chips {min(found)}"

    def targets(self) -> Iterator[tuple[str, Again[L]]]:
        """The targets that are missed, as late as the nearest chip needs them, together where one does not do."""
        best = min((r for r in self.near if r.reason is Reason.SLO), key=lambda r: missed(r, self.load), default=None)
        if best is None:
            return
        reached = reached_s(best, self.load)
        for factor in steps(1.0, LATER, ASKS + 1):
            later = {n: s * factor for n, s in reached.items() if getattr(self.load, n) < s * factor < math.inf}
            if later:
                words = " ".join(f"--{TARGETS[name]} {duration_above(s)}" for name, s in later.items())
                yield words, self._asked(best.chip).of(**{name: typed_s(s) for name, s in later.items()})

    def _looser(self, best: Refusal, name: str) -> Iterator[tuple[str, Again[L]]]:
        """One target later and later, where it is the targets that leave little of the load that is asked for."""
        target, rate = getattr(self.load, name, None), self.load.rate_per_s
        if target is None or rate is None or FULLER * best.reach.requests_per_s > rate:
            return
        for later in steps(LATER * target, LATER, ASKS):
            yield f"--{TARGETS[name]} {duration_above(later)}", self._asked(best.chip).of(**{name: typed_s(later)})

    def _later_job(self, best: Refusal) -> Iterator[tuple[str, Again[L]]]:
        """Deadlines from the one by which a job may be done."""
        job, due = self.load.job, self.load.due_per_s
        if job is not None and job.deadline_s is not None and due is not None:
            late = max(1.0, due / best.reach.requests_per_s) * job.deadline_s
            for later in steps(late, LATER, ASKS):
                changed = replace(job, deadline_s=typed_s(later))
                yield f"--deadline {duration_above(later)}", self._asked(best.chip).of(job=changed)

    def _asked(self, chip: str) -> Again[L]:
        return Again(chip, self.limits, self.load)


def reached_s(near: Refusal, load: Workload | Sampling) -> dict[str, float]:
    """The times that a load is bound by, as short as they are on a chip."""
    first, further = near.reach.ttft_s, near.reach.tpot_with_ttft_s
    further = further if np.isfinite(further) else near.reach.tpot_s
    whole = first + (getattr(load, "output_tokens", 1.0) - 1.0) * further
    found = {"ttft_s": first, "tpot_s": further, "e2e_s": whole, "latency_s": whole}
    return {name: s for name, s in found.items() if getattr(load, name, None) is not None}


def missed(near: Refusal, load: Workload | Sampling) -> float:
    """By what factor the worst target is missed for itself."""
    alone = replace(near, reach=replace(near.reach, tpot_with_ttft_s=math.inf))
    return max((s / getattr(load, name) for name, s in reached_s(alone, load).items()), default=0.0)


def most(low: int, high: int, works: Callable[[int], bool]) -> int | None:
    """The largest number below `high` that works, as far as a few questions tell; None where `low` does not."""
    if low >= high or not works(low):
        return None
    for _ in range(HALVINGS):
        if high - low <= 1:
            break
        middle = (low + high) // 2
        low, high = (middle, high) if works(middle) else (low, middle)
    return low


def down(value: float) -> str:
    """A number with two digits, rounded down."""
    digit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.floor(value / digit * (1.0 + 1e-9)) * digit:.6g}"


def up(value: float) -> str:
    """A number with three digits, rounded up."""
    digit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value / digit * (1.0 - 1e-9)) * digit:.6g}"


def works(ways: Sequence[str]) -> str:
    """Changes that were tried, as the end of a refusal."""
    return f"what works: {either(ways)}"


def either(ways: Sequence[str]) -> str:
    """Ways out as one sentence."""
    return ", or ".join(filter(None, (", ".join(ways[:-1]), *ways[-1:])))
