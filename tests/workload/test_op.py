"""Operators against worked examples and against counting one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.workload.formats import FORMATS
from chipwise.workload.op import attention, causal_pairs, gemm, lookup, pointwise, scan, stacked
from chipwise.workload.step import decode, prefill

lengths = st.integers(1, 24)


def pairs_by_counting(q: int, kv: int, window: int) -> int:
    """Keys that each new token sees: those at positions up to its own, the last `window` of them."""
    return sum(min(position, window) if window else position for position in range(kv - q + 1, kv + 1))


@given(lengths, st.integers(0, 40), st.integers(0, 50))
def test_causal_pairs_are_those_that_one_counts(q: int, before: int, window: int) -> None:
    assert causal_pairs(q, q + before, window) == pairs_by_counting(q, q + before, window)


def test_causal_pairs_of_arrays() -> None:
    q, kv = np.array([1.0, 4.0, 7.0]), np.array([9.0, 9.0, 7.0])
    window = np.array([0.0, 3.0, 100.0])
    expected = [pairs_by_counting(int(a), int(b), int(w)) for a, b, w in zip(q, kv, window, strict=True)]
    assert causal_pairs(q, kv, window).tolist() == expected


def test_a_window_beyond_the_context_limits_nothing() -> None:
    assert causal_pairs(5, 11, 11) == causal_pairs(5, 11)
    assert causal_pairs(5, 11, 10) == causal_pairs(5, 11) - 1


def test_gemm_of_sixteen_bit() -> None:
    op = gemm(10, 300, 200)
    assert op.flops == 2 * 10 * 300 * 200
    assert op.weight_bytes == 2 * 300 * 200
    assert op.activation_bytes == 2 * (10 * 200 + 10 * 300)
    assert op.bytes == op.weight_bytes + op.activation_bytes
    assert (op.compute, op.weight) == ("bf16", "bf16")


def test_gemm_of_a_batch_is_that_many() -> None:
    one, four = gemm(10, 30, 20), gemm(10, 30, 20, batch=4)
    assert (four.flops, four.bytes) == (4 * one.flops, 4 * one.bytes)


def test_low_precision_weights_under_sixteen_bit_activations_run_in_sixteen_bit() -> None:
    op = gemm(1, 256, 1024, FORMATS["int4"], FORMATS["bf16"])
    assert op.compute == "bf16"
    assert op.weight == "int4"
    # half a byte per element, and 20 bits per group of 128
    assert op.weight_bytes == 256 * 1024 / 2 + 256 * 1024 / 128 * 20 / 8
    assert gemm(1, 256, 1024, FORMATS["fp8"], FORMATS["fp8"]).compute == "fp8"


def test_eight_bit_activations_are_read_in_eight_bit_and_written_in_sixteen() -> None:
    op = gemm(10, 300, 200, FORMATS["fp8"], FORMATS["fp8"])
    assert op.activation_bytes == 10 * 200 * 1 + 10 * 300 * 2
    assert op.weight_bytes == 300 * 200 + 4, "one 32-bit scale per matrix"


def test_a_decode_step_of_a_known_model() -> None:
    # Llama 3 70B: 64 heads of 128 over 8 key/value heads; 4,096 tokens visible
    op = attention(32, 1, 4096, 64, 8, 128)
    assert op.flops == 2 * 32 * 4096 * 64 * (128 + 128)
    assert op.kv_bytes == 32 * 4096 * 8 * (128 + 128) * 2
    assert op.activation_bytes == 32 * 64 * (128 + 128) * 2


def test_a_prompt_attends_causally() -> None:
    op = attention(1, 1000, 1000, 64, 8, 128)
    assert op.flops == 2 * (1000 * 1001 / 2) * 64 * 256
    full = attention(1, 1000, 1000, 64, 8, 128, causal=False)
    assert full.flops == 2 * 1000 * 1000 * 64 * 256
    assert full.kv_bytes == op.kv_bytes


@given(lengths, st.integers(0, 30), st.integers(1, 40))
def test_a_window_reads_the_keys_that_any_query_sees(q: int, before: int, window: int) -> None:
    kv = q + before
    seen = {k for i in range(kv - q + 1, kv + 1) for k in range(max(1, i - window + 1), i + 1)}
    op = attention(1, q, kv, 2, 1, 4, window=window)
    assert op.kv_bytes == len(seen) * (4 + 4) * 2
    assert op.flops == 2 * pairs_by_counting(q, kv, window) * 2 * 8


def test_a_selection_limits_work_per_query_and_reads_at_most_all() -> None:
    long = attention(1, 1, 50_000, 128, 1, 576, value_dim=512, latent=True, top_k=2048)
    assert long.flops == 2 * 2048 * 128 * (576 + 512)
    assert long.kv_bytes == 2048 * 576 * 2
    short = attention(1, 1, 1000, 128, 1, 576, value_dim=512, latent=True, top_k=2048)
    assert short.kv_bytes == 1000 * 576 * 2
    prompt = attention(1, 8, 10_000, 128, 1, 576, value_dim=512, latent=True, top_k=2048)
    assert prompt.kv_bytes == 10_000 * 576 * 2, "queries choose apart, but never more than there is"


def test_a_latent_is_read_once_for_keys_and_values() -> None:
    latent = attention(1, 1, 100, 128, 1, 576, value_dim=512, latent=True)
    assert latent.kv_bytes == 100 * 576 * 2


def test_an_eight_bit_cache_is_half_the_traffic() -> None:
    wide = attention(4, 1, 1000, 64, 8, 128)
    narrow = attention(4, 1, 1000, 64, 8, 128, FORMATS["fp8"])
    assert narrow.kv_bytes == wide.kv_bytes / 2
    assert narrow.flops == wide.flops
    assert narrow.compute == "bf16"


def test_an_empty_segment_has_no_work() -> None:
    op = attention(0.0, 512, 512, 64, 8, 128)
    assert (op.flops, op.bytes) == (0, 0)


def test_the_small_operators() -> None:
    assert pointwise(1000, 3.0).bytes == 6000
    found = lookup(7, 4096)
    assert (found.flops, found.weight_bytes, found.activation_bytes) == (0, 7 * 4096 * 2, 7 * 4096 * 2)
    state = scan(3, 5, 8, 100.0, 1e6, 64)
    assert state.flops == 3 * 5 * 100
    assert state.kv_bytes == 2 * 3 * 1e6, "read and written once, however many tokens"
    assert state.activation_bytes == 3 * 5 * 64 * 2


def test_arrays_equal_one_by_one() -> None:
    m, kv, batch = np.array([1.0, 17.0, 4096.0]), np.array([1.0, 100.0, 9000.0]), np.array([1.0, 2.0, 3.0])
    many, seen = gemm(m, 512, 256), attention(batch, 1, kv, 16, 4, 64, window=128)
    for i in range(3):
        assert many.flops[i] == gemm(m[i], 512, 256).flops
        assert many.bytes[i] == gemm(m[i], 512, 256).bytes
        one = attention(batch[i], 1, kv[i], 16, 4, 64, window=128)
        assert (seen.flops[i], seen.bytes[i]) == (one.flops, one.bytes)


def test_steps_count_tokens_and_logit_rows() -> None:
    step = decode(8, 1000) + prefill(2, 500, cached=100)
    assert step.tokens == 8 + 1000
    assert step.sequences == 10
    first, second = step.segments
    assert (first.q, first.kv) == (1, 1001), "the new token sees itself"
    assert (second.q, second.kv) == (500, 600)
    with pytest.raises(AttributeError):
        step.segments = ()  # type: ignore[misc]


def test_stacked_operators_are_each_as_alone() -> None:
    several = [gemm(10.0, 200.0, np.array([300.0, 64.0])), gemm(np.array([7.0, 9.0]), 5.0, 3.0, batch=2.0)]
    one = stacked(several)
    assert np.shape(one.flops) == (2, 2)
    for i, op in enumerate(several):
        for name in ("flops", "weight_bytes", "activation_bytes"):
            assert np.array_equal(getattr(one, name)[i], np.broadcast_to(getattr(op, name), 2))
        assert all(np.array_equal(one.dims[name][i], np.broadcast_to(op.dims[name], 2)) for name in op.dims)
