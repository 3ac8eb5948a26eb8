"""How training plans are chosen: leaving an option out is never worse than any value of it, and asking for less never
costs more, but by what the preferences allow."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

import chipwise
from chipwise.api import train
from chipwise.api.loaded import load
from chipwise.api.requests.training import TrainRequest
from chipwise.api.train_counts import counts_to_try
from chipwise.api.train_job import site_of
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.catalog.preferences import preferences
from chipwise.catalog.software import all_software
from chipwise.catalog.tools import get_tool
from chipwise.catalog.trainer import Trainer, able_trainers, get_trainer
from chipwise.errors import InfeasibleError
from chipwise.evidence.judge import chance
from chipwise.predict.training.dims import transformer
from chipwise.report.train_assemble import ENDED, Aim, rank_runs
from chipwise.report.training import TrainReport
from chipwise.search.training import best, least_seconds, search
from command_line import Run
from trained import train_plan

ROW = "meta-llama/Llama-3.1-8B"
P = preferences()
# What the first plan may cost more than another: the trainer of its chip and count is chosen within `evidence`, the
# plan within `sooner`, or within `evidence` where time or money is limited.
FREE, LIMITED = (1.0 + P.sooner) * (1.0 + P.evidence), (1.0 + P.evidence) ** 2


def test_software_that_nobody_develops_comes_after_what_lives(run: Run) -> None:
    """torchtune is the fastest by 7 %: named it is taken, unnamed it is the cheaper one, with the reason."""
    asked = ("plan", ROW, "--task", "finetune", "--chips", "rtx-4090", "--counts", "1", "--seq", "2048")
    said = " ".join(run(*asked).out.split())
    assert "with unsloth instead of hf-trainer" in said
    assert "with torchtune" in said
    assert "but development of torchtune has ended." in said
    named = " ".join(run(*asked, "--trainer", "torchtune").out.split())
    assert "with torchtune (" in named
    assert "development of torchtune ended on 2025-07-15 (https://github.com/" in named


def drawn(seed: int) -> dict[str, Any]:
    """A question about chips of one kind, without limits."""
    r = random.Random(seed)
    model = r.choice(["Qwen/Qwen3-0.6B", "Qwen/Qwen3-8B", ROW, "meta-llama/Llama-3.1-70B", "Qwen/Qwen3-30B-A3B"])
    chip = r.choice(["h100-sxm5-80gb", "b200-sxm", "mi300x", "tpu-v6e", "l40s", "a100-sxm4-80gb", "h200-sxm-141gb"])
    task, method = r.choice([("train", "full"), ("finetune", "lora"), ("finetune", "full"), ("finetune", "qlora")])
    method = "lora" if method == "qlora" and chip.startswith("tpu") else method
    counts = (8, 32, 64) if task == "train" else (2, 4, 8)
    tokens = 1e11 if task == "train" else 1e8
    return {"model": model, "chips": (chip,), "task": task, "method": method, "counts": counts, "tokens": tokens}


def asked(question: dict[str, Any], **changes: Any) -> TrainReport | None:
    """The answer, None where there is no plan."""
    try:
        return train_plan(**{**question, **changes})
    except InfeasibleError:
        return None


@cache
def free(seed: int) -> TrainReport | None:
    return asked(drawn(seed))


def cost(report: TrainReport) -> float:
    """Dollars, else days."""
    first = report.plans[0]
    return first.usd.mid if first.usd else first.days.mid


SEEDS = range(8)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_trainer_that_one_can_name_is_better(seed: int) -> None:
    """But by its own error where nobody measured it, and the usual one was or runs experts."""
    question, report = drawn(seed), free(seed)
    chip = get_chip(question["chips"][0])
    for t in able_trainers(chip, question["method"], anew=question["task"] == "train"):
        named = asked(question, trainer=t.id)
        if named is None:
            continue
        assert report is not None
        mine, its = report.plans[0], named.plans[0]
        guess = not its.measured and (mine.measured or "A3B" in question["model"])
        error = its.days.high / its.days.mid if guess else 1.0
        room = max(error, ENDED if t.ended else 1.0)
        assert cost(report) <= FREE * room * cost(named), t.id
    if report is not None:
        again = asked(question, trainer="best")
        assert again is not None
        assert again.plans == report.plans


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_not_searched_would_not_come_first(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    report = free(seed)
    monkeypatch.setattr(train, "_beaten", lambda *_: False)
    every = asked(drawn(seed))
    assert (every is None) == (report is None)
    if every is not None and report is not None:
        assert every.plans == report.plans
        assert every.considered >= report.considered


@pytest.mark.parametrize("seed", SEEDS)
def test_no_count_is_better_than_none_and_chips_of_ones_own_are_planned_alike(seed: int) -> None:
    question, report = drawn(seed), free(seed)
    for count in question["counts"]:
        alone = asked(question, counts=(count,))
        owned = asked(question, counts=(count,), chips=(), have={question["chips"][0]: count})
        assert (alone is None) == (owned is None)
        if alone is None or owned is None:
            continue
        assert report is not None
        assert cost(report) <= FREE * cost(alone)
        one, own = alone.plans[0], owned.plans[0]
        assert (one.stack, one.layout, one.days) == (own.stack, own.layout, own.days)
        assert own.usd is None
        assert "on chips that you have" in " ".join(owned.verdict())
    mine = asked(question, counts=(), chips=(), have={question["chips"][0]: 8})
    if mine is not None:
        assert mine.plans[0].days.mid <= (1.0 + P.sooner) * min(p.days.mid for p in mine.plans)


@pytest.mark.parametrize("seed", SEEDS)
def test_asking_for_less_never_costs_more(seed: int) -> None:
    """Deadlines, confidence and budgets."""
    question, report = drawn(seed), free(seed)
    if report is None:
        return
    days = sorted(p.days.high for p in report.plans)
    deadlines = [asked(question, deadline_days=d) for d in (days[0], days[len(days) // 2], 1.5 * days[-1])]
    kept = [r for r in deadlines if r is not None and r.kept]
    assert kept
    assert all(b is not None and b.kept for b in deadlines[deadlines.index(kept[0]) :])
    costs = [cost(r) for r in kept]
    assert all(later <= LIMITED * before for before, later in pairwise(costs))
    sure = [asked(question, deadline_days=days[len(days) // 2], confidence=c) for c in (0.99, 0.9, 0.5, 0.2)]
    found = [r for r in sure if r is not None and r.kept]
    costs = [cost(r) for r in found]
    assert all(later <= LIMITED * before for before, later in pairwise(costs))
    if report.plans[0].usd is not None:
        least = min(p.usd.mid for p in report.plans if p.usd)
        budgets = [asked(question, max_usd=least * f) for f in (1.001, 1.2, 2.0)]
        paid = [cost(r) for r in budgets if r is not None]
        assert len(paid) == len(budgets)
        assert all(p <= LIMITED * least for p in paid)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_layout_is_better_than_none(seed: int) -> None:
    question, report = drawn(seed), free(seed)
    for layout in ({"tp": 2}, {"recompute": "full"}, {"zero": 3}, {"micro_batch": 1}):
        fixed = asked(question, layout=layout)
        if fixed is not None:
            assert report is not None
            # what is simpler may take `equal` longer, what stays on the device `at_home`
            assert cost(report) <= FREE * (1.0 + P.at_home) * (1.0 + P.equal) * cost(fixed)


def test_a_step_takes_no_less_than_its_floor() -> None:
    numbers = shipped_parameters()
    for model, method, chip in (
        ("Qwen/Qwen3-0.6B", "full", "h100-sxm5-80gb"),
        (ROW, "lora", "mi300x"),
        ("Qwen/Qwen3-30B-A3B", "full", "b200-sxm"),
        (ROW, "full", "tpu-v5p"),
    ):
        run = train.Training(model, method=method)
        found = load(model)
        network, ask = transformer(found.graph), run.ask(found)
        for t in able_trainers(get_chip(chip), method):
            given = replace(run.software, trainer=t.id, named=False)
            job = site_of(get_chip(chip), network, ask, numbers, given).job
            least = least_seconds(job)
            for count in (1, 8, 96):
                priced = search(replace(job, global_batch=768), count)
                for at in best(job, priced):
                    assert priced.seconds[at] * count / 768 >= least


def test_the_usual_trainer_yields_to_what_is_clearly_better() -> None:
    """Adapters under no trainer were measured; where one was, a better figure that nobody measured is no reason."""
    plan = train_plan("Qwen/Qwen3-32B", task="finetune", have={"h100": 8}, tokens=2e8).plans[0]
    assert plan.instead_of == "hf-trainer"
    assert plan.stack != "hf-trainer"
    usual = train_plan("Qwen/Qwen3-32B", task="finetune", have={"h100": 8}, tokens=2e8, trainer="usual").plans[0]
    assert usual.instead_of == ""
    assert plan.days.mid < usual.days.mid / (1.0 + P.evidence)
    said = " ".join(train_plan("Qwen/Qwen3-32B", task="finetune", have={"h100": 8}, tokens=2e8).verdict())
    assert said.startswith(f"Train on 8x h100-sxm5-80gb with {plan.stack} instead of hf-trainer (")
    hair = replace(
        usual, stack="torchtitan", instead_of="hf-trainer", days=replace(usual.days, mid=0.95 * usual.days.mid)
    )
    assert [p.stack for p in rank_runs((usual, hair), Aim(owned=True))] == ["hf-trainer"]
    experts = train_plan("Qwen/Qwen3-30B-A3B", chips=("b200-sxm",), counts=(64,)).plans[0]
    assert experts.instead_of == ""


def test_a_run_whose_layout_or_batch_is_said_keeps_the_usual_trainer() -> None:
    ask = {"task": "finetune", "chips": ("h100",), "counts": (8,)}
    open_ = train_plan("Qwen/Qwen3-32B", **ask).plans[0]
    assert open_.instead_of
    for said in ({"layout": {"tp": 1}}, {"global_batch": 64}, {"known_to_run": True}):
        assert not train_plan("Qwen/Qwen3-32B", **ask, **said).plans[0].instead_of
        assert train_plan("Qwen/Qwen3-32B", **ask, **said, trainer="best").plans


def test_such_a_run_takes_another_trainer_before_its_states_wait_on_the_host() -> None:
    """Mistral-7B in full on one card of 80 GB: fp32 copies do not fit, states in 16 bit do."""
    asked = {"model": "mistralai/Mistral-7B-v0.1", "chips": "a100-sxm4-80gb", "counts": "1", "global_batch": 4}
    report = chipwise.train(**asked, tokens="10M")
    usual = chipwise.train(**asked, tokens="10M", trainer="nemo")
    first = report.plans[0]
    assert usual.plans[0].layout.offload
    assert (first.layout.offload, first.instead_of) == (0, "nemo")
    assert first.days.mid < usual.plans[0].days.mid


def test_what_is_tried_can_be_launched_and_runs_there() -> None:
    for t in all_software(Trainer).values():
        assert t.tool or not t.tried, t.id
        assert not t.tried or not t.runs_on or set(t.tried) <= {*t.runs_on, "nvidia", "amd", "intel"}, t.id


def test_the_chance_of_a_deadline_is_said_and_ranks() -> None:
    free = train_plan(ROW, chips=("h100",), counts=(8, 16), tokens=1e10).plans
    days = {p.chips: p.days for p in free}
    most = 1.02 * days[16].mid
    report = train_plan(ROW, chips=("h100",), counts=(8, 16), tokens=1e10, deadline_days=most)
    (first,) = report.plans
    # known levels say on which side of the prediction runs lie, which the ends of an interval alone do not
    plain = chance(most, first.days.mid, first.days.low, first.days.high)
    assert first.chance == pytest.approx(plain, abs=0.12)
    assert not report.kept
    said = " ".join(report.verdict())
    assert said.startswith("No plan meets the deadline of ")
    assert "with 90% probability; nearest: 16x h100-sxm5-80gb" in said
    assert f"with {int(100 * first.chance + 0.2)}% probability." in said
    sure = train_plan(ROW, chips=("h100",), counts=(8, 16), tokens=1e10, deadline_days=most, confidence=0.5)
    assert sure.kept
    assert " ".join(sure.verdict()).startswith("Train on 16x h100")
    assert free[0].chance is None


def test_the_verdict_says_what_the_choice_costs() -> None:
    """The cheapest of all trainers and counts, which the usual trainer stands above within what evidence may cost."""
    ask = {"task": "finetune", "method": "full", "chips": ("rtx-4090",), "counts": (2,)}
    report = train_plan("meta-llama/Llama-3.1-8B", **ask)  # type: ignore[arg-type]
    first, least = report.plans[0], report.cheapest
    assert least is not None
    assert least.instead_of == first.stack
    assert report.saves == pytest.approx(1.0 - least.usd.mid / first.usd.mid)
    assert 0.0 < report.saves < 1.0 - 1.0 / (1.0 + P.evidence)
    assert report.verdict()[-1].startswith(f"Cheapest: 2x rtx-4090 with {least.stack}, about $")
    assert report.verdict()[-1].endswith(f"% less, but {first.stack} is the usual trainer.")


def test_counts_of_the_market_are_those_of_chips_that_one_has() -> None:
    for task in ("train", "finetune"):
        for n in (1, 6, 8, 12, 100):
            assert counts_to_try((), task, n, None, {}) == counts_to_try((), task, None, n, {})
    assert counts_to_try((), "finetune", None, None, {}) == [1, 2, 4, 8]


def test_refusals_name_limits_and_counts_that_work() -> None:
    ask = {"tokens": 1e11, "have": {"h100-sxm5-80gb": 8}}
    with pytest.raises(
        InfeasibleError, match=r"what works: --deadline [\d.]+d, or --have 64xh100-sxm5-80gb"
    ) as refused:
        train_plan(ROW, **ask, deadline_days=5.0)
    days = float(str(refused.value).split("--deadline ")[1].split("d")[0])
    assert train_plan(ROW, **ask, deadline_days=days).kept
    with pytest.raises(InfeasibleError, match=r"--max-usd \d+") as dear:
        train_plan(ROW, tokens=1e11, chips=("h100",), counts=(8,), max_usd=10.0)
    usd = float(str(dear.value).split("--max-usd ")[1].split(")")[0].split(",")[0])
    assert train_plan(ROW, tokens=1e11, chips=("h100",), counts=(8,), max_usd=usd).plans
    with pytest.raises(InfeasibleError, match=r"--have \d+xrtx-4090"):
        train_plan("meta-llama/Llama-3.1-70B", task="finetune", method="qlora", have={"rtx-4090": 1})


def test_the_command_of_a_plan_names_its_trainer(run: Run) -> None:
    text = run("plan", "Qwen/Qwen3-32B", "--task", "finetune", "--have", "8xh100", "--tokens", "200M").out
    named = [p.stack for p in train_plan("Qwen/Qwen3-32B", task="finetune", have={"h100": 8}, tokens=2e8).plans]
    assert f"--trainer {named[0]}" in " ".join(text.replace("\\", " ").split())
    assert TrainRequest(model=ROW, confidence="50%").asked().likely == 0.5


def test_the_batch_of_a_large_run_grows_with_its_fleet_and_one_that_is_asked_for_is_kept() -> None:
    """DeepSeek-V3 had 15,360 sequences of 4,096 tokens to a step; a batch for a hundred chips leaves 2,048 waiting."""
    ask = {"chips": ("b200-sxm",), "counts": (2048,), "tokens": 15e12, "trainer": "usual"}
    model = "deepseek-ai/DeepSeek-V3"
    (grown,) = train_plan(model, **ask).plans[:1]  # type: ignore[arg-type]
    (fixed,) = train_plan(model, **ask, global_batch=1024).plans[:1]  # type: ignore[arg-type]
    assert fixed.global_batch == 1024
    assert 4096 <= grown.global_batch <= 16384
    assert grown.tokens_per_s.mid > fixed.tokens_per_s.mid
    (small,) = train_plan("meta-llama/Llama-3.1-8B", **{**ask, "counts": (64,)}).plans[:1]  # type: ignore[arg-type]
    assert small.global_batch == 1024


def test_an_optimiser_kept_on_the_device_moves_no_activations_to_the_host() -> None:
    """Eight B200 of MLPerf took 1.52 s a step; a search that stopped at activations in host memory said 5.5."""
    found = chipwise.train(
        "meta-llama/Llama-2-70b-hf",
        tokens="28.9M",
        seq=8192,
        global_batch=8,
        counts=[8],
        layout={"tp": 1, "pp": 1, "cp": 1, "micro_batch": 1, "offload": 0},
        method="lora",
        trainer="nemo-tuned",
        known_to_run=True,
        chips=["b200-sxm"],
        precision="fp8",
    )
    assert found.plans[0].host_bytes == 0
    assert found.plans[0].step_s.mid < 2.5


@pytest.mark.parametrize(
    ("trainer", "precision", "saved", "kernels"),
    [
        ("torchtitan", "bf16", 2.0, 0.0), ("torchtitan", "fp8", 2.0, 0.0), ("torchtitan", "mxfp8", 2.0, 1.0),
        ("torchtitan", "nvfp4", 0.5625, 1.0), ("nemo", "mxfp8", 1.0, 0.0), ("nemo", "bf16", 2.0, 0.0),
    ],
)  # fmt: skip
def test_who_narrows_operands_decides_what_is_saved_and_what_it_takes(
    trainer: str, precision: str, saved: float, kernels: float
) -> None:
    """torchao saves 16 bit of products in 8, and casts blocks by kernels of their own; TransformerEngine fuses both."""
    run = train.Training(ROW, precision=precision, trainer=trainer)
    found = load(ROW)
    network = transformer(found.graph)
    site = site_of(get_chip("b200-sxm"), network, run.ask(found), shipped_parameters(), run.software)
    assert (site.job.recipe.operand, site.job.recipe.quantises) == (saved, kernels)


def test_a_trainer_is_taken_where_its_tool_knows_the_model() -> None:
    asked = {"task": "finetune", "method": "qlora", "tokens": 3e7, "have": {"rtx-4090": 1}}
    for model in ("google/gemma-3-12b-it", "meta-llama/Llama-3.1-8B"):
        for p in train_plan(model, **asked).plans:
            tool = get_trainer(p.stack).tool
            known = get_tool(tool).models if tool else {}
            assert not known or model in known
