"""`fit`: does a model fit, where, with what headroom, and what would mend a no."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from chipwise.api.desk import assembled, part_records
from chipwise.api.loaded import Loaded, check_length, load
from chipwise.api.placing import Terms
from chipwise.catalog.chips import load_chips, recalled_words
from chipwise.catalog.machine import Machine, joined, kinds, parse_machine
from chipwise.errors import InfeasibleError
from chipwise.parallel.layout import Reason
from chipwise.report.assemble import layout_record, memory_record, model_record, whole
from chipwise.report.fit import FitRecord, FitReport
from chipwise.report.records import LayoutRecord, MemoryRecord, RefusalRecord
from chipwise.search.assembly import Assembly
from chipwise.search.deployments import deployments, rented, runtime_for
from chipwise.search.fit import Fit, fit_on, largest_context, pooled_chips
from chipwise.search.space import Deployment, Limits
from chipwise.workload.build import build
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
    asked = kinds(chips, dealt=True) if host_memory is None else dict.fromkeys(chips, (None,))
    parts = [c for c in asked if host_memory is not None or joined(c)]
    machines = [parse_machine(c, host_memory, terms.part, field="chips") for c in parts]
    named = () if host_memory is not None else [c for c in asked if not joined(c)]
    wanted = [terms.chip(c) for c in named]
    if not chips:
        wanted = [terms.shared(load_chips()[c]) for c in load_chips().market()]
    held = adapters[0] * adapter_bytes(found.graph, adapters[1]) if adapters else 0.0
    offered, refused = deployments(
        found.graph.model, wanted, terms.runtime, timed=False, policy=terms.policy, adapter_bytes=held
    )
    each = [
        *(
            _on_chip(found, d, context, sequences, n or count)
            for d in offered
            for n in asked.get(d.chip.id, (None,))
        ),
        *(_on_parts(model, machine, terms, context, sequences) for machine in machines),
    ]
    refusals = [RefusalRecord(c.id, r.name, why) for c, r, why in refused]
    refusals += [one for one in each if isinstance(one, RefusalRecord)]
    order = {"comfortable": 0, "tight": 1, "no": 2}
    records = [one for one in each if isinstance(one, FitRecord)]
    records.sort(key=lambda r: (order[r.verdict], r.chips, r.chip))
    return FitReport(
        model=model_record(found.graph, found.config),
        context=context,
        sequences=sequences,
        fits=tuple(records),
        refused=tuple(refusals),
        assumptions=(
            *found.notes,
            *found.graph.model.assumptions,
            *recalled_words(record.chip for record in records),
            *terms.said,
        ),
    )


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
    tight = any(a.verdict(sequences) == "tight" for a in accounts)
    return FitRecord(
        chip=machine.name,
        chips=sum(n for _, n in machine.cards),
        layout=layout_record(first.layout),
        runtime=first.deployment.runtime.id,
        verdict="tight" if tight else "comfortable",
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


def _on_chip(
    found: Loaded, d: Deployment, context: int, sequences: int, count: int | None
) -> FitRecord | RefusalRecord:
    """A model on so many of a chip (None: the fewest), or that no layout is of so many."""
    sized = _spread if d.chip.family == "dataflow" else _sharded
    record = sized(found, d, context, sequences, count)
    return record or RefusalRecord(d.chip.id, "NO_LAYOUT", _no_layout(d, count))


def _on_parts(
    model: str, machine: Machine, terms: Terms, context: int, sequences: int
) -> FitRecord | RefusalRecord:
    """A model on the parts of a machine, or why it does not fit."""
    try:
        return _on_machine(model, machine, terms, context, sequences)
    except InfeasibleError as error:
        return RefusalRecord(machine.name, Reason.MEMORY.name, f"{error.what} ({error.hint})")


def _sharded(
    found: Loaded, d: Deployment, context: int, sequences: int, count: int | None
) -> FitRecord | None:
    """A chip that software cuts a model over: where one with a display holds it not, or fewer chips than are asked
    about, the machine that plans rent. More chips than a layout can take hold replicas of it."""
    devices, limits = count * d.chip.devices_per_package if count else None, Limits()
    places, best = (d, rented(d)), None
    for copies in (n for n in range(1, (devices or 1) + 1) if (devices or 1) % n == 0):
        each = devices // copies if devices else None
        for place in places:
            share = float(np.ceil(sequences / copies))
            tried = fit_on(found.graph, place, context, share, devices=each, limits=limits)
            if tried is not None and (best is None or (tried.fits and not best.fits)):
                best, d, replicas = tried, place, copies
        if best is not None:
            break
    if best is None:
        return None
    layout = layout_record(best.layout)
    per_replica = np.ceil(sequences / layout.dp / replicas)
    cap = found.graph.model.max_context or 10_000_000
    said = f"{replicas} replicas of {best.layout.words()}" if replicas > 1 else ""
    return FitRecord(
        chip=d.chip.id,
        chips=replicas * layout.tp * layout.pp * layout.dp // d.chip.devices_per_package,
        layout=layout,
        runtime=d.runtime.id,
        verdict=best.memory.verdict(per_replica) if best.fits else "no",
        missing_bytes=_missing(best, per_replica),
        memory=memory_record(best.memory, layout.dp, per_replica),
        largest_batch=whole(float(best.memory.sequences) * layout.dp * replicas),
        largest_context=largest_context(found.graph, d, best.layout, cap)
        if best.memory.cache_bytes > 0
        else 0,
        mend=() if best.fits else _mends(found, d, best, context, sequences, devices, limits),
        caveat="; ".join(filter(None, (d.caveat, said))),
    )


def _missing(best: Fit, per_replica: float) -> float:
    return max(0.0, float(per_replica * best.memory.sequence_bytes - best.memory.cache_bytes))


def _mends(
    found: Loaded,
    d: Deployment,
    best: Fit,
    context: int,
    sequences: int,
    devices: int | None,
    limits: Limits,
) -> tuple[str, ...]:
    """Changes of one thing, each enough alone: load, format, count."""
    mends: list[str] = []
    dp = int(best.layout.dp)
    most = float(best.memory.sequences)
    if 1 <= most < sequences:
        mends.append(f"at most {int(most) * dp} sequences of {context:,} tokens")
    else:
        longest = largest_context(found.graph, d, best.layout, context) if best.memory.cache_bytes > 0 else 0
        if longest:
            mends.append(f"a context of at most {longest:,} tokens")
    own = found.graph.model.precision
    for name in SMALLER:
        precision = replace(parse_precision(name, found.graph.model), kv=own.kv)
        smaller = found.graph.model.at_precision(precision)
        lighter = build(smaller)
        if lighter.weight_bytes() >= found.graph.weight_bytes() or own.name == name:
            continue
        chosen, _ = runtime_for(smaller, d.chip)
        if chosen is None:
            continue
        again = replace(d, runtime=chosen, policies=chosen.policies_on(d.chip))
        retry = fit_on(lighter, again, context, sequences, devices=devices, limits=limits)
        if retry is not None and retry.fits:
            mends.append(f"{name} weights ({chosen.id}; changes the numerics)")
            break
    if devices is not None:
        more = fit_on(found.graph, d, context, sequences, limits=limits)
        if more is not None and more.fits:
            mends.append(
                f"{int(more.layout.devices) // d.chip.devices_per_package} chips, {more.layout.words()}"
            )
    return tuple(mends)


def _spread(
    found: Loaded, d: Deployment, context: int, sequences: int, count: int | None
) -> FitRecord | None:
    """A chip whose compiler spreads one model over many chips: their memories count together."""
    capacity = float(d.device.memory_bytes) * d.chip.devices_per_package
    if not np.isfinite(capacity):
        return None
    weights = found.graph.weight_bytes()
    cache = sequences * float(found.graph.kv_bytes(float(context)))
    alone = pooled_chips(weights, 0.0, capacity)
    needed = pooled_chips(weights, cache, capacity)
    chips = count or needed
    room = chips * capacity - weights
    per_token = cache / (sequences * context)
    verdict = "no" if chips < needed else "tight" if room < 0.1 * chips * capacity else "comfortable"
    mend = () if chips >= needed else (f"{needed} chips (the weights alone fill {alone})",)
    memory = MemoryRecord(
        items={"weights": weights / chips},
        basis={"weights": f"spread evenly; alone they fill {alone} chips"},
        capacity_bytes=capacity,
        withheld_bytes=0.0,
        cache_bytes=room / chips,
        cache_tokens=int(max(room, 0.0) / per_token) if per_token else 0,
        verdict=verdict,
    )
    return FitRecord(
        chip=d.chip.id,
        chips=chips,
        layout=LayoutRecord(1, 1, 1, 1, f"spread x{chips}"),
        runtime=d.runtime.id,
        verdict=verdict,
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
