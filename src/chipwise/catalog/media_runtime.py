"""Software that runs pipelines, models that do not generate tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Literal, Self

from chipwise.catalog.chip import Chip, Family
from chipwise.catalog.published import month_of
from chipwise.catalog.schema import read_text, record
from chipwise.catalog.software import Software, SoftwareTable, all_software
from chipwise.errors import UnknownNameError, UsageError
from chipwise.values import dataclass

VERSION = re.compile(r"\b(\d+\.\d+)")
DATE = re.compile(r"\b(20\d\d(?:-\d\d)?)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaRuntime(Software):
    """What software does with the operators of a pipeline.

    `pace`: a host starts kernels one by one, or fewer that were compiled, or a call is one graph.
    `folds`: element-wise work is written into the product before it.
    `fused_since`: the month since when attention does not write its scores to memory ("" never, "0" always).
    `attends`: "registers" where attention multiplies through registers on every chip, "own" where it brings the newest
    kernels along, "" where it is the vendor's; the first two on chips of `flash` vendors that multiply bf16.
    `overlaps_since`: the month since when "registers" ends on chips with matrix instructions of their own ("" never).
    `turns`: vendors whose convolutions of 16 bits want channels last, where it lays tensors out plane by plane.
    `tf32_conv`: fp32 convolutions run in TF32 unasked.
    `narrows_loaded`: precisions that it makes of weights on the device.
    `shares`: how devices can share a request (`ulysses`, `cfg`), with the vendors of those that do; `offloads`: parts
    can wait on the host.
    `networks`: the families that it runs, none for any; `models`: patterns of the names of those
    that it has pipelines of, none for any; `ported`: they have to be exported to it or written again, `rewritten`: the
    latter. `server`: it takes requests of many users over HTTP and batches those that wait. `formats`: number formats
    that it runs, the first where none is asked for; none for any. `not_on`: patterns of chips and generations of its
    vendors that it does not run on.
    `whole`: precisions that it gives convolutions and what passes between layers too, as engines do whose scales were
    found beforehand.
    `host`: seconds of one core for what a host itself does while devices wait, by kind: `sound` (a second of it is
    decoded and turned into a spectrogram), `token` (a step of a decoder: rules, choice, loop), `sequence` (the same of
    each sequence). `hop_s`: seconds from one window of a long recording to the next where windows are a batch (0: they
    follow each other). `starts`: the host's time to start an operator of a kind over that of a product.
    `loops`: vendors on whose chips the libraries of transducers start their loop as one graph.
    `autocast`: weights are kept in fp32 and cast in every call. `paced_as`: the software whose
    numbers it has, where it has none of its own.
    `trained_as`: the trainer whose numbers and policies a training step takes, where none of its own was measured.
    `served_as`: the runtime of language models whose numbers a forward pass of a causal decoder takes.
    `widens`: activations are fp32 around products of 16 bits. `sums_narrow`: products of fp16 are summed in fp16, which
    cards for games do at twice the rate. `releases`: months of versions.
    """

    capability: ClassVar[str] = "networks"

    pace: Literal["host", "compiled", "graph"]
    folds: bool
    fused_since: str
    tf32_conv: bool
    vendors: frozenset[str]
    families: frozenset[Family]
    narrows_loaded: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    widens: bool = False
    sums_narrow: bool = False
    attends: Literal["", "registers", "own"] = ""
    overlaps_since: str = ""
    flash: frozenset[str] = frozenset()
    turns: frozenset[str] = frozenset()
    shares: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    offloads: bool = False
    networks: frozenset[str] = frozenset()
    models: frozenset[str] = frozenset()
    ported: bool = False
    rewritten: bool = False
    server: bool = False
    formats: tuple[str, ...] = ()
    not_on: frozenset[str] = frozenset()
    host: Mapping[str, float] = field(default_factory=dict)
    hop_s: float = 0.0
    starts: Mapping[str, float] = field(default_factory=dict)
    loops: frozenset[str] = frozenset()
    autocast: bool = False
    paced_as: str = ""
    trained_as: str = ""
    served_as: str = ""
    releases: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, table: SoftwareTable, where: str, entry: Mapping[str, Any], common: Mapping[str, Any]) -> Self:
        """The runtime of one table `networks`; `version_of` names the tool whose releases date it."""
        plain = dict(entry)
        tool = read_text(f"{where}.version_of", plain.pop("version_of", ""), ("", *table.releases))
        return record(cls, plain, where, releases=table.releases.get(tool, {}), **common)

    def runs_on(self, chip: Chip) -> bool:
        """Whether it runs on a chip."""
        if chip.software_vendor not in self.vendors or chip.family not in self.families:
            return False
        names = (chip.software_id, chip.base_generation)
        return not any(fnmatchcase(name, one) for name in names for one in self.not_on)

    def ways(self, chip: Chip) -> frozenset[str]:
        """How devices of this kind can share a request."""
        return frozenset(way for way, vendors in self.shares.items() if chip.software_vendor in vendors)

    def runs(self, family: str | None) -> bool:
        """Whether it runs networks of a family; of one that is not known (None) where it runs any."""
        return not self.networks or family in self.networks

    def has(self, model: str | None) -> bool:
        """Whether it has a pipeline of a model of the table; of one that is not known (None) where it runs any."""
        return not self.models or (model is not None and any(fnmatchcase(model, one) for one in self.models))

    def takes(self, precision: str | None) -> bool:
        """Whether it runs a number format; None where none is asked for."""
        return not self.formats or precision is None or precision in self.formats

    def flash_attends(self, chip: Chip) -> bool:
        """Whether its fused attention is FlashAttention on a chip."""
        return chip.software_vendor in self.flash and "bf16" in chip.matrix

    def overlaps(self, chip: Chip, software: str) -> bool:
        """Whether its fused attention of that age multiplies at the chip's full rate while softmax runs: kernels that
        it brings along, or those that the vendor's library has for chips with an instruction of their own."""
        return self.attends == "own" or (bool(chip.instruction) and self._since(self.overlaps_since, software))

    @property
    def converts(self) -> bool:
        """Whether it converts operands of narrow products operator by operator: it makes narrow weights itself, and
        nothing is folded."""
        return bool(self.narrows_loaded) and not self.folds

    def computes(self, precision: str | None) -> str | None:
        """What it makes of a precision that is asked for; None is its first format, where it has some, else stays."""
        if precision is None and self.formats:
            return self.formats[0]
        if self.autocast and precision in (None, "bf16", "fp16"):
            return f"amp-{precision or 'fp16'}"
        return f"{precision}-static" if precision in self.whole else precision

    def month(self, software: str) -> str:
        """The month of the software as it is said: a date, an MLPerf round, or a version of the tool that it comes
        with; "" where none is told."""
        version = VERSION.search(software)
        if version and version[1] in self.releases:
            return self.releases[version[1]]
        dated = DATE.search(software)
        return dated[1] if dated else month_of(software)

    def fuses_attention(self, software: str) -> bool:
        """Whether attention of that age keeps its scores on chip; without an age: of today."""
        return self._since(self.fused_since, software)

    def _since(self, first: str, software: str) -> bool:
        """Whether software of that age, or of today, is of the month `first` ("" never) or younger."""
        month = self.month(software)
        return bool(first) and (not month or month >= first)


def get_media_runtime(name: str) -> MediaRuntime:
    """The runtime of that name. Raises `UnknownNameError`."""
    known = all_software(MediaRuntime)
    wanted = name.strip().lower()
    for runtime in known.values():
        if wanted in (runtime.id, *runtime.also):
            return runtime
    raise UnknownNameError("runtime of pipelines", name, known, f"one of {', '.join(known)}")


def media_runtime_for(chip: Chip, name: str | None = None) -> MediaRuntime:
    """The named runtime, or the first that runs on the chip. Raises `UnknownNameError`, `UsageError` where it does not
    run there."""
    if name is not None:
        found = get_media_runtime(name)
        if not found.runs_on(chip):
            able = [r.id for r in all_software(MediaRuntime).values() if r.runs_on(chip)]
            hint = f"there run {', '.join(able)}" if able else "nothing known runs pipelines there"
            raise UsageError(f"{found.name} does not run on {chip.id}", hint, field="runtime")
        return found
    for runtime in all_software(MediaRuntime).values():
        if runtime.runs_on(chip):
            return runtime
    raise UsageError(f"{chip.id}: no software is known that runs pipelines", "chipwise chips list")


def media_runtimes_tried(
    chip: Chip, family: str | None, model: str | None, precision: str | None
) -> tuple[MediaRuntime, ...]:
    """All software that runs networks of a family in a number format, and has a pipeline of the model, on a chip
    unasked, the usual one first. Raises `UsageError` where none does."""
    found = tuple(
        r
        for r in all_software(MediaRuntime).values()
        if r.runs_on(chip) and r.runs(family) and r.has(model) and r.takes(precision) and not r.named
    )
    if not found:
        raise UsageError(f"{chip.id}: no software is known that runs pipelines", "chipwise chips list")
    return found
