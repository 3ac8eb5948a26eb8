"""Price a group of candidates as arrays: memory, passes, service, masks."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.preferences import preferences
from chipwise.cost.cost import Cost
from chipwise.cost.dataflow import DataflowModel
from chipwise.cost.device import Device
from chipwise.cost.local import LocalModel
from chipwise.cost.price import CostParameters
from chipwise.cost.roofline import roofline
from chipwise.parallel.layout import Layout, Reason, first_broken, illegal, spans
from chipwise.parallel.memory import MemoryAccount
from chipwise.parallel.shard import Sharded, shard
from chipwise.predict.alike import Alike
from chipwise.predict.energy import Use, issued
from chipwise.predict.overheads import Overheads
from chipwise.predict.passes import SHARED, PartsOf, PassTable, Requests, tabulate
from chipwise.predict.service import LOADS, ONE, Engines, Loads, Prediction, transfer_s
from chipwise.predict.speculative import decoding, draft_graph
from chipwise.predict.step import parts_alike, step_parts
from chipwise.search.memory import memory_of
from chipwise.search.space import Group, filled
from chipwise.search.targets import held
from chipwise.units import Array, Real
from chipwise.values import dataclass
from chipwise.workload.graph import Graph
from chipwise.workload.step import Step, prefill
from chipwise.workload.workload import Workload

ENDLESS = 1e30
"""requests per second: more than any engine takes. Exact: a bound that is never reached."""
FEW_LOADS = 8
"""loads of the grid: with fewer within memory rates differ by a fifth and more from one to the next. Chosen: two
octaves; moves replicas of engines with room for few requests, or that answer in few tokens."""
BUSY = 0.8
"""share of time: that workers for prompts should work. Chosen: the wait is then about twice the prompt's own time;
moves how many of a separate pool stand for a rate."""


@dataclass(frozen=True)
class Pools:
    """Workers of a deployment with prompts in one pool and decoding in another; columns [N]. `layout` is that of
    the workers for prompts, `decode` counts the others."""

    prompt: Array
    decode: Array
    layout: Layout


@dataclass(frozen=True)
class Evaluated:
    """A group with its engines and their predictions on the grid of batches, without their cost.

    `reason` indexes `REASONS` per candidate; `allowed` [N, batch] marks batches that fit in memory and in
    the runtime's limit of sequences; of a lone user, whose load is the same in all columns, the first.
    `beside` [N, batch] are workers for prompts beside each decode worker, 0 where there is one pool.
    `held` are TTFT and TPOT [N, batch] as targets bound them (`targets.held`).
    `rates` are the numbers that it was priced with. `engines` are those of the candidates that are legal and fit, `row`
    says where each candidate's is (-1: nowhere).
    """

    group: Group
    prediction: Prediction
    memory: MemoryAccount
    reason: NDArray[np.int64]
    allowed: NDArray[np.bool_]
    beside: Array
    rates: tuple[CostParameters, Overheads]
    engines: Engines | None
    row: NDArray[np.intp]
    held: tuple[Array, Array]

    @property
    def plans(self) -> int:
        """Candidate plans priced: layouts times batches."""
        return int(self.allowed.size)

    def take(self, rows: NDArray[np.intp]) -> Evaluated:
        """Some of the candidates."""
        return replace(
            self,
            group=self.group.take(rows),
            prediction=self.prediction.each(lambda values: values[rows]),
            memory=self.memory.each(lambda value: np.asarray(value)[rows] if np.size(value) > 1 else value),
            reason=self.reason[rows],
            allowed=self.allowed[rows],
            beside=self.beside[rows],
            row=self.row[rows],
            held=(self.held[0][rows], self.held[1][rows]),
        )

    def engines_at(self, rows: NDArray[np.intp]) -> Engines:
        """The engines of some candidates, all of which are legal and fit."""
        if self.engines is None:
            raise ValueError("no candidate is legal and fits")
        return self.engines.take(self.row[rows])


def in_flight(workload: Workload, stages: Real) -> Real:
    """Micro-batches that a pipeline works on: one per stage, or one where a lone user waits for each token."""
    return stages * 0.0 + 1.0 if workload.task == "local" else stages


def evaluate(
    graph: Graph, group: Group, workload: Workload, efficiency: CostParameters, overheads: Overheads
) -> Evaluated:
    """Predictions, masks and reasons of all candidates of a group."""
    policies = group.deployments[0].policies
    requests = Requests.of(workload, policies)
    memory = memory_of(graph, group, requests)
    features = group.deployments[0].runtime.features
    reason = illegal(graph, group.layouts(), **filled(group.deployments[0].runtime))
    # a pipeline needs a sequence for each of its micro-batches
    smallest = in_flight(workload, group.layouts(trailing=1).pp)
    fits = memory.fits(smallest)[:, 0]
    known = np.isfinite(np.asarray(group.device(trailing=1).memory_bytes))[:, 0]
    known &= np.isfinite(np.asarray(group.device(trailing=1).memory_bytes_per_s))[:, 0]
    domain = np.asarray(group.device(trailing=1).domain)[:, 0]
    networked = np.isfinite(np.asarray(group.device(trailing=1).scaleout_bytes_per_s))[:, 0]
    layout = group.layouts()
    joined = spans(layout, domain, networked=networked, wide="wide_ep" in features)
    rules = ((Reason.DOMAIN, ~joined), (Reason.NO_MEMORY_FIGURE, ~known), (Reason.MEMORY, ~fits))
    reason = first_broken(rules, reason.shape, reason)
    reason = first_broken([(Reason.STAGES, _deep(group, reason == 0))], reason.shape, reason)
    live = reason == 0
    row = np.where(live, np.cumsum(live) - 1, -1)
    rates = (efficiency, overheads)
    nothing = np.full((len(live), len(LOADS)), np.nan)
    if not live.any():
        none = Prediction(**{f.name: nothing for f in fields(Prediction) if f.name != "cost"}, cost=Cost())
        masks = np.zeros(nothing.shape, dtype=bool)
        return Evaluated(
            group, none, memory, reason, masks, np.zeros(nothing.shape), rates, None, row, (nothing, nothing)
        )
    rows = group if live.all() else group.take(live)
    kept = np.broadcast_to(memory.running(smallest), (len(live), 1))
    limit = np.minimum(kept[live, 0], policies.max_sequences)
    engines = engines_of(graph, rows, requests, limit, efficiency, overheads, local=workload.task == "local")
    beside = np.zeros(nothing.shape)
    if group.deployments[0].apart:
        one = engines.under(overheads.service.take(rows.which)).over_batches()
        beside[live] = prompt_workers(one, engines)
        engines = replace(
            engines, prompt_servers=np.maximum(beside[live], 1.0) * (engines.ranks * engines.stages)[:, None]
        )
    loads = engines.under(overheads.service.take(rows.which))
    lone = workload.task == "local"
    prediction = _lone(loads) if lone else loads.over_batches()
    with np.errstate(invalid="ignore"):
        within = (prediction.resident <= limit[:, None]) & (prediction.budget_share <= 1.0)
    # where the grid has few loads up to the most that an engine takes, or none, or nothing decodes: shares of that
    served = workload.task == "serve"
    few = (within[:, ONE:].sum(axis=1) < FEW_LOADS) | (served and workload.output_tokens <= 1.0)
    short = np.flatnonzero(few & (not lone))
    if len(short):
        some = loads.take(short)
        shares = np.linspace(0.0, 1.0, len(LOADS) + 1)[1:]
        if served:
            most = some.open(np.full((len(short), 1), ENDLESS), by_resource=False).requests_per_s
            lighter, room = some.open(most * shares, by_resource=False), np.ones((len(short), 1), dtype=bool)
        else:
            whole = some.full()
            lighter = some.at(whole.load * shares, by_resource=False)
            # where not even the smallest batch has room for all that are in flight with it: as many as have
            none = ~within[short, ONE]
            lighter = _replaced(lighter, whole.each(lambda x: x[none]), np.flatnonzero(none))
            room = (lighter.resident <= limit[short, None]) & (lighter.budget_share <= 1.0) & ~none[:, None]
        prediction = _replaced(prediction, lighter, short)
        within[short] = room
    within[:, 0] = True
    if lone:
        within[:, 1:] = False
    table = prediction.each(lambda values: _scattered(values, live))
    first, further = (_scattered(x, live) for x in held(loads, prediction, workload))
    allowed = np.zeros(nothing.shape, dtype=bool)
    allowed[live] = within
    seen = (first, further)
    return Evaluated(group, table, memory, reason, allowed, beside, rates, engines, row, seen)


def _deep(group: Group, live: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Candidates in more stages than `few_stages` and than `more_stages` times as many as hold the model with the same
    ranks in a stage: further ones add hosts, hops and bubbles to a replica, and to its cache what another has too."""
    _, of = Alike.kinds(group.which, group.layouts())
    stages = np.asarray(group.layouts().pp)
    least = np.full(len(stages), np.inf)
    np.minimum.at(least, of[live], stages[live])
    p = preferences()
    return stages > np.maximum(p.few_stages, p.more_stages * least[of])


def engines_of(
    graph: Graph,
    group: Group,
    requests: Requests,
    limit: Array,
    efficiency: CostParameters,
    overheads: Overheads,
    *,
    pools: Pools | None = None,
    local: bool = False,
    by_part: bool = False,
) -> Engines:
    """The engines of all candidates of a group; `requests` are numbers or columns [N], `limit` [N] requests fit on each
    attention replica. `efficiency` and `overheads` hold a number for all deployments of the group, or one for each.

    Where prompts have workers of their own these are `pools`; by default one decode worker beside a worker of the same
    layout. `local`: pipeline stages do not work on several batches at a time. `by_part`: tables for a fit, without
    the factors of `overheads`.
    """
    d = group.deployments[0]
    flat = group.layouts()
    size = len(group.which)
    experts = graph.routed

    def table(of: Group) -> PassTable:
        return _table(graph, of, requests, (efficiency, overheads), by_part=by_part)

    def column(value: Real) -> Array:
        return np.array(np.broadcast_to(np.asarray(value, dtype=float), (size,)))

    ranks, stages = column(flat.dp), column(1.0 if local else flat.pp)
    engines = Engines(
        table(group),
        np.ones(size) if pools is None else column(pools.decode),
        ranks,
        ranks if experts else np.ones(size),
        stages,
        column(limit),
    )
    if not d.apart:
        return engines
    workers = pools or Pools(np.ones(size), np.ones(size), flat)
    layout = workers.layout
    own = Layout(*(column(layout.part(p)) for p in ("tp", "pp", "dp", "ep")))
    servers = column(workers.prompt) * column(layout.dp) * column(layout.pp)
    sent = _transfer_s(graph, group, requests, layout, overheads)
    return replace(
        engines,
        prompts=engines.table if pools is None else table(Group(group.deployments, group.which, own)),
        prompt_servers=servers[:, None],
        transfer_s=column(sent),
    )


def _table(
    graph: Graph, group: Group, requests: Requests, rates: tuple[CostParameters, Overheads], *, by_part: bool
) -> PassTable:
    """The passes of all candidates of a group. Those that work on two halves of a batch, for their experts lie over a
    network, apart from the others: only of them is each pass asked for by halves too."""
    layout, domain = group.layouts(), np.asarray(group.device().domain)
    wide = np.asarray(layout.tp * layout.dp > domain) & rates[1].two_batches
    if wide.any() and not wide.all():
        rows = [np.flatnonzero(~wide), np.flatnonzero(wide)]
        found = [_table(graph, group.take(some), requests.take(some), rates, by_part=by_part) for some in rows]
        return PassTable.join(found).take(np.argsort(np.concatenate(rows)))
    d, at = group.deployments[0], group.which.reshape(-1, 1)
    device, (efficiency, overheads) = group.device(trailing=1), rates
    each, own, alike = efficiency.take(at), overheads.take(at), _alike(group, requests, efficiency)
    sharded = group.sharded(graph)
    experts = graph.routed

    def parts(of: Sharded, only: tuple[str, ...] = ("",)) -> PartsOf:
        return lambda step: parts_alike(of, step, device, each, own, alike, only)

    return tabulate(
        parts(sharded),
        len(group.which),
        requests,
        alone=d.policies.prefill == "alone",
        factors=None if by_part else own.factors,
        ranks=np.asarray(sharded.layout.dp).reshape(-1) if experts else 1.0,
        speculation=d.speculation,
        draft_of=parts(shard(draft_graph(graph), sharded.layout)) if d.drafts else None,
        experts_of=parts(sharded, SHARED),
    )


@dataclass(frozen=True)
class Bounds:
    """What nothing beats at a load, arrays [N]: seconds per token, seconds to the first one, requests per second; and
    `peak_per_s` requests at any load."""

    tpot_s: Array
    ttft_s: Array
    requests_per_s: Array
    peak_per_s: Array


def bounds_of(graph: Graph, group: Group, engines: Engines, found: Prediction) -> Bounds:
    """Rooflines of passes at the load of `found` [N, 1]: FLOPs over peak and compulsory bytes over bandwidth of every
    operator, no launch, exchange or host. Prompts that share a pass read weights once: of their time only the FLOPs
    bound a rate, as of all time where batches may be as large as one likes. Workers for prompts are not bounded."""
    sharded, device = group.sharded(graph), group.device(trailing=1)
    endless = replace(device, memory_bytes_per_s=np.inf)
    r, speculation = engines.table.requests, group.deployments[0].speculation
    context, new, long, long_new, decodes, sharers = (
        np.asarray(x, dtype=float).reshape(-1, 1) for x in (r.context, r.new, r.long, r.long_new, r.decodes, r.sharers)
    )

    def seconds(step: Step) -> tuple[Array, Array]:
        """Of a pass on the devices, and on such with endless bandwidth, [N]."""
        here, there = np.zeros((len(engines), 1)), np.zeros((len(engines), 1))
        for times, op in sharded.ops(step):
            here = here + times * roofline(op, device)
            there = there + times * roofline(op, endless)
        return here[:, 0], there[:, 0]

    batch = np.maximum(found.batch / engines.slots[:, None], 1.0)
    drafts, tokens = (speculation.draft_tokens, speculation.tokens_per_pass) if speculation else (0, 1.0)
    pass_s, flops_s = (pass_ / tokens for pass_ in seconds(decoding(batch, context, sharers, drafts)))
    prompt = prefill(new / long_new, long_new, long - long_new)
    apart = engines.prompts is not None
    first_s, work_s = (pass_ * (not apart) for pass_ in seconds(prompt))
    passes = decodes[:, 0] / batch[:, 0]
    rates = (engines.slots / np.maximum(passes * s + work_s, 1e-30) for s in (pass_s, flops_s))
    return Bounds(pass_s, first_s, *rates)


def use_of(graph: Graph, group: Group, engines: Engines, found: Prediction) -> Use:
    """What the chips of candidates do at the load of `found` [N, 1], arrays [N]: compulsory bytes over bandwidth and
    issued operations over peak. Prompts that share a pass read no weights of their own. The work of workers for prompts
    counts as done by those that decode."""
    sharded, device = group.sharded(graph), group.device(trailing=1)
    lanes = bool(group.deployments[0].runtime.backends)
    r = engines.table.requests
    context, new, long, long_new, decodes, budget, sharers = (
        np.asarray(x, dtype=float).reshape(-1, 1)
        for x in (r.context, r.new, r.long, r.long_new, r.decodes, r.budget, r.sharers)
    )

    def work(step: Step, read: Real) -> Array:
        """Seconds of a pass at the bandwidth, with `read` of its weights, and at the peaks, as in `Use` [3, N, 1]."""
        total = {f.name: np.zeros((len(engines), 1)) for f in fields(Use)}
        for times, op in sharded.ops(step):
            moved = read * op.weight_bytes + op.activation_bytes + op.kv_bytes
            total["memory"] += times * moved / device.memory_bytes_per_s
            name, peak_s = issued(op, device, lanes=lanes)
            total[name] += times * peak_s
        return np.stack(list(total.values()))

    batch = np.maximum(found.batch / engines.slots[:, None], 1.0)
    alone = engines.table.alone[:, None] | (decodes <= 0.0)
    prompt = work(prefill(new / long_new, long_new, long - long_new), alone * np.minimum(new / budget, 1.0))
    each = decodes / batch * work(decoding(batch, context, sharers), 1.0) + prompt
    requests = found.requests_per_s / (engines.replicas * engines.ranks)[:, None]
    busy = np.minimum(each * requests / np.asarray(group.layouts(trailing=1).pp), 1.0)
    return Use(*busy[..., 0])


def _lone(loads: Loads) -> Prediction:
    """One user, who asks again when the answer has ended, in every column of the grid: as plans of a lone user are
    loaded, without their cost."""
    found = loads.closed(np.ones((len(loads.engines), 1)), by_resource=False)
    return found.each(lambda values: np.array(np.broadcast_to(values, (len(loads.engines), len(LOADS)))))


def _parts(sharded: Sharded, device: Device, costs: CostParameters, overheads: Overheads) -> PartsOf:
    return lambda step: step_parts(sharded, step, device, costs, overheads)


def _alike(group: Group, requests: Requests, efficiency: CostParameters) -> Alike | None:
    """The candidates whose ranks work alike; None where each has requests of its own, or its kernels take as long as
    there are stages: all its memory is one, or each waits for the one before."""
    own = any(np.ndim(getattr(requests, f.name)) for f in fields(Requests))
    if own or isinstance(efficiency, DataflowModel | LocalModel):
        return None
    first, of = Alike.kinds(group.which, group.layouts())
    if len(first) == len(of):
        return None
    some = group.take(first)
    numbers = efficiency.take(some.which.reshape(-1, 1))
    return Alike(of, first, some.which, some.layouts(trailing=1), some.device(trailing=1), numbers)


def _transfer_s(graph: Graph, group: Group, requests: Requests, prompt: Layout, overheads: Overheads) -> Real:
    """Seconds to send the cache of a prompt from one worker to another, [N].

    Over the network between machines where one is known, else over the links between chips.
    """
    device, layout = group.device(), group.layouts()
    network = np.asarray(device.scaleout_bytes_per_s)
    port = np.where(np.isfinite(network), network, np.asarray(device.link_bytes_per_s))
    port = np.where(np.isfinite(port), port, 1.0)  # a lone chip without any link: no second worker either
    size = graph.kv_bytes(np.asarray(requests.prompt, dtype=float))
    return transfer_s(size, prompt.tp * prompt.pp, layout.tp * layout.pp, port, overheads.link_share)


def prompt_workers(prediction: Prediction, engines: Engines) -> Array:
    """Workers for prompts that keep up with one decode worker, X S / (busy x ranks x stages); [N, K]."""
    servers = (engines.ranks * engines.stages)[:, None]
    return np.asarray(prediction.requests_per_s * prediction.prefill_s / (BUSY * servers))


def _replaced(whole: Prediction, part: Prediction, rows: NDArray[np.intp]) -> Prediction:
    """Predictions with those of `part` in some rows."""

    def one(mine: Array | float, its: Array | float) -> Array:
        found = np.array(np.broadcast_to(mine, np.shape(whole.load)))
        found[rows] = its
        return found

    numbers = {f.name: one(getattr(whole, f.name), getattr(part, f.name)) for f in fields(whole) if f.name != "cost"}
    return Prediction(**numbers, cost=Cost())


def _scattered(values: Array, live: NDArray[np.bool_]) -> Array:
    """Rows of the live candidates in a table of all, the others NaN."""
    table = np.full((len(live), values.shape[-1]), np.nan)
    table[live] = values
    return table
