"""Where a model runs at a desk or away from it: what the surroundings leave of a chip, beside other work on it.

A server without a display, a laptop or a phone that must not grow hot, a page in a browser: each is a row of
`desk.toml` with its source. Nothing of it is measured here, so that every answer lists what it took.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from chipwise.catalog.chip import Chip
from chipwise.catalog.machine import DESK
from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.catalog.system import systems_for
from chipwise.errors import UnknownNameError
from chipwise.units import format_bytes

__all__ = ["Environment", "environment", "environments"]


@dataclass(frozen=True, slots=True)
class Environment:
    """What an environment leaves of a chip.

    | field | meaning |
    |---|---|
    | sustained | of the clock, that is held for minutes; bandwidth does not fall with it |
    | memory | of a memory that chip and processor share, which one program may take |
    | headless | without a display: a card of its own memory keeps nothing for one |
    | matrix_units | whether programs reach them; without, products run on the vector lanes |
    | largest_tensor_bytes | what one matrix may take, None: anything |
    """

    name: str = ""
    note: str = ""
    sustained: float = 1.0
    memory: float = 1.0
    headless: bool = False
    matrix_units: bool = True
    largest_tensor_bytes: float | None = None

    def of(self, chip: Chip) -> Chip:
        """The chip as programs have it there."""
        if not self.name:
            return chip
        unified = chip.kind != "cpu" and any(s.unified for s in systems_for(chip.id.partition(":")[0]))
        tier, unit = chip.memory, chip.matrix_unit
        changes: dict[str, Any] = {}
        if self.memory < 1.0 and (unified or chip.kind == "cpu"):
            sizes = {
                n: size * self.memory for n in ("label_bytes", "usable_bytes") if (size := getattr(tier, n))
            }
            changes["tiers"] = (replace(tier, **sizes), *chip.tiers[1:])
        if self.headless and not unified and chip.kind != "cpu" and chip.system_bytes is None:
            changes["system_bytes"] = 0.0
        vector = {name: rate * self.sustained for name, rate in chip.vector.items()}
        matrix = {name: rate * self.sustained for name, rate in chip.matrix.items()}
        if not self.matrix_units and chip.kind != "cpu":
            lanes = max(vector.values(), default=0.0)
            matrix = {name: min(rate, lanes) if lanes else rate for name, rate in matrix.items()}
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
        said += [f"a program gets {self.memory:.0%} of a shared memory"] if self.memory < 1.0 else []
        said += ["no display: a card keeps nothing for one"] if self.headless else []
        said += ["no matrix units"] if not self.matrix_units else []
        if self.largest_tensor_bytes is not None:
            said.append(f"no tensor above {format_bytes(self.largest_tensor_bytes)}")
        return (f"{self.name}: {'; '.join(said)} ({self.note})",) if said else ()


@per_snapshot
def environments() -> Mapping[str, Environment]:
    """All environments by name."""
    return {name: Environment(name, **row) for name, row in parse(shipped_text(DESK))["environment"].items()}


def environment(name: str) -> Environment:
    """The environment of a name; "" is a workstation, which leaves all. Raises `UnknownNameError`."""
    known = environments()
    if name and name not in known:
        raise UnknownNameError("environment", name, known, f"one of {', '.join(known)}")
    return known[name] if name else Environment()
