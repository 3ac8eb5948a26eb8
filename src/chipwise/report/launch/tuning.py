"""Training published weights on: TRL, sentence-transformers, LLaMA-Factory, Axolotl, NeMo AutoModel, torchtune and
Unsloth, on data-parallel ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chipwise.catalog.tools import get_tool
from chipwise.errors import UsageError
from chipwise.report.launch.command import Command, Env, here_document
from chipwise.report.launch.facts import document, run_facts, told
from chipwise.report.launch.frameworks import ATTENTION, STAGES, own_python, zero_file
from chipwise.report.launch.markup import yaml
from chipwise.report.launch.ranks import SCHEDULES, in_memory, known_model, known_optimizer, known_precision, ranks
from chipwise.report.launch.spec import TrainSpec

FSDP = {"fsdp": "full_shard auto_wrap", "zero-2": "shard_grad_op auto_wrap"}  # of Transformers
FUSED = ("fused", "chunked")  # losses that never hold an fp32 copy of all logits


def _facts(spec: TrainSpec, target: str, steps: int) -> dict[str, Any]:
    """What every tool is told: `packed` weights are of 4 bits, `linear` layers are adapted all or those of attention;
    `fsdp`: how weights are cut over ranks, None where they are whole or DeepSpeed cuts them; `cut`: they are in
    parts; `narrow`: trained in 16 bits, `wide`: in 32 on one device; `optim` as the tool calls it; `liger`: Liger's
    kernels fuse losses and norms, where the plan keeps no copies of logits."""
    _told(spec, target)
    other = _by_deepspeed(spec, target)
    return run_facts(spec, steps) | {
        "packed": spec.tuned == "qlora",
        "linear": spec.targets == "linear",
        "attention": ATTENTION,
        "fsdp": FSDP.get(spec.sharding) if spec.dp > 1 and not other else None,
        "by_deepspeed": other,
        "eight_cut": spec.optimizer == "adamw-8bit" and spec.dp > 1 and not other,
        "cut": spec.sharding == "fsdp" and spec.dp > 1,
        "optim": known_optimizer(spec, target),
        "narrow": _narrow(spec),
        "wide": _whole(spec, target) and spec.tuned == "full" and spec.optimizer != "" and not _narrow(spec),
        "liger": spec.loss in FUSED,
    }


def _told(spec: TrainSpec, target: str) -> None:
    """Raises `UsageError` for what a tool is not told. Devices are data-parallel ranks but for its `degrees`: what
    else is cut, or kept in host memory, is refused."""
    tool = get_tool(target)
    others = [k for k in ("tp", "pp", "vp", "cp", "ep") if k not in tool.degrees]
    cut = next((f"{k}{getattr(spec, k)}" for k in others if getattr(spec, k) > 1), "")
    if cut:
        able = f"cuts {', '.join(tool.degrees)} here" if tool.degrees else "runs data-parallel ranks alone"
        raise UsageError(f"{tool.name} {able}, the plan has {cut}", "plan with --trainer hf-trainer")
    if not tool.by_deepspeed:
        in_memory(spec, target)
    whole = spec.dp * spec.cp
    if spec.sharding == "fsdp" and spec.shard_ranks < whole:
        raise UsageError(
            f"{tool.name} cuts weights over all {whole} ranks here, the plan over {spec.shard_ranks}",
            f"plan with --layout shard={whole}",
        )
    if spec.dp > 1 and spec.sharding not in (tool.sharding or (spec.sharding,)):
        raise UsageError(
            f"{tool.name} is not configured here for {spec.sharding}, only for {', '.join(tool.sharding)}",
            f"plan with --layout zero={STAGES[tool.sharding[-1]]}",
        )
    known_precision(spec, target, ("bf16",))
    _states(spec, target)
    if spec.targets == "experts":
        raise UsageError("adapters of experts are named differently in every model", "plan with targets=linear")


def _states(spec: TrainSpec, target: str) -> None:
    """Raises `UsageError` for an optimiser, or a type of its states, that a tool is not told."""
    tool = get_tool(target)
    known_optimizer(spec, target)
    cuts = tool.cuts_narrow and (spec.optimizer == "adamw-bf16" or not tool.by_deepspeed)
    if _narrow(spec) and not _whole(spec, target) and not cuts:
        raise UsageError(
            f"{tool.name} trains weights of 16 bits (optimizer={spec.optimizer}) where all are on every device: "
            "where they are cut up it keeps them and its states in fp32",
            "plan with --memory optimizer=adamw,master=yes",
        )
    if spec.optimizer == "adamw-8bit" and tool.eight_whole and (spec.dp > 1 or spec.tuned != "full"):
        raise UsageError(
            f"{tool.name} has 8-bit states of all weights on one device", "plan with --memory optimizer=adamw-bf16"
        )


def _whole(spec: TrainSpec, target: str) -> bool:
    """Whether every device holds all weights and states itself."""
    return not _by_deepspeed(spec, target) and (spec.dp * spec.cp == 1 or spec.sharding == "none")


def _narrow(spec: TrainSpec) -> bool:
    """Whether weights are trained in 16 bits, so that no copy of them is in fp32."""
    bits = spec.optimizer == "adamw-bf16" or (spec.optimizer != "" and not spec.master)
    return spec.tuned == "full" and bits


def _by_deepspeed(spec: TrainSpec, target: str) -> bool:
    """Whether DeepSpeed does what FSDP has no word for: an optimiser that is cut alone, or waits in host memory, and
    weights of 16 bits that are cut without a copy in fp32."""
    tool = get_tool(target)
    narrow = tool.by_deepspeed and tool.cuts_narrow and _narrow(spec) and spec.sharding != "none"
    return spec.offload > 0 or (spec.dp > 1 and (spec.sharding == "zero-1" or narrow))


def _started(spec: TrainSpec, target: str, program: str, steps: int) -> str:
    """A tool of Transformers' Trainer on every rank, beside the file of DeepSpeed where that is asked for."""
    facts = _facts(spec, target, steps)
    written = f"{zero_file(spec, get_tool('deepspeed'))}\n" if facts["by_deepspeed"] else ""
    return f"{written}{ranks(spec)} \\\n  {told(Command.of(target, program), facts)}"


def tuning_notes(spec: TrainSpec, target: str) -> tuple[str, ...]:
    """What the user of one of these tools must know."""
    scale = (
        f"adapters are scaled by 2 x their rank of {spec.rank}" if spec.tuned != "full" else "all weights are trained"
    )
    fused = ("losses and norms are fused: pip install liger-kernel",) if spec.loss in FUSED else ()
    more = {
        "trl": (*fused, *(("examples are pairs: columns chosen and rejected",) if spec.together > 1 else ())),
        "sentence-transformers": (
            "examples are pairs of texts; negatives are the other pairs of a rank (gather_across_devices takes those "
            "of all ranks); tokens are averaged where a model says nothing else",
        ),
        "llama-factory": (*fused, "DATA_PATH names a data set of its data/dataset_info.json"),
        "axolotl": (*fused, "examples are read from data/train.jsonl, as conversations"),
        "automodel": ("examples are those of its configurations (SQuAD): name your own under dataset",),
        "unsloth": (
            "unsloth-cli.py is in its repository; it fills no sequence with several examples, so that shorter ones "
            "make steps shorter than planned",
        ),
        "torchtune": (
            "WEIGHTS is the folder that `tune download` filled; examples are those of its configuration (alpaca)",
            *(("weights are cut over all ranks (FSDP2)",) if spec.dp > 1 and spec.sharding == "none" else ()),
        ),
    }
    return (scale, *more.get(target, fused))


def _trl(spec: TrainSpec, steps: int) -> str:
    program = "dpo" if spec.objective == "dpo" else "sft"
    return _started(spec, "trl", f"-m trl.scripts.{program}", steps)


def _sentence_transformers(spec: TrainSpec, steps: int) -> str:
    facts, tool = _facts(spec, "sentence-transformers", steps), get_tool("sentence-transformers")
    if facts["packed"] or spec.dora or not (facts["linear"] or spec.network.causal):
        raise UsageError(
            f"{tool.name} is configured here to train all weights, or plain adapters of all linear layers",
            "plan with --method full",
        )
    if spec.offload > 0:
        in_memory(spec, tool.id)
    cached = spec.objective == "contrastive-cached"
    written = own_python(
        "sentence_transformers",
        "embed.py",
        spec,
        model=spec.model,
        seq=spec.seq,
        cached=cached,
        mini_batch=spec.examples,
        pairs=spec.examples * facts["passes"],
        rank=spec.rank if facts["adapters"] else 0,
        linear=facts["linear"],
        attention=list(ATTENTION),
        steps=steps,
        rate=facts["rate"],
        decay=facts["decay"],
        warm=facts["warm"],
        again=facts["again"],
        save_steps=spec.save_steps,
        measured=facts["measuring"],
        zero=STAGES[spec.sharding] if facts["by_deepspeed"] else 0,
        fsdp=facts["fsdp"],
    )
    data = f"export DATA_PATH={facts['data']} OUTPUT={facts['output']}\n"
    return f"{data}{written}\n{ranks(spec)} \\\n  embed.py"


def _llama_factory(spec: TrainSpec, steps: int) -> str:
    return _started(spec, "llama-factory", "-m llamafactory.launcher", steps)


def _axolotl(spec: TrainSpec, steps: int) -> str:
    facts = _facts(spec, "axolotl", steps)
    written = here_document("axolotl.yml", yaml(document("axolotl", facts), get_tool("axolotl")))
    written += f"\n{zero_file(spec, get_tool('deepspeed'))}" if facts["by_deepspeed"] else ""
    return f"{written}\n{ranks(spec)} \\\n  -m axolotl.cli.train axolotl.yml"


def _automodel(spec: TrainSpec, steps: int) -> str:
    facts, tool = _facts(spec, "automodel", steps), get_tool("automodel")
    if spec.loss not in tool.losses:
        raise UsageError(f"{tool.name} has no loss {spec.loss}", f"one of {', '.join(tool.losses)}")
    if spec.dora:
        raise UsageError(f"{tool.name} is not configured here to train DoRA", "plan with --trainer trl")
    own = {
        "loss_class": tool.losses[spec.loss],
        "named_schedule": SCHEDULES.get(spec.schedule),
        "rank_batch": spec.global_batch // spec.dp,
    }
    file = document("automodel", facts | own)
    written = here_document("automodel.yml", yaml(file, tool))
    return f"{written}\n{ranks(spec)} \\\n  -m nemo_automodel.recipes.llm.train_ft -c automodel.yml"


def _unsloth(spec: TrainSpec, steps: int) -> str:
    facts, name = _facts(spec, "unsloth", steps), get_tool("unsloth").name
    if not facts["adapters"]:
        raise UsageError(f"{name} is configured here to train adapters", "plan with --method lora or qlora")
    if spec.dora or not facts["linear"]:
        raise UsageError(f"{name} puts plain adapters on all linear layers", "plan with --adapter targets=linear")
    if spec.recomputed < 1.0:
        raise UsageError(f"{name} runs all layers again here", "plan with --layout recompute=full")
    start = "python" if spec.dp == 1 else f"{ranks(spec)} \\\n "
    command = Command.of("unsloth", f"{start} unsloth-cli.py")
    return str(told(command, facts | {"saved": Env("OUTPUT", then="/adapters")}))


def _torchtune(spec: TrainSpec, steps: int) -> str:
    facts, tool = _facts(spec, "torchtune", steps), get_tool("torchtune")
    (name,) = known_model(spec, tool)
    if spec.dora:
        raise UsageError(f"{tool.name} is not configured here to train DoRA", "plan with --trainer trl")
    method = "lora" if facts["adapters"] else "full"
    one = facts["single"]
    own = {
        "weights": Env("WEIGHTS", "the folder of the weights"),
        "tokenizer": Env("WEIGHTS", then="/original/tokenizer.model"),
    }
    recipe = Command(tool, f"{method}_finetune_{'single_device' if one else 'distributed'}")
    command = recipe.option("--config", f"{name}_{method}{'_single_device' if one else ''}")
    return f"{ranks(spec, 'tune run')} \\\n  {told(command, facts | own)}"


TUNERS: Mapping[str, Callable[[TrainSpec, int], str]] = {
    "trl": _trl,
    "sentence-transformers": _sentence_transformers,
    "llama-factory": _llama_factory,
    "axolotl": _axolotl,
    "automodel": _automodel,
    "torchtune": _torchtune,
    "unsloth": _unsloth,
}
"""The command of one host by tool; each raises `UsageError` for what the tool cannot be told."""
