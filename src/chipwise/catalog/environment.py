"""Where a model runs at a desk or away from it: what the surroundings leave of a chip, beside other work on it.

A server without a display, a laptop or a phone that must not grow hot, a page in a browser: each is a row of
`desk.toml` with its source. Nothing of it is measured here, so that every answer lists what it took.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import load_chips
from chipwise.catalog.machine import DESK
from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.catalog.system import load_systems, systems_for
from chipwise.errors import UnknownNameError, UsageError
from chipwise.units import format_bytes
from chipwise.values import dataclass

NAMED = 4  # chips that are named in place of one that is not found there


@dataclass(frozen=True, slots=True)
class Environment:
    """What an environment leaves of a chip.

    | field | meaning |
    |---|---|
    | forms | the machines that are found there; none: any |
    | most_watts | the power of the largest chip in one of them |
    | sustained | of the clock, that is held for minutes; bandwidth does not fall with it |
    | headless | without a display: a card of its own memory keeps nothing for one |
    | matrix_units | whether programs reach them; without, products run on the vector lanes |
    | largest_tensor_bytes | what one matrix may take, None: anything |
    | in_page | whether a page runs the model: programs of the desk do not |
    | dispatch_us | microseconds that the start of each kernel takes beside what a program of the desk needs |
    """

    name: str = ""
    note: str = ""
    forms: tuple[str, ...] = ()
    most_watts: float | None = None
    sustained: float = 1.0
    headless: bool = False
    matrix_units: bool = True
    largest_tensor_bytes: float | None = None
    in_page: bool = False
    dispatch_us: float = 0.0

    def lacks(self, chip: Chip) -> str:
        """Why a chip is not found there, as a sentence; "" where it is, or where nobody says what holds it."""
        held = {system.form for system in load_systems().holding(chip.id.partition(":")[0])}
        if self.forms and held and held.isdisjoint(self.forms):
            return f"{chip.id} comes in a {' or '.join(sorted(held))}, not in a {' or '.join(self.forms)}"
        if self.most_watts is not None and (chip.tdp_w or 0.0) > self.most_watts:
            return f"{chip.id} draws {chip.tdp_w:,.0f} W, there at most {self.most_watts:,.0f} W"
        return ""

    def check(self, chip: Chip) -> None:
        """Raises `UsageError` for a chip that is not found there, with one that is."""
        if why := self.lacks(chip):
            known = (c for c in load_chips().values() if c.kind == "gpu" and c.status == "ga")
            near = sorted((c for c in known if not self.lacks(c)), key=lambda c: -c.year)
            names = ", ".join(c.id for c in near[:NAMED] if systems_for(c.id))
            raise UsageError(f"--environment {self.name}: {why}", f"as in {names}", field="environment")

    def of(self, chip: Chip) -> Chip:
        """The chip as programs have it there."""
        if not self.name:
            return chip
        unified = chip.kind != "cpu" and any(s.unified for s in systems_for(chip.id.partition(":")[0]))
        unit = chip.matrix_unit
        changes: dict[str, Any] = {"dispatch_s": self.dispatch_us * 1e-6}
        if self.headless and not unified and chip.kind != "cpu" and chip.system_bytes is None:
            changes["system_bytes"] = 0.0
        vector = {name: rate * self.sustained for name, rate in chip.vector.items()}
        matrix = {name: rate * self.sustained for name, rate in chip.matrix.items()}
        if not self.matrix_units and chip.kind != "cpu":
            lanes = max(vector.values(), default=math.inf)
            matrix = {name: min(rate, lanes) for name, rate in matrix.items()}
        clocks = {
            name: value * self.sustained
            for name in ("peak_clock_hz", "boost_clock_hz")
            if (value := getattr(unit, name)) is not None
        }
        return replace(chip, vector=vector, matrix=matrix, matrix_unit=replace(unit, **clocks), **changes)

    @property
    def words(self) -> tuple[str, ...]:
        """What was taken of it, as lines of assumptions; none for a workstation."""
        if not self.name:
            return ()
        said = [f"{self.sustained:.0%} of the clock are held for minutes"] if self.sustained < 1.0 else []
        said += ["no display: a card keeps nothing for one"] if self.headless else []
        said += ["no matrix units"] if not self.matrix_units else []
        if self.largest_tensor_bytes is not None:
            said.append(f"no tensor above {format_bytes(self.largest_tensor_bytes)}")
        said += [f"{self.dispatch_us:g} us to start a kernel"] if self.dispatch_us else []
        return (f"{self.name}: {'; '.join(said)} ({self.note})",) if said else ()


@per_snapshot
def environments() -> Mapping[str, Environment]:
    """All environments by name."""
    rows = parse(shipped_text(DESK))["environment"]
    return {name: Environment(name, **{**row, "forms": tuple(row.get("forms", ()))}) for name, row in rows.items()}


def environment(name: str) -> Environment:
    """The environment of a name; "" is a workstation, which leaves all. Raises `UnknownNameError`."""
    known = environments()
    if name and name not in known:
        raise UnknownNameError("environment", name, known, f"one of {', '.join(known)}")
    return known[name] if name else Environment()
