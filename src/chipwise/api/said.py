"""What a sentence about hardware says in figures: the chips, the model, the quantities and how they are compared.

People write "8xH100 serves Llama 3.1 70B at 24,000 tokens/s" or "MI300X beats H100". Names are read by the
catalogue's own readers; a family without a generation ("Gaudi", "GPUs") stands for the chip that
`chip_names.toml` gives it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, cast

from chipwise.catalog import networks
from chipwise.catalog.chips import get_chip
from chipwise.catalog.configs import known_names, named_config
from chipwise.catalog.machine import counted
from chipwise.catalog.names import core
from chipwise.catalog.parsed import parse
from chipwise.catalog.rented import NAMES
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.catalog.statements import Unit, found_first, load_wording, reads
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError
from chipwise.values import dataclass

Aspect = Literal["speed", "training", "price", "per dollar", "energy", "power", "memory", "bandwidth", "peak"]


@dataclass(frozen=True, slots=True)
class Spoken:
    """A chip that a sentence names: its id, how many of it (None: not said), the words, and whether they name a family
    (`loose`), for which the chip stands."""

    chip: str
    count: int | None
    words: str
    loose: bool
    at: int


@dataclass(frozen=True, slots=True)
class SaidQuantity:
    """A figure in SI: `low` and `high` are the same unless a range was said; "over" leaves `high` infinite, "under"
    makes `low` 0. `unit` is "tokens/s", "B", "B/s", "B/token", "FLOP/s", "s", "run s" (how long a training takes),
    "tokens", "MFU", "$/h", "$/Mtok", "chips", "users" (who ask at once) or "W"."""

    low: float
    high: float
    unit: str
    words: str


@dataclass(frozen=True, slots=True)
class Saying:
    """A sentence as it was read. `ratio` is how many times the first chip is said to have of the second (above 1: more,
    None: no figure), `more` which way it is said to go (0: as much). `model` is a name that verbs take, `named` the
    words for it. `marks` are those of the table of words: "fits", it is about what fits or runs; "denied", it says that
    something is not so. `wide` are the types of products it names that no checkpoint is served in. `left` is a clause
    about a price next to a comparison of speeds, which is not read."""

    text: str
    chips: tuple[Spoken, ...]
    model: str
    named: str
    network: bool
    quantities: tuple[SaidQuantity, ...]
    ratio: tuple[float, float] | None
    more: int | None
    aspect: Aspect
    precision: str
    marks: frozenset[str]
    wide: tuple[str, ...]
    left: str

    @property
    def denied(self) -> bool:
        """Whether it says that something is not so."""
        return "denied" in self.marks

    def of(self, unit: str) -> SaidQuantity | None:
        """The first quantity in a unit."""
        return next((q for q in self.quantities if q.unit == unit), None)

    def counted(self, what: str) -> int | None:
        """How many of something (a pattern) the text names in figures, as in "4 steps"."""
        found = re.search(rf"(?<![\w.,])(\d[\d,]*)[\s-]*(?:{what})\b", self.text, re.I)
        return int(found[1].replace(",", "")) if found else None


LONGEST = 6
"""Words of a name."""
WORD = re.compile(r"[A-Za-z0-9][\w.+-]*")
BARE = re.compile(r"\d+(?:\.\d+)?[bB](?!\s*tokens)")
SIZE = re.compile(r"\d+(?:\.\d+)?[bBmM]\b")
ROUND = re.compile(r"v\d+(?:\.\d+)+")
"""Sizes that stand for a model, and versions, which do not name a chip."""


def said_in(text: str) -> Saying:
    """A sentence as it is read; what it does not say is empty."""
    wording = load_wording()
    said = text.replace("–", "-").replace("×", "x").replace("~", " ").replace("’", "'")
    left = reads("priced", said)
    said = _blank(said, *left.span()) if left else said
    model, named, network, rest = _model(said)
    quantities, rest = _quantities(rest)
    chips, rest = _chips(rest)
    if reads("compared", said, match=True) and len(chips) > 1:
        chips = (chips[1], chips[0], *chips[2:])
    aspect = cast(Aspect, found_first(wording.aspects, rest, "speed"))
    marks = {n for n, w in wording.marks.items() if w.search(said)}
    marks |= {n for n, w in wording.bare.items() if w.search(rest)}
    if "lacks" in marks:  # what does not fit is denied by it
        marks = (marks | {"fits"}) ^ {"denied"}
    precision = found_first(wording.precisions, said, "")
    wide = tuple(kind for kind, words in wording.wide.items() if words.search(said))
    ratio, more = _ratio(rest, aspect)
    about = (ratio, more, aspect, precision, frozenset(marks), wide)
    return Saying(text, chips, model, named, network, quantities, *about, left[0] if left else "")


def _blank(text: str, start: int, end: int) -> str:
    """A text without some of its letters, the others in their places."""
    return f"{text[:start]}{'|' * (end - start)}{text[end:]}"


def _runs(text: str) -> Iterator[tuple[int, int]]:
    """Neighbouring words of a text as where they begin and end, longer ones first at every place."""
    words = [(m.start(), m.start() + len(m[0].rstrip(".-"))) for m in WORD.finditer(text)]
    for first, (start, _) in enumerate(words):
        for last in range(min(len(words), first + LONGEST) - 1, first - 1, -1):
            between = text[words[first][1] : words[last][0]] if last > first else ""
            if not re.search(r"[,;|/]", between):
                yield start, words[last][1]


@per_snapshot
def _families() -> frozenset[str]:
    """First words of the names of models."""
    names = (*(core(name) for name in known_names()), *(core(name) for name in networks.entries()))
    return frozenset(name[0].rstrip("0123456789.") for name in names if name)


def _model(text: str) -> tuple[str, str, bool, str]:
    """The model that a text names: a name that verbs take, its words, whether it is a network without tokens, and the
    text without it."""
    for start, end in _runs(text):
        words = text[start:end]
        first = re.split(r"[^a-z]", words.lower())[0]
        if first not in _families() or reads("stop", words):
            continue
        if found := _resolved(words):
            return found[0], words, found[1], _blank(text, start, end)
    for bare in BARE.finditer(text):
        return bare[0], bare[0], False, _blank(text, *bare.span())
    return "", "", False, text


def _resolved(words: str) -> tuple[str, bool] | None:
    """The model that words mean, and whether it is a network without tokens; of several versions the first that is
    named. None where they mean none."""
    try:
        if networks.is_built_in(words) and not SIZE.search(words):
            return networks.find(words).entry.name, True
    except (UnknownNameError, UsageError):
        pass
    if not any(c.isdigit() for c in words):
        return None
    try:
        return named_config(words).name, False
    except UnknownNameError as error:
        said = re.findall(r"[a-z]+|\d+(?:\.\d+)?[bm]?", words.lower())
        near = [name for name in error.nearest if SIZE.search(words) and all(w in name.lower() for w in said)]
        return (near[0], False) if near else None
    except ChipwiseError:
        return None


def _quantities(text: str) -> tuple[tuple[SaidQuantity, ...], str]:
    """The figures of a text with their units, and the text without them."""
    found = []
    for unit, words in load_wording().units.items():
        while (m := words.pattern.search(text)) is not None:
            if unit == "B" and re.match(r"\s*(?:/|per)\s*s", text[m.end() :]):
                break
            if unit == "B" and _in_name(text, m):  # the size of a chip's memory stays part of its name
                break
            found.append((m.start(), SaidQuantity(*_ends(text, m, _scale(words, m)), unit, m[0].strip())))
            text = _blank(text, *m.span())
    return tuple(q for _, q in sorted(found, key=lambda pair: pair[0])), text


def _scale(unit: Unit, m: re.Match[str]) -> float:
    """What the number of a figure counts for, by the word behind it."""
    if unit.scale:
        return unit.scale
    scales = load_wording().scales
    word = next((g.lower() for g in m.groups() if g and not g[0].isdigit()), "")
    scale = scales[word] if word in scales else scales[word.removesuffix("s")]
    return unit.per / scale if unit.per else scale


def _ends(text: str, m: re.Match[str], scale: float) -> tuple[float, float]:
    """The ends of a figure: words before and behind it may make a bound of it."""
    numbers = [scale * float(n.replace(",", "")) for n in m.groups() if n and n[0].isdigit()]
    before, after = text[: m.start()], text[m.end() :]
    above = reads("over", before) or reads("or_more", after, match=True)
    under = reads("under", before) or reads("or_less", after, match=True)
    return 0.0 if under else min(numbers), math.inf if above else max(numbers)


def _in_name(text: str, m: re.Match[str]) -> bool:
    """Whether a size of memory belongs to the name of a chip before it: `A100 80GB`."""
    before = re.search(r"([A-Za-z][\w-]*\d[\w-]*(?: \w+)?)\s*$", text[: m.start()])
    if before is None:
        return False
    try:
        get_chip(f"{before[1]} {m[0].strip()}")
    except UnknownNameError:
        return False
    return True


@per_snapshot
def _in_speech() -> dict[str, str]:
    return dict(parse(shipped_text(NAMES))["in_speech"])


def usual_chip() -> str:
    """The chip that people mean by a GPU."""
    return _in_speech()["gpu"]


def _chip(words: str, after: str) -> tuple[str, int | None, bool] | None:
    """The chip that words name, with the count in them, and whether they name a family."""
    single = re.sub(r"(?<=[a-z0-9])s$", "", words.lower())
    for name in (words.lower(), single) if not reads("otherwise", after, match=True) else ():
        if name in _in_speech():
            return _in_speech()[name], None, True
    if reads("stop", words) or re.match(r"\d{1,3}x?\b", words) or reads("memories", words):
        return None
    numbered = re.search(r"\d[\w.-]*[a-z]|[a-z][\w .-]*\d", words, re.I) or re.fullmatch(r"\d{4}s?", words)
    if not numbered and " " not in words:  # two words may be a name, as in DGX Spark; one is a word
        return None
    if BARE.fullmatch(words) or ROUND.search(words):
        return None
    plain = re.sub(r"(?<=\d)s\b", "", words)
    try:
        found = counted(plain)
        return (found[0], found[1], False) if found else (get_chip(plain).id, None, False)
    except ChipwiseError:
        return None


def _chips(text: str) -> tuple[tuple[Spoken, ...], str]:
    """The chips that a text names in their order, each once, and the text without them and their counts."""
    found: dict[str, Spoken] = {}
    done = 0
    for start, end in _runs(text):
        if start < done or (named := _chip(text[start:end], text[end:])) is None:
            continue
        chip, count, loose = named
        if count is None:
            count, start = _count(text, start)
        words, done = text[start:end], end
        text = _blank(text, start, end)
        first = found.setdefault(chip, Spoken(chip, count, words.strip(), loose, start))
        if first.count is None and count:
            found[chip] = replace(first, count=count)
    exact = [s for s in found.values() if not s.loose]
    # a maker beside its chip names nothing more: "Groq's LPU", "NVIDIA H100"
    kept = [s for s in found.values() if not s.loose or not any(_same_maker(s.chip, e.chip) for e in exact)]
    return tuple(sorted(kept, key=lambda s: s.at)), text


def _count(text: str, start: int) -> tuple[int | None, int]:
    """How many there are said to be of what begins here, and where that begins; a ratio is no count."""
    before = text[:start]
    counts = load_wording().counts
    found = re.search(rf"(?:(?<![\d.,])(\d[\d,]*)\s*[x×*]?|\b({'|'.join(counts)}))[\s-]*$", before, re.I)
    if found is None or reads("times_before", before):
        return None, start
    count = int(found[1].replace(",", "")) if found[1] else counts[found[2].lower()]
    return count or None, found.start()


def _same_maker(one: str, other: str) -> bool:
    return get_chip(one).vendor == get_chip(other).vendor


def _ratio(text: str, aspect: Aspect) -> tuple[tuple[float, float] | None, int | None]:
    """How many times as much the first is said to have, and which way it goes. Of prices less is said in percent of the
    other's; who takes more energy has less of what is compared, work for it."""
    more = _way(text, aspect)
    ratio, more = _share(text, more) if reads("percent", text) and more is not None else _times(text, more)
    if aspect == "energy" and not reads("efficient", text):
        return ratio and (1 / ratio[1], 1 / ratio[0]), more and -more
    return ratio, more


def _way(text: str, aspect: Aspect) -> int | None:
    """Which way a comparison goes; dollars for the same work go the other way than work for the same dollars."""
    cheap, dear = bool(reads("cheap", text)), bool(reads("dear", text))
    less = bool(reads("less", text)) and not cheap
    if reads("same", text) and not (aspect == "price" and (cheap or dear)):
        return -1 if aspect == "per dollar" and less else 0
    if less or cheap:
        return 1 if aspect == "per dollar" and not less else -1
    return 1 if reads("more", text) or dear else None


def _share(text: str, more: int) -> tuple[tuple[float, float] | None, int]:
    """The same in percent: so much more, or less, than the other."""
    found = reads("percent", text)
    assert found is not None
    ends = sorted(1 + (1 if more >= 0 else -1) * float(n.replace(",", "")) / 100 for n in found.groups() if n)
    return ((ends[0], ends[-1]) if ends[0] > 0 else None), more


def _times(text: str, more: int | None) -> tuple[tuple[float, float] | None, int | None]:
    """The same in times, in figures or a word; where nothing else says which way it goes, the figure does."""
    found = reads("ratio", text)
    numbers = sorted(float(n.replace(",", "")) for n in found.groups() if n) if found else []
    numbers = numbers or [value for words, value in load_wording().times.items() if re.search(words, text, re.I)][:1]
    if not numbers or numbers[0] <= 0:
        return None, more
    if more is not None and more < 0 and numbers[0] > 1:
        numbers = sorted(1 / n for n in numbers)
    way = (numbers[0] > 1) - (numbers[0] < 1) if more is None else more
    return (numbers[0], numbers[-1]), way
