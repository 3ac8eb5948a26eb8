"""Fits what one token waits for on dataflow machines to published speeds per user.

A token passes every operator of a model in turn, so that its time is set by the latency of one dependent
operation, which no vendor publishes. Shared over kinds of machines (lpu, wafer, rdu), each with an effect of its
own; a kind without rows keeps what the others have.
"""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.calibrate.effects import Effects, Level, Quantity
from chipwise.calibrate.fit_kernels import Rows, fit
from chipwise.calibrate.parameter import Parameter

__all__ = ["PREFIX", "QUANTITIES", "ROW_WEIGHT", "fit_speeds", "speed_effects", "speed_parameters"]

PREFIX = "speeds"
SOURCE = "published speeds per user of Groq, Cerebras and SambaNova services; fitted (2026-11)"

# Published speeds of one model on one service scatter by a quarter (840 and 560 tokens/s on one card), twice the
# scatter of kernels that the fit assumes.
ROW_WEIGHT = 0.25

_KIND = (Level(("kind",), 0.7),)

# operation_s: microseconds, between a chip's own network (LPU: 0.3 us) and an exchange between chips; routed_s: two
# exchanges; row_share: units that wait for one row; drafts: Leviathan et al., ICML 2023, report two to three, services
# choose their drafts.
QUANTITIES: Mapping[str, Quantity] = {
    "operation_s": Quantity(3e-6, 0.7, "s per dependent operation of one token", _KIND, 1e-8, 1e-4),
    "routed_s": Quantity(10e-6, 0.7, "s more where experts are routed", _KIND, 1e-8, 1e-3),
    "row_share": Quantity(0.4, 0.4, "share of dense peak, one row", (), 0.02, 1.0),
    "drafts": Quantity(
        3.0, 0.3, "ratio: speed with a small model that drafts over speed without", (), 1.0, 8.0
    ),
}


def fit_speeds(rows: Rows) -> Effects:
    """The effects that explain published speeds best under their priors. Pure: same rows, same answer."""
    return fit(rows, QUANTITIES)


def speed_parameters(effects: Effects) -> dict[str, Parameter]:
    """What to ship."""
    return effects.parameters(PREFIX, SOURCE)


def speed_effects(table: Mapping[str, Parameter]) -> Effects:
    """The effects among the parameters that ship; priors where there are none."""
    return Effects.of(table, PREFIX, QUANTITIES)
