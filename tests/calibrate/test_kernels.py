"""The kernel suite end to end: made-up rows, then the truth table where it is at hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from chipwise.calibrate.effects import Effects
from chipwise.calibrate.kernel_rows import groups_of, kernel_rows, known
from chipwise.calibrate.kernel_table import OPS, asked_of
from chipwise.calibrate.kernels import calibrate_kernels, price_kernels
from chipwise.calibrate.priors import PRIORS
from chipwise.catalog.chips import load_chips
from truth import published

TEXT = (
    "chip", "op", "kernel", "framework", "dtype", "kv_dtype", "causal", "distribution", "timing", "notes",
)  # fmt: skip
NUMBERS = (
    "m", "n", "k", "batch", "heads", "kv_heads", "head_dim", "q_len", "kv_len", "window", "tokens", "hidden",
    "inter", "experts", "topk", "tp", "ep", "bytes", "ranks",
)  # fmt: skip


def columns(**row: Any) -> dict[str, NDArray[Any]]:
    """One row as columns; what is not given is blank."""
    text = {name: np.array([str(row.get(name, ""))]) for name in TEXT}
    numbers = {name: np.array([float(row.get(name, np.nan))]) for name in NUMBERS}
    return text | numbers


H100 = {"chip": "h100-sxm5-80gb", "framework": "vllm", "dtype": "bfloat16", "timing": "cuda-graph replay"}
EXAMPLES = {
    "gemm": columns(op="gemm", m=4096, n=8192, k=8192, **H100),
    "batched_gemm": columns(op="batched_gemm", batch=16, m=128, n=512, k=128, **H100),
    "attention_prefill": columns(
        op="attention_prefill", batch=4, q_len=4096, kv_len=4096, heads=32, kv_heads=8, head_dim=128,
        causal=True, kernel="vllm_flash_attn_fa3", **H100,
    ),
    "attention_decode": columns(
        op="attention_decode", batch=64, q_len=1, kv_len=4096, heads=32, kv_heads=8, head_dim=128,
        causal=True, kernel="vllm_flash_attn_fa3", **H100,
    ),
    "mla_prefill": columns(op="mla_prefill", batch=1, q_len=4096, kv_len=4096, heads=128, causal=True, **H100),
    "mla_decode": columns(op="mla_decode", batch=64, q_len=1, kv_len=4096, heads=128, causal=True, **H100),
    "moe": columns(
        op="moe", tokens=512, hidden=4096, inter=1536, experts=128, topk=8, tp=1, ep=1,
        distribution="power_law_1.2", kernel="vllm_fused_moe", **H100,
    ),
    "layernorm": columns(op="layernorm", m=4096, n=8192, bytes=134e6, **H100),
    "softmax": columns(op="softmax", m=4096, n=8192, bytes=134e6, **H100),
    "elementwise": columns(op="elementwise", m=4096, n=8192, bytes=134e6, kernel="add", **H100),
    "allreduce": columns(op="allreduce", bytes=2**26, ranks=8, kernel="NCCL", **H100),
    "allgather": columns(op="allgather", bytes=2**26, ranks=8, kernel="NCCL", **H100),
    "reducescatter": columns(op="reducescatter", bytes=2**26, ranks=8, kernel="NCCL", **H100),
    "alltoall": columns(op="alltoall", bytes=2**26, ranks=8, kernel="NCCL", **H100),
    "p2p": columns(op="p2p", bytes=2**26, ranks=2, **H100),
}  # fmt: skip


@pytest.mark.parametrize("op", OPS)
def test_priors_alone_price_every_operator(op: str) -> None:
    """Without a single row the answer is sane: at most twice the roofline (experts three times), never below it."""
    chips = load_chips()
    row = asked_of(EXAMPLES[op])
    assert known(row, chips).all()
    group = str(groups_of(row)[0])
    seconds = float(kernel_rows(row, chips, group).predict(Effects(PRIORS[group], {}))[0])
    floor = {
        "gemm": 2 * 4096 * 8192 * 8192 / 989.4e12,
        "attention_prefill": 4 * 4 * 32 * 128 * 4096 * 4097 / 2 / 989.4e12,
        "attention_decode": 64 * 4096 * 8 * 512 / 3.35e12,
        "moe": 3 * 2 * 128 * 0.5 * 4096 * 1536 / 3.35e12,
        "allreduce": 2**26 * 1.75 / 450e9,
        "allgather": 2**26 * 0.875 / 450e9,
        "layernorm": 134e6 / 3.35e12,
    }.get(op)
    assert 1e-6 < seconds < 1e-1
    if floor is not None:
        assert floor < seconds < (3 if op == "moe" else 2) * floor


def test_every_operator_has_a_formula_with_priors() -> None:
    found = {op: str(groups_of(asked_of(row))[0]) for op, row in EXAMPLES.items()}
    assert set(found) == set(OPS)
    assert set(found.values()) == set(PRIORS)


def test_other_families_and_unknown_chips_are_left_out() -> None:
    chips = load_chips()
    for chip in ("tpu-v6e", "", "no-such-chip"):
        assert not known(asked_of(EXAMPLES["gemm"] | {"chip": np.array([chip])}), chips).any()
    times = price_kernels(asked_of(EXAMPLES["gemm"] | {"chip": np.array(["tpu-v6e"])}), chips, {})
    assert np.isnan(times.mid_s).all()


def test_unseen_shapes_of_the_truth_table() -> None:
    """Half of a sample of the shapes is fitted, the other half priced; coarse bounds, as few rows keep few numbers."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the parquet extra")
    names = [*TEXT, *NUMBERS, "latency_us", "chip_known"]
    table = parquet.read_table(published("kernels.parquet"), columns=names)
    table = table.take(np.flatnonzero(np.random.default_rng(1).random(table.num_rows) < 0.12))
    full: dict[str, NDArray[Any]] = {}
    for name in names:
        values = table[name].to_pylist()
        full[name] = (
            np.array(["" if v is None else str(v) for v in values])
            if name in TEXT
            else np.array([np.nan if v is None else float(v) for v in values])
        )
    shape = np.zeros(len(full["op"]))
    for i, name in enumerate(("m", "n", "k", "batch", "heads", "q_len", "kv_len", "tokens", "hidden", "bytes")):
        shape = shape + np.nan_to_num(full[name]) * (0.123456789 + 0.1 * i)
    unseen = np.modf(shape * 0.6180339887)[0] < 0.5
    train = {k: v[~unseen] for k, v in full.items()}
    test = {k: v[unseen] for k, v in full.items()}
    chips = load_chips()
    times = price_kernels(asked_of(test), chips, calibrate_kernels(asked_of(train), chips))
    answered = ~np.isnan(times.mid_s)
    measured = test["latency_us"] * 1e-6
    error = np.abs(times.mid_s / measured - 1)
    inside = (times.low_s < measured) & (measured < times.high_s)
    assert answered[test["chip_known"] == 1].mean() > 0.98
    bounds = {"gemm": (30e-6, 0.10), "attention_prefill": (50e-6, 0.16), "attention_decode": (50e-6, 0.17),
              "moe": (50e-6, 0.23), "layernorm": (0, 0.16), "elementwise": (0, 0.16)}  # fmt: skip
    for op, (least_s, median) in bounds.items():
        counted = answered & (test["op"] == op) & (measured >= least_s)
        assert np.median(error[counted]) < median, op
    assert 0.7 < inside[answered].mean() < 0.9
