"""Questions at random: what asks for less, or leaves an option out, never gets a worse plan."""

from __future__ import annotations

import pytest
from docs.generate.console import on_the_day
from pairs import Answer, Pair, answer, command, pairs, worse

from chipwise.errors import ChipwiseError, InfeasibleError

PAIRS, BLOCKS, SEED = 300, 4, 7


@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_looser_or_shorter_question_never_gets_a_worse_plan(block: int) -> None:
    known: dict[str, Answer | ChipwiseError] = {}

    def ask(one: tuple[str, dict[str, object]]) -> Answer | ChipwiseError:
        line = command(*one)
        if line not in known:
            known[line] = answer(*one)
        return known[line]

    answered, found = 0, []
    with on_the_day():
        for pair in pairs(PAIRS // BLOCKS, SEED + block):
            tight, loose = ask(pair.tight), ask(pair.loose)  # type: ignore[arg-type]
            answered += isinstance(tight, Answer)
            if why := worse(pair, tight, loose):
                found.append(f"{pair}\n    {why}")
    assert not found, "\n".join(found)
    assert answered > 0.6 * PAIRS / BLOCKS


def test_what_is_worse_is_called_so() -> None:
    pair = Pair("looser tpot", ("plan", {"model": "m"}), ("plan", {"model": "m", "tpot": "1s"}))
    good = Answer(10.0, 10.4)
    assert worse(pair, good, good) == ""
    assert "cheapest" in worse(pair, good, Answer(10.1, 10.1))
    assert "first" in worse(pair, good, Answer(9.0, 10.0))
    assert "kept" in worse(pair, good, Answer(9.0, 9.0, kept=False))
    assert "likely" in worse(pair, Answer(1.0, 1.0, False, 0.8), Answer(1.0, 1.0, False, 0.5))
    assert "no plan" in worse(pair, good, InfeasibleError("nothing"))
    assert worse(pair, InfeasibleError("nothing"), good) == ""
    assert worse(pair, Answer(1.0, 1.0, formats=frozenset({"int4"})), good) == ""
    assert str(pair).splitlines()[2] == "    chipwise plan m --tpot 1s"
