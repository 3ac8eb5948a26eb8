"""What a training step learns from its sequences: which passes run, which logits there are, what is frozen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from chipwise.values import dataclass

Reads = Literal["before", "all", "any"]
"""Which tokens a network's tokens see: those before them (decoders), all (encoders), or either."""


@dataclass(frozen=True, slots=True)
class Objective:
    """An objective, as a step of next tokens is changed by it.

    | field | meaning |
    |---|---|
    | reads | which networks take it |
    | what | what is learned, in a few words |
    | scored | share of the tokens whose logits are made; 0: the network has no head |
    | forwards | passes forward besides, which keep nothing for a backward pass |
    | reference | copies of the weights in 16 bit that those passes run through and nothing trains; under adapters the
    base weights are that copy |
    | together | sequences of an example, which share a micro-batch |
    | whole | the loss compares all examples of a rank: its share of a step is one pass |
    | tuned | it trains published weights on |
    | tokens | tokens that its published recipes train on before any tuning; 0: as many as the next token takes |
    """

    reads: Reads
    what: str
    scored: float = 1.0
    forwards: float = 0.0
    reference: float = 0.0
    together: int = 1
    whole: bool = False
    tuned: bool = False
    tokens: float = 0.0


NEXT = "next-token"
PAIRS = 1.7e11
"""tokens: of training on pairs. Source: Wang et al., 2022 (E5: 20,000 steps of 32,768 pairs of two texts of up to 128
tokens), as remembered, not read again. Confirmed: Li et al., 2023 (GTE: 50,000 steps of 16,384 such pairs, 2.1e11), as
remembered; moves the length of a contrastive run that says none."""
OBJECTIVES: Mapping[str, Objective] = {
    NEXT: Objective("before", "the next token"),
    "masked": Objective("all", "masked tokens, logits of all tokens"),
    "contrastive": Objective(
        "any",
        "pairs among all of a rank's pass (negatives in the batch), no logits",
        scored=0.0,
        together=2,
        whole=True,
        tokens=PAIRS,
    ),
    "contrastive-cached": Objective(
        "any",
        "pairs among all of a rank's step, embedded once more without gradients (GradCache), no logits",
        scored=0.0,
        forwards=1.0,
        together=2,
        tokens=PAIRS,
    ),
    "dpo": Objective(
        "before",
        "the preferred answer of a pair against a frozen reference, which runs forward too",
        forwards=1.0,
        reference=1.0,
        together=2,
        tuned=True,
    ),
}
"""By name. Exact: what the losses are made of. Source: Devlin et al., 2019 (masked; Transformers' heads make logits of
all tokens); Henderson et al., 2017 (negatives in the batch: MultipleNegativesRankingLoss of sentence-transformers); Gao
et al., 2021 (GradCache: CachedMultipleNegativesRankingLoss); Rafailov et al., 2023 (DPO)."""


def usual_objective(task: str, *, causal: bool) -> str:
    """What a network is usually trained for: decoders the next token; encoders masked tokens from random
    weights on, and pairs where they are tuned."""
    return NEXT if causal else "contrastive" if task == "finetune" else "masked"
