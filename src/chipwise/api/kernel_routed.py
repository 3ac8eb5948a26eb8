"""The price of routed experts on one rank: grouped products over the experts that tokens hit."""

from __future__ import annotations

import numpy as np

from chipwise.api.kernel_price import RUNTIME, Priced, figure_of, measured_row, model_of, row_of
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.runtime import kernel_library
from chipwise.cost.anatomy import Anatomy, Level
from chipwise.cost.device import Device
from chipwise.cost.simt.experts import GROUP_TILES, ExpertParameters, experts
from chipwise.cost.simt.family import ACTIVATION_BYTES, SimtParameters, dtype_label
from chipwise.cost.simt.rates import Rates
from chipwise.cost.simt.routing import Routing, balanced, power_law, uniform
from chipwise.cost.time import time
from chipwise.units import scalar
from chipwise.workload.formats import Format
from chipwise.workload.op import Op

__all__ = ["ROUTINGS", "experts_op", "price_experts", "routing_of"]

# How tokens are spread over experts: name in the kernel table.
ROUTINGS = {"balanced": "balanced", "random": "unspecified", "skewed": "power_law_1.2"}
_EXPONENT = 1.2
_CROWDING = 0.7
_DTYPE = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "int4": "int4_wo", "mxfp4": "w4a16_mxfp4"}


def routing_of(name: str, d: dict[str, float], crowding: float = _CROWDING) -> Routing:
    """Experts and rows of the busiest rank: every expert alike, tokens at random, or a power law of 1.2."""
    where = (d["tokens"], d["experts"], d["top-k"], d["ranks"])
    if name == "balanced":
        return balanced(*where)
    if name == "random":
        return uniform(*where)
    return power_law(*where, exponent=_EXPONENT, crowding=crowding)


def experts_op(d: dict[str, float], weight: Format, activation: Format, routing: Routing) -> Op:
    """Gated experts of one rank: gate, up and down of `routing.distinct` experts over `routing.rows` rows."""
    hidden, inner, hit, rows = d["hidden"], d["inter"], routing.distinct, routing.rows
    return Op(
        kind="experts",
        name="experts",
        compute=activation.compute,
        weight=weight.name,
        flops=2.0 * rows * hidden * inner * 3.0,
        weight_bytes=hit * 3.0 * hidden * inner * weight.bits / 8.0,
        activation_bytes=rows * (2.0 * hidden + 3.0 * inner) * 2.0,
        launches=4.0,
        dims={
            "tokens": d["tokens"],
            "top_k": d["top-k"],
            "experts": d["experts"],
            "local_experts": d["experts"] / d["ranks"],
            "hidden": hidden,
            "inner": inner,
            "matrices": 3.0,
        },
    )


def price_experts(
    op: Op, d: dict[str, float], spread_by: str, dtype: str, chip: Chip, device: Device, numbers: Parameters
) -> Priced:
    """Routed experts by the formulas of the chip's family; on GPUs with the tiles of grouped kernels, whose rows
    are those of the busiest rank. Other families spread tokens at random, whatever `spread_by` says."""
    model = model_of(op, chip, numbers)
    routing = routing_of(spread_by, d)
    spread, basis = 0.6, "modelled"
    notes: tuple[str, ...] = ()
    if isinstance(model, SimtParameters):
        label = dtype_label(op)
        p = model.pick(ExpertParameters, "simt.experts", dtype=label)
        narrow = ACTIVATION_BYTES.get(label, 1.0)
        rates = Rates.at(device, device.matrix[op.compute])
        each = scalar(op.weight_bytes) / (scalar(routing.distinct) * 3.0 * d["hidden"] * d["inter"])
        cost = experts(routing, d["tokens"], d["hidden"], d["inter"], d["experts"], each, narrow, rates, p)
        library = kernel_library("experts", RUNTIME, chip.generation, label)
        row = row_of(chip, op="moe", dtype=_DTYPE.get(dtype, dtype), kernel=library, framework=RUNTIME,
                     timing="cuda-graph replay", tokens=d["tokens"], hidden=d["hidden"], inter=d["inter"],
                     experts=d["experts"], topk=d["top-k"], tp=1.0, ep=d["ranks"],
                     distribution=ROUTINGS[spread_by])  # fmt: skip
        spread, basis = measured_row(row, chip, numbers)
        anatomy = _anatomy(op, d, routing, device, scalar(rates.units), library)
    else:
        cost = time(op, device, model)
        anatomy = _anatomy(op, d, routing, device, None, "")
        if spread_by != "random":
            notes = ("this family's formula spreads tokens at random",)
    exposed = {name: scalar(v) for name, v in cost.exposed.items() if scalar(v) > 0.0}
    return Priced(
        time_s=figure_of(sum(exposed.values()), spread, basis),
        exposed_s=exposed,
        hidden_s={name: scalar(v) for name, v in cost.hidden.items() if scalar(v) > 0.0},
        bound=max(exposed, key=lambda name: exposed[name]),
        anatomy=anatomy,
        notes=notes,
    )


def _anatomy(
    op: Op, d: dict[str, float], routing: Routing, device: Device, units: float | None, library: str
) -> Anatomy:
    hit, rows, local = scalar(routing.distinct), scalar(routing.rows), d["experts"] / d["ranks"]
    even = d["tokens"] * d["top-k"] / d["ranks"]
    figures = {"experts_hit": hit, "local_experts": local, "rows": rows, "rows_per_expert": rows / hit,
               "imbalance": rows / even}  # fmt: skip
    text = f"{hit:,.1f} of {local:,.0f} experts hit, {rows:,.0f} rows, {rows / hit:,.1f} each"
    if d["ranks"] > 1:
        text = f"{text}; the busiest of {d['ranks']:.0f} ranks has {rows / even:.2f} times the mean"
    if units is not None:
        down = next((bm for bm, _ in GROUP_TILES if bm >= rows / hit), GROUP_TILES[-1][0])
        tiles = max(hit, rows / down) * (np.ceil(2.0 * d["inter"] / 128.0) + np.ceil(d["hidden"] / 128.0))
        figures |= {"tile_rows": float(down), "tiles": float(tiles), "waves": float(tiles / units)}
        text = (
            f"{text}; {library} kernels: some {tiles:,.0f} tiles of {down} x 128 on {units:.0f} units, "
            f"{rows / hit / (np.ceil(rows / hit / down) * down):.0%} of their rows filled"
        )
    memory = scalar(device.memory_bytes_per_s)
    levels = (
        Level(
            "activations",
            scalar(op.activation_bytes),
            memory,
            "rows in, gate and up, rows out, as far as off chip",
        ),
        Level("weights", scalar(op.weight_bytes), memory, "experts that are hit, each once"),
    )
    return Anatomy("unit", figures, text, levels)
