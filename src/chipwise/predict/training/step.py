"""Seconds of a training step: layers, pipeline, gradients, optimiser; one layout or a million."""

from __future__ import annotations

import numpy as np

from chipwise.parallel.collective import exchange
from chipwise.parallel.pipeline import batch_time, slowest_stage, stage_layers
from chipwise.predict.training.layer import LayerTraffic, head_time, layer_time
from chipwise.predict.training.memory import trained_type
from chipwise.predict.training.operators import TrainWork
from chipwise.predict.training.values import Cluster, Recipe, TrainRates, TrainSpread, Transformer
from chipwise.units import Real
from chipwise.values import dataclass
from chipwise.workload.backward import update_bytes

HOST_BYTES_PER_S = 48e9
"""bytes per second: that Adam on the host moves for all devices of a host. Source: by hand from two published cells
(DeepSpeed 0.14, Llama-2-7B on 8 A800: ZeRO-2 takes 2.3 times as long with its optimiser there)."""
ADAM_BYTES = 8.0
"""bytes per parameter: of Adam's two moments in fp32, which it keeps in host memory. Exact: 2 x 4."""
OFFLOAD_BYTES = 6.0
"""bytes per parameter: over the bus with the optimiser in host memory. Exact: the gradient goes out in fp32 and the
weight comes back in 16 bit."""
SUM_BYTES = 10.0
"""bytes per parameter: of cut gradients of a micro-batch (ZeRO-2, FSDP), which go out in 16 bit and are summed in
host memory. Exact: read 2 + 4, write 4."""
NODE = 8.0
"""count: devices of a host, at most; straggling grows with the number of hosts. Exact: servers hold eight."""
BUCKETS = 8.0
"""count: calls that the gradients of a step are summed in. Chosen: no source is known; moves latency of sums, not
their bytes."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of a step by cause; they add up to the step.

    `compute_s` are products, cores and recomputation, `passes_s` element-wise work, `head_s` the head,
    `host_s` what waiting for the host adds, `tp_s`, `cp_s`, `ep_s`, `pp_s`, `dp_s` exposed communication,
    `bubble_s` the pipeline's, `straggle_s` what waiting for the slowest node adds, `stash_s` what fetching activations
    from host memory adds.
    """

    compute_s: Real
    passes_s: Real
    head_s: Real
    host_s: Real
    tp_s: Real
    cp_s: Real
    ep_s: Real
    pp_s: Real
    bubble_s: Real
    dp_s: Real
    optimiser_s: Real
    straggle_s: Real
    stash_s: Real

    @property
    def total_s(self) -> Real:
        """Seconds that pass."""
        a = self.compute_s + self.passes_s + self.head_s + self.host_s + self.tp_s + self.cp_s
        b = self.ep_s + self.pp_s + self.bubble_s + self.dp_s + self.optimiser_s + self.straggle_s
        return a + b + self.stash_s

    @property
    def exposed_s(self) -> Real:
        """Seconds of communication that nothing hides."""
        return self.tp_s + self.cp_s + self.ep_s + self.pp_s + self.dp_s


def rank_params(t: Transformer, s: TrainSpread) -> tuple[Real, Real]:
    """Parameters that one rank works on, and those of its experts among them.

    A stage holds its layers, cut by tp; experts are cut by ep over all ranks of a stage, else by tp. The
    first or the last stage holds a table, one stage alone both.
    """
    layers = stage_layers(t.layers, s.pp, s.vp)
    experts = layers * t.expert_params / np.maximum(s.ep, s.tp)
    tables = np.where(np.asarray(s.pp) > 1, 1.0, 2.0 - t.tied)
    return layers * t.layer_params / s.tp + experts + tables * t.table_params / s.tp, experts


def step_time(
    t: Transformer,
    s: TrainSpread,
    c: Cluster,
    recipe: Recipe,
    r: TrainRates,
    work: TrainWork,
    traffic: LayerTraffic | None = None,
) -> StepTime:
    """(11)-(15). T = (m stage + bubble + exposed gradients + optimiser) (1 + j log2 nodes).

    Optimiser: `_update`.
    """
    layer, head = layer_time(t, s, c, recipe, r, work, traffic), head_time(s, r, work)
    device, total = layer.device_s, layer.total_s
    hop = _hand_over(t, s, c, r)
    stage = slowest_stage(total, head, t.layers, s.pp, s.vp) + hop
    m = s.micro_batches
    ramp = stage_layers(t.layers, s.pp, s.vp) * total + hop
    computed = batch_time(stage, ramp, m, s.pp, s.vp, s.bubble)
    gradients = _gradients(t, s, c, recipe, r, computed, m)
    # a device alone waits for nobody, and its norm of gradients is nobody else's
    once = np.where(np.asarray(s.devices) > 1, r.step_s, 0.0)
    if np.any(work.update_s):  # a rank makes the update of what it keeps moments of; adapters' matrices are small
        kept = np.where(np.asarray(s.adapter) > 0, 0.0, _kept(t, s) / t.params)
        once = once + kept * t.layers * work.update_s / r.linear
    update = np.where(np.asarray(recipe.optimiser) > 0, _update(t, s, c, recipe, r, m) + once, 0.0)
    nodes = np.maximum(s.devices / np.minimum(c.domain, NODE), 1.0)
    body = computed + gradients + update
    # the slowest stage's time by cause: its layers' work, then what is left of it for the head
    count = m * stage_layers(t.layers, s.pp, s.vp)
    computing = layer.products_s + layer.core_s + layer.recompute_s
    return StepTime(
        compute_s=count * computing,
        passes_s=count * layer.passes_s,
        head_s=m * (stage - hop) - count * total,
        host_s=count * (total - device - layer.stash_s),
        tp_s=count * layer.tp_s,
        cp_s=count * layer.cp_s,
        ep_s=count * layer.experts_s,
        pp_s=m * hop,
        bubble_s=computed - m * stage,
        dp_s=gradients,
        optimiser_s=update,
        straggle_s=body * r.straggle * np.log2(nodes),
        stash_s=count * layer.stash_s,
    )


def _update(t: Transformer, s: TrainSpread, c: Cluster, recipe: Recipe, r: TrainRates, m: Real) -> Real:
    """(14) The optimiser reads the gradient of every parameter that the rank keeps, reads and writes the weight, each
    in the type that is trained, and reads and writes its moments.

    In host memory: gradients in fp32 go out and weights in 16 bit come back over the host link, 6 bytes, and Adam runs
    at the host's pace. Cut gradients go out in every micro-batch; FSDP fetches its cut weights twice in each.
    """
    local = np.where(np.asarray(s.adapter) > 0, s.adapter, 1.0) * _kept(t, s)
    moved = update_bytes(np.asarray(recipe.moments), trained_type(recipe))
    here = (1.0 - s.offload) * moved * local / (r.memory * c.memory_bytes_per_s)
    host = c.host_bytes_per_s
    adam = HOST_BYTES_PER_S / np.minimum(s.devices, np.minimum(c.domain, NODE))  # its share of the host
    once = OFFLOAD_BYTES / host + update_bytes(ADAM_BYTES) / adam
    each = np.where(np.asarray(s.zero) >= 2, 2.0 / host + SUM_BYTES / adam, 0.0)
    each = each + np.where(np.asarray(s.zero) >= 3, (4.0 + 2.0 * s.forwards) / host, 0.0)
    frozen: Real = 0.0
    if np.any(s.adapter):  # FSDP fetches frozen weights from the host for every pass
        held, _ = rank_params(t, s)
        fetched = recipe.frozen_bytes * held / np.maximum(s.shard, 1.0) * (2.0 + s.full + s.forwards) / host
        frozen = np.where((np.asarray(s.adapter) > 0) & (np.asarray(s.zero) >= 3), fetched, 0.0)
    return here + s.offload * (local * (once + m * each) + m * frozen)


def _kept(t: Transformer, s: TrainSpread) -> Real:
    """Parameters whose optimiser state a rank keeps: ZeRO cuts over z ranks, of experts over as many as hold copies."""
    held, experts = rank_params(t, s)
    z = np.where(np.asarray(s.zero) >= 1, np.maximum(s.shard, 1.0), 1.0)
    copies = np.maximum(s.dp * s.cp * s.tp / np.maximum(s.ep, s.tp), 1.0)
    return (held - experts) / z + experts / np.minimum(z, copies)


def _hand_over(t: Transformer, s: TrainSpread, c: Cluster, r: TrainRates) -> Real:
    """(11) P2P of a micro-batch between stages, exposed share: two messages of 2 x h / t bytes (cut over tp), one more
    of a pass forward besides, v times. Inside a scale-up domain where all stages fit into it."""
    sent = s.vp * (4.0 + 2.0 * s.forwards) * s.tokens * t.hidden / s.tp
    ranks = np.minimum(s.pp, 2.0)
    p = r.of("p2p")
    # a stage's neighbour is in the next domain, at most: over the network where a replica outgrows one
    stride = np.where(np.asarray(s.devices <= c.domain), 1.0, c.domain)
    one = exchange("p2p", sent, ranks, c.network, p, stride=stride, calls=2.0 * s.vp).total_s
    return r.pp_exposed * one


def _gradients(
    t: Transformer, s: TrainSpread, c: Cluster, recipe: Recipe, r: TrainRates, computed: Real, m: Real
) -> Real:
    """(13) Exposed seconds of gradients and, where weights are cut, of weights.

    Wire bytes per rank: copies and ZeRO-1 4 P (n - 1) / n; ZeRO-2 2 P per micro-batch and 2 P; FSDP 4 P and the
    gradients in the type that they are summed in, 2 or 4 P, per micro-batch, once where software keeps what it
    gathered, as a stage does until its last micro-batch. Groups that hold copies of one another (HSDP, slices) add
    4 P / z between them.
    FSDP overlaps as <T_comp, T_dp>_q - T_comp, the others hide a share.
    """
    n = s.dp * s.cp
    held, experts = rank_params(t, s)
    dense = np.where(np.asarray(s.adapter) > 0, s.adapter * held, held - experts)
    experts = np.where(np.asarray(s.adapter) > 0, 0.0, experts)
    fsdp = np.asarray(s.zero) >= 3
    alone = np.asarray(s.pp) <= 1
    times = np.where(fsdp & alone & (np.asarray(recipe.regather) > 0), m, 1.0)
    z = np.where(np.asarray(s.zero) >= 1, np.clip(s.shard, 1.0, n), n)
    # one ring over all ranks: no NICs are pooled, but where tensor parallelism splits a host
    unpooled = (np.asarray(recipe.flat) > 0) & np.asarray(n > c.domain) & (np.asarray(s.tp) <= 1)
    stride = np.where(unpooled, c.domain, s.tp)
    # FSDP gathers frozen weights too, as they are stored
    frozen = fsdp & (np.asarray(s.adapter) > 0)
    weights = np.where(frozen, held * (2.0 + s.forwards) * recipe.frozen_bytes, 0.0)
    # gradients summed where they stay, or cut, with weights gathered twice
    cut = np.where(np.asarray(s.zero) == 2, 2.0 * m + 2.0, 4.0)
    gathered = 4.0 + 2.0 * s.forwards
    moved = np.where(fsdp, (gathered + recipe.summed) * times, cut) * dense + weights * times
    group = np.where(fsdp, z, n)
    tensors = np.where(fsdp, 3.0 * t.layers / s.pp * times, BUCKETS)
    inner = _summed(c, moved, group, stride, r, tensors)
    # copies of the shards: gradients summed across groups
    groups = np.where(fsdp, n / z, 1.0)
    outer = _summed(c, 4.0 * dense / z, groups, stride * z, r, BUCKETS)
    # experts are copied over what ep leaves of the ranks of a stage
    copies = np.maximum(n * s.tp / np.maximum(s.ep, s.tp), 1.0)
    total = inner + outer
    if np.ndim(t.moe_share) or float(t.moe_share):
        total = total + _summed(c, 4.0 * experts, copies, np.maximum(s.ep, s.tp), r, BUCKETS)
    q = r.fsdp_overlap
    joined = computed * (1.0 + (total / computed) ** q) ** (1.0 / q) - computed
    sent = np.where((np.asarray(recipe.broadcast) > 0) & (np.asarray(s.zero) == 1), r.rank_s * z, 0.0)
    return np.where(fsdp, joined, r.dp_exposed * total + sent)


def _summed(c: Cluster, moved: Real, ranks: Real, stride: Real, r: TrainRates, calls: Real) -> Real:
    """Seconds of reduce-scatters and all-gathers that together put `moved` (r - 1) / r bytes through a port."""
    return exchange("all_gather", moved, ranks, c.network, r.of("all_gather"), stride=stride, calls=calls).total_s
