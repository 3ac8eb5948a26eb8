"""Chances that were said against what held: of errors as large as said they agree, of larger ones they do not."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.api.suites.validating import classes, reliability
from chipwise.errors import UsageError
from chipwise.evidence.discrepancy import Observed
from chipwise.evidence.residuals import Validation
from chipwise.report.accuracy import accuracy_lines, accuracy_view

SIZE, SD = 4000, 0.3


def rows(sd: float) -> Observed:
    y = sd * np.random.default_rng(0).standard_normal(SIZE)
    blank = np.full(SIZE, "")
    return Observed(y, {"model": np.arange(SIZE).astype(str), "who": blank}, blank, blank)


def test_errors_as_large_as_said_are_held_as_often_as_said() -> None:
    found = classes(rows(SD), np.zeros(SIZE), np.full(SIZE, SD))
    assert sum(c.rows for c in found) >= SIZE
    assert max(abs(c.held - c.said) for c in found) < 0.03


def test_errors_twice_as_large_are_not() -> None:
    found = classes(rows(2.0 * SD), np.zeros(SIZE), np.full(SIZE, SD))
    assert max(abs(c.held - c.said) for c in found) > 0.1


def test_a_cell_counts_once_however_many_rows_it_has() -> None:
    few = rows(SD)
    twice = Observed.join([few, *[few.take(np.arange(1))] * 500])
    once, more = (classes(r, np.zeros(len(r)), np.full(len(r), SD)) for r in (few, twice))
    assert [c.held for c in more] == pytest.approx([c.held for c in once], abs=0.01)


def test_classes_are_shown_as_tables() -> None:
    by = {"serving": classes(rows(SD), np.zeros(SIZE), np.full(SIZE, SD))}
    found = Validation("reliability", "how", {}, ("a remark",), classes=by)
    (table,) = accuracy_view(found)
    assert "said" in "\n".join(accuracy_lines(found))
    assert table is not None


def test_without_tables_the_folder_is_named() -> None:
    with pytest.raises(UsageError, match="CHIPWISE_TRUTH"):
        reliability()
