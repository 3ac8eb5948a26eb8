"""Questions drawn at random through the code of `estimate`: how many have an answer, and which rules one breaks.

`python -m bench.invariants [COUNT]`; the rules are those of `tests/api/drawn.py`, of which the tests ask fewer. Not
part of `python -m bench`: a hundred thousand take a quarter of an hour.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import suppress
from itertools import islice
from time import process_time

from tests.api.drawn import answered, broken, drawn, named

from bench.timing import one_core

COUNT, BLOCK, SHOWN = 100_000, 2_000, 3
SEED = 14


def main(count: int) -> None:
    """Print every rule that an answer breaks, how often, and the worst by how much; interrupted, of those asked."""
    began, refused, found = process_time(), Counter[str](), 0
    worst: dict[str, list[tuple[float, str]]] = {}
    often = Counter[str]()
    questions = drawn(count, SEED)
    with suppress(KeyboardInterrupt):
        while block := list(islice(questions, BLOCK)):
            for answers in answered(block, refused):
                found += len(answers.questions)
                for rule, place, excess in broken(answers):
                    often[rule] += 1
                    known = [*worst.get(rule, []), (excess, named(answers.questions[place]))]
                    worst[rule] = sorted(known, reverse=True)[:SHOWN]
            asked = found + sum(refused.values())
            print(f"{asked} asked, {found} answered, {often.total()} rules broken", file=sys.stderr)
    asked = found + sum(refused.values())
    print(f"{asked:,} questions, {found:,} answered, {process_time() - began:.0f} s of one core")
    print("not answered: " + ", ".join(f"{name} {times:,}" for name, times in refused.most_common()))
    for rule, times in often.most_common():
        print(f"{rule}: {times}")
        for excess, question in worst[rule]:
            print(f"    by {excess:.3g}: {question}")
    if not often:
        print("every rule holds")


if __name__ == "__main__":
    one_core()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else COUNT)
