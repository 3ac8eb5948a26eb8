"""Layouts that are tried: pipeline schedules, offload, context parallelism; and that the best of them is the best."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from kernels_h100 import KERNELS
from verdicts import verdict

from chipwise.catalog.preferences import preferences
from chipwise.cost.price import price
from chipwise.errors import UsageError
from chipwise.numeric import take
from chipwise.parallel.layout import REASONS, Reason
from chipwise.predict.training.dims import plain
from chipwise.predict.training.memory import MemoryRates, fullest
from chipwise.predict.training.operators import work_of
from chipwise.predict.training.values import Cluster, Recipe, TrainRates, TrainSpread
from chipwise.search.training import TrainJob, best, evaluate, layouts, search
from chipwise.search.training_space import RECOMPUTE, SCHEDULES, TrainerRules, variants
from chipwise.workload.formats import FORMATS
from chipwise.workload.op import gemm

H100 = Cluster(989e12, 989e12, 80e9, 3.35e12, 450e9, 8.0, 50e9)
SMALL = TrainJob(plain(24, 2048, 16, 8192, 51200), H100, Recipe(), TrainRates(), MemoryRates(), KERNELS, 32, 2048)
USUAL = Recipe()
DEEP = TrainSpread(tp=4.0, pp=8.0, dp=2.0, global_batch=64.0, seq=4096.0, shard=2.0)
WIDE = plain(80, 8192, 64, 28672, 128256, kv_heads=8, gated=True)


def seconds(s: TrainSpread, recipe: Recipe = USUAL) -> float:
    return float(replace(SMALL, network=WIDE, recipe=recipe).step(s).total_s)


def held(s: TrainSpread, recipe: Recipe = USUAL) -> float:
    return float(np.asarray(fullest(WIDE, s, recipe, MemoryRates()).total_bytes))


@pytest.mark.parametrize("devices", [2, 8])
def test_never_worse_than_exhaustive_enumeration(devices: int) -> None:
    """Nested loops over every degree and choice find nothing faster; some of them are priced one at a time too."""
    every = []
    degrees = [d for d in range(1, devices + 1) if devices % d == 0]
    for tp, pp in itertools.product(degrees, degrees):
        if devices % (tp * pp):
            continue
        dp = devices // (tp * pp)
        cuts = [(1.0, dp), (2.0, dp), (3.0, dp)] if pp == 1 else [(1.0, dp)]
        cuts = [(0.0, 1.0)] if dp == 1 else cuts
        shapes = [(1.0, 1.0, 1.0)]
        if pp > 1:
            virtual = {k: [k.virtual] if k.virtual else list(range(2, 25)) for k in SCHEDULES.values()}
            shapes = [(float(v), k.bubble, k.in_flight) for k, vs in virtual.items() for v in vs]
        every += [
            TrainSpread(
                tp=float(tp), pp=float(pp), vp=float(vp), bubble=bubble, in_flight=flight, dp=float(dp),
                micro_batch=float(micro), global_batch=32.0, seq=2048.0, zero=zero, shard=float(shard),
                full=full, selective=core, offload=home,
            )
            for (vp, bubble, flight), micro, (zero, shard), home, (full, core) in itertools.product(
                shapes, (1, 2, 4, 8, 16, 32), cuts, (0.0, 1.0), RECOMPUTE.values()
            )
        ]  # fmt: skip
    varied = ("tp", "pp", "vp", "bubble", "in_flight", "dp", "micro_batch", "zero", "shard", "full", "selective",
              "offload")  # fmt: skip
    columns = {name: np.array([getattr(s, name) for s in every]) for name in varied}
    enumerated = evaluate(SMALL, replace(every[0], **columns))
    legal = enumerated.reason == REASONS.index(Reason.OK)
    for i in np.random.default_rng(1).integers(0, len(every), 40):
        assert (verdict(SMALL, every[i]) is Reason.OK) == legal[i]
        if np.isfinite(enumerated.seconds[i]):  # what is no plan is not timed
            assert enumerated.seconds[i] == pytest.approx(float(SMALL.step(every[i]).total_s), rel=1e-12)
        else:
            assert not legal[i] or enumerated.memory_bytes[i] > preferences().training_aim * 80e9
    fits = legal & (enumerated.memory_bytes <= preferences().training_aim * 80e9)
    priced = evaluate(SMALL, layouts(SMALL, devices))
    assert priced.seconds[best(SMALL, priced)[0]] <= enumerated.seconds[fits].min() * (1.0 + 1e-12)


def test_odd_counts_and_batches_have_layouts_of_their_own() -> None:
    """Twelve heads on six devices, thirty sequences: tp 3 and 6, micro-batches of 3 and 5 are tried and legal."""
    job = replace(SMALL, network=plain(10, 1536, 12, 6144, 51200), global_batch=30)
    priced = evaluate(job, layouts(job, 6))
    legal = priced.reason == 0
    s = take(priced.spread, np.flatnonzero(legal))
    assert {1.0, 2.0, 3.0, 6.0} <= set(np.asarray(s.tp).tolist())
    assert {3.0, 5.0, 15.0} <= set(np.asarray(s.micro_batch).tolist())
    assert 5.0 in set(np.asarray(s.vp).tolist())


def test_stages_that_rounding_evens_out_are_interleaved_too() -> None:
    """126 layers in 16 stages of 8, two places short: Llama 3 405B ran so, interleaved."""
    deep = replace(SMALL, network=plain(126, 2048, 16, 8192, 51200), global_batch=64)
    vp = np.unique(np.asarray(layouts(deep, 16, {"pp": 16}).vp))
    assert {1.0, 2.0, 4.0, 8.0} == set(vp.tolist())


def test_gradients_are_cut_in_one_stage() -> None:
    s = layouts(SMALL, 8)
    two = np.asarray(s.zero) == 2.0
    assert two.any()
    assert np.all(np.asarray(s.pp)[two] == 1.0)
    assert np.asarray(s.micro_batches)[two].max() > 1.0
    many = TrainSpread(dp=8.0, global_batch=32.0, seq=2048.0, zero=2.0, shard=8.0)
    assert verdict(SMALL, replace(many, micro_batch=4.0)) is Reason.OK
    staged = replace(many, dp=4.0, pp=2.0, shard=4.0)
    assert verdict(SMALL, staged) is Reason.GRADIENTS


def test_context_ranks_divide_the_sequence_and_experts_the_ranks() -> None:
    assert verdict(SMALL, TrainSpread(cp=3.0, global_batch=32.0, seq=2048.0, zero=0.0)) is Reason.CONTEXT
    moe = replace(SMALL.network, experts=8.0, top_k=2.0, expert_ffn=4096.0, moe_share=1.0, dense_share=0.0)
    spread = TrainSpread(ep=8.0, dp=4.0, global_batch=32.0, seq=2048.0, shard=4.0)
    assert verdict(replace(SMALL, network=moe), spread) is Reason.EP_GROUP


def test_schedules_trade_bubble_against_memory() -> None:
    plain_one = seconds(DEEP)
    deep = {
        name: replace(DEEP, vp=float(k.virtual or 2), bubble=k.bubble, in_flight=k.in_flight)
        for name, k in SCHEDULES.items()
    }
    assert seconds(deep["gpipe"]) == pytest.approx(plain_one)
    assert held(deep["gpipe"]) > held(deep["1f1b"])
    assert seconds(deep["zb-v"]) < seconds(deep["zero-bubble"]) < plain_one
    assert seconds(deep["interleaved"]) < plain_one
    assert held(deep["interleaved"]) > held(deep["1f1b"])


def test_a_schedule_that_the_software_lacks_is_masked() -> None:
    job = replace(SMALL, software=TrainerRules(("1f1b",)))
    s = TrainSpread(pp=2.0, global_batch=32.0, seq=2048.0, bubble=1.0 / 3.0, zero=0.0)
    assert verdict(job, s) is Reason.SCHEDULE
    assert verdict(SMALL, s) is Reason.OK
    assert verdict(job, replace(s, bubble=1.0)) is Reason.OK


def test_pins_keep_schedule_recomputation_and_offload() -> None:
    spread = layouts(SMALL, 8, {"pp": 2, "schedule": "zero-bubble", "recompute": "full", "offload": 1})
    assert len(np.asarray(spread.tp))
    assert np.all(np.asarray(spread.bubble) == SCHEDULES["zero-bubble"].bubble)
    assert np.all(np.asarray(spread.full) == 1.0)
    assert np.all(np.asarray(spread.offload) == 1.0)


def test_the_optimiser_in_host_memory_frees_the_device_and_takes_longer() -> None:
    away = replace(DEEP, offload=1.0)
    assert held(away) < held(DEEP)
    assert seconds(away) > seconds(DEEP)


def test_selective_recomputation_lies_between_none_and_full() -> None:
    some, whole = replace(DEEP, selective=1.0), replace(DEEP, full=1.0)
    assert seconds(DEEP) < seconds(some) < seconds(whole)
    assert held(DEEP) > held(some) > held(whole)


def test_a_ring_hides_behind_long_sequences_and_a_gather_behind_nothing() -> None:
    long = replace(DEEP, pp=1.0, cp=8.0, seq=131072.0)
    assert seconds(long) < seconds(replace(long, gather=1.0), replace(Recipe(), fused=0.0))


def test_frozen_weights_of_four_bits_take_less_memory_and_more_time() -> None:
    lora = replace(DEEP, adapter=0.01, zero=0.0)
    nf4 = replace(Recipe(), frozen_bytes=0.53)
    assert held(lora, nf4) < held(lora)
    assert seconds(lora, nf4) > seconds(lora)


def test_layouts_of_one_device_have_no_pipeline() -> None:
    one = take(layouts(SMALL, 1), 0)
    assert float(one.pp) == float(one.vp) == 1.0


def test_only_inputs_of_layers_that_run_again_wait_in_host_memory_where_software_keeps_those() -> None:
    """Unsloth sends the inputs of layers away and runs every layer again; others send what layers save."""
    kinds = {(): set(), ("none",): {0.0}, ("full",): {1.0}, ("selective", "full"): {0.0, 1.0}}
    for kind, shares in kinds.items():
        ways = variants({}, software=TrainerRules(stashes=kind))
        assert set(ways[2, ways[1] == 1.0].tolist()) == shares
    small = replace(SMALL, cluster=replace(H100, memory_bytes=16e9), software=TrainerRules(stashes=("full",)))
    found = search(small, 1)
    stashed = np.asarray(found.spread.stash) > 0
    assert stashed.any()
    assert (np.asarray(found.spread.full)[stashed] == 1.0).all()


def test_one_expert_on_a_rank_multiplies_as_a_feed_forward_does() -> None:
    """8 x 4,096 tokens choose 2 of 8 experts: 8,192 rows a rank, in two products like any others."""
    one = replace(WIDE, dense_share=0.0, moe_share=1.0, experts=8.0, top_k=2.0, expert_ffn=28672.0)
    routed = work_of(one, TrainSpread(ep=8.0, dp=8.0, global_batch=8.0, seq=4096.0), USUAL, KERNELS).routed_s
    bf16 = FORMATS["bf16"]
    both = (gemm(8192, 57344, 8192, bf16, bf16), gemm(8192, 8192, 28672, bf16, bf16))
    alone = sum(float(np.asarray(price(op, KERNELS.device, KERNELS.numbers).total_s)) for op in both)
    assert float(routed) == pytest.approx(alone)


def test_what_a_trainer_cannot_keep_on_its_host_is_refused_when_pinned() -> None:
    with pytest.raises(UsageError, match="with recompute full alone"):
        variants({"stash": 1, "recompute": "none"}, software=TrainerRules(stashes=("full",)))


def test_only_what_a_trainer_can_run_again_is_tried() -> None:
    """MaxText runs all layers again or what is cheap, never none; shares of the layers are Megatron's."""
    small = replace(SMALL, cluster=replace(H100, memory_bytes=30e9))
    for kinds in (("selective", "full"), ("none", "full"), ("none", "shares", "full")):
        found = search(replace(small, software=TrainerRules(recompute=kinds)), 1)
        full, cheap = np.asarray(found.spread.full), np.asarray(found.spread.selective)
        run = {"none": (full + cheap == 0), "selective": cheap > 0, "full": full == 1.0}
        run["shares"] = (full > 0) & (full < 1)
        assert {name for name, where in run.items() if where.any()} <= {*kinds}


def test_weights_are_cut_over_all_ranks_where_the_trainer_knows_no_groups() -> None:
    job = replace(SMALL, software=TrainerRules(hybrid=False, staged=False))
    s = layouts(job, 16)
    cut = np.asarray(s.zero) == 3
    assert cut.any()
    assert (np.asarray(s.shard)[cut] == np.asarray(s.dp * s.cp)[cut]).all()
    assert (np.asarray(s.pp)[cut] == 1).all()
