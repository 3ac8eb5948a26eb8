"""What is fitted of power: shares of the power limit of any chip, and what machines draw beyond their chips.

Shared over all chips: none has a number of its own. Chips that were measured are counted (`energy.seen`), which
decides how near a prediction is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import Effects, seen
from chipwise.calibrate.fit import FitRows, Fitting
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters
from chipwise.calibrate.priors import priors
from chipwise.predict.energy import PoweredMachine, PowerModel, Use
from chipwise.units import Array, Real
from chipwise.values import dataclass

PREFIX = "energy"
SOURCE = "ML.ENERGY v3 (GPUs under vLLM), InferenceX and MLPerf power results v3.0 to v5.1; fitted (2026-11)"

QUANTITIES = priors("energy")
FORMS: Mapping[str, str] = {
    "board": "board",
    "phone": "board",
    "desktop": "desk",
    "workstation": "desk",
    "laptop": "board",
}
"""Forms of machines that are no servers, and the number that says how much of a server's watts they draw; they have
neither rows of fans nor a network for each chip, hence no upkeep."""

PROMPTS = f"{PREFIX}.prompt"


@dataclass(frozen=True)
class EnergyRows:
    """Measured watts [row]: of one chip, or of a whole system with `chips` in `machines` where `wall`; what the chips
    do, their limit in watts, whether it is a power-tuned submission without a stated one (`tuned`); labels `chip` and
    `form` of its machine."""

    watts: Array
    use: Use
    limit_w: Array
    wall: NDArray[np.bool_]
    chips: Array
    machines: Array
    tuned: NDArray[np.bool_]
    form: NDArray[np.str_]
    chip: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.watts)

    def take(self, index: NDArray[np.intp]) -> EnergyRows:
        """Some of the rows."""
        use = Use(*(np.asarray(getattr(self.use, f.name))[index] for f in fields(Use)))
        names = ("limit_w", "wall", "chips", "machines", "tuned", "form", "chip")
        return EnergyRows(self.watts[index], use, *(getattr(self, n)[index] for n in names))

    def predicted(self, values: Mapping[str, Real]) -> Array:
        """Watts of every row under fitted numbers."""
        tuned = np.where(self.form == "board", values["tuned_board"], values["tuned"])
        chip_w = self.limit_w * np.where(self.tuned, tuned, 1.0) * _power(values).share(self.use)
        wall = _machine(values, self.form).wall_w(chip_w * self.chips, self.machines)
        return np.where(self.wall, wall, chip_w)


@dataclass(frozen=True)
class EnergyFit:
    """The fitted numbers, each for all chips."""

    values: Mapping[str, float]
    effects: Effects
    chips: tuple[str, ...] = ()

    @property
    def power(self) -> PowerModel:
        """Of a chip."""
        return _power(self.values)

    def machine(self, form: str) -> PoweredMachine:
        """Of a machine of that form."""
        return self._machines[form if form in FORMS else ""]

    @cached_property
    def _machines(self) -> Mapping[str, PoweredMachine]:
        """By form, "" of all others."""
        made = {form: _machine(self.values, np.array(form)) for form in (*FORMS, "")}
        return {form: PoweredMachine(float(one.base_w), float(one.upkeep)) for form, one in made.items()}

    def tuned(self, form: str) -> float:
        """Power limit of power-tuned submissions that state none, over TDP."""
        return self.values["tuned_board" if form == "board" else "tuned"]

    def parameters(self) -> dict[str, Parameter]:
        """What to ship."""
        found = self.effects.parameters(PREFIX, SOURCE)
        return found | seen(f"{PREFIX}.seen.chip", self.chips, SOURCE, self.effects.rows_hash)

    @classmethod
    def of(cls, numbers: Parameters) -> EnergyFit:
        """The inverse of `parameters`; numbers that hold no such fit give its priors."""
        start = f"{PREFIX}.seen.chip="
        chips = tuple(n.removeprefix(start) for n in numbers.table if n.startswith(start))
        return cls._made(Effects.of(numbers.table, PREFIX, QUANTITIES), chips)

    @classmethod
    def _made(cls, effects: Effects, chips: tuple[str, ...]) -> EnergyFit:
        values = effects.values({"chip": np.array([""])})
        return cls({name: float(np.ravel(v)[0]) for name, v in values.items()}, effects, chips)


def fitted_power(rows: EnergyRows) -> Fitting:
    """How the numbers of power are fitted."""

    def model(values: Mapping[str, Real], index: NDArray[np.intp]) -> Array:
        return rows.take(index).predicted(values)

    return Fitting(FitRows({"chip": rows.chip}, rows.watts, model), QUANTITIES)


def fit_energy(rows: EnergyRows) -> EnergyFit:
    """The numbers that explain the rows best under their priors. Pure: same rows, same answer."""
    return EnergyFit._made(fitted_power(rows).effects(), tuple(rows.chip.tolist()))


def prompt_of(task: str, numbers: Parameters) -> float | None:
    """Mean tokens of the prompts of a benchmark that does not publish them, None for one that is not known."""
    name = f"{PROMPTS}.{task}"
    return numbers.table[name].value if name in numbers.table else None


def _power(values: Mapping[str, Real]) -> PowerModel:
    return PowerModel(*(values[name] for name in ("rest", "memory", "compute", "integer")))


def _machine(values: Mapping[str, Real], form: NDArray[np.str_]) -> PoweredMachine:
    """Of machines of these forms, in the shape of `form`."""
    smaller = [np.where(form == name, values[share], 1.0) for name, share in FORMS.items()]
    base = np.asarray(values["base"]) * np.prod(smaller, axis=0)
    return PoweredMachine(base, np.where(np.isin(form, list(FORMS)), 0.0, values["upkeep"]))
