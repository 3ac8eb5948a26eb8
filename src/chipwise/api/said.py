"""What a sentence about hardware says in figures: the chips, the model, the quantities and how they are compared.

People write "8xH100 serves Llama 3.1 70B at 24,000 tokens/s" or "MI300X beats H100". Names are read by the
catalogue's own readers; a family without a generation ("Gaudi", "GPUs") stands for the chip that
`chip_names.toml` gives it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal

from chipwise.catalog import networks
from chipwise.catalog.chips import get_chip
from chipwise.catalog.configs import known_names, named_config
from chipwise.catalog.machine import counted
from chipwise.catalog.names import core
from chipwise.catalog.parsed import parse
from chipwise.catalog.rented import NAMES
from chipwise.catalog.snapshot import per_snapshot, shipped_text
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
    words for it; `alone`: it is about one user; `fits`: it is about what fits or runs; `denied`: it says that something
    is not so, `always`: that it is so, or not so, whatever else is chosen; `needs`: that a model needs it. `wide` are
    the types of products it names that no checkpoint is served in. `left` is a clause about a price beside a comparison
    of speeds, which is not read."""

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
    alone: bool
    fits: bool
    denied: bool
    always: bool
    needs: bool
    wide: tuple[str, ...]
    left: str

    def of(self, unit: str) -> SaidQuantity | None:
        """The first quantity in a unit."""
        return next((q for q in self.quantities if q.unit == unit), None)

    def quoted(self, unit: str) -> SaidQuantity:
        """The same, of a sentence that has one."""
        return next(q for q in self.quantities if q.unit == unit)

    def counted(self, what: str) -> int | None:
        """How many of something (a pattern) the text names in figures, as in "4 steps"."""
        found = re.search(rf"(?<![\w.,])(\d[\d,]*)[\s-]*(?:{what})\b", self.text, re.I)
        return int(found[1].replace(",", "")) if found else None


NUMBER = r"(?<![\w.,])(?:(\d[\d,]*(?:\.\d+)?)\s*(?:-|to)\s*)?(\d[\d,]*(?:\.\d+)?)"
SECOND = r"(?:/|\s*per\s+|\s+an?\s+|\s*p)\s*s(?:ec(?:ond)?)?\b"
HOUR = r"\s*(?:/|per|an?)\s*(?:gpu[- ]|chip[- ])?h(?:r|our)?\b"
WORDS = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
SCALES = {**WORDS, "": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "t": 1e12, "p": 1e15, "e": 1e18}
PREFIXED = {"kilo": "k", "mega": "m", "giga": "g", "tera": "t", "peta": "p", "exa": "e"}
TIMES = {"ms": 1e-3, "millisecond": 1e-3, "s": 1.0, "sec": 1.0, "second": 1.0, "minute": 60.0, "min": 60.0}

RUNS = {"hour": 3600.0, "day": 86400.0, "week": 7 * 86400.0, "month": 30 * 86400.0}
EACH = {"": 1e6, "k": 1e3, "m": 1.0, "thousand": 1e3, "million": 1.0}
SHARE = r"\s*(?:%|percent|per cent)"

UNITS: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], float]], ...] = (
    (
        "$/Mtok",
        re.compile(
            rf"\$\s*{NUMBER}\s*(?:/|per|for|an?)\s*(?:1\s*)?(k|m|thousand|million|)"
            r"\s*(?:output |generated )?tok(?:en)?s?\b",
            re.I,
        ),
        lambda m: EACH[m[3].lower()],
    ),
    (
        "tokens/s",
        re.compile(
            rf"{NUMBER}\s*(k|m|{'|'.join(WORDS)}|)\s*"
            rf"(?:(?:output |generated )?(?:tokens?|toks?|tk|t){SECOND}|tps\b)",
            re.I,
        ),
        lambda m: SCALES[m[3].lower()],
    ),
    (
        "tokens",
        re.compile(rf"{NUMBER}\s*(m|b|t|million|billion|trillion)\s+tokens\b", re.I),
        lambda m: SCALES[m[3].lower()],
    ),
    ("MFU", re.compile(rf"\bmfu\W+(?:[a-z]+ ){{0,2}}{NUMBER}{SHARE}|{NUMBER}{SHARE} mfu\b", re.I), lambda _: 0.01),
    ("B/s", re.compile(rf"{NUMBER}\s*([gtp])i?b{SECOND}", re.I), lambda m: SCALES[m[3].lower()]),
    (
        "B/token",
        re.compile(rf"{NUMBER}\s*([kmg])i?b\s*(?:/|per|a|for (?:each|every))\s*token", re.I),
        lambda m: SCALES[m[3].lower()],
    ),
    (
        "FLOP/s",
        re.compile(
            rf"{NUMBER}\s*(?:(?:bf|fp|tf|int)\d+\s+)?([tpe]|tera|peta|exa)[- ]?(?:flop/?s?|ops)\b|{NUMBER}\s*([tp])f\b",
            re.I,
        ),
        lambda m: SCALES[PREFIXED.get((m[3] or m[6]).lower(), (m[3] or m[6]).lower())],
    ),
    ("$/h", re.compile(rf"\$\s*{NUMBER}{HOUR}|{NUMBER}\s*(?:\$|dollars?|usd){HOUR}", re.I), lambda _: 1.0),
    ("B", re.compile(rf"{NUMBER}\s*([mgt])i?b\b", re.I), lambda m: SCALES[m[3].lower()]),
    (
        "s",
        re.compile(
            rf"(?!\d{{4}}s\b){NUMBER}[\s-]*(ms|milliseconds?|s|secs?|seconds?|minutes?|mins?)\b"
            # that is how long a clip is, not how long it takes
            r"(?![\s-]*(?:long\b|clips?\b|videos?\b|(?:of )?(?:audio|video|speech)\b))",
            re.I,
        ),
        lambda m: TIMES[m[3].lower().removesuffix("s") or "s"] if m[3].lower() != "ms" else 1e-3,
    ),
    ("run s", re.compile(rf"{NUMBER}[\s-]*(hour|day|week|month)s?\b", re.I), lambda m: RUNS[m[3].lower()]),
    ("chips", re.compile(rf"{NUMBER}\s*(?:chips|gpus|tpus|lpus|cards|accelerators)\b", re.I), lambda _: 1.0),
    (
        "users",
        re.compile(
            rf"{NUMBER}\s*(k|thousand|million|)\s*(?:(?:concurrent|simultaneous|parallel) (?:requests|streams|chats)"
            r"|(?:(?:concurrent|simultaneous|parallel|active) )?(?:users|people|clients|customers|sessions))\b",
            re.I,
        ),
        lambda m: SCALES[m[3].lower()],
    ),
    ("W", re.compile(rf"{NUMBER}\s*(k?)(?:w|watts?)\b", re.I), lambda m: SCALES[m[3].lower()]),
)
"""Units as people write them; earlier ones take their words first."""

COUNTS = {
    "a single": 1,
    "one": 1,
    "single": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "eight": 8,
    "sixteen": 16,
    "pair of": 2,
}
COUNT = re.compile(rf"(?:(?<![\d.,])(\d[\d,]*)\s*[x×*]?|\b({'|'.join(COUNTS)}))[\s-]*$", re.I)
TIMES_BEFORE = re.compile(
    r"(?:\b(?:is|are|was|about|roughly|nearly|almost|to|least|over|only|a|like|~)\s*)\d+(?:\.\d+)?\s*(?:x|×)\s*$", re.I
)
"""`is 3x A100`: a ratio, not a count."""

OVER = re.compile(
    r"\b(?:(?<!no )(?<!not )more than|over|at least|above|exceeds?|upwards of|(?:no|not) less than)\s*\$?\s*$", re.I
)
UNDER = re.compile(
    r"\b(?:(?<!no )(?<!not )less than|fewer than|under|below|at most|(?:no|not) more than)\s*\$?\s*$", re.I
)
OR_MORE = re.compile(r"\s*(?:\+|(?:or|and) (?:more|higher|above)\b|at least\b|minimum\b)", re.I)
OR_LESS = re.compile(r"\s*(?:or less|at most|max(?:imum)?|tops)\b", re.I)
"""Words before and after a figure that make a bound of it."""

RATIO = re.compile(rf"{NUMBER}\s*(?:x\b|×|times\b|-?\s?fold\b)", re.I)
PERCENT = re.compile(rf"{NUMBER}\s*(?:%|percent|per cent)", re.I)
WORDED = {
    r"\b(?:twice|double|doubles|two times)\b": 2.0,
    r"\b(?:thrice|triple|triples|three times)\b": 3.0,
    r"\b(?:four times|quadruple)\b": 4.0,
    r"\b(?:eight times)\b": 8.0,
    r"\b(?:ten times)\b": 10.0,
    r"\bhalf\b": 0.5,
}
MORE = re.compile(
    r"\b(?:fast\w*|quick\w*|beats?|beating|outperforms?|better|higher(?! latenc)|more|wins?|ahead|leads?|superior"
    r"|crush\w*|lower latenc\w+)\b",
    re.I,
)
LESS = re.compile(
    r"\b(?:slow\w*|worse|behind|loses?|lower(?! latenc)|higher latenc\w+|less|fewer|weaker|inferior|lags?)\b", re.I
)
CHEAP = re.compile(
    r"\b(?:cheap\w*|less expensive|lower (?:price|cost)|costs? less|saves?|half the (?:price|cost))\b", re.I
)
DEAR = re.compile(r"\b(?:dearer|pricier|(?:more )?expensive|costs? more)\b", re.I)
SAME = re.compile(
    r"\b(?:as (?:fast|good|quick) as|just as (?:fast|good|quick)|equals?|equal to"
    r"|same (?:\w+ )?(?:speed|performance|memory|bandwidth|compute|price|power)"
    r"|match(?:es)?|on par)\b",
    re.I,
)
ASPECTS: tuple[tuple[Aspect, str], ...] = (
    (
        "per dollar",
        r"per dollar|(?<!energy )(?<!power )(?<!joules )per (?:million |m )?tokens?\b"
        r"|price[- ]?performance|price[-/ ]to|performance per|bang for|per \$"
        r"|cost[- ]effic\w+|value",
    ),
    ("energy", r"per watt|energy|power[- ]effic\w+|efficien\w+|joules?"),
    ("power", r"\b(?:draws?|tdp|watts?)\b|(?<!compute )(?<!computing )(?<!processing )(?<!raw )\bpower\b(?! per\b)"),
    ("price", rf"{CHEAP.pattern}|{DEAR.pattern}|\bprices?\b|\bcosts?\b"),
    ("training", r"\btrain(?:s|ed|ing)?\b|fine[- ]?tun\w+|pre[- ]?training"),
    ("bandwidth", r"\bbandwidth\b"),
    ("memory", r"\b(?:memory|vram|capacity|hbm)\b"),
    ("peak", r"\b(?:[a-z]?flops|peak|compute)\b"),
)
PRECISIONS = (
    ("fp8", r"\bfp8\b|\b8[- ]bit float"),
    ("w4a16", r"\b(?:int4|4[- ]?bit|q4\w*|awq|gptq|w4a16)\b"),
    ("int8", r"\b(?:int8|8[- ]?bit|q8\w*)\b"),
    ("nvfp4", r"\b(?:nvfp4|fp4)\b"),
    ("bf16", r"\b(?:bf16|fp16|16[- ]?bit|half precision|unquanti[sz]ed)\b"),
)
WIDE = (("fp64", r"\bfp-?64\b"), ("fp32", r"\bfp-?32\b"), ("tf32", r"\btf-?32\b"))
ALONE = re.compile(
    r"(?:per|/|each|single|one|a)\s*(?:user|stream|request|person|session)\b|single[- ](?:user|stream)"
    r"|batch(?: size)?(?: of)? 1\b|interactive",
    re.I,
)
FITS = re.compile(
    r"\b(?:fits?|runs?|running|load|holds?|enough|suffices?|serves?|host|handle|deploy|needs?|requires?)\b", re.I
)
LACKS = re.compile(
    r"\bout[ -]of[ -](?:(?:gpu|video|device) )?(?:memory|vram)\b|\booms?\b|\btoo (?:big|large|heavy) (?:for|to)\b", re.I
)
"""What says that something does not fit."""
ALWAYS = re.compile(
    r"\b(?:always|never|(?:at|for|in|under) (?:any|every|all) (?:batch|load|workload|model|case|condition)\w*"
    r"|no matter|regardless)\b",
    re.I,
)
NEEDS = re.compile(r"\b(?:needs?|requires?|takes?|takes up|uses?|occupies|weighs?|consumes?)\b", re.I)
DENIED = re.compile(
    r"\b(?:not(?! only)(?! (?:more|less|fewer) than)|no(?! (?:more|less|fewer) than)|never|cannot"
    r"|isn't|aren't|doesn't|don't|can't|won't|wrong that|false that|impossible|unable)\b",
    re.I,
)
BESIDE = re.compile(
    r"\b(?:at|for) (?:(?:about|only) )?(?:half|a third|a quarter|a fraction|\d+ ?%)[^,.;]*?\b(?:price|cost)s?\b", re.I
)
COMPARED = re.compile(r"^\s*(?:compared (?:to|with)|unlike|versus|against|relative to)\b", re.I)
WORD = re.compile(r"[A-Za-z0-9][\w.+-]*")
BARE = re.compile(r"\d+(?:\.\d+)?[bB](?!\s*tokens)")
EFFICIENT = re.compile(r"per (?:watt|joule|kwh)|efficien", re.I)
"""What makes more of energy better: work for it, where else it is the energy itself."""
SIZE = re.compile(r"\d+(?:\.\d+)?[bBmM]\b")
OTHERWISE = re.compile(r"[\s-]*(?:hours?|memory|utili[sz]ation|days?|poor|rich|core|cores)\b", re.I)
"""What follows a word that then means no chip: GPU hours."""
STOP = frozenset(
    "a an and are as at bit bits by can for from has in is it of on or over per run runs than the to vs with".split()
)
"""Words that are in no name of a chip."""
ROUND = re.compile(r"v\d+(?:\.\d+)+")
MEMORIES = re.compile(r"\b(?:hbm|l?p?ddr|gddr)\d+\w*$", re.I)
"""Kinds of memory: at the end of a name they are none of it, "MI325X has 256 GB of HBM3e"."""
LONGEST = 6
"""Words of a name."""


def said_in(text: str) -> Saying:
    """A sentence as it is read; what it does not say is empty."""
    said = text.replace("–", "-").replace("×", "x").replace("~", " ").replace("’", "'")
    left = BESIDE.search(said)
    said = _blank(said, *left.span()) if left else said
    model, named, network, rest = _model(said)
    quantities, rest = _quantities(rest)
    chips, rest = _chips(rest)
    if COMPARED.match(said) and len(chips) > 1:
        chips = (chips[1], chips[0], *chips[2:])
    aspect: Aspect = next((a for a, words in ASPECTS if re.search(words, rest, re.I)), "speed")
    ratio, more = _ratio(rest, aspect)
    lacks = bool(LACKS.search(said))
    return Saying(
        text,
        chips,
        model,
        named,
        network,
        quantities,
        ratio,
        more,
        aspect,
        next((p for p, words in PRECISIONS if re.search(words, said, re.I)), ""),
        bool(ALONE.search(said)),
        lacks or bool(FITS.search(rest)),
        bool(DENIED.search(said)) != lacks,
        bool(ALWAYS.search(said)),
        bool(NEEDS.search(rest)),
        tuple(kind for kind, words in WIDE if re.search(words, said, re.I)),
        left[0] if left else "",
    )


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
        if first not in _families() or STOP & set(words.lower().split()):
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
    for unit, pattern, scale in UNITS:
        while (m := pattern.search(text)) is not None:
            if unit == "B" and re.match(r"\s*(?:/|per)\s*s", text[m.end() :]):
                break
            if unit == "B" and _in_name(text, m):  # the size of a chip's memory stays part of its name
                break
            found.append((m.start(), SaidQuantity(*_ends(text, m, scale(m)), unit, m[0].strip())))
            text = _blank(text, *m.span())
    return tuple(q for _, q in sorted(found, key=lambda pair: pair[0])), text


def _ends(text: str, m: re.Match[str], scale: float) -> tuple[float, float]:
    """The ends of a figure: words before and behind it may make a bound of it."""
    numbers = [scale * float(n.replace(",", "")) for n in m.groups() if n and n[0].isdigit()]
    before, after = text[: m.start()], text[m.end() :]
    above = OVER.search(before) or OR_MORE.match(after)
    under = UNDER.search(before) or OR_LESS.match(after)
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
    for name in (words.lower(), single) if not OTHERWISE.match(after) else ():
        if name in _in_speech():
            return _in_speech()[name], None, True
    if STOP & set(words.lower().split()) or re.match(r"\d{1,3}x?\b", words) or MEMORIES.search(words):
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
    found = COUNT.search(before)
    if found is None or TIMES_BEFORE.search(before):
        return None, start
    count = int(found[1].replace(",", "")) if found[1] else COUNTS[found[2].lower()]
    return count or None, found.start()


def _same_maker(one: str, other: str) -> bool:
    return get_chip(one).vendor == get_chip(other).vendor


def _ratio(text: str, aspect: Aspect) -> tuple[tuple[float, float] | None, int | None]:
    """How many times as much the first is said to have, and which way it goes. Of prices less is said in percent of the
    other's; who takes more energy has less of what is compared, work for it."""
    more = _way(text, aspect)
    ratio, more = _share(text, more) if PERCENT.search(text) and more is not None else _times(text, more)
    if aspect == "energy" and not EFFICIENT.search(text):
        return ratio and (1 / ratio[1], 1 / ratio[0]), more and -more
    return ratio, more


def _way(text: str, aspect: Aspect) -> int | None:
    """Which way a comparison goes; dollars for the same work go the other way than work for the same dollars."""
    cheap, dear = bool(CHEAP.search(text)), bool(DEAR.search(text))
    less = bool(LESS.search(text)) and not cheap
    if SAME.search(text) and not (aspect == "price" and (cheap or dear)):
        return -1 if aspect == "per dollar" and less else 0
    if less or cheap:
        return 1 if aspect == "per dollar" and not less else -1
    return 1 if MORE.search(text) or dear else None


def _share(text: str, more: int) -> tuple[tuple[float, float] | None, int]:
    """The same in percent: so much more, or less, than the other."""
    found = PERCENT.search(text)
    assert found is not None
    ends = sorted(1 + (1 if more >= 0 else -1) * float(n.replace(",", "")) / 100 for n in found.groups() if n)
    return ((ends[0], ends[-1]) if ends[0] > 0 else None), more


def _times(text: str, more: int | None) -> tuple[tuple[float, float] | None, int | None]:
    """The same in times, in figures or a word; where nothing else says which way it goes, the figure does."""
    found = RATIO.search(text)
    numbers = sorted(float(n.replace(",", "")) for n in found.groups() if n) if found else []
    numbers = numbers or [value for words, value in WORDED.items() if re.search(words, text, re.I)][:1]
    if not numbers or numbers[0] <= 0:
        return None, more
    if more is not None and more < 0 and numbers[0] > 1:
        numbers = sorted(1 / n for n in numbers)
    way = (numbers[0] > 1) - (numbers[0] < 1) if more is None else more
    return (numbers[0], numbers[-1]), way
