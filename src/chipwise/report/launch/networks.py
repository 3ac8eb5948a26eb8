"""Networks without tokens in plain PyTorch: encoders, vision, sound, and what a function of the user's own builds.

The program is data (`data/torch_network.txt`), the plan a dictionary in it; which class of which library a network is
stands in the table of tools.
"""

from __future__ import annotations

from math import ceil

from chipwise.catalog.tools import Tool, get_tool
from chipwise.errors import UsageError, shorten
from chipwise.report.launch.command import comment
from chipwise.report.launch.files import LaunchFile
from chipwise.report.launch.founding import DTYPES, VERIFY
from chipwise.report.launch.pipelines import COMPILED, planned_script, several
from chipwise.report.launch.spec import PipelineSpec

WIDE = {**DTYPES, "tf32": "float32"}
LAYOUTS = {("memory_format", "channels_last"): True, ("memory_format", "nchw"): False}
"""Settings that the script has, and whether images lie with their channels last."""
WINDOW_S = 30.0  # of sound that a network with a spectrum of fixed length is given at once


def network_torch(spec: PipelineSpec) -> tuple[LaunchFile, ...]:
    """A script that makes the plan's request and times it. Raises `UsageError` for a network that no library loads and
    no function builds, other software or number formats, several devices, and parts on the host."""
    if spec.runtime not in COMPILED:
        raise UsageError(
            f"the script runs PyTorch, the plan {spec.runtime}", f"--runtime {' or '.join(COMPILED)}"
        )
    return _script(spec, get_tool("torch"), "run_torch.py")


def network_neuronx(spec: PipelineSpec) -> tuple[LaunchFile, ...]:
    """The same as one program that is traced for a NeuronCore. Raises the errors of `network_torch`, and for chips
    without such cores."""
    tool = get_tool("torch-neuronx")
    if spec.machine.vendor not in tool.vendors:
        raise UsageError(
            f"{spec.machine.chip} has no NeuronCores", "plan with --chip trainium2 or inferentia2"
        )
    return _script(spec, tool, "run_torch_neuronx.py")


def _script(spec: PipelineSpec, tool: Tool, name: str) -> tuple[LaunchFile, ...]:
    loader = () if spec.code else get_tool("torch").models.get(spec.model, ())
    if not loader and not spec.code:
        raise UsageError(
            f"no library is known that loads {shorten(spec.model)} as one module",
            "a function that builds it can be planned and launched: chipwise estimate FILE.py:function",
        )
    _check(spec)
    if not spec.code and spec.precision not in WIDE:
        hint = f"plan with --precision {' or '.join(DTYPES)}"
        raise UsageError(f"{spec.precision} needs the kernels of an engine", hint)
    sizes = dict(spec.sizes)
    heard = {}
    if "spectrum" in loader:
        windows = max(ceil(sizes.get("audio_s", WINDOW_S) / WINDOW_S), 1)
        sizes["tokens"] = max(sizes["tokens"] / windows, 1.0)
        heard = {"rounds": ceil(max(spec.parts, windows) / spec.batch) if spec.parts else windows}
    plan = {
        "title": spec.title,
        "chip": spec.machine.chip,
        "loader": list(loader),
        "code": spec.code,
        "parameters": round(spec.parameters),
        "dtype": WIDE.get(spec.precision, "bfloat16"),
        "tf32": spec.precision == "tf32",
        "channels_last": any(LAYOUTS[setting] for setting in spec.settings),
        "compile": COMPILED.get(spec.runtime, ""),
        "neuron": tool.id == "torch-neuronx",
        "batch": spec.batch,
        "sizes": sizes,
        **heard,
        "predicted_s": spec.seconds,
        "interval": list(spec.interval),
    }
    needs = f"in an environment with torch and {loader[0]}" if loader else "where your own file runs"
    notes = [VERIFY, f"one replica, {needs}: python {name}", *several(spec)]
    return (planned_script(name, "torch_network", comment(spec, tool, notes), plan),)


def network_jax(spec: PipelineSpec) -> tuple[LaunchFile, ...]:
    """Raises `UsageError` always: the libraries that had these networks in JAX have them no more."""
    raise UsageError(
        f"no library is known that has {shorten(spec.code or spec.model)} in JAX (transformers dropped its Flax "
        "classes in version 5)"
    )


def _check(spec: PipelineSpec) -> None:
    """Raises `UsageError` for what the script does not do."""
    devices = [degree for _, degree in spec.spread if degree > 1]
    if devices:
        raise UsageError("one process drives one device, the plan shares a request", "leave --spread out")
    if spec.offload != "none":
        raise UsageError("the script keeps all on the device, the plan parts on the host", "--offload none")
    other = next((setting for setting in spec.settings if setting not in LAYOUTS), None)
    if other is not None:
        name, said = other
        raise UsageError(f"the script has no {name}={said}", f"leave {name}= out of --settings")
