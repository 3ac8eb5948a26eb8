"""The bundled chips: by id, by option (`m4-max:64gb`), and by the names that people use."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from chipwise.catalog.chip import Chip
from chipwise.catalog.chip_reader import Entry, read_chips, read_entries
from chipwise.catalog.files import read_text
from chipwise.catalog.offer import counted, offers_of
from chipwise.catalog.parsed import parse
from chipwise.catalog.rented import NAMES, Rented, rented
from chipwise.catalog.snapshot import per_snapshot, shipped_names, shipped_text, today
from chipwise.errors import UnknownNameError, UsageError, is_name, listed
from chipwise.values import dataclass

MAKERS = frozenset(
    "nvidia geforce amd radeon instinct intel apple google cloud aws amazon microsoft azure meta huawei qualcomm tesla"
    " cerebras gpu gpus graphics card chip accelerator core cores generation edition the by with memory"
    " oam hgx dgx".split()
)
"""Words of a name that tell no two chips apart."""

SPELLINGS = {"tenstorrent": "tt", "gib": "gb", "g": "gb", "sxm2": "sxm", "workstation": "ws", "mobile": "laptop"}
"""Words that are written in two ways."""
MACS = re.compile(r"\b(mac[ -]?book([ -](pro|air))?|mac[ -](studio|mini|pro)|imac)[ -](?=m\d)")
"""Computers that are named before the chip in them."""
PORTABLE = frozenset(("laptop", "max-q"))
"""Words of the version of a card that is meant only where it is said."""


class Shelf(Mapping[str, Chip]):
    """Chips by id in the order of the files, each read when it is first asked for: most questions need a few.

    Options are found under their full name, but not listed.
    """

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self.entries = entries
        self._read: dict[str, Chip] = {}

    def __getitem__(self, name: str) -> Chip:
        found = self._read.get(name)
        if found is None:
            entry = self.entries[name.partition(":")[0]]
            if name != entry.name and name not in entry.options:
                raise KeyError(name)
            found = self._read[name] = entry.chip(name)
        return found

    def __contains__(self, name: object) -> bool:
        entry = self.entries.get(name.partition(":")[0]) if isinstance(name, str) else None
        return entry is not None and (name == entry.name or name in entry.options)

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def market(self) -> tuple[str, ...]:
        """Chips that a search tries where none is named: to be had, and not only for who names them."""
        return tuple(
            name
            for name, entry in self.entries.items()
            if entry.table.get("status") in ("ga", "discontinued") and not entry.table.get("only_named")
        )

    def generations(self) -> Mapping[str, str]:
        """A chip of each generation, the last one that is listed."""
        return {str(entry.table.get("generation") or name): name for name, entry in self.entries.items()}


@per_snapshot
def load_chips() -> Shelf:
    """All bundled chips by id, in the order of the files; a table is read when its chip is asked for."""
    entries: dict[str, Entry] = {}
    for path in shipped_names("catalog/data/chips", ".toml"):
        origin = path.rpartition("/")[2]
        for name, entry in read_entries(shipped_text(path), origin).items():
            if name in entries:
                raise UsageError(f"{origin}: chip '{name}' stands in another file too")
            entries[name] = entry
    return Shelf(entries)


def words_of(name: str) -> tuple[str, ...]:
    """The runs of letters and of digits of a name, sorted, without the words that tell no two chips apart.

    So words stand in any order and blanks and dashes do not matter, but no near name is the same: `RTX 4090 D` has
    a word more than `RTX 4090`, `H20` another number than `H200`.
    """
    said = re.sub(r"\+", " plus ", MACS.sub("", name.lower()))
    words = (SPELLINGS.get(word, word) for word in re.split(r"[^a-z0-9.]+", said))
    parts = [run for word in words if word not in MAKERS for run in re.findall(r"[a-z]+|\d+", word)]
    return tuple(sorted(SPELLINGS.get(run, run) for run in parts))


SIZED = re.compile(r"(.+?)[-:](\d+)-?(?:gb)?")


@per_snapshot
def _names() -> Mapping[str, str]:
    """Every id, option and alias with the id that it stands for. Raises `UsageError` for a name of two chips."""
    names: dict[str, str] = {}
    for entry in load_chips().entries.values():
        aliases = entry.table.get("aliases", [])
        for name, chip in (
            (entry.name, entry.name),
            *((o, o) for o in entry.options),
            *((a, entry.name) for a in aliases),
        ):
            if names.setdefault(name, chip) != chip:
                raise UsageError(f"the catalogue: '{name}' names both {names[name]} and {chip}")
    return names


@per_snapshot
def _spoken() -> Mapping[tuple[str, ...], str]:
    """Ids by the words of their ids, aliases and full names; words that fit two chips name neither."""
    found: dict[tuple[str, ...], str] = {}
    for name, chip in _names().items():
        found.setdefault(words_of(name), chip)
    full = [(words_of(str(e.table.get("name", ""))), e.name) for e in load_chips().entries.values()]
    twice = Counter(words for words, _ in full)
    for words, chip in full:
        if words and twice[words] == 1:
            found.setdefault(words, chip)
    return found


@per_snapshot
def _kin() -> Mapping[str, Mapping[str, None]]:
    """The ids, in order, of the chips that have a word in their ids, aliases, full names, makers and generations."""
    found: dict[str, dict[str, None]] = {}
    for e in load_chips().entries.values():
        said = (e.name, str(e.table.get("name", "")), *e.table.get("aliases", []), str(e.table.get("generation", "")))
        for word in words_of(" ".join((*said, e.vendor))):
            found.setdefault(word, {})[e.name] = None
    return found


def get_chip(name: str) -> Chip:
    """The bundled chip of that id, option or alias, or whose name has these words in any order; of a family the newest
    (`family`).

    Case, blanks, dashes and the maker's name do not matter; words that only one chip has are enough.

    Raises `UnknownNameError`: with the chips that have all the words where there are several, else the nearest names.
    """
    newest = family(name) if is_name(name) else None
    return exact_chip(newest.chip if newest else name)


def exact_chip(name: str) -> Chip:
    """The same for names that others wrote: a family is none of its chips."""
    found = chip_id(name)
    if found is None:
        raise _unknown_chip(name)
    return load_chips()[found]


def chip_id(name: str) -> str | None:
    """The id of the chip that `exact_chip` gives, None where there is none: nothing near is looked for."""
    if not is_name(name):
        return None
    key = _key(name)
    found = key if key in load_chips() else _names().get(key) or _spoken().get(words_of(name)) or _sized(key)
    entry = _optional(key)
    if found is None and entry is not None:
        option = f"{entry.name}:{key.partition(':')[2]}"
        return option if option in entry.options else None
    if found is None:
        kin = _meant(name)
        found = kin[0] if len(kin) == 1 else None
    return found


def _key(name: str) -> str:
    return re.sub(r"[\s_]+", "-", name.strip().lower())


def _optional(key: str) -> Entry | None:
    """The chip of which a name says an option, `h200:one`."""
    base, _, option = key.partition(":")
    return load_chips().entries.get(_names().get(base, base)) if option else None


def _unknown_chip(name: str) -> UnknownNameError:
    """What is said of a name that is no chip."""
    if not is_name(name):
        return UnknownNameError("chip", name, (), listed("chips"))
    key = _key(name)
    entry = _optional(key)
    if entry is None:
        return _several(name) if "," in name else _unknown(name, _meant(name))
    known = [o.partition(":")[2] for o in entry.options]
    hint = f"it is sold as {', '.join(known)}" if known else f"it has none: {entry.name}"
    return UnknownNameError(f"option of {entry.name}", key.partition(":")[2], known, hint)


@dataclass(frozen=True, slots=True)
class ChipFamily:
    """A name that several chips share, and the `chip` that it is taken for: the newest that is for rent (`priced`), or
    the newest on the market. `others` are the rest, in the order of the files."""

    name: str
    chip: str
    year: int
    priced: bool
    others: tuple[str, ...]

    def __str__(self) -> str:
        newest = "the newest with a rental price" if self.priced else "the newest on the market"
        return f"'{self.name}' is taken as {self.chip} ({self.year}), {newest}; also: {_some(self.others)}"


@per_snapshot
def family(name: str) -> ChipFamily | None:
    """The family that a name means, chips of one maker and kind; None for the name of one chip or of none, and where
    no single chip is the newest. Of chips of one year that nobody rents the plain one is meant: `m6` of Apple's. A
    letter alone names none."""
    chips, kin = load_chips(), _relatives(name) if _is_word(name.strip()) else []
    sold = [c for c in kin if chips[c].status == "ga"]
    if len({(chips[c].vendor, chips[c].kind) for c in sold}) != 1:
        return None
    priced = [c for c in sold if counted(offers_of(c), today())[0]]
    newest = _least(priced or sold, lambda c: -chips[c].year)
    if not priced:
        newest = _least(newest, lambda c: len(c.split("-")))
    if len(newest) != 1:
        return None
    rest = tuple(c for c in kin if c != newest[0])
    return ChipFamily(name.strip(), newest[0], chips[newest[0]].year, bool(priced), rest)


def _is_word(name: str) -> bool:
    """Whether a text is printable, of ASCII, and has two letters or digits: less names no family."""
    return name.isascii() and name.isprintable() and sum(letter.isalnum() for letter in name) > 1


def _relatives(name: str) -> list[str]:
    """The chips that share a name, of those the ones of the kind that it says (`tpu`); none where it is the name of one
    chip, or of a machine for rent alone."""
    key, chips = _key(name), load_chips()
    if key in chips or key in _names() or words_of(name) in _spoken() or ":" in name:
        return []
    kin = _meant(name)
    if len(kin) == 1 or (not kin and rented(name)):
        return []
    kin = kin or [e.name for e in chips.entries.values() if e.vendor.lower() == key]
    of_kind = [c for c in kin if chips[c].kind == key]
    return of_kind or kin


def _least(names: Sequence[str], size: Callable[[str], int]) -> list[str]:
    sizes = {name: size(name) for name in names}
    return [name for name in names if sizes[name] == min(sizes.values())]


def _sized(key: str) -> str | None:
    """The option of a chip whose memory is said behind one of its names: `strix-halo:64gb`, `m3-ultra-512`."""
    said = SIZED.fullmatch(key)
    if said is None:
        return None
    base = _names().get(said[1]) or _spoken().get(words_of(said[1]))
    option = f"{base}:{said[2]}gb"
    return option if _names().get(option) else None


def _called(kin: list[str], one: str, asked: Set[str]) -> list[str]:
    """Of several chips the one that has a name with a figure in its id as one word, or is of no laptop."""
    if len(kin) < 2 or not any(c.isdigit() for c in one):
        return kin
    called = [chip for chip in kin if one in chip.split("-")] or kin
    fixed = [chip for chip in called if not any(word in chip for word in PORTABLE - asked)]
    return fixed if len(fixed) == 1 else kin


def _meant(name: str) -> list[str]:
    """The chips that have all words of a name. Of several the one that has it in its id as one word (`M40`), and none
    of a laptop that was not asked for."""
    asked, one = frozenset(words_of(name)), re.sub(r"[^a-z0-9]+", "", name.lower())
    if any(asked == words for words, _ in _without_figures()):
        return []
    having = sorted((_kin().get(word, {}) for word in asked), key=len)
    kin = [chip for chip in having[0] if all(chip in chips for chips in having)] if having else []
    kin = _called(kin, one, asked)
    machines = {m.chip for m in rented(name)}
    if machines and not machines & set(kin) and not any(one in chip.split("-") for chip in kin):
        return []  # a series of machines for rent, `p5`, whose letters some chip has too
    return kin


def _for_rent(name: str, machines: Sequence[Rented]) -> str:
    """What the machines are that a name means."""
    holds = [f"{m.chips}x {m.chip} in {m.provider}'s {m.name}" for m in machines]
    asking = "name the chip"
    if len(machines) == 1:
        price = f", its price --provider {machines[0].provider}" if machines[0].priced else ""
        asking = f"its chip is {machines[0].chip}{price}; plan --have {shlex.quote(name)} takes all of it"
    return f"a machine for rent: {_some(holds, 3)}; {asking}"


def _several(names: str) -> UnknownNameError:
    """What is said of a list of chips where one is asked for: which command takes several."""
    said = shlex.quote(",".join(part.strip() for part in names.split(",") if part.strip()))
    hint = f"one chip is asked for here; chipwise compare MODEL --chips {said}"
    return UnknownNameError("chip", names, (), hint)


def _unknown(name: str, kin: Sequence[str]) -> UnknownNameError:
    """What is said of a name that is no chip: which machine or maker it is, why there are no figures, what is near."""
    chips, asked = load_chips(), set(words_of(name))
    makers = {e.vendor.lower() for e in chips.entries.values()} & set(re.findall(r"[a-z]+", name.lower()))
    machines = rented(name)
    made = [e.name for e in chips.entries.values() if e.vendor.lower() == name.strip().lower()]
    if kin and not machines:
        return UnknownNameError("chip", name, (), f"{len(kin)} chips are called so: {_some(kin)}")
    for words, row in _without_figures():
        if words <= asked and _of(makers, row):
            return _near(name, f"{row['say']}; nearest with figures: {', '.join(row['near']) or 'none'}", row["near"])
    if machines:
        return _near(name, _for_rent(name, machines), [m.chip for m in machines])
    if made:
        return _near(name, f"a maker of {len(made)} chips: {_some(made)}", made)
    return UnknownNameError("chip", name, _made_by(makers), listed("chips"))


def _made_by(makers: Set[str]) -> Mapping[str, None]:
    """The names of the chips of some makers, of all where none is named."""
    names = (*load_chips(), *_names())
    return dict.fromkeys(n for n in names if not makers or _maker(n) in makers)


def _maker(name: str) -> str:
    """Who makes the chip of an id, option or alias, in small letters."""
    chips = load_chips()
    return chips.entries[_names().get(name, name).partition(":")[0]].vendor.lower()


def _of(makers: Set[str], row: Mapping[str, Any]) -> bool:
    """Whether a chip without figures is of one of the makers that were named (none: of any)."""
    near = {_maker(chip) for chip in row["near"]}
    return not makers or bool(makers & near) or any(maker in row["say"].lower() for maker in makers)


@per_snapshot
def _without_figures() -> tuple[tuple[frozenset[str], Mapping[str, Any]], ...]:
    """Chips that are known by name alone: the words of the name, what is to be said, and the nearest with figures."""
    table = parse(shipped_text(NAMES))["without_figures"]
    return tuple((frozenset(words_of(name)), row) for name, row in table.items())


def _near(name: str, hint: str, chips: Iterable[str]) -> UnknownNameError:
    error = UnknownNameError("chip", name, (), hint)
    error.nearest = tuple(dict.fromkeys(chips))[:4]
    return error


def _some(names: Sequence[str], most: int = 6) -> str:
    return f"{', '.join(names[:most])}{', ...' if len(names) > most else ''}"


def recalled_words(names: Iterable[str]) -> tuple[str, ...]:
    """Of some chips the figures that predictions rest on and nobody read in a source, as a line of assumptions."""
    chips, most = load_chips(), 4
    found = [
        f"{name} ({', '.join(figures)})"
        for name in dict.fromkeys(names)
        if (chip := chips.get(name)) is not None and (figures := chip.recalled)
    ]
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return (f"figures recalled, not read in a source: {', '.join(found[:most])}{more}",) if found else ()


def memory_words(names: Iterable[str]) -> tuple[str, ...]:
    """Of chips that are sold with memories of several speeds, which is taken where a name says none."""
    chips, said = load_chips(), []
    for name in dict.fromkeys(n for n in names if n in chips.entries):
        speeds = {n: chips[n].memory.bytes_per_s or math.inf for n in (name, *chips.entries[name].options)}
        slowest = min(speeds, key=lambda n: speeds[n])
        if speeds[slowest] < speeds[name] < math.inf:
            taken, less = speeds[name] / 1e9, speeds[slowest] / 1e9
            said.append(f"{name} is taken with {taken:g} GB/s of memory: {slowest} has {less:g}")
    return tuple(said)


def read_chip_file(path: Path) -> Mapping[str, Chip]:
    """The chips of a user's TOML file. Raises `UsageError` for a file or an entry that cannot be read."""
    return read_chips(read_text(path, 1_000_000, "a TOML file of chips"), str(path), load_chips().entries)
