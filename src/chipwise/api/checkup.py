"""`doctor`: is the installation whole, and what is this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from importlib.util import find_spec
from typing import Any

from chipwise import __version__
from chipwise.api.loaded import models
from chipwise.api.requests.planning import AUTO
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.offer import load_offers
from chipwise.catalog.published import load_inference_results
from chipwise.catalog.runtime_spec import Runtime
from chipwise.catalog.software import all_software
from chipwise.catalog.system import load_systems
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.store import Store
from chipwise.measure.machine import owned
from chipwise.report.machine import DeviceReport, about
from chipwise.values import dataclass

EXTRAS = {"parquet": ("pyarrow", ".parquet rows only"), "serve": ("starlette", "chipwise web and chipwise mcp only")}
"""Optional dependencies: the module that shows they are there, and what needs them."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str


def doctor() -> tuple[Check, ...]:
    """Load every table once and say what is there."""
    python = ".".join(map(str, sys.version_info[:3]))
    checks = [
        Check("chipwise", True, f"{__version__} on Python {python}"),
        _machine(),
        _count("chips", lambda: len(load_chips())),
        _count("runtimes", lambda: len(all_software(Runtime))),
        _count("systems", lambda: len(load_systems())),
        _count("published results", lambda: len(load_inference_results())),
        _count("offers", lambda: len(load_offers())),
        _count("models", lambda: len(models())),
        _count("parameters", lambda: len(shipped_parameters().table)),
        _own(),
    ]
    for extra, (module, need) in EXTRAS.items():
        there = find_spec(module) is not None
        note = "installed" if there else f"not installed (pip install 'chipwise[{extra}]'), needed for {need}"
        checks.append(Check(f"extra {extra}", True, note))
    return tuple(checks)


def _machine() -> Check:
    """The processor, memory and devices of this machine, as `doctor --devices` tells them in full."""
    found = devices()
    cards = [m for m in found.machines if m.name != found.host.cpu]
    named = [f"{m.count} x {m.chip or m.name}" for m in cards] or ["no accelerator was found"]
    named += [f"could be {', '.join(m.ambiguous)}" for m in found.machines if m.ambiguous]
    words = "; ".join((about(found.host) or "the processor is not known", *named))
    return Check("this machine", True, f"{words} (more: chipwise doctor --devices)")


def devices(path: str | None = None) -> DeviceReport:
    """This machine in the catalogue's terms, or the one whose prints are in a folder or file. Raises `UsageError`."""
    from chipwise.measure.asking import ask

    found = ask(path)
    return DeviceReport(**{f.name: getattr(found, f.name) for f in fields(found)})


def asks_for_own_chips(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Which of the options that name chips are `auto`."""
    said = ((name, given.get(name)) for name in ("have", "chips", "chip"))
    return tuple(name for name, value in said if isinstance(value, str) and value.strip().lower() == AUTO)


def with_own_chips(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given for a question, by name, with the chips of this machine where `have`, `chips` or `chip` is `auto`.
    For doors that are used on the user's own machine. Raises `UsageError` where it has none that the catalogue knows,
    or it is not clear which."""
    names = asks_for_own_chips(given)
    if not names:
        return dict(given)
    found, field = devices(), names[0]
    try:
        own = owned(found)
    except UsageError as error:
        # where options name a chip without its count the next step does too
        chips = tuple(text.partition("x")[2] if field == "chip" else text for text in error.instead)
        said = f"name it, e.g. --{field} {chips[0]}" if chips else error.hint.replace("--have", f"--{field}")
        raise UsageError(error.what, said, field=field, instead=chips) from None
    kinds = [text.partition("x")[2] for text in own.split(",")]
    if "chip" in names and len(kinds) > 1:
        what = f"this machine has several kinds of chips: {', '.join(kinds)}"
        raise UsageError(what, f"name one, e.g. --chip {kinds[0]}", field="chip", instead=tuple(kinds))
    meant = {**given, **{name: kinds[0] if name == "chip" else own for name in names}}
    if given.get("task", "local") == "local" and meant.get("host_memory", 0) is None and _apart(found):
        # what cards do not hold can lie with the host
        meant["host_memory"] = f"{(found.host.memory or 0.0) / 1e9:.1f}GB"
    return meant


def _apart(found: DeviceReport) -> bool:
    """Whether all cards have memory of their own, beside that of the host."""
    hosts = [get_chip(m.chip).host for m in found.machines if m.chip]
    return bool(found.host.memory) and all(h is not None and h.name.startswith("PCIe") for h in hosts)


def _own() -> Check:
    """What the user measured."""

    store = Store()
    try:
        runs, machines = len(store.items()), len(store.probes())
    except ChipwiseError as error:
        return Check("your evidence", False, str(error))
    return Check("your evidence", True, f"{runs} runs and {machines} machines that were measured: {store.path}")


def _count(name: str, load: Callable[[], int]) -> Check:
    try:
        return Check(name, True, f"{load()} loaded")
    except ChipwiseError as error:
        return Check(name, False, str(error))
