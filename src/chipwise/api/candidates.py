"""The space of candidates of a question about a language model: chips, all software that runs it on them, the formats
that plans are compared in, layouts and batches; and the best of them by chip, or by what else they are listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from chipwise.api.context import Context
from chipwise.api.loaded import load_generating
from chipwise.api.placing import Terms
from chipwise.api.searching import Found, search, shortlist, size_fleet
from chipwise.catalog.checkpoints import published_as
from chipwise.catalog.chip import Chip
from chipwise.catalog.preferences import preferences
from chipwise.catalog.price import OwnCosts, Rent
from chipwise.catalog.quality import quality_of, quality_words
from chipwise.catalog.runtime import runtimes_for
from chipwise.catalog.runtime_spec import Runtime
from chipwise.errors import InfeasibleError
from chipwise.parallel.layout import Layout, Reason
from chipwise.parallel.shard import shard
from chipwise.report.assemble import contenders, fully_ready
from chipwise.report.plans import PlanRecord
from chipwise.report.records import RefusalRecord
from chipwise.search.choose import Choice, Refusal
from chipwise.search.deployments import deployments, few_of
from chipwise.search.prefer import Contenders, first, first_of_each
from chipwise.search.space import Limits
from chipwise.units import Array, format_bytes
from chipwise.values import dataclass
from chipwise.workload.axes import Sizes
from chipwise.workload.formats import FORMATS, GGML_BITS
from chipwise.workload.gguf import GGUF, narrow
from chipwise.workload.graph import Graph
from chipwise.workload.labels import format_name
from chipwise.workload.step import decode
from chipwise.workload.workload import Task, Workload

LADDER = ("q8_0", "q6_k", "q5_k_m", "q4_k_m", "q3_k_m", "q2_k")
"""Formats of files that are tried at a desk, the widest first."""
TOO_LARGE = "tensor too large"
FEW_BITS = 6.0
"""Of a weight on average: a checkpoint of fewer is run as it is stored."""

FORMATS_OF: Mapping[Task, tuple[tuple[str, bool], ...]] = {
    "serve": (("fp8", False), ("int4", True)),
    "batch": (("fp8", False), ("int4", True)),
    "local": tuple((name, name != LADDER[0]) for name in LADDER),
}
"""By task the formats that wider weights are compared with unless one is named, and whether only where there is no plan
before. Most runtimes make fp8 while they load; at a desk the widest file that is fast enough runs."""
SHARED = ("fp8", False)
"""The format of 8 bits beside that of files, of software that shares a layer among cards."""


@dataclass(frozen=True)
class CandidateFormat:
    """The model in one number format: its `context`; `at_last`: only where there is no plan before; `stored`: as the
    checkpoint has it; `place` among the formats that are preferred. Runtimes with files of their own of it (`but`) read
    those, which no other does (`only`)."""

    context: Context
    at_last: bool = False
    stored: bool = True
    place: int = 0
    but: frozenset[str] = frozenset()
    only: frozenset[str] = frozenset()

    def reads(self, runtime: str) -> bool:
        """Whether a runtime takes these files."""
        return runtime not in self.but and (not self.only or runtime in self.only)

    @property
    def weight_bytes(self) -> float:
        """Of the model, without the table of tokens, which may lie elsewhere."""
        found = self.context.found.graph.weight_bytes_by_class
        return sum(size for cls, size in found.items() if cls != "embedding")

    @property
    def name(self) -> str:
        """The format of its weights."""
        return self.context.found.graph.model.precision.name


def wide(graph: Graph) -> bool:
    """Whether a checkpoint has so many bits a weight that it runs in another format at a desk."""
    return 8.0 * graph.weight_bytes / graph.parameters >= FEW_BITS


def least_bytes(graph: Graph, name: str) -> float:
    """Bytes that the weights of a model take at least in a format: at the bits of most matrices."""
    bits = GGML_BITS[GGUF[name]] if name in GGUF else FORMATS[name].bits
    return graph.parameters * bits / 8.0


def formats(
    model: str,
    context: Context,
    terms: Terms,
    chips: Sequence[Chip],
    room: float = np.inf,
    *,
    every: bool = True,
    several: bool = False,
) -> Iterator[CandidateFormat]:
    """The model as it is stored, and in the formats of the task that plans are compared in, at a desk those that may
    fit `room` bytes, of 4 bits and more unless `every` one is of use, where there are `several` cards of a kind also
    `SHARED`; each also as runtimes of these chips keep it in files of their own. At a desk those of the ladder stand
    before wide weights as stored. Raises `InfeasibleError` where the environment takes the tensors of none."""
    found = largest = None
    for found in _formats(model, context, terms, chips, room, every=every, several=several):
        largest = _above(found.context.found.graph, terms.environment.largest_tensor_bytes)
        if not largest:
            yield found
    if found is not None and largest:
        what = f"a tensor of {format_bytes(largest)} is above "
        what += format_bytes(terms.environment.largest_tensor_bytes or 0.0)
        raise InfeasibleError(what, terms.environment.name, reasons={TOO_LARGE: 1})


def _above(graph: Graph, most: float | None) -> float:
    """Bytes of the largest tensor where it is above the `most` that is taken, which no placement mends; else 0."""
    if most is None:
        return 0.0
    blocks = (graph.embed, graph.head, *(block for _, block in graph.runs))
    sizes = (float(t.local_bytes(Sizes(block.axes))) for block in blocks for t in block.tensors)
    largest = max(sizes, default=0.0)
    return largest if largest > most else 0.0


def _formats(
    model: str, context: Context, terms: Terms, chips: Sequence[Chip], room: float, *, every: bool, several: bool
) -> Iterator[CandidateFormat]:
    task, graph = context.workload.task, context.found.graph
    runtimes = [] if terms.runtime else list({r.id: r for c in chips for r in runtimes_for(c)}.values())
    compared: Sequence[tuple[str, bool]] = ()
    if terms.precision is None and (wide(graph) if task == "local" else graph.model.precision.is_plain):
        compared = FORMATS_OF[task]
        compared = (compared[0], SHARED, *compared[1:]) if several else compared
    last = len(compared) + 1 if compared and task == "local" else 0
    yield from _kept(model, CandidateFormat(context, place=last), terms, runtimes)
    for place, (name, at_last) in enumerate(compared):
        if task == "local" and (least_bytes(graph, name) > room or (narrow(name) and not every)):
            continue
        converted = replace(load_generating(model, name, terms.kv), notes=context.found.notes)
        other = CandidateFormat(replace(context, found=converted), at_last, stored=False, place=place)
        yield from _kept(model, other, terms, runtimes)


def own_files(precision: str, runtimes: Iterable[Runtime]) -> dict[str, str]:
    """In which format each of the runtimes that convert a checkpoint of a format keeps it, by runtime."""
    label = format_name(precision)
    return {r.id: r.stores[label] for r in runtimes if label in r.stores}


def _kept(model: str, one: CandidateFormat, terms: Terms, runtimes: Sequence[Runtime]) -> Iterator[CandidateFormat]:
    """A format, and the same in files of runtimes that have their own."""
    own = own_files(one.name, runtimes)
    yield replace(one, but=frozenset(own))
    for name in dict.fromkeys(own.values()):
        found = replace(load_generating(model, name, terms.kv), notes=one.context.found.notes)
        yield replace(
            one,
            context=replace(one.context, found=found),
            only=frozenset(runtime for runtime, kept in own.items() if kept == name),
        )


@dataclass(frozen=True)
class Market:
    """The chips that are searched, under which runtime (None: all that can run the model), within which limits;
    `named`: they are those that were asked about."""

    chips: Sequence[Chip]
    runtime: str | None
    policy: Mapping[str, str]
    limits: Limits
    named: bool = False

    def searched(self, one: CandidateFormat) -> tuple[Found, list[RefusalRecord]]:
        """What the search finds for the model in one number format, and what cannot run it at all."""
        context, local = one.context, one.context.workload.task == "local"
        said = max((self.limits.have or self.limits.at_most).values(), default=1)
        offered, refused = deployments(
            context.found.graph.model,
            self.chips,
            self.runtime,
            local=local,
            policy=self.policy,
            every=True,
            together=float(said) if local else 1.0,  # in a machine that joins as many as were said, as `fit` has it
        )
        offered = tuple(d for d in offered if one.reads(d.runtime.id))
        able, unable = context.tactics.on(offered, context.found.graph, self.policy)
        prices = {d.chip.id: context.basis(d.chip.id) for d in able}
        never = [RefusalRecord(c.id, r.name, why) for c, r, why in refused]
        return search(context, able, self.limits, prices), never + unable


OTHERWISE = 1.5
"""ratio: of the least that plans cost another way, up to which they are ranked. Chosen: more than better evidence and
equal costs together may cost; moves nothing but time."""


@dataclass
class Space:
    """What was found on a market in several number formats: the plans of each chip and format that can come first, or
    why there are none."""

    market: Market
    formats: list[CandidateFormat] = field(default_factory=list)
    found: list[tuple[CandidateFormat, PlanRecord]] = field(default_factory=list)
    refusals: dict[str, Refusal] = field(default_factory=dict)
    never: list[RefusalRecord] = field(default_factory=list)
    considered: int = 0
    rejected: Counter[Reason] = field(default_factory=Counter)
    choices: list[tuple[CandidateFormat, Choice]] = field(default_factory=list)
    searched: list[tuple[CandidateFormat, Found]] = field(default_factory=list)

    @classmethod
    def over(cls, market: Market, tried: Iterable[CandidateFormat]) -> Space:
        """Search in the formats in their order; those for the last where no chip has a plan, for one user on each chip
        that has none at a pace to read."""
        made = cls(market)
        for one in tried:
            chips = list(market.chips)
            if one.at_last:
                local = one.context.workload.task == "local"
                chips = [c for c in chips if not made._enough(c.id)] if local or not made.found else []
            if not chips:
                break  # what is enough stays so
            if market.limits.first_alone and made._hopeless(one, chips):
                continue
            made._add(one, replace(market, chips=chips))
        for chip in {p.chip for _, p in made.found}:
            made.refusals.pop(chip, None)
        return made

    @property
    def workload(self) -> Workload:
        """What is asked of the model."""
        return self.formats[0].context.workload

    def anew(self, workload: Workload, limits: Limits) -> Space:
        """What is chosen from what was timed for a workload with another confidence, other targets or another reserve,
        or within other limits of chips and dollars, of no fewer; nothing is timed again."""
        made = Space(replace(self.market, limits=limits), never=self.never)
        for one, found in self.searched:
            if one.at_last and made.found and not limits.nearest:
                break  # the likeliest is the nearest in whatever format
            other = replace(one, context=replace(one.context, workload=workload))
            made._take(other, found.anew(workload, limits))
        return made

    def on(self, chip: Chip, context: Context) -> Space:
        """What was priced of one chip in the format of a context, of which nothing is chosen yet."""
        found = next(found for one, found in self.searched if one.context is context)
        one = CandidateFormat(context)
        return Space(replace(self.market, chips=[chip]), [one], searched=[(one, found.on(chip.id))])

    def otherwise(self) -> list[PlanRecord]:
        """Plans that keep the targets and cost up to `OTHERWISE` times the least, of what was timed, where what was
        rented is bought, or what was bought is rented, under the limits of that; none of chips that one has."""
        pricing, limits = self.formats[0].context.pricing, self.market.limits
        if pricing is None:
            return []
        paid = pricing.otherwise()
        bases = {c.id: paid.basis(c.id, self.formats[0].context.today) for c in self.market.chips}
        few = few_of(self.market.chips, bases.get) if limits.few else limits.few
        limits = replace(limits, few=few, max_usd_per_h=None)
        choices = self._repaid(limits, bases)
        least = min((c.usd_per_h for _, c in choices), default=0.0)
        near: dict[int, list[Choice]] = {}
        for one, choice in choices:
            if choice.usd_per_h <= OTHERWISE * least:
                near.setdefault(id(one), []).append(choice)
        return [
            _noted(one, p)
            for one, _ in self.searched
            for p in size_fleet(replace(one.context, pricing=paid), near.get(id(one), ()))
        ]

    def _repaid(
        self, limits: Limits, bases: Mapping[str, Rent | OwnCosts | None]
    ) -> list[tuple[CandidateFormat, Choice]]:
        """What keeps the targets under other limits and prices by chip, of known cost, with its format."""
        choices: list[tuple[CandidateFormat, Choice]] = []
        for one, found in self.searched:
            if one.at_last and choices:
                break
            prices = {chip: bases.get(chip) for chip in found.prices}
            chosen = found.anew(one.context.workload, limits, prices).choices.values()
            choices += [(one, c) for mine in chosen for c in mine if c.sure and c.usd_per_h >= 0.0]
        return choices

    def _hopeless(self, one: CandidateFormat, chips: Sequence[Chip]) -> bool:
        """Whether a format has no plan that could come first: it has no room, or is read too slowly."""
        if one.stored and self._faster_than(one):
            return True
        if any(self._room(c) >= one.weight_bytes for c in chips):
            return False
        self.formats.append(one)
        self.rejected[Reason.MEMORY] += 1
        return True

    def _room(self, chip: Chip) -> float:
        """Bytes of all chips of a kind together."""
        memory = chip.memory.found_bytes or np.inf
        return memory * self.market.limits.chips(chip.id)

    def _faster_than(self, one: CandidateFormat) -> bool:
        """Whether one user has a plan already that is faster than the weights of a format are read, on all chips of a
        kind together, by more than better evidence may cost."""
        if not self.found:
            return False
        w, limits = self.workload, self.market.limits
        ready = [p.answer_s(w.output_tokens) for _, p in self.found if fully_ready(p, w)]
        step = decode(1.0, w.prompt_tokens)
        read = sum(n * float(np.max(op.weight_bytes)) for n, op in shard(one.context.found.graph, Layout()).ops(step))
        most = max((c.memory.bytes_per_s or np.inf) * limits.chips(c.id) for c in self.market.chips)
        least = (w.output_tokens - 1.0) * read / most
        return any(least > s * (1.0 + preferences().evidence) for s in ready)

    def ready(self, chip: str) -> bool:
        """Whether one user has a plan of at least 4 bits a weight on a chip alone that keeps what was asked."""
        here = (p for _, p in self.found if p.chip == chip)
        return any(fully_ready(p, self.workload) and not narrow(p.precision) for p in here)

    def context(self, precision: str) -> Context:
        """The model in a format that was tried, by the name of the format."""
        return next(one.context for one in self.formats if one.name == precision)

    def _add(self, one: CandidateFormat, market: Market) -> None:
        result, never = market.searched(one)
        if not self.formats:
            self.never = never
        self._take(one, result)

    def _take(self, one: CandidateFormat, result: Found) -> None:
        self.searched.append((one, result))
        self.formats.append(one)
        self.considered += result.considered
        self.rejected += result.rejected
        for chip, refusal in result.refusals.items():
            self.refusals[chip] = self.refusals[chip].closer(refusal) if chip in self.refusals else refusal
        choices: list[Choice] = []
        for mine in result.choices.values():
            every = self.market.limits.every or self.market.limits.by != "chip"
            choices += mine if every else shortlist(mine, self.workload.confidence)
            self.choices += [(one, choice) for choice in mine]
        for context in self._paid(one.context):
            self.found += [(one, _noted(one, p)) for p in size_fleet(context, choices)]

    def _paid(self, context: Context) -> Iterator[Context]:
        """The context; where plans are listed by provider, one with the prices of each."""
        if self.market.limits.by != "provider" or context.pricing is None:
            yield context
            return
        paid = (context.basis(c.id) for c in self.market.chips)
        quotes = [quote for basis in paid if isinstance(basis, Rent) for quote in basis.quotes]
        for provider in dict.fromkeys(quote.provider for quote in quotes):
            yield replace(context, pricing=replace(context.pricing, provider=provider))

    def _enough(self, chip: str) -> bool:
        """Whether a chip has a plan that keeps what was asked; at a desk in another format than wide weights."""
        places = {one.place for one in self.formats}
        last = max(places) if len(places) > 1 else -1
        return any(p.chip == chip and one.place != last and fully_ready(p, self.workload) for one, p in self.found)

    def plans(self, *, stored: bool = False) -> list[PlanRecord]:
        """The best plan of each chip, or of what else they are listed by, of chips that one has of each layout and
        format; and the cheapest of all that may come first. `stored`: of weights as the checkpoint has them alone."""
        found = [(one, p) for one, p in self.found if one.stored or not stored]
        found = [(one, p) for one, p in found if p.price or self.market.limits.by != "provider"]
        if not found:
            return []
        w, plans = self.workload, [p for _, p in found]
        c = contenders(plans, w)
        if w.task == "local":
            c = replace(c, group=_places(found, w))
        return [plans[i] for i in first_of_each(c, [self._key(p) for p in plans], w.confidence)]

    def software(self, plan: PlanRecord) -> list[PlanRecord]:
        """The best plan on the chip of a plan, in its format, under each other software that was tried."""
        by_runtime: dict[str, list[tuple[CandidateFormat, Choice]]] = {}
        for one, choice in self.choices:
            d = choice.deployment
            same = d.chip.id == plan.chip and (one.name == plan.precision or (one.stored and not plan.converted))
            if same and d.runtime.id != plan.runtime:
                by_runtime.setdefault(d.runtime.id, []).append((one, choice))
        found = []
        for mine in by_runtime.values():
            c = Contenders.join([choice.as_one for _, choice in mine])
            one, choice = mine[first(c, self.workload.confidence)]
            found += [_noted(one, p) for p in size_fleet(one.context, [choice])]
        return found

    def _key(self, p: PlanRecord) -> tuple[object, ...]:
        """What a plan is the best of in a list."""
        if self.market.limits.by == "chip":
            return (p.chip, p.layout.label, p.precision) if self.market.limits.have else (p.chip,)
        named = {"runtime": p.runtime, "format": p.precision, "provider": p.price.provider if p.price else ""}
        return (named[self.market.limits.by],)


def _noted(one: CandidateFormat, p: PlanRecord) -> PlanRecord:
    """The record, with what is to be known of weights that are not as the checkpoint has them."""
    if one.stored:
        return p
    return converted(p, one.context.found.graph.model.name)


def converted(p: PlanRecord, model: str) -> PlanRecord:
    """A plan whose weights are not as the checkpoint has them, with what is published of them."""
    published = published_as(model, p.precision)
    made = f", published as {published}" if published else ""
    quality = quality_of(model, p.precision, published)
    words = f"{p.precision} instead of the checkpoint's format{made}: {quality_words(quality)}"
    return replace(p, note="; ".join(filter(None, (p.note, words))), converted=True, quality=quality)


def _places(found: Sequence[tuple[CandidateFormat, PlanRecord]], w: Workload) -> Array:
    """The group of each plan of one user: the widest format that is fast enough; what is too slow after all others."""
    slow = max(one.place for one, _ in found) + 1
    return np.array([one.place if fully_ready(p, w) else slow for one, p in found], dtype=float)
