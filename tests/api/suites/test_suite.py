"""A suite as a value: what is left out is answered by what the rest taught, in the order of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chipwise.api.suites.suite import Asking, Index, Suite, Trial, each
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.errors import UnknownNameError, UsageError
from chipwise.evidence.residuals import OWN, Residuals, Validation
from chipwise.evidence.rows import Predicted, Row
from chipwise.units import Array

Table = Mapping[str, Array]
SIZE = 300


def read(paths: Sequence[str], numbers: Parameters) -> Table:
    """Rows of thirty machines, each off by a factor of its own."""
    rng = np.random.default_rng(5)
    machine = np.arange(SIZE) % 30
    true = np.exp(rng.normal(0.0, 0.3, 30)[machine] + rng.normal(0.0, 0.1, SIZE))
    return {"machine": machine.astype(float), "true": true}


def fit(table: Table, kept: Index, numbers: Parameters) -> float:
    """The mean of what is left."""
    return float(np.mean(table["true"][kept]))


def answer(table: Table, out: Index, mean: float, key: str) -> Residuals:
    """The mean for every row, and for all but the first of them what that one measured."""
    lines = {"metric": "s", "figure": "s", "cell": table["machine"][out].astype(str)}
    lines["key"] = lines["cell"]
    first, rest = out[0], out[1:]
    mine = Residuals.of(rest, table["true"][first], table["true"][rest], tier=OWN, metric="s", figure="s")
    own = mine.labelled(cell=table["machine"][rest])
    return Residuals.join([Residuals.of(out, mean, table["true"][out], tier="unseen", **lines), own])


def report(table: Table, found: Residuals, key: str) -> Validation:
    return Validation("toy", f"without each {key}", {"all": found.where(tier="unseen").summaries()})


def judged(paths: Sequence[str], found: Residuals, key: str) -> Residuals:
    """Intervals as wide as lines that nothing corrected need."""
    end = float(np.quantile(np.abs(found.where(tier="unseen").log), 0.8))
    return replace(found, low=found.predicted * np.exp(-end), high=found.predicted * np.exp(end))


TOY = Trial(
    "toy.csv",
    read,
    {"machine": lambda t: t["machine"].tolist(), "half": lambda t: (t["machine"] < 15).tolist()},
    fit,
    answer,
    report,
)


def test_no_row_is_answered_by_a_fit_that_saw_its_key() -> None:
    numbers = shipped_parameters()
    table = read([], numbers)
    found = TOY.unseen(table, numbers, "machine").where(tier="unseen")
    assert found.place.tolist() == list(range(SIZE))
    for machine in range(30):
        here = table["machine"] == machine
        assert found.predicted[here] == pytest.approx(float(np.mean(table["true"][~here])))


def test_what_is_said_of_folds_is_what_they_were_judged_by() -> None:
    (plain,) = TOY.validate([], shipped_parameters()).tables["all"]
    assert np.isnan(plain.coverage), "without intervals nothing is held"
    (found,) = TOY.validate([], shipped_parameters(), judged=judged).tables["all"]
    assert found.coverage == pytest.approx(0.8, abs=0.06)
    with pytest.raises(UnknownNameError, match="colour"):
        TOY.validate([], shipped_parameters(), "colour")


# ------------------------------------------------------------------------ asking


def question(row: Row, folder: Path, numbers: Parameters | None) -> float:
    if row["x"] == "none":
        raise UsageError("x is not known")
    return float(row["x"])


def twice(x: float, numbers: Parameters | None) -> float:
    if x > 9.0:
        raise UsageError("too much")
    return 2.0 * x


def lines(x: float, found: float) -> Iterator[Predicted]:
    yield Predicted(f"{x:g}", "y", found, found, found, "modelled", "", f"double {x:g}")


def test_rows_are_answered_or_refused_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("row_id,x\n1,1\n2,none\n10,10\n3,3\n", "utf-8")
    toy = Suite("toy", ("y",), Asking(("row_id", "x"), question, each(twice), lines))
    found = toy.predict(str(path))
    assert [(p.row_id, p.mid, p.refused) for p in found] == [
        ("1", 2.0, ""),
        ("2", None, "x is not known"),
        ("10", None, "too much"),
        ("3", 6.0, ""),
    ]
    assert [p.command for p in found if p.mid] == ["double 1", "double 3"]
    priced = toy.predict(str(path), shipped_parameters())
    assert not any(p.command for p in priced), "a command line asks the shipped numbers"
    assert not toy.anchored
