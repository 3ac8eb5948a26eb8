"""A machine as it was found: its devices in the catalogue's terms, what differs, and what to plan with."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.measure.machine import FoundMachine, MachineReport
from chipwise.report.records import SCHEMA_VERSION
from chipwise.report.table import Column, Table


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


def machine_view(report: DeviceReport) -> tuple[Table, ...]:
    """The devices, and below them host, links, software, problems and what to plan with."""
    host = report.host
    about = [
        host.cpu,
        f"{host.sockets} socket{'s' if host.sockets != 1 else ''}" if host.sockets else "",
        f"{host.cores} cores" if host.cores else "",
        ", ".join(host.simd),
        f"{host.memory / 1e9:.1f} GB of memory" if host.memory else "",
        f"{host.numa_nodes} NUMA nodes" if host.numa_nodes and host.numa_nodes > 1 else "",
        f"in {host.shared}" if host.shared else "",
    ]
    said = "; ".join(part for part in about if part)
    foot = [
        f"host: {said}" if said else "",
        f"links: {report.links}" if report.links else "",
        f"software: {', '.join(f'{name} {v}' for name, v in report.software.items())}"
        if report.software
        else "",
        *report.notes,
        *report.problems,
        f"read: {', '.join(report.read)}" if report.read else "",
        _next(report),
    ]
    head = () if report.machines else ("No device was found.",)
    return (Table.of(report.machines, COLUMNS, head, [line for line in foot if line]),)


def _next(report: DeviceReport) -> str:
    """The command that plans with it, as far as it is clear."""
    if report.have:
        return f"next: chipwise plan meta-llama/Llama-3.1-8B --have {report.have}"
    for machine in report.machines:
        if machine.ambiguous:
            return (
                f"next: name the chip, e.g. chipwise plan MODEL --have {machine.count}x{machine.ambiguous[0]}"
            )
    for machine in report.machines:
        named = machine.chip or (machine.nearest[0] if machine.nearest else None)
        if named:
            how = "plan with whole GPUs" if machine.chip else "plan with the nearest chip"
            return f"next: {how}: chipwise plan MODEL --have {machine.count}x{named}"
    return "next: name the chips, e.g. chipwise plan MODEL --have 8xh100"
