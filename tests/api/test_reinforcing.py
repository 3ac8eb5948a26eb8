"""Reinforcement learning on one fleet: what it answers follows from sampling and training."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.api import reinforcing
from chipwise.api.requests.reinforce import RlRequest
from chipwise.api.requests.verbs import question
from chipwise.catalog.chips import get_chip
from chipwise.errors import InfeasibleError, UnknownNameError, UsageError
from chipwise.mcp.answers import rows_answer
from chipwise.predict.training.rollout import LOOP, LOOP_SPREAD, TAKEN, handed_s, rollout_s
from chipwise.report.reinforce import RlPlanRecord

ASKED = {"model": "Qwen/Qwen3-1.7B", "chips": "h100", "counts": "8", "prompts": 64, "out": "2000"}


def plans(**asked: object) -> dict[str, RlPlanRecord]:
    report = RlRequest(**(ASKED | asked)).run()  # type: ignore[arg-type]
    return {p.placement: p for p in report.plans}


def test_a_loop_has_both_placements_and_its_parts_add_up() -> None:
    found = plans()
    assert set(found) == {"together", "apart"}
    one, two = found["together"], found["apart"]
    assert one.step_s.mid == pytest.approx(sum(one.parts.values()))
    learning = two.parts["scoring"] + two.parts["training"]
    assert two.step_s.mid == pytest.approx(max(two.parts["rollout"], learning) + two.parts["sync"])
    assert two.train_chips + two.rollout_chips == one.train_chips == one.rollout_chips == 8
    assert two.parts["rollout"] > one.parts["rollout"]
    assert one.host_bytes > 0
    assert two.parts["swap"] == two.host_bytes == 0
    for p in found.values():
        assert p.step_s.low < p.step_s.mid < p.step_s.high
        assert p.tokens_per_s.mid * p.step_s.mid == pytest.approx(64 * 8 * 2000)


def test_a_critic_trains_twice_and_a_reference_scores() -> None:
    plain = plans(placement="together", reference=False)["together"].parts
    scored = plans(placement="together")["together"].parts
    critic = plans(placement="together", algorithm="ppo")["together"].parts
    assert scored["scoring"] == pytest.approx(2.0 * plain["scoring"])
    assert critic["training"] == pytest.approx(2.0 * scored["training"])
    assert critic["scoring"] == pytest.approx(1.5 * scored["scoring"])


def test_a_teacher_scores_in_place_of_the_policy_and_larger_ones_longer() -> None:
    asked = {"placement": "together", "algorithm": "distill", "samples": 8}
    small, large = (plans(**asked, teacher=name)["together"].parts for name in ("Qwen/Qwen3-1.7B", "Qwen/Qwen3-14B"))
    plain = plans(placement="together", reference=False)["together"].parts
    assert small["training"] == large["training"] == plain["training"]
    assert 0.7 * plain["scoring"] < small["scoring"] < 2.0 * plain["scoring"]
    assert 4.0 * small["scoring"] < large["scoring"] < 12.0 * small["scoring"]
    once = RlRequest(**ASKED, algorithm="distill", teacher="Qwen/Qwen3-14B").asked()  # type: ignore[arg-type]
    assert once.answers.samples == 1
    assert not once.reference
    for wrong in ({"algorithm": "distill"}, {"teacher": "Qwen/Qwen3-14B"}):
        with pytest.raises(UsageError, match="--algorithm distill --teacher MODEL"):
            RlRequest(**ASKED, **wrong).asked()  # type: ignore[arg-type]


def test_a_share_that_is_asked_for_is_kept_and_more_answers_take_longer() -> None:
    kept = plans(placement="apart", train_share="50%")["apart"]
    assert (kept.train_chips, kept.rollout_chips) == (4, 4)
    more = plans(placement="apart", train_share="50%", prompts=256)["apart"]
    assert more.parts["rollout"] > kept.parts["rollout"]
    assert more.parts["training"] > 3.0 * kept.parts["training"]


def test_every_door_asks_it() -> None:
    asked = question("rl", ASKED)
    report = asked.run()
    assert " ".join(report.verdict()) in " ".join(report.tables()[0].head)
    assert rows_answer(report)["plans"][0]["chip"] == "h100-sxm5-80gb"
    assert "rollout takes" in report.plans[0].why[0]


def test_only_engines_that_take_new_weights_sample() -> None:
    assert {p.runtime for p in plans(runtime="sglang").values()} == {"sglang"}
    with pytest.raises(InfeasibleError, match=r"llama.cpp .* is not known to take new weights .*--runtime vllm or"):
        plans(runtime="llama.cpp")
    with pytest.raises(InfeasibleError, match="trainium2: no software is known that samples there"):
        plans(chips="trainium2")


def test_an_engine_that_keeps_its_memory_samples_apart() -> None:
    assert set(plans(runtime="lmdeploy")) == {"apart"}
    with pytest.raises(InfeasibleError, match="give up its memory while the chip trains"):
        plans(runtime="lmdeploy", placement="together")


def test_what_does_not_go_says_why() -> None:
    with pytest.raises(UsageError, match="below the mean"):
        RlRequest(model="Qwen/Qwen3-1.7B", out="4k", longest="1k").run()
    with pytest.raises(UsageError, match="--prompts 0"):
        RlRequest(model="Qwen/Qwen3-1.7B", prompts=0).run()
    with pytest.raises(InfeasibleError):
        RlRequest(model="meta-llama/Llama-3.1-70B", chips="h100", counts="2").run()
    with pytest.raises(UsageError, match="1 to 1,000,000"):
        RlRequest(model="Qwen/Qwen3-1.7B", steps=10**12).run()
    with pytest.raises(UsageError, match="names what it trains in"):
        RlRequest(model="Qwen/Qwen3-1.7B", precision="best").run()


@pytest.mark.parametrize("name", ["trainer", "precision", "rollout_precision", "runtime"])
def test_an_unknown_name_is_said_once_and_as_such(name: str) -> None:
    with pytest.raises(UnknownNameError, match=r"^unknown [a-z]+ 'bogus'"):
        RlRequest(**(ASKED | {name: "bogus"})).run()  # type: ignore[arg-type]


def test_a_share_of_training_leaves_both_sides_chips_and_needs_them_apart() -> None:
    for share in ("0%", "100%"):
        with pytest.raises(UsageError, match="both sides"):
            RlRequest(**ASKED, train_share=share).run()  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="--placement together does not"):
        RlRequest(**ASKED, train_share="50%", placement="together").run()  # type: ignore[arg-type]


def test_a_loop_needs_chips_that_reach_each_other() -> None:
    """Weights go from the trainer to the engines: four Macs meet on a fabric, eight do not."""
    asked = {"model": "Qwen/Qwen3-0.6B", "chips": "m4-max", "prompts": 16, "out": "500"}
    assert RlRequest(**asked, counts="4").run().plans  # type: ignore[arg-type]
    with pytest.raises(InfeasibleError, match="no network is known"):
        RlRequest(**asked, counts="8").run()  # type: ignore[arg-type]


def test_new_weights_pass_every_engine_whole() -> None:
    """1.7 G parameters in 16 bit, however many engines there are: as fast as devices see all of them, or as a shard
    crosses the network between hosts of eight."""
    weights = 2.0 * 1.72e9
    for count in (8, 16, 64):
        found = plans(placement="apart", train_share="50%", counts=str(count))["apart"]
        crossed = weights / found.tp / 50e9 if count > 8 else 0.0
        assert found.parts["sync"] == pytest.approx(max(weights / TAKEN, crossed), rel=0.01)
    assert any("of new weights reach every engine" in line for line in found.why)


def test_handing_over_takes_the_slower_side() -> None:
    assert handed_s(16e9, 2e9, 8.0, 1e9) == 2.0
    assert handed_s(16e9, 2e9, 2.0, 1e9) == 8.0  # two trainers send for all
    assert handed_s(TAKEN, 0.01 * TAKEN, 100.0, TAKEN) == 1.0  # every device sees all of them


def test_ranks_that_share_sequences_share_answers() -> None:
    """512 answers fill 248 sequences, or 139, of 2,048 in four steps: powers of two, as ranks divide 512."""
    assert [reinforcing._shared(n, 512) for n in (248.3, 139.6, 0.3, 9e9)] == [256, 128, 1, 512]
    assert reinforcing._shared(30.0, 96) == 32


def test_a_fused_trainer_shards_the_optimiser_alone() -> None:
    """As the recipes of loops under Megatron do, whose FSDP would be faster here; what is fixed stays."""
    asked = {"model": "Qwen/Qwen3-30B-A3B", "counts": "32", "placement": "together"}
    assert plans(**asked)["together"].training.sharding == "zero-1"
    assert plans(**asked, layout="zero=3")["together"].training.sharding == "fsdp"


def test_an_engine_spans_machines_where_none_alone_holds_the_model() -> None:
    """671 GB of DeepSeek-V3 in fp8 are more than eight cards of 80 GB hold."""
    asked = RlRequest(model="deepseek-ai/DeepSeek-V3", chips="h100", counts="256", prompts=16, out="545").asked()
    engine = reinforcing._engine(asked, get_chip("h100"), 256)
    assert (engine.plan.layout.tp, engine.chips) == (8, 16)
    with pytest.raises(InfeasibleError, match="short per device"):
        reinforcing._engine(asked, get_chip("h100"), 8)


def test_a_loop_is_as_far_from_its_parts_as_published_ones_and_as_uncertain() -> None:
    found = plans(placement="together")["together"]
    assert found.step_s.high / found.step_s.mid >= float(np.exp(LOOP_SPREAD))
    assert found.step_s.low / found.step_s.mid <= float(np.exp(-LOOP_SPREAD))
    asked = RlRequest(**(ASKED | {"placement": "together"})).asked()  # type: ignore[arg-type]
    chip = get_chip("h100")
    engine = reinforcing._engine(asked, chip, 8)
    alone, _ = rollout_s(asked.answers, engine.decoder, found.replicas)
    assert found.parts["rollout"] == pytest.approx(LOOP * alone)
