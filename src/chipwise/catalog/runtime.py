"""Serving software: its policies, and which chip, number format and architecture it can run.

The facts are in `data/software.toml`, each with source, date and grade. Grades are those of chips;
`datasheet` reads here "documented by the makers of the runtime: their documentation or code".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, get_args, get_type_hints

from chipwise.catalog.chip import Chip
from chipwise.catalog.published import month_of
from chipwise.catalog.runtime_spec import FIGURES as POLICY_NAMES
from chipwise.catalog.runtime_spec import KernelRow, Operator, Policies, Runtime
from chipwise.catalog.schema import read_text, read_texts, record
from chipwise.catalog.snapshot import per_snapshot
from chipwise.catalog.software import Software, all_software, shipped
from chipwise.errors import UnknownNameError, UsageError
from chipwise.units import parse_quantity
from chipwise.values import dataclass

SWITCH = {
    "reserved_bytes": "memory_base",
    "workspace_bytes": "workspace",
    "sampler_bytes": "workspace",
    "state_copies": "state_share",
}
_ONE_POOL = ("states of recurrent layers lie in one pool with the tokens", "leave it out")
_INSIDE = ("the workspace lies inside what the runtime holds back", "set reserved_bytes")
UNREAD = {
    ("reserved_bytes", "total"): (
        "the runtime takes a share of all memory and holds nothing else back",
        "set memory_share",
    ),
    ("reserved_bytes", "free_after_load"): (
        "the runtime takes a share of what weights leave and holds nothing else back",
        "set memory_share",
    ),
    ("workspace_bytes", "profiled"): (
        "the runtime measures its workspace at start",
        "set max_batched_tokens or max_sequences, which it measures with",
    ),
    ("workspace_bytes", "reserved"): _INSIDE,
    ("sampler_bytes", "reserved"): _INSIDE,
    ("state_share", 1.0): _ONE_POOL,
    ("state_copies", 1.0): _ONE_POOL,
}
"""Figures that a runtime does not read under another of its policies: why, and what to set instead."""


LOCAL = ("micro_batch_tokens", "backend")
"""Figures of runtimes that bring kernels of their own."""


@per_snapshot
def kernel_rows() -> tuple[KernelRow, ...]:
    """Whose kernels run what, in the order of the table. Raises `UsageError`."""
    table, rows = shipped(), []
    for i, entry in enumerate(table.kernels):
        rows.append(record(KernelRow, entry, f"kernel[{i}]"))
        read_texts(f"kernel[{i}].runtimes", list(rows[-1].runtimes), table.names("serves"))
    return tuple(rows)


def kernel_library(
    operator: Operator,
    runtime: str,
    generation: str,
    dtype: str = "",
    *,
    software: str = "",
    architecture: str = "",
    backend: str = "",
) -> str:
    """Whose kernels a runtime runs an operator with, on chips of a generation; "" where none is known.

    `runtime` may be one without kernels of its own (vLLM of old), or none of the catalogue: "any". `software` is a date
    or MLPerf round, "" the newest; `architecture` is the model's, "" one whose kernels everybody tunes;
    `backend` is that of a local runtime.
    """
    rows = (row for row in kernel_rows() if row.operator == operator)
    asked = (generation, dtype, month_of(software), architecture, backend)
    whose = {runtime, kernels_of(runtime)}
    return next((row.library for row in rows if any(row.fits(name, *asked) for name in whose)), "")


def kernel_era(software: str) -> str:
    """The software of a date or MLPerf round as far as kernels tell it apart: the month until which some row of kernels
    holds, "" for what no later row replaces."""
    month = month_of(software)
    ends = sorted({row.until for row in kernel_rows() if row.until and "" < month <= row.until})
    return ends[0] if ends else ""


def kernels_of(runtime: str) -> str:
    """The runtime whose kernels a runtime runs: another's, or its own."""
    known = all_software(Runtime).get(runtime)
    return (known.kernels_of if known else "") or runtime


def own_kernels(runtime: str) -> bool:
    """Whether a runtime brings kernels of its own, beside those of the measured libraries."""
    known = all_software(Runtime).get(runtime)
    return bool(known and known.backends)


def get_runtime(name: str) -> Runtime:
    """The runtime of that id or other name, case ignored. Raises `UnknownNameError`, naming the nearest."""
    runtimes = all_software(Runtime)
    if name in runtimes:
        return runtimes[name]
    named = {other.lower(): r for r in runtimes.values() for other in (r.id, *r.also)}
    if name.lower() not in named:
        raise UnknownNameError("runtime", name, runtimes)
    return named[name.lower()]


def runtimes_for(chip: Chip) -> tuple[Runtime, ...]:
    """Runtimes that run on a chip, best default first and those that users cannot launch last.

    Empty for announced chips and for chips in no row of the support matrix. What only shares models between cards and
    a processor is not among them, nor what is asked for by its name alone.
    """
    if not chip.rentable:
        return ()
    found = [
        r for r in all_software(Runtime).values() if (rule := r.rule(chip)) is not None and rule.runs and r.unasked
    ]
    return tuple(sorted(found, key=lambda r: r.access != "public"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler(Software):
    """An engine whose weights a trainer replaces while it runs, so that it samples answers in a loop of reinforcement
    learning. `parks`: it gives its memory to the trainer in between, so that both take turns on one chip."""

    capability: ClassVar[str] = "samples"

    parks: bool = False


def samplers_for(chip: Chip, named: str | None = None) -> tuple[Sampler, ...]:
    """What samples on a chip in loops of reinforcement learning, best default first; `named`: that one alone.

    Raises `UnknownNameError` for a runtime that does not exist, `UsageError` for one that takes no new weights while it
    runs, and where none is known on the chip.
    """
    every = all_software(Sampler)
    here = tuple(every[r.id] for r in runtimes_for(chip) if r.id in every)
    if named is not None and (wanted := get_runtime(named)).id not in every:
        what = f"{wanted.name} is not known to take new weights while it runs"
        raise UsageError(what, f"--runtime {' or '.join(s.id for s in here or every.values())}", field="runtime")
    if named is not None:
        return (every[get_runtime(named).id],)
    if not here:
        able = ", ".join(every)
        raise UsageError(
            f"{chip.id}: no software is known that samples there with weights of a trainer", f"known: {able}"
        )
    return here


def _room_made(policies: Policies, text: str) -> str:
    """What becomes of a sequence that has to make room. Raises `UsageError` where none ever has to."""
    if policies.kv_reservation != "growing":
        hint = "room for its whole output is kept for every request"
        raise UsageError("policy preemption changes nothing here", hint)
    return read_text("policy preemption", text, get_args(get_type_hints(Policies)["preemption"]))


def _chosen(policies: Policies, name: str, text: str, backends: Sequence[str]) -> str:
    """A policy that is one of several words, where it can be set to this one; "" for others."""
    if name == "backend" and backends:
        if text not in backends:
            raise UnknownNameError("backend", text, backends, f"on this chip one of {', '.join(backends)}")
        return text
    if name == "preemption":
        return _room_made(policies, text)
    return text if (name, text) == ("tower", "always") else ""


def override(policies: Policies, changes: Mapping[str, str], backends: Sequence[str] = ()) -> Policies:
    """Policies with figures replaced by the user's text: `{"memory_share": "0.95", "context_bytes": "1 GiB"}`;
    `backends` are those that the runtime has for the chip.

    Raises `UnknownNameError` for a policy or backend that does not exist, `UsageError` for a value that is none
    and for a figure that the runtime does not read.
    """
    values: dict[str, object] = {}
    for name, text in changes.items():
        if name not in POLICY_NAMES:
            numbers = (n for n in POLICY_NAMES if not isinstance(getattr(policies, n), str))
            raise UnknownNameError("policy", name, POLICY_NAMES, f"one of {', '.join(numbers)}")
        old = getattr(policies, name)
        if chosen := _chosen(policies, name, text, backends):
            values[name] = chosen
            continue
        if name in LOCAL and not old:
            raise UsageError(
                f"policy {name} changes nothing here", "it is for local runtimes: llama.cpp, MLX, ExLlamaV2"
            )
        if isinstance(old, str):
            raise UsageError(f"policy {name} is '{old}' and cannot be set", "choose another --runtime")
        if (unread := UNREAD.get((name, getattr(policies, SWITCH.get(name, name))))) is not None:
            raise UsageError(f"policy {name} changes nothing here: {unread[0]}", unread[1])
        if name.endswith("_bytes"):
            values[name] = parse_quantity(text, "B", name)
        elif isinstance(old, int):
            least = min(old, 1)  # what may be none is none by default
            values[name] = int(parse_quantity(text, "", name, low=least, high=10_000_000))
        else:
            values[name] = parse_quantity(text, "", name, high=1.0)
    return replace(policies, **values)  # type: ignore[arg-type]
