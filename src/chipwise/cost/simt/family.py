"""Operator x SIMT device -> seconds: which kernel formula an operator takes, with which dims and numbers.

Operands are where `Run` says, by default where a model leaves them: weights and caches in memory, since other layers
ran in between; activations in the cache as far as they fit, since the operator before has just written them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Any, cast

import numpy as np

from chipwise.cost.cost import Cost, soft_maximum
from chipwise.cost.device import Device
from chipwise.cost.roofline import Efficiency
from chipwise.cost.run import AMONG, Run
from chipwise.cost.simt.attention import (
    DecodeParameters,
    PromptParameters,
    decode_attention,
    prompt_attention,
    selected_attention,
)
from chipwise.cost.simt.experts import ExpertParameters, experts
from chipwise.cost.simt.gemm import GemmParameters, Operands, gemm
from chipwise.cost.simt.pointwise import PointwiseParameters, QuantiseParameters, pointwise, quantise
from chipwise.cost.simt.rates import Rates
from chipwise.cost.simt.routing import Routing, spread
from chipwise.cost.simt.tiles import ONE_TILE
from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload.moe import distinct_experts
from chipwise.workload.op import Op, decodes

Labels = tuple[tuple[str, str], ...]
Values = Mapping[str, Real]

# Formats whose products run in a narrow type, by format of the weights; the others are named by that type.
_NARROW: Mapping[str, str] = {"fp8_block": "fp8_block", "mxfp8": "fp8_block", "nvfp4": "nvfp4", "mxfp4": "mxfp4"}
ACTIVATION_BYTES: Mapping[str, float] = {
    "fp32": 4.0,
    "tf32": 4.0,
    "b16": 2.0,
    "int8_wo": 2.0,
    "int4_wo": 2.0,
    "w4a16": 2.0,
    "nvfp4": 0.5625,
    "mxfp4": 0.53125,
}
"""bytes: of an activation by label of `dtype_label`; 8-bit types take one. Exact: bits over 8, and a scale per block
(nvfp4 one byte for 16 values, mxfp4 one for 32)."""
# Types whose batched products were measured apart.
_BATCHED = ("b16", "fp32", "fp8")
# Work on rows with numbers of its own; of a model's, norms are fused into what stands beside them.
_POINTWISE: Mapping[str, str] = {"layernorm": "simt.norm", "softmax": "simt.softmax"}
SHORT = 1.5
"""ratio to k: the longest start and end of a tile among very many. Chosen: a fitted prologue is of long products, and
a short one cannot take more than its own depth and a half; moves products with k of a few hundred alone."""
LANES_SHARE = 0.3
"""share of the vector peak: that depthwise filters reach on the lanes. Chosen: they wait for memory, and none was
measured alone; moves networks of depthwise filters where they compute."""
_DECODING = ("simt.decode", "simt.latent_decode")
_LATENT_DIM = 256.0
"""elements: one shared key head wider than this is a latent. Chosen: between the widest plain heads, 256 of Gemma,
and the narrowest latent, 576 of DeepSeek; moves nothing between those two."""
_EXPANDED = (192.0, 128.0)
"""elements: of keys and values in the expanded prompts of latent attention. Source: DeepSeek-V3 technical report
(arXiv 2412.19437, section 4.2: 128 and 64 per head)."""


@dataclass(frozen=True)
class SimtParameters:
    """The fitted numbers of a runtime on some SIMT chips.

    `find(group, labels)` gives every quantity of a formula ("simt.gemm", ...) for operators with these labels
    (data type, type of the cache, ...), a number or one per chip; `rest` prices what has no formula of its own.
    `launch_s` is what a kernel costs beyond its work among others, in a captured graph or in a queue; None:
    operators run on their own, as benchmarks time them, with the time to the first block and from the last one
    that neighbours hide. `sustained`: by type of products, the energy of an operation where units multiply for
    minutes on end over that of short timings, which run on charge and on cool chips; `decoding` are the rows of the
    pass that decode: they tell bursts of prompts from that (`_energy`). `latent_layer_s` passes between the kernels of
    a layer with latent attention that decodes: small kernels that other software fuses, started one by one. `layer_s`:
    the same of other layers.
    """

    find: Callable[[str, Labels], Values]
    rest: Efficiency
    launch_s: Real | None = None
    sustained: Mapping[str, float] = field(default_factory=dict)
    decoding: Real = 0.0
    latent_layer_s: Real = 0.0
    layer_s: Real = 0.0

    @classmethod
    def stack(cls, many: Sequence[SimtParameters]) -> SimtParameters:
        """Those of several chips, a number each, that differ in fitted numbers and launches alone."""

        def find(group: str, labels: Labels) -> Values:
            each = [one.find(group, labels) for one in many]
            return {name: np.array([float(values[name]) for values in each]) for name in each[0]}

        launches = [one.launch_s for one in many]
        launch_s = None if None in launches else np.array(launches, dtype=float)
        return replace(many[0], find=find, launch_s=launch_s)

    def take(self, index: np.ndarray) -> SimtParameters:
        """Of several chips: those at `index`, any shape."""
        known: dict[tuple[str, Labels], Values] = {}

        def find(group: str, labels: Labels) -> Values:
            if (group, labels) not in known:
                values = self.find(group, labels)
                known[group, labels] = {k: np.asarray(v)[index] for k, v in values.items()}
            return known[group, labels]

        launch_s = self.launch_s
        if isinstance(launch_s, np.ndarray) and launch_s.ndim:
            launch_s = launch_s[index]
        latent_s, layer_s = (
            v[index] if isinstance(v, np.ndarray) and v.ndim else v for v in (self.latent_layer_s, self.layer_s)
        )
        return replace(self, find=find, launch_s=launch_s, latent_layer_s=latent_s, layer_s=layer_s)

    def beside(self, decoding: Real) -> SimtParameters:
        """The same for the operators of a pass in which so many rows decode."""
        return replace(self, decoding=decoding) if self.sustained else self

    def pick(self, kind: type[Any], group: str, prefix: str = "", launches: float = 1.0, **labels: str) -> Any:
        """The parameters of one formula for an operator of so many kernels."""
        values = self.find(group, tuple(labels.items()))
        found = {f.name: values[prefix + f.name] for f in fields(kind) if prefix + f.name in values}
        # a quantising kernel was measured as a part of its product: what it adds is its start already
        if self.launch_s is not None and not prefix:
            found["start_s"] = launches * self.launch_s
            if "ahead" in found:  # that time is what is left of a launch among neighbours
                found["ahead"] = 0.0
        return kind(**found)


def _fitted(op: Op) -> str:
    """The type whose fitted numbers a product takes: TF32, which nobody timed, those of other 16-bit-like products."""
    label = dtype_label(op)
    return "b16" if label == "tf32" else label


def dtype_label(op: Op) -> str:
    """What a product is called in the table of parameters: b16, fp32, fp8, fp8_block, nvfp4, int4_wo, ..."""
    if op.compute == "fp32":
        return "fp32"
    if op.compute in ("bf16", "fp16"):
        if op.weight in ("bf16", "fp16", "fp32", ""):
            return "b16"
        if op.weight == "mxfp4" and op.kind == "experts":
            return "w4a16"
        wide = op.weight.startswith(("fp8", "int8", "q8", "mxfp8"))
        return "int8_wo" if wide else "int4_wo"
    if op.compute == "fp8" and op.weight in ("mxfp4", "nvfp4", "int4"):
        return "w4a8" if op.kind == "experts" else "fp8"
    return _NARROW.get(op.weight, op.compute)


def simt_time(op: Op, device: Device, p: SimtParameters, run: Run = AMONG) -> Cost | None:
    """Seconds of one operator, None for kinds without a formula (scans and lookups are priced by `rest`)."""
    if op.kind == "gemm":
        return _gemm(op, device, p, run)
    if op.kind == "conv":
        return _convolution(op, device, p, run)
    if op.kind == "experts":
        return _experts(op, device, p, run)
    if op.kind == "attention":
        return _attention(op, device, p, run)
    if op.kind == "pointwise":
        if op.name == "rope":
            return Cost()  # measured attention rotates its queries and keys: `passes` of its formulas
        rates = Rates.at(device, device.matrix["bf16"])
        # the operator before has just written the rows, whatever ran before that
        return pointwise(op.bytes, rates, p.pick(PointwiseParameters, group_of(op)), resident=1.0)
    return None


def group_of(op: Op) -> str:
    """The formula of an operator, under the name of its fitted numbers; "" for kinds without one."""
    if op.kind in ("gemm", "conv"):
        many = _fitted(op) in _BATCHED and bool(np.any(np.asarray(op.dims["batch"]) > 1))
        return "simt.batched_gemm" if many else "simt.gemm"
    if op.kind == "experts":
        return "simt.experts"
    if op.kind == "attention":
        d = op.dims
        key, value = d["head_dim"], d["value_dim"]
        latent = _all(d["kv_heads"], 1.0) and bool(np.all(np.asarray(key) > _LATENT_DIM)) and not _all(value, key)
        if decodes(op) and not d.get("prompt", 0.0):
            return "simt.latent_decode" if latent else "simt.decode"
        expanded = (_first(key), _first(value)) == _EXPANDED
        return "simt.latent_prompt" if expanded or latent else "simt.prompt"
    return _POINTWISE.get(op.name, "simt.elementwise") if op.kind == "pointwise" else ""


def narrowing(rows: Real, columns: Real, op: Op, device: Device, p: SimtParameters) -> Cost:
    """The kernel before the product `op` that writes its input of rows x columns in a narrow type."""
    rates = Rates.at(device, device.matrix["bf16"])
    numbers = p.pick(QuantiseParameters, "simt.gemm", "quantise_", dtype=dtype_label(op))
    return quantise(rows, columns, rates, numbers) * (1.0 - _widened(op, p))


def _widened(op: Op, p: SimtParameters) -> Real:
    """1 where software stores the weights of a product in a type that it multiplies in 16 bits, though the chip has
    a unit for it: inputs stay as they are, and products run at the rate of 16 bits."""
    return p.find(group_of(op), (("dtype", _fitted(op)),)).get("widened", 0.0)


def _multiplied(op: Op, device: Device, p: SimtParameters) -> tuple[Rates, Real]:
    """The device for a product, and the bytes of one of its inputs."""
    peak, size = device.matrix[op.compute], ACTIVATION_BYTES.get(dtype_label(op), 1.0)
    widened = np.asarray(_widened(op, p)) > 0.0
    if not widened.any():
        return Rates.at(device, peak), size
    wide = Rates.at(device, np.where(widened, device.matrix["bf16"], peak))
    return wide, np.where(widened, ACTIVATION_BYTES["b16"], size)


def _gemm(op: Op, device: Device, p: SimtParameters, run: Run) -> Cost:
    d = op.dims
    label = dtype_label(op)
    weights = d["batch"] * d["n"] * d["k"]
    # fp32 arithmetic on rows that are stored in 16 bit reads and writes them so
    narrow = label == "fp32" and op.weight in ("bf16", "fp16")
    rates, size = _multiplied(op, device, p)
    operands = Operands(
        weight=op.weight_bytes / weights,
        activation=2.0 if narrow else size,
        output=4.0 if label in ("fp32", "tf32") and not narrow else 2.0,
        weight_copies=run.copies,
        activations_cached=run.cached,
        # scaled narrow formats are not split over k
        split_limit=16.0 if label in ("b16", "fp32", "tf32") else 1.0,
        passing_bytes=op.activation_bytes if op.kind == "conv" or "static" in d else None,
    )
    found = p.pick(GemmParameters, group_of(op), dtype=_fitted(op))
    if op.compute in p.sustained:
        energy = _energy(p.sustained[op.compute], p.decoding, operands.weight, rates)
        found = replace(found, joule_per_flop=energy * found.joule_per_flop)
    if op.kind == "conv" or np.any(np.asarray(d["batch"]) > 1.0):
        # tiles that are that short start while others end: filters of few channels, heads of attention in windows
        found = replace(found, prologue=np.minimum(found.prologue, SHORT * d["k"]))
    cost = gemm(d["m"], d["n"], d["k"], operands, rates, found, batch=d["batch"])
    lone = np.asarray(p.find(group_of(op), (("dtype", _fitted(op)),)).get("one_tile", 0.0))
    if not lone.any():
        return cost
    fixed = gemm(d["m"], d["n"], d["k"], operands, rates, found, batch=d["batch"], sizes=ONE_TILE)
    return cost * (1.0 - lone) + fixed * lone


def _convolution(op: Op, device: Device, p: SimtParameters, run: Run) -> Cost:
    """An implicit product, whose windows are gathered while tiles are filled, or, where groups are too narrow for
    tiles (depthwise filters), the vector lanes: whichever is faster.

    The product m = images x outputs, n = filters, k = kernel x channels takes the numbers of `simt.gemm`, with the
    bytes of the images themselves. On the lanes t = <flops / (LANES_SHARE x vector peak), bytes / (share x bandwidth)>.
    Ignores Winograd and FFT kernels, and layouts that must be changed before tiles can be filled.
    """
    tiles = _gemm(op, device, p, run)
    found = p.pick(GemmParameters, group_of(op), dtype=_fitted(op))
    lanes = soft_maximum(
        {
            "compute": op.flops / (LANES_SHARE * device.vector_flops_per_s),
            "memory": op.bytes / (found.memory_share * device.memory_bytes_per_s),
        },
        cast(float, found.softness),
    ) + Cost({"launch": found.start_s})
    wide = np.asarray(tiles.total_s) <= lanes.total_s
    return tiles * np.where(wide, 1.0, 0.0) + lanes * np.where(wide, 0.0, 1.0)


def limited_s(op: Op, device: Device, p: SimtParameters) -> Real:
    """Seconds that the power limit allows for the multiplications of an operator: energy over watts."""
    wide = op if op.kind in ("gemm", "conv") else replace(op, kind="gemm", weight="", dims={"batch": 1.0})
    joule = p.pick(GemmParameters, group_of(wide), dtype=_fitted(wide)).joule_per_flop
    seconds: Real = op.flops * joule / device.power_w
    return seconds


def _energy(sustained: float, decoding: Real, weight: Real, rates: Rates) -> Real:
    """Energy of an operation over that of short timings: 1 + (sustained - 1) x duty.

    duty = min(1, decoding / ridge): the part of the time between prompts that units multiply, with the ridge of the
    roofline in rows, FLOP/s x bytes of a weight / (2 x bandwidth). Decoding of few rows waits for memory meanwhile,
    and the power of a product of prompts is made up for.
    """
    ridge = rates.flops_per_s * weight / (2.0 * rates.memory_bytes_per_s)
    duty = np.minimum(decoding / ridge, 1.0)
    more: Real = 1.0 + (sustained - 1.0) * duty
    return more


def _experts(op: Op, device: Device, p: SimtParameters, run: Run) -> Cost:
    d = op.dims
    label = dtype_label(op)
    share = d["local_experts"] / d["experts"]
    found = p.pick(ExpertParameters, "simt.experts", launches=op.launches, dtype=label)
    if "exponent" in d:
        hit = d["hit"]
        where = (d["tokens"], d["experts"], d["top_k"], d["experts"] / d["local_experts"])
        routing = spread(*where, exponent=d["exponent"], crowding=found.crowding)
    else:
        hit = np.maximum(distinct_experts(d["tokens"], d["experts"], d["top_k"]) * share, 1e-9)
        routing = Routing(hit, d["tokens"] * d["top_k"] / d.get("ranks", 1.0 / share))
    each = d["matrices"] * d["hidden"] * d["inner"]
    rates, size = _multiplied(op, device, p)
    return experts(
        routing,
        d.get("entering", d["tokens"]),
        d["hidden"],
        d["inner"],
        d["experts"],
        op.weight_bytes / (hit * each),
        size,
        rates,
        found,
        gated=np.asarray(d["matrices"]) - 2.0,
        resident=run.hot,
    )


def kernel_of(op: Op) -> tuple[str, Mapping[str, str]]:
    """The formula of an attention, under the name of its fitted numbers, and the labels of those."""
    d, group = op.dims, group_of(op)
    latent = group.startswith("simt.latent")
    cache = "fp8" if _first(_read(op, group)[1]) < 1.5 else "b16"
    dim = "0" if latent else f"{_first(d['head_dim']):.0f}"
    if group not in _DECODING:
        return group, {"dtype": "fp8" if op.compute == "fp8" else "b16", "cache": cache, "head_dim": dim}
    heads = "mha" if _all(d["heads"], d["kv_heads"]) and not latent else "gqa"
    return group, {"cache": cache, "heads": heads, "dtype": "b16", "head_dim": dim}


def _holds_values(op: Op, group: str) -> bool:
    """Whether values are a part of the keys."""
    latent, widths = group.startswith("simt.latent"), (op.dims["head_dim"], op.dims["value_dim"])
    return latent and (group in _DECODING or (_first(widths[0]), _first(widths[1])) != _EXPANDED)


def _read(op: Op, group: str) -> tuple[Real, Real]:
    """Tokens that an attention sees, and what it reads of the cache, whatever it selects: bytes per element that make
    up its traffic."""
    d = op.dims
    if group in _DECODING:
        reach = np.where(np.asarray(d["top_k"]) > 0, d["top_k"], d["window"])
        seen = np.where(np.asarray(reach) > 0, np.minimum(d["kv"], reach), d["kv"])
    else:
        seen = np.where(np.asarray(d["window"]) > 0, np.minimum(d["kv"], d["window"] + d["q"]), d["kv"])
    width = d["head_dim"] if _holds_values(op, group) else d["head_dim"] + d["value_dim"]
    return seen, op.kv_bytes / (d["batch"] * d["kv_heads"] * seen * width)


def _attention(op: Op, device: Device, p: SimtParameters, run: Run) -> Cost:
    d = op.dims
    key, value = d["head_dim"], d["value_dim"]
    heads, groups = d["heads"], d["kv_heads"]
    group, labels = kernel_of(op)
    latent = group.startswith("simt.latent")
    seen, size = _read(op, group)
    rates = Rates.at(device, device.matrix[op.compute])
    if group in _DECODING:
        found = p.pick(DecodeParameters, group, launches=op.launches, **labels)
        between = Cost({"launch": p.latent_layer_s if latent else p.layer_s})
        return between + decode_attention(
            d["batch"],
            seen,
            heads,
            groups,
            key,
            size,
            rates,
            found,
            value_dim=0.0 * value if latent else value,
            queries=d["q"],
            resident=run.hot,
        )
    prompt = p.pick(PromptParameters, group, launches=op.launches, **labels)
    pairs = op.flops / (2.0 * d["batch"] * heads * (key + value))
    whole = prompt_attention(
        d["batch"], d["q"], d["kv"], heads, groups, key, pairs, size, rates, prompt,
        window=d["window"], causal=d.get("causal", 1.0), value_dim=value,
    )  # fmt: skip
    if not _holds_values(op, group) or not np.any(np.asarray(d["top_k"])):
        return whole
    # who sees no more than may be selected, and kernels that are not known to do so, share tiles of queries
    apart = (np.asarray(prompt.least_heads) > 0) & (np.asarray(d["kv"]) > d["top_k"])
    own = selected_attention(d["batch"] * d["q"], heads, key + value, d["top_k"], rates, prompt)
    return whole * np.where(apart, 0.0, 1.0) + own * np.where(apart, 1.0, 0.0)


def _all(value: Real, other: Real) -> bool:
    return bool(np.all(np.asarray(value) == other))


def _first(value: Real) -> float:
    """Of numbers that are the same for all rows, or that select nothing."""
    flat = np.asarray(value, dtype=float).ravel()
    return float(flat[0]) if flat.size else 0.0
