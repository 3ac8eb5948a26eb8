"""Rows of training runs that cannot be: what is wrong, and what is legal nearby."""

from __future__ import annotations

import math

from chipwise.api.train_input import near
from chipwise.catalog.chips import get_chip
from chipwise.errors import UnknownNameError
from chipwise.evidence.rows import Row

__all__ = ["impossible"]

COUNTS = (
    "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq_len", "global_batch", "micro_batch", "tp", "pp", "dp",
    "cp", "ep", "vp",
)  # fmt: skip


def impossible(row: Row) -> str:
    """Why a row describes no run; empty where it may. Blanks are left to what they default to."""
    given: dict[str, float] = {}
    for name in (*COUNTS, "chips_total"):
        try:
            number = float(row.get(name) or "nan")
        except ValueError:
            return ""  # the reader names what is no number
        if math.isnan(number):
            continue
        if math.isinf(number) or number < 0 or (number == 0 and name in COUNTS):
            return f"{name} {row[name]}: not a count (at least 1)"
        given[name] = number
    tp, pp, cp = (given.get(name, 1.0) for name in ("tp", "pp", "cp"))
    heads, layers, devices = (
        given.get("heads"),
        given.get("layers"),
        _devices(row, given.get("chips_total", 0.0)),
    )
    if heads and heads % tp:
        return f"tp {tp:g} does not divide {heads:g} heads (nearest: {near(int(tp), int(heads))})"
    if layers and pp > layers:
        return f"pp {pp:g} is more than {layers:g} layers (at most {layers:g})"
    if devices and tp * pp * cp > devices:
        return f"tp x pp x cp = {tp * pp * cp:g} is more than {devices:g} devices (at most {devices:g})"
    return ""


def _devices(row: Row, chips: float) -> float:
    """Devices that a layout may count: those that software sees in the chips; 0 where that is not known."""
    try:
        return chips * get_chip(row["chip"]).devices_per_package
    except UnknownNameError:
        return 0.0
