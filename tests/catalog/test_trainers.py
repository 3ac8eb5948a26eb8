"""Trainers: whose chips they are usual on, and what they are called."""

from __future__ import annotations

import pytest

from chipwise.catalog.chips import get_chip
from chipwise.catalog.trainer import get_trainer, load_trainers, trainer_called, usual_trainer
from chipwise.errors import UnknownNameError
from chipwise.search.training_space import RECOMPUTE, SCHEDULES


@pytest.mark.parametrize(
    ("chip", "trainer"),
    [
        ("h100", "nemo"), ("mi300x", "primus"), ("tpu-v5p", "maxtext"), ("trainium1", "neuronx"),
        ("gaudi2", "optimum-habana"), ("m4-max", "pytorch-fsdp"),
    ],
)  # fmt: skip
def test_the_usual_trainer_of_a_chip(chip: str, trainer: str) -> None:
    assert usual_trainer(get_chip(chip)).id == trainer


@pytest.mark.parametrize(
    ("text", "trainer"),
    [
        ("Megatron-Bridge 26.04 NeMo Container", "nemo"), ("NeMo AutoModel TE + DeepEP", "automodel"),
        ("Hugging Face Trainer + PEFT + DeepSpeed", "hf-trainer"), ("fms-fsdp (PyTorch FSDP)", "fms-fsdp"),
        ("MaxText / MaxDiffusion", "maxtext"), ("Megatron-DeepSpeed", "megatron-2020"),
    ],
)  # fmt: skip
def test_names_as_publications_write_them(text: str, trainer: str) -> None:
    found = trainer_called(text)
    assert found is not None
    assert (found.id, get_trainer(text).id) == (trainer, trainer)


def test_an_unknown_trainer_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="torchtitan"):
        get_trainer("torchtitn")


def test_what_trainers_set_is_legal() -> None:
    for t in load_trainers().values():
        assert set(t.schedules) <= set(SCHEDULES)
        assert t.usual_recompute in ("", *RECOMPUTE)
        assert t.usual_schedule in ("", *(t.schedules or SCHEDULES))
        assert t.source
    assert get_trainer("nemo-tuned").schedules == get_trainer("nemo").schedules
