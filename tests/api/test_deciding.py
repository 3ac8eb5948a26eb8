"""To rent, to own or to call an API: each figure worked again, and who is chosen when."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pytest
from docs.generate.console import on_the_day

import chipwise as cw
from chipwise.api.deciding import HOURS_PER_MONTH, apis, decision
from chipwise.api.launching import launch
from chipwise.api.requests.planning import PlanRequest
from chipwise.api.saving import save
from chipwise.catalog.preferences import preferences
from chipwise.catalog.price import Pricing, own_basis
from chipwise.catalog.snapshot import Snapshot, use
from chipwise.catalog.token_prices import load_token_prices, token_prices_of
from chipwise.report.decision import ApiRecord, DecisionRecord, age_words, decided
from chipwise.report.plan import taken
from chipwise.report.plans import LeverRecord, PlanReport, cheaper
from chipwise.workload.workload import Workload

ASKED = {"rate": "10/s", "tpot": "20ms", "chips": "h100-sxm5-80gb", "evidence": "none"}
LLAMA = "meta-llama/Llama-3.1-70B"
DAY = dt.date(2026, 11, 28)
LOAD = Workload(rate_per_s=10.0)
TAKES = ("8x h100 with vllm (tp4)", "about $25/h at a, price of 2026-10-10")


def said_of(decision: DecisionRecord, api: ApiRecord | None) -> tuple[str, ...]:
    return decided(decision, api, *TAKES)


@pytest.fixture(scope="module")
def report() -> PlanReport:
    return cw.plan(LLAMA, **ASKED)  # type: ignore[no-any-return]


def test_an_api_costs_what_its_tokens_cost_and_breaks_even_where_both_cost_the_same(report: PlanReport) -> None:
    first, asked = report.plans[0], report.workload
    cheapest = report.apis[0]
    usd = (asked.prompt_tokens * cheapest.usd_per_million_in + asked.output_tokens * cheapest.usd_per_million_out) / 1e6
    assert cheapest.usd_per_request == pytest.approx(usd)
    assert cheapest.usd_per_h == pytest.approx(3600.0 * 10.0 * usd)
    even = first.price.mid / 3600.0 / usd
    assert cheapest.break_even_per_s == (pytest.approx(even) if even <= first.largest_requests_per_s else None)
    dear = replace(first, price=replace(first.price, mid=3599.0 * first.largest_requests_per_s * usd))
    (found, *_), (none, *_) = (
        apis(replace(dear, largest_requests_per_s=part * dear.largest_requests_per_s), LLAMA, LOAD, DAY)
        for part in (1.0, 0.9)
    )
    assert found.break_even_per_s == pytest.approx(dear.largest_requests_per_s, rel=1e-3)
    assert none.break_even_per_s is None
    assert "costs more at every rate" in " ".join(cheaper(replace(report, plans=(first,), apis=(none,))))
    assert [api.usd_per_request for api in report.apis] == sorted(api.usd_per_request for api in report.apis)


def test_an_api_that_has_ended_sells_nothing(report: PlanReport) -> None:
    ended = {p.model for p in load_token_prices() if p.deprecation_date and "8b" in p.model.lower()}
    long_ago, late = dt.date(2024, 1, 1), dt.date(2030, 1, 1)
    name = "meta-llama/Llama-3.1-8B-Instruct"
    then, now = (apis(report.plans[0], name, LOAD, day) for day in (long_ago, late))
    assert {api.model for api in then} - {api.model for api in now} == ended & {api.model for api in then}
    assert len(then) > len(now)


def test_no_other_model_is_sold_for_it(report: PlanReport) -> None:
    found = apis(report.plans[0], "meta-llama/Llama-Guard-3-8B", LOAD, dt.date(2024, 1, 1))
    assert {api.model.rpartition("/")[2].lower() for api in found} == {"llama-guard-3-8b"}
    assert apis(report.plans[0], "openai-community/gpt2", LOAD, dt.date(2026, 1, 1)) == ()


def test_each_way_costs_a_month_of_hours(report: PlanReport) -> None:
    first, found = report.plans[0], report.decision
    assert found is not None
    assert HOURS_PER_MONTH == 730.0
    assert found.rent_usd_per_month == pytest.approx(730.0 * first.price.mid)
    assert found.api_usd_per_month == pytest.approx(730.0 * report.apis[0].usd_per_h)
    own = found.own
    assert own is not None
    each = own_basis(first.chip, utilisation=1.0)
    # eight are bought at once: DGX H100
    assert own.chips == -(-first.chips // 8) * 8
    assert own.purchase_usd == pytest.approx(each.purchase(own.chips))
    assert own.hosts == own.chips // 8
    assert own.power_w == pytest.approx(own.chips * each.power_w)
    assert own.usd_per_month == pytest.approx(730.0 * each.usd_per_h(own.chips))


@pytest.mark.parametrize("other", ["above_rent", "above_api"])
def test_owning_costs_what_the_other_does_at_the_use_that_is_named(report: PlanReport, other: str) -> None:
    sold = (replace(report.apis[0], usd_per_request=0.01),)  # dear enough that owning can cost less
    found = decision(report.plans, sold, Pricing(), LOAD, DAY)
    assert found is not None
    assert found.own is not None
    share = getattr(found.own, other)
    usd = {"above_rent": found.rent_usd_per_month, "above_api": found.api_usd_per_month}[other]
    used = own_basis(report.plans[0].chip, utilisation=share)
    # dollars an hour of work, in a share of the hours; the other way is paid for as many
    assert used.usd_per_h(found.own.chips) == pytest.approx(usd / HOURS_PER_MONTH)
    assert 0.0 < share < 1.0


def test_an_api_is_called_where_it_costs_less_by_more_than_a_change_is_worth(report: PlanReport) -> None:
    first, api = report.plans[0], report.apis[0]
    even = first.price.mid / 3600.0 / 10.0
    for part, choice in ((1.0 - preferences().worth, "api"), (1.0 - 0.9 * preferences().worth, "rent"), (2.0, "rent")):
        found = decision((first,), (replace(api, usd_per_request=0.999999 * part * even),), Pricing(), LOAD, DAY)
        assert found is not None
        assert found.choice == choice, part
    assert decision((first,), (), Pricing(), LOAD, DAY).choice == "rent"
    assert decision((first,), (), Pricing("own"), LOAD, DAY).choice == "own"


def test_where_nothing_is_paid_or_no_rate_is_asked_nothing_is_said_of(report: PlanReport) -> None:
    first, sold = report.plans[0], report.apis
    assert decision((first,), sold, None, LOAD, DAY) is None
    assert decision((first,), sold, Pricing(), Workload(), DAY) is None
    assert decision((replace(first, price=None),), sold, Pricing(), LOAD, DAY) is None
    assert decision((replace(first, chance=0.2),), sold, Pricing(), LOAD, DAY) is None
    assert cw.plan(LLAMA, rate="1/s", have="8xh100", evidence="none").decision is None


def test_the_first_line_says_what_to_do_and_what_each_way_costs(report: PlanReport) -> None:
    assert report.decision is not None
    api, own = report.apis[0], report.decision.own
    first = report.plans[0]
    _, *takes = taken(first, f"{first.spread}, {first.precision}", owned=False)
    ways = decided(report.decision, api, *takes)
    assert report.verdict()[: len(ways)] == ways
    called = replace(report.decision, choice="api", api_usd_per_month=1234.0)
    assert said_of(called, api)[0].startswith(
        f"Call an API: $1,230 a month at this load, {api.model} at {api.provider} (price of {api.date}"
    )
    assert own is not None
    said = " ".join(said_of(replace(report.decision, choice="rent", rent_usd_per_month=2.0 * own.usd_per_month), api))
    assert said.startswith("Rent, or buy if the load lasts, 8x h100 with vllm (tp4): $")
    assert " a month at this load, about $25/h at a, price of 2026-10-10. Alternatives: $" in said
    assert f"4 years, cheaper than rent above {own.above_rent:.0%} use" in said
    dear = replace(own, above_rent=None, usd_per_month=1e7)
    said = " ".join(said_of(replace(report.decision, choice="rent", own=dear), api))
    assert said.startswith("Rent 8x h100 with vllm (tp4): $")
    assert "$10 M owned" in said
    assert "dearer than rent at any use" in said
    idle = replace(own, chips=8, used=3, hosts=1)
    assert (
        "for 8 chips with host, of which 3 work," in said_of(replace(report.decision, choice="rent", own=idle), api)[1]
    )
    alone = replace(report.decision, choice="rent", own=None, api_usd_per_month=None)
    assert "Alternatives" not in " ".join(said_of(alone, None))


def test_a_price_older_than_a_month_says_so(report: PlanReport) -> None:
    assert report.decision is not None
    young, old = (replace(report.decision, choice="own", rent_date="2026-10-10", rent_age_days=n) for n in (30, 31))
    assert "rented (price of 2026-10-10)" in " ".join(said_of(young, None))
    assert "rented (price of 2026-10-10, 31 days old)" in " ".join(said_of(old, None))
    api = replace(report.apis[0], date="2026-05-21", age_days=191)
    assert "(price of 2026-05-21, 191 days old)" in " ".join(said_of(old, api))


def test_old_prices_of_tokens_count_where_there_are_no_others(report: PlanReport) -> None:
    first, name = report.plans[0], "meta-llama/Llama-3.1-8B-Instruct"
    known = {p.provider for p in token_prices_of(name) if p.date < "2026-06"}
    assert known
    assert not known & {api.provider for api in apis(first, name, LOAD, DAY)}
    later = {api.provider for api in apis(first, name, LOAD, dt.date(2027, 11, 28))}
    assert known <= later


def test_prompts_that_a_vendor_does_not_read_are_not_sold(report: PlanReport) -> None:
    first, name = report.plans[0], "openai/gpt-oss-120b"
    least = min(p.max_input_tokens for p in token_prices_of(name) if p.max_input_tokens)
    long = replace(LOAD, prompt_tokens=float(least), output_tokens=100.0)
    assert len(apis(first, name, long, DAY)) < len(apis(first, name, LOAD, DAY))


def test_a_saved_plan_launches_the_cheapest_api(tmp_path: Path) -> None:
    path = str(tmp_path / "plan.json")
    found = save("plan", PlanRequest(model=LLAMA, rate="10/s", chips="h100", evidence="none"), path)
    api = found.report.apis[0]
    (file,) = launch(path, "api")
    assert file.name == "client.py"
    assert f"'base_url': '{api.base_url}'" in file.text
    assert f"'model': '{api.model}'" in file.text
    assert f"{api.key}=... python client.py --check" in file.text


def test_a_chip_that_nobody_rents_out_carries_the_price_of_its_vendors_tokens() -> None:
    asked = cw.plan(LLAMA, rate="2/s", chips="h100,wse3-cs3", evidence="none")
    assert {p.chip for p in asked.plans if p.price is None} == {"wse3-cs3"}
    api = next(api for api in asked.apis if api.chip == "wse3-cs3")
    assert f"wse3-cs3, not for rent: cerebras sells {api.model} at ${api.usd_per_million_in:g} in" in " ".join(
        str(asked).split()
    )


def test_a_plan_without_a_rate_says_how_old_its_price_is(report: PlanReport) -> None:
    first = report.plans[0]
    read = dt.date.fromisoformat(first.price.date)
    for days, old in ((30, False), (31, True)):
        with use(Snapshot(day=read + dt.timedelta(days=days))):
            assert taken(first, "tp2", owned=False)[2].endswith(", 31 days old") is old
    with use(Snapshot(day=read + dt.timedelta(days=400))):
        stale = replace(first, price=replace(first.price, stale=True))
        assert "days old" not in taken(stale, "tp2", owned=False)[2], "said by the words of a stale price"
    assert age_words("2026-09", 61) == ", up to 61 days old"


def test_spot_and_on_demand_stand_side_by_side(report: PlanReport) -> None:
    """Whichever basis was asked, the other is what a plan of that basis pays, and a dearer spot price says so."""
    first = report.plans[0]
    found = {kind: decision((first,), (), Pricing(kind), LOAD, DAY) for kind in ("rent", "spot")}
    rent, spot = found["rent"], found["spot"]
    assert rent is not None
    assert spot is not None
    assert rent.supply is not None
    assert spot.supply is not None
    assert spot.supply.other_usd_per_month == pytest.approx(730.0 * report.plans[0].price.mid)
    assert not rent.supply.spot
    assert rent.supply.providers > 5
    for other, words in ((0.5, "On demand costs less than spot: $"), (2.0, "On demand: $")):
        usd = other * spot.rent_usd_per_month
        said = " ".join(said_of(replace(spot, supply=replace(spot.supply, other_usd_per_month=usd)), None))
        assert words in said
    dear, cheap = (
        " ".join(
            said_of(replace(rent, supply=replace(rent.supply, other_usd_per_month=x * rent.rent_usd_per_month)), None)
        )
        for x in (1.0, 0.5)
    )
    assert "spot" not in dear
    assert "As spot instances" in cheap
    assert decision((first,), (), Pricing(given={first.chip: 3.0}), LOAD, DAY).supply is None


def test_a_chip_of_one_provider_is_a_doubt(report: PlanReport) -> None:
    found = decision(report.plans, (), Pricing(), LOAD, DAY)
    one = replace(found, supply=replace(found.supply, providers=1))
    assert "Only one provider" in " ".join(said_of(one, None))
    assert "Only one provider" not in " ".join(said_of(found, None))


def test_where_nobody_sells_the_chips_of_the_first_plan_another_is_owned(report: PlanReport) -> None:
    first = report.plans[0]
    unsold, others = replace(first, chip="gh200-96gb"), [replace(first, rank=2)]
    found = decision((unsold, *others), (), Pricing(), LOAD, DAY).own
    assert found is not None
    assert found.machines in {p.machines for p in others}
    said = " ".join(said_of(decision((unsold, *others), (), Pricing(), LOAD, DAY), None))
    assert f"for {found.machines}" in said
    assert decision(report.plans, (), Pricing(), LOAD, DAY).own.machines == ""


def test_what_is_owned_is_the_cheapest_to_own_of_all_that_keep_the_targets() -> None:
    with on_the_day():
        rented = cw.plan("meta-llama/Llama-3.1-70B", rate="10/s", chips="b200-sxm,h100", evidence="none")
        bought = cw.plan("meta-llama/Llama-3.1-70B", rate="10/s", chips="b200-sxm,h100", price="own", evidence="none")
    assert rented.plans[0].chip != bought.plans[0].chip
    assert rented.decision.own.machines == bought.plans[0].machines
    assert rented.decision.own.usd_per_month == pytest.approx(bought.decision.own.usd_per_month)


@pytest.mark.parametrize("asked", [("flux-dev", "1/s"), ("Qwen/Qwen3-8B", "2/s"), ("sdxl", "5/s")])
def test_what_is_owned_costs_no_more_than_the_first_plan_of_one_who_buys(asked: tuple[str, str]) -> None:
    model, rate = asked
    with on_the_day():
        rented, bought = (cw.plan(model, rate=rate, price=price, evidence="none") for price in ("rent", "own"))
    own, first = rented.decision.own, bought.plans[0]
    assert own.usd_per_month <= HOURS_PER_MONTH * first.price.mid * (1.0 + 1e-9)
    assert bought.decision.rent_usd_per_month == pytest.approx(rented.decision.rent_usd_per_month)
    assert bought.decision.rent_machines in {"", rented.plans[0].machines}
    if own.machines == first.machines:
        assert own.above_rent == (
            None if bought.decision.own.above_rent is None else pytest.approx(bought.decision.own.above_rent)
        )


def test_a_rack_is_not_bought_for_one_of_its_chips(report: PlanReport) -> None:
    one = replace(report.plans[0], chip="gb200-nvl72", chips=1)
    assert decision((one,), (), Pricing(), LOAD, DAY).own is None
    whole = decision((replace(one, chips=64),), (), Pricing(), LOAD, DAY).own
    assert (whole.chips, whole.used) == (72, 64)


def test_an_api_of_unknown_speed_does_not_stand_before_targets_that_were_named() -> None:
    """Who asks for 250 ms to the first token, or about chips, wants the plan, whatever an API costs."""
    asked = {"rate": "0.05/s", "in_": 800, "out": 120, "evidence": "none"}
    with on_the_day():
        usual = cw.plan("Qwen/Qwen3-32B", **asked).verdict()
        exacting = cw.plan("Qwen/Qwen3-32B", ttft="250ms", tpot="25ms", **asked).verdict()
        sure = cw.plan("Qwen/Qwen3-32B", confidence="95%", **asked).verdict()
        named = cw.plan("Qwen/Qwen3-32B", chips="h200", **asked).verdict()
    assert usual[0].startswith("Call an API")
    for verdict in (exacting, sure, named):
        assert verdict[0].startswith("Rent")
        assert any("whose speed is not known here" in line for line in verdict)


def test_certainty_that_is_most_of_a_plan_is_said_with_the_plan_that_has_less(report: PlanReport) -> None:
    first = report.plans[0]
    half = replace(first.price, mid=0.5 * first.price.mid)
    lever = LeverRecord("--confidence 50%", "if missed", 4, "tp4", half, 0.5, 0.63)
    said = " ".join(replace(report, levers=(lever,)).verdict())
    assert f"With 63% probability (--confidence 50%): 4x {first.chip} (tp4), $" in said
    small = replace(lever, saves=0.2)
    assert "With 63%" not in " ".join(replace(report, levers=(small,)).verdict())


def test_published_weights_of_fewer_bits_stand_in_the_verdict_where_they_save_much() -> None:
    with on_the_day():
        found = cw.plan("deepseek-ai/DeepSeek-V3.2", rate="5/s", in_=500, out="8k", tpot="30ms", chips="gb300-nvl72")
    lever = next(one for one in found.levers if one.published)
    said = " ".join(found.verdict())
    assert lever.saves > preferences().costly
    assert f"With weights as {lever.published} has them ({lever.options}): {lever.chips}x gb300-nvl72 (" in said
    assert f"{lever.options.split()[1]} keeps " in said
    few = replace(found, levers=(replace(lever, saves=preferences().costly / 2.0),))
    assert lever.published not in " ".join(few.verdict())


def test_models_that_only_read_have_prices_of_apis() -> None:
    """A thousand texts of 256 tokens a second, at a cent per million tokens."""
    with on_the_day():
        asked = cw.plan("Qwen/Qwen3-Embedding-8B", rate="1000/s", settings="tokens=256", chips="h100", evidence="none")
    cheapest = asked.apis[0]
    assert (cheapest.provider, cheapest.usd_per_million_out) == ("nebius", 0.0)
    assert cheapest.usd_per_h == pytest.approx(3600.0 * 1000.0 * 256.0 * 0.01e-6)
    assert asked.decision.api_usd_per_month == pytest.approx(730.0 * cheapest.usd_per_h)
    assert asked.verdict()[0].startswith("Call an API")
    assert "at $0.01 in per million tokens" in " ".join(str(asked).split())
