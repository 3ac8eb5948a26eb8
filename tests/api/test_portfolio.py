"""Many demands on what one owns, rents and calls: `fleet`, from its file to the files that start a placement."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import chipwise as cw
from chipwise.api import launching, saving
from chipwise.api.portfolio_cards import resting
from chipwise.api.portfolio_time import _hardest
from chipwise.api.portfolio_ways import _at, _ways
from chipwise.api.requests.doors import read_request
from chipwise.api.requests.planning import PlanRequest
from chipwise.api.requests.portfolio import FleetRequest
from chipwise.api.requests.tenants import together
from chipwise.api.scaling import start_up_s
from chipwise.catalog.chips import get_chip
from chipwise.catalog.runtime import get_runtime
from chipwise.cost.copies import CopyParameters, host_copy
from chipwise.errors import ChipwiseError, InfeasibleError, MissingExtraError, UnknownNameError, UsageError
from chipwise.report.charts.kinds import charts_of
from chipwise.report.portfolio import REPLICAS, PlacedTimeRecord, PortfolioReport
from chipwise.report.records import Figure
from chipwise.report.table import to_json
from chipwise.units import parse_quantity
from chipwise.web.pages.sheet import write_sheet

pytest.importorskip("scipy")
SMALL = "meta-llama/Llama-3.1-8B"
CHAT = {"name": "chat", "model": SMALL, "rate": "40/s"}
HALL = {"name": "hall", "chip": "h100", "count": 8, "price": "own"}
RENTED = {"name": "cloud", "chip": "h200"}
TEXT = """
[limits]
usd_per_kwh = 0.12

[[demand]]
name = "chat"
model = "meta-llama/Llama-3.1-8B"
day = [5, 60, 40]
priority = 1

[[demand]]
name = "nightly"
model = "Qwen/Qwen3-32B"
tokens = "300M"
deadline = "24h"

[[supply]]
name = "hall"
chip = "h100"
count = 8
price = "own"

[[supply]]
name = "cloud"
chip = "h200"
"""


def asked(demands: list[dict[str, Any]], *supply: dict[str, Any], **limits: Any) -> PortfolioReport:
    return FleetRequest(fleet=json.dumps({"demand": demands, "supply": supply, "limits": limits}), gap="0").run()


@pytest.fixture(scope="module")
def both() -> PortfolioReport:
    """A served model and a job on one owned machine and rented ones."""
    return FleetRequest(fleet=TEXT, gap="0.1%").run()


def test_every_slice_has_what_it_needs_and_the_machines_hold_it(both: PortfolioReport) -> None:
    assert all(d.placed for d in both.demands)
    assert both.failure is None
    assert len(both.slices) == 3
    assert all(0.0 <= s.own_chips <= 8.0 for s in both.slices)
    chat = [p for p in both.placements if p.demand == "chat"]
    for i in range(3):
        assert sum(p.per_slice[i] for p in chat) > 0
    assert sum(p.share for p in chat) == pytest.approx(1.0)
    assert sum(p.usd_per_day for p in both.placements) == pytest.approx(both.fleet.usd_per_day)
    assert sum(24.0 / 3.0 * s.usd_per_h for s in both.slices) == pytest.approx(both.fleet.usd_per_day)
    assert both.fleet.bound_usd_per_day <= both.fleet.usd_per_day
    assert both.fleet.gap <= 0.001


def test_the_job_works_in_the_trough(both: PortfolioReport) -> None:
    owned = [p for p in both.placements if p.demand == "nightly" and p.supply == "hall"]
    assert owned
    by_slice = [sum(p.per_slice[i] for p in owned) for i in range(3)]
    assert by_slice[0] > by_slice[1]


def test_a_machine_more_saves_and_one_fewer_costs(both: PortfolioReport) -> None:
    hall = next(s for s in both.supplies if s.name == "hall")
    assert hall.machines == 1
    assert hall.per_machine == 8
    assert hall.fewer_costs is not None
    assert hall.fewer_costs > 0
    assert hall.more_saves is not None
    said = " ".join(both.verdict())
    assert said.startswith("Both demands are placed for $")
    assert "While a machine of hall is out, a day costs $" in said


def test_a_rented_chip_alone_costs_what_the_plan_says() -> None:
    found = asked([{**CHAT, "rate": "5/s"}], RENTED)
    plan = cw.plan(SMALL, rate="5/s", chips="h200").plans[0]
    (placed,) = found.placements
    assert placed.chips == plan.chips == 1
    assert placed.usd_per_h == pytest.approx(plan.price.mid)
    assert found.fleet.usd_per_h == pytest.approx(plan.price.mid)


def test_chips_at_a_price_of_ones_own_cost_it() -> None:
    found = asked([{**CHAT, "rate": "5/s"}], {**RENTED, "price": 1.25, "max": 4}, usd_per_h=100.0)
    (placed,) = found.placements
    assert placed.usd_per_h == pytest.approx(1.25 * placed.chips)
    assert found.supplies[0].machines is not None


def test_owned_chips_stand_in_machines_that_add_up_to_them() -> None:
    found = asked([{**CHAT, "rate": "5/s"}], {**HALL, "count": 12})
    assert (found.supplies[0].machines, found.supplies[0].per_machine) == (3, 4)


def test_more_supply_is_never_dearer_and_a_demand_less_is_not_either(both: PortfolioReport) -> None:
    large = FleetRequest(fleet=TEXT.replace("count = 8", "count = 16"), gap="0.1%").run()
    assert large.fleet.usd_per_day <= both.fleet.usd_per_day * 1.001
    cheaper = FleetRequest(
        fleet=TEXT[: TEXT.index('[[demand]]\nname = "nightly"')] + TEXT[TEXT.index("[[supply]]") :]
    ).run()
    assert cheaper.fleet.usd_per_day <= both.fleet.usd_per_day * 1.01


def test_what_is_not_placed_is_named_with_the_least_that_would_do() -> None:
    big = {"name": "big", "model": "meta-llama/Llama-3.1-70B", "rate": "100/s"}
    found = asked([{**CHAT, "priority": 1}, big], HALL)
    assert [d.placed for d in found.demands] == [True, False]
    assert [d.demand for d in found.fleet.unplaced] == ["big"]
    (least,) = found.fleet.unplaced[0].least
    more = int(least.split()[0])
    assert more % 8 == 0
    assert least.endswith("more h100-sxm5-80gb in hall")
    assert isinstance(found.failure, InfeasibleError)
    enough = asked([{**CHAT, "priority": 1}, big], {**HALL, "count": 8 + more})
    short = asked([{**CHAT, "priority": 1}, big], {**HALL, "count": more})
    assert all(d.placed for d in enough.demands)
    assert not all(d.placed for d in short.demands)


def test_spare_machines_stand_in_for_one_that_fails() -> None:
    found = asked([{**CHAT, "rate": "10/s"}], {**HALL, "count": 16, "spare_machines": 1})
    (hall,) = found.supplies
    assert hall.most_chips <= 8
    assert hall.fewer_loses == ()
    assert "everything still runs at the same cost" in " ".join(found.verdict())


def test_tokens_of_an_api_are_called_where_they_are_cheaper() -> None:
    rare = {"name": "rare", "model": "meta-llama/Llama-3.1-70B", "rate": "0.01/s"}
    found = asked([rare], RENTED, {"price": "api"})
    (placed,) = found.placements
    assert placed.kind == "api"
    assert placed.chips == 0
    assert 0 < found.fleet.usd_per_day < 24.0


def test_a_demand_runs_only_on_the_supplies_that_it_names() -> None:
    found = asked([{**CHAT, "on": ["cloud"]}], HALL, RENTED)
    assert {p.supply for p in found.placements} == {"cloud"}


def test_a_run_of_training_keeps_its_chips_all_day() -> None:
    tune = {"name": "tune", "model": SMALL, "task": "finetune", "tokens": "1B", "deadline": "7d"}
    served = {"name": "chat", "model": SMALL, "day": [4, 8]}
    found = asked([tune, served], HALL)
    assert all(d.placed for d in found.demands)
    (run,) = (p for p in found.placements if p.demand == "tune")
    assert run.per_slice == (1.0, 1.0)
    assert run.chips <= 7


def test_a_saved_fleet_is_made_again_and_its_placements_are_launched(tmp_path: Path) -> None:
    file, kept = tmp_path / "fleet.toml", tmp_path / "kept.json"
    owned = TEXT[: TEXT.rindex("[[supply]]")].replace("[5, 60, 40]", "[20]").replace("= 8", "= 16")
    file.write_text(owned, "utf-8")
    saving.save("fleet", FleetRequest(fleet=str(file)), str(kept))
    file.unlink()
    assert saving.replay(str(kept)).identical
    placed = json.loads(kept.read_text("utf-8"))["report"]["fleet"]["placements"]
    first = placed[0]
    files = launching.launch(str(kept), first["runtime"], 1)
    text = "\n".join(f.text for f in files)
    assert SMALL in text or SMALL.rpartition("/")[2] in text
    jobs = [p for p in placed if p["demand"] == "nightly"]
    assert jobs
    started = "".join(f.text for f in launching.launch(str(kept), "kubernetes", jobs[0]["rank"]))
    assert f"replicas: {jobs[0]['replicas']:.0f}" in started
    with pytest.raises(UsageError, match="no placement 99"):
        launching.launch(str(kept), first["runtime"], 99)


def test_python_and_http_take_the_tables_themselves() -> None:
    tables = {"demand": [{**CHAT, "rate": 5}], "supply": [HALL]}
    ours = cw.fleet(tables)
    assert to_json(read_request("fleet", {"fleet": tables}).answer()) == to_json(FleetRequest(fleet=tables).run())
    assert ours.best.demand == "chat"
    assert len(ours.df) == len(ours.placements)
    with pytest.raises(UsageError, match="files are not read here"):
        read_request("fleet", {"fleet": "fleet.toml"})
    for strange, kind in (({"model": "/etc/passwd"}, UnknownNameError), ({"log": "requests.csv"}, UsageError)):
        with pytest.raises(kind):
            read_request("fleet", {"fleet": {**tables, "demand": [{**CHAT, **strange}]}})


@pytest.mark.parametrize(
    ("replicas", "rates", "hours"),
    [
        ((2, 6, 4, 1), (5.0, 60.0, 40.0, 10.0), [18.0]),  # as full with fewer replicas is harder
        ((2, 6, 4, 1), (5.0, 66.0, 40.0, 10.0), [6.0, 18.0]),
        ((0, 3), (0.0, 30.0), [12.0]),
        ((3, 3), (10.0, 12.0), [12.0]),
    ],
)
def test_the_hours_that_no_other_is_harder_than(
    both: PortfolioReport, replicas: tuple[int, ...], rates: tuple[float, ...], hours: list[float]
) -> None:
    placed = replace(both.placements[0], per_slice=replicas, requests_per_s=rates)
    assert [hour for hour, _, _ in _hardest(placed)] == hours


def test_a_placement_through_time_is_what_simulate_says(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    page = tmp_path / "fleet.html"
    served = {"name": "chat", "model": SMALL, "day": [10, 60], "ttft": "1s"}
    demands = [served, {"model": "Qwen/Qwen3-32B", "tokens": "50M"}]
    asked_ = FleetRequest(fleet={"demand": demands, "supply": [HALL]}, simulate=True)  # type: ignore[arg-type]
    report = write_sheet("fleet", asked_, str(page)).report
    assert report.unsimulated == ("Qwen3-32B on hall: a job without targets",)
    assert [t.time for t in report.simulated] == ["TTFT", "TPOT"]
    first, p = report.simulated[0], report.placements[0]
    assert first.rate_per_s == pytest.approx(p.requests_per_s[int(first.hour / 12.0)])
    alone = cw.simulate(
        SMALL, chip="h100", replicas=first.replicas, rate=first.rate_per_s, runtime=p.runtime, precision=p.precision,
        tp=p.layout.tp, ttft="1s",
    )  # fmt: skip
    assert alone.simulation.ttft_s.p99 == first.p99
    assert alone.simulation.within[0].mid == first.within
    assert all(t.holds for t in report.simulated)
    assert "Simulated request by request, targets met: chat." in report.verdict()
    assert saving.replay(str(page)).identical
    ((name, chart),) = charts_of(report).items()
    rows = chart()["data"]["values"]
    assert name == "machines-1"
    for i, slice_ in enumerate(report.slices):
        mine = [row for row in rows if row["from"] == 12.0 * i]
        assert sum(row["chips"] for row in mine) == pytest.approx(slice_.own_chips)
        assert max(row["high"] for row in mine) == pytest.approx(slice_.own_chips)


def test_a_log_is_a_load_and_lengths(tmp_path: Path) -> None:
    timed, lengths = tmp_path / "timed.csv", tmp_path / "lengths.csv"
    timed.write_text("timestamp,prompt_tokens,output_tokens\n" + "".join(f"{i / 4},900,{i}\n" for i in range(1, 42)))
    lengths.write_text("prompt_tokens,output_tokens\n900,100\n")

    def loads(**given: Any) -> tuple[float, ...]:
        tables = {"demand": [{"model": SMALL, **given}], "supply": [HALL]}
        (demand,) = FleetRequest(fleet=json.dumps(tables)).asked().demands
        assert demand.question.workload_of("serve").prompt_tokens == 900  # type: ignore[arg-type]
        return demand.rates_per_s

    assert loads(log=str(timed)) == pytest.approx((4.0,))
    assert loads(log=str(timed), rate="7/s") == pytest.approx((7.0,))
    assert loads(log=str(timed), day=[1, 2]) == pytest.approx((1.0, 2.0))
    with pytest.raises(UsageError, match="it has no load"):
        loads(log=str(lengths))


def test_a_target_that_is_missed_in_time_is_a_failure(both: PortfolioReport) -> None:
    second = Figure(1.0, 0.5, 2.0, "modelled", False)
    row = PlacedTimeRecord(1, "chat", "h100", 8.0, 4, 40.0, 2000, "TTFT", second, second, 1.5, 0.99, 0.97, 0.5, False)
    missed = replace(both, simulated=(row,))
    assert "Simulated, chat misses its TTFT of p99 1.50 s on h100 from 8 h on" in " ".join(missed.verdict())
    assert isinstance(missed.failure, InfeasibleError)
    assert "97.0% within it, at the upper end of the interval 50.0%" in str(missed.failure)
    assert 'utilisation = "50%" of chat' in str(missed.failure.hint)
    assert replace(both, simulated=(replace(row, holds=True),)).failure is None


def fleet(text: str = "", demand: str = 'rate = "10/s"', supply: str = 'chip = "h100"\ncount = 8') -> str:
    return f'{text}\n[[demand]]\nname = "chat"\nmodel = "{SMALL}"\n{demand}\n{supply and "[[supply]]"}\n{supply}\n'


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        (fleet(demand="ratee = 3"), UnknownNameError, "did you mean rate?"),
        (fleet("[limit]"), UnknownNameError, "did you mean limits?"),
        (fleet("[limits]\nusd_h = 3"), UnknownNameError, "did you mean usd_per_h"),
        (fleet().replace("3.1-8B", "3.1-8C"), UnknownNameError, "did you mean meta-llama/Llama-3.1-8B"),
        (fleet(supply='chip = "h100x"'), UnknownNameError, "did you mean h100"),
        (fleet(supply='chip = "h100"\ncount = 12\nprice = "own"\nmachine = 8'), UsageError, "machine = 4"),
        (fleet(supply='chip = "h100"\ncount = 12\nmax = 12'), UsageError, "either says how many"),
        (fleet(supply='chip = "h100"\nprice = "rent"'), UsageError, "one of on-demand, spot, own, api"),
        (fleet(supply='chip = "h100"\nprice = -1'), UsageError, "price"),
        (fleet(supply="count = 4"), UsageError, 'chip = "h100"'),
        (fleet(supply='price = "api"\nchip = "h100"'), UnknownNameError, "it has name, price, provider"),
        (fleet(supply='chip = "h100"\nprovider = "nobody"'), UnknownNameError, "chipwise offers"),
        (fleet(demand='rate = 1\non = ["hal"]', supply='name = "hall"\nchip = "h100"'), UnknownNameError, "hall"),
        (fleet(supply=""), UsageError, "add [[supply]]"),
        ('[[supply]]\nchip = "h100"', UsageError, "chipwise fleet '"),
        (fleet(demand=""), UsageError, 'rate = "10/s"'),
        (fleet(demand="rate = 1\ntpot = 40"), UsageError, "40ms or 40s?"),
        (fleet(demand='tokens = "1B"\nstart = 25'), UsageError, "0 to 23"),
        (fleet(demand='rate = "1/s"\npriority = "high"'), UsageError, "a whole number"),
        (fleet(demand='rate = "1/s"\nday = [1, 2]'), UsageError, "two loads"),
        (fleet().replace(f'"{SMALL}"', '"flux-dev"'), UsageError, 'for example e2e = "6s"'),
        (fleet().replace(SMALL, "net.py:make"), UsageError, "code is not run"),
        (fleet() + fleet(), UsageError, "give each another name"),
        ("demand = 3\n", UsageError, "[[demand]]"),
        ("x = [\n", UsageError, "cannot be read"),
        ("nowhere.toml", UsageError, "no such file"),
        (fleet(demand='rate = "10/s"\ntpot = "1us"'), InfeasibleError, "chipwise plan meta-llama/Llama-3.1-8B"),
        (
            fleet(supply='chip = "h100"\ncount = 1\nprice = "own"').replace(SMALL, "meta-llama/Llama-3.1-405B"),
            InfeasibleError,
            "chips, own h100-sxm5-80gb has 1",
        ),
    ],
)
def test_what_is_wrong_is_said_with_names_and_what_works(text: str, kind: type[ChipwiseError], said: str) -> None:
    with pytest.raises(kind) as error:
        FleetRequest(fleet=text).answer()
    assert said in str(error.value)


def test_without_scipy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'chipwise\[fleet\]'"):
        asked([{**CHAT, "rate": "1/s"}], HALL)


RARE = [
    {"name": "chat", "model": SMALL, "rate": "0.2/s", "ttft": "2s", "tpot": "100ms"},
    {"name": "tools", "model": "Qwen/Qwen3-8B", "rate": "0.1/s", "ttft": "2s", "tpot": "100ms", "runtime": "vllm"},
]


@pytest.fixture(scope="module")
def pair() -> PortfolioReport:
    """Two models that are seldom asked, on L40S."""
    return asked(RARE, {"chip": "l40s"})


def test_two_small_models_share_a_card_for_less_than_two_cards(pair: PortfolioReport) -> None:
    apart = asked(RARE, {"chip": "l40s"}, mixing=False)
    assert [p.chips for p in apart.placements] == [1, 1]
    assert all(p.sharing is None for p in apart.placements)
    assert pair.fleet.usd_per_day == pytest.approx(apart.fleet.usd_per_day / 2.0)
    assert pair.supplies[0].most_chips == pytest.approx(1.0)
    parts = [p.sharing for p in pair.placements if p.sharing]
    assert [s.others for s in parts] == [("tools",), ("chat",)]
    assert sum(s.memory for s in parts) <= 1.0
    assert sum(s.part for s in parts) == pytest.approx(1.0)
    for one, other in (parts, parts[::-1]):
        gpu = float(one.share.partition("gpu=")[2].partition("%")[0]) / 100.0
        assert 1.0 + other.active <= 1.0 / gpu + 1e-9, "others leave the time it was asked with"
        assert one.ttft_s.mid > one.ttft_alone_s.mid
    said = " ".join(pair.verdict())
    assert "chat and tools share 1x l40s, taking turns (time slices or MPS): chat has 50% of the memory" in said


def test_a_part_of_a_card_does_what_estimate_says_of_that_share(pair: PortfolioReport) -> None:
    (tools,) = (p for p in pair.placements if p.demand == "tools")
    assert tools.sharing is not None
    alone = cw.estimate(
        "Qwen/Qwen3-8B", chip="l40s", rate="0.1/s", runtime="vllm", precision=tools.precision,
        share=tools.sharing.share, evidence="none",
    )  # fmt: skip
    assert alone.plans[0].ttft_s.mid == pytest.approx(tools.sharing.ttft_s.mid, rel=0.02)


def test_busy_models_share_a_card_that_is_cut(tmp_path: Path) -> None:
    busy = [
        {"name": f"m{i}", "model": "Qwen/Qwen3-1.7B", "rate": "2/s", "ttft": "2s", "runtime": "vllm"} for i in range(3)
    ]
    file = tmp_path / "fleet.json"
    request = FleetRequest(fleet={"demand": busy, "supply": [{"chip": "h100"}]}, gap="0")  # type: ignore[arg-type]
    report = saving.save("fleet", request, str(file)).report
    (cut,) = {(p.sharing.how, len(p.sharing.others)) for p in report.placements if p.sharing}
    assert cut == ("mig", 2)
    assert report.supplies[0].most_chips == pytest.approx(1.0)
    second = launching.launch(str(file), "vllm", 2)
    text = "".join(f.text for f in second)
    names = [p.sharing.share.removeprefix("mig=") for p in report.placements if p.sharing]
    assert f"nvidia-smi mig -i i -cgi {','.join(sorted(names, reverse=True))} -C" in text
    assert "CUDA_VISIBLE_DEVICES=" in text
    assert "--gpu-memory-utilization 0.9" in text
    assert "--port 8001" in text


def test_servers_on_one_card_are_told_their_parts_of_its_memory(tmp_path: Path) -> None:
    file = tmp_path / "fleet.json"
    tables = {"demand": [{**d, "runtime": "vllm"} for d in RARE], "supply": [{"chip": "l40s"}]}
    saving.save("fleet", FleetRequest(fleet=tables), str(file))  # type: ignore[arg-type]
    texts = ["".join(f.text for f in launching.launch(str(file), "vllm", rank)) for rank in (1, 2)]
    shares = [float(t.partition("--gpu-memory-utilization ")[2].split()[0]) for t in texts]
    assert shares == [0.45, 0.45] or sum(shares) <= 0.95
    assert "--port 8000" in texts[0]
    assert "--port 8001" in texts[1]
    assert all("SHARED_GPU" in t for t in texts)
    with pytest.raises(UsageError, match="starts servers on whole cards, this plan shares its card with tools"):
        launching.launch(str(file), "kubernetes", 1)


def test_what_does_not_fit_on_one_card_is_said() -> None:
    slow = {"rate": "0.1/s", "ttft": "5s", "tpot": "300ms", "precision": "bf16"}
    large = {"name": "large", "model": "Qwen/Qwen3-14B", **slow}
    report = asked([large, {"name": "medium", "model": "Qwen/Qwen3-8B", **slow}], {"chip": "l40s"})
    assert [p.sharing for p in report.placements] == [None, None]
    (why,) = report.apart
    assert why == (
        "large and medium do not fit on one l40s: their weights and caches take 125% of its memory; asleep by turns, "
        "35% of the time is left to medium, it keeps its targets with 50%"
    )
    assert f"no card for both: {why}" in report.tables()[0].foot


BOX = {"name": "box", "chip": "h100", "count": 1, "price": "own"}
ASLEEP = [
    {"name": "chat", "model": "Qwen/Qwen3-32B", "rate": "20/h", "ttft": "15s", "tpot": "100ms", "precision": "bf16"},
    {"name": "tools", "model": "Qwen/Qwen3-14B", "rate": "60/h", "ttft": "15s", "tpot": "100ms", "precision": "bf16"},
]  # fmt: skip
"""Two models whose weights take 95 GB together, each asked once in a while."""


def test_models_that_do_not_fit_together_sleep_by_turns(tmp_path: Path) -> None:
    file = tmp_path / "fleet.json"
    request = FleetRequest(fleet={"demand": ASLEEP, "supply": [BOX]}, gap="0", simulate=True)  # type: ignore[arg-type]
    report = saving.save("fleet", request, str(file)).report
    assert not report.fleet.unplaced
    chat, tools = (p.sharing for p in report.placements)
    assert chat is not None
    assert tools is not None
    assert (chat.how, tools.how) == ("sleep", "sleep")
    assert chat.turn is not None
    assert tools.turn is not None
    assert chat.turn.move_s == pytest.approx(0.1 + chat.turn.weight_bytes / (0.6 * 63e9))
    swap = chat.turn.move_s + tools.turn.move_s
    assert 0.5 * swap < chat.turn.wait_s < 2.0 * swap
    assert chat.turn.wait_s > tools.turn.wait_s, "it is asked less often, so it is more often asleep"
    assert chat.turn.wakes_per_h == pytest.approx(tools.turn.wakes_per_h, rel=0.01)
    assert all(p.runtime == "vllm" for p in report.placements)
    said = " ".join(report.verdict())
    assert "share 1x h100-sxm5-80gb, one awake, the others asleep in the host's memory: chat wakes in 1.8" in said
    assert not report.unsimulated
    for t, s in zip([t for t in report.simulated if t.time == "TTFT"], (chat, tools), strict=True):
        assert s.turn is not None
        assert t.mean.mid == pytest.approx(s.turn.wait_s + s.ttft_s.mid, rel=0.15), "as the plan says"
        assert t.holds
    first, second = ("".join(f.text for f in launching.launch(str(file), "vllm", rank)) for rank in (1, 2))
    for text, port in ((first, 8000), (second, 8001)):
        assert "--enable-sleep-mode" in text
        assert "export VLLM_SERVER_DEV_MODE=1" in text
        assert f"curl -X POST 'http://127.0.0.1:{port}/sleep?level=1'" in text
        assert float(text.partition("--gpu-memory-utilization ")[2].split()[0]) <= 0.9 * 0.92


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"ttft": "2s"}, "asleep by turns, chat waits"),
        ({"runtime": "trtllm"}, "their weights and caches take"),
        ({"rate": "400/h"}, "of the time is left to tools"),
    ],
)
def test_models_sleep_only_where_targets_leave_time_to_wake(changed: dict[str, str], said: str) -> None:
    report = asked([{**d, **changed} for d in ASLEEP], BOX)
    assert len(report.fleet.unplaced) == 1
    assert all(p.sharing is None for p in report.placements)
    assert any(said in why for why in report.apart) or "runtime" in changed
    assert "runtime" not in changed or not any("asleep" in why for why in report.apart)


@pytest.mark.parametrize(
    ("chip", "gigabytes", "seconds"),
    [
        ("rtx-a4000", 1.2, 0.10),  # Qwen3-0.6B, vLLM 0.11.0: blog.vllm.ai/2025/10/26/sleep-mode.html
        ("rtx-a4000", 8.3, 0.80),  # Phi-3-vision
        ("a100-sxm4-80gb", 1.2, 0.26),
        ("a100-sxm4-80gb", 8.3, 0.82),
        ("a100-sxm4-80gb", 61.1, 2.87),  # Qwen3-Coder-30B-A3B; asleep again in 2.78 s
        ("b200-sxm", 136.7, 3.7),  # 3.0 to 4.4 s in the log of one server
    ],
)
def test_wakes_take_about_as_long_as_published(chip: str, gigabytes: float, seconds: float) -> None:
    sleeping, host = get_runtime("vllm").sleeping, get_chip(chip).host
    assert sleeping is not None
    assert host is not None
    assert host.bytes_per_s is not None
    way = CopyParameters(sleeping.link, 1.0, sleeping.start_s, 0.0)
    found = float(host_copy(gigabytes * 1e9, host.bytes_per_s, way).total_s)
    assert 0.5 < found / seconds < 2.0


LEGAL = {"name": "legal", "model": SMALL, "lora": "rank=16", "day": [2, 8, 12, 4], "ttft": "1s", "tpot": "40ms"}
MEDICAL = {"name": "medical", "model": SMALL, "lora": "rank=32", "rate": "3/s", "in": 500, "ttft": "2s", "tpot": "30ms"}


def test_adapters_of_one_model_are_one_demand() -> None:
    other = {"name": "base", "model": SMALL, "rate": "1/s"}
    found = together([LEGAL, other, MEDICAL, {**MEDICAL, "name": "far", "on": ["hall"]}])
    assert [t["name"] for t in found] == ["legal + medical", "base", "far"]
    both = found[0]
    assert both["day"] == [5.0, 11.0, 15.0, 7.0]
    assert both["lora"] == "rank=32,count=2,targets=all-linear"
    usual = FleetRequest(fleet=json.dumps({"demand": [LEGAL], "supply": [HALL]})).asked().demands[0].question
    assert isinstance(usual, PlanRequest)
    prompt = usual.workload_of("serve").prompt_tokens
    mean = (6.5 * prompt + 3.0 * 500) / 9.5
    assert float(both["in"]) == pytest.approx(mean, abs=1)
    assert both["tpot"] == "0.03s"
    assert parse_quantity(both["ttft"], "s", "ttft") == pytest.approx(mean / prompt)  # of the longer prompts


TALK = {"name": "talk", "model": "meta-llama/Llama-3.1-70B", "rate": "0.3/s", "in": 1000, "out": 300, "tpot": "50ms"}
TOOLS = {"name": "tools", "model": "meta-llama/Llama-3.1-70B", "rate": "0.1/s", "in": 4000, "out": 100, "tpot": "60ms"}
CLOUD = {"name": "cloud", "chip": "h100"}


def test_demands_with_one_model_share_replicas_where_that_is_cheaper(tmp_path: Path) -> None:
    file = tmp_path / "fleet.json"
    request = FleetRequest(fleet=json.dumps({"demand": [TALK, TOOLS], "supply": [CLOUD]}), simulate=True)
    found = saving.save("fleet", request, str(file)).report
    apart = asked([TALK, TOOLS], CLOUD, mixing=False)
    assert found.fleet.usd_per_day == pytest.approx(0.5 * apart.fleet.usd_per_day)
    assert [p.sharing.how for p in found.placements if p.sharing] == [REPLICAS, REPLICAS]
    assert [p.sharing.part for p in found.placements if p.sharing] == pytest.approx([0.75, 0.25])
    assert {p.chips for p in found.placements} == {1}
    assert found.supplies[0].most_chips == pytest.approx(1.0)
    times = {(t.demand, t.time): t for t in found.simulated}
    assert all(t.holds for t in times.values())
    assert times["tools", "TTFT"].mean.mid > 2.0 * times["talk", "TTFT"].mean.mid  # four times the prompt


def test_busy_demands_with_one_model_keep_replicas_of_their_own() -> None:
    """What one replica cannot carry of both is no cheaper together."""
    busy = [TALK | {"rate": "0.8/s"}, TOOLS | {"rate": "0.5/s"}]
    found = asked(busy, CLOUD)
    apart = asked(busy, CLOUD, mixing=False)
    assert found.fleet.usd_per_day == pytest.approx(apart.fleet.usd_per_day)
    assert not any(p.sharing for p in found.placements)


def test_adapters_share_replicas_and_one_server_starts_them(tmp_path: Path) -> None:
    file = tmp_path / "fleet.json"
    tables = {"demand": [{**d, "runtime": "vllm"} for d in (LEGAL, MEDICAL)], "supply": [HALL]}
    report = saving.save("fleet", FleetRequest(fleet=tables), str(file)).report  # type: ignore[arg-type]
    assert {p.adapters for p in report.placements} == {("legal", "medical")}
    assert f"legal and medical are adapters that the same replicas of {SMALL} serve." in report.verdict()
    text = "".join(f.text for f in launching.launch(str(file), "vllm", 1))
    for said in (
        "--enable-lora",
        "--max-loras 2",
        "--max-lora-rank 32",
        "--lora-modules legal=./adapters/legal medical=./adapters/medical",
    ):
        assert said in text
    apart = [{k: v for k, v in d.items() if k != "lora"} for d in tables["demand"]]
    alone = FleetRequest(fleet=json.dumps({"demand": apart, "supply": [HALL]}), gap="0").run()
    busy = [sum(p.chips_per_slice[i] for p in alone.placements) for i in range(4)]
    assert max(s.most_chips for s in report.supplies) <= max(busy)


def test_adapters_take_the_memory_that_fit_says_and_software_that_has_them() -> None:
    lora = "rank=64,count=16"
    plan = cw.estimate(SMALL, chip="h100", lora=lora, runtime="vllm", evidence="none")
    base = cw.estimate(SMALL, chip="h100", runtime="vllm", evidence="none")
    fits = cw.fit(SMALL, chips="h100", lora=lora, runtime="vllm")
    held = plan.plans[0].memory.items["adapters"]
    assert held == fits.fits[0].memory.items["adapters"] > 2e9
    assert plan.plans[0].memory.cache_tokens < base.plans[0].memory.cache_tokens
    assert any(said.startswith("16 low-rank adapters of rank 64 held with the model") for said in plan.assumptions)
    with pytest.raises(ChipwiseError, match="is not known to serve low-rank adapters"):
        cw.estimate(SMALL, chip="rtx-4090", lora=lora, runtime="exllamav3", evidence="none")


SPOT = {"name": "spot", "chip": "h100", "price": 1.2, "max": 6, "machine": 2, "preempt": "2h", "wait": "30min"}


def test_machines_that_are_taken_away_carry_less_and_the_cheapest_mix_is_found() -> None:
    firm = {"name": "firm", "chip": "h100", "price": 1.6, "machine": 2}
    fleet = {"demand": [{**CHAT, "rate": "100/s"}], "supply": [SPOT, firm]}
    request = FleetRequest(fleet=json.dumps(fleet), gap="0")
    ways, *_ = _ways(request.asked())
    by_chips = [{way.chips: way for way in ways if way.supply == p} for p in range(2)]
    spot, sure = by_chips[0][2.0], by_chips[1][2.0]
    assert spot.plan is not None
    weights = resting(spot.plan)[0] * spot.plan.chips / spot.plan.replicas
    start_s = start_up_s(weights, get_chip("h100"), spot.plan.chips // spot.plan.replicas, 1)
    lost_s = spot.plan.answer_s(300) / 2.0
    kept = (1.0 - lost_s / 7200.0) / (1.0 + (1800.0 + start_s) / 7200.0)
    assert spot.rate == pytest.approx(kept * sure.rate, rel=1e-9)
    assert 0.7 < kept < 0.8
    least = min(
        sum(n * way.usd_per_h for n, way in zip(units, ways, strict=True))
        for units in product(*(range(int(100.0 / way.rate) + 2) for way in ways))
        if sum(n * way.rate for n, way in zip(units, ways, strict=True)) >= 100.0
        and sum(n * way.chips for n, way in zip(units, ways, strict=True) if way.supply == 0) <= 6
    )
    found = request.run()
    assert found.fleet.usd_per_h == pytest.approx(least)
    said = " ".join(found.assumptions)
    assert "each machine of spot is taken away every 2 hours in the mean, another is there after 30 minutes" in said


def test_a_simulation_says_that_it_leaves_preemptions_out() -> None:
    fleet = {"demand": [{**CHAT, "rate": "5/s", "ttft": "1s"}], "supply": [SPOT]}
    found = FleetRequest(fleet=json.dumps(fleet), gap="0", simulate=True).run()
    assert found.unsimulated == ("preemptions on spot",)
    assert found.simulated


def test_training_on_machines_that_are_taken_away_knows_it() -> None:
    tune = {"name": "tune", "model": SMALL, "task": "finetune", "tokens": "2B", "deadline": "7d"}
    fleet = {"demand": [tune], "supply": [{**SPOT, "machine": 8, "max": 64}]}
    request = FleetRequest(fleet=json.dumps(fleet), gap="0").asked()
    asked_of = _at(request.demands[0].question, request.supplies[0])  # type: ignore[arg-type]
    assert asked_of.failures == "preempt=7200s,wait=1800s"
    plain = replace(request, supplies=(replace(request.supplies[0], preempt_s=float("inf")),))
    kept, sure = ({w.chips: w.plan.days.mid for w in _ways(one)[0]} for one in (request, plain))  # type: ignore[union-attr]
    assert all(kept[chips] > sure[chips] for chips in kept.keys() & sure.keys())


def test_a_licence_that_is_not_allowed_keeps_weights_off_machines() -> None:
    free = {**CHAT, "licence": "Llama3.1"}
    other = {"name": "other", "model": "Qwen/Qwen3-8B", "rate": "1/s", "licence": "apache-2.0"}
    found = asked([free, other], HALL, licences=["Apache-2.0", "mit"])
    (left,) = found.fleet.unplaced
    assert left.demand == "chat"
    assert left.why == "its licence, llama3.1, is none of apache-2.0, mit"
    sold = asked([free, other], HALL, {"price": "api", "name": "APIs"}, licences=["apache-2.0"])
    assert {p.supply for p in sold.placements if p.demand == "chat"} == {"APIs"}
    chain = {"name": "two", "rate": "1/s", "e2e": "9s", "step": [{"model": "bge-m3"}, {"model": SMALL}]}
    chain["step"] = [{"model": "bge-m3", "licence": "mit"}, {"model": SMALL, "licence": "llama3.1"}]
    (left,) = asked([chain, other], HALL, licences=["mit", "apache-2.0"]).fleet.unplaced
    assert "its licence, llama3.1, is none of" in left.why


@pytest.mark.parametrize(
    ("demand", "supply", "limits", "said"),
    [
        ({}, {}, {"licences": ["mit"]}, "demand chat says none of its model"),
        ({}, {"wait": "10min"}, {}, "waits for machines that nobody takes away"),
        ({}, {"preempt": 20}, {}, "preempt = 20 has no unit"),
        ({}, {"preempt": "5min"}, {}, "machines are away longer than they are there"),
        ({}, {"price": "own", "count": 1, "preempt": "5h"}, {}, "key of .*preempt"),
    ],
)
def test_what_cannot_be_of_licences_and_preemptions_is_said(
    demand: dict[str, Any], supply: dict[str, Any], limits: dict[str, Any], said: str
) -> None:
    with pytest.raises((UsageError, UnknownNameError), match=said):
        asked([{**CHAT, **demand}], {**RENTED, **supply}, **limits)
