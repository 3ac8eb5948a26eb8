"""What people read: the same numbers as the record, in words that say what to do next."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import get_args, get_type_hints

import pytest

import chipwise as cw
from chipwise import api
from chipwise.api.placing import Terms
from chipwise.api.requests.verbs import VERBS
from chipwise.errors import InfeasibleError
from chipwise.report.answer import Answer, renamed
from chipwise.report.glossary import GLOSSARY
from chipwise.report.plans import PlanReport, breakdown_view, plan_view
from chipwise.report.records import Figure
from chipwise.search.space import Limits
from chipwise.units import format_number
from chipwise.workload.workload import Workload

MODEL = "meta-llama/Llama-3.1-70B"


@pytest.fixture(scope="module")
def report() -> PlanReport:
    return api.plan(MODEL, Workload("serve", 2000, 300, 10.0, 1.0, 0.04), Terms(today=dt.date(2026, 8, 1)))


def test_the_first_line_names_the_model_in_figures() -> None:
    line = api.describe(MODEL).line
    assert line == f"{MODEL}   70.6 B parameters   bf16 141 GB   KV 327,680 B/token"


def test_a_mixture_says_how_much_of_it_is_active() -> None:
    assert "active)" in api.describe("mistralai/Mixtral-8x7B-v0.1").line


def test_ten_plans_and_the_rest_by_name(report: PlanReport) -> None:
    short, whole = plan_view(report, "next"), plan_view(report, "next", everything=True)
    assert len(short.rows) == 10
    assert len(whole.rows) == len(report.plans)
    priced = [p for p in report.plans if p.price]
    brief = next(line for line in short.foot if line.startswith("more with --all: "))
    assert f"{len(priced) - 10} more chips, {len(report.plans) - len(priced)} without a known price" in brief
    apart = next(line for line in whole.foot if line.startswith("not compared, no price known"))
    assert f"{len(report.plans) - len(priced) - 3} more" in apart
    assert report.plans[len(priced)].chip in apart
    assert not any("--all" in line for line in whole.foot)


def test_how_many_plans_are_left_out(report: PlanReport) -> None:
    for left in (1, 8):
        some = replace(report, plans=report.plans[: 10 + left])
        (line,) = (x for x in plan_view(some, "next").foot if "more chip" in x)
        assert line.startswith(f"more with --all: {left} more chip{'s' * (left > 1)}, ")


def test_the_order_can_be_followed(report: PlanReport) -> None:
    table = plan_view(report, "next")
    first = report.plans[0].price
    assert first is not None
    assert table.rows[0][table.columns.index("$/h")] == format_number(first.mid)

    def ranked(some: PlanReport) -> str:
        (line,) = (x for x in plan_view(some, "next", everything=True).foot if x.startswith("ranked: "))
        return line

    assert "with 90% probability, then the cheapest ($/h)" in ranked(report)
    full = replace(report.workload, rate_per_s=None)
    assert "per output token" in ranked(replace(report, workload=full))
    unpaid = tuple(replace(p, price=None) for p in report.plans)
    assert "chips for the load" in ranked(replace(report, plans=unpaid))
    assert "most requests per second" in ranked(replace(report, plans=unpaid, workload=full))


def test_chips_without_a_price_are_not_above_a_limit() -> None:
    limits = Limits(max_usd_per_h=60.0)
    report = api.plan(
        "Qwen/Qwen3-32B",
        Workload("serve", 1000, 100, 1.0),
        Terms(today=dt.date(2026, 8, 1)),
        chips=["gaudi3", "h100-sxm5-80gb"],
        limits=limits,
    )
    (refused,) = report.refused
    assert (refused.chip, refused.reason) == ("gaudi3", "NO_PRICE")
    assert any(line.startswith("no price known: gaudi3") for line in plan_view(report, "next").foot)
    everything = plan_view(report, "next", everything=True).foot
    assert any(line.startswith("no price known: gaudi3") for line in everything)
    with pytest.raises(InfeasibleError, match="no price known for gaudi3") as error:
        api.plan("Qwen/Qwen3-32B", Workload("serve", 1000, 100, 1.0), chips=["gaudi3"], limits=limits)
    assert "raise --max-usd-per-h" not in str(error.value)


def test_every_row_is_as_wide_as_the_header(report: PlanReport) -> None:
    table = plan_view(report, "next", everything=True)
    assert {len(row) for row in table.rows} == {len(table.columns)}
    assert table.right <= set(table.columns)


def test_the_foot_says_why_what_was_assumed_and_what_is_next(report: PlanReport) -> None:
    foot = plan_view(report, "the command").foot
    assert foot[-1] == "next: the command"
    assert not any(line.startswith(("why #1: ", "ranked: ")) for line in foot)
    asked = ("10 requests/s", "2,000 tokens in, 300 out", "TTFT 1.00 s", "TPOT 40.0 ms")
    assumed = next(line for line in foot if line.startswith("assumed: "))
    assert all(text in assumed for text in asked)
    assert len(foot) <= 8
    assert any(line.startswith("more with --all: ") and "all assumptions" in line for line in foot)
    whole = plan_view(report, "the command", everything=True).foot
    assert any(line.startswith("why #1: ") for line in whole)
    assumed = next(line for line in whole if line.startswith("assumed: "))
    assert all(text in assumed for text in (*report.assumptions, *asked))


def test_every_refused_chip_falls_under_a_reason(report: PlanReport) -> None:
    foot = " ".join(plan_view(report, "next", everything=True).foot)
    for words in ("miss the latency targets: ", "lack memory: ", "no serving software known: "):
        assert words in foot


def test_large_numbers_have_no_exponent(report: PlanReport) -> None:
    first = report.plans[0]
    slow = replace(first, ttft_s=Figure(0.9, 0.45, 2.25, "modelled", True))
    (row,) = plan_view(replace(report, plans=(slow,)), "next").rows
    assert "900 [450-2,250]" in row
    everything = plan_view(report, "next", everything=True).rows
    assert not [cell for row in everything for cell in row if "e+" in cell]


def test_shares_of_the_breakdown_add_to_one(report: PlanReport) -> None:
    _, times, memory = breakdown_view(report.plans[0])
    assert sum(float(share.rstrip("%")) for _, share, _ in times.rows) == pytest.approx(100, abs=0.3)
    assert [row[0] for row in memory.rows][-3:] == ["cache", "kept free", "total"]


def test_fit_says_by_how_much_and_itemises_a_single_chip() -> None:
    one = api.fit(MODEL, chips=["a100-sxm4-80gb"], count=1).tables()
    assert len(one) == 2
    assert one[0].rows[0][3].startswith("no, ")
    assert one[0].rows[0][3].endswith(" short")
    several = api.fit(MODEL, chips=["a100-sxm4-80gb", "h100-sxm5-80gb"]).tables()
    assert len(several) == 1


def test_the_glossary_explains_what_the_tables_say() -> None:
    for word in ("TTFT", "TPOT", "ITL", "MFU", "goodput", "tie", "front", "tight", "replica"):
        assert GLOSSARY[word]
    for word in ("basis", "calibrated", "modelled", "80 % interval"):  # as rows print them
        assert any(word in entry for entry in GLOSSARY)
    assert all(text and text[-1] != "." for text in GLOSSARY.values())


@pytest.mark.parametrize(
    "word", ["HFU", "ZeRO", "FSDP", "stragglers", "virtual stages", "gathered K/V", "offload", "bubble", "recompute"]
)
def test_words_of_training_plans_are_explained(word: str) -> None:
    assert any(word in entry for entry in GLOSSARY)
    assert "of training" in GLOSSARY["goodput"]


def test_every_answer_has_its_tables(report: PlanReport) -> None:
    """What a notebook shows: the first table of an answer, with all that was found."""
    whole = report.tables(everything=True)[0]
    assert len(whole.rows) == len(report.plans)
    assert report.tables("the command")[0].foot[-1] == "next: the command"
    one = api.fit(MODEL, chips=["h100-sxm5-80gb"])
    assert [t.columns[0] for t in one.tables()] == ["chip", "use"]


def test_every_record_that_is_an_answer_is_shown() -> None:
    """The answers of all verbs: a new one needs a table."""
    given = (get_type_hints(request.run)["return"] for request in VERBS.values())
    answers = {kind for either in given for kind in get_args(either) or (either,)}
    assert {a for a in answers if a.tables is Answer.tables} == set()
    assert {a for a in answers if a.rows and not hasattr(a, a.rows)} == set()


def test_the_answer_opens_with_a_verdict(report: PlanReport) -> None:
    first = report.plans[0]
    decided, others, *lines = report.verdict()
    assert decided.startswith(f"Rent {first.chips}x {first.chip} with {first.runtime}")
    assert others.startswith("Alternatives: $")
    assert "owned if the load lasts, always in use" in others, "by what is cheapest to own"
    said = " ".join(lines)
    assert said.startswith("It serves ")
    assert "10 requests/s" in said
    assert first.chance is not None
    chance = min(int(100 * first.chance + 0.2), 99)
    assert f". Mean TTFT under 1.00 s and mean TPOT under 40.0 ms: met with {chance}% probability" in said
    assert f"Load: {first.load:.0%} of its maximum" in said
    assert first.converted
    assert report.as_stored is not None
    assert f"If you keep bf16: {report.as_stored.chips}x {report.as_stored.chip}" in said
    assert f"Evidence: {first.pace.basis}." in said
    alone = replace(report, decision=None)
    assert replace(alone, considered=1).verdict()[0].startswith(f"{first.chips}x {first.chip}")
    free = replace(alone, plans=(replace(first, price=None, ties=()),))
    assert "no price is known" in free.verdict()[0]
    assert report.tables(everything=True)[0].head[2:5] == report.verdict()[:3]


def test_measured_rows_beyond_the_interval_are_said_to_be() -> None:
    report = cw.match("meta-llama/Llama-3.1-8B", chip="h100")
    assert report.anchored is not None
    inside = replace(report, interval=(0.5 * report.anchored.value, 2.0 * report.anchored.value))
    outside = replace(report, interval=(1.1 * report.anchored.value, 2.0 * report.anchored.value))
    assert "outside the interval" not in str(inside)
    assert "outside the interval" in str(outside)


def test_options_are_called_as_others_call_fields() -> None:
    said = "25% cheaper with --prefix-hit 50% (limit: --utilisation 70%)"
    assert renamed(said, str) == "25% cheaper with prefix_hit 50% (limit: utilisation 70%)"
    command = "chipwise plan MODEL --rate 10/s"
    assert renamed(command, str) == command
