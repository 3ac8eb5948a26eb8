"""One machine of one user: cards and a processor that share a model, asked as one deployment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from chipwise.api.context import Context
from chipwise.api.placing import Given, Terms
from chipwise.catalog.chip import Chip
from chipwise.catalog.machine import Machine, parse_machine
from chipwise.catalog.runtime import get_runtime
from chipwise.catalog.runtime_spec import Runtime
from chipwise.catalog.software import all_software
from chipwise.errors import InfeasibleError, UsageError
from chipwise.parallel.placement import Offloaded
from chipwise.predict.passes import Requests
from chipwise.predict.service import Loads, Prediction
from chipwise.report.assemble import ReplicaSet, memory_record
from chipwise.report.plans import PlanRecord
from chipwise.report.records import PartRecord, PlacedRecord
from chipwise.search.assembly import Assembly, assemble
from chipwise.search.deployments import deployments
from chipwise.search.space import Deployment, Group
from chipwise.workload.graph import Graph
from chipwise.workload.step import decode, prefill
from chipwise.workload.workload import Workload


def assembled(
    context: Context,
    machine: Machine,
    terms: Terms,
    wanted: Offloaded | None = None,
    reads: Callable[[str], bool] = bool,
) -> Assembly:
    """The model of a context on a machine, under the runtime of the terms or the first that can share it so and `reads`
    its files.

    Raises `InfeasibleError` where none can or it does not fit, `UsageError` for a placement that cannot be.
    """
    graph = context.found.graph
    why = ""
    for runtime in (r for r in _sharing(terms.runtime) if reads(r.id)):
        cards, host, no = _deployed(graph, machine, runtime, terms)
        if no:
            why = why or no
            continue
        assert runtime.offload is not None
        asked = wanted.placement(graph, len(cards)) if wanted else None
        return assemble(graph, cards, host, runtime.offload, context.workload.context, asked)
    raise InfeasibleError(f"{machine.name}: no plan", why or "no runtime shares a model so")


def machine_asked(
    model: str, workload: Workload, given: Given, terms: Terms
) -> tuple[Context, PlanRecord, tuple[str, ...]]:
    """The model on a machine of several parts, and what that rests on. Raises the errors of `estimate`."""
    if given.layout.devices != 1 or given.replicas != 1 or given.rate_per_s is not None:
        hint = "the machine says how many of what, as in 2xrtx-3090+epyc-9654; one user, or --concurrency"
        raise UsageError(f"{given.chip}: a machine has no other layout", hint)
    machine = parse_machine(given.chip, given.host_memory, terms.part, field="chip")
    context = terms.context(model, workload, owned=True, longer=True)
    if context.tactics.apart or context.tactics.speculation is not None:
        raise UsageError("parts of a machine work on one token after the other", "leave the option out")
    assembly = assembled(context, machine, terms, given.offload)
    record = machine_record(context, machine, assembly, given.concurrency)
    return context, record, machine_words(machine, record)


def machine_words(machine: Machine, plan: PlanRecord) -> tuple[str, ...]:
    """What an answer about a machine rests on beside the figures of its parts."""
    several = len(plan.parts) > 1 or plan.layout.pp > 1
    said = ["the parts of the machine run their layers in sequence"] if several else []
    how, host = get_runtime(plan.runtime).offload, machine.host
    if how is not None and host is not None and any(p.chip == host.chip.id for p in plan.parts):
        if how.streams_from:
            said.append(
                f"prompts: from {how.streams_from} tokens of a pass on the card fetches the host's weights over its "
                f"bus for every {how.micro_batch} tokens, or the processor works on its part where that is faster"
            )
        else:
            said.append("the processor works on its part of prompts too")
        if host.assumed:
            said.append(f"the processor is taken to be {host.chip.id}; name yours: {machine.name}")
    return tuple(said)


def token_s(context: Context, assembly: Assembly) -> float:
    """Seconds of one token of a lone user by the passes of the parts alone: what tells fast from slow."""
    rates = [context.rates([part.deployment]) for part in assembly.parts]
    requests = Requests.of(context.workload, assembly.cards[0].deployment.policies)
    return sum(assembly.seconds(decode(1.0, float(np.mean(np.asarray(requests.context)))), rates).values())


def machine_record(context: Context, machine: Machine, assembly: Assembly, clients: float | None = None) -> PlanRecord:
    """The plan of a model on the parts of a machine: as for one chip, and what each part holds and takes."""
    main = assembly.cards[0]
    d = main.deployment
    context = replace(context, pricing=None)
    rates = [context.rates([part.deployment]) for part in assembly.parts]
    group = Group.single(d, main.layout)
    requests = Requests.of(context.workload, d.policies)
    room = min(float(np.min(np.asarray(part.account(requests.held).running(1.0)))) for part in assembly.parts)
    limit = np.array([min(room, float(d.policies.max_sequences))])
    users = 1.0 if context.workload.task == "local" else float(limit[0])
    alone = d.policies.prefill == "alone"

    def served(how: Assembly) -> tuple[Loads, Prediction]:
        engines = how.engines(requests, limit, rates, alone=alone)
        loads = context.loads(group, engines, rates[0][1].service)
        return loads, loads.closed(np.array([[users if clients is None else clients]]))

    own = replace(assembly, offload=replace(assembly.offload, streams_from=0))
    prompt = prefill(1.0, float(np.mean(np.asarray(requests.chunk))))
    kept = assembly.host is not None and assembly.offload.streams_from > 0
    kept = kept and sum(own.seconds(prompt, rates).values()) < sum(assembly.seconds(prompt, rates).values())
    loads, found = served(own if kept else assembly)
    at = float(np.mean(np.asarray(requests.context)))
    seconds = assembly.seconds(decode(1.0, at), rates)
    # a sum is as sure as what it is mostly made of
    longest = max(assembly.parts, key=lambda part: seconds.get(part.deployment.chip.id, 0.0)).deployment
    (record,) = context.records(group, loads, found, [ReplicaSet()], judged=longest)
    parts = part_records(assembly, context.workload.context, seconds)
    said = "; ".join(f"{p.chip}: {p.holds}" for p in parts)
    said = "; ".join(filter(None, (said, "prompts on the processor too" if kept else "")))
    return replace(
        record,
        chip=machine.name,
        chips=sum(n for _, n in machine.cards),
        note="; ".join(filter(None, (record.note, said))),
        parts=parts,
        placed=PlacedRecord(
            assembly.placement.cards,
            assembly.placement.host_layers,
            assembly.placement.host_experts,
            kept or (assembly.host is not None and not assembly.offload.streams_from),
        ),
    )


def part_records(
    assembly: Assembly, context: float, seconds: Mapping[str, float] | None = None
) -> tuple[PartRecord, ...]:
    """The parts that share a model, with their memory at a context and the `seconds` that each works on a token."""
    return tuple(
        PartRecord(
            chip=part.deployment.chip.id,
            count=max(part.count // part.deployment.chip.devices_per_package, 1),
            holds=_holds(assembly, i),
            memory=memory_record(part.account(context)),
            decode_s=None if seconds is None else seconds.get(part.deployment.chip.id, 0.0),
        )
        for i, part in enumerate(assembly.parts)
    )


def _holds(assembly: Assembly, index: int) -> str:
    """What a part holds, in words."""
    p, graph = assembly.placement, assembly.parts[index].graph
    routed = sum(repeat for repeat, block in graph.runs if any(n.name == "experts" for n in block.nodes))
    if assembly.host is not None and index == len(assembly.cards):
        apart = p.host_experts > p.host_layers
        if not p.host_layers:
            return f"experts of {routed} layers"
        return f"{p.host_layers} layers" + (f", experts of {routed}" if apart else "")
    dealt = [n for n in p.cards if n]
    return f"{dealt[index]} layers" + (
        f", {dealt[index] - routed} of them without experts" if p.host_experts > p.host_layers else ""
    )


def _sharing(runtime: str | None) -> Sequence[Runtime]:
    """Runtimes that share a model between parts of a machine. Raises `UsageError` for one that does not."""
    if runtime is None:
        return [r for r in all_software(Runtime).values() if r.offload is not None and r.unasked]
    named = get_runtime(runtime)
    if named.offload is None:
        able = [r.id for r in all_software(Runtime).values() if r.offload is not None]
        what = f"{named.name} keeps no part of a model on the host and joins no unlike cards"
        raise UsageError(what, f"--runtime {' or '.join(able)}", field="runtime")
    return [named]


def _apart(chip: Chip, domain: float) -> str:
    """Why more cards than a domain has devices for are not in one machine."""
    chips = domain / chip.devices_per_package
    return f"{chip.id} {f'joins {chips:g}' if chips > 1 else 'is joined to no other'} in a machine"


def _deployed(
    graph: Graph, machine: Machine, runtime: Runtime, terms: Terms
) -> tuple[list[tuple[Deployment, int]], tuple[Deployment, int] | None, str]:
    """Each part under a runtime, or why it cannot be."""
    assert runtime.offload is not None
    if len(machine.cards) > 1 and not runtime.offload.unequal:
        return [], None, f"{runtime.name} joins no cards of several kinds"

    def on(chip: Chip, *, local: bool = True) -> tuple[Deployment | None, str]:
        offered, refused = deployments(graph.model, (chip,), runtime.id, local=local, policy=terms.policy)
        return (offered[0], "") if offered else (None, f"{chip.id}: {refused[0][2]}")

    cards: list[tuple[Deployment, int]] = []
    for chip, count in machine.cards:
        # software sees several devices in some cards
        devices = count * chip.devices_per_package
        # more than a desk holds are in a box or a server
        for local in (True, False):
            found, no = on(terms.card(chip), local=local)
            domain = 0.0 if found is None else float(np.asarray(found.device.domain))
            if devices <= domain or (found is None and no):
                break
        if found is None:
            return [], None, no
        if devices > domain:
            return [], None, _apart(chip, domain)
        cards.append((found, devices))
    if machine.host is None:
        return cards, None, ""
    host, no = on(machine.host.chip)
    return cards, None if host is None else (host, machine.host.sockets), no
