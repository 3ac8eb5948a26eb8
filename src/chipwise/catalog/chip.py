"""A chip as it is rented or counted, every figure with its source and grade."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from chipwise.errors import UnknownNameError
from chipwise.values import dataclass

Grade = Literal["measured", "datasheet", "secondary", "derived", "assumed", "recalled"]
"""`secondary`: read where somebody else retells it; `recalled`: general knowledge, nothing was read."""
Kind = Literal["gpu", "tpu", "asic", "cpu", "wafer", "lpu", "rdu"]
RESTS = frozenset(("memory", "memory_GBps", "scaleup_GBps", "scaleout_GBps", "host_GBps"))
PEAKS = frozenset(("matrix_tflops", "vector_tflops"))
Family = Literal["simt", "systolic", "dataflow", "cpu"]
Status = Literal["ga", "announced", "discontinued", "cancelled"]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a figure was read: a citation and the date it was read or committed (ISO, or None)."""

    ref: str
    date: str | None = None


@dataclass(frozen=True, slots=True)
class Provenance:
    """Sources and grade of a figure; `note` says what was derived, assumed or doubted."""

    sources: tuple[Source, ...]
    grade: Grade
    note: str = ""


@dataclass(frozen=True, slots=True)
class MemoryTier:
    """One level of memory that holds weights and caches; `name` is the vendor's word for it.

    `label_bytes` is the vendor's capacity, `usable_bytes` what software can use; `bytes_per_s` is the peak
    rate at which the chip reaches it (one direction for a tier behind a link). None = not published.
    """

    name: str
    kind: Literal["sram", "hbm", "ddr"]
    label_bytes: float | None
    usable_bytes: float | None
    bytes_per_s: float | None

    @property
    def found_bytes(self) -> float:
        """Bytes that a program finds, else those of the label; 0 where neither is known."""
        return self.usable_bytes or self.label_bytes or 0.0


@dataclass(frozen=True, slots=True)
class MatrixUnit:
    """Compute units and the 16-bit multiply-accumulates each does per clock.

    units x macs_per_clock x 2 x peak_clock_hz reproduces the 16-bit peak; `boost_clock_hz` is the highest
    clock the vendor names. Systolic chips: `arrays` arrays in the package, of `array_rows` x `array_cols`
    cells, which hold their "weights" or their "outputs" (`array_holds`); of those that hold outputs, how many parts of
    the inner dimension one array works on side by side where rows are few (`array_parts`).
    """

    unit: str
    units: int
    name: str
    macs_per_clock: float | None
    boost_clock_hz: float | None
    peak_clock_hz: float | None
    arrays: int = 0
    array_rows: int = 0
    array_cols: int = 0
    array_holds: str = ""
    array_parts: int = 1


@dataclass(frozen=True, slots=True)
class Link:
    """A link out of the chip: `bytes_per_s` is one direction, per chip, over all ports.

    `pairwise_bytes_per_s` is what one pair of chips can use, `domain` the number of chips joined. A link may
    have no speed where none is published.
    """

    name: str
    bytes_per_s: float | None
    pairwise_bytes_per_s: float | None = None
    topology: str = ""
    domain: int = 1


@dataclass(frozen=True, slots=True)
class Chip:
    """One accelerator or CPU socket: facts only, all of the whole package, peaks dense.

    `matrix` and `vector` map a data type ("bf16", "fp8", ...; "fp16/fp16" for fp16 accumulation) to
    operations per second. `figures` holds what the catalogue file says, by key and in the unit of the key
    ("memory_GBps", "matrix_tflops.bf16"); `provenance(figure)` gives the source and grade of one of them.
    `default.note` is the remark on the chip as a whole. `exceptions` gives, by guard, the reason why a true
    figure violates it. `serves_only` says why a chip made for inference is not trained on.

    What kernels and fitted numbers are shared along: `generation` (chips that run the same kernels; its own id
    where it shares them with none), `base_generation` (that whose 16-bit units and serving stacks it has too:
    Blackwell's for Blackwell Ultra), `core` (the design of its compute units: `base_generation` and multiply-adds per
    unit and clock; dies and boards of one design differ in what their sheets say), `software_vendor` (whose libraries
    it runs). `instruction` is the matrix instruction of its kernels, in PTX's words ("wgmma"; "" where operands pass
    through registers). `like` names the bundled chip whose software a user's own chip runs: these facts are the other
    chip's then.

    `runs_as` is the chip whose rows of support matrices hold for this one, which nobody measured: the same kernels and
    drivers, none of its fitted numbers. `stand_in` is the nearest chip that one can have, for one that cannot be had or
    that no software is known for. `only_named`: no candidate of a search of the market; it has to be named.
    `system_bytes` of the memory are what display and operating system keep by the user's word (None: what the machine
    says). Cards without access to each other's memory exchange through the host's at `staged_bytes_per_s`, whatever
    their bus (None: they have access). The start of a kernel takes `dispatch_s` beside what software of the desk needs
    (in a page).
    """

    id: str
    name: str
    vendor: str
    kind: Kind
    family: Family
    year: int
    status: Status
    process: str
    tiers: tuple[MemoryTier, ...]
    matrix: Mapping[str, float]
    vector: Mapping[str, float]
    matrix_unit: MatrixUnit
    cache_bytes: float | None
    sram_per_unit_bytes: float | None
    registers_per_unit_bytes: float | None
    sram_bytes: float | None
    sram_bytes_per_s: float | None
    host: Link | None
    scaleup: Link | None
    scaleout_bytes_per_s: float | None
    tdp_w: float | None
    devices_per_package: int
    accumulate_note: str
    default: Provenance
    own: Mapping[str, Provenance] = field(default_factory=dict)
    figures: Mapping[str, object] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    exceptions: Mapping[str, str] = field(default_factory=dict)
    like: str = ""
    serves_only: str = ""
    generation: str = ""
    base_generation: str = ""
    core: str = ""
    software_vendor: str = ""
    instruction: str = ""
    runs_as: str = ""
    stand_in: str = ""
    only_named: bool = False
    system_bytes: float | None = None
    staged_bytes_per_s: float | None = None
    dispatch_s: float = 0.0

    @property
    def memory(self) -> MemoryTier:
        """The first tier: where weights and caches live."""
        return self.tiers[0]

    def over_bus(self, bus_bytes_per_s: float | None) -> float | None:
        """Bytes/s between two of these on a bus: its rate, or what is left of it through the host's memory."""
        if bus_bytes_per_s is None or self.staged_bytes_per_s is None:
            return bus_bytes_per_s
        return min(bus_bytes_per_s, self.staged_bytes_per_s)

    @property
    def software_id(self) -> str:
        """The id by which runtimes, systems and fitted numbers know it: that of the chip it is like, or its own."""
        return self.like or self.id

    @property
    def support_id(self) -> str:
        """The id by which support matrices and trainers know it."""
        return self.runs_as or self.software_id

    @property
    def rentable(self) -> bool:
        """Whether you can have it: sold, rented, or no longer made but in use."""
        return self.status in ("ga", "discontinued")

    @property
    def unavailable(self) -> str:
        """Why it cannot be planned with, and what is nearest, as a sentence; "" for a chip that software runs on."""
        near = f"; the nearest chip that you can have is {self.stand_in}" if self.stand_in else ""
        name = self.name.removesuffix(" (announced)").removesuffix(" (cancelled)")
        if self.status == "announced":
            return f"{name} is announced and cannot be bought or rented yet{near}"
        if self.status == "cancelled":
            return f"{name} was cancelled and was never sold{near}"
        return f"no serving software is known for {self.name}{near}" if self.stand_in else ""

    def peak(self, dtype: str, accumulate: str = "fp32") -> float | None:
        """Dense matrix operations per second for a data type; None where the vendor gives none."""
        if accumulate != "fp32":
            return self.matrix.get(f"{dtype}/{accumulate}")
        return self.matrix.get(dtype)

    @property
    def recalled(self) -> tuple[str, ...]:
        """The figures that predictions rest on (memory, its bandwidth, peaks, links) and read in no source."""
        rests = [f for f in self.figures if f in RESTS or f.partition(".")[0] in PEAKS]
        return tuple(f for f in rests if self.provenance(f).grade == "recalled")

    def provenance(self, figure: str) -> Provenance:
        """Source and grade of one figure: its own where it has one, else the chip's.

        Raises `UnknownNameError` for a figure that this chip does not have.
        """
        if figure not in self.figures:
            raise UnknownNameError(f"figure of {self.id}", figure, self.figures)
        return self.own.get(figure, self.default)
