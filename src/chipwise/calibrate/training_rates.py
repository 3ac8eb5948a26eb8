"""Fitted numbers of training: quantities with their priors, and how labels choose among them.

A quantity is a product of effects: one for all rows, one per kind of software, per stack, per generation of
chips, ... Effects without rows are 1, so that an unseen stack gets what its kind has, an unseen chip what its
generation has.
"""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.calibrate.effects import Level, Quantity
from chipwise.catalog.trainer import Trainer
from chipwise.parallel.collective import CollectiveParameters, Kind
from chipwise.predict.training.values import Rates

__all__ = ["MEMORY", "MEMORY_PREFIX", "PREFIX", "QUANTITIES", "labels_of", "rates"]

PREFIX = "training"

# Kernels of V100s were timed in bursts at their boost clock, which they do not keep under load.
_PRODUCTS = {"16+volta": -0.2}

# Megatron of 2020 fused bias, activation and dropout; PyTorch that runs operation by operation fuses nothing;
# Hugging Face's GPT-2 wrote its activation as eight operations over four times the width.
_PASSES = {
    "megatron-2020": -0.4,
    "megatron-2022": -0.4,
    "deepspeed-2021": -0.4,
    "pytorch": 0.3,
    "transformers-2021": 0.6,
}

QUANTITIES: Mapping[str, Quantity] = {
    "linear": Quantity(
        0.87,
        0.05,
        "share of the speed that products with weights have alone",
        (Level(("products",), 0.12, _PRODUCTS), Level(("stack",), 0.12)),
        high=2.0,
    ),
    "straggle": Quantity(0.004, 0.4, "more time per doubling of the nodes"),
    "fsdp_overlap": Quantity(1.4, 0.10, "exponent of the overlap of FSDP traffic", low=1.0, high=8.0),
    "core": Quantity(
        0.8,
        0.10,
        "share of the speed that attention cores have alone",
        (Level(("attention", "generation"), 0.15, {"fa2+hopper": -0.5}),),
        high=4.0,
    ),
    "passes": Quantity(
        2.3, 0.15, "passes over saved activations, forward", (Level(("stack",), 0.05, _PASSES),)
    ),
    "host_s": Quantity(1.5e-3, 0.2, "s of host work per layer and micro-batch, forward and backward"),
    "moe_host_s": Quantity(4e-3, 0.3, "s of host work, more for a layer with experts"),
    # kernels of a group are started expert by expert
    "expert_host_s": Quantity(60e-6, 0.5, "s of host work for each expert of a rank"),
    "tp_exposed": Quantity(0.30, 0.3, "exposed share of tensor-parallel collectives", high=1.0),
    "dp_exposed": Quantity(0.50, 0.2, "exposed share of gradient traffic", high=1.0),
    "pp_exposed": Quantity(0.30, 0.3, "exposed share of traffic between stages", high=1.0),
    "expert_loss": Quantity(
        1.5,
        0.15,
        "factor on grouped products: imbalance",
        low=0.5,
    ),
    "all_to_all": Quantity(0.55, 0.2, "share of link bandwidth, all-to-all", high=2.0),
    "all_to_all_net": Quantity(0.9, 0.3, "share of network bandwidth, all-to-all", high=4.0),
    "rank_s": Quantity(1e-3, 1.0, "s per rank of a ZeRO-1 group that sends weights rank by rank"),
    "step_s": Quantity(12e-3, 0.4, "s once per step"),
}

MEMORY_PREFIX = "training.memory"

MEMORY: Mapping[str, Quantity] = {
    "base_bytes": Quantity(6e9, 0.3, "bytes of context, libraries and communication buffers"),
    "state": Quantity(
        1.1, 0.08, "factor on weights, gradients and optimiser state", (Level(("kind",), 0.08),)
    ),
    "activation": Quantity(1.05, 0.08, "factor on activations and logits", (Level(("stack",), 0.15),)),
}


def rates(values: Mapping[str, object], links: Mapping[Kind, CollectiveParameters]) -> Rates:
    """The quantities as the equations take them, and the numbers of exchanges as they were measured alone; what no
    training row tells (`memory`) keeps the default of `Rates`."""
    return Rates(**values, links=links)  # type: ignore[arg-type]


def labels_of(dtype: str, trainer: Trainer, generation: str, *, moe: bool) -> dict[str, str]:
    """What a run shares its fitted numbers with.

    | label | meaning |
    |---|---|
    | dtype | type of the products |
    | kind, stack | kind and id of the trainer |
    | generation | of the chip |
    | products | a type on the generation that multiplies it; of fp32, which many run elsewhere, on any |
    | attention | whose fused kernels the trainer calls: FlashAttention-2 ("fa2") or the chip's own ("native") |
    | moe | dense or moe |
    """
    # 16 bit of Blackwell Ultra is Blackwell's
    unit = generation.removesuffix("_ultra") if dtype == "16" else generation
    unit = "any" if dtype == "fp32" else unit
    return {
        "dtype": dtype,
        "kind": trainer.kind,
        "stack": trainer.id,
        "generation": generation,
        "products": f"{dtype}+{unit}",
        "attention": trainer.attention,
        "moe": "moe" if moe else "dense",
    }
