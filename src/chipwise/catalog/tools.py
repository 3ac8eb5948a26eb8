"""Tools that launch a plan, and the options of theirs that are documented."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any

from chipwise.catalog.parsed import parse
from chipwise.catalog.schema import record
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.errors import UsageError, check_known
from chipwise.values import dataclass

TABLE = "catalog/data/launch.toml"
COMMANDS = "catalog/data/launch_commands.toml"


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool in one version: its options with what they say, where that was read, and the serving runtimes that
    it starts. `vendors` are those on whose chips it runs, empty where its runtimes or chips say it. `models` and
    `chips` are its own names for some of ours; it `shares` requests of these models among devices; `weights` those that
    it starts from (random, published, or made: its files name, or make, one in the format of the plan); `called` what
    people call it besides, ids of the catalogue's trainers among it; `logged` how its log names a step's time: a
    pattern and its unit (s, ms, 1/s, or run: seconds of all steps); `optimizers` are its names of those of
    `catalog.trainer.OPTIMIZERS` that it is told here, its own first; none named: AdamW alone;
    `untuned` why it does not train published weights here; `objectives` what it is told here to train for, of
    `predict.training.objective.OBJECTIVES`; `degrees` of a layout that it cuts here besides data, `sharding` how it
    cuts weights and states (none named: in all ways), `by_deepspeed` where DeepSpeed cuts an optimiser alone for it, or
    moves it to the host; `stashes` where it is told to keep activations there; `cuts_narrow` where it trains weights of
    16 bits in parts too, `eight_whole` where it has 8-bit states of whole weights alone; `losses` its names of them by
    what they keep."""

    id: str
    name: str
    version: str
    source: str
    options: Mapping[str, str]
    runtimes: tuple[str, ...] = ()
    vendors: tuple[str, ...] = ()
    models: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shares: tuple[str, ...] = ()
    chips: Mapping[str, str] = field(default_factory=dict)
    weights: tuple[str, ...] = ("random",)
    called: tuple[str, ...] = ()
    logged: tuple[str, ...] = ()
    optimizers: Mapping[str, str] = field(default_factory=dict)
    untuned: str = ""
    objectives: tuple[str, ...] = ("next-token",)
    degrees: tuple[str, ...] = ()
    sharding: tuple[str, ...] = ()
    by_deepspeed: bool = False
    stashes: bool = False
    cuts_narrow: bool = False
    eight_whole: bool = False
    losses: Mapping[str, str] = field(default_factory=dict)


@per_snapshot
def load_tools() -> Mapping[str, Tool]:
    """All tools by id."""
    document = parse(shipped_text(TABLE))
    return MappingProxyType(
        {name: record(Tool, entry, f"{TABLE}: {name}", id=name) for name, entry in document.items()}
    )


@per_snapshot
def command_rows() -> Mapping[str, Mapping[str, Any]]:
    """What tools are told, by table and part: rows of an option, its value and when. Raises `UsageError` for a row that
    is none."""
    found: dict[str, dict[str, Any]] = parse(shipped_text(COMMANDS))
    for name, table in found.items():
        for part, rows in table.items():
            for row in rows if part != "joined" else ():
                if not (1 <= len(row) <= 3 and isinstance(row[0], str) and isinstance((*row, "", "")[2], str)):
                    raise UsageError(f"{COMMANDS}: {name}.{part}: {row}", "an option, its value, and when")
    return MappingProxyType(found)


def get_tool(name: str) -> Tool:
    """The tool of that id. Raises `UnknownNameError` with the nearest."""
    tools = load_tools()
    check_known("target", (name,), tools)
    return tools[name]


def tool_called(name: str, among: Collection[str]) -> str:
    """The id of the tool that people call so, in capitals or not, with hyphens, spaces or none: of several one that is
    `among` those that can start a plan. Raises `UnknownNameError` with the nearest."""
    tools = load_tools()
    if name in among:
        return name
    found = [t.id for t in tools.values() if _plain(name) in map(_plain, (t.id, t.name, *t.called))]
    return next((i for i in found if i in among), found[0] if found else get_tool(name).id)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def tools_of(runtime: str) -> tuple[str, ...]:
    """The tools that start a serving runtime, by id."""
    return tuple(name for name, tool in load_tools().items() if runtime in tool.runtimes)
