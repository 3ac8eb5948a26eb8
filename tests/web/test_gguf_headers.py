"""The page's reader of GGUF headers, which is JavaScript, against Python's, over the same bytes."""

from __future__ import annotations

import json
import random
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

import chipwise.web
from chipwise.catalog.configs import find_config
from chipwise.catalog.headers import ARRAY, KEYS, STRING
from chipwise.errors import UsageError

SCRIPT = Path(chipwise.web.__file__).parent / "static" / "form.js"
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
READ = """
const fs = require("fs");
const said = fs.readdirSync(process.argv[2]).filter((name) => name.endsWith(".gguf")).map((name) => {
  const bytes = fs.readFileSync(`${process.argv[2]}/${name}`);
  try { return [name, header(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))]; }
  catch (error) { return [name, null]; }
});
console.log(JSON.stringify(Object.fromEntries(said)));
"""


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def number(kind: int, value: Any) -> bytes:
    return struct.pack(f"<{NUMBERS[kind]}", value)


def header(draw: random.Random) -> bytes:
    """A header of a decoder with keys of every type, in any order, some that sizes do not need."""
    kind = draw.choice(["llama", "qwen2", "qwen3moe", "gemma2", "deepseek2", "glm4moe"])
    whole = (0, 2, 4, 5, 10, 11)
    sizes: dict[str, int] = {
        "embedding_length": 64 * draw.randint(1, 3), "block_count": draw.randint(1, 60), "attention.head_count": 2,
        "feed_forward_length": draw.randint(1, 255), "context_length": 127, "attention.key_length": 32,
    }  # fmt: skip
    if kind in ("qwen3moe", "deepseek2", "glm4moe"):
        sizes |= {"expert_count": 8, "expert_used_count": 2, "expert_feed_forward_length": 16}
    if kind == "deepseek2":
        sizes |= {"attention.kv_lora_rank": 32, "rope.dimension_count": 16, "leading_dense_block_count": 1}
        sizes |= {"attention.key_length_mla": 48, "attention.value_length_mla": 32, "expert_shared_count": 1}
    said = [text("general.architecture") + struct.pack("<I", STRING) + text(kind)]
    for key, value in sizes.items():
        chosen = draw.choice([k for k in whole if value < 120 or k not in (0,)])
        said.append(text(f"{kind}.{key}") + struct.pack("<I", chosen) + number(chosen, value))
    heads = [2] * sizes["block_count"]
    said.append(
        text(f"{kind}.attention.head_count_kv")
        + struct.pack("<IIQ", ARRAY, 4, len(heads)) + b"".join(number(4, n) for n in heads)
    )  # fmt: skip
    said.append(text("tokenizer.ggml.tokens") + struct.pack("<IIQ", ARRAY, STRING, 300) + text("añ") * 300)
    said.append(text("general.file_type") + struct.pack("<II", 4, draw.choice([1, 7, 15, 19, 26, 99])))
    said.append(text("other.flag") + struct.pack("<I?", 7, True))
    said.append(text("other.scale") + struct.pack("<Id", 12, 0.5))
    said.append(text("other.list") + struct.pack("<IIQ", ARRAY, 6, 3) + bytes(12))
    if draw.random() < 0.3:
        said.append(text("split.count") + struct.pack("<IH", 2, draw.choice([1, 3])))
    draw.shuffle(said)
    names = ["token_embd.weight", "blk.0.x", *(["output.weight"] if draw.random() < 0.5 else [])]
    tensors = [text(n) + struct.pack("<I2QIQ", 2, 64, 300, draw.choice([0, 12, 23]), 0) for n in names]
    head = struct.pack("<IQQ", draw.choice([2, 3]), len(tensors), len(said))
    return b"GGUF" + head + b"".join(said) + b"".join(tensors)


def damaged(draw: random.Random, data: bytes) -> bytes:
    """The same cut off, or with the counts and types in it changed."""
    found = bytearray(data)
    if draw.random() < 0.4:
        return bytes(found[: draw.randrange(4, len(found))])
    for _ in range(draw.randint(1, 2)):
        place = draw.randrange(4, len(found) - 8)
        found[place : place + 4] = struct.pack("<I", draw.choice([0, 1, 8, 9, 77, 2**31, 2**32 - 1]))
    return bytes(found)


def asked(text_: str) -> tuple[Any, ...] | None:
    """What a file or the keys that the page sends are read as; None where they are refused."""
    try:
        found = find_config(text_)
    except UsageError:
        return None
    return dict(found.data), found.weights


def test_the_page_and_python_read_the_same_keys() -> None:
    said = SCRIPT.read_text("utf-8")
    listed = said.partition("const SIZES = [")[2].partition("]")[0]
    assert sorted(json.loads(f"[{listed.strip().rstrip(',')}]")) == sorted(KEYS)


def test_the_page_and_python_read_headers_alike(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node, which runs the page's reader")
    said = SCRIPT.read_text("utf-8")
    begin, end = said.index("const HEADER ="), said.index("async function textOf")
    (tmp_path / "read.js").write_text(said[begin:end] + READ)
    draw = random.Random(7)
    for n in range(400):
        data = header(draw)
        (tmp_path / f"{n:03}.gguf").write_bytes(damaged(draw, data) if n % 2 else data)
    run = [node, "--max-old-space-size=200", str(tmp_path / "read.js"), str(tmp_path)]
    page = json.loads(subprocess.run(run, capture_output=True, check=True, timeout=60).stdout)
    read = 0
    for name, keys in page.items():
        own = asked(str(tmp_path / name))
        sent = None if keys is None else asked(json.dumps(keys))
        assert sent == own, name
        read += own is not None
    assert 200 <= read < 400  # all that are whole, and some that are damaged where it does not matter
