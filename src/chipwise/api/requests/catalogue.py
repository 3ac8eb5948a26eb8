"""chips, models, systems, runtimes, offers: what one can ask of the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from chipwise.api.loaded import describe, find_chip
from chipwise.api.media_asked import network, networks
from chipwise.api.requests.field import CONFIG, NAMES, Asked, ask, count_of
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.configs import bundled_configs, known_names, leading_names
from chipwise.catalog.media_runtime import MediaRuntime
from chipwise.catalog.names import holding
from chipwise.catalog.networks import is_built_in
from chipwise.catalog.offer import load_offers
from chipwise.catalog.price import price_range
from chipwise.catalog.runtime import get_runtime
from chipwise.catalog.runtime_spec import Runtime
from chipwise.catalog.snapshot import today
from chipwise.catalog.software import all_software
from chipwise.catalog.system import get_system, load_systems
from chipwise.errors import UnknownNameError, UsageError
from chipwise.report.catalogue import (
    ChipRecord,
    ChipsReport,
    ModelsReport,
    OffersReport,
    RuntimesReport,
    SystemsReport,
    chip_record,
)
from chipwise.values import dataclass

T = TypeVar("T")

WORDS = "words that all occur in its name, e.g. nvidia hbm3e"


@dataclass(frozen=True, kw_only=True)
class ChipsRequest(Asked):
    """Chips: all, those that a search finds, or some by name with every figure and its source, side by side."""

    chips: str | None = ask("these in full, separated by commas; default: a line for each", file=True, reading=NAMES)
    search: str | None = ask(
        "words that all occur in id, name, vendor, kind, memory or machines, e.g. nvidia hbm3e or mac studio"
    )
    vendor: str | None = ask("of this vendor, e.g. amd")
    limit: int = ask("at most this many", 200)

    def run(self) -> ChipsReport:
        """The chips. Raises `UnknownNameError` for a chip or vendor that does not exist."""
        most = _most(self.limit)
        if self.chips is not None:
            if self.vendor is not None or self.search is not None:
                said = f"--{'vendor' if self.search is None else 'search'} chooses chips, and --chips names them"
                raise UsageError(said, "leave one of them out")
            named = tuple(_record(find_chip(name), sources=True) for name in self.values["chips"])
            return ChipsReport(named, len(named))
        vendors = {c.vendor for c in load_chips().values()}
        if self.vendor is not None and self.vendor.lower() not in vendors:
            raise UnknownNameError("vendor", self.vendor, vendors, f"one of {', '.join(sorted(vendors))}")
        of_vendor = (c for c in load_chips().values() if self.vendor in (None, c.vendor) or _same(self.vendor, c))
        found = _holding(self.search, of_vendor, _text)
        return ChipsReport(tuple(map(_record, found[:most])), len(found))


@dataclass(frozen=True, kw_only=True)
class ModelsRequest(Asked):
    """Models that are known by name, networks without tokens after language models: all, those that a search finds, or
    one in figures with what was assumed."""

    model: str | None = ask("this one alone: a bundled name, a config.json or its folder", file=True, reading=CONFIG)
    search: str | None = ask("words that all occur in the name: family, size, format, e.g. qwen3 8b fp8")
    limit: int = ask("at most this many", 40)

    def run(self) -> ModelsReport:
        """The models. Raises `UnknownNameError` for one that does not exist."""
        if self.model is not None:
            if self.model not in known_names() and is_built_in(self.model):
                return ModelsReport((), 1, networks=(network(self.model),))
            return ModelsReport((describe(self.model),), 1)
        if self.search is None:
            found = [name for name, config in bundled_configs().items() if not config.alias]
        else:
            found = holding(self.search, leading_names()) or holding(self.search, known_names())
        others = networks(self.search)
        most = _most(self.limit)
        return ModelsReport(
            tuple(map(describe, found[:most])),
            len(found) + len(others),
            networks=tuple(map(network, others[: max(most - len(found), 0)])),
        )


@dataclass(frozen=True, kw_only=True)
class SystemsRequest(Asked):
    """Machines, pods and slices: chips of a host, what joins them, legal shapes, each figure with its source."""

    system: str | None = ask("this one alone, by its id")
    chip: str | None = ask("those that hold this chip", file=True)

    def run(self) -> SystemsReport:
        """The systems. Raises `UnknownNameError` for a system or chip that does not exist."""
        if self.system is not None:
            return SystemsReport((get_system(self.system),))
        wanted = None if self.chip is None else get_chip(self.chip).id
        table = load_systems().values()
        return SystemsReport(tuple(s for s in table if wanted in (None, *(held for held, _ in s.members))))


@dataclass(frozen=True, kw_only=True)
class RuntimesRequest(Asked):
    """Software that runs models: its policies, and which chip, number format and architecture it runs."""

    runtime: str | None = ask("this one alone, by its id")
    chip: str | None = ask("those that run on this chip", file=True)

    def run(self) -> RuntimesReport:
        """The runtimes. Raises `UnknownNameError` for a runtime or chip that does not exist."""
        if self.runtime is not None:
            media, engines = all_software(MediaRuntime), all_software(Runtime)
            if self.runtime in media:
                both = (engines[self.runtime],) if self.runtime in engines else ()
                return RuntimesReport(both, (media[self.runtime],))
            return RuntimesReport((get_runtime(self.runtime),))
        chip = None if self.chip is None else get_chip(self.chip)
        serving = tuple(
            r
            for r in all_software(Runtime).values()
            if chip is None or any(chip.id in u.chips for u in r.rules if u.runs)
        )
        return RuntimesReport(
            serving, tuple(r for r in all_software(MediaRuntime).values() if chip is None or r.runs_on(chip))
        )


@dataclass(frozen=True, kw_only=True)
class OffersRequest(Asked):
    """Dated list prices of instances for rent, cheapest chip first, and the range for each chip."""

    chip: str | None = ask("of this chip", file=True)
    provider: str | None = ask("of this provider")
    limit: int = ask("at most this many", 40)

    def run(self) -> OffersReport:
        """The offers. Raises `UnknownNameError` for a chip or provider that does not exist."""
        found = list(load_offers())
        if self.provider is not None:
            providers = {o.provider for o in found}
            found = [o for o in found if o.provider.lower() == self.provider.lower()]
            if not found:
                raise UnknownNameError("provider", self.provider, providers)
        if self.chip is not None:
            wanted = get_chip(self.chip).id
            found = [o for o in found if o.chip == wanted]
        found.sort(key=lambda o: (o.usd_per_chip_h is None, o.usd_per_chip_h or 0.0, o.chip))
        shown = tuple(found[: _most(self.limit)])
        ranges = (price_range(chip, today()) for chip in dict.fromkeys(o.chip for o in shown))
        return OffersReport(shown, tuple(r for r in ranges if r is not None), len(found))


def _record(chip: Chip, *, sources: bool = False) -> ChipRecord:
    price = price_range(chip.id, today()) if chip.id in load_chips() else None
    return chip_record(chip, price, sources=sources)


def _same(vendor: str | None, chip: Chip) -> bool:
    return vendor is not None and vendor.lower() == chip.vendor


def _text(c: Chip) -> str:
    machines = (s.name for s in load_systems().values() if any(held == c.id for held, _ in s.members))
    kin = c.generation or ""
    return " ".join((c.id, c.name, c.vendor, c.kind, c.family, kin, c.memory.name, *c.aliases, *machines))


def _holding(words: str | None, items: Iterable[T], text: Callable[[T], str]) -> list[T]:
    wanted = (words or "").lower().split()
    return [item for item in items if all(word in text(item).lower() for word in wanted)]


def _most(limit: int) -> int:
    return count_of(limit, "--limit", "lines") or 1
