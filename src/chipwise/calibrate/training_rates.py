"""Fitted numbers of training: quantities with their priors, and how labels choose among them.

A quantity is a product of effects: one for all rows, one per kind of software, per stack, per generation of
chips, ... Effects without rows are 1, so that an unseen stack gets what its kind has, an unseen chip what its
generation has.
"""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.calibrate.effects import EffectLevel, Quantity
from chipwise.catalog.trainer import Trainer
from chipwise.parallel.collective import CollectiveParameters, Kind
from chipwise.predict.training.values import TrainRates

PREFIX = "training"

# Kernels of V100s were timed in bursts at their boost clock, which they do not keep under load.
# Gaudi 1 and 3 reach half of what their kernels alone promise (baselines of optimum-habana's tests); in 8 bit
# Gaudi 3 multiplies on the same units at the same rate.
_PRODUCTS = {"16+volta": -0.2, "16+gaudi1": -0.5, "16+gaudi3": -0.6, "8+gaudi3": -0.6}

# Megatron of 2020 fused bias, activation and dropout; PyTorch that runs operation by operation fuses nothing;
# Hugging Face's GPT-2 wrote its activation as eight operations over four times the width.
# LLM.Q's kernels move 16 h of norms with residuals, 4 of rotated columns and 6 of gated width, bytes a token, 1.15 of
# what is saved.
_PASSES = {
    "megatron-2020": -0.4,
    "megatron-2022": -0.4,
    "deepspeed-2021": -0.4,
    "pytorch": 0.3,
    "transformers-2021": 0.6,
    "llmq": -0.55,
    "hf-trainer": 0.6,
    "llama-factory": 0.6,
    "deepspeed": 0.6,
}

# Hugging Face's models under DeepSpeed: 0.7 of what compiled FSDP reaches (Llama-2-7B on 8 A800).
# AXLearn on Trainium2: one published run, of 1,024 chips. MindSpeed: 24 published runs on Ascend 910.
# Meta's: 400 and 430 TFLOP/s on 16,384 and 8,192 H100.
_STACKS = {"deepspeed": -0.25, "axlearn-neuron": -0.45, "mindspeed": -0.15, "meta": -0.12}

# PyTorch without a compiler saves copies in fp32 around norms and rotations (one more sequence of Llama-2-7B takes 1.27
# times as much under Hugging Face and LitGPT); XLA and torch.compile fuse what they can compute again.
_SAVED = {
    "deepspeed": 0.24,
    "hf-trainer": 0.24,
    "llama-factory": 0.24,
    "litgpt": 0.24,
    "pytorch-fsdp": 0.1,
    "torchtune": -0.15,
    "maxtext": -0.2,
    "neuronx": -0.2,
    "nemo": -0.15,
    "llm-foundry": -0.15,
    "automodel": -0.15,
}

QUANTITIES: Mapping[str, Quantity] = {
    "linear": Quantity(
        0.87,
        0.05,
        "share of the speed that products with weights have alone",
        (EffectLevel(("products",), 0.12, _PRODUCTS), EffectLevel(("stack",), 0.12, _STACKS)),
        high=2.0,
    ),
    "straggle": Quantity(0.004, 0.4, "more time per doubling of the nodes"),
    "fsdp_overlap": Quantity(1.4, 0.10, "exponent of the overlap of FSDP traffic", low=1.0, high=8.0),
    "core": Quantity(
        0.8,
        0.10,
        "share of the speed that attention cores have alone",
        (
            EffectLevel(
                ("attention", "generation"),
                0.3,
                # FlashAttention-2 does not use Hopper's own instructions, and is 1.3 to 1.5 times as fast as the first
                # one in Triton (Dao, 2023, figures 4 to 7)
                {"fa2+hopper": -0.5, "triton+hopper": -0.8, "triton+ampere": -0.3},
            ),
        ),
        high=4.0,
    ),
    "passes": Quantity(
        2.3, 0.15, "passes over saved activations, forward", (EffectLevel(("stack",), 0.05, _PASSES),)
    ),
    "host_s": Quantity(1.5e-3, 0.2, "s of host work per layer and micro-batch, forward and backward"),
    "moe_host_s": Quantity(
        4e-3, 0.3, "s of host work, more for a layer with experts", (EffectLevel(("generation",), 0.3),)
    ),
    # kernels of a group are started expert by expert
    "expert_host_s": Quantity(60e-6, 0.5, "s of host work for each expert of a rank"),
    "tp_exposed": Quantity(0.30, 0.3, "exposed share of tensor-parallel collectives", high=1.0),
    "dp_exposed": Quantity(0.50, 0.2, "exposed share of gradient traffic", high=1.0),
    "pp_exposed": Quantity(
        0.30,
        0.3,
        "exposed share of traffic between stages",
        # pipelines of 2020 to 2022 send and receive between passes
        (EffectLevel(("kind",), 0.3, {"eager": 1.0}),),
        high=1.0,
    ),
    "expert_loss": Quantity(
        1.5,
        0.15,
        "factor on grouped products: imbalance, tokens moved to their experts and back",
        # by how software groups them (XLA sorts and gathers tokens, others fuse that), by kernels of a generation
        (
            EffectLevel(("kind",), 0.3),
            EffectLevel(("generation",), 0.2),
            EffectLevel(("grouping",), 0.3, {"fused": -0.5}),
        ),
        low=0.5,
    ),
    "all_to_all": Quantity(0.55, 0.2, "share of link bandwidth, all-to-all", high=2.0),
    "all_to_all_net": Quantity(0.9, 0.3, "share of network bandwidth, all-to-all", high=4.0),
    "rank_s": Quantity(1e-3, 1.0, "s per rank of a ZeRO-1 group that sends weights rank by rank"),
    "step_s": Quantity(12e-3, 0.4, "s once per step"),
}

MEMORY_PREFIX = "training.memory"

MEMORY: Mapping[str, Quantity] = {
    "base_bytes": Quantity(
        1.5e9,
        0.2,
        "bytes of context, libraries and communication buffers",
        (EffectLevel(("basis",), 0.4, {"device": 1.0, "allocated": -0.7}),),
    ),
    "state": Quantity(
        1.03,
        0.03,
        "factor on weights, gradients and optimiser state that are trained",
        # tensors alone have no fragments
        (EffectLevel(("basis",), 0.03, {"allocated": -0.07}),),
    ),
    "activation": Quantity(1.0, 0.05, "factor on activations", (EffectLevel(("stack",), 0.12, _SAVED),)),
}


def rates(values: Mapping[str, object], links: Mapping[Kind, CollectiveParameters]) -> TrainRates:
    """The quantities as the equations take them, and the numbers of exchanges as they were measured alone; what no
    training row tells (`memory`) keeps the default of `TrainRates`."""
    return TrainRates(**values, links=links)  # type: ignore[arg-type]


def labels_of(
    dtype: str, trainer: Trainer, generation: str, *, moe: bool, basis: str = "", fused: bool = False
) -> dict[str, str]:
    """What a run shares its fitted numbers with.

    | label | meaning |
    |---|---|
    | dtype | type of the products |
    | kind, stack | kind of the trainer, and the id under which its numbers are fitted |
    | basis | what its memory figures count |
    | generation | of the chip |
    | products | a type on the generation that multiplies it; of fp32, which many run elsewhere, on any |
    | attention | whose fused kernels the trainer calls: FlashAttention-2 ("fa2"), the first one in Triton ("triton") or
    the chip's own ("native") |
    | moe | dense or moe |
    | grouping | whether activations of experts are `fused` into their products, or run by kernels of their own: plain |
    """
    # 16 bit of Blackwell Ultra is Blackwell's
    unit = generation.removesuffix("_ultra") if dtype == "16" else generation
    unit = "any" if dtype == "fp32" else unit
    return {
        "dtype": dtype,
        "kind": trainer.kind,
        "stack": trainer.stack,
        "basis": basis or trainer.memory.basis,
        "generation": generation,
        "products": f"{dtype}+{unit}",
        "attention": trainer.attention,
        "moe": "moe" if moe else "dense",
        "grouping": "fused" if fused else "plain",
    }
