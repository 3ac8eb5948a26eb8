"""One error family: what is wrong, the nearest valid names, the next step.

```
ChipwiseError            exit code
├── UsageError           2   a value that cannot be used: malformed, negative, illegal
├── UnknownNameError     3   a chip, model, runtime or key that does not exist; carries the nearest names
├── InfeasibleError      4   nothing fits, or a target cannot be met: by how much, and what would mend it
└── MissingExtraError    5   an optional dependency is not installed; carries the pip line
```
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice, pairwise, takewhile

from chipwise.values import dataclass

ALIKE = 0.6
"""Likeness from which on a name may be the one that was meant: that of `difflib`."""


LONGEST_NAME = 200
"""Characters of a name: four times the longest of a published checkpoint. Longer texts are not compared with names,
which takes a time that grows with their square."""

MOST_KNOWN = 8_000
"""Names that one is compared with: more than there are published results; a configuration of the user's may have more
keys."""

FEW = 40
"""Names that are listed where none resembles the one that was given."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A part of the question in a sentence, by the name of its field; `value` where the sentence says what to give. The
    command line writes `--max-chips 8`, those who send fields `max_chips=8`."""

    name: str
    value: str = ""

    def __str__(self) -> str:
        option = f"--{self.name.replace('_', '-')}"
        return f"{option} {self.value}" if self.value else option

    @property
    def as_field(self) -> str:
        """As those write it who send fields."""
        return f"{self.name}={self.value}" if self.value else self.name


@dataclass(frozen=True, slots=True)
class CommandText:
    """A command in a sentence, without the name of the program. Where it is only about what its verb `does`, as in
    `shows` or `lists them`, those who call verbs by name hear that; `lead` stands before it on the command line."""

    command: str
    does: str = ""
    lead: str = ""

    def __str__(self) -> str:
        does = "" if self.lead or not self.does else f" {self.does}"
        return f"{self.lead}chipwise {self.command}{does}"

    @property
    def as_field(self) -> str:
        """As those write it who send fields: a command with options is shown as it is."""
        return f"the verb {self.command.split()[0]} {self.does}" if self.does else f"chipwise {self.command}"


class Sentence(str):
    """A sentence to a user, in the words of the command line; `parts` are what it was made of, so that others write
    the options and commands in it their own way."""

    __slots__ = ("parts",)

    parts: tuple[str | Setting | CommandText, ...]

    def __new__(cls, *parts: str | Setting | CommandText) -> Sentence:
        """A sentence of texts, which may be sentences too, settings and commands."""
        made = super().__new__(cls, "".join(map(str, parts)))
        made.parts = tuple(part for whole in parts for part in _parts(whole))
        return made

    def __getnewargs__(self) -> tuple[str | Setting | CommandText, ...]:  # type: ignore[override]
        return self.parts

    @property
    def as_fields(self) -> str:
        """The sentence as those read it who send fields: `max_chips` for `--max-chips`."""
        return "".join(part if isinstance(part, str) else part.as_field for part in self.parts)

    @property
    def first(self) -> str:
        """The field that the sentence begins with, as in `--m 0: ...` or `seq: ...`; "" for none."""
        head = self.parts[0] if self.parts else ""
        if isinstance(head, Setting):
            return head.name
        name, colon, _ = str(head).partition(":")
        return name if colon and name.isidentifier() else ""


def listed(verb: str, command: str = "") -> Sentence:
    """Where names are to be looked up: `list them: chipwise chips list`."""
    return Sentence(CommandText(f"{command or verb} list", "lists them", lead="list them: "))


def _parts(said: str | Setting | CommandText) -> Iterator[str | Setting | CommandText]:
    """What a sentence is made of. A text names fields as options of the command line, `--max-chips`, wherever a word
    begins."""
    if isinstance(said, Sentence):
        yield from said.parts
        return
    if not isinstance(said, str):
        yield said
        return
    text, *rest = said.split("--")
    for part in rest:
        name = "".join(takewhile(lambda c: "a" <= c <= "z" or c == "-", part))
        inside = text[-1:].isalnum() or text[-1:] in ("-", "_")
        if inside or not name or name.startswith("-"):
            text += f"--{part}"
            continue
        if text:
            yield text
        yield Setting(name.replace("-", "_"))
        text = part[len(name) :]
    if text:
        yield text


class ChipwiseError(Exception):
    """Anything the user can mend. `what` is one sentence; `hint` is the next step; `field` is the part of the question
    that it is about, "" where it is about the whole. Sentences are texts, or `Sentence` where they hold commands or
    values to give, which faces write their own way."""

    exit_code = 1

    def __init__(self, what: str, hint: str = "", *, field: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.field = field

    def __str__(self) -> str:
        return f"{self.what} ({self.hint})" if self.hint else self.what


class UsageError(ChipwiseError):
    """A value that cannot be used. `instead` are values of the field that were perhaps meant."""

    exit_code = 2

    def __init__(self, what: str, hint: str = "", *, field: str = "", instead: Iterable[str] = ()) -> None:
        super().__init__(what, hint, field=field)
        self.instead = tuple(instead)


class UnknownNameError(ChipwiseError):
    """A name that does not exist in its table. What is near is looked for when somebody asks: most who try a name only
    want to know whether it is one."""

    exit_code = 3

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        self.name = name
        self._known = tuple(known)
        self._nearest: tuple[str, ...] | None = None
        super().__init__(f"unknown {kind} '{shorten(name)}'", hint)
        self._whole = False

    @property
    def nearest(self) -> tuple[str, ...]:
        """The known names that resemble it, best first."""
        if self._nearest is None:
            self._nearest = nearest(self.name, self._known)
        return self._nearest

    @nearest.setter
    def nearest(self, names: Iterable[str]) -> None:
        self._nearest = tuple(names)

    @property
    def hint(self) -> str:
        """The next step: the nearest names, and what was said beside them."""
        if not self._whole:
            near, names, said = nearest(self.name, self._known), self._known, self._hint
            if near:
                said = Sentence(f"did you mean {', '.join(near)}?", *((" ", said) if said else ()))
            elif not said and len(names) <= FEW:
                said = f"one of {', '.join(sorted(filter(str.isprintable, names)))}"
            self.hint = said
        return self._hint

    @hint.setter
    def hint(self, said: str) -> None:
        self._hint, self._whole = said, True


def check_known(kind: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raises `UnknownNameError` for the first of some names that a table does not have."""
    for name in names:
        if name not in known:
            raise UnknownNameError(kind, name, known, f"one of {', '.join(known)}")


class InfeasibleError(ChipwiseError):
    """No plan satisfies what was asked.

    `reasons` counts candidates by what they fell to; `reachable` are the best figures that can be had, units in
    their names. `see` is the verb that shows more. `answered`: the answer was given in full, the error only sets
    the exit code.
    """

    exit_code = 4

    def __init__(
        self,
        what: str,
        hint: str = "",
        *,
        reasons: Mapping[str, int] | None = None,
        reachable: Mapping[str, float] | None = None,
        see: str = "",
        answered: bool = False,
    ) -> None:
        super().__init__(what, hint)
        self.reasons = dict(reasons or {})
        self.reachable = dict(reachable or {})
        self.see = see
        self.answered = answered


class MissingExtraError(ChipwiseError):
    """An optional dependency is needed for what was asked."""

    exit_code = 5

    def __init__(self, need: str, extra: str, command: str = "") -> None:
        """`command` installs what no extra can."""
        super().__init__(f"{need} needs an extra", command or f"pip install 'chipwise[{extra}]'")


def shorten(text: str, width: int = 80) -> str:
    """`text` on one line, without control characters and at most `width` characters long."""
    line = "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))
    return line if len(line) <= width else line[: width - 3] + "..."


def is_name(text: str) -> bool:
    """Whether a text may be the name of anything: it is not longer than `LONGEST_NAME`, and no JSON."""
    return len(text) <= LONGEST_NAME and not text.lstrip().startswith(("{", "["))


def nearest(name: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Up to `count` known names that resemble `name`, best first; case and separators are ignored. Names that cannot be
    printed, which a file of others may hold, are none to be offered."""
    wanted = _plain(name) if is_name(name) else ""
    if not wanted:
        return ()
    letters = Counter(wanted)

    def likeness(key: str) -> float:
        """The ratio of `difflib`, or 0 where letters alone show that it is below `ALIKE`: soon, for most names."""
        both = len(wanted) + len(key)
        if 2.0 * min(len(wanted), len(key)) / both < ALIKE:
            return 0.0
        if 2.0 * sum(min(n, key.count(c)) for c, n in letters.items()) / both < ALIKE:
            return 0.0
        return difflib.SequenceMatcher(None, wanted, key).ratio()

    scored = []
    for candidate in islice(known, MOST_KNOWN):
        key, tail = _spelt(candidate)
        score = max(map(likeness, {key, tail}))
        if wanted in key and _begins_word(candidate, wanted):
            score = max(score, 0.75 + 0.25 * len(wanted) / len(key))
        scored.append((score, candidate))
    scored.sort(key=lambda pair: (-pair[0], pair[1]))
    near = (candidate for score, candidate in scored if score >= ALIKE and candidate.isprintable())
    return tuple(islice(near, count))


def _begins_word(name: str, text: str) -> bool:
    """Whether a plain text stands in a name from the begin of a word or a number on: `lama` not in `salamandra`."""
    return any(
        _plain(name[at:]).startswith(text)
        for at, (before, first) in enumerate(pairwise(" " + name))
        if first.isalnum() and (not before.isalnum() or before.isdigit() != first.isdigit())
    )


def _plain(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())


@lru_cache(maxsize=4096)
def _spelt(name: str) -> tuple[str, str]:
    """A name and its last part without case and separators."""
    return _plain(name), _plain(name.rsplit("/", 1)[-1])
