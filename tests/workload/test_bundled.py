"""Bundled models: every table is read without a guess, and gives the published parameter count."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache

import pytest

from chipwise.catalog.configs import ModelConfig, bundled_configs, find_config
from chipwise.workload.build import build
from chipwise.workload.counts import count_row
from chipwise.workload.graph import Graph
from chipwise.workload.load import load_model
from chipwise.workload.program import count_entries
from truth import published, rows_of

# Entries that Hugging Face shows for the model, or its paper, without quantisation scales, prediction modules
# and untrained buffers; tied tables once, vision towers included.
PUBLISHED = {
    "meta-llama/Llama-2-7b-hf": 6_738_415_616,
    "meta-llama/Llama-2-13b-hf": 13_015_864_320,
    "meta-llama/Llama-2-70b-hf": 68_976_648_192,
    "meta-llama/Meta-Llama-3-8B": 8_030_261_248,
    "meta-llama/Meta-Llama-3-70B": 70_553_706_496,
    "meta-llama/Llama-3.1-8B": 8_030_261_248,
    "meta-llama/Llama-3.1-70B": 70_553_706_496,
    "meta-llama/Llama-3.1-405B": 405_853_388_800,
    "meta-llama/Llama-3.2-1B": 1_235_814_400,
    "meta-llama/Llama-3.2-3B": 3_212_749_824,
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": 108_641_793_536,
    "meta-llama/Llama-4-Maverick-17B-128E-Instruct": 401_583_781_376,
    "mistralai/Mistral-7B-v0.1": 7_241_732_096,
    "mistralai/Mistral-7B-Instruct-v0.3": 7_248_023_552,
    "mistralai/Mistral-Nemo-Instruct-2407": 12_247_782_400,
    "mistralai/Mistral-Small-24B-Instruct-2501": 23_572_403_200,
    "mistralai/Mistral-Large-Instruct-2407": 122_610_069_504,
    "mistralai/Mixtral-8x7B-v0.1": 46_702_792_704,
    "mistralai/Mixtral-8x22B-v0.1": 140_620_634_112,
    "mistralai/Mixtral-8x22B-Instruct-v0.1": 140_630_071_296,
    "Qwen/Qwen2.5-0.5B": 494_032_768,
    "Qwen/Qwen2.5-1.5B": 1_543_714_304,
    "Qwen/Qwen2.5-3B": 3_085_938_688,
    "Qwen/Qwen2.5-7B": 7_615_616_512,
    "Qwen/Qwen2.5-14B": 14_770_033_664,
    "Qwen/Qwen2.5-32B": 32_763_876_352,
    "Qwen/Qwen2.5-72B": 72_706_203_648,
    "Qwen/Qwen3-0.6B": 596_049_920,
    "Qwen/Qwen3-1.7B": 1_720_574_976,
    "Qwen/Qwen3-4B": 4_022_468_096,
    "Qwen/Qwen3-8B": 8_190_735_360,
    "Qwen/Qwen3-14B": 14_768_307_200,
    "Qwen/Qwen3-32B": 32_762_123_264,
    "Qwen/Qwen3-30B-A3B": 30_532_122_624,
    "Qwen/Qwen3-235B-A22B": 235_093_634_560,
    "Qwen/Qwen3-Coder-480B-A35B-Instruct": 480_154_875_392,
    "Qwen/Qwen3-Next-80B-A3B-Instruct": 81_324_862_720 - 1_650_471_424,
    "openai/gpt-oss-20b": 20_914_757_184,
    "openai/gpt-oss-120b": 116_829_156_672,
    "deepseek-ai/DeepSeek-V2-Lite": 15_706_484_224,
    "deepseek-ai/DeepSeek-V2": 235_741_434_880,
    "deepseek-ai/DeepSeek-V3": 671_026_404_352,
    "google/gemma-2b": 2_506_172_416,
    "google/gemma-7b": 8_537_680_896,
    "google/gemma-2-2b": 2_614_341_888,
    "google/gemma-2-9b": 9_241_705_984,
    "google/gemma-2-27b": 27_227_128_320,
    "google/gemma-3-1b-it": 999_885_952,
    "google/gemma-3-4b-it": 4_300_079_472,
    "google/gemma-3-12b-it": 12_187_325_040,
    "google/gemma-3-27b-it": 27_432_406_640,
    "microsoft/phi-2": 2_779_683_840,
    "microsoft/Phi-3-mini-4k-instruct": 3_821_079_552,
    "microsoft/Phi-3-medium-4k-instruct": 13_960_238_080,
    "microsoft/phi-4": 14_659_507_200,
    "microsoft/Phi-4-mini-instruct": 3_836_021_760,
    "allenai/OLMo-2-1124-7B": 7_298_617_344,
    "allenai/OLMo-2-1124-13B": 13_716_198_400,
    "CohereForAI/c4ai-command-r-v01": 34_980_831_232,
    "CohereForAI/c4ai-command-r-plus": 103_810_674_688,
    # 7,217,189,760 with the tied head stored twice
    "tiiuae/falcon-7b": 6_921_720_704,
    "tiiuae/falcon-40b": 41_303_293_952,
    "bigcode/starcoder2-7b": 7_173_923_840,
    "bigcode/starcoder2-15b": 15_957_889_024,
    "openai-community/gpt2": 124_439_808,
    "openai-community/gpt2-medium": 354_823_168,
    "openai-community/gpt2-large": 774_030_080,
    "openai-community/gpt2-xl": 1_557_611_200,
    "EleutherAI/gpt-j-6b": 6_050_882_784,
    "EleutherAI/gpt-neox-20b": 20_554_567_680,
    "EleutherAI/pythia-6.9b": 6_857_302_016,
    "facebook/opt-125m": 125_239_296,
    "facebook/opt-1.3b": 1_315_758_080,
    "facebook/opt-6.7b": 6_658_473_984,
    "facebook/opt-13b": 12_853_473_280,
    "facebook/opt-30b": 29_974_540_288,
    "bigscience/bloom": 176_247_271_424,
    "bigscience/bloom-560m": 559_214_592,
    "01-ai/Yi-Coder-9B-Chat": 8_829_407_232,
    "zai-org/glm-4-9b": 9_399_951_360,
    "mosaicml/mpt-7b": 6_649_286_656,
    "databricks/dbrx-instruct": 131_596_523_520,
    "allenai/OLMoE-1B-7B-0924": 6_919_161_856,
    "microsoft/Phi-3.5-MoE-instruct": 41_873_153_344,
    "ibm-granite/granite-3.1-2b-instruct": 2_533_531_648,
    "ibm-granite/granite-3.1-8b-instruct": 8_170_848_256,
    "mistralai/Mistral-Small-3.1-24B-Instruct-2503": 24_011_361_280,
    "codellama/CodeLlama-7b-hf": 6_738_546_688,
    "codellama/CodeLlama-34b-hf": 33_743_970_304,
    "Qwen/Qwen1.5-32B-Chat": 32_512_218_112,
    "google-bert/bert-base-uncased": 109_482_240,
    "google-bert/bert-large-uncased": 335_141_888,
    "FacebookAI/roberta-base": 124_645_632,
    "FacebookAI/roberta-large": 355_359_744,
    "FacebookAI/xlm-roberta-base": 278_043_648,
    "FacebookAI/xlm-roberta-large": 559_890_432,
    "distilbert/distilbert-base-uncased": 66_362_880,
    "google-t5/t5-small": 60_506_624,
    "google-t5/t5-base": 222_903_552,
    "google-t5/t5-large": 737_668_096,
    "google-t5/t5-3b": 2_851_598_336,
    "google-t5/t5-11b": 11_307_321_344,
    "google/flan-t5-base": 247_577_856,
    "google/flan-t5-large": 783_150_080,
    "google/flan-t5-xl": 2_849_757_184,
    "google/flan-t5-xxl": 11_135_332_352,
    "openai/whisper-tiny": 37_760_640,
    "openai/whisper-base": 72_593_920,
    "openai/whisper-small": 241_734_912,
    "openai/whisper-medium": 763_857_920,
    "openai/whisper-large-v2": 1_543_304_960,
    "openai/whisper-large-v3": 1_543_490_560,
    "openai/whisper-large-v3-turbo": 808_878_080,
}

# Sizes that are known by the paper's rounded figure alone, in 10^9.
ROUNDED = {
    "facebook/opt-175b": 175,
    "facebook/opt-66b": 66,
    "openai/gpt-3-175b": 174.6,
    "mosaicml/mpt-30b": 30,
    "tiiuae/falcon-180B": 180,
    "zai-org/GLM-4.5": 355,
    "zai-org/GLM-4.5-Air": 106,
    "zai-org/GLM-4.6V": 106,
    "cerebras/GLM-4.7-REAP-218B-A32B": 218,
    "arcee-ai/Trinity-Mini": 26,
    "google/gemma-4-12b-it": 12,
}

# What remains a guess, because the published configuration leaves it open.
OPEN = {"stepfun-ai/Step-3.7-Flash"}


@cache
def graph(name: str) -> Graph:
    return build(load_model(find_config(name)))


def total(name: str) -> int:
    tower = graph(name).extra("vision")
    return graph(name).parameters + (count_entries(tower.blocks) if tower else 0)


def tables() -> Iterator[tuple[str, ModelConfig]]:
    """Each table once, under its first name."""
    seen: set[int] = set()
    for name, config in bundled_configs().items():
        if id(config.data) not in seen:
            seen.add(id(config.data))
            yield name, config


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_counts_to_the_last_digit(name: str) -> None:
    assert total(name) == PUBLISHED[name]


@pytest.mark.parametrize("name", ROUNDED)
def test_rounded_counts(name: str) -> None:
    assert total(name) / 1e9 == pytest.approx(ROUNDED[name], rel=0.01)


@pytest.mark.parametrize("name", [name for name, _ in tables()])
def test_every_table_is_read_and_nothing_in_it_is_guessed(name: str) -> None:
    model = graph(name).model
    assert model.max_context >= 448
    if name not in OPEN:
        assert model.assumptions == ()


def test_names_are_unique_and_carry_no_paths() -> None:
    text = "\n".join(config.origin for config in bundled_configs().values())
    assert "/work" not in text
    assert len({name.lower() for name in bundled_configs()}) == len(bundled_configs())


def test_tables_give_what_the_full_configurations_give() -> None:
    rows = rows_of("model_params.csv")
    checked = 0
    for row in rows:
        bundled = bundled_configs().get(row["model"])
        if bundled is None:
            continue
        full = find_config(str(published("models") / row["config_file"]))
        if json.dumps(row).count("FP8") or "NVFP4" in row["model"]:
            continue  # bundled with the quantisation that the file leaves out, or with a shortened list
        if "vision_config" in bundled.data and "vision_config" not in full.data:
            continue  # bundled with the tower that the file leaves out
        checked += 1
        assert count_row(row, bundled) == count_row(row, full), row["model"]
        mine, theirs = build(load_model(bundled)), build(load_model(full))
        assert mine.weight_bytes == theirs.weight_bytes, row["model"]
        assert mine.kv_bytes(5000.0, scope="all") == theirs.kv_bytes(5000.0, scope="all"), row["model"]
    assert checked >= 30
