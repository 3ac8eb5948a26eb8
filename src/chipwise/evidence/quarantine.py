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
    n, c = item.output_tokens, item.concurrency
    if item.tokens_per_s and item.tpot_mean_s and n and n > 1 and c and item.scenario != "training":
        most = WAVES * c * n / ((item.ttft_mean_s or 0.0) + (n - 1.0) * item.tpot_mean_s)
        if item.tokens_per_s > most:
            return f"{item.tokens_per_s:,.0f} tokens/s, but {c:g} clients at this TPOT receive {most / WAVES:,.0f}"
    if chip is None or graph is None or not item.chips:
        return ""
    active = graph.active_params()
    each = 6.0 if item.scenario == "training" else 2.0
    whole = (
        1.0 if item.scenario == "training" or not (item.input_tokens and n) else 1.0 + item.input_tokens / n
    )
    if item.tokens_per_s:
        per_chip = item.tokens_per_s * whole * each * active / item.chips
        peak = max(chip.matrix.values(), default=0.0) or max(chip.vector.values(), default=0.0)
        if peak and per_chip > SLACK * peak:
            return f"{per_chip / 1e12:,.0f} TFLOP/s a chip, above its peak of {peak / 1e12:,.0f}"
    memory = chip.tiers[0].bytes_per_s if chip.tiers else None
    drafted = any("speculative" in note for note in item.notes)
    if item.tpot_mean_s and memory and not drafted:
        read = graph.weight_bytes() * active / graph.params()
        least = read / (item.chips * memory)
        if item.tpot_mean_s * SLACK < least:
            said, bound = item.tpot_mean_s * 1e3, least * 1e3
            return f"TPOT {said:.3g} ms, but reading its weights once takes {bound:.3g} ms"
    return ""
