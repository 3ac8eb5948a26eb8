"""Frameworks that people train with besides Megatron-LM, torchtitan and MaxText: DeepSpeed, Megatron-DeepSpeed,
llm-foundry, OLMo-core, AXLearn, Levanter, Optimum Neuron, Optimum Habana, Primus and fms-fsdp."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from chipwise.catalog.snapshot import shipped_text
from chipwise.catalog.software import all_software
from chipwise.catalog.tools import Tool, get_tool
from chipwise.catalog.trainer import Trainer
from chipwise.errors import UsageError
from chipwise.report.launch.command import Command, Env, here_document
from chipwise.report.launch.facts import MEASURED, PORT, Facts, document, run_facts, told
from chipwise.report.launch.markup import documented, yaml
from chipwise.report.launch.ranks import known_model, known_optimizer, known_precision, ranks
from chipwise.report.launch.spec import TrainSpec

STAGES = {"none": 0, "zero-1": 1, "zero-2": 2, "fsdp": 3}  # of ZeRO
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
LINEAR = (*ATTENTION, "gate_proj", "up_proj", "down_proj")
DATA, OUTPUT = Env("DATA_PATH", "the examples"), Env("OUTPUT", "where checkpoints go")
HEAD = Env("HEAD_ADDRESS")


NARROW = {"primus": ("bf16", "fp8")}  # types of products that a tool is told here; else bf16 alone


def _row(target: str) -> Trainer:
    """What a tool is told here: its row among the trainers."""
    return next(t for t in all_software(Trainer).values() if t.tool == target)


def _checked(spec: TrainSpec, target: str) -> Tool:
    """The tool, where it can be told all of a plan. Raises `UsageError` with the nearest that it can."""
    tool, can = get_tool(target), _row(target)
    if spec.sharding not in STAGES:
        raise UsageError(f"{spec.sharding} is not a way to shard states", f"one of {', '.join(STAGES)}")
    _cut(spec, tool, can)
    _sharded(spec, tool, can)
    if spec.offload > 0 and not can.offloads:
        raise UsageError(
            f"{tool.name} is not configured here to keep the optimiser in host memory", "plan with --layout offload=0"
        )
    if 0.0 < spec.offload < 1.0:
        raise UsageError(f"{tool.name} keeps all of the optimiser in host memory or none of it here")
    known_precision(spec, target, NARROW.get(target, ("bf16",)))
    known_optimizer(spec, target)
    if not can.accumulates and _passes(spec) > 1:
        raise UsageError(
            f"{tool.name} has one micro-batch in a step, the plan {_passes(spec)}",
            f"plan with --global-batch {spec.dp * spec.micro_batch}",
        )
    if spec.tuned == "qlora" or (spec.tuned == "lora" and target != "optimum-habana"):
        raise UsageError(
            f"{tool.name} is not configured here to train {spec.tuned} adapters",
            "plan with --method full, or --trainer hf-trainer",
        )
    return tool


def _cut(spec: TrainSpec, tool: Tool, can: Trainer) -> None:
    """Raises `UsageError` where the tool does not cut along an axis of the plan, or does not know its schedule."""
    schedules = can.schedules or ("1f1b",)
    cuts = [d for d in can.degrees if d != "ep"]
    cuts += ["vp"] if "interleaved" in schedules else []
    cuts += ["ep"] if "ep" in can.degrees else []
    for axis in ("tp", "pp", "vp", "cp", "ep"):
        degree = getattr(spec, axis)
        if degree > 1 and axis not in cuts:
            legal = f"it cuts {', '.join(cuts)}" if can.degrees else "it runs data-parallel ranks alone"
            raise UsageError(
                f"{tool.name} is not configured here for {axis}{degree}: {legal}", f"plan with --layout {axis}=1"
            )
    if spec.schedule not in ("", *schedules):
        raise UsageError(f"{spec.schedule} is no schedule of {tool.name} here", "plan with --layout schedule=1f1b")


def _sharded(spec: TrainSpec, tool: Tool, can: Trainer) -> None:
    """Raises `UsageError` where the tool does not shard states as the plan does."""
    sharding = [name for name, stage in STAGES.items() if stage in (can.zero or STAGES.values())]
    ranks_cut = spec.dp * spec.cp
    if spec.sharding not in sharding and ranks_cut > 1:
        stage = min((STAGES[s] for s in sharding), key=lambda z: (abs(z - STAGES[spec.sharding]), -z))
        raise UsageError(
            f"{tool.name} is not configured here for {spec.sharding}, only for {', '.join(sharding)}",
            f"plan with --layout zero={stage}",
        )
    if spec.sharding != "fsdp":
        return
    if spec.shard_ranks < ranks_cut and not can.hybrid:
        raise UsageError(
            f"{tool.name} cuts weights over all {ranks_cut} ranks here, the plan over {spec.shard_ranks}",
            f"plan with --layout shard={ranks_cut}",
        )
    if ranks_cut % min(spec.shard_ranks, ranks_cut):
        raise UsageError(
            f"weights over {spec.shard_ranks} of {ranks_cut} ranks make no whole groups",
            f"plan with --layout shard={ranks_cut}",
        )


def _passes(spec: TrainSpec) -> int:
    """Micro-batches of a step."""
    return max(spec.global_batch // (spec.dp * spec.micro_batch), 1)


def _again(spec: TrainSpec) -> bool:
    """Whether layers run again in the backward pass."""
    return spec.recomputed > 0 or spec.selective


def _decoder(spec: TrainSpec, tool: Tool) -> None:
    """Raises `UsageError` for a network that options of dense decoders do not describe."""
    n = spec.network
    if not n.plain or n.experts or n.latent is not None:
        raise UsageError(
            f"{tool.name} is configured here for dense decoders with softmax attention, not for {spec.model}",
            "plan with --trainer nemo",
        )


def framework_notes(spec: TrainSpec, target: str) -> tuple[str, ...]:
    """What the user of a framework must know."""
    tool, can, n = get_tool(target), _row(target), spec.network
    share = f"the plan runs {spec.recomputed:.0%} of the layers again, {tool.name} can only do all: slower"
    every = f"the plan recomputes selectively, {tool.name} whole layers: slower, in less memory"
    found = [share] if 0.0 < spec.recomputed < 1.0 and "shares" not in can.recompute else []
    found += [every] if spec.selective and target not in ("megatron-deepspeed", "primus") else []
    base = n.rope is not None and n.rope.base != 1e4
    more = {
        "deepspeed": ("run_clm.py and run_mlm.py are in examples/pytorch/language-modeling of Transformers",),
        "megatron-deepspeed": (
            *(("its rotary positions have base 10,000: the model's own is another",) if base else ()),
            *(("Gaudi: HabanaAI's fork of Megatron-DeepSpeed",) if spec.machine.vendor == "intel" else ()),
        ),
        "llm-foundry": ("train/train.py is in scripts of llm-foundry; ./data holds shards of MosaicML Streaming",),
        "olmo-core": ("DATA_PATH is a pattern of .npy files of token ids, by the model's own tokenizer",),
        "axlearn": ("DATA_PATH is a TFDS folder, or FAKE; a step's time is written to the summaries in OUTPUT",),
        "levanter": ("examples are wikitext's: name your own under data; a step's time goes to the tracker",),
        "optimum-neuron": (
            "DATA_PATH is a data set of Hugging Face, with text or messages; neuron_parallel_compile compiles it first",
        ),
        "optimum-habana": (
            "gaudi_spawn.py is in examples of optimum-habana",
            *(("HOSTS is a hostfile of DeepSpeed",) if spec.machine.hosts > 1 else ()),
        ),
        "primus": ("run from Primus' repository, with tokens in ./data",),
        "fms-fsdp": ("DATA_PATH holds its Arrow shards",),
    }
    return (*found, *more.get(target, ()))


def zero_file(spec: TrainSpec, tool: Tool) -> str:
    """DeepSpeed's configuration as the shell writes it to ds.json; what waits in host memory is updated by its own
    Adam there, at stage 1 at least."""
    stage = max(STAGES[spec.sharding], int(spec.offload > 0))
    narrow = spec.optimizer == "adamw-bf16" and not spec.master and spec.tuned not in ("lora", "qlora")
    own = {"stage": stage, "own_adam": "optimizer" in tool.options, "narrow": narrow and stage > 0}
    file = document("deepspeed", run_facts(spec, 0) | own)
    documented(file, tool)
    return here_document("ds.json", json.dumps(file, indent=2) + "\n")


def _run_clm(command: Command, facts: Facts) -> Command:
    """The options that Hugging Face's example of causal language models has with every backend: published weights, or
    random ones of a configuration, then its Trainer's."""
    for part in ("weights", "options", "trainer"):
        command = told(command, facts, "run_clm", part)
    return command


def _deepspeed(spec: TrainSpec, steps: int) -> str:
    tool = _checked(spec, "deepspeed")
    command = Command(tool, "run_mlm.py" if spec.objective == "masked" else "run_clm.py").option(
        "--deepspeed", "ds.json"
    )
    return f"{zero_file(spec, tool)}\n{ranks(spec)} \\\n  {_run_clm(command, run_facts(spec, steps))}"


def _megatron_deepspeed(spec: TrainSpec, steps: int) -> str:
    tool = _checked(spec, "megatron-deepspeed")
    _decoder(spec, tool)
    if spec.pp > 1 and STAGES[spec.sharding] > 1:
        raise UsageError(f"{tool.name} has no stages with {spec.sharding}", "plan with --layout zero=1")
    facts = run_facts(spec, steps) | {"zero_stage": STAGES[spec.sharding]}
    command = told(Command(tool, "pretrain_gpt.py"), facts)
    return f"{zero_file(spec, tool)}\n{ranks(spec)} \\\n  {command}"


def _llm_foundry(spec: TrainSpec, steps: int) -> str:
    tool, facts = _checked(spec, "llm-foundry"), run_facts(spec, steps)
    command = told(Command(tool, "composer"), facts).positional("train/train.py", "llm-foundry.yml")
    return f"{here_document('llm-foundry.yml', yaml(document(tool.id, facts), tool))}\n{command}"


def own_python(name: str, file: str, spec: TrainSpec, **plan: object) -> str:
    """A program of Python that is shipped as data, with the plan as a dictionary in it, as the shell writes it to a
    file."""
    body = "".join(f"    {key!r}: {value!r},\n" for key, value in {"title": spec.title, **plan}.items())
    text = shipped_text(f"report/launch/data/{name}.txt").replace("@PLAN@", f"{{\n{body}}}", 1)
    return here_document(file, text)


def _olmo_core(spec: TrainSpec, steps: int) -> str:
    tool = _checked(spec, "olmo-core")
    (factory,) = known_model(spec, tool)
    learned = run_facts(spec, steps)
    written = own_python(
        "olmo_core",
        "olmo_core.py",
        spec,
        model=spec.model,
        factory=factory,
        attention=next(iter(document(tool.id, learned, "attention")), ""),
        dp=spec.dp,
        tp=spec.tp,
        cp=spec.cp,
        shards=min(spec.shard_ranks, spec.dp * spec.cp),
        again=_again(spec),
        seq=spec.seq,
        micro_batch=spec.micro_batch,
        global_batch=spec.global_batch,
        steps=steps,
        rate=learned["rate"],
        warm=learned["warm"],
        least=learned["least"],
        save_steps=spec.save_steps,
        measured=steps <= MEASURED,
    )
    return f"export DATA_PATH={DATA} OUTPUT={OUTPUT}\n{written}\n{ranks(spec)} \\\n  olmo_core.py"


def _axlearn(spec: TrainSpec, steps: int) -> str:
    tool = _checked(spec, "axlearn")
    config, seq = known_model(spec, tool)
    if int(seq) != spec.seq:
        raise UsageError(
            f"{tool.name}'s {config} has sequences of {seq} tokens, the plan of {spec.seq}", f"plan with --seq {seq}"
        )
    _whole_rank(spec, tool)
    written = own_python(
        "axlearn",
        "axlearn_plan.py",
        spec,
        dp=spec.dp,
        tp=spec.tp,
        shards=min(spec.shard_ranks, spec.dp),
        again=_again(spec),
        global_batch=spec.global_batch,
        passes=_passes(spec),
        steps=steps,
    )
    backend = {"google": "tpu", "aws": "neuron"}.get(spec.machine.vendor, "gpu")
    facts = run_facts(spec, steps) | {"config": config, "backend": backend}
    return f"{written}\n{told(Command(tool, 'python axlearn_plan.py'), facts)}"


def _whole_rank(spec: TrainSpec, tool: Tool) -> None:
    """Raises `UsageError` where sequences of a pass do not divide among ranks."""
    if spec.global_batch % (spec.dp * spec.micro_batch):
        raise UsageError(f"{tool.name} takes whole micro-batches of every rank", "plan with another --global-batch")


def _levanter(spec: TrainSpec, steps: int) -> str:
    tool = _checked(spec, "levanter")
    _decoder(spec, tool)
    file = yaml(document(tool.id, run_facts(spec, steps)), tool)
    command = Command(tool, "python -m levanter.main.train_lm").option("--config_path", "levanter.yml")
    return f"{here_document('levanter.yml', file)}\n{command}"


def _optimum_neuron(spec: TrainSpec, steps: int) -> str:
    tool, facts = _checked(spec, "optimum-neuron"), run_facts(spec, steps)
    facts |= {"rank_batch": spec.micro_batch * facts["passes"]}
    if spec.pp > 1 and spec.micro_batch > 1:
        raise UsageError(
            f"{tool.name} runs single sequences through its stages, the plan {spec.micro_batch} at once",
            "plan with --layout micro_batch=1",
        )
    written = own_python(
        "optimum_neuron", "neuron_plan.py", spec, model=spec.model, published=bool(spec.tuned), seq=spec.seq
    )
    command = told(Command(tool, "neuron_plan.py"), facts)
    return f"export DATA_PATH={DATA}\n{written}\n{ranks(spec)} \\\n  {command}"


def _optimum_habana(spec: TrainSpec, steps: int) -> str:
    tool, machine = _checked(spec, "optimum-habana"), spec.machine
    adapters, cut = spec.tuned == "lora", STAGES[spec.sharding] > 0 and machine.devices > 1
    if adapters and (spec.dora or spec.targets == "experts"):
        raise UsageError(f"{tool.name} puts plain adapters on layers", "plan with --adapter targets=linear")
    if machine.hosts > 1 and not cut:
        raise UsageError(f"{tool.name} starts several hosts by DeepSpeed", "plan with --layout zero=1")
    facts = run_facts(spec, steps) | {
        "cut": cut,
        "hostfile": Env("HOSTS", "the hostfile"),
        "modules": LINEAR if spec.targets == "linear" else ATTENTION,
    }
    spawn = told(Command(tool, "python ../gaudi_spawn.py"), facts, part="spawn")
    command = Command(tool, "run_lora_clm.py" if adapters else "run_clm.py")
    command = command.option("--deepspeed", "ds.json", when=cut)
    if adapters:
        command = told(told(command, facts, "run_clm", "weights"), facts, part="adapted")
        command = told(told(command, facts, "run_clm", "trainer"), facts, part="adapters")
    else:
        command = _run_clm(command, facts)
    command = told(command, facts)
    written = f"{zero_file(spec, tool)}\n" if cut else ""
    alone = machine.devices == 1
    return f"{written}python {command}" if alone else f"{written}{spawn} \\\n  {command}"


def _primus(spec: TrainSpec, steps: int) -> str:
    tool = _checked(spec, "primus")
    (model,) = known_model(spec, tool)
    parts = spec.pp * spec.vp
    if spec.network.layers % parts:
        raise UsageError(
            f"{spec.network.layers} layers make no {parts} equal parts of stages", "keep another pp of --layout"
        )
    if spec.sharding == "fsdp" and spec.pp > 1:
        raise UsageError(f"{tool.name} has no stages with FSDP", "plan with --layout pp=1, or zero=1")
    layers = spec.network.layers // parts
    again = max(round(layers * spec.recomputed), int(spec.recomputed > 0))
    facts = run_facts(spec, steps) | {
        "name": model,
        "zero_1": spec.sharding == "zero-1",
        "fsdp": spec.sharding == "fsdp",
        "layers_of_part": layers,
        "again_layers": again,
    }
    file = document(tool.id, facts | {"overrides": document(tool.id, facts, "overrides")})
    machine = spec.machine
    several = machine.hosts > 1
    hosts = f"export NODE_RANK={Env('NODE_RANK')} MASTER_ADDR={HEAD} MASTER_PORT={PORT}\n" if several else ""
    shape = f"export EXP=primus.yaml NNODES={machine.hosts:d} GPUS_PER_NODE={machine.devices_of_host:d}\n"
    command = Command(tool, "bash examples/run_pretrain.sh")
    return f"{here_document('primus.yaml', yaml(file, tool))}\n{hosts}{shape}{command}"


def _fms_fsdp(spec: TrainSpec, steps: int) -> str:
    tool = _checked(spec, "fms-fsdp")
    (variant,) = known_model(spec, tool)
    each = spec.machine.devices_of_host
    hybrid = spec.sharding == "fsdp" and spec.shard_ranks < spec.dp
    if hybrid and spec.shard_ranks != each:
        raise UsageError(
            f"{tool.name} cuts weights over all {spec.dp} ranks or over the {each} of a host",
            f"plan with --layout shard={each}",
        )
    own = {"name": variant, "hybrid": hybrid, "share": spec.recomputed or float(spec.selective)}
    command = told(Command(tool, "main_training_llama.py"), run_facts(spec, steps) | own)
    return f"{ranks(spec)} \\\n  {command}"


FRAMEWORKS: Mapping[str, Callable[[TrainSpec, int], str]] = {
    "deepspeed": _deepspeed,
    "megatron-deepspeed": _megatron_deepspeed,
    "llm-foundry": _llm_foundry,
    "olmo-core": _olmo_core,
    "axlearn": _axlearn,
    "levanter": _levanter,
    "optimum-neuron": _optimum_neuron,
    "optimum-habana": _optimum_habana,
    "primus": _primus,
    "fms-fsdp": _fms_fsdp,
}
"""The command of one host by tool; each raises `UsageError` for what the tool cannot be told."""
