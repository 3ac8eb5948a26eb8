"""Training software: every stack that was fitted is a row, and the reader is strict."""

from __future__ import annotations

import pytest

from chipwise.calibrate.fit_training import training_effects
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.trainer import load_trainers, read_trainers
from chipwise.errors import UsageError

ROW = """
[mine]
name = "Mine"
attention = "fa2"
source = "its documentation"
"""


def test_every_fitted_stack_is_a_trainer() -> None:
    fitted = {name for part in training_effects(shipped_parameters()) for name in part.keys_of("stack")}
    assert "nemo" in fitted
    assert fitted <= set(load_trainers())


def test_what_is_not_said_is_usual() -> None:
    (mine,) = read_trainers(ROW, "mine.toml").values()
    assert (mine.id, mine.attention, mine.elementwise, mine.waits) == ("mine", "fa2", "usual", "ahead")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('attention = "fa2"', 'attention = "fa9"', "attention must be one of fa2, native, not 'fa9'"),
        ('attention = "fa2"', "", "attention must be one of"),
        ('name = "Mine"', "", "no name"),
        ('source = "its documentation"', 'source = ""', "no source"),
        ('name = "Mine"', 'name = "Mine"\nelementwize = "joined"', "unknown key 'elementwize'"),
    ],
)
def test_a_bad_row_is_named(old: str, new: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"mine.toml: mine.*{message}"):
        read_trainers(ROW.replace(old, new), "mine.toml")
