"""Configuration -> Model: the common keys, the family's layers, and the rule of unread keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from chipwise.catalog.configs import DIMENSIONS_EXAMPLE, ModelConfig
from chipwise.errors import UnknownNameError, UsageError
from chipwise.workload.families import NOT_READ_YET, READERS, RENAMED, find_family, known_types
from chipwise.workload.families.decoder import Family
from chipwise.workload.families.vision import TOWERS
from chipwise.workload.model import Model, NetworkModel, Tower, runs_of
from chipwise.workload.quantization import read_precision
from chipwise.workload.reader import Reader

TEXT_PARTS = ("text_config", "language_config", "llm_config", "thinker_config")
"""Where a configuration of several parts keeps its language model."""
OTHER_PARTS = ("audio_config", "talker_config", "code2wav_config", "gen_vision_config", "vision_config")
"""What may stand beside it."""
KEPT = ("torch_dtype", "dtype", "quantization_config", "architectures")

DRAFTS = {
    "eagle": "EAGLE",
    "dflash": "DFlash",
    "dspark": "DSpark",
    "domino": "Domino",
    "medusa": "Medusa",
    "speculator": "a speculator",
    "draft": "a draft",
}
"""What an architecture's name says that only guesses tokens for another model."""

HEADLESS = ("Model", "ForSequenceClassification", "ForTokenClassification", "ForTextEncoding")
"""How the names of architectures end that have no logits over the vocabulary (transformers, auto classes)."""


def load_model(config: ModelConfig) -> Model:
    """The model that a configuration describes.

    Raises `UsageError` for a key that is missing, malformed or of an unread family, and for a draft of speculative
    decoding; `UnknownNameError` for a `model_type` that nobody has heard of.
    """
    outer = Reader(config.data, config.origin)
    _refuse_drafts(config)
    kind = outer.text("model_type")
    inner = _text_part(outer)
    if not _is_read(kind) or (kind == "llava" and inner is not outer):
        kind = _inner_kind(outer, inner, kind)
    family = find_family(kind)
    names = family.rename if family else RENAMED.get(kind, {})
    r = _completed(family, _renamed(inner, names))
    found = family.read(r) if family else READERS[kind](r)
    network = found if isinstance(found, NetworkModel) else NetworkModel(*found)
    if network.ends.head and not (family and family.headed) and _is_headless(r):
        r.assume(f"no head: the architecture {r.data['architectures'][0]} gives no logits")
        network = replace(network, ends=replace(network.ends, head=False, head_bias=False))
    hidden = r.count("hidden_size", high=1_000_000)
    towers = network.towers + _towers(outer, hidden, r)
    precision, layers = read_precision(r, network.layers)
    model = Model(
        name=config.name,
        architecture=outer.text("model_type"),
        hidden=hidden,
        vocab=r.count("vocab_size", high=100_000_000),
        runs=runs_of(layers),
        precision=precision,
        tied=network.tied,
        max_context=r.count("max_position_embeddings", "model_max_length", default=0, low=0, high=10**9),
        mtp=network.mtp,
        towers=towers,
        ends=network.ends,
        encoder=network.encoder,
    )
    for reader in (r,) if inner is outer else (r, outer):
        unread = list(reader.unread())
        for key in unread[:MOST_UNREAD]:
            r.assume(f"{key} was not read: taken to have no effect on size or cost")
        if left := unread[MOST_UNREAD:]:
            r.assume(f"{len(left):,} more keys were not read: taken to have no effect on size or cost")
    return replace(model, assumptions=(*config.notes, *r.assumptions))


MOST_UNREAD = 200
"""Keys that are named one by one: more than the longest published configuration has. Each line is compared with all."""


def _refuse_drafts(config: ModelConfig) -> None:
    """Raises `UsageError` for EAGLE, DFlash and their kin, which read another model's hidden state."""
    names = " ".join(map(str, config.data.get("architectures") or ())).lower()
    kind = next((said for word, said in DRAFTS.items() if word in names), None)
    if kind is None and ("draft_vocab_size" in config.data or "dflash_config" in config.data):
        kind = "a draft"
    if kind is not None:
        what = f"{config.origin}: {kind} guesses tokens for another model and does not run alone"
        raise UsageError(what, "plan the model that it drafts for, with --speculate accept=0.7,draft=3")


def _is_headless(r: Reader) -> bool:
    names = r.data.get("architectures")
    if not isinstance(names, (list, tuple)) or len(names) != 1:
        return False
    name = str(names[0])
    return name.endswith(HEADLESS) and not name.endswith(("LMHeadModel", "DoubleHeadsModel"))


def _is_read(kind: str) -> bool:
    return kind in READERS or find_family(kind) is not None


def _inner_kind(outer: Reader, inner: Reader, kind: str) -> str:
    """The type of the language model inside. Raises where it is not read either."""
    own = inner.data.get("model_type")
    if inner is not outer and isinstance(own, str) and _is_read(own):
        return own
    known = NOT_READ_YET.get(kind) or NOT_READ_YET.get(str(own))
    if known:
        remedy = f"for an estimate give the dimensions of its transformer: {DIMENSIONS_EXAMPLE}"
        raise UsageError(f"{outer.origin}: model_type '{kind}' is not supported yet ({known})", remedy)
    remedy = f"in {outer.origin}; where its layers are as in Llama, set model_type to llama"
    raise UnknownNameError("model_type", kind, known_types(), remedy)


def _renamed(r: Reader, names: Mapping[str, str]) -> Reader:
    """The configuration with common keys; a common key that is given as well stands. A dotted name is nested."""
    if not names:
        return r
    found = {names.get(key, key): value for key, value in r.data.items()}
    for name, common in names.items():
        table, _, key = name.rpartition(".")
        if table and key in r.table(table):
            found[common] = r.table(table)[key]
    return Reader({**found, **{key: value for key, value in r.data.items() if key not in names}}, r.origin)


def _completed(family: Family | None, r: Reader) -> Reader:
    """The configuration with its family's defaults, each recorded as an assumption."""
    absent = {key: value for key, value in (family.defaults if family else {}).items() if not r.has(key)}
    if not absent:
        return r
    full = Reader({**r.data, **absent}, r.origin)
    for key, value in absent.items():
        full.assume(f"{key} not given: {value}, the family's default")
    return full


def _text_part(outer: Reader) -> Reader:
    """The language model of a configuration of several parts, or the configuration itself.

    A tie that the whole denies stands: transformers 5 writes its own default into the part.
    """
    name = next((part for part in TEXT_PARTS if outer.data.get(part)), None)
    if name is None:
        return outer
    inner = dict(outer.table(name))
    shared = {k: v for k, v in outer.data.items() if k in KEPT}
    untied = outer.data.get("tie_word_embeddings") is False
    if untied or inner.get("tie_word_embeddings") is None:
        inner.pop("tie_word_embeddings", None)
        shared |= {k: v for k, v in outer.data.items() if k == "tie_word_embeddings"}
    outer.skip(*KEPT, *OTHER_PARTS, "tie_word_embeddings")
    inner.pop("architectures", None) if shared.get("architectures") else None
    found = Reader(
        {**shared, **{k: v for k, v in inner.items() if v is not None or k not in shared}}, f"{outer.origin}: {name}"
    )
    return _text_part(found) if name == "thinker_config" else found


def _towers(outer: Reader, hidden: int, r: Reader) -> tuple[Tower, ...]:
    """The vision tower, where the family has one that is read; left out with an assumption otherwise."""
    for part in OTHER_PARTS[:-1]:
        if outer.data.get(part):
            r.assume(f"{part} was not read: that part is left out")
    config = outer.table("vision_config")
    if not config:
        return ()
    kind = outer.text("model_type")
    # what lies between tower and language model stands beside both
    between = (
        "spatial_merge_size", "multimodal_projector_bias", "mm_tokens_per_image", "projector_hidden_size",
        "projector_bias", "projector_use_layernorm",
    )  # fmt: skip
    config = {**{k: outer.data[k] for k in between if k in outer.data}, **config}
    outer.skip("vision_feature_layer", "vision_feature_select_strategy", "projector_hidden_act", *between)
    if kind not in TOWERS:
        r.assume("vision_config was not read: the vision tower is left out")
        return ()
    vision = Reader(config, f"{outer.origin}: vision_config")
    tower = TOWERS[kind](vision, hidden)
    for key in vision.unread():
        r.assume(f"vision_config.{key} was not read: taken to have no effect on size")
    return (tower,)
