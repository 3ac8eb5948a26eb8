"""`fit`: does a model fit, where, with what headroom, and what would mend a no."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from chipwise.api.desk import assembled, part_records
from chipwise.api.loaded import Loaded, check_length, load
from chipwise.api.placing import Terms
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import load_chips, recalled_words
from chipwise.catalog.machine import Machine, joined, kinds, parse_machine
from chipwise.errors import InfeasibleError
from chipwise.parallel.layout import Reason
from chipwise.parallel.memory import MemoryAccount, MemoryItem, Verdict
from chipwise.report.assemble import layout_record, memory_record, model_record, whole
from chipwise.report.fit import FitRecord, FitReport
from chipwise.report.records import LayoutRecord, RefusalRecord
from chipwise.search.assembly import Assembly
from chipwise.search.deployments import deployments, rented, runtime_for
from chipwise.search.memory import Fit, fit_on, largest_context, pooled_chips
from chipwise.search.space import Deployment
from chipwise.values import dataclass
from chipwise.workload.build import build
from chipwise.workload.graph import Graph
from chipwise.workload.labels import parse_precision
from chipwise.workload.lora import Adapter, adapter_bytes
from chipwise.workload.workload import Workload

CONTEXT = 2300  # 2,000 tokens in and 300 out, as plans assume
SMALLER = ("fp8", "int4")  # formats tried to mend a no, in order of how little they change


def fit(
    model: str,
    terms: Terms | None = None,
    *,
    context: int | None = None,
    sequences: int = 1,
    chips: Sequence[str] = (),
    count: int | None = None,
    adapters: tuple[int, Adapter] | None = None,
    host_memory: float | None = None,
) -> FitReport:
    """The memory of a model on every chip, at the smallest count that holds `sequences` of `context` tokens
    (2,300, or what the model reads if that is less).

    `count` asks about that many chips instead: the roomiest layout, and for a no by how much it misses and the
    changes that would mend it, each sufficient alone; so does a chip with a count and a machine for rent (`8xh100`,
    `p5.48xlarge`). Chips may be machines of several parts (`rtx-4090+epyc-9654`), with `host_memory` bytes beside
    their cards. `adapters`: so many of a kind are held beside the model. Raises
    `UsageError` and `UnknownNameError`.
    """
    terms = terms or Terms()
    found = load(model, terms.precision, terms.kv)
    if context is None:
        context = min(CONTEXT, found.graph.model.max_context or CONTEXT)
    check_length(found, context)
    load_ = HeldLoad(found, context, sequences, count)
    machines, wanted, counts = _named(chips, host_memory, terms)
    held = adapters[0] * adapter_bytes(found.graph, adapters[1]) if adapters else 0.0
    offered, refused = deployments(
        found.graph.model, wanted, terms.runtime, timed=False, policy=terms.policy, adapter_bytes=held
    )
    of_date, too_old = terms.tactics.on(offered, found.graph, terms.policy)
    each = [
        *(RefusalRecord(c.id, r.name, why) for c, r, why in refused),
        *too_old,
        *(load_.on(d, n) for d in of_date for n in counts.get(d.chip.id, (None,))),
        *(_on_parts(model, machine, terms, context, sequences) for machine in machines),
    ]
    records = sorted((one for one in each if isinstance(one, FitRecord)), key=_roomy)
    return FitReport(
        model=model_record(found.graph, found.config),
        context=context,
        sequences=sequences,
        fits=tuple(records),
        refused=tuple(one for one in each if isinstance(one, RefusalRecord)),
        assumptions=(
            *found.notes,
            *found.graph.model.assumptions,
            *recalled_words(record.chip for record in records),
            *filter(None, (terms.tactics.beyond,)),
            *terms.said,
        ),
    )


def _named(
    names: Sequence[str], host_memory: float | None, terms: Terms
) -> tuple[list[Machine], list[Chip], Mapping[str, tuple[int | None, ...]]]:
    """Machines of several parts, chips, and the counts that were said of each: those of the names, or all chips for
    rent. Beside memory of a host every chip is a machine."""
    if not names:
        return [], [terms.shared(load_chips()[c]) for c in load_chips().market()], {}
    counts = kinds(names, dealt=True) if host_memory is None else dict.fromkeys(names, (None,))
    parts = [c for c in counts if host_memory is not None or joined(c)]
    machines = [parse_machine(c, host_memory, terms.part, field="chips") for c in parts]
    return machines, [terms.chip(c) for c in counts if c not in parts], counts


def _roomy(record: FitRecord) -> tuple[int, int, str]:
    return ("comfortable", "tight", "no").index(record.verdict), record.chips, record.chip


def _on_machine(model: str, machine: Machine, terms: Terms, context: int, sequences: int) -> FitRecord:
    """A model on the parts of a machine: the first card's memory, and in words what lies where. Raises
    `InfeasibleError` where it does not fit."""

    def placed(tokens: int) -> Assembly:
        load_ = Workload(task="local", prompt_tokens=max(tokens - 1.0, 1.0), output_tokens=1.0)
        return assembled(terms.context(model, load_, owned=True, longer=True), machine, terms)

    found = placed(context)
    accounts = [part.account(float(context)) for part in found.parts]
    most = min(float(np.min(np.asarray(a.sequences))) for a in accounts)
    if most < sequences:
        what = f"{machine.name}: at most {most:.0f} sequences of {context:,} tokens"
        raise InfeasibleError(what, "a smaller --batch or --context")
    longest, cap = context, found.cards[0].graph.model.max_context or 10_000_000
    while longest * 2 <= cap and _holds(placed, longest * 2):
        longest *= 2
    first = found.cards[0]
    tight = any(a.verdict(sequences) is Verdict.TIGHT for a in accounts)
    return FitRecord(
        chip=machine.name,
        chips=sum(n for _, n in machine.cards),
        layout=layout_record(first.layout),
        runtime=first.deployment.runtime.id,
        verdict=(Verdict.TIGHT if tight else Verdict.FITS).value,
        missing_bytes=0.0,
        memory=memory_record(accounts[0], 1, float(sequences)),
        largest_batch=whole(most),
        largest_context=longest,
        mend=(),
        parts=part_records(found, float(context)),
    )


def _holds(placed: Callable[[int], Assembly], tokens: int) -> bool:
    try:
        placed(tokens)
    except InfeasibleError:
        return False
    return True


def _on_parts(model: str, machine: Machine, terms: Terms, context: int, sequences: int) -> FitRecord | RefusalRecord:
    """A model on the parts of a machine, or why it does not fit."""
    try:
        return _on_machine(model, machine, terms, context, sequences)
    except InfeasibleError as error:
        return RefusalRecord(machine.name, Reason.MEMORY.name, f"{error.what} ({error.hint})")


@dataclass(frozen=True)
class HeldLoad:
    """A model with `sequences` of `context` tokens beside it, on `count` of a chip (None: on the fewest)."""

    found: Loaded
    context: int
    sequences: int
    count: int | None = None

    def on(self, d: Deployment, count: int | None) -> FitRecord | RefusalRecord:
        """It on so many of a chip, or that no layout is of so many."""
        load_ = replace(self, count=count or self.count)
        record = _spread(load_, d) if d.chip.family == "dataflow" else _sharded(load_, d)
        return record or RefusalRecord(d.chip.id, "NO_LAYOUT", _no_layout(d, load_.count))

    def fit(self, d: Deployment, devices: int | None, copies: int = 1) -> Fit | None:
        """The layout of one of `copies` that share the sequences."""
        share = float(np.ceil(self.sequences / copies))
        return fit_on(self.found.graph, d, self.context, share, devices=devices)

    def placed(self, d: Deployment, devices: int | None) -> tuple[Fit, Deployment, int] | None:
        """The best layout, the machine it is in and the number of its replicas: a chip with a display may hold it not,
        or fewer chips than are asked about, where the machine that plans rent does."""
        for copies in (n for n in range(1, (devices or 1) + 1) if (devices or 1) % n == 0):
            each = devices // copies if devices else None
            tried = [(self.fit(place, each, copies), place) for place in (d, rented(d))]
            legal = [(best, place, copies) for best, place in tried if best is not None]
            if legal:
                return max(legal, key=lambda one: one[0].fits)  # the first of equals
        return None


def _sharded(load_: HeldLoad, d: Deployment) -> FitRecord | None:
    """A chip that software cuts a model over. More chips than a layout can take hold replicas of it."""
    devices = load_.count * d.chip.devices_per_package if load_.count else None
    placed = load_.placed(d, devices)
    if placed is None:
        return None
    (best, d, replicas), graph = placed, load_.found.graph
    layout = layout_record(best.layout)
    per_replica = np.ceil(load_.sequences / layout.dp / replicas)
    cap = graph.model.max_context or 10_000_000
    said = f"{replicas} replicas of {best.layout.label()}" if replicas > 1 else ""
    return FitRecord(
        chip=d.chip.id,
        chips=replicas * layout.tp * layout.pp * layout.dp // d.chip.devices_per_package,
        layout=layout,
        runtime=d.runtime.id,
        verdict=(best.memory.verdict(per_replica) if best.fits else Verdict.SHORT).value,
        missing_bytes=float(best.memory.short_bytes(per_replica)),
        memory=memory_record(best.memory, layout.dp, per_replica),
        largest_batch=whole(float(best.memory.sequences) * layout.dp * replicas),
        largest_context=_longest(graph, d, best, cap),
        mend=() if best.fits else _mends(load_, d, best, devices),
        caveat="; ".join(filter(None, (d.caveat, said))),
    )


def _longest(graph: Graph, d: Deployment, best: Fit, limit: int) -> int:
    """The longest context of a sequence alone, 0 where weights leave no cache."""
    return largest_context(graph, d, best.layout, limit) if best.memory.cache_bytes > 0 else 0


def _mends(load_: HeldLoad, d: Deployment, best: Fit, devices: int | None) -> tuple[str, ...]:
    """Changes of one thing, each enough alone: load, format, count."""
    mends: list[str] = []
    found, context = load_.found, load_.context
    dp = int(best.layout.dp)
    most = float(best.memory.sequences)
    if 1 <= most < load_.sequences:
        mends.append(f"at most {int(most) * dp} sequences of {context:,} tokens")
    elif longest := _longest(found.graph, d, best, context):
        mends.append(f"a context of at most {longest:,} tokens")
    own = found.graph.model.precision
    for name in SMALLER:
        precision = replace(parse_precision(name, found.graph.model), kv=own.kv)
        smaller = found.graph.model.at_precision(precision)
        lighter = build(smaller)
        if lighter.weight_bytes >= found.graph.weight_bytes or own.name == name:
            continue
        chosen, _ = runtime_for(smaller, d.chip)
        if chosen is None:
            continue
        again = replace(d, runtime=chosen, policies=chosen.policies_on(d.chip))
        retry = fit_on(lighter, again, context, load_.sequences, devices=devices)
        if retry is not None and retry.fits:
            mends.append(f"{name} weights ({chosen.id}; changes the numerics)")
            break
    if devices is not None:
        more = load_.fit(d, None)
        if more is not None and more.fits:
            mends.append(f"{int(more.layout.devices) // d.chip.devices_per_package} chips, {more.layout.label()}")
    return tuple(mends)


def _spread(load_: HeldLoad, d: Deployment) -> FitRecord | None:
    """A chip whose compiler spreads one model over many chips: their memories count together."""
    graph, context, sequences = load_.found.graph, load_.context, load_.sequences
    capacity = float(d.device.memory_bytes) * d.chip.devices_per_package
    if not np.isfinite(capacity):
        return None
    weights = graph.weight_bytes
    cache = sequences * float(graph.kv_bytes(float(context)))
    alone = pooled_chips(weights, 0.0, capacity)
    needed = pooled_chips(weights, cache, capacity)
    chips = load_.count or needed
    room = chips * capacity - weights
    per_token = cache / (sequences * context)
    held = MemoryItem("weights", weights / chips, f"spread evenly; alone they fill {alone} chips")
    memory = memory_record(MemoryAccount((held,), capacity, cache / sequences, context), chips, sequences / chips)
    mend = () if chips >= needed else (f"{needed} chips (the weights alone fill {alone})",)
    return FitRecord(
        chip=d.chip.id,
        chips=chips,
        layout=LayoutRecord(1, 1, 1, 1, f"spread x{chips}"),
        runtime=d.runtime.id,
        verdict=memory.verdict,
        missing_bytes=max(0.0, weights + cache - chips * capacity),
        memory=memory,
        largest_batch=int(max(room, 0.0) * sequences / cache) if cache else 0,
        largest_context=int(max(room, 0.0) / per_token) if per_token else 0,
        mend=mend,
        caveat=d.caveat,
    )


def _no_layout(d: Deployment, count: int | None) -> str:
    if not np.isfinite(float(d.device.memory_bytes)):
        return "the capacity of the chip is not published"
    return f"no legal layout on {count} chips" if count else "no legal layout"
