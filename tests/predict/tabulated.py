"""Engines of toys, for tests that know every pass by heart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from chipwise.cost.cost import Cost
from chipwise.predict.passes import PassTable, Requests, tabulate
from chipwise.predict.service import Engines
from chipwise.units import Real
from chipwise.workload.step import Step, is_decoding

__all__ = ["BASE_S", "FREE", "SEQUENCE_S", "TOKEN_S", "engines", "requests", "table", "toy"]

BASE_S, SEQUENCE_S, TOKEN_S = 10e-3, 20e-6, 50e-6
FREE = 1e9
"""Tokens or requests: no limit that anybody meets."""


def toy(
    base_s: float = BASE_S, sequence_s: float = SEQUENCE_S, token_s: float = TOKEN_S
) -> Callable[[Step], Iterator[tuple[str, Cost]]]:
    """Passes of `base_s`, `sequence_s` for each sequence that decodes, `token_s` for each token of a prompt."""

    def parts_of(step: Step) -> Iterator[tuple[str, Cost]]:
        decoding: Real = 0.0
        prompt: Real = 0.0
        for s in step.segments:
            if is_decoding(s):
                decoding = decoding + s.batch
            else:
                prompt = prompt + s.batch * s.q
        yield "gemm.w16.bf16", Cost({"memory": base_s + sequence_s * decoding, "compute": token_s * prompt})

    return parts_of


def requests(prompt: Real = 1000.0, output: Real = 200.0, budget: Real = 8000.0, spread: Real = 1.0) -> Requests:
    """Requests without a prefix cache."""
    context = np.asarray(prompt) + 0.5 * np.asarray(output)
    return Requests(prompt, output, prompt, prompt, prompt, context, context, 0.0, budget, spread)


def table(
    asked: Requests | None = None,
    size: int = 1,
    *,
    alone: bool = False,
    ranks: Real = 1.0,
    parts_of: Callable[[Step], Iterator[tuple[str, Cost]]] | None = None,
) -> PassTable:
    """The passes of a toy by resource."""
    return tabulate(parts_of or toy(), size, asked or requests(), alone=alone, ranks=ranks, factors={})


def engines(
    passes: PassTable | None = None,
    *,
    replicas: Real = 1.0,
    ranks: Real = 1.0,
    coupled: Real = 1.0,
    stages: Real = 1.0,
    limit: Real = FREE,
    workers: Real | None = None,
    transfer_s: Real = 0.0,
) -> Engines:
    """Engines of a table, one pool each or beside `workers` for prompts that have the same passes."""
    passes = passes or table()

    def column(value: Real) -> np.ndarray:
        return np.array(np.broadcast_to(np.asarray(value, dtype=float), (len(passes),)))

    found = Engines(passes, column(replicas), column(ranks), column(coupled), column(stages), column(limit))
    if workers is None:
        return found
    return replace(found, prompts=passes, prompt_servers=column(workers)[:, None], transfer_s=column(transfer_s))
