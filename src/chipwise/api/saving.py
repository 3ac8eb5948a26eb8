"""`--save`, `replay` and `diff`: answers that can be made again, and what changed between two of them."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields, replace
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from chipwise import __version__
from chipwise.api.requests.field import fields_of
from chipwise.api.requests.kinds import CATALOGUE, FORMER, PLANNING, Request, answer_type, question_in
from chipwise.api.requests.known import refuse_code, with_known
from chipwise.api.requests.statement import CheckStatementRequest
from chipwise.catalog.files import output_file, read_text
from chipwise.catalog.snapshot import Snapshot, current, today, use
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError, shorten
from chipwise.report.diff import Cause, DiffReport, ReplayReport, changes, first_plans, table_changes
from chipwise.report.saved import MOST_BYTES, Saved, digest, document_of, foreign, saved_in, write_saved
from chipwise.report.table import to_json
from chipwise.values import dataclass

# Tables by what a change of them means; the first prefix that fits.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "prices": tuple(f"catalog/data/{n}" for n in ("offer", "ownership", "purchases", "token_prices")),
    "published results": ("catalog/data/published/", "evidence/data/mlperf"),
    "catalogue": ("catalog/data/", "workload/data/"),
    "parameters": ("calibrate/data/", "evidence/data/"),
}
OWN = "your files"
KEPT: Mapping[str, type[Request]] = {**PLANNING, "check_statement": CheckStatementRequest, **CATALOGUE}
"""Verbs whose answers are kept; others answer about an answer."""


@dataclass(frozen=True)
class Answered:
    """An answer and all that it was made of."""

    report: Any
    saved: Saved


def save(verb: str, request: Request, path: str) -> Answered:
    """Ask, remember every table that is read, and write it all to a file.

    Raises the errors of the verb, and `UsageError` where the file cannot be written.
    """
    output_file(path)  # before the work is done
    found = answered(verb, request)
    write_saved(found.saved, path)
    return found


def answered(verb: str, request: Request) -> Answered:
    """The answer with every table that was read for it. Raises the errors of the verb."""
    own = request.resolved()
    return _ask(verb, fields_of(own), Snapshot(current().given, today(), read={}), own)


def asked_again(saved: Saved) -> Saved:
    """The answer to the question of a saved one, under the facts saved with it. Raises the errors of the verb, and
    `UsageError` for tables that cannot be read."""
    with reading(saved.tables):
        return _ask(saved.verb, saved.request, saved.snapshot).saved


def replay(path: str) -> ReplayReport:
    """Make a saved answer again from its own tables, and say whether it is the same to nine digits.

    Raises `UsageError` for a file that is no saved answer.
    """
    return replayed(_kept(_text(path), path, files=True), path)


def replayed(kept: Kept, named: str) -> ReplayReport:
    """The same of an answer that was kept. One that carries no tables is asked again of the installed ones. Raises
    `UsageError` for a record without figures, and what asking its question raises."""
    saved = kept.saved
    if not saved.report:
        raise UsageError(f"{named}: a question without its answer", "give the whole record")
    with reading(saved.tables):
        again = _ask(saved.verb, saved.request, saved.snapshot) if kept.whole else kept.asked()
    found = changes(saved.report, again.saved.report)
    return ReplayReport(
        verb=saved.verb,
        day=saved.day.isoformat() if kept.whole else "",
        catalogue=digest(saved.tables) if kept.whole else "",
        saved_by=saved.version,
        replayed_by=__version__,
        identical=not found,
        changes=found,
        report=again.report,
        saved_with=dict(saved.made_with),
        replayed_with=dict(again.saved.made_with),
    )


def diff(before: str, after: str) -> DiffReport:
    """What changed between two saved answers, cause by cause.

    The first question is asked again with one thing of the second at a time: the program (if it is not that
    which answered), each kind of table, the day, the question. The changes of a step are those of its cause,
    given the causes before it. Of answers that carry no tables, program, tables and day are one cause. Raises
    `UsageError` for files that are no saved answers of one verb.
    """
    kept = [_kept(_text(path), path, files=True) for path in (before, after)]
    return differing(kept[0], kept[1], before, after)


def differing(one: Kept, other: Kept, before: str, after: str) -> DiffReport:
    """The same of two answers that were kept, named `before` and `after`."""
    a, b = one.saved, other.saved
    if a.verb != b.verb:
        raise UsageError(f"{before} answers {a.verb} and {after} {b.verb}", "compare answers of one verb")
    whole = one.whole and other.whole
    if not whole:
        a, b = (k.saved if k.saved.report else k.asked().saved for k in (one, other))
    found = _steps(a, b) if whole else _steps_of_records(a, b, one, other)
    causes: list[Cause] = []
    report: Mapping[str, Any] = dict(a.report)
    for cause, facts, then in found:
        moved = changes(report, then)
        if moved or facts:
            causes.append(Cause(cause, tuple(facts), moved, first_plans(report, then)))
        report = dict(then)
    return DiffReport(before, after, tuple(causes), changes(a.report, b.report))


Step = tuple[str, Sequence[str], Mapping[str, Any]]
"""A cause, the facts that changed with it, and the answer after it."""


def _steps(a: Saved, b: Saved) -> Iterator[Step]:
    """From one saved answer to another, a cause at a time."""
    tables, request, day = dict(a.tables), a.request, a.day
    yield _program(a, a.version, __version__), (), _again(a.verb, request, tables, day)
    both, either = {*a.tables} & {*b.tables}, {*a.tables} | {*b.tables}
    for group in (*GROUPS, OWN):
        # a table that only one of them read has come or gone where one question was asked of other files or versions
        all_ = a.request == b.request and (group == OWN or a.version != b.version)
        names = sorted(n for n in (either if all_ else both) if _group(n) == group)
        if all(a.tables.get(n) == b.tables.get(n) for n in names):
            continue
        tables = {n: t for n, t in tables.items() if n not in names}
        tables |= {n: b.tables[n] for n in names if n in b.tables}
        yield group, _facts(a.tables, b.tables, names), _again(a.verb, request, tables, day)
    if a.day != b.day:
        day = b.day
        yield "day", [f"{a.day} -> {b.day}"], _again(a.verb, request, tables, day)
    if a.request != b.request:
        request = b.request
        told = _asked(a.verb, a.request, b.request)
        yield "question", told, _again(a.verb, request, b.tables, day)
    yield _program(b, __version__, b.version), (), b.report


def _program(saved: Saved, before: str, after: str) -> str:
    """What answered, before and after, as a cause: of one version it is another build, or what it ran on."""
    if before != after:
        return f"model of cost (chipwise {before} -> {after})"
    ran = {"python": "Python", "numpy": "NumPy"}
    now = {"python": platform.python_version(), "numpy": np.__version__}
    other = [f"{word} {saved.made_with[k]}" for k, word in ran.items() if saved.made_with.get(k, now[k]) != now[k]]
    on = f", saved with {' and '.join(other)}" if other else ""
    return f"model of cost (another build of chipwise {after}{on})"


def _steps_of_records(a: Saved, b: Saved, one: Kept, other: Kept) -> Iterator[Step]:
    """The same where an answer does not carry its tables: both questions are asked of the installed ones."""
    since = "what was installed (chipwise {}, tables and day) -> what is (chipwise {})"
    yield since.format(a.version, __version__), (), one.report_now()
    if a.request != b.request:
        yield "question", _asked(a.verb, a.request, b.request), other.report_now()
    back = "what is installed (chipwise {}, tables and day) -> what was (chipwise {})"
    yield back.format(__version__, b.version), (), b.report


def _asked(verb: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """How two questions differ. What one of them leaves out has its default, or was not given."""
    defaults = {_public(f.name): f.default for f in fields(cast(Any, KEPT[verb]))}

    def said(request: Mapping[str, Any], name: str) -> Any:
        value = request.get(name, KEPT[verb].implied(request).get(name, defaults.get(name)))
        return "not given" if value is None or value is MISSING else value

    names = dict.fromkeys((*before, *after))
    told = {name: (said(before, name), said(after, name)) for name in names}
    return [f"{name}: {old} -> {new}" for name, (old, new) in told.items() if old != new]


def request_of(verb: str, given: Mapping[str, Any]) -> Request:
    """A request from its fields by public name. Raises `UsageError` for a verb or field that does not exist."""
    if verb not in KEPT:
        raise UnknownNameError("verb", verb, KEPT)
    kind = KEPT[verb]
    names = {_public(f.name): f.name for f in fields(cast(Any, kind))}
    strange = sorted(set(given) - set(names))
    if strange:
        raise UsageError(f"{verb} has no field {strange[0]}", "it was saved by another version")
    hints = get_type_hints(kind)
    unlike = [name for name, value in given.items() if not _fits(value, hints[names[name]])]
    if unlike:
        raise UsageError(f"{verb}: {unlike[0]} is of another kind", "the file was changed after it was saved")
    try:
        return kind(**{names[name]: value for name, value in given.items()})
    except TypeError:
        raise UsageError(f"{verb}: a field is missing", "it was saved by another version") from None


@dataclass(frozen=True)
class Kept:
    """An answer that was kept, as it stands in its file: `whole` with the tables that it was made of, or the record
    alone, whose figures may be compared and are never launched. `files`: its question may name files."""

    saved: Saved
    whole: bool
    files: bool

    def asked(self) -> Answered:
        """The answer to its question under the installed tables. Raises the errors of the verb."""
        request = request_of(self.saved.verb, self.saved.request)
        refuse_code(request)
        if not self.files:
            request = with_known(question_in(KEPT, self.saved.verb, fields_of(request)))
        return answered(self.saved.verb, request)

    def report_now(self) -> Mapping[str, Any]:
        """The same as a record; an error, as it reads, where there is none."""
        try:
            return self.asked().saved.report
        except ChipwiseError as error:
            return {"error": str(error)}


def open_saved(path: str) -> Saved:
    """An answer that was kept in a file: by `--save`, or as the JSON that any face wrote, whose question is then asked
    again. Question and answer are of their verb's types. Raises `UsageError` for any other file."""
    return saved_of(_text(path), path, files=True)


def saved_of(text: str, named: str, *, files: bool = False) -> Saved:
    """The same of its text, `named` so in errors. Figures of a record without its tables are never taken from it: its
    question is asked anew.

    Raises `UsageError` for text that is no such record, and what asking its question raises.
    """
    kept = _kept(text, named, files=files)
    return kept.saved if kept.whole else kept.asked().saved


def kept_of(text: str, named: str) -> Kept:
    """What a text says that somebody else gave: tables in it are not read, and its question may name no file of this
    machine. Raises `UsageError` for text that is no record."""
    return _kept(text, named, files=False)


def _text(path: str) -> str:
    return read_text(Path(path), MOST_BYTES, "a saved answer")


def _kept(text: str, named: str, *, files: bool) -> Kept:
    document = document_of(text, named)
    whole = "tables" in document and files
    if whole:
        saved = saved_in(document, named)
        saved = replace(saved, verb=FORMER.get(saved.verb, saved.verb))
    else:
        saved = _record(document, named)
    if saved.verb in KEEPING:
        raise UsageError(f"{named}: {saved.verb} answers about another answer", "give that one")
    request_of(saved.verb, saved.request)
    if saved.report:
        check_answer(saved)
    return Kept(saved, whole, files)


KEEPING = ("launch", "replay", "diff")
"""Verbs about answers that were kept."""


def _record(document: Mapping[str, Any], named: str) -> Saved:
    """The record that stands in a document without tables, or whose tables are not read."""
    asked = document.get("question", document)
    if not (isinstance(asked, dict) and isinstance(asked.get("verb"), str) and isinstance(asked.get("request"), dict)):
        raise UsageError(f"{named}: its question is damaged", "export it again")
    told = {name: value for name, value in document.items() if name != "question"}
    report = told if "question" in document else document.get("report", {})
    if not isinstance(report, dict):
        raise UsageError(f"{named}: its answer is damaged", "export it again")
    verb = str(FORMER.get(asked["verb"], asked["verb"]))
    return Saved(verb, asked["request"], today(), {}, report, shorten(str(asked.get("chipwise", "?")), 20))


UNREAD = (UsageError, LookupError, TypeError, AttributeError, ValueError, ArithmeticError, EOFError, OSError)
"""What reading a table of another version raises."""


@contextmanager
def reading(tables: Mapping[str, bytes]) -> Iterator[None]:
    """Where tables of a saved answer are read that are not the installed ones, whatever goes wrong in reading them is
    their fault: raises `UsageError`. Under the installed tables it would be a bug, and is raised as it is."""
    try:
        yield
    except UNREAD as error:
        others = foreign(tables)
        if not others:
            raise
        raise UsageError(
            "this version cannot read the tables saved with the answer, as they are of another version: "
            f"{shorten(str(error))}; other than installed: {shorten(', '.join(n.rpartition('/')[2] for n in others))}",
            "chipwise of the version that saved it replays it; ask again for an answer of today",
        ) from None


def check_answer(saved: Saved) -> None:
    """Raises `UsageError` where a field of a saved answer is not of the type that the answer of its verb has.

    Fields that an earlier version did not write may be missing; a number that was not finite was written as null.
    """
    if saved.verb not in KEPT:
        raise UnknownNameError("verb", saved.verb, KEPT)
    wrong = _wrong(_answered_as(saved), json.dumps(saved.report))
    if wrong:
        where, value = wrong[0]
        raise UsageError(
            f"the saved answer's {where}: cannot use {shorten(repr(value), 40)}",
            "the file was changed after it was saved: save it again",
        )


def _wrong(kind: Any, text: str) -> list[tuple[str, Any]]:
    """Where the JSON of a record holds what the type does not take, and what."""
    from pydantic import TypeAdapter, ValidationError

    try:
        TypeAdapter(kind).validate_json(text, strict=True)
    except ValidationError as error:
        return [
            (shorten(".".join(map(str, found["loc"]))), found["input"])
            for found in error.errors(include_url=False, include_context=False)
            if found["type"] != "missing" and not (found["type"] == "float_type" and found["input"] is None)
        ]
    return []


def _answered_as(saved: Saved) -> Any:
    """The record that a saved answer is: of those that its verb gives, the one whose fields it has."""
    kind = answer_type(KEPT[saved.verb])
    kinds = get_args(kind) or (kind,)
    return max(kinds, key=lambda k: len({f.name for f in fields(k)} & saved.report.keys()))


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value read from JSON is one of a field's type."""
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    for member in members:
        if get_origin(member) is Literal:
            found = value in get_args(member)
        elif member is float:
            found = isinstance(value, int | float) and not isinstance(value, bool)
        else:
            found = isinstance(value, member) and (member is bool or not isinstance(value, bool))
        if found:
            return True
    return False


def _again(verb: str, request: Mapping[str, Any], tables: Mapping[str, bytes], day: Any) -> Mapping[str, Any]:
    """The answer of other facts; an error, as it reads, where there is none."""
    try:
        with reading(tables):
            return _ask(verb, request, Snapshot(tables, day)).saved.report
    except ChipwiseError as error:
        return {"error": str(error)}


def _ask(verb: str, given: Mapping[str, Any], snapshot: Snapshot, request: Request | None = None) -> Answered:
    """The answer to a question, or to that of the fields `given`, of the facts of a snapshot."""
    with use(snapshot):
        report = (request or request_of(verb, given)).answer()
    read = snapshot.given if snapshot.read is None else snapshot.read
    made_with = {"python": platform.python_version(), "numpy": np.__version__}
    saved = Saved(verb, given, snapshot.day or today(), read, json.loads(to_json(report)), made_with=made_with)
    return Answered(report, saved)


def _public(name: str) -> str:
    return name.removesuffix("_")


def _group(name: str) -> str:
    return next((g for g, starts in GROUPS.items() if name.startswith(starts)), OWN)


def _facts(a: Mapping[str, bytes], b: Mapping[str, bytes], names: Sequence[str]) -> list[str]:
    """What changed in some tables, line by line."""
    return [
        f"{name.rpartition('/')[2]}: {line}"
        for name in names
        if a.get(name) != b.get(name)
        for line in table_changes(name, a.get(name), b.get(name))
    ]
