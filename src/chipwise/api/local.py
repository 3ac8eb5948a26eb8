"""`local`: what a machine at a desk can run, in which format and how fast, or what to buy for a budget."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from chipwise.api.candidates import LADDER, wide
from chipwise.api.context import Context
from chipwise.api.desk import assembled, machine_record, machine_words, token_s
from chipwise.api.infeasible import down, either
from chipwise.api.loaded import Loaded, load_generating
from chipwise.api.placing import Terms
from chipwise.api.probed import measured_words
from chipwise.catalog.chips import load_chips, recalled_words
from chipwise.catalog.configs import named_config
from chipwise.catalog.machine import DESKS, Candidate, Machine, candidates, parse_machine, quantized_words
from chipwise.catalog.preferences import preferences
from chipwise.catalog.price import Capex, load_capex
from chipwise.catalog.runtime import runtimes_for
from chipwise.catalog.runtime_spec import Runtime
from chipwise.catalog.snapshot import per_snapshot
from chipwise.catalog.software import all_software
from chipwise.catalog.system import systems_for
from chipwise.errors import InfeasibleError, UnknownNameError
from chipwise.report.desk import LocalRecord, LocalReport
from chipwise.report.launch.desk import desk_commands
from chipwise.report.plans import PlanRecord
from chipwise.report.records import RefusalRecord
from chipwise.search.assembly import Assembly
from chipwise.search.prefer import Contenders
from chipwise.search.prefer import order as in_order
from chipwise.units import format_bytes, format_number
from chipwise.workload.axes import Sizes
from chipwise.workload.formats import FORMATS, GGML_BITS
from chipwise.workload.gguf import GGUF
from chipwise.workload.workload import Workload

NARROW = frozenset(("q3_k_m", "q2_k"))
"""Fewer than 4 bits a weight: tried last."""
CONTEXT, LEAST_CONTEXT = 8192, 4096
PROMPT, OUTPUT = 1000.0, 200.0
COUNTS = (1, 2, 4)  # cards of a kind that are bought together
USES = ("chat", "code", "reasoning", "vision")
BARE = re.compile(r"\d+ ?GB")
"""What is for sale, said by its memory alone."""
BENCHMARKS = {
    "gpqa_diamond": "GPQA Diamond",
    "mmlu_pro": "MMLU-Pro",
    "livecodebench_v6": "LiveCodeBench v6",
}
"""Published scores by their key in the table, with their names."""
GENERAL, CODE = "gpqa_diamond", "livecodebench_v6"


@dataclass(frozen=True)
class Wish:
    """What one wants of a model at a desk: tokens per second at least, `context` tokens (None: 8,192, or down to 4,096
    where no more fits), a use ("": any), which `models` (none: those of the catalogue that people run), and how many
    at `most`."""

    min_tps: float = 10.0
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

    def quality(self, c: Candidate) -> str:
        """What is published of a model's quality, with its source."""
        named = [f"{name} {c.scores[key]:g} %" for key, name in BENCHMARKS.items() if key in c.scores]
        return f"{', '.join(named)} ({c.scored})" if named else "no published score found"

    @property
    def contexts(self) -> tuple[int, ...]:
        """Contexts that are tried, the longest first."""
        return (self.context,) if self.context else (CONTEXT, LEAST_CONTEXT)


SLOWEST = 0.1
"""Tokens per second, below which nobody waits for an answer."""
SLOWER = 1.02
"""Times the pace that runs, to which it is looked for."""
SHORTEST = 1024
"""Tokens of the shortest context that is offered."""


def _ways_out(machine: Machine, wish: Wish, terms: Terms) -> list[str]:
    """With what something runs on a machine on which nothing runs as it was wished: a slower pace or a shorter context,
    found by asking."""

    def first(**changes: object) -> LocalRecord | None:
        asked = replace(wish, **changes)  # type: ignore[arg-type]
        for candidate in asked.candidates():
            for narrow in (False, True):
                found = _Walk(candidate, machine, asked, terms, narrow).found()
                if not isinstance(found, RefusalRecord):
                    return found[0]
        return None

    ways = []
    if wish.min_tps > SLOWEST and first(min_tps=SLOWEST):
        low, high = SLOWEST, wish.min_tps
        while high > SLOWER * low:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if first(min_tps=middle) else (low, middle)
        ways.append(f"--min-tps {down(low)}")
    context = min(wish.contexts) // 2
    while context >= SHORTEST and not ways:
        if first(context=context):
            ways.append(f"--context {context}")
        context //= 2
    return ways


def local(machine: Machine, wish: Wish, terms: Terms | None = None) -> LocalReport:
    """The models that a machine runs as fast as is wished, each in the widest format that does; those of the highest
    published score first.

    For each model formats and contexts are walked: on the cards in at least 4 bits, then with a part on the host, then
    in fewer bits. Raises `InfeasibleError` where nothing does, with the fastest there is.
    """
    terms = terms or Terms()
    for card, _ in machine.cards:
        terms.environment.check(card)
    records: list[LocalRecord] = []
    refused: dict[str, RefusalRecord] = {}
    notes: dict[str, None] = {}
    wanted, rest = wish.candidates(), 0
    for narrow in (False, True):
        again: list[Candidate] = []
        for i, candidate in enumerate(wanted):
            if len(records) == wish.most:
                rest = len(wanted) - i
                break
            found = _Walk(candidate, machine, wish, terms, narrow).found()
            if isinstance(found, RefusalRecord):
                again.append(candidate)
                before = refused.get(candidate.model, found)
                refused[candidate.model] = found if found.reason == before.reason else before
                continue
            record, words = found
            records.append(record)
            refused.pop(candidate.model, None)
            notes |= dict.fromkeys(words)
        wanted = again
    notes |= dict.fromkeys([f"{rest} more of them were not tried: --most"] if rest else [])
    if not records:
        # the last has the lowest score: what is in its way is in the way of all
        last = next(reversed(refused.values()), None)
        ways = _ways_out(machine, wish, terms)
        least = "no model has this use" if last is None else f"{last.chip}: {last.detail}"
        if ways and last is not None and last.reason == "SLOW":
            least = f"{last.chip} is slower"  # what it was refused by is a bound
        raise InfeasibleError(
            f"{machine.name} runs none of {len(refused)} models so",
            f"{least}; what works: {either(ways)}" if ways else f"{least}; without --have machines are named",
        )
    return LocalReport(
        machine=machine.name,
        context=wish.contexts[0],
        prompt_tokens=PROMPT,
        min_tokens_per_s=wish.min_tps,
        max_usd=None,
        use=wish.use,
        models=tuple(replace(r, rank=i) for i, r in enumerate(records, 1)),
        refused=tuple(refused.values()),
        assumptions=(
            *_ordered(wish),
            *_words(machine),
            *recalled_words(c.id for c, _ in machine.cards),
            *notes,
            *terms.said,
        ),
        benchmark=BENCHMARKS[wish.benchmark],
    )


def buy(max_usd: float, wish: Wish, terms: Terms | None = None, *, sparing: bool = False) -> LocalReport:
    """Machines and cards that a budget buys, each with the most able model that it runs as fast as is wished; the most
    able first, of equal ones the fastest, of those that are about as fast the cheapest. `sparing`, as where
    a speed or a context was asked for, which is then enough: of equal ones the cheapest. Raises `InfeasibleError`
    where nothing does."""
    terms = terms or Terms()
    found: list[tuple[int, LocalRecord]] = []
    wanted = wish.candidates()
    for price, machine, item in _offered(max_usd):
        if any(terms.environment.lacks(card) for card, _ in machine.cards):
            continue
        for place, candidate in enumerate(wanted):
            record = _Walk(candidate, machine, wish, terms).found()
            if isinstance(record, RefusalRecord):
                continue
            bought = replace(record[0], item=item, usd=price.usd, covers=price.covers)
            found.append((place, bought))
            break
    if not found:
        where = f" in a {terms.environment.name}" if terms.environment.name else ""
        raise InfeasibleError(
            f"nothing for ${max_usd:,.0f}{where} runs these models at {wish.min_tps:g} tokens/s",
            "a larger --max-usd, a smaller --min-tps or --context, or other --models",
        )
    cheapest, fastest = (_bought(found, sparing=way) for way in (True, False))
    records, other = (cheapest, fastest[0]) if sparing else (fastest, cheapest[0])
    return LocalReport(
        machine="",
        context=wish.contexts[0],
        prompt_tokens=PROMPT,
        min_tokens_per_s=wish.min_tps,
        max_usd=max_usd,
        use=wish.use,
        models=tuple(replace(r, rank=i) for i, r in enumerate(records, 1)),
        refused=(),
        assumptions=(
            "prices as read, of one source and day each (offers: chipwise offers list); cards without the computer "
            "around them",
            *_ordered(wish),
            *terms.said,
        ),
        benchmark=BENCHMARKS[wish.benchmark],
        buy=True,
        sparing=sparing,
        instead=records.index(other) + 1,
    )


def _bought(found: Sequence[tuple[int, LocalRecord]], *, sparing: bool) -> list[LocalRecord]:
    """Machines with the place of their model, those of the most able model first; of these by `search.prefer` the
    cheapest where one is `sparing`, else the fastest."""
    usd = [record.usd or 0.0 for _, record in found]
    seconds = [1.0 / record.tokens_per_s.mid for _, record in found]
    cost, other = (usd, seconds) if sparing else (seconds, usd)
    c = Contenders.of(cost, times=[other], size=[other], group=[float(place) for place, _ in found])
    return [found[i][1] for i in in_order(c, preferences().confidence, 0.0 if sparing else None)]


@dataclass(frozen=True)
class _Walk:
    """One model on one machine: contexts, formats and placements in the order in which they are preferred. `narrow`:
    in formats of fewer than 4 bits, else in those of more."""

    candidate: Candidate
    machine: Machine
    wish: Wish
    terms: Terms
    narrow: bool = False

    def found(self) -> tuple[LocalRecord, tuple[str, ...]] | RefusalRecord:
        """The first that is fast enough, with notes, or why none is."""
        if min(self.wish.contexts) > self.longest:
            return RefusalRecord(self.candidate.model, "CONTEXT", f"reads at most {self.longest:,} tokens")
        best, why = 0.0, None
        for name, context, machine in self._ways():
            try:
                self._held(name)
                tokens = self._most_tokens(name, machine)
                if tokens < self.wish.min_tps:
                    best = max(best, tokens)
                    continue
                assembly, asked = self._placed(name, context, machine)
                tokens = 1.0 / token_s(asked, assembly)
                if tokens < 0.95 * self.wish.min_tps:
                    best = max(best, tokens)
                    continue
                record = machine_record(asked, machine, assembly)
            except InfeasibleError as error:
                why = error
                continue
            per_user = record.tokens_per_s_per_user
            assert per_user is not None
            if per_user.mid >= self.wish.min_tps:
                return self._record(name, context, machine, assembly, record), machine_words(
                    machine, assembly
                )
            best = max(best, per_user.mid)
        if best:
            return RefusalRecord(self.candidate.model, "SLOW", f"at most {format_number(best, 2)} tokens/s")
        if why is not None and not why.reasons:
            return RefusalRecord(self.candidate.model, "NO_RUNTIME", why.hint)
        if why is not None and "tensor too large" in why.reasons:
            return RefusalRecord(self.candidate.model, "TENSOR", str(why).partition(" (")[0])
        needed = self.params * self._bits(self._formats()[-1]) / 8.0
        return RefusalRecord(self.candidate.model, "MEMORY", f"takes {format_bytes(needed)} and more")

    def _ways(self) -> Iterator[tuple[str | None, int, Machine]]:
        """Formats, contexts and parts of the machine that could hold them."""
        cards = replace(self.machine, host=None)
        formats = self._formats()
        some = [f for f in formats if (f in NARROW) is self.narrow]
        for machine in (cards,) if self.machine.host is None else (cards, self.machine):
            for context in (n for n in self.wish.contexts if n <= self.longest):
                for name in some:
                    if self.params * self._bits(name) / 8.0 <= _capacity(machine):
                        yield name, context, machine

    def _formats(self) -> Sequence[str | None]:
        if self.terms.precision is not None:
            return (self.terms.precision,)
        # what is stored in few bits already is run as it is
        return LADDER if wide(self.stored.graph) else (None,)

    @cached_property
    def stored(self) -> Loaded:
        """The model as its checkpoint has it."""
        return load_generating(self.candidate.model)

    @cached_property
    def params(self) -> int:
        """Its parameters."""
        return self.stored.graph.params()

    @property
    def longest(self) -> int:
        """The longest context that it reads; ten million tokens where nothing is said."""
        return self.stored.graph.model.max_context or 10_000_000

    def _bits(self, name: str | None) -> float:
        """Bits of a weight, at least: those of most matrices of a format."""
        if name is None:
            return 8.0 * self.stored.graph.weight_bytes() / self.params
        return GGML_BITS[GGUF[name]] if name in GGUF else FORMATS[name].bits if name in FORMATS else 0.0

    def _held(self, name: str | None) -> None:
        """Raises `InfeasibleError` where a tensor is larger than the environment allows, which no placement mends."""
        most = self.terms.environment.largest_tensor_bytes
        if most is None:
            return
        graph = load_generating(self.candidate.model, name, self.terms.kv).graph
        sizes = [
            float(tensor.local_bytes(Sizes(block.axes)))
            for block in (graph.embed, graph.head, *(block for _, block in graph.runs))
            for tensor in block.tensors
        ]
        if max(sizes, default=0.0) > most:
            what = f"a tensor of {format_bytes(max(sizes))} is above {format_bytes(most)}"
            raise InfeasibleError(
                what, f"{self.terms.environment.name}: {what}", reasons={"tensor too large": 1}
            )

    def _most_tokens(self, name: str | None, machine: Machine) -> float:
        """Tokens per second that no part could beat: active weights at the bandwidth of the fastest."""
        read = self.stored.graph.active_params() * self._bits(name) / 8.0
        fastest = max(self.terms.shared(c).memory.bytes_per_s or 0.0 for c, _ in machine.cards)
        return fastest / max(read, 1.0)

    def _placed(self, name: str | None, context: int, machine: Machine) -> tuple[Assembly, Context]:
        """Where it lies, and what one asks of it: a prompt in a context that could be full."""
        held = Workload(task="local", prompt_tokens=context - OUTPUT, output_tokens=OUTPUT)
        terms = replace(self.terms, precision=name, runtime=self.terms.runtime or _engine())
        asked = terms.context(self.candidate.model, held, owned=True)
        assembly = assembled(asked, machine, terms)
        short = replace(held, prompt_tokens=min(PROMPT, context - OUTPUT))
        return assembly, replace(asked, workload=short)

    def _record(
        self, name: str | None, context: int, machine: Machine, assembly: Assembly, record: PlanRecord
    ) -> LocalRecord:
        graph = load_generating(self.candidate.model, name, self.terms.kv).graph
        accounts = [part.account(float(context)) for part in assembly.parts]
        used = [
            sum(float(np.max(np.asarray(i.bytes))) for i in a.items if i.kind != "system")
            + float(np.max(np.asarray(a.sequence_bytes)))
            for a in accounts
        ]
        room = min(
            float(np.min(np.asarray(a.cache_bytes))) / max(float(np.max(np.asarray(a.sequence_bytes))), 1.0)
            for a in accounts
        )
        per_user = record.tokens_per_s_per_user
        assert per_user is not None
        host = used[-1] * assembly.parts[-1].count if assembly.host is not None else 0.0
        return LocalRecord(
            chip=record.chip,
            chips=record.chips,
            bound=record.bound,
            shares=record.shares,
            energy=record.energy,
            model=self.candidate.model,
            params=self.params,
            active_params=self.stored.graph.active_params(),
            precision=record.precision,
            wide=name not in NARROW,
            kv=record.kv,
            context=context,
            largest_context=int(min(self.longest, context * max(room, 1.0))) // 1024 * 1024 or context,
            tokens_per_s=per_user,
            ttft_s=record.ttft_s,
            memory_bytes=used[0],
            capacity_bytes=float(np.max(np.asarray(accounts[0].capacity_bytes))),
            host_bytes=host,
            download_bytes=graph.weight_bytes() + sum(e.modules * e.weight_bytes for e in graph.extras),
            placement=_where(machine, record),
            runtime=record.runtime,
            score=self.candidate.scores.get(self.wish.benchmark),
            quality=self.wish.quality(self.candidate),
            commands=desk_commands(
                self.candidate,
                record,
                context,
                [r.id for r in runtimes_for(machine.cards[0][0])],
                processor=machine.cards[0][0].kind == "cpu",
            ),
            machine=machine.name,
            basis=per_user.basis,
            parts=record.parts,
        )


def _engine() -> str:
    """The engine that figures are of: the first made for files of desks that shares a model with the host."""
    able = (
        r for r in all_software(Runtime).values() if "gguf" in r.made_for and r.offload and r.offload.alone
    )
    return next(able).id


def _named(name: str, known: Mapping[str, Candidate]) -> Candidate:
    """A model that the user named, with the names of engines where the table has them."""
    found = named_config(name)
    own = known.get(found.name) or next(
        (c for n, c in known.items() if named_config(n).name == found.name), None
    )
    return own or Candidate(found.name, "", ())


@per_snapshot
def _size(c: Candidate) -> float:
    """Parameters; of experts the geometric mean of all and those that a token uses."""
    graph = load_generating(c.model).graph
    return math.sqrt(float(graph.params()) * float(graph.active_params()))


def _capacity(machine: Machine) -> float:
    parts = [*machine.cards, *([(machine.host.chip, machine.host.sockets)] if machine.host else [])]
    return sum((c.memory.usable_bytes or c.memory.label_bytes or 0.0) * n for c, n in parts)


def _where(machine: Machine, record: PlanRecord) -> str:
    if len(record.parts) == 1:
        return "all on the cards" if machine.cards[0][1] > 1 else "all on it"
    return "; ".join(f"{p.chip}: {p.holds}" for p in record.parts)


def _words(machine: Machine) -> tuple[str, ...]:
    said = []
    if machine.host is None and all(c.kind == "gpu" and c.host is not None for c, _ in machine.cards):
        unified = any(s.unified for c, _ in machine.cards for s in systems_for(c.id.partition(":")[0]))
        if not unified:
            said.append("the computer's own memory is left out: --host-memory 64GB adds models that use it")
    return (*said, *(words for c, _ in machine.cards for words in measured_words(c)))


def _ordered(wish: Wish) -> tuple[str, ...]:
    if wish.models:
        return ()
    return (
        f"order: formats of 4 bits and more, then {BENCHMARKS[wish.benchmark]} as makers publish it, at full precision "
        f"and with thinking; {quantized_words()}; *: none found, placed by the best that is neither larger nor younger",
    )


def _offered(max_usd: float) -> list[tuple[Capex, Machine, str]]:
    """What is for sale for that much: machines, and one, two or four cards; of several prices of one thing the
    lowest that nothing speaks against."""
    best: dict[tuple[str, str, int], tuple[Capex, str]] = {}
    for price in load_capex():
        chip = load_chips().get(price.chip.partition(":")[0])
        if price.doubt or chip is None or (chip.kind == "cpu" and price.covers == "card"):
            continue  # a processor alone runs nothing: its memory is the larger part, and has no price here
        forms = {s.form for s in systems_for(price.chip.partition(":")[0])}
        if not forms & DESKS:
            continue
        for times in COUNTS if price.covers == "card" else (1,):
            usd, chips = price.usd * times, price.chips * times
            held = max((s.chips_per_host for s in systems_for(price.chip.partition(":")[0])), default=1)
            if usd > max_usd or chips > max(held, price.chips):
                continue
            key = (price.chip, price.covers, chips)
            if key not in best or usd < best[key][0].usd:
                count = f"{times} x " if times > 1 else ""
                item = f"{chip.name}, {price.item}" if BARE.fullmatch(price.item) else price.item
                words = f"{count}{item}" + (", used" if price.kind == "used" else "")
                best[key] = (replace(price, usd=usd, chips=chips), words)
    found = []
    for price, words in best.values():
        text = f"{price.chips}x{price.chip}" if price.chips > 1 else price.chip
        found.append((price, parse_machine(text), words))
    return found
