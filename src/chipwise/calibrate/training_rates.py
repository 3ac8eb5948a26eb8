"""Fitted numbers of training: quantities with their priors, and how labels choose among them.

A quantity is a product of effects: one for all rows, one per kind of software, per stack, per generation of
chips, ... Effects without rows are 1, so that an unseen stack gets what its kind has, an unseen chip what its
generation has.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.effects import Level, Quantity
from chipwise.predict.training.values import Rates

__all__ = ["MEMORY", "MEMORY_PREFIX", "PREFIX", "QUANTITIES", "labels_of", "rates"]

PREFIX = "training"

_DTYPE = {
    "16": 0.0,
    "8": float(np.log(0.56 / 0.72)),
    "4": float(np.log(0.42 / 0.72)),
    "fp32": float(np.log(0.80 / 0.72)),
}

QUANTITIES: Mapping[str, Quantity] = {
    "linear": Quantity(
        0.72,
        0.05,
        "share of dense peak, products with weights, at sustained clocks",
        (
            Level(("dtype",), 0.08, _DTYPE),
            Level(("generation",), 0.10, {"volta": -0.15}),
            Level(("dtype", "generation"), 0.20),
            Level(("chip",), 0.05),
            Level(("recipe",), 0.15, {"row": -0.45, "block": -0.08}),
            Level(("stack",), 0.05),
            Level(("release",), 0.04),
            Level(("site",), 0.20),
            Level(("dims",), 0.20, {"known": 0.0}),
        ),
        high=1.0,
    ),
    "straggle": Quantity(0.004, 0.4, "more time per doubling of the nodes"),
    "tail": Quantity(0.2, 0.5, "waves of tiles that a product takes longer"),
    "fsdp_overlap": Quantity(
        1.4, 0.10, "exponent of the overlap of FSDP traffic", (Level(("stack",), 0.2),), low=1.0, high=8.0
    ),
    "core": Quantity(
        0.36,
        0.10,
        "share of 16-bit peak, fused attention core",
        (Level(("generation",), 0.15), Level(("stack",), 0.15)),
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
            # fused bias, activation and dropout kernels; eager PyTorch has none
            Level(("stack",), 0.12, {"megatron-2020": -0.4, "megatron-2022": -0.4, "eager": 0.3}),
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
        # capacities that are fixed spare the host waiting for counts of tokens; hosts differ by generation
        (
            Level(("moe",), 0.6, {"dropped": -1.0}),
            Level(("generation",), 0.4),
            Level(("stack",), 0.3),
            Level(("release",), 0.15),
            Level(("era",), 0.4),
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
            Level(("release",), 0.10),
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

KEYS = ("dtype", "kind", "stack", "recipe", "release", "generation", "chip", "moe", "era", "dims", "site")


def rates(values: Mapping[str, object]) -> Rates:
    """The quantities as the equations take them; what no training row tells (`memory`, `kernel_s`, `hop_s`) keeps the
    default of `Rates`."""
    return Rates(**values)  # type: ignore[arg-type]


def labels_of(
    dtype: str,
    kind: str,
    stack: str,
    generation: str,
    chip: str,
    *,
    recipe: str = "",
    release: str = "none",
    moe: bool = False,
) -> dict[str, NDArray[np.str_]]:
    """Labels of one case, as the fit wants them."""
    routed = "moe" if moe else "dense"
    values = (dtype, kind, stack, recipe, release, generation, chip, routed, "late", "known", "any")
    one = dict(zip(KEYS, values, strict=True))
    return {key: np.array([value]) for key, value in one.items()}
