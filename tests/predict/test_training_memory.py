"""Memory of pipeline stages: what each schedule makes them hold, and that the fullest one is what counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.predict.training.dims import adapter_share, plain
from chipwise.predict.training.memory import (
    MemoryRates,
    activation_bytes,
    fullest,
    held_on,
    host_bytes,
    memory_use,
    stage_memory,
)
from chipwise.predict.training.values import Adapters, Recipe, TrainSpread
from chipwise.search.training_space import SCHEDULES

GPT = plain(32, 4096, 32, 16384, 51200, tied=False)
DEEP = TrainSpread(tp=2.0, pp=4.0, dp=2.0, micro_batch=1.0, global_batch=32.0, seq=2048.0, zero=1.0, shard=2.0)
RAW = MemoryRates(0.0, 1.0, 1.0)
WIDE = replace(GPT, vocab=512000.0)


def scheduled(name: str) -> TrainSpread:
    k = SCHEDULES[name]
    return replace(DEEP, vp=float(k.virtual or 2), bubble=k.bubble, in_flight=k.in_flight)


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("1f1b", (4.0, 3.0, 2.0, 1.0)),
        ("zero-bubble", (4.0, 3.0, 2.0, 1.0)),
        ("interleaved", (5.5, 4.5, 3.5, 2.5)),
        ("gpipe", (16.0, 16.0, 16.0, 16.0)),
        ("zb-v", (5.5, 5.5, 5.5, 5.5)),  # as much as interleaved: an upper bound
    ],
)
def test_stages_hold_what_their_schedule_warms_up_with(name: str, held: tuple[float, ...]) -> None:
    """Four stages, sixteen micro-batches; interleaved in halves: 11, 9, 7 and 5 chunks of two."""
    s = scheduled(name)
    assert [float(np.asarray(held_on(float(i), s))) for i in range(4)] == list(held)


def test_no_stage_holds_more_micro_batches_than_there_are() -> None:
    few = replace(scheduled("interleaved"), global_batch=4.0)
    assert float(np.asarray(held_on(0.0, few))) == 2.0


@pytest.mark.parametrize("network", [GPT, WIDE], ids=["gpt", "large vocabulary"])
@pytest.mark.parametrize("name", list(SCHEDULES))
def test_the_fullest_stage_counts(name: str, network: object) -> None:
    s, recipe, rates = scheduled(name), Recipe(), MemoryRates()
    each = [float(np.asarray(m.total_bytes)) for m in stage_memory(network, s, recipe, rates)]  # type: ignore[arg-type]
    top = float(np.asarray(fullest(network, s, recipe, rates).total_bytes))  # type: ignore[arg-type]
    assert len(each) == 4
    assert max(each) == pytest.approx(top)


def test_plain_schedules_and_single_stages_are_as_fitted() -> None:
    rates = MemoryRates()
    for s in (DEEP, replace(DEEP, pp=1.0), replace(DEEP, bubble=1.0 / 3.0)):
        usual = memory_use(GPT, s, Recipe(), rates).total_bytes
        assert float(np.asarray(fullest(GPT, s, Recipe(), rates).total_bytes)) == float(np.asarray(usual))


def test_logits_join_what_the_last_stage_holds() -> None:
    """GPipe: all sixteen micro-batches of eight layers, and 6 bytes for each of 2,048 tokens and entry, halved."""
    s = scheduled("gpipe")
    last = stage_memory(GPT, s, Recipe(), RAW)[-1]
    first = stage_memory(GPT, s, Recipe(), RAW)[0]
    assert float(np.asarray(last.of("activations"))) == pytest.approx(float(np.asarray(first.of("activations"))))
    assert float(np.asarray(last.of("logits"))) == 6.0 * 2048.0 * 51200.0 / 2.0
    assert float(np.asarray(first.of("logits"))) == 0.0


def test_a_v_begins_and_ends_on_its_first_stage() -> None:
    first, *inner = stage_memory(GPT, scheduled("zb-v"), Recipe(), RAW)
    table = 51200.0 * 4096.0 / 2.0
    gap = float(np.asarray(first.of("weights"))) - float(np.asarray(inner[0].of("weights")))
    assert gap == pytest.approx(2.0 * 2.0 * table)
    assert float(np.asarray(first.of("logits"))) == 6.0 * 2048.0 * 51200.0 / 2.0
    assert all(float(np.asarray(m.of("logits"))) == 0.0 for m in inner)


def test_arrays_of_layouts_are_as_one_by_one() -> None:
    every = [scheduled(name) for name in SCHEDULES]
    many = replace(
        DEEP,
        vp=np.array([s.vp for s in every]),
        bubble=np.array([s.bubble for s in every]),
        in_flight=np.array([s.in_flight for s in every]),
    )
    together = fullest(WIDE, many, Recipe(), MemoryRates()).total_bytes
    alone = [float(np.asarray(fullest(WIDE, s, Recipe(), MemoryRates()).total_bytes)) for s in every]
    assert np.asarray(together) == pytest.approx(alone)


def held(s: TrainSpread, **policy: float) -> float:
    return float(np.asarray(memory_use(GPT, s, Recipe(**policy), RAW).total_bytes))


def test_policies_take_what_they_keep() -> None:
    """32 layers of 4096 with two tables: P parameters, of which one device keeps all."""
    one = TrainSpread(global_batch=1.0, seq=128.0, zero=0.0)
    p = float(GPT.params)
    assert held(one) - held(one, moments=2.03) == pytest.approx((8.0 - 2.03) * p)
    assert held(one) - held(one, gradient=2.0) == pytest.approx(2.0 * p)
    assert held(one) - held(one, master=0.0) == pytest.approx(4.0 * p)
    freed = held(one) - held(one, released=1.0)
    tables = 2.0 * float(GPT.table_params)
    assert freed == pytest.approx(4.0 * (p - float(GPT.layer_params) - tables))
    assert held(one) - held(one, loss=0.75) == pytest.approx(5.25 * 128 * 51200)


def test_what_waits_in_host_memory_leaves_the_device() -> None:
    """FSDP sends weights and gradients along with the optimiser's state: 16 bytes per parameter of a shard."""
    s = TrainSpread(dp=8.0, global_batch=8.0, seq=128.0, zero=3.0, shard=8.0)
    away = replace(s, offload=1.0)
    p = float(GPT.params) / 8.0
    assert held(s) - held(away) == pytest.approx(16.0 * p)
    assert float(np.asarray(host_bytes(GPT, away, Recipe()))) == pytest.approx(18.0 * p)
    deep = replace(DEEP, stash=1.0)
    here, left = (float(np.asarray(activation_bytes(GPT, x, Recipe()))) for x in (DEEP, deep))
    assert here - left == pytest.approx(float(np.asarray(host_bytes(GPT, deep, Recipe()))))


def test_frozen_tables_stay_in_16_bit() -> None:
    """NF4 leaves embedding and head alone: 0.53 bytes for each parameter of layers, 2 for those of tables."""
    s = TrainSpread(global_batch=1.0, seq=128.0, zero=0.0, adapter=0.01)
    use = memory_use(GPT, s, Recipe(frozen_bytes=0.53), RAW)
    tables = 2.0 * float(GPT.table_params)
    assert float(np.asarray(use.of("weights"))) == pytest.approx(0.53 * (float(GPT.params) - tables) + 2.0 * tables)


def test_adapters_have_the_parameters_that_peft_counts() -> None:
    """Rank 16 on all linear layers of Llama-3.1-8B: 41,943,040 (PEFT); on attention 13,631,488."""
    llama = plain(32, 4096, 32, 14336, 128256, kv_heads=8, gated=True, tied=False)
    p = float(llama.params)
    assert adapter_share(llama, Adapters()) * p == pytest.approx(41_943_040)
    assert adapter_share(llama, Adapters(targets="attention")) * p == pytest.approx(13_631_488)
