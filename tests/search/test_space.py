"""The candidates: which layouts are tried, and that each is tried once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from toys import CHIPS, DENSE, DEPLOYMENTS, LARGE, MIXTURE, deployment

from chipwise.catalog.chips import get_chip
from chipwise.catalog.runtime import get_runtime
from chipwise.cost.device import Device
from chipwise.search.space import Deployment, Limits, candidates, layouts_for, smallest_layouts

Row = tuple[int, int, int, int]


def rows_of(graph, d: Deployment, limits: Limits) -> set[Row]:  # type: ignore[no-untyped-def]
    rows = list(layouts_for(graph, d, limits))
    assert len(rows) == len(set(rows)), "no layout twice"
    return set(rows)


def test_layouts_of_a_dense_model() -> None:
    rows = rows_of(DENSE, DEPLOYMENTS[0], Limits(max_devices=8))
    expected = {(tp, pp, 1, 1) for tp in (1, 2, 4, 8) for pp in range(1, 9) if tp * pp <= 8}
    assert rows == expected


def test_a_mixture_adds_replicas_and_expert_parallelism() -> None:
    rows = rows_of(MIXTURE, DEPLOYMENTS[0], Limits(max_devices=4))
    for tp, pp, dp, ep in rows:
        assert tp * dp * pp <= 4
        assert ep in (1, tp * dp)
    assert {(1, 1, 4, 4), (2, 1, 2, 4), (4, 1, 1, 4), (4, 1, 1, 1), (1, 4, 1, 1)} <= rows


def test_tensor_parallelism_stays_inside_the_domain() -> None:
    rows = rows_of(LARGE, DEPLOYMENTS[0], Limits(max_devices=64))
    assert max(tp * dp for tp, _, dp, _ in rows) == 8
    assert max(tp * pp * dp for tp, pp, dp, _ in rows) == 64


def test_stages_leave_the_domain_only_over_a_network() -> None:
    d = DEPLOYMENTS[0]
    alone = replace(d, device=replace(d.device, scaleout_bytes_per_s=float("nan")))
    assert max(tp * pp for tp, pp, _, _ in rows_of(LARGE, alone, Limits())) == 8


def test_no_more_stages_than_layers() -> None:
    assert max(pp for _, pp, _, _ in rows_of(DENSE, DEPLOYMENTS[0], Limits(max_devices=512))) == 32


def test_packages_are_taken_whole() -> None:
    chip, runtime = get_chip("mi250x"), get_runtime("vllm")
    d = Deployment(chip, Device.of(chip), runtime, runtime.policies_on(chip))
    rows = rows_of(DENSE, d, Limits(max_devices=64, max_chips=2))
    assert {tp * pp for tp, pp, _, _ in rows} == {2, 4}


def test_a_runtime_without_a_kind_of_parallelism_is_not_asked_for_it() -> None:
    d = DEPLOYMENTS[0]
    plain = replace(d, runtime=replace(d.runtime, features=frozenset({"pp"})))
    assert {(tp, dp, ep) for tp, _, dp, ep in rows_of(MIXTURE, plain, Limits())} == {(1, 1, 1)}


def test_what_the_user_has_limits_a_kind_of_chip() -> None:
    limits = Limits(have={"l4": 2})
    assert max(tp * pp for tp, pp, _, _ in rows_of(DENSE, deployment("l4"), limits)) == 2
    assert rows_of(DENSE, DEPLOYMENTS[0], limits) == set(), "and there are none of the others"
    assert (limits.chips("l4"), limits.chips("h100-sxm5-80gb")) == (2, 0)
    assert Limits().chips("l4") == np.inf
    assert Limits(max_chips=3, have={"l4": 8}).chips("l4") == 3


@pytest.mark.parametrize("graph", [DENSE, MIXTURE], ids=["dense", "mixture"])
def test_every_layout_of_every_deployment_is_tried_once(graph) -> None:  # type: ignore[no-untyped-def]
    other = replace(deployment("h200-sxm-141gb"), runtime=get_runtime("sglang"))
    wider = deployment("mi300x", max_sequences=128)
    everything = (*DEPLOYMENTS, other, wider)
    limits = Limits(max_devices=16)
    tried: Counter[tuple[str, Row]] = Counter()
    groups = list(candidates(graph, everything, limits))
    for group in groups:
        formulas = {(d.device.family, d.runtime.id, d.policies) for d in group.deployments}
        assert len(formulas) == 1
        columns = np.stack([np.asarray(group.layout.part(p)) for p in ("tp", "pp", "dp", "ep")], axis=1)
        for index, row in zip(group.which, columns.astype(int).tolist(), strict=True):
            tried[group.deployments[index].chip.id, tuple(row)] += 1
    assert len(groups) == 3, "one for the three chips alike, one for each of the others"
    expected = {(d.chip.id, row) for d in everything for row in layouts_for(graph, d, limits)}
    assert tried == Counter(expected)


def test_columns_keep_their_places() -> None:
    (group,) = candidates(DENSE, DEPLOYMENTS, Limits(max_devices=4))
    assert group.layouts(trailing=3).tp.shape == (len(group.which), 1, 1, 1)  # type: ignore[union-attr]
    bandwidth = np.asarray(group.device(trailing=1).memory_bytes_per_s)[:, 0]
    alone = [DEPLOYMENTS[i].device.memory_bytes_per_s for i in group.which]
    assert bandwidth.tolist() == alone
    assert {d.chip.id for d in group.deployments} == set(CHIPS)


def test_the_smallest_come_first() -> None:
    rows = [(2, 2, 1, 1), (4, 1, 1, 1), (1, 1, 1, 1), (1, 2, 1, 1), (2, 1, 1, 1)]
    assert smallest_layouts(rows) == [(1, 1, 1, 1), (2, 1, 1, 1), (1, 2, 1, 1), (4, 1, 1, 1), (2, 2, 1, 1)]
