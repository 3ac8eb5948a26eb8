"""Runtimes of pipelines: every row says what it does, runs somewhere, and its age decides."""

from __future__ import annotations

import pytest

from chipwise.api.media_work import Place
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.media_runtime import MediaRuntime, get_media_runtime, media_runtime_for, media_runtimes_tried
from chipwise.catalog.software import all_software
from chipwise.errors import UnknownNameError, UsageError


def test_every_runtime_runs_on_a_chip_and_has_a_source() -> None:
    chips = [load_chips()[name] for name in load_chips()]
    for runtime in all_software(MediaRuntime).values():
        assert any(runtime.runs_on(chip) for chip in chips), runtime.id
        assert all(source.date for source in runtime.default.sources)
        assert runtime.default.sources
        assert runtime.pace in ("host", "compiled", "graph")


def test_names_are_unique() -> None:
    names = [name for r in all_software(MediaRuntime).values() for name in (r.id, *r.also)]
    assert len(names) == len(set(names))
    assert get_media_runtime("Faster-Whisper").id == "ctranslate2"


@pytest.mark.parametrize(
    ("software", "fused"),
    [("torch 1.13, diffusers 0.11.0", False), ("torch 2.0.1", True), ("2022-12", False), ("2023-05", True), ("", True)],
)
def test_attention_is_fused_since_a_version(software: str, fused: bool) -> None:
    assert get_media_runtime("eager").fuses_attention(software) is fused


@pytest.mark.parametrize(
    ("runtime", "chip", "software", "overlaps"),
    [
        ("eager", "h100-sxm5-80gb", "torch 2.10.0", False),
        ("eager", "h100-sxm5-80gb", "torch 2.11.0", True),
        ("eager", "b200-sxm", "v5.1", False),  # a round of MLPerf
        ("compile", "b200-sxm", "", True),
        ("eager", "a100-sxm4-80gb", "", False),
        ("eager", "rtx-5090", "", False),
        ("lightx2v", "h100-sxm5-80gb", "2025-12", True),
        ("tensorrt", "h100-sxm5-80gb", "", False),
    ],
)
def test_attention_takes_the_full_rate_since_a_version(runtime: str, chip: str, software: str, overlaps: bool) -> None:
    assert get_media_runtime(runtime).overlaps(get_chip(chip), software) is overlaps


@pytest.mark.parametrize("runtime", ["onediff", "tensorrt"])
def test_fp16_is_summed_at_the_rate_of_cards_for_games_where_software_does_so(runtime: str) -> None:
    numbers = shipped_parameters()

    def rate(chip: str, software: str) -> float:
        place = Place.under(get_chip(chip), get_media_runtime(software), numbers)
        assert place.hardware.device is place.device
        return float(place.device.matrix["fp16"])

    # GeForce sums fp16 in fp32 at half of its rate (whitepaper of Ada: 330.3 and 165.2 TFLOPS), an A100 at all of it
    assert rate("rtx-4090", runtime) == pytest.approx(2.0 * rate("rtx-4090", "eager"), rel=0.01)
    assert rate("a100-sxm4-80gb", runtime) == rate("a100-sxm4-80gb", "eager")


def test_software_changes_on_one_chip_take_the_rate_along() -> None:
    numbers, chip = shipped_parameters(), get_chip("rtx-4090")
    fast = Place.under(chip, get_media_runtime("tensorrt"), numbers)
    slow = fast.beside(get_media_runtime("eager"))
    assert 2.0 * float(slow.device.matrix["fp16"]) == pytest.approx(float(fast.device.matrix["fp16"]), rel=0.01)
    assert slow.device.matrix["bf16"] == fast.device.matrix["bf16"]


def test_what_is_named_alone_is_not_tried() -> None:
    tried = {r.id for r in media_runtimes_tried(get_chip("rtx-4090"), "diffusion", "wan2.1-t2v-14b", None)}
    assert "compile" in tried
    assert "onediff" not in tried


def test_what_never_and_always_fuses() -> None:
    assert not get_media_runtime("ctranslate2").fuses_attention("2026-01")
    assert get_media_runtime("tensorrt").fuses_attention("2019-01")


def test_the_default_of_a_chip() -> None:
    assert media_runtime_for(get_chip("h100-sxm5-80gb")).id == "eager"
    assert media_runtime_for(get_chip("trainium1")).pace == "graph"


def test_what_does_not_run_there_is_refused_with_what_does() -> None:
    with pytest.raises(UsageError, match="does not run on tpu-v5e") as refused:
        media_runtime_for(get_chip("tpu-v5e"), "tensorrt")
    assert "jax" in refused.value.hint
    with pytest.raises(UnknownNameError):
        media_runtime_for(get_chip("tpu-v5e"), "tensorrtt")
    with pytest.raises(UsageError, match="no software"):
        media_runtime_for(get_chip("groq-lpu1"))
