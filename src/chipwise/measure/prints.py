"""What a machine's own tools print, read as facts: text in, devices, host and links out.

A print is recognised by its text, never by its name: every reader looks at every text and takes what it knows, so that
one pasted file may hold several prints, cut anywhere. Nothing here knows a chip; what a name means is `machine`'s.

Most prints are lines of `key: value` under headings (nvidia-smi -q and its XML, amd-smi, rocminfo, JSON of any tool):
`_Form` says which line begins a device and which keys hold which fact. Forms and patterns are rows of
`machine_prints.toml` where a print is a pattern and fields; tables and lists that are more have readers of their own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import field, fields, replace
from typing import Any

from chipwise.catalog.parsed import parse
from chipwise.catalog.schema import record
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.values import dataclass

TABLE = "catalog/data/machine_prints.toml"
MAX_DEVICES = 1024
"""More devices than one machine or slice prints; what stands beyond is not read."""
LONGEST = 40_000
"""Characters of a line that are read: those of jax.devices() of a slice of 512 chips."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedDevice:
    """One device as it was printed; None and "" where the print does not say.

    `memory` is in bytes, as reported (not as sold). `units` are compute units as printed (SM, CU, GPU cores), `cores`
    those of an accelerator whose tool counts cores. `cap_w` is the power limit in force, `rated_w` the default one.
    `part` is the PCI vendor and device ("10de:2330"), `slices` are MIG instances, `partition` AMD's compute and memory
    modes, `width` PCIe lanes in use and possible, `working_set` what Metal lets one process use of the memory.
    """

    vendor: str
    index: int
    name: str = ""
    part: str = ""
    memory: float | None = None
    units: int | None = None
    cores: int | None = None
    cap_w: float | None = None
    rated_w: float | None = None
    ecc: bool | None = None
    mig: bool | None = None
    slices: tuple[str, ...] = ()
    partition: str = ""
    width: tuple[int, int] | None = None
    working_set: float | None = None
    dead_links: int = 0
    notes: tuple[str, ...] = ()

    def filled(self, other: PrintedDevice) -> PrintedDevice:
        """This device with what only the other print says; a name that a table cut short gives way to a whole one."""
        changed: dict[str, Any] = {}
        for f in fields(self):
            mine, theirs = getattr(self, f.name), getattr(other, f.name)
            if mine in (None, "", (), 0) and theirs not in (None, "", (), 0):
                changed[f.name] = theirs
        if self.name.endswith("...") and other.name and not other.name.endswith("..."):
            changed["name"] = other.name
        if self.slices and self.slices[0].endswith("MiB") and other.slices:
            changed["slices"] = other.slices  # profiles say more than sizes
        return replace(self, **changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedHost:
    """The computer around the devices. `memory` in bytes; `memory_mts` as configured and `memory_rated_mts` as the
    modules are sold; `module_bits` their data width; `away` are NUMA nodes with memory and no CPU, in bytes;
    `instance` is a cloud's kind of machine, `shared` what stands between the system and the hardware; `design` are
    maker, family and model of an x86 processor, as in AuthenticAMD-26-2, which a cloud's name for it does not hide."""

    cpu: str = ""
    design: str = ""
    sockets: int | None = None
    cores: int | None = None
    threads: int | None = None
    numa_nodes: int | None = None
    simd: tuple[str, ...] = ()
    memory: float | None = None
    memory_mts: float | None = None
    memory_rated_mts: float | None = None
    memory_kind: str = ""
    modules: int | None = None
    slots: int | None = None
    module_bits: int | None = None
    away: tuple[float, ...] = ()
    instance: str = ""
    shared: str = ""

    def filled(self, other: PrintedHost) -> PrintedHost:
        """This host with what only the other print says."""
        changed = {
            f.name: getattr(other, f.name)
            for f in fields(self)
            if getattr(self, f.name) in (None, "", ()) and getattr(other, f.name) not in (None, "", ())
        }
        return replace(self, **changed)


@dataclass(frozen=True, slots=True)
class Links:
    """How `count` GPUs are joined, as a topology matrix says: the `kinds` of links in it, the commonest NVLink
    (`fabric`, as in NV18; "" where there is none), and the GPUs that have no NVLink while others have (`cut_off`)."""

    count: int
    kinds: tuple[str, ...]
    fabric: str = ""
    cut_off: tuple[int, ...] = ()
    no_peers: bool = False


@dataclass(frozen=True, slots=True)
class PrintReading:
    """All that prints of one machine say. `software` are versions by name, `mig_profiles` what a GPU can be split into
    ("1g.12gb 10.75": profile and GiB); `recognised` is false where no reader knew anything."""

    devices: tuple[PrintedDevice, ...] = ()
    host: PrintedHost = field(default_factory=PrintedHost)
    links: Links | None = None
    software: Mapping[str, str] = field(default_factory=dict)
    mig_profiles: tuple[str, ...] = ()
    recognised: bool = False


def read_prints(texts: Sequence[str]) -> PrintReading:
    """What the prints of one machine say together, the fuller print of a device before the shorter one."""
    host, links = PrintedHost(), None
    profiles: tuple[str, ...] = ()
    software: dict[str, str] = {}
    cleaned = [_clean(text) for text in texts]
    for text in cleaned:
        host = host.filled(_host(text))
        links = links or _links(text)
        profiles = profiles or _mig_profiles(text)
        software = _software(text) | software
    devices = _without_shadows(_filled(cleaned))
    told = max(links.count if links else 0, _attached(cleaned))
    if told > len(devices) and {d.vendor for d in devices} <= {"nvidia"}:
        devices += _not_shown(devices, told)
    said = bool(devices or links or profiles or software) or host != PrintedHost()
    return PrintReading(devices, host, links, software, profiles, said)


def _filled(texts: Sequence[str]) -> tuple[PrintedDevice, ...]:
    """The devices of all prints, each with what any of them says."""
    found: dict[tuple[str, int], PrintedDevice] = {}
    for reader in READERS:
        for text in texts:
            for device in _distinct(reader(text)):
                key = (device.vendor, device.index)
                found[key] = found[key].filled(device) if key in found else device
    return tuple(found[key] for key in sorted(found))


def _attached(texts: Sequence[str]) -> int:
    """How many GPUs a print says that there are, 0 where none does."""
    said = [re.search(r"(?:Attached GPUs\s*:\s*|<attached_gpus>)(\d{1,4})", text) for text in texts]
    return max((int(found[1]) for found in said if found), default=0)


def _not_shown(devices: tuple[PrintedDevice, ...], told: int) -> tuple[PrintedDevice, ...]:
    """GPUs that a print counts and does not show; of the name of the others, where those have one."""
    known, alike = {d.index for d in devices}, {d.name for d in devices}
    name = alike.pop() if len(alike) == 1 else ""
    more = [i for i in range(min(told, MAX_DEVICES)) if i not in known]
    return tuple(PrintedDevice(vendor="nvidia", index=i, name=name) for i in more)


def _clean(text: str) -> str:
    """Without the colours of terminals, carriage returns, blank lines and long gaps: patterns meet bounded lines."""
    text = re.sub(r"\x1b\[[\d;]{0,20}[A-Za-z]|\x1b?\[(?:\d{1,2}(?:;\d{1,2}){0,4})?m|[\r\x00\ufeff]", "", text)
    lines = (re.sub(r"\s{120,}", " " * 120, line[:LONGEST]).rstrip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def _distinct(devices: Iterator[PrintedDevice]) -> Iterator[PrintedDevice]:
    """At most one device of an index, what is printed first."""
    seen: set[tuple[str, int]] = set()
    for device in devices:
        if (device.vendor, device.index) not in seen and len(seen) < MAX_DEVICES:
            seen.add((device.vendor, device.index))
            yield device


def _without_shadows(devices: tuple[PrintedDevice, ...]) -> tuple[PrintedDevice, ...]:
    """Without what says nothing beside what does: displays found by number alone, browsers' and Vulkan's second names
    of a device that its own tool named."""
    spoken = [d for d in devices if not d.vendor.endswith("?")]
    kept = []
    for device in devices:
        if device.vendor.endswith("?"):
            vendor = device.vendor.removesuffix("?")
            if any(d.vendor == vendor for d in spoken) or (spoken and not device.name):
                continue
            device = replace(device, vendor=vendor)
        kept.append(device)
    return tuple(kept)


# quantities

UNITS = {"": 1.0} | {
    letter + end: 2.0**power
    for letter, power in (("", 0), ("k", 10), ("m", 20), ("g", 30), ("t", 40))
    for end in ("", "b", "i", "ib")
}
"""Bytes by unit: tools write MB and GB for powers of two, with the exceptions that their readers know."""

NUMBER = re.compile(r"(\d{1,20}(?:\.\d{1,9})?)\s*([A-Za-z]{0,3})")


def _bytes(text: str, unit: str = "") -> float | None:
    """A size as printed, in bytes: `81559 MiB`, `32 GB`, a bare number in `unit`; None for N/A and other words."""
    found = NUMBER.match(text.strip().strip('"').lstrip("[").strip())
    if found is None:
        return None
    scale = UNITS.get((found[2] or unit).lower())
    value = float(found[1]) * scale if scale else 0.0
    return value if 0.0 < value < 2.0**60 else None


def _number(text: str) -> float | None:
    """The number that a text begins with; None where it begins with none, or is zero."""
    found = NUMBER.match(text.strip().strip('"'))
    return (float(found[1]) or None) if found and len(found[1]) < 19 else None


def _count(text: str) -> int | None:
    value = _number(text)
    return int(value) if value is not None and value < 1e6 else None


def _switch(text: str) -> bool | None:
    return {"enabled": True, "on": True, "disabled": False, "off": False}.get(text.strip().lower())


def _vendor_of(name: str, otherwise: str = "nvidia") -> str:
    """Who makes a device, by the words of its name."""
    low = name.lower()
    known: Mapping[str, str] = _table()["vendor"]
    return next((vendor for vendor, words in known.items() if re.search(words, low)), otherwise)


# lines of `key: value` under headings


@dataclass(frozen=True, slots=True)
class _Pair:
    """One line: its key behind those of the headings above it, and its value."""

    path: str
    value: str
    line: str


KEYED = re.compile(r'^[\s\-*•"]*([A-Za-z_][^:="<>{}\n]{0,70}?)["*]*\s*[:=]\s*\**\s*(.*)$')
TAGGED = re.compile(r"^\s*<(\w{1,60})[^>]{0,200}>(?:([^<]{0,300})</)?")


def _pairs(text: str) -> list[_Pair]:
    """All lines, each under those above it that stand further to the left."""
    if '":' in text or '" :' in text:
        text = _spread(text)
    stack: list[tuple[int, str]] = []
    found = []
    for line in text.split("\n"):
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        while stack and stack[-1][0] >= indent:
            stack.pop()
        said = TAGGED.match(line) or KEYED.match(line)
        key, value = (said[1], said[2] or "") if said else (line.strip()[:70], "")
        key = re.sub(r"[\s_]+", " ", key).strip().lower()
        path = "/".join((*(k for _, k in stack[-3:]), key))
        value = value.strip().rstrip(",").strip().strip("\"'")
        found.append(_Pair(path, "" if value in ("{", "[", "null") else value, line))
        stack.append((indent, key))
        del stack[:-12]
    return found


def _spread(text: str) -> str:
    """JSON with every member on a line of its own, indented by its depth, though it be cut off anywhere."""
    out: list[str] = []
    depth, quoted, skip = 0, False, False
    for char in text:
        if skip or (quoted and char == "\\"):
            skip = not skip
            out.append(char)
            continue
        if char == '"':
            quoted = not quoted
        elif char == "\n":
            quoted = False
            continue
        elif not quoted and char in "{[":
            depth = min(depth + 1, 60)
            out.append(char + "\n" + " " * depth)
            continue
        elif not quoted and char in "}]":
            depth = max(depth - 1, 0)
            out.append("\n" + " " * depth + char)
            continue
        elif not quoted and char == ",":
            out.append(",\n" + " " * depth)
            continue
        elif not quoted and char in " \t" and out and out[-1].endswith(" "):
            continue
        out.append(char)
    return "".join(out)


Take = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class _Form:
    """A print of lines: the `mark` by which it is known, the line that begins a device (`start`, whose group is its
    index where it prints one), and for each fact the keys that hold it with what makes a value of the text.

    `vendor` "": told by the name. `lead`: lines before the first start are a device too, where a fact is in them.
    """

    mark: str
    start: str
    facts: tuple[tuple[str, str, str], ...]
    vendor: str = ""
    lead: bool = False

    def read(self, text: str) -> Iterator[PrintedDevice]:
        """The devices of a text."""
        if not re.search(self.mark, text, re.MULTILINE):
            return
        start = re.compile(self.start)
        keys = [(name, re.compile(key), TAKES[take]) for name, key, take in self.facts]
        facts: dict[str, Any] | None = {} if self.lead else None
        slices: list[str] = []
        index = given_out = 0
        for pair in _pairs(text):
            begins = start.search(pair.line)
            if begins:
                for device in self._device(facts, slices, index):
                    given_out += 1
                    yield device
                said = next((g for g in begins.groups() if g), "")
                index = int(said) if re.fullmatch(r"[0-9]{1,4}", said) else given_out
                facts, slices = {}, []
            if facts is None or not pair.value:
                continue
            if re.search(r"mig[ _]device", pair.path):
                slice_ = re.fullmatch(r"(?:MIG )?((?:\dc\.)?\dg\.\d{1,15}gb\S*)", pair.value)
                if slice_ or re.search(r"fb memory usage/total$", pair.path):
                    slices.append(slice_[1] if slice_ else pair.value)
                continue
            for name, key, take in keys:
                if name not in facts and key.search(pair.path):
                    value = take(pair.value)
                    if value not in (None, ""):
                        facts[name] = value
        yield from self._device(facts, slices, index)

    def _device(self, facts: Mapping[str, Any] | None, slices: list[str], index: int) -> Iterator[PrintedDevice]:
        if not facts:
            return
        given = dict(facts)
        if given.pop("kind", "GPU").upper() != "GPU":
            return
        now, most = given.pop("width_now", None), given.pop("width_max", None)
        if now and most:
            given["width"] = (now, most)
        spare = given.pop("spare_name", "")
        given["name"] = given.get("name") or spare
        vendor = given.pop("vendor", None) or self.vendor or _vendor_of(given["name"])
        modes = [given.pop(k) for k in ("compute_mode", "memory_mode") if k in given]
        if modes:
            given["partition"] = "/".join(modes)
        yield PrintedDevice(vendor=vendor, index=index, slices=tuple(slices[:16]), **given)


def _text(value: str) -> str | None:
    """A printed word; None for the words that say that there is none."""
    said = value.strip().strip("'\"")
    return None if not said or re.match(r"(?i)^(\[?n/a|none|null|unknown|not |<redacted|\[)", said) else said[:120]


def _nvidia_part(value: str) -> str | None:
    """`0x233010DE`: device and vendor in one number."""
    found = re.fullmatch(r"0x([0-9A-Fa-f]{4})10DE", value.strip(), re.IGNORECASE)
    return f"10de:{found[1].lower()}" if found else None


def _amd_part(value: str) -> str | None:
    found = re.fullmatch(r"0x([0-9A-Fa-f]{4})", value.strip())
    return f"1002:{found[1].lower()}" if found else None


def _chip_number(value: str) -> str | None:
    """`29772(0x744c)` of rocminfo."""
    found = re.search(r"\(0x([0-9A-Fa-f]{4})\)", value)
    return f"1002:{found[1].lower()}" if found else None


def _lanes(value: str) -> int | None:
    found = re.match(r"(\d{1,2})x?$", value.strip())
    return int(found[1]) if found else None


def _mib(value: str) -> float | None:
    return _bytes(value, "mib")


TAKES: Mapping[str, Take] = {
    "text": _text,
    "said": lambda v: v.strip()[:120],
    "number": _number,
    "count": _count,
    "bytes": _bytes,
    "mib": _mib,
    "kib": lambda v: _bytes(v, "kb"),
    "gib": lambda v: _bytes(v, "gb"),
    "kib_pool": lambda v: _bytes(v.partition("(")[0], "kb"),
    "switch": _switch,
    "true": lambda v: v == "true",
    "lanes": _lanes,
    "nvidia_part": _nvidia_part,
    "amd_part": _amd_part,
    "numbered_part": lambda v: _amd_part("0x" + v.rpartition(":0x1002:0x")[2][:4].lower()),
    "chip_number": _chip_number,
    "before_number": lambda v: _text(v.partition(" (0x")[0]),
    "gfx": lambda v: v if v.startswith("gfx") else None,
    "processor": lambda v: "CPU" if v.strip() == "CPU" else None,
    "vendor": lambda v: _vendor_of(v, v.lower()[:20]),
}
"""What makes a fact of a text, by its name in the table of forms; None where the text holds none."""


@per_snapshot
def _table() -> Mapping[str, Any]:
    """The table of forms."""
    return parse(shipped_text(TABLE))


@per_snapshot
def _form_rows() -> tuple[_Form, ...]:
    """The forms of lines. Raises `UsageError` for a table that is wrong."""
    return tuple(
        record(_Form, {"facts": _table()["like"].get(row.pop("like", ""), []), **row}, f"{TABLE}: form[{i}]")
        for i, row in enumerate(deepcopy(_table()["form"]))
    )


def _forms(text: str) -> Iterator[PrintedDevice]:
    for form in _form_rows():
        yield from form.read(text)


def _rows(text: str) -> Iterator[PrintedDevice]:
    """Tables whose every row is one pattern; the vendor is told by the name where the form does not."""
    for form in _table()["row"]:
        for i, row in enumerate(re.finditer(form["pattern"], text) if re.search(form["mark"], text) else ()):
            said = {name: value for name, value in row.groupdict().items() if value is not None}
            index = int(said.pop("index", i))
            facts = {name: TAKES[form["takes"].get(name, "said")](value) for name, value in said.items()}
            vendor = form.get("vendor") or _vendor_of(facts.get("name", ""))
            yield PrintedDevice(vendor=vendor, index=index, **facts)


# tables


BUS = re.compile(r"(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]+|N/A")
"""Where a device is on PCI; N/A where it is on none."""


def _named_row(line: str) -> tuple[int, str, str] | None:
    """Index, name and last cell of a table's row that names a device; None for other rows."""
    cells = line.split("|")
    first = cells[1].split() if line.startswith("|") and len(cells) >= 5 else []
    if len(first) < 2 or not re.fullmatch(r"\d{1,4}", first[0]) or not BUS.match(cells[2].strip()):
        return None
    words = first[1:-1] if first[-1] in ("On", "Off", "N/A") else first[1:]
    name = " ".join(words)
    return (int(first[0]), name, cells[-2]) if re.search(r"[A-Za-z]", name) and words[0] != "N/A" else None


def _smi_tables(text: str) -> Iterator[PrintedDevice]:
    """The tables of nvidia-smi (any driver since 2020), hl-smi and xpu-smi: a row of the name, one of power and memory,
    one of MIG."""
    vendor = "intel" if "XPU-SMI" in text else "habana" if "HL-SMI" in text else "nvidia"
    lines = text.split("\n")
    for i, line in enumerate(lines):
        row = _named_row(line)
        if row is None:
            continue
        below: list[str] = []
        for after in lines[i + 1 : i + 5]:
            if not after.startswith("|") or re.match(r"^\|[=\-+]", after):
                break
            below.append(after)
        rest = "\n".join(below)
        power = re.search(r"/\s*(\d{1,15}(?:\.\d{1,15})?)\s?W", rest)
        memory = re.search(r"\d{1,15}\s?MiB\s*/\s*(\d{1,15})\s?MiB", rest)
        ecc = row[2].strip() if vendor == "nvidia" else "N/A"
        yield PrintedDevice(
            vendor=vendor,
            index=row[0],
            name=row[1],
            cap_w=_number(power[1]) if power else None,
            memory=_bytes(memory[1], "mib") if memory else None,
            ecc=True if ecc.isdigit() else False if ecc == "Off" else None,
            mig={"Enabled": True, "Disabled": False}.get(below[-1].strip("| ").split("|")[-1].strip())
            if below
            else None,
        )


def _comma_tables(text: str) -> Iterator[PrintedDevice]:
    """`nvidia-smi --query-gpu=... --format=csv` with its header, or the usual fields without; rocm-smi --csv."""
    head: list[str] = []
    place = 0
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) < 2:
            head = []
            continue
        keys = [cell.partition("[")[0].strip().lower() for cell in cells]
        if (
            set(keys) & {"memory.total", "pci.device_id", "power.limit", "uuid", "driver_version"}
            or keys[0] == "device"
        ):
            head, place = keys, 0
            continue
        if head and len(cells) == len(head):
            device = _of_columns(dict(zip(head, cells, strict=True)), place)
            place += device.vendor == "nvidia"
            yield device
            continue
        bare = re.match(
            r"^(\d{1,3}), ((?:NVIDIA|GeForce|Tesla|Quadro|RTX|GTX) ?[^,\n]{1,60}), ([^,\n]{1,20})(?:,|$)", line
        )
        if bare:
            yield PrintedDevice(vendor="nvidia", index=int(bare[1]), name=bare[2].strip(), memory=_mib(bare[3]))
            continue
        named = re.match(r"^((?:NVIDIA|GeForce|Tesla|Quadro) ?[^,\n]{1,60}), (\d{1,15}(?: MiB)?|\[N/A\])(?:,|$)", line)
        if named:
            yield PrintedDevice(vendor="nvidia", index=place, name=named[1].strip(), memory=_mib(named[2]))
            place += 1
        head = []


def _of_columns(row: Mapping[str, str], place: int) -> PrintedDevice:
    """The device of a row by its columns: of rocm-smi, which numbers its cards, or of nvidia-smi."""
    first = re.fullmatch(r"card(\d{1,15})", row.get("device", ""))
    if first:
        return PrintedDevice(
            vendor="amd",
            index=int(first[1]),
            name=_text(row.get("card series", "")) or "",
            part=_amd_part(row.get("card model", "")) or "",
            memory=_bytes(row.get("vram total memory (b)", "")),
        )
    return PrintedDevice(
        vendor="nvidia",
        index=int(row["index"]) if re.fullmatch(r"\d{1,4}", row.get("index", "")) else place,
        name=_text(row.get("name", "") or row.get("gpu_name", "")) or "",
        part=_nvidia_part(row.get("pci.device_id", "")) or "",
        memory=_mib(row.get("memory.total", "")),
        cap_w=_number(row.get("power.limit", "")),
        rated_w=_number(row.get("power.default_limit", "")),
        ecc=_switch(row.get("ecc.mode.current", "")),
        mig=_switch(row.get("mig.mode.current", "")),
    )


def _rocm_lines(text: str) -> Iterator[PrintedDevice]:
    """`GPU[0] : Card series: ...` of rocm-smi, and its short table."""
    facts: dict[int, dict[str, str]] = {}
    for said in re.finditer(r"^GPU\[(\d{1,4})\]\s*:\s*([^:\n]{1,60}?)\s*:\s*([^\n]*)$", text, re.MULTILINE):
        facts.setdefault(int(said[1]), {}).setdefault(said[2].lower(), said[3].strip())
    parent = ""
    for index, known in facts.items():
        device_id = known.get("device id", known.get("card model", ""))
        part = _amd_part(device_id) or ""
        # partitions of a card are listed behind it, without numbers of their own
        is_partition = device_id == "N/A" and bool(parent)
        parent = parent if is_partition else part
        yield PrintedDevice(
            vendor="amd",
            index=index,
            name=_text(known.get("card series", "")) or _text(known.get("device name", "")) or "",
            part=part if not part.startswith("1002:0") else "",
            memory=_bytes(known.get("vram total memory (b)", "")),
            cap_w=_number(known.get("max graphics package power (w)", "")),
            notes=("a partition of the card before it",) if is_partition else (),
        )
    yield from _rocm_rows(text)


def _rocm_rows(text: str) -> Iterator[PrintedDevice]:
    """The rows of rocm-smi's short table."""
    rows = list(
        re.finditer(
            r"^(\d{1,4})\s+(?:\d{1,15}\s+)?\[?(0x[0-9a-f]{4})[ ,:]([^\n]*)(?:\n {2,}([^\n]*))?", text, re.MULTILINE
        )
    )
    for row in rows if "ROCm System Management" in text or "PwrCap" in text else ():
        cap = re.search(r"\s(\d{1,5}(?:\.\d{1,3})?)W\s+\d{1,3}%\s+\d{1,3}%", row[3])
        modes = re.search(r"\b(NPS\d)\s*,\s*(SPX|DPX|TPX|QPX|CPX)", row[3])
        yield PrintedDevice(
            vendor="amd",
            index=int(row[1]),
            name=_text(row[4] or "") or "",
            part=_amd_part(row[2]) or "",
            cap_w=_number(cap[1]) if cap else None,
            partition=f"{modes[2]}/{modes[1]}" if modes else "",
        )


def _amd_rows(text: str) -> Iterator[PrintedDevice]:
    """Tables of amd-smi that name no device: how many there are, and their memory mode."""
    table = re.search(r"^(?:GPU_ID|GPU)\s+(?:MEMORY|POWER)\b.*$", text, re.MULTILINE)
    if table:
        for row in re.finditer(
            r"^\s{0,3}(\d{1,4})\s+(NPS\d|\d{1,15} W)\s+(\S{1,80})", text[table.end() :], re.MULTILINE
        ):
            mode = row[2] if row[2].startswith("NPS") else ""
            compute = row[3] if re.fullmatch(r"[SDTQC]PX", row[3]) else ""
            yield PrintedDevice(vendor="amd", index=int(row[1]), partition="/".join(m for m in (compute, mode) if m))
    if re.search(r"/amdgpu_xcp\.\d{1,15}|^amdgpu_xcp", text, re.MULTILINE):
        yield PrintedDevice(vendor="amd", index=0, notes=("partitions of AMD GPUs (amdgpu_xcp)",), partition="CPX")
    vram = re.fullmatch(r'\s*\{\s*"type":\s*"HBM".*?"value":\s*(\d{1,15}).*', text, re.DOTALL)
    if vram:
        yield PrintedDevice(vendor="amd", index=0, memory=_mib(vram[1]))


# lists of names


def _listed(text: str) -> Iterator[PrintedDevice]:
    """`nvidia-smi -L` with MIG instances, the GPU lines of collect_env, check_env and reports, nvlink -s."""
    pattern = re.compile(
        r"^\W{0,6}GPU (\d{1,4}(?:,\d{1,4})*)\s?:\W{0,12}\s{1,40}(?:GPU \d{1,15}: )?([^\n]*)$", re.MULTILINE
    )
    text = re.sub(r"GPU models and configuration\s*:\s*(?=GPU \d)", "", text)
    marks = list(pattern.finditer(text))
    for i, found in enumerate(marks):
        rest = found[2]
        name = re.split(r"\s\(|\s\||\bUUID", rest)[0].strip(" *")
        if not re.match(r"[A-Za-z]", name) or len(name) > 80 or re.match(r"(?i)(n/a|not |unknown|pci|node|bdf)", name):
            continue
        inner = text[found.end() : marks[i + 1].start() if i + 1 < len(marks) else found.end() + 4000]
        size = re.search(r"[(|]\s*(\d{1,15}(?:\.\d{1,15})?) ?(MiB|GiB|GB)\b", rest)
        slices = re.findall(r"^\s+MIG (\S{4,20})\s+Device\s+\d{1,15}", inner, re.MULTILINE)
        power = re.match(r"\s*\W+\*\*Power:\*\* limit=([\d.]{1,20}|\[N/A\])[^\n]*?\(default=([\d.]{1,20})", inner)
        for index in found[1].split(",")[:MAX_DEVICES]:
            yield PrintedDevice(
                vendor=_vendor_of(name),
                index=int(index),
                name=name,
                memory=_bytes(size[1], size[2]) if size else None,
                slices=tuple(slices[:16]),
                mig=True if slices else None,
                cap_w=_number(power[1]) if power else None,
                rated_w=_number(power[2]) if power else None,
                dead_links=len(re.findall(r"Link \d{1,15}: <inactive>", inner)),
            )
    yield from _together(text)


def _together(text: str) -> Iterator[PrintedDevice]:
    """Devices that one line names: of collect_env, and of PyTorch where it finds different ones."""
    single = re.search(r"^GPU models and configuration\s*:[ \t]*(\S[^\n]*)$", text, re.MULTILINE)
    if single and not re.match(r"GPU \d|No CUDA|Could not|N/A", single[1]):
        name, _, inside = single[1].partition("(")
        arch = re.match(r"gfx\w{1,60}", inside)
        said = name.strip() or (arch[0] if arch else "")
        if said:
            notes = ("collect_env names one device here, however many there are",)
            yield PrintedDevice(vendor=_vendor_of(said, "amd"), index=0, name=said, notes=notes)
    several = re.search(r"Detected different devices in the system: ([^\n]{1,2000}?)\. Please", text)
    if several:
        for index, name in enumerate(several[1].split(",")):
            yield PrintedDevice(vendor=_vendor_of(name), index=index, name=name.strip()[:80])


def _jax(text: str) -> Iterator[PrintedDevice]:
    """jax.devices(): TPU chips by their coordinates, since some have two devices; kinds where they are printed."""
    kinds = re.findall(r"device_kind[=:]\s*['\"]?(TPU v\w{1,60}(?: lite)?|[^'\"\n,)]{2,60})", text)
    places = dict.fromkeys(re.findall(r"TpuDevice\([^()]{0,80}coords=\(([\d, ]{3,20})\)", text))
    flat = all(place.replace(" ", "").endswith(",0") for place in places)
    for index, _ in enumerate(places):
        yield PrintedDevice(vendor="google", index=index, name=kinds[0] if kinds else "TPU 2D" if flat else "TPU 3D")
    if not places:
        for index, kind in enumerate(kinds):
            yield PrintedDevice(vendor=_vendor_of(kind), index=index, name=kind.strip())


def _tpu(text: str) -> Iterator[PrintedDevice]:
    """tpu-info, the metadata of TPU machines, vLLM's usage record.

    The name keeps its number (`v4-32`): what that counts depends on the chip.
    """
    size = re.search(r"HBM[^\n]*\n[^\n]*\n[^\n]*/ (\d{1,15}\.\d{1,15}) GiB", text)
    chips = re.findall(r"^[|│]\s*/dev/\S{1,80}\s*[|│]\s*(TPU v\w{1,60})", text, re.MULTILINE)
    for index, name in enumerate(chips):
        yield PrintedDevice(vendor="google", index=index, name=name, memory=_bytes(size[1], "gib") if size else None)
    usage = re.search(
        r'"gpu_count":\s*(\d{1,4}),\s*"gpu_type":\s*"([^"\n]{1,80})",\s*"gpu_memory_per_device":\s*(\d{1,15})', text
    )
    if usage:
        name = f"TPU {usage[2]}" if re.match(r"v\d", usage[2]) else usage[2]
        for index in range(min(int(usage[1]), MAX_DEVICES)):
            yield PrintedDevice(vendor=_vendor_of(name), index=index, name=name, memory=_bytes(usage[3]))
    kind = re.search(
        r"(?i)(?<![a-z])accelerator[ _]type['\"]?\s*[:=]\s*['\"]?(v\d\w*(?:-\d{1,5})?|tpu7x(?:-\d{1,5})?)\b", text
    )
    if kind and not chips:
        yield PrintedDevice(vendor="google", index=0, name=f"TPU {kind[1]}")


def _metal(text: str) -> Iterator[PrintedDevice]:
    """llama.cpp's ggml_metal; Metal names every GPU of a Mac, of whatever make."""
    if "ggml_metal" not in text:
        return
    names = re.findall(r"found device: ([^\n]{1,80})", text) or re.findall(r"GPU name: +([^\n]{1,80})", text)
    size = re.search(r"recommendedMaxWorkingSetSize +=\s+(\d{1,15}(?:\.\d{1,15})?) (MiB|MB)", text)
    for index, name in enumerate(names):
        inner = re.match(r"MTL\d{1,15} \((.+)\)$", name.strip())
        scale = 2.0**20 if size and size[2] == "MiB" else 1e6
        said = inner[1] if inner else name.strip()
        yield PrintedDevice(
            vendor=_vendor_of(said, "apple"),
            index=index,
            name=said,
            working_set=float(size[1]) * scale if size and len(names) == 1 else None,
        )


def _taken(found: re.Match[str] | None, take: Callable[[str], Any] = str) -> Any:
    """What is made of the first group of what was found; None where nothing was."""
    return take(found[1]) if found else None


def _mac(text: str) -> Iterator[PrintedDevice]:
    """system_profiler's overview of the hardware and of displays, screenfetch, sysctl."""
    model = re.search(r"Model Identifier: (Mac\d{1,2},\d{1,2})", text)
    chip = re.search(r"^\s*Chip: (Apple [^\n]{1,30})$", text, re.MULTILINE) or re.search(
        r"^(?:CPU|machdep\.cpu\.brand_string): (Apple M[^\n]{1,30})$", text, re.MULTILINE
    )
    graphics = list(re.finditer(r"Chipset Model: ([^\n]{1,60})", text))
    if not (model or chip or graphics):
        return
    memory = re.search(r"^\s*Memory: (\d{1,15} GB)", text, re.MULTILINE) or re.search(
        r"RAM: \d{1,15}MiB / (\d{1,15}MiB)", text
    )
    cores = re.search(r"Total Number of Cores: (\d{1,15}) \(", text)
    gpu_cores = re.search(r"Chipset Model: Apple[^\0]{0,200}?Total Number of Cores: (\d{1,3})\s*$", text, re.MULTILINE)
    if not graphics or any(_vendor_of(g[1]) == "apple" for g in graphics):
        yield PrintedDevice(
            vendor="apple",
            index=0,
            name=chip[1] if chip else graphics[0][1] if graphics else "",
            part=_taken(model) or "",
            memory=_taken(memory, _bytes),
            units=_taken(gpu_cores, int),
            cores=_taken(cores, int),
        )
        return
    for index, found in enumerate(graphics):
        size = re.search(r"VRAM \(Total\): (\d{1,15} [MG]B)", text[found.end() : found.end() + 600])
        vendor = _vendor_of(found[1])
        yield PrintedDevice(vendor=vendor, index=index, name=found[1].strip(), memory=_taken(size, _bytes))


def _neuron(text: str) -> Iterator[PrintedDevice]:
    """neuron-ls of version 1, whose two memories are added; those of version 2 are rows."""
    if not re.search(r"\bNEURON\b", text):
        return
    old = re.compile(
        r"^\|\s*[0-9a-f:.]{7,12}\s*\|\s*(\d{1,3})\s*\|\s*(\d{1,2})\s*\|\s*(\d{1,15}) MB\s*\|\s*(\d{1,15}) MB",
        re.MULTILINE,
    )
    for row in old.finditer(text):
        yield PrintedDevice(
            vendor="aws", index=int(row[1]), cores=int(row[2]), memory=_mib(str(int(row[3][:12]) + int(row[4][:12])))
        )


def _intel(text: str) -> Iterator[PrintedDevice]:
    """xpu-smi discovery and topology, sycl-ls, and tools on top of Level Zero."""
    names = re.findall(r"Device Name: ([^|\n]{3,80}?)\s*\|", text) or re.findall(
        r"oneAPI device name: ([^\n]{3,80})", text
    )
    names = names or re.findall(
        r"level_zero[:\]][^\n]*?, (Intel\(R\) (?:Arc|Data Center|UHD|Iris|Graphics)[^\n\[]{0,60})", text
    )
    size = re.search(r'msg="\{(\d{9,13}) ', text)
    for index, name in enumerate(names):
        said = re.sub(r"\s+\d{1,15}\.\d[\d.]*\s*$", "", name.strip())
        yield PrintedDevice(vendor="intel", index=index, name=said, memory=_bytes(size[1]) if size else None)
    for row in re.finditer(r"^GPU (\d{1,3})/0\s", text, re.MULTILINE):
        yield PrintedDevice(vendor="intel", index=int(row[1]), name=names[0] if names else "")


def _pci(text: str) -> Iterator[PrintedDevice]:
    """lspci -nn: numbers of display and accelerator devices. A second source only: any other print of them wins."""
    seen: dict[str, int] = {}
    kinds = re.compile(
        r"^[^\n]{0,40}(?:3D controller|VGA compatible|Display controller|Processing accelerators)[^\n]*"
        r"\[(10de|1002|8086|1da3|1e52):([0-9a-f]{4})\]",
        re.MULTILINE | re.IGNORECASE,
    )
    for found in kinds.finditer(text):
        vendor = _table()["pci"][found[1].lower()]
        index = seen[vendor] = seen.get(vendor, -1) + 1
        said = re.search(r"\[([^\]\n/]{3,60})\]\s*\[(?:10de|1002|8086):", found[0], re.IGNORECASE)
        name = said[1] if said and not re.match(r"(?i)AMD|[0-9a-f]{4}$", said[1]) else ""
        yield PrintedDevice(vendor=f"{vendor}?", index=index, name=name, part=f"{found[1]}:{found[2]}".lower())


def _jetson(text: str) -> Iterator[PrintedDevice]:
    """jetson_release, the device tree's model, tegrastats (memory and CPU cores only)."""
    module = re.search(r"Module: (NVIDIA Jetson [^\n]{2,60})", text)
    model = re.search(r"(?:^|Model: )((?:NVIDIA )?Jetson [^\n\0]{2,60})", text, re.MULTILINE)
    said = module or model
    if said:
        size = re.search(r"\((\d{1,15}) ?GB ram\)", said[1])
        name = said[1].partition("(")[0].strip()
        yield PrintedDevice(vendor="nvidia", index=0, name=name, memory=_bytes(size[1], "gb") if size else None)
    stats = re.search(r"\bRAM \d{1,15}/(\d{1,15})MB \(lfb [^\n]*?CPU \[([^\]\n]{0,800})\]", text)
    if stats:
        cores = stats[2].count(",") + 1
        yield PrintedDevice(vendor="nvidia", index=0, name="Jetson", memory=_mib(stats[1]), cores=cores)


def _browser(text: str) -> Iterator[PrintedDevice]:
    """WebGPU's adapter as pages print it, and Vulkan's summary: a name at best, never the size of the memory."""
    if re.search(r'"(wgpuName|maxComputeWorkgroupStorageSize|isFallbackAdapter)"', text):
        name = re.search(r'"wgpuName"\s*:\s*"([^"\n]{2,80})"', text)
        angle = re.search(
            r'"(?:description|renderer)"\s*:\s*"ANGLE \([^,"]*, ?(?:ANGLE Metal Renderer: )?([^,"]{2,80})', text
        )
        plain = re.search(r'"(?:description|device)"\s*:\s*"([A-Za-z][^"\n]{2,80})"', text)
        vendor = re.search(r'"vendor"\s*:\s*"(apple|nvidia|amd|intel)"', text)
        said = name or angle or plain
        if said:
            yield PrintedDevice(vendor=f"{_vendor_of(said[1])}?", index=0, name=said[1].strip())
        elif vendor:
            yield PrintedDevice(vendor=f"{vendor[1]}?", index=0, notes=("seen by a browser",))
    for index, found in enumerate(re.findall(r"^\s*deviceName\s*=\s*([^\n]{2,80})$", text, re.MULTILINE)):
        if not re.match(r"llvmpipe|SwiftShader", found):
            yield PrintedDevice(vendor=f"{_vendor_of(found)}?", index=index, name=found.partition(" (RADV")[0].strip())


def _tenstorrent(text: str) -> Iterator[PrintedDevice]:
    """tt-smi -s: boards by their number, which holds the type; a board of two chips is listed twice."""
    boards = dict.fromkeys(re.findall(r'"BOARD_ID"\s*:\s*"0x([0-9a-fA-F]{8,16})"', text))
    types = re.findall(r'"board_type"\s*:\s*"([^"\n]{2,30})"', text)
    for index, board in enumerate(boards):
        kind = (int(board, 16) >> 36) & 0xFFFFF
        yield PrintedDevice(vendor="tenstorrent", index=index, name=types[0] if types else "", part=f"board:{kind:x}")


def _windows(text: str) -> Iterator[PrintedDevice]:
    """Win32_VideoController: names; its size of the memory stops below 4 GiB and is not used."""
    if not re.search(r"AdapterRAM|VideoProcessor", text):
        return
    names = re.findall(r"^\s*(?:Name|Caption|Description)\s*[:=]\s*([^\n]{3,80})$", text, re.MULTILINE)
    real = [n.strip() for n in names if not re.search(r"(?i)basic|virtual|remote|mirage|parsec", n)]
    for index, name in enumerate(dict.fromkeys(real)):
        yield PrintedDevice(vendor=_vendor_of(name), index=index, name=name)
    if not real:
        yield PrintedDevice(vendor="", index=0, notes=("AdapterRAM stops at 4 GiB, the card may have more",))


READERS: tuple[Callable[[str], Iterator[PrintedDevice]], ...] = (
    _forms,
    _comma_tables,
    _rows,
    _jetson,
    _listed,
    _smi_tables,
    _rocm_lines,
    _amd_rows,
    _jax,
    _tpu,
    _metal,
    _mac,
    _neuron,
    _intel,
    _tenstorrent,
    _windows,
    _browser,
    _pci,
)
"""The fuller prints first: what they say of a device stands."""


# links, MIG profiles, software


def _columns_of(text: str, rows: Sequence[tuple[int, list[str]]]) -> int:
    """How many GPUs the matrix of links has: columns behind them are of other devices."""
    head = re.search(r"^\s+(GPU0(?:\s+GPU\d{1,3})*)", text, re.MULTILINE)
    most = len(head[1].split()) if head else max(i for i, _ in rows) + 1
    for _, cells in rows:
        most = max(most, *(j + 1 for j, cell in enumerate(cells) if re.fullmatch(r"X|NV\d{1,2}", cell)), 1)
    return min(most, MAX_DEVICES)


def _links(text: str) -> Links | None:
    """The matrix of nvidia-smi topo -m; that of -p2p says only that there are no peers."""
    no_peers = bool(re.search(r"^ ?GPU\d{1,15}\s[^\n]*\b(GNS|CNS|TNS)\b", text, re.MULTILINE))
    rows = [
        (int(found[1]), found[2].split())
        for found in re.finditer(
            r"^ ?GPU(\d{1,3})\s+((?:X|NV\d{1,15}|SYS|NODE|PHB|PXB|PIX|OK|GNS|CNS|TNS|NS)\s[^\n]*)", text, re.MULTILINE
        )
    ]
    if not rows:
        return None
    most = _columns_of(text, rows)
    known = re.compile(r"NV\d{1,2}|SYS|NODE|PHB|PXB|PIX")
    kinds = {i: [cell for cell in cells[:most] if known.fullmatch(cell)] for i, cells in rows}
    seen = Counter(cell for cells in kinds.values() for cell in cells)
    fabric = max(((n, kind) for kind, n in seen.items() if kind.startswith("NV")), default=(0, ""))[1]
    alone = [i for i, cells in kinds.items() if fabric and cells and not any(c.startswith("NV") for c in cells)]
    return Links(most, tuple(sorted(seen)), fabric, tuple(sorted(alone)), no_peers)


def _mig_profiles(text: str) -> tuple[str, ...]:
    """What GPUs could be cut into (nvidia-smi mig -lgip): profile and GiB, `1g.12gb 10.75`."""
    if "GPU instance profiles" not in text:
        return ()
    found = re.findall(
        r"\|\s+\d{1,15}\s+MIG (\dg\.\d{1,15}gb)\s+\d{1,15}\s+\d{1,15}/\d{1,15}\s+(\d{1,15}\.\d{1,15})", text
    )
    return tuple(dict.fromkeys(f"{name} {size}" for name, size in found))


def _software(text: str) -> dict[str, str]:
    found = {name: re.search(pattern, text) for name, pattern in _table()["software"].items()}
    return {name: said[1][:40] for name, said in found.items() if said}


# the host


def _numa(text: str) -> tuple[int | None, float | None, tuple[float, ...]]:
    """How many nodes numactl lists, the memory of those with CPUs, and of each without."""
    nodes = re.findall(r"^node (\d{1,15}) cpus:([^\n]*)\nnode \1 size: (\d{1,15}) MB", text, re.MULTILINE)
    memory = sum(float(size[:12]) for _, cpus, size in nodes if cpus.strip()) * 2.0**20
    away = (float(size[:12]) * 2.0**20 for _, cpus, size in nodes if not cpus.strip() and size.strip("0"))
    return len(nodes) or None, memory or None, tuple(away)


def _host(text: str) -> PrintedHost:
    """lscpu, /proc/cpuinfo and meminfo, free, numactl -H, dmidecode -t memory, metadata of instances, reports."""
    said = {name: _first(text, patterns) for name, patterns in _table()["host"].items()}
    sockets, per_socket, memory = said["sockets"], said["per_socket"], said["memory"]
    listed = re.search(r"^\s*(?:Flags|flags|Features)\s*:\s+([^\n]*)$", text, re.MULTILINE)
    flags = set(listed[1].split()) if listed else set()
    nodes, beside_cpus, away = _numa(text)
    memory = beside_cpus if memory is None else memory
    modules = _modules(text)
    design = (said["maker"], said["family"], said["model"])
    return PrintedHost(
        cpu=said["cpu"] or "",
        design="-".join(map(str, design)) if None not in design else "",
        sockets=sockets,
        cores=per_socket * (sockets or 1) if per_socket else None,
        threads=said["threads"],
        numa_nodes=said["numa_nodes"] or nodes,
        simd=tuple(name for name in _table()["simd"] if name in flags),
        memory=memory,
        away=away,
        instance=said["instance"] or "",
        shared=_sharing(text),
        **modules,
    )


def _first(text: str, patterns: Sequence[tuple[str, str]]) -> Any:
    """What the first pattern that finds something makes of it; None where none does."""
    for pattern, take in patterns:
        found = re.search(pattern, text, re.MULTILINE)
        value = TAKES[take](found[1].strip()[:120]) if found else None
        if value not in (None, ""):
            return value
    return None


def _sharing(text: str) -> str:
    """What stands between the system and the hardware."""
    if re.search(r"microsoft-standard-WSL2|/usr/lib/wsl|WSL2 \(kernel", text):
        return "WSL2"
    vendor = re.search(r"^Hypervisor vendor:\s+(\S[^\n]{0,30})$", text, re.MULTILINE)
    return f"a virtual machine ({vendor[1].strip()})" if vendor else ""


def _modules(text: str) -> dict[str, Any]:
    """Memory modules as dmidecode lists them: those in place, at the speed at which they run."""
    if "Memory Device" not in text:
        return {}
    parts = re.split(r"^Memory Device\s*$", text, flags=re.MULTILINE)[1:]
    found = []
    for part in parts[:256]:
        facts: dict[str, str] = dict(re.findall(r"^\s+([A-Z][\w ]{2,40}): ([^\n]+)$", part, re.MULTILINE))
        found.append(facts)
    placed = [f for f in found if _bytes(f.get("Size", ""))]
    if not placed:
        return {"slots": len(found)}
    first = placed[0]
    keys = ("Configured Memory Speed", "Configured Clock Speed")
    speeds = [_number(next((f[key] for key in keys if key in f), "")) for f in placed]
    rated = [_number(f.get("Speed", "")) for f in placed]
    return {
        "modules": len(placed),
        "slots": len(found),
        "memory_mts": min((s for s in speeds if s), default=None),
        "memory_rated_mts": max((s for s in rated if s), default=None),
        "memory_kind": _text(first.get("Type", "")) or "",
        "module_bits": _count(first.get("Data Width", "")),
    }
