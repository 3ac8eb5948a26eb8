"""What users bring themselves: a module of PyTorch, an ONNX file, a diffusers folder, weights."""

from __future__ import annotations

from chipwise.errors import UnknownNameError
from chipwise.report.traced import TraceReport, trace_report
from chipwise.tracing.sources import pipeline_of


def traced(text: str, *, training: bool = False) -> TraceReport:
    """The operators of what a text names; see `chipwise.tracing.sources`.

    Raises `UsageError` for what cannot be read, `UnknownNameError` for a text that names no such file,
    `MissingExtraError`.
    """
    found = pipeline_of(text, training=training)
    if found is None:
        hint = "give FILE.py:function, FILE.onnx, a diffusers folder or FILE.safetensors; fit takes models by name"
        raise UnknownNameError("file", text, (), hint)
    return trace_report(found)
