"""The rounds of MLPerf Inference as dates: how old the software of a result is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from chipwise.errors import UnknownNameError

# Months in which MLCommons published the rounds of MLPerf Inference; 2026 by its half-yearly cadence.
ROUNDS: Mapping[str, str] = MappingProxyType(
    {
        "v3.0": "2023-04",
        "v3.1": "2023-09",
        "v4.0": "2024-03",
        "v4.1": "2024-08",
        "v5.0": "2025-04",
        "v5.1": "2025-09",
        "v6.0": "2026-04",
        "v6.1": "2026-09",
    }
)


def month_of(when: str) -> str:
    """A date or MLPerf round as a month, 2025-06; "" stays so."""
    found = re.match(r"(\d{4})-?(\d{2})", ROUNDS.get(when, when))
    return f"{found[1]}-{found[2]}" if found else ""


def software_age(when: str) -> float:
    """Age of software in rounds, half a year each, from v4.0 (2024-03): of a round, or of a date ("2025-06").

    The first round with large language models on most chips is the origin. Raises `UnknownNameError`.
    """
    names = tuple(ROUNDS)
    if when in ROUNDS:
        return float(names.index(when) - names.index("v4.0"))
    found = re.match(r"(\d{4})-?(\d{2})", when)
    if found is None or not 1 <= int(found[2]) <= 12:
        raise UnknownNameError(
            "MLPerf round or date", when, names, f"one of {', '.join(names)}, or as in 2025-06"
        )
    return ((int(found[1]) - 2024) * 12 + int(found[2]) - 3) / 6.0
