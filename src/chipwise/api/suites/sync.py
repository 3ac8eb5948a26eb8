"""Benchmarks of others as rows of suites: read from files, kept apart where they cannot be, compared with answers.

A folder holds a table per suite and `quarantine.csv`. Reading the same files again adds nothing: a row's id is a digest
of what it says.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from chipwise.api.loaded import load
from chipwise.api.suites.round import compared_now
from chipwise.catalog.chips import get_chip
from chipwise.catalog.files import writing
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.importers import ImportTerms, read_paths
from chipwise.evidence.item import Item, impossible
from chipwise.evidence.rows import Row, read_rows
from chipwise.report.evidence import SyncReport
from chipwise.workload.graph import Graph

Columns: TypeAlias = tuple[str, ...]

TABLES: Mapping[str, Columns] = {
    "serving": (
        "id", "model", "chip", "chips", "tp", "pp", "dp", "ep", "precision", "kv_precision", "runtime",
        "runtime_version", "isl", "osl", "concurrency_or_batch", "request_rate", "metric", "value", "unit", "date",
        "source", "note",
    ),
    "local": (
        "id", "model", "chip", "chips", "quant", "runtime", "backend", "context", "metric", "value", "date", "source",
        "note",
    ),
    "training": (
        "id", "model", "config", "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "experts", "topk", "chip",
        "chips", "tp", "pp", "dp", "cp", "ep", "vp", "microbatch", "global_batch", "seq", "precision", "method",
        "recompute", "optimizer_sharding", "offload", "framework", "metric", "value", "unit", "tokens", "flops_counted",
        "date", "source",
    ),
}  # fmt: skip
"""Tables by name, in the columns of the published tables of `validate`."""
QUARANTINE: Columns = ("id", "model", "chip", "chips", "file", "why")


def sync(paths: Sequence[str], folder: str, given: ImportTerms) -> SyncReport:
    """Read results of others into the tables of a folder, and compare every row there with the product's answer.

    Raises `UsageError` where nothing can be read, or the folder cannot be written.
    """
    read = list(read_paths(paths, given))
    items = [item for file in read for item in file.items]
    left = [f"{file.file}: {why}" for file in read for why in file.skipped]
    if not items:
        raise UsageError(f"no results found: {left[0] if left else ', '.join(paths)}", "chipwise evidence sync --help")
    tables, bad, unsaid = _dealt(items)
    left += unsaid
    new, known = {}, {}
    for name, rows_by_id in tables.items():
        if rows_by_id:
            new[name], known[name] = _merged(Path(folder) / f"{name}.csv", TABLES[name], rows_by_id)
    if bad:
        _merged(Path(folder) / "quarantine.csv", QUARANTINE, bad)
    files = [str(Path(folder) / f"{name}.csv") for name in new]
    found = [compared_now(path) for path in files]
    refit = f"python -m chipwise.api.suites.refit discrepancy TABLES {' '.join(files)}"
    commands = (f"{refit}  # says coverage before and after; --write ships it", "python -m tests.golden --diff --ask")
    return SyncReport(folder, len(items), new, known, list(bad.values()), left, found, commands if files else ())


def _dealt(items: Sequence[Item]) -> tuple[dict[str, dict[str, Row]], dict[str, Row], list[str]]:
    """Rows by table and id, results that cannot be by id, and why others are no rows."""
    tables: dict[str, dict[str, Row]] = {name: {} for name in TABLES}
    bad: dict[str, Row] = {}
    unsaid = []
    for item in items:
        why = _impossible(item)
        if why:
            what = {"model": item.model, "chip": item.chip or item.part, "chips": str(item.chips or "")}
            bad[item.id] = {"id": item.id, **what, "file": item.file, "why": why}
            continue
        rows = list(_rows(item))
        if not rows:
            unsaid.append(f"{item.file}: {_lacking(item)}")
        for name, row in rows:
            tables[name][row["id"]] = row
    return tables, bad, unsaid


def _impossible(item: Item) -> str:
    try:
        chip = get_chip(item.chip) if item.chip else None
        graph = _graph(item.model, item.precision) if item.model else None
    except ChipwiseError:
        chip = graph = None
    return impossible(item, chip, graph)


@lru_cache(maxsize=256)
def _graph(model: str, precision: str) -> Graph:
    try:
        return load(model, precision or None).graph
    except ChipwiseError:
        return load(model, None).graph


SAID = ("chip", "chips", "model", "runtime", "input_tokens")
"""What a result must say to be a row."""


def _lacking(item: Item) -> str:
    """Why a result is no row."""
    if item.benchmark:
        return f"{item.benchmark}: MLPerf's tables are compared by chipwise evidence import and validate mlperf"
    missing = [name.replace("_", " ") for name in SAID if not getattr(item, name)]
    return f"says no {', '.join(missing)} (chipwise evidence sync --help)" if missing else "has no figure that is asked"


def _rows(item: Item) -> Iterator[tuple[str, Row]]:
    """The rows of a result by table, one per figure; none of one that does not say what ran."""
    if item.benchmark or not all(getattr(item, name) for name in SAID):
        return
    runtime, _, version = item.runtime.partition(" ")
    common = {
        "model": item.model,
        "chip": item.chip,
        "chips": str(item.chips),
        "date": item.date,
        "source": f"{item.submitter or item.format} {item.format}, {item.file}",
        "note": "; ".join(item.notes),
    }
    degrees = dict(part.partition("=")[::2] for part in item.layout.split(",") if part)
    prompt, tpot_s, ttft_s = item.input_tokens or 0.0, item.tpot_mean_s or 0.0, item.ttft_mean_s or 0.0
    if item.scenario == "training":
        figures: Mapping[str, float | None] = {"tokens_per_s_per_chip": item.per_chip}
        yield from _figures("training", {**common, **_trained(item), **degrees}, figures)
    elif item.scenario == "local":
        more = {"quant": item.precision, "runtime": runtime, "context": f"{prompt:g}"}
        rates = {"tg_tok_s": (1.0, tpot_s), "pp_tok_s": (prompt, ttft_s)}
        figures = {name: tokens / seconds for name, (tokens, seconds) in rates.items() if seconds}
        yield from _figures("local", {**common, **more}, figures)
    elif item.output_tokens:
        figures = {"tpot_ms": 1e3 * tpot_s, "ttft_ms": 1e3 * ttft_s, "tokens_out_per_s": item.tokens_per_s}
        asked = {**common, **_served(item), **degrees, "runtime": runtime, "runtime_version": version}
        yield from _figures("serving", asked, figures)


def _trained(item: Item) -> Row:
    """What a training run says beside its layout."""
    return {
        "method": "full",
        "framework": item.runtime,
        "precision": item.precision,
        "global_batch": f"{item.concurrency:g}" if item.concurrency else "",
        "seq": f"{item.input_tokens:g}",
        "microbatch": next((n.partition("=")[2] for n in item.notes if n.startswith("mbs=")), ""),
        "flops_counted": "not used",
    }


def _served(item: Item) -> Row:
    """What a run of a server says; without a layout all its chips share each tensor."""
    return {
        "tp": "1" if item.layout else str(item.chips),
        **dict.fromkeys(("pp", "dp", "ep"), "1"),
        "precision": item.precision,
        "isl": f"{item.input_tokens:g}",
        "osl": f"{item.output_tokens:g}",
        "concurrency_or_batch": f"{item.concurrency:g}" if item.concurrency else "",
        "request_rate": f"{item.requests_per_s:g}" if item.requests_per_s and "open" in item.scenario else "",
    }


def _figures(table: str, asked: Row, figures: Mapping[str, float | None]) -> Iterator[tuple[str, Row]]:
    for metric, value in figures.items():
        if value:
            row = {name: asked.get(name, "") for name in TABLES[table]} | {"metric": metric, "value": f"{value:.6g}"}
            said = sorted((k, v) for k, v in row.items() if k != "source")  # where a file lay does not matter
            digest = hashlib.sha256(repr(said).encode()).hexdigest()[:12]
            yield table, {**row, "id": f"s{digest}"}


def _merged(path: Path, columns: Columns, rows: Mapping[str, Row]) -> tuple[int, int]:
    """Add rows to a table by their ids; how many are new, and how many were there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    there = {row["id"]: row for row in read_rows(str(path), columns)} if path.exists() else {}
    new = {name: row for name, row in rows.items() if name not in there}
    if new:
        with writing(str(path)) as out:
            writer = csv.DictWriter(out, columns, lineterminator="\n")
            writer.writeheader()
            writer.writerows([*there.values(), *new.values()])
    return len(new), len(rows) - len(new)
