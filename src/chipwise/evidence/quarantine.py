"""Measured figures that no machine can have reached: kept apart, with the reason, before anything is fitted."""

from __future__ import annotations

from chipwise.catalog.chip import Chip
from chipwise.evidence.item import Item
from chipwise.workload.graph import Graph

SLACK = 1.1
"""Over a bound, for clocks above the sheet's and rounded figures, before a figure is called impossible."""
WAVES = 1.3
"""Over what clients in flight can receive (Little), before rate and times contradict each other: means over requests
and over time differ where lengths scatter."""


def impossible(item: Item, chip: Chip | None, graph: Graph | None) -> str:
    """Why a result cannot be, "" where it can.

    Time and rate: C clients that each wait TTFT + (n - 1) TPOT for n tokens receive C n / that at most. Peak: a token
    costs 2 FLOPs per active weight (6 in training), and a further one reads every active weight once from memory.
    Runs with drafts make several tokens a pass, and are held to the FLOPs alone.
    """
    if why := _contradicted(item):
        return why
    if chip is None or graph is None or not item.chips:
        return ""
    return _above_peak(item, item.chips, chip, graph) or _unread(item, item.chips, chip, graph)


def _contradicted(item: Item) -> str:
    """Where more tokens arrive than clients with such times receive."""
    n, c = item.output_tokens, item.concurrency
    if not (item.tokens_per_s and item.tpot_mean_s and n and n > 1 and c) or item.scenario == "training":
        return ""
    most = WAVES * c * n / ((item.ttft_mean_s or 0.0) + (n - 1.0) * item.tpot_mean_s)
    if item.tokens_per_s <= most:
        return ""
    return f"{item.tokens_per_s:,.0f} tokens/s, but {c:g} clients at this TPOT receive {most / WAVES:,.0f}"


def _above_peak(item: Item, chips: int, chip: Chip, graph: Graph) -> str:
    """Where the products of its tokens, and of their prompts, take more than the peak."""
    training = item.scenario == "training"
    each = 6.0 if training else 2.0
    n = item.output_tokens
    whole = 1.0 + item.input_tokens / n if item.input_tokens and n and not training else 1.0
    per_chip = (item.tokens_per_s or 0.0) * whole * each * graph.active_params() / chips
    peak = max(chip.matrix.values(), default=0.0) or max(chip.vector.values(), default=0.0)
    if not peak or per_chip <= SLACK * peak:
        return ""
    return f"{per_chip / 1e12:,.0f} TFLOP/s a chip, above its peak of {peak / 1e12:,.0f}"


def _unread(item: Item, chips: int, chip: Chip, graph: Graph) -> str:
    """Where a token takes less than reading its weights, though no draft is known."""
    memory = chip.tiers[0].bytes_per_s if chip.tiers else None
    if not item.tpot_mean_s or not memory or any("speculative" in note for note in item.notes):
        return ""
    least = graph.weight_bytes() * graph.active_params() / graph.params() / (chips * memory)
    if item.tpot_mean_s * SLACK >= least:
        return ""
    said, bound = item.tpot_mean_s * 1e3, least * 1e3
    return f"TPOT {said:.3g} ms, but reading its weights once takes {bound:.3g} ms"
