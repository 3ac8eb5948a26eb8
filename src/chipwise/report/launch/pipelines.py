"""Generators of images and video: the plan's request in a script, or a server, with its prediction and a check.

For diffusers the program is data (`data/diffusers.txt`), the plan a dictionary in it; mflux is a command of its own,
SGLang Diffusion a server with its own benchmark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from chipwise.catalog.snapshot import shipped_text
from chipwise.catalog.tools import Tool, get_tool
from chipwise.errors import UsageError, shorten
from chipwise.report.launch.bench import PORT
from chipwise.report.launch.command import Command, Env, comment, script
from chipwise.report.launch.facts import told
from chipwise.report.launch.files import LaunchFile
from chipwise.report.launch.founding import DTYPES, VERIFY
from chipwise.report.launch.spec import PipelineSpec

COMPILED = {"eager": "", "compile": "inductor", "cuda_graphs": "cudagraphs"}
"""Runtimes that are plain PyTorch, by the backend of torch.compile that they run with, "" for none."""
QUANTIZED = {"bf16": 0, "fp16": 0, "int8": 8, "int8-weight-only": 8, "int4-weight-only": 4}
"""Number formats that mflux runs, by the bits of its weights, 0 where they stay as they are."""
REQUESTS = 4
"""requests: for every one in flight, that verify a server."""
SIZES = {"width": "width", "height": "height", "frames": "num_frames", "steps": "num_inference_steps"}
"""Settings of a plan by the arguments of pipelines that have them."""


def _started(spec: PipelineSpec, tool: Tool) -> None:
    """Raises `UsageError` for software, a number format, a way to share a request or a setting that diffusers does not
    have."""
    if spec.runtime not in COMPILED:
        raise UsageError(
            f"{tool.name} runs under PyTorch, the plan under {spec.runtime}", f"--runtime {' or '.join(COMPILED)}"
        )
    if spec.precision not in DTYPES:
        raise UsageError(f"{spec.precision} needs more than {tool.name}", f"--precision {' or '.join(DTYPES)}")
    other = sorted({way for way, degree in spec.spread if degree > 1} - {"ulysses", "ring"})
    if other:
        raise UsageError(f"{tool.name} shares a request by ulysses and ring, not by {other[0]}", "--spread ulysses=N")
    if any(degree > 1 for _, degree in spec.spread) and spec.model not in tool.shares:
        raise UsageError(
            f"{tool.name} cannot share a request of {spec.model} among devices",
            f"estimate --chip NAME plans a whole request on one; it shares those of {', '.join(tool.shares)}",
        )
    if spec.cached:
        raise UsageError(f"{tool.name} skips steps by a threshold, not by a share", "leave cached= out of --settings")


def _sizes(spec: PipelineSpec, guided: Sequence[str]) -> dict[str, Any]:
    """The sizes of a request as the pipeline names them; one that is `guided` against a second prompt gets one."""
    sizes: dict[str, Any] = {SIZES[k]: round(v) for k, v in spec.sizes if k in SIZES}
    sizes |= {guided[0] if guided else "guidance_scale": v for k, v in spec.sizes if k == "guidance"}
    if guided and float(sizes.get(guided[0], 0.0)) > 1.0:
        sizes["negative_prompt"] = [" "] * spec.batch
    return sizes


def diffusers(spec: PipelineSpec) -> tuple[LaunchFile, ...]:
    """A script that makes the plan's request and times it. Raises `UsageError` for what diffusers does not have: the
    model, the software, the number format, how devices share a request, or a setting."""
    tool, name = get_tool("diffusers"), "run_diffusers.py"
    weights, *guided = tool.models.get(spec.model, ("",))
    if not weights:
        raise UsageError(
            f"{spec.model} has no pipeline in {tool.name}", f"it has: {shorten(', '.join(tool.models), 300)}"
        )
    _started(spec, tool)
    degrees = dict(spec.spread)
    devices = degrees.get("ulysses", 1) * degrees.get("ring", 1)
    sizes = _sizes(spec, guided)
    plan = {
        "title": spec.title,
        "chip": spec.machine.chip,
        "weights": weights,
        "dtype": DTYPES[spec.precision],
        "batch": spec.batch,
        "offload": spec.offload,
        "compile": COMPILED[spec.runtime],
        "ulysses": degrees.get("ulysses", 1),
        "ring": degrees.get("ring", 1),
        "sizes": sizes,
        "predicted_s": spec.seconds,
        "interval": list(spec.interval),
    }
    start = f"torchrun --nproc-per-node {devices}" if devices > 1 else "python"
    notes = [
        VERIFY,
        f"one replica, in an environment with {tool.name}, transformers and accelerate: {start} {name}",
        *several(spec),
    ]
    return (planned_script(name, "diffusers", comment(spec, tool, notes), plan),)


def mflux(spec: PipelineSpec) -> tuple[LaunchFile, ...]:
    """A script that makes the pictures of the plan's request with mflux, one after the other. Raises `UsageError` for
    what mflux does not have: the model, the software, the number format, several devices, or a setting."""
    tool = get_tool("mflux")
    program, name, *guided = tool.models.get(spec.model, ("", ""))
    if not program:
        raise UsageError(
            f"{spec.model} has no command in {tool.name}", f"it has: {shorten(', '.join(tool.models), 300)}"
        )
    if spec.runtime != "mlx":
        raise UsageError(f"{tool.name} runs on MLX, the plan under {spec.runtime}", "--runtime mlx")
    if spec.precision not in QUANTIZED:
        raise UsageError(f"{tool.name} does not run {spec.precision}", f"--precision {' or '.join(QUANTIZED)}")
    if spec.machine.devices > 1 or spec.cached:
        raise UsageError(
            f"{tool.name} makes all steps of a picture, on one machine", "plan without --spread and cached="
        )
    sizes = dict(spec.sizes)
    facts = {n: round(sizes.get(n, 0.0)) for n in ("steps", "width", "height")} | {
        "name": name,
        "prompt": Env("PROMPT", "what is made"),
        "seeds": tuple(range(1, spec.batch + 1)),
        "guidance": sizes.get("guidance", 0.0),
        "guided": bool(guided) and "guidance" in sizes,
        "bits": QUANTIZED[spec.precision],
    }
    command = told(Command.of("mflux", program), facts)
    notes = [
        "to verify the plan: a picture's .metadata.json says the seconds of its steps, loading is not predicted",
        *several(spec),
    ]
    body = f"{comment(spec, tool, notes)}set -euo pipefail\n\n{command}\n"
    return (LaunchFile("run_mflux.sh", f"#!/usr/bin/env bash\n{body}", script=True),)


def sglang_diffusion(spec: PipelineSpec) -> tuple[LaunchFile, ...]:
    """A script that starts the server of one replica, and its own benchmark with the plan's request, which verifies
    the plan. Raises `UsageError` for other software, models without published weights, number formats, ways to share a
    request and settings that the server does not have."""
    tool = get_tool("sglang-diffusion")
    if spec.runtime not in tool.runtimes:
        raise UsageError(
            f"{tool.name} runs its own pipelines, the plan runs {spec.runtime}", f"--runtime {tool.runtimes[0]}"
        )
    repository, *_ = get_tool("diffusers").models.get(spec.model, ("",))
    if not repository:
        raise UsageError(f"no weights of {spec.model} are known that {tool.name} loads")
    if spec.precision not in DTYPES:
        raise UsageError(
            f"{spec.precision} needs weights that {tool.name} loads from a file of yours",
            f"--precision {' or '.join(DTYPES)}",
        )
    degrees = {way: degree for way, degree in spec.spread if degree > 1}
    other = sorted({*degrees} - {"ulysses", "ring", "cfg"})
    if other or spec.cached:
        what = f"shares no request by {other[0]}" if other else "skips no steps here"
        raise UsageError(f"{tool.name} {what}", "--spread ulysses=N or cfg=2, and no cached= in --settings")
    sizes, devices = dict(spec.sizes), spec.machine.devices
    facts = {n: round(sizes.get(n, 0.0)) for n in ("steps", "width", "height", "frames")} | {
        "guidance": sizes.get("guidance", 0.0),
        "guided": json.dumps({"guidance_scale": sizes.get("guidance", 0.0)}),
        "repository": repository,
        "devices": devices,
        "several": devices > 1,
        **{way: degrees.get(way, 1) for way in ("ulysses", "ring", "cfg")},
        "precision": spec.precision,
        "waits": str(spec.offload != "none").lower(),
        "parts_wait": str(spec.offload == "model").lower(),
        "layers_wait": str(spec.offload == "sequential").lower(),
        "batch": spec.batch,
        "makes": "video" if sizes.get("frames", 1.0) > 1.0 else "image",
        "requests": REQUESTS * spec.batch,
        "port": PORT,
        "url": f"http://127.0.0.1:{PORT}",
    }
    notes = [f"one replica, in an environment with sglang[diffusion]: {shorten(repository)}", *several(spec)]
    serve = told(Command.of(tool.id, "sglang serve"), facts)
    bench = told(Command.of(tool.id, "python3 -m sglang.multimodal_gen.benchmarks.bench_serving"), facts, part="bench")
    said = ["to verify the plan, with serve.sh up: its mean latency is the time that is predicted"]
    return (
        LaunchFile("serve.sh", script(spec, tool, serve, notes=notes), script=True),
        LaunchFile("verify.sh", script(spec, tool, bench, notes=said), script=True),
    )


def several(spec: PipelineSpec) -> list[str]:
    """What is said where a plan has more than one replica."""
    spare = f" ({spec.spare} spare)" if spec.spare else ""
    return [f"the plan has {spec.replicas} of them{spare}, behind a queue of your own"] * (spec.replicas > 1)


def planned_script(name: str, program: str, head: str, plan: Mapping[str, Any]) -> LaunchFile:
    """A script of the package with what it is told of a plan."""
    body = "".join(f"    {key!r}: {value!r},\n" for key, value in plan.items())
    text = shipped_text(f"report/launch/data/{program}.txt").replace("@PLAN@", f"{{\n{body}}}", 1)
    return LaunchFile(name, f"#!/usr/bin/env python3\n{head}{text}", script=True)
