"""The golden plans: which changed, and by how much."""

from __future__ import annotations

import pytest
from plans import answer, cases, changes, stored

SHOWN = 20


def test_no_plan_changed() -> None:
    before = stored()
    asked = list(cases())
    assert [case.key for case in asked] == list(before), "other questions: python -m tests.golden"
    lines = []
    for case in asked:
        different = changes(before[case.key], answer(case))
        if different:
            lines.append(f"{case.key}: " + ", ".join(f"{name} {text}" for name, text in different.items()))
    if lines:
        shown = "\n".join(lines[:SHOWN])
        pytest.fail(
            f"{len(lines)} of {len(asked)} plans changed; if that is meant: python -m tests.golden\n{shown}",
            pytrace=False,
        )


def test_there_are_enough_plans_of_all_kinds() -> None:
    found = stored().values()
    plans = [row for row in found if "refused" not in row]
    assert len(plans) >= 150
    assert {row["bound"] for row in plans} >= {"compute", "memory"}
    assert len({row["runtime"] for row in plans}) >= 5


def test_a_change_is_told() -> None:
    assert changes({"tpot_s": 1.0, "bound": "memory"}, {"tpot_s": 1.05, "bound": "compute"}) == {
        "bound": "memory -> compute",
        "tpot_s": "+5.000%",
    }
    assert changes({"a": 0.123456789}, {"a": 0.12345679}) == {}, "rounded either way"
    assert changes({"a": 0.123456789}, {"a": 0.123456792}) == {"a": "+0.000%"}
    assert changes({"a": 1.0}, {}) == {"a": "1.0 -> None"}
