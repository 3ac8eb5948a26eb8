"""How many chips of a kind a training plan is tried on, and the sequences of a step that so many divide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from chipwise.api.train_input import Pins
from chipwise.catalog.price import OwnCosts, Rent, paid_for
from chipwise.errors import UsageError

MOST = {"train": 1024, "finetune": 8}  # chips that are tried where nobody says how many
LARGEST = 32768  # chips up to which the search goes on where a deadline asks for more, or nothing fits
ONCE = 0.1  # share of a step below which what it does once leaves its batch as it is
LARGE = 1e11  # parameters above which published runs took more than 4 M tokens to a step
# Tokens of a step up to which those went: of experts DeepSeek-V3's 15,360 sequences of 4,096 (arXiv
# 2412.19437), else the last stage of Llama 3 405B (arXiv 2407.21783, section 3.4).
LARGEST_BATCH = {"moe": 63e6, "dense": 16e6}
NEAR = 16  # a batch is moved by at most about half of a 16th


def counts_to_try(given: Sequence[int], task: str, most: int | None, own: int | None, pins: Pins) -> list[int]:
    """The counts of one chip to try: those asked for, else powers of two that the fixed degrees divide; up to
    the `most` that are wanted, or all of one's own, and these.

    Raises `UsageError` where the limits leave none.
    """
    degrees = _degrees(pins)
    end = _least(own, min(most, LARGEST) if most else None) or MOST[task]
    powers = [2**i for i in range(end.bit_length()) if 2**i < end]
    usual = [c for c in (*powers, end) if c % degrees == 0] or [degrees]
    limit = _least(most, own, max((*given, *usual)))
    wanted = [c for c in given or usual if c <= limit]
    if wanted:
        return wanted
    if given:
        raise UsageError(f"counts: {min(given):,} is more than {limit:,} chips", f"at most {limit:,}")
    return [limit // degrees * degrees or limit]


def _least(*several: int | None) -> int:
    """The least of those that are given, 0 where none is."""
    return min((n for n in several if n is not None), default=0)


def with_filled(counts: Sequence[int], basis: Rent | OwnCosts | None, most: int | None, pins: Pins) -> list[int]:
    """Counts of a chip for rent, and those of the machines that they are billed as where they stand together: what is
    paid anyhow works too."""
    if basis is None:
        return [*counts]
    asked = np.array(counts, dtype=float)
    more = paid_for(partial(basis.paid, group=asked), asked, np.ones(len(asked)), most=np.inf if most is None else most)
    degrees = _degrees(pins)
    return sorted({*counts, *(n for n in more.astype(int).tolist() if n % degrees == 0)})


def _degrees(pins: Pins) -> int:
    """Devices of the degrees that are fixed."""
    return math.prod(int(pins.get(name, 1)) for name in ("tp", "pp", "cp", "dp"))


def next_count(last: int, most: int | None, *, enough: bool) -> int | None:
    """Twice as many chips where none of those tried is `enough`: has a plan that is done in time; None: that is all."""
    return None if enough or 2 * last > min(most or LARGEST, LARGEST) else 2 * last


def grown_batch(batch: int, seq: int, once: float, kind: str) -> int:
    """Sequences of a step with which what it does `once`, a share of the step at `batch`, takes less than `ONCE`.
    Doubled, up to what published runs of the kind took."""
    wanted = batch * once * (1.0 - ONCE) / (ONCE * max(1.0 - once, 1e-6))
    grown = batch
    while grown < wanted and 2 * grown * seq <= LARGEST_BATCH[kind] * 1.1:
        grown *= 2
    return grown


def batch_for(batch: int, devices: int, pins: Pins, *, single: bool = False) -> int:
    """Sequences of a step nearest to the usual `batch`, a power of two, that so many devices can share: a multiple of
    the data-parallel ranks, or of their odd part where there are more of them, with room for micro-batches. Where the
    micro-batch is fixed and software takes a `single` one of each rank, it makes the batch."""
    ranks = devices // math.prod(int(pins.get(name, 1)) for name in ("tp", "pp", "cp")) or 1
    if single and "micro_batch" in pins and int(pins.get("pp", 1)) == 1:
        return int(pins["micro_batch"]) * ranks
    ranks *= int(pins.get("micro_batch", 1))
    fixed = "micro_batch" in pins or all(name in pins for name in ("tp", "pp", "cp"))
    odd = ranks // (ranks & -ranks)
    if odd == 1:
        return max(batch, ranks) if fixed else batch
    unit = ranks if ranks <= batch or fixed else odd
    while 2 * unit * NEAR <= batch:
        unit *= 2
    return max(round(batch / unit), 1) * unit
