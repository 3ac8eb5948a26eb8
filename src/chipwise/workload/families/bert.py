"""Encoders: every token sees all others, nothing is cached or generated, a pooler gives one row per text.

Shapes: huggingface/transformers, models/bert, roberta, xlm_roberta, distilbert. The head of masked-word
training is left out, as in embedding and classification.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.workload.families.shared import heads_of, layer_count
from chipwise.workload.model import Dense, Ends, Layer, Network, Table
from chipwise.workload.reader import Reader

__all__ = ["read_bert", "read_distilbert"]


def read_bert(r: Reader) -> Network:
    """BERT and RoBERTa: learned positions, token types, a norm after the embedding and none at the end."""
    r.require("is_decoder", (False,), "only encoders are read")
    r.require("position_embedding_type", ("absolute",), "only learned positions are read")
    r.skip(
        "hidden_act", "classifier_dropout", "directionality", "gradient_checkpointing", "tie_word_embeddings"
    )
    r.skip(
        "pooler_fc_size",
        "pooler_num_attention_heads",
        "pooler_num_fc_layers",
        "pooler_size_per_head",
        "pooler_type",
    )
    hidden = r.count("hidden_size", high=1_000_000)
    tables = (
        Table("positions", r.count("max_position_embeddings"), hidden),
        Table("token_types", r.count("type_vocab_size", low=0), hidden),
    )
    return _encoder(r, tables, pooler=True)


def read_distilbert(r: Reader) -> Network:
    """DistilBERT: neither token types nor pooler."""
    r.skip(
        "hidden_act", "sinusoidal_pos_embds", "qa_dropout", "seq_classif_dropout", "tie_weights_", "dropout"
    )
    positions = Table("positions", r.count("max_position_embeddings"), r.count("hidden_size", high=1_000_000))
    return _encoder(r, (positions,), pooler=False)


def _encoder(r: Reader, tables: tuple[Table, ...], *, pooler: bool) -> Network:
    attention = replace(heads_of(r, bias=True), causal=False)
    layer = Layer(attention, Dense(r.count("intermediate_size"), gated=False, bias=True), norm="layer")
    ends = Ends(tables, embedding_norm=True, final_norm=False, head=False, pooler=pooler)
    return Network([layer] * layer_count(r), tied=False, ends=ends)
