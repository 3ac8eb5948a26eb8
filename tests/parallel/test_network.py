"""Groups of ranks on tiers: bandwidth, exchanges, pipelines."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.parallel.network import Network, all_to_all, group_rate, hops
from chipwise.parallel.pipeline import batch_time, held_micro_batches, slowest_stage, stage_layers
from chipwise.parallel.topology import Latency, algorithms, fastest

DGX = Network(link_bytes_per_s=450e9, domain=8.0, nic_bytes_per_s=50e9)
TORUS = Network(link_bytes_per_s=600e9, domain=4096.0, nic_bytes_per_s=6e9, axes=3.0)
MESH = Network(link_bytes_per_s=448e9, domain=8.0, nic_bytes_per_s=50e9, mesh=1.0)


def test_group_inside_the_domain_runs_at_the_fabric() -> None:
    rate = group_rate(DGX, 8.0, 1.0, 0.6, 0.8)
    assert not rate.leaves
    assert rate.bytes_per_s == pytest.approx(0.6 * 450e9)


def test_all_nics_of_a_domain_work_for_a_group_that_leaves_it() -> None:
    whole = group_rate(DGX, 64.0, 1.0, 1.0, 1.0)
    assert whole.together == 8.0
    assert whole.bytes_per_s == pytest.approx(400e9)
    # with tp8 inside, one rank per domain has one NIC's share
    apart = group_rate(DGX, 64.0, 8.0, 1.0, 1.0)
    assert apart.bytes_per_s == pytest.approx(50e9)


def test_torus_groups_share_the_axes() -> None:
    near = group_rate(TORUS, 16.0, 1.0, 1.0, 1.0)
    far = group_rate(TORUS, 64.0, 16.0, 1.0, 1.0)
    assert near.bytes_per_s == pytest.approx(200e9)
    assert far.bytes_per_s == pytest.approx(400e9)


def test_full_mesh_uses_the_links_between_the_group() -> None:
    assert group_rate(MESH, 2.0, 1.0, 1.0, 1.0).bytes_per_s == pytest.approx(64e9)
    assert group_rate(MESH, 8.0, 1.0, 1.0, 1.0).bytes_per_s == pytest.approx(448e9)


def test_one_rank_exchanges_nothing() -> None:
    rate = group_rate(DGX, 1.0, 1.0, 0.6, 0.8)
    assert fastest("all_reduce", 1e9, 1.0, rate, Latency()) == 0.0
    assert all_to_all(1e6, 8.0, 1.0, DGX, 1.0, 0.6, 0.9, 7e-6) == 0.0
    assert hops(1.0) == 0.0


def test_tokens_cross_to_a_domain_once() -> None:
    # 64 ranks in 8 domains: 22 copies cross at most 7 times
    few = all_to_all(1e6, 7.0, 64.0, DGX, 1.0, 10.0, 0.9, 0.0)
    many = all_to_all(1e6, 22.0, 64.0, DGX, 1.0, 10.0, 0.9, 0.0)
    assert few == pytest.approx(many)


@given(st.integers(1, 10), st.floats(1e3, 1e9))
def test_faster_links_are_never_slower(power: int, payload: float) -> None:
    ranks = 2.0**power
    slow = fastest("all_gather", payload, ranks, group_rate(DGX, ranks, 1.0, 0.6, 0.8), Latency())
    double = Network(900e9, 8.0, 100e9)
    fast = fastest("all_gather", payload, ranks, group_rate(double, ranks, 1.0, 0.6, 0.8), Latency())
    assert fast <= slow


def test_arrays_and_numbers_agree() -> None:
    ranks = np.array([1.0, 4.0, 16.0, 256.0])
    many = fastest("all_reduce", 1e8, ranks, group_rate(DGX, ranks, 1.0, 0.6, 0.8), Latency())
    each = [fastest("all_reduce", 1e8, r, group_rate(DGX, float(r), 1.0, 0.6, 0.8), Latency()) for r in ranks]
    assert np.allclose(many, np.array(each, dtype=float))


def test_a_wide_torus_passes_pieces_along_its_axes() -> None:
    assert group_rate(TORUS, 16.0, 1.0, 1.0, 1.0).steps == 15.0
    assert group_rate(TORUS, 512.0, 1.0, 1.0, 1.0).steps == pytest.approx(3 * 7.0)


def test_small_all_reduces_go_in_one_shot_and_large_ones_round_the_ring() -> None:
    rate = group_rate(DGX, 8.0, 1.0, 0.75, 0.8)
    for size, best in ((1e3, "one-shot"), (1e9, "ring")):
        times = algorithms("all_reduce", size, 8.0, rate, Latency())
        assert min(times, key=lambda k: float(times[k])) == best
        assert fastest("all_reduce", size, 8.0, rate, Latency()) == min(float(t) for t in times.values())


def test_uneven_stages_hold_whole_layers() -> None:
    assert stage_layers(61.0, 16.0, 1.0) == 4.0
    assert stage_layers(96.0, 8.0, 6.0) == 12.0
    assert stage_layers(61.0, 1.0, 1.0) == 61.0


def test_places_left_empty_make_room_for_the_head() -> None:
    even = slowest_stage(1.0, 2.0, 64.0, 8.0, 1.0)
    assert even == pytest.approx(10.0)
    # 126 layers in 8 stages of 16: two places are free on the last
    assert slowest_stage(1.0, 2.0, 126.0, 8.0, 1.0) == pytest.approx(16.0)


def test_bubble_of_one_stage_is_nothing_and_interleaving_divides_it() -> None:
    assert batch_time(2.0, 2.0, 10.0, 1.0, 1.0, 1.0) == 20.0
    plain = batch_time(2.0, 2.0, 10.0, 8.0, 1.0, 1.0) - 20.0
    assert batch_time(2.0, 2.0, 10.0, 8.0, 4.0, 1.0) - 20.0 == pytest.approx(plain / 4.0)


def test_one_f_one_b_holds_no_more_than_the_stages() -> None:
    assert held_micro_batches(64.0, 8.0, 1.0, 1.0) == 8.0
    assert held_micro_batches(64.0, 8.0, 1.0, 0.0) == 64.0
    assert held_micro_batches(64.0, 8.0, 3.0, 1.0) == pytest.approx(8.0 * (1.0 + 7.0 / 24.0))
