"""Trainers: whose chips they are usual on, and what they are called."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.catalog.chips import get_chip
from chipwise.catalog.software import SoftwareTable, all_software
from chipwise.catalog.trainer import KERNELS, Trainer, get_trainer, trainer_called, usual_trainer
from chipwise.errors import UnknownNameError, UsageError
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


def test_development_that_ended_is_said_with_who_and_when() -> None:
    said = get_trainer("torchtune").ended
    assert said is not None
    assert said.date == "2025-07-15"
    assert said.ref.startswith("https://github.com/")
    ended = [t.id for t in all_software(Trainer).values() if t.ended]
    assert ended == ["llm-foundry", "torchtune"]  # none takes it over by `like`


@pytest.mark.parametrize(
    ("text", "trainer"),
    [
        ("Megatron-Bridge 26.04 NeMo Container", "nemo-2025"), ("Megatron-Bridge 26.08", "nemo"),
        ("NeMo AutoModel TE + DeepEP", "automodel"),
        ("Hugging Face Trainer + PEFT + DeepSpeed", "hf-trainer"), ("fms-fsdp (PyTorch FSDP)", "fms-fsdp"),
        ("MaxText / MaxDiffusion", "maxtext"), ("Megatron-DeepSpeed", "megatron-2020"),
        # what stands in brackets is what a trainer is made of
        ("ms-swift (HF Trainer, DeepSpeed)", "ms-swift"), ("LLMQ (CUDA C++)", "llmq"),
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
    for t in all_software(Trainer).values():
        assert set(t.schedules) <= set(SCHEDULES)
        assert t.usual_recompute in ("", *RECOMPUTE)
        assert t.usual_schedule in ("", *(t.schedules or SCHEDULES))
        assert t.refusal(t.usual) == ""
        assert t.default.sources
    assert get_trainer("nemo-tuned").schedules == get_trainer("nemo").schedules


@pytest.mark.parametrize(
    ("key", "value", "able"),
    [
        ("recompute", '"none"', '["selective", "full"]'),
        ("zero", "1", "[0, 3]"),
        ("schedule", '"dualpipe"', '["1f1b", "gpipe"]'),
    ],
)
def test_a_table_whose_trainer_cannot_run_what_it_sets_is_refused(key: str, value: str, able: str) -> None:
    name = "schedules" if key == "schedule" else key
    text = f"""
        [software.t]
        name = "t"
        source = {{ ref = "s" }}
        [software.t.trains]
        kind = "fsdp"
        usual_{key} = {value}
        {name} = {able}
    """
    said = value.strip('"')
    with pytest.raises(UsageError, match=f"t.trains: usual_{key} {said}: this trainer knows"):
        SoftwareTable(text, "mine.toml").able(Trainer)


def test_what_a_layout_does_not_fix_is_not_refused() -> None:
    jax = get_trainer("maxtext-gpu")
    assert jax.refusal({}) == jax.refusal({"recompute": "full"}) == ""
    assert jax.refusal({"recompute": "none"}) == "recompute none: this trainer knows selective, full"
    assert "0.5" in jax.refusal({"recompute": "0.5"})
    anything = replace(jax, recompute=())  # none named: it knows all
    assert anything.refusal({"recompute": "none"}) == anything.refusal({"recompute": "0.5"}) == ""


@pytest.mark.parametrize(
    ("text", "chip", "trainer"),
    [
        ("Megatron-DeepSpeed", "gaudi2", "gaudi-megatron"), ("Megatron-DeepSpeed", "a100", "megatron-2020"),
        ("AXLearn (JAX)", "trainium2", "axlearn-neuron"), ("AXLearn (JAX)", "tpu-v5p", "axlearn"),
        ("MaxText (JAX)", "h100", "maxtext-gpu"), ("nanotron", "h100", "other"),
    ],
)  # fmt: skip
def test_the_chip_decides_between_trainers_of_one_name(text: str, chip: str, trainer: str) -> None:
    found = trainer_called(text, get_chip(chip))
    assert found is not None
    assert found.id == trainer


def test_the_usual_trainer_can_cut_what_is_asked_for() -> None:
    h100 = get_chip("h100")
    assert usual_trainer(h100, "lora").id == "hf-trainer"
    assert usual_trainer(h100, "lora", {"tp": 2}).id == "nemo"
    assert usual_trainer(h100, "full", {"zero": 3, "shard": 8}).id == "torchtitan"


def test_a_memory_policy_says_which_words_it_knows() -> None:
    policy = get_trainer("torchtune").memory.changed({"optimizer": "adamw-8bit", "master": "yes"})
    assert (policy.figures["moments"], policy.figures["master"]) == (2.03, 4.0)
    with pytest.raises(UnknownNameError, match="did you mean adamw"):
        policy.changed({"optimizer": "adam-w"})
    with pytest.raises(UnknownNameError, match="unknown memory policy 'optimiser'"):
        policy.changed({"optimiser": "adamw"})


def test_kernels_that_are_named_are_those_of_the_trainer_and_of_the_chip() -> None:
    for t in all_software(Trainer).values():
        for setting, names in t.told.items():
            assert set(names) <= set(KERNELS[setting]), t.id
    hopper, ampere, blackwell = (get_chip(c) for c in ("h100-sxm5-80gb", "a100-sxm4-80gb", "b200-sxm"))
    own = get_trainer("pytorch-fsdp")
    assert own.refusal({"attention": "flash3"}) == ""
    assert get_trainer("torchtune").refusal({"attention": "flash3"}) == ("attention flash3: this trainer knows sdpa")
    assert get_trainer("maxtext").refusal({"dispatch": "deepep"}).endswith("knows none by name")
    assert own.as_told({"attention": "flash3"}, hopper).attention == "native"
    with pytest.raises(UsageError, match="flash3 is written for other matrix units than those of A100"):
        own.as_told({"attention": "flash3"}, ampere)
    later = own.as_told({"attention": "flash2"}, blackwell)
    assert (later.attention, later.warps) == ("fa2", True)
    assert not own.as_told({"attention": "flash2"}, hopper).warps
    # PyTorch takes cuDNN's where units have instructions of their own
    assert own.as_told({"attention": "sdpa"}, hopper).attention == "native"
    assert own.as_told({"attention": "sdpa"}, ampere).attention == "fa2"
    assert not own.as_told({"attention": "eager"}, hopper).flash
    assert own.as_told({}, hopper) is own
    for setting, able in KERNELS.items():
        for name, kernel in able.items():
            assert kernel.source, name
            assert own.as_told({setting: name}, hopper) or kernel.made_for
            assert all(hasattr(own, key) for key in kernel.sets), name
            assert not kernel.elsewhere or not able[kernel.elsewhere].made_for, name


def test_policies_that_a_trainer_lacks_are_refused_with_those_it_has() -> None:
    assert get_trainer("maxtext").keeps({"optimizer": "adamw-8bit"}) == (
        "optimizer=adamw-8bit: this trainer keeps optimizer=adamw"
    )
    assert get_trainer("maxtext").keeps({"loss": "chunked"}) == ""
    assert get_trainer("nemo").keeps({"loss": "chunked"}).endswith("keeps loss=fused")
