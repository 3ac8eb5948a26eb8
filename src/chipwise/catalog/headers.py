"""Configurations from the headers of weights: GGUF files name their dimensions, safetensors files show them.

Only headers are read, at most `MOST` bytes of a file however large it is; nothing in them is executed.
Formats: ggml-org/ggml, docs/gguf.md (version 2 and 3); huggingface/safetensors, README (Format).
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from chipwise.catalog.snapshot import current
from chipwise.errors import UsageError, shorten

__all__ = [
    "ARCHITECTURE",
    "ENDINGS",
    "StoredTensor",
    "described",
    "header_config",
    "refuse_pickle",
    "stored_tensors",
]

ENDINGS = (".gguf", ".safetensors")
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".t7")
MOST = 128_000_000
"""Bytes of a GGUF header: the longest published vocabularies take about 20 MB."""
MOST_JSON = 32_000_000
"""Bytes of a safetensors header: about 200,000 tensors, thirty times those of the largest published files."""
MOST_ITEMS, MOST_DIMENSIONS = 5_000_000, 8
MOST_ENTRIES = 200_000
"""Keys of a GGUF header, and tensors: a hundred times those of the largest published files."""
MOST_KEPT = 10_000
"""Entries of all arrays whose values are kept: one for each layer in each of a few keys."""

TYPES: Mapping[str, str] = {
    "llama": "llama", "qwen2": "qwen2", "qwen2moe": "qwen2_moe", "qwen3": "qwen3", "qwen3moe": "qwen3_moe",
    "gemma": "gemma", "gemma2": "gemma2", "gemma3": "gemma3_text", "phi3": "phi3", "gpt-oss": "gpt_oss",
    "granite": "granite", "olmo2": "olmo2", "exaone": "exaone", "exaone4": "exaone4", "smollm3": "smollm3",
    "seed_oss": "seed_oss", "starcoder2": "starcoder2", "internlm2": "internlm2", "apertus": "apertus",
    "hunyuan-dense": "hunyuan_v1_dense", "arcee": "arcee", "glm4": "glm4", "command-r": "cohere", "minicpm": "minicpm",
}  # fmt: skip
"""`general.architecture` of GGUF files and the `model_type` that it is."""

KEYS: Mapping[str, str] = {
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.sliding_window": "sliding_window",
    "feed_forward_length": "intermediate_size",
    "context_length": "max_position_embeddings",
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    "vocab_size": "vocab_size",
}
FILE_TYPES: Mapping[int, str] = {
    0: "fp32", 1: "bf16", 2: "q4_0", 3: "q4_1", 7: "q8_0", 8: "q5_0", 10: "q2_k", 11: "q3_k_s", 12: "q3_k_m",
    13: "q3_k_l", 14: "q4_k_s", 15: "q4_k_m", 16: "q5_k_s", 17: "q5_k_m", 18: "q6_k", 30: "iq4_xs", 32: "bf16",
}  # fmt: skip
"""`general.file_type` and chipwise's name of the format (ggml-org/llama.cpp, include/llama.h)."""

ARCHITECTURE, TIED = "general.architecture", "tie_word_embeddings"
FILE_TYPE, TOKENS, PARTS = "general.file_type", "tokenizer.ggml.tokens", "split.count"
GENERAL = (ARCHITECTURE, FILE_TYPE, TOKENS, PARTS)
SCALARS = ("B", "b", "H", "h", "I", "i", "f", "?")
STRING, ARRAY = 8, 9
WIDE = {10: "Q", 11: "q", 12: "d"}


def header_config(path: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The configuration that a file's header gives, and notes on what it does not say.

    Raises `UsageError` for a header that is cut off, too long, or of a family that its tensors do not tell.
    """

    def load() -> bytes:
        try:
            with path.open("rb") as file:
                read = _gguf if path.suffix == ".gguf" else _safetensors
                return json.dumps(read(file, path)).encode()
        except DAMAGED:
            raise _bad(path, "the header is cut off or damaged", "is the download complete?") from None
        except OSError as error:
            raise _bad(path, "cannot be read", error.strerror or "check the path") from None

    data, notes = json.loads(current().content(f"{path}#header", load))
    return data, tuple(notes)


def refuse_pickle(text: str) -> None:
    """Raise `UsageError` for the name of a file that would have to be loaded to be read."""
    if text.lower().endswith(PICKLES):
        raise UsageError(
            f"{shorten(text)}: pickles can run code when they are loaded, so they are not opened",
            "convert it to safetensors, or give the model's config.json",
        )


DAMAGED = (struct.error, ValueError, OverflowError, RecursionError, MemoryError)
"""What reading raises where bytes are no header."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor of a file of weights: its type as the file calls it ("BF16"), its shape, its bytes."""

    dtype: str
    shape: tuple[int, ...]
    bytes: int

    @property
    def entries(self) -> int:
        """Values in it; packed ones count as they are packed."""
        return _product(self.shape)


def stored_tensors(path: Path) -> dict[str, StoredTensor]:
    """The tensors of a safetensors file by name, from its header alone.

    Raises `UsageError` for a header that is cut off, too long or malformed.
    """
    try:
        with path.open("rb") as file:
            return _tensors(file, path)
    except DAMAGED:
        raise _bad(path, "the header is cut off or damaged", "is the download complete?") from None
    except OSError as error:
        raise _bad(path, "cannot be read", error.strerror or "check the path") from None


def _bad(path: Path, what: str, hint: str) -> UsageError:
    return UsageError(f"{path}: {what}", hint)


class _Bytes:
    """Reading little-endian values one after the other, no further than `most`."""

    def __init__(self, file: BinaryIO, most: int = MOST) -> None:
        self.file = file
        self.left = most
        self.kept = 0

    def take(self, count: int) -> bytes:
        if not 0 <= count <= self.left:
            raise struct.error("beyond the header")
        self.left -= count
        found = self.file.read(count)
        if len(found) != count:
            raise struct.error("the file ends")
        return found

    def one(self, code: str) -> Any:
        return struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))[0]

    def text(self) -> str:
        return self.take(self.one("Q")).decode("utf-8", "replace")

    def value(self, kind: int, *, kept: bool) -> Any:
        """A value; of an array its length alone, unless it is a short one of numbers that is `kept`."""
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            inner, count = self.one("I"), self.one("Q")
            if count > MOST_ITEMS:
                raise struct.error("too long an array")
            if inner == STRING:
                for _ in range(count):
                    self.take(self.one("Q"))
                return count
            if inner == ARRAY:
                raise struct.error("an array of arrays")
            size = struct.calcsize(f"<{_code(inner)}")
            raw = self.take(count * size)
            if not kept or self.kept + count > MOST_KEPT:
                return count
            self.kept += count
            return list(struct.unpack(f"<{count}{_code(inner)}", raw))
        return self.one(_code(kind))


def _code(kind: int) -> str:
    code = SCALARS[kind] if 0 <= kind < len(SCALARS) else WIDE.get(kind)
    if code is None:
        raise struct.error("an unknown type")
    return code


def _gguf(file: BinaryIO, path: Path) -> tuple[dict[str, Any], list[str]]:
    source = _Bytes(file)
    if source.take(4) != b"GGUF":
        raise _bad(path, "not a GGUF file", "its first bytes are not GGUF")
    version, tensors, pairs = source.one("I"), source.one("Q"), source.one("Q")
    if version not in (2, 3):
        raise _bad(path, f"GGUF version {version} is not read", "2 or 3")
    if max(tensors, pairs) > MOST_ENTRIES:
        raise struct.error("too many keys or tensors")
    given: dict[str, Any] = {}
    for _ in range(pairs):
        key = source.text()
        kept = key in GENERAL or key.partition(".")[2] in KEYS
        value = source.value(source.one("I"), kept=kept)
        if kept:
            given[key] = value
    head, entries = False, 0
    for _ in range(tensors):
        head = source.text() == "output.weight" or head
        dimensions = source.one("I")
        if dimensions > MOST_DIMENSIONS:
            raise struct.error("too many dimensions")
        shape = [source.one("Q") for _ in range(dimensions)]
        source.take(12)
        count = 1
        for size in shape:
            count *= size
        entries += count
    parts = given.get(PARTS, 1)
    whole = not (isinstance(parts, int) and parts > 1)
    if head or whole:  # else another part may hold the head
        given[TIED] = not head
    data, notes = described(given, str(path))
    said = "" if whole else f" in this one of {parts} parts"
    return data, [f"the header of {path.name}: {entries:,} entries{said}, norms and tables included", *notes]


def described(given: Mapping[str, Any], origin: str) -> tuple[dict[str, Any], list[str]]:
    """The configuration that the keys of a GGUF header give, and notes: `general.architecture`, what they say of it
    (`llama.block_count`), the length of an array in place of a long one, and `tie_word_embeddings`, which a header
    shows by its tensors unless it is that of one part of several. Raises `UsageError` for no architecture or one that
    is not read; `origin` is where they come from."""
    if ARCHITECTURE not in given:
        hint = "give the model's config.json; of a file in several parts, give the first"
        raise UsageError(f"{origin}: names no {ARCHITECTURE}", hint)
    kind = str(given.get(ARCHITECTURE))
    if kind not in TYPES:
        known = f"give the model's config.json; GGUF headers of {', '.join(TYPES)} are read"
        what = f"{origin}: architecture {shorten(kind, 30)!r} is not read from a GGUF header"
        raise UsageError(what, known)
    data: dict[str, Any] = {"model_type": TYPES[kind], "torch_dtype": "bfloat16"}
    for key, common in KEYS.items():
        value = given.get(f"{kind}.{key}")
        if isinstance(value, (int, list)) and value:
            data[common] = value
    tokens = given.get(TOKENS)
    if isinstance(tokens, int):
        data.setdefault("vocab_size", tokens)
    data[TIED] = bool(given.get(TIED, True))
    if "num_experts" in data:
        data.setdefault("num_local_experts", data["num_experts"])
        if kind in ("llama", "gpt-oss"):
            data["model_type"] = "gpt_oss" if kind == "gpt-oss" else "mixtral"
            data["intermediate_size"] = data.pop("moe_intermediate_size", data.get("intermediate_size"))
    said = given.get(FILE_TYPE)
    stored = FILE_TYPES.get(said) if isinstance(said, int) else None
    notes = []
    if TIED not in given:
        notes.append("the head is taken for the embedding table: the header as given does not say")
    if stored is not None:
        notes.append(f"the file is stored as {stored}: add --precision {stored} to plan with it")
    return data, notes


LAYER = re.compile(r"^(?:model\.)?layers\.(\d+)\.(.+)$")


ENTRY_BYTES: Mapping[str, int] = {
    "F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "BF16": 2, "F16": 2, "I16": 2, "U16": 2,
    "I8": 1, "U8": 1, "BOOL": 1,
}  # fmt: skip
"""Bytes of an entry of types that are not packed (huggingface/safetensors README)."""


def _tensors(file: BinaryIO, path: Path) -> dict[str, StoredTensor]:
    source = _Bytes(file, MOST_JSON)
    table: Any = json.loads(source.take(source.one("Q")))
    if not isinstance(table, dict):
        raise _bad(path, "not a safetensors header", "expected one JSON object")
    found: dict[str, StoredTensor] = {}
    for name, entry in table.items():
        if name == "__metadata__":
            continue
        fields = entry if isinstance(entry, dict) else {}
        shape, span = fields.get("shape", ""), fields.get("data_offsets", "")
        right = _whole(shape) and _whole(span) and len(span) == 2 and len(shape) <= MOST_DIMENSIONS
        if not (right and span[1] >= span[0]):
            raise _bad(
                path, f"tensor {shorten(str(name), 40)!r} has no shape or place", "is it a safetensors file?"
            )
        found[name] = StoredTensor(str(fields.get("dtype")), tuple(shape), span[1] - span[0])
        size = ENTRY_BYTES.get(found[name].dtype)
        if size is not None and size * found[name].entries != found[name].bytes:
            what = f"tensor {shorten(str(name), 40)!r} has {found[name].bytes:,} bytes for its shape {shape}"
            raise _bad(path, shorten(what, 160), "is it damaged?")
    return found


def _safetensors(file: BinaryIO, path: Path) -> tuple[dict[str, Any], list[str]]:
    tensors = _tensors(file, path)
    shapes = {name: list(tensor.shape) for name, tensor in tensors.items()}
    stored = sum(tensor.bytes for tensor in tensors.values())
    entries = sum(tensor.entries for tensor in tensors.values())
    what = f"{len(shapes):,} tensors, {entries:,} entries, {stored:,} bytes"
    inside = {found[2]: shape for name, shape in shapes.items() if (found := LAYER.match(name))}
    layers = 1 + max((int(found[1]) for name in shapes if (found := LAYER.match(name))), default=-1)
    embedding = next(
        (s for n, s in shapes.items() if n.endswith("embed_tokens.weight") and len(s) == 2), None
    )
    needed = [f"self_attn.{p}_proj.weight" for p in "qkvo"] + [
        f"mlp.{p}_proj.weight" for p in ("gate", "up", "down")
    ]
    present = {int(found[1]) for name in shapes if (found := LAYER.match(name))}
    if embedding is None or len(present) != layers or any(len(inside.get(name, ())) != 2 for name in needed):
        hint = (
            "put its config.json next to it; alone only complete dense decoders with Llama's tensors are read"
        )
        raise _bad(path, f"holds {what}, which do not tell the family", hint)
    size = inside.get("self_attn.q_norm.weight", [0])[0]
    queries, keys = inside[needed[0]][0], inside[needed[1]][0]
    notes = [f"the header of {path.name}: {what}"]
    if not 0 < size <= 1024:
        size = 128 if queries % 128 == 0 and keys % 128 == 0 else 64
        notes.append(f"heads of {size} are assumed, which a header does not say")
    kind = (
        "qwen3"
        if "self_attn.q_norm.weight" in inside
        else "qwen2"
        if "self_attn.q_proj.bias" in inside
        else "llama"
    )
    data = {
        "model_type": kind,
        "vocab_size": embedding[0],
        "hidden_size": embedding[1],
        "num_hidden_layers": layers,
        "num_attention_heads": max(queries // size, 1),
        "num_key_value_heads": max(keys // size, 1),
        "head_dim": size,
        "intermediate_size": inside["mlp.gate_proj.weight"][0],
        "tie_word_embeddings": "lm_head.weight" not in shapes,
        "torch_dtype": "bfloat16",
    }
    return data, notes


def _whole(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(i, int) and not isinstance(i, bool) and 0 <= i < 1e15 for i in value
    )


def _product(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
