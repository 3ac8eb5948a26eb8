"""Scripts without an engine: the plan's network in plain PyTorch or JAX, its prediction in it and a check at its end.

The program is data (`data/*.txt`), the plan a dictionary in it. Weights are random: what a pass costs is checked, and
the user puts their own model in its place.
"""

from __future__ import annotations

from typing import Any

from chipwise.catalog.snapshot import shipped_text
from chipwise.catalog.tools import get_tool
from chipwise.errors import UsageError
from chipwise.report.launch.command import comment
from chipwise.report.launch.files import LaunchFile
from chipwise.report.launch.spec import LaunchNetwork, ServeSpec, Spec, TrainSpec

DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
ROPE_BASE = 10000.0  # of Su et al., 2021, where a configuration names none


def founding_torch(spec: Spec) -> tuple[LaunchFile, ...]:
    """Device, type, autocast or not, compile. Raises `UsageError` for plans of several devices or of other networks."""
    if _devices(spec) > 1:
        raise UsageError(
            f"one process drives one device, the plan takes {_devices(spec)}", "plan with --tp 1 on one chip"
        )
    return _file(spec, "torch")


def founding_jax(spec: Spec) -> tuple[LaunchFile, ...]:
    """Mesh, sharding, jit: replicas over "data", tensors over "model"."""
    if max(spec.pp, spec.ep) > 1:
        raise UsageError("the mesh has replicas and tensors, the plan stages or experts", "plan with --pp 1 --ep 1")
    if spec.machine.hosts > 1:
        raise UsageError(f"one process drives one host, the plan takes {spec.machine.hosts}", "plan on one host")
    return _file(spec, "jax")


def founding_neuronx(spec: ServeSpec) -> tuple[LaunchFile, ...]:
    """Trace, save, load: a prompt on one NeuronCore."""
    if spec.machine.vendor not in get_tool("torch-neuronx").vendors:
        raise UsageError(f"{spec.machine.chip} has no NeuronCores", "plan with --chip trainium2 or inferentia2")
    if _devices(spec) > 1:
        raise UsageError(f"what is traced runs on one NeuronCore, the plan takes {_devices(spec)}", "plan with --tp 1")
    return _file(spec, "torch-neuronx")


def _devices(spec: Spec) -> int:
    return spec.tp * spec.pp * spec.dp


def _whole(spec: Spec) -> None:
    """Raises `UsageError` for training in a way that the programs do not have."""
    if not isinstance(spec, TrainSpec):
        return
    odd = {
        "weights are published ones": spec.tuned,
        f"states are sharded ({spec.sharding})": spec.shard_ranks > 1,
        "sequences are cut": spec.cp > 1,
        "layers are computed again": spec.recomputed > 0.0,
        "states lie on the host": spec.offload > 0.0,
    }
    for what, found in odd.items():
        if found:
            raise UsageError(f"the script trains plainly, here {what}", "plan a smaller model or batch")


VERIFY = "to verify the plan, run it: it prints what is predicted and what it measures"


def _file(spec: Spec, target: str) -> tuple[LaunchFile, ...]:
    _whole(spec)
    tool, name = get_tool(target), target.replace("-", "_")
    program = shipped_text(f"report/launch/data/{name}.txt")
    plan = {"title": spec.title, "chip": spec.machine.chip, **_network(spec), **_work(spec)}
    body = "".join(f"    {key!r}: {value!r},\n" for key, value in plan.items())
    text = f"#!/usr/bin/env python3\n{comment(spec, tool, (VERIFY,))}" + program.replace("@PLAN@", f"{{\n{body}}}", 1)
    return (LaunchFile(f"run_{name}.py", text, script=True),)


def _network(spec: Spec) -> dict[str, Any]:
    n: LaunchNetwork | None = spec.network
    if n is None or not n.plain or n.experts or n.latent is not None:
        raise UsageError(f"{spec.model} is no plain decoder", "one with softmax attention and gated layers, no experts")
    if spec.precision not in DTYPES:
        hint = f"plan with --precision {' or '.join(DTYPES)}"
        raise UsageError(f"{spec.precision} weights need the kernels of an engine", hint)
    sizes = {
        name: getattr(n, name) for name in ("layers", "hidden", "ffn", "heads", "kv_heads", "head_dim", "vocabulary")
    }
    base = ROPE_BASE if n.rope is None else n.rope.base
    return {**sizes, "tied": n.tied, "rope_base": float(base), "dtype": DTYPES[spec.precision]}


def _work(spec: Spec) -> dict[str, Any]:
    """What one engine, or one rank, does in a pass, and what is predicted for it."""
    mesh = {"data": spec.dp, "model": spec.tp, "interval": list(spec.passes.interval)}
    if isinstance(spec, TrainSpec):
        accumulate = max(1, round(spec.global_batch / (spec.micro_batch * spec.dp)))
        work = {"micro_batch": spec.micro_batch, "seq": spec.seq, "accumulate": accumulate}
        return {"task": "train", **work, **mesh, "predicted": {"step": spec.passes.step_s}}
    passes = {"prefill": spec.passes.prefill_s, "decode": spec.passes.decode_s}
    batch = max(1, round(spec.passes.batch))
    return {"task": "serve", "prompt_tokens": spec.prompt_tokens, "batch": batch, **mesh, "predicted": passes}
