"""Published counts and caches against the ones computed, row by row and with their own flags."""

from __future__ import annotations

import pytest
from published_configs import DEEPSEEK_V3, QWEN2_VL_7B, QWEN3_NEXT, as_config

from chipwise.catalog.configs import find_config
from chipwise.errors import ChipwiseError, UsageError
from chipwise.workload.build import build
from chipwise.workload.counts import count_row, kv_row
from chipwise.workload.load import load_model
from truth import each_file, each_row, published


def config_of(row):
    return find_config(str(published("models") / row["config_file"])) if row["config_file"] else None


@pytest.mark.parametrize("row", each_row("model_params.csv"), ids=lambda row: row["model"])
def test_published_parameters(row):
    try:
        count = count_row(row, config_of(row))
    except ChipwiseError as error:
        if "is not read yet" in str(error):
            pytest.skip(str(error))
        raise
    tolerance = float(row["params_tolerance_pct"]) / 100
    if row["count_grade"] == "exact":
        assert count.checkpoint_params == int(row["checkpoint_params"])
    elif row["checkpoint_params"]:
        assert count.checkpoint_params == pytest.approx(int(row["checkpoint_params"]), rel=tolerance)
    else:
        assert count.published_total_b == pytest.approx(float(row["published_total_b"]), rel=tolerance)
    if row["published_active_b"]:
        wanted, within = float(row["published_active_b"]), float(row["active_tolerance_pct"]) / 100
        assert count.published_active_b == pytest.approx(wanted, rel=within)


@pytest.mark.parametrize("row", each_row("kv_cache.csv"), ids=lambda row: row["row_id"])
def test_published_caches(row):
    size = kv_row(row, config_of(row))
    if row["kv_cache_bytes"]:
        assert size.kv_cache_bytes == pytest.approx(float(row["kv_cache_bytes"]), rel=0.005)
    if row["kv_bytes_per_token"]:
        assert size.kv_bytes_per_token == pytest.approx(float(row["kv_bytes_per_token"]), rel=0.005)


@pytest.mark.parametrize("path", each_file("models", "*.json"), ids=lambda path: path.stem)
def test_every_config_loads(path):
    try:
        graph = build(load_model(find_config(str(path))))
    except ChipwiseError as error:
        if "is not read yet" in str(error):
            pytest.skip(str(error))
        raise
    assert graph.parameters > 1e8
    assert 0 < graph.kv_bytes_per_token() < 2e6


EXACT = {"count_grade": "exact", "mtp_modules": "1", "buffers_counted": "1"}


def test_flags_of_a_checkpoint():
    row = EXACT | {"mtp_own_embedding": "1", "mtp_own_head": "1", "checkpoint_has_scales": "0"}
    count = count_row(row, as_config(DEEPSEEK_V3))
    assert count.checkpoint_params == 684_489_845_504
    assert count.published_total_b == pytest.approx(671.03, abs=0.01)
    quantised = DEEPSEEK_V3 | {
        "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}
    }
    scaled = count_row(row | {"checkpoint_has_scales": "1"}, as_config(quantised))
    assert scaled.checkpoint_params - count.checkpoint_params == 41_540_496


def test_vision_tower_is_counted_when_asked():
    with_tower = count_row({"vision_tower": "1"}, as_config(QWEN2_VL_7B))
    without = count_row({"vision_tower": "0"}, as_config(QWEN2_VL_7B))
    assert with_tower.checkpoint_params == 8_291_375_616
    assert without.checkpoint_params == 7_615_616_512
    assert with_tower.published_active_b == without.published_active_b


def test_a_module_that_the_family_does_not_have():
    with pytest.raises(UsageError, match="mtp_modules"):
        count_row({"mtp_modules": "1"}, as_config(QWEN2_VL_7B))


@pytest.mark.parametrize("bad", ["x", "-1", "nan", "0.5", "inf", "2"])
def test_bad_flags_are_named(bad):
    with pytest.raises(UsageError, match="vision_tower"):
        count_row({"vision_tower": bad}, as_config(QWEN2_VL_7B))


KV = {"element_bytes": "2", "layers_growing": "10", "kv_heads": "16", "head_dim": "128", "context_tokens": "1000"}


def test_a_cache_from_the_row_alone():
    size = kv_row(KV, None)
    assert size.kv_bytes_per_token == 2 * 10 * 2 * 16 * 128
    assert size.kv_cache_bytes == 1000 * size.kv_bytes_per_token
    window = {"layers_window": "52", "window": "100", "window_kv_heads": "8", "window_head_dim": "64"}
    both = kv_row(KV | window | {"sequences": "3"}, None)
    assert both.kv_cache_bytes == 3 * (size.kv_cache_bytes + 2 * 52 * 2 * 8 * 64 * 100)


def test_the_row_overrides_the_config():
    config = as_config(DEEPSEEK_V3)
    assert kv_row({"element_bytes": "2"}, config) == (None, 70_272)
    assert kv_row({"element_bytes": "1"}, config).kv_bytes_per_token == 70_272 / 2
    assert kv_row({"layers_growing": "62"}, config).kv_bytes_per_token == 62 * 1152
    assert kv_row({"kv_lora_rank": "256", "rope_dim": "64"}, config).kv_bytes_per_token == 61 * 640
    assert kv_row({"context_tokens": "10"}, as_config(QWEN3_NEXT)).kv_cache_bytes == 10 * 24_576


@pytest.mark.parametrize("missing", ["element_bytes", "layers_growing", "kv_heads"])
def test_what_is_missing_is_named(missing):
    with pytest.raises(UsageError, match=missing):
        kv_row(KV | {missing: ""}, None)
