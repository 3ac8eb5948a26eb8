"""What the user measured moves the answer about the same deployment, and says so."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chipwise
from chipwise.api.own import question_of_item
from chipwise.evidence.anchors import kriged
from chipwise.evidence.item import Item, own_item
from chipwise.evidence.store import Store
from chipwise.report.records import PlanRecord
from chipwise.units import format_seconds
from command_line import Run

MODEL = "meta-llama/Llama-3.1-8B"
CHIP = "h100-sxm5-80gb"
ASKED: dict[str, Any] = {"chip": CHIP, "tp": 1, "concurrency": 64, "in_": 1024, "out": 256, "runtime": "vllm"}


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("CHIPWISE_DATA_DIR", str(tmp_path))
    return Store()


def estimate(**more: Any) -> PlanRecord:
    return chipwise.estimate(MODEL, **{**ASKED, **more}).plans[0]


def measured(slower: float = 1.3, **more: Any) -> Item:
    """A run of the deployment that took so many times what was predicted."""
    plain = estimate(evidence="none")
    assert plain.tpot_s is not None
    values = {
        "model": MODEL, "result": 1.0, "unit": "Tokens/s", "chip": CHIP, "chips": 1, "scenario": "closed loop",
        "runtime": "vllm 0.11", "concurrency": 64.0, "input_tokens": 1024.0, "output_tokens": 256.0,
        "ttft_mean_s": plain.ttft_s.mid * slower, "tpot_mean_s": plain.tpot_s.mid * slower,
    }  # fmt: skip
    return own_item("vllm bench serve", {**values, **more})


def width(p: PlanRecord) -> float:
    assert p.tpot_s is not None
    return p.tpot_s.high / p.tpot_s.low


def tpot(p: PlanRecord) -> float:
    assert p.tpot_s is not None
    return p.tpot_s.mid


def test_the_same_deployment_is_measured(store: Store) -> None:
    item = measured()
    before = estimate()
    store.add([item])
    after = estimate()
    assert after.tpot_s is not None
    assert after.tpot_s.basis == after.ttft_s.basis == after.tokens_per_s.basis == "measured"
    assert item.id in after.note
    assert f"your run had TPOT {format_seconds(item.tpot_mean_s or 0)}" in after.note
    assert tpot(after) == pytest.approx(item.tpot_mean_s, rel=0.06)
    assert after.tokens_per_s.mid < before.tokens_per_s.mid / 1.2
    assert width(after) < width(before)
    users = 64 * 256 / (after.ttft_s.mid + 255 * tpot(after))
    assert after.tokens_per_s.mid == pytest.approx(users, rel=0.02)


def test_neighbours_are_corrected_and_narrower(store: Store) -> None:
    before = estimate(concurrency=32)
    store.add([measured()])
    after = estimate(concurrency=32)
    assert 1.1 < tpot(after) / tpot(before) < 1.3
    assert after.tpot_s is not None
    assert after.tpot_s.basis == "calibrated"
    assert width(after) < width(before)
    assert "corrected by your runs nearby" in after.note


@pytest.mark.parametrize("far", [{"in_": 64, "out": 4096}, {"concurrency": 1}])
def test_what_is_further_away_moves_less(far: dict[str, Any], store: Store) -> None:
    before = estimate(**far)
    store.add([measured()])
    assert 1.0 < tpot(estimate(**far)) / tpot(before) < tpot(estimate()) / tpot(estimate(evidence="none"))


@pytest.mark.parametrize(
    "other",
    [{"chip": "h200-sxm-141gb"}, {"runtime": "sglang"}, {"precision": "fp8"}, {"evidence": "published"}],
)
def test_another_deployment_is_left_alone(other: dict[str, Any], store: Store) -> None:
    before = estimate(**other)
    store.add([measured()])
    assert estimate(**other) == before


@given(
    st.lists(st.tuples(st.floats(0.0, 10.0), st.floats(0.0, 10.0)), min_size=1, max_size=6),
    st.floats(0.05, 2.0),
)
def test_shares_of_residuals(places: list[tuple[float, float]], noise: float) -> None:
    """No share is above that of a single run at no distance, what is said twice counts little more than once, and what
    is infinitely far does not count."""
    at = np.array(places)
    worth = np.exp(-np.abs(at).sum(axis=1))
    among = np.exp(-np.abs(at[:, None] - at).sum(axis=2))
    shares = kriged(worth, among, noise)
    assert np.abs(shares).max() <= 1.0 / (1.0 + noise) + 1e-9
    repeated = kriged(np.repeat(worth, 2), np.repeat(np.repeat(among, 2, 0), 2, 1), noise)
    assert repeated.sum() == pytest.approx(kriged(worth, among, noise / 2.0).sum(), rel=1e-6)
    assert kriged(np.zeros(len(at)), among, noise) == pytest.approx(0.0)


def test_runs_that_say_too_little_move_nothing(store: Store) -> None:
    before = estimate()
    store.add(
        [
            measured(input_tokens=None),
            measured(chip=""),
            measured(model="nobody/knows"),
            measured(runtime="x 1"),
        ]
    )
    assert estimate() == before


def test_tokens_alone_correct_too(store: Store) -> None:
    before = estimate()
    slower = measured(tpot_mean_s=None, ttft_mean_s=None, tokens_per_s=before.tokens_per_s.mid / 1.3)
    store.add([slower])
    assert estimate().tokens_per_s.mid == pytest.approx(before.tokens_per_s.mid / 1.3, rel=0.06)


def test_arrivals_stay_and_more_are_in_flight(store: Store) -> None:
    asked = {"concurrency": None, "rate": "8/s"}
    before = estimate(**asked)
    store.add([measured()])
    after = estimate(**asked)
    assert after.requests_per_s == before.requests_per_s
    assert after.concurrency > before.concurrency * 1.1


def test_a_plan_is_sized_by_them(store: Store) -> None:
    asked: dict[str, Any] = {
        "rate": 60, "in_": 1024, "out": 256, "tpot": "16ms", "chips": CHIP, "runtime": "vllm", "precision": "bf16",
    }  # fmt: skip
    before = chipwise.plan(MODEL, **asked).plans[0]
    store.add([measured(1.6)])
    after = chipwise.plan(MODEL, **asked).plans[0]
    assert (after.chips, after.layout.tp) > (before.chips, before.layout.tp)
    assert "your runs" in after.note or "by you" in after.note
    assert after.chance is not None
    assert after.chance > 0.7


def test_a_saved_answer_is_made_again_with_them(store: Store, run: Run, tmp_path: Path) -> None:
    store.add([measured()])
    asked = ("--chip", CHIP, "--concurrency", "64", "--in", "1024", "--out", "256", "--runtime", "vllm")
    kept = str(tmp_path / "kept.json")
    run("estimate", MODEL, *asked, "--save", kept)
    store.path.unlink()
    assert run("replay", kept, "--format", "json").json["identical"]


def test_export_and_import(store: Store, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    item = measured(layout="tp=1")
    store.add([item])
    out = tmp_path / "mine.jsonl"
    assert run("evidence", "export", str(out)).code == 0
    assert len(out.read_text()) < 2000
    monkeypatch.setenv("CHIPWISE_DATA_DIR", str(tmp_path / "other"))
    assert run("evidence", "import", str(out)).code == 0
    assert Store().items() == (item,)
    foreign = json.loads(out.read_text()) | {"origin": "published"}
    (tmp_path / "foreign.json").write_text(json.dumps(foreign))
    assert "comes with chipwise" in run("evidence", "import", str(tmp_path / "foreign.json")).refused(2)


def test_an_empty_store_is_not_exported(run: Run, tmp_path: Path) -> None:
    assert "nothing was imported" in run("evidence", "export", str(tmp_path / "x")).refused(2)


@pytest.mark.parametrize("text", ["tp", "tp=0", "xp=2", "tp=2,,", "tp=x"])
def test_a_layout_that_is_none(text: str, run: Run, tmp_path: Path) -> None:
    assert "is no degree" in run("evidence", "import", str(tmp_path), "--layout", text).refused(2)


def sim2real(truth: Path) -> list[Item]:
    """Runs of vLLM with a stated rate; of two rates in turn the mean."""
    found = []
    with (truth / "sim2real_vllm.csv").open() as rows:
        for r in csv.DictReader(rows):
            rates = [float(x) for x in re.findall(r"[\d.]+", r["request_rate_per_s"].partition(",")[0])]
            if not rates:
                continue
            values = {
                "model": r["model"], "result": 1.0, "unit": "Tokens/s", "chip": r["chip"], "chips": int(r["tp"]),
                "precision": "fp8" if r["precision"] == "FP8" else "", "runtime": "vllm", "scenario": "open loop",
                "requests_per_s": sum(rates) / len(rates), "input_tokens": float(r["prompt_tokens_mean"]),
                "output_tokens": float(r["output_tokens_mean"]), "ttft_mean_s": float(r["ttft_mean_ms"]) / 1e3,
                "tpot_mean_s": float(r["itl_mean_ms"]) / 1e3, "notes": (r["row_id"],),
            }  # fmt: skip
            found.append(own_item("sim2real", values))
    return found


def test_neighbours_of_real_runs_are_less_far_off(truth: Path, store: Store) -> None:
    """Every row is left out in turn; the others of its model are in the store."""
    rows = sim2real(truth)
    off: list[tuple[float, float, float, float]] = []
    for row in rows:
        store.path.unlink(missing_ok=True)
        alike = [r for r in rows if r.model == row.model and r.id != row.id]
        if not alike:
            continue
        store.add(alike)
        question = question_of_item(row)
        plain, own = (replace(question, evidence=e).run().plans[0] for e in ("none", "own"))  # type: ignore[arg-type]
        assert row.tpot_mean_s
        assert row.ttft_mean_s
        pairs = [(tpot(p) / row.tpot_mean_s, p.ttft_s.mid / row.ttft_mean_s) for p in (plain, own)]
        off.append((*np.abs(np.array(pairs) - 1.0).T.reshape(-1),))  # type: ignore[arg-type]
    plain_tpot, own_tpot, plain_ttft, own_ttft = np.array(off).T
    assert len(off) >= 15
    assert np.median(own_tpot) < 0.7 * np.median(plain_tpot)
    assert np.mean(own_ttft) < 0.6 * np.mean(plain_ttft)
    assert np.median(own_ttft) < 0.9 * np.median(plain_ttft)
