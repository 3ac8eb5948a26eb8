"""Preferences: every threshold says its value, unit, reason and where it was tried."""

from __future__ import annotations

import pytest

from chipwise.catalog.preferences import TABLE, preferences
from chipwise.catalog.snapshot import PACKAGE, Snapshot, use


def test_shares_are_shares() -> None:
    p = preferences()
    assert 0.0 < p.equal < p.evidence < 0.2, "evidence costs at most a tenth"
    assert 0.5 < p.training_aim < p.training_limit < 1.0
    assert 0.5 < p.confidence < 1.0


@pytest.mark.parametrize(
    "wrong", ['[made_up]\nvalue = 1\nunit = "x"\nreason = "y"\ntried = "z"\n', "[equal]\nvalue = 1\n"]
)
def test_a_table_that_says_too_much_or_too_little_is_refused(wrong: str) -> None:
    shipped = (PACKAGE / TABLE).read_text("utf-8")
    text = f"{shipped}\n{wrong}" if "made_up" in wrong else shipped.replace('tried = "not measured"', 'tried = ""')
    with use(Snapshot(given={TABLE: text.encode()})), pytest.raises(ValueError, match="preferences"):
        preferences()


def test_a_saved_answer_of_before_a_preference_takes_that_of_today() -> None:
    shipped = (PACKAGE / TABLE).read_text("utf-8")
    older = shipped[: shipped.index("[even]")].replace("value = 0.05", "value = 0.06", 1)
    with use(Snapshot(given={TABLE: older.encode()})):
        assert (preferences().equal, preferences().even) == (0.06, 0.5)
