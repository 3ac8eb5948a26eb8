"""A round: rows that strangers published, predicted and written down before anybody has read their figures, and scored
when the figures are there.

What is frozen is a file: an answer per row, what the row asked (a digest), the day, and the version and commit of the
product. It is never written twice. A score reads it, not the product: what was fitted since changes nothing.
"""

from __future__ import annotations

import csv
import hashlib
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np

from chipwise.api.suites.doors import SUITES
from chipwise.api.suites.errors import DURATIONS, RATE, RATES, as_training, may_count, per_chip_rate, suite_of, who_of
from chipwise.catalog.files import output_file, writing
from chipwise.errors import UsageError
from chipwise.evidence.residuals import Residuals, Validation
from chipwise.evidence.rounds import Scored, register_lines
from chipwise.evidence.rows import COLUMNS, Predicted, Row, RowPart, id_of, read_rows

FROZEN = (*COLUMNS, "question", "date", "version", "commit")
MEASURED = ("value", "doubt", *sorted(RATES))
"""Columns that are no part of the question, as are earlier answers (`EARLIER`)."""
EARLIER = ("predicted_", "low_", "high_", "basis_", "refused_")
FAMILIES = {"published": "serving", "local": "desk"}
MEMORY = ("memory_gb", "peak_memory_gb")


def frozen_beside(path: str) -> str:
    """Where the answers to a table are frozen unless another file is named."""
    return str(Path(path).with_suffix(".frozen.csv"))


def freeze(path: str, out: str, day: str, version: str) -> int:
    """Answer every row of a table and write the answers down; how many. The measured column is not read.

    Raises `UsageError` for a table that cannot be read, and where the answers were frozen before.
    """
    output_file(out, path)
    if Path(out).exists():
        raise UsageError(f"{out}: answers are frozen already", "they are never made anew: name another file")
    rows = list(read_rows(path, ()))
    answers = {p.row_id: p for p in _answers(path, rows)}
    commit = commit_here()
    with writing(out) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FROZEN)
        for row in rows:
            p = answers.get(id_of(row)) or Predicted(
                id_of(row), row.get("metric", ""), None, refused="it was not answered"
            )
            figures = ("" if x is None else f"{x:.6g}" for x in (p.mid, p.low, p.high))
            asked = (_question(row), day, version, commit)
            writer.writerow((p.row_id, p.metric, *figures, p.basis, p.refused, *asked))
    return len(rows)


def score(path: str, frozen: str) -> Validation:
    """How far off frozen answers were: by family and metric, by what they rest on, and by cell.

    Raises `UsageError` for files that cannot be read, and for a table without measured values.
    """
    known = {row["row_id"]: row for row in read_rows(frozen, FROZEN)}
    rows = list(read_rows(path, ()))
    valued = [row for row in rows if _value(row)]
    if not valued:
        raise UsageError(
            f"{path}: answers are frozen, and no row has a value yet",
            f"fill the column value and run again: chipwise evidence round {path}",
        )
    asked = [row for row in valued if id_of(row) in known]
    same = [row for row in asked if known[id_of(row)]["question"] == _question(row)]
    kept = [row for row in same if may_count(row)]
    if not kept:
        raise UsageError(f"{path}: none of its rows was answered in {frozen}", "is it the frozen file of this table?")
    found = _compared(kept, [known[id_of(row)] for row in kept])
    left = [
        (len(valued) - len(asked), "were not there when answers were frozen"),
        (len(asked) - len(same), "ask something else than was answered"),
        (len(same) - len(kept), "are marked as doubtful or as one wave"),
    ]
    first = known[id_of(kept[0])]
    at = " ".join(filter(None, (first["version"], first["commit"])))
    return Validation(
        "round",
        f"Answers of chipwise {at}, frozen on {first['date']}. Errors are of the figure (predicted / measured - 1); z "
        "is the root mean square of errors over what intervals say: 1 is as sure as right. 80 % of measured values are "
        "meant to lie inside. Means over cells have the 80 % interval of a bootstrap over benchmarkers.",
        {
            "by family": found.summaries("family"),
            "by what the answer rests on": found.summaries("basis"),
            "by benchmarker": found.summaries("who"),
            "by cell": found.summaries("cell"),
        },
        [f"{n} rows {why}: left out" for n, why in left if n],
    )


def compared_now(path: str) -> Validation:
    """How far off the product is now on a table with measured values: rows that a fit may have seen.

    Raises `UsageError` for a table that cannot be read.
    """
    rows = [row for row in read_rows(path, ()) if may_count(row) and _value(row)]
    answers = {p.row_id: p for p in _answers(path, rows)}
    none = Predicted("", "", None, refused="it was not answered")
    said = [answers.get(id_of(row), none) for row in rows]
    columns = [{n: str(getattr(p, f) or "") for n, f in ANSWER.items()} for p in said]
    found = _compared(rows, columns)
    why = Counter(p.refused for p in said if p.refused)
    return Validation(
        path,
        f"{path}: answers of the product now, compared with what was measured.",
        {"by family": found.summaries("family"), "by benchmarker": found.summaries("who")},
        [f"{n} rows are not answered: {text}" for text, n in why.most_common(5)],
    )


ANSWER = {"predicted": "mid", "low": "low", "high": "high", "basis": "basis"}
"""Columns of a frozen answer, and the fields of `Predicted`."""


def registered(found: Validation, frozen: str, number: int) -> str:
    """A score as lines of the register of rounds."""
    first = next(read_rows(frozen, FROZEN))
    at = first["commit"] or first["version"]
    return register_lines([Scored(number, first["date"], at, s) for s in found.tables["by family"]])


def commit_here() -> str:
    """The commit of the checkout that this package lies in, with -dirty where files differ; "" of an installed one."""
    try:
        found = subprocess.run(
            ["git", "-C", str(files("chipwise")), "describe", "--always", "--dirty", "--abbrev=8"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""


def _answers(path: str, rows: Sequence[Row]) -> Iterator[Predicted]:
    """An answer per row, in the metric of the row."""
    suite, _ = suite_of(rows[0])
    if suite != "training":
        yield from SUITES[suite].predict(path)
        return
    table = [dict(row) for row in as_training({**row, "value": ""} for row in rows)]
    names = dict.fromkeys(name for row in table for name in row)
    part = RowPart.of(path, [{name: row.get(name, "") for name in names} for row in table])
    found: dict[str, dict[str, Predicted]] = {}
    for line in SUITES[suite].predict(part):
        found.setdefault(line.row_id, {})[line.metric] = line
    yield from (_in_its_metric(row, found.get(id_of(row), {})) for row in rows)


def _in_its_metric(row: Row, lines: Mapping[str, Predicted]) -> Predicted:
    """Of what is answered about a run of training, by metric, what its row asks; durations follow from the rate."""
    metric = row["metric"]
    said = lines.get(RATE if metric in DURATIONS else metric)
    if said is None:
        why = next((x.refused for x in lines.values() if x.refused), f"no answer has {metric}")
        return Predicted(id_of(row), metric, None, refused=why)
    if metric in DURATIONS and said.mid and said.low and said.high:
        scale = per_chip_rate(row)
        ends = (scale / said.mid, scale / said.high, scale / said.low)
        return Predicted(said.row_id, metric, *ends, said.basis)
    return replace(said, metric=metric)


def _question(row: Row) -> str:
    """A digest of what a row asks, whatever was measured or answered."""
    kept = [(k, v) for k, v in sorted(row.items()) if v and k not in MEASURED and not k.startswith(EARLIER)]
    return hashlib.sha256(repr(kept).encode()).hexdigest()[:12]


def _value(row: Row) -> str:
    return row.get("value") or row.get(row.get("metric", ""), "")


def _compared(rows: Sequence[Row], answers: Sequence[Mapping[str, str]]) -> Residuals:
    """Frozen answers beside what was measured."""
    suite, _ = suite_of(rows[0])
    metric = [row["metric"] for row in rows]
    family = FAMILIES.get(suite, suite)

    def column(name: str) -> list[float]:
        return [float(a[name]) if a[name] else np.nan for a in answers]

    return Residuals.of(
        np.arange(len(rows)),
        column("predicted"),
        [float(_value(row)) for row in rows],
        low=column("low"),
        high=column("high"),
        metric=metric,
        family=[f"{family}, memory" if m in MEMORY else family for m in metric],
        basis=[a["basis"] for a in answers],
        who=[who_of(row) for row in rows],
        cell=[", ".join(filter(None, (row["model"].rpartition("/")[2], row["chip"], _software(row)))) for row in rows],
    )


def _software(row: Row) -> str:
    return row.get("runtime") or row.get("framework", "")
