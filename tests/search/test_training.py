"""The search over layouts of a training run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kernels_h100 import KERNELS
from verdicts import verdict

from chipwise.catalog.preferences import preferences
from chipwise.numeric import take
from chipwise.parallel.layout import REASONS, Reason
from chipwise.predict.training.dims import plain
from chipwise.predict.training.memory import MemoryRates, fullest
from chipwise.predict.training.values import Cluster, Recipe, TrainRates, TrainSpread
from chipwise.search.training import PricedLayouts, TrainJob, best, evaluate, layouts, point, scaling, simplest

H100 = Cluster(989e12, 989e12, 80e9, 3.35e12, 450e9, 8.0, 50e9)
SMALL = TrainJob(plain(32, 4096, 32, 16384, 51200), H100, Recipe(), TrainRates(), MemoryRates(), KERNELS, 64, 4096)


@pytest.mark.parametrize("devices", [1, 8, 16, 24])
def test_never_worse_than_one_by_one(devices: int) -> None:
    """Every layout priced alone, with numbers instead of arrays: the same winner."""
    spread = layouts(SMALL, devices)
    priced = evaluate(SMALL, spread)
    chosen = best(SMALL, priced)
    fastest = np.inf
    for i in range(0, len(priced), max(len(priced) // 300, 1)):
        s = take(spread, i)
        t = float(SMALL.step(s).total_s)
        m = float(fullest(SMALL.network, s, SMALL.recipe, SMALL.memory).total_bytes)
        if np.isfinite(priced.seconds[i]):  # what is no plan is not timed
            assert t == pytest.approx(priced.seconds[i])
        else:
            assert priced.reason[i] != 0 or m > preferences().training_aim * 80e9
        assert m == pytest.approx(priced.memory_bytes[i])
        if priced.reason[i] == 0 and m <= preferences().training_aim * 80e9:
            fastest = min(fastest, t)
    if np.isfinite(fastest):
        assert priced.seconds[chosen[0]] <= fastest


def test_every_layout_uses_all_devices() -> None:
    spread = layouts(SMALL, 48)
    assert np.all(np.asarray(spread.devices) == 48)


def test_nothing_above_95_percent_of_memory_is_a_plan() -> None:
    priced = evaluate(SMALL, layouts(SMALL, 16))
    legal = priced.reason == 0
    assert legal.any()
    assert np.all(priced.memory_bytes[legal] <= preferences().training_limit * 80e9)


def test_the_fastest_leaves_room_for_what_is_predicted_wrong() -> None:
    """Whatever the memory, the layout that is taken fills at most 88 % of it where any does: predicted bytes are 7 %
    off in the median."""
    filled = []
    for gigabytes in range(24, 80, 2):
        job = replace(SMALL, cluster=replace(H100, memory_bytes=gigabytes * 1e9))
        priced = evaluate(job, layouts(job, 8))
        share = priced.memory_bytes / (gigabytes * 1e9)
        if np.any(share[priced.reason == 0] <= 0.88):
            filled.append(share[best(job, priced)[0]])
    assert len(filled) > 20
    assert 0.84 < max(filled) <= 0.88


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tp": 3.0}, Reason.TP_HEADS),
        ({"tp": 16.0}, Reason.TP_DOMAIN),
        ({"pp": 64.0}, Reason.PP_LAYERS),
        ({"dp": 7.0}, Reason.BATCH),
        ({"micro_batch": 3.0}, Reason.BATCH),
        ({}, Reason.MEMORY),
        ({"tp": 8.0, "micro_batch": 1.0, "full": 1.0}, Reason.OK),
    ],
)
def test_illegal_layouts_say_what_is_legal(change: dict[str, float], reason: Reason) -> None:
    s = replace(TrainSpread(global_batch=64.0, seq=4096.0, zero=0.0, micro_batch=64.0), **change)
    assert verdict(SMALL, s) is reason


def test_experts_are_cut_in_whole_ones() -> None:
    moe = replace(SMALL.network, experts=6.0, top_k=2.0, expert_ffn=4096.0, moe_share=1.0, dense_share=0.0)
    job = replace(SMALL, network=moe)
    assert verdict(job, TrainSpread(ep=4.0, dp=4.0, global_batch=64.0)) is Reason.EP_EXPERTS


def test_without_a_network_the_domain_is_the_limit() -> None:
    alone = replace(SMALL, cluster=replace(H100, nic_bytes_per_s=np.nan))
    priced = evaluate(alone, layouts(alone, 16))
    assert not (priced.reason == 0).any()


def test_more_devices_are_faster_and_weak_scaling_holds() -> None:
    strong = scaling(SMALL, (8, 32, 128))
    assert [p.seconds for p in strong] == sorted((p.seconds for p in strong), reverse=True)
    assert strong[-1].overhead_share > strong[0].overhead_share
    weak = scaling(SMALL, (8, 32, 128), weak=True)
    assert weak[-1].seconds < 1.5 * weak[0].seconds


def test_a_point_adds_up() -> None:
    priced = evaluate(SMALL, layouts(SMALL, 8))
    at = point(SMALL, priced, int(best(SMALL, priced)[0]))
    assert at.tokens_per_s == pytest.approx(64 * 4096 / at.seconds)
    assert 0.0 <= at.overhead_share < 1.0


def test_nothing_leaves_a_memory_that_the_host_shares() -> None:
    """Where offload is fixed, every layout has that reason; else none is tried."""
    tight = replace(SMALL, shared_memory=True, cluster=replace(H100, memory_bytes=60e9))
    assert not np.any(layouts(tight, 8).offload)
    priced = evaluate(tight, layouts(tight, 8, {"offload": 1}))
    assert set(priced.reason) == {REASONS.index(Reason.SHARED_MEMORY)}


def test_nothing_waits_in_host_memory_for_a_small_gain() -> None:
    """What moves activations to the host is taken where it saves more than recomputing them costs."""

    def taken(seconds: tuple[float, float]) -> int:
        both = TrainSpread(
            **{name: np.ones(2) for name in ("tp", "pp", "cp", "dp", "vp", "bubble", "in_flight", "seq")},
            stash=np.array([1.0, 0.0]), offload=np.zeros(2), full=np.array([0.0, 1.0]), selective=np.zeros(2),
        )  # fmt: skip
        priced = PricedLayouts(both, np.array(seconds), np.ones(2), np.zeros(2, dtype=np.int64))
        return simplest(priced, np.argsort(priced.seconds))

    assert taken((1.0, 1.1)) == 1
    assert taken((1.0, 1.3)) == 0
