"""How people call models, and which published name they mean: `llama3.1:8b`, `Qwen 3 30B A3B`, `gemma-3-27b-it-GGUF`.

A name is read as words. Those of a known name must cover all words asked for, but for formats of weights; what a known
name has beyond them may say how it was tuned or when it was published, never what kind of model it is. Where the names
that fit best have unlike sizes, none is chosen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.errors import is_name
from chipwise.values import dataclass

NICKNAMES = "catalog/data/nicknames.toml"

ADDRESS = re.compile(r"^(https?://|hf\.co/|huggingface\.co/|ollama://|hf://|huggingface://|ollama run |ms://)+")
SIZE = re.compile(r"^e?\d+(\.\d+)?[bmt]$|^\d+x\d+(\.\d+)?b$")
ACTIVE = re.compile(r"^a\d+(\.\d+)?b$")
FIGURE = re.compile(r"^[av]?\d+(\.\d+)*b?$")
DATE = re.compile(r"^\d{4}$|^20\d{6}$|^0\d$")
MINOR = re.compile(r"^v\d+(\.\d+)*$")
VERSION = re.compile(r"^\d(\.\d+)?$")
EXPERTS = re.compile(r"^\d+e$")
FORMAT = re.compile(
    r"^(gguf|mlx|awq|gptq|exl2|exl3|bnb|marlin|dwq|imatrix|i1|latest|\d+bits?|int\d|w\d+a\d+|gs\d+|uint4|qat|ud|xl"
    r"|kv|q\d\w*|iq\d\w*|[a-z]+\d+plus|bf16|fp16|f16|fp8|nvfp4|mxfp4|mxfp8|float16|dynamic|static|quantized|k|m|s|ggml)$"
)
WEIGHTS: Mapping[str, str] = {
    "fp8": "fp8", "nvfp4": "nvfp4", "mxfp4": "mxfp4", "mxfp8": "mxfp8", "int4": "int4", "int8": "int8", "awq": "int4",
    "gptq": "int4",
}  # fmt: skip
"""Words of names that say in which number format weights are."""
TUNED = frozenset(
    ("instruct", "it", "chat", "base", "pt", "hf", "thinking", "preview", "text", "model", "v", "beta", "abliterated")
)
"""How a model was tuned: words that leave its dimensions alone."""
OTHER_WEIGHTS = frozenset(("thinking", "preview", "beta", "abliterated"))
"""Of these the words that name another set of weights."""
ANSWERING = frozenset(("instruct", "it", "chat"))
"""Words for the same: tuned to answer."""
UNTUNED = frozenset(("base", "pt"))
"""Words for the same: not tuned."""
BRANDS = frozenset(("c4ai", "nvidia", "meta", "ai21", "microsoft", "ibm", "google"))
GRADES = frozenset(("mini", "small", "medium", "large", "lite", "air", "tiny", "nano", "max"))
"""Sizes in words."""
SIZED = GRADES | frozenset(("base", "huge", "giant", "xl", "xxl", "s", "m", "k", "patch", "window"))
"""Words of a name that say a size, of names among which the size chooses the model."""
TEACHERS = frozenset(("qwen", "llama", "1.5", "2.5", "3", "3.1"))
"""What the name of a distilled model says of the model that was taught."""
SELLERS = frozenset(
    (
        "mlx-community",
        "lmstudio-community",
        "bartowski",
        "unsloth",
        "thebloke",
        "ggml-org",
        "maziyarpanahi",
        "qwen-quant",
        "library",
        "redhatai",
        "neuralmagic",
        "nm-testing",
        "gaunernst",
        "prince-canuma",
        "mradermacher",
        "second-state",
        "huihui-ai",
        "ai",
    )
)
"""Organisations that repack the models of others; so does whoever names a format of weights."""


@dataclass(frozen=True, slots=True)
class Meant:
    """The known name that a person means, and what of the name asked for it leaves out."""

    name: str
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class _Words:
    """A name in words: the organisation's, those that count, those of formats, in order."""

    organisation: str
    words: tuple[str, ...]
    formats: tuple[str, ...]

    @property
    def joined(self) -> frozenset[str]:
        """Neighbouring words written as one."""
        return frozenset(a + b for a, b in zip(self.words, self.words[1:], strict=False))


@lru_cache(maxsize=8192)
def _words(name: str) -> _Words:
    if not is_name(name):
        return _Words("", (), ())
    text = ADDRESS.sub("", name.strip().lower())
    organisation, _, rest = text.rpartition("/")
    rest = rest.removesuffix(".gguf")
    # q4_0 is one word; 1_8b is 1.8b; llama3 is llama 3, but r1, k2 and e4b stay
    rest = re.sub(r"\bi?q\d_[a-z0-9_]+", lambda found: found[0].replace("_", ""), rest)
    rest = re.sub(r"(?<=\d)_(?=\d+(b\b|$|-))", ".", rest)
    pieces: list[str] = []
    for piece in re.split(r"[^a-z0-9.]+", rest):
        piece = piece.strip(".")
        split = re.match(r"^([a-z]{3,})(\d[\w.]*)$", piece)
        if split and not FORMAT.match(piece):
            pieces += split.groups()
        elif piece:
            pieces.append(piece)
    formats = tuple(p for p in pieces if FORMAT.match(p))
    words = tuple(p for p in pieces if not FORMAT.match(p))
    return _Words(organisation.rpartition("/")[2], words, formats)


def core(name: str) -> tuple[str, ...]:
    """The words of a name that say which model it is: no organisation, tuning or format."""
    return tuple(word for word in _words(name).words if word not in TUNED | BRANDS)


def weights(name: str) -> tuple[str, ...]:
    """The same with the words that say other weights of the same dimensions, as `thinking` does: a base model and the
    one that was tuned to answer are one."""
    return tuple(word for word in _words(name).words if word not in (TUNED - OTHER_WEIGHTS) | BRANDS)


def tuned(name: str) -> tuple[str, ...]:
    """Whether a name says a base model or one tuned to answer."""
    return tuple("it" if w in ANSWERING else "base" for w in _words(name).words if w in ANSWERING | UNTUNED)


def made_by(name: str, known: str) -> bool:
    """Whether the organisation of a name may be that of a known one: `z-ai` and `zai-org`; a name without one is
    anybody's."""
    mine, other = ("".join(filter(str.isalnum, _words(n).organisation)) for n in (name, known))
    return mine.startswith(other) or other.startswith(mine)


def packed(name: str) -> bool:
    """Whether a name is that of weights that somebody else packed anew, or in another format."""
    said = _words(name)
    return bool(said.formats) or said.organisation in SELLERS


def formats(name: str) -> tuple[str, ...]:
    """The formats of weights that a name says."""
    return _words(name).formats


@per_snapshot
def _table() -> Mapping[str, Any]:
    return parse(shipped_text(NICKNAMES))


def nickname(name: str) -> str | None:
    """The published name behind a tag of a catalogue of models (Ollama, LM Studio), format and tuning left out."""
    tags: Mapping[str, str] = _table()["tags"]
    text = ADDRESS.sub("", name.strip()) if is_name(name) else ""
    if not text or text != text.lower():
        return None
    for start in ("library/", "ollama/", "lmstudio/"):
        text = text.removeprefix(start)
    family, _, tag = text.partition(":")
    words = tag.removeprefix("latest").split("-")
    for count in range(len(words), 0, -1):
        if all(FORMAT.match(w.replace("_", "")) or w in TUNED for w in words[count:]):
            found = tags.get(f"{family}:{'-'.join(words[:count])}".removesuffix(":"))
            if found:
                return found
    return None


def kind_of(name: str) -> str | None:
    """What a model is that chipwise has no dimensions of, by the first word of its name: an image generator, ..."""
    words = _words(name).words
    kinds: Mapping[str, str] = _table()["kinds"]
    return (kinds.get(words[0]) or kinds.get(words[0].partition(".")[0])) if words else None


def closed(name: str) -> str | None:
    """Who keeps the dimensions of a model secret: `gpt-4o`, `claude-sonnet-4`; None where that is not known."""
    said = "-".join(word.partition(".")[0] for word in _words(name).words)
    makers: Mapping[str, list[str]] = _table()["closed"]
    return next((maker for maker, names in makers.items() if any(f"{said}-".startswith(f"{n}-") for n in names)), None)


def meant(typed: str, known: Iterable[str], alike: Callable[[str, str], bool]) -> Meant | None:
    """The known name that fits best; of equals the one that is known first.

    None where no name fits, or where names fit that are not `alike` in dimensions and the words asked for do not choose
    between them.
    """
    asked = _words(typed)
    if not asked.words:
        return None
    scored = _scored(typed, asked, known)
    if not scored:
        return None
    chosen = scored[0][2]
    sized = any(SIZE.match(word) for word in asked.words)
    rivals = [name for cost, _, name in scored[1:] if cost <= scored[0][0] + (0.05 if sized else 1.2)]
    if any(not alike(chosen, other) for other in rivals) or _unversioned(asked, chosen):
        return None
    taken = set(_words(chosen).formats)
    return Meant(chosen, " ".join(word for word in asked.formats if word not in taken and word != "latest"))


def _unversioned(asked: _Words, name: str) -> bool:
    """Whether a family and a size are all that was said of a model that has a version: the first of a family often had
    none (`llama-7b`)."""
    versions = [word for word in _words(name).words if VERSION.match(word)]
    return (
        len(asked.words) <= 2
        and bool(versions)
        and not any(VERSION.match(word) for word in asked.words)
        and any(SIZE.match(word) for word in asked.words)
    )


def several(typed: str, known: Iterable[str], alike: Callable[[str, str], bool]) -> tuple[str, ...]:
    """The known names that all fit what was asked for where none is chosen (`meant`), the nearest and newest first; of
    those with the dimensions of another the first alone."""
    asked = _words(typed)
    if not asked.words:
        return ()
    found: list[str] = []
    for _, _, name in _scored(typed, asked, known):
        if not any(alike(name, other) for other in found):
            found.append(name)
    return tuple(found)


def _scored(typed: str, asked: _Words, known: Iterable[str]) -> list[tuple[float, int, str]]:
    """What separates each known name that fits from the words asked for, and its place; least first."""
    tagged = ":" in typed and not set(asked.words) & TUNED
    scored: list[tuple[float, int, str]] = []
    for place, name in enumerate(known):
        cost = _cost(asked, _words(name), name)
        if cost is not None:
            own = set(_words(name).words)
            # a tag means the model that answers, unless it says otherwise
            scored.append((cost - 1.1 if tagged and own & ANSWERING else cost, place, name))
    return sorted(scored)


def holding(words: str, known: Iterable[str]) -> list[str]:
    """Known names that hold all words: sizes and versions as whole words (8b is not 18b), others anywhere."""

    def holds(name: str, word: str) -> bool:
        own = _words(name)
        if SIZE.match(word):
            return word in own.words or f"e{word}" in own.words or _is_size(own, name, word)
        return word in own.words or word in own.formats or (not word[0].isdigit() and word in name.lower())

    asked = _words(words)
    wanted = (*asked.words, *asked.formats, *((asked.organisation,) if asked.organisation else ()))
    return [name for name in known if all(holds(name, word) for word in wanted)]


def fitting(typed: str, known: Iterable[str]) -> list[str]:
    """Known names that have all words asked for as whole words, and beyond them sizes and versions alone (numbers,
    `large`, `a14b`): no other kind of model. Those that have nothing beyond come alone. For names among which the size
    chooses the model, so that a size which was not asked for is never taken for granted (`meant` does, where a name
    says how a model was tuned)."""
    asked = _words(typed)
    if not asked.words or asked.organisation:
        return []
    whole, wider = [], []
    for name in known:
        own = _words(name)
        spoken = _spoken(asked, own, name)
        if spoken is None or spoken[1] or not _letters(asked) <= set(own.formats):
            continue
        beyond = {*own.words, *own.formats} - spoken[0] - set(asked.formats)
        if not beyond:
            whole.append(name)
        elif all(word in SIZED or FIGURE.match(word) for word in beyond):
            wider.append(name)
    return whole or wider


def _letters(asked: _Words) -> set[str]:
    """Words that may be a format's or a size's: `xl`, `s`."""
    return set(asked.formats) & SIZED


def near(typed: str, known: Iterable[str], most: int = 4) -> tuple[str, ...]:
    """Known names that share words with what was asked for, those that share most first; repacked ones last."""
    asked = _words(typed)
    if not asked.words:
        return ()
    scored = []
    for name in known:
        own = _words(name)
        shared = set(asked.words) & (set(own.words) | own.joined)
        if asked.words[0] in shared or (own.words and own.words[0] in asked.words):
            scored.append((-len(shared), bool(own.formats), len(own.words), name))
    return tuple(name for *_, name in sorted(scored)[:most])


def _cost(asked: _Words, own: _Words, name: str) -> float | None:
    """What separates a known name from the words asked for; None where it is another model."""
    if asked.organisation and asked.organisation not in SELLERS and not asked.formats:
        one, other = own.organisation, asked.organisation
        if not (one and (one.startswith(other) or other.startswith(one))):
            return None
    spoken = _spoken(asked, own, name)
    if spoken is None:
        return None
    covered, cost = spoken
    for word in own.words:
        if word in covered or (word in ANSWERING and covered & ANSWERING):
            continue
        more = _unasked(word, asked, own, covered)
        if more is None:
            return None
        cost += more
    return cost + 5.0 * len(set(own.formats) - set(asked.formats))


def _unasked(word: str, asked: _Words, own: _Words, covered: set[str]) -> float | None:
    """The cost of a word of a known name that nobody asked for; None where it makes it another model."""
    sized = any(SIZE.match(said) for said in asked.words)
    versioned = any(VERSION.match(said) for said in covered)
    newest = sized and not versioned and VERSION.match(word)
    kinds = (
        (word in TUNED, {"base": 1.1}.get(word, 1.0)),
        (word in BRANDS or word in own.organisation.split("-"), 0.01),
        (ACTIVE.match(word) or EXPERTS.match(word), 0.02),
        # of versions that nobody named the newest
        (newest, 3.0 - 0.01 * float(word) if newest else 0.0),
        (DATE.match(word), 1.6),
        (MINOR.match(word), 0.5),
        (SIZE.match(word) and not sized, 4.0),
        # its size was asked for in figures
        (sized and (word in GRADES or ("x" in word and SIZE.match(word))), 0.5),
        ("distill" in covered and word in TEACHERS, 0.5),
    )
    return next((cost for holds, cost in kinds if holds), None)


def _same_word(word: str, words: Collection[str]) -> str | None:
    """The word of a name that another one spells: `v3` and `3`, `3` and `3.0`."""
    spelt = (word, f"v{word}", word.removeprefix("v"), f"e{word}", f"{word}.0")
    return next((w for w in spelt if w in words), None)


def _written_as_one(asked: Sequence[str], own: Sequence[str]) -> tuple[set[str], list[str]]:
    """Words of a name that are two of those asked for, and the other words asked for."""
    covered: set[str] = set()
    words = list(asked)
    for a, b in pairwise(asked):
        if a + b in own and not {a, b} <= set(own):
            covered.add(a + b)
            words = [word for word in words if word not in (a, b)]
    return covered, words


def _spoken(asked: _Words, own: _Words, name: str) -> tuple[set[str], float] | None:
    """The words of a known name that were asked for, and the cost of asking for tuning that it does not name; None
    where something else was asked for."""
    cost = 0.0
    joined = {a + b: (a, b) for a, b in pairwise(own.words)}
    covered, words = _written_as_one(asked.words, own.words)
    for word in words:
        same = _same_word(word, own.words)
        if same is not None:
            covered.add(same)
        elif word in joined:
            covered |= set(joined[word])
        elif word in ANSWERING and ANSWERING & set(own.words):
            covered |= ANSWERING & set(own.words)
        elif word in TUNED:
            cost += 2.0
        elif word in own.organisation.split("-") or word == own.organisation:
            continue
        elif not (SIZE.match(word) and _is_size(own, name, word)):
            return None
    return covered, cost


def _is_size(own: _Words, name: str, word: str) -> bool:
    """Whether a model whose name does not say its size has this one, to 6 % or rounded."""
    plain = [w for w in own.words if SIZE.match(w) and "x" not in w]
    if plain:
        return False
    if f"a{word}" in own.words:
        return True
    billions = _table()["billions"].get(name)
    if billions is None or "x" in word:
        return False
    value = float(word.strip("ebmt")) * {"m": 1e-3, "b": 1.0, "t": 1e3}[word[-1]]
    return bool(abs(value / float(billions) - 1.0) < 0.06 or value == round(float(billions)))
