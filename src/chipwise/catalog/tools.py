"""Tools that launch a plan, and the options of theirs that are documented."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from chipwise.catalog.parsed import parse
from chipwise.catalog.schema import record
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.errors import UnknownNameError

__all__ = ["Tool", "get_tool", "load_tools", "tools_of"]

TABLE = "catalog/data/launch.toml"


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool in one version: its options with what they say, where that was read, and the serving runtimes that
    it starts. `vendors` are those on whose chips it runs, empty where its runtimes or chips say it. `models` and
    `chips` are its own names for some of ours; `tunes`: it trains published weights on, and nothing else."""

    id: str
    name: str
    version: str
    source: str
    options: Mapping[str, str]
    runtimes: tuple[str, ...] = ()
    vendors: tuple[str, ...] = ()
    models: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    chips: Mapping[str, str] = field(default_factory=dict)
    tunes: bool = False


@per_snapshot
def load_tools() -> Mapping[str, Tool]:
    """All tools by id."""
    document = parse(shipped_text(TABLE))
    return MappingProxyType(
        {name: record(Tool, entry, f"{TABLE}: {name}", id=name) for name, entry in document.items()}
    )


def get_tool(name: str) -> Tool:
    """The tool of that id. Raises `UnknownNameError` with the nearest."""
    tools = load_tools()
    if name not in tools:
        raise UnknownNameError("target", name, tools, f"one of {', '.join(tools)}")
    return tools[name]


def tools_of(runtime: str) -> tuple[str, ...]:
    """The tools that start a serving runtime, by id."""
    return tuple(name for name, tool in load_tools().items() if runtime in tool.runtimes)
