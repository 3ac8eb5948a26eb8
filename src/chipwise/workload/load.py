"""Configuration -> Model: the common keys, the family's layers, and the rule of unread keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from chipwise.catalog.configs import ModelConfig
from chipwise.errors import UnknownNameError, UsageError
from chipwise.workload.families import NOT_READ_YET, READERS, RENAMED, find_family, known_types
from chipwise.workload.families.decoder import Family
from chipwise.workload.families.vision import TOWERS
from chipwise.workload.model import Model, Network, Tower, runs_of
from chipwise.workload.quantization import read_precision
from chipwise.workload.reader import Reader

__all__ = ["load_model"]


def load_model(config: ModelConfig) -> Model:
    """The model that a configuration describes.

    Raises `UsageError` for a key that is missing, malformed or of an unread family; `UnknownNameError` for
    a `model_type` that nobody has heard of.
    """
    outer = Reader(config.data, config.origin)
    kind = outer.text("model_type")
    if kind in NOT_READ_YET:
        raise UsageError(f"{config.origin}: model_type '{kind}' is not read yet ({NOT_READ_YET[kind]})")
    family = find_family(kind)
    if family is None and kind not in READERS:
        raise UnknownNameError("model_type", kind, known_types(), f"in {config.origin}")
    outer = _renamed(outer, family.rename if family else RENAMED.get(kind, {}))
    r = _completed(family, _text_part(outer))
    found = family.read(r) if family else READERS[kind](r)
    network = found if isinstance(found, Network) else Network(*found)
    hidden = r.count("hidden_size", high=1_000_000)
    towers = network.towers + _towers(outer, kind, hidden, r)
    precision, layers = read_precision(r, network.layers)
    model = Model(
        name=config.name,
        architecture=kind,
        hidden=hidden,
        vocab=r.count("vocab_size", high=100_000_000),
        runs=runs_of(layers),
        precision=precision,
        tied=network.tied,
        max_context=r.count("max_position_embeddings", default=0, low=0, high=10**9),
        mtp=network.mtp,
        towers=towers,
        ends=network.ends,
        encoder=network.encoder,
    )
    for reader in (r, outer) if "text_config" in outer.data else (r,):
        for key in reader.unread():
            r.assume(f"{key} was not read: taken to have no effect on size or cost")
    return replace(model, assumptions=tuple(r.assumptions))


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
    """The language model of a multimodal configuration, or the configuration itself."""
    inner = outer.table("text_config")
    if not inner:
        return outer
    kept = ("torch_dtype", "dtype", "quantization_config")
    shared = {k: v for k, v in outer.data.items() if k in kept}
    shared |= {k: v for k, v in outer.data.items() if k == "tie_word_embeddings" and inner.get(k) is None}
    outer.skip(*kept, "tie_word_embeddings")
    return Reader({**shared, **inner}, f"{outer.origin}: text_config")


def _towers(outer: Reader, kind: str, hidden: int, r: Reader) -> tuple[Tower, ...]:
    """The vision tower, where the family has one that is read; left out with an assumption otherwise."""
    config = outer.table("vision_config")
    if not config:
        return ()
    # what lies between tower and language model stands beside both
    between = ("spatial_merge_size", "multimodal_projector_bias")
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
