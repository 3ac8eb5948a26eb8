"""Plans whose launch files are kept: served by tensor and by expert parallelism, with prompts in workers of their
own, in stages on two hosts, on Neuron and on a CPU; trained on GPUs, on a slice, with latent attention in uneven
stages, by adapters on a host and on one card, on pairs of texts, on Trainium, with weights cut over hosts, in plain
stages, on AMD's GPUs and on Gaudi; answers and pictures of a Mac."""

from __future__ import annotations

from dataclasses import replace

from chipwise.report.launch.spec import (
    ApiCall,
    Guess,
    Latent,
    Launched,
    LaunchMachine,
    LaunchNetwork,
    LaunchPasses,
    LoopSpec,
    PipelineSpec,
    Rope,
    Router,
    ServeSpec,
    TrainSpec,
)
from chipwise.report.simulated import FollowingRecord
from chipwise.report.training import TrainLayoutRecord

FOLLOWS = FollowingRecord(8.0, 2, 4, 155.0, 300.0, 15.0, 9, 2.5, 4.0)
AWS = (("aws", "p5.48xlarge", "us-east-1", 8), ("gcp", "a3-highgpu-8g", "us-central1", 8))
SERVED = ("predicted: TTFT 170 ms [90 ms to 400 ms], TPOT 24.0 ms [19.0 ms to 30.0 ms] (80 %)",)

API = ApiCall(
    "nebius", "meta-llama/Meta-Llama-3.1-70B-Instruct", "https://api.tokenfactory.nebius.com/v1", "NEBIUS_API_KEY",
    0.13, 0.4, "2026-11-20",
)  # fmt: skip


def served(**changes: object) -> ServeSpec:
    """A dense model on four devices, with changes."""
    values: dict[str, object] = {
        "title": "meta-llama/Llama-3.1-70B: 8x h100-sxm5-80gb, 2 x (tp4), fp8",
        "model": "meta-llama/Llama-3.1-70B",
        "machine": LaunchMachine("h100-sxm5-80gb", "nvidia", 4, 8, AWS),
        "replicas": 2,
        "runtime": "vllm",
        "tp": 4,
        "pp": 1,
        "dp": 1,
        "ep": 1,
        "experts": 0,
        "precision": "fp8",
        "convert": "fp8",
        "kv": "fp8",
        "length": 3072,
        "sequences": 256,
        "budget_tokens": 8192,
        "memory_share": 0.9,
        "block_tokens": 16,
        "prompt_tokens": 2000,
        "output_tokens": 300,
        "concurrency": 48,
        "rate_per_s": 10.0,
        "expected": SERVED,
    }
    return ServeSpec(**(values | changes))  # type: ignore[arg-type]


def experts(**changes: object) -> ServeSpec:
    """Attention replicas that share experts, two hosts."""
    values: dict[str, object] = {
        "title": "deepseek-ai/DeepSeek-V3: 16x h200-sxm-141gb, dp16 ep16, fp8",
        "model": "deepseek-ai/DeepSeek-V3",
        "machine": LaunchMachine("h200-sxm-141gb", "nvidia", 16, 8, (("coreweave", "HGX H200", "", 8),)),
        "replicas": 1,
        "tp": 1,
        "dp": 16,
        "ep": 16,
        "experts": 256,
        "convert": "",
        "rate_per_s": None,
        "concurrency": 512,
    }
    return served(**(values | changes))


def trained(**changes: object) -> TrainSpec:
    """A dense model on eight hosts."""
    values: dict[str, object] = {
        "title": "meta-llama/Llama-3.1-70B: 64x h100-sxm5-80gb, tp8 pp2 dp4 zero-1, bf16",
        "model": "meta-llama/Llama-3.1-70B",
        "machine": LaunchMachine("h100-sxm5-80gb", "nvidia", 64, 8, AWS),
        "network": LaunchNetwork(
            80, 8192, 28672, 64, 8, 128, 128256, 0, 0, 0, False, True, Rope(5e5, "llama3", 8.0), 1e-5
        ),
        "tp": 8,
        "pp": 2,
        "vp": 5,
        "cp": 1,
        "ep": 1,
        "dp": 4,
        "sharding": "zero-1",
        "shard_ranks": 4,
        "selective": True,
        "recomputed": 0.0,
        "schedule": "interleaved",
        "offload": 0.0,
        "micro_batch": 1,
        "global_batch": 1024,
        "seq": 8192,
        "precision": "bf16",
        "steps": 119210,
        "tuned": "",
        "expected": ("predicted: 30.1 s [26.0 s to 35.2 s] a step (80 %), 44 % MFU, 45.1 days with failures",),
        "save_steps": 71,
        "one_queue": True,
    }
    return TrainSpec(**(values | changes))  # type: ignore[arg-type]


def deep(**changes: object) -> TrainSpec:
    """Latent attention and experts, whose 61 layers no number of stages divides."""
    values: dict[str, object] = {
        "title": "deepseek-ai/DeepSeek-V3: 512x h100-sxm5-80gb, tp4 pp32 ep16 dp4 zero-1 b1, bf16",
        "model": "deepseek-ai/DeepSeek-V3",
        "machine": LaunchMachine("h100-sxm5-80gb", "nvidia", 512, 8, AWS),
        "network": LaunchNetwork(
            *(61, 7168, 18432, 128, 128, 192, 129280, 256, 8, 2048, False, True),
            rope=Rope(1e4, "yarn", 40.0, 1.0, 1.0),
            norm_epsilon=1e-6,
            qk_norm=True,
            latent=Latent(1536, 512, 128, 64, 128),
            dense_layers=3,
            shared=2048,
            router=Router("sigmoid", 2.5, 8, 4, bias=True),
        ),
        "tp": 4,
        "pp": 32,
        "vp": 1,
        "ep": 16,
        "schedule": "1f1b",
        "selective": False,
    }
    return trained(**(values | changes))


NEURON = LaunchMachine("trainium2", "aws", 64, 64, (("aws", "trn2.48xlarge", "us-east-2", 64),))
TPU = LaunchMachine("tpu-v5p", "google", 64, 4, ())

NEURON_PLAN = served(runtime="neuronx", machine=NEURON, tp=64, convert="", kv="", precision="bf16")

# the runtime that a plan must be priced with for an engine to start it
RUNTIMES = {
    "vllm": "vllm",
    "sglang": "sglang",
    "sglang-jax": "sglang-jax",
    "trtllm": "trtllm",
    "dynamo": "vllm",
    "llama.cpp": "llama.cpp",
    "neuronx": "neuronx",
    "mlx": "mlx",
}
NETWORK = LaunchNetwork(2, 64, 128, 4, 2, 16, 256, 0, 0, 0, tied=True, plain=True)

CLIPS = PipelineSpec(
    title="wan2.2-t2v-a14b on 2 x h100-sxm5-80gb",
    model="wan2.2-t2v-a14b",
    machine=LaunchMachine("h100-sxm5-80gb", "nvidia", 2, 2),
    runtime="compile",
    precision="bf16",
    replicas=3,
    spread=(("ulysses", 2),),
    offload="none",
    batch=1,
    sizes=(("width", 832.0), ("height", 480.0), ("frames", 81.0), ("steps", 40.0), ("guidance", 4.0)),
    cached=0.0,
    seconds=147.6,
    interval=(0.786, 1.461),
    expected=("predicted: 148 s for 1 clip",),
)

SERVED_CLIPS = replace(
    CLIPS,
    machine=LaunchMachine("h100-sxm5-80gb", "nvidia", 4, 4),
    runtime="sglang-diffusion",
    spread=(("ulysses", 2), ("cfg", 2)),
)

ENCODER = PipelineSpec(
    title="bert-large on 1 x l4",
    model="bert-large",
    machine=LaunchMachine("l4", "nvidia", 1, 1),
    runtime="compile",
    precision="bf16",
    replicas=2,
    spread=(),
    offload="none",
    batch=16,
    sizes=(("tokens", 384.0),),
    cached=0.0,
    seconds=0.081,
    interval=(0.681, 1.441),
    expected=("predicted: 81.0 ms for 16 samples",),
    parameters=335141888.0,
)

ENGINE = replace(ENCODER, title="bert-large on 1 x l4, TensorRT", runtime="tensorrt", precision="int8")

SCORES = replace(
    ENCODER,
    title="BAAI/bge-reranker-v2-m3 on 1 x rtx-4090",
    model="bge-m3",
    machine=LaunchMachine("rtx-4090", "nvidia", 1, 1),
    runtime="tei",
    precision="fp16",
    replicas=4,
    spare=1,
    batch=4,
    sizes=(("tokens", 512.0),),
    seconds=0.0104,
    expected=("predicted: 10.4 ms for 4 samples",),
    weights="BAAI/bge-reranker-v2-m3",
    rate_per_s=750.0,
)

PICTURES = replace(
    CLIPS,
    title="flux-dev on 1 x m3-ultra",
    model="flux-dev",
    machine=LaunchMachine("m3-ultra", "apple", 1, 1),
    runtime="mlx",
    precision="int8",
    spread=(),
    batch=2,
    sizes=(("width", 1024.0), ("height", 768.0), ("steps", 28.0), ("guidance", 3.5)),
    expected=("predicted: 277 s for 2 images",),
)

LOOP = LoopSpec(
    title="Qwen/Qwen3-32B: 16x h100-sxm5-80gb, together, tp4 dp4 zero-1 b1",
    model="Qwen/Qwen3-32B",
    machine=LaunchMachine("h100-sxm5-80gb", "nvidia", 16, 8),
    train_devices=16,
    sample_devices=0,
    layout=TrainLayoutRecord(4, 1, 1, 1, 1, 4, 1, 128, "zero-1", 4, "selective", "tp4 dp4"),
    runtime="vllm",
    tp=4,
    pp=1,
    prompts=256,
    samples=8,
    longest_prompt=1024,
    longest=16000,
    steps=500,
    updates=4,
    critic=False,
    reference=True,
    method="full",
    precision="bf16",
    rollout_precision="bf16",
    expected=("predicted: 1,560 s [1,060 s to 2,440 s] a step (80 %), 9 d for 500 steps",),
)

PLANS: dict[str, Launched] = {
    "loop": LOOP,
    "rollouts": replace(
        LOOP,
        machine=LaunchMachine("h100-sxm5-80gb", "nvidia", 24, 8),
        sample_devices=8,
        layout=TrainLayoutRecord(1, 1, 1, 1, 1, 16, 1, 32, "fsdp", 16, "full", "dp16"),
        critic=True,
        method="lora",
        rollout_precision="fp8",
    ),
    "pictures": PICTURES,
    "mac": served(
        title="Qwen/Qwen3-8B: 1x m3-ultra, unsharded, mlx_4bit",
        model="Qwen/Qwen3-8B",
        machine=LaunchMachine("m3-ultra", "apple", 1, 1, ()),
        tp=1,
        replicas=1,
        runtime="mlx",
        precision="mlx_4bit",
        stored="bf16",
        convert="",
        kv="int8",
        concurrency=4,
    ),
    "clips": CLIPS,
    "studio": SERVED_CLIPS,
    "encoder": ENCODER,
    "engine": ENGINE,
    "scores": SCORES,
    "vectors": replace(
        SCORES,
        title="qwen3-embedding-8b on 1 x mi300x",
        model="qwen3-embedding-8b",
        machine=LaunchMachine("mi300x", "amd", 1, 1),
        runtime="vllm",
        precision="fp8",
        replicas=1,
        spare=0,
        batch=256,
        weights="Qwen/Qwen3-Embedding-8B",
        rate_per_s=0.0,
    ),
    "one": served(
        tp=1,
        precision="bf16",
        convert="",
        machine=LaunchMachine("trainium2", "aws", 1, 1, ()),
        runtime="neuronx",
        network=NETWORK,
        passes=LaunchPasses(0.01, 0.002, 3.0, interval=(0.5, 2.0)),
    ),
    "dense": served(api=API),
    "experts": experts(),
    "apart": experts(
        machine=LaunchMachine("h200-sxm-141gb", "nvidia", 8, 8, ()),
        dp=8,
        ep=8,
        replicas=3,
        prompt_workers=2,
        guess=Guess(2, module=True),
    ),
    "stages": served(
        machine=LaunchMachine("h100-sxm5-80gb", "nvidia", 16, 8, AWS),
        tp=8,
        pp=2,
        replicas=3,
        spare=1,
        kv="",
        guess=Guess(3, module=False),
        cached_tokens=600,
        spread=(0.5, 0.2),
    ),
    "neuron": NEURON_PLAN,
    "local": served(
        title="meta-llama/Llama-3.1-70B: 2x rtx-4090, pp2, q4_k_m",
        machine=LaunchMachine("rtx-4090", "nvidia", 2, 2, ()),
        tp=1,
        pp=2,
        replicas=1,
        runtime="llama.cpp",
        precision="q4_k_m",
        convert="",
        kv="",
        concurrency=1,
        rate_per_s=None,
    ),
    "cpu": served(
        machine=LaunchMachine("epyc-9654", "amd", 1, 1, (), cpu=True),
        tp=1,
        replicas=1,
        runtime="llama.cpp",
        precision="q4_k_m",
        convert="",
        kv="int8",
        spread=(1.0, 1.0),
    ),
    "train": trained(),
    "slice": trained(
        machine=TPU,
        tp=4,
        pp=1,
        vp=1,
        dp=16,
        sharding="fsdp",
        shard_ranks=16,
        recomputed=1.0,
        schedule="",
        one_queue=False,
    ),
    "deep": deep(),
    "adapters": trained(
        title="meta-llama/Llama-3.1-70B: 8x h100-sxm5-80gb, dp8 fsdp, bf16",
        machine=LaunchMachine("h100-sxm5-80gb", "nvidia", 8, 8, AWS),
        tp=1,
        pp=1,
        vp=1,
        dp=8,
        sharding="fsdp",
        shard_ranks=8,
        schedule="",
        tuned="lora",
    ),
    "pairs": trained(
        title="Qwen/Qwen3-Embedding-8B: 8x h100-sxm5-80gb, dp8 zero-1, bf16",
        model="Qwen/Qwen3-Embedding-8B",
        machine=LaunchMachine("h100-sxm5-80gb", "nvidia", 8, 8, AWS),
        tp=1,
        pp=1,
        vp=1,
        dp=8,
        sharding="zero-1",
        shard_ranks=8,
        schedule="",
        tuned="full",
        objective="contrastive-cached",
        together=2,
        micro_batch=4,
        global_batch=512,
        seq=512,
    ),
    "card": trained(
        title="meta-llama/Llama-3.1-8B: 1x rtx-4090, bf16",
        model="meta-llama/Llama-3.1-8B",
        machine=LaunchMachine("rtx-4090", "nvidia", 1, 1),
        tp=1,
        pp=1,
        vp=1,
        dp=1,
        sharding="none",
        shard_ranks=1,
        schedule="",
        global_batch=16,
        seq=2048,
        tuned="qlora",
        recomputed=1.0,
    ),
    "sharded": trained(
        title="meta-llama/Llama-3.1-8B: 16x h100-sxm5-80gb, dp16 fsdp, bf16",
        model="meta-llama/Llama-3.1-8B",
        machine=LaunchMachine("h100-sxm5-80gb", "nvidia", 16, 8, AWS),
        network=LaunchNetwork(
            32, 4096, 14336, 32, 8, 128, 128256, 0, 0, 0, False, True, Rope(5e5, "llama3", 8.0), 1e-5
        ),
        tp=1,
        pp=1,
        vp=1,
        dp=16,
        sharding="fsdp",
        shard_ranks=16,
        selective=False,
        recomputed=0.5,
        schedule="",
        micro_batch=2,
        global_batch=32,
        passes=LaunchPasses(step_s=2.5, interval=(0.85, 1.4)),
    ),
    "staged": trained(
        machine=LaunchMachine("h100-sxm5-80gb", "nvidia", 64, 8, AWS), vp=1, schedule="1f1b", recomputed=1.0
    ),
    "rocm": trained(
        title="meta-llama/Llama-3.1-70B: 64x mi300x, tp8 pp2 dp4 zero-1, bf16",
        machine=LaunchMachine("mi300x", "amd", 64, 8, ()),
        one_queue=False,
    ),
    "gaudi": trained(
        title="meta-llama/Llama-3.1-8B: 8x gaudi3, dp8 fsdp, bf16",
        model="meta-llama/Llama-3.1-8B",
        machine=LaunchMachine("gaudi3", "intel", 8, 8, ()),
        tp=1,
        pp=1,
        vp=1,
        dp=8,
        sharding="fsdp",
        shard_ranks=8,
        schedule="",
        tuned="lora",
        one_queue=False,
    ),
    "cores": trained(machine=NEURON, tp=8, pp=1, vp=1, dp=8, schedule="", one_queue=False),
}


def plan_for(name: str, target: str) -> Launched:
    """A plan, priced with the runtime of the target where it is served on such a chip."""
    spec = PLANS[name]
    if target in ("keda", "dynamo-planner") and isinstance(spec, ServeSpec):
        spec = replace(spec, scaling=FOLLOWS, cache_tokens=400_000)
    if (
        isinstance(spec, ServeSpec)
        and name not in ("neuron", "cpu", "mac")
        and target in RUNTIMES
        and target != "neuronx"
    ):
        spec = replace(spec, runtime=RUNTIMES[target])
    if isinstance(spec, ServeSpec) and target == "llama.cpp":
        spec = replace(spec, precision="q4_k_m", convert="", kv="")
    return spec
