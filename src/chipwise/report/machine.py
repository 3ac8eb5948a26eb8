"""A machine as it was found: its devices in the catalogue's terms, what differs, and what to plan with."""

from __future__ import annotations

from chipwise.measure.machine import FoundMachine, MachineReport
from chipwise.measure.prints import PrintedHost
from chipwise.report.records import SCHEMA_VERSION
from chipwise.report.table import Column, Table
from chipwise.values import dataclass


@dataclass(frozen=True, slots=True)
class DeviceReport(MachineReport):
    """The answer of `doctor --devices`."""

    schema_version: str = SCHEMA_VERSION


def _chip(machine: FoundMachine) -> str | None:
    return machine.variant if machine.chip else None


def _remarks(machine: FoundMachine) -> str | None:
    """What differs, or why no chip stands there."""
    said = list(machine.differs)
    if machine.ambiguous:
        said.insert(0, f"one of {', '.join(machine.ambiguous)}{f': {machine.why}' if machine.why else ''}")
    elif machine.chip is None:
        near = f"; nearest: {', '.join(machine.nearest)}" if machine.nearest else ""
        said.insert(0, f"{machine.why}{near}")
    return "; ".join(said) or None


COLUMNS = (
    Column("count", "count", right=True),
    Column("chip", _chip),
    Column("as printed", lambda m: m.name or None),
    Column("memory", "memory_gb", lambda gb: f"{gb:.1f} GB", right=True),
    Column("what differs", _remarks, prose=True),
)


def about(host: PrintedHost) -> str:
    """A host in words, of what is known of it."""
    several = "s" if host.sockets != 1 else ""
    known = {
        f"{host.cpu}": host.cpu,
        f"{host.sockets} socket{several}": host.sockets,
        f"{host.cores} cores": host.cores,
        ", ".join(host.simd): host.simd,
        f"{(host.memory or 0.0) / 1e9:.1f} GB of memory": host.memory,
        f"{host.numa_nodes} NUMA nodes": (host.numa_nodes or 0) > 1,
        f"in {host.shared}": host.shared,
    }
    return "; ".join(words for words, given in known.items() if given)


def machine_view(report: DeviceReport) -> tuple[Table, ...]:
    """The devices, and below them host, links, software, problems and what to plan with."""

    def line(head: str, text: str | None) -> str:
        return f"{head}: {text}" if text else ""

    foot = [
        line("host", about(report.host)),
        line("links", report.links),
        line("software", ", ".join(f"{name} {v}" for name, v in report.software.items())),
        *report.notes,
        *report.problems,
        line("read", ", ".join(report.read)),
        _next(report),
    ]
    head = () if report.machines else ("No device was found.",)
    return (Table.of(report.machines, COLUMNS, head, list(filter(None, foot))),)


def _next(report: DeviceReport) -> str:
    """The command that plans with it, as far as it is clear."""
    if report.have:
        return f"next: chipwise plan meta-llama/Llama-3.1-8B --have {report.have}"
    for machine in report.machines:
        if machine.ambiguous:
            return f"next: name the chip, e.g. chipwise plan MODEL --have {machine.count}x{machine.ambiguous[0]}"
    for machine in report.machines:
        named = machine.chip or (machine.nearest[0] if machine.nearest else None)
        if named:
            how = "plan with whole GPUs" if machine.chip else "plan with the nearest chip"
            return f"next: {how}: chipwise plan MODEL --have {machine.count}x{named}"
    return "next: name the chips, e.g. chipwise plan MODEL --have 8xh100"
