"""How near anything measured is to a deployment, in words: what its figures rest on; of training and how far they may
be off, by the model of error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from chipwise.calibrate.energy import EnergyFit
from chipwise.calibrate.fit_level import PREFIX as LEVEL
from chipwise.calibrate.fit_media import media_seen
from chipwise.calibrate.fit_serving import PREFIX
from chipwise.calibrate.fit_training import seen_as, seen_runs
from chipwise.calibrate.fit_tuned import tuned_numbers
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import load_chips
from chipwise.catalog.media_runtime import MediaRuntime
from chipwise.catalog.runtime import own_kernels
from chipwise.evidence.axes import Levels
from chipwise.evidence.discrepancy import spread_of
from chipwise.evidence.judge import Basis, Estimate, Nearness, judge
from chipwise.values import dataclass

ALONE = 0.9
"""share: of the time of its kernels alone that a step takes at least. Source: of 2,123 published steps 18 took less
than their kernels, and 4 less than this share; clocks above the sheet's and errors of kernels' prices are within it.
Moves the early end of a training plan's interval."""


def tier_of(
    chip: Chip, runtime_id: str, numbers: Parameters, *, experts: bool = False, level: str = "stock"
) -> Nearness:
    """The tier of a deployment priced with `numbers`: what their serving fit had seen of its chip and runtime, or for
    tuned software their fit of submissions of its chip and vendor.

    Architectures do not matter, as the tiers hold for those that no fit had seen, with one exception: `experts` under a
    runtime that the serving fit never saw. What was chosen for such a runtime from other people's benchmarks explains
    its dense models (80 % intervals made of those held 36 % of its models with experts).
    """
    if level == "tuned":
        return _tuned_tier(chip, numbers)
    software = _seen(numbers, "runtime")
    if not software:
        return "kind"
    if own_kernels(runtime_id):
        return _local_tier(chip, numbers)
    known = runtime_id in software
    chosen = numbers.derived(_chosen)
    if any((runtime_id, kind) in chosen for kind in ("", chip.generation, chip.software_vendor)) and (
        known or not experts
    ):
        return "stack"
    if chip.base_generation in numbers.derived(_generations):
        if not known:
            return "runtime"
        return "chip" if chip.software_id in _seen(numbers, "chip") else "vendor"
    if known and chip.kind == "gpu" and chip.software_vendor in numbers.derived(_vendors):
        return "generation"
    return "kernels" if (chip.family, chip.software_vendor) in numbers.derived(_timed) else "kind"


def _tuned_tier(chip: Chip, numbers: Parameters) -> Nearness:
    """By the chips and vendors of the fit of submissions."""
    if chip.software_id in _seen(numbers, "chip", LEVEL):
        return "chip"
    return "vendor" if chip.software_vendor in numbers.derived(_submitted) else "kind"


def _local_tier(chip: Chip, numbers: Parameters) -> Nearness:
    """By the chips, vendors and backends of the fit of local runtimes."""
    if chip.software_id in numbers.local.keys_of("chip"):
        return "chip"
    cpus = chip.family == "cpu" and "cpu" in numbers.local.keys_of("backend")
    return "vendor" if cpus or chip.software_vendor in numbers.local.keys_of("vendor") else "kind"


def _timed(numbers: Parameters) -> frozenset[tuple[str, str]]:
    """Families and vendors of the chips whose operators were timed alone."""
    chips = load_chips()
    of_generation = chips.generations()
    found = set()
    for name in numbers.table:
        family, (_, equals, value) = name.partition(".")[0], name.partition("=")
        level = name.partition("=")[0].rpartition(".")[2]
        chip = chips.get(value if level == "chip" else of_generation.get(value, ""))
        if equals and chip is not None and chip.family == family:
            found.add((family, chip.software_vendor))
    return frozenset(found)


def network_tier(chip: Chip, runtime: MediaRuntime, numbers: Parameters, level: str = "stock") -> Nearness:
    """How near the rows of the fit are: this chip under this runtime, its generation, other chips; of tuned software
    this chip, others of its vendor, other chips."""
    if level == "tuned":
        chips, market = numbers.derived(tuned_numbers).chips, load_chips()
        if chip.software_id in chips:
            return "chip"
        vendors = {market[name].software_vendor for name in chips if name in market}
        return "vendor" if chip.software_vendor in vendors else "kind"
    known = numbers.derived(media_seen)
    if f"runtime={runtime.id}" not in known:
        return "kind"
    if f"chip={chip.software_id}" in known:
        return "chip"
    return "generation" if f"generation={chip.base_generation}" in known else "kind"


def power_tier(chip: Chip, numbers: Parameters) -> Nearness:
    """How near measured power is to a chip: its own was measured, or that of others."""
    return "chip" if chip.software_id in numbers.derived(EnergyFit.of).chips else "kind"


def _chosen(numbers: Parameters) -> frozenset[tuple[str, str]]:
    """Runtimes, and kinds of chips ("": all that it runs on), some of whose numbers come from others' benchmarks."""
    found = set()
    for name in numbers.from_benchmarks:
        _, runtime, *rest = name.split(".")
        found.add((runtime, rest[-1] if rest[0] in ("stock", "layer") else ""))
    return frozenset(found)


def _seen(numbers: Parameters, attribute: str, fit: str = PREFIX) -> frozenset[str]:
    """Values of an attribute for which a fit has an effect."""
    return numbers.derived(_all_seen).get((fit, attribute), frozenset())


def _submitted(numbers: Parameters) -> frozenset[str]:
    """Vendors of the chips that the fit of submissions holds."""
    known, seen = load_chips(), _seen(numbers, "chip", LEVEL)
    return frozenset(known[c].software_vendor for c in seen if c in known)


def _generations(numbers: Parameters) -> frozenset[str]:
    """Generations of the chips that the serving fit holds."""
    chips = load_chips()
    return frozenset(chips[name].base_generation for name in _seen(numbers, "chip") if name in chips)


def _vendors(numbers: Parameters) -> frozenset[str]:
    """Vendors of the GPUs that the serving fit holds."""
    chips = load_chips()
    return frozenset(chips[name].software_vendor for name in _seen(numbers, "chip") if name in chips)


def _all_seen(numbers: Parameters) -> dict[tuple[str, str], frozenset[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for name in numbers.table:
        label, equals, value = name.partition("=")
        fit = name.partition(".")[0]
        if equals and fit in (PREFIX, LEVEL):
            found.setdefault((fit, label.rpartition(".")[2]), set()).add(value)
    return {attribute: frozenset(values) for attribute, values in found.items()}


@dataclass(frozen=True, slots=True)
class Tier(Estimate):
    """Measured over predicted, of training. `seen`: several runs of the fit were of such; of step times of dense
    models, where folds test it, such figures are `calibrated`, else `modelled`. `provisional`: nobody measured the chip
    or the trainer."""

    seen: bool = False

    def above(self, least: float) -> Tier:
        """The same of a figure of which kernels alone take `least`: hardly less is ever measured (`ALONE`)."""
        return replace(self, low=max(self.low, min(ALONE * least, self.mid)))


def tier_name(what: str, labels: Mapping[str, str], *, seen: bool) -> str:
    """What a figure ("time", "memory") is of and whether a fit had `seen` such, in words."""
    name = "memory" if what == "memory" else "experts" if labels["moe"] == "moe" else "dense"
    return f"{name}, {'seen' if seen else 'not seen'}"


def seen_of(numbers: Parameters, labels: Mapping[str, str], what: str = "time", *, packed: bool = False) -> bool:
    """Whether a fit had seen such; packed weights (QLoRA) count as not seen."""
    return seen_as(what, labels) in seen_runs(numbers) and not packed


def trained_tier(
    numbers: Parameters, labels: Mapping[str, str], levels: Levels, what: str = "time", *, packed: bool = False
) -> Tier:
    """How far a figure of a plan with these labels of the fit and `levels` in the model of error may be off."""
    seen = seen_of(numbers, labels, what, packed=packed)
    spread = spread_of(levels, "training_memory" if what == "memory" else "training")
    basis: Basis = "calibrated" if seen and what == "time" and labels["moe"] != "moe" else "modelled"
    e = judge(1.0, spread.around(), basis, provisional=not bool(spread.known[0]))
    return Tier(e.mid, e.low, e.high, e.basis, e.provisional, seen)
