"""A row of the table of kernels is a question that a user can ask: the verb gives the figure that `predict` gives."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from tests.command_line import Run

from chipwise import api
from chipwise.api.kernel import answer
from chipwise.api.operators import OPERATORS
from chipwise.api.requests.kernel import KernelRequest
from chipwise.api.suites.kernels import request_of
from chipwise.calibrate.kernel_questions import taken
from chipwise.calibrate.kernel_table import NUMBERS, TEXT, asked_of
from chipwise.evidence.columns import read_columns

DRAWN = 400
"""Rows beside one of each kind."""
TYPED = 15


@pytest.fixture(scope="module")
def drawn(truth: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of the open table, the same every time: of each operator, framework and type, then at random."""
    pytest.importorskip("pyarrow", reason="needs the parquet extra")
    names = ("row_id", *TEXT)
    columns = read_columns(str(truth / "kernels.parquet"), names, NUMBERS)
    order = np.random.default_rng(13).permutation(np.flatnonzero(columns["chip"] != ""))
    said = (columns[n][order].tolist() for n in ("op", "framework", "dtype"))
    kinds = np.array(["|".join(each) for each in zip(*said, strict=True)])
    first = np.unique(kinds, return_index=True)[1]
    rest = np.setdiff1d(np.arange(len(order)), first)[:DRAWN]
    some = taken(columns, order[np.concatenate((first, rest))])
    path = tmp_path_factory.mktemp("kernels") / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(some)
        for row in zip(*(some[name].tolist() for name in some), strict=True):
            writer.writerow(["" if v != v else v for v in row])
    return path


def test_the_verb_gives_the_figure_of_every_row(drawn: Path) -> None:
    rows = api.SUITES["kernels"].predict(str(drawn))
    columns = read_columns(str(drawn), ("row_id", *TEXT), NUMBERS)
    asked = asked_of(columns)
    assert len(rows) > DRAWN
    for at, row in enumerate(rows):
        report = answer(request_of(asked, at))
        t = report.kernels[0].time_s
        assert row.mid is not None, row.refused
        figures = (report.seconds, t.mid, t.low, t.high)
        assert figures == pytest.approx([1e-6 * v for v in (row.mid, row.mid, row.low, row.high)], rel=1e-9), (
            request_of(asked, at).command
        )


def test_printed_commands_hold_the_figures(drawn: Path, tmp_path: Path, run: Run) -> None:
    out, commands = tmp_path / "out.csv", tmp_path / "commands.csv"
    api.predict_suite("kernels", str(drawn), str(out), commands=str(commands))
    with out.open(newline="", encoding="utf-8") as file:
        predicted = {r["row_id"]: r for r in csv.DictReader(file)}
    with commands.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [line["row_id"] for line in lines] == [i for i, r in predicted.items() if not r["refused"]]
    for line in lines[:: len(lines) // TYPED]:
        program, *arguments = shlex.split(line["command"])
        assert program == "chipwise"
        report = json.loads(run(*arguments, "--format", "json").out)
        assert report["seconds"] * 1e6 == pytest.approx(float(predicted[line["row_id"]]["predicted"]), rel=1e-9)


def test_every_option_of_an_operator_is_a_field_of_the_request() -> None:
    fields = set(KernelRequest.__dataclass_fields__) - {"op", "chips", "set_"}
    assert {name for o in OPERATORS.values() for name in o.options} == fields
