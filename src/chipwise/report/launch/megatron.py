"""Megatron-LM: `pretrain_gpt.py` with the options that describe layout, network and batch."""

from __future__ import annotations

from itertools import groupby

from chipwise.errors import UsageError
from chipwise.report.launch.command import Command, Env
from chipwise.report.launch.ranks import MEASURED, known_optimizer, known_precision, ranks
from chipwise.report.launch.spec import LaunchNetwork, TrainSpec

# what Megatron-FSDP calls the sharding, and what is cut beside the optimiser
CUT = {"zero-2": ("optim_grads", "gradients"), "fsdp": ("optim_grads_params", "weights")}
FACTOR = 8.0  # of --rope-scaling-factor where it is not given


def megatron_command(spec: TrainSpec, steps: int) -> str:
    """The command of one host; random tokens where only the step is measured. Raises `UsageError` for what the
    options do not say."""
    _told(spec)
    measuring, cut = steps <= MEASURED, spec.sharding in CUT
    command = _network(
        _recompute(_layout(Command.of("megatron", "pretrain_gpt.py"), spec, steps), spec), spec.network
    )
    command = (
        command.option("--bf16")
        .option("--cross-entropy-loss-fusion", when=spec.loss == "fused")
        .option("--cross-entropy-fusion-impl", "te", when=spec.loss == "fused")
        .option("--fp8-format", "hybrid", when=spec.precision in ("fp8", "mxfp8"))
        .option(
            "--fp8-recipe", "mxfp8" if spec.precision == "mxfp8" else "delayed", when="fp8" in spec.precision
        )
        .option("--tokenizer-type", "NullTokenizer" if measuring else "HuggingFaceTokenizer")
        .option("--vocab-size", spec.network.vocabulary, when=measuring)
        .option("--tokenizer-model", spec.model, when=not measuring)
        .option("--mock-data", when=measuring)
        .option("--data-path", Env("DATA_PATH"), when=not measuring)
        .option("--save", Env("CHECKPOINTS"), when=not measuring)
        .option("--load", Env("CHECKPOINTS"), when=not measuring)
        .option(
            "--pretrained-checkpoint",
            Env("WEIGHTS", "the converted weights"),
            when=bool(spec.tuned) and not measuring,
        )
        .option("--save-interval", spec.save_steps, when=not measuring)
        .option("--ckpt-format", "fsdp_dtensor", when=cut)
        .option("--lr", "3e-4")
        .option("--log-interval", 1 if measuring else 10)
        .option("--log-throughput")
    )
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
        notes.append(
            f"positions are stretched by {n.rope.stretch} in the model's configuration, here they are not"
        )
    again, part = _again(spec)
    if abs(again / part - spec.recomputed) > 0.005:
        notes.append(
            f"the plan runs {spec.recomputed:.0%} of the layers again, "
            f"Megatron-LM {again} of {part} in each part of a stage"
        )
    if spec.tuned:
        notes.append(
            "WEIGHTS holds the published weights in Megatron's format (Megatron-Bridge converts them)"
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
    known_precision(spec, "megatron", ("bf16", "fp8", "mxfp8"))
    known_optimizer(spec, "megatron")


def _layout(command: Command, spec: TrainSpec, steps: int) -> Command:
    parts, cut = spec.pp * spec.vp, spec.sharding in CUT
    even = spec.network.layers % parts == 0
    zero = spec.sharding != "none" or spec.offload > 0
    return (
        command.option("--tensor-model-parallel-size", spec.tp)
        .option("--sequence-parallel", when=spec.tp > 1)
        .option("--pipeline-model-parallel-size", spec.pp)
        .option(
            "--num-layers-per-virtual-pipeline-stage",
            spec.network.layers // parts,
            when=spec.vp > 1 and even,
        )
        .option(
            "--pipeline-model-parallel-layout",
            stages(spec.network.layers, spec.pp, spec.vp) if spec.pp > 1 else "",
            when=not even and spec.pp > 1,
        )
        .option("--context-parallel-size", spec.cp, when=spec.cp > 1)
        .option("--expert-model-parallel-size", spec.ep, when=spec.ep > 1)
        # experts are spread over the tensor-parallel devices too, and cut only where there are more of these
        .option("--expert-tensor-parallel-size", max(spec.tp // spec.ep, 1), when=spec.ep > 1 and spec.tp > 1)
        .option("--use-distributed-optimizer", when=zero)
        .option("--use-megatron-fsdp", when=cut)
        .option("--data-parallel-sharding-strategy", CUT[spec.sharding][0] if cut else "", when=cut)
        .option("--init-model-with-meta-device", when=cut)
        .option("--overlap-grad-reduce")
        .option("--grad-reduce-in-bf16", when=spec.gradients == "bf16")
        .option("--overlap-param-gather", when=spec.sharding != "none")
        .option("--micro-batch-size", spec.micro_batch)
        .option("--global-batch-size", spec.global_batch)
        .option("--seq-length", spec.seq)
        .option("--max-position-embeddings", spec.seq)
        .option("--train-iters", steps)
        .option("--use-precision-aware-optimizer", when=spec.offload > 0)
        .option("--optimizer-cpu-offload", when=spec.offload > 0)
        # one layer's are in use, the next one's on their way
        .option("--cpu-offloading-num-layers", max(spec.network.layers - 2, 1), when=spec.stash > 0)
        .option("--optimizer-offload-fraction", f"{spec.offload:g}", when=spec.offload > 0)
    )


def _again(spec: TrainSpec) -> tuple[int, int]:
    """How many layers of each part of a stage run again, at least one where any do, and of how many."""
    part = -(-spec.network.layers // (spec.pp * spec.vp))
    return max(round(part * spec.recomputed), int(spec.recomputed > 0)), part


def _recompute(command: Command, spec: TrainSpec) -> Command:
    again, part = _again(spec)
    return (
        command.option(
            "--recompute-granularity", "full" if again else "selective", when=again > 0 or spec.selective
        )
        .option("--recompute-method", "uniform" if again == part else "block", when=again > 0)
        .option("--recompute-num-layers", 1 if again == part else again, when=again > 0)
    )


def _network(command: Command, n: LaunchNetwork) -> Command:
    dense = (
        command.option("--num-layers", n.layers)
        .option("--hidden-size", n.hidden)
        .option("--ffn-hidden-size", n.ffn)
        .option("--num-attention-heads", n.heads)
        .option("--group-query-attention", when=n.kv_heads < n.heads and n.latent is None)
        .option("--num-query-groups", n.kv_heads, when=n.kv_heads < n.heads and n.latent is None)
        .option("--kv-channels", n.head_dim, when=n.latent is None)
        .option("--qk-layernorm", when=n.qk_norm)
        .option("--add-qkv-bias", when=n.qkv_bias)
        .option("--swiglu")
        .option("--normalization", "RMSNorm")
        .option("--norm-epsilon", f"{n.norm_epsilon or 0.0:g}", when=n.norm_epsilon is not None)
        .option("--position-embedding-type", "rope")
        # its own are 0.1
        .option("--attention-dropout", 0)
        .option("--hidden-dropout", 0)
        .option("--disable-bias-linear")
        .option("--untie-embeddings-and-output-weights", when=not n.tied)
    )
    return _experts(_latent(_positions(dense, n), n), n)


def _positions(command: Command, n: LaunchNetwork) -> Command:
    if n.rope is None:
        return command
    llama, yarn = n.rope.stretch == "llama3", n.rope.stretch == "yarn" and n.latent is not None
    return (
        command.option("--rotary-base", round(n.rope.base))
        .option("--use-rope-scaling", when=llama)
        .option("--rope-scaling-factor", f"{n.rope.factor:g}", when=llama and n.rope.factor != FACTOR)
        # of latent attention, whose positions Megatron-LM stretches by YaRN
        .option("--rotary-scaling-factor", f"{n.rope.factor if yarn else 1.0:g}", when=n.latent is not None)
        .option("--mscale", f"{n.rope.mscale:g}", when=yarn)
        .option("--mscale-all-dim", f"{n.rope.mscale_all:g}", when=yarn)
    )


def _latent(command: Command, n: LaunchNetwork) -> Command:
    a = n.latent
    if a is None:
        return command
    return (
        command.option("--multi-latent-attention")
        .option("--q-lora-rank", a.q_rank, when=a.q_rank > 0)
        .option("--kv-lora-rank", a.kv_rank)
        .option("--qk-head-dim", a.nope_dim)
        .option("--qk-pos-emb-head-dim", a.rope_dim)
        .option("--v-head-dim", a.value_dim)
    )


def _experts(command: Command, n: LaunchNetwork) -> Command:
    if not n.experts:
        return command
    r = n.router
    freq = f"[0]*{n.dense_layers}+[1]*{n.layers - n.dense_layers}"
    return (
        command.option("--num-experts", n.experts)
        .option("--moe-layer-freq", freq, when=n.dense_layers > 0)
        .option("--moe-router-topk", n.top_k)
        .option("--moe-ffn-hidden-size", n.expert_ffn)
        .option("--moe-shared-expert-intermediate-size", n.shared, when=n.shared > 0)
        .option("--moe-router-score-function", r.score, when=r.score != "softmax")
        .option("--moe-router-topk-scaling-factor", f"{r.scale:g}", when=r.scale != 1.0)
        .option("--moe-router-num-groups", r.groups, when=r.groups > 1)
        .option("--moe-router-group-topk", r.groups_chosen, when=r.groups > 1)
        .option("--moe-router-enable-expert-bias", when=r.bias)
        .option("--moe-grouped-gemm")
        .option("--moe-token-dispatcher-type", "alltoall")
    )
