"""Serving: scripts for vLLM (and vLLM on Neuron), SGLang, TensorRT-LLM, Dynamo, llama.cpp, MLX; a client of an API."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from chipwise.catalog.snapshot import shipped_text
from chipwise.catalog.tools import get_tool
from chipwise.errors import UsageError
from chipwise.report.launch.bench import PORT, verification
from chipwise.report.launch.command import Command, Env, comment, comment_line, script
from chipwise.report.launch.desk import repository_file
from chipwise.report.launch.engines import (
    fitting,
    gguf_file,
    llama_command,
    mlx_command,
    serve_command,
    trtllm_settings,
    vllm_options,
)
from chipwise.report.launch.files import LaunchFile
from chipwise.report.launch.spec import ServeSpec, SharedCard


def vllm(spec: ServeSpec) -> tuple[LaunchFile, ...]:
    """`vllm serve` and `vllm bench serve`."""
    return _pair(spec, "vllm", serve_command(spec, "vllm"))


def sglang(spec: ServeSpec) -> tuple[LaunchFile, ...]:
    """`sglang.launch_server` and SGLang's own benchmark, or vLLM's where prompts share a beginning."""
    return _pair(spec, "sglang", serve_command(spec, "sglang"), "vllm" if spec.cached_tokens else "sglang")


def sglang_jax(spec: ServeSpec) -> tuple[LaunchFile, ...]:
    """`sgl_jax.launch_server`, and vLLM's benchmark, which speaks to any server of this protocol."""
    return _pair(spec, "sglang-jax", serve_command(spec, "sglang-jax"))


def trtllm(spec: ServeSpec) -> tuple[LaunchFile, ...]:
    """`trtllm-serve`, with attention parallelism, cache format and guesses in a YAML file of its own."""
    files = _pair(spec, "trtllm", serve_command(spec, "trtllm"))
    return (*files, LaunchFile("trtllm.yaml", trtllm_settings(spec)))


def dynamo(spec: ServeSpec) -> tuple[LaunchFile, ...]:
    """A frontend, started once, and vLLM workers: one kind, or prompts and answers apart with the cache sent over."""
    tool = fitting(spec, "dynamo")
    frontend = Command.of("dynamo", "python -m dynamo.frontend").option("--http-port", PORT)
    apart = spec.prompt_workers > 0
    kinds = [("decode", spec.replicas)] if apart else [("agg", spec.replicas)]
    kinds += [("prefill", spec.prompt_workers)] if apart else []
    files = [LaunchFile("frontend.sh", script(spec, tool, frontend), script=True)]
    for mode, count in kinds:
        role = {"prefill": "kv_producer", "decode": "kv_consumer"}.get(mode, "")
        sent = json.dumps({"kv_connector": "NixlConnector", "kv_role": role})
        worker = vllm_options(
            Command.of("dynamo", "python -m dynamo.vllm")
            .option("--model", spec.model)
            .option("--disaggregation-mode", mode)
            .option("--kv-transfer-config", sent, when=bool(role)),
            spec,
        )
        name = "worker" if mode == "agg" else mode
        text = script(spec, tool, f"{_note(count, f'{name} workers' if apart else 'workers')}{worker}")
        files.append(LaunchFile(f"{name}.sh", text, script=True))
    return (*files, verification(spec, whole=True))


def llama_cpp(spec: ServeSpec) -> tuple[LaunchFile, ...]:
    """`llama-server`."""
    command = llama_command(spec)
    if repository_file(spec.model, spec.precision):
        return _pair(spec, "llama.cpp", command)
    made = "make it with llama.cpp's convert_hf_to_gguf.py and llama-quantize"
    note = comment_line(f"{gguf_file(spec)} is a file of your own: {made}")
    return _pair(spec, "llama.cpp", command, before=note)


def mlx(spec: ServeSpec) -> tuple[LaunchFile, ...]:
    """`mlx_lm.server`, on weights that `mlx_lm.convert` makes narrower once."""
    weights, before, serve = mlx_command(spec)
    main, _ = _pair(spec, "mlx", serve, before=before)
    return main, verification(spec, served=weights)


def neuronx(spec: ServeSpec) -> tuple[LaunchFile, ...]:
    """`vllm serve` with the Neuron plugin: one compiled program of fixed batch and length."""
    return _pair(spec, "neuronx", serve_command(spec, "neuronx"))


def api(spec: ServeSpec) -> tuple[LaunchFile, ...]:
    """A client of the cheapest API that sells the same weights, which checks its price and speed. Raises `UsageError`
    where none is known."""
    if spec.api is None:
        raise UsageError(f"no API is known that sells {spec.model}", "chipwise offers tokens")
    plan = {**asdict(spec.api), "prompt_tokens": spec.prompt_tokens, "output_tokens": spec.output_tokens}
    body = "".join(f"    {key!r}: {value!r},\n" for key, value in plan.items())
    notes = [f"to verify address, price and speed, which costs a request: {spec.api.key}=... python client.py --check"]
    program = shipped_text("report/launch/data/api.txt").replace("@PLAN@", f"{{\n{body}}}", 1)
    head = comment(replace(spec, title=f"{spec.api.model} at {spec.api.provider}", expected=()), get_tool("api"), notes)
    return (LaunchFile("client.py", f"#!/usr/bin/env python3\n{head}{program}", script=True),)


def _pair(
    spec: ServeSpec, target: str, serve: Command, measured_by: str = "vllm", before: str = ""
) -> tuple[LaunchFile, ...]:
    """The script that serves one replica, after what comes `before`, and the one that measures it."""
    card = _on_card(spec.card, PORT + spec.servers_before) if spec.card else ""
    main = script(spec, get_tool(target), f"{card}{before}{_note(spec.replicas, 'replicas')}{serve}")
    return LaunchFile("serve.sh", main, script=True), verification(spec, measured_by)


def _on_card(card: SharedCard, port: int) -> str:
    """The device of a server that shares its card, and what has to be done for it before."""
    others = ", ".join(card.others)
    beside = f"# shares its card with {others}: --plan writes the files of each, with another port\n"
    if card.asleep:
        return f"{beside}{_by_turns(port)}"
    if not card.instance:
        order = "start them one after the other: each takes its part of the memory that is free\n"
        turns = "# optional, once on the machine: nvidia-cuda-mps-control -d lets their work overlap\n"
        device = Env("SHARED_GPU", "the index of the card: one for all that share it")
        return f"{beside}# {order}{turns}export CUDA_VISIBLE_DEVICES={device}\n\n"
    cuts = ",".join(sorted(card.cuts, reverse=True))
    cut = f"# once, on an idle card i: nvidia-smi -i i -mig 1; nvidia-smi mig -i i -cgi {cuts} -C\n"
    device = Env("MIG_DEVICE", "the UUID of its MIG instance")
    return f"{beside}{cut}# its instance is {card.instance}: nvidia-smi -L\nexport CUDA_VISIBLE_DEVICES={device}\n\n"


def _by_turns(port: int) -> str:
    """A server that sleeps while others on its card are awake."""
    at = f"curl -X POST 'http://127.0.0.1:{port}"
    return (
        "# one is awake at a time. Start them one after the other and put each to sleep before the next one starts:\n"
        f"#   {at}/sleep?level=1'\n"
        "# the first time takes longest, as memory of the host is pinned. Your router wakes it when its turn comes:\n"
        f"#   {at}/wake_up'\n"
        "# keep these addresses to yourself: who reaches them can stop the server\n"
        "export VLLM_SERVER_DEV_MODE=1\n"
        f"export CUDA_VISIBLE_DEVICES={Env('SHARED_GPU', 'the index of the card: one for all that share it')}\n\n"
    )


def _note(count: int, what: str) -> str:
    return f"# one of {count} {what}; start each on its own devices\n" if count > 1 else ""
