"""What a picture costs a language model that sees: the tower's operators, and the tokens that it becomes."""

from __future__ import annotations

import math

from chipwise.errors import UsageError
from chipwise.workload.media.layers import LayerBlock, Layers, get_precision, join
from chipwise.workload.model import Dense, EmbeddingTable, Layer, SelfAttention, Tower
from chipwise.workload.program import Stage


def picture(tower: Tower, width: int, height: int, *, batch: int = 1, precision: str = "bf16") -> tuple[Stage, int]:
    """One pass of a tower over `batch` pictures of width x height pixels, and the tokens of one picture.

    Sides are rounded to whole tokens, as processors do; a tower of fixed size resizes, or cuts into tiles. A table
    whose columns are k times the width before it merges k tokens into one. Raises `UsageError` for sides that are not
    positive and for Llama 3.2 Vision, whose pictures become no tokens of the prompt.
    """
    if not (0 < width <= 100_000 and 0 < height <= 100_000):
        raise UsageError(f"a picture of {width} x {height} pixels cannot be used", "sides are 1 to 100,000 pixels")
    if any(table.name == "tile_positions" for table in tower.tables):
        raise UsageError(
            "pictures in tiles that cross-attention reads are not priced yet", "leave --images out: text alone is"
        )
    seen = _tiles(tower, width, height)
    layers = Layers(batch * seen, get_precision(precision))
    side, merged = _patch_side(tower), _merged(tower)
    cell = side * max(1, math.isqrt(merged))
    patches = tower.patches or max(1, round(width / cell)) * max(1, round(height / cell)) * (cell // side) ** 2
    first = [_table(layers, table, patches) for table in tower.tables if _before(table)]
    runs = [count * _layer(layers, layer, tower.hidden, patches) for count, layer in tower.runs]
    parts, tokens, wide = [*first, *runs], patches, tower.hidden
    for table in tower.tables:
        if _before(table):
            continue
        if table.cols > 1 and not table.name.startswith("tap"):
            merge = max(1, table.cols // wide)
            tokens = (tower.tokens or tokens // merge) if table.name.startswith("projector") else tokens // merge
            wide = table.rows
        at = patches // max(1, merged) if table.name.startswith("tap") else tokens
        parts.append(_table(layers, table, at))
    return join(*parts).stage("vision tower"), seen * (tower.tokens or tokens)


def _tiles(tower: Tower, width: int, height: int) -> int:
    """Passes for one picture: the tiles of the canvas that it is put on, and the whole once more where there are
    several. Of a x b tiles the least enlarging canvas is taken, else the least reducing one; of equals the smallest
    (huggingface/transformers, get_best_fit)."""
    if not tower.tiles:
        return 1
    shapes = [(a, b) for a in range(1, tower.tiles + 1) for b in range(1, tower.tiles // a + 1)]
    scales = {(a, b): min(a * tower.side / width, b * tower.side / height) for a, b in shapes}
    larger = [scale for scale in scales.values() if scale >= 1.0]
    chosen = min(larger) if larger else max(scales.values())
    tiles = min(a * b for (a, b), scale in scales.items() if scale == chosen)
    return tiles + 1 if tiles > 1 else 1


def _before(table: EmbeddingTable) -> bool:
    return table.name in ("patch", "positions", "first_norm")


def _patch_side(tower: Tower) -> int:
    """Pixels along a side of a patch: its values are 3 channels of one frame or two."""
    values = next(t.cols for t in tower.tables if t.name == "patch") // 3
    for frames in (1, 2):
        side = math.isqrt(values // frames)
        if side * side * frames == values:
            return side
    raise UsageError(f"patches of {3 * values} values are no squares")


def _merged(tower: Tower) -> int:
    """Patches that become one token."""
    wide, merged = tower.hidden, 1
    for table in tower.tables:
        if not _before(table) and table.cols > 1 and not table.name.startswith("tap"):
            merged *= max(1, table.cols // wide)
            wide = table.rows
    return merged


def _table(layers: Layers, table: EmbeddingTable, tokens: int) -> LayerBlock:
    if table.cols == 1:
        norm = layers.norm(tokens, table.rows, "layer" if table.bias else "rms")
        return table.copies * norm
    if table.name == "positions":
        return layers.parameter(table.copies * table.rows * table.cols) + layers.residual(tokens, table.cols)
    return table.copies * layers.linear(tokens, table.cols, table.rows, table.bias, table.name)


def _layer(layers: Layers, layer: Layer, width: int, tokens: int) -> LayerBlock:
    mixer, feed = layer.mixer, layer.ffn
    if not isinstance(mixer, SelfAttention) or not isinstance(feed, Dense):
        raise UsageError("this tower's layers are not priced", "layers of attention and a dense feed-forward are")
    inner = mixer.heads * mixer.head_dim
    seen = min(mixer.window or tokens, tokens)
    norm, held = (layers.norm(tokens, width, "layer" if layer.norm == "layer" else "rms"), layers.bytes(tokens, width))
    after = norm if layer.norms == "around" else LayerBlock()
    heads = layers.parameter(2 * mixer.head_dim) if mixer.qk_norm == "head" else LayerBlock()
    attend = join(
        layers.linear(tokens, width, inner + 2 * mixer.kv_heads * mixer.head_dim, mixer.qkv_bias, "qkv"),
        heads,
        layers.attention(seen, seen, mixer.heads, mixer.head_dim, windows=tokens / seen, kv_heads=mixer.kv_heads),
        layers.linear(tokens, inner, width, mixer.out_bias, "out"),
        after,
    ).beside(held)
    forward = layers.mlp(tokens, width, feed.width, gated=feed.gated, bias=feed.bias)
    add = layers.residual(tokens, width)
    return join(norm, attend, add, norm, (forward + after).beside(held), add)
