"""Versions of software as dates: facts of `data/releases.toml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from chipwise.catalog.parsed import parse
from chipwise.catalog.published import ROUNDS
from chipwise.catalog.runtime import get_runtime
from chipwise.catalog.schema import record
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.errors import UsageError
from chipwise.values import dataclass

TABLE = "catalog/data/releases.toml"
_VERSION = re.compile(r"(?P<name>[A-Za-z][A-Za-z-]*(?:\.cpp)?)?[ =@:]*v?(?P<version>\d+(?:\.\d+)+)\S*", re.I)

FIRST = "first"  # the key of rows that are of no runtime

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FirstBuild:
    """The month from which on software runs on chips of some `generations`: that of the toolkit (`by`) which knows
    them, or of the first builds of `runtimes` with it. `source` as in the table."""

    generations: tuple[str, ...]
    month: str
    by: str
    source: Mapping[str, str]
    runtimes: tuple[str, ...] = ()


@per_snapshot
def load_releases() -> Mapping[str, Mapping[Version, str]]:
    """By runtime: the month of every listed version."""
    table = parse(shipped_text(TABLE))
    return MappingProxyType(
        {
            name: MappingProxyType({_parts(v): m for v, m in rows.items()})
            for name, rows in table.items()
            if name != FIRST
        }
    )


@per_snapshot
def load_first_builds() -> tuple[FirstBuild, ...]:
    """What is known of when software began to run on chips, rows of runtimes last."""
    rows = (record(FirstBuild, row, TABLE) for row in parse(shipped_text(TABLE))[FIRST])
    return tuple(sorted(rows, key=lambda row: bool(row.runtimes)))


def first_build(runtime: str, generation: str) -> FirstBuild | None:
    """The first builds of a runtime that run on chips of a generation, None where all that is known does."""
    fits = [
        row
        for row in load_first_builds()
        if generation in row.generations and (not row.runtimes or runtime in row.runtimes)
    ]
    return fits[-1] if fits else None


def first_version(runtime: str, month: str) -> str:
    """The first listed version of a runtime from a month on; "" where none is listed."""
    known = [v for v, at in load_releases().get(runtime, {}).items() if at >= month]
    return ".".join(map(str, min(known))) if known else ""


def beyond(asked: str, runtime: str) -> str:
    """What a version above all that are listed is taken for, in words; "" of any other."""
    found = _VERSION.fullmatch(asked.strip())
    if asked in ROUNDS or found is None:
        return ""
    name = get_runtime(_whose(found, runtime)).id
    newest = max(load_releases()[name])
    if _parts(found["version"]) <= newest:
        return ""
    last = ".".join(map(str, newest))
    return (
        f"{name} {found['version']} is newer than all versions known here: taken for {last} of "
        f"{load_releases()[name][newest]}"
    )


def dated(asked: str, runtime: str) -> str:
    """What was asked of software as a date or MLPerf round: of a version ("v0.11.0", "vllm 0.6.1") of the runtime that
    stands before it, of `runtime` or of the only one of which it is listed, the month in which it came out; anything
    else as it is.

    Raises `UsageError` for a version before all that are listed, of software of which none is, or of nobody in
    particular, `UnknownNameError` for software that nobody knows.
    """
    found = _VERSION.fullmatch(asked.strip())
    if asked in ROUNDS or found is None:
        return asked
    known, said = load_releases(), _whose(found, runtime)
    if not said:
        listing = _listing(found)
        whose = listing or list(known)
        version = found["version"] if listing else ".".join(map(str, max(known[whose[0]])))
        raise UsageError(
            f"whose version is '{asked}'?",
            f"one of {', '.join(whose)}, for example '{whose[0]} {version}', or a date as in 2025-06",
            field="software",
        )
    name = get_runtime(said).id
    if name not in known:
        raise UsageError(
            f"versions of {name} are not dated here",
            f"of {', '.join(known)} they are; else as in 2025-06",
            field="software",
        )
    version, listed = _parts(found["version"]), known[name]
    older = [v for v in listed if v <= version]
    if not older:
        first = ".".join(map(str, min(listed)))
        raise UsageError(f"{name} {found['version']}: nothing that old was measured", f"{name} {first} or later")
    return listed[max(older)]


def runtime_named(asked: str) -> str | None:
    """The runtime that stands before a version ("vllm 0.11"), or the only one of which it is listed; None where there
    is none. Raises `UnknownNameError` for software that nobody knows."""
    found = _VERSION.fullmatch(asked.strip())
    said = _whose(found, "") if found and asked not in ROUNDS else ""
    return get_runtime(said).id if said else None


def _whose(found: re.Match[str], runtime: str) -> str:
    """The software that stands before a version, else `runtime`, else the only one of which it is listed, else ""."""
    listing = _listing(found)
    only = listing[0] if len(listing) == 1 else ""
    return (found["name"] or "").lower().removesuffix("v") or runtime or only


def _listing(found: re.Match[str]) -> list[str]:
    """The runtimes of which this very version is listed."""
    return [name for name, rows in load_releases().items() if _parts(found["version"]) in rows]


def newest_month() -> str:
    """The month of the newest version that is listed: nothing later is known."""
    return max(month for rows in load_releases().values() for month in rows.values())


def _parts(version: str) -> Version:
    """The numbers of a version, three at least: 1.0 is 1.0.0."""
    numbers = [int(part) for part in version.split(".")]
    return tuple(numbers + [0] * (3 - len(numbers)))
