"""Fitted numbers of training: quantities with their priors, and how labels choose among them.

A quantity is a product of effects: one for all rows, one per kind of software, per stack, per generation of
chips, ... Effects without rows are 1, so that an unseen stack gets what its kind has, an unseen chip what its
generation has.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from chipwise.calibrate.effects import Level, Quantity
from chipwise.catalog.trainer import Trainer
from chipwise.predict.training.values import Rates

__all__ = ["MEMORY", "MEMORY_PREFIX", "PREFIX", "QUANTITIES", "labels_of", "rates"]

PREFIX = "training"

_DTYPE = {
    "16": 0.0,
    "8": float(np.log(0.56 / 0.72)),
    "4": float(np.log(0.42 / 0.72)),
    "fp32": float(np.log(0.80 / 0.72)),
}

# A share in training is 0.87 of that of a lone large product, where both are known (A100, H100). AMD's libraries reach
# less of their peaks than others, by the kernels of this package: 0.47 (MI300X), 0.49 (MI355X) in 16 bit, 0.55 and 0.49
# in 8 bit; few training runs say it again.
_AMD = {"16+cdna3": -0.56, "16+cdna4": -0.53, "8+cdna3": -0.17, "8+cdna4": -0.27}

# Megatron of 2020 fused bias, activation and dropout; PyTorch that runs operation by operation fuses nothing;
# Hugging Face's GPT-2 wrote its activation as eight operations over four times the width.
_PASSES = {
    "megatron-2020": -0.4,
    "megatron-2022": -0.4,
    "megatron-deepspeed": -0.4,
    "deepspeed-2021": -0.4,
    "pytorch": 0.3,
    "transformers-2021": 0.6,
}

QUANTITIES: Mapping[str, Quantity] = {
    "linear": Quantity(
        0.72,
        0.05,
        "share of dense peak, products with weights, at sustained clocks",
        (
            Level(("dtype",), 0.08, _DTYPE),
            Level(("unit",), 0.10, {"volta": -0.15}),
            Level(("products",), 0.20, _AMD),
            Level(("recipe",), 0.15, {"row": -0.45, "block": -0.08}),
            Level(("stack",), 0.05),
        ),
        high=1.0,
    ),
    "straggle": Quantity(0.004, 0.4, "more time per doubling of the nodes"),
    "tail": Quantity(0.2, 0.5, "waves of tiles that a product takes longer"),
    "fsdp_overlap": Quantity(
        1.4,
        0.10,
        "exponent of the overlap of FSDP traffic",
        # ZeRO-3 of 2021 synchronised every layer
        (Level(("stack",), 0.2, {"deepspeed-2021": -0.34, "transformers-2021": -0.34}),),
        low=1.0,
        high=8.0,
    ),
    "core": Quantity(
        0.36,
        0.10,
        "share of 16-bit peak, fused attention core",
        # FlashAttention-2 was written for Ampere and reaches 35 % of a Hopper, kernels of its own twice that (Shah et
        # al., 2024)
        (
            Level(("generation",), 0.15),
            Level(("attention", "generation"), 0.15, {"fa2+hopper": -0.5}),
            Level(("stack",), 0.10),
        ),
        high=0.9,
    ),
    "unfused": Quantity(
        0.60,
        0.15,
        "share of 16-bit peak, attention core that writes scores",
        (Level(("kind",), 0.3), Level(("stack",), 0.2)),
        high=0.9,
    ),
    "passes": Quantity(
        2.3,
        0.15,
        "passes over saved activations, forward",
        (
            Level(("kind",), 0.20),
            Level(("stack",), 0.12, _PASSES),
            Level(("moe",), 0.15),
        ),
    ),
    "host_s": Quantity(
        1.5e-3,
        0.2,
        "s of host work per layer and micro-batch, forward and backward",
        (Level(("kind",), 0.3, {"eager": 0.5, "fused": -0.3}), Level(("stack",), 0.3)),
    ),
    "moe_host_s": Quantity(
        4e-3,
        0.3,
        "s of host work, more for a layer with experts",
        # hosts differ by generation
        (
            Level(("generation",), 0.4),
            Level(("stack",), 0.3),
            Level(("recipe",), 0.2),
        ),
    ),
    "link": Quantity(
        0.75,
        0.10,
        "share of scale-up bandwidth",
        (Level(("kind",), 0.1), Level(("generation",), 0.15)),
        high=1.0,
    ),
    "net": Quantity(0.80, 0.15, "share of network bandwidth", (Level(("stack",), 0.25),), high=1.0),
    "tp_exposed": Quantity(
        0.30, 0.3, "exposed share of tensor-parallel collectives", (Level(("stack",), 0.3),), high=1.0
    ),
    "dp_exposed": Quantity(
        0.50,
        0.2,
        "exposed share of gradient traffic",
        (Level(("kind",), 0.3, {"eager": 0.5}), Level(("stack",), 0.2)),
        high=1.0,
    ),
    "pp_exposed": Quantity(
        0.30,
        0.3,
        "exposed share of traffic between stages",
        (Level(("kind",), 0.3, {"eager": 0.3}),),
        high=1.0,
    ),
    "expert_loss": Quantity(
        1.5,
        0.15,
        "factor on grouped products: permutation, imbalance, small groups",
        (
            Level(("stack",), 0.15),
            Level(("generation",), 0.10),
            Level(("dtype",), 0.10),
        ),
        low=1.0,
    ),
    "all_to_all": Quantity(
        0.55, 0.2, "share of link bandwidth, all-to-all", (Level(("generation",), 0.15),), high=2.0
    ),
    "all_to_all_net": Quantity(
        0.9,
        0.3,
        "share of network bandwidth, all-to-all",
        (Level(("generation",), 0.2), Level(("stack",), 0.2)),
        high=4.0,
    ),
    "rank_s": Quantity(1e-3, 1.0, "s per rank of a ZeRO-1 group that sends weights rank by rank"),
    "step_s": Quantity(12e-3, 0.4, "s once per step", (Level(("kind",), 0.4), Level(("stack",), 0.4))),
}

MEMORY_PREFIX = "training.memory"

MEMORY: Mapping[str, Quantity] = {
    "base_bytes": Quantity(
        6e9, 0.3, "bytes of context, libraries and communication buffers", (Level(("stack",), 0.15),)
    ),
    "state": Quantity(
        1.1,
        0.08,
        "factor on weights, gradients and optimiser state",
        (Level(("kind",), 0.08), Level(("stack",), 0.15)),
    ),
    "activation": Quantity(
        1.05, 0.08, "factor on activations and logits", (Level(("kind",), 0.08), Level(("stack",), 0.15))
    ),
}

def rates(values: Mapping[str, object]) -> Rates:
    """The quantities as the equations take them; what no training row tells (`memory`, `kernel_s`, `hop_s`) keeps the
    default of `Rates`."""
    return Rates(**values)  # type: ignore[arg-type]


def labels_of(dtype: str, recipe: str, trainer: Trainer, generation: str, *, moe: bool) -> dict[str, str]:
    """What a run shares its fitted numbers with.

    | label | meaning |
    |---|---|
    | dtype, recipe | type of the products, and how 8-bit types are scaled |
    | kind, stack | kind and id of the trainer |
    | generation, unit | of the chip; unit: of fp32, which many run elsewhere, that of any chip |
    | products | a type on what multiplies it |
    | attention | whose fused kernels the trainer calls: FlashAttention-2 ("fa2") or the chip's own ("native") |
    | moe | dense or moe |
    """
    # 16 bit of Blackwell Ultra is Blackwell's
    unit = generation.removesuffix("-ultra") if dtype == "16" else generation
    return {
        "dtype": dtype,
        "recipe": recipe,
        "kind": trainer.kind,
        "stack": trainer.id,
        "generation": generation,
        "unit": "fp32" if dtype == "fp32" else unit,
        "products": f"{dtype}+{unit}",
        "attention": trainer.attention,
        "moe": "moe" if moe else "dense",
    }
