"""Fitted numbers of training, whose priors are data, and how labels choose among them.

A quantity is a product of effects: one for all rows, one per kind of software, per stack, per generation of
chips, ... Effects without rows are 1, so that an unseen stack gets what its kind has, an unseen chip what its
generation has.
"""

from __future__ import annotations

from collections.abc import Mapping

from chipwise.calibrate.priors import priors
from chipwise.catalog.trainer import Trainer
from chipwise.parallel.collective import CollectiveParameters, Kind
from chipwise.predict.training.values import TrainRates

PREFIX = "training"

QUANTITIES = priors("training")
"""Numbers of a step's seconds."""

MEMORY_PREFIX = "training.memory"

MEMORY = priors("training_memory")
"""Numbers of its memory."""


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
