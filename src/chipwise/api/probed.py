"""A machine that was probed as a chip, `measured` or its id: operators that were timed take their times, all else the
catalogue's formulas at the rates that were reached."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import get_chip
from chipwise.cost.cost import Cost
from chipwise.cost.device import Device
from chipwise.cost.price import price
from chipwise.cost.probed import probed_time
from chipwise.errors import CommandText, Sentence, UnknownNameError, UsageError
from chipwise.evidence.store import Store
from chipwise.measure.timed import TimedMachine, machine_of
from chipwise.units import scalar
from chipwise.workload.formats import FORMATS
from chipwise.workload.op import Op, gemm, pointwise

MEASURED = "measured"
"""The machine that was probed last, as a chip."""
LARGE = (2048.0, 2**28)
"""Rows, columns and depth of the product, and elements of the copy, whose times stand for what a machine sustains."""


def is_measured(name: str) -> bool:
    """Whether a name of a chip means a machine that was probed."""
    return name == MEASURED or name.startswith("probe-")


def kept_machine(name: str = "") -> tuple[str, TimedMachine]:
    """The id and the machine of the user's store that a name begins; without one the last that was measured. A probe
    that did not end is that only where none of its place did, and it says enough for rates.

    Raises `UsageError` where none was measured, `UnknownNameError` for another name.
    """
    known = Store().probes()
    if known and name not in ("", MEASURED):
        found = [key for key in known if key.startswith(name)]
        if len(found) != 1:
            raise UnknownNameError("machine", name, known, f"one of {', '.join(known)}")
        return found[0], machine_of(known[found[0]])
    machines = [(key, machine_of(text)) for key, text in known.items()]
    ended = {m.place for _, m in machines if m.finished}
    for key, machine in reversed(machines):
        if machine.finished or (machine.place not in ended and _rated(machine)):
            return key, machine
    raise UsageError("no machine was measured yet", Sentence(CommandText("measure probe --budget 60s")))


def _rated(machine: TimedMachine) -> bool:
    """Whether enough was timed for a rate."""
    try:
        return bool(machine.numbers.rates)
    except UsageError:
        return False


def measured_chip(name: str) -> Chip:
    """A machine that was probed as a chip: that of the catalogue which it is like, with rates and bandwidth times

        what a large product (copy) was measured to sustain / what the formulas say that the catalogue's chip sustains,

    of a type that was not timed the mean of those that were. So runtimes that were not measured take what the machine
    reaches: cores that a virtual machine has not, slower memory, a power limit. Raises `UsageError` where it is like no
    chip of the catalogue.
    """
    key, machine = kept_machine(name)
    if not machine.like:
        hint = Sentence(CommandText("doctor --devices"), " says why; chips of your own: --chip FILE.toml")
        raise UsageError(f"{key} is like no chip of the catalogue", hint, field="chip")
    base = get_chip(machine.like)
    numbers = shipped_parameters().cost(base.family, "any", [base], alone=True).take(np.zeros((), dtype=np.intp))
    device, (side, elements) = Device.of(base), LARGE

    def reached(op: Op, seconds: float) -> float:
        return scalar(price(op, device, numbers).total_s) / seconds

    copy = pointwise(elements, 2.0, name="copy")
    memory = reached(copy, scalar(copy.bytes) / machine.numbers.stream_bytes_per_s)
    products = {form: gemm(side, side, side, FORMATS[form], FORMATS[form]) for form in ("fp32", "bf16", "fp16")}
    units = {form: reached(op, machine.seconds(op)) for form, op in products.items() if machine.count(op)}
    other = float(np.exp(np.mean(np.log(list(units.values()))))) if units else memory
    tier = base.memory
    size: dict[str, Any] = (
        {"label_bytes": machine.memory_bytes, "usable_bytes": machine.memory_bytes} if machine.memory_bytes else {}
    )
    first = replace(tier, bytes_per_s=(tier.bytes_per_s or 0.0) * memory, **size)
    rates = {form: rate * units.get(form, other) for form, rate in base.matrix.items()}
    threads = f", {machine.threads} threads" if machine.threads > 1 else ""
    return replace(
        base,
        id=key,
        name=f"{base.name} as measured ({machine.software}{threads}, {machine.date})",
        like=base.software_id,
        tiers=(first, *base.tiers[1:]),
        matrix=rates,
        vector={form: rate * units.get(form, other) for form, rate in base.vector.items()},
        figures={**base.figures, MEASURED: f"{other:.2g}x the products and {memory:.2g}x the bandwidth of {base.id}"},
    )


def measured_words(chip: Chip) -> tuple[str, ...]:
    """What an answer about a machine that was probed rests on, as a line of assumptions; none for other chips."""
    return (f"{chip.id}: {chip.name}, {chip.figures[MEASURED]}",) if is_measured(chip.id) else ()


def measured_time(op: Op, chip: Chip) -> tuple[Cost, float, str] | None:
    """Seconds of an operator on a machine that was probed, one standard deviation of their logarithm, and what was
    timed, in words; None for other chips, and for operators whose kind and type were not timed."""
    if not is_measured(chip.id):
        return None
    key, machine = kept_machine(chip.id)
    count = machine.count(op)
    if not count:
        return None
    plain = probed_time(op, machine.numbers)
    cost = plain * (machine.seconds(op) / scalar(plain.total_s))
    return (
        cost,
        machine.spread(op),
        f"measured by you: {count} of the like in {key} ({machine.software}, {machine.date})",
    )
