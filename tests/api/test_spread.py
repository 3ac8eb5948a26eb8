"""Rows of `predict` and folds of `validate` spread over processes and over Ray: the same as in one process."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from chipwise import api
from chipwise.api.suites import predicting
from chipwise.api.suites.predicting import PartsWork, SuiteTable, predict_suite
from chipwise.api.suites.validating import validate
from chipwise.api.sweep_run import Engine, LocalEngine, LostError, Rows
from chipwise.errors import UnknownNameError, UsageError
from chipwise.evidence.rows import shipped_table
from command_line import Run

TWO: Engine = ("local", 2, None)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of two parts, of which some cannot be read."""
    shipped = shipped_table("systolic.csv")
    assert shipped is not None
    rows = [dict(row) for row in shipped.rows]
    name = next(n for n in rows[0] if n not in ("row_id", "id"))
    rows[7][name] = rows[301][name] = "nothing"
    path = tmp_path_factory.mktemp("rows") / "systolic.csv"
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def alone(table: Path) -> bytes:
    """The predictions of one process."""
    out = table.parent / "alone.csv"
    predict_suite("systolic", str(table), str(out))
    return out.read_bytes()


@pytest.mark.parametrize("engine", [("local", 1, None), TWO])
def test_processes_write_the_same_bytes(table: Path, alone: bytes, tmp_path: Path, engine: Engine) -> None:
    out = tmp_path / "out.csv"
    lines, _ = predict_suite("systolic", str(table), str(out), engine=engine)
    assert out.read_bytes() == alone
    assert lines == alone.count(b"\n") - 1


def test_ray_writes_the_same_bytes(table: Path, alone: bytes, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs the ray extra")
    out = tmp_path / "out.csv"
    predict_suite("systolic", str(table), str(out), engine=("ray", None, None))
    assert out.read_bytes() == alone
    assert _told(("ray", None, None)) == _told(None)


def _told(engine: Engine | None) -> str:
    return repr(replace(validate("systolic", engine=engine), command=""))


def test_folds_on_processes_find_the_same_errors() -> None:
    assert _told(TWO) == _told(None)


def test_a_part_whose_process_is_killed_is_refused_and_the_others_are_answered(
    table: Path, alone: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = PartsWork(SuiteTable.of("systolic", str(table), None)).part(1).rows[0]["row_id"]

    class Frail(LocalEngine):
        def rows(self, handle: object) -> Rows:
            rows = super().rows(handle)
            if any(f'"{first}"' in row for row in rows[0]):
                raise LostError
            return rows

    monkeypatch.setattr(predicting, "engine_of", lambda work, *_: Frail(work, 1))
    out = tmp_path / "out.csv"
    predict_suite("systolic", str(table), str(out), engine=TWO)
    lines = out.read_text().splitlines()
    lost = {line.partition(",")[0] for line in lines if "was killed" in line}
    assert len(lost) == len(PartsWork(SuiteTable.of("systolic", str(table), None)).part(1).rows)
    answered = [line for line in lines if line.partition(",")[0] not in lost]
    assert answered == [line for line in alone.decode().splitlines() if line.partition(",")[0] not in lost]


def test_rows_of_a_large_file_are_read_where_they_are_answered(
    table: Path, alone: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predicting, "MOST_CARRIED", 10)
    assert SuiteTable.of("systolic", str(table), None).carried is None
    out = tmp_path / "out.csv"
    predict_suite("systolic", str(table), str(out), engine=TWO)
    assert out.read_bytes() == alone


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--workers", "2"), "--workers changes nothing here (add --on local, or --on ray)"),
        (("--address", "auto"), "--address changes nothing here"),
        (("--on", "local", "--workers", "0"), "--workers 0 is too few"),
        (("--on", "ray", "--workers", "2"), "--workers is of --on local"),
        (("--on", "local", "--address", "auto"), "--address is of --on ray"),
    ],
)
def test_what_an_engine_has_no_use_for_is_refused(
    run: Run, table: Path, tmp_path: Path, options: tuple[str, ...], what: str
) -> None:
    ran = run("predict", "systolic", "--rows", str(table), "--out", str(tmp_path / "out.csv"), *options)
    assert ran.code == 2
    assert what in " ".join(ran.err.split())
    assert not (tmp_path / "out.csv").exists()
    if "--rows" not in options:
        assert run("validate", "systolic", *options).code == 2


def test_other_engines_suites_and_files_are_refused(table: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out.csv")
    with pytest.raises(UnknownNameError, match="engine"):
        predict_suite("systolic", str(table), out, engine=("dask", None, None))
    with pytest.raises(UsageError, match="no such file"):
        predict_suite("systolic", str(tmp_path / "none.csv"), out, engine=TWO)
    with pytest.raises(UsageError, match="anchors correct all rows together"):
        api.predict_suite("serving", str(table), out, str(table), engine=TWO)
    for suite in ("rounds", "reliability"):
        with pytest.raises(UsageError, match="no folds to spread"):
            validate(suite, engine=TWO)
