"""Parameter counts and cache sizes of a table's rows, under the reading that each row asks for.

Published counts differ in what they hold: quantisation scales, prediction modules with or without their own
tables, a vision tower, a tied table stored twice. A row's flags say which; these functions honour them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from chipwise.catalog.configs import ModelConfig
from chipwise.errors import UsageError, shorten
from chipwise.values import dataclass
from chipwise.workload.axes import Sizes
from chipwise.workload.build import build
from chipwise.workload.cache import SCOPES, KVSpec
from chipwise.workload.graph import Graph
from chipwise.workload.load import load_model
from chipwise.workload.program import count_entries


class Count(NamedTuple):
    """Parameters in all and per token in 10^9 as vendors publish them; entries of the checkpoint."""

    published_total_b: float
    published_active_b: float
    checkpoint_params: int


class CacheSize(NamedTuple):
    """Bytes of all sequences of a row, None where it names no context; bytes that one more token adds."""

    kv_cache_bytes: float | None
    kv_bytes_per_token: float


def count_row(row: Mapping[str, str], config: ModelConfig) -> Count:
    """Parameters of `config` with what the row's flags include.

    For rows whose count is exact the flags describe the checkpoint, and the published total is that of the
    trained stack alone; for others they describe the published total as well. Buffers are entries of a
    checkpoint where `buffers_counted` is 1. Raises `UsageError` for a flag that the model cannot honour.
    """
    graph = build(load_model(config))
    buffers, scales = _flag(row, "buffers_counted"), _flag(row, "checkpoint_has_scales")
    outside = _whole(row, "params_outside_config")
    if outside and _flag(row, "vision_tower") and outside == _tower(graph, buffers=False):
        outside = 0  # the tower, whose dimensions another configuration of the model lacks
    table = graph.model.hidden * graph.model.vocab
    stored = count_entries(graph.blocks(), buffers=buffers, scales=scales) + outside
    plain = graph.parameters + outside
    if _flag(row, "tied_head_stored_twice"):
        stored += table
    if _flag(row, "vision_tower"):
        stored += _tower(graph, buffers=buffers)
        plain += _tower(graph, buffers=False)
    modules = _whole(row, "mtp_modules")
    if modules:
        copies = _flag(row, "mtp_own_embedding") + _flag(row, "mtp_own_head")
        stored += modules * (_module(graph, row, buffers=buffers, scales=scales) + copies * table)
    active = graph.active_params(embedding=_flag(row, "active_counts_embedding"))
    total = plain if row.get("count_grade") == "exact" else stored
    return Count(total / 1e9, active / 1e9, stored)


def kv_row(row: Mapping[str, str], config: ModelConfig | None) -> CacheSize:
    """Cache of the row's sequences. Its dims override those of `config`; without one they must be complete.

    bytes = sequences (per token x context + window layers' entries), element_bytes each. Raises `UsageError`
    naming the column that is missing.
    """
    dims = _from_row(row, _from_config(config) if config is not None else _Dims())
    element_bytes = _need(dims.element_bytes, "element_bytes")
    per_token = element_bytes * _need(dims.growing, "layers_growing")
    if per_token:
        per_token *= _need(dims.growing_values, "kv_heads and head_dim")
    context = _amount(row, "context_tokens")
    if context is None:
        return CacheSize(None, per_token)
    capped = element_bytes * (dims.windowed or 0.0)
    if capped:
        capped *= _need(dims.window_values, "window_kv_heads and window_head_dim")
        capped *= min(_need(dims.window, "window"), context)
    sequences = _first(_amount(row, "sequences"), 1.0) or 0.0
    return CacheSize(sequences * (per_token * context + capped), per_token)


@dataclass(frozen=True, slots=True)
class _Dims:
    """Layers whose cache grows and layers capped at `window` tokens, with values per token and layer; None
    where it is not known."""

    element_bytes: float | None = None
    growing: float | None = None
    growing_values: float | None = None
    windowed: float | None = None
    window_values: float | None = None
    window: float | None = None


def _from_config(config: ModelConfig) -> _Dims:
    """Mean values per layer, so that sums are right where layers differ."""
    graph = build(load_model(config))
    growing, windowed = _caches(graph, capped=False), _caches(graph, capped=True)
    layers, wide = sum(n for n, _, _ in growing), sum(n for n, _, _ in windowed)
    bits = (growing or windowed)[0][2].format.bits if growing or windowed else 16.0
    return _Dims(
        element_bytes=bits / 8.0,
        growing=layers,
        growing_values=sum(n * v / c.every for n, v, c in growing) / layers if layers else 0.0,
        windowed=wide,
        window_values=sum(n * v for n, v, _ in windowed) / wide if wide else 0.0,
        window=float(max((c.window for _, _, c in windowed), default=0)),
    )


def _caches(graph: Graph, *, capped: bool) -> list[tuple[int, int, KVSpec]]:
    """(layers, values per entry, cache) of every cache of keys, values or latents."""
    return [
        (repeat, Sizes(block.axes).whole(cache.per_token), cache)
        for repeat, block in graph.distinct()
        for cache in block.caches
        if cache.kind in SCOPES["attention"] and (cache.window > 0) is capped
    ]


def _from_row(row: Mapping[str, str], known: _Dims) -> _Dims:
    """The row's dims, and those of the configuration where the row leaves a cell blank."""
    growing = _amount(row, "layers_growing")
    if growing is None:
        growing = _first(_amount(row, "layers_counted"), known.growing, _amount(row, "layers"))
    return _Dims(
        element_bytes=_first(_amount(row, "element_bytes"), known.element_bytes),
        growing=growing,
        growing_values=_first(_values(row), known.growing_values),
        windowed=_first(_amount(row, "layers_window"), known.windowed, 0.0),
        window_values=_first(_heads(row, "window_kv_heads", "window_head_dim"), known.window_values),
        window=_first(_amount(row, "window"), known.window),
    )


def _values(row: Mapping[str, str]) -> float | None:
    """Values per token of one growing layer: a latent and its rotary part, or keys and values."""
    rank = _amount(row, "kv_lora_rank")
    if rank is not None:
        return rank + (_amount(row, "rope_dim") or 0.0)
    return _heads(row, "kv_heads", "head_dim")


def _heads(row: Mapping[str, str], heads: str, dim: str) -> float | None:
    count, size = _amount(row, heads), _amount(row, dim)
    return None if count is None or size is None else 2.0 * count * size


def _tower(graph: Graph, *, buffers: bool) -> int:
    """Entries of the vision tower; none where the configuration has no dims for it."""
    tower = graph.extra("vision")
    return count_entries(tower.blocks, buffers=buffers) if tower else 0


def _module(graph: Graph, row: Mapping[str, str], *, buffers: bool, scales: bool) -> int:
    module = graph.extra("mtp")
    if module is None:
        what = f"{row.get('model', graph.model.name)}: mtp_modules = {row['mtp_modules']}"
        raise UsageError(what, "this family is read without prediction modules")
    return count_entries(module.blocks, buffers=buffers, scales=scales)


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def _need(value: float | None, column: str) -> float:
    if value is None:
        raise UsageError(f"no {column}", "fill the column, or name a config_file")
    return value


def _amount(row: Mapping[str, str], column: str) -> float | None:
    """A number of at least zero; None where the cell is blank or missing."""
    text = (row.get(column) or "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value < 1e18:
        raise UsageError(f"{column} is {shorten(text, 40)!r}", "expected a number of at least 0")
    return value


def _whole(row: Mapping[str, str], column: str) -> int:
    value = _amount(row, column) or 0.0
    if not value.is_integer():
        raise UsageError(f"{column} is {value:g}", "expected a whole number")
    return int(value)


def _flag(row: Mapping[str, str], column: str) -> bool:
    """A 0 / 1 column; blank means that nothing of the kind is there."""
    value = _amount(row, column) or 0.0
    if value not in (0.0, 1.0):
        raise UsageError(f"{column} is {value:g}", "expected 0 or 1")
    return value == 1.0
