"""All targets of `launch` by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chipwise.catalog.tools import get_tool
from chipwise.errors import UsageError
from chipwise.report.launch.cloud import kubernetes, skypilot, terraform
from chipwise.report.launch.serving import dynamo, llama_cpp, neuronx, sglang, trtllm, vllm
from chipwise.report.launch.spec import LaunchFile, ServeSpec, Spec
from chipwise.report.launch.training import maxtext, megatron, torchrun, torchtitan

__all__ = ["TARGETS", "launch_files"]

Render = Callable[[Any], tuple[LaunchFile, ...]]

SERVING: Mapping[str, Render] = {
    "vllm": vllm,
    "sglang": sglang,
    "trtllm": trtllm,
    "dynamo": dynamo,
    "llama.cpp": llama_cpp,
    "neuronx": neuronx,
}
TRAINING: Mapping[str, Render] = {
    "torchrun": torchrun,
    "megatron": megatron,
    "torchtitan": torchtitan,
    "maxtext": maxtext,
}
ANYWHERE: Mapping[str, Render] = {"skypilot": skypilot, "kubernetes": kubernetes, "terraform": terraform}
TARGETS = (*SERVING, *TRAINING, *ANYWHERE)


def launch_files(spec: Spec, target: str) -> tuple[LaunchFile, ...]:
    """The files that launch a plan with a tool, and the command that verifies its estimate.

    Raises `UnknownNameError` for an unknown tool, `UsageError` where the tool cannot start the plan.
    """
    tool = get_tool(target)
    fitting = SERVING if isinstance(spec, ServeSpec) else TRAINING
    render = {**fitting, **ANYWHERE}.get(target)
    if render is None:
        does = "serves" if target in SERVING else "trains"
        plan = "serves" if isinstance(spec, ServeSpec) else "trains"
        raise UsageError(
            f"{tool.name} {does}, this plan {plan}",
            f"launch it --for one of {', '.join((*fitting, *ANYWHERE))}",
        )
    return render(spec)
