"""The price of what moves or reduces rows: norms, softmax, element-wise work, and copies."""

from __future__ import annotations

from chipwise.api.kernel_price import Priced, figure_of, measured_row, model_of, row_of
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.cost.anatomy import Anatomy, Level
from chipwise.cost.copies import COPIES, PRIOR_LOG_SPREAD, host_copy, memory_copy
from chipwise.cost.cost import Cost
from chipwise.cost.device import Device
from chipwise.cost.simt.family import SimtParameters
from chipwise.cost.simt.pointwise import PointwiseParameters, pointwise
from chipwise.cost.simt.rates import Rates
from chipwise.cost.time import time
from chipwise.units import scalar
from chipwise.workload.op import Op

__all__ = ["ROW_KINDS", "WAYS", "price_copy", "price_rows"]

# Name of the work: reads and writes of a value, operations on it, operator and kernel of the kernel table, and the
# group of parameters of GPUs.
ROW_KINDS = {
    "norm": (2.0, 4.0, "layernorm", "input_layernorm", "simt.norm"),
    "softmax": (2.0, 5.0, "softmax", "softmax", "simt.softmax"),
    "add": (3.0, 1.0, "elementwise", "add", "simt.elementwise"),
    "gated": (3.0, 6.0, "elementwise", "mlp_act", "simt.elementwise"),
    "gelu": (2.0, 8.0, "elementwise", "gelu", "simt.elementwise"),
    "quantise": (1.5, 2.0, "elementwise", "static_scaled_fp8_quant", "simt.elementwise"),
}
WAYS = ("to-chip", "to-host", "on-chip")
_GRAPH = "cuda-graph replay"


def price_rows(
    kind: str, op: Op, rows: float, width: float, chip: Chip, device: Device, numbers: Parameters
) -> Priced:
    """One kernel over `rows` rows of `width` values, in a hot loop where the chip has kernels of its own."""
    _, _, name, kernel, group = ROW_KINDS[kind]
    tier = "HBM" if chip.memory.kind == "hbm" else "memory"
    note = "each value once, less what the cache still holds"
    levels = [Level(tier, scalar(op.bytes), scalar(device.memory_bytes_per_s), note)]
    spread, basis = PRIOR_LOG_SPREAD * 2.0, "modelled"
    if chip.family == "simt":
        table = row_of(chip, op=name, kernel=kernel, framework="vidur(sarathi-serve)", dtype="bfloat16",
                       timing=_GRAPH, m=rows, n=width, bytes=scalar(op.bytes))  # fmt: skip
        spread, basis = measured_row(table, chip, numbers)
        model = model_of(op, chip, numbers)
        assert isinstance(model, SimtParameters)
        library = {"simt.norm": "layernorm", "simt.softmax": "softmax"}.get(group, kernel)
        p = model.pick(PointwiseParameters, group, library=library, runtime="profiled")
        rates = Rates.at(device, device.matrix["bf16"])
        cost = pointwise(op.bytes, rates, p, resident=1.0)
        through = scalar(p.load_bytes_per_clock) * scalar(rates.clock_hz) * scalar(rates.units)
        levels.insert(
            0,
            Level(
                "L2 to units", scalar(op.bytes) * scalar(p.passes), through, "reads and writes of the kernel"
            ),
        )
        text = f"{rows:,.0f} rows of {width:,.0f} values over {scalar(rates.units):.0f} units"
    else:
        cost = time(op, device, numbers.efficiency(chip.family, "any"))
        text = f"{rows:,.0f} rows of {width:,.0f} values through the vector units"
    return _priced(cost, spread, basis, Anatomy("unit", {"rows": rows, "width": width}, text, tuple(levels)))


def price_copy(way: str, num_bytes: float, chip: Chip, device: Device) -> Priced | None:
    """A copy over the host's link, or inside the chip's memory; None where no host link is published."""
    if way == "on-chip":
        cost = memory_copy(num_bytes, device)
        level = Level(
            "memory", 2.0 * num_bytes, scalar(device.memory_bytes_per_s), "each byte read and written"
        )
        text = "read and written by all units, or by a copy engine"
        return _priced(cost, PRIOR_LOG_SPREAD, "modelled", Anatomy("memory", {}, text, (level,)))
    link = chip.host
    if link is None or link.bytes_per_s is None:
        return None
    # one device of a package with several has its share of the link
    rate = link.bytes_per_s / chip.devices_per_package
    cost = host_copy(num_bytes, rate)
    text = f"{link.name}, one direction, {scalar(COPIES.host_share):.0%} of it for data, from pinned memory"
    level = Level("host link", num_bytes, rate, "each byte once")
    return _priced(cost, PRIOR_LOG_SPREAD, "modelled", Anatomy("link", {"bytes_per_s": rate}, text, (level,)))


def _priced(cost: Cost, spread: float, basis: str, anatomy: Anatomy) -> Priced:
    exposed = {name: scalar(v) for name, v in cost.exposed.items() if scalar(v) > 0.0}
    return Priced(
        time_s=figure_of(sum(exposed.values()), spread, basis),
        exposed_s=exposed,
        hidden_s={name: scalar(v) for name, v in cost.hidden.items() if scalar(v) > 0.0},
        bound=max(exposed, key=lambda name: exposed[name]),
        anatomy=anatomy,
    )
