"""What one can say about a load and its software, and what each of it must do to a plan."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

import chipwise as cw
from chipwise.api.requests.planning import EstimateRequest, ExplainRequest, FitRequest, PlanRequest
from chipwise.catalog.offer import MARKETPLACES
from chipwise.catalog.price import rent_basis
from chipwise.catalog.snapshot import today
from chipwise.errors import InfeasibleError, UnknownNameError, UsageError
from chipwise.report.plans import PlanRecord, plan_view
from chipwise.search.prefer import LIKELIER

SMALL = "meta-llama/Llama-3.1-8B"
LARGE = "meta-llama/Llama-3.1-70B"
CHIP = "h100-sxm5-80gb"


def placed(model: str = SMALL, concurrency: float | None = 32, **asked: object) -> PlanRecord:
    place = {"model": model, "chip": CHIP, "concurrency": concurrency, **asked}
    (plan,) = EstimateRequest(**place).run().plans  # type: ignore[arg-type]
    return plan


def test_figures_as_given_are_among_the_assumptions() -> None:
    ask = {"model": SMALL, "set_": "hbm=4TB/s"}
    one = EstimateRequest(chip=CHIP, **ask).run()  # type: ignore[arg-type]
    fitting = FitRequest(chips=CHIP, **ask).run()  # type: ignore[arg-type]
    best = PlanRequest(chips=CHIP, task="batch", **ask).run()  # type: ignore[arg-type]
    assert all("chips: hbm 4TB/s, as given" in r.assumptions for r in (one, fitting, best))


def planned(**asked: object) -> PlanRecord:
    """The plan of an H100 for 20 requests a second."""
    load = {} if "day" in asked or "rate" in asked else {"rate": "20/s"}
    (plan,) = PlanRequest(model=SMALL, chips=CHIP, **load, **asked).run().plans  # type: ignore[arg-type]
    return plan


def log_of(path: Path, pairs: list[tuple[int, int]]) -> str:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("prompt_tokens", "output_tokens"))
        writer.writerows(pairs)
    return str(path)


def test_spread_lengths_wait_longer_at_the_same_means() -> None:
    alike, spread, wide = placed(), placed(cv="0.5"), placed(cv="1.5")
    assert alike.ttft_s.mid < spread.ttft_s.mid < wide.ttft_s.mid
    assert alike.tails["p99"].ttft_s < spread.tails["p99"].ttft_s < wide.tails["p99"].ttft_s  # type: ignore[operator]


def test_a_log_stands_for_its_means_and_spread(tmp_path: Path) -> None:
    same = log_of(tmp_path / "same.csv", [(2000, 300)] * 5)
    assert placed(log=same) == placed()
    mixed = placed(log=log_of(tmp_path / "mixed.csv", [(1000, 300), (3000, 300)] * 20))
    assert mixed.ttft_s.mid == pytest.approx(placed(cv="in=0.5,out=0").ttft_s.mid, rel=1e-6)


def test_a_prefix_cache_saves_prompts_and_memory() -> None:
    plain, some, most = placed(), placed(prefix_hit="30%"), placed(prefix_hit="0.9")
    assert plain.prefill_s > some.prefill_s > most.prefill_s
    assert plain.tpot_s.mid > some.tpot_s.mid > most.tpot_s.mid
    full = placed(concurrency=None, prefix_hit="50%")
    shared = placed(concurrency=None, prefix_hit="50%", common_prefix="1k")
    assert shared.concurrency >= full.concurrency
    assert shared.memory.items["common prefix"] == 1008 * 131_072  # once, in blocks of 16 tokens


def test_beams_keep_and_read_their_prompt_once() -> None:
    alone, beams = placed(prefix_hit="75%"), placed(prefix_hit="75%", sharers=4)
    assert beams.tpot_s.mid < alone.tpot_s.mid
    full, many = (placed(concurrency=None, prefix_hit="75%", sharers=n) for n in (1, 4))
    assert many.concurrency > 1.5 * full.concurrency


def test_guesses_pay_only_where_they_are_right() -> None:
    plain = placed(concurrency=4)
    tpot = [placed(concurrency=4, speculate=f"accept={a},draft=3").tpot_s.mid for a in (0.0, 0.5, 0.9)]
    assert tpot[0] > tpot[1] > tpot[2]
    assert tpot[0] > plain.tpot_s.mid > tpot[2]


def test_a_module_that_guesses_takes_time_and_memory() -> None:
    asked = {"model": "deepseek-ai/DeepSeek-V3", "chip": "b200-sxm", "dp": 8, "ep": 8}
    free = placed(speculate="accept=0.7,draft=1,with=lookup", **asked)
    drafted = placed(speculate="accept=0.7,draft=1", **asked)
    assert drafted.tpot_s.mid > free.tpot_s.mid
    assert "weights: draft" in drafted.memory.items
    assert "weights: draft" not in free.memory.items


def test_older_software_is_slower_and_the_newest_is_what_was_measured() -> None:
    tpot = [placed(software=when).tpot_s.mid for when in ("v4.0", "2025-06", "2026-06")]
    assert tpot[0] > tpot[1] >= tpot[2]
    assert placed(software="2026-06") == placed()


def test_a_policy_that_is_said_holds_for_older_software_too() -> None:
    asked = {"runtime": "vllm", "software": "2025-04"}
    usual, half = placed(**asked), placed(policy="memory_share=0.5", **asked)
    assert half.memory.cache_bytes < 0.6 * usual.memory.cache_bytes
    assert placed(policy="memory_share=0.9", **asked).memory == usual.memory  # as vLLM had it then


def test_a_spare_replica_changes_nothing_but_the_cost() -> None:
    plain, safe = planned(), planned(spare=2)
    assert (safe.replicas, safe.spare) == (plain.replicas + 2, 2)
    for name in ("ttft_s", "tpot_s", "tokens_per_s"):  # to the last digit or two: other rows stand beside them
        one, other = getattr(safe, name), getattr(plain, name)
        assert (one.low, one.mid, one.high) == pytest.approx((other.low, other.mid, other.high), rel=1e-9)
    assert safe.price is not None
    assert plain.price is not None
    rent = rent_basis(CHIP, today())
    assert safe.price.mid > plain.price.mid
    assert safe.price.mid == pytest.approx(rent.hour(safe.chips).mid)


def test_a_day_is_sized_for_its_peak() -> None:
    day = planned(day="5,10,20,5")
    peak = planned()
    assert (day.chips, day.tpot_s) == (peak.chips, peak.tpot_s)
    assert day.day is not None
    assert day.day.saturated_hours == 0
    assert day.day.requests_per_day == pytest.approx(10 * 86400)
    assert day.day.mean_utilisation == pytest.approx(day.day.peak_utilisation / 2)
    assert day.day.scaled_usd_per_day <= day.day.usd_per_day


def test_prompts_apart_leave_decoding_alone() -> None:
    report = PlanRequest(model=LARGE, chips=f"{CHIP},tpu-v6e", rate="20/s", disaggregate=True).run()
    (apart,) = report.plans
    assert apart.prompt_workers >= 1
    devices = apart.layout.tp * apart.layout.pp * apart.layout.dp
    assert apart.chips == (apart.replicas + apart.prompt_workers) * devices
    assert apart.tpot_s.mid == apart.decode_s
    assert apart.requests_per_s >= 20 * (1 - 1e-2)
    assert [r.chip for r in report.refused] == ["tpu-v6e"]


def test_quantiles_are_ordered_around_the_mean() -> None:
    p = placed()
    for field in ("ttft_s", "tpot_s"):
        low, high, highest = (getattr(p.tails[q], field) for q in ("p50", "p95", "p99"))
        assert low < high < highest
        assert low < 1.5 * getattr(p, field).mid < 3 * highest
    assert not placed(task="batch").tails


def test_a_smaller_cache_holds_more_where_the_runtime_has_it() -> None:
    wide, narrow = placed(concurrency=None), placed(concurrency=None, kv="fp8")
    assert narrow.memory.cache_tokens == pytest.approx(2 * (wide.memory.cache_tokens or 0), rel=0.01)
    assert (wide.kv, narrow.kv, narrow.precision) == ("bf16", "fp8", "bf16")
    with pytest.raises(InfeasibleError, match="no fp8 cache"):
        EstimateRequest(model=SMALL, chip="mi210", kv="fp8").run()


def test_a_published_result_stands_beside_a_plan_and_moves_none_of_its_figures() -> None:
    p = placed(LARGE, tp=4)
    assert p.nearest is not None
    assert "MLPerf" in p.nearest.label
    assert p.nearest.anchored_tokens_per_s / p.tokens_per_s.mid == pytest.approx(1.0, abs=0.5)
    assert p.nearest.anchored_tokens_per_s != p.tokens_per_s.mid


def test_energy_of_a_plan_is_its_power_over_its_speed() -> None:
    p = placed(LARGE, tp=4)
    e = p.energy
    assert e is not None
    assert e.chip_w.high <= 700.0 == e.limit_w
    assert e.joules_per_token.mid == pytest.approx(4 * e.chip_w.mid / p.tokens_per_s.mid)
    assert e.joules_per_token_wall.mid == pytest.approx(e.wall_w.mid / p.tokens_per_s.mid)
    assert e.joules_per_request is not None
    assert e.joules_per_request.mid == pytest.approx(e.joules_per_token.mid * 300)
    assert 4 * e.chip_w.mid < e.wall_w.mid
    assert p.kwh_per_million_out is not None
    assert p.kwh_per_million_out.mid == pytest.approx(e.joules_per_token.mid / 3.6)


def test_fuller_batches_draw_more_and_take_less_for_each_token() -> None:
    alone, full = (placed(concurrency=c).energy for c in (1, 128))
    assert alone is not None
    assert full is not None
    assert alone.chip_w.mid < full.chip_w.mid
    assert alone.joules_per_token.mid > 10 * full.joules_per_token.mid


def test_a_lower_power_limit_bounds_the_draw() -> None:
    capped = placed(set_="tdp=400W").energy
    assert capped is not None
    assert capped.limit_w == 400.0
    assert capped.chip_w.high <= 400.0


def test_spare_replicas_draw_power_too() -> None:
    one, more = planned(), planned(spare=2)
    assert one.energy is not None
    assert more.energy is not None
    assert more.energy.joules_per_token.mid > one.energy.joules_per_token.mid


def test_a_limit_of_watts_holds_with_every_chip_at_its_limit() -> None:
    free = planned(rate="60/s")
    capped = PlanRequest(model=SMALL, rate="60/s", max_watts="9kW").run()
    assert free.chips > 1
    assert all(p.energy and p.chips * p.energy.limit_w < 9000.0 for p in capped.plans)
    with pytest.raises(InfeasibleError, match="feed not one"):
        planned(max_watts="300W")
    with pytest.raises(UsageError):
        planned(max_watts="ten")


@pytest.mark.parametrize(
    "asked",
    [
        {"cv": "eleven"},
        {"cv": "out=0.5,middle=1"},
        {"prefix_hit": "120%"},
        {"prefix_hit": "1"},
        {"common_prefix": "1k"},
        {"sharers": "4"},
        {"prefix_hit": "75%", "sharers": "0.5"},
        {"speculate": "draft=3"},
        {"speculate": "accept=0.7,drafts=3"},
        {"speculate": "accept=2"},
        {"speculate": "accept=0.7,with=luck"},
        {"log": "no/such/file.csv"},
        {"spare": 1, "rate": None},
        {"spare": -1},
        {"software": "2019-01"},
        {"disaggregate": True, "task": "local", "rate": None},
        {"day": "1,2,x"},
        {"day": "0,0"},
        {"day": "1,2"},
    ],
)
def test_what_cannot_be_is_said_in_one_line(asked: dict[str, object]) -> None:
    with pytest.raises(UsageError) as caught:
        PlanRequest(**{"model": SMALL, "chips": CHIP, "rate": "20/s", **asked}).run()  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert caught.value.hint


def test_a_load_that_leaves_replicas_idle_pays_for_the_idle_time() -> None:
    (plan,) = PlanRequest(model=SMALL, chips="l4", rate="0.01/s").run().plans
    assert plan.requests_per_s == pytest.approx(0.01)
    assert plan.price is not None
    assert plan.usd_per_million_in is not None
    assert plan.usd_per_million_out is not None
    paid = plan.usd_per_million_in.mid * 2000 + plan.usd_per_million_out.mid * 300
    assert paid / 1e6 == pytest.approx(plan.price.mid / 3600 / 0.01)


def test_software_of_no_date() -> None:
    with pytest.raises(UnknownNameError):
        placed(software="yesterday")


def test_a_serial_part_turns_to_the_cpu() -> None:
    found = [ExplainRequest(model=SMALL, chip=CHIP, serial=s).run().amdahl for s in (None, "0%", "50%")]
    assert found[0] is None
    assert [a.chips[0].faster for a in found if a] == [CHIP, f"{CHIP}+epyc-9654"]


def test_what_api_says_of_a_load_is_in_the_report() -> None:
    report = EstimateRequest(model=SMALL, chip=CHIP, cv="0.8", prefix_hit="30%").run()
    w = report.workload
    assert (w.prompt_cv, w.output_cv, w.cached_share) == (0.8, 0.8, 0.3)
    said = " ".join(report.assumptions)
    assert "30% of prompt tokens" in said
    assert "0.8 in and 0.8 out" in said


def test_machines_are_read_alike_by_every_verb() -> None:
    """Two machines of eight cards: replicas fill them, that many are sized, at most so many are planned."""
    sixteen = {"evidence": "none", "tp": 4}
    filled, plain = (
        cw.estimate(SMALL, chip=chip, **sixteen, **more).plans[0]
        for chip, more in (("2xp5.48xlarge", {}), ("h100", {"replicas": 4}))
    )
    assert filled == plain
    assert (filled.chips, filled.replicas) == (16, 4)
    assert cw.explain(SMALL, chip="16xh100", **sixteen).plans == (plain,)
    with pytest.raises(UsageError, match="is 16 chips, and a replica takes 3: 1 would be idle"):
        cw.estimate(SMALL, chip="2xp5.48xlarge", tp=3)
    assert [(f.chip, f.chips) for f in cw.fit(SMALL, chips="2xp5.48xlarge,h200").fits] == [
        ("h200-sxm-141gb", 1),
        ("h100-sxm5-80gb", 16),
    ]
    asked = {"rate": "40/s", "evidence": "none"}
    free, few = (cw.plan(SMALL, chips=chips, **asked).plans[0] for chips in ("h100", "16xh100"))
    assert free == few
    with pytest.raises(InfeasibleError):
        cw.plan(SMALL, chips="1xh100", **{**asked, "rate": "400/s"})
    assert {p.chips for p in cw.train(SMALL, chips="2xp5.48xlarge", tokens="1B").plans} == {16}


def test_a_load_takes_no_more_of_ones_own_chips_than_it_needs() -> None:
    """At a rate the rest stays free, and no layout is cut further than memory forces; without one all are at work."""
    found = cw.plan(SMALL, have="8xh100", rate="10/s", evidence="none").plans[0]
    assert (found.chips, found.layout.label, found.layout.pp) == (1, "unsharded", 1)
    full = cw.plan(SMALL, have="8xh100", evidence="none").plans[0]
    assert full.chips == 8
    both = cw.plan(LARGE, have="8xh100,8xmi300x", rate="3/s", evidence="none").plans
    assert [p.chips for p in both] == sorted(p.chips for p in both)


def test_fit_and_estimate_hold_the_same_software_of_a_date() -> None:
    asked = {"model": "Qwen/Qwen2.5-72B", "precision": "bf16", "runtime": "vllm", "software": "2025-04"}
    (fitted,) = FitRequest(chips=f"2x{CHIP}", context="1152", **asked).run().fits
    assert fitted.verdict == "no"
    with pytest.raises(InfeasibleError, match=r"2.7 GB short .*chipwise fit .*--software 2025-04"):
        EstimateRequest(chip=CHIP, tp=2, concurrency=1, in_="1024", out="128", **asked).run()  # type: ignore[arg-type]
    (newest,) = FitRequest(chips=f"2x{CHIP}", context="1152", **(asked | {"software": None})).run().fits  # type: ignore[arg-type]
    assert newest.verdict == "tight"
    with pytest.raises(UsageError, match="nothing of the memory of a model without tokens"):
        FitRequest(model="resnet50", software="2025-04").run()


def test_hosts_of_one_domain_are_joined_by_its_fabric() -> None:
    asked = {"model": "deepseek-ai/DeepSeek-V3.2", "concurrency": 32, "in_": "500", "out": "200"}
    rack, hosts = placed(chip="gb300-nvl72", dp=32, ep=32, **asked), placed(chip="h200", tp=8, pp=2, **asked)
    assert (rack.replica_hosts, hosts.replica_hosts) == (8, 2)
    assert rack.network_bytes_per_s == pytest.approx(900e9)  # NVLink of the rack, one way
    assert hosts.network_bytes_per_s == pytest.approx(50e9)


def test_ones_own_chips_show_how_much_they_carry_where_no_rate_is_asked() -> None:
    said = str(cw.plan(SMALL, have="2xh100", evidence="none"))
    assert "requests/s" in next(line for line in said.splitlines() if "TTFT, ms" in line)
    assert "It serves up to" in said
    sized = str(cw.plan(SMALL, have="2xh100", rate="2/s", evidence="none"))
    assert "requests/s" not in next(line for line in sized.splitlines() if "TTFT, ms" in line)


def test_watts_are_shown_where_they_are_limited() -> None:
    asked = {"rate": "20/s", "chips": "h100", "evidence": "none"}
    limited, free = (plan_view(cw.plan(SMALL, **asked, max_watts=watts)) for watts in ("9kW", None))
    assert ["W" in table.columns for table in (limited, free)] == [True, False]
    assert "chance" in free.columns


def test_a_version_chooses_the_software_that_it_names() -> None:
    asked = {"rate": "2/s", "chips": "h100", "evidence": "none"}
    assert {p.runtime for p in cw.plan(SMALL, **asked, software="sglang 0.5.6").plans} == {"sglang"}
    assert {p.runtime for p in cw.plan(SMALL, **asked, software="0.11", runtime="vllm").plans} == {"vllm"}


def test_who_cannot_be_sure_gets_the_nearest_plan_and_a_reserve_that_is_too_large_is_said() -> None:
    asked = {"rate": "1.8/s", "have": "4xl40s", "images": "896x896", "evidence": "none"}
    near = cw.plan("google/gemma-3-27b-it", **asked, ttft="700ms")
    assert not near.kept
    assert near.plans[0].load <= 0.7 + 1e-6
    assert cw.plan("google/gemma-3-27b-it", **asked, ttft="700ms", confidence="60%").kept
    asked |= {"confidence": "60%", "utilisation": "50%"}
    with pytest.raises(InfeasibleError, match=r"at 50% of its limit and with 60% probability") as refused:
        cw.plan("google/gemma-3-27b-it", **asked)
    needed = re.search(r"utilisation (\d+)%", str(refused.value.hint))
    assert needed
    assert cw.plan("google/gemma-3-27b-it", **asked | {"utilisation": needed[0].split()[1]}).plans


def test_beside_a_marketplace_stands_the_best_plan_of_several_providers() -> None:
    report = cw.plan("Qwen/Qwen3-4B", rate="5/s", chips="rtx-4090,l40s", evidence="none")
    first, other = report.plans
    assert first.price.provider in MARKETPLACES
    assert f"Outside marketplaces: {other.machines}" in " ".join(str(report).split())
    pictures = cw.plan("sdxl", rate="2/s", chips="rtx-4090,l40s", evidence="none")
    assert pictures.plans[0].price.provider in MARKETPLACES
    assert f"Outside marketplaces: {pictures.plans[1].machines}" in " ".join(str(pictures).split())


def test_beside_one_seller_stands_the_best_plan_of_several() -> None:
    report = cw.plan("Qwen/Qwen3-32B", rate="5/s", chips="gh200-96gb,h100", evidence="none")
    first, other = report.plans
    assert (first.price.sellers, other.price.sellers > 1) == (1, True)
    assert f"From several providers: {other.machines}" in " ".join(str(report).split())


def test_an_api_is_not_called_cheaper_than_machines_that_are_arranged_otherwise() -> None:
    report = cw.plan("deepseek-ai/DeepSeek-R1", rate="100/s", in_=1500, out=600)
    assert report.decision is not None
    apart = next(lever for lever in report.levers if lever.options == "--disaggregate")
    rent, api = report.decision.rent_usd_per_month, report.decision.api_usd_per_month
    assert report.decision.choice == "api"
    assert rent * (1.0 - apart.saves) < api < rent
    assert "Machines cost less than the API with --disaggregate" in " ".join(str(report).split())


def test_what_is_to_be_had_is_as_many_chips_as_the_plan_takes() -> None:
    report = cw.plan("deepseek-ai/DeepSeek-V3.2", have="8xmi300x", rate="3/s")
    (option,) = (way.removeprefix("--have ") for way in report.ways if way.startswith("--have"))
    other = cw.plan("deepseek-ai/DeepSeek-V3.2", have=option, rate="3/s")
    assert other.kept
    assert option == other.plans[0].machines.replace(" ", "")


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("deepseek-ai/DeepSeek-R1", {"rate": "100/s", "in_": 1500, "out": 600, "disaggregate": True}),
        ("openai/gpt-oss-120b", {"rate": "20/s", "in_": 1000, "out": 500}),
        ("Qwen/Qwen3-32B", {"rate": "10/s"}),
    ],
)
def test_no_other_software_is_clearly_likelier_for_the_same_machines_and_price(
    model: str, asked: dict[str, object]
) -> None:
    chip = "b200-sxm" if "disaggregate" in asked else "h200-sxm-141gb"

    def leading(**more: object) -> PlanRecord:
        return cw.plan(model, chips=chip, confidence="50%", **asked, **more).plans[0]

    first = leading()
    assert first.price is not None
    for runtime in ("vllm", "sglang", "trtllm"):
        other = leading(runtime=runtime)
        assert other.price is not None
        alike = other.chips == first.chips and other.price.mid == pytest.approx(first.price.mid)
        assert not alike or (other.chance or 0.0) <= (first.chance or 0.0) + LIKELIER


def test_all_software_on_one_chip_is_a_row_each() -> None:
    found = cw.plan("meta-llama/Llama-3.1-70B", have="8xh100", runtime="best")
    named = [p.runtime for p in found.plans]
    assert len(named) == len(set(named)) > 2
    several = cw.plan("meta-llama/Llama-3.1-70B", rate=5, chips="h100,h200", runtime="best")
    assert {p.chip for p in several.plans} == {"h100-sxm5-80gb", "h200-sxm-141gb"}


def test_a_share_of_a_chip_is_of_ones_own_and_of_one_user_unless_a_load_is_named() -> None:
    asked = {"chips": "rtx-4070", "share": "gpu=60%,memory=7GB", "evidence": "none"}
    for model in ("sdxl", "Qwen/Qwen3-4B"):
        alone = cw.plan(model, **asked)
        assert alone.verdict()[0].startswith("Use 1x rtx-4070")
        assert alone.plans[0].price is None
        assert "mean wait" not in " ".join(alone.verdict())
    loaded = cw.plan("sdxl", rate="30/h", **asked)
    assert loaded.verdict()[0].startswith("Rent 1x rtx-4070")
