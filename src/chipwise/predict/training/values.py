"""What a training step is computed from: numbers that broadcast, grouped by where they come from.

Symbols in brackets are those of the equations in `step` and `memory`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TypeVar

import numpy as np

from chipwise.parallel.collective import CollectiveParameters, Kind
from chipwise.parallel.layout import Layout
from chipwise.parallel.network import Network
from chipwise.units import Real
from chipwise.values import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Transformer:
    """A decoder (or encoder) by its mean layer; shares are of layers.

    | field | symbol | meaning |
    |---|---|---|
    | layers, hidden, vocab | L, h, V | |
    | mixer_in, mixer_out | | columns of all input projections of the mixer, rows of its output projection |
    | core_width | | FLOPs of the attention core per (query, key) pair / 4: heads x (key + value size) / 2 |
    | heads, head_dim, kv_width | a, d | kv_width: values of K and V together per token |
    | core_share | | layers with a softmax core |
    | window, window_share | | tokens seen in layers with a sliding window, and the share of such layers |
    | causal | | 1: half of the pairs |
    | ffn, gates, dense_share | f, γ | dense feed-forward; gates 2 if gated, else 1 |
    | experts, top_k, expert_ffn, shared_ffn, moe_share | E, κ | routed experts; shared_ffn: width of all shared |
    | expert_hidden | | width that routed experts read: hidden, or a projection of it; 0: hidden |
    | expert_gates | γ | of routed and shared experts |
    | tied | | 1: the head reads the embedding table |
    """

    layers: Real
    hidden: Real
    vocab: Real
    mixer_in: Real
    mixer_out: Real
    core_width: Real
    heads: Real
    head_dim: Real
    kv_width: Real
    core_share: Real = 1.0
    window: Real = 1e12
    window_share: Real = 0.0
    causal: Real = 1.0
    ffn: Real = 0.0
    gates: Real = 2.0
    dense_share: Real = 1.0
    experts: Real = 1.0
    top_k: Real = 0.0
    expert_ffn: Real = 0.0
    shared_ffn: Real = 0.0
    expert_gates: Real = 2.0
    expert_hidden: Real = 0.0
    moe_share: Real = 0.0
    tied: Real = 0.0

    @property
    def layer_params(self) -> Real:
        """Parameters of a mean layer that every token uses: mixer, dense and shared feed-forward, router."""
        h = self.hidden
        shared = (self.expert_gates + 1.0) * self.shared_ffn + self.experts
        routed = np.where(np.asarray(self.moe_share) > 0, self.moe_share * shared, 0.0)
        dense = self.dense_share * (self.gates + 1.0) * self.ffn
        total: Real = h * (self.mixer_in + self.mixer_out + dense + routed)
        return total

    @property
    def expert_params(self) -> Real:
        """Parameters of all routed experts of a mean layer."""
        wide = (self.expert_gates + 1.0) * self.expert_width
        return self.moe_share * self.experts * wide * self.expert_ffn

    @property
    def expert_width(self) -> Real:
        """Width that routed experts read."""
        return np.where(np.asarray(self.expert_hidden) > 0, self.expert_hidden, self.hidden)

    @property
    def table_params(self) -> Real:
        """One table of tokens: embedding or head."""
        return self.vocab * self.hidden

    @property
    def params(self) -> Real:
        """All parameters, norms and biases left out."""
        return self.layers * (self.layer_params + self.expert_params) + (2.0 - self.tied) * self.table_params

    @property
    def active_params(self) -> Real:
        """Parameters that a token is multiplied with: top-k experts, the head, no embedding."""
        active = self.expert_params * self.top_k / self.experts
        return self.layers * (self.layer_params + active) + self.table_params


@dataclass(frozen=True, slots=True)
class Adapters:
    """Low-rank adapters: two matrices of `rank` beside every product of the `targets`: attention, linear (feed-forward
    and shared experts too), experts (routed ones too). `dora` trains the norms of the weights as well (Liu et al.,
    2024)."""

    rank: int = 16
    targets: str = "linear"
    dora: bool = False


@dataclass(frozen=True, slots=True)
class TrainSpread(Layout):
    """A layout of a training run, with its batch and what it keeps where. Degrees are written t, p, v, c, e, D.

    | field | symbol | meaning |
    |---|---|---|
    | micro_batch, global_batch, seq | b, G, s | sequences, sequences, tokens |
    | zero | | 0: replicas, 1: optimiser cut over dp, 2: gradients too, 3: weights too (FSDP) |
    | shard | z | ranks that ZeRO cuts over; below dp x cp: HSDP, copies between groups |
    | sequence | | 1: norms and residuals are cut by tp too |
    | full, selective | | share of layers recomputed whole; 1: attention core and softmax recomputed |
    | bubble | | share of the 1F1B bubble that the schedule leaves (zero-bubble: 1/3, V-shaped 0.1) |
    | in_flight | | of p micro-batches, how many wait: 1 1F1B, 1/2 and 1/3 V-shaped; 0: GPipe, all of them |
    | adapter | | share of the parameters that adapters train, base weights frozen; 0: all are trained |
    | offload | | share of the optimiser state kept in host memory |
    | stash | | share of what layers save for their backward pass that waits in host memory |
    | gather | | 1: context-parallel ranks gather K and V before the core; 0: they pass them round a ring |
    | document | | tokens that see each other where documents are packed into a sequence; 0: the sequence |
    | forwards | | passes forward besides, without a backward pass (`objective`) |
    | reference | | copies of the weights in 16 bit that those passes run through, and nothing trains |
    | scored | | share of the tokens whose logits are made |
    """

    micro_batch: Real = 1.0
    global_batch: Real = 1.0
    seq: Real = 2048.0
    zero: Real = 1.0
    shard: Real = 1.0
    sequence: Real = 1.0
    full: Real = 0.0
    selective: Real = 0.0
    bubble: Real = 1.0
    in_flight: Real = 1.0
    adapter: Real = 0.0
    offload: Real = 0.0
    stash: Real = 0.0
    gather: Real = 0.0
    document: Real = 0.0
    forwards: Real = 0.0
    reference: Real = 0.0
    scored: Real = 1.0

    @property
    def seen(self) -> Real:
        """Tokens that a token may see, all pairs counted: those of its document or sequence."""
        return np.where(np.asarray(self.document) > 0, np.minimum(self.document, self.seq), self.seq)

    @property
    def tokens(self) -> Real:
        """Tokens per rank and micro-batch [x]."""
        return self.micro_batch * self.seq / self.cp

    @property
    def micro_batches(self) -> Real:
        """Micro-batches per replica and step [m], at least one."""
        return np.maximum(self.global_batch / (self.dp * self.micro_batch), 1.0)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Devices and what joins them; FLOP/s, bytes/s, bytes, all of one device.

    | field | symbol | meaning |
    |---|---|---|
    | wide, narrow | P16, P | dense peak in 16 bit, in which the core runs, and of the products with weights |
    | memory_bytes, memory_bytes_per_s | | B |
    | link_bytes_per_s, domain | Λ, Ω | scale-up fabric: one direction per device, devices joined |
    | nic_bytes_per_s | Ν | scale-out, one direction per device; NaN or 0: none |
    | axes | | dimensions of a torus; 0: any other fabric |
    | mesh | | 1: a link between every pair, of which a group of t uses t - 1 |
    | host_bytes_per_s | | to host memory, for offload |
    | host_memory_bytes | | of the host, a device's share: the most that is on offer; infinite where nobody says |
    """

    wide: Real
    narrow: Real
    memory_bytes: Real
    memory_bytes_per_s: Real
    link_bytes_per_s: Real
    domain: Real
    nic_bytes_per_s: Real
    axes: Real = 0.0
    mesh: Real = 0.0
    host_bytes_per_s: Real = 25e9
    host_memory_bytes: Real = np.inf

    @property
    def network(self) -> Network:
        """The part that groups of ranks see."""
        return Network(self.link_bytes_per_s, self.domain, self.nic_bytes_per_s, self.axes, self.mesh)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What software does by design, as numbers: fixed by stack and precision, not fitted.

    | field | meaning |
    |---|---|
    | flash | 1: attention core fused; 0: scores are written |
    | score_passes | where scores are written: their traffic over that of a fused softmax and dropout |
    | fused | 1: collectives of tp and cp can hide behind products |
    | compiled | 1: one program per step, no host work per layer (XLA, Neuron) |
    | graphs | 1: CUDA graphs |
    | hides_experts | 1: dispatch and combine run behind another micro-batch's products (DualPipe) |
    | fused_experts | 1: kernels of experts' products apply activations and quantise |
    | regather | 1: FSDP gathers weights again for every micro-batch |
    | broadcast | 1: ZeRO-1 sends weights rank by rank |
    | flat | 1: gradients go round all ranks in one ring, each over its own NIC |
    | hooked | 1: experts are modules of their own, whose matrices FSDP gathers one by one from hooks |
    | looped | 1: Python runs one expert after the other, and waits for the rows of each |
    | copies | 1: a token goes to each of its experts, not once to each machine that holds any |
    | grouped | 1: one product of all experts, which one start from the host takes |
    | stops | 1: what is run again stops before a layer's last product, which nothing of the backward pass reads |
    | quantises | 1: kernels of their own write operands in the narrow type, along both sides |
    | summed | bytes of a gradient on the wire while FSDP sums it |
    | optimiser | 1: the step holds the optimiser; 0: forward and backward only |
    | frozen_bytes | bytes per frozen parameter under adapters |
    | dora | 1: adapters rescale every weight by its norm (DoRA): one more pass over the weights |
    | master | bytes per trained parameter of a copy in full precision beside the weights that compute; FSDP cuts it up
    and keeps no other |
    | moments | bytes per trained parameter of the optimiser's state (Adam in fp32: 8) |
    | products | FLOPs of the optimiser's matrix products per trained parameter and row of a matrix's shorter side |
    | gradient | bytes per trained parameter of gradients, as they are summed over micro-batches |
    | released | 1: the optimiser runs inside the backward pass, one layer's gradients are held at a time |
    | loss | bytes per token and entry of the vocabulary at the peak of the loss: logits, a copy, their gradient |
    | whole_logits | 1: ranks of tensor parallelism gather the logits, each holds those of all the vocabulary |
    | operand | bytes per entry that a product saves for its backward pass: 2, of fp8 1 |
    | gathered, gathered_table | bytes per parameter of a layer, of a table, that FSDP gathered: weights, the next ones,
    gradients |
    | dropped | share of what a layer saves that selective recomputation by operator drops; 0: norms and activations |
    | masks | 1: dropout keeps a mask of a byte per entry, twice a layer |
    | adapter_passes | passes over inputs and outputs of adapted products, forward: dropout, scale, add; 0: fused |
    """

    flash: Real = 1.0
    score_passes: Real = 1.0
    fused: Real = 1.0
    compiled: Real = 0.0
    graphs: Real = 0.0
    hides_experts: Real = 0.0
    fused_experts: Real = 0.0
    regather: Real = 1.0
    broadcast: Real = 0.0
    flat: Real = 0.0
    hooked: Real = 0.0
    looped: Real = 0.0
    grouped: Real = 0.0
    copies: Real = 0.0
    stops: Real = 0.0
    quantises: Real = 0.0
    summed: Real = 2.0
    optimiser: Real = 1.0
    frozen_bytes: Real = 2.0
    adapter_passes: Real = 0.0
    dora: Real = 0.0
    master: Real = 4.0
    moments: Real = 8.0
    products: Real = 0.0
    gradient: Real = 4.0
    released: Real = 0.0
    loss: Real = 6.0
    whole_logits: Real = 0.0
    operand: Real = 2.0
    gathered: Real = 8.0
    gathered_table: Real = 6.0
    dropped: Real = 0.0
    masks: Real = 1.0

    @property
    def timed(self) -> Recipe:
        """What the kernels of layers and the head see of it: what only memory and the update see is as by default."""
        return replace(
            self, master=4.0, moments=8.0, gradient=4.0, released=0.0, loss=6.0, gathered=8.0, gathered_table=6.0
        )


@dataclass(frozen=True, slots=True)
class TrainRates:
    """What is fitted: shares of peaks, seconds, exposed shares. Numbers or one per row.

    | field | symbol | unit | meaning |
    |---|---|---|---|
    | linear | | share | of the speed that products have alone |
    | core | | share | of the speed that attention cores have alone |
    | memory | ε_m | share | of memory bandwidth, of the optimiser |
    | passes | κ_e | passes | over the saved activations, forward |
    | host_s | h | s | host work per layer and micro-batch, forward and backward |
    | moe_host_s, expert_host_s | | s | the same, more for a layer with experts; for each of them on a rank |
    | tp_exposed, dp_exposed, pp_exposed | 1 - o | share | of collectives, not hidden |
    | fsdp_overlap | q | exponent | sharpness of the overlap of FSDP traffic with compute; 1: none |
    | expert_loss | φ | factor | permutation, imbalance, grouped products |
    | all_to_all, all_to_all_net | η_a | share | of link, of network bandwidth; above 1 where hidden |
    | rank_s | | s | per rank of a ZeRO-1 group that sends weights rank by rank |
    | step_s | | s | once per step |
    | straggle | j | | more time per doubling of the nodes |
    | links | | | numbers of single collectives by kind, as measured: not fitted to steps; absent ones are the priors |
    """

    linear: Real = 0.87
    core: Real = 0.8
    memory: Real = 0.86
    passes: Real = 2.2
    host_s: Real = 1.3e-3
    moe_host_s: Real = 3e-3
    expert_host_s: Real = 30e-6
    tp_exposed: Real = 0.4
    dp_exposed: Real = 0.45
    pp_exposed: Real = 0.85
    fsdp_overlap: Real = 1.3
    expert_loss: Real = 1.5
    all_to_all: Real = 0.6
    all_to_all_net: Real = 0.9
    rank_s: Real = 20e-6
    step_s: Real = 10e-3
    straggle: Real = 0.006
    links: Mapping[Kind, CollectiveParameters] = field(default_factory=dict)

    @property
    def alone(self) -> TrainRates:
        """What no software beats: kernels as fast as they are alone, one pass over what is saved, no work of the host,
        and nothing that is waited for."""
        return replace(
            self,
            linear=np.maximum(self.linear, 1.0),
            core=np.maximum(self.core, 1.0),
            passes=np.minimum(self.passes, 1.0),
            expert_loss=np.minimum(self.expert_loss, 1.0),
            host_s=0.0,
            moe_host_s=0.0,
            expert_host_s=0.0,
            tp_exposed=0.0,
            pp_exposed=0.0,
            step_s=0.0,
            straggle=0.0,
        )

    def of(self, kind: Kind) -> CollectiveParameters:
        """Numbers of one kind of exchange."""
        return self.links.get(kind, CollectiveParameters())
