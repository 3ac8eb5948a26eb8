"""Kernels of local runtimes (llama.cpp, MLX, ExLlama, ...), on GPUs and CPUs alike.

They keep weights packed and bring kernels of their own: few rows are multiplied on the vector lanes at the speed at
which weights stream in; a prompt goes through the model in micro-batches, each of which multiplies on the matrix unit,
where there is one, and reads all weights anew. What such kernels reach is much the same from chip to chip of a
generation, so that a handful of shares says it (`LocalNumbers`), fitted to published speeds (suite `local`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from chipwise.cost.cost import Cost, soft_maximum
from chipwise.cost.device import Device
from chipwise.units import Array, Real
from chipwise.values import dataclass
from chipwise.workload.moe import distinct_experts
from chipwise.workload.op import Op

WIDE = frozenset(("bf16", "fp16", "fp32", ""))
UNPACK = 3.0
"""operations: that turn a packed weight into a number. Exact: a shift, a mask and a scale."""
COLUMNS = 8.0
"""rows: for which a matrix-vector kernel unpacks a weight once. Source: ggml-org/llama.cpp ggml-cuda,
MMVQ_MAX_BATCH_SIZE."""
SORT_S = 2e-9
"""s: of one step of the host's loop that sorts rows by expert (one for every expert, row and choice: a load and a
comparison, some 8 cycles of 4 GHz). Chosen: no source tells it; moves prompts of experts where hosts sort them."""
APART = 2.75
"""ratio: kernels of routed experts on a processor, to those of a GPU whose kernels are fused. Source:
ggml-org/llama.cpp, llama-graph.cpp: build_moe_ffn makes 22 operators, of which ggml-cuda runs 8 kernels (topk-moe,
mmvq with GLU, fused adds) and ggml-cpu each for itself, all threads waiting after it."""
SINGLE = 2.0
"""kernels: of a routed expert that is a product for itself. Source: ggml-org/llama.cpp, ggml_sycl_mul_mat_id: a row is
quantised or a prompt's weights are unpacked, then they are multiplied."""
SOFTNESS = 3.0
"""exponent: of memory against arithmetic. Chosen: as of processors, no source is known; moves a kernel at the corner
of the roofline by a quarter."""


@dataclass(frozen=True, slots=True)
class LocalNumbers:
    """Fitted numbers; each a number or an array.

    | field | unit | meaning |
    |---|---|---|
    | stream | of bandwidth | streaming weights |
    | cache | of bandwidth | streaming keys and values |
    | kernel_s | s | from one kernel to the next |
    | barrier_s | s per thread^2 | until all threads of a processor have met after a kernel |
    | lanes | of the vector peak | products of few rows, weights unpacked on the way |
    | packed | of the 8-bit integer peak, or of what stands in for it | products of a full micro-batch, packed weights |
    | half | of the 16-bit peak, or half of the 8-bit one | the same of 16-bit weights |
    | rows | rows | of an expert, or of a short prompt, at which a product runs at half of its rate |
    | attention | of the 16-bit peak | scores and weighted sums of prompts |
    | softmax | operations | of the matrix unit, in whose time the exponent of one score is taken |
    | pipelined | 0..1 | of what stages of a pipeline can save by working on several micro-batches at a time |
    """

    stream: Real
    cache: Real
    kernel_s: Real
    barrier_s: Real
    lanes: Real
    packed: Real
    half: Real
    rows: Real
    attention: Real
    softmax: Real
    pipelined: Real


@dataclass(frozen=True)
class LocalModel:
    """What `local_time` needs beside a device: the numbers, how many tokens go through the model at a time, how many
    stages a pipeline has, how many kernels the routed experts of a layer take for one where they are fused, whether
    (1) the host sorts their rows, and from how many tokens on each expert is a product for itself."""

    numbers: LocalNumbers
    micro_batch: Real
    stages: Real = 1.0
    unfused: Real = 1.0
    sorts: Real = 0.0
    single_from: Real = np.inf

    def take(self, index: np.ndarray) -> LocalModel:
        """Of several chips: those at `index`, any shape."""

        def picked(value: Real) -> Real:
            column = np.asarray(value)
            return column[index] if column.ndim else float(column)

        numbers = LocalNumbers(**{f.name: picked(getattr(self.numbers, f.name)) for f in fields(LocalNumbers)})
        own = {name: picked(getattr(self, name)) for name in ("micro_batch", "unfused", "sorts", "single_from")}
        return replace(self, numbers=numbers, **own)

    def staged(self, stages: Real) -> LocalModel:
        """The same on a pipeline of so many stages."""
        return replace(self, stages=stages)


@dataclass(frozen=True)
class LocalWork:
    """One operator of one pass on one device, as kernels of local runtimes see it; numbers or arrays.

    | field | unit | meaning |
    |---|---|---|
    | flops | operations | of all micro-batches, as are bytes and launches |
    | weights | count | weights that are unpacked, once for every `COLUMNS` rows |
    | scores | count | exponents of attention |
    | streamed, cached | B | weights and activations; keys and values |
    | launches | kernels | |
    | host_s | s | in which the host sorts rows by expert while the device waits |
    | threads | | of a processor, one for each core, that wait for each other after a kernel; 0 elsewhere |
    | rows | rows | that one matrix of weights multiplies in a micro-batch |
    | full | rows | of a full micro-batch: there products reach their share |
    | tiled | 0 or 1 | whether there are kernels that multiply tiles; without them each row unpacks the weights anew |
    | peak | operations/s | of the matrix unit; `vector` of the lanes; `ceiling`: of the type of the operator |
    | kind | | 0: packed weights, 1: 16-bit weights, 2: attention, 3: all other work, on the lanes |
    | saved | 0..1 | of the time, that a pipeline of stages could save |
    """

    flops: Real
    weights: Real
    scores: Real
    streamed: Real
    cached: Real
    launches: Real
    host_s: Real
    threads: Real
    rows: Real
    full: Real
    tiled: Real
    peak: Real
    vector: Real
    ceiling: Real
    bandwidth: Real
    kind: Real
    saved: Real

    @classmethod
    def of(cls, op: Op, device: Device, model: LocalModel) -> LocalWork:
        """Of an operator whose rows are cut into micro-batches.

        The weights are read once for each of u = rows / micro-batch of them; stages that work on u micro-batches in
        turn need (stages + u - 1) / (stages u) of the time of one after the other. Keys and values are read once for
        each micro-batch too, half of those of the prompt itself. The kernels of processors multiply routed experts row
        by row, however many there are (`forward_mul_mat_id` of ggml-cpu calls `gemv` for each; read in 2026-11). Those
        of CUDA sort them first, for each matrix anew; a single row needs none (ggml-org/llama.cpp pull request 15525).
        Those of SYCL multiply expert by expert.
        """
        micro_batch, stages = model.micro_batch, model.stages
        d = op.dims
        tokens = d["tokens"] if op.kind == "experts" else d.get("m", d.get("q", 1.0))
        micro = np.minimum(tokens, micro_batch)
        passes = np.maximum(tokens / micro, 1.0)
        vector = device.vector_flops_per_s
        rows, weights, streamed, peak, kind = micro, 0.0 * tokens, op.weight_bytes, device.matrix["fp16"], 3.0
        launches, host_s = op.launches * passes, 0.0 * tokens
        if op.kind == "experts":
            launches = launches * (np.maximum(model.unfused, APART) if device.family == "cpu" else model.unfused)
            steps = np.where(micro > 1.0, d["experts"] * tokens * d["top_k"] * d["matrices"], 0.0)
            host_s = SORT_S * steps * model.sorts
            hit, every = (distinct_experts(t, d["experts"], d["top_k"]) for t in (micro, tokens))
            rows = micro * d["top_k"] / hit
            single = SINGLE * d["matrices"] * hit * d["local_experts"] / d["experts"]
            launches = launches + np.where(micro >= model.single_from, single, 0.0) * passes
            streamed = op.weight_bytes * hit / every
            weights = hit * d["local_experts"] / d["experts"] * d["matrices"] * d["hidden"] * d["inner"]
        elif op.kind == "gemm":
            weights = d["batch"] * d["n"] * d["k"]
        if op.kind in ("gemm", "experts"):
            kind = 1.0 if op.weight in WIDE else 0.0
            half = np.maximum(device.matrix["fp16"], device.matrix["int8"] / 2.0)
            peak = half if op.weight in WIDE else device.matrix["int8"]
            if device.family == "cpu" and op.weight not in WIDE:
                vector = np.maximum(vector, device.matrix["int8"])  # packed weights take 8-bit dot products
        elif op.kind == "attention":
            kind = 2.0
        return cls(
            flops=op.flops,
            weights=weights * passes * (1.0 - kind) if kind < 2.0 else 0.0 * tokens,
            scores=op.flops / (2.0 * (d["head_dim"] + d["value_dim"])) if kind == 2.0 else 0.0 * tokens,
            streamed=streamed * passes + op.activation_bytes,
            cached=op.kv_bytes * (1.0 + (passes - 1.0) / 2.0),
            launches=0.0 * tokens if op.name == "rope" else launches,
            host_s=host_s,
            threads=device.units * 1.0 if device.family == "cpu" else 0.0,
            rows=rows,
            full=micro_batch,
            tiled=0.0 if op.kind == "experts" and device.family == "cpu" else 1.0,
            peak=peak,
            vector=vector,
            ceiling=vector if op.compute == "vector" else np.maximum(device.matrix[op.compute], 1.0),
            bandwidth=device.memory_bytes_per_s,
            kind=kind,
            saved=1.0 - (stages + passes - 1.0) / (stages * passes),
        )

    @classmethod
    def join(cls, many: Sequence[LocalWork]) -> LocalWork:
        """Works one after the other, every figure a column; the figures of each are numbers or columns alike."""

        def column(name: str) -> Array:
            of_each = (np.ravel(np.asarray(getattr(w, name), dtype=float)) for w in many)
            return np.concatenate([np.broadcast_to(c, (n,)) for c, n in zip(of_each, sizes, strict=True)])

        names = [f.name for f in fields(cls)]
        sizes = [max(np.size(getattr(w, name)) for name in names) for w in many]

        return cls(**{name: column(name) for name in names})

    def take(self, index: np.ndarray) -> LocalWork:
        """Of columns: those at `index`."""
        return LocalWork(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def seconds(self, p: LocalNumbers) -> Cost:
        """t = launches (kernel_s + barrier_s threads^2) + the faster of two kinds of kernels, less what stages save:

        lanes: <(flops + 3 weights ceil(rows / c)) / (lanes x vector peak), bytes>, c = 8, 1 where nothing is `tiled`
        tiles: <(flops + softmax scores) (1 + h / rows) / (1 + h / full) / (share x peak), bytes>, h the numbers' `rows`

        No rate is above the peak of the operator's type, which sets the roofline that is shown.
        bytes: weights and activations over stream x bandwidth, keys and values over cache x bandwidth.
        """
        share = np.where(self.kind == 0.0, p.packed, np.where(self.kind == 1.0, p.half, p.attention))
        stretch = (1.0 + p.rows / self.rows) / (1.0 + p.rows / self.full)
        tiled = np.asarray(self.tiled) > 0.0
        unpack = UNPACK * self.weights * np.ceil(self.rows / np.where(tiled, COLUMNS, 1.0))
        lanes_s = (self.flops + unpack) / np.minimum(p.lanes * self.vector, self.ceiling)
        tiles_s = (self.flops + p.softmax * self.scores) * stretch / np.minimum(share * self.peak, self.ceiling)
        compute_s = np.where((self.kind == 3.0) | ~tiled, lanes_s, np.minimum(lanes_s, tiles_s))
        memory_s = (self.streamed / p.stream + self.cached / p.cache) / self.bandwidth
        body = soft_maximum({"compute": compute_s, "memory": memory_s}, SOFTNESS)
        # each of n threads that arrives at a spinning barrier takes the line that all n watch
        each_s = p.kernel_s + p.barrier_s * np.square(self.threads)
        whole = body + Cost({"launch": self.launches * each_s + self.host_s})
        return whole * np.asarray(1.0 - p.pipelined * self.saved)


def local_time(op: Op, device: Device, model: LocalModel) -> Cost:
    """Seconds of one operator under a local runtime; see `LocalWork`. Broadcasts over shapes, device and numbers."""
    return LocalWork.of(op, device, model).seconds(model.numbers)
