"""Files of benchmarks -> evidence. One module per format; this page finds the files and chooses the module.

Nothing is executed, nothing is written, no link is followed, and nothing outside the given paths is read. A
file that is too large, corrupt or of another kind is named and skipped; the others are read all the same.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path

from chipwise.errors import UsageError, shorten
from chipwise.evidence.importers import (
    aiperf,
    guidellm,
    inference_perf,
    inferencex,
    llama_bench,
    loadgen,
    localscore,
    mlcommons,
    performance_pages,
    trainer_logs,
    vllm_bench,
)
from chipwise.evidence.item import Item, from_json, own_item
from chipwise.values import dataclass

__all__ = ["EXPORT", "FORMATS", "MAX_BYTES", "ImportTerms", "Imported", "exported", "read_file", "read_paths"]

MAX_BYTES = 64_000_000
"""A file above this is no summary: a full table of MLCommons has under 2 MB, a report with all requests may
have tens."""

MAX_FILES = 10_000
LARGEST = 1e15
"""A figure from here on is none: the largest machines serve 1e9 tokens per second."""
ENDINGS = (".json", ".jsonl")
TEXTS = (".txt", ".log", ".out", ".csv", ".md")
"""Endings of texts that may be results: in a folder those that are none are passed over in silence."""
FORMATS = (
    "vllm bench serve", "sglang bench_serving", "aiperf", "genai-perf", "guidellm", "inference-perf", "llama-bench "
    "(json, jsonl, csv, md)", "MLPerf LoadGen summaries and training logs", "MLCommons tables", "trainer_state.json",
    "logs of Megatron, NeMo, torchtune and MaxText", "InferenceX", "LocalScore", "pages of TensorRT-LLM and NeMo",
    "chipwise evidence export",
)  # fmt: skip
"""Everything that can be imported, as errors list it."""


@dataclass(frozen=True, slots=True)
class ImportTerms:
    """What the user knows and the files do not say; fills gaps, never overrides."""

    chip: str = ""
    chips: int | None = None
    model: str = ""
    precision: str = ""
    runtime: str = ""
    date: str = ""
    layout: str = ""


@dataclass(frozen=True, slots=True)
class Imported:
    """What was read from one file: its format and items, and why anything was left out."""

    file: str
    format: str
    items: tuple[Item, ...]
    skipped: tuple[str, ...]


READERS = (mlcommons, guidellm, inference_perf, inferencex, localscore, llama_bench)
"""Formats of one document each, the first that recognises it reads it."""


def read_paths(paths: Sequence[str], given: ImportTerms = ImportTerms()) -> Iterator[Imported]:  # noqa: B008
    """Every file of `paths`; of folders all that look like results. Raises `UsageError` for no paths."""
    if not paths:
        raise UsageError("nothing to import", "name files or folders of benchmark results")
    seen = 0
    for path in paths:
        for file in _files(path):
            seen += 1
            if seen > MAX_FILES:
                raise UsageError(f"more than {MAX_FILES:,} files", "import folders one by one")
            found = read_file(file, given)
            if found.format or file.suffix not in TEXTS or str(file) == path:
                yield found


def read_file(path: Path, given: ImportTerms = ImportTerms()) -> Imported:  # noqa: B008
    """One file. Never raises: what cannot be read is said in `skipped`."""
    name = shorten(path.name, 120)
    try:
        content = _content(path)
        format_, found = _read(content, name, given)
    except _SkipError as skip:
        return Imported(name, "", (), (str(skip),))
    found = [_sound(x) if isinstance(x, Item) else x for x in found] or ["no result in it, or cut short"]
    items = [_completed(x, given) for x in found if isinstance(x, Item)]
    return Imported(name, format_, tuple(items), tuple(x for x in found if isinstance(x, str)))


def _sound(item: Item) -> Item | str:
    """An item whose figures a machine can have reached; otherwise why it is left out."""
    for f in fields(Item):
        value = getattr(item, f.name)
        if isinstance(value, float) and not 0.0 <= value < LARGEST:
            return f"{f.name} = {value:.3g}: no run reaches that"
    return item


class _SkipError(Exception):
    """A file that is left out; the message says why."""


def _files(path: str) -> Iterator[Path]:
    root = Path(path)
    try:
        folder = root.is_dir()
    except (OSError, ValueError):
        folder = False
    if not folder:
        yield root
        return
    for where, folders, names in os.walk(root, followlinks=False):
        folders.sort()
        for name in sorted(names):
            file = Path(where) / name
            if name.endswith((*ENDINGS, *TEXTS)) and not file.is_symlink():
                yield file


def _content(path: Path) -> str:
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):
            raise _SkipError("not a file")
        if info.st_size > MAX_BYTES:
            raise _SkipError(f"{info.st_size / 1e6:,.0f} MB is too large (at most {MAX_BYTES / 1e6:g} MB)")
        with path.open(encoding="utf-8-sig") as source:
            return source.read(MAX_BYTES + 1)
    except UnicodeDecodeError:
        raise _SkipError("not a text file") from None
    except (OSError, ValueError) as error:
        raise _SkipError(getattr(error, "strerror", None) or "cannot be read") from None


def _read(content: str, name: str, given: ImportTerms) -> tuple[str, list[Item | str]]:
    if loadgen.recognise(content):
        return loadgen.FORMAT, list(loadgen.read(content, name))
    if page := performance_pages.recognise(content):
        return page, list(performance_pages.read(content, name))
    if llama_bench.recognise_text(content):
        return llama_bench.FORMAT, list(llama_bench.read_text(content, name))
    if not content.lstrip().startswith(("{", "[")) and (log := trainer_logs.recognise(content)):
        return log, list(trainer_logs.read(content, name, given.chips))
    documents, found = _documents(content)
    if documents and all(map(llama_bench.recognise, documents)) and len(documents) > 1:
        documents = [documents]  # JSON Lines: tests of one run are read together
    format_ = ""
    for data in documents:
        kind, items = _document(data, name)
        format_ = kind or format_
        found += items
    if not format_:
        raise _SkipError(f"JSON ({_described(documents[0])}), but of none of these formats: {', '.join(FORMATS)}")
    return format_, found


def _document(data: object, name: str) -> tuple[str, Iterable[Item | str]]:
    """The format of one document and what it holds; "" where it is of none."""
    reader = next((one for one in READERS if one.recognise(data)), None)
    if reader is not None:
        return reader.FORMAT, reader.read(data, name)
    if trainer_logs.recognise_state(data):
        return trainer_logs.STATE, trainer_logs.read_state(data, name)
    if exported(data):
        return EXPORT, [_again(data)]
    if tool := vllm_bench.recognise(data):
        return tool, vllm_bench.read(data, name)
    if tool := aiperf.recognise(data):
        return tool, aiperf.read(data, name)
    return "", ()


def _described(data: object) -> str:
    """What a document of no known format holds, in a few words."""
    if isinstance(data, dict):
        keys = ", ".join(shorten(str(key), 24) for key in list(data)[:6])
        return f"an object with {keys}{', ...' if len(data) > 6 else ''}" if keys else "an empty object"
    if isinstance(data, list):
        return f"a list of {len(data)}, the first {_described(data[0])}" if data else "an empty list"
    return "a single value"


EXPORT = "chipwise evidence export"


def exported(data: object) -> bool:
    """Whether a document is evidence as `chipwise evidence export` writes it."""
    return isinstance(data, dict) and {"id", "origin", "format", "model", "result"} <= data.keys()


def _again(data: object) -> Item | str:
    """An exported item, by the id that it has; why it is left out where it cannot be read."""
    try:
        item = from_json(json.dumps(data))
    except ValueError as error:
        return f"not evidence that this version reads: {error}"
    return item if item.origin == "own" else f"{item.id} is published, and comes with chipwise"


def _documents(content: str) -> tuple[list[object], list[Item | str]]:
    """One JSON document, or one per line (`--append-result`, SGLang), and the lines that are none.

    A run that was cut off leaves half a line at the end: the runs before it are kept.
    """
    try:
        return [json.loads(content)], []
    except RecursionError:
        raise _SkipError("JSON nested too deep") from None
    except ValueError:
        documents: list[object] = []
        broken: list[Item | str] = []
        for number, line in enumerate(content.splitlines(), 1):
            if not line.strip():
                continue
            try:
                documents.append(json.loads(line))
            except (ValueError, RecursionError):
                broken.append(f"line {number}: not JSON, or cut short")
        # of one document over several lines some lines may be JSON by themselves: "}" is not, but a number is
        if not any(isinstance(d, dict) for d in documents):
            first = next((line.strip() for line in content.splitlines() if line.strip()), "")
            kind = f"text that begins '{shorten(first, 40)}'" if first else "an empty file"
            cut = ", or JSON that was cut short" if first[:1] in "{[" and first else ""
            raise _SkipError(f"{kind}{cut}: of none of these formats: {', '.join(FORMATS)}") from None
        return documents, broken


def _completed(item: Item, given: ImportTerms) -> Item:
    """Gaps filled with what the user knows; the id follows the content."""
    known = {name: getattr(given, name) for name in ImportTerms.__dataclass_fields__}
    missing = {name: value for name, value in known.items() if value and not getattr(item, name)}
    if not missing:
        return item
    whole = replace(item, **missing, notes=(*item.notes, f"said by you: {', '.join(sorted(missing))}"))
    values = {n: getattr(whole, n) for n in Item.__dataclass_fields__ if n not in ("id", "origin", "format")}
    return own_item(whole.format, values)
