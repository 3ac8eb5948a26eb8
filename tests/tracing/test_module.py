"""Modules of PyTorch: operations, parameters and memory against torch's own counts, masks, autocast, refusals."""

from __future__ import annotations

import gc
import statistics
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from networks import NETWORKS, Attention, Decoder, Gated  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

import chipwise as cw  # noqa: E402
from chipwise.errors import UsageError  # noqa: E402
from chipwise.tracing.module import build_and_trace  # noqa: E402
from chipwise.tracing.sources import pipeline_of  # noqa: E402
from chipwise.workload.backward import update  # noqa: E402
from chipwise.workload.program import Program  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

MULTIPLIED = ("gemm", "conv", "attention")


def products(p: Program, *kinds: str) -> float:
    return sum(n * float(op.flops) for s in p.stages for n, op in s.ops if op.kind in (kinds or MULTIPLIED))


def counted(module: nn.Module, args: Any, *, training: bool) -> float:
    """What torch counts; of attention it counts every pair."""
    module.train(training)
    with FlopCounterMode(display=False) as counter, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = module(*args)
        if training:
            out.sum().backward()
    return float(counter.get_total_flops())


def allocated(build: Callable[[], Any], *, training: bool) -> float:
    """Most bytes that torch holds on this CPU, weights and inputs included."""
    torch.manual_seed(0)
    module, args = build()
    module.train(training)
    if training:
        module(*args).sum().backward()
        module.zero_grad(set_to_none=True)
    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found, torch.set_grad_enabled(training):
        out = module(*args)
        if training:
            loss = out.sum()
            del out
            loss.backward()
            del loss
    events = [e for e in found.profiler.kineto_results.events() if e.name() == "[memory]"]
    live = most = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        live += event.nbytes()
        most = max(most, live)
    held = [*module.parameters(), *module.buffers(), *args]
    return most + sum(t.numel() * t.element_size() for t in held)


WITHOUT_ATTENTION = (
    "layers", "gated feed-forward", "residual network", "VGG", "depthwise", "U-Net", "1-D convolutions",
    "3-D convolutions", "transposed", "recommender", "GRU", "experts", "upsampling", "autoencoder",
)  # fmt: skip


GROUPED = ("depthwise", "3-D convolutions")  # whose gradients torch counts as if they had no groups


@pytest.mark.parametrize("name", GROUPED)
def test_gradients_of_grouped_convolutions_cost_twice_the_forward_pass(name: str) -> None:
    module, args = NETWORKS[name]()
    forward, step = (cw.trace(module, *args, training=t) for t in (False, True))
    first = next(float(op.flops) for _, op in forward.stages[0].ops if op.kind == "conv")  # no gradient of its input
    assert products(step) == pytest.approx(3 * products(forward) - first)


@pytest.mark.parametrize(
    ("name", "training"), [(n, t) for n in WITHOUT_ATTENTION for t in (False, True) if not (t and n in GROUPED)]
)
def test_operations_and_parameters_are_torchs(name: str, training: bool) -> None:
    module, args = NETWORKS[name]()
    found = cw.trace(module, *args, training=training)
    assert found.parameters == sum(p.numel() for p in module.parameters())
    assert products(found) == pytest.approx(counted(module, args, training=training), rel=1e-9)


def test_peak_memory_is_what_torch_allocates() -> None:
    """The median over thirty networks; what is left are buffers inside of torch's own kernels."""
    assert len(NETWORKS) >= 30
    for training in (False, True):
        errors = []
        for build in NETWORKS.values():
            module, args = build()
            found = cw.trace(module, *args, training=training).settings["peak_bytes"]
            errors.append(abs(found / allocated(build, training=training) - 1.0))
        assert statistics.median(errors) <= 0.07
        assert statistics.quantiles(errors, n=10)[-1] <= 0.5


@pytest.mark.parametrize("length", [16, 64])
def test_causal_attention_counts_the_pairs_that_are_seen_and_a_mask_is_looked_at(length: int) -> None:
    x = torch.randn(2, length, 128)
    whole = products(cw.trace(Attention(128, 4), x), "attention")
    assert whole == 4.0 * 2 * 4 * length * length * 32
    seen = (length + 1) / (2 * length)
    assert products(cw.trace(Attention(128, 4, causal=True), x), "attention") == pytest.approx(seen * whole)

    class Windowed(nn.Module):
        def forward(self, q: torch.Tensor) -> torch.Tensor:
            i = torch.arange(q.shape[2])
            mask = (i[:, None] >= i) & (i[:, None] - i < 8)
            return functional.scaled_dot_product_attention(q, q, q, attn_mask=mask)

    q = torch.randn(2, 4, length, 32)
    pairs = sum(min(i + 1, 8) for i in range(length))
    assert products(cw.trace(Windowed(), q), "attention") == pytest.approx(whole * pairs / length**2)


def test_attention_in_training_has_seven_products_and_dropout_stays_in_its_kernel() -> None:
    x = torch.randn(2, 32, 128)
    for dropout in (0.0, 0.1):
        module = Attention(128, 4, causal=True, dropout=dropout)
        forward = products(cw.trace(module, x), "attention")
        assert products(cw.trace(module, x, training=True), "attention") == pytest.approx(3.5 * forward)


def test_tied_weights_count_once_and_layers_are_counted_not_repeated() -> None:
    ids = torch.randint(0, 1000, (2, 16))
    tied, untied = (cw.trace(Decoder(tied=t), ids) for t in (True, False))
    assert untied.parameters - tied.parameters == 256_000
    assert untied.weight_bytes - tied.weight_bytes == 4 * 256_000
    (up,) = [(n, op) for n, op in tied.stages[0].ops if op.name == "blocks.*.up"]
    assert up[0] == 4.0
    assert len(tied.stages[0].ops) == len(cw.trace(Decoder(layers=8), ids).stages[0].ops)


def test_autocast_multiplies_in_16_bits_and_keeps_weights_wide() -> None:
    class Mixed(nn.Module):
        def __init__(self, device: str) -> None:
            super().__init__()
            self.inner, self.device = Gated(), device

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.autocast(self.device, dtype=torch.bfloat16):
                return self.inner(self.inner(x))

    x = torch.randn(4, 16, 256)
    plain = cw.trace(nn.Sequential(module := Gated(), module), x)
    for device in ("cpu", "cuda"):  # also where there is no such device
        mixed = cw.trace(Mixed(device), x)
        assert mixed.weight_bytes == plain.weight_bytes
        assert {op.compute for _, op in mixed.stages[0].ops if op.kind == "gemm"} == {"bf16"}
        assert products(mixed) == products(plain)
    casts = [n * op.weight_bytes for n, op in mixed.stages[0].ops if op.kind == "pointwise" and op.weight_bytes]
    assert sum(casts) == pytest.approx(plain.weight_bytes, rel=0.02)  # cast once, though used twice


def test_fused_kernels_move_less_and_remember_their_launches() -> None:
    found = cw.trace(nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Hardtanh(), nn.Sigmoid()), torch.randn(32, 64))
    (op,) = [op for _, op in found.stages[0].ops if op.kind == "pointwise"]
    assert (op.launches, op.activation_bytes) == (3.0, 2 * 4 * 32 * 64)


def test_a_recurrent_layer_is_one_call_whose_steps_its_library_starts() -> None:
    steps = 16
    found = cw.trace(nn.LSTM(32, 64), torch.randn(steps, 4, 32))
    alone = cw.trace(nn.LSTMCell(32, 64), torch.randn(4, 32))
    launches, cell = (sum(n * op.launches for n, op in t.stages[0].ops) for t in (found, alone))
    assert launches < 0.2 * steps * cell
    assert products(found) == pytest.approx(steps * products(alone), rel=0.01)


def starts(p: Program) -> float:
    """Kernels that a framework starts for work on elements."""
    return sum(n * op.launches for stage in p.stages for n, op in stage.ops if op.kind == "pointwise")


def test_a_recurrent_layer_is_one_call_in_the_backward_pass_too() -> None:
    short, long = (cw.trace(nn.LSTM(32, 64), torch.randn(steps, 4, 32), training=True) for steps in (8, 32))
    assert starts(long) - starts(short) <= 32 - 8  # autograd adds the gradients of a step's two readers


@pytest.mark.parametrize("training", [False, True])
def test_what_a_gpu_computes_in_one_kernel_is_one(training: bool) -> None:
    class Own(nn.Module):
        """The norm, in the operators that it is made of."""

        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(256))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            wide = x.float()
            return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * self.weight

    x = torch.randn(64, 256, dtype=torch.bfloat16, requires_grad=training)
    made, own = (cw.trace(norm.bfloat16(), x, training=training) for norm in (nn.RMSNorm(256), Own()))
    if not training:
        assert (starts(made), starts(own)) == (1.0, 8.0)
        (_, op), (_, apart) = made.stages[0].ops[0], own.stages[0].ops[0]
        assert op.dims["unjoined"] == 1.0 < apart.dims["unjoined"]  # the same bytes where they are joined
        assert float(op.activation_bytes) == float(apart.activation_bytes) == 2 * 2 * 64 * 256
    assert starts(made) < starts(own) / 2


def test_without_a_compiler_every_call_moves_its_own_bytes() -> None:
    def model() -> tuple[nn.Module, torch.Tensor]:
        layers = [nn.Sequential(nn.SiLU(), nn.Tanh(), nn.Sigmoid()) for _ in range(4)]
        return nn.Sequential(*layers), torch.empty(4096, 8192, dtype=torch.bfloat16)

    eager, joined = (
        cw.estimate(cw.trace(*model()), chip="h100", runtime=runtime, evidence="none").plans[0].latency_s.mid
        for runtime in ("eager", "compile")
    )
    assert 2.0 < eager / joined < 12.0  # twelve passes for one, of which a compiler's take longer


def test_an_optimizer_keeps_moments_in_the_type_of_its_parameters() -> None:
    step = cw.trace(nn.Linear(64, 64, bias=False), torch.randn(8, 64), training=True)
    wide = update(step, "adamw")
    stage = replace(step.stages[0], weight_bytes=step.stages[0].weight_bytes / 2.0)
    narrow = update(replace(step, stages=(stage, *step.stages[1:])), "adamw")
    assert wide.settings["state_bytes"] == 64 * 64 * (4 + 8)
    assert narrow.settings["state_bytes"] == 64 * 64 * (2 + 4)
    moved = [float(p.stages[-1].ops[0][1].activation_bytes) for p in (wide, narrow)]
    assert moved == [64 * 64 * 28, 64 * 64 * 14]


def test_nothing_is_left_changed() -> None:
    module, args = NETWORKS["residual network"]()
    module.eval()
    before = {name: t.clone() for name, t in module.state_dict().items()}
    cw.trace(module, *args, training=True)
    assert not module.training
    assert all(torch.equal(before[name], t) for name, t in module.state_dict().items())
    assert all(p.grad is None and type(p) is nn.Parameter for p in module.parameters())
    assert module(*args).sum().isfinite()


def test_modules_on_meta_need_no_memory() -> None:
    with torch.device("meta"):
        module = nn.Sequential(*(nn.Linear(65_536, 65_536) for _ in range(8)))
    found = cw.trace(module, torch.empty(1, 65_536, device="meta"))
    assert found.weight_bytes == 4.0 * 8 * (65_536**2 + 65_536)


def test_values_that_depend_on_no_data_may_be_asked_for() -> None:
    class Sized(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rates = [r.item() for r in torch.linspace(0, 0.5, 3)]
            self.a = nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            mask = torch.ones(x.shape[0], dtype=torch.bool)
            rows = x[mask] if mask.all() else x[:1]
            return self.a(rows[torch.arange(2).nonzero()[:, 0]])

    assert products(cw.trace(Sized(), torch.randn(4, 8))) == 2 * 1 * 8 * 8


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.a(x)
        return y if y.sum() > 0 else -y


class Picking(Branching):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.a(x)
        return y[y > 0]


def test_what_cannot_be_traced_is_one_line_with_the_operator_and_the_next_step() -> None:
    x = torch.randn(4, 8)
    refused: list[tuple[nn.Module, torch.Tensor, str]] = [
        (Branching(), x, r"test_module\.py:\d+: .*(item|Boolean|is_nonzero).*torch\.where"),
        (Picking(), x, r"test_module\.py:\d+: .*depend on the data.*fixed size"),
        (nn.Linear(8, 8), torch.randn(4, 9), r"Linear: RuntimeError.*\[\[4, 9\]\].*shapes"),
    ]
    for module, example, match in refused:
        with pytest.raises(UsageError, match=match) as caught:
            cw.trace(module, example)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 600


def test_custom_operators_are_named() -> None:
    library = torch.library.Library("chipwise_test", "FRAGMENT")
    library.define("opaque(Tensor x) -> Tensor")
    library.impl("opaque", lambda x: x.clone(), "CPU")
    library.define("shaped(Tensor x) -> Tensor")
    library.impl("shaped", lambda x: x.clone(), "CPU")
    torch.library.register_fake("chipwise_test::shaped", torch.empty_like, lib=library)

    class Calls(nn.Module):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return getattr(torch.ops.chipwise_test, self.name)(x)

    with pytest.raises(UsageError, match=r"custom operator chipwise_test::opaque.*register_fake"):
        cw.trace(Calls("opaque"), torch.randn(4))
    told = cw.trace(Calls("shaped"), torch.randn(4))
    assert any("chipwise_test::shaped" in line for line in told.assumptions)
    assert told.stages[0].ops[0][1].bytes == 32.0


BUILD = """
import torch
from torch import nn
from torch.nn import functional
from torch.nn import Linear as Imported

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(50_000, 50_000)
    def forward(self, x):
        return self.a(x).relu()

def build_model():
    return Net().half(), torch.empty(2, 50_000, dtype=torch.half)

def with_keywords():
    return Net(), {"x": torch.empty(3, 50_000)}

def bare():
    return Net()

def nothing():
    return 7

def broken():
    raise KeyError("weights.pt")

def lacking():
    import a_package_that_nobody_has

def traced():
    import chipwise as cw
    return cw.trace(Net(), torch.empty(1, 50_000))
"""


@pytest.fixture
def code(tmp_path: Path) -> str:
    (tmp_path / "net.py").write_text(BUILD)
    return str(tmp_path / "net.py")


def test_a_function_of_a_file_builds_a_module_without_memory(code: str) -> None:
    found = pipeline_of(f"{code}:build_model")
    assert found is not None
    assert (found.batch, found.weight_bytes) == (2, 2.0 * 50_000 * 50_001)
    keywords = pipeline_of(f"{code}:with_keywords", training=True)
    assert keywords is not None
    assert (keywords.batch, keywords.trained, [s.name for s in keywords.stages]) == (3, True, ["forward", "backward"])
    composed = pipeline_of(f"{code}:traced")
    assert composed is not None
    assert composed.flops == pytest.approx(2.0 * 50_000**2, rel=1e-4)


@pytest.mark.parametrize(
    ("name", "match"),
    [
        (":bare", r"needs example arguments \(x\).*return \(module, x\)"),
        (":nothing", r"returned 7.*return a torch\.nn\.Module"),
        (":broken", r"broken: KeyError: 'weights\.pt'"),
        (":lacking", r"No module named 'a_package_that_nobody_has' \(install it"),
        (":Nett", r"unknown function.*did you mean Net"),
        ("", r"which function.*net\.py:build_model"),
    ],
)
def test_a_function_that_builds_none_is_one_line(code: str, name: str, match: str) -> None:
    with pytest.raises(cw.ChipwiseError, match=match) as caught:
        pipeline_of(code + name)
    assert "\n" not in str(caught.value)


def test_what_is_no_module_is_said_to_be_none() -> None:
    for wrong in ("net.py:build_model", 3):
        with pytest.raises(UsageError, match=r"not a torch\.nn\.Module"):
            cw.trace(wrong)


def test_an_encoder_layer_of_torch_is_traced_without_its_warnings() -> None:
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cw.trace(torch.nn.TransformerEncoder(layer, 2), torch.empty(2, 8, 64))
    products = 2 * 16 * (4 * 64 * 64 + 2 * 64 * 128)  # of 16 tokens with the matrices of a layer
    scores = 2 * 2 * 2 * 8 * 8 * 64  # of every token with the 8 of its own sequence, and back
    assert found.flops == pytest.approx(2 * (products + scores), rel=0.03)


def test_a_scripted_module_is_traced_as_the_module_it_was_made_of() -> None:
    plain = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that its scripts are deprecated
        scripted = torch.jit.script(plain)
    traced, expected = (cw.trace(m, torch.empty(2, 8)) for m in (nn.Sequential(scripted), nn.Sequential(plain)))
    assert (traced.flops, traced.parameters) == (expected.flops, expected.parameters)


def test_a_scripted_module_itself_is_traced() -> None:
    plain = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
    scripted = torch.jit.script(plain)
    found, expected = (cw.trace(m, torch.empty(1, 3, 9, 9)) for m in (scripted, plain))
    assert (products(found), found.parameters) == (products(expected), expected.parameters)


def test_of_a_data_parallel_module_one_copy_is_traced() -> None:
    plain = nn.Linear(8, 4)
    found = cw.trace(nn.DataParallel(plain), torch.empty(2, 8), training=True)
    assert products(found) == products(cw.trace(plain, torch.empty(2, 8), training=True))
    assert any("one copy" in line for line in found.assumptions)


def test_what_is_computed_again_reads_the_same_parameters() -> None:
    """A module that is built without memory: its parameters are no activations of the backward pass."""
    build, args = NETWORKS["checkpointed"], NETWORKS["checkpointed"]()[1]
    found = build_and_trace(lambda: (build()[0], *args), training=True, name="net")
    plain = cw.trace(*build()[:1], *args, training=True)
    assert found.settings["peak_bytes"] == pytest.approx(plain.settings["peak_bytes"], rel=1e-6)


def test_the_ctc_loss_is_traced_at_its_longest_target() -> None:
    class Recogniser(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(16, 20)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            lengths = torch.full((4,), 12), torch.full((4,), 5)
            scores = self.head(x).log_softmax(-1)
            return functional.ctc_loss(scores, torch.ones(4, 5, dtype=torch.long), *lengths)

    found = cw.trace(Recogniser(), torch.empty(12, 4, 16), training=True)
    assert products(found) == 2 * 2.0 * 48 * 16 * 20


def test_layers_that_are_dropped_at_random_are_kept() -> None:
    class Dropping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if torch.rand([]) < 0.1 else self.layer(x)

    found = cw.trace(Dropping(), torch.empty(2, 8), training=True)
    assert products(found) > 0
    assert any("drawn at random" in line for line in found.assumptions)


def test_keywords_that_a_module_does_not_take_are_named() -> None:
    with pytest.raises(UsageError, match="unexpected keyword argument 'strange'"):
        build_and_trace(
            lambda: (Attention(64, 2), {"x": torch.empty(1, 4, 64), "strange": 1}), training=False, name="net"
        )


def _sparse() -> nn.Module:
    module = nn.Linear(4, 4)
    module.register_buffer("held", torch.eye(4).to_sparse_csr())
    return module


class _Compiled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        from torch.nn.attention.flex_attention import flex_attention

        return flex_attention(x, x, x)


def _exported() -> nn.Module:
    return torch.export.export(nn.Linear(4, 4), (torch.zeros(2, 4),)).module()


@pytest.mark.parametrize(
    ("build", "shape", "match"),
    [
        (_sparse, (2, 4), "sparse_csr tensor cannot be traced"),
        (_Compiled, (1, 2, 16, 32), "operator flex_attention is compiled"),
        (_exported, (2, 4), "an exported program has no training mode"),
    ],
)
def test_modules_of_other_kinds_are_named(build: Any, shape: tuple[int, ...], match: str) -> None:
    with pytest.raises(UsageError, match=match):
        cw.trace(build(), torch.empty(shape, requires_grad=True), training=True)


def test_an_exported_program_is_traced_in_inference() -> None:
    assert products(cw.trace(_exported(), torch.empty(2, 4))) == 2.0 * 2 * 4 * 4


class Looping(nn.Module):
    """A forward pass that does not end: with operators, with views alone, without any."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.layer = kind, nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = 0
        while self.kind:
            try:
                x = self.layer(x) if self.kind == "operators" else x
                x = x.view(4, 1).view(1, 4) if self.kind == "views" else x
                n += 1
            except ArithmeticError:
                break
        return self.layer(x)


@pytest.mark.parametrize("kind", ["operators", "views", "nothing"])
def test_a_forward_pass_without_end_ends_in_one_line(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chipwise.tracing.recorder.MOST_SECONDS", 1.0)
    with pytest.raises(UsageError, match=r"test_module\.py:\d+: the trace takes more than 1 s") as caught:
        cw.trace(Looping(kind), torch.zeros(1, 4))
    assert "forward pass" in str(caught.value)
    monkeypatch.undo()
    assert products(cw.trace(Looping(""), torch.zeros(1, 4)), "gemm") == 2 * 4 * 4  # nothing is left changed


def test_more_operators_than_a_network_has_end_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chipwise.tracing.recorder.MOST_OPERATORS", 50)
    with pytest.raises(UsageError, match="more than 50 operators"):
        cw.trace(Looping("operators"), torch.zeros(1, 4))


def test_code_that_hoards_memory_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chipwise.tracing.recorder.MOST_GROWTH", -1)
    with pytest.raises(UsageError, match=r"the trace takes more than .* GiB"):
        cw.trace(Looping("nothing"), torch.zeros(1, 4))
