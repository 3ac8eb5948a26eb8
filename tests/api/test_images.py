"""Pictures of requests: tokens of the prompt, and work of the vision tower before it."""

from __future__ import annotations

from typing import Any

import pytest

import chipwise as cw
from chipwise.api.loaded import load
from chipwise.errors import UsageError
from chipwise.report.plans import PlanRecord
from chipwise.workload.media.tower import picture
from chipwise.workload.program import count_entries

MODEL = "Qwen/Qwen3-VL-235B-A22B-Instruct"
SEEN = 880  # tokens of 1280x720: 40 x 22 cells of 32 pixels


def answer(**asked: Any) -> PlanRecord:
    place = {"model": MODEL, "chip": "h200", "tp": 8, "precision": "fp8", "out": 100, "evidence": "none"}
    return cw.estimate(**{**place, "concurrency": 1, **asked}).plans[0]


def test_the_first_token_waits_for_the_tower_beyond_its_tokens() -> None:
    shown, told = answer(in_=500, images="1280x720"), answer(in_=500 + SEEN)
    stage, tokens = picture(load(MODEL).graph.model.towers[0], 1280, 720)
    assert tokens == SEEN
    more = shown.ttft_s.mid - told.ttft_s.mid
    peak = 989e12 * 8
    assert stage.flops / peak < more < 30 * stage.flops / peak
    assert shown.tpot_s.mid == pytest.approx(told.tpot_s.mid, rel=1e-3)


@pytest.mark.parametrize("load", [{"concurrency": 64}, {"concurrency": None}])
def test_more_pictures_serve_fewer_requests(load: dict[str, Any]) -> None:
    rates = [answer(in_=500, images=images, **load).tokens_per_s.mid for images in (None, "336x336", "4*1280x720")]
    assert rates == sorted(rates, reverse=True)
    assert rates[2] < 0.9 * rates[0]


@pytest.mark.parametrize(
    ("width", "height", "tiles"), [(336, 336, 1), (300, 200, 1), (672, 336, 3), (1024, 1024, 17), (4096, 2048, 16)]
)
def test_llama_4_cuts_pictures_into_tiles(width: int, height: int, tiles: int) -> None:
    tower = load("meta-llama/Llama-4-Scout-17B-16E-Instruct").graph.model.towers[0]
    one, each = picture(tower, 336, 336)
    stage, tokens = picture(tower, width, height)
    assert each == 144
    assert tokens == tiles * each
    assert stage.flops == pytest.approx(tiles * one.flops, rel=1e-3)


def test_the_tower_is_bound_by_the_peak() -> None:
    stage, _ = picture(load(MODEL).graph.model.towers[0], 4096, 4096)
    found = answer(in_=100, out=1, images="4096x4096", concurrency=None)
    assert found.requests_per_s * stage.flops < 989e12 * 8


def test_models_that_see_nothing_and_sizes_that_are_none_are_refused() -> None:
    with pytest.raises(UsageError, match="sees no pictures"):
        answer(model="meta-llama/Llama-3.1-8B", tp=1, images="336x336")
    for said in ("336", "0x10", "ten", "1280x720x3"):
        with pytest.raises(UsageError, match="is no picture"):
            answer(images=said)


def test_pictures_that_cross_attention_reads_are_refused_and_text_is_not() -> None:
    model = "meta-llama/Llama-3.2-11B-Vision-Instruct"  # its bundled configuration leaves out the class's own figures
    tower = load(model).graph.extra("vision")
    assert tower is not None
    held = 10_670_220_835 - 9_775_157_248  # what Hugging Face shows for the model, less its text
    larger = (1601 - 1025) * 1280 * (1 + 9 * 4)  # positions of pictures of 560, where the class has 448
    assert count_entries(tower.blocks) == pytest.approx(held - larger, rel=1e-3)
    assert cw.estimate(model, chip="h100", evidence="none").plans[0].ttft_s.mid < 5.0
    with pytest.raises(UsageError, match="cross-attention"):
        cw.estimate(model, chip="h100", images="560x560")


@pytest.mark.parametrize("name", ["google/gemma-4-e2b-it", "google/gemma-4-e4b-it", "LiquidAI/LFM2.5-VL-1.6B"])
def test_small_models_that_people_show_pictures_see_them(name: str) -> None:
    (tower,) = load(name).graph.model.towers
    assert picture(tower, 1024, 1024)[1] > 0


def test_engines_with_the_tower_in_a_file_of_its_own_load_it_for_pictures() -> None:
    """A model of 27 x 10^9 parameters in 4 bits fits 16 GB at a desk for text, as llama.cpp's mmproj is left out."""
    asked: dict[str, Any] = {"model": "Qwen/Qwen3.8-27B", "task": "local", "in_": 500, "out": 100}

    def held(runtime: str, **more: Any) -> float:
        found = cw.estimate(**asked, chip="rtx-3090", runtime=runtime, precision="iq4_xs", **more).plans[0]
        return found.memory.items.get("weights: vision", 0.0)

    assert held("llama.cpp") == 0.0
    tower = held("llama.cpp", images="1024x1024")
    assert tower == held("llama.cpp", policy={"tower": "always"}) == held("ollama") > 5e8
    cw.estimate(**asked, chip="rtx-5060-ti-16gb", runtime="llama.cpp", precision="iq4_xs")
    with pytest.raises(UsageError, match="cannot be set"):
        held("vllm", policy={"tower": "asked"})


def test_a_desk_loads_the_tower_where_it_is_to_see() -> None:
    def first(**more: Any) -> Any:
        return cw.local(have="rtx-5060-ti-16gb", models="Qwen/Qwen3.8-27B", precision="q3_k_m", **more).models[0]

    told, seen = first(), first(use="vision")
    assert seen.memory_bytes - told.memory_bytes > 5e8
    assert "--no-mmproj" in told.commands["llama.cpp"]
    assert "--no-mmproj" not in seen.commands["llama.cpp"]
