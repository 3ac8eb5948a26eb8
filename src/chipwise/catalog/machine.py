"""Machines as people name them: `rtx-4090`, `2xrtx-3090`, `m4-max:64gb`, `rtx-4090+core-i9-14900k`.

A machine is cards (or an integrated part, or nothing but a processor) and, where a model may spill over, the processor
whose memory takes the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import chip_id, get_chip, load_chips
from chipwise.catalog.override import with_figures
from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.catalog.system import counted_chip, load_systems
from chipwise.errors import UnknownNameError, UsageError, shorten
from chipwise.units import format_bytes, parse_quantity
from chipwise.values import dataclass

DESK = "catalog/data/desk.toml"

COUNTED = re.compile(r"\d+\s*[xX×*]\s*-?\s*\S")
UNNAMED = re.compile(
    r"(?:cpu|ram|ddr\d)(?:[- ]+(?:cpu|ram|ddr\d))*(?:[- ]+(\d+\s*gi?b))?|(\d+\s*gi?b)(?:[- ]+(?:cpu|ram|ddr\d))*",
    re.IGNORECASE,
)
"""A processor that is not named, or its memory alone: `cpu`, `128gb-ddr5`."""
PART = re.compile(r"(?:(\d+)\s*[xX×*]\s*-?\s*)?(\S.*)")
SEPARATED = re.compile(r"\s*(?:,|\+(?=\s*[^\s,]))\s*")
MOST = 64
MOST_COUNTED = 999_999
"""Chips of one kind that a name may count."""
DESKS = frozenset({"workstation", "desktop", "laptop", "board", "phone"})
"""Forms of machines that one user sits at."""


@dataclass(frozen=True)
class MachineHost:
    """The processor of a machine and `sockets` of it, each with the whole of `chip.memory`; `assumed`: nobody named
    it."""

    chip: Chip
    sockets: int = 1
    assumed: bool = False


@dataclass(frozen=True)
class Machine:
    """`cards` that work on one model in turn, each kind with its count, and the `host` whose memory they may use (None:
    theirs alone). A processor on its own is a card here. `name` is that of the question, in the catalogue's words."""

    cards: tuple[tuple[Chip, int], ...]
    host: MachineHost | None = None

    @property
    def name(self) -> str:
        """Parts as they can be asked for again."""
        parts = [f"{n}x{c.id}" if n > 1 else c.id for c, n in self.cards]
        if self.host is not None:
            host = self.host
            parts.append(f"{host.sockets}x{host.chip.id}" if host.sockets > 1 else host.chip.id)
        return "+".join(parts)

    @property
    def words(self) -> str:
        """The name, with the memory of a machine of one chip that is built with several sizes where none is named."""
        chip = self.cards[0][0]
        built = chip.kind == "cpu" or (_unified(chip) and _options(chip))
        if not self.alone or ":" in chip.id or not built:
            return self.name
        return f"{self.name} with {(chip.memory.label_bytes or 0.0) / 2**30:.4g} GB"

    @property
    def memory_bytes(self) -> float:
        """Of all parts together."""
        host = [] if self.host is None else [(self.host.chip, self.host.sockets)]
        return sum(c.memory.found_bytes * n for c, n in [*self.cards, *host])

    @property
    def alone(self) -> bool:
        """Whether it is one kind of chip with a memory of its own."""
        return len(self.cards) == 1 and self.host is None


def counted(text: str, *, dealt: bool = False, field: str = "chip") -> tuple[str, int] | None:
    """The chip, and how many of it a text means: so many of it (`8xh100`), or those of a machine for rent or a server
    (`2xp5.48xlarge`, `DGX H100`). None for a chip by itself, for several parts and for what is unknown.

    `dealt`: the layers of one model are dealt out to the parts of a machine, as local engines do. Then None also for
    processors and for cards at a desk (`2xrtx-4090`), which are one machine. Raises `UsageError` about `field` for a
    count below 1 or above `MOST_COUNTED`.
    """
    match = PART.fullmatch(text.strip())
    if match is None or ".toml" in text or len(SEPARATED.split(text.strip())) > 1:
        return None
    said, name = match.groups()
    try:
        chip, each = counted_chip(name, get_chip)
    except UnknownNameError:
        return None
    digits = (said or "1").lstrip("0")
    if not digits or len(digits) > len(str(MOST_COUNTED)):
        what = f"'{shorten(text.strip())}' says no count of chips that can be"
        raise UsageError(what, f"1 to {MOST_COUNTED:,}, as in 8x{shorten(name)}", field=field)
    alone = each == 1 and chip_id(name) is not None
    if alone and (said is None or (dealt and _at_desk(chip))):
        return None
    return chip.id, int(digits) * each


def _at_desk(chip: Chip) -> bool:
    return chip.kind == "cpu" or any(s.form in DESKS for s in load_systems().holding(chip.id))


def kinds(names: Iterable[str], *, dealt: bool = False) -> Mapping[str, tuple[int | None, ...]]:
    """The chips that names mean, each once and in the order asked, with the counts that were said of it (`counted`);
    None where it was named without one. A name that came without any count stays as it was written, else it is the id
    of the chip. Raises `UsageError` for a count that cannot be."""
    chips: dict[str, dict[int | None, str]] = {}
    for name in names:
        chip, count = counted(name, dealt=dealt, field="chips") or (_known(name), None)
        chips.setdefault(chip, {}).setdefault(count, name)
    return {counts[None] if set(counts) == {None} else chip: tuple(counts) for chip, counts in chips.items()}


def capped(names: Iterable[str]) -> tuple[tuple[str, ...], Mapping[str, int]]:
    """The chips that names mean, each once, and how many of each there are at most: as many as were said, without
    limit for one that was named without a count too. Raises `UsageError` for two counts of a chip."""
    found = kinds(names)
    most: dict[str, int] = {}
    for chip, counts in found.items():
        said = [count for count in counts if count is not None]
        if len(said) < len(counts):
            continue
        if len(said) > 1:
            what = f"--chips limits {chip} to {' and to '.join(f'{n:,}' for n in said)}"
            raise UsageError(what, f"say one of them: {max(said)}x{chip}", field="chips")
        most[chip] = said[0]
    return tuple(found), most


def copies(count: int, each: int, said: str, more: str, *, field: str = "chip") -> int:
    """How many replicas of `each` chips fill the `count` chips that were `said`. Raises `UsageError` about `field`,
    with what says `more` chips a replica, where some chips would be left over."""
    left = count % each
    if left:
        chips = f"'{shorten(said)}' is {count:,} {'chip' if count == 1 else 'chips'}"
        rest = f"{left} would be idle" if count > each else f"{each - left} are missing"
        what = f"{chips}, and a replica takes {each}: {rest}"
        raise UsageError(what, f"a multiple of {each}; {more} sets the chips of a replica", field=field)
    return count // each


def _known(name: str) -> str:
    """The id of a chip of the catalogue, any other name as it is: the user's own, a file, a machine of parts."""
    return name if ".toml" in name else chip_id(name) or name


def joined(text: str) -> bool:
    """Whether a text names several parts, or a count, and no chip: chips may have a plus in their names."""
    if ".toml" in text or not (SEPARATED.search(text.strip()) or COUNTED.match(text.strip())):
        return False
    return chip_id(text) is None


def memory_bytes(text: str, what: str) -> float:
    """A size of memory as it is sold, in powers of two: 128GB is 128 GiB. A bare number of up to four
    digits is refused with both readings, a longer one is bytes. Raises `UsageError`."""
    if re.fullmatch(r"[1-9]\d{0,3}(\.\d+)?", text.strip()):
        raise UsageError(f"{what} {text}: {text}GB or {text}TB?", instead=(f"{text}GB", f"{text}TB"))
    written = re.sub(r"(?<=[\d\s])([kmgt])i?b$", lambda m: f"{m[1].upper()}iB", text.strip().lower())
    return parse_quantity(written, "B", what, low=2**28, high=1e14)


def _card(part: str, text: str, find: Callable[[str], Chip], field: str) -> tuple[Chip, int]:
    """The chip that a part of a machine names, and how many of it. Raises the errors of `parse_machine`."""
    match = PART.fullmatch(part)
    if match is None:
        raise UsageError(f"cannot read '{shorten(text)}' as a machine", "as in rtx-4090 or 2xrtx-3090", field=field)
    chip, each = counted_chip(match[2], lambda name: _part(name, find))
    count = each * int(match[1] or 1) if len(match[1] or "") < 6 else 0
    if not 1 <= count <= MOST:
        fit = f"1 to {MOST // each}x, each of {each} {chip.id}" if each > 1 else f"1 to {MOST} of a chip"
        raise UsageError(f"cannot count '{shorten(part)}' as one machine", fit, field=field)
    return chip, count


def _hosted(
    cards: Sequence[tuple[Chip, int]], host: MachineHost | None, host_memory: float | None, memory: str = ""
) -> MachineHost | None:
    """The processor beside cards with so much memory of its own (None: none is named): the one that is named, else the
    usual one of this kind of `memory`. Raises `UsageError` for cards that share one memory with it."""
    if host_memory is None:
        return host
    unified = next((c for c, _ in cards if _unified(c)), None)
    if unified is not None:
        sizes = [o.partition(":")[2] for o in _options(unified)]
        hint = f"name its size: {unified.id.partition(':')[0]}:{sizes[0]}" if sizes else "leave it out"
        what = f"{unified.id} shares one memory with its processor: it has no other"
        raise UsageError(what, hint, field="host_memory")
    host = host or MachineHost(_usual(cards[0][0], memory), assumed=True)
    return replace(host, chip=with_memory(host.chip, host_memory))


def parse_machine(
    text: str, host_memory: float | None = None, find: Callable[[str], Chip] = get_chip, *, field: str = ""
) -> Machine:
    """Cards and processor of `2xrtx-3090+epyc-9654` (also with commas), a chip or an option of one (`m4-max:64gb`).

    A part `cpu`, or memory as in `rtx-4090+128gb-ddr5`, is the usual processor of such a machine. `host_memory` bytes
    are the processor's: of the one that is named, else of the usual one. `find` gives chips by name. Without it a
    processor holds what it can address, and a card alone uses no memory but its own. Raises `UsageError` about `field`
    for what is no machine, `UnknownNameError` for a chip or option that does not exist.
    """
    parts, usual, host_memory, memory = _parts(text, host_memory, find, field)
    processors = [(c, n) for c, n in parts if c.kind == "cpu"]
    cards = [(c, n) for c, n in parts if c.kind != "cpu"]
    if len(processors) > 1:
        named = " and ".join(c.id for c, _ in processors)
        raise UsageError(f"a machine has one kind of processor, not {named}", "name one of them")
    if not cards:
        chip, sockets = processors[0]
        return Machine(((chip if host_memory is None else with_memory(chip, host_memory), sockets),))
    host = MachineHost(*processors[0]) if processors else None
    if host is None and usual and host_memory is None:
        host = MachineHost(_usual(cards[0][0], memory), assumed=True)
    host = _hosted(cards, host, host_memory, memory)
    # the fastest memory is filled first
    cards.sort(key=lambda card: -(card[0].memory.bytes_per_s or 0.0))
    return Machine(tuple(cards), host)


def _parts(
    text: str, host_memory: float | None, find: Callable[[str], Chip], field: str
) -> tuple[list[tuple[Chip, int]], bool, float | None, str]:
    """Named parts and their counts, whether a processor stands without its name, the memory of the host, and its kind
    ("": not said)."""
    counts: dict[str, tuple[Chip, int]] = {}
    usual, memory = False, ""
    for part in map(str.strip, SEPARATED.split(text.strip()) if joined(text) else [text]):
        unnamed = UNNAMED.fullmatch(part)
        if unnamed is not None and counts:
            usual = True
            memory = next(iter(re.findall(r"ddr\d", part.lower())), memory)
            size = next((group for group in unnamed.groups() if group), None)
            if size is not None:
                host_memory = memory_bytes(size, "memory of the computer")
            continue
        chip, count = _card(part, text, find, field)
        counts[chip.id] = (chip, counts.get(chip.id, (chip, 0))[1] + count)
    return list(counts.values()), usual, host_memory, memory


def with_host(machine: Machine, host_memory: float) -> Machine:
    """The cards of a machine with so much memory beside them, of its processor or of the usual one."""
    return Machine(machine.cards, _hosted(machine.cards, machine.host, host_memory))


def with_memory(chip: Chip, size: float) -> Chip:
    """A processor with that much memory. Raises `UsageError` for more than it takes."""
    most = chip.memory.label_bytes
    if most is not None and size > most * 1.001:
        raise UsageError(
            f"{chip.id} takes at most {format_bytes(most)} of memory, not {format_bytes(size)}",
            "name another processor, or less --host-memory",
            field="host_memory",
        )
    sized = with_figures(chip, {"memory": f"{size:.0f}B"})
    base = chip.id.partition(":")[0]
    return replace(sized, id=f"{base}:{size / 2**30:.4g}gb", name=chip.name, like=chip.software_id)


def _part(name: str, find: Callable[[str], Chip]) -> Chip:
    """A chip, or a processor with its memory behind a colon as in `epyc-9654:768gb`, of any size that it takes."""
    name = re.sub(r"^cpu-(?=\S)", "", name.strip(), flags=re.IGNORECASE)
    base, _, option = name.partition(":")
    try:
        return find(name)
    except UnknownNameError:
        if not option:
            raise
        chip = find(base)
        if chip.kind != "cpu":
            raise
        return with_memory(chip, memory_bytes(option, f"memory of {chip.id}"))


def _unified(chip: Chip) -> bool:
    return any(system.unified for system in load_systems().holding(chip.id))


def _options(chip: Chip) -> list[str]:
    entry = load_chips().entries.get(chip.id.partition(":")[0])
    return list(entry.options) if entry else []


@dataclass(frozen=True)
class Candidate:
    """A model that people run at a desk: the month it was published, what for, its names where engines get it ("" =
    none known), and its published `scores` by benchmark in percent, with where they were `scored`."""

    model: str
    published: str
    uses: tuple[str, ...]
    ollama: str = ""
    gguf: str = ""
    mlx: str = ""
    scores: Mapping[str, float] = field(default_factory=dict, hash=False)
    scored: str = ""


@per_snapshot
def _desk() -> Mapping[str, Any]:
    return parse(shipped_text(DESK))


@per_snapshot
def candidates() -> tuple[Candidate, ...]:
    """The models that `local` looks through, in the order of the table."""
    return tuple(
        Candidate(
            name,
            row["published"],
            tuple(row["uses"]),
            row.get("ollama", ""),
            row.get("gguf", ""),
            row.get("mlx", ""),
            {key: float(value) for key, value in row.get("scores", {}).items()},
            row.get("scored", ""),
        )
        for name, row in _desk()["model"].items()
    )


def studio() -> tuple[str, ...]:
    """Networks of images and clips that a machine at a desk is bought for besides."""
    return tuple(_desk()["studio"]["networks"])


def with_files(model: str) -> Candidate:
    """A model by its name in the catalogue, with the files that engines read where they are known, looked through by
    `local` or not."""
    known = next((c for c in candidates() if c.model == model), None)
    return known or Candidate(model, "", (), **_desk()["files"].get(model, {}))


def engine_line(runtime: str) -> tuple[str, str, str] | None:
    """The name of the server of software that reads checkpoints, what starts it, and the option with which it converts
    them while it loads ("": it reads converted ones alone); None where that is not known."""
    found = _desk()["engine"].get(runtime)
    return None if found is None else (found[0], found[1], found[2] if len(found) > 2 else "")


def converting() -> tuple[str, ...]:
    """Software that converts a checkpoint while it loads it."""
    return tuple(runtime for runtime, line in _desk()["engine"].items() if len(line) > 2)


def _usual(card: Chip, memory: str = "") -> Chip:
    """The processor that is taken to stand beside a card: that of the smallest machine which holds one, of the kind of
    `memory` that was said ("": of the card's years)."""
    hosts, form = _desk()["hosts"], usual_form(card)
    older = memory == hosts["older"] or (not memory and card.year < hosts["until"])
    return get_chip(hosts[f"{form}_{hosts['older']}" if older and f"{form}_{hosts['older']}" in hosts else form])


def usual_form(chip: Chip) -> str:
    """The form of the smallest machine that holds a chip."""
    forms = {system.form for system in load_systems().holding(chip.id)}
    return next((f for f in ("laptop", "desktop", "workstation", "board") if f in forms), "server")
