"""trace: the operators of a network of the user's own."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from chipwise.cli.options import Output
from chipwise.errors import UsageError
from chipwise.report.traced import trace_view


def trace(
    source: Annotated[
        str,
        Parameter(
            help="FILE.py:function that returns a PyTorch module or (module, example, ...), FILE.onnx, a diffusers "
            "folder, or FILE.safetensors"
        ),
    ],
    *,
    training: Annotated[bool, Parameter(help="forward and backward of one training step")] = False,
    output: Output = Output(),  # noqa: B008
) -> None:
    """The operators, parameters and memory of your own model: a PyTorch module, ONNX, or files of weights."""
    from chipwise.api.traced import traced

    if not source.strip():
        raise UsageError("trace needs a source", "for example FILE.py:function or FILE.onnx", field="source")
    report = traced(source, training=training)
    output.show((trace_view(report),), report)
