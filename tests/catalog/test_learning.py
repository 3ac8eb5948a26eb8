"""Learning rates by what is trained, each from a published recipe."""

from __future__ import annotations

import re

import pytest

from chipwise.catalog.tools import command_rows
from chipwise.catalog.trainer import learning_of, learning_rows
from chipwise.errors import UnknownNameError


def test_rates_fall_with_size_and_with_what_is_trained() -> None:
    pretrained = [learning_of("", n).rate for n in (1e8, 1.1e9, 8e9, 70e9, 405e9)]
    assert pretrained == sorted(pretrained, reverse=True)
    assert pretrained[2:] == [3e-4, 1.5e-4, 8e-5]  # Llama 3, table 3
    assert learning_of("full", 8e9).rate == 1e-5
    assert learning_of("lora", 8e9).rate == learning_of("qlora", 8e9).rate == 2e-4
    assert learning_of("qlora", 70e9).rate == 1e-4
    with pytest.raises(UnknownNameError, match="dpo"):
        learning_of("dpo", 1e9)


def test_rows_are_complete_and_sourced() -> None:
    for method in ("", "full", "lora", "qlora"):
        assert learning_of(method, 0.0).above == 0.0
    for row in learning_rows():
        assert re.search(r"20\d\d", row.source)
        assert 0.0 <= row.least <= 1.0
        assert (row.decay == "constant") is (row.least == 1.0)
        assert row.decay in ("cosine", "linear", "constant")


@pytest.mark.parametrize(("steps", "warm"), [(1, 0), (30, 1), (382, 4), (10_000, 100), (1_000_000, 2000)], ids=str)
def test_warm_up_is_a_share_of_the_steps(steps: int, warm: int) -> None:
    assert learning_of("", 8e9).warm(steps) == warm


def test_no_table_of_commands_holds_a_rate_of_its_own() -> None:
    for table, parts in command_rows().items():
        for part, rows in parts.items():
            for option, *more in rows if part != "joined" else ():
                if re.search(r"(^|[-_.])(lr|learning_rate)$", option):
                    assert str(more[0]).startswith(("{rate", "{least")), (table, option)
                elif option == "optimizer" and isinstance(more[0], dict):
                    said = str(more[0])
                    assert "{rate}" in said or "'lr': 'auto'" in said, (table, said)
