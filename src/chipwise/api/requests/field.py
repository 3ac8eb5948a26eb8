"""A field of a question: its help, and how what is given for it becomes text and values.

Every door, the command line, HTTP, agents and Python, gives a field what comes naturally there: text with units,
numbers, lists, dictionaries. A question writes each down once as the text that a person would type, which is what is
compared, saved and shown as a command, and reads that text once, when it is made.
"""

from __future__ import annotations

import inspect
import json
import math
import operator
import os
import types
import typing
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast, get_args, get_origin

from chipwise.api.answering import Choosing, Ranked, ranked
from chipwise.catalog.configs import INLINE, MAX_BYTES
from chipwise.catalog.parsed import names
from chipwise.errors import ChipwiseError, Sentence, UnknownNameError, UsageError, shorten
from chipwise.units import parse_quantity
from chipwise.values import dataclass

if TYPE_CHECKING:
    from chipwise.calibrate.parameters import Parameters


@dataclass(frozen=True)
class Reading:
    """How a field of text is read.

    `said` writes what a program gives (a number, a list, a dictionary) as text, `read` makes values of the text
    under the name of its option, and `also` are the JSON types that doors take besides text; `pattern` is one that
    text matches. `names`: it names something, so that no control character stands in it. `told` is the help of doors
    that open no files, where it differs.
    """

    read: Callable[[str, str], Any]
    said: Callable[[Any], str]
    also: tuple[Mapping[str, Any], ...] = ()
    pattern: str = ""
    names: bool = True
    told: str = ""

    def schema(self, text: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The JSON schemas of what a field takes, `text` being that of its text."""
        return [{**text, **({"pattern": self.pattern} if self.pattern else {})}, *map(dict, self.also)]


class Asked:
    """Base of what is asked: a frozen value that parses itself. What is given is written as text and read as the
    question is made; `values` holds what each field of text says. Names are looked up later, in the catalogue of the
    answer. Errors carry the field.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    values: Mapping[str, Any]

    def __post_init__(self) -> None:
        found: dict[str, Any] = {}
        for name, (given, reading) in _readings(cast(Any, type(self))).items():
            value = getattr(self, name)
            try:
                taken = given(value)
                if taken is not value:
                    object.__setattr__(self, name, taken)
                if isinstance(taken, str) and (reading is None or reading.names):
                    _short(option_of(name), taken, lists=reading not in (None, WORDS))
                    printable(option_of(name), taken)
                if reading is not None:
                    found[name] = None if taken is None else reading.read(taken, option_of(name))
            except ChipwiseError as error:
                error.field = error.field or name.rstrip("_")
                raise
        object.__setattr__(self, "values", types.MappingProxyType(found))

    def __reduce__(self) -> tuple[Any, ...]:
        given = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return _made, (type(self), given)

    def run(self) -> Any:
        """The answer as a record. Raises `ChipwiseError` where there is none."""
        raise NotImplementedError

    def answer(self) -> Any:
        """The same; an error carries the field that it is about, where a field holds the name that does not exist or
        stands first in its words."""
        with self._placed():
            return self.run()

    def resolved(self) -> Any:
        """The question by itself, where it names an answer that was kept. Raises `UsageError` where it is none."""
        return self

    ranking = False
    """Whether it ranks the chips that it names, so that some of them are a smaller question."""

    def glance(self) -> Any:
        """The answer without what stands beside the plans, for a question that still changes."""
        return self.answer()

    def answers(self) -> Generator[Any, None, Any]:
        """The answer, as `answer` has it; before it comes what can be read of it already, of most questions nothing."""
        yield from ()
        return self.answer()

    @contextmanager
    def _placed(self) -> Iterator[None]:
        try:
            yield
        except ChipwiseError as error:
            name = error.name if isinstance(error, UnknownNameError) else ""
            error.field = error.field or self._holding(name) or self._first(error.what)
            raise

    def _first(self, what: str) -> str:
        """The field that stands first in the words of an error, `--m 0: ...` or `seq: ...`; "" for none."""
        name = Sentence(what).first
        return name if name in {outer(f) for f in fields(self)} else ""  # type: ignore[arg-type]

    def _holding(self, name: str) -> str:
        """The field that says a name: alone, or among others; "" where none does."""
        said = {outer(f): getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        texts = {field: text for field, text in said.items() if isinstance(text, str) and name}
        alone = (field for field, text in texts.items() if text.strip() == name)
        return next(alone, None) or next((field for field, text in texts.items() if name in text), "")

    @classmethod
    def implied(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """What fields that were left out mean where it depends on those that were given, by public name."""
        return {}


class ChoiceRequest(Asked):
    """A question whose answer is a choice among plans: each reads itself (`asking`), all are answered alike."""

    def asking(self, numbers: Parameters | None = None, *, published: bool = True) -> Choosing[Any, Any, Any]:
        """The question, read, to be answered with these fitted numbers (None: those of the question); not `published`:
        without published results beside its plans. Raises `ChipwiseError` for what makes no sense."""
        raise NotImplementedError

    def ranked(self, numbers: Parameters | None = None, *, published: bool = True) -> Ranked[Any]:
        """The plans as they are ranked. Raises the errors of `asking`, and `InfeasibleError` where there is none."""
        return ranked(self.asking(numbers, published=published))

    def glance(self) -> Any:
        """The ranked plans alone, without what was published near them."""
        with self._placed():
            return self.ranked(published=False).report


def ask(
    help_: str, default: Any = None, *, name: str | None = None, file: bool = False, reading: Reading | None = None
) -> Any:
    """A field with its help; `name` replaces its Python name, `file` marks names that may be files, `reading` says how
    text becomes values. A default of `MISSING` makes the field required.

    Command line and schemas both read the help from the field's metadata, each under its own key. Doors that
    serve others let no file through.
    """
    metadata = {"help": help_, "description": help_, "file": file, "reading": reading}
    return field(default=default, metadata=metadata | ({"alias": name} if name else {}))


ALSO = {"chip": "chips", "chips": "chip", "for": "model"}
"""Names under which every door takes a field too: `--chip` where a question has `chips`."""


ELSEWHERE: Mapping[str, str] = names("catalog/data/elsewhere.toml")
"""Fields as other tools call them, with ours, the first that a verb has: what an error about an unknown field names."""


def outer(f: Any) -> str:
    """The public name of a field: `in` for `in_`."""
    return str(f.metadata.get("alias") or f.name)


def homes_of(kind: Any, own: str = "") -> dict[str, str]:
    """What the part of a question that brings each field says of itself, in a few words, by the name of the field;
    `own` is said of those that the question brings itself."""
    found: dict[str, str] = {}
    for cls in reversed(kind.__mro__):
        title = (cls.__doc__ or "").split("\n")[0].split(":")[0].rstrip(".")
        title = own if own and cls is kind else title
        found = dict.fromkeys(inspect.get_annotations(cls), title) | found
    return {f.name: found[f.name] for f in fields(kind)}


def option_of(name: str) -> str:
    """A field as the option of the command line: `--max-usd`."""
    return f"--{name.rstrip('_').replace('_', '-')}"


def split(text: str | None) -> tuple[str, ...]:
    """A comma-separated list; blanks between commas are left out, a list of blanks is an error."""
    if text is None:
        return ()
    parts = tuple(part.strip() for part in text.split(",") if part.strip())
    if not parts:
        raise UsageError(f"'{shorten(text)}' is an empty list of names", "separate names by commas")
    if len(parts) > MOST_NAMES:
        raise UsageError(f"{len(parts):,} names in one list", f"at most {MOST_NAMES:,}")
    return parts


MOST_NAMES = 500
"""In a list: more than the chips of the catalogue."""


def pairs(text: str | None, option: str) -> dict[str, str]:
    """`a=1,b=2` as a dictionary. Raises `UsageError` for a part without an equals sign and a name that stands twice."""
    found: dict[str, str] = {}
    for part in split(text):
        name, equals, value = part.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise UsageError(f"{option}: cannot read '{shorten(part)}'", "write NAME=VALUE, separated by commas")
        if name.strip() in found:
            raise UsageError(f"{option}: '{shorten(name.strip())}' is given twice", "keep the value that is meant")
        found[name.strip()] = value.strip()
    return found


def share(text: str | None, option: str) -> float | None:
    """A part of a whole, as in `0.3` or `30%`, None where none was given. Raises `UsageError` out of [0, 1]."""
    if text is None:
        return None
    number = text.strip()
    scale = 0.01 if number.endswith("%") else 1.0
    if scale == 1.0 and 1.0 < parse_quantity(number, "", option) <= 100.0:
        ways = (f"{number}%", as_text(float(number) / 100.0))
        raise UsageError(
            f"{option} {number} is more than the whole",
            f"for example {option} {ways[0]}",
            field=_field(option),
            instead=ways,
        )
    return scale * parse_quantity(number.removesuffix("%"), "", option, low=0.0, high=1.0 / scale)


def count_of(value: int | None, option: str, what: str, high: int = 1_000_000) -> int | None:
    """A count from 1 to `high`, None where none was given. Raises `UsageError` out of that."""
    if value is not None and not 1 <= value <= high:
        far = "too few" if value < 1 else "too many"
        raise UsageError(f"{option} {value} is {far}", f"1 to {high:,} {what}", field=_field(option))
    return value


def whole(text: str, option: str, *, low: float, high: float) -> int:
    """A count, as in `4k`. Raises `UsageError` out of [low, high] and for parts of one."""
    number = parse_quantity(text, "", option, low=low, high=high)
    if number % 1:
        raise UsageError(
            f"{option}: {shorten(text)} is not a whole number", f"for example {max(int(number), int(low)) or 1}"
        )
    return int(number)


def _field(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


# what programs give, as text


def as_text(value: Any) -> str:
    """A value as the text that says it: names and lists by commas, pairs by equals signs."""
    if isinstance(value, str):
        return value
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if hasattr(value, "tolist"):  # an array, or a number of one
        return as_text(value.tolist())
    if isinstance(value, Mapping):
        return ",".join(f"{name}={as_text(v)}" for name, v in value.items())
    if isinstance(value, bool):
        raise TypeError
    if hasattr(value, "__index__"):
        return str(operator.index(value))
    if hasattr(value, "__float__") and not isinstance(value, complex):
        number = float(value)
        if not math.isfinite(number):
            raise TypeError
        short = f"{number:.10g}"
        return short if float(short) == number else repr(number)
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return ",".join(as_text(v) for v in value)
    raise TypeError


def as_word(value: Any) -> str:
    """A name or number as text; no list or dictionary says one."""
    if isinstance(value, Mapping) or (isinstance(value, Iterable) and not isinstance(value, str)):
        raise TypeError
    return as_text(value)


def _configuration(value: Any) -> str:
    """A name or path, or the keys of a configuration as JSON."""
    return json.dumps(value, separators=(",", ":")) if isinstance(value, dict) else as_word(value)


def as_list(value: Any) -> str:
    """Names or numbers by commas; nothing of one stands for all."""
    if isinstance(value, Mapping):
        raise TypeError
    return as_text(value)


def _rates_said(value: Any) -> str:
    """Rates by commas, with one at the end: text without any could be the name of a file."""
    return value if isinstance(value, str) else f"{as_list(value)},"


LONGEST_TEXT = 1_000
"""Characters of a name, a path or a sentence, and of each part of a list: five times the longest name that there is."""


def _short(option: str, text: str, *, lists: bool = False) -> None:
    """Raises `UsageError` for a text that is too long to be looked up, before anything is."""
    if len(text) <= LONGEST_TEXT or (lists and max(map(len, text.split(","))) <= LONGEST_TEXT):
        return
    what = f"{option}: {len(text):,} characters, '{shorten(text[:80], 40)}'"
    where = " between two commas" if lists else ""
    hint = f"at most {LONGEST_TEXT:,}{where}; a configuration is given as an object, not as a name"
    raise UsageError(what, hint if option.lstrip("-") == "model" else f"at most {LONGEST_TEXT:,}{where}: shorten it")


def printable(option: str, text: str) -> None:
    """Raises `UsageError` for a name with a control character, which no file, script or terminal should hold."""
    strange = next((c for c in text if not c.isprintable() and not c.isspace()), None)
    if strange is not None:
        what = f"{option}: '{shorten(text, 40)}' holds the control character U+{ord(strange):04X}"
        raise UsageError(what, "write the name without it")


def _config(text: str, option: str) -> str:
    if not text.lstrip().startswith(INLINE):
        _short(option, text)
        printable(option, text)
    if len(text) > MAX_BYTES:
        raise UsageError(f"{option}: {len(text):,} characters are no model", f"at most {MAX_BYTES:,}")
    return text


NUMBER = {"type": "number"}
STRINGS = {"type": "array", "items": {"type": ["string", "number"]}}
OBJECT = {"type": "object"}


def figure(unit: str, *, low: float, high: float) -> Reading:
    """A quantity in `unit`, where a bare number is one in SI."""

    def read(text: str, option: str) -> float:
        return parse_quantity(text, unit, option, low=low, high=high)

    return Reading(read, as_word, (NUMBER,))


WORDS = Reading(lambda text, _: text, as_word)
"""Text as it is: a name, a number as text."""
NAMES = Reading(lambda text, _: split(text), as_list, (STRINGS,))
"""Names by commas, or a list of them."""
PAIRS = Reading(pairs, as_text, (OBJECT,))
"""`a=1,b=2`, or a dictionary."""
SHARE = Reading(share, as_word, (NUMBER,))
"""A part of a whole, `0.3` or `30%`."""
RATES = Reading(lambda text, _: text, _rates_said, (STRINGS,))
"""Rates by commas, a list of them, or a file that holds them."""
CONFIG = Reading(
    _config,
    _configuration,
    (OBJECT,),
    names=False,
    told="a bundled name, the keys of a config.json, or dimensions such as transformer:layers=40,hidden=5120,...",
)
"""A model by name, path or dimensions, or the keys of its configuration."""


def duration(low: float = 1e-9, high: float = 1e6, units: tuple[str, str] = ("ms", "s")) -> Reading:
    """A time with its unit. A bare number is refused with both its readings: `40` may be `40ms` or `40s`."""

    def read(text: str, option: str) -> float:
        given = text.strip()
        parse_quantity(given, "s", option)
        if not given[-1:].isalpha():
            ways = tuple(f"{given}{unit}" for unit in units)
            hint = f"a time has a unit, e.g. {option} {ways[0]}"
            raise UsageError(f"{option} {shorten(given)}: {' or '.join(ways)}?", hint, instead=ways)
        return parse_quantity(given, "s", option, low=low, high=high)

    return Reading(read, as_word, pattern=r"[A-Za-zµ]\s*$")


# what a field takes, by its type


def _made(kind: Any, given: Mapping[str, Any]) -> Any:
    return kind(**given)


@cache
def _readings(kind: Any) -> dict[str, tuple[Callable[[Any], Any], Reading | None]]:
    """How each field of a question takes what is given, and how its text is read."""
    hints = typing.get_type_hints(kind)
    found = {}
    for f in fields(kind):
        members = _members(hints[f.name])
        reading = f.metadata.get("reading") or (WORDS if str in members else None)
        found[f.name] = _taking(f, members, reading), reading
    return found


def _members(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) is typing.Annotated:
        hint = get_args(hint)[0]
    union = get_origin(hint) in (typing.Union, types.UnionType)
    return get_args(hint) if union else (hint,)


def _taking(f: Any, members: tuple[Any, ...], reading: Reading | None) -> Callable[[Any], Any]:
    """What takes a value of a field: the value itself where it is of its type, else what it says. None stands for the
    default."""
    name, help_ = outer(f), str(f.metadata.get("help", ""))
    literal = next((get_args(m) for m in members if get_origin(m) is Literal), None)
    kind = next((k for k in (bool, int, float) if k in members), None)

    def take(value: Any) -> Any:
        if value is None and f.default is not MISSING:
            return f.default
        try:
            if literal is not None:
                if value in literal:
                    return value
            elif reading is not None:
                return _text(f, value, reading)
            elif kind is not None:
                return _number(kind, value, option_of(name))
        except (TypeError, ValueError, KeyError, OverflowError, RecursionError):
            pass
        wanted = _wanted(literal, kind, reading)
        raise UsageError(f"{name}: cannot use {shorten(repr(value), 60)}, expected {wanted}", help_)

    return take


def _text(f: Any, value: Any, reading: Reading) -> Any:
    """A value as the text that says it; an object without keys changes nothing, a list without names would be all."""
    text = value if isinstance(value, str) else reading.said(value)
    if text or isinstance(value, str):
        return text
    if isinstance(value, Mapping) and f.default is not MISSING:
        return f.default
    name = outer(f)
    raise UsageError(f"{name}: an empty {type(value).__name__} names nothing", f"leave out {name} for the default")


def _number(kind: type, value: Any, option: str) -> Any:
    if kind is bool:
        words = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False}
        return value if isinstance(value, bool) else (words | {"off": False})[str(value).strip().lower()]
    if isinstance(value, bool):
        raise TypeError
    number = parse_quantity(value, "", option, low=-math.inf) if isinstance(value, str) else float(value)
    if kind is float:
        return number
    if number % 1:
        raise UsageError(f"{option}: {shorten(str(value))} is not a whole number", f"for example {int(number) or 1}")
    return value if type(value) is int else int(number)


def _wanted(literal: tuple[Any, ...] | None, kind: type | None, reading: Reading | None) -> str:
    if literal is not None:
        words = [f"'{word}'" for word in literal]
        return f"{', '.join(words[:-1])} or {words[-1]}"
    if kind is not None:
        return {bool: "true or false", int: "a whole number", float: "a number"}[kind]
    types_ = [str(also["type"]) for also in reading.also] if reading else []
    words = {"number": "a number", "array": "a list", "object": "an object"}  # type: ignore[assignment]
    return " or ".join(["text", *(words[t] for t in types_)])  # type: ignore[call-overload]


def fields_of(request: Any) -> dict[str, Any]:
    """The fields of a question that differ from their defaults, by public name."""
    return {outer(f): getattr(request, f.name) for f in fields(request) if getattr(request, f.name) != f.default}
