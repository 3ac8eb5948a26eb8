"""What a question leaves out is chosen about as well as any value that it could have had."""

from __future__ import annotations

from contextlib import suppress

import pytest

import chipwise
from chipwise.errors import InfeasibleError

SIMPLER = 0.10  # what a better founded way may cost more
BATCHES = (1, 4, 16, 64)


@pytest.mark.parametrize(
    ("model", "chip"),
    [("resnet50", "h100-sxm5-80gb"), ("mobilenet_v2", "l4"), ("bert-large", "mi300x"), ("sdxl", "a100-sxm4-80gb")],
)
def test_the_batch_of_a_network(model: str, chip: str) -> None:
    asked = {"task": "batch", "chips": chip}
    costs = []
    for batch in BATCHES:
        with suppress(InfeasibleError):
            costs.append(chipwise.plan(model, batch=batch, **asked).plans[0].usd_per_1000.mid)
    assert len(costs) >= 3
    chosen = chipwise.plan(model, **asked).plans[0]
    assert chosen.usd_per_1000.mid <= (1.0 + SIMPLER) * min(costs)
