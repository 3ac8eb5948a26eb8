"""The commands that start one replica with an engine: vLLM (on Neuron too), SGLang, TensorRT-LLM, llama.cpp, MLX."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from chipwise.catalog.tools import Tool, get_tool
from chipwise.errors import UsageError
from chipwise.report.launch.bench import PORT
from chipwise.report.launch.command import Command, Env
from chipwise.report.launch.desk import repository_file
from chipwise.report.launch.facts import facts_of, told
from chipwise.report.launch.spec import ServeSpec

# Formats of the cache as each tool names them.
CACHES: Mapping[str, Mapping[str, str]] = {
    "vllm": {
        "bf16": "bfloat16",
        "fp16": "float16",
        "fp8": "fp8",
        "int8": "int8_per_token_head",
        "int4": "int4_per_token_head",
        "nvfp4": "nvfp4",
    },
    "sglang": {"bf16": "bf16", "fp8": "fp8_e4m3", "mxfp8": "mxfp8", "nvfp4": "nvfp4"},
    "sglang-jax": {"bf16": "bf16", "fp8": "fp8_e4m3"},
    "trtllm": {"bf16": "auto", "fp16": "auto", "fp8": "fp8", "nvfp4": "nvfp4"},
    "llama.cpp": {"fp16": "", "bf16": "", "fp8": "q8_0", "int8": "q8_0", "int4": "q4_0"},
    "mlx": {"bf16": "", "fp16": "", "int8": "8", "int4": "4"},
    "neuronx": {"bf16": "bfloat16"},
}

ADAPTERS = "./adapters"
"""Where launch files look for adapters, in folders of their names."""
AFFINE = re.compile(r"mlx_(\d)bit")
"""Formats of MLX with a scale and an offset for 64 weights, by their bits."""
MLX_MODES = ("mxfp4", "mxfp8", "nvfp4")
"""The others that it narrows weights to."""

CORES: Mapping[str, int] = {"trainium1": 2, "trainium2": 4, "trainium3": 4}
"""NeuronCores of a chip as the runtime counts them: from Trainium2 on two make one."""


def fitting(spec: ServeSpec, target: str) -> Tool:
    """The tool. Raises `UsageError` where the plan was priced for another runtime."""
    tool = get_tool(target)
    if spec.runtime not in tool.runtimes:
        raise UsageError(
            f"the plan was priced for {spec.runtime}, {tool.name} is another runtime",
            f"plan with --runtime {tool.runtimes[0]}",
        )
    return tool


def serve_command(spec: ServeSpec, target: str, port: int = PORT) -> Command:
    """The command of one replica. Raises `UsageError` for a plan of another runtime, and for what the engine cannot
    be told."""
    fitting(spec, target)
    if spec.prompt_workers:
        raise UsageError(
            "the plan processes prompts on separate workers",
            "plan with --runtime vllm for dynamo, or without --disaggregate",
        )
    if spec.adapters and target not in ("vllm", "sglang"):
        what = f"{get_tool(target).name} is not configured here to serve adapters"
        raise UsageError(what, "plan with --runtime vllm or sglang")
    started = {"sglang": _sglang, "sglang-jax": _sglang_jax, "trtllm": _trtllm, "neuronx": _neuronx}.get(target)
    if started is not None:
        return started(spec, port)
    return vllm_options(Command.of("vllm", "vllm serve", spec.model), spec).option("--port", port + spec.servers_before)


def vllm_options(command: Command, spec: ServeSpec) -> Command:
    """The options of vLLM; of several hosts each is started with its NODE_RANK, and all but the first without a
    server."""
    several, local = spec.machine.hosts > 1, max(1, spec.dp // spec.machine.hosts)
    if several and spec.dp > 1 and spec.dp % spec.machine.hosts:
        raise UsageError(
            f"{spec.dp} replicas of attention cannot be shared out evenly to {spec.machine.hosts} hosts",
            "plan with another --dp, or fewer chips",
        )
    own: dict[str, Any] = {
        "experts": spec.experts > 0,
        "lora": tuple(f"{name}={ADAPTERS}/{name}" for name in spec.adapters),
        "loras": len(spec.adapters),
        "sleeps": spec.card is not None and spec.card.asleep,
        "copied": json.dumps({"num_redundant_experts": spec.copies}),
        "cache": _cache(spec, "vllm"),
        "guessed": _guessed(spec),
        "local": local,
        "first_rank": Env("NODE_RANK", times=local),
    }
    command = told(command, _facts(spec, **own), "vllm")
    if several and spec.dp > 1 and command.tool.id == "dynamo":
        return command.option("--data-parallel-hybrid-lb")  # the frontend stands before the hosts
    return command.on_others("--headless") if several else command


def trtllm_settings(spec: ServeSpec) -> str:
    """The YAML file of settings of TensorRT-LLM that have no option."""
    lines = [
        f"# settings of {get_tool('trtllm').name} that have no option",
        f"enable_attention_dp: {'true' if spec.dp > 1 else 'false'}",
    ]
    if spec.copies:
        slots = spec.experts + spec.copies
        lines += ["moe_config:", "  load_balancer:", f"    num_slots: {slots}", "    layer_updates_per_iter: 1"]
    if spec.kv:
        lines += ["kv_cache_config:", f"  dtype: {_cache(spec, 'trtllm')}"]
    if spec.guess is not None:
        how = ("MTP", "num_nextn_predict_layers") if spec.guess.module else ("NGram", "max_draft_len")
        lines += ["speculative_config:", f"  decoding_type: {how[0]}", f"  {how[1]}: {spec.guess.tokens}"]
    return "\n".join(lines) + "\n"


def gguf_file(spec: ServeSpec) -> str:
    """The file that stands for a model of which no repository of files for llama.cpp is known."""
    return f"{spec.model.rpartition('/')[2]}-{spec.precision.upper()}.gguf"


def llama_command(spec: ServeSpec) -> Command:
    """`llama-server`: slots share the cache; devices share the layers, each a stage of the plan."""
    fitting(spec, "llama.cpp")
    cuts = {"tp": spec.tp, "dp": spec.dp, "ep": spec.ep, "hosts": spec.machine.hosts}
    _alone(spec, "llama.cpp", "slots and layers alone", **cuts)
    _no_guess(spec, "llama.cpp")
    slots = max(1, min(spec.concurrency, spec.sequences))
    devices, mixed = spec.machine.devices, any(spec.spread)
    each = -(-(spec.prompt_tokens + spec.output_tokens) // 64) * 64 if mixed else spec.length
    at = spec.placed
    dealt = at.cards if at is not None and devices > 1 else (1,) * devices
    layers = 999 if at is None or not at.host_layers else sum(at.cards)
    apart = at.host_experts if at is not None and at.host_experts > at.host_layers else 0
    own: dict[str, Any] = {
        "repository": repository_file(spec.model, spec.precision),
        "file": gguf_file(spec),
        "context": max(each * slots, spec.length),
        "mixed": mixed,
        "slots": slots,
        "on_cards": layers,
        "apart": apart,
        "prompts_on_host": at is not None and at.prompts_on_host,
        "dealt": ",".join(map(str, dealt)),
        "cache": _cache(spec, "llama.cpp"),
    }
    return told(Command.of("llama.cpp", "llama-server"), _facts(spec, **own))


def mlx_command(spec: ServeSpec) -> tuple[str, str, Command]:
    """The weights that `mlx_lm.server` takes on one machine, what comes before it, and it: where the plan has weights
    narrower than the checkpoint has them, `mlx_lm.convert` makes them so once."""
    fitting(spec, "mlx")
    _alone(spec, "mlx", "one machine alone", tp=spec.tp, pp=spec.pp, dp=spec.dp, ep=spec.ep)
    _no_guess(spec, "mlx")
    affine = AFFINE.fullmatch(spec.precision)
    narrow = spec.precision != spec.stored and (bool(affine) or spec.precision in MLX_MODES)
    own: dict[str, Any] = {
        "bits": int(affine[1]) if affine else 0,
        "mode": spec.precision if spec.precision in MLX_MODES else "",
        "weights": f"{spec.model.rpartition('/')[2]}-{spec.precision}" if narrow else spec.model,
        "slots": max(1, min(spec.concurrency, spec.sequences)),
        "cache": _cache(spec, "mlx"),
    }
    serve = told(Command.of("mlx", "mlx_lm.server"), _facts(spec, **own))
    make = told(Command.of("mlx", "mlx_lm.convert"), _facts(spec, **own), part="convert")
    before = f"[ -e {shlex.quote(own['weights'])} ] || {make}\n\n" if narrow else ""
    return str(own["weights"]), before, serve


def _facts(spec: ServeSpec, port: int = PORT, **own: object) -> dict[str, Any]:
    """What engines are told of a plan, and what one of them is."""
    more = {"wide": spec.wide, "copies": spec.copies, "devices_of_layer": spec.tp * spec.dp}
    more["port"] = port + spec.servers_before
    return facts_of(spec) | more | own


def _sglang(spec: ServeSpec, port: int) -> Command:
    tokens = spec.guess.tokens if spec.guess else 0
    own: dict[str, Any] = {
        "running": spec.sequences * spec.dp,
        "lora": tuple(f"{name}={ADAPTERS}/{name}" for name in spec.adapters),
        "loras": len(spec.adapters),
        "cache": _cache(spec, "sglang"),
        "module": spec.guess is not None and spec.guess.module,
        "guesses": tokens,
        "verified": tokens + 1,
    }
    return told(Command.of("sglang", "python -m sglang.launch_server"), _facts(spec, port, **own))


def _sglang_jax(spec: ServeSpec, port: int) -> Command:
    _alone(spec, "sglang-jax", "tensor and expert parallelism and replicas of attention", pp=spec.pp)
    _no_guess(spec, "sglang-jax")
    own = {"running": spec.sequences * spec.dp, "cache": _cache(spec, "sglang-jax")}
    return told(Command.of("sglang-jax", "python -m sgl_jax.launch_server"), _facts(spec, port, **own))


def _trtllm(spec: ServeSpec, port: int) -> Command:
    several = spec.machine.hosts > 1
    mpi = ("mpirun", "-n", spec.machine.devices, "--hostfile", Env("HOSTS"), "trtllm-llmapi-launch", "trtllm-serve")
    program, *ranks = mpi if several else ("trtllm-serve",)
    return told(Command.of("trtllm", str(program), *ranks, spec.model), _facts(spec, port))


def _neuronx(spec: ServeSpec, port: int) -> Command:
    _alone(spec, "neuronx", "tensor parallelism alone", pp=spec.pp, dp=spec.dp, hosts=spec.machine.hosts)
    _no_guess(spec, "neuronx")
    _cache(spec, "neuronx")
    cores = spec.tp * CORES.get(spec.machine.chip, 1)
    return told(Command.of("neuronx", "vllm serve", spec.model), _facts(spec, port, cores=cores))


def _cache(spec: ServeSpec, tool: str) -> str:
    """The tool's name for the format of the cache, "" for its own. Raises `UsageError` where it has none."""
    if not spec.kv:
        return ""
    if spec.kv not in CACHES[tool]:
        raise UsageError(
            f"{get_tool(tool).name} keeps no cache in {spec.kv}", f"plan with --kv {' or '.join(CACHES[tool])}"
        )
    return CACHES[tool][spec.kv]


def _guessed(spec: ServeSpec) -> str:
    if spec.guess is None:
        return ""
    method = "mtp" if spec.guess.module else "ngram"
    return json.dumps({"method": method, "num_speculative_tokens": spec.guess.tokens})


def _no_guess(spec: ServeSpec, tool: str) -> None:
    if spec.guess is not None:
        raise UsageError(
            f"{get_tool(tool).name} is not configured here to guess tokens ahead", "plan without --speculate"
        )


def _alone(spec: ServeSpec, tool: str, takes: str, **degrees: int) -> None:
    """Raises `UsageError` for a degree above 1 that the tool is not told."""
    for name, degree in degrees.items():
        if degree > 1:
            raise UsageError(f"the plan has {name} {degree}, {get_tool(tool).name} takes {takes}", "plan without it")
