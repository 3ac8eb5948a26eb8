from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chipwise.errors import MissingExtraError, UnknownNameError, UsageError
from chipwise.measure.backend import BACKENDS, OUTSIDE, SMALL, Backend, backend, check
from chipwise.measure.timed import machine_of
from command_line import Run


@pytest.fixture(params=sorted(BACKENDS))
def here(request: pytest.FixtureRequest) -> Backend:
    pytest.importorskip(BACKENDS[request.param][0], reason=f"needs the extra {request.param}")
    return backend(request.param, "cpu", 1)


def test_results_are_those_of_numpy(here: Backend) -> None:
    for dtype in {*here.dtypes(), "fp32"}:
        check(here, dtype)


def test_operands_take_turns(here: Backend) -> None:
    call, first = here.prepare(replace(SMALL[0], dtype="fp32"), 3)
    found = [here.values(call(i)) for i in range(4)]
    assert (found[0] == found[3]).all()
    assert len(first) == 2
    here.synchronise()


def test_a_backend_says_what_it_is(here: Backend) -> None:
    assert here.kind == "cpu"
    assert here.threads == 1
    assert here.software.split()[0] == here.name
    assert here.chip


def test_a_device_that_is_not_there(here: Backend) -> None:
    with pytest.raises(UsageError, match="cannot use it"):
        backend(here.name, "tpu:7" if here.name == "jax" else "cuda:99")


@pytest.mark.parametrize("name", sorted(BACKENDS))
def test_a_framework_that_is_not_installed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chipwise.measure.backend.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="needs an extra") as refusal:
        backend(name)
    assert OUTSIDE.get(name, f"chipwise[{name}]") in str(refusal.value)
    with pytest.raises(MissingExtraError):
        backend("auto")


def test_neuron_compiles_each_task_by_the_documented_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """`torch_neuronx.trace(func, example_inputs)` returns what takes and gives tensors of the host."""
    torch = pytest.importorskip("torch")
    seen: list[tuple[Any, ...]] = []

    def trace(func: Any, example_inputs: tuple[Any, ...]) -> Any:
        seen.append(tuple(tuple(x.shape) for x in example_inputs))
        return torch.no_grad()(func)

    fake = SimpleNamespace(trace=trace, __version__="2.9.0")
    monkeypatch.setitem(sys.modules, "torch_neuronx", fake)
    monkeypatch.setattr("chipwise.measure.backend.find_spec", lambda name: name == "torch_neuronx")
    here = backend("neuron")
    assert (here.kind, here.software, here.dtypes()) == ("neuron", "torch_neuronx 2.9.0", ("bf16",))
    check(here, "bf16")
    assert seen[0] == ((24, 72), (40, 72))
    assert len(seen) == len(SMALL)
    with pytest.raises(UsageError, match="first free core"):
        backend("neuron", "cuda")
    monkeypatch.setitem(sys.modules, "torch_neuronx", SimpleNamespace())  # the empty package of that name on PyPI
    with pytest.raises(MissingExtraError, match="needs an extra"):
        backend("neuron")


def test_a_backend_that_is_not_known() -> None:
    with pytest.raises(UnknownNameError, match="did you mean torch"):
        backend("torhc")


def test_the_command(here: Backend, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHIPWISE_DATA_DIR", str(tmp_path))
    monkeypatch.setattr("chipwise.measure.probe.COUNTS", (("gemm", 10), ("attention", 3)))
    monkeypatch.setattr("chipwise.measure.probe.LARGEST_S", 0.001)
    monkeypatch.setattr("chipwise.measure.probe.TASK_S", 0.01)
    out = tmp_path / "machine.json"
    asked = ("--backend", here.name, "--threads", "1", "--budget", "20s", "--dtypes", "fp32", "--out", str(out))
    ran = run("measure", "probe", *asked, "--format", "json")
    report: dict[str, Any] = json.loads(ran.out)
    assert {r["operator"] for r in report["rates"]} >= {"gemm", "attention"}
    assert report["stream_bytes_per_s"] > 1e8
    assert "tasks, at most" in ran.err
    kept = machine_of(out.read_text())
    assert len(kept.timed) + len(report["unseen"]) == report["tasks"]
    assert report["kept"].startswith("probe-")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--budget", "1s"), "out of range"),
        (("--budget", "soon"), "--budget"),
        (("--threads", "100000"), "this machine has"),
        (("--dtypes", "fp7"), "unknown data type"),
        (("--backend", "tensorflow"), "unknown backend"),
    ],
)
def test_options_that_cannot_be(options: tuple[str, ...], says: str, run: Run) -> None:
    ran = run("measure", "probe", *options)
    assert ran.code in (2, 3)
    assert says in ran.err
