"""The register of rounds: what was scored stays, and leads."""

from __future__ import annotations

import pytest

from chipwise.evidence.rounds import register, rounds
from chipwise.report.accuracy import last_rounds
from command_line import Run


def test_the_last_rounds_comes_first_and_names_its_commit() -> None:
    lines = register()
    assert [line.round for line in lines] == sorted((line.round for line in lines), reverse=True)
    first = lines[0]
    assert (first.round, first.commit) >= (3, "13ac8d3d")
    tpot = next(r for r in lines if (r.round, r.found.metric) == (3, "TPOT"))
    assert (tpot.found.rows, tpot.found.median, tpot.found.coverage) == (121, 0.255, 0.48)
    assert all(0.0 <= line.found.coverage <= 1.0 for line in lines)


def test_the_register_is_printed_and_leads_the_page(run: Run) -> None:
    said = run("validate", "rounds").out
    assert "round 3, 2026-11-23, product at 13ac8d3d" in said
    assert len(rounds().tables) == len({line.round for line in register()})
    page = "\n".join(last_rounds())
    assert "Round 9, 2026-12-01, product at e1148901" in page
    assert "Round 8, 2026-12-01, product at 1cd1d178" in page
    assert "Round 3," not in page


def test_a_register_takes_no_rows(run: Run) -> None:
    assert "chipwise validate rounds" in run("validate", "rounds", "--folds", "cell").refused(2)


@pytest.mark.parametrize("metric", ["speed", "memory"])
def test_training_of_round_3(metric: str) -> None:
    found = [r.found for r in register() if r.round == 3 and (r.found.name, r.found.metric) == ("training", metric)]
    assert len(found) == 1
