"""A training step is one: of a module that was traced, of a network by its layers, of a language model by its sizes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chipwise import estimate, step, train
from chipwise.api.media import answer
from chipwise.api.media_asked import Sampling
from chipwise.api.placing import Terms
from chipwise.errors import UnknownNameError, UsageError
from chipwise.report.media import MediaPlan
from chipwise.workload.backward import LOSS, LOSS_PASSES, backward, update
from chipwise.workload.media.layers import PRECISIONS, Layers, join
from chipwise.workload.media.text import TextDecoder
from chipwise.workload.program import Program

SEQ, VOCAB, WIDTH = 2048, 32000, 2048
SIZES = f"transformer:layers=16,hidden={WIDTH},heads=16,kv_heads=16,ffn=5632,vocab={VOCAB}"
FILE = """
import torch
from torch import nn
from torch.nn import functional as F


class Layer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.one, self.two, self.heads = nn.RMSNorm(width), nn.RMSNorm(width), heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def turned(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    def forward(self, x, cos, sin):
        b, s, w = x.shape
        y = self.one(x)
        q, k, v = (m(y).view(b, s, self.heads, -1).transpose(1, 2) for m in (self.q, self.k, self.v))
        z = F.scaled_dot_product_attention(
            self.turned(q, cos, sin), self.turned(k, cos, sin), v, is_causal=True
        )
        x = x + self.o(z.transpose(1, 2).reshape(b, s, w))
        y = self.two(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    def __init__(self, layers=16, width=2048, heads=16, inner=5632, vocab=32000):
        super().__init__()
        self.table, self.size = nn.Embedding(vocab, width), width // heads
        self.layers = nn.ModuleList(Layer(width, heads, inner) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, vocab, bias=False)

    def states(self, ids):
        x = self.table(ids)
        places = torch.arange(ids.shape[1], dtype=torch.float32)[:, None]
        turns = places / 10000 ** (torch.arange(0, self.size, 2) / self.size)
        turns = torch.cat((turns, turns), -1)
        cos, sin = turns.cos().to(x.dtype), turns.sin().to(x.dtype)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.norm(x)

    def forward(self, ids, labels):
        logits = self.head(self.states(ids))
        return F.cross_entropy(logits.float().view(-1, logits.shape[-1]), labels.view(-1))


def model():
    ids = torch.zeros(1, 2048, dtype=torch.long)
    return Decoder().to(torch.bfloat16), ids, ids
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A decoder of 0.95 B parameters as its user wrote it."""
    pytest.importorskip("torch")
    file = tmp_path_factory.mktemp("own") / "decoder.py"
    Path(file).write_text(FILE)
    return f"{file}:model"


def _traced(path: str, **asked: object) -> MediaPlan:
    plan = estimate(path, chip="h100", training=True, **asked).plans[0]
    assert isinstance(plan, MediaPlan)
    return plan


def _by_layers() -> MediaPlan:
    layers = Layers(1, PRECISIONS["bf16"], training=True)
    net = TextDecoder(width=WIDTH, layers=16, heads=16, kv_heads=16, head_dim=128, ffn=5632, vocab=VOCAB).block(
        layers, SEQ
    )
    tensor = layers.bytes(SEQ, VOCAB)
    loss = replace(layers.pointwise(SEQ, VOCAB, LOSS_PASSES, LOSS), peak=2.0 * tensor, kept=tensor)
    whole = join(net, layers.linear(SEQ, WIDTH, VOCAB, False, "logits"), loss)
    pipeline = update(backward(Program("by layers", (whole.stage("step"),))), "adamw")
    asked = Sampling(training=True)
    return answer(pipeline, Terms(runtime="nemo", precision="bf16"), chips=["h100"], asked=asked).plans[0]


def test_three_ways_to_ask_for_one_step_agree(path: str) -> None:
    planned = train(SIZES, have="1xh100", global_batch=1, seq=SEQ, trainer="nemo").plans[0]
    for plan in (_traced(path, runtime="nemo", settings="optimizer=adamw"), _by_layers()):
        assert plan.latency_s.mid == pytest.approx(planned.step_s.mid, rel=0.03)
        assert plan.memory_bytes == pytest.approx(planned.memory_bytes, rel=0.03)
        assert plan.memory["activations"] == pytest.approx(planned.memory["activations"], rel=0.03)
        assert plan.latency_s.basis == planned.step_s.basis


@pytest.mark.parametrize("trainer", ["pytorch-fsdp", "deepspeed"])
def test_trainers_of_any_module_train_a_file_as_they_train_its_sizes(trainer: str, path: str) -> None:
    planned = train(SIZES, have="1xh100", global_batch=1, seq=SEQ, trainer=trainer).plans[0]
    plan = _traced(path, runtime=trainer, settings="optimizer=adamw")
    assert plan.latency_s.mid == pytest.approx(planned.step_s.mid, rel=0.03)
    assert plan.memory_bytes == pytest.approx(planned.memory_bytes, rel=0.03)
    assert plan.latency_s.basis == planned.step_s.basis


def test_an_optimizer_costs_time_and_memory(path: str) -> None:
    for runtime in ("nemo", "eager"):
        plans = {
            name: _traced(path, runtime=runtime, settings=f"optimizer={name}")
            for name in ("adamw", "adamw-8bit", "none")
        }
        seconds = [plan.latency_s.mid for plan in plans.values()]
        held = [plan.memory_bytes for plan in plans.values()]
        assert seconds == sorted(seconds, reverse=True)
        assert held == sorted(held, reverse=True)
        assert len(set(seconds)) == len(set(held)) == 3
        assert _traced(path, runtime=runtime).latency_s == plans["adamw"].latency_s


def test_more_copies_of_a_trainer_share_the_batch_and_exchange_gradients(path: str) -> None:
    pytest.importorskip("torch")
    layers = Layers(8, PRECISIONS["bf16"], training=True)
    net = TextDecoder(width=WIDTH, layers=16, heads=16, kv_heads=16, head_dim=128, ffn=5632, vocab=VOCAB)
    pipeline = update(backward(Program("eight", (net.block(layers, SEQ).stage("step"),), batch=8)), "adamw")
    terms = Terms(runtime="nemo", precision="bf16")
    one, eight = (
        answer(pipeline, terms, chips=["h100"], asked=Sampling(training=True, spread=spread)).plans[0]
        for spread in (Sampling().spread, replace(Sampling().spread, dp=8))
    )
    assert one.latency_s.mid / 8.0 < eight.latency_s.mid < one.latency_s.mid
    assert "gradients" in eight.stages
    assert "gradients" not in one.stages
    assert eight.memory_bytes < one.memory_bytes


PASSES = """

class Reads(Decoder):
    def forward(self, ids):
        return self.head(self.states(ids)[:, -1:])


def tokens_512():
    return Reads().to(torch.bfloat16), torch.zeros(1, 512, dtype=torch.long)


def tokens_2048():
    return Reads().to(torch.bfloat16), torch.zeros(1, 2048, dtype=torch.long)
"""


@pytest.mark.parametrize("chip", ["h100", "mi300x"])
def test_a_traced_pass_is_the_pass_over_a_prompt_of_software_that_serves(chip: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "reads.py"
    file.write_text(FILE + PASSES)
    served = step(SIZES, chip=chip, runtime="vllm")
    for tokens in (512, 2048):
        plan = estimate(f"{file}:tokens_{tokens}", chip=chip, runtime="vllm").plans[0]
        assert isinstance(plan, MediaPlan)
        assert plan.latency_s.mid == pytest.approx(float(served.seconds(0, 0, tokens)), rel=0.03)
        assert "without what a server adds" in plan.note


def test_a_step_whose_batch_nobody_said_fills_the_chip() -> None:
    """Images of a classifier on eight cards: 22,060 a second as Lambda measured them, not one at a time; a part of a
    batch each where it is shared."""
    found = estimate(model="resnet50", chip="8xh100", training=True).plans[0]
    assert found.batch >= 64
    assert found.samples_per_s.low < 22_060 < found.samples_per_s.high
    assert found.samples_per_s.mid == pytest.approx(22_060, rel=0.15)
    shared = estimate(model="flux-dev", chip="8xh100", training=True, settings="recompute=full", spread="dp=8,fsdp=1")
    assert shared.plans[0].batch >= 8
    assert estimate(model="resnet50", chip="h100", training=True, batch=1).plans[0].batch == 1


def test_a_run_of_a_network_names_the_step_that_is_priced() -> None:
    with pytest.raises(UsageError, match="chipwise estimate resnet50 --chip 8xh100 --training"):
        train("microsoft/resnet-50", chips="h100", counts="8")
    with pytest.raises(UnknownNameError, match="unknown model"):
        train("no-such-model", chips="h100", counts="8")
