"""How near anything measured is to a deployment: which tier of intervals its prediction gets."""

from __future__ import annotations

from chipwise.calibrate.fit_serving import PREFIX
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import load_chips
from chipwise.evidence.judge import Nearness

__all__ = ["tier_of"]


def tier_of(chip: Chip, runtime_id: str, numbers: Parameters, *, anchored: bool = False) -> Nearness:
    """The tier of a deployment priced with `numbers`: what their serving fit had seen of its chip and runtime.

    Architectures do not matter: the tiers hold for those that no fit had seen. `anchored`: a measured row of the
    user's own corrected the prediction.
    """
    if anchored:
        return "own"
    software = _seen(numbers, "runtime")
    if not software:
        return "kind"
    known = runtime_id in software
    if chip.base_generation in numbers.derived(_generations):
        if not known:
            return "runtime"
        return "chip" if chip.software_id in _seen(numbers, "chip") else "vendor"
    kin = known and chip.kind == "gpu" and chip.software_vendor in numbers.derived(_vendors)
    return "generation" if kin else "kind"


def _seen(numbers: Parameters, attribute: str) -> frozenset[str]:
    """Values of an attribute for which the shipped serving fit has an effect."""
    return numbers.derived(_all_seen).get(attribute, frozenset())


def _generations(numbers: Parameters) -> frozenset[str]:
    """Generations of the chips that the serving fit holds."""
    chips = load_chips()
    return frozenset(chips[name].base_generation for name in _seen(numbers, "chip") if name in chips)


def _vendors(numbers: Parameters) -> frozenset[str]:
    """Vendors of the GPUs that the serving fit holds."""
    chips = load_chips()
    return frozenset(chips[name].software_vendor for name in _seen(numbers, "chip") if name in chips)


def _all_seen(numbers: Parameters) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for name in numbers.table:
        label, equals, value = name.partition("=")
        if equals and name.startswith(f"{PREFIX}."):
            found.setdefault(label.rpartition(".")[2], set()).add(value)
    return {attribute: frozenset(values) for attribute, values in found.items()}
