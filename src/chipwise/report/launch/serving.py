"""Serving engines: vLLM (and vLLM on Neuron), SGLang, TensorRT-LLM, Dynamo, llama.cpp."""

from __future__ import annotations

from shlex import quote

from chipwise.catalog.tools import get_tool
from chipwise.errors import UsageError
from chipwise.report.launch.command import Command, script
from chipwise.report.launch.spec import LaunchFile, ServeSpec

__all__ = ["PORT", "dynamo", "llama_cpp", "neuronx", "serve_command", "sglang", "trtllm", "verify", "vllm"]

PORT = 8000
REQUESTS = 10  # of the benchmark, for every request in flight
GGUF = {"q8_0": "q8_0", "bf16": "bf16", "fp16": "f16", "fp8": "q8_0"}


def vllm(spec: ServeSpec) -> tuple[LaunchFile, ...]:
    """`vllm serve` and `vllm bench serve`."""
    return _pair(spec, "vllm", _vllm(Command.of("vllm", f"vllm serve {quote(spec.model)}"), spec))


def sglang(spec: ServeSpec) -> tuple[LaunchFile, ...]:
    """`sglang.launch_server` and SGLang's own benchmark."""
    return _pair(spec, "sglang", serve_command(spec, "sglang"), _sglang_bench(spec))


def trtllm(spec: ServeSpec) -> tuple[LaunchFile, ...]:
    """`trtllm-serve`, with attention parallelism and cache format in a YAML file of its own."""
    tool = get_tool("trtllm")
    extra = [f"enable_attention_dp: {'true' if spec.dp > 1 else 'false'}"]
    extra += [f"kv_cache_config:\n  dtype: {spec.kv}"] if spec.kv else []
    files = _pair(spec, "trtllm", serve_command(spec, "trtllm"))
    return (
        *files,
        LaunchFile("trtllm.yaml", f"# settings of {tool.name} that have no option\n{_lines(extra)}"),
    )


def dynamo(spec: ServeSpec) -> tuple[LaunchFile, ...]:
    """A frontend and one vLLM worker per replica."""
    frontend = Command.of("dynamo", "python -m dynamo.frontend").option("--http-port", PORT)
    worker = _vllm(
        Command.of("dynamo", "python -m dynamo.vllm")
        .option("--model", spec.model)
        .option("--disaggregation-mode", "agg"),
        spec,
        port=False,
    )
    return _pair(spec, "dynamo", f"{frontend} &", worker)


def llama_cpp(spec: ServeSpec) -> tuple[LaunchFile, ...]:
    """`llama-server`: slots share the cache; devices share the layers."""
    slots = max(1, min(spec.concurrency, spec.sequences))
    on_cpu = spec.machine.vendor in ("intel", "amd") and "epyc" in spec.machine.chip
    devices = spec.machine.devices
    kv = {"fp8": "q8_0", "bf16": "bf16"}.get(spec.kv, "f16")
    command = (
        Command.of("llama.cpp", "llama-server")
        .option("--model", f"{spec.model.rpartition('/')[2]}-{spec.precision.upper()}.gguf")
        .option("--ctx-size", spec.length * slots)
        .option("--parallel", slots)
        .option("--n-gpu-layers", 0 if on_cpu else 999)
        .option("--split-mode", "row" if spec.tp > 1 else "layer", when=devices > 1)
        .option("--tensor-split", ",".join("1" * devices), when=devices > 1)
        .option("--cache-type-k", kv)
        .option("--cache-type-v", kv)
        .option("--flash-attn", "on")
        .option("--port", PORT)
    )
    return _pair(spec, "llama.cpp", command)


def neuronx(spec: ServeSpec) -> tuple[LaunchFile, ...]:
    """`vllm serve` with the Neuron plugin: one compiled program of fixed batch and length."""
    return _pair(spec, "neuronx", serve_command(spec, "neuronx"))


def serve_command(spec: ServeSpec, target: str) -> Command:
    """The command that starts one replica with an engine."""
    if target == "sglang":
        return (
            Command.of("sglang", "python -m sglang.launch_server")
            .option("--model-path", spec.model)
            .option("--tp-size", spec.tp * spec.dp)
            .option("--attn-dp-size", spec.dp, when=spec.dp > 1)
            .option("--ep-size", spec.ep, when=spec.ep > 1)
            .option("--pp-size", spec.pp, when=spec.pp > 1)
            .option("--context-length", spec.length)
            .option("--mem-fraction-static", f"{spec.memory_share:g}")
            .option("--max-running-requests", spec.sequences * spec.dp)
            .option("--chunked-prefill-size", spec.budget_tokens)
            .option(
                "--kv-cache-dtype", f"{spec.kv}_e4m3" if spec.kv == "fp8" else spec.kv, when=bool(spec.kv)
            )
            .option("--quantization", spec.convert, when=bool(spec.convert))
            .option("--nnodes", spec.machine.hosts, when=spec.machine.hosts > 1)
            .option("--node-rank", '"${NODE_RANK:?}"', when=spec.machine.hosts > 1)
            .option("--dist-init-addr", '"${HEAD_ADDRESS:?}:20000"', when=spec.machine.hosts > 1)
            .option("--port", PORT)
        )
    if target == "trtllm":
        ranks = f'mpirun -n {spec.machine.devices} --hostfile "${{HOSTS:?}}" trtllm-llmapi-launch '
        together = ranks if spec.machine.hosts > 1 else ""
        return (
            Command.of("trtllm", f"{together}trtllm-serve {quote(spec.model)}")
            .option("--tp_size", spec.tp * spec.dp)
            .option("--pp_size", spec.pp, when=spec.pp > 1)
            .option("--ep_size", spec.ep, when=spec.ep > 1)
            .option("--gpus_per_node", spec.machine.devices_of_host, when=spec.machine.hosts > 1)
            .option("--max_batch_size", spec.sequences)
            .option("--max_num_tokens", spec.budget_tokens)
            .option("--max_seq_len", spec.length)
            .option("--kv_cache_free_gpu_memory_fraction", f"{spec.memory_share:g}")
            .option("--config", "trtllm.yaml")
            .option("--port", PORT)
        )
    if target == "neuronx":
        return (
            Command.of("neuronx", f"vllm serve {quote(spec.model)}")
            .option("--tensor-parallel-size", spec.tp)
            .option("--max-model-len", spec.length)
            .option("--max-num-seqs", spec.sequences)
            .option("--block-size", spec.block_tokens)
            .option("--port", PORT)
        )
    return _vllm(Command.of("vllm", f"vllm serve {quote(spec.model)}"), spec)


def verify(spec: ServeSpec) -> Command:
    """The benchmark that measures what was predicted, on one replica."""
    rate = None if spec.rate_per_s is None else spec.rate_per_s / spec.replicas
    return (
        Command.of("vllm", "vllm bench serve")
        .option("--backend", "openai")
        .option("--base-url", f"http://127.0.0.1:{PORT}")
        .option("--model", spec.model)
        .option("--dataset-name", "random")
        .option("--random-input-len", spec.prompt_tokens)
        .option("--random-output-len", spec.output_tokens)
        .option("--ignore-eos")
        .option("--request-rate", f"{rate:.4g}" if rate else "", when=rate is not None)
        .option("--max-concurrency", spec.concurrency, when=rate is None)
        .option("--num-prompts", max(REQUESTS * spec.concurrency, 100))
        .option("--percentile-metrics", "ttft,tpot")
        .option("--metric-percentiles", "50,95,99")
        .option("--save-result")
    )


def _vllm(command: Command, spec: ServeSpec, *, port: bool = True) -> Command:
    """The options of the engine; of several hosts each is started with its NODE_RANK."""
    several, local = spec.machine.hosts > 1, max(1, spec.dp // spec.machine.hosts)
    return (
        command.option("--tensor-parallel-size", spec.tp, when=spec.tp > 1)
        .option("--pipeline-parallel-size", spec.pp, when=spec.pp > 1)
        .option("--data-parallel-size", spec.dp, when=spec.dp > 1)
        .option("--enable-expert-parallel", when=spec.experts and spec.ep > 1)
        .option("--max-model-len", spec.length)
        .option("--gpu-memory-utilization", f"{spec.memory_share:g}")
        .option("--max-num-seqs", spec.sequences)
        .option("--max-num-batched-tokens", spec.budget_tokens)
        .option("--kv-cache-dtype", spec.kv, when=bool(spec.kv))
        .option("--quantization", spec.convert, when=bool(spec.convert))
        .option("--data-parallel-size-local", local, when=several and spec.dp > 1)
        .option("--data-parallel-start-rank", f'"$((NODE_RANK * {local}))"', when=several and spec.dp > 1)
        .option("--data-parallel-address", '"${HEAD_ADDRESS:?}"', when=several and spec.dp > 1)
        .option("--nnodes", spec.machine.hosts, when=several and spec.dp == 1)
        .option("--node-rank", '"${NODE_RANK:?}"', when=several and spec.dp == 1)
        .option("--master-addr", '"${HEAD_ADDRESS:?}"', when=several and spec.dp == 1)
        .option("--port", PORT, when=port)
    )


def _sglang_bench(spec: ServeSpec) -> Command:
    rate = None if spec.rate_per_s is None else spec.rate_per_s / spec.replicas
    return (
        Command.of("sglang", "python -m sglang.benchmark.serving")
        .option("--backend", "sglang")
        .option("--base-url", f"http://127.0.0.1:{PORT}")
        .option("--model", spec.model)
        .option("--dataset-name", "random")
        .option("--random-input-len", spec.prompt_tokens)
        .option("--random-output-len", spec.output_tokens)
        .option("--random-range-ratio", 1)
        .option("--request-rate", f"{rate:.4g}" if rate else "", when=rate is not None)
        .option("--max-concurrency", spec.concurrency, when=rate is None)
        .option("--num-prompts", max(REQUESTS * spec.concurrency, 100))
        .option("--output-file", "result.jsonl")
    )


def _pair(spec: ServeSpec, target: str, *commands: object) -> tuple[LaunchFile, ...]:
    """The script that serves one replica, and the one that measures it."""
    tool = get_tool(target)
    if spec.runtime not in tool.runtimes:
        raise UsageError(
            f"the plan was priced for {spec.runtime}, {tool.name} is another runtime",
            f"plan with --runtime {tool.runtimes[0]}",
        )
    bench = commands[-1] if target == "sglang" else verify(spec)
    serve = commands[:-1] if target == "sglang" else commands
    note = f"# one of {spec.replicas} replicas; start each on its own devices\n" if spec.replicas > 1 else ""
    main = script(spec, tool, *(f"{note if i == 0 else ''}{c}" for i, c in enumerate(serve)))
    bench_tool = tool if target == "sglang" else get_tool("vllm")
    return (
        LaunchFile("serve.sh", main, script=True),
        LaunchFile("verify.sh", script(spec, bench_tool, bench), script=True),
    )


def _lines(parts: list[str]) -> str:
    return "\n".join(parts) + "\n"
