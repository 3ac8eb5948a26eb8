"""`local`: what a machine at a desk can run, in which format and how fast, or what to buy for a budget."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain

import numpy as np

from chipwise.api.answering import Preferred
from chipwise.api.candidates import LADDER, least_bytes, own_files, wide
from chipwise.api.desk import machine_words
from chipwise.api.loaded import Loaded, load_generating
from chipwise.api.media_asked import Sampling
from chipwise.api.media_record import Replicas, plan_of
from chipwise.api.media_ways import held
from chipwise.api.media_work import Place
from chipwise.api.placing import Terms
from chipwise.api.planning import desk_plan
from chipwise.api.probed import measured_words
from chipwise.api.remedies import down, working, works
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import memory_words, recalled_words
from chipwise.catalog.configs import find_config, known_names, named_config
from chipwise.catalog.environment import environment
from chipwise.catalog.machine import (
    DESKS,
    Candidate,
    Machine,
    candidates,
    converting,
    parse_machine,
    studio,
    with_files,
    with_host,
)
from chipwise.catalog.preferences import preferences
from chipwise.catalog.price import Capex, load_capex
from chipwise.catalog.runtime import runtimes_for
from chipwise.catalog.runtime_spec import Runtime
from chipwise.catalog.snapshot import per_snapshot
from chipwise.catalog.software import all_software
from chipwise.catalog.system import systems_for
from chipwise.errors import ChipwiseError, InfeasibleError, UnknownNameError
from chipwise.parallel.layout import Reason
from chipwise.report.assemble import fully_ready
from chipwise.report.desk import LocalRecord, LocalReport
from chipwise.report.launch.desk import CONVERTED, desk_commands
from chipwise.report.plans import PlanRecord
from chipwise.report.records import MemoryRecord, RefusalRecord
from chipwise.search.prefer import Contenders
from chipwise.search.prefer import order as in_order
from chipwise.units import format_bytes, format_number, format_seconds
from chipwise.values import dataclass
from chipwise.workload.gguf import narrow
from chipwise.workload.workload import PACE, Workload

LONGEST = 10_000_000
"""Tokens that a model reads of which nothing is said."""
CONTEXT, LEAST_CONTEXT = 8192, 4096
PROMPT, OUTPUT = 1000.0, 200.0
COUNTS = (1, 2, 4)  # cards of a kind that are bought together
USES = ("chat", "code", "reasoning", "vision")
BARE = re.compile(r"\d+ ?GB|card|machine")
"""What is for sale, said by its memory or its form alone."""
BENCHMARKS = {"gpqa_diamond": "GPQA Diamond", "mmlu_pro": "MMLU-Pro", "livecodebench_v6": "LiveCodeBench v6"}
"""Published scores by their key in the table, with their names."""
GENERAL, CODE = "gpqa_diamond", "livecodebench_v6"


@dataclass(frozen=True)
class Wish:
    """What one wants of a model at a desk: tokens per second at least, `context` tokens (None: 8,192, or down to 4,096
    where no more fits), a use ("": any), which `models` (none: those of the catalogue that people run), and how many
    at `most`."""

    min_tps: float = PACE
    context: int | None = None
    use: str = ""
    models: tuple[str, ...] = ()
    most: int = 16

    def candidates(self) -> list[Candidate]:
        """The models that come into question, as they were named or those of the highest published score
        first.

        Raises `UnknownNameError` for an unknown model or a use that no model has.
        """
        if self.use and self.use not in USES:
            raise UnknownNameError("use", self.use, USES, f"one of {', '.join(USES)}")
        known = {c.model: c for c in candidates()}
        if self.models:
            return [_named(name, known) for name in self.models]
        found = [c for c in known.values() if not self.use or self.use in c.uses]

        def key(c: Candidate) -> tuple[float, bool, str]:
            return self.place(c), self.benchmark in c.scores, c.published

        return sorted(found, key=key, reverse=True)

    @property
    def benchmark(self) -> str:
        """The published score that orders models of this use."""
        return CODE if self.use == "code" else GENERAL

    def place(self, c: Candidate) -> float:
        """The published score, in percent; without one the highest of those that are neither larger nor younger (0:
        none is)."""
        own = c.scores.get(self.benchmark)
        if own is not None:
            return own
        scored = (other for other in candidates() if self.benchmark in other.scores)
        below = (o for o in scored if o.published <= c.published and _size(o) <= _size(c))
        return max((o.scores[self.benchmark] for o in below), default=0.0)

    def scores(self, c: Candidate) -> str:
        """What is published of a model's quality, with its source."""
        named = [f"{name} {c.scores[key]:g} %" for key, name in BENCHMARKS.items() if key in c.scores]
        return f"{', '.join(named)} ({c.scored})" if named else "no published score found"

    @property
    def contexts(self) -> tuple[int, ...]:
        """Contexts that are tried, the longest first."""
        return (self.context,) if self.context else (CONTEXT, LEAST_CONTEXT)


HEADLESS = "headless"
"""The environment of a card without a display."""
ALL_BUT = 0.8
"""of the memory: weights of more are tried without a display where they do not fit with one. Chosen: a display keeps up
to an eighth of a card of 8 GB; moves for how many models a second plan is made, and no answer above 4 GB."""
SHORTEST = 1024
"""Tokens of the shortest context that is offered."""
HOST_GB = (32, 64, 128)
"""Memory of a desktop that is tried beside a card, in GB: two modules of what is sold."""


def _ways_out(machine: Machine, wish: Wish, terms: Terms, refused: Iterable[RefusalRecord]) -> list[str]:
    """With what something runs on a machine on which nothing runs as it was wished: the pace of the fastest that was
    `refused`, a shorter context, no display, or memory of the computer around its cards, found by asking."""

    def runs(asked: tuple[Machine, Wish, Terms]) -> bool:
        machine, wish, terms = asked
        found = (_OnMachine(c, machine, wish, terms).found() for c in wish.candidates())
        return not all(isinstance(one, RefusalRecord) for one in found)

    paces = [1.0 / r.reachable["tpot_s"] for r in refused if "tpot_s" in r.reachable]
    if paces:
        return [f"--min-tps {down(max(paces))}"]
    halved = (min(wish.contexts) >> i for i in itertools.count(1))
    shorter = itertools.takewhile(lambda context: context >= SHORTEST, halved)
    more = HOST_GB if _alone(machine) else ()
    bare = [] if terms.environment.name else [environment(HEADLESS)]
    return working(
        runs,
        ((f"--context {n}", (machine, replace(wish, context=n), terms)) for n in shorter),
        ((f"--environment {e.name}", (machine, wish, replace(terms, environment=e))) for e in bare),
        ((f"--host-memory {gb}GB", (with_host(machine, 1e9 * gb), wish, terms)) for gb in more),
    )


@dataclass(frozen=True)
class ModelsFound:
    """What models run as on a machine, with what is to be known of each, and those that do not run so."""

    models: list[tuple[LocalRecord, tuple[str, ...]]]
    refused: list[RefusalRecord]


@dataclass(frozen=True)
class MachineAsked:
    """What a machine runs as fast as is wished, read (`answering.Choosing`): each model in the widest format that does,
    by the first plan that `plan --task local` has on these parts."""

    machine: Machine
    wish: Wish
    terms: Terms
    wanted: tuple[Candidate, ...]

    @classmethod
    def of(cls, machine: Machine, wish: Wish, terms: Terms | None = None) -> MachineAsked:
        """Raises `UnknownNameError`, and the errors of `Environment.check`."""
        terms = terms or Terms()
        for card, _ in machine.cards:
            terms.environment.check(card)
        return cls(machine, wish, terms, tuple(wish.candidates()))

    def candidates(self) -> ModelsFound:
        """The models that run so, until there are as many as were wished in formats of 4 bits and more."""
        found = ModelsFound([], [])
        for candidate in self.wanted:
            if sum(record.wide for record, _ in found.models) == self.wish.most:
                break
            there = _OnMachine(candidate, self.machine, self.wish, self.terms)
            one = there.found()
            if isinstance(one, RefusalRecord):
                one = there.tight() or one
            if isinstance(one, RefusalRecord):
                found.refused.append(one)
            else:
                found.models.append(one)
        return found

    def choice(self, found: ModelsFound) -> Preferred[LocalRecord]:
        """Those of the highest published score first, those of fewer than 4 bits a weight last."""
        models = sorted((record for record, _ in found.models), key=lambda record: not record.wide)
        shown = models[: self.wish.most]
        notes = dict.fromkeys(words for _, said in found.models for words in said)
        rest = len(self.wanted) - len(found.refused) - len(shown)
        more = [f"{rest} more models run too: raise --most to see them"] if rest else []
        return Preferred(tuple(shown), (*notes, *more))

    def refusal(self, found: ModelsFound) -> InfeasibleError:
        """That nothing runs so, with the fastest there is."""
        refused = found.refused
        # the last has the lowest score: what is in its way is in the way of all
        ways = _ways_out(self.machine, self.wish, self.terms, refused)
        least = f"{refused[-1].chip}: {refused[-1].detail}" if refused else "no model has this use"
        return InfeasibleError(
            f"{self.machine.name} runs none of {len(refused)} models so",
            f"{least}; {works(ways)}" if ways else f"{least}; without --have machines are named",
        )

    def record(self, found: ModelsFound, chosen: Preferred[LocalRecord]) -> LocalReport:
        """The answer with the models in order."""
        cards = tuple(card.id for card, _ in self.machine.cards)
        recalled = (*memory_words(cards), *recalled_words(cards))
        first, none = chosen.plans[0], []
        if not (first.commands or self.terms.environment.in_page):
            made = f"; {' and '.join(converting())} make it while they load"
            made = made if first.precision in CONVERTED else ""
            none = [f"no published files of {first.model} in {first.precision} are known: no line starts it{made}"]
        said = (*_ordered(self.wish), *_words(self.machine), *recalled, *none, *chosen.said, *self.terms.said)
        report = _report(self.wish, chosen.plans, said)
        return replace(report, machine=self.machine.words, refused=tuple(found.refused))

    def beside(self, found: ModelsFound, chosen: Preferred[LocalRecord], report: LocalReport) -> LocalReport:
        """The answer with the speed of other engines beside the lines that start them, of the first model."""
        first, *others = report.models
        return replace(report, models=(_apart(first, self.machine, self.wish, self.terms), *others))


def _apart(record: LocalRecord, machine: Machine, wish: Wish, terms: Terms) -> LocalRecord:
    """A row whose lines say how fast engines are that run routed experts by kernels of their own, not by those that
    the row was priced with."""
    engines = [r for r in all_software(Runtime).values() if r.name in record.commands and r.unfused_experts > 1.0]
    if not engines or not load_generating(record.model).graph.routed:
        return record
    lines = dict(record.commands)
    for engine in engines:
        own = replace(terms, runtime=engine.id, precision=record.precision)
        try:
            found, _ = desk_plan(record.model, _asked(record.context, wish), own, machine)
        except InfeasibleError:
            continue
        if found is not None and found.tokens_per_s_per_user is not None:
            pace = format_number(found.tokens_per_s_per_user.mid, 2)
            lines[engine.name] += f"   (by its own kernels of experts: about {pace} tokens/s)"
    return replace(record, commands=lines)


def _asked(context: int, wish: Wish) -> Workload:
    """A prompt in a context that could be full."""
    short = min(PROMPT, context - OUTPUT)
    return Workload("local", short, OUTPUT, pace_per_s=wish.min_tps, room_tokens=context)


def _report(wish: Wish, records: Iterable[LocalRecord], said: Iterable[str]) -> LocalReport:
    """Models in this order."""
    return LocalReport(
        machine="",
        context=wish.contexts[0],
        prompt_tokens=PROMPT,
        min_tokens_per_s=wish.min_tps,
        max_usd=None,
        use=wish.use,
        models=tuple(replace(r, rank=i) for i, r in enumerate(records, 1)),
        refused=(),
        assumptions=tuple(said),
        benchmark=BENCHMARKS[wish.benchmark],
    )


@dataclass(frozen=True)
class BudgetAsked:
    """What a budget buys, read (`answering.Choosing`): machines and cards, each with the most able model that it runs
    as fast as is wished; the most able first, of equal ones the fastest, of those that are about as fast the cheapest.
    `sparing`, as where a speed or a context was asked for, which is then enough: of equal ones the cheapest."""

    max_usd: float
    wish: Wish
    terms: Terms
    sparing: bool

    def candidates(self) -> list[tuple[int, LocalRecord]]:
        """What is for sale that runs a model so, at prices that nothing speaks against; without those at the others."""
        wanted = self.wish.candidates()
        every = (_running(self.max_usd, wanted, self.wish, self.terms, doubted=way) for way in (False, True))
        return next(filter(None, every), [])

    def choice(self, found: list[tuple[int, LocalRecord]]) -> Preferred[LocalRecord]:
        """The machines in order."""
        return Preferred(tuple(_bought(found, sparing=self.sparing)) if found else ())

    def refusal(self, found: list[tuple[int, LocalRecord]]) -> InfeasibleError:
        """That nothing for so much runs a model so."""
        where = f" in a {self.terms.environment.name}" if self.terms.environment.name else ""
        return InfeasibleError(
            f"nothing for ${self.max_usd:,.0f}{where} runs these models at {self.wish.min_tps:g} tokens/s",
            "a larger --max-usd, a smaller --min-tps or --context, or other --models",
        )

    def record(self, found: list[tuple[int, LocalRecord]], chosen: Preferred[LocalRecord]) -> LocalReport:
        """The answer with the machines in order, and which would be first were one sparing, or not."""
        other = _bought(found, sparing=not self.sparing)[0]
        prices = (
            "prices as read, of one source and day each (offers: chipwise offers list); cards without the computer "
            "around them"
        )
        report = _report(self.wish, chosen.plans, (prices, *_ordered(self.wish), *self.terms.said))
        instead = chosen.plans.index(other) + 1
        return replace(report, max_usd=self.max_usd, buy=True, sparing=self.sparing, instead=instead)

    def beside(
        self, found: list[tuple[int, LocalRecord]], chosen: Preferred[LocalRecord], report: LocalReport
    ) -> LocalReport:
        """The answer with the images and clips that a card of the first makes, and, where no speed and no context was
        asked for, which would then be enough, with what the one of the most memory opens that the first does not."""
        first = chosen.plans[0]
        held = {record.machine: parse_machine(record.machine) for _, record in found}

        def room(record: LocalRecord) -> tuple[float, float]:
            return held[record.machine].memory_bytes, -(record.usd or 0.0)

        card, _ = held[first.machine].cards[0]
        made = _made(card, self.terms) if not self.wish.models else ""
        report = replace(report, assumptions=(*filter(None, (made,)), *report.assumptions))
        larger = sorted((record for _, record in found if room(record) > (room(first)[0], 0.0)), key=room)
        if self.sparing or not larger:
            return report
        opened = self._opened(first, larger, held)
        return replace(report, opens=tuple(replace(one, rank=i) for i, one in enumerate(opened, 1)))

    def _opened(
        self, first: LocalRecord, larger: Sequence[LocalRecord], held: Mapping[str, Machine]
    ) -> list[LocalRecord]:
        """The models that of what is `larger` the last runs and the `first` does not, each with what is best for the
        most able that is left."""
        left = self._closed(first, held[first.machine], held[larger[-1].machine])
        paid = {one.machine: one for one in larger}
        opened: list[LocalRecord] = []
        while left:
            there = ((offer, self._runs(left[0], held[machine])) for machine, offer in paid.items())
            able = [(0, _paid(one, offer)) for offer, one in there if one is not None]
            best = paid[_bought(able, sparing=False)[0].machine]
            runs = {c.model: self._runs(c, held[best.machine]) for c in left}
            opened += [_paid(one, best) for one in runs.values() if one is not None]
            left = [c for c in left if runs[c.model] is None]
        return opened

    def _closed(self, first: LocalRecord, machine: Machine, larger: Machine) -> list[Candidate]:
        """The models that the `machine` of the first does not run, and a larger one does."""
        wanted = [c for c in self.wish.candidates() if not _within(c, first)]
        closed = [c for c in wanted if self._runs(c, machine) is None]
        return [c for c in closed if self._runs(c, larger) is not None]

    def _runs(self, candidate: Candidate, machine: Machine) -> LocalRecord | None:
        """A model on a machine in 4 bits and more, None where it does not run so."""
        one = _OnMachine(candidate, machine, self.wish, self.terms).found(every=False)
        return None if isinstance(one, RefusalRecord) or not one[0].wide else one[0]


def _within(c: Candidate, record: LocalRecord) -> bool:
    """Whether a model is no larger than the one that a machine runs, in all and in what a token uses."""
    graph = load_generating(c.model).graph
    return graph.parameters <= record.params and graph.active_params() <= record.active_params


def _paid(one: LocalRecord, offer: LocalRecord) -> LocalRecord:
    """A model on what is for sale, at the price of that."""
    return replace(one, item=offer.item, usd=offer.usd, covers=offer.covers)


def _made(card: Chip, terms: Terms) -> str:
    """The time of images and clips on a card, under the usual software, with parts on the host where they do not fit;
    "" where no software of the terms makes them."""
    said = []
    for model in studio():
        asked = Sampling(task="local")
        try:
            place = Place.of(card, replace(terms, runtime=None, precision=None), terms.numbers)
            work = held(model, place, terms, asked)
        except ChipwiseError:
            continue
        plan = plan_of(work, place.numbers, terms, Replicas(1))
        if plan.verdict == "no":
            continue
        sizes = work.pipeline.settings
        frames = f", {sizes['frames']:g} frames" if sizes.get("frames", 1) > 1 else ""
        shape = f"{sizes['width']:g}x{sizes['height']:g}{frames}, {sizes['steps']:g} steps"
        said.append(f"{model} ({shape}) in {format_seconds(plan.latency_s.mid)}")
    return f"images and clips on one card of #1, of 16 bits: {', '.join(said)}" if said else ""


def _running(
    max_usd: float, wanted: Sequence[Candidate], wish: Wish, terms: Terms, *, doubted: bool = False
) -> list[tuple[int, LocalRecord]]:
    """What is for sale that runs one of the models that are `wanted`, with the place of the first that it does."""
    found: list[tuple[int, LocalRecord]] = []
    for offer in _offered(max_usd, doubted=doubted):
        if any(terms.environment.lacks(card) for card, _ in offer.machine.cards):
            continue
        there = _first(wanted, offer.machine, wish, terms)
        if there is not None and (fewer := offer.of(there[1].chips)) != offer:
            # cards that stay idle are not bought; as few as are tried anyway stand for themselves
            offer, there = (fewer, None if fewer.times in COUNTS else _first(wanted, fewer.machine, wish, terms))
        if there is not None:
            paid = replace(there[1], item=offer.item, usd=offer.usd, covers=offer.price.covers)
            found.append((there[0], paid))
    return found


def _first(wanted: Sequence[Candidate], machine: Machine, wish: Wish, terms: Terms) -> tuple[int, LocalRecord] | None:
    """The most able model that a machine runs, with its place: in 4 bits and more where it runs one so."""
    narrower: tuple[int, LocalRecord] | None = None
    for place, candidate in enumerate(wanted):
        record = _OnMachine(candidate, machine, wish, terms).found(every=narrower is None)
        if isinstance(record, RefusalRecord):
            continue
        if record[0].wide:
            return place, record[0]
        narrower = narrower or (place, record[0])
    return narrower


def _bought(found: Sequence[tuple[int, LocalRecord]], *, sparing: bool) -> list[LocalRecord]:
    """Machines with the place of their model, those that run it in 4 bits and more before others, of these the most
    able model first, then by `search.prefer` the cheapest where one is `sparing`, else the fastest."""
    usd = [record.usd or 0.0 for _, record in found]
    seconds = [1.0 / record.tokens_per_s.mid for _, record in found]
    cost, other = (usd, seconds) if sparing else (seconds, usd)
    last = 1.0 + max(place for place, _ in found)
    group = [place + last * (not record.wide) for place, record in found]
    c = Contenders.of(cost, times=[other], size=[other], group=group)
    return [found[i][1] for i in in_order(c, preferences().confidence, 0.0 if sparing else None)]


@dataclass(frozen=True)
class _OnMachine:
    """One model on one machine: the first plan of its parts at the contexts that are wished."""

    candidate: Candidate
    machine: Machine
    wish: Wish
    terms: Terms

    def found(self, *, every: bool = True) -> tuple[LocalRecord, tuple[str, ...]] | RefusalRecord:
        """The first plan that is fast enough, with notes: at the longest context, but at a shorter one before fewer
        than 4 bits, which are of use where `every` format is. Or why there is none."""
        graph = self.stored.graph
        longest = graph.model.max_context or LONGEST
        if min(self.wish.contexts) > longest:
            return self._refused("CONTEXT", f"reads at most {longest:,} tokens")
        if self._least > self.machine.memory_bytes:
            return self._refused("MEMORY", f"takes {format_bytes(self._least)} and more")
        plans: list[tuple[int, PlanRecord]] = []
        whys = []
        for context in (n for n in self.wish.contexts if n <= longest):
            # what has a plan of fewer bits needs none at a shorter context
            plan = self._planned(context, every=every and not plans)
            if isinstance(plan, RefusalRecord):
                whys.append(plan)
                continue
            plans.append((context, plan))
            if not narrow(plan.precision):
                break
        if not plans:
            return whys[-1]
        context, plan = min(plans, key=lambda one: narrow(one[1].precision))
        return self._record(context, plan), machine_words(self.machine, plan)

    def tight(self) -> tuple[LocalRecord, tuple[str, ...]] | None:
        """The same where it all but fits: with no display on the card, whose memory the system then leaves alone. None
        where that does not help, or where somebody said how the machine runs."""
        if self.terms.environment.name or not ALL_BUT * self.machine.memory_bytes < self._least:
            return None
        bare = environment(HEADLESS)
        one = replace(self, terms=replace(self.terms, environment=bare)).found(every=False)
        if isinstance(one, RefusalRecord) or not one[0].wide:
            return None
        record, notes = one
        said = f"{record.model} fits tightly: {'; '.join(bare.words)}"
        return replace(record, tight=f"--environment {bare.name}"), (*notes, said)

    def _refused(self, reason: str, detail: str, **reachable: float) -> RefusalRecord:
        return RefusalRecord(self.candidate.model, reason, detail, reachable)

    def _planned(self, context: int, *, every: bool) -> PlanRecord | RefusalRecord:
        """The first plan of a prompt in a context that could be full, where it is fast enough."""
        asked = _asked(context, self.wish)
        try:
            first, space = desk_plan(self.candidate.model, asked, self.terms, self.machine, every=every)
        except InfeasibleError as error:
            return self._refused("TENSOR", str(error).partition(" (")[0])
        if first is not None and fully_ready(first, asked):
            return first
        together = space.refusals.get(self.machine.name)
        if first is not None or (together and np.isfinite(together.reach.tpot_s)):
            seconds = first.pace.mid if first else together.reach.tpot_s if together else np.inf
            return self._refused("SLOW", f"at most {format_number(1.0 / seconds, 2)} tokens/s", tpot_s=seconds)
        if space.rejected[Reason.MEMORY]:
            least = min(one.context.found.graph.weight_bytes for one in space.formats)
            return self._refused("MEMORY", f"takes {format_bytes(least)} and more")
        return self._refused("NO_RUNTIME", next((r.detail for r in space.never), "no software runs it there"))

    @property
    def _least(self) -> float:
        """Bytes of the weights in the smallest format that is tried."""
        graph = self.stored.graph
        if self.terms.precision is None and wide(graph):
            return least_bytes(graph, LADDER[-1])
        asked = load_generating(self.candidate.model, self.terms.precision, self.terms.kv).graph
        runtimes = (r for card, _ in self.machine.cards for r in runtimes_for(card))
        names = {asked.model.precision.name, *own_files(asked.model.precision.name, runtimes).values()}
        kept = (load_generating(self.candidate.model, name, self.terms.kv).graph for name in names)
        return min(graph.weight_bytes for graph in (asked, *kept))

    @cached_property
    def stored(self) -> Loaded:
        """The model as its checkpoint has it."""
        return load_generating(self.candidate.model)

    @property
    def _host(self) -> str:
        """The name of the processor whose memory may be used, "" where there is none."""
        return "" if self.machine.host is None else self.machine.host.chip.id

    def _record(self, context: int, plan: PlanRecord) -> LocalRecord:
        graph = load_generating(self.candidate.model, self.terms.precision, self.terms.kv).graph
        if plan.precision != graph.model.precision.name:  # converted, or in a file of the engine's own
            graph = load_generating(self.candidate.model, plan.precision, self.terms.kv).graph
        accounts = [part.memory for part in plan.parts] or [plan.memory]
        room = min((a.cache_tokens for a in accounts if a.cache_tokens is not None), default=context)
        longest = self.stored.graph.model.max_context or LONGEST
        card = self.machine.cards[0][0]
        assert plan.tokens_per_s_per_user is not None
        return LocalRecord(
            chip=plan.chip,
            chips=plan.chips,
            bound=plan.bound,
            shares=plan.shares,
            energy=plan.energy,
            model=self.candidate.model,
            params=self.stored.graph.parameters,
            active_params=self.stored.graph.active_params(),
            precision=plan.precision,
            wide=not narrow(plan.precision),
            kv=plan.kv,
            context=context,
            largest_context=int(min(longest, max(room, context))) // 1024 * 1024 or context,
            tokens_per_s=plan.tokens_per_s_per_user,
            ttft_s=plan.ttft_s,
            memory_bytes=_used(accounts[0], context),
            capacity_bytes=accounts[0].capacity_bytes,
            host_bytes=sum(_used(p.memory, context) * p.count for p in plan.parts if p.chip == self._host),
            download_bytes=graph.weight_bytes + sum(e.calls * e.weight_bytes for e in graph.extras),
            placement=_where(self.machine, plan),
            runtime=plan.runtime,
            score=self.candidate.scores.get(self.wish.benchmark),
            scores=self.wish.scores(self.candidate),
            quality=plan.quality,
            commands={}
            if self.terms.environment.in_page
            else desk_commands(
                self.candidate,
                plan,
                context,
                [r.id for r in runtimes_for(card)],
                processor=card.kind == "cpu",
                all_chips=sum(n for _, n in self.machine.cards),
            ),
            machine=self.machine.name,
            basis=plan.tokens_per_s_per_user.basis,
            parts=plan.parts,
        )


def _used(account: MemoryRecord, context: int) -> float:
    """Bytes of a device in use with the cache of a context, the system's own left out."""
    cache = account.cache_bytes * context / account.cache_tokens if account.cache_tokens else 0.0
    return sum(size for kind, size in account.items.items() if kind != "system") + cache


def _named(name: str, known: Mapping[str, Candidate]) -> Candidate:
    """A model that the user named, with the names of engines where the table has them; a file or a folder of the
    user's own by its path, read as `estimate` reads it."""
    found = find_config(name)
    if found.name not in known_names():
        return Candidate(name, "", ())
    own = known.get(found.name) or next((c for n, c in known.items() if named_config(n).name == found.name), None)
    return own or with_files(found.name)


@per_snapshot
def _size(c: Candidate) -> float:
    """Parameters; of experts the geometric mean of all and those that a token uses."""
    graph = load_generating(c.model).graph
    return math.sqrt(float(graph.parameters) * float(graph.active_params()))


def _where(machine: Machine, plan: PlanRecord) -> str:
    cards = sum(n for _, n in machine.cards)
    if len(plan.parts) > 1:
        return "; ".join(f"{p.chip}: {p.holds}" for p in plan.parts)
    if plan.chips < cards:
        return f"on {plan.chips} of the {cards} cards"
    return "all on the cards" if cards > 1 else "all on the device"


def _alone(machine: Machine) -> bool:
    """Whether the cards stand in a computer with a memory of its own of which nothing is said."""
    if machine.host is not None or not all(c.kind == "gpu" and c.host is not None for c, _ in machine.cards):
        return False
    return not any(s.unified for c, _ in machine.cards for s in systems_for(c.id.partition(":")[0]))


def _words(machine: Machine) -> tuple[str, ...]:
    said = []
    if _alone(machine):
        said.append("the computer's own memory is left out: --host-memory 64GB adds models that use it")
    return (*said, *(words for c, _ in machine.cards for words in measured_words(c)))


def _ordered(wish: Wish) -> tuple[str, ...]:
    if wish.models:
        return ()
    return (
        f"order: formats of 4 bits and more, then {BENCHMARKS[wish.benchmark]} as makers publish it, at full precision "
        f"and with thinking; *: none found, placed by the best that is neither larger nor younger",
    )


@dataclass(frozen=True)
class _Offer:
    """Something that is for sale for a desk, in words, and how many of it are bought together."""

    price: Capex
    words: str
    times: int = 1

    @property
    def usd(self) -> float:
        """What all of it costs."""
        return self.price.usd * self.times

    @property
    def chips(self) -> int:
        """Chips of all of it."""
        return self.price.chips * self.times

    @property
    def item(self) -> str:
        """All of it, in words."""
        return f"{self.times} x {self.words}" if self.times > 1 else self.words

    @property
    def machine(self) -> Machine:
        """The machine that it makes."""
        return parse_machine(f"{self.chips}x{self.price.chip}" if self.chips > 1 else self.price.chip)

    def of(self, chips: int) -> _Offer:
        """As many of it as have so many chips."""
        return replace(self, times=min(-(-chips // self.price.chips), self.times))


def _offered(max_usd: float, *, doubted: bool) -> list[_Offer]:
    """What is for sale for that much: machines, and one, two or four cards; of several prices of one thing the
    lowest that nothing speaks against, or of those that are `doubted`."""
    best: dict[tuple[str, str, int], _Offer] = {}
    prices = (price for price in load_capex() if bool(price.doubt) == doubted)
    for offer in chain.from_iterable(map(_sold, prices)):
        key = (offer.price.chip, offer.price.covers, offer.chips)
        if offer.usd <= max_usd and (key not in best or offer.usd < best[key].usd):
            best[key] = offer
    return list(best.values())


def _sold(price: Capex) -> Iterator[_Offer]:
    """A price of something for a desk, and of as many of it as one computer takes."""
    (chip, _), *_ = parse_machine(price.chip).cards
    systems = systems_for(chip.id.partition(":")[0])
    if chip.kind == "cpu" and price.covers == "card":
        return  # a processor alone runs nothing: its memory is the larger part, and has no price here
    if chip.kind != "cpu" and not {s.form for s in systems} & DESKS:
        return
    item = f"{chip.name}, {price.item}" if BARE.fullmatch(price.item) else price.item
    words = item + (", used" if price.kind == "used" else "") + (f" ({price.doubt})" if price.doubt else "")
    held = max((s.chips_per_host for s in systems), default=1)
    for times in COUNTS if price.covers == "card" else (1,):
        if price.chips * times <= max(held, price.chips):
            yield _Offer(price, words, times)
