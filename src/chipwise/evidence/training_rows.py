"""Rows of training measurements -> what a step is computed from, with the defaults that blanks take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from chipwise.calibrate.fit_training import Runs
from chipwise.calibrate.training_rates import shared_by
from chipwise.evidence.rows import Row
from chipwise.evidence.training_case import Case
from chipwise.evidence.training_layout import row_spread
from chipwise.evidence.training_machine import at_jean_zay, row_chip, row_machine
from chipwise.evidence.training_measured import measured_of, row_weights
from chipwise.evidence.training_models import number, row_network
from chipwise.evidence.training_stack import row_stack
from chipwise.predict.training.values import Recipe, Spread, Transformer

__all__ = ["read_case", "stack_cases"]

# Model, chip and precision of the recipes of Megatron-Bridge that capture routing in CUDA graphs (cuda_graph_scope of
# scripts/performance/configs/*/*_workload_base_configs.py, 26.02 to 26.06).
CAPTURED = (
    r"qwen3.235b.* gb[23]00",
    r"qwen3.30b.* (g?b[23]00|h100\S* bf16)",
    r"deepseek.?v3.* (gb200|gb300\S* bf16)",
    r"gpt.?oss.* g?b300",
    r"nemotron.?3.* (gb[23]00|b300)",
)


def read_case(row: Row) -> Case:
    """One row of `training` or `mlperf_training`. Raises `UsageError` saying what it lacks."""
    network, notes = row_network(row)
    chip, exact = row_chip(row)
    generation = chip.generation
    stack = row_stack(row, generation)
    machine = row_machine(row, chip, stack.dtype, exact=exact, cores=stack.cores)
    spread, assumed = row_spread(row, network, stack, machine.cluster, machine.devices)
    labels = {
        "dtype": stack.dtype,
        "kind": stack.kind,
        "stack": stack.name,
        "recipe": stack.flavour,
        "release": stack.release,
        "generation": generation,
        **shared_by(stack.dtype, stack.name, generation),
        "vendor": chip.vendor,
        "chip": chip.id if exact else f"near-{chip.id}",
        "moe": _routing(row, network),
        "era": "late" if stack.release >= "26.06" and stack.release[0] == "2" else "early",
        "dims": "guessed" if notes and not number(row, "hidden") else "known",
        "site": stack.site,
    }
    return Case(
        row_id=row.get("row_id", ""),
        network=network,
        spread=spread,
        cluster=machine.cluster,
        recipe=_recipe(row, stack.recipe, spread),
        labels=labels,
        devices_per_chip=machine.per_chip,
        notes=stack.notes,
        guessed=(*notes, *machine.guessed, *assumed),
    )


def stack_cases(cases: Sequence[Case], rows: Sequence[Row] = ()) -> Runs:
    """Columns of cases; with their rows, what was measured too."""
    parts: dict[str, Any] = {}
    for name in ("network", "spread", "cluster", "recipe"):
        values = [getattr(c, name) for c in cases]
        columns = {f.name: np.array([float(getattr(v, f.name)) for v in values]) for f in fields(values[0])}
        parts[name] = replace(values[0], **columns)
    labels = {key: np.array([c.labels[key] for c in cases]) for key in cases[0].labels}
    unknown = np.full(len(cases), np.nan)
    measured = [measured_of(r, c) for r, c in zip(rows, cases, strict=True)] if rows else []
    return Runs(
        labels=labels,
        seconds=np.array([m[0] for m in measured]) if rows else unknown,
        memory_bytes=np.array([m[1] for m in measured]) if rows else unknown,
        weight=row_weights(rows, cases) if rows else np.ones(len(cases)),
        **parts,
    )


def _recipe(row: Row, recipe: Recipe, s: Spread) -> Recipe:
    """DeepSpeed gathers weights in one ring over all ranks, each over its own NIC; on Jean Zay, whose network is known
    by what such a ring reaches, that is in the number already."""
    deepspeed = "deepspeed" in row.get("framework", "").lower() and not at_jean_zay(row)
    alone = float(s.zero) >= 3 and deepspeed
    return replace(recipe, flat=1.0) if alone else recipe


def _routing(row: Row, t: Transformer) -> str:
    """Dense, experts, experts whose routing is captured in CUDA graphs, or that drop tokens beyond their capacity."""
    if not t.moe_share:
        return "dense"
    if "tokendrop" in row.get("model", ""):
        return "dropped"
    release = row.get("framework", "").partition("Megatron-Bridge ")[2]
    names = f"{row.get('model', '')} {row.get('chip', '')} {row.get('precision', '')}"
    captured = release >= "25.11" and any(re.search(p, names, re.IGNORECASE) for p in CAPTURED)
    return "captured" if captured else "moe"
