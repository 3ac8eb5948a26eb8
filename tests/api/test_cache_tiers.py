"""`simulate --cache-tiers`: prefixes below the cache, through the product's own door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import chipwise as cw
from chipwise.errors import ChipwiseError, UsageError

MODEL = "meta-llama/Llama-3.1-8B"
TIERS = "host=64GB,disk=1TB,disk_rate=6GB/s"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Forty talks that take turns: each prompt holds all that was said before."""
    said: dict[int, list[int]] = {}
    lines = []
    for i in range(400):
        talk = i * 7 % 40
        ids = said.setdefault(talk, [])
        ids += range(1000 * talk + len(ids), 1000 * talk + len(ids) + 4)
        lines.append({"timestamp": 700 * i, "input_length": 512 * len(ids), "output_length": 50, "hash_ids": [*ids]})
    kept = tmp_path_factory.mktemp("logs") / "talks.jsonl"
    kept.write_text("\n".join(map(json.dumps, lines)))
    return str(kept)


def below(log: str, **given: Any) -> Any:
    """What the tiers of an answer change."""
    asked = {"chip": "l40s", "log": log, "cache_tiers": TIERS} | given
    return cw.simulate(MODEL, **asked).simulation.below


def test_tiers_find_what_the_chips_forget(log: str) -> None:
    found = below(log)
    assert found.hit_rate_without < found.hit_rate + sum(t.hit_rate for t in found.tiers)
    assert found.ttft_p50_s < found.ttft_p50_without_s
    host, disk = found.tiers
    assert host.hit_rate > 0.1
    assert host.usd_per_gb_month > 0.0
    # hours of a month x dollars an hour / GB
    worth = host.replica_h_month * found.usd_per_h / 64.0
    assert host.usd_per_gb_month == pytest.approx(worth)
    assert disk.bytes_per_s == pytest.approx(6e9)
    rates = [row.hit_rate for row in found.by_capacity]
    assert rates == sorted(rates)
    assert [row.what for row in found.by_capacity if row.what][-1] == "endless"


def test_the_answer_without_tiers_is_as_it_was_and_beside_them(log: str) -> None:
    alone = cw.simulate(MODEL, chip="l40s", log=log).simulation
    assert alone.below is None
    found = below(log)
    assert found.hit_rate_without == alone.hit_rate
    assert found.ttft_p99_without_s == pytest.approx(alone.ttft_s.p99.mid)


def test_a_slow_link_brings_nothing_and_saves_nothing(log: str) -> None:
    asked = {"chip": "l40s", "log": log, "cache_tiers": "host=64GB,host_rate=1MB/s"}
    report = cw.simulate(MODEL, **asked)
    assert report.simulation.below.tiers[0].hit_rate == 0.0
    assert any("it saves nothing" in line for table in report.tables() for line in table.foot)


def test_more_room_finds_no_less(log: str) -> None:
    rates = [sum(t.hit_rate for t in below(log, cache_tiers=f"host={n}GB").tiers) for n in (4, 16, 64)]
    assert rates == sorted(rates)


def test_a_replica_of_two_chips_shares_what_it_keeps(log: str) -> None:
    one, two = (below(log, chip="l40s", tp=tp, cache_tiers="host=64GB").tiers[0] for tp in (1, 2))
    assert two.bytes_per_s == pytest.approx(2.0 * one.bytes_per_s)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"log": None, "rate": 1, "requests": 10}, "no request says its prefix"),
        ({"runtime": "lmdeploy"}, "keeps no prefixes on the host"),
        ({"disaggregate": True}, "prompt workers are not simulated"),
        ({"cache_tiers": "disk=1TB,disk_rate=6GB/s"}, "disk needs host"),
        ({"cache_tiers": "host=64GB,disk=1TB"}, "disk needs disk_rate"),
        ({"cache_tiers": "hots=64GB"}, "hots"),
        ({"cache_tiers": "host=64"}, "host"),
        ({"cache_tiers": "host_rate=6GB/s"}, "names no room"),
    ],
)
def test_what_cannot_be_is_refused_in_words(log: str, given: dict[str, Any], words: str) -> None:
    asked = {"chip": "h100", "log": log, "cache_tiers": TIERS} | given
    with pytest.raises(ChipwiseError, match=words):
        cw.simulate(MODEL, **{k: v for k, v in asked.items() if v is not None})


def test_networks_have_no_prefixes(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cache_tiers"):
        cw.simulate("resnet50", chip="h100", rate="10/s", cache_tiers="host=64GB")
