"""Checks that the figures of a chip agree: they catch sparse peaks, mixed-up units and wrong links.

Each guard looks at one relation and says what is wrong, or nothing. A true figure that violates a guard is
excused in the chip's own table, with the reason: `exceptions = { fp8_ratio = "..." }`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from chipwise.catalog.chip import Chip
from chipwise.errors import UsageError

Guard = Callable[[Chip], str]

PEAK_TOLERANCE = 0.02
RATIO_TOLERANCE = 0.03
"""Vendors round peaks; Trainium2's fp8 is 1.95 times its bf16."""

_BANDWIDTH_RANGE = {"sram": (1e13, 1e18), "hbm": (3e11, 5e13), "ddr": (1e10, 4e12)}
"""Bytes per second of a memory of each kind: from the slowest made to well beyond the fastest."""


_HALF = ("bf16", "fp16")
_HALF_FULL_RATE = ("bf16", "fp16", "fp16/fp16")
"""GeForce cards run fp32 accumulation at half rate: 8-bit peaks stand in proportion to the full one."""


def _highest(chip: Chip, dtypes: tuple[str, ...]) -> float | None:
    return max((chip.matrix[dtype] for dtype in dtypes if dtype in chip.matrix), default=None)


def _ratio_guard(dtype: str, bases: tuple[str, ...], *allowed: float) -> Guard:
    """The guard that a peak stands in one of the allowed ratios to the highest peak among `bases`."""

    def guard(chip: Chip) -> str:
        over = "16-bit" if "bf16" in bases else " or ".join(bases)
        return _ratio(dtype, over, chip.matrix.get(dtype), _highest(chip, bases), allowed)

    return guard


def _ratio(what: str, over: str, value: float | None, base: float | None, allowed: tuple[float, ...]) -> str:
    if value is None or base is None:
        return ""
    ratio = value / base
    if any(abs(ratio / want - 1) <= RATIO_TOLERANCE for want in allowed):
        return ""
    steps = " or ".join(f"{want:g}" for want in allowed)
    found = f"{what} {value / 1e12:g} is {ratio:.3g} times {over} {base / 1e12:g} TFLOPS"
    return f"{found}; dense peaks stand {steps} to 1"


def _peak_clock(chip: Chip) -> str:
    unit, peak = chip.matrix_unit, _highest(chip, _HALF)
    clock = unit.peak_clock_hz or unit.boost_clock_hz
    if peak is None or clock is None or not unit.units or unit.macs_per_clock is None:
        return ""
    product = unit.units * unit.macs_per_clock * 2 * clock
    if abs(product / peak - 1) <= PEAK_TOLERANCE:
        return ""
    return (
        f"{unit.units} units x {unit.macs_per_clock:g} MACs x 2 x {clock / 1e6:g} MHz = {product / 1e12:.4g}"
        f", but the 16-bit peak is {peak / 1e12:g} TFLOPS"
    )


def _boost_clock(chip: Chip) -> str:
    boost, peak = chip.matrix_unit.boost_clock_hz, chip.matrix_unit.peak_clock_hz
    if boost is None or peak is None or peak <= boost:
        return ""
    return f"the peak needs {peak / 1e6:g} MHz, above the boost clock of {boost / 1e6:g} MHz"


def _fp64_ratio(chip: Chip) -> str:
    return _ratio("matrix fp64", "vector fp64", chip.matrix.get("fp64"), chip.vector.get("fp64"), (1, 2))


def _usable_memory(chip: Chip) -> str:
    label, usable = chip.memory.label_bytes, chip.memory.usable_bytes
    if label is None or usable is None or usable <= label * 1.001:
        return ""
    return f"{usable / 1e9:g} GB are usable of {label / 1e9:g} GB"


def _usable_share(chip: Chip) -> str:
    label, usable = chip.memory.label_bytes, chip.memory.usable_bytes
    if label is None or usable is None or usable >= label * 0.9:
        return ""
    return f"only {usable / 1e9:g} GB are usable of {label / 1e9:g} GB; is the label in GB, not GiB?"


def _bandwidth(chip: Chip) -> str:
    rate = chip.memory.bytes_per_s
    low, high = _BANDWIDTH_RANGE[chip.memory.kind]
    if rate is None or low <= rate <= high:
        return ""
    return f"{rate / 1e9:g} GB/s is no rate of {chip.memory.kind} memory ({low / 1e9:g} to {high / 1e9:g})"


def _second_tier(chip: Chip) -> str:
    for tier in chip.tiers[1:]:
        first = chip.memory.bytes_per_s
        if first is not None and tier.bytes_per_s is not None and tier.bytes_per_s >= first:
            return f"the second tier has {tier.bytes_per_s / 1e9:g} GB/s, the first only {first / 1e9:g}"
    return ""


def _pairwise(chip: Chip) -> str:
    link = chip.scaleup
    if link is None or link.bytes_per_s is None or link.pairwise_bytes_per_s is None:
        return ""
    if link.pairwise_bytes_per_s <= link.bytes_per_s:
        return ""
    return f"a pair has {link.pairwise_bytes_per_s / 1e9:g} GB/s of a total of {link.bytes_per_s / 1e9:g}"


def _link_and_memory(chip: Chip) -> str:
    link, memory = chip.scaleup, chip.memory.bytes_per_s
    if link is None or link.bytes_per_s is None or memory is None or link.bytes_per_s < memory:
        return ""
    return f"the scale-up link ({link.bytes_per_s / 1e9:g} GB/s) is not slower than memory ({memory / 1e9:g})"


def _power(chip: Chip) -> str:
    if chip.tdp_w is None or 2 <= chip.tdp_w <= 50_000:
        return ""
    return f"tdp_W = {chip.tdp_w:g} is no power of a chip"


GUARDS: Mapping[str, Guard] = MappingProxyType(
    {
        "peak_clock": _peak_clock,
        "boost_clock": _boost_clock,
        "accumulate": _ratio_guard("fp16/fp16", ("fp16",), 1, 2),
        "bf16_ratio": _ratio_guard("bf16", ("fp16",), 1),
        "tf32_ratio": _ratio_guard("tf32", _HALF, 0.5, 1),
        "fp8_ratio": _ratio_guard("fp8", _HALF_FULL_RATE, 1, 2),
        "int8_ratio": _ratio_guard("int8", _HALF_FULL_RATE, 1, 2),
        "fp6_ratio": _ratio_guard("fp6", ("fp8",), 1, 2),
        "fp4_ratio": _ratio_guard("fp4", ("fp8", "int8"), 2),
        "int4_ratio": _ratio_guard("int4", ("int8",), 2),
        "fp64_ratio": _fp64_ratio,
        "usable_memory": _usable_memory,
        "usable_share": _usable_share,
        "bandwidth": _bandwidth,
        "second_tier": _second_tier,
        "pairwise": _pairwise,
        "link_and_memory": _link_and_memory,
        "power": _power,
    }
)
"""Every guard by the name that `exceptions` uses; each returns what is wrong, or an empty text."""


def violations(chip: Chip) -> dict[str, str]:
    """What is wrong by guard, exceptions included."""
    found = ((name, guard(chip)) for name, guard in GUARDS.items())
    return {name: wrong for name, wrong in found if wrong}


def check(chip: Chip, where: str) -> None:
    """Raises `UsageError`, opening with `where`, for the first violation that the chip does not excuse."""
    for name, wrong in violations(chip).items():
        if name not in chip.exceptions:
            mend = f'correct the figure, or if it is true add exceptions = {{ {name} = "why" }}'
            raise UsageError(f"{where} fails guard {name}: {wrong}", mend)
