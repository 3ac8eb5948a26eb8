"""Decoders and encoders by table: what sets each family apart from Llama stands in `workload/data/families.toml`.

A row says which biases, norms, windows, tables and experts a family has, and under which keys its configurations
name them; `Family.read` turns a configuration into layers. Families whose layers differ in kind (latent attention,
state spaces, delta nets) have readers of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal

from chipwise.catalog.parsed import parse
from chipwise.catalog.schema import record
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.errors import UsageError
from chipwise.values import dataclass
from chipwise.workload.families.shared import (
    attention_dims,
    check_activation,
    dense_layers,
    heads_of,
    layer_count,
    tied,
    windows,
)
from chipwise.workload.model import FFN, MTP, Dense, EmbeddingTable, Ends, Layer, MoE, NetworkModel, SelfAttention
from chipwise.workload.reader import Reader

TABLE = "workload/data/families.toml"

Switch = bool | str
"""true, false, or a flag of the configuration: "key" (false where absent) or "key=true"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertKeys:
    """Where a family's configurations name their experts.

    `experts`, `top_k`, `width`: keys, of which the first that is present counts. Shared experts: `shared` is the key
    of their number, of one expert's width each, or `shared_width` of their width in all. `latent` is the key of a
    narrower width that experts work on. `router_bias` is trained,
    `router_buffer` corrects the load. `dense`: which layers have no experts: none (""), those of `mlp_layer_types` or
    the `first_k_dense_replace` ("first"), `mlp_only_layers` and all between every `decoder_sparse_step`-th ("steps"),
    or those outside `moe_layer_start_index` to `moe_layer_end_index` ("outside").
    """

    experts: tuple[str, ...] = ("num_experts", "n_routed_experts", "num_local_experts")
    top_k: tuple[str, ...] = ("num_experts_per_tok", "moe_topk")
    width: tuple[str, ...] = ("moe_intermediate_size",)
    shared: str = ""
    shared_width: str = ""
    shared_gate: bool = False
    latent: str = ""
    bias: bool = False
    router_bias: bool = False
    router_buffer: bool = False
    dense: Literal["", "first", "steps", "outside"] = ""

    def read(self, r: Reader, *, gated: bool) -> MoE:
        """The experts of a layer."""
        experts = r.count(*self.experts, high=100_000)
        top_k, width = r.count(*self.top_k, high=experts), r.count(*self.width)
        shared = 0
        if self.shared:
            shared = width * r.count(self.shared, low=0, high=1000, default=0)
        elif self.shared_width:
            shared = r.count(self.shared_width, low=0)
        return MoE(
            experts,
            top_k,
            width,
            gated=gated,
            bias=self.bias,
            shared_width=shared,
            shared_gate=self.shared_gate and shared > 0,
            router_bias=self.router_bias,
            router_buffer=self.router_buffer,
            latent=r.count(self.latent, low=0, default=0) if self.latent else 0,
        )

    def dense_at(self, r: Reader, layers: int) -> list[bool]:
        """Which layers have a dense feed-forward."""
        if self.dense == "first":
            return dense_layers(r, layers)
        if self.dense == "steps":
            every, alone = r.count("decoder_sparse_step", default=1), r.numbers("mlp_only_layers", default=())
            return [i in alone or (i + 1) % every != 0 for i in range(layers)]
        if self.dense == "outside":
            first = r.count("moe_layer_start_index", low=0, default=1)
            last = r.count("moe_layer_end_index", low=-1, default=-1)
            every, end = r.count("moe_layer_interval", default=1), layers - 1 if last < 0 else last
            return [not (first <= i <= end and (i + 1) % every == 0) for i in range(layers)]
        return [False] * layers


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What sets a family apart from Llama.

    Attention: `heads` are grouped, or one key head per query head ("each"; "grouped quietly": grouped where the
    configuration says so), their number by layer under `heads_by_layer`, a single key head under `one_kv_head`;
    `qk_norm` over each head or all, `gate` of the output, each where its switch is on; `sinks`; `window`: as the
    common keys say ("layers"), none, all but every `pattern`-th layer ("pattern"; "stated pattern": only where the
    configuration has one), or all but the first of `pattern` ("first of").

    Feed-forward: `gated` (three matrices; else two), of width `intermediate_size`, which counts both halves where
    `halved` and is four times the model's where absent and `four_times`; `any_activation`: its name is not looked at.
    `moe`: experts. Norms: `norm` "rms", "layer" or "plain" (no weights), placed as `norms` says; one for both halves,
    in parallel, with `shared_norm_if`; both halves in parallel after a norm each with `parallel`.

    Ends: `tied` unless the configuration says otherwise, `head_bias`, `embedding_norm`; a table of `positions` with
    `spare_positions` rows more, `token_types`; an `encoder` has no head, sees both ways and perhaps a `pooler`;
    `last_norm` 1: encoders with a norm at the end. `mtp`: prediction modules of one layer: the "last" one, with
    "experts", or "dense"; `mtp_tables`: copies of embedding and head that checkpoints hold for each.

    `left_out`: an assumption that is always said, or where `left_out_if` is a number above zero. `headed`: classes
    called ...Model have a head all the same.
    """

    types: tuple[str, ...] = ()
    heads: Literal["grouped", "grouped quietly", "each"] = "grouped"
    heads_by_layer: str = ""
    one_kv_head: Switch = False
    qkv_bias: Switch = False
    out_bias: Switch = False
    mlp_bias: Switch = False
    qk_norm: Literal["", "head", "all"] = ""
    qk_norm_if: Switch = True
    gate: Literal["", "head", "element"] = ""
    gate_if: Switch = True
    sinks: bool = False
    window: Literal["layers", "none", "pattern", "stated pattern", "first of"] = "layers"
    pattern: int = 0
    gated: bool = True
    halved: bool = False
    four_times: bool = False
    any_activation: bool = False
    moe: ExpertKeys | None = None
    norm: Literal["rms", "layer", "plain"] = "rms"
    norms: Literal["before", "around", "third"] = "before"
    shared_norm_if: Switch = False
    parallel: Switch = False
    tied: bool = False
    head_bias: Switch = False
    embedding_norm: bool = False
    positions: bool = False
    spare_positions: int = 0
    token_types: bool = False
    encoder: bool = False
    pooler: bool = False
    last_norm: bool = False
    mtp: Literal["", "last", "experts", "dense"] = ""
    mtp_tables: int = 0
    same_width: str = ""
    headed: bool = False
    left_out: str = ""
    left_out_if: str = ""
    rename: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    require: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    skip: tuple[str, ...] = ()

    def read(self, r: Reader) -> NetworkModel:
        """The layers of a configuration, and what surrounds them. Raises `UsageError`."""
        self._check(r)
        attention = self._attention(r)
        count = layer_count(r)
        ffns = self._feed_forwards(r, count)
        spans = self._windows(r, count)
        layers = [self._layer(r, replace(attention, window=w), f) for w, f in zip(spans, ffns, strict=True)]
        if self.heads_by_layer and r.has(self.heads_by_layer):
            heads = r.numbers(self.heads_by_layer, length=count)
            layers = [replace(x, mixer=self._with_heads(x.mixer, h)) for x, h in zip(layers, heads, strict=True)]
        network = NetworkModel(layers, self._tied(r), ends=self._ends(r))
        return replace(network, mtp=self._mtp(r, layers[-1], attention)) if self.mtp else network

    def _check(self, r: Reader) -> None:
        for key, allowed in self.require.items():
            r.require(key, allowed, f"read with {' or '.join(str(a).lower() for a in allowed)} alone")
        if self.same_width:
            hidden = r.count("hidden_size", high=1_000_000)
            r.require(self.same_width, (hidden,), "only tables of the model's own width are read")
        if not self.left_out_if:
            if self.left_out:
                r.assume(self.left_out)
        elif r.count(self.left_out_if, low=0, default=0):
            r.assume(self.left_out)
        if self.gated and not self.any_activation:
            check_activation(r)
        else:
            r.skip("hidden_act", "hidden_activation")
        r.skip(*self.skip)

    def _attention(self, r: Reader) -> SelfAttention:
        if self.heads == "grouped":
            dims = attention_dims(r)
        else:
            dims = heads_of(r, bias=False)
            if self.heads == "grouped quietly":
                kv_heads = r.count("num_key_value_heads", high=dims.heads, default=dims.heads)
                dims = replace(dims, kv_heads=kv_heads)
        if _on(r, self.one_kv_head):
            dims = replace(dims, kv_heads=1)
        return replace(
            dims,
            qkv_bias=_on(r, self.qkv_bias),
            out_bias=_on(r, self.out_bias),
            qk_norm=self.qk_norm if self.qk_norm and _on(r, self.qk_norm_if) else "",
            gate=self.gate if self.gate and _on(r, self.gate_if) else "",
            sinks=self.sinks,
            causal=not self.encoder,
        )

    def _with_heads(self, mixer: Any, heads: int) -> SelfAttention:
        if heads < 1 or heads % mixer.kv_heads:
            raise UsageError(f"{self.heads_by_layer}: {mixer.kv_heads} key/value heads do not divide {heads}")
        changed: SelfAttention = replace(mixer, heads=heads)
        return changed

    def _feed_forwards(self, r: Reader, count: int) -> list[FFN]:
        if self.moe is None:
            return [self._dense(r)] * count
        moe = self.moe.read(r, gated=self.gated)
        dense_at = self.moe.dense_at(r, count)
        if not any(dense_at):
            if self.moe.dense:
                r.skip("intermediate_size")
            return [moe] * count
        dense = self._dense(r)
        return [dense if alone else moe for alone in dense_at]

    def _dense(self, r: Reader) -> Dense:
        hidden = r.count("hidden_size", high=1_000_000)
        width = r.count("intermediate_size", **({"default": 4 * hidden} if self.four_times else {}))
        if self.halved:
            if width % 2:
                raise UsageError(f"{r.origin}: intermediate_size = {width} counts two halves", "an even number")
            width //= 2
        return Dense(width, gated=self.gated, bias=_on(r, self.mlp_bias))

    def _windows(self, r: Reader, count: int) -> list[int]:
        if self.window == "none":
            return [0] * count
        stated = ("sliding_window_pattern", "_sliding_window_pattern")
        listed = r.has("layer_types") or (self.window == "stated pattern" and not r.has(stated[0]))
        if self.window == "layers" or listed:
            r.skip(*stated, "global_attn_every_n_layers")
            return windows(r, count)
        if self.window == "first of":
            every = r.count("global_attn_every_n_layers", default=self.pattern)
            return [0 if i % every == 0 else r.count("sliding_window") for i in range(count)]
        if isinstance(letters := r.data.get(stated[0]), str):
            every = len(letters)
            r.require(stated[0], ("L" * (every - 1) + "G",), "local layers, then one global layer")
        else:
            every = r.count(*stated, default=self.pattern or None)
        if self.window == "pattern" and not r.has("sliding_window") and not r.has(stated[0]):
            return [0] * count
        size = r.count("sliding_window")
        return [0 if (i + 1) % every == 0 else size for i in range(count)]

    def _layer(self, r: Reader, attention: SelfAttention, ffn: FFN) -> Layer:
        if self.shared_norm_if and _on(r, self.shared_norm_if):
            return Layer(attention, ffn, norm=self.norm, parallel=True, norms="shared")
        return Layer(attention, ffn, norm=self.norm, norms=self.norms, parallel=_on(r, self.parallel))

    def _tied(self, r: Reader) -> bool:
        return False if self.encoder else tied(r, self.tied)

    def _ends(self, r: Reader) -> Ends:
        hidden = r.count("hidden_size", high=1_000_000)
        tables: tuple[EmbeddingTable, ...] = ()
        if self.positions:
            tables += (EmbeddingTable("positions", r.count("max_position_embeddings") + self.spare_positions, hidden),)
        if self.token_types:
            tables += (EmbeddingTable("token_types", r.count("type_vocab_size", low=0), hidden),)
        if not self.encoder:
            return Ends(tables, embedding_norm=self.embedding_norm, head_bias=_on(r, self.head_bias))
        return Ends(tables, embedding_norm=True, final_norm=self.last_norm, head=False, pooler=self.pooler)

    def _mtp(self, r: Reader, last: Layer, attention: SelfAttention) -> MTP:
        modules = r.count("num_nextn_predict_layers", low=0, high=100, default=0)
        layer = replace(last, mixer=attention)
        if self.mtp == "dense":
            layer = replace(layer, ffn=self._dense(r))
        elif self.mtp == "experts" and self.moe is not None:
            layer = replace(layer, ffn=self.moe.read(r, gated=self.gated))
        return MTP(modules, (layer,), tables=self.mtp_tables)


@per_snapshot
def families() -> Mapping[str, Family]:
    """The rows of the table by `model_type`. A row that is `like` another begins with the other's."""
    rows: dict[str, dict[str, Any]] = {}
    found: dict[str, Family] = {}
    for name, row in parse(shipped_text(TABLE)).items():
        parent = rows[row.pop("like")] if "like" in row else {}
        moe = {**parent.get("moe", {}), **row.get("moe", {})}
        rows[name] = {**parent, **row, **({"moe": moe} if moe else {})}
        family = record(Family, rows[name], f"{TABLE}: {name}")
        found |= dict.fromkeys(family.types, family)
    return found


def _on(r: Reader, switch: Switch) -> bool:
    if isinstance(switch, bool):
        return switch
    key, _, usual = switch.partition("=")
    return r.flag(key, default=usual == "true")
