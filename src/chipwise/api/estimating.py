"""`estimate`: one plan in full."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from chipwise.api.context import Context
from chipwise.api.desk import machine_asked
from chipwise.api.nearest import beside_published
from chipwise.api.placing import Given, Terms, placed
from chipwise.api.probed import measured_words
from chipwise.api.remedies import down, works
from chipwise.calibrate.fit_serving import harnessed, knows_client
from chipwise.catalog.chip import Chip
from chipwise.catalog.runtime import kernel_era
from chipwise.catalog.runtime_spec import Runtime
from chipwise.catalog.snapshot import per_snapshot
from chipwise.errors import CommandText, InfeasibleError, Sentence, UsageError
from chipwise.parallel.layout import Layout, Reason, check_layout, illegal, spans
from chipwise.parallel.memory import MemoryAccount
from chipwise.predict.parts import PARTS
from chipwise.predict.passes import Requests
from chipwise.predict.service import Loads, Prediction, Service
from chipwise.report.assemble import ReplicaSet, model_record, rank_plans, workload_record
from chipwise.report.plans import PlanRecord, PlanReport
from chipwise.search.evaluate import ENDLESS, Pools, engines_of, in_flight
from chipwise.search.evaluate import prompt_workers as prompt_workers_for
from chipwise.search.memory import memory_of
from chipwise.search.space import Deployment, Group, filled
from chipwise.units import Array, Real, format_seconds
from chipwise.values import dataclass
from chipwise.workload.graph import Graph
from chipwise.workload.workload import Workload


@dataclass(frozen=True)
class AskedLoad:
    """One deployment and its load, read and found legal; the question behind `estimate` and behind every measured row.

    `concurrency` clients or `rate_per_s` requests are of all `replicas`; neither: as many as fit.
    """

    context: Context
    deployment: Deployment
    layout: Layout
    replicas: int = 1
    concurrency: float | None = None
    rate_per_s: float | None = None

    @property
    def category(self) -> tuple[object, ...]:
        """What deployments that are priced together share."""
        d, t = self.deployment, self.context.tactics
        software = (
            d.runtime.id,
            kernel_era(t.software),
            d.policies,
            d.apart,
            t.prefill is None,
            d.drafts,
            d.speculation,
        )
        return id(self.context.found.graph), d.device.family, *software, self.context.workload.task == "local"

    @property
    def in_step(self) -> bool:
        """Whether requests may start together and stay so: clients who send such of equal lengths."""
        equal = self.context.workload.served.equal and self.context.tactics.harness.alike
        return self.concurrency is not None and equal

    @property
    def requests(self) -> Requests:
        """What its mean request asks of an engine."""
        return Requests.of(self.context.workload, self.deployment.policies)

    @property
    def name(self) -> str:
        """Model, chips and layout in words."""
        chips = float(self.layout.devices) / self.deployment.chip.devices_per_package
        model = self.context.found.graph.model.name
        return f"{model} on {chips:g} x {self.deployment.chip.id}, {self.layout.label()}"


def asked(model: str, workload: Workload, given: Given, terms: Terms | None = None) -> AskedLoad:
    """The question read and checked; the arguments and errors are those of `estimate`."""
    layout, count, replicas = given.layout, given.count, given.replicas
    together = float(np.asarray(layout.devices))
    context, deployment = placed(model, workload, given.chip, terms, together=together)
    found, hardware = context.found, deployment.chip
    if deployment.runtime.offload is not None and not deployment.runtime.offload.alone:
        what = f"{deployment.runtime.name} shares a model between cards and a processor"
        raise UsageError(what, f"name both, as in --chip {hardware.id}+epyc-9654", field="chip")
    graph, name = found.graph, found.graph.model.name
    if float(layout.devices) == 1.0:  # a chip of several devices is taken whole
        layout = replace(layout, tp=float(hardware.devices_per_package))
    chips = float(layout.devices) / hardware.devices_per_package
    if float(layout.dp) > 1 and not graph.routed:
        # without experts to share, attention replicas are replicas of the whole
        replicas, layout = int(replicas * float(layout.dp)), replace(layout, dp=1.0)
    reason = check_layout(graph, layout, **filled(deployment.runtime))
    if reason is not Reason.OK:
        hint = f"{reason.value}{_nearby(graph, layout, reason)}"
        raise UsageError(f"{layout.label()} is not legal for {name}", hint)
    _launchable(layout, deployment.runtime)
    if count is not None and count != chips:
        hint = f"as in --tp {count * hardware.devices_per_package}, or tp x pp x dp of as many"
        raise UsageError(f"{layout.label()} takes {chips:g} x {hardware.id}, not {count}", hint)
    if chips % 1:
        hint = f"as in --tp {hardware.devices_per_package}: the number of devices that software sees in one"
        raise UsageError(f"{layout.label()} takes {chips:g} x {hardware.id}, which is not a whole number", hint)
    one = AskedLoad(context, deployment, layout, replicas, given.concurrency, given.rate_per_s)
    memory = memory_of(graph, Group.single(deployment, layout), one.requests)
    _check(memory, deployment, layout, one.name, f"chipwise fit {shlex.quote(model)} --chip {given.chip}")
    if given.concurrency is None and given.rate_per_s is None and workload.task == "local":
        one = replace(one, concurrency=1.0)  # one user; serving and batches fill the machine
    return one


def loads_of(asks: Sequence[AskedLoad], *, by_part: bool = False) -> tuple[Group, Loads]:
    """The engines of questions of one category, ready to be loaded; tables `by_part` for a fit, without its factors."""
    first = asks[0].context
    deployments = tuple(a.deployment for a in asks)
    group = Group(deployments, np.arange(len(asks)), Layout.stack(a.layout for a in asks))
    requests = Requests.stack([a.requests for a in asks])
    costs, overheads = first.rates(deployments)
    if any(a.context.tactics != first.tactics for a in asks):
        overheads = replace(overheads, factors=_paced(asks, overheads.factors))
    memory = memory_of(first.found.graph, group, requests)
    least = in_flight(first.workload, group.layouts(trailing=1).pp)
    sequences = np.broadcast_to(memory.running(least), (len(asks), 1))[:, 0]
    limit = np.minimum(sequences, deployments[0].policies.max_sequences)
    replicas = np.array([float(a.replicas) for a in asks])
    prompts = [a.context.tactics.prefill for a in asks]
    workers = np.array([float(x[1]) for x in prompts if x])
    pools = Pools(workers, replicas, Layout.stack(x[0] for x in prompts if x)) if len(workers) else None
    local = first.workload.task == "local"
    engines = engines_of(
        first.found.graph, group, requests, limit, costs, overheads, pools=pools, local=local, by_part=by_part
    )
    engines = replace(engines, replicas=replicas)
    services = [
        harnessed(
            overheads.service,
            a.context.tactics.harness,
            a.deployment.runtime.id,
            first.numbers,
            apart=a.deployment.apart,
        )
        for a in asks
    ]
    return group, engines.under(Service.stack(services))


class _Unloaded:
    """A question but for its load, as part of a cache key: chips and tables in it are compared, not hashed."""

    def __init__(self, one: AskedLoad) -> None:
        self.one = replace(one, concurrency=None, rate_per_s=None)

    def __hash__(self) -> int:
        return hash((id(self.one.context.found.graph), self.one.deployment.chip.id, self.one.replicas))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unloaded) and other.one == self.one


MOST_ENGINES = 4
"""Questions whose engines are kept for those that differ in their load alone."""


@partial(per_snapshot, most=MOST_ENGINES)
def _engines_of(asked: _Unloaded) -> tuple[Group, Loads]:
    """The engines of a question, ready to be loaded."""
    return loads_of([asked.one])


def _paced(asks: Sequence[AskedLoad], factors: Mapping[str, Real]) -> dict[str, Real]:
    """Factors of parts of passes of the first question for all: each at the pace of its own software."""
    first = asks[0].context
    own, its = (
        [_factors(a, x) for a, x in zip(asks, contexts, strict=True)]
        for contexts in ([a.context for a in asks], [first] * len(asks))
    )
    paces = {part: np.array([o[part] / i[part] for o, i in zip(own, its, strict=True)]) for part in PARTS}
    return {part: factors.get(part, 1.0) * pace for part, pace in paces.items()}


def _factors(one: AskedLoad, context: Context) -> dict[str, float]:
    """Parts of passes of a deployment under the level and age of the software of a context."""
    d = one.deployment
    found = context.tactics.factors(context.numbers, d.runtime, [d.chip])
    return {part: float(value[0]) for part, value in found.items()}


def served(asks: Sequence[AskedLoad], loads: Loads) -> Prediction:
    """Questions of one category at the load that each names, [N, 1]."""
    clients = np.array([[np.nan if a.concurrency is None else a.concurrency] for a in asks])
    rates = np.array([[np.nan if a.rate_per_s is None else a.rate_per_s] for a in asks])
    if np.isfinite(clients).all():
        return loads.closed(clients)
    if np.isfinite(rates).all():
        return loads.open(rates)
    if np.isnan(clients).all() and np.isnan(rates).all():
        return loads.full()
    raise ValueError("questions about different kinds of traffic are answered apart")


def alike(asks: Sequence[AskedLoad]) -> Iterator[list[int]]:
    """Places of questions that are priced together."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, one in enumerate(asks):
        groups.setdefault(one.category, []).append(place)
    yield from groups.values()


def parted(one: AskedLoad, layout: Layout) -> AskedLoad:
    """The same with workers for prompts where these have any: those that were named, else as many as keep up, each cut
    as `layout` says."""
    context = one.context
    if context.tactics.prefill is not None or not one.deployment.apart:
        return one
    _, loads = _engines_of(_Unloaded(one))
    beside = prompt_workers_for(loads.full(), replace(loads.engines, replicas=np.ones(1)))
    workers = int(np.ceil(beside[0, 0] * (1.0 - 1e-9)))
    return replace(one, context=replace(context, tactics=replace(context.tactics, prefill=(layout, workers))))


def estimate(
    model: str, workload: Workload, given: Given, terms: Terms | None = None, *, evidence: bool = True
) -> PlanReport:
    """One deployment and its load: clients that each send their next request when the last has ended, or requests that
    arrive at random, over all replicas (default: as many as fit, of a local user one).

    With `evidence` the nearest published result stands beside the answer and moves nothing in it. Raises `UsageError`
    for an illegal layout and `InfeasibleError` where it does not fit or cannot carry the load, saying by how much.
    """
    terms = terms or Terms()
    context, record, said = (machine_asked if given.parted else _estimated)(model, workload, given, terms)
    chips = [] if given.parted else [terms.chip(given.chip)]
    described = model_record(context.found.graph, context.found.config)
    plans = rank_plans([record], context.workload)
    if evidence and not given.parted:
        plans = beside_published(plans, described, context.workload, context.today)
    return PlanReport(
        model=described,
        workload=replace(workload_record(context.workload), rate_per_s=given.rate_per_s),
        plans=plans,
        refused=(),
        considered=1,
        rejected={},
        assumptions=(*context.assumptions([record], chips), *said, *terms.said),
        owned=given.parted,
    )


def _estimated(
    model: str, workload: Workload, given: Given, terms: Terms
) -> tuple[Context, PlanRecord, tuple[str, ...]]:
    """The model on a chip at its load, and what that rests on. Raises the errors of `estimate`."""
    one = asked(model, workload, given, terms)
    context, d = one.context, one.deployment
    one = parted(one, given.layout)
    group, loads = _engines_of(_Unloaded(one))
    found = _by_its_client(one, served([one], loads))
    _carried(one, found, loads)
    prompts = one.context.tactics.prefill
    prompt_workers = 0 if prompts is None else prompts[1]
    fleet = ReplicaSet(
        one.replicas,
        prompt_workers=prompt_workers,
        largest_per_s=0.0 if one.rate_per_s is None else _sustained(loads) / one.replicas,
        prompt_layout=None if prompts is None else prompts[0],
        harnessed=knows_client(context.numbers, context.tactics.harness, apart=d.apart),
        driven=one.rate_per_s is not None or one.concurrency is not None,
        in_step=one.in_step,
    )
    (record,) = context.records(group, loads, found, [fleet], rate_per_s=one.rate_per_s)
    return context, record, (*_devices(d.chip), *_in_step(fleet, found), *measured_words(one.deployment.chip))


def _by_its_client(one: AskedLoad, found: Prediction) -> Prediction:
    """The same as a benchmark client sees it that starts all its requests at once, all of one length: they come back
    together in every round. Clients whose runs were fitted have numbers of their own."""
    harness = one.context.tactics.harness
    known = knows_client(one.context.numbers, harness, apart=one.deployment.apart)
    if not harness.id or harness.start != "burst" or known or not one.in_step:
        return found
    return replace(found, ttft_s=found.in_step_s)


def _devices(chip: Chip) -> Iterator[str]:
    """How degrees count on a chip that software sees as several devices."""
    if chip.devices_per_package > 1:
        yield f"software sees {chip.devices_per_package} devices in one {chip.id}: tp, pp and dp count those"


TOLD = 1.25
"""ratio of the time to the first token of requests in step to that of others from which on it is told. Chosen: above
what rounds."""


def _in_step(fleet: ReplicaSet, found: Prediction) -> Iterator[str]:
    """What the upper end of TTFT holds where requests may start together."""
    in_step, apart = float(found.in_step_s[0, 0]), float(found.ttft_s[0, 0])
    if fleet.in_step and in_step > TOLD * apart:
        yield (
            "clients' requests drift apart; those of one length that start together, as benchmarks send them, stay "
            f"together: TTFT {format_seconds(in_step)} in the mean, within its interval (--cv 0.5: lengths differ; "
            "--harness: as a benchmark client sees it; chipwise simulate --requests 1000: a finite run)"
        )


def _sustained(loads: Loads) -> float:
    """The most requests per second that all replicas sustain, without targets."""
    return float(loads.open(np.full((1, 1), ENDLESS), by_resource=False).requests_per_s[0, 0])


def _carried(one: AskedLoad, found: Prediction, loads: Loads) -> None:
    """Raises `InfeasibleError` where the load is more than the deployment takes. A benchmark client may send more: its
    requests wait outside."""
    engines, most = loads.engines, one.deployment.policies.max_sequences
    rate = one.rate_per_s
    if rate is not None:
        carried = float(found.requests_per_s[0, 0])
        if carried < rate * (1.0 - 1e-6):
            what = f"{one.name}: at most {carried:.3g} requests/s are sustained, {rate:g} were asked"
            enough = math.ceil(float(engines.replicas[0]) * rate / carried * (1.0 + 1e-6))
            raise InfeasibleError(what, works([f"--rate {down(carried)}/s", f"--replicas {enough}"]))
        return
    room = float((engines.limit * engines.ranks * engines.replicas)[0])
    asked_ = one.concurrency
    # the mean in flight of a full plan counts, in part, a request that is still in its prompt
    if asked_ is None or asked_ < room + 1.0 or one.context.tactics.harness.id:
        return
    what = f"{asked_:g} requests in flight are more than the {room:.0f} that {one.name} holds"
    if float(engines.limit[0]) >= most:
        more = f"--policy max_sequences={int(np.ceil(asked_))}"
        hint = f"{one.deployment.runtime.name} admits {most} at a time: {more} asks for more"
    else:
        hint = "a lower --concurrency, more chips, shorter lengths or a smaller format"
    raise InfeasibleError(what, hint)


def _launchable(layout: Layout, runtime: Runtime) -> None:
    """Raises `UsageError` where a runtime cannot spread one replica so."""
    for degree, other, cut in (("tp", "pp", "tensors"), ("pp", "tp", "layers into stages")):
        if float(layout.part(degree)) > 1 and degree not in runtime.features:
            hint = f"as in --{other} {layout.devices:g}" if other in runtime.features else "one device each"
            raise UsageError(f"{runtime.name} does not cut {cut} between devices", hint)


def _check(memory: MemoryAccount, d: Deployment, layout: Layout, what: str, next_step: str) -> None:
    """Raises what stands in the way of one deployment: memory, an unknown figure, the scale-up domain."""
    sized = np.isfinite(float(np.asarray(d.device.memory_bytes)))
    if not sized or not np.isfinite(float(np.asarray(d.device.memory_bytes_per_s))):
        raise UsageError(what, Reason.NO_MEMORY_FIGURE.value)
    domain = float(np.asarray(d.device.domain))
    networked = np.isfinite(float(np.asarray(d.device.scaleout_bytes_per_s)))
    wide = "wide_ep" in d.runtime.features
    if not spans(layout, domain, networked=networked, wide=wide):
        joined = f"{d.chip.id} joins {domain:g}" if domain > 1 else f"{d.chip.id} is joined to no other"
        raise UsageError(
            f"{what}: the layout leaves the scale-up domain, {joined}",
            f"tp x dp at most {domain:g}, or pipeline stages (--pp) over a network"
            + (", or whole experts over it (--dp 16 --ep 16)" if wide and float(layout.dp) > 1 else "")
            if domain > 1
            else "one device",
        )
    # a pipeline needs a sequence for each of its micro-batches
    missing = float(np.max(memory.short_bytes(float(layout.pp))))
    if missing > 0:
        raise InfeasibleError(
            f"{what}: {missing / 1e9:,.1f} GB short per device",
            Sentence(CommandText(next_step.removeprefix("chipwise "), "shows what would help")),
            reasons={Reason.MEMORY.value: 1},
            see="fit",
        )


def _nearby(graph: Graph, layout: Layout, reason: Reason) -> str:
    """The legal degrees on either side of the one that breaks a rule, the others kept; empty where there are none."""
    name = reason.name[:2].lower()
    if name not in ("tp", "pp", "ep"):
        return ""
    value = int(getattr(layout, name))
    tried: Array = np.arange(1.0, min(4 * value, 4096) + 1.0)
    legal = tried[illegal(graph, replace(layout, **{name: tried})) == 0]
    near = [int(v) for v in (*legal[legal < value][-1:], *legal[legal > value][:1])]
    return f"; nearest: {name} {' or '.join(map(str, near))}" if near else ""
