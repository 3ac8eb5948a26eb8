"""Formats, precisions by label, and GGUF mixes against published file sizes."""

from __future__ import annotations

from functools import cache

import pytest

from chipwise.catalog.configs import find_config
from chipwise.errors import UnknownNameError
from chipwise.workload.build import build
from chipwise.workload.formats import FORMATS, GGML_BITS, get_format, grouped, unscaled
from chipwise.workload.gguf import GGUF, gguf
from chipwise.workload.labels import LABELS, SAME, parse_precision
from chipwise.workload.load import load_model
from chipwise.workload.model import Model
from chipwise.workload.precision import LARGE, Precision, uniform


@cache
def model(name: str = "meta-llama/Llama-3.1-8B") -> Model:
    return load_model(find_config(name))


def size_gb(name: str, precision: Precision) -> float:
    return build(model(name).at_precision(precision)).weight_bytes / 1e9


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("bf16", 16),
        ("fp8", 8),
        ("fp8_block", 8 + 32 / 128**2),
        ("int4", 4 + 20 / 128),
        ("mxfp4", 4.25),
        ("nvfp4", 4.5),
        ("nf4", 4.5),
        ("nf4_double", 4.126953125),
    ],
)
def test_bits_with_scales(name: str, bits: float) -> None:
    stored = get_format(name)
    assert stored.mean_bits == pytest.approx(bits)
    assert float(stored.bytes(8192, 8192)) * 8 / 8192**2 == pytest.approx(bits, rel=1e-6)


# bytes of a block and its elements: ggml-common.h
BLOCKS = {
    "q4_0": (18, 32),
    "q4_1": (20, 32),
    "q5_0": (22, 32),
    "q5_1": (24, 32),
    "q8_0": (34, 32),
    "q2_k": (84, 256),
    "q3_k": (110, 256),
    "q4_k": (144, 256),
    "q5_k": (176, 256),
    "q6_k": (210, 256),
    "iq1_s": (50, 256),
    "iq1_m": (56, 256),
    "iq2_xxs": (66, 256),
    "iq2_xs": (74, 256),
    "iq2_s": (82, 256),
    "iq3_xxs": (98, 256),
    "iq3_s": (110, 256),
    "iq4_nl": (18, 32),
    "iq4_xs": (136, 256),
    "mxfp4": (17, 32),
}


@pytest.mark.parametrize("name", [n for n in GGML_BITS if n != "f16"])
def test_bits_of_ggml_blocks(name: str) -> None:
    size, elements = BLOCKS[name]
    assert GGML_BITS[name] == size * 8 / elements


def test_groups() -> None:
    assert grouped("int4", 4, 32, zero_point=False).mean_bits == 4.5
    row = grouped("int8", 8, 0, zero_point=False)
    assert float(row.scales(64, 4096)) == 64


def test_a_scale_of_a_whole_matrix_is_none_per_token_of_a_cache() -> None:
    assert unscaled(FORMATS["fp8"]).bytes(1.0, 1024) == 1024
    assert unscaled(FORMATS["nvfp4"]).bytes(1.0, 1024) == 576


# Files of bartowski/Meta-Llama-3.1-8B-Instruct-GGUF and bartowski/Llama-3.1-Nemotron-70B-Instruct-HF-GGUF (model
# cards, 2024; the latter also at ozeki.chat/p_8590). Metadata and the tokeniser are 8 to 12 MB of each.
PUBLISHED = {
    "meta-llama/Llama-3.1-8B": {
        "q8_0": 8.54,
        "q6_k": 6.60,
        "q5_k_m": 5.73,
        "q5_k_s": 5.60,
        "q4_k_m": 4.92,
        "q4_k_s": 4.69,
        "q4_0": 4.66,
        "iq4_xs": 4.45,
        "q3_k_l": 4.32,
        "q3_k_m": 4.02,
        "q3_k_s": 3.66,
        "q2_k": 3.18,
    },
    "meta-llama/Llama-3.1-70B": {
        "q8_0": 74.98,
        "q6_k": 57.89,
        "q5_k_m": 49.95,
        "q5_k_s": 48.66,
        "q4_k_m": 42.52,
        "q4_k_s": 40.35,
        "q4_0": 40.12,
        "iq4_xs": 37.90,
        "q3_k_l": 37.14,
        "q3_k_m": 34.27,
        "iq3_m": 31.94,
        "q3_k_s": 30.91,
        "q2_k": 26.38,
    },
    "mistralai/Mixtral-8x7B-v0.1": {"q8_0": 49.62, "q6_k": 38.38},
}


@pytest.mark.parametrize(
    ("name", "mix", "gigabytes"), [(n, mix, gb) for n, files in PUBLISHED.items() for mix, gb in files.items()]
)
def test_gguf_file_sizes(name: str, mix: str, gigabytes: float) -> None:
    assert size_gb(name, gguf(mix, model(name))) == pytest.approx(gigabytes, rel=0.004)


@pytest.mark.parametrize(
    "name", ["Qwen/Qwen2.5-0.5B", "google/gemma-2-2b", "deepseek-ai/DeepSeek-V3", "openai/gpt-oss-20b"]
)
@pytest.mark.parametrize("mix", GGUF)
def test_a_mix_lies_between_its_formats(name: str, mix: str) -> None:
    precision = gguf(mix, model(name))
    for cls, stored in precision.weights.items():
        if cls != "router":
            assert (1.5 if mix.startswith("iq1") else 2.0) <= stored.bits <= 8.5
        assert precision.activation(cls).bits == 16
    assert precision.weight("router").bits == 32


def test_better_mixes_are_larger() -> None:
    order = ("q2_k", "q3_k_s", "q3_k_m", "q3_k_l", "q4_k_s", "q4_k_m", "q5_k_s", "q5_k_m", "q6_k", "q8_0")
    sizes = [size_gb("meta-llama/Llama-3.1-8B", gguf(mix, model())) for mix in order]
    assert sizes == sorted(sizes)


def test_a_tied_table_has_the_format_of_the_head() -> None:
    precision = gguf("q4_k_m", model("meta-llama/Llama-3.2-1B"))
    assert precision.weight("embedding").bits == 6.5625
    assert gguf("q4_k_m", model()).weight("embedding").bits == 4.5


@pytest.mark.parametrize("label", [*LABELS, *SAME])
def test_every_label_is_a_precision(label: str) -> None:
    precision = parse_precision(label, model())
    assert precision.name in LABELS
    assert parse_precision(label.upper().replace("_", "-"), model()).name == precision.name
    assert all(precision.weight(c).mean_bits <= 32 for c in LARGE)


@pytest.mark.parametrize(
    ("label", "stored", "compute"),
    [
        ("bf16", "bf16", "bf16"),
        ("fp8", "fp8", "fp8"),
        ("w8a8", "int8", "int8"),
        ("w8a16", "int8", "bf16"),
        ("awq", "int4", "bf16"),
        ("w4a8", "int4", "fp8"),
        ("nvfp4", "nvfp4", "fp4"),
        ("nvfp4-weights", "nvfp4", "bf16"),
        ("nf4", "nf4", "bf16"),
        ("Q4_K_M", "q4_k_m", "bf16"),
    ],
)
def test_storage_and_products(label: str, stored: str, compute: str) -> None:
    precision = parse_precision(label, model())
    assert precision.weight("ffn").name == stored
    assert precision.activation("ffn").compute == compute
    assert precision.kv.bits == 16


def test_the_own_label_gives_the_checkpoint_back() -> None:
    own = model("openai/gpt-oss-20b")
    assert parse_precision("mxfp4", own) is own.precision


def test_experts_in_mxfp4_are_narrowed_where_a_mix_has_fewer_bits_for_them() -> None:
    """unsloth/DeepSeek-V4-Flash-GGUF: 103 GB in UD-IQ3_XXS, 155 in UD-Q4_K_XL, whose experts are the checkpoint's."""
    flash = model("deepseek-ai/DeepSeek-V4-Flash")
    bits = {name: gguf(name, flash).weight("expert").bits for name in ("iq3_xxs", "q4_k_m", "q8_0")}
    assert 3.0 < bits["iq3_xxs"] < 3.5
    assert bits["q4_k_m"] == bits["q8_0"] == pytest.approx(GGML_BITS["mxfp4"])
    stays = gguf("iq3_xxs", model("openai/gpt-oss-20b")).weight("expert").bits
    assert stays == pytest.approx(GGML_BITS["mxfp4"])  # rows of 2,880 hold no block of 256


@pytest.mark.parametrize(
    ("text", "near"), [("q4_k_n", "q4_k_m"), ("fp9", "fp8"), ("nvpf4", "nvfp4"), ("int-44", "int4"), ("", "")]
)
def test_unknown_labels_suggest_the_nearest(text: str, near: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        parse_precision(text, model())
    assert near in str(caught.value)


def test_precisions_are_values() -> None:
    assert hash(uniform("fp8")) == hash(uniform("fp8"))
    assert uniform("fp8") == uniform("fp8")
    assert uniform("fp8").without(("ffn",)).weight("ffn").name == "bf16"
    assert len({uniform("fp8"), uniform("fp8"), uniform("fp8").with_kv("fp8")}) == 2
