"""`kernel`: one operator on one or several chips, with everything that leads to its time.

An answer is made in three steps: options become a question (`calibrate.kernel_questions`), the question a price
(`cost.price`, as served models and tables of measured kernels are priced), the price a record beside the roofline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from chipwise.api.kernel_network import Joined, joined, limit
from chipwise.api.loaded import find_chip
from chipwise.api.operators import ELEMENTWISE, LAUNCHES
from chipwise.api.probed import measured_time
from chipwise.calibrate.kernel_questions import (
    DEFAULTS,
    DTYPES,
    EXCHANGES,
    FABRICS,
    ROUTINGS,
    exponent_of,
    op_of,
    questions,
    run_of,
)
from chipwise.calibrate.kernel_rows import KernelRows, exchange_tiers, groups_of, known
from chipwise.calibrate.kernel_table import TIMED_ALONE
from chipwise.calibrate.kernels import price_measured
from chipwise.calibrate.parameter import Z80
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.runtime import get_runtime, runtimes_for
from chipwise.cost import dataflow
from chipwise.cost.anatomy import Anatomy, AnatomyLevel, cpu_anatomy, dataflow_anatomy, gpu_anatomy, systolic_anatomy
from chipwise.cost.copies import COPIES, PRIOR_LOG_SPREAD, WAYS, host_copy, memory_copy
from chipwise.cost.cost import Cost
from chipwise.cost.cpu import PRIOR_LOG_SPREAD as CPU_LOG_SPREAD
from chipwise.cost.cpu import CpuModel
from chipwise.cost.dataflow import DataflowModel, Fabric
from chipwise.cost.device import Device
from chipwise.cost.price import CostParameters, narrow, price
from chipwise.cost.roofline import PEAKS
from chipwise.cost.simt.experts import GROUP_TILES
from chipwise.cost.simt.family import SimtParameters, dtype_label
from chipwise.cost.simt.gemm import GemmParameters
from chipwise.cost.simt.rates import Rates
from chipwise.cost.systolic import SystolicModel, im2col
from chipwise.errors import InfeasibleError, UnknownNameError, UsageError, check_known
from chipwise.parallel.collective import Kind, Traffic, exchange, traffic, wire_bytes
from chipwise.parallel.overlap import behind, stolen_share
from chipwise.report.kernel import KernelRecord, KernelReport, LevelRecord
from chipwise.report.records import Figure, RefusalRecord
from chipwise.units import format_bytes, format_seconds, scalar
from chipwise.values import dataclass
from chipwise.workload import op as ops
from chipwise.workload.op import Op

Asked = dict[str, NDArray[Any]]
Dims = dict[str, float]

RUNTIME = str(DEFAULTS["runtime"])
WIDE = 0.6  # one standard deviation of log(time) where nothing like it was measured
LARGEST = 1_000_000_000
ASSUMED = (
    "weights and caches come from main memory, activations are on chip as far as they fit and the chip keeps them",
    "GPUs: kernels of vLLM, replayed from a graph; dataflow chips: weights in SRAM as far as they fit",
)
UNHELD = "the weights outgrow its SRAM, and it has no second memory"

# Kernels of the tables that stand for work on rows: library, and the runtime whose profile has it.
_ROW_KERNELS = {
    "norm": "layernorm",
    "softmax": "softmax",
    "add": "add",
    "gated": "mlp_act",
    "gelu": "gelu",
    "quantise": "static_scaled_fp8_quant",
}
_PROFILED = "profiled"
_EXPERT_EXCHANGE = "expert_exchange"
_MEASURED_EXCHANGES = tuple(kind for kind in EXCHANGES if kind not in ("broadcast", _EXPERT_EXCHANGE))
_AS_MEASURED = ("runtime", "library", "fabric", "domain", "algorithm")
_SPELLINGS = {name.replace("_", ""): name for name in EXCHANGES}


@dataclass(frozen=True, slots=True)
class _Asking:
    """An operator of the verb: its words and sizes, the question that it is, and what it assumes."""

    what: str
    dims: Dims
    dtype: str
    question: dict[str, Any]
    assumed: tuple[str, ...] = ASSUMED


@dataclass(frozen=True, slots=True)
class _Priced:
    """A time with its parts; of exchanges the `link` that limits them, and its bytes/s."""

    time_s: Figure
    exposed_s: dict[str, float]
    hidden_s: dict[str, float]
    bound: str
    anatomy: Anatomy
    notes: tuple[str, ...] = ()
    link_bytes_per_s: float = 0.0
    link: str = "fabric"


class OperatorAsked(Protocol):
    """One operator on some chips, as a question has it."""

    values: Mapping[str, Any]

    @property
    def op(self) -> str:
        """The operator."""

    def options(self) -> dict[str, Any]:
        """Its options that were given."""


def answer(request: OperatorAsked, numbers: Parameters | None = None) -> KernelReport:
    """The operator on each chip that can be priced.

    Raises `UsageError` for sizes that are missing, strange or none, `UnknownNameError` for an unknown chip, type,
    runtime or kind, `InfeasibleError` where no chip can be priced.
    """
    given, known_numbers = request.options(), numbers or shipped_parameters()
    named, changes = request.values["chips"], request.values["set_"] or {}
    if "bytes_" in given:
        given["bytes_"] = request.values["bytes_"]
    if (launch := given.get("launch")) is not None and launch not in LAUNCHES:
        raise UnknownNameError("launch", launch, LAUNCHES, f"one of {', '.join(LAUNCHES)}")
    if (runtime := given.get("runtime")) is not None:
        given["runtime"] = low if (low := runtime.lower()) in TIMED_ALONE else get_runtime(runtime).id
    if request.op == "collective":
        return _exchanges(named, given, changes, known_numbers)
    if request.op == "copy":
        return _copies(named, given, changes)
    asking = _ASKING[request.op](given)
    kernels: list[KernelRecord] = []
    refused: list[RefusalRecord] = []
    lessons: tuple[str, ...] = ()
    for chip in chips_of(named, changes):
        asked = _question(asking, given, chip)
        device = Device.of(chip)
        op = op_of(asked, _crowding(known_numbers))
        reason = _unpriced(op, chip, device)
        if reason is not None:
            refused.append(reason)
            continue
        priced = _price(asked, op, chip, device, known_numbers)
        kernels.append(_record(priced, op, chip, device))
        lessons = _lessons(kernels, op)
    return _report(asking.what, asking.dims, asking.dtype, kernels, refused, lessons, asking.assumed)


def chips_of(names: Sequence[str], changes: Mapping[str, str] | None) -> list[Chip]:
    """The chips of that name, each once. Raises `UsageError` for none, `UnknownNameError` for an unknown one."""
    if not names:
        raise UsageError("--chip: no chip", "name one or several, separated by commas")
    return [find_chip(name, changes) for name in dict.fromkeys(names)]


# Options -> question, one function per operator.


def _gemm(given: Mapping[str, Any]) -> _Asking:
    d = _sizes(given, "m", "n", "k", batch=1)
    batch = int(d["batch"])
    times = f"{batch:,} x " if batch > 1 else ""
    what = f"{times}C[{d['m']:,.0f}, {d['n']:,.0f}] = A[{d['m']:,.0f}, {d['k']:,.0f}] x W[{d['k']:,.0f}, {d['n']:,.0f}]"
    flags = {name: float(given.get(name, False)) for name in ("rotating", "quantised", "fetched")}
    dtype = _dtype(given)
    return _Asking(what, d, dtype, {"op": "gemm", "dtype": dtype, **d, **flags})


def _conv(given: Mapping[str, Any]) -> _Asking:
    """A square convolution as the product that it unfolds to: rows are output pixels, columns filters."""
    d = _sizes(given, "size", "channels", "filters", kernel=3, stride=1, images=1)
    pad = int(given.get("pad", 1))
    kernel, size = d["kernel"], d["size"]
    if not 0 <= pad <= LARGEST or kernel > size + 2 * pad:
        raise UsageError(f"a kernel of {kernel:.0f} does not fit an image of {size:.0f} padded by {pad}")
    product = im2col(
        size, size, kernel, kernel, d["channels"], d["filters"], d["stride"], d["stride"],
        pad_h=float(pad), pad_w=float(pad), images=d["images"],
    )  # fmt: skip
    unfolded = {"m": float(product.m), "n": float(product.n), "k": float(product.k)}
    what = f"{d['images']:,.0f} x {d['channels']:,.0f} x {size:,.0f} x {size:,.0f}, {d['filters']:,.0f} filters of"
    what = f"convolution of {what} {kernel:.0f} x {kernel:.0f}, stride {d['stride']:.0f}, pad {pad}"
    dtype = _dtype(given)
    return _Asking(what, d | {"pad": float(pad)} | unfolded, dtype, {"op": "gemm", "dtype": dtype, **unfolded})


def _attention(given: Mapping[str, Any]) -> _Asking:
    kv_heads = given.get("kv_heads", given["heads"])
    given = {**given, "kv_heads": kv_heads}
    d = _sizes(given, "kv", "heads", "kv_heads", batch=1, q=1, head_dim=128)
    q, kv, heads = d["q"], d["kv"], d["heads"]
    window = int(given.get("window", 0))
    value_dim = _sizes({"value_dim": given.get("value_dim", int(d["head-dim"]))}, "value_dim")["value-dim"]
    if q > kv:
        raise UsageError(
            f"--q {q:.0f}: more new tokens than the {kv:.0f} that are visible", "--kv counts the new ones too"
        )
    if heads % kv_heads:
        raise UsageError(f"--kv-heads {kv_heads} does not divide --heads {heads:.0f}")
    if not 0 <= window <= LARGEST:
        raise UsageError(f"--window {window}: not a count of tokens", "0 for none")
    compute = given.get("compute", "bf16")
    if compute not in ("bf16", "fp8"):
        raise UnknownNameError("compute type", compute, ("bf16", "fp8"), "bf16 or fp8")
    dtype = _dtype(given)
    phase = "new token" if q == 1 else f"{q:,.0f} new tokens"
    what = f"attention: {d['batch']:,.0f} sequences, {phase} over {kv:,.0f}, {heads:.0f} heads on {kv_heads} of"
    what = f"{what} {d['head-dim']:.0f}"
    question: dict[str, Any] = {name.replace("-", "_"): value for name, value in d.items()}
    question |= {"value_dim": value_dim, "window": float(window), "compute": "" if compute == "bf16" else compute}
    question |= {"causal": float(not given.get("bidirectional")), "prompt": float(bool(given.get("prompt")))}
    dims = d | {"window": float(window)}
    return _Asking(what, dims, dtype, {"op": "attention", "dtype": dtype, **question})


def _experts(given: Mapping[str, Any]) -> _Asking:
    routing = str(given.get("routing", "random"))
    try:
        exponent_of(routing)
    except ValueError:
        raise UnknownNameError("routing", routing, ROUTINGS, f"one of {', '.join(ROUTINGS)}") from None
    d = _sizes(given, "tokens", "hidden", "inter", "experts", "top_k", ranks=1)
    matrices = given.get("matrices", 3)
    if matrices not in (2, 3):
        raise UsageError(f"--matrices {matrices}: not a feed-forward", "3 with a gate, 2 without")
    tokens, experts, top_k, ranks = (int(d[name]) for name in ("tokens", "experts", "top-k", "ranks"))
    if top_k > experts:
        raise UsageError(f"--top-k {top_k}: more than the {experts} experts")
    if experts % ranks:
        raise UsageError(f"--ranks {ranks} does not divide --experts {experts}")
    what = f"{top_k} of {experts} experts of {d['hidden']:,.0f} x {d['inter']:,.0f} for {tokens:,} tokens, {routing}"
    what = f"{what} routing, one of {ranks} ranks" if ranks > 1 else f"{what} routing"
    alone = "the busiest rank on its own: no exchange of tokens, no shared experts"
    dtype = _dtype(given)
    question: dict[str, Any] = {name.replace("-", "_"): value for name, value in d.items()}
    question |= {"op": "experts", "dtype": dtype, "routing": routing, "matrices": float(matrices)}
    return _Asking(what, d, dtype, question, (*ASSUMED, alone))


def _rows(op: str) -> Callable[[Mapping[str, Any]], _Asking]:
    def asking(given: Mapping[str, Any]) -> _Asking:
        kind = str(given.get("kind", "add")) if op == "elementwise" else op
        if op == "elementwise" and kind not in ELEMENTWISE:
            raise UnknownNameError("kind", kind, ELEMENTWISE, f"one of {', '.join(ELEMENTWISE)}")
        d = _sizes(given, "m", "n")
        hot = "GPUs: run again and again on the same rows, so that what fits the cache is found there"
        question = {"op": op, "kind": kind, "bytes": given.get("bytes_", np.nan), "copies": 1.0, **d}
        question |= {"runtime": _PROFILED, "library": _ROW_KERNELS[kind]}
        what = f"{kind} of {d['m']:,.0f} rows of {d['n']:,.0f} values"
        return _Asking(what, d, "bf16", question, (hot,))

    return asking


_ASKING: Mapping[str, Callable[[Mapping[str, Any]], _Asking]] = {
    "gemm": _gemm,
    "conv": _conv,
    "attention": _attention,
    "experts": _experts,
    "norm": _rows("norm"),
    "softmax": _rows("softmax"),
    "elementwise": _rows("elementwise"),
}


def _question(asking: _Asking, given: Mapping[str, Any], chip: Chip) -> Asked:
    """The question about one chip: the runtime is vLLM, or on GPUs where it does not run the chip's first."""
    said = {name: given[name] for name in ("runtime", "library", "launch") if name in given}
    if "copies" in given:
        said["copies"] = _sizes(given, "copies")["copies"]
    return questions(**{"runtime": _runtime(chip), **asking.question, **said, "chip": chip.id})


def _sizes(given: Mapping[str, Any], *needed: str, **besides: int) -> Dims:
    """Sizes as numbers, by option. Raises `UsageError` for one that is none."""
    sizes = {name: given.get(name, besides.get(name)) for name in (*needed, *besides)}
    out: Dims = {}
    for name, value in sizes.items():
        option = name.replace("_", "-")
        if value is None or not 1 <= value <= LARGEST:
            raise UsageError(f"--{option} {value}: not a size", f"1 to {LARGEST:,}")
        out[option] = float(value)
    return out


def _dtype(given: Mapping[str, Any]) -> str:
    """The data type. Raises `UnknownNameError`."""
    dtype = str(given.get("dtype", "bf16"))
    check_known("data type", (dtype,), DTYPES)
    return dtype


# Question -> price.


def _unpriced(op: Op, chip: Chip, device: Device) -> RefusalRecord | None:
    """Why a chip cannot be asked, None where it can."""
    peak = device.vector_flops_per_s if op.compute == "vector" else device.matrix[op.compute]
    if not np.isfinite(device.memory_bytes_per_s):
        return RefusalRecord(chip.id, "NO_FIGURE", "no memory bandwidth is published")
    if not np.isfinite(peak):
        return RefusalRecord(chip.id, "NO_FIGURE", f"no {op.compute} peak is published")
    if chip.family == "dataflow":  # without a second tier they keep the weights in SRAM
        fabric = Fabric.of(chip)
        if not scalar(fabric.tier_bytes_per_s) and scalar(op.weight_bytes) > scalar(fabric.sram_bytes):
            return RefusalRecord(chip.id, "CAPACITY", UNHELD)
    return None


def _price(asked: Asked, op: Op, chip: Chip, device: Device, numbers: Parameters) -> _Priced:
    """One operator by the formulas of the chip's family; its interval is that of such rows in a table of kernels. On a
    machine that was probed, by the times of the like."""
    own = measured_time(op, chip)
    if own is not None:
        cost, off, words = own
        return _priced(cost, off, "measured", Anatomy("times", {}, words, ()))
    notes = []
    if chip.family == "simt" and known(asked, {chip.id: chip})[0]:
        group = str(groups_of(asked)[0])
        kernels = KernelRows(asked, {chip.id: chip}, group, numbers)
        values = numbers.kernels[group].values(kernels.labels)
        ((_, cost),) = kernels.costs(values, np.arange(1))
        found = {name: scalar(v) for name, v in values.items()}
        anatomy = _gpu_anatomy(op, asked, chip, device, SimtParameters(lambda *_: found, PEAKS), kernels)
        notes += _whose(asked, group, chip, kernels, numbers)
    else:
        model = _model(op, chip, numbers)
        cost = price(op, device, model, run_of(asked))
        if asked["quantised"][0]:
            cost = cost + narrow(op, device, model)
        anatomy = _anatomy(op, asked, chip, device, model)
        if op.kind == "experts" and asked["routing"][0] != "random":
            notes.append("this family's formula spreads tokens at random")
    wanted = op.compute
    if op.kind in ("gemm", "attention") and chip.family != "cpu" and not {wanted} & {*chip.matrix, *chip.vector}:
        notes.append(f"no unit for {wanted}: priced at the rate of another type")
    spread, basis = _spread(asked, chip, numbers)
    return _priced(cost, spread, basis, anatomy, tuple(notes))


def _runtime(chip: Chip) -> str:
    """Whose kernels price an operator: vLLM's, or on GPUs where it does not run those of the chip's first runtime."""
    if chip.family != "simt":
        return "any"
    able = [r.id for r in runtimes_for(chip)]
    return RUNTIME if RUNTIME in able or not able else able[0]


def _whose(asked: Asked, group: str, chip: Chip, kernels: KernelRows, numbers: Parameters) -> list[str]:
    """Whose kernels stand for an operator, where that is not what one would take for granted."""
    runtime = str(asked["runtime"][0])
    notes = []
    if group.startswith(("simt.gemm", "simt.batched", "simt.prompt", "simt.decode", "simt.latent")):
        default = _runtime(chip)
        if runtime == default and runtime != RUNTIME:
            notes.append(f"by the kernels of {get_runtime(runtime).name}: {RUNTIME} does not run on it")
    said, library = str(asked["library"][0]), str(kernels.labels["library"][0])
    if said and library not in numbers.kernels[group].keys_of("library"):
        notes.append(f"no fitted number tells library {said} from others")
    return notes


def _model(op: Op, chip: Chip, numbers: Parameters) -> CostParameters:
    """The numbers that price an operator on a chip of another family than GPUs."""
    model = numbers.cost(chip.family, "any", [chip], alone=True).take(np.zeros((), dtype=np.intp))
    if isinstance(model, DataflowModel):
        held = scalar(model.fabric.sram_bytes) / max(scalar(op.weight_bytes), 1.0)
        return replace(model, resident=min(1.0, held))
    return model


def _crowding(numbers: Parameters) -> float:
    """How far routed rows crowd on the busiest rank: one number for all chips."""
    effects = numbers.kernels["simt.experts"]
    return scalar(effects.values({"chip": np.array([""])} | _NO_LABELS)["crowding"])


_NO_LABELS = {
    name: np.array([""]) for name in ("vendor", "generation", "dtype", "library", "runtime", "launch", "fabric")
}


def _spread(asked: Asked, chip: Chip, numbers: Parameters) -> tuple[float, str]:
    """One standard deviation of log(time), and the basis, of a question in a table of measured kernels."""
    if chip.family == "cpu":
        return CPU_LOG_SPREAD, "modelled"
    if chip.family == "dataflow":
        return dataflow.PRIOR_LOG_SPREAD, "modelled"
    times = price_measured(asked, {chip.id: chip}, numbers)
    if not np.isfinite(times.mid_s[0]):
        return WIDE, "modelled"
    spread = float(np.log(times.high_s[0] / times.low_s[0]) / (2.0 * Z80))
    return spread, "calibrated" if times.calibrated[0] else "modelled"


def _priced(cost: Cost, spread: float, basis: str, anatomy: Anatomy, notes: tuple[str, ...] = ()) -> _Priced:
    exposed = {name: scalar(v) for name, v in cost.exposed.items() if scalar(v) > 0.0}
    return _Priced(
        time_s=_figure(sum(exposed.values()), spread, basis),
        exposed_s=exposed,
        hidden_s={name: scalar(v) for name, v in cost.hidden.items() if scalar(v) > 0.0},
        bound=max(exposed, key=lambda name: exposed[name]),
        anatomy=anatomy,
        notes=notes,
    )


def _figure(mid: float, spread: float, basis: str) -> Figure:
    """A time with its 80 % interval."""
    factor = float(np.exp(Z80 * spread))
    return Figure(mid, mid / factor, mid * factor, basis, provisional=basis != "calibrated")


# What happens inside the chip.


def _gpu_anatomy(
    op: Op, asked: Asked, chip: Chip, device: Device, model: SimtParameters, kernels: KernelRows
) -> Anatomy:
    op = replace(op, dims={name: scalar(v) for name, v in op.dims.items()})
    if op.kind == "pointwise":
        values = model.find("", ())
        rates = Rates.at(device, device.matrix["bf16"])
        through = scalar(values["load_bytes_per_clock"]) * scalar(rates.clock_hz) * scalar(rates.units)
        moved = scalar(op.bytes)
        inner = AnatomyLevel("L2 to units", moved * scalar(values["passes"]), through, "reads and writes of the kernel")
        text = f"over {scalar(rates.units):.0f} units"
        return _row_anatomy(op, asked, chip, device, text, (inner,))
    if op.kind == "experts":
        return _expert_anatomy(op, device, scalar(device.units), str(kernels.labels["library"][0]))
    tiled = op.kind == "gemm" and not kernels.own
    p = model.pick(GemmParameters, "simt.gemm", dtype=dtype_label(op)) if tiled else None
    return gpu_anatomy(op, chip, device, p)


def _anatomy(op: Op, asked: Asked, chip: Chip, device: Device, model: CostParameters) -> Anatomy:
    op = replace(op, dims={name: scalar(v) for name, v in op.dims.items()})
    if op.kind == "pointwise":
        return _row_anatomy(op, asked, chip, device, "through the vector units", ())
    if op.kind == "experts":
        return _expert_anatomy(op, device, None, "")
    if isinstance(model, SystolicModel):
        return systolic_anatomy(op, device, model)
    if isinstance(model, CpuModel):
        return cpu_anatomy(op, device, model)
    if isinstance(model, DataflowModel):
        return dataflow_anatomy(op, chip, model)
    level = AnatomyLevel(chip.memory.name, scalar(op.bytes), scalar(device.memory_bytes_per_s), "each operand once")
    return Anatomy("chip", {}, "a roofline with shares of peaks", (level,))


def _row_anatomy(
    op: Op, asked: Asked, chip: Chip, device: Device, where: str, inner: tuple[AnatomyLevel, ...]
) -> Anatomy:
    rows, width = (scalar(asked[name]) for name in ("m", "n"))
    tier = "HBM" if chip.memory.kind == "hbm" else "memory"
    note = "each value once, less what the cache still holds"
    level = AnatomyLevel(tier, scalar(op.bytes), scalar(device.memory_bytes_per_s), note)
    text = f"{rows:,.0f} rows of {width:,.0f} values {where}"
    return Anatomy("unit", {"rows": rows, "width": width}, text, (*inner, level))


def _expert_anatomy(op: Op, device: Device, units: float | None, library: str) -> Anatomy:
    d = {name: scalar(v) for name, v in op.dims.items()}
    hit, rows, local = d["hit"], d["rows"], d["local_experts"]
    ranks = d["experts"] / local
    even = d["tokens"] * d["top_k"] / ranks
    figures = {"experts_hit": hit, "local_experts": local, "rows": rows, "rows_per_expert": rows / hit,
               "imbalance": rows / even}  # fmt: skip
    text = f"{hit:,.1f} of {local:,.0f} experts hit, {rows:,.0f} rows, {rows / hit:,.1f} each"
    if ranks > 1:
        text = f"{text}; the busiest of {ranks:.0f} ranks has {rows / even:.2f} times the mean"
    if units is not None:
        down = next((bm for bm, _ in GROUP_TILES if bm >= rows / hit), GROUP_TILES[-1][0])
        up = np.ceil((d["matrices"] - 1.0) * d["inner"] / 128.0)
        tiles = max(hit, rows / down) * (up + np.ceil(d["hidden"] / 128.0))
        figures |= {"tile_rows": float(down), "tiles": float(tiles), "waves": float(tiles / units)}
        text = (
            f"{text}; {library} kernels: some {tiles:,.0f} tiles of {down} x 128 on {units:.0f} units, "
            f"{rows / hit / (np.ceil(rows / hit / down) * down):.0%} of their rows filled"
        )
    memory = scalar(device.memory_bytes_per_s)
    note = "rows in, gate and up, rows out, as far as off chip"
    levels = (
        AnatomyLevel("activations", scalar(op.activation_bytes), memory, note),
        AnatomyLevel("weights", scalar(op.weight_bytes), memory, "experts that are hit, each once"),
    )
    return Anatomy("unit", figures, text, levels)


# Copies and exchanges.


def _copies(named: Sequence[str], given: Mapping[str, Any], changes: Mapping[str, str]) -> KernelReport:
    """A copy from the host to the chip, back, or inside its memory."""
    num_bytes, way = float(given["bytes_"]), str(given.get("way", "to-chip"))
    check_known("way", (way,), WAYS)
    op = ops.pointwise(num_bytes / 2.0, 2.0 if way == "on-chip" else 1.0, name="copy", flops_each=0.0)
    kernels: list[KernelRecord] = []
    refused: list[RefusalRecord] = []
    for chip in chips_of(named, changes):
        device = Device.of(chip)
        priced = _copy(way, num_bytes, chip, device)
        if priced is None or not np.isfinite(priced.time_s.mid):
            refused.append(RefusalRecord(chip.id, "NO_LINK", "no such link or bandwidth is published"))
            continue
        kernels.append(_record(priced, op, chip, device, link=priced.anatomy.levels[0].bytes_per_s))
    assumed = ("host memory is pinned, near the chip, and nothing else is on the way",)
    return _report(f"{format_bytes(num_bytes)} {way}", {"bytes": num_bytes}, "", kernels, refused, (), assumed)


def _copy(way: str, num_bytes: float, chip: Chip, device: Device) -> _Priced | None:
    """Over the host's link, or inside the chip's memory; None where no host link is published."""
    if way == "on-chip":
        cost = memory_copy(num_bytes, device)
        level = AnatomyLevel("memory", 2.0 * num_bytes, scalar(device.memory_bytes_per_s), "each byte read and written")
        text = "read and written by all units, or by a copy engine"
        return _priced(cost, PRIOR_LOG_SPREAD, "modelled", Anatomy("memory", {}, text, (level,)))
    link = chip.host
    if link is None or link.bytes_per_s is None:
        return None
    # one device of a package with several has its share of the link
    rate = link.bytes_per_s / chip.devices_per_package
    cost = host_copy(num_bytes, rate)
    text = f"{link.name}, one direction, {scalar(COPIES.host_share):.0%} of it for data, from pinned memory"
    level = AnatomyLevel("host link", num_bytes, rate, "each byte once")
    return _priced(cost, PRIOR_LOG_SPREAD, "modelled", Anatomy("link", {"bytes_per_s": rate}, text, (level,)))


def _exchanges(
    named: Sequence[str], given: Mapping[str, Any], changes: Mapping[str, str], numbers: Parameters
) -> KernelReport:
    """One exchange between `ranks` chips, `apart` from one to the next (the groups in between do the same at once), by
    `parallel.collective` over the fabric and the network of a catalogued system, or as measured in a table;
    `oversubscription`: links down over links up of a leaf switch."""
    kind = _kind_of(str(given["kind"]))
    num_bytes, ranks = float(given["bytes_"]), int(given["ranks"])
    apart, oversubscription = int(given.get("apart", 1)), float(given.get("oversubscription", 1.0))
    said = {name: given[name] for name in _AS_MEASURED if name in given}
    _check_exchange(kind, ranks, apart, oversubscription, said)
    asked = {"op": "collective", "kind": kind, "bytes": num_bytes, "ranks": float(ranks), **said}
    asked = {"launch": "collective", **asked}
    kernels: list[KernelRecord] = []
    refused: list[RefusalRecord] = []
    for chip in chips_of(named, changes):
        found = _exchange(asked, bool(said), chip, numbers, apart, oversubscription)
        if isinstance(found, RefusalRecord):
            refused.append(found)
            continue
        found = replace(found, notes=(*found.notes, _behind(chip.family, found.time_s.mid)))
        kernels.append(_exchange_record(found, chip, kind, num_bytes, float(ranks)))
    where = "neighbours, alone on their links"
    if apart > 1:
        where = f"ranks {apart:,} chips apart; the {apart:,} groups between them do the same at once"
    blocking = (f"leaf switches with {oversubscription:g} links down for one up",) if oversubscription > 1.0 else ()
    return _report(
        f"{kind.replace('_', '-')} of {format_bytes(num_bytes)} between {ranks} ranks",
        {"bytes": num_bytes, "ranks": float(ranks), "apart": float(apart)},
        "",
        kernels,
        refused,
        (),
        (where, "the usual library, tier by tier from the inside", *blocking),
    )


def _kind_of(name: str) -> str:
    """An exchange by any spelling: allreduce, All-Reduce, AllReduce. Raises `UnknownNameError`."""
    bare = name.lower().replace("-", "").replace("_", "").replace(" ", "")
    kind = _SPELLINGS.get(bare, name)
    check_known("collective", (kind,), EXCHANGES)
    return kind


def _check_exchange(kind: str, ranks: int, apart: int, oversubscription: float, said: Mapping[str, Any]) -> None:
    """Raises `UsageError` and `UnknownNameError` for an exchange that cannot be."""
    if not 2 <= ranks <= 100_000:
        raise UsageError(f"--ranks {ranks}: not a count of ranks", "2 to 100,000")
    if not 1 <= apart <= 100_000:
        raise UsageError(f"--apart {apart}: not a distance in chips", "1 to 100,000, where 1 is neighbours")
    if not 1.0 <= oversubscription <= 100.0:
        raise UsageError(f"--oversubscription {oversubscription:g} is out of range", "1 to 100")
    if kind == "p2p" and ranks != 2:
        raise UsageError("--kind p2p is between 2 ranks")
    for name, values in (("fabric", FABRICS), ("algorithm", ("ring", "direct"))):
        if said.get(name, values[0]) not in values:
            raise UnknownNameError(name, said[name], values, f"one of {', '.join(values)}")
    if said.get("algorithm") == "direct" and kind != "all_reduce":
        raise UsageError("--algorithm direct is of all_reduce alone", "leave it out")
    if not 1 <= (domain := said.get("domain", 1)) <= LARGEST:
        raise UsageError(f"--domain {domain}: not a count of devices", "1 or more")


def _exchange(
    asked: Mapping[str, Any], as_measured: bool, chip: Chip, numbers: Parameters, apart: int, oversubscription: float
) -> _Priced | RefusalRecord:
    """One exchange between chips of one kind, or why it cannot be told."""
    kind, num_bytes, ranks = str(asked["kind"]), float(asked["bytes"]), int(asked["ranks"])
    question = questions(**{**asked, "chip": chip.id})
    device, span = Device.of(chip), ranks * apart
    if as_measured or kind == _EXPERT_EXCHANGE:
        if chip.family != "simt":
            return RefusalRecord(chip.id, "NO_FIGURE", f"no measured exchange of {chip.family} chips by library")
        return _measured_exchange(question, chip, numbers)
    if not np.isfinite(device.link_bytes_per_s):
        return RefusalRecord(chip.id, "NO_LINK", "no link between chips is published")
    at = joined(chip, span, oversubscription)
    if at is None:
        beyond = f"{span:,} chips are more than the {device.domain:g} of one domain, and no network is known"
        unknown = f"how its chips are joined is not known: no system of the catalogue has {chip.id}"
        return RefusalRecord(chip.id, "DOMAIN", beyond if span > device.domain else unknown)
    known_kind: Kind = kind  # type: ignore[assignment]
    tiers = traffic(known_kind, num_bytes, ranks, at.network, apart)
    found = exchange(known_kind, num_bytes, ranks, at.network, numbers.links(chip)[known_kind], stride=apart)
    inside = span <= scalar(at.network.domain) and chip.family == "simt" and kind in _MEASURED_EXCHANGES
    spread, basis = _spread(question, chip, numbers) if inside else (WIDE, "modelled")
    cost = Cost({"launch": found.latency_s, "network": found.transfer_s})
    return _exchanged(cost, tiers, at, spread, basis, scalar(wire_bytes(known_kind, num_bytes, ranks)))


def _measured_exchange(question: Asked, chip: Chip, numbers: Parameters) -> _Priced:
    """As a row of a table of measured kernels: by its library, over what joined its ranks there."""
    kernels = KernelRows(question, {chip.id: chip}, "collective", numbers)
    ((_, cost),) = kernels.costs(numbers.kernels["collective"].values(kernels.labels), np.arange(1))
    kind, fabric, bus = str(question["kind"][0]), str(question["fabric"][0]), "the host's bus"
    own = (chip.scaleup.topology or chip.scaleup.name) if chip.scaleup else bus
    at = Joined(kernels.network, {"pcie": bus, "pairs": f"{own} in twos"}.get(fabric, own))
    wire = wire_bytes(kind, question["bytes"], question["ranks"])  # type: ignore[arg-type]
    spread, basis = _spread(question, chip, numbers)
    return _exchanged(cost, exchange_tiers(question, at.network), at, spread, basis, scalar(wire))


def _exchanged(cost: Cost, tiers: Sequence[Traffic], at: Joined, spread: float, basis: str, wire: float) -> _Priced:
    """Latency under "launch", transfer under "network", beside the tier that the bytes would wait for."""
    latency, transfer = scalar(cost.exposed["launch"]), scalar(cost.exposed["network"])
    link, least_s = limit(tiers)
    figures = {"ranks": scalar(tiers[-1].level.ranks), "steps": sum(scalar(t.steps) for t in tiers)}
    return _Priced(
        time_s=_figure(latency + transfer, spread, basis),
        exposed_s={"launch": latency, "network": transfer},
        hidden_s={},
        bound="network" if transfer >= latency else "launch",
        anatomy=Anatomy("link", figures, at.described(tiers), ()),
        link_bytes_per_s=wire / least_s,
        link=link,
    )


def _behind(family: str, seconds: float) -> str:
    """What an exchange costs where compute hides it."""
    stolen = stolen_share(family)
    if not stolen:
        return "behind compute it is free: dedicated engines move it"
    # compute that lasts longer than the exchange, by twice
    lost = scalar(behind(2.0 * seconds, seconds, stolen)) - 2.0 * seconds
    return f"behind compute it holds {stolen:.0%} of the units: {format_seconds(lost)} of compute lost"


# Price -> record.


def _report(
    what: str,
    dims: Mapping[str, float],
    dtype: str,
    kernels: Sequence[KernelRecord],
    refused: Sequence[RefusalRecord],
    lessons: tuple[str, ...],
    assumed: tuple[str, ...],
) -> KernelReport:
    """The answer. Raises `InfeasibleError` where no chip was priced."""
    if not kernels:
        first = refused[0]
        raise InfeasibleError(f"{first.chip}: {first.detail}", "chipwise chips list names others")
    seconds = kernels[0].time_s.mid
    return KernelReport(what, seconds, dict(dims), dtype, tuple(kernels), tuple(refused), lessons, assumed)


def _record(p: _Priced, op: Op, chip: Chip, device: Device, *, link: float | None = None) -> KernelRecord:
    """What a price says, beside the roofline; `link`: of a copy that does not go through the chip's memory."""
    peak = float(device.vector_flops_per_s if op.compute == "vector" else device.matrix[op.compute])
    rate = float(device.memory_bytes_per_s) if link is None else link
    flops, moved, seconds = scalar(op.flops), scalar(op.bytes), p.time_s.mid
    return KernelRecord(
        chip=chip.id,
        family=chip.family,
        time_s=p.time_s,
        bound=p.bound,
        exposed_s=p.exposed_s,
        hidden_s=p.hidden_s,
        flops=flops,
        bytes=moved,
        intensity=flops / moved,
        ridge=peak / rate,
        roofline_s=max(flops / peak, moved / rate),
        peak_flops_per_s=peak,
        flops_per_s=flops / seconds,
        share_of_peak=flops / seconds / peak if flops else moved / seconds / rate,
        bytes_per_s=moved / seconds,
        mapping_text=p.anatomy.text,
        mapping=dict(p.anatomy.figures),
        levels=tuple(
            LevelRecord(
                v.name,
                v.bytes,
                v.bytes / max(flops / 2.0, 1.0),
                v.bytes / v.bytes_per_s if v.bytes_per_s else None,
                v.note,
            )
            for v in p.anatomy.levels
        ),
        notes=p.notes,
    )


def _exchange_record(p: _Priced, chip: Chip, kind: str, num_bytes: float, ranks: float) -> KernelRecord:
    """What the price of a collective says, beside the time of its bytes on one port at full rate."""
    wire = scalar(wire_bytes(kind, num_bytes, ranks))  # type: ignore[arg-type]
    link = p.link_bytes_per_s
    seconds = p.time_s.mid
    level = LevelRecord(p.link, wire, 0.0, wire / link, "through the port of each chip, one direction")
    return KernelRecord(
        chip=chip.id, family=chip.family, time_s=p.time_s, bound=p.bound, exposed_s=p.exposed_s, hidden_s={},
        flops=0.0, bytes=wire, intensity=0.0, ridge=0.0, roofline_s=wire / link, peak_flops_per_s=0.0,
        flops_per_s=0.0, share_of_peak=wire / seconds / link, bytes_per_s=wire / seconds,
        mapping_text=p.anatomy.text, mapping=dict(p.anatomy.figures), levels=(level,), notes=p.notes,
    )  # fmt: skip


def _lessons(kernels: Sequence[KernelRecord], op: Op) -> tuple[str, ...]:
    """Where a GPU and a systolic array stand side by side: what feeds a multiply-accumulate."""
    gpu = next((k for k in kernels if k.family == "simt" and len(k.levels) > 1), None)
    tpu = next((k for k in kernels if k.family == "systolic" and len(k.levels) > 1), None)
    if op.kind != "gemm" or gpu is None or tpu is None:
        return ()
    from_shared = {v.name: v.bytes_per_mac for v in gpu.levels}
    from_vmem = {v.name: v.bytes_per_mac for v in tpu.levels}
    shared, vmem = from_shared["shared memory"], from_vmem["VMEM to arrays"]
    return (
        f"per multiply-accumulate {gpu.chip} moves {from_shared['registers']:.3f} B through registers and "
        f"{shared:.4f} B through shared memory; {tpu.chip} moves {vmem:.4f} B through VMEM, {shared / vmem:.1f} times "
        "less than shared memory, and reads no register file: an operand enters the array once and is passed from "
        "cell to cell",
        "the price: an array works on whole tiles, so that few rows or odd dims leave cells idle, and waits for its "
        "first tile and last sums; a GPU's small tiles fit more shapes",
    )
