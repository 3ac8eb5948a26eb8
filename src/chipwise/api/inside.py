"""`operators` and `load`: a given plan from inside, and under rising load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from chipwise.api.estimating import estimate
from chipwise.api.placing import Given, Terms, placed
from chipwise.parallel.shard import shard
from chipwise.predict.passes import Requests
from chipwise.predict.step import Piece, pieces
from chipwise.report.operators import LoadPoint, LoadReport, OperatorRecord, OperatorsReport
from chipwise.search.evaluate import in_flight
from chipwise.search.space import Deployment
from chipwise.workload.step import decode, prefill
from chipwise.workload.workload import Workload

POINTS = 16


def operators(model: str, workload: Workload, given: Given, terms: Terms | None = None) -> OperatorsReport:
    """Every operator and exchange of a decode pass and of a pass with a chunk of a prompt, on one device of the plan.

    The arguments are those of `estimate`, and so are its errors. A pass gives every sequence one token: guesses
    ahead are not taken apart.
    """
    terms, layout = terms or Terms(), given.layout
    answer = estimate(model, workload, given, terms)
    record = answer.plans[0]
    context, d = placed(model, workload, given.chip, terms)
    costs, overheads = context.rates((d,))
    sharded = shard(context.found.graph, layout)
    asked = Requests.of(context.workload, d.policies)
    sequences = max(record.batch / float(in_flight(workload, layout.pp) * layout.dp), 1.0)
    chunk, held = float(asked.chunk), float(asked.context)
    long, new = float(asked.long), float(asked.long_new)
    passes = {"decode": decode(sequences, held), "prefill": prefill(chunk / new, new, long - new)}
    found = tuple(
        record
        for phase, step in passes.items()
        for record in _records(phase, pieces(sharded, step, d.device, costs, overheads), d)
    )
    used = dict.fromkeys(o.dtype for o in found if o.peak_flops_per_s)
    return OperatorsReport(
        model=answer.model,
        workload=answer.workload,
        plan=record,
        device=d.chip.id,
        decode_sequences=sequences,
        chunk_tokens=chunk,
        context_tokens=held,
        decode_s=sum(o.seconds for o in found if o.phase == "decode"),
        prefill_s=sum(o.seconds for o in found if o.phase == "prefill"),
        memory_bytes_per_s=float(np.asarray(d.device.memory_bytes_per_s)),
        peaks_flops_per_s={name: float(np.asarray(d.device.matrix[name])) for name in used},
        operators=found,
        assumptions=answer.assumptions,
    )


def load_curve(
    model: str,
    workload: Workload,
    given: Given,
    terms: Terms | None = None,
    *,
    ttft_s: float | None = None,
    tpot_s: float | None = None,
) -> LoadReport:
    """One replica at 16 loads from a lone request to as many as fit, or to the concurrency given.

    Loads are spaced evenly on a logarithmic scale. `ttft_s` and `tpot_s` are targets to hold it against; the other
    arguments are those of `estimate`, and so are its errors.
    """
    terms, layout, concurrency = terms or Terms(), given.layout, given.concurrency
    answer = estimate(model, workload, given, terms)
    full = answer.plans[0]
    _, d = placed(model, workload, given.chip, terms)
    least = min(float(in_flight(workload, layout.pp) * layout.dp), full.concurrency)
    loads = np.unique(np.geomspace(least, full.concurrency, POINTS))[:-1]
    lesser = (
        estimate(model, workload, replace(given, concurrency=float(c) * given.replicas, rate_per_s=None), terms)
        for c in loads
    )
    # the last is the plan itself
    records = [*(found.plans[0] for found in lesser), full]
    room, most = full.memory.cache_tokens, f"at most {d.policies.max_sequences:,} sequences"
    if concurrency is not None:
        limit = f"{concurrency:g} requests in flight, as asked"
    else:
        limit = most if room is None else f"room for {room:,} tokens of cache, {most}"
    points = tuple(map(LoadPoint.of, records))
    good = [p.concurrency for p in points if _meets(p, ttft_s, tpot_s)]
    return LoadReport(
        model=answer.model,
        workload=answer.workload,
        plan=full,
        points=points,
        limit=limit,
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        within=max(good) if good and (ttft_s or tpot_s) else None,
        assumptions=answer.assumptions,
    )


def _records(phase: str, found: Mapping[str, Piece], d: Deployment) -> tuple[OperatorRecord, ...]:
    """Longest first; crumbs of rounding below a nanosecond are left out."""
    whole = sum(p.seconds for p in found.values()) or 1.0
    kept = sorted((p for p in found.values() if p.seconds > 1e-9), key=lambda p: -p.seconds)
    return tuple(_record(phase, p, d, whole) for p in kept)


def _record(phase: str, p: Piece, d: Deployment, whole: float) -> OperatorRecord:
    exposed = {name: s for name, s in p.exposed_s.items() if s > 1e-12}
    matrix = p.kind in ("gemm", "experts", "attention")
    peak = float(np.asarray(d.device.matrix[p.dtype])) if matrix else 0.0
    return OperatorRecord(
        phase=phase,
        name=p.name,
        kind=p.kind,
        repeats=p.repeats,
        dtype=p.dtype,
        flops=p.flops,
        bytes=p.bytes,
        intensity=p.flops / p.bytes if p.bytes else 0.0,
        flops_per_s=p.flops / p.seconds,
        peak_flops_per_s=peak if np.isfinite(peak) else 0.0,
        seconds=p.seconds,
        share=p.seconds / whole,
        bound=max(exposed, key=exposed.__getitem__, default="launch"),
        exposed_s=exposed,
    )


def _meets(p: LoadPoint, ttft_s: float | None, tpot_s: float | None) -> bool:
    per_token = 0.0 if p.tpot_s is None else p.tpot_s.mid
    return p.ttft_s.mid <= (ttft_s or np.inf) and per_token <= (tpot_s or np.inf)
