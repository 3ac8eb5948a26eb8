"""All software that can run the model is tried, and what can come first is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.api.placing import placed
from chipwise.api.requests.planning import PlanRequest
from chipwise.api.searching import search, shortlist
from chipwise.search.space import Limits
from chipwise.workload.workload import Workload

SMALL = "meta-llama/Llama-3.1-8B"


@pytest.mark.parametrize("first", [True, False])
def test_a_runtime_that_has_no_plan_gives_way_to_one_that_has(first: bool) -> None:
    context, able = placed(SMALL, Workload("batch", 1000, 100), "l4")
    cramped = replace(able, policies=replace(able.policies, memory_share=0.2))
    offered = [cramped, able] if first else [able, cramped]
    found = search(context, offered, Limits(max_devices=1), {})
    assert all(c.deployment == able for c in found.choices["l4"])
    assert not found.refusals
    both = search(context, [cramped, cramped], Limits(max_devices=1), {})
    assert (list(both.choices), list(both.refusals)) == ([], ["l4"])


def test_what_is_dearer_than_evidence_may_cost_is_not_looked_at_again() -> None:
    context, able = placed(SMALL, Workload("batch", 1000, 100), "l4")
    slower = replace(able, policies=replace(able.policies, max_sequences=8))
    little = replace(able, policies=replace(able.policies, max_sequences=able.policies.max_sequences - 8))
    for offered in ([slower, little, able], [able, little, slower]):
        found = search(context, offered, Limits(max_devices=1), {})
        kept = [c.deployment for c in shortlist(found.choices["l4"], 0.9)]
        assert able in kept
        assert slower not in kept


@pytest.mark.parametrize("task", ["batch", "serve"])
@pytest.mark.parametrize("model", [SMALL, "Qwen/Qwen3-30B-A3B"])
def test_leaving_the_runtime_out_is_no_worse_than_any(model: str, task: str) -> None:
    asked = {"model": model, "chips": "h100-sxm5-80gb", "task": task, "evidence": "none"}
    asked |= {"rate": "20/s", "tpot": "25ms"} if task == "serve" else {}
    best = PlanRequest(**asked).run()  # type: ignore[arg-type]
    compared = PlanRequest(**asked, runtime="best").run()  # type: ignore[arg-type]
    first, same = compared.plans[0], best.plans[0]
    assert replace(first, ties=same.ties, on_front=same.on_front) == same
    assert len({p.runtime for p in compared.plans}) == len(compared.plans) > 1
    for name in ("vllm", "sglang", "trtllm"):
        one = PlanRequest(**asked, runtime=name).run().plans[0]  # type: ignore[arg-type]
        if task == "serve":
            assert best.plans[0].price.mid <= one.price.mid * 1.1
        else:
            assert one.tokens_per_s_per_chip.mid <= best.plans[0].tokens_per_s_per_chip.mid * 1.1


def test_plans_are_listed_by_software_format_and_provider() -> None:
    asked = {"model": SMALL, "chips": "h100-sxm5-80gb,l40s", "rate": "20/s", "evidence": "none"}
    chips = PlanRequest(**asked).run()  # type: ignore[arg-type]
    assert [p.chip for p in chips.plans] == list(dict.fromkeys(p.chip for p in chips.plans))
    for by, of in (("runtime", lambda p: p.runtime), ("format", lambda p: p.precision)):
        listed = PlanRequest(**asked, by=by).run()  # type: ignore[arg-type]
        named = [of(p) for p in listed.plans]
        assert len(set(named)) == len(named) > 1
        assert listed.plans[0].price == chips.plans[0].price
