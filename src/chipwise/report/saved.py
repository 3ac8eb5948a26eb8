"""A saved answer: the question, the day, every table that was read, and the answer. One JSON file."""

from __future__ import annotations

import base64
import csv
import datetime as dt
import gzip
import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import field
from importlib.resources import files
from pathlib import Path
from typing import Any

from chipwise import __version__
from chipwise.catalog.configs import MORE, shipped_part
from chipwise.catalog.files import writing
from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import Snapshot
from chipwise.errors import CommandText, Sentence, UsageError, shorten
from chipwise.report.records import SCHEMA_VERSION
from chipwise.values import dataclass

FORMAT = "chipwise-saved"
MOST_BYTES = 64_000_000
SHIPPED = ("catalog/data/", "calibrate/data/", "evidence/data/", "workload/data/")
HOW = Sentence(
    "the JSON of an answer with its question: ", CommandText("plan MODEL --save FILE"), ", the page and /v1 write one"
)


@dataclass(frozen=True)
class Saved:
    """`verb` with `request` (fields by their public names) asked on `day` with `tables`, answered by `report`;
    `made_with` are the versions of Python and NumPy that worked it out, empty where the file does not say."""

    verb: str
    request: Mapping[str, Any]
    day: dt.date
    tables: Mapping[str, bytes]
    report: Mapping[str, Any]
    version: str = __version__
    made_with: Mapping[str, str] = field(default_factory=dict)

    @property
    def snapshot(self) -> Snapshot:
        """The facts that it rests on."""
        return Snapshot(self.tables, self.day)


def digest(tables: Mapping[str, bytes]) -> str:
    """The version of a catalogue: a hash of the names and contents of its tables."""
    whole = hashlib.sha256()
    for name in sorted(tables):
        whole.update(f"{name} {len(tables[name])}\n".encode())
        whole.update(tables[name])
    return whole.hexdigest()[:16]


def write_saved(saved: Saved, path: str | Path) -> None:
    """Write to a file, wholly or not at all. Raises `UsageError` where that cannot be, and for a file that the answer
    itself was made of."""
    text = saved_text(saved)
    with writing(path, *(name for name in saved.tables if not name.startswith(SHIPPED))) as out:
        out.write(text)


def saved_text(saved: Saved) -> str:
    """The JSON that `write_saved` writes."""
    document = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "chipwise": saved.version,
        "made_with": dict(saved.made_with),
        "verb": saved.verb,
        "request": dict(saved.request),
        "day": saved.day.isoformat(),
        "catalogue": digest(saved.tables),
        "report": saved.report,
        "tables": base64.b64encode(_packed(saved.tables)).decode(),
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


PAGE = '<script type="application/json" id="chipwise-record">'
"""What stands before the record in an answer that was written as a page."""


def document_of(text: str, path: str) -> dict[str, Any]:
    """The JSON object of a record that was kept, alone or inside a page. Raises `UsageError` for text that is none."""
    if text[:200].lstrip().lower().startswith("<!doctype html"):
        text = text.partition(PAGE)[2].partition("</script>")[0]
    try:
        document = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise UsageError(f"{path}: not a saved answer", HOW) from None
    if not isinstance(document, dict) or not (document.get("format") == FORMAT or "question" in document):
        raise UsageError(f"{path}: not a saved answer", HOW)
    return document


def saved_in(document: Mapping[str, Any], path: str) -> Saved:
    """The saved answer that a document holds. Raises `UsageError` for one that is damaged, or was made by a later
    version."""
    if document.get("schema_version") != SCHEMA_VERSION:
        found = shorten(str(document.get("schema_version")))
        raise UsageError(f"{path}: schema {found}, this is {SCHEMA_VERSION}", "save it again")
    try:
        tables = _unpacked(base64.b64decode(document["tables"], validate=True))
        saved = Saved(
            verb=str(document["verb"]),
            request=dict(document["request"]),
            day=dt.date.fromisoformat(document["day"]),
            tables=tables,
            report=dict(document["report"]),
            version=str(document["chipwise"]),
            made_with={str(name): str(version) for name, version in document.get("made_with", {}).items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):
        raise UsageError(f"{path}: a damaged saved answer", HOW) from None
    if digest(tables) != document.get("catalogue"):
        raise UsageError(f"{path}: its tables were changed after it was saved", "save it again")
    for name in foreign(tables):
        try:
            _parse(name, tables[name])
        except (ValueError, EOFError, OSError, csv.Error, zlib.error):
            raise UsageError(f"{path}: its table {shorten(name)} is damaged", "save it again") from None
    return saved


def foreign(tables: Mapping[str, bytes]) -> tuple[str, ...]:
    """The tables of chipwise among some that do not say what the installed ones say."""
    return tuple(n for n in sorted(tables) if n.startswith(SHIPPED) and tables[n] != _installed(n))


def _installed(name: str) -> bytes | None:
    table, _, part = name.partition("#")
    if table == MORE and part:
        return shipped_part(part)
    file = files("chipwise").joinpath(name)
    return file.read_bytes() if ".." not in name.split("/") and file.is_file() else None


def _parse(name: str, content: bytes) -> None:
    """Raises what a parser raises for a table that is none of its kind, `ValueError` for one that unpacks to too
    much."""
    if name.endswith(".gz"):
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
            content = packed.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ValueError("too large")
    text = content.decode("utf-8")
    if name.endswith(".toml"):
        parse(text)
    elif name.removesuffix(".gz").endswith(".csv"):
        for _ in csv.reader(io.StringIO(text), strict=True):
            pass


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def _packed(tables: Mapping[str, bytes]) -> bytes:
    """A zip of fixed dates, so that equal tables give equal bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(tables):
            archive.writestr(zipfile.ZipInfo(name), tables[name], zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _unpacked(packed: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
            raise ValueError("too large")
        return {name: archive.read(name) for name in archive.namelist()}
