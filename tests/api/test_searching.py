"""Which of several runtimes a chip is planned with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.api.placing import placed
from chipwise.api.requests.planning import PlanRequest
from chipwise.api.searching import Effort, search
from chipwise.search.space import Limits
from chipwise.workload.workload import Workload

SMALL = "meta-llama/Llama-3.1-8B"


@pytest.mark.parametrize("effort", ["named", "own", "best"])
@pytest.mark.parametrize("first", [True, False])
def test_a_runtime_that_has_no_plan_gives_way_to_one_that_has(effort: Effort, first: bool) -> None:
    context, able = placed(SMALL, Workload("batch", 1000, 100), "l4")
    cramped = replace(able, policies=replace(able.policies, memory_share=0.2))
    offered = [cramped, able] if first else [able, cramped]
    found = search(context, offered, Limits(max_devices=1), {}, effort)
    assert found.choices["l4"].deployment == able
    assert not found.refusals
    both = search(context, [cramped, cramped], Limits(max_devices=1), {}, effort)
    assert (list(both.choices), list(both.refusals)) == ([], ["l4"])


def test_the_default_stays_unless_another_is_clearly_better() -> None:
    context, able = placed(SMALL, Workload("batch", 1000, 100), "l4")
    slower = replace(able, policies=replace(able.policies, max_sequences=24))
    little = replace(able, policies=replace(able.policies, max_sequences=able.policies.max_sequences - 8))
    limits = Limits(max_devices=1)

    def chosen(offered: list, effort: Effort) -> object:  # type: ignore[type-arg]
        return search(context, offered, limits, {}, effort).choices["l4"].deployment

    assert chosen([slower, able], "named") == slower
    assert chosen([slower, able], "best") == able
    assert chosen([little, able], "own") == little


def test_the_best_runtime_is_no_worse_than_any() -> None:
    asked = {"model": SMALL, "chips": "h100-sxm5-80gb", "task": "batch"}
    (best,) = PlanRequest(**asked, runtime="best").run().plans  # type: ignore[arg-type]
    for name in ("vllm", "sglang", "trtllm"):
        (one,) = PlanRequest(**asked, runtime=name).run().plans  # type: ignore[arg-type]
        assert one.tokens_per_s_per_chip.mid <= best.tokens_per_s_per_chip.mid * (1 + 1e-9)
