"""Training published weights on: TRL, LLaMA-Factory, Axolotl, NeMo AutoModel, torchtune and Unsloth, on data-parallel
ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from chipwise.catalog.tools import Tool, get_tool
from chipwise.errors import UsageError
from chipwise.report.launch.command import Command, Env, here_document
from chipwise.report.launch.frameworks import zero_file
from chipwise.report.launch.markup import Yaml, yaml
from chipwise.report.launch.ranks import in_memory, known_optimizer, known_precision, ranks
from chipwise.report.launch.spec import TrainSpec

FSDP = {"fsdp": "full_shard auto_wrap", "zero-2": "shard_grad_op auto_wrap"}  # of Transformers
OPTIMIZERS = {"adamw": "adamw_torch", "adamw-8bit": "adamw_8bit", "adafactor": "adafactor", "sgd": "sgd"}
DEEPSPEED = (
    "trl",
    "llama-factory",
    "axolotl",
)  # DeepSpeed cuts an optimiser alone for them, or moves it to the host
AXES = {"automodel": ("tp", "cp")}
CUTS = {"automodel": ("fsdp",), "torchtune": ("none", "zero-2", "fsdp")}  # others have them all
PLAIN = ("automodel", "torchtune")  # whose configurations have AdamW
FUSED = ("fused", "chunked")  # losses that never hold an fp32 copy of all logits
# Losses of NeMo AutoModel by what they keep
AUTOMODEL_LOSS = {
    "copied": "masked_ce.MaskedCrossEntropy",
    "whole": "masked_ce.MaskedCrossEntropy",
    "fused": "te_parallel_ce.TEParallelCrossEntropy",
    "chunked": "chunked_ce.ChunkedCrossEntropy",
}
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
DATA, OUTPUT = Env("DATA_PATH", "the examples"), Env("OUTPUT", "where checkpoints go")


@dataclass(frozen=True, slots=True)
class _Run:
    """What every tool is told: `adapters` are trained or all weights, `packed` ones of 4 bits, on all linear layers or
    on those of attention; `again`: layers run again in the backward pass; `passes` of a micro-batch make a step;
    `fsdp`: how weights are cut over ranks, None where they are whole or DeepSpeed cuts them; `optimizer` as
    Transformers calls it."""

    spec: TrainSpec
    tool: Tool
    steps: int
    adapters: bool
    packed: bool
    linear: bool
    again: bool
    passes: int
    fsdp: str | None
    optimizer: str

    @classmethod
    def of(cls, spec: TrainSpec, target: str, steps: int) -> _Run:
        """Devices are data-parallel ranks but for what a tool cuts (`AXES`): what else is cut, or kept in host memory,
        is refused."""
        tool = get_tool(target)
        axes = [k for k in ("tp", "pp", "cp", "ep") if k not in AXES.get(target, ())]
        cut = next((f"{k}{getattr(spec, k)}" for k in axes if getattr(spec, k) > 1), "")
        if cut:
            raise UsageError(
                f"{tool.name} runs data-parallel ranks alone, the plan has {cut}",
                "plan with --trainer hf-trainer",
            )
        if target not in DEEPSPEED:
            in_memory(spec, target)
        whole = spec.dp * spec.cp
        if spec.sharding == "fsdp" and spec.shard_ranks < whole:
            raise UsageError(
                f"{tool.name} cuts weights over all {whole} ranks here, the plan over {spec.shard_ranks}",
                f"plan with --layout shard={whole}",
            )
        if spec.dp > 1 and spec.sharding not in CUTS.get(target, (spec.sharding,)):
            raise UsageError(
                f"{tool.name} is not configured here for {spec.sharding}, only for {', '.join(CUTS[target])}",
                "plan with --layout zero=3",
            )
        known_precision(spec, target, ("bf16",))
        known_optimizer(spec, target, ("adamw",) if target in PLAIN else tuple(OPTIMIZERS))
        if spec.targets == "experts":
            raise UsageError(
                "adapters of experts are named differently in every model", "plan with targets=linear"
            )
        return cls(
            spec,
            tool,
            steps,
            adapters=spec.tuned in ("lora", "qlora"),
            packed=spec.tuned == "qlora",
            linear=spec.targets == "linear",
            again=bool(spec.recomputed or spec.selective),
            passes=max(spec.global_batch // (spec.dp * spec.micro_batch), 1),
            fsdp=FSDP.get(spec.sharding) if spec.dp > 1 and not _by_deepspeed(spec) else None,
            optimizer=OPTIMIZERS[spec.optimizer or ("adamw-8bit" if target == "unsloth" else "adamw")],
        )


def _by_deepspeed(spec: TrainSpec) -> bool:
    """Whether DeepSpeed does what FSDP has no word for: an optimiser that is cut alone, or waits in host memory."""
    return spec.offload > 0 or (spec.dp > 1 and spec.sharding == "zero-1")


def _started(run: _Run, command: Command) -> str:
    """A tool of Transformers' Trainer on every rank, beside the file of DeepSpeed where that is asked for."""
    other = _by_deepspeed(run.spec)
    written = f"{zero_file(run.spec, get_tool('deepspeed'))}\n" if other else ""
    return f"{written}{ranks(run.spec)} \\\n  {command.option('--deepspeed', 'ds.json', when=other)}"


def _liger(spec: TrainSpec) -> str:
    """Whether Liger's kernels fuse losses and norms: where the plan keeps no copies of logits."""
    return "true" if spec.loss in FUSED else "false"


def tuning_notes(spec: TrainSpec, target: str) -> tuple[str, ...]:
    """What the user of one of these tools must know."""
    scale = (
        f"adapters are scaled by 2 x their rank of {spec.rank}"
        if spec.tuned != "full"
        else "all weights are trained"
    )
    fused = ("losses and norms are fused: pip install liger-kernel",) if spec.loss in FUSED else ()
    more = {
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
    run = _Run.of(spec, "trl", steps)
    modules = ("all-linear",) if run.linear else ATTENTION
    command = (
        Command(run.tool, "-m trl.scripts.sft")
        .option("--model_name_or_path", spec.model)
        .option("--dataset_name", DATA)
        .option("--output_dir", OUTPUT)
        .option("--dtype", "bfloat16")
        .option("--bf16", "true")
        .option("--use_peft", when=run.adapters)
        .option("--lora_r", spec.rank, when=run.adapters)
        .option("--lora_alpha", 2 * spec.rank, when=run.adapters)
        .option("--lora_target_modules", *modules, when=run.adapters)
        .option("--use_dora", when=run.adapters and spec.dora)
        .option("--load_in_4bit", when=run.packed)
        .option("--bnb_4bit_quant_type", "nf4", when=run.packed)
        .option("--use_bnb_nested_quant", when=run.packed)
        .option("--max_length", spec.seq)
        .option("--packing", "true")
        .option("--per_device_train_batch_size", spec.micro_batch)
        .option("--gradient_accumulation_steps", run.passes)
        .option("--max_steps", steps)
        .option("--save_steps", spec.save_steps)
        .option("--gradient_checkpointing", "true" if run.again else "false")
        .option("--use_liger_kernel", _liger(spec))
        .option("--optim", run.optimizer)
        .option("--fsdp", run.fsdp, when=run.fsdp is not None)
    )
    return _started(run, command)


def _llama_factory(spec: TrainSpec, steps: int) -> str:
    run = _Run.of(spec, "llama-factory", steps)
    command = (
        Command(run.tool, "-m llamafactory.launcher")
        .option("--stage", "sft")
        .option("--do_train", "true")
        .option("--model_name_or_path", spec.model)
        .option("--dataset", DATA)
        .option("--template", "default")
        .option("--output_dir", OUTPUT)
        .option("--bf16", "true")
        .option("--finetuning_type", "lora" if run.adapters else "full")
        .option("--lora_rank", spec.rank, when=run.adapters)
        .option("--lora_alpha", 2 * spec.rank, when=run.adapters)
        .option("--lora_target", "all" if run.linear else ",".join(ATTENTION), when=run.adapters)
        .option("--use_dora", "true", when=run.adapters and spec.dora)
        .option("--quantization_bit", 4, when=run.packed)
        .option("--quantization_type", "nf4", when=run.packed)
        .option("--double_quantization", "true", when=run.packed)
        .option("--cutoff_len", spec.seq)
        .option("--packing", "true")
        .option("--per_device_train_batch_size", spec.micro_batch)
        .option("--gradient_accumulation_steps", run.passes)
        .option("--max_steps", steps)
        .option("--save_steps", spec.save_steps)
        .option("--disable_gradient_checkpointing", "false" if run.again else "true")
        .option("--enable_liger_kernel", _liger(spec))
        .option("--optim", run.optimizer)
        .option("--fsdp", run.fsdp, when=run.fsdp is not None)
    )
    return _started(run, command)


def _axolotl(spec: TrainSpec, steps: int) -> str:
    run = _Run.of(spec, "axolotl", steps)
    file: dict[str, Yaml] = {
        "base_model": spec.model,
        "datasets": [{"path": "data/train.jsonl", "type": "chat_template"}],
        "output_dir": "out",
        "bf16": True,
        "sequence_len": spec.seq,
        "sample_packing": True,
        "micro_batch_size": spec.micro_batch,
        "gradient_accumulation_steps": run.passes,
        "max_steps": steps,
        "save_steps": spec.save_steps,
        "optimizer": run.optimizer,
        "learning_rate": 2e-4 if run.adapters else 2e-5,
        "gradient_checkpointing": run.again,
        "plugins": ["axolotl.integrations.liger.LigerPlugin"],
        "liger_fused_linear_cross_entropy": spec.loss in FUSED,
        "liger_rms_norm": True,
    }
    if run.adapters:
        file |= {"adapter": spec.tuned, "lora_r": spec.rank, "lora_alpha": 2 * spec.rank}
        file |= {"lora_target_linear": True} if run.linear else {"lora_target_modules": ATTENTION}
        file |= {"peft_use_dora": True} if spec.dora else {}
        file |= {"load_in_4bit": True} if run.packed else {}
    if run.fsdp is not None:
        again = {"activation_checkpointing": True} if run.again else {}
        reshard = spec.sharding == "fsdp"
        file |= {
            "gradient_checkpointing": False,  # FSDP runs layers again itself
            "fsdp_version": 2,
            "fsdp_config": {
                "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
                "reshard_after_forward": reshard,
                "state_dict_type": "FULL_STATE_DICT",
                **again,
            },
        }
    other = _by_deepspeed(spec)
    file |= {"deepspeed": "ds.json"} if other else {}
    written = here_document("axolotl.yml", yaml(file, run.tool))
    written += f"\n{zero_file(spec, get_tool('deepspeed'))}" if other else ""
    return f"{written}\n{ranks(spec)} \\\n  -m axolotl.cli.train axolotl.yml"


def _automodel(spec: TrainSpec, steps: int) -> str:
    run = _Run.of(spec, "automodel", steps)
    if spec.loss not in AUTOMODEL_LOSS:
        raise UsageError(f"{run.tool.name} has no loss {spec.loss}", f"one of {', '.join(AUTOMODEL_LOSS)}")
    if spec.dora:
        raise UsageError(f"{run.tool.name} is not configured here to train DoRA", "plan with --trainer trl")
    file: dict[str, Yaml] = {
        "recipe": {
            "_target_": "nemo_automodel.recipes.llm.train_ft.TrainFinetuneRecipeForNextTokenPrediction"
        },
        "step_scheduler": {
            "global_batch_size": spec.global_batch,
            "local_batch_size": spec.micro_batch,
            "ckpt_every_steps": spec.save_steps,
            "max_steps": steps,
        },
        "dist_env": {"backend": "nccl"},
        "model": {
            "_target_": "nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained",
            "pretrained_model_name_or_path": spec.model,
            "torch_dtype": "bfloat16",
            **({"force_hf": True} if run.packed else {}),
        },
        "distributed": {
            "strategy": "fsdp2",
            "dp_size": spec.dp,
            "tp_size": spec.tp,
            "cp_size": spec.cp,
            "activation_checkpointing": run.again,
        },
        "loss_fn": {"_target_": f"nemo_automodel.components.loss.{AUTOMODEL_LOSS[spec.loss]}"},
        "dataset": {
            "_target_": "nemo_automodel.components.datasets.llm.squad.make_squad_dataset",
            "dataset_name": "rajpurkar/squad",
            "split": "train",
        },
        "packed_sequence": {"packed_sequence_size": spec.seq},
        "dataloader": {
            "_target_": "torchdata.stateful_dataloader.StatefulDataLoader",
            "collate_fn": "nemo_automodel.components.datasets.utils.default_collater",
        },
        "optimizer": {"_target_": "torch.optim.AdamW", "lr": 2e-4 if run.adapters else 2e-5},
    }
    if run.adapters:
        where = {"match_all_linear": True} if run.linear else {"target_modules": [f"*{m}" for m in ATTENTION]}
        file["peft"] = {
            "_target_": "nemo_automodel.components._peft.lora.PeftConfig",
            **where,
            "dim": spec.rank,
            "alpha": 2 * spec.rank,
        }
    if run.packed:
        file["quantization"] = {
            "load_in_4bit": True,
            "load_in_8bit": False,
            "bnb_4bit_compute_dtype": "bfloat16",
            "bnb_4bit_use_double_quant": True,
            "bnb_4bit_quant_type": "nf4",
            "bnb_4bit_quant_storage": "bfloat16",
        }
    written = here_document("automodel.yml", yaml(file, run.tool))
    return f"{written}\n{ranks(spec)} \\\n  -m nemo_automodel.recipes.llm.train_ft -c automodel.yml"


def _unsloth(spec: TrainSpec, steps: int) -> str:
    run = _Run.of(spec, "unsloth", steps)
    name = run.tool.name
    if not run.adapters:
        raise UsageError(f"{name} is configured here to train adapters", "plan with --method lora or qlora")
    if spec.dp > 1:
        raise UsageError(
            f"{name} is started here on one device, the plan has {spec.dp}", "plan with --counts 1"
        )
    if spec.dora or not run.linear:
        raise UsageError(
            f"{name} puts plain adapters on all linear layers", "plan with --adapter targets=linear"
        )
    if spec.recomputed < 1.0:
        raise UsageError(f"{name} runs all layers again here", "plan with --layout recompute=full")
    command = (
        Command(run.tool, "python unsloth-cli.py")
        .option("--model_name", spec.model)
        .option("--max_seq_length", spec.seq)
        .option("--load_in_4bit", when=run.packed)
        .option("--dataset", DATA)
        .option("--r", spec.rank)
        .option("--lora_alpha", 2 * spec.rank)
        .option("--use_gradient_checkpointing", "unsloth" if spec.stash else "True")
        .option("--per_device_train_batch_size", spec.micro_batch)
        .option("--gradient_accumulation_steps", run.passes)
        .option("--max_steps", steps)
        .option("--optim", run.optimizer)
        .option("--output_dir", OUTPUT)
        .option("--save_model")
        .option("--save_method", "lora")
        .option("--save_path", Env("OUTPUT", then="/adapters"))
    )
    return str(command)


def _torchtune(spec: TrainSpec, steps: int) -> str:
    run = _Run.of(spec, "torchtune", steps)
    if spec.model not in run.tool.models:
        raise UsageError(
            f"{run.tool.name} has no configuration of {spec.model} in the table of options",
            f"it has {', '.join(run.tool.models)}",
        )
    if spec.dora:
        raise UsageError(f"{run.tool.name} is not configured here to train DoRA", "plan with --trainer trl")
    (name,) = run.tool.models[spec.model]
    method = "lora" if run.adapters else "full"
    one = spec.machine.devices == 1
    recipe = f"{method}_finetune_{'single_device' if one else 'distributed'}"
    modules = "[q_proj,k_proj,v_proj,output_proj]"
    command = (
        Command(run.tool, recipe)
        .option("--config", f"{name}_{method}{'_single_device' if one else ''}")
        .setting("checkpointer.checkpoint_dir", Env("WEIGHTS", "the folder of the weights"))
        .setting("tokenizer.path", Env("WEIGHTS", then="/original/tokenizer.model"))
        .setting("output_dir", OUTPUT)
        .setting("dtype", "bf16")
        .setting("model.lora_rank", spec.rank, when=run.adapters)
        .setting("model.lora_alpha", 2 * spec.rank, when=run.adapters)
        .setting("model.lora_attn_modules", modules, when=run.adapters)
        .setting("model.apply_lora_to_mlp", str(run.linear), when=run.adapters)
        .setting("model.quantize_base", "True", when=run.packed)
        .setting("tokenizer.max_seq_len", spec.seq)
        .setting("dataset.packed", "True")
        .setting("batch_size", spec.micro_batch)
        .setting("gradient_accumulation_steps", run.passes)
        .setting("max_steps_per_epoch", steps)
        .setting("enable_activation_checkpointing", str(run.again))
        .setting("fsdp_reshard_after_forward", "False", when=spec.sharding == "zero-2" and not one)
    )
    return f"{ranks(spec, 'tune run')} \\\n  {command}"


TUNERS: Mapping[str, Callable[[TrainSpec, int], str]] = {
    "trl": _trl,
    "llama-factory": _llama_factory,
    "axolotl": _axolotl,
    "automodel": _automodel,
    "torchtune": _torchtune,
    "unsloth": _unsloth,
}
"""The command of one host by tool; each raises `UsageError` for what the tool cannot be told."""
