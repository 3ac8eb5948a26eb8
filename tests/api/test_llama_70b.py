"""What is known about serving a 70-billion model in 16 bit, through the public API."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chipwise import api
from chipwise.report.fit import FitRecord

LLAMA_2_70B = {
    "model_type": "llama",
    "hidden_size": 8192,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "intermediate_size": 28672,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
}


@pytest.fixture(params=["meta-llama/Llama-3.1-70B", "meta-llama/Llama-2-70b-hf", "by its dimensions"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param != "by its dimensions":
        return str(request.param)
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_2_70B))
    return str(tmp_path)


def one(model: str, chip: str, count: int | None = None) -> FitRecord:
    (record,) = api.fit(model, chips=[chip], count=count).fits
    return record


def test_its_weights_take_141_gb() -> None:
    record = api.describe("meta-llama/Llama-3.1-70B")
    assert record.weight_bytes == 2 * record.params
    assert record.weight_bytes == pytest.approx(141e9, rel=0.005)
    assert record.kv_bytes_per_token == 2 * 80 * 8 * 128 * 2


def test_its_dimensions_alone_give_the_same_account(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_2_70B))
    bundled = one("meta-llama/Llama-2-70b-hf", "h100-sxm5-80gb", 8)
    assert one(str(tmp_path), "h100-sxm5-80gb", 8) == bundled
    assert api.describe(str(tmp_path)).params == 68_976_648_192


def test_one_a100_does_not_hold_it_and_says_by_how_much(model: str) -> None:
    record = one(model, "a100-sxm4-80gb", 1)
    assert record.verdict == "no"
    assert record.memory is not None
    weights = sum(size for kind, size in record.memory.items.items() if kind.startswith("weights"))
    assert weights == pytest.approx(api.describe(model).weight_bytes)
    # at the least what the weights alone exceed the card by, at the most with a tenth of it kept free as well
    assert weights - 85.1e9 < record.missing_bytes < weights - 0.9 * 85e9 + 8e9
    assert any(mend.startswith("2 chips") for mend in record.mend)
    assert any("fp8 weights" in mend for mend in record.mend)


def test_two_a100_hold_it_tightly(model: str) -> None:
    record = one(model, "a100-sxm4-80gb", 2)
    assert (record.verdict, record.layout.label, record.missing_bytes) == ("tight", "tp2", 0.0)
    assert record.memory is not None
    assert 15_000 <= record.memory.cache_tokens <= 50_000
    assert {"weights: attention", "weights: ffn", "weights: tables", "workspace", "graphs", "context"} <= set(
        record.memory.items
    )
    assert set(record.memory.basis) == set(record.memory.items)


@pytest.mark.parametrize("chip", ["a100-sxm4-80gb", "a100-pcie-80gb", "h100-sxm5-80gb"])
def test_two_cards_of_80_gb_leave_15_to_40_thousand_tokens(chip: str) -> None:
    record = one("meta-llama/Llama-3.1-70B", chip, 2)
    assert record.verdict == "tight"
    assert record.memory is not None
    assert 15_000 <= record.memory.cache_tokens <= 40_000


def test_eight_h100_hold_it_with_over_a_million_tokens(model: str) -> None:
    record = one(model, "h100-sxm5-80gb", 8)
    assert (record.verdict, record.layout.label) == ("comfortable", "tp8")
    assert record.memory is not None
    assert record.memory.cache_tokens > 1_000_000
    assert record.largest_batch == pytest.approx(record.memory.cache_tokens / 2300, rel=0.01)


@pytest.mark.parametrize("chip", ["b200-sxm", "mi300x"])
def test_one_large_chip_is_enough(model: str, chip: str) -> None:
    record = one(model, chip)
    assert (record.chips, record.verdict) == (1, "comfortable")


def test_its_weights_alone_fill_614_groq_chips() -> None:
    record = one("meta-llama/Llama-3.1-70B", "groq-lpu1", 576)
    assert record.verdict == "no"
    assert record.mend == ("617 chips (the weights alone fill 614)",)
    assert one("meta-llama/Llama-3.1-70B", "groq-lpu1", 617).verdict == "tight"
    assert one("meta-llama/Llama-3.1-70B", "groq-lpu1", 616).verdict == "no"


def test_one_cs3_holds_22_billion_parameters_and_not_this(model: str) -> None:
    record = one(model, "wse3-cs3", 1)
    assert record.verdict == "no"
    assert record.memory is not None
    assert record.memory.capacity_bytes / 2 == pytest.approx(22e9, rel=0.02)
    assert record.missing_bytes == pytest.approx(api.describe(model).weight_bytes - 43.56e9, rel=0.02)


@pytest.mark.parametrize(("params_b", "fits"), [(21, True), (22.5, False)])
def test_the_edge_of_one_cs3(params_b: float, fits: bool, tmp_path: Path) -> None:
    # nothing but tables: parameters = 2 x vocabulary x width, and one thin layer
    thin = {"num_hidden_layers": 1, "intermediate_size": 64, "num_attention_heads": 8, "num_key_value_heads": 1}
    vocab = int(params_b * 1e9 / 2 / 8192)
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_2_70B | thin | {"vocab_size": vocab}))
    assert (one(str(tmp_path), "wse3-cs3", 1).verdict != "no") is fits
