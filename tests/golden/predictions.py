"""A digest of `predict` on every open table: by suite how many rows are answered, by group what is predicted.

The tables are for validation and stay where they are: what is kept is counts and means of predictions.
"""

from __future__ import annotations

import csv
import math
import shlex
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from chipwise.evidence.rows import Row, read_rows
from truth import FOLDER, published

from .asking import printed
from .net import Answer, Kind


@dataclass(frozen=True)
class Table:
    """A suite with its table, of which every `step`-th row is asked; rows of a group are alike in `by`."""

    suite: str
    file: str
    by: tuple[str, ...]
    step: int = 1


TABLES = (
    Table("model_params", "model_params.csv", ()),
    Table("kv_cache", "kv_cache.csv", ("attention",)),
    Table("kernels", "kernels.parquet", ("op", "chip"), step=40),
    Table("systolic", "systolic.csv", ("dataflow",)),
    Table("token_speeds", "token_speeds.csv", ("vendor",)),
    Table("serving", "serving_points.csv", ("mode", "chip"), step=6),
    Table("published", "published_serving.csv", ("chip",), step=6),
    Table("energy", "energy.csv", ("chip",), step=3),
    Table("local", "published_local.csv", ("chip",), step=3),
    Table("media", "media.csv", ("task",), step=3),
    Table("mlperf", "mlperf_inference.csv", ("scenario", "chip"), step=6),
    Table("training", "training.csv", ("chip",), step=8),
    Table("mlperf_training", "mlperf_training.csv", ("benchmark", "chip"), step=2),
)


def digests() -> Iterator[tuple[str, Answer]]:
    """Each suite, and each of its groups by metric."""
    with TemporaryDirectory() as folder:
        shutil.copytree(published("models"), Path(folder) / "models")
        for table in TABLES:
            yield from _digest(table, Path(folder))


def _digest(table: Table, folder: Path) -> Iterator[tuple[str, Answer]]:
    asked = {
        row.get("row_id") or row["id"]: row
        for i, row in enumerate(read_rows(str(published(table.file)), ()))
        if i % table.step == 0
    }
    rows, out = folder / f"{table.suite}.csv", folder / f"{table.suite}.out.csv"
    with rows.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, next(iter(asked.values())))
        writer.writeheader()
        writer.writerows(asked.values())
    printed(shlex.join(("predict", table.suite, "--rows", str(rows), "--out", str(out))))
    answered: dict[str, list[Row]] = defaultdict(list)
    refused: Counter[str] = Counter()
    for line in read_rows(str(out), ("row_id", "metric", "predicted", "refused")):
        words = (table.suite, line["metric"], *(asked[line["row_id"]][name] or "-" for name in table.by))
        if line["refused"]:
            refused[" | ".join(words)] += 1
        else:
            answered[" | ".join(words)].append(line)
    count = sum(map(len, answered.values()))
    yield table.suite, {"rows": len(asked), "answered": count, "refused": refused.total()}
    for group in sorted(answered.keys() | refused.keys()):
        yield group, {"refused": refused[group], **_summary(answered[group])}


def _summary(lines: list[Row]) -> Answer:
    """How many, by basis; geometric means of prediction and interval, and the deviation of the logarithms."""
    if not lines:
        return {"answered": 0}
    found: Answer = {"answered": len(lines), "basis": dict(sorted(Counter(x["basis"] for x in lines).items()))}
    for name in ("predicted", "low", "high"):
        logs = [math.log(v) for x in lines if x[name] and (v := float(x[name])) > 0.0]
        mean = math.fsum(logs) / len(logs) if logs else 0.0
        found[name] = math.exp(mean)
        if name == "predicted":
            found["deviation"] = math.sqrt(math.fsum((v - mean) ** 2 for v in logs) / max(len(logs), 1))
    return found


KIND = Kind("predictions", digests, needs=FOLDER)
