from __future__ import annotations

from pathlib import Path

import pytest

from chipwise.errors import UnknownNameError, UsageError
from chipwise.measure.protocol import Timing
from chipwise.measure.task import designed
from chipwise.measure.timed import TimedMachine, TimedTask
from command_line import Run

torch = pytest.importorskip("torch", reason="needs the extra torch")

from chipwise.measure.torch_model import Example, examples_of, time_calls  # noqa: E402
from chipwise.tracing.module import Calls, trace_calls  # noqa: E402

SOURCE = """
import torch
from torch import nn


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 192)
        self.last = nn.Linear(64, 32, bias=False)

    def forward(self, x):
        q, k, v = self.first(x).view(2, 16, 3, 4, 16).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.last(nn.functional.gelu(y.transpose(1, 2).reshape(2, 16, 64)))


def small():
    return Small(), {"prefill": torch.randn(2, 16, 64), "decode": (torch.randn(2, 16, 64),)}


def images():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU()), (torch.randn(2, 3, 8, 8),)


def branches():
    class Odd(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    return Odd(), torch.randn(3)


def by_name():
    return Small(), {"x": torch.randn(2, 16, 64)}


def nothing():
    return 3


def broken():
    raise RuntimeError("no weights here")
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return str(path)


def traced(e: Example) -> Calls:
    return trace_calls(e.module, e.arguments, e.keywords, training=e.training)


def flops(e: Example, kind: str) -> float:
    return sum(n * float(op.flops) for n, op in traced(e).ops if op.kind == kind)


def test_operators_without_data_are_those_of_the_run(file: str) -> None:
    prefill, decode, train = examples_of(f"{file}:small", train=True)
    assert [e.name for e in (prefill, decode, train)] == ["prefill", "decode", "train"]
    for example in (prefill, train):
        assert [op.name for _, op in traced(example).ops] == [n for n, _ in time_calls(example, lambda: None)]
    seen = traced(prefill)
    kinds = [op.kind for _, op in seen.ops]
    assert (kinds.count("gemm"), kinds.count("attention")) == (2, 1)
    assert flops(prefill, "gemm") == 2 * 32 * (64 * 192 + 64 * 32)
    assert flops(prefill, "attention") == 4 * 2 * 4 * 16 * (16 * 17 / 2)
    assert seen.weight_bytes == 4 * (64 * 192 + 192 + 64 * 32)
    assert seen.peak_bytes > seen.weight_bytes + 4 * 2 * 16 * 64


def test_a_training_step_is_about_three_forward_passes(file: str) -> None:
    prefill, _, train = examples_of(f"{file}:small", train=True)
    assert 2.0 < flops(train, "gemm") / flops(prefill, "gemm") <= 3.0
    assert traced(train).peak_bytes > traced(prefill).peak_bytes


def test_a_convolution(file: str) -> None:
    (example,) = examples_of(f"{file}:images")
    assert flops(example, "conv") == 2 * (2 * 8 * 8) * 8 * (3 * 9)


def test_keywords_of_the_module_are_no_passes(file: str) -> None:
    (example,) = examples_of(f"{file}:by_name")
    assert (example.name, example.arguments, list(example.keywords)) == ("forward", (), ["x"])
    assert [op.name for _, op in traced(example).ops] == [n for n, _ in time_calls(example, lambda: None)]


@pytest.mark.parametrize(
    ("name", "says"), [("nothing", "gives int"), ("broken", "no weights here"), ("missing", "unknown function")]
)
def test_what_gives_no_module(name: str, says: str, file: str) -> None:
    with pytest.raises((UsageError, UnknownNameError), match=says):
        examples_of(f"{file}:{name}")
    with pytest.raises(UsageError, match=r"nowhere\.py"):
        examples_of("nowhere.py:f")


def test_the_command(file: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHIPWISE_DATA_DIR", str(tmp_path))
    assert "no machine was measured" in run("measure", "model", f"{file}:small").refused(2)
    tasks = [
        *designed("copy", "fp32", 18, 1e8),
        *designed("gemm", "fp32", 20, 1e8),
        *designed("attention", "fp32", 20, 1e8),
    ]
    timed = tuple(TimedTask(t, Timing(1e-6 + t.bytes / 1e10 + float(t.op.flops) / 1e10, 1.0, 0.0, 3)) for t in tasks)
    machine = tmp_path / "machine.json"
    machine.write_text(TimedMachine("torch", "torch x", "cpu", "x", 1, "2026-01-01", timed).to_json())
    ran = run(
        "measure", "model", f"{file}:small", "--machine", str(machine), "--train", "--budget", "5s", "--format", "json"
    )
    report = ran.json
    assert [p["name"] for p in report["passes"]] == ["prefill", "decode", "train"]
    for p in report["passes"]:
        assert p["measured_s"] > 0.0
        assert sum(o["predicted_s"] for o in p["operators"]) == pytest.approx(p["predicted_s"])
    shown = run("measure", "model", f"{file}:small", "--machine", str(machine), "--budget", "5s").out
    assert "addmm" in shown
    odd = run("measure", "model", f"{file}:branches", "--machine", str(machine))
    assert "depend on the data" in odd.err
