"""Megatron-LM: `pretrain_gpt.py` with the options that describe layout, network and batch."""

from __future__ import annotations

from dataclasses import fields
from itertools import groupby
from typing import Any

from chipwise.errors import UsageError
from chipwise.report.launch.command import Command, Env
from chipwise.report.launch.facts import run_facts, told
from chipwise.report.launch.ranks import known_optimizer, known_precision, ranks
from chipwise.report.launch.spec import Rope, TrainSpec

# what Megatron-FSDP calls the sharding, and what is cut beside the optimiser
CUT = {"zero-2": ("optim_grads", "gradients"), "fsdp": ("optim_grads_params", "weights")}


def megatron_command(spec: TrainSpec, steps: int) -> str:
    """The command of one host; random tokens where only the step is measured. Raises `UsageError` for what the
    options do not say."""
    _told(spec)
    cut = spec.sharding in CUT
    command = told(Command.of("megatron", "pretrain_gpt.py"), _facts(spec, steps))
    # Megatron-FSDP wants streams of its own
    ordered = spec.one_queue and (spec.tp > 1 or spec.cp > 1) and not cut
    export = "export CUDA_DEVICE_MAX_CONNECTIONS=1\n" if ordered else ""
    return f"{export}{ranks(spec)} \\\n  {command}"


def megatron_notes(spec: TrainSpec) -> tuple[str, ...]:
    """What the options leave to Megatron-LM or to the reader."""
    n, notes = spec.network, []
    own = {"--rotary-base": ("rope_theta", n.rope), "--norm-epsilon": ("rms_norm_eps", n.norm_epsilon)}
    missing = {option: key for option, (key, value) in own.items() if value is None}
    if missing:
        keys = " and ".join(missing.values())
        notes.append(f"{' and '.join(missing)} are Megatron-LM's own: look up {keys} of the model")
    if n.rope is not None and n.rope.stretch not in ("", "yarn" if n.latent else "llama3"):
        notes.append(f"positions are stretched by {n.rope.stretch} in the model's configuration, here they are not")
    again, part = _again(spec)
    if abs(again / part - spec.recomputed) > 0.005:
        notes.append(
            f"the plan runs {spec.recomputed:.0%} of the layers again, "
            f"Megatron-LM {again} of {part} in each part of a stage"
        )
    if spec.tuned:
        notes.append(
            "WEIGHTS holds the published weights in Megatron's format (Megatron-Bridge converts them); DATA_PATH is a "
            "file of conversations, JSON lines with messages that begin with one of the system"
        )
    if n.layers % (spec.pp * spec.vp):
        notes.append("--pipeline-model-parallel-layout is experimental in Megatron-Core")
    return tuple(notes)


def stages(layers: int, pp: int, vp: int) -> str:
    """Which layers every part of every stage holds, in the order of the forward pass, in Megatron-Core's letters: E
    embedding, t layer, L loss, | between parts. No part holds more than one layer more than another; those that hold
    fewer are the last, which has the head, the first, which has the embedding, and those before the last."""
    parts = pp * vp
    short = (parts - 1, 0, *range(parts - 2, 0, -1))[: -layers % parts]
    counts = [-(-layers // parts) - (i in short) for i in range(parts)]
    middle = [(n, len(tuple(run))) for n, run in groupby(counts[1:-1])]
    between = "".join(f"({_part(n)}|)*{k}" if k > 1 else f"{_part(n)}|" for n, k in middle)
    return f"E{_part(counts[0])}|{between}{_part(counts[-1])}L"


def _part(layers: int) -> str:
    return "t" * layers if layers < 2 else f"t*{layers}"


def _told(spec: TrainSpec) -> None:
    """Raises `UsageError` for what is no option, or is documented for other layouts alone."""
    if not spec.network.plain:
        raise UsageError(
            f"{spec.model} is more than Megatron-LM's options describe here: layers or attention of other kinds"
        )
    if spec.tuned in ("lora", "qlora"):
        raise UsageError(
            f"the plan trains {spec.tuned} adapters, Megatron-LM all weights here",
            "plan with --method full, or --trainer hf-trainer",
        )
    if spec.schedule not in ("", "1f1b", "interleaved"):
        raise UsageError(f"{spec.schedule} is no schedule of Megatron-LM", "plan with --layout schedule=1f1b")
    if spec.sharding in CUT:
        what = f"the plan cuts {CUT[spec.sharding][1]} ({spec.sharding})"
        for name, there, without in (
            ("stages", spec.pp > 1, "pp=1"),
            ("the optimiser in host memory", spec.offload > 0, "offload=0"),
        ):
            if there:
                raise UsageError(
                    f"{what} and has {name}, which Megatron-FSDP is not configured for here together",
                    f"plan with --layout {without}, or zero=1",
                )
        if spec.shard_ranks < spec.dp:
            raise UsageError(
                f"{what} over {spec.shard_ranks} of {spec.dp} replicas, Megatron-FSDP over all here",
                "plan with other --counts",
            )
    if spec.stash > 0 and (spec.pp > 1 or spec.recomputed or spec.selective):
        raise UsageError(
            "Megatron-LM keeps what layers save in host memory in one stage, and where nothing is run again",
            "plan with --layout stash=0, or pp=1,recompute=none",
        )
    _overlapped(spec)
    known_precision(spec, "megatron", ("bf16", "fp8", "mxfp8"))
    known_optimizer(spec, "megatron")
    if not spec.master:
        raise UsageError(
            "Megatron-LM keeps a copy of the weights in fp32 here, the plan none", "plan with --memory master=yes"
        )
    if spec.optimizer == "adamw-bf16" and spec.sharding in CUT:
        raise UsageError(
            f"Megatron-FSDP ({spec.sharding}) is not configured here for optimizer=adamw-bf16",
            "plan with --layout zero=1, or --memory optimizer=adamw",
        )


def _overlapped(spec: TrainSpec) -> None:
    """Raises `UsageError` where dispatch of experts cannot run behind another micro-batch."""
    if spec.dispatch_by == "overlapped" and (spec.recomputed or (spec.pp > 1 and spec.vp == 1)):
        raise UsageError(
            "Megatron-LM hides dispatch of experts where no layer runs again whole, and stages have virtual ones",
            "plan with --layout dispatch=overlapped,recompute=none, and pp=1 or a vp",
        )


def _facts(spec: TrainSpec, steps: int) -> dict[str, Any]:
    """What the options are told besides what every trainer is."""
    n, parts = spec.network, spec.pp * spec.vp
    (again, part), even = _again(spec), n.layers % parts == 0
    inner = {f.name: getattr(kept, f.name) for kept in (n.latent, n.router) if kept for f in fields(kept)}
    turned = n.rope or Rope(0.0)
    precise = spec.offload > 0 or spec.optimizer == "adamw-bf16"
    layout = {
        "layers_of_part": n.layers // parts,
        "even": even,
        "parts": "" if even or spec.pp == 1 else stages(n.layers, spec.pp, spec.vp),
        "cut_experts": max(spec.tp // spec.ep, 1),
        "zero": spec.sharding != "none" or precise,
        "precise": precise,
        "states_of_16_bits": spec.optimizer == "adamw-bf16",
        "cut": spec.sharding in CUT,
        "strategy": CUT.get(spec.sharding, ("",))[0],
        "stashed_layers": max(n.layers - 2, 1),
        "again_layers": again,
        "all_again": again == part,
        "eight_bit": "fp8" in spec.precision,
        "data_path": Env("DATA_PATH"),
        "checkpoints": Env("CHECKPOINTS"),
        "converted": Env("WEIGHTS", "the converted weights"),
    }
    network = {
        "grouped": n.kv_heads < n.heads,
        "norm_known": n.norm_epsilon is not None,
        "expert_layers": n.layers - n.dense_layers,
        "base": round(turned.base),
        "llama3": turned.stretch == "llama3",
        "yarn": turned.stretch == "yarn" and n.latent is not None,
        "factor": turned.factor,
        "mscale": turned.mscale,
        "mscale_all": turned.mscale_all,
    }
    return run_facts(spec, steps) | inner | layout | network


def _again(spec: TrainSpec) -> tuple[int, int]:
    """How many layers of each part of a stage run again, at least one where any do, and of how many."""
    part = -(-spec.network.layers // (spec.pp * spec.vp))
    return max(round(part * spec.recomputed), int(spec.recomputed > 0)), part
