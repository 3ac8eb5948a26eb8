"""What was found, in the catalogue's terms: which chips, how many, and what differs from what the catalogue says.

A printed name means a chip only where all its words do: `RTX 4090 D`, `RTX 4090 Laptop GPU` and `A100-SXM-64GB` are no
RTX 4090 and no A100. Chips of one name are told apart by memory and compute units; where those leave several, all are
named and the user chooses. A name whose memory no such chip has (a "4090" of 48 GB) is another product.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import MAKERS, load_chips, words_of
from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.errors import UsageError, shorten
from chipwise.measure.prints import Links, PrintedDevice, PrintedHost, PrintReading, read_prints
from chipwise.values import dataclass

TABLE = "catalog/data/machine_names.toml"
VISIBLE = (0.88, 1.03)
"""Memory as tools report it, over what the maker sells: ECC, drivers and displays take up to an eighth."""
MAKER_OF = {"habana": "intel"}
PARTITIONS = {"SPX": 1, "DPX": 2, "TPX": 3, "QPX": 4, "CPX": 8}
METAL_SHARES = (2 / 3, 0.75, 0.78, 0.84)
"""What Metal lets a process use of the memory, from small machines to large ones."""


@dataclass(frozen=True, slots=True)
class FoundMachine:
    """Devices of one kind that stand in one machine, as the catalogue knows them.

    `chip` is the catalogue's id, None where it is unknown or one of `ambiguous`; `variant` the finer entry that the
    figures choose (GPU cores, size of the memory). `count` is in packages as the catalogue counts them, `whole` how
    many of them one can plan with as a whole (not cut by MIG). `memory_gb` is in 10^9 bytes per device, as reported.
    `differs` says what is not as in the catalogue, `nearest` names chips that are like an unknown one.
    """

    chip: str | None
    count: int
    memory_gb: float | None
    differs: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()
    name: str = ""
    variant: str | None = None
    whole: int = 0
    nearest: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class MachineReport:
    """A machine: its devices by kind, its host, its links in words, versions of software, and what went wrong.

    `have` is the text for `--have`, None where there is none; `read` are the commands or files that said something.
    """

    machines: tuple[FoundMachine, ...]
    host: PrintedHost
    links: str
    software: Mapping[str, str]
    problems: tuple[str, ...]
    have: str | None
    read: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class _Known:
    """What a printed device can be: one chip, several, or none and why."""

    chips: tuple[str, ...] = ()
    variant: str = ""
    notes: tuple[str, ...] = ()
    why: str = ""
    count: int = 0


@per_snapshot
def _table() -> Mapping[str, Any]:
    return parse(shipped_text(TABLE))


@per_snapshot
def _named() -> Mapping[tuple[str, ...], tuple[str, ...]]:
    """Chips by the words of printed names, of the table alone."""
    return {_words(name): tuple(chips) for name, chips in _table()["names"].items()}


@per_snapshot
def _spoken() -> tuple[Mapping[tuple[str, ...], tuple[str, ...]], Mapping[str, frozenset[str]]]:
    """Chips by the words of ids, aliases and names, with and without the size of the memory; all words by chip."""
    found: dict[tuple[str, ...], dict[str, None]] = {}
    every: dict[str, frozenset[str]] = {}
    for entry in load_chips().entries.values():
        aliases = [alias for alias in entry.table.get("aliases", ()) if ":" not in alias]
        full = re.sub(r"\([^)]*\)", " ", str(entry.table.get("name", "")))
        said = (entry.name, *aliases, full)
        short = tuple(re.sub(r"[\s-]*\b\d+ ?g(i?b)?\b", "", text, flags=re.IGNORECASE) for text in (entry.name, full))
        for text in (*said, *short):
            if words_of(text):
                found.setdefault(words_of(text), {})[entry.name] = None
        every[entry.name] = frozenset(words_of(" ".join((entry.name, str(entry.table.get("name", ""))))))
    return {words: tuple(chips) for words, chips in found.items()}, every


def _words(name: str) -> tuple[str, ...]:
    """The words of a printed name, without marks; of `Navi 31 [Radeon RX 7900 XTX]` those of the product."""
    inner = re.search(r"\[([^\]]*\w[^\]]*)\]", name)
    said = re.sub(r"\((?:r|tm|c)\)|[®™]", " ", inner[1] if inner else name, flags=re.IGNORECASE)
    return words_of(said)


# one device


def _candidates(device: PrintedDevice) -> tuple[tuple[str, ...], bool]:
    """Chips that the name, or the number where there is no name, can mean; and whether the name was cut short."""
    table = _table()
    name = device.name.strip()
    if device.vendor == "google":
        return _tpu(name), False
    words = _words(name.removesuffix("...")) if name else ()
    if name.endswith("..."):
        return _cut(name), True
    if words and words not in ((), ("device",)):
        found = _named().get(words) or _spoken()[0].get(words, ())
        if found:
            return found, False
    # ROCm has several names for a chip; an NVIDIA name that is unknown is another product
    if not words or device.vendor == "amd" or re.search(r"(?i)graphics device|^Device ", name):
        return tuple(table["pci"].get(device.part, ())), False
    return (), False


def _cut(name: str) -> tuple[str, ...]:
    """Chips whose name can begin so: `RTX 4000 Ada Gene...`."""
    kept = name.removesuffix("...")
    whole, _, part = kept.rpartition(" ")
    part = part.lower()
    words = _words(whole)
    if part and any(maker.startswith(part) for maker in MAKERS):
        exact = _named().get(words) or _spoken()[0].get(words, ())
        if exact:
            return exact
    wanted = frozenset(words)
    return tuple(
        chip
        for chip, own in _spoken()[1].items()
        if wanted and wanted <= own and (not part or any(word.startswith(part[:8]) for word in own))
    )


def _tpu(name: str) -> tuple[str, ...]:
    said = name.removeprefix("TPU").strip()
    if said in _table()["grid"]:
        return tuple(_table()["grid"][said])
    kind = _table()["tpu"].get(said.rpartition("-")[0] if re.search(r"-\d+$", said) else said.removesuffix(" chip"))
    return (kind["chip"],) if kind else ()


def _identify(device: PrintedDevice, host: PrintedHost) -> _Known:
    """What one device is."""
    if re.search(r"\bMIG \d", device.name):
        base = re.split(r"\s*\bMIG ", device.name)[0]
        whole = _identify(replace(device, name=base, memory=None), host)
        return replace(whole, chips=(), why="a MIG slice of a GPU")
    if device.vendor == "aws":
        return _neuron(device, host)
    if device.vendor == "nvidia" and device.name == "Jetson":
        return _jetson(device)
    found, cut = _meant(device)
    if not found:
        return _Known(why="" if device.name else "no print names it")
    chips = load_chips()
    fitting = tuple(c for c in found if _fits(chips[c], device.memory, device))
    if not fitting:
        return _Known(why=_other_memory(found, device))
    fitting = _told_apart(fitting, device, host)
    if len(fitting) == 1 and not cut:
        return _variant(chips[fitting[0]], device)
    return _Known(fitting, why="the print cuts the name short, run nvidia-smi -L" if cut else "")


def _meant(device: PrintedDevice) -> tuple[tuple[str, ...], bool]:
    """Chips of its vendor that a device can be by name or number, and whether the name was cut short."""
    chips = load_chips()
    named, cut = _candidates(device)
    maker = MAKER_OF.get(device.vendor, device.vendor)
    found = tuple(c for c in named if maker in ("", chips[c].vendor) and chips[c].kind != "cpu")
    if device.vendor == "apple":
        found = tuple(c for c in found if chips[c].runs_as not in found)  # variants are told by their cores
        found = found or tuple(_table()["pci"].get(device.part, ()))
    return found, cut


def _other_memory(found: Sequence[str], device: PrintedDevice) -> str:
    """Why no chip of a name is the device: it shows another memory."""
    name = shorten(device.name, 40)
    if len(found) > 1:
        return f"{name} with a memory that none of that name has"
    label = _label(load_chips()[found[0]])
    return f"{name} with {(device.memory or 0) / 2**30:.0f} GiB of memory, where {found[0]} has {label}"


def _told_apart(fitting: tuple[str, ...], device: PrintedDevice, host: PrintedHost) -> tuple[str, ...]:
    """Of chips with one name those with the device's count of units, and those whose memory is the host's where they
    share it."""
    chips = load_chips()
    if len(fitting) > 1 and device.units:
        dies = {c: chips[c].matrix_unit.units / max(chips[c].devices_per_package, 1) for c in fitting}
        fitting = tuple(c for c, units in dies.items() if units == device.units) or fitting
    if len(fitting) > 1 and device.memory is None and _shared(chips[fitting[0]]) and host.memory:
        fitting = tuple(c for c in fitting if 0.85 < host.memory / _sizes(chips[c])[0] < 1.03) or fitting
    return fitting


def _sizes(chip: Chip) -> list[float]:
    """What it is sold with, in bytes."""
    shelf = load_chips()
    options = shelf.entries[chip.id].options if chip.id in shelf.entries else ()
    labels = [chip.memory.label_bytes, *(shelf[o].memory.label_bytes for o in options)]
    return [label for label in labels if label]


def _label(chip: Chip) -> str:
    return " or ".join(dict.fromkeys(f"{size / 2**30:.0f}" for size in _sizes(chip))) + " GiB"


def _shared(chip: Chip) -> bool:
    """Whether its memory is the computer's: what a tool calls its size is a share then."""
    return chip.memory.kind == "ddr" and chip.host is not None and not chip.host.name.startswith(("PCIe", "USB"))


def _fits(chip: Chip, memory: float | None, device: PrintedDevice) -> bool:
    """Whether a reported size can be this chip's, as a whole, a die or a partition."""
    if memory is None:
        return True
    low, high = VISIBLE
    if _shared(chip):
        # boards are told apart by it; other tools report any share of the computer's memory
        return chip.vendor != "nvidia" or "jetson" not in chip.id or 0.85 < memory / _sizes(chip)[0] < high
    parts = {1, max(chip.devices_per_package, 1)}
    if chip.vendor == "amd" and chip.memory.kind == "hbm":
        parts |= {2, 4, 6, 8}
    return any(low < memory * part / size < high for size in _sizes(chip) for part in parts)


def _by_cores(chip: Chip, device: PrintedDevice) -> tuple[Chip, list[str]]:
    """Apple's chip with the device's count of GPU cores, and what is said where that is open."""
    shelf = load_chips()
    kin = [shelf[c] for c in shelf if c.startswith(f"{chip.id}-") and shelf[c].runs_as == chip.id]
    kin = [k for k in kin if re.fullmatch(rf"{re.escape(chip.id)}-\d+c", k.id)]
    if device.units is None and kin:
        cores = [chip.matrix_unit.units, *(k.matrix_unit.units for k in kin)]
        return chip, [f"{' or '.join(map(str, cores))} GPU cores, which the print does not say"]
    if not device.units or device.units == chip.matrix_unit.units:
        return chip, []
    same = next((k for k in kin if k.matrix_unit.units == device.units), None)
    known = f"planned as {same.id}" if same else "no such variant is in the catalogue"
    told = f"{device.units} GPU cores, {chip.id} has {chip.matrix_unit.units}: {known}"
    return same or chip, [told]


def _variant(chip: Chip, device: PrintedDevice) -> _Known:
    """The finer entry of the catalogue: another count of GPU cores, the option with that memory."""
    shelf = load_chips()
    chosen, notes = _by_cores(chip, device) if device.vendor == "apple" else (chip, [])
    memory = device.memory
    options = shelf.entries[chosen.id].options
    if memory is None and device.working_set:
        fits = [o for o in (*options, chosen.id) if _allows(shelf[o], device.working_set)]
        memory = shelf[fits[0]].memory.label_bytes if fits else None
        if memory:
            notes.append(f"{memory / 2**30:.0f} GiB of memory, inferred from what Metal allows")
    variant = chosen.id
    for option in options:
        label = shelf[option].memory.label_bytes
        if memory and label and 0.95 < memory / label < 1.05:
            variant = option
    return _Known((chip.id,), variant, tuple(notes))


def _allows(chip: Chip, working_set: float) -> bool:
    label = chip.memory.label_bytes
    return bool(label) and any(abs(working_set / (label * share) - 1.0) < 0.004 for share in METAL_SHARES if label)


def _neuron(device: PrintedDevice, host: PrintedHost) -> _Known:
    """AWS's chips by cores and memory, and the instance; where they contradict, both are named."""
    chips: tuple[str, ...] = ()
    for row in _table()["neuron"]:
        near = device.memory is not None and 0.9 < device.memory / (row["memory_GiB"] * 2**30) < 1.1
        if near and device.cores in row["cores"]:
            chips = tuple(row["chips"])
    told = _table()["instances"].get(host.instance)
    if told is None:
        return _Known(chips, chips[0] if len(chips) == 1 else "", why="" if chips else "cores and memory of no chip")
    if told["chip"] in chips or not chips:
        return _Known((told["chip"],), told["chip"])
    why = f"the instance type {host.instance} has {told['chip']}, the devices are like {' or '.join(chips)}"
    return _Known((told["chip"], *chips), why=why)


def _jetson(device: PrintedDevice) -> _Known:
    """A Jetson that says cores and memory only."""
    for row in _table()["jetson"]:
        if device.cores == row["cores"] and device.memory and 0.85 < device.memory / (row["memory_GiB"] * 2**30) < 1.03:
            return _Known(tuple(row["chips"]), row["chips"][0] if len(row["chips"]) == 1 else "")
    return _Known(why="a Jetson whose module tegrastats does not say")


# what differs


def _differences(chip: Chip, device: PrintedDevice) -> list[str]:
    """What this device says that the catalogue does not."""
    said = [*_other_size(chip, device), *_cut_up(chip, device)]
    if device.ecc is False and chip.memory.kind == "hbm":
        said.append("ECC is off")
    if device.ecc and chip.memory.kind == "ddr" and chip.vendor == "nvidia":
        said.append("ECC is on and takes a part of the memory")
    if device.width and device.width[0] < device.width[1]:
        said.append(f"PCIe x{device.width[0]} of x{device.width[1]}")
    if device.dead_links:
        said.append(f"{device.dead_links} NVLinks inactive")
    return [*said, *(note for note in device.notes if not note.startswith("a partition of"))]


def _other_size(chip: Chip, device: PrintedDevice) -> Iterator[str]:
    """Power and memory that are not those of the catalogue; what shares the host's has the host's."""
    if _shared(chip):
        return
    rated, usable = chip.tdp_w or device.rated_w, chip.memory.usable_bytes
    if device.cap_w and rated and abs(device.cap_w / rated - 1.0) > 0.03:
        yield f"power cap {device.cap_w:g} W, rated {rated:g} W"
    if device.memory and usable and not device.slices:
        dies = device.memory * chip.devices_per_package if chip.vendor == "amd" else device.memory
        if abs(dies / usable - 1.0) > 0.05:
            yield f"{device.memory / 1e9:.1f} GB of memory visible, {usable / 1e9:.1f} GB in the catalogue"


def _cut_up(chip: Chip, device: PrintedDevice) -> Iterator[str]:
    """That a device is one in slices, or a part of one."""
    if device.mig:
        cut = ", ".join(device.slices) if device.slices else "no instance exists, so no program can use it"
        yield f"MIG is on: {cut}"
    mode = device.partition or ""
    if mode[:3] in PARTITIONS and not mode.startswith(("SPX", "N/A")):
        yield f"partitioned as {mode}"
    if device.units and chip.vendor == "amd" and not _shared(chip):
        whole = chip.matrix_unit.units / chip.devices_per_package
        if device.units * 2 <= whole:
            yield f"{device.units} of {whole:g} compute units: a partition"


def _link_differences(chip: Chip, devices: Sequence[PrintedDevice], links: Links | None) -> list[str]:
    """What a topology says that the catalogue does not."""
    said = []
    domain = chip.scaleup.domain if chip.scaleup else 1
    nvlink = bool(chip.scaleup and "NVLink" in chip.scaleup.name)
    if links is not None and len(devices) > 1:
        for index in links.cut_off:
            said.append(f"GPU {index} has no NVLink to any other")
        if links.kinds and not links.fabric and nvlink:
            said.append("no NVLink between the GPUs: exchanges go over PCIe")
        if links.no_peers:
            said.append("no peer access between the GPUs: exchanges go through the host's memory")
    if domain > 8 and chip.vendor == "nvidia" and chip.kind == "gpu" and 1 < len(devices) < domain and domain > 32:
        said.append(f"{len(devices)} of the {domain} GPUs of an NVLink domain are in this host")
    return said


def _links_said(links: Links | None) -> str:
    if links is None:
        return ""
    peers = ", no peer access" if links.no_peers else ""
    return f"{links.count} GPUs: {', '.join(links.kinds) or 'no pair shown'}{peers}"


# the machine


def machines_of(texts: Mapping[str, str]) -> MachineReport:
    """What the prints of one machine, by the names of their commands or files, say in the catalogue's terms."""
    reading = read_prints(list(texts.values()))
    devices = _named_alike(reading.devices)
    host = reading.host
    known = {(d.vendor, d.index): _identify(d, host) for d in devices}
    known = _settled(devices, known)
    groups: dict[tuple[Any, ...], list[PrintedDevice]] = {}
    for device in devices:
        found = known[device.vendor, device.index]
        name = device.name if len(found.chips) != 1 else ""
        groups.setdefault((found.chips, found.variant, name.casefold(), found.why), []).append(device)
    machines = [_machine(known[group[0].vendor, group[0].index], group, reading) for group in groups.values()]
    if not machines:
        machines = list(_without_devices(reading))
    problems = _problems(texts.values(), found=bool(devices))
    if not machines and not problems and texts:
        said = "nothing was recognised in what was read"
        problems = ("no print names a device or a CPU",) if reading.recognised else (said,)
    machines = [_hosted(machine, host) for machine in machines]
    return MachineReport(
        tuple(machines),
        host,
        _links_said(reading.links),
        reading.software,
        problems,
        _have(machines),
        tuple(name for name, text in texts.items() if text.strip()),
        _host_notes(host),
    )


def _named_alike(devices: tuple[PrintedDevice, ...]) -> tuple[PrintedDevice, ...]:
    """Devices without a name take that of the others of their maker, where those have but one."""
    alike: dict[str, set[str]] = {}
    for device in devices:
        if device.name:
            alike.setdefault(device.vendor, set()).add(device.name)
    return tuple(
        replace(d, name=next(iter(alike[d.vendor])))
        if not d.name and len(alike.get(d.vendor, ())) == 1 and (not d.part or d.vendor == "amd")
        else d
        for d in devices
    )


def _settled(devices: Iterable[PrintedDevice], known: dict[tuple[str, int], _Known]) -> dict[tuple[str, int], _Known]:
    """What a fact of one device decides for all of the same name."""
    decided: dict[str, _Known] = {}
    for device in devices:
        found = known[device.vendor, device.index]
        if len(found.chips) == 1 and device.name:
            decided.setdefault(device.name, found)
    return {
        (d.vendor, d.index): decided[d.name]
        if len(known[d.vendor, d.index].chips) > 1 and d.name in decided
        else known[d.vendor, d.index]
        for d in devices
    }


def _of_instance(chip: Chip, instance: str, total: int) -> list[str]:
    """What a host's instance has more of its maker's own chips than are shown."""
    told = _table()["instances"].get(instance) if chip.vendor == "aws" else None
    if not told or told["count"] == total:
        return []
    return [f"{total} of the {told['count']} chips of {instance} are shown"]


def _machine(found: _Known, group: Sequence[PrintedDevice], reading: PrintReading) -> FoundMachine:
    """Devices that are the same thing, as one line."""
    name = next((d.name for d in group if d.name), "")
    memory = next((d.memory for d in group if d.memory), None)
    memory_gb = round(memory / 1e9, 3) if memory else None
    if len(found.chips) != 1:
        return _unknown(found, group, reading, name, memory_gb)
    chip = load_chips()[found.chips[0]]
    cards = [d for d in group if not any(n.startswith("a partition of") for n in d.notes)]
    differs = _by_device(chip, group)
    if len(cards) < len(group):
        differs.append(f"{len(group)} partitions are shown of {len(cards)}")
    total, whole, packed = _packages(chip, cards, len(cards), sum(not d.mig for d in cards))
    differs += [*packed, *found.notes, *_link_differences(chip, group, reading.links)]
    differs += _of_instance(chip, reading.host.instance, total)
    variant = found.variant or chip.id
    return FoundMachine(chip.id, total, memory_gb, tuple(differs), (), name or chip.name, variant, whole)


def _unknown(
    found: _Known, group: Sequence[PrintedDevice], reading: PrintReading, name: str, memory_gb: float | None
) -> FoundMachine:
    """Devices that no one chip of the catalogue is: what they can be, or are like, and why that is open."""
    candidates = found.chips
    if not candidates and not name and not found.notes:
        candidates = _guessed(group, reading)
    like = () if candidates else _alike(name, group[0].vendor)
    why = found.why or ("" if candidates else "not in the catalogue" if name else "no print names it")
    notes = tuple(dict.fromkeys(n for d in group for n in (*d.notes, *_cut_off(d, reading.links))))
    return FoundMachine(None, len(group), memory_gb, notes, candidates, name, None, 0, like, why)


def _by_device(chip: Chip, group: Sequence[PrintedDevice]) -> list[str]:
    """What devices say that the catalogue does not, and which of them where it is not all."""
    said: dict[str, list[int]] = {}
    for device in group:
        for text in _differences(chip, device):
            said.setdefault(text, []).append(device.index)
    return [
        text if len(where) == len(group) else f"GPU {', '.join(map(str, where[:8]))}: {text}"
        for text, where in said.items()
    ]


def _packages(chip: Chip, cards: Sequence[PrintedDevice], total: int, whole: int) -> tuple[int, int, list[str]]:
    """Devices as packages: two dies of an MI250 are one, and eight partitions of an MI300X in CPX."""
    if chip.vendor == "google" and len(cards) == 1:
        said = re.search(r"v[\w ]+-(\d{1,5})$", cards[0].name)
        kind = _table()["tpu"].get(re.sub(r"^TPU ?|-\d+$", "", cards[0].name))
        if said and kind:
            chips = max(int(said[1]) // kind["counts"], 1)
            return (
                chips,
                chips,
                [f"the slice {cards[0].name.removeprefix('TPU ')} has {chips} chips, on all its hosts"],
            )
    if chip.vendor != "amd" or not cards:
        return total, whole, []
    dies = chip.devices_per_package
    if dies > 1:
        shown = -(-total // dies)
        return shown, shown, [f"{total} of {shown * dies} dies are shown"] if total % dies else []
    split = min(PARTITIONS.get(d.partition[:3], 1) for d in cards)
    if split > 1 and total % split == 0:
        return total // split, total // split, []
    return total, whole, []


def _guessed(group: Sequence[PrintedDevice], reading: PrintReading) -> tuple[str, ...]:
    """Chips that devices without a name can be, by their links or because they tell no memory."""
    if reading.links is not None and reading.links.fabric and group[0].vendor == "nvidia":
        return tuple(_table()["nvlink"].get(reading.links.fabric, ()))
    host = reading.host.memory
    if group[0].vendor == "nvidia" and host and all(d.memory is None for d in group):
        chips = load_chips()
        near = [c for c in _table()["unified"]["chips"] if 0.85 < host / _sizes(chips[c])[0] < 1.03]
        return tuple(near)
    if group[0].vendor == "apple":
        return tuple(c for c in load_chips() if re.fullmatch(r"m\d(-(pro|max|ultra))?", c))
    if any(d.partition.startswith("CPX") for d in group):
        return tuple(_table()["names"]["gfx942"] + _table()["names"]["gfx950"])
    return ()


def _cut_off(device: PrintedDevice, links: Links | None) -> list[str]:
    if links is not None and device.vendor == "nvidia" and device.index in links.cut_off:
        return [f"GPU {device.index} has no NVLink to any other"]
    return []


def _alike(name: str, vendor: str = "", *, cpu: bool = False) -> tuple[str, ...]:
    """Up to three chips that a person may plan with in the place of an unknown one: of its maker, most words shared."""
    words = frozenset(_words(re.split(r"\s*\bMIG ", name.removesuffix("..."))[0]))
    shelf, maker = load_chips(), MAKER_OF.get(vendor, vendor)
    shared = {
        chip: len(words & own) / len(words | own)
        for chip, own in _spoken()[1].items()
        if words & own and shelf.entries[chip].vendor in (maker or shelf.entries[chip].vendor,)
    }
    ranked = sorted(shared, key=lambda chip: (-shared[chip], chip))[:24]
    return tuple(chip for chip in ranked if (shelf[chip].kind == "cpu") is cpu and shelf[chip].rentable)[:3]


def _without_devices(reading: PrintReading) -> Iterable[FoundMachine]:
    """Machines whose prints show no device: by instance, MIG profiles, Grace's memory; else the CPU itself."""
    host, table, shelf = reading.host, _table(), load_chips()
    told = table["instances"].get(host.instance)
    if told:
        differs = (f"identified by the instance type {host.instance} only",)
        yield FoundMachine(told["chip"], told["count"], None, differs, (), host.instance, told["chip"], told["count"])
        return
    if reading.mig_profiles:
        first = reading.mig_profiles[0]
        chips = tuple(table["mig"].get(first) or table["mig"].get(first.split()[0], ()))
        note = ("MIG is on; identified by the sizes of its slices only",)
        if len(chips) == 1:
            yield FoundMachine(chips[0], 1, None, note, (), "", chips[0], 0)
        else:
            yield FoundMachine(
                None, 1, None, note, chips, "a GPU that can be cut", why="" if chips else "unknown slices"
            )
        return
    if host.cpu.startswith("Neoverse-V2") and host.away:
        for size in host.away[:8]:
            found = [c for c in table["names"]["GH200"] if VISIBLE[0] < size / _sizes(shelf[c])[0] < VISIBLE[1]]
            if found:
                note = ("identified only by a NUMA node without CPUs",)
                yield FoundMachine(found[0], 1, round(size / 1e9, 3), note, (), "GH200", found[0], 1)
        return
    if host.cpu:
        yield _processor(host)


def _processor(host: PrintedHost) -> FoundMachine:
    """A machine of CPUs alone, counted in sockets."""
    said = re.sub(r"(?i)\s*@.*$|\bw/.*$|\bwith radeon.*$|\b\d+(th|nd|rd) gen\b|\b\d+-cores?\b", " ", host.cpu)
    said = re.sub(r"(?i)\bprocessor\b|\bcpu\b|\bplatinum\b|\bgold\b|\bsilver\b|\(r\)|\(tm\)", " ", said)
    said = " ".join(re.sub(r"(?i)ryzen (?=threadripper)|ryzen ai.*", " ", said).split())
    words = _words(said)
    shelf = load_chips()
    found = tuple(c for c in (_named().get(words) or _spoken()[0].get(words, ())) if shelf[c].kind == "cpu")
    count = host.sockets or 1
    memory = round(host.memory / 1e9, 3) if host.memory else None
    if len(found) != 1:
        alike = tuple(_table()["cpu"].get(host.design, ()))
        if not found and alike and not re.search(r"\d", said):  # a cloud's name, that hides which of its design it is
            return FoundMachine(None, count, memory, (), alike, host.cpu, why="its name hides which")
        near, why = ((), "") if found else (alike[:3] or _alike(said, cpu=True), "not in the catalogue")
        return FoundMachine(None, count, memory, (), found, host.cpu, None, 0, near, why)
    chip, differs = shelf[found[0]], []
    cores = (host.cores or 0) / count
    if cores and cores != chip.matrix_unit.units:
        differs.append(f"{cores:g} of {chip.matrix_unit.units} cores per socket")
    return FoundMachine(chip.id, count, memory, tuple(differs), (), host.cpu, chip.id, count)


def _hosted(machine: FoundMachine, host: PrintedHost) -> FoundMachine:
    """With what the host says of a machine whose chip has the host's memory, and what stands in between."""
    differs = machine.differs
    memory = machine.memory_gb
    if machine.chip is not None:
        chip = load_chips()[machine.chip]
        if _shared(chip) and memory is None and host.memory:
            memory = round(host.memory / 1e9, 3)
        if host.shared:
            differs += (f"in {host.shared}",)
        if _shared(chip) or chip.kind == "cpu":
            differs += _memory_notes(host)
    return replace(machine, differs=differs, memory_gb=memory)


def _memory_notes(host: PrintedHost) -> tuple[str, ...]:
    said = []
    now, rated = host.memory_mts, host.memory_rated_mts
    if now and rated and now != rated:
        said.append(f"memory runs at {now:g} MT/s, its modules are rated {rated:g}")
    if host.modules and host.slots and host.modules < host.slots:
        said.append(f"memory in {host.modules} of {host.slots} slots")
    return tuple(said)


def _host_notes(host: PrintedHost) -> tuple[str, ...]:
    """What the host says, in words."""
    said = [*_memory_notes(host)]
    if host.modules and host.module_bits and host.memory_mts:
        rate = host.modules * host.module_bits / 8 * host.memory_mts * 1e6
        said.append(f"memory at {rate / 1e9:.0f} GB/s if each module has its own channel")
    if host.away:
        said.append("a NUMA node with memory and without CPUs is a device's, and not counted as the host's")
    return tuple(said)


def _problems(texts: Iterable[str], *, found: bool) -> tuple[str, ...]:
    """Errors that tools printed, with the next step; those that only explain why there is no device, where none is."""
    said: dict[str, None] = {}
    for text in texts:
        flat = re.sub(r"[ \t]+", " ", text)
        for row in _table()["problems"]:
            if row["mark"] in flat and not (found and row.get("explains")):
                said[row["say"]] = None
    return tuple(said)


def _have(machines: Sequence[FoundMachine]) -> str | None:
    """The text for `--have`; None where nothing is known, or something is not clear. Beside cards of their own memory
    integrated graphics are left out."""
    shelf = load_chips()
    cards = [m for m in machines if m.chip and not _shared(shelf[m.chip]) and shelf[m.chip].kind != "cpu"]
    if any(m.ambiguous and not (cards and all(_shared(shelf[c]) for c in m.ambiguous)) for m in machines):
        return None
    return ",".join(f"{m.whole}x{m.variant}" for m in cards or machines if m.whole) or None


def _unclear(machine: FoundMachine) -> tuple[str, tuple[str, ...]]:
    """Why a part of a machine cannot be planned with, and the chips that it can be or that are near."""
    said = f"{machine.count} x {shorten(machine.name, 60) or 'a device without a name'}"
    if machine.ambiguous:
        kinds = ", ".join(machine.ambiguous[:6])
        return f"this machine has {said}, which can be {kinds}", machine.ambiguous
    if machine.chip:
        return f"{said}: split by MIG, and only whole GPUs can be planned", (machine.chip,)
    like = f"; the nearest are {', '.join(machine.nearest)}" if machine.nearest else ""
    return f"the catalogue has no chip for {said}{like}", machine.nearest


def owned(report: MachineReport) -> str:
    """What `--have auto` stands for. Raises `UsageError`: with what was found, the nearest chips and what to write."""
    if report.have:
        return report.have
    first = next((m for m in report.machines if m.ambiguous), None)
    first = first or next((m for m in report.machines if m.chip), None) or next(iter(report.machines), None)
    if first is None:
        why = f": {report.problems[0]}" if report.problems else ""
        raise UsageError(f"no device was found on this machine{why}", "name the chips: --have 8xh100", field="have")
    what, near = _unclear(first)
    instead = tuple(f"{first.count}x{chip}" for chip in near)
    hint = f"name the chip, e.g. --have {instead[0]}" if instead else "name the nearest chip, e.g. --have 8xh100"
    raise UsageError(what, hint, field="have", instead=instead)
