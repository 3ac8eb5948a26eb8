"""Benchmark clients and what they add to the traffic that they are named after: facts of `data/harnesses.toml`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Literal

from chipwise.catalog.parsed import parse
from chipwise.catalog.schema import record
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.errors import UnknownNameError, UsageError
from chipwise.values import dataclass

TABLE = "catalog/data/harnesses.toml"


@dataclass(frozen=True, slots=True)
class Published:
    """A run of a suite whose scripts are public, as far as they tell runs apart. `precision` is that of the weights."""

    runtime: str
    chip: str
    model: str
    precision: str
    clients: float
    tp: int
    replicas: int
    prompt: float
    output: float
    month: str

    @property
    def lengths(self) -> str:
        """As 1024/8192."""
        return f"{self.prompt:g}/{self.output:g}"


@dataclass(frozen=True, slots=True)
class Server:
    """How published runs launched a server: which runs, and what was set. `budget` are terms of `max_batched_tokens`
    that add up, to `least` or more."""

    runtime: str
    chips: Sequence[str] = ()
    models: Sequence[str] = ()
    precision: str = ""
    clients: float = 0.0
    most_tp: int = 1_000_000
    replicas: int = 1
    lengths: str = ""
    since: str = ""
    until: str = ""
    budget: Sequence[str] = ()
    least: float = 0.0
    policy: Mapping[str, int] = field(default_factory=dict)

    def fits(self, run: Published) -> bool:
        """Whether a run was launched so; one without a date by what had no end."""
        return (
            run.runtime == self.runtime
            and (not self.chips or run.chip in self.chips)
            and (not self.models or any(word in run.model.lower() for word in self.models))
            and self.precision in run.precision
            and run.clients >= self.clients
            and run.tp <= self.most_tp
            and run.replicas >= self.replicas
            and self.lengths in ("", run.lengths)
            and self.since <= (run.month or self.since)
            and (not self.until or "" < run.month <= self.until)
        )

    def policies(self, run: Published) -> dict[str, int]:
        """What its command line set for a run."""
        said = {"clients": run.clients, "prompt": run.prompt, "output": run.output}
        total = sum(said[term] if term in said else float(term) for term in self.budget)
        sized = {"max_batched_tokens": int(max(total, self.least))} if self.budget else {}
        return {**self.policy, **sized}


@dataclass(frozen=True, slots=True)
class Harness:
    """A benchmark client. `waves` requests are sent by each client in a run; lengths are drawn evenly from `shortest`
    of the nominal length to all of it; `server`: requests pass HTTP and a tokeniser. `assumed`: taken of tables of
    measurements whose source names none. `request_s`: of a warm server on the request of a median, by runtime; of
    those that it leaves out the runtime's own.
    """

    id: str
    name: str
    start: Literal["burst", "poisson"]
    waves: float
    shortest: float
    server: bool
    source: str
    date: str
    named_by: tuple[str, ...] = ()
    sweep: tuple[str, ...] = ()
    assumed: bool = False
    servers: tuple[Server, ...] = ()
    median_of: str = ""
    request_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def client(self) -> str:
        """The client that sends the requests."""
        return self.median_of or self.id

    def ran(self, run: Published) -> bool:
        """Whether a run is one of the suite's: of its lengths, of a chip and a model that a script of its names."""
        return run.lengths in self.sweep and any(s.chips and s.models and s.fits(run) for s in self.servers)

    def launched(self, run: Published | None) -> dict[str, int]:
        """Policies that the scripts of the suite set for a run; none where they are not known."""
        return next((s.policies(run) for s in self.servers if run is not None and s.fits(run)), {})

    @property
    def first_wave(self) -> float:
        """Share of a run that waits for the prompts of a common start, half of them on average: 1 / (2 waves); 0 for
        arrivals at a rate, and for the median of many waves."""
        return 0.5 / self.waves if self.start == "burst" and not self.median_of else 0.0

    @property
    def alike(self) -> bool:
        """Whether all requests are of the nominal length."""
        return self.shortest == 1.0

    @property
    def meaning(self) -> str:
        """What it adds, in words."""
        start = {"burst": "all clients start at once", "poisson": "requests arrive at random"}[self.start]
        drawn = "" if self.alike else f", lengths drawn from {self.shortest:g} of the nominal one to all"
        return f"{self.name}: {start}{drawn}{'' if self.server else ', no server between'}"

    @property
    def mean_length(self) -> float:
        """Mean over nominal lengths."""
        return 0.5 * (1.0 + self.shortest)


NO_HARNESS = Harness("", "users, not a benchmark", "poisson", 1.0, 1.0, True, "", "")
"""What every plan assumes."""


@per_snapshot
def load_harnesses() -> Mapping[str, Harness]:
    """All bundled harnesses by id."""
    table = parse(shipped_text(TABLE))
    found = {name: record(Harness, row, f"{TABLE}: {name}", id=name) for name, row in table.items()}
    for h in found.values():
        if not h.waves >= 1 or not 0 < h.shortest <= 1:
            raise UsageError(f"{TABLE}: {h.id}: a value is out of range", "see the head of the file")
    return MappingProxyType(found)


def get_harness(name: str | None) -> Harness:
    """The harness of that id; without one none. Raises `UnknownNameError`, naming the nearest."""
    if not name or name == "none":
        return NO_HARNESS
    known = load_harnesses()
    if name not in known:
        raise UnknownNameError("harness", name, known)
    return known[name]


def harness_of(source: str, run: Published | None = None) -> Harness:
    """The harness that the source of a measurement names; else that of the suite whose run it is; else the one that is
    assumed."""
    words = set(re.split(r"[^a-z0-9_]+", source.lower()))
    known = load_harnesses().values()
    named = (h for h in known if words & set(h.named_by))
    suites = (h for h in known if run is not None and h.ran(run))
    return next(named, next(suites, next((h for h in known if h.assumed), NO_HARNESS)))


def median_harness(harness: Harness) -> Harness:
    """The same client where medians of its runs are published; itself where nothing is known of those."""
    return next((h for h in load_harnesses().values() if harness.id and h.median_of == harness.id), harness)
