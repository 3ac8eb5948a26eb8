"""Model configurations: a `config.json` by path or folder, one of the bundled table by name, or a transformer by its
dimensions."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from chipwise.catalog.files import read_text
from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import own_exists, per_snapshot, shipped_text
from chipwise.errors import UnknownNameError, UsageError, shorten
from chipwise.units import parse_quantity

__all__ = [
    "BY_DIMENSIONS",
    "INLINE",
    "MAX_BYTES",
    "ModelConfig",
    "bundled_configs",
    "find_config",
    "parse_config",
]

BY_DIMENSIONS = "transformer:"
"""What a model begins with that is given by its dimensions."""

INLINE = "{"
"""What a model begins with that is a configuration itself, as JSON."""

# Key of a dimension -> key of a configuration, and the largest value.
DIMENSIONS: Mapping[str, tuple[str, float]] = {
    "layers": ("num_hidden_layers", 1e4),
    "hidden": ("hidden_size", 1e6),
    "heads": ("num_attention_heads", 1e5),
    "kv_heads": ("num_key_value_heads", 1e5),
    "head_dim": ("head_dim", 65_536),
    "ffn": ("intermediate_size", 1e7),
    "vocab": ("vocab_size", 1e8),
    "experts": ("num_experts", 1e5),
    "top_k": ("num_experts_per_tok", 1e5),
    "shared_ffn": ("shared_expert_intermediate_size", 1e7),
    "context": ("max_position_embeddings", 1e9),
}
SWITCHES = {"gated": True, "tied": False, "causal": True}  # and what each is unless it is said
NEEDED_DIMENSIONS = ("layers", "hidden", "heads", "ffn", "vocab")
DIMENSIONS_EXAMPLE = "transformer:layers=40,hidden=5120,heads=40,kv_heads=8,ffn=13824,vocab=152064"

# Published configs are under 1 MB, the long ones because they list every layer that is not quantised.
MAX_BYTES = 8_000_000


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A configuration as it was found: its name, its keys, and where it comes from.

    `alias` marks a second name of a bundled model.
    """

    name: str
    data: Mapping[str, Any]
    origin: str
    alias: bool = False


def find_config(name: str) -> ModelConfig:
    """The configuration at a path, in a folder, bundled under a name (case is ignored, and so is the organisation
    where the rest is unique), of a transformer by its dimensions, `transformer:layers=...,hidden=...`, or the
    configuration itself as JSON.

    Raises `UsageError` for a file that is no configuration or dimensions that make no transformer,
    `UnknownNameError` for an unknown name or dimension.
    """
    if name.startswith(BY_DIMENSIONS):
        return _by_dimensions(name)
    if name.lstrip().startswith(INLINE):
        return _as_given(name)
    looks_like_path = name.startswith((".", "~", os.sep)) or name.endswith(".json")
    path = Path(name)
    try:
        path = path.expanduser()
        exists = own_exists(path)
    except (OSError, ValueError, RuntimeError):  # a name too long, a NUL in it, ~ of a user who is not there
        exists = False
    if exists and (looks_like_path or not path.is_dir() or (path / "config.json").exists()):
        return _read_path(path)
    if looks_like_path:
        raise UsageError(
            f"no such file: {shorten(name)}", "give a config.json, its folder, or a bundled name"
        )
    table = bundled_configs()
    return table[_resolve(name, table)]


@per_snapshot
def bundled_configs() -> Mapping[str, ModelConfig]:
    """All bundled configurations by name. Aliases (`also`) of one model share its keys; a model that is
    `like` another begins with the other's."""
    text = shipped_text("catalog/data/models.toml")
    table: dict[str, ModelConfig] = {}
    for name, entry in parse(text).items():
        origin, also, like = entry.pop("source"), entry.pop("also", ()), entry.pop("like", None)
        keys = {**table[like].data, **entry} if like else entry
        table[name] = ModelConfig(name, keys, origin)
        for alias in also:
            table[alias] = ModelConfig(alias, keys, origin, alias=True)
    return table


def parse_config(text: str, name: str, origin: str) -> ModelConfig:
    """`text` as a configuration. Raises `UsageError` for anything but one JSON object with unique keys."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table: dict[str, Any] = {}
        for key, value in pairs:
            if key in table:
                raise UsageError(f"{origin}: key '{shorten(key)}' occurs twice", "keep the one that is meant")
            table[key] = value
        return table

    try:
        data = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        what = f"{origin}: not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        raise UsageError(what, "is the download complete?") from None
    except (RecursionError, ValueError):
        raise UsageError(
            f"{origin}: not a model configuration", "nested too deeply or a number too long"
        ) from None
    if not isinstance(data, dict):
        raise UsageError(f"{origin}: not a model configuration", "expected one JSON object")
    return ModelConfig(name, data, origin)


def _as_given(text: str) -> ModelConfig:
    """A configuration that was given itself, called by the name in it or by its type."""
    if len(text) > MAX_BYTES:
        raise UsageError(f"the configuration given has {len(text):,} characters", f"at most {MAX_BYTES:,}")
    config = parse_config(text, "", "the configuration given")
    named = config.data.get("_name_or_path") or f"{config.data.get('model_type', 'model')} as given"
    return replace(config, name=shorten(str(named), 120))


def _by_dimensions(text: str) -> ModelConfig:
    """The configuration of `transformer:layers=40,hidden=5120,...`, in 16 bit.

    Needed: layers, hidden, heads, ffn, vocab. As they follow: kv_heads (heads), head_dim (hidden / heads). With
    experts, which need top_k, ffn is the width of one expert and shared_ffn that of all shared ones. `gated` 1: three
    matrices per feed-forward; `tied` 1: the head is the embedding table; `causal` 0: every token sees all others;
    `context`: most tokens that the model reads.
    """
    keys: dict[str, Any] = {"model_type": "transformer", "torch_dtype": "bfloat16"}
    given: dict[str, float] = {}
    known = (*DIMENSIONS, *SWITCHES)
    for part in text.removeprefix(BY_DIMENSIONS).split(","):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if not key:
            raise UsageError("a dimension without a name", f"as in {DIMENSIONS_EXAMPLE}")
        if key not in known:
            raise UnknownNameError("dimension", shorten(key), known, f"as in {DIMENSIONS_EXAMPLE}")
        if key in given:
            raise UsageError(f"dimension '{key}' is given twice", "keep the one that is meant")
        if not value:
            raise UsageError(f"dimension '{key}' has no value", f"as in {DIMENSIONS_EXAMPLE}")
        most = DIMENSIONS[key][1] if key in DIMENSIONS else 1.0
        given[key] = number = parse_quantity(value, "", key, low=1.0 if key in DIMENSIONS else 0.0, high=most)
        if number % 1:
            raise UsageError(f"{key}: {shorten(value)} is not a whole number", f"as in {DIMENSIONS_EXAMPLE}")
    absent = [key for key in NEEDED_DIMENSIONS if key not in given]
    if absent:
        raise UsageError(f"a transformer without {', '.join(absent)}", f"as in {DIMENSIONS_EXAMPLE}")
    for key, other in (("experts", "top_k"), ("top_k", "experts"), ("shared_ffn", "experts")):
        if key in given and other not in given:
            raise UsageError(f"{key} without {other}", f"add {other}, as in experts=8,top_k=2")
    keys |= {DIMENSIONS[key][0]: int(number) for key, number in given.items() if key in DIMENSIONS}
    keys |= {key: bool(given.get(key, usual)) for key, usual in SWITCHES.items()}
    name = f"transformer {keys['num_hidden_layers']}x{keys['hidden_size']}"
    return ModelConfig(name, keys, "dimensions as given")


def _read_path(path: Path) -> ModelConfig:
    file = path / "config.json" if path.is_dir() else path
    if path.is_dir() and not file.exists():
        raise UsageError(f"{path}: holds no config.json", "give a config.json or its folder")
    text = read_text(file, MAX_BYTES, "a model configuration")
    if file.name != "config.json":
        return parse_config(text, shorten(file.stem.replace("__", "/"), 120), str(file))
    config = parse_config(text, shorten(file.resolve().parent.name, 120), str(file))
    return _with_sibling(config, file.with_name("hf_quant_config.json"))


def _with_sibling(config: ModelConfig, file: Path) -> ModelConfig:
    """The quantisation that NVIDIA's Model Optimizer writes into a file of its own, as part of the keys."""
    if "quantization_config" in config.data or not file.is_file():
        return config
    found = parse_config(
        read_text(file, MAX_BYTES, "a model configuration"), config.name, str(file)
    ).data.get("quantization")
    if not isinstance(found, dict):
        raise UsageError(f"{file}: no object 'quantization'", "is it written by Model Optimizer?")
    data = {**config.data, "quantization_config": {"quant_method": "modelopt", **found}}
    return ModelConfig(config.name, data, f"{config.origin} and {file.name}")


def _resolve(name: str, table: Mapping[str, ModelConfig]) -> str:
    if name in table:
        return name
    wanted = name.lower()
    whole = [key for key in table if key.lower() == wanted]
    tail = [key for key in table if key.lower().rsplit("/", 1)[-1] == wanted]
    for hits in (whole, tail):
        if len(hits) == 1:
            return hits[0]
    raise UnknownNameError("model", name, table, "or give the path of a config.json")
