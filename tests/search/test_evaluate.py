"""Pricing a group as arrays: the same numbers as one by one, and the right masks."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from toys import DENSE, DEPLOYMENTS, LARGE, MIXTURE, RATES, deployment, loads

from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.catalog.configs import find_config
from chipwise.parallel.layout import REASONS, Layout, Reason, check_layout
from chipwise.predict.service import Prediction
from chipwise.search.deployments import deployments
from chipwise.search.evaluate import Evaluated, evaluate
from chipwise.search.space import Deployment, Group, Limits, candidates
from chipwise.workload.build import build
from chipwise.workload.graph import Graph
from chipwise.workload.load import load_model
from chipwise.workload.workload import Workload

WORKLOAD = Workload(prompt_tokens=3000, output_tokens=400)
NUMBERS = [f.name for f in fields(Prediction) if f.name != "cost"]


def priced(graph: Graph, limits: Limits | None = None, workload: Workload = WORKLOAD) -> Evaluated:
    (group,) = candidates(graph, DEPLOYMENTS, limits or Limits(max_devices=16))
    return evaluate(graph, group, workload, *RATES)


def layout_of(e: Evaluated, i: int) -> Layout:
    return Layout(*(float(np.asarray(e.group.layout.part(p))[i]) for p in ("tp", "pp", "dp", "ep")))


@pytest.mark.parametrize("task", ["serve", "local"])
@pytest.mark.parametrize("graph", [DENSE, LARGE, MIXTURE], ids=["dense", "large", "mixture"])
def test_arrays_equal_one_by_one(graph: Graph, task: str) -> None:
    workload = replace(WORKLOAD, task=task)  # type: ignore[arg-type]
    e = priced(graph, workload=workload)
    for i in range(len(e.reason)):
        alone = evaluate(graph, Group.single(e.group.deployments[e.group.which[i]], layout_of(e, i)), workload, *RATES)
        if REASONS[e.reason[i]] is Reason.STAGES:  # compared with fewer stages, of which nothing is known here
            assert REASONS[alone.reason[0]] is Reason.OK
            continue
        assert REASONS[e.reason[i]] is REASONS[alone.reason[0]], i
        assert np.array_equal(e.allowed[i], alone.allowed[0]), i
        for name in NUMBERS:
            found, expected = getattr(e.prediction, name)[i], getattr(alone.prediction, name)[0]
            assert np.allclose(found, expected, rtol=1e-12, equal_nan=True), (i, name)


@pytest.mark.parametrize(("model", "runtime"), [("Qwen/Qwen3-30B-A3B", "vllm"), ("deepseek-ai/DeepSeek-V3", "sglang")])
def test_real_kernels_of_many_layouts_are_those_of_each(model: str, runtime: str) -> None:
    chips = [get_chip(name) for name in ("h100-sxm5-80gb", "h200-sxm-141gb", "gh200-96gb", "h100-pcie-80gb")]
    graph, numbers = build(load_model(find_config(model))), shipped_parameters()
    offered, _ = deployments(graph.model, chips, runtime)
    (group,) = candidates(graph, offered, Limits())
    rates = (numbers.cost("simt", runtime, chips), replace(numbers.overheads("simt", runtime), two_batches=True))
    e = evaluate(graph, group, WORKLOAD, *rates)
    layout, live = group.layouts(), np.flatnonzero(e.reason == 0)
    wide = live[(np.asarray(layout.tp * layout.dp) > np.asarray(group.device().domain))[live]]
    assert len(live) > 200
    assert len(wide) > 3  # over a network, in two halves
    for i in (*live[::97], *wide[::3]):
        alone = evaluate(graph, group.take(np.array([i])), WORKLOAD, *rates)
        for name in NUMBERS:
            found, expected = getattr(e.prediction, name)[i], getattr(alone.prediction, name)[0]
            assert np.allclose(found, expected, rtol=1e-9, equal_nan=True), (i, name)


def test_no_more_stages_than_hold_the_model_twice_over_are_tried() -> None:
    e = priced(DENSE, Limits(max_devices=64))
    layout, stages = e.group.layouts(), np.asarray(e.group.layouts().pp)
    fits = np.isin(e.reason, [0, REASONS.index(Reason.STAGES)])
    for i in np.flatnonzero(fits):
        same = fits & (e.group.which == e.group.which[i])
        for degree in ("tp", "dp", "ep"):
            columns = np.broadcast_to(np.asarray(layout.part(degree)), stages.shape)
            same = same & (columns == columns[i])
        assert (e.reason[i] == 0) == (stages[i] <= max(4.0, 2.0 * stages[same].min())), i


def test_reasons_are_those_of_the_rules() -> None:
    e = priced(LARGE, Limits(max_devices=64))
    seen = {REASONS[code] for code in e.reason}
    assert seen >= {Reason.OK, Reason.MEMORY}
    for i, code in enumerate(e.reason):
        layout, d = layout_of(e, i), e.group.deployments[e.group.which[i]]
        rule = check_layout(LARGE, layout)
        if rule is not Reason.OK:
            assert REASONS[code] is rule
        elif REASONS[code] is Reason.STAGES:
            assert layout.pp > 4
        elif layout.tp * layout.dp > d.device.domain:
            assert REASONS[code] is Reason.DOMAIN
        else:
            room = np.asarray(e.memory.cache_bytes)[i, 0] >= layout.pp * np.asarray(e.memory.sequence_bytes)[i, 0]
            assert REASONS[code] is (Reason.OK if room else Reason.MEMORY)


def test_refused_candidates_have_no_figures() -> None:
    e = priced(LARGE)
    dead = e.reason != 0
    assert dead.any()
    assert not dead.all()
    assert np.isnan(e.prediction.tpot_s[dead]).all()
    assert np.isfinite(e.prediction.tpot_s[e.allowed]).all()
    assert e.allowed[~dead][:, 0].all()
    assert not e.allowed[dead].any()


def test_batches_are_allowed_that_fit_in_memory_and_runtime() -> None:
    e = priced(LARGE)
    live = e.reason == 0
    held = e.prediction.resident
    with np.errstate(invalid="ignore"):
        fits = (held <= np.asarray(e.memory.running(e.group.layouts(trailing=1).pp))) & (held <= 64)
    fits[:, 0] |= live  # of a plan that fits: as many as have room
    shares = e.allowed.all(axis=1)  # of the most that has room, where the grid has few loads with less
    assert 0 < shares.sum() < live.sum()
    assert np.array_equal(e.allowed[~shares], (fits & live[:, None])[~shares])
    rates = e.prediction.requests_per_s[shares]
    assert np.allclose(np.diff(rates, axis=1), rates[:, :1], rtol=1e-3)
    assert e.allowed[live][:, 0].all()
    assert e.plans == e.allowed.size == len(e.reason) * len(e.prediction.tpot_s[0])


def test_a_pipeline_needs_a_sequence_for_each_stage() -> None:
    # room for one long sequence on each of four stages, not for four
    d = deployment("l4")
    workload = Workload(prompt_tokens=300_000, output_tokens=100)
    for task, reason in (("serve", Reason.MEMORY), ("local", Reason.OK)):
        e = evaluate(DENSE, Group.single(d, Layout(pp=4.0)), replace(workload, task=task), *RATES)  # type: ignore[arg-type]
        assert float(np.asarray(e.memory.sequences).item()) == 1
        assert REASONS[e.reason[0]] is reason


UNKNOWN = float("nan")


def unusual(**changes: float) -> Deployment:
    d = DEPLOYMENTS[0]
    return replace(d, device=replace(d.device, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("deployment_", "layout", "reason"),
    [
        (unusual(memory_bytes=UNKNOWN), Layout(), Reason.NO_MEMORY_FIGURE),
        (unusual(memory_bytes_per_s=UNKNOWN), Layout(), Reason.NO_MEMORY_FIGURE),
        (unusual(domain=4.0), Layout(8.0), Reason.DOMAIN),
        (unusual(domain=4.0), Layout(4.0, 2.0), Reason.OK),
        (unusual(domain=4.0, scaleout_bytes_per_s=UNKNOWN), Layout(4.0, 2.0), Reason.DOMAIN),
        (unusual(domain=1.0, link_bytes_per_s=UNKNOWN, scaleout_bytes_per_s=UNKNOWN), Layout(pp=2.0), Reason.DOMAIN),
        (unusual(memory_bytes=16e9), Layout(), Reason.MEMORY),
    ],
)
def test_what_a_chip_cannot_do(deployment_: Deployment, layout: Layout, reason: Reason) -> None:
    e = evaluate(DENSE, Group.single(deployment_, layout), WORKLOAD, *RATES)
    assert REASONS[e.reason[0]] is reason


def test_the_grid_is_that_of_the_service_model() -> None:
    group = Group.single(DEPLOYMENTS[0], Layout(2.0))
    e = evaluate(DENSE, group, WORKLOAD, *RATES)
    grid = loads(DENSE, group, WORKLOAD).over_batches()
    assert np.array_equal(e.prediction.tpot_s, grid.tpot_s, equal_nan=True)
    assert np.array_equal(e.engines_at(np.array([0])).limit, np.array([64.0]))


def test_a_pipeline_that_is_barely_filled_promises_no_more_than_has_room() -> None:
    """One sequence for each of four stages: even the smallest batch would have more in flight."""
    group = Group.single(deployment("l4"), Layout(pp=4.0))
    workload = Workload(prompt_tokens=80_000, output_tokens=2000)
    e = evaluate(DENSE, group, workload, *RATES)
    assert REASONS[e.reason[0]] is Reason.OK
    room = float(np.asarray(e.memory.running(4.0)).item())
    assert 4 <= room < 8
    assert e.prediction.resident[0, 0] <= room * (1 + 1e-6)
    rate = e.prediction.requests_per_s[0, :1]
    carried = loads(DENSE, group, workload).open(rate[None, :])
    assert carried.requests_per_s[0, 0] == pytest.approx(rate[0], rel=0.1)


def test_a_group_without_a_legal_candidate_is_priced_to_nothing() -> None:
    e = evaluate(LARGE, Group.single(deployment("l4"), Layout()), WORKLOAD, *RATES)
    assert REASONS[e.reason[0]] is Reason.MEMORY
    assert not e.allowed.any()
    assert np.isnan(e.prediction.tpot_s).all()
