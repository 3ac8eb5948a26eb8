"""PyTorch on AWS Trainium and Inferentia2: each task is compiled by `torch_neuronx.trace`.

Written against the documented interface (AWS Neuron documentation, "PyTorch NeuronX Tracing API"; read in 2026-11): a
function and example inputs go in, a module comes out whose inputs and outputs are tensors of the host. A time holds
their way to the device and back, as that of an inference does which is asked so.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from chipwise.errors import MissingExtraError, UsageError
from chipwise.measure.backend import OUTSIDE
from chipwise.measure.task import Task
from chipwise.measure.torch_backend import TorchBackend


class NeuronBackend(TorchBackend):
    """Traced PyTorch on one NeuronCore."""

    name = "neuron"

    def __init__(self, device: str | None = None, threads: int | None = None) -> None:
        super().__init__("cpu", threads)
        try:
            neuronx = import_module("torch_neuronx")
            self._trace: Callable[..., Any] = neuronx.trace
            self._version = str(getattr(neuronx, "__version__", "?"))
        except (ImportError, AttributeError):
            raise MissingExtraError("measuring with torch_neuronx", "neuron", OUTSIDE["neuron"]) from None
        if device not in (None, "neuron", "neuron:0"):
            raise UsageError(f"--device {device}: torch_neuronx takes the first free core", "neuron")
        self.device = "neuron"

    @property
    def kind(self) -> str:
        """`neuron`."""
        return "neuron"

    @property
    def software(self) -> str:
        """torch_neuronx with its version."""
        return f"torch_neuronx {self._version}"

    @property
    def chip(self) -> str:
        """No more is told: `neuron-ls` names the device."""
        return "neuron"

    @property
    def threads(self) -> int:
        """One: cores of the host do not share its work."""
        return 1

    def dtypes(self) -> tuple[str, ...]:
        """Types that run on its matrix units."""
        return ("bf16",)

    def synchronise(self) -> None:
        """Nothing: a traced module returns when its outputs are there."""

    def _ready(self, run: Callable[..., Any], operands: tuple[Any, ...], task: Task) -> Callable[..., Any]:
        """The task, compiled. Raises `RuntimeError` where the compiler refuses it."""
        traced: Callable[..., Any] = self._trace(run, operands)
        return traced
