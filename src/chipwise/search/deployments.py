"""Which chips a model may run on, and under which software."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import filterfalse

import numpy as np

from chipwise.catalog.chip import Chip
from chipwise.catalog.machine import DESKS
from chipwise.catalog.offer import MARKETPLACES, offers_of, rare
from chipwise.catalog.preferences import preferences
from chipwise.catalog.price import OwnCosts, Rent
from chipwise.catalog.runtime import get_runtime, override, runtimes_for
from chipwise.catalog.runtime_spec import Runtime
from chipwise.catalog.snapshot import per_snapshot
from chipwise.catalog.software import all_software
from chipwise.catalog.system import load_systems, systems_for
from chipwise.catalog.system_spec import System
from chipwise.cost.device import Device
from chipwise.parallel.layout import Reason
from chipwise.search.space import Deployment
from chipwise.workload.formats import Format
from chipwise.workload.gguf import GGUF
from chipwise.workload.model import Model, MoE

HOST_SHARE = preferences().host_share  # of the host's memory, beside the system, its caches and the data
# Families whose mechanics the cost room holds. Others would be sized by `fit`, not timed.
TIMED = frozenset({"simt", "systolic", "cpu", "dataflow"})

NotOffered = tuple[Chip, Reason, str]


def deployments(
    model: Model,
    chips: Iterable[Chip],
    runtime: str | None = None,
    *,
    timed: bool = True,
    local: bool = False,
    policy: Mapping[str, str] | None = None,
    adapter_bytes: float = 0.0,
    every: bool = False,
    together: float = 1.0,
) -> tuple[tuple[Deployment, ...], tuple[NotOffered, ...]]:
    """A deployment for every chip that some runtime can launch the model on, and the reason for each other.

    Without `timed` chips need no cost model, and a chip whose runtimes cannot launch the model is kept with a
    caveat: its memory can be sized all the same, in a machine with a display where there is one. With `every` there is
    a deployment for each runtime that can, in order of preference. `local` puts chips into machines with a display.
    In one with at least `together` devices, where there is one.
    `policy` replaces figures of the runtime by name. Raises `UnknownNameError` for an unknown runtime or policy,
    `UsageError` for a value that is none.
    """
    wanted = get_runtime(runtime) if runtime else None
    desk_file = local and model.precision.name in GGUF
    found: list[Deployment] = []
    refused: list[NotOffered] = []
    for chip in chips:
        able, why = runtimes_that(model, chip, wanted)
        if desk_file:
            # at a desk a file is run by what it was made for; others call their reading of it experimental (vLLM)
            able = list(filter(_made_for, able)) or able
        launched = bool(able)
        if not timed:
            able = able or [(r, why) for r in runtimes_for(chip)[:1]]
        if no := _refused(chip, able, why, timed=timed):
            refused.append(no)
            continue
        system = machine_for(chip, local=local or not timed, together=together)
        device = Device.of(chip, reserved(chip, system), system)
        for chosen, said in able if every else able[:1]:
            policies = override(chosen.policies_on(chip), policy or {}, chosen.backends_on(chip))
            words = ("", said) if launched else (said, "")
            found.append(Deployment(chip, device, chosen, policies, *words, adapter_bytes, system))
    return tuple(found), tuple(refused)


def _made_for(able: tuple[Runtime, str]) -> bool:
    """Whether a runtime, which has a remark, is made for files of llama.cpp."""
    return "gguf" in able[0].made_for


def _refused(chip: Chip, able: Sequence[tuple[Runtime, str]], why: str, *, timed: bool) -> NotOffered | None:
    """Why a chip is left out: nothing runs there (`why`), or, to be timed, no formula prices it or its rates are
    unknown."""
    if timed and chip.family not in TIMED:
        return chip, Reason.NO_COST_MODEL, Reason.NO_COST_MODEL.value
    if not able:
        return chip, Reason.NO_RUNTIME, why
    if timed and chip.family == "simt" and not _counts(chip):
        return chip, Reason.NO_COST_MODEL, "no rate of its arithmetic is published"
    return None


def _counts(chip: Chip) -> bool:
    """Whether a rate of its arithmetic is known, of matrix units or of vector lanes."""
    device = Device.of(chip)
    return any(np.isfinite(float(rate)) for rate in (device.vector_flops_per_s, *device.matrix.values()))


def rented(d: Deployment) -> Deployment:
    """The same in the machine that plans rent, where it was put into one with a display."""
    system = machine_for(d.chip)
    return replace(d, device=Device.of(d.chip, reserved(d.chip, system), system), system=system)


def machine_for(chip: Chip, *, local: bool = False, together: float = 1.0) -> System | None:
    """The machine that plans put a chip into: the largest one to rent, or for a local user to buy; where those join
    fewer than `together` devices, any that joins more.

    None for a chip that no bundled system holds.
    """
    machines = load_systems().holding(chip.software_id)
    alike = [s for s in machines if (s.form in DESKS) == local]
    way = "buy" if local and alike else "rent"
    usual = [s for s in alike or machines if way in s.offered] or alike or machines
    if together > 1.0:
        joined = together / chip.devices_per_package
        usual = _large(usual, joined) or _large(machines, joined) or usual
    return max(usual, key=_reach, default=None)


def _large(machines: Iterable[System], chips: float) -> list[System]:
    """Those that join so many chips."""
    return [s for s in machines if s.tiers and _reach(s)[0] >= chips]


def _reach(system: System) -> tuple[int, float]:
    """Chips that a machine joins, and how fast."""
    outer = system.tiers[-1] if system.tiers else None
    return (outer.chips, outer.bytes_per_s or 0.0) if outer else (1, 0.0)


def few_of(chips: Iterable[Chip], basis: Callable[[str], Rent | OwnCosts | None]) -> frozenset[str]:
    """Those of chips on the market of which a plan takes no more than `FEW`: cards made for desks, which no server for
    rent holds, and what is rarely for rent (`catalog.offer.rare`). `basis` says how a chip is paid."""

    def at_home(chip: str) -> bool:
        forms = {s.form for s in systems_for(chip) if s.form in DESKS or "rent" in s.offered}
        return bool(forms) and forms <= DESKS

    def scarce(chip: str) -> bool:
        paid = basis(chip)
        if not isinstance(paid, Rent):
            return False
        offered = {quote.provider for quote in paid.quotes}
        return offered <= MARKETPLACES or (rare(chip) and offered <= {o.provider for o in offers_of(chip)})

    return frozenset(c.id for c in chips if at_home(c.id) or scarce(c.id))


def reserved(chip: Chip, system: System | None) -> float:
    """What display and operating system keep of the memory, in machines that have them."""
    if chip.system_bytes is not None:
        return chip.system_bytes
    memory = chip.memory.found_bytes
    return system.reserved_bytes(memory) if system else 0.0


def runtime_for(model: Model, chip: Chip, wanted: Runtime | None = None) -> tuple[Runtime | None, str]:
    """The first runtime that supports every weight class of the model on a chip, or why none does.

    With a runtime the text is a remark: that 16-bit numbers have to be cast to fp16, where there is no bf16. Where the
    one that is `wanted` lists no such chip, that which its users call by its name there is meant.
    """
    able, why = runtimes_that(model, chip, wanted)
    return able[0] if able else (None, why)


def runtimes_that(model: Model, chip: Chip, wanted: Runtime | None = None) -> tuple[list[tuple[Runtime, str]], str]:
    """Runtimes that support every weight class of the model on a chip, best default first, each with a remark; or
    why none does. Of files of llama.cpp those that are made for them, where there are any."""
    options = _meant(chip, wanted)
    why = chip.unavailable or "no runtime is known for this chip"
    able: dict[str, tuple[Runtime, str]] = {}
    for half, remark in (("bf16", ""), ("fp16", "bf16 is cast to fp16, whose range is smaller")):
        for runtime in options:
            if runtime.id in able:
                continue
            no = _objection(model, chip, runtime, half)
            if not no:
                words = filter(None, (remark, _widened(model, chip, runtime, half)))
                able.setdefault(runtime.id, (runtime, "; ".join(words)))
            why = no if no and half == "bf16" else why
    if wanted and not able and wanted.rule(chip) is None:
        why += f"; {_instead(chip)}"
    found = list(able.values())
    return (_readers(found) if model.precision.name in GGUF else found), why


def _meant(chip: Chip, wanted: Runtime | None) -> tuple[Runtime, ...]:
    """All runtimes of a chip, or the one that is `wanted`; where that lists no such chip what users call so there."""
    if wanted is None:
        return runtimes_for(chip)
    called = tuple(r for r in runtimes_for(chip) if r.called == wanted.id)
    return called if called and wanted.rule(chip) is None else (wanted,)


def _readers(able: list[tuple[Runtime, str]]) -> list[tuple[Runtime, str]]:
    """The same with their remarks on files of llama.cpp, first those that are made for them. Others read these files by
    plugins and to save memory (docs.vllm.ai, features/quantization/gguf)."""
    foreign = "reads GGUF files, which it was not made for"
    own = list(filter(_made_for, able))
    return [*own, *((r, f"{said}; {foreign}" if said else foreign) for r, said in filterfalse(_made_for, able))]


def _instead(chip: Chip) -> str:
    """Software that a chip has, in words."""
    others = ", ".join(r.id for r in runtimes_for(chip))
    return f"software that does: {others}" if others else chip.unavailable or "no runtime that is known does"


def _widened(model: Model, chip: Chip, runtime: Runtime, half: str) -> str:
    """That weights of 8 bits save memory there and no operations; "" where they are multiplied as they are."""
    p = model.precision
    for cls in ("attention", "ffn", "expert"):
        weight, act = p.weight(cls), p.activation(cls)
        if weight.bits == act.bits == 8.0 and weight.name != "int8":
            answer = runtime.supports(chip, weight.name, act.name)
            if answer.state == "weights_only":
                return f"{weight.name} runs as weight-only on {chip.id}: multiplied in {answer.compute or half}"
    return ""


@per_snapshot
def _kept_by_one() -> frozenset[str]:
    """Precisions of files that one runtime alone has: those of MLX, the block formats of Tenstorrent."""
    return frozenset(s for r in all_software(Runtime).values() for s in r.stores.values()) - frozenset(GGUF)


def _objection(model: Model, chip: Chip, runtime: Runtime, half: str) -> str:
    def name(found: Format) -> str:
        return half if found.name == "bf16" else found.name

    p = model.precision
    if p.name in _kept_by_one() - set(runtime.stores.values()):
        return f"{runtime.name} does not read {p.name} weights"
    if chip.family == "dataflow" and model.architecture not in runtime.architectures:
        # compiled model by model: what is not listed does not run
        return f"{runtime.name} is not known to run {model.architecture} models"
    rule, stored = runtime.rule(chip), p.weight("expert").name
    if rule is not None and stored in rule.no_experts and any(isinstance(x.ffn, MoE) for _, x in model.runs):
        return f"{runtime.name} has no kernel that multiplies experts in {stored} on {chip.id}"
    # a 16-bit cache follows the runtime, which may keep it in fp16 whatever the weights are in
    caches = {name(p.kv), "fp16"} if p.kv.bits == 16 else {p.kv.name}
    pairs = ((name(p.weight(cls)), name(p.activation(cls))) for cls in ("attention", "ffn", "expert"))
    for weight, activation in dict.fromkeys(pairs):
        first = ""
        for kv in sorted(caches):
            answer = runtime.supports(chip, weight, activation, kv, model.architecture)
            if answer.state != "no":
                break
            first = first or answer.reason
        else:
            return first
    return ""
