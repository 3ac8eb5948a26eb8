"""All targets of `launch` by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chipwise.catalog.tools import get_tool, tool_called
from chipwise.errors import UsageError
from chipwise.report.launch.cloud import skypilot, terraform
from chipwise.report.launch.files import LaunchFile
from chipwise.report.launch.founding import founding_jax, founding_neuronx, founding_torch
from chipwise.report.launch.frameworks import FRAMEWORKS
from chipwise.report.launch.keda import keda, planner
from chipwise.report.launch.kubernetes import kubernetes
from chipwise.report.launch.loops import nemo_rl, verl
from chipwise.report.launch.networks import (
    network_jax,
    network_neuronx,
    network_tei,
    network_tensorrt,
    network_torch,
    network_vllm,
)
from chipwise.report.launch.pipelines import diffusers, mflux, sglang_diffusion
from chipwise.report.launch.serving import api, dynamo, llama_cpp, mlx, neuronx, sglang, sglang_jax, trtllm, vllm
from chipwise.report.launch.spec import Launched, LoopSpec, PipelineSpec, ServeSpec, SweepSpec, check_spec
from chipwise.report.launch.sweeping import sweep_kuberay, sweep_kubernetes, sweep_skypilot
from chipwise.report.launch.training import maxtext, megatron, torchrun, torchtitan, tuned
from chipwise.report.launch.tuning import TUNERS

Render = Callable[[Any], tuple[LaunchFile, ...]]

SERVING: Mapping[str, Render] = {
    "vllm": vllm,
    "sglang": sglang,
    "sglang-jax": sglang_jax,
    "trtllm": trtllm,
    "dynamo": dynamo,
    "llama.cpp": llama_cpp,
    "mlx": mlx,
    "neuronx": neuronx,
    "torch": founding_torch,
    "jax": founding_jax,
    "torch-neuronx": founding_neuronx,
    "api": api,
}
TRAINING: Mapping[str, Render] = {
    "megatron": megatron,
    "torchtitan": torchtitan,
    "maxtext": maxtext,
    **{name: tuned(name) for name in (*FRAMEWORKS, *TUNERS)},
    "torchrun": torchrun,
    "torch": founding_torch,
    "jax": founding_jax,
}
READY = {"megatron", "torchtitan", "maxtext", *FRAMEWORKS, *TUNERS}  # trainers that bring the program
ANYWHERE: Mapping[str, Render] = {
    "skypilot": skypilot,
    "kubernetes": kubernetes,
    "keda": keda,
    "dynamo-planner": planner,
    "terraform": terraform,
}
ON_PART = ("vllm", "sglang", "trtllm")
"""What starts a server on part of a card: manifests and machines of a cloud hand out whole ones."""
PIPELINES: Mapping[str, Render] = {
    "diffusers": diffusers,
    "mflux": mflux,
    "sglang-diffusion": sglang_diffusion,
    "torch": network_torch,
    "torch-neuronx": network_neuronx,
    "tensorrt": network_tensorrt,
    "jax": network_jax,
    "tei": network_tei,
    "vllm": network_vllm,
}
LOOPS: Mapping[str, Render] = {"verl": verl, "nemo-rl": nemo_rl}
SWEEPS: Mapping[str, Render] = {"kubernetes": sweep_kubernetes, "skypilot": sweep_skypilot, "kuberay": sweep_kuberay}
TARGETS = tuple(dict.fromkeys((*SERVING, *TRAINING, *PIPELINES, *LOOPS, *ANYWHERE)))


def own_tool(spec: Launched, usual: Sequence[str]) -> str:
    """The tool that starts a plan's own software: the first of the `usual` ones that does, else of all. Raises
    `UsageError` where none does, with what stands in the way of the usual one."""
    renders = {n: render for n, render in _renders(spec).items() if n not in ANYWHERE}
    own = [n for n in usual if n in renders]
    for name in dict.fromkeys((*own, *renders)):
        if _refused(renders[name], spec) is None:
            return name
    first = _refused(renders[own[0]], spec) if own else None
    why = f": {first.what}" if first else ""
    what = f"no tool here starts this plan{why}"
    raise UsageError(what, f"--for names one: {', '.join(TARGETS)}", field="for")


def check_tool(target: str) -> None:
    """Raises `UnknownNameError` for an unknown tool."""
    tool_called(target, TARGETS)


def launch_files(spec: Launched, target: str) -> tuple[LaunchFile, ...]:
    """The files that launch a plan with a tool, by its id or as people call it, and the command that verifies its
    estimate.

    Raises `UnknownNameError` for an unknown tool, `UsageError` where the tool cannot start the plan: why, what plan it
    could start, and which tools start this one, or where no file may hold what the plan says.
    """
    check_spec(spec)
    renders = _renders(spec)
    target = tool_called(target, renders)
    tool = get_tool(target)
    try:
        if target not in renders:
            raise UsageError(f"{tool.name} {_does(target, spec)}, this plan {_planned(spec)}")
        return renders[target](spec)
    except UsageError as error:
        others = [name for name in renders if name != target and _refused(renders[name], spec) is None]
        own = " with a program of your own" if "torchrun" in others and not READY & {*others} else ""
        here = f"launch it --for {', '.join(others)}{own}" if others else "no other tool here starts it"
        raise UsageError(error.what, f"{error.hint}; {here}" if error.hint else here) from None


def _does(target: str, spec: Launched) -> str:
    if isinstance(spec, ServeSpec) and spec.card and target in {**SERVING, **ANYWHERE}:
        return "starts servers on whole cards"
    if target in LOOPS:
        return "samples and trains in a loop"
    if target in ANYWHERE:
        return "starts language models here"
    if target in ("diffusers", "mflux", "sglang-diffusion"):
        return "makes pictures and clips"
    return "serves" if target in SERVING else "trains" if target in TRAINING else "serves encoders"


def _planned(spec: Launched) -> str:
    if isinstance(spec, PipelineSpec):
        return "generates no tokens"
    if isinstance(spec, LoopSpec):
        return "is a loop of both"
    if isinstance(spec, SweepSpec):
        return "asks many questions"
    if isinstance(spec, ServeSpec) and spec.card:
        return f"shares its card with {' and '.join(spec.card.others)}"
    return "serves" if isinstance(spec, ServeSpec) else "trains"


def _renders(spec: Launched) -> Mapping[str, Render]:
    if isinstance(spec, PipelineSpec):
        return PIPELINES
    if isinstance(spec, LoopSpec):
        return LOOPS
    if isinstance(spec, SweepSpec):
        return SWEEPS
    if isinstance(spec, ServeSpec) and spec.card:
        return {name: SERVING[name] for name in ON_PART}
    return {**(SERVING if isinstance(spec, ServeSpec) else TRAINING), **ANYWHERE}


def _refused(render: Render, spec: Launched) -> UsageError | None:
    """Why a tool does not start a plan, None where it does."""
    try:
        render(spec)
    except UsageError as error:
        return error
    return None
