"""Objectives: what passes run, which logits exist, what is frozen, and what a plan and its files make of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.api.answering import ranked
from chipwise.api.train import Training, TrainingAsked
from chipwise.api.train_input import check_pairs, objective_of
from chipwise.catalog.chips import get_chip
from chipwise.catalog.trainer import usual_trainer
from chipwise.errors import InfeasibleError, UnknownNameError, UsageError
from chipwise.predict.training.dims import plain
from chipwise.predict.training.layer import LayerTraffic, head_time, layer_time
from chipwise.predict.training.memory import logit_bytes, state_bytes
from chipwise.predict.training.objective import OBJECTIVES, usual_objective
from chipwise.predict.training.operators import TrainWork
from chipwise.predict.training.result import step_flops
from chipwise.predict.training.values import Cluster, Recipe, TrainRates, TrainSpread
from chipwise.report.training import TrainReport

BERT = plain(24.0, 1024.0, 16.0, 4096.0, 30522.0, causal=False)
S = TrainSpread(micro_batch=4.0, global_batch=32.0, seq=512.0, dp=8.0, shard=8.0)
WORK = TrainWork(3.0, 3.0, 3.0, 0.0, 0.0, 1.0, 2.5, 0.5, 6.0, 0.1)
QUIET = TrainRates(linear=1.0, core=1.0, passes=1.0, host_s=0.0)
H100 = Cluster(990e12, 990e12, 80e9, 3.35e12, 450e9, 8.0, 50e9)


def planned(run: Training) -> TrainReport:
    """The answer about a run."""
    return ranked(TrainingAsked.of(run)).whole()


def layer(s: TrainSpread) -> float:
    return float(layer_time(BERT, s, H100, Recipe(), QUIET, WORK, LayerTraffic(0.0, 0.0, 0.0)).total_s)


def test_a_pass_forward_besides_costs_a_forward_pass() -> None:
    besides = layer(replace(S, forwards=1.0)) - layer(S)
    assert besides == pytest.approx(WORK.forward_s + WORK.core_s + WORK.pass_s, rel=1e-6)
    more = head_time(replace(S, forwards=1.0), QUIET, WORK) / head_time(S, QUIET, WORK)
    assert more == pytest.approx(4.0 / 3.0)


def test_what_makes_no_logits_has_no_head() -> None:
    none = replace(S, scored=0.0)
    assert head_time(none, QUIET, WORK) == 0.0
    assert logit_bytes(BERT, none, Recipe()) == 0.0
    lacks = step_flops(BERT, S) - step_flops(BERT, none)
    assert lacks == pytest.approx(6.0 * float(BERT.vocab) * 1024.0 * 32.0 * 512.0)


@pytest.mark.parametrize(("zero", "parts"), [(0.0, 1.0), (1.0, 1.0), (3.0, 8.0)])
def test_a_reference_is_kept_as_weights_are(zero: float, parts: float) -> None:
    s = replace(S, zero=zero)
    more = state_bytes(BERT, replace(s, reference=1.0), Recipe())[0] - state_bytes(BERT, s, Recipe())[0]
    assert more == pytest.approx(2.0 * float(BERT.params) / parts)


def test_networks_have_a_usual_objective() -> None:
    assert usual_objective("finetune", causal=True) == "next-token"
    assert usual_objective("train", causal=False) == "masked"
    assert usual_objective("finetune", causal=False) == "contrastive"
    for given, task, causal in (("masked", "train", True), ("dpo", "finetune", False), ("dpo", "train", True)):
        with pytest.raises(UsageError):
            objective_of(given, task, causal=causal)
    with pytest.raises(UnknownNameError, match="dpo"):
        objective_of("dp", "finetune", causal=True)


def test_an_example_lies_in_one_pass() -> None:
    for batch, pins in ((7, {}), (8, {"micro_batch": 1})):
        with pytest.raises(UsageError, match="2 sequences"):
            check_pairs(batch, pins, OBJECTIVES["dpo"])


def test_trainers_are_taken_for_what_they_train_for() -> None:
    assert usual_trainer(get_chip("h100-sxm5-80gb"), "full", objective="masked").id == "hf-trainer"
    run = Training("bge-large", ("h100",), (8,), task="finetune", trainer="nemo")
    with pytest.raises(InfeasibleError, match="no plan") as refused:
        planned(run)
    assert "not for contrastive (--trainer hf-trainer)" in str(refused.value)


def test_plans_of_pairs() -> None:
    run = Training("bge-large", ("h100",), (8,), task="finetune")
    report = planned(run)
    plan = report.plans[0]
    assert report.objective == "contrastive"
    assert plan.layout.micro_batches == 1  # the loss compares all of a rank
    assert plan.memory["logits"] == 0.0
    cached = (
        ranked(TrainingAsked.of(replace(run, objective="contrastive-cached", global_batch=plan.global_batch)))
        .whole()
        .plans[0]
    )
    assert cached.step_s.mid > plan.step_s.mid
    assert cached.layout.micro_batch % 2 == 0
    tuned = Training("meta-llama/Llama-3.1-8B", ("h100",), (8,), task="finetune", trainer="hf-trainer")
    next_, dpo = (planned(replace(tuned, objective=o)).plans[0] for o in ("next-token", "dpo"))
    assert 1.2 < dpo.step_s.mid / next_.step_s.mid < 1.7  # adapters: three passes for two
