"""The search answers nothing slower than what one can type, and its bound leaves the best layout in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels_h100 import KERNELS

from chipwise.api.train_input import check_layout
from chipwise.catalog.preferences import preferences
from chipwise.errors import UsageError
from chipwise.parallel.layout import REASONS, Reason
from chipwise.parallel.pipeline import most_virtual
from chipwise.predict.training.dims import plain
from chipwise.predict.training.memory import MemoryRates
from chipwise.predict.training.values import Cluster, Recipe, TrainRates
from chipwise.search import training
from chipwise.search.training import TrainJob, best, evaluate, layouts, search
from chipwise.search.training_space import TrainerRules

H100 = Cluster(989e12, 989e12, 80e9, 3.35e12, 450e9, 8.0, 50e9)
SLICE = replace(H100, domain=256.0, link_bytes_per_s=90e9, memory_bytes=32e9)

jobs = st.builds(
    lambda layers, hidden, batch, seq, machine, schedules: TrainJob(
        plain(layers, hidden, hidden // 128, 4 * hidden, 128256, tied=False),
        machine,
        Recipe(),
        TrainRates(),
        MemoryRates(),
        KERNELS,
        batch,
        seq,
        software=TrainerRules(schedules),
    ),
    st.sampled_from([7, 24, 35, 61, 94, 126]),
    st.sampled_from([1024, 3072, 8192, 16384]),
    st.sampled_from([24, 32, 100, 512]),
    st.sampled_from([1024, 8192, 65536]),
    st.sampled_from([H100, SLICE]),
    st.sampled_from([("1f1b", "interleaved"), ("gpipe", "interleaved"), ("1f1b", "zero-bubble", "zb-v")]),
)
degrees = {name: st.sampled_from([1, 2, 3, 4, 6, 7, 8, 12, 16, 32]) for name in ("tp", "pp", "cp", "dp", "vp")}
pins = st.fixed_dictionaries(
    {},
    optional={
        **degrees,
        "micro_batch": st.sampled_from([1, 2, 3, 8]),
        "zero": st.sampled_from([0, 1, 2, 3]),
        "shard": st.sampled_from([2, 4, 8]),
        "schedule": st.sampled_from(["1f1b", "interleaved", "gpipe", "zb-v"]),
        "recompute": st.sampled_from(["none", "selective", "half", "full", "3%", "30%", "61%"]),
        "offload": st.sampled_from([0, 1]),
    },
)
counts = st.sampled_from([4, 8, 24, 56, 64, 112])


@settings(max_examples=150, deadline=None)
@given(jobs, pins, counts)
def test_no_legal_layout_that_one_can_type_is_faster(job: TrainJob, fixed: dict[str, int | str], devices: int) -> None:
    try:
        check_layout(fixed, job, devices)
    except UsageError:
        return
    capacity = float(job.cluster.memory_bytes)
    typed = search(job, devices, fixed)
    chosen = best(job, typed)
    if not len(chosen) or typed.memory_bytes[chosen[0]] > preferences().training_aim * capacity:
        return
    free = search(job, devices)
    assert free.seconds[best(job, free)[0]] <= typed.seconds[chosen[0]] * (1.0 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(jobs, counts)
def test_the_bound_leaves_the_best_in(job: TrainJob, devices: int) -> None:
    every, bounded = evaluate(job, layouts(job, devices)), search(job, devices)
    first, again = best(job, every), best(job, bounded)
    assert len(first) == len(again)
    if len(first):
        assert bounded.seconds[again[0]] <= every.seconds[first[0]]


def test_ways_to_keep_memory_share_their_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a layout's kernels depends on what only memory and the update see."""
    made, dense = [], plain(24, 3072, 24, 12288, 128256, tied=False)
    kept = training.frames
    monkeypatch.setattr(training, "frames", lambda *given: made.append(given) or kept(*given))
    job = TrainJob(
        dense, H100, Recipe(), TrainRates(), MemoryRates(), replace(KERNELS), 64, 4096, software=TrainerRules()
    )
    lean = replace(job, recipe=replace(job.recipe, master=0.0, moments=4.0, gradient=2.0, loss=0.75))
    first, second = search(job, 8), search(lean, 8)
    assert len(made) == 1
    assert second.memory_bytes.min() < first.memory_bytes.min()
    search(replace(job, global_batch=128), 8)
    assert len(made) == 2
    alone = search(replace(lean, kernels=replace(KERNELS)), 8)
    assert (alone.seconds[best(lean, alone)[0]], len(alone)) == (second.seconds[best(lean, second)[0]], len(second))


@pytest.mark.parametrize(
    ("layers", "stages", "most"), [(126, 8, 16), (126, 16, 8), (61, 8, 7), (94, 16, 6), (32, 4, 8), (32, 32, 1)]
)
def test_embedding_and_head_count_as_layers_of_virtual_stages(layers: int, stages: int, most: int) -> None:
    assert int(most_virtual(layers, stages)) == most


def test_what_is_typed_follows_the_rule_of_the_search() -> None:
    """126 layers on 8 stages: 16 virtual stages, as embedding and head fill the last two places, and no 17."""
    job = TrainJob(
        plain(126, 16384, 128, 53248, 128256), H100, Recipe(), TrainRates(), MemoryRates(), KERNELS, 64, 8192
    )
    for v in range(2, 17):
        check_layout({"pp": 8, "vp": v}, job, 512)
        priced = search(job, 512, {"tp": 8, "pp": 8, "vp": v})
        assert REASONS.index(Reason.VIRTUAL) not in priced.reason
        assert np.all(np.asarray(priced.spread.vp) == v)
    with pytest.raises(UsageError, match="at most 16"):
        check_layout({"pp": 8, "vp": 17}, job, 512)
    with pytest.raises(UsageError, match="pp at most 64"):
        check_layout({"pp": 126, "schedule": "interleaved"}, job, 126)


@settings(max_examples=20, deadline=None)
@given(jobs, counts)
def test_k_and_v_are_gathered_where_that_is_faster(job: TrainJob, devices: int) -> None:
    spread = layouts(job, devices)
    ways = [evaluate(job, replace(spread, gather=np.full(len(spread.tp), how))).seconds for how in (0.0, 1.0)]  # type: ignore[arg-type]
    assert evaluate(job, spread).seconds == pytest.approx(np.minimum(*ways))
