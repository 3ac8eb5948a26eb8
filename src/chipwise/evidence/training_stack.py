"""Which software a row of training measurements ran on, and what that software does by design."""

from __future__ import annotations

import re
from dataclasses import dataclass

from chipwise.errors import UsageError
from chipwise.evidence.rows import Row
from chipwise.evidence.training_machine import at_jean_zay
from chipwise.predict.training.values import Recipe

__all__ = ["RowStack", "row_stack"]


@dataclass(frozen=True, slots=True)
class RowStack:
    """A stack and its habits. `kind`: eager (2020-22, no fused attention), fsdp, fused (overlapped
    collectives, fused kernels), xla (compiled programs). Zeros: not known."""

    name: str
    kind: str
    dtype: str
    flavour: str
    release: str
    recipe: Recipe
    zero: float
    shard: float = 0.0
    sequence: float = 1.0
    full: float = 0.0
    selective: float = 0.0
    bubble: float = 1.0
    adapter: float = 0.0
    in_flight: float = 1.0
    tp: float = 0.0
    vp: float = 0.0
    ep: float = 0.0
    batch: float = 0.0
    cores: bool = False
    one_micro_batch: bool = False
    site: str = ""
    notes: tuple[str, ...] = ()


EARLY_ZERO = ("deepspeed-2021", "hf-deepspeed")  # ZeRO-3 of 2021: every layer waits for its weights
# Traffic of a softmax that is several operations over that of Megatron's kernels (9 bytes per score): scale, mask, cast
# to fp32, softmax, cast, dropout move 35; a compiler that joins them up to the softmax and after it, 21.
SCORE_PASSES = {"eager": 3.9, "hf-deepspeed": 3.9, "neuron": 2.3, "neuron-nemo": 2.3}
FUSED_GENERATIONS = ("hopper", "blackwell", "blackwell_ultra")


def row_stack(row: Row, generation: str) -> RowStack:
    """The stack of a row. Raises `UsageError` for a precision that is not read."""
    name, kind = _name(row, generation)
    dtype, flavour = _precision(row, generation)
    zero, shard, regather = _sharding(row, name)
    full, selective, sequence = _recompute(row, name)
    notes: tuple[str, ...] = ()
    if not (row.get("precision") or row.get("benchmark")):
        notes += ("bf16 assumed",)
    text = f"{row.get('task', '')} {row.get('model', '')} {row.get('benchmark', '')}".lower()
    adapter = 1.0 if "lora" in text else 0.0
    note = row.get("notes", "")
    tensor = re.search(r"ici_tensor_parallelism=(\d+)", note)
    schedule = {"zero-bubble": 0.35, "zbv": 0.1, "v-half": 0.5, "v-min": 0.8}
    bubble = next((v for k, v in schedule.items() if k in note), 1.0)
    in_flight = {"v-half": 1.0 / 2.0, "v-min": 1.0 / 3.0}
    recipe = Recipe(
        operand_bytes={"fp32": 4.0, "16": 2.0}.get(dtype, 1.5),
        flash=0.0
        if kind == "eager" or name == "neuron-nemo" or (name == "neuron" and "bert" in text)
        else 1.0,
        score_passes=SCORE_PASSES.get(name, 1.0),
        fused=1.0 if kind in ("fused", "xla") or "async" in note.lower() else 0.0,
        compiled=1.0 if kind == "xla" else 0.0,
        graphs=1.0 if row.get("benchmark") and "rocm" not in name else 0.0,
        regather=regather,
        flat=1.0 if name.startswith("neuron") and not row.get("tp") else 0.0,
        broadcast=1.0 if name == "internevo" and "global" in row.get("sharding", "") else 0.0,
        half_gradients=1.0 if "fp16" in row.get("precision", "").lower() else 0.0,
        frozen_bytes={"8": 1.0, "4": 1.0}.get(dtype, 2.0),
        optimiser=0.0 if row.get("task") == "train step" else 1.0,
    )
    cores = name.startswith("neuron")
    return RowStack(
        name,
        kind,
        dtype,
        flavour,
        _release(row),
        recipe,
        0.0 if adapter and zero != 3 else zero,
        shard,
        sequence,
        full,
        selective,
        bubble,
        adapter,
        in_flight=next((v for k, v in in_flight.items() if k in note), 1.0),
        tp=float(tensor.group(1)) if tensor else 1.0 if name == "xla" else 0.0,
        vp=_usual_virtual(row, name),
        batch=_usual_batch(row, name),
        cores=cores,
        site=f"jean-zay-{generation}" if at_jean_zay(row) else "any",
        one_micro_batch=name in ("xla", "xla-gpu", "eager")
        or row.get("family") == "megatron_2020"
        or (name.startswith("torchtitan")),
        notes=notes,
    )


def _name(row: Row, generation: str) -> tuple[str, str]:
    text = f"{row.get('framework', '')} {row.get('family', '')}".lower()
    if row.get("benchmark"):
        amd = generation.startswith("cdna")
        return ("mlperf-rocm", "fused") if amd else ("mlperf", "fused")
    if "automodel" in text:
        return "automodel", "fsdp"
    if "nemo" in text or "bridge" in text or "megatron-core" in text or "transformer engine" in text:
        return "nemo", "fused"
    if "primus" in text or "rocm" in text:
        return "rocm", "fused"
    if "megascale" in text:
        return "megascale", "fused"
    if "megatron" in text:
        if generation in FUSED_GENERATIONS:
            return "nemo", "fused"
        if "reduce_recompute" in text:
            return "megatron-2022", "eager"
        if at_jean_zay(row) and not (row.get("pp") or row.get("sharding")):
            # BigScience's experiments/gpt2.md: no stages means ZeRO-3, nothing but a batch Hugging Face's Trainer
            return ("deepspeed-2021" if row.get("tp") or row.get("dp") else "hf-deepspeed"), "eager"
        return "megatron-2020", "eager"
    if "llm-foundry" in text or "composer" in text:
        return "llm-foundry", "fsdp"
    if "torchtitan" in text:
        compiled = "compile" in row.get("notes", "").lower() or "async" in row.get("notes", "").lower()
        compiled = compiled or "2D" in row.get("notes", "") or "4D" in row.get("notes", "")
        return ("torchtitan", "fsdp") if compiled or not row.get("notes") else ("torchtitan-eager", "fsdp")
    if "internevo" in text:
        return "internevo", "fsdp"
    if "neuron" in text:
        # AWS's tables: decoders with stochastic rounding ran under NeMo Megatron, which writes its scores
        # (neuronx-nemo-megatron: masked_softmax_fusion and use_emha are off), others under NeuronX Distributed
        language = re.search("gpt|llama", row.get("model", "").lower())
        nemo = language and row.get("precision", "").endswith("SR")
        return "neuron-nemo" if nemo else "neuron", "xla"
    if "habana" in text or generation.startswith("gaudi"):
        return "habana", "xla"
    if "maxtext" in text or "jax" in text or "pathways" in text or "xla" in text:
        return ("xla", "xla") if generation.startswith("tpu") else ("xla-gpu", "fused")
    if generation.startswith(("tpu", "trainium")):
        return "xla", "xla"
    if "deepspeed" in text:
        return "deepspeed", "fsdp"
    if row.get("task") == "train step" or text.strip().startswith("pytorch"):
        return "eager", "eager"
    return "other", "fused" if generation in FUSED_GENERATIONS else "fsdp"


def _precision(row: Row, generation: str) -> tuple[str, str]:
    """(class of the products' type, flavour of scaling)."""
    if row.get("benchmark"):
        return _mlperf_precision(row, generation)
    text = row.get("precision", "").lower()
    if not text or "autocast" in text or "bf16" in text or "fp16" in text or text.startswith("amp_b"):
        return "16", "amp" if "autocast" in text and "amp" in text.split(":")[-1] else ""
    if "fp4" in text:
        return "4", "nvfp4"
    if "fp8" in text:
        flavour = "tensor"
        if "mx" in text:
            flavour = "mx"
        elif "paren" in text or "block" in text or "sub" in text:
            flavour = "block"
        elif "rowwise" in text:
            flavour = "row"
        return "8", flavour
    if "fp32" in text or "tf32" in text:
        return "fp32", ""
    raise UsageError(f"precision '{text[:40]}' is not read", "one of fp32, fp16, bf16, fp8, mxfp8, nvfp4")


def _mlperf_precision(row: Row, generation: str) -> tuple[str, str]:
    """From the published configurations: FP8 since v3.0; FP4 on Blackwell from v5.1, and for Llama-3.1-8B."""
    late = row.get("round", "") >= "5.1"
    if generation.startswith("blackwell") and late:
        return "4", "nvfp4"
    return "8", "tensor"


def _sharding(row: Row, name: str) -> tuple[float, float, float]:
    """(ZeRO stage, ranks it cuts over or 0, weights gathered again for every micro-batch)."""
    text = row.get("sharding", "").lower()
    if "full_shard" in text or text == "fsdp":
        return 3.0, 0.0, 1.0
    if "grad_op" in text:
        return 3.0, 0.0, 0.0
    if "zero" in text:
        size = re.search(r"\((\d+)\)|size (\d+)", text)
        stage = re.search(r"zero-(\d)", text)
        cut = float(size.group(1) or size.group(2)) if size else 0.0
        return float(stage.group(1)) if stage else 1.0, cut, 1.0
    degree = re.match(r"(\d+)", text)
    if degree and name.startswith("torchtitan"):
        return 3.0, 0.0, 1.0  # over data and context ranks alike
    if degree and float(degree.group(1)) > 1:
        return 3.0, float(degree.group(1)), 1.0
    usual = {
        "llm-foundry": 3.0,
        "torchtitan": 3.0,
        "torchtitan-eager": 3.0,
        "automodel": 3.0,
        "xla": 3.0,
        "xla-gpu": 3.0,
        "megatron-2020": 0.0,
        "megatron-2022": 0.0,
        "deepspeed-2021": 3.0,
        "hf-deepspeed": 3.0,
        "eager": 0.0,
        "habana": 3.0,
    }
    return usual.get(name, 1.0), 0.0, 0.0 if name.startswith("xla") else 1.0


def _recompute(row: Row, name: str) -> tuple[float, float, float]:
    """(share of layers recomputed whole, attention cores recomputed, norms cut by tp)."""
    text = row.get("recompute", "").lower()
    sequence = 0.0 if name in ("megatron-2020", "eager", "deepspeed", *EARLY_ZERO) else 1.0
    if "qkv_proj_offloaded" in text:
        return 0.8, 1.0, sequence
    if "full" in text:
        return 1.0, 0.0, 0.0 if name.startswith("megatron-2") else sequence
    if "selective" in text or "minimal" in text:
        if name.startswith("torchtitan"):
            return 0.45, 0.0, sequence  # keeps 0.33 to 0.55 of a layer's bytes, by its published peaks
        return 0.0, 1.0, sequence
    if "none" in text:
        return 0.0, 0.0, 0.0 if name == "megatron-2022" else sequence
    if name == "xla":
        return 1.0, 0.0, sequence
    if name.startswith("neuron"):
        return 0.0, 1.0, sequence
    if name.startswith("megatron-2") or name in EARLY_ZERO:
        return 1.0, 0.0, 0.0
    if name == "habana" and "bert" not in row.get("model", "").lower():
        return 1.0, 0.0, sequence
    return 0.0, 0.0, sequence


def _release(row: Row) -> str:
    if row.get("benchmark"):
        return f"mlperf-{row.get('round', '')}"
    found = re.search(r"(\d\d\.\d\d(?:\.\d\d)?)", row.get("framework", ""))
    return found.group(1) if found else "none"


def _usual_virtual(row: Row, name: str) -> float:
    """Interleaving of NVIDIA's recipes where it is not stated; the bubble of their rows is hidden. Two chunks per
    device where a row only says that it interleaves."""
    if "interleaved" in row.get("notes", "").lower() and not row.get("vp"):
        return 2.0
    return 4.0 if name in ("nemo", "mlperf") and not row.get("vp") else 1.0


def _usual_batch(row: Row, name: str) -> float:
    if at_jean_zay(row):
        return 2048.0
    if not name.startswith("neuron"):
        return 0.0
    model, notes = row.get("model", "").lower(), row.get("notes", "")
    nodes = max(float(row.get("chips_total") or 16.0) / 16.0, 1.0)
    if "ph1" in model or "ph2" in model:
        # AWS's tables: 65,536 and 32,768 sequences per node where they scale weakly with Lamb, else 16,384
        lamb = "Lamb" in notes and "weak" in notes
        return (65536.0 if "ph1" in model else 32768.0) * nodes if lamb else 16384.0
    return 1024.0 if "llama" in model or "gpt" in model else 0.0
