"""Headers of weights as configurations."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from chipwise.catalog.configs import find_config
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
    return {
        "model.embed_tokens.weight": [1000, 64],
        **inside,
        "model.norm.weight": [64],
        "lm_head.weight": [1000, 64],
    }


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
    assert build(load_model(config)).params() == entries
    assert f"{entries:,} entries, {2 * entries:,} bytes" in config.notes[0]


def test_a_configuration_beside_it_counts(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama", "hidden_size": 77}')
    file = safetensors(tmp_path / "model.safetensors", decoder())
    assert find_config(str(file)).data["hidden_size"] == 77


def test_a_gguf_header_gives_dimensions_and_format(tmp_path: Path) -> None:
    config = find_config(str(gguf(tmp_path / "m.gguf", PAIRS, {"output.weight": [64, 1000]})))
    model = load_model(config)
    assert (model.hidden, model.layers, model.vocab, model.tied, model.max_context) == (
        64,
        2,
        1000,
        False,
        4096,
    )
    assert any("--precision q4_k_m" in note for note in config.notes)


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
