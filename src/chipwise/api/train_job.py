"""The job of a training run on one chip: what is computed, with which numbers, on what, by which software."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from chipwise.api.train_chips import check_chip
from chipwise.api.train_input import PRECISIONS, Ask
from chipwise.calibrate.fit_training import training_effects
from chipwise.calibrate.parameters import Parameters
from chipwise.calibrate.training_rates import labels_of, rates
from chipwise.catalog.chip import Chip
from chipwise.catalog.system import System, systems_for, with_own_links
from chipwise.errors import UnknownNameError
from chipwise.parallel.network import ALIKE
from chipwise.predict.training.cluster import Wired, cluster, on_system
from chipwise.predict.training.memory import MemoryRates
from chipwise.predict.training.values import Rates, Recipe, Transformer
from chipwise.search.training import Job
from chipwise.search.training_space import SCHEDULES
from chipwise.units import parse_quantity
from chipwise.workload.formats import get_format

__all__ = ["job_of", "on_network"]

# Pipeline schedules of the usual software: Megatron-Core, Primus, MaxText (circular pipelines), torchtitan, NxD.
SCHEDULES_OF = {
    "nemo": ("1f1b", "interleaved"),
    "rocm": ("1f1b", "interleaved", "zero-bubble", "zb-v"),
    "xla": ("gpipe", "interleaved"),
    "neuron": ("1f1b", "interleaved"),
    "habana": ("1f1b",),
}
# Figures of a network that the user may know better: unit, least, most.
NETWORK = {"nic": ("B/s", 1e6, 1e13), "oversubscription": ("", 1.0, 100.0), "leaf": ("", 1.0, 1e6)}
PACKED = "nf4_double"  # 4 bits whose scales are quantised too (Dettmers et al., 2023)


def job_of(
    chip: Chip, network: Transformer, ask: Ask, numbers: Parameters
) -> tuple[Job, System | None, str, str]:
    """What a chip computes, with which numbers, on what, by which software, in which type: chips without bf16 take
    fp16. Raises `UsageError` for a chip that cannot."""
    check_chip(chip, ask)
    dtype, flavour, operand = PRECISIONS[ask.precision]
    system = _system(chip)
    half = "fp16" if "fp16" in chip.matrix and "bf16" not in chip.matrix else "bf16"
    machine = on_system(chip, system, dtype, half) if system else cluster(chip, dtype, half=half)
    stack, kind = _stack(chip)
    labels = labels_of(
        dtype,
        kind,
        stack,
        chip.generation,
        chip.software_id,
        recipe=flavour,
        moe=bool(network.moe_share),
    )
    times, memory = training_effects(numbers)
    one = {k: float(np.ravel(v)[0]) for k, v in times.values(labels).items()}
    held = {k: float(np.ravel(v)[0]) for k, v in memory.values(labels).items()}
    packed = get_format(PACKED).mean_bits / 8.0
    recipe = Recipe(
        operand_bytes=operand,
        fused=1.0 if chip.scaleup and "bridge" not in chip.scaleup.name else 0.0,
        compiled=1.0 if kind == "xla" else 0.0,
        regather=0.0 if kind == "xla" else 1.0,
        frozen_bytes=packed if ask.method == "qlora" else 2.0 if dtype == "16" else 1.0,
    )
    made: Rates = rates(one, numbers.links(chip))
    job = Job(
        network,
        machine,
        recipe,
        made,
        MemoryRates(**held),
        ask.batch,
        ask.seq,
        ask.adapter,
        SCHEDULES_OF.get(stack, tuple(SCHEDULES)),
        system is not None and system.unified,
    )
    return job, system, stack, half if ask.precision == "bf16" else ask.precision


def _stack(chip: Chip) -> tuple[str, str]:
    """The usual software of a vendor's chips, as the fit names it."""
    name = chip.software_id
    if chip.kind == "tpu":
        return "xla", "xla"
    if name.startswith(("trainium", "inferentia")):
        return "neuron", "xla"
    if name.startswith("gaudi"):
        return "habana", "xla"
    return {"nvidia": ("nemo", "fused"), "amd": ("rocm", "fused")}.get(chip.vendor, ("other", "fsdp"))


def on_network(job: Job, given: Mapping[str, str]) -> Job:
    """The job on the user's own network: `nic` bytes/s of a chip, one direction; `oversubscription` of leaf switches
    (links down over links up) and `leaf`, the hosts under one. Raises `UsageError`, `UnknownNameError`."""
    for name in given:
        if name not in NETWORK:
            raise UnknownNameError("figure of the network", name, NETWORK, f"one of {', '.join(NETWORK)}")
    read = {name: _read(name, text) for name, text in given.items()}
    c = job.cluster
    known = c.wiring if isinstance(c, Wired) else ALIKE
    wiring = replace(known, **{name: v for name, v in read.items() if name != "nic"})
    nic = read.get("nic", c.nic_bytes_per_s)
    return replace(job, cluster=Wired.of(replace(c, nic_bytes_per_s=nic), wiring))


def _read(name: str, text: str) -> float:
    unit, low, high = NETWORK[name]
    return parse_quantity(text, unit, name, low=low, high=high)


def _system(chip: Chip) -> System | None:
    """Where a chip trains: the first of its systems that has a network, else the one that joins most."""
    systems = [with_own_links(s, chip) for s in systems_for(chip.software_id) if not s.mixed]
    joined = (s for s in systems if s.scaleout is not None and s.scaleout.bytes_per_s is not None)
    return next(joined, max(systems, key=lambda s: s.chips, default=None))
