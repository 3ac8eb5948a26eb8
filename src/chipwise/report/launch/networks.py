"""Networks without tokens: encoders of text behind a server, and in plain PyTorch those, vision, sound, and what a
function of the user's own builds.

The programs are data (`data/torch_network.txt`, `data/text_requests.txt`), the plan a dictionary in them; which class
of which library a network is, and how a server is asked, stands in the table of tools.
"""

from __future__ import annotations

import json
from dataclasses import replace
from fnmatch import fnmatchcase
from math import ceil

from chipwise.catalog.snapshot import shipped_text
from chipwise.catalog.tools import Tool, get_tool
from chipwise.errors import UsageError, shorten
from chipwise.report.launch.bench import PORT
from chipwise.report.launch.command import Command, Env, comment, log_check, script
from chipwise.report.launch.facts import told
from chipwise.report.launch.files import LaunchFile
from chipwise.report.launch.founding import DTYPES, VERIFY
from chipwise.report.launch.pipelines import COMPILED, planned_script, several
from chipwise.report.launch.spec import LaunchPasses, PipelineSpec

QUANTISED = ("int8", "fp8")  # by Q/DQ in a network's file
WIDE = {**DTYPES, "tf32": "float32"}
LAYOUTS = {("memory_format", "channels_last"): True, ("memory_format", "nchw"): False}
"""Settings that the script has, and whether images lie with their channels last."""
WINDOW_S = 30.0  # of sound that a network with a spectrum of fixed length is given at once


IMAGE = "ghcr.io/huggingface/text-embeddings-inference:cuda"
"""Its router for all cards of one maker."""
LEAST_TOKENS = 16384
"""tokens: of a batch of that router by default, which longer inputs are cut to."""


def network_tei(spec: PipelineSpec) -> tuple[LaunchFile, ...]:
    """A container of the router, and requests that verify the plan. Raises `UsageError` for other software, weights
    that nobody knows, and rerankers that are not published as classifiers."""
    tool, tokens = get_tool("tei"), round(dict(spec.sizes).get("tokens", 0.0))
    several, asking = _served(spec, tool)
    port = Env("PORT", "a free port", then=":80") if several else f"{PORT}:80"
    facts = {
        "several": several,
        "cache": "text-embeddings:/data",
        "port": port,
        "repository": spec.weights,
        "dtype": DTYPES[spec.precision],
        "batch": spec.batch,
        "batch_tokens": max(spec.batch * tokens, LEAST_TOKENS),
    }
    start = told(Command.of("tei", "docker run"), facts, part="docker").positional(f"{IMAGE}-{tool.version}")
    card = f"export CUDA_VISIBLE_DEVICES={Env('GPU', 'the index of its card')}\n\n" if several else ""
    notes = [f"inputs of more than {facts['batch_tokens']:,} tokens, or than the model reads, are cut"]
    return _server(spec, tool, f"{card}{told(start, facts)}", asking, notes)


def network_vllm(spec: PipelineSpec) -> tuple[LaunchFile, ...]:
    """`vllm serve` as a server of vectors and scores, and requests that verify the plan. Raises `UsageError` for other
    software and weights that nobody knows."""
    tool, tokens = get_tool("vllm"), round(dict(spec.sizes).get("tokens", 0.0))
    several, asking = _served(spec, tool)
    facts = {
        "dtype": DTYPES.get(spec.precision, DTYPES["bf16"]),
        "eight": spec.precision == "fp8",
        "overrides": "".join(asking[2:]),
        "batch": spec.batch,
        "batch_tokens": spec.batch * tokens,
        "port": Env("PORT", "a free port") if several else PORT,
    }
    serve = told(Command.of("vllm", "vllm serve", spec.weights), facts, part="pooling")
    note = "of a small encoder, words and JSON on the host may set the pace: vllm serve --api-server-count 4 helps"
    return _server(spec, tool, str(serve), asking, [note], named=True)


def _served(spec: PipelineSpec, tool: Tool) -> tuple[bool, tuple[str, ...]]:
    """Whether a plan has several servers, and how one is asked. Raises `UsageError` where it cannot start one."""
    if spec.runtime not in tool.runtimes:
        raise UsageError(
            f"this plan generates no tokens and runs {spec.runtime}; of such {tool.name} serves text encoders",
            f"plan one with --runtime {tool.runtimes[0]}",
        )
    formats = (*DTYPES, *(["fp8"] if "--quantization" in tool.options else []))
    if spec.precision not in formats:
        hint = f"plan with --precision {' or '.join(formats)}"
        raise UsageError(f"{tool.name} does not run {spec.precision}", hint)
    if not spec.weights:
        raise UsageError(
            f"no published weights of {shorten(spec.model)} are known", "ask for the model by its name on the hub"
        )
    name = spec.weights.rsplit("/", 1)[-1].lower()
    asking = next(way for pattern, way in tool.models.items() if fnmatchcase(name, pattern))
    if not asking:
        raise UsageError(f"{tool.name} does not run {shorten(spec.weights)} as it is published", "--runtime vllm")
    return spec.replicas * spec.machine.devices > 1, asking


def _server(
    spec: PipelineSpec, tool: Tool, serve: str, asking: tuple[str, ...], notes: list[str], *, named: bool = False
) -> tuple[LaunchFile, ...]:
    """The script that starts one server, and the requests that verify it; a server is `named` the model."""
    path, field, *_ = asking
    pairs, count = path.endswith("rerank"), spec.replicas * spec.machine.devices
    body = {"model": spec.weights} if named else {}
    body |= {"query": "a question"} if pairs else {}
    example = json.dumps(body | {field: ["a text", "another"]})
    curl = f"curl 127.0.0.1:{'$PORT' if count > 1 else PORT}{path} -H 'Content-Type: application/json' -d '{example}'"
    spare = spec.spare * spec.machine.devices
    if count > 1:
        spared = f", {spare} of them to spare" if spare else ""
        notes = [
            f"one of {count} servers{spared}: start each with another card and PORT, behind your balancer, which sends "
            "to the server with the fewest open requests (nginx: least_conn)",
            *notes,
        ]
    said = [*notes, f"a request: {curl}", "to verify the plan: python3 verify.py"]
    plan = {
        "title": spec.title,
        "chip": spec.machine.chip,
        "url": f"http://127.0.0.1:{PORT}",
        "path": path,
        "field": field,
        "pairs": pairs,
        "named": named,
        "weights": spec.weights,
        "tokens": round(dict(spec.sizes).get("tokens", 1.0)),
        "batch": spec.batch,
        "rate_per_s": spec.rate_per_s / max(count - spare, 1),
        "predicted_s": spec.seconds,
        "interval": list(spec.interval),
    }
    about = comment(spec, tool, ["loads one server of the plan: python3 verify.py --url http://HOST:PORT"])
    serving = LaunchFile("serve.sh", script(spec, tool, serve, notes=said), script=True)
    return serving, planned_script("verify.py", "text_requests", about, plan)


def network_torch(spec: PipelineSpec) -> tuple[LaunchFile, ...]:
    """A script that makes the plan's request and times it. Raises `UsageError` for a network that no library loads and
    no function builds, other software or number formats, several devices, and parts on the host."""
    if spec.runtime not in COMPILED:
        raise UsageError(f"the script runs PyTorch, the plan {spec.runtime}", f"--runtime {' or '.join(COMPILED)}")
    return _script(spec, get_tool("torch"), "run_torch.py")


def network_neuronx(spec: PipelineSpec) -> tuple[LaunchFile, ...]:
    """The same as one program that is traced for a NeuronCore. Raises the errors of `network_torch`, and for chips
    without such cores."""
    tool = get_tool("torch-neuronx")
    if spec.machine.vendor not in tool.vendors:
        raise UsageError(f"{spec.machine.chip} has no NeuronCores", "plan with --chip trainium2 or inferentia2")
    return _script(spec, tool, "run_torch_neuronx.py")


def network_tensorrt(spec: PipelineSpec) -> tuple[LaunchFile, ...]:
    """Scripts that write the network as ONNX, build an engine of it and time that: `trtexec`, with inputs on the device
    as in the prediction. Raises the errors of `network_torch`, and for what is called more than once for a request."""
    tool = get_tool("tensorrt")
    if spec.runtime not in tool.runtimes:
        raise UsageError(f"{tool.name} runs engines, the plan {spec.runtime}", f"--runtime {tool.runtimes[0]}")
    if not spec.code and {"spectrum", "targets"} & {*get_tool("torch").models.get(spec.model, ())}:
        raise UsageError(
            f"{shorten(spec.model)} writes word by word: no one graph that an engine runs", "--runtime compile"
        )
    narrow = spec.precision in QUANTISED
    program = _script(replace(spec, precision="fp32") if narrow else spec, get_tool("torch"), "run_torch.py")
    facts = {"precision": spec.precision, "file": "quantized.onnx" if narrow else "network.onnx"}
    quantize = told(Command.of(tool.id, "python -m modelopt.onnx.quantization"), facts, part="quantize")
    build = told(Command.of(tool.id, "trtexec"), facts, part="build")
    timed = told(Command.of(tool.id, "trtexec"), facts)
    passes = LaunchPasses(step_s=spec.seconds, interval=spec.interval)
    ready = "python export.py network.onnx"
    notes = [
        "in an environment with torch, onnx, onnxscript, TensorRT's trtexec and what run_torch.py loads",
        *(["scales are those of random inputs: ModelOpt takes yours as --calibration_data_path"] * narrow),
    ]
    steps = (ready, *([quantize] if narrow else []), build)
    return (
        *program,
        LaunchFile("export.py", shipped_text("report/launch/data/onnx_export.txt")),
        LaunchFile("build.sh", script(spec, tool, *steps, notes=notes), script=True),
        LaunchFile(
            "verify.sh",
            script(
                spec,
                tool,
                f"{timed} 2>&1 | tee verify.log",
                log_check(tool, passes, steps=1, warm=0),
                notes=["after build.sh, to verify the plan: a step is its request", *several(spec)],
            ),
            script=True,
        ),
    )


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
