"""Headers of weights as configurations."""

from __future__ import annotations

import json
import os
import struct
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chipwise.api.loaded import load
from chipwise.catalog.configs import find_config
from chipwise.catalog.networks import find
from chipwise.errors import UsageError
from chipwise.workload.build import build
from chipwise.workload.load import load_model

LAYER = {
    "input_layernorm.weight": [64],
    "post_attention_layernorm.weight": [64],
    "self_attn.q_proj.weight": [128, 64],
    "self_attn.k_proj.weight": [64, 64],
    "self_attn.v_proj.weight": [64, 64],
    "self_attn.o_proj.weight": [64, 128],
    "mlp.gate_proj.weight": [192, 64],
    "mlp.up_proj.weight": [192, 64],
    "mlp.down_proj.weight": [64, 192],
}


def safetensors(path: Path, shapes: dict[str, list[int]]) -> Path:
    table, place = {}, 0
    for name, shape in shapes.items():
        size = 2
        for n in shape:
            size *= n
        table[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(table).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    return path


def decoder(layers: int = 2) -> dict[str, list[int]]:
    inside = {f"model.layers.{i}.{name}": shape for i in range(layers) for name, shape in LAYER.items()}
    return {"model.embed_tokens.weight": [1000, 64], **inside, "model.norm.weight": [64], "lm_head.weight": [1000, 64]}


def gguf(path: Path, pairs: dict[str, Any], tensors: dict[str, list[int]]) -> Path:
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs))
    for key, value in pairs.items():
        out += text(key)
        if isinstance(value, str):
            out += struct.pack("<I", 8) + text(value)
        elif isinstance(value, list):
            out += struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))
        else:
            out += struct.pack("<II", 4, value)
    for name, shape in tensors.items():
        out += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape) + struct.pack("<IQ", 0, 0)
    path.write_bytes(out)
    return path


PAIRS: dict[str, Any] = {
    "general.architecture": "llama",
    "general.file_type": 15,
    "llama.embedding_length": 64,
    "llama.block_count": 2,
    "llama.attention.head_count": 2,
    "llama.attention.head_count_kv": 1,
    "llama.feed_forward_length": 192,
    "llama.context_length": 4096,
    "tokenizer.ggml.tokens": [f"t{i}" for i in range(1000)],
}


def test_a_safetensors_header_gives_the_decoder_that_it_holds(tmp_path: Path) -> None:
    shapes = decoder()
    config = find_config(str(safetensors(tmp_path / "model.safetensors", shapes)))
    entries = sum(a[0] * (a[1] if len(a) > 1 else 1) for a in shapes.values())
    assert build(load_model(config)).parameters == entries
    assert f"{entries:,} entries, {2 * entries:,} bytes" in config.notes[0]


def test_a_configuration_beside_it_counts(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama", "hidden_size": 77}')
    file = safetensors(tmp_path / "model.safetensors", decoder())
    assert find_config(str(file)).data["hidden_size"] == 77


def test_a_gguf_header_gives_dimensions_and_format(tmp_path: Path) -> None:
    config = find_config(str(gguf(tmp_path / "m.gguf", PAIRS, {"output.weight": [64, 1000]})))
    model = load_model(config)
    assert (model.hidden, model.layers, model.vocab, model.tied, model.max_context) == (64, 2, 1000, False, 4096)
    assert config.weights == "q4_k_m"
    assert any("stored as q4_k_m" in note for note in config.notes)


def test_one_part_of_several_does_not_say_whether_the_head_is_tied(tmp_path: Path) -> None:
    first = {**PAIRS, "split.count": 2}
    alone = find_config(str(gguf(tmp_path / "a.gguf", {**PAIRS, "split.count": 1}, {"token_embd.weight": [64, 1000]})))
    assert alone.data["tie_word_embeddings"]
    assert not any("header as given does not say" in note for note in alone.notes)
    part = find_config(str(gguf(tmp_path / "b.gguf", first, {"token_embd.weight": [64, 1000]})))
    assert any("header as given does not say" in note for note in part.notes)
    assert "in 1 of 2 parts" in part.notes[0]
    held = find_config(str(gguf(tmp_path / "c.gguf", first, {"output.weight": [64, 1000]})))
    assert not held.data["tie_word_embeddings"]
    later = gguf(tmp_path / "d.gguf", {"split.no": 1, "split.count": 2}, {})
    with pytest.raises(UsageError, match=r"names no general\.architecture"):
        find_config(str(later))


def test_the_keys_of_a_header_are_read_from_a_file_as_they_are_inline(tmp_path: Path) -> None:
    """What the page makes of a GGUF file, kept as a file."""
    keys = {name: value for name, value in PAIRS.items() if not isinstance(value, list)}
    text = json.dumps(keys | {"tokenizer.ggml.tokens": 1000, "tie_word_embeddings": False})
    for file in (tmp_path / "own.json", tmp_path / "config.json"):
        file.write_text(text)
        found, inline = find_config(str(file)), find_config(text)
        assert (found.data, found.notes) == (inline.data, inline.notes)
        assert load_model(found) == replace(load_model(inline), name=load_model(found).name)


@pytest.mark.parametrize(("tensors", "pairs"), [(0, 300_000), (300_000, 0)])
def test_a_header_of_endless_keys_or_tensors_is_refused_unread(tmp_path: Path, tensors: int, pairs: int) -> None:
    key = struct.pack("<Q", 1) + b"k" + struct.pack("<IB", 0, 1)
    tensor = struct.pack("<Q", 1) + b"t" + struct.pack("<IIQ", 0, 0, 0)
    file = tmp_path / "m.gguf"
    file.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, tensors, pairs) + key * pairs + tensor * tensors)
    with pytest.raises(UsageError, match="cut off or damaged"):
        find_config(str(file))


def test_arrays_that_nobody_asks_for_take_no_memory(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    array = struct.pack("<IIQ", 9, 0, 10_000) + bytes(10_000)
    body = b"".join(struct.pack("<Q", 16) + f"a{i:03}.block_count".encode() + array for i in range(500))
    file.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 500) + body)
    tracemalloc.start()
    with pytest.raises(UsageError, match=r"names no general\.architecture"):
        find_config(str(file))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 5_000_000


@pytest.mark.parametrize("kept", [0, 3, 9, 40, 200, 2000])
def test_a_header_that_is_cut_off_is_one_clear_line(tmp_path: Path, kept: int) -> None:
    for whole in (
        gguf(tmp_path / "m.gguf", PAIRS, {"output.weight": [64, 1000]}),
        safetensors(tmp_path / "m.safetensors", decoder()),
    ):
        whole.write_bytes(whole.read_bytes()[:kept])
        with pytest.raises(UsageError) as caught:
            find_config(str(whole))
        assert "cut off" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_lengths_that_no_header_has_are_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "m.safetensors"
    file.write_bytes(struct.pack("<Q", 2**62) + b"{}")
    with pytest.raises(UsageError, match="cut off or damaged"):
        find_config(str(file))


def test_tensors_that_tell_no_family_are_counted_and_the_next_step_named(tmp_path: Path) -> None:
    file = safetensors(tmp_path / "m.safetensors", {"blocks.0.conv": [3, 3, 8, 8]})
    with pytest.raises(UsageError, match=r"576 entries.*config\.json next to it"):
        find_config(str(file))


@pytest.mark.parametrize("name", ["elsewhere.gguf", "elsewhere.safetensors"])
def test_a_file_that_is_missing_is_said_to_be(name: str) -> None:
    with pytest.raises(UsageError, match=f"no such file: {name}"):
        find_config(name)


def test_the_name_of_a_file_may_say_the_model() -> None:
    found = find_config("qwen2.5-7b-instruct-q4_k_m.gguf")
    assert found.name == "Qwen/Qwen2.5-7B-Instruct"
    assert found.notes[0] == "there is no file qwen2.5-7b-instruct-q4_k_m.gguf"


def test_one_name_is_one_model_in_serving_and_training() -> None:
    assert find_config("bert").data["num_hidden_layers"] == 24
    assert find("bert").entry.name == "bert-large"


LATENT = {
    "deepseek2.embedding_length": 64, "deepseek2.block_count": 3, "deepseek2.attention.head_count": 2,
    "deepseek2.attention.head_count_kv": 1, "deepseek2.attention.key_length": 48,
    "deepseek2.attention.value_length": 32,
    "deepseek2.attention.key_length_mla": 40, "deepseek2.attention.value_length_mla": 24,
    "deepseek2.attention.kv_lora_rank": 32, "deepseek2.rope.dimension_count": 16, "deepseek2.feed_forward_length": 96,
    "deepseek2.expert_count": 4, "deepseek2.expert_used_count": 2, "deepseek2.expert_feed_forward_length": 16,
    "deepseek2.expert_shared_count": 1, "deepseek2.leading_dense_block_count": 1, "deepseek2.vocab_size": 100,
}  # fmt: skip


def test_a_gguf_of_latent_attention_is_read_as_its_family(tmp_path: Path) -> None:
    """Keys of the compressed cache (`key_length` 48 of 32 and 16) are not those of a head (40, of which 16 turn)."""
    pairs = {"general.architecture": "deepseek2", **LATENT}
    model = load_model(find_config(str(gguf(tmp_path / "m.gguf", pairs, {"output.weight": [64, 100]}))))
    attention = 64 * 2 * 40 + 64 * (32 + 16) + 32 * 2 * (24 + 24) + 2 * 24 * 64 + 32
    experts = 3 * 64 * 16 * 5 + 64 * 4
    expected = 3 * (attention + 2 * 64) + 3 * 64 * 96 + 2 * experts + 2 * 100 * 64 + 64
    assert build(model).parameters == expected


def test_a_gguf_counts_modules_that_predict_among_its_blocks(tmp_path: Path) -> None:
    sizes = {"embedding_length": 64, "block_count": 4, "attention.head_count": 2, "attention.head_count_kv": 1,
             "feed_forward_length": 96, "expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 16,
             "expert_shared_count": 1, "leading_dense_block_count": 1, "vocab_size": 100}  # fmt: skip
    pairs = {"general.architecture": "glm4moe"} | {f"glm4moe.{key}": value for key, value in sizes.items()}
    plain = find_config(str(gguf(tmp_path / "a.gguf", pairs, {})))
    more = find_config(str(gguf(tmp_path / "b.gguf", {**pairs, "glm4moe.nextn_predict_layers": 1}, {})))
    assert (plain.data["num_hidden_layers"], more.data["num_hidden_layers"]) == (4, 3)


@pytest.mark.parametrize(("number", "name"), [(19, "iq2_xxs"), (26, "iq3_s"), (30, "iq4_xs"), (38, "mxfp4_moe")])
def test_a_quantised_gguf_is_planned_as_it_is_stored(number: int, name: str, tmp_path: Path) -> None:
    file = gguf(tmp_path / "m.gguf", {**PAIRS, "general.file_type": number}, {"output.weight": [64, 1000]})
    assert find_config(str(file)).weights == name
    assert load(str(file)).graph.model.precision.name == name
    assert load(str(file), "q8_0").graph.model.precision.name == "q8_0"


def test_a_gguf_in_parts_is_read_whole_from_any_of_them(tmp_path: Path) -> None:
    names = [tmp_path / f"m-{n:05}-of-00002.gguf" for n in (1, 2)]
    gguf(names[0], {**PAIRS, "split.count": 2}, {"token_embd.weight": [64, 1000]})
    gguf(names[1], {"split.count": 2}, {"output.weight": [64, 1000]})
    for file in names:
        config = find_config(str(file))
        assert not config.data["tie_word_embeddings"]
        assert "128,000 entries, norms" in config.notes[0]
    names[1].unlink()
    assert any("header as given does not say" in note for note in find_config(str(names[0])).notes)


@pytest.mark.parametrize("ending", [".gguf", ".safetensors"])
def test_a_pipe_is_not_waited_for(ending: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"m{ending}")
    with pytest.raises(UsageError, match="not a file"):
        find_config(str(tmp_path / f"m{ending}"))


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ('{"a": FIRST, "b": {"dtype": "U8", "shape": [4], "data_offsets": [2, 6]}}', "share a place"),
        ('{"a": FIRST, "a": {"dtype": "U8", "shape": [4], "data_offsets": [4, 8]}}', "occurs twice"),
    ],
)  # fmt: skip
def test_tensors_have_a_name_and_a_place_of_their_own(body: str, match: str, tmp_path: Path) -> None:
    file = tmp_path / "m.safetensors"
    body = body.replace("FIRST", '{"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}')
    file.write_bytes(struct.pack("<Q", len(body)) + body.encode())
    with pytest.raises(UsageError, match=match):
        find_config(str(file))


@pytest.mark.parametrize(
    ("name", "what"),
    [("m.engine", "a TensorRT engine"), ("m.pte", "ExecuTorch"), ("m.TFLITE", "LiteRT"), ("m.mlpackage/", "Core ML")],
)
def test_what_is_compiled_is_named_with_the_next_step(name: str, what: str) -> None:
    with pytest.raises(UsageError, match=rf"{what}.*is not read.*FILE\.onnx or FILE\.py:function"):
        find_config(name)
