"""The mean layer of a network, read off its graph."""

from __future__ import annotations

from chipwise.predict.training.values import Adapters, Transformer
from chipwise.workload.axes import Sizes
from chipwise.workload.graph import Graph
from chipwise.workload.model import CompressedAttention, Dense, LatentAttention, Layer, MoE, SelfAttention
from chipwise.workload.program import Block

TARGETS = ("attention", "linear", "experts")
UNREACHED = 1e12
"""tokens: a window that no sequence fills. Exact: a bound above any sequence."""


def plain(
    layers: float,
    hidden: float,
    heads: float,
    ffn: float,
    vocab: float,
    *,
    kv_heads: float = 0.0,
    head_dim: float = 0.0,
    gated: bool = False,
    causal: bool = True,
    tied: bool = True,
) -> Transformer:
    """A dense transformer by its dimensions; without kv_heads multi-head, without head_dim hidden / heads."""
    kv = kv_heads or heads
    d = head_dim or hidden / heads
    return Transformer(
        layers=float(layers),
        hidden=float(hidden),
        vocab=float(vocab),
        mixer_in=(heads + 2.0 * kv) * d,
        mixer_out=heads * d,
        core_width=heads * d,
        heads=float(heads),
        head_dim=float(d),
        kv_width=2.0 * kv * d,
        causal=float(causal),
        ffn=float(ffn),
        gates=2.0 if gated else 1.0,
        tied=float(tied),
    )


def adapter_share(t: Transformer, a: Adapters) -> float:
    """Parameters of adapters over those of the model: rank x (inputs + outputs) of every product that has one.

    A mixer's input projections count as three, its output as one; a gated feed-forward has three products.
    """
    h = float(t.hidden)
    each = 4.0 * h + float(t.mixer_in) + float(t.mixer_out)
    if a.targets != "attention":
        shared = float(t.moe_share) * (float(t.expert_gates) + 1.0) * (h + float(t.shared_ffn))
        each += float(t.dense_share) * (float(t.gates) + 1.0) * (h + float(t.ffn))
        each += shared if float(t.shared_ffn) else 0.0
    if a.targets == "experts":
        wide = (float(t.expert_gates) + 1.0) * (float(t.expert_width) + float(t.expert_ffn))
        each += float(t.moe_share) * float(t.experts) * wide
    return a.rank * float(t.layers) * each / float(t.params)


def _mean(total: float, count: float, none: float) -> float:
    return total / count if count else none


def transformer(graph: Graph) -> Transformer:
    """The mean layer of a graph. Mixers that are no softmax attention count by their parameters; selection of
    tokens by an index and compression count as a window of what is attended to."""
    model = graph.model
    layers = float(model.layers)
    sums = dict.fromkeys(_NAMES, 0.0)
    experts = top_k = expert_ffn = inner = 0.0
    gates = {"dense": 0.0, "moe": 0.0}
    for (repeat, layer), (_, block) in zip(model.runs, graph.runs, strict=True):
        for name, value in _mixer(layer, block, float(model.hidden)).items():
            sums[name] += repeat * value
        f = layer.ffn
        if isinstance(f, Dense):
            sums["dense"] += repeat
            sums["ffn"] += repeat * f.width
            gates["dense"] += repeat * (2.0 if f.gated else 1.0)
        elif isinstance(f, MoE):
            sums["moe"] += repeat
            sums["shared"] += repeat * f.shared_width
            gates["moe"] += repeat * (2.0 if f.gated else 1.0)
            experts, top_k, expert_ffn = float(f.experts), float(f.top_k), float(f.width)
            inner = float(f.latent or model.hidden)
    dense, moe, cores = sums["dense"], sums["moe"], sums["core"]
    return Transformer(
        layers=layers,
        hidden=float(model.hidden),
        vocab=float(model.vocab),
        mixer_in=sums["mixer_in"] / layers,
        mixer_out=sums["mixer_out"] / layers,
        core_width=_mean(sums["core_width"], cores, 0.0),
        heads=_mean(sums["heads"], cores, 1.0),
        head_dim=_mean(sums["head_dim"], cores, 128.0),
        kv_width=_mean(sums["kv_width"], cores, 0.0),
        core_share=cores / layers,
        window=_mean(sums["window"], sums["windowed"], UNREACHED),
        window_share=_mean(sums["windowed"], cores, 0.0),
        causal=0.0 if _encoder(graph) else 1.0,
        ffn=_mean(sums["ffn"], dense, 0.0),
        gates=_mean(gates["dense"], dense, 2.0),
        dense_share=dense / layers,
        experts=experts or 1.0,
        top_k=top_k,
        expert_ffn=expert_ffn,
        shared_ffn=_mean(sums["shared"], moe, 0.0),
        expert_gates=_mean(gates["moe"], moe, 2.0),
        moe_share=moe / layers,
        expert_hidden=inner,
        tied=float(model.tied),
    )


_NAMES = "mixer_in mixer_out core core_width heads head_dim kv_width window windowed dense ffn moe shared".split()


def _encoder(graph: Graph) -> bool:
    layer = graph.model.runs[0][1]
    return isinstance(layer.mixer, SelfAttention) and not layer.mixer.causal


def _mixer(layer: Layer, block: Block, hidden: float) -> dict[str, float]:
    """Widths of one layer's mixer; input columns are what its parameters say beyond the output projection."""
    sizes = Sizes(block.axes)
    params = float(sum(t.params(sizes) for t in block.tensors if t.cls == "attention" and not t.buffer))
    m = layer.mixer
    found = {"mixer_in": 0.75 * params / hidden, "mixer_out": 0.25 * params / hidden}
    if isinstance(m, SelfAttention):
        value = m.value_dim or m.head_dim
        top = m.index.top_k if m.index else 0
        found |= _core(m.heads, m.head_dim, value, m.kv_heads * (m.head_dim + value), m.window or top)
    elif isinstance(m, LatentAttention):
        key = m.nope_dim + m.rope_dim
        window = m.index.top_k if m.index else m.top_k
        found |= _core(m.heads, key, m.value_dim, m.heads * (key + m.value_dim), window)
    elif isinstance(m, CompressedAttention):
        seen = m.window + (m.index.top_k if m.index else 0)
        found |= _core(m.heads, m.head_dim, m.head_dim, m.head_dim, seen)
    if "core" in found:
        rest = params / hidden - found["mixer_out"]
        # output projections of low rank have fewer parameters than heads x value size: a quarter of all is theirs
        found |= (
            {"mixer_in": rest}
            if rest > 0
            else {"mixer_in": 0.75 * params / hidden, "mixer_out": 0.25 * params / hidden}
        )
    return found


def _core(heads: float, key: float, value: float, kv_width: float, window: float) -> dict[str, float]:
    return {
        "mixer_out": heads * value,
        "core": 1.0,
        "core_width": heads * (key + value) / 2.0,
        "heads": float(heads),
        "head_dim": float(key),
        "kv_width": float(kv_width),
        "window": float(window),
        "windowed": 1.0 if window else 0.0,
    }
