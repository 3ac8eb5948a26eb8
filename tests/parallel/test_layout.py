"""Which layouts are legal, and why the others are not."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.parallel.layout import AXIS_SPLIT, REASONS, Layout, Reason, check_layout, illegal, spans
from chipwise.workload.build import build
from chipwise.workload.graph import Graph
from chipwise.workload.model import FFN, Dense, Layer, LinearAttention, Mixer, Model, MoE, SelfAttention, StateSpace
from chipwise.workload.precision import uniform


def network(mixer: Mixer, ffn: FFN, layers: int = 12) -> Graph:
    return build(Model("toy", "llama", 512, 4000, ((layers, Layer(mixer, ffn)),), uniform("bf16")))


DENSE = network(SelfAttention(16, 4, 64), Dense(1024))
ODD_KV = network(SelfAttention(24, 6, 64), Dense(1536))
NARROW = network(SelfAttention(16, 16, 64), Dense(1000))
MIXTURE = network(SelfAttention(16, 4, 64), MoE(24, 2, 96))
SHARED = network(SelfAttention(16, 4, 64), MoE(24, 2, 96, shared_width=100))
DELTA = network(LinearAttention(8, 32, 64, 64, 4), Dense(1024))
MAMBA = network(StateSpace(32, 64, 4, 128, 4), Dense(1024))


@pytest.mark.parametrize(
    ("graph", "layout", "reason"),
    [
        (DENSE, Layout(), Reason.OK),
        (DENSE, Layout(tp=16), Reason.OK),
        (DENSE, Layout(tp=8, pp=12), Reason.OK),
        (DENSE, Layout(tp=3), Reason.TP_HEADS),
        (DENSE, Layout(tp=32), Reason.TP_HEADS),
        (ODD_KV, Layout(tp=4), Reason.TP_KV_HEADS),
        (ODD_KV, Layout(tp=12), Reason.OK),
        (NARROW, Layout(tp=8), Reason.OK),
        (NARROW, Layout(tp=16), Reason.TP_WIDTH),
        (SHARED, Layout(tp=8), Reason.TP_WIDTH),
        (DENSE, Layout(pp=13), Reason.PP_LAYERS),
        (DENSE, Layout(dp=2), Reason.EP_NO_EXPERTS),
        (DENSE, Layout(tp=2, ep=2), Reason.EP_NO_EXPERTS),
        (MIXTURE, Layout(tp=4, dp=2, ep=8), Reason.OK),
        (MIXTURE, Layout(tp=4, ep=3), Reason.EP_GROUP),
        (MIXTURE, Layout(tp=8, dp=2, ep=16), Reason.EP_EXPERTS),
        (MIXTURE, Layout(tp=8, dp=8, ep=1), Reason.EP_WIDTH),
        (MIXTURE, Layout(tp=8, dp=8, ep=8), Reason.OK),
        (DELTA, Layout(tp=8), Reason.OK),
        (DELTA, Layout(tp=16), Reason.TP_HEADS),
        (MAMBA, Layout(tp=8), Reason.OK),
        (MAMBA, Layout(tp=64), Reason.TP_HEADS),
    ],
)
def test_every_rule_is_reached(graph: Graph, layout: Layout, reason: Reason) -> None:
    assert check_layout(graph, layout) is reason


def test_masks_of_arrays_equal_one_by_one() -> None:
    tp = np.array([1.0, 2.0, 3.0, 4.0, 8.0, 16.0])[:, None]
    dp = np.array([1.0, 2.0, 8.0])
    ep = tp * dp
    together = illegal(MIXTURE, Layout(tp=tp, dp=dp, ep=ep))
    assert together.shape == (6, 3)
    for i in range(6):
        for j in range(3):
            one = Layout(float(tp[i, 0]), 1.0, float(dp[j]), float(ep[i, j]))
            assert REASONS[together[i, j]] is check_layout(MIXTURE, one)


def test_the_first_broken_rule_is_named() -> None:
    assert check_layout(DENSE, Layout(tp=3, pp=13)) is Reason.PP_LAYERS
    assert next(iter(Reason)) is Reason.OK, "zero means legal"


def test_degrees_and_devices() -> None:
    layout = Layout(tp=4, pp=3, dp=2, ep=4)
    assert layout.devices == 24
    assert layout.moe_tp == 2, "eight ranks of a stage, four groups of experts"
    assert [layout.part(p) for p in ("tp", "pp", "dp", "ep", "moe_tp")] == [4, 3, 2, 4, 2]


def test_labels() -> None:
    assert Layout().label() == "unsharded"
    assert Layout(tp=8.0, ep=8.0).label() == "tp8 ep8"
    assert Layout(tp=2, pp=4, dp=3).label() == "tp2 pp4 dp3"


def test_every_axis_that_may_be_split_is() -> None:
    # the legend of workload.axes; S, B: state space, G, Z: linear attention, O: output groups
    assert set(AXIS_SPLIT) == set("HKVFUEXSBGZO")


def test_a_runtime_that_pads_fills_up_heads_and_widths_but_not_experts() -> None:
    odd = Layout(tp=5.0)
    assert check_layout(DENSE, odd) is Reason.TP_HEADS
    assert check_layout(DENSE, odd, padded=True) is Reason.OK
    experts = network(SelfAttention(16, 4, 64), MoE(8, 2, 256))
    assert check_layout(experts, Layout(dp=3.0, ep=3.0), padded=True) is Reason.EP_EXPERTS


def test_copies_of_experts_fill_up_what_ep_does_not_divide() -> None:
    experts = network(SelfAttention(16, 4, 64), MoE(8, 2, 256))
    assert check_layout(experts, Layout(dp=3.0, ep=3.0), spare=True) is Reason.OK
    assert check_layout(experts, Layout(dp=17.0, ep=17.0), spare=True) is Reason.EP_EXPERTS  # a second copy of all


@pytest.mark.parametrize(
    ("layout", "wide", "joined"),
    [
        (Layout(tp=8.0), False, True),
        (Layout(tp=8.0, pp=2.0), False, True),
        (Layout(tp=16.0), True, False),
        (Layout(dp=16.0, ep=16.0), False, False),
        (Layout(dp=16.0, ep=16.0), True, True),
        (Layout(dp=16.0), True, False),  # experts in slices: every layer would cross the network
        (Layout(tp=2.0, dp=8.0, ep=16.0), True, True),
    ],
)
def test_whole_experts_alone_may_leave_a_domain_beside_stages(layout: Layout, wide: bool, joined: bool) -> None:
    assert bool(spans(layout, 8.0, networked=True, wide=wide)) is joined
    assert not bool(spans(Layout(dp=16.0, ep=16.0), 8.0, networked=False, wide=True))
