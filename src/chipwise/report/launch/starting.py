"""What wrappers start: the command of an engine or trainer, and what their user must know."""

from __future__ import annotations

from chipwise.catalog.tools import get_tool
from chipwise.errors import UsageError
from chipwise.report.launch.command import here_document
from chipwise.report.launch.engines import serve_command, trtllm_settings
from chipwise.report.launch.spec import ServeSpec, TrainSpec
from chipwise.report.launch.training import train_notes, trainer

ENGINES = {name: name for name in ("sglang", "sglang-jax", "trtllm", "neuronx")}
INSTALLS = {
    "vllm": "pip install vllm=={}\n",
    "vllm-tpu": "pip install vllm-tpu=={}\n",
    "sglang": 'pip install "sglang[all]=={}"\n',
    "trtllm": "pip install tensorrt-llm~={}\n",
}
ROCM = "pip install vllm=={} --extra-index-url https://wheels.vllm.ai/rocm/\n"


def engine_of(spec: ServeSpec) -> str:
    """The engine that serves a runtime. Raises `UsageError` where none of them does."""
    engine = ENGINES.get(spec.runtime, "vllm")
    if spec.runtime not in get_tool(engine).runtimes:
        raise UsageError(f"{spec.runtime} is not started by these files", "plan with --runtime vllm")
    return engine


def install(spec: ServeSpec) -> str:
    """The command that installs the runtime, "" where the image of the machine must hold it."""
    rocm = spec.runtime == "vllm" and spec.machine.vendor == "amd"
    line = ROCM if rocm else INSTALLS.get(spec.runtime, "")
    return line.format(get_tool(engine_of(spec)).version)


def start(spec: ServeSpec) -> str:
    """What a shell runs to start one replica."""
    return settings(spec) + str(serve_command(spec, engine_of(spec)))


def settings(spec: ServeSpec) -> str:
    """The settings file that the engine reads, written by the shell; "" where it reads none. Raises `UsageError` for
    several hosts."""
    if engine_of(spec) != "trtllm":
        return ""
    if spec.machine.hosts > 1:
        raise UsageError(f"a replica takes {spec.machine.hosts} hosts, which TensorRT-LLM joins by MPI")
    return here_document("trtllm.yaml", trtllm_settings(spec))


def trained_with(spec: TrainSpec) -> tuple[str, tuple[str, ...]]:
    """The trainer that a wrapper starts, and what its user must know."""
    name, left = trainer(spec)
    return name, (f"trained with {get_tool(name).name} {get_tool(name).version}", *left, *train_notes(spec, name))
