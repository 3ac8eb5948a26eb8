"""Encoder-decoders: the source goes through an encoder once, every decoder layer attends to its output.

Shapes: huggingface/transformers, models/t5 and models/whisper.
"""

from __future__ import annotations

from chipwise.errors import UsageError
from chipwise.workload.families.shared import tied
from chipwise.workload.model import (
    CrossAttention,
    Dense,
    EmbeddingTable,
    Ends,
    Layer,
    NetworkModel,
    SelfAttention,
    Tower,
)
from chipwise.workload.reader import Reader


def read_t5(r: Reader) -> NetworkModel:
    """T5 and Flan-T5: norms without offset, no biases, a table of relative positions per stack.

    The decoder's source is the prompt, so that cross attention is sized by the context.
    """
    r.skip("relative_attention_max_distance", "dropout_rate", "classifier_dropout", "dense_act_fn")
    r.skip("is_encoder_decoder", "decoder_start_token_id", "is_gated_act", "use_cache")
    hidden = r.count("hidden_size", high=1_000_000)
    heads, size = r.count("num_heads", high=100_000), r.count("d_kv", high=65_536)
    kind = r.text("feed_forward_proj", default="relu")
    if kind not in ("relu", "gated-gelu", "gated-silu"):
        raise UsageError(f"{r.origin}: feed_forward_proj = {kind!r} is not read", "relu, gated-gelu or gated-silu")
    feed = Dense(r.count("d_ff"), gated=kind.startswith("gated"))
    layers = r.count("num_layers", high=10_000)
    inside = r.count("num_decoder_layers", high=10_000, default=layers)
    relative = EmbeddingTable("relative", r.count("relative_attention_num_buckets", default=32), heads)
    encoder = Tower(
        "encoder",
        hidden,
        ((layers, Layer(SelfAttention(heads, heads, size, causal=False), feed)),),
        (relative, EmbeddingTable("last_norm", hidden, 1)),
    )
    cross = CrossAttention(heads, heads, size, 0, hidden)
    layer = Layer(SelfAttention(heads, heads, size), feed, cross=cross)
    return NetworkModel([layer] * inside, tied(r, True), ends=Ends(tables=(relative,)), encoder=encoder)


def read_whisper(r: Reader) -> NetworkModel:
    """Whisper: two convolutions over the spectrum, learned positions, biases except on keys, a tied head."""
    r.skip("is_encoder_decoder", "decoder_start_token_id", "activation_function", "activation_dropout", "dropout")
    r.skip("decoder_layerdrop", "encoder_layerdrop", "scale_embedding", "num_hidden_layers", "begin_suppress_tokens")
    r.skip("suppress_tokens", "forced_decoder_ids", "init_std", "apply_spec_augment", "use_weighted_layer_sum")
    r.skip("classifier_proj_size", "median_filter_width", "tie_word_embeddings", "max_length")
    r.skip(*(key for key in r.data if key.startswith("mask_")))
    hidden = r.count("hidden_size", high=1_000_000)
    source, mels = r.count("max_source_positions"), r.count("num_mel_bins", high=10_000)
    tables = (
        EmbeddingTable("conv1", hidden, 3 * mels, bias=True),
        EmbeddingTable("conv2", hidden, 3 * hidden, bias=True),
        EmbeddingTable("positions", source, hidden),
        EmbeddingTable("last_norm", hidden, 1, bias=True),
    )
    run = (r.count("encoder_layers", high=10_000), _whisper_layer(r, "encoder", hidden, 0))
    layer = _whisper_layer(r, "decoder", hidden, source)
    positions = EmbeddingTable("positions", r.count("max_position_embeddings"), hidden)
    return NetworkModel(
        [layer] * r.count("decoder_layers", high=10_000),
        tied=True,
        ends=Ends(tables=(positions,)),
        encoder=Tower("encoder", hidden, (run,), tables),
    )


def _whisper_layer(r: Reader, part: str, hidden: int, source: int) -> Layer:
    heads = r.count(f"{part}_attention_heads", high=100_000)
    if hidden % heads:
        raise UsageError(f"{r.origin}: {part}_attention_heads = {heads} does not divide d_model = {hidden}")
    size = hidden // heads
    attention = SelfAttention(heads, heads, size, qkv_bias=True, out_bias=True, key_bias=False, causal=source > 0)
    feed = Dense(r.count(f"{part}_ffn_dim"), gated=False, bias=True)
    cross = None
    if source:
        cross = CrossAttention(heads, heads, size, source, hidden, qkv_bias=True, out_bias=True, key_bias=False)
    return Layer(attention, feed, norm="layer", cross=cross)
