"""Pairs of questions drawn at random, of which the second asks for less: how often its plan is worse.

`python -m bench pairs [COUNT] [SEED]`; the rules are those of `tests/api/pairs.py`, of which the tests ask fewer.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import suppress
from time import process_time

from docs.generate.console import on_the_day
from tests.api.pairs import answer, command, pairs, worse

from chipwise.errors import ChipwiseError

__all__ = ["COUNT", "SEED", "main"]

COUNT, SEED = 2_000, 29
REMEMBERED = 64


def main(count: int = COUNT, seed: int = SEED) -> int:
    """Print each pair whose second plan is worse as two commands, and how many were; interrupted, of those asked."""
    began, kinds, asked = process_time(), Counter[str](), Counter[str]()
    known: dict[str, object] = {}
    refused = 0
    with suppress(KeyboardInterrupt), on_the_day():
        for pair in pairs(count, seed):
            found = []
            for verb, question in (pair.tight, pair.loose):
                line = command(verb, question)
                if line not in known:
                    if len(known) > REMEMBERED:
                        known.clear()
                    known[line] = answer(verb, question)
                found.append(known[line])
            asked[pair.kind] += 1
            refused += isinstance(found[0], ChipwiseError)
            if why := worse(pair, *found):
                kinds[pair.kind] += 1
                print(f"{pair}\n    {why}", flush=True)
            if asked.total() % 100 == 0:
                print(f"{asked.total()} pairs, {kinds.total()} worse", file=sys.stderr)
    print(f"{asked.total():,} pairs, {refused} without a first plan, {process_time() - began:.0f} s of one core")
    for kind, times in asked.most_common():
        print(f"{kind}: {kinds[kind]} of {times} worse")
    return kinds.total()
