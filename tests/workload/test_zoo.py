"""Published configurations of 2023 to 2026: which are read, and whether their parameters are counted exactly."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from chipwise.catalog.configs import find_config, known_names
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError
from chipwise.workload.build import build
from chipwise.workload.graph import Graph
from chipwise.workload.load import load_model
from chipwise.workload.model import Dense
from chipwise.workload.program import count_entries
from truth import each_file, published, rows_of

TWICE = "the tied table is stored twice"
TOWER = "the checkpoint holds a vision or audio tower whose dimensions are not read"
MASKS = "the checkpoint holds attention masks"
MODULE = "the checkpoint holds a prediction module that this configuration does not name"
GUESSED = "the configuration is that of a class or of another model, not the checkpoint's own"

EXPLAINED = {
    "Qwen/Qwen3-0.6B": TWICE,
    "Qwen/Qwen3-1.7B": TWICE,
    "PrimeIntellect/Qwen3-0.6B": TWICE,
    "PrimeIntellect/Qwen3-1.7B": TWICE,
    "Qwen/Qwen3Guard-Gen-0.6B": TWICE,
    "Kwaipilot/HiPO-1.7B": TWICE,
    "tiiuae/falcon-7b": TWICE,
    "canopylabs/orpheus-3b-0.1-ft": TWICE,
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": TOWER,
    "microsoft/Phi-3.5-vision-instruct": TOWER,
    "google/gemma-4-E2B-it": TOWER,
    "KamilaMila/FastVLM-7B": TOWER,
    "adept/fuyu-8b": TOWER,
    "allenai/Molmo2-8B": TOWER,
    "meta-models/Muse-Glimmer-30B": TOWER,
    "PaddlePaddle/PaddleOCR-VL": TOWER,
    "mistralai/Mistral-Small-4-119B-2603": TOWER,
    "mistralai/Mistral-Medium-3.5-128B": TOWER,
    "Qwen/Qwen3.5-0.8B": TOWER,
    "Qwen/Qwen3.5-2B": TOWER,
    "Qwen/Qwen3.5-4B": TOWER,
    "Qwen/Qwen3.5-4B-Base": TOWER,
    "openai-community/gpt2": MASKS,
    "openai-community/gpt2-medium": MASKS,
    "EleutherAI/gpt-neo-1.3B": MASKS,
    "EleutherAI/gpt-neox-20b": MASKS,
    "Qwen/Qwen3-Next-80B-A3B-Instruct": MODULE,
    "deepseek-ai/DeepSeek-V3.2-Exp": MODULE,
    "tencent/Hy3-preview": MODULE,
    "meituan-longcat/LongCat-Flash-Chat": MODULE,
    "baidu/ERNIE-4.5-21B-A3B-PT": MODULE,
    "zai-org/GLM-5.3-Flash": MODULE,
    "Qwen/Qwen3.8-2.4T-A95B": MODULE,
    "zai-org/GLM-4.6": "its prediction module comes without the tables that those of GLM-4.5 and 4.7 have",
    "Qwen/Qwen3-Embedding-8B": "its configuration names a head that the checkpoint lacks",
    "moonshotai/Kimi-Linear-48B-A3B-Instruct": GUESSED,
    "jdopensource/JoyAI-LLM-Flash": GUESSED,
}
"""Models whose count is not that of the checkpoint, and why."""


@cache
def read(file: str) -> Graph | ChipwiseError:
    try:
        return build(load_model(find_config(str(published("zoo") / file))))
    except ChipwiseError as error:
        return error


def is_wide(graph: Graph) -> bool:
    """Whether all weights have 8 bits or more: published counts of others are of packed elements."""
    layers = [layer for _, layer in graph.model.runs]
    formats = [f for layer in layers for f in (layer.precision or graph.model.precision).weights.values()]
    return all(f.bits >= 8 for f in formats)


@pytest.mark.parametrize("name", known_names())
def test_every_name_is_that_of_a_model_that_is_read(name: str) -> None:
    assert load_model(find_config(name)).runs


def test_nine_of_ten_configurations_are_read_and_others_name_the_next_step() -> None:
    found = [read(row["file"]) for row in rows_of("zoo/SOURCES.csv")]
    refused = [error for error in found if isinstance(error, ChipwiseError)]
    assert len(refused) < 0.05 * len(found)
    assert [str(error) for error in refused if not error.hint] == []


def counts_a_checkpoint(graph: Graph, number: float) -> bool:
    """Whether a published number is a checkpoint's count: not one rounded to millions, nor what some pages show in its
    place, vocabulary x width + layers x (4 width^2 + 2 width x inner), to the last digit."""
    model = graph.model
    layers = [layer for repeat, layer in model.runs for _ in range(repeat)]
    if any(not isinstance(layer.ffn, Dense) for layer in layers):
        return number % 1e6 != 0
    inner = sum(layer.ffn.width for layer in layers if isinstance(layer.ffn, Dense))
    formula = model.vocab * model.hidden + 4 * len(layers) * model.hidden**2 + 2 * model.hidden * inner
    return number % 1e6 != 0 and number != formula


def stored_entries(graph: Graph) -> int:
    """Entries of a checkpoint as it is published: weights, buffers and scales of the stack, towers, and prediction
    modules, each with the copies of embedding and head that it is stored with. Tied tables count once."""
    total = count_entries(graph.blocks(), buffers=True, scales=True)
    for extra in graph.extras:
        if extra.name == "encoder":  # one of the parts
            continue
        entries = count_entries(extra.blocks, buffers=True, scales=True)
        if extra.name == "mtp" and graph.model.mtp is not None:
            entries += graph.model.mtp.tables * graph.model.hidden * graph.model.vocab
        total += extra.calls * entries
    return total


def test_exact_counts_are_met_or_explained() -> None:
    counted, off, others = 0, {}, []
    for row in rows_of("zoo/SOURCES.csv"):
        graph, exact = read(row["file"]), float(row["checkpoint_params_exact"] or 0)
        if not exact or isinstance(graph, ChipwiseError) or not is_wide(graph) or "NVFP4" in row["hf_name"]:
            continue
        if not counts_a_checkpoint(graph, exact):
            others.append(row["hf_name"])
            continue
        counted += 1
        if abs(stored_entries(graph) / exact - 1) > 1e-4:
            off[row["hf_name"]] = stored_entries(graph) / exact - 1
    assert counted > 700
    assert {name: miss for name, miss in off.items() if name not in EXPLAINED} == {}
    assert len(off) <= 0.05 * counted
    assert len(others) < 12, others


@pytest.mark.parametrize("file", each_file("zoo/drafts", "*.json"), ids=lambda file: file.stem)
def test_drafts_are_no_models_of_their_own(file: Path) -> None:
    with pytest.raises(UsageError, match=r"guesses tokens for another model.*--speculate"):
        load_model(find_config(str(file)))


def test_names_as_people_type_them_mean_the_model_or_none() -> None:
    known = {name.lower() for name in known_names()}
    asked = [row for row in rows_of("zoo/names.csv") if row["hf_name"].lower() in known]
    right, wrong = 0, []
    for row in asked:
        try:
            found = find_config(row["typed"])
        except UnknownNameError:
            continue
        meant = find_config(row["hf_name"])
        same = (
            found.name.lower() == meant.name.lower()
            or build(load_model(found)).parameters == build(load_model(meant)).parameters
        )
        right += same
        wrong += [] if same else [(row["typed"], found.name, meant.name)]
    assert right >= 0.95 * len(asked)
    assert len(wrong) <= 2, wrong
