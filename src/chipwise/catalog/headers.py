"""Configurations from the headers of weights: GGUF files name their dimensions, safetensors files show them.

Only headers are read, at most `MOST` bytes of a file however large it is; nothing in them is executed.
Formats: ggml-org/ggml, docs/gguf.md (version 2 and 3); huggingface/safetensors, README (Format).
"""

from __future__ import annotations

import json
import math
import re
import stat
import struct
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

from chipwise.catalog.parsed import names
from chipwise.catalog.snapshot import current
from chipwise.errors import UsageError, shorten
from chipwise.values import dataclass

ENDINGS = (".gguf", ".safetensors")
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".t7", ".nemo", ".torchscript", ".joblib")
ITS_SOURCE = "give the model that it was made of: its config.json, its name, FILE.onnx or FILE.py:function"
_NAMES = names("catalog/data/headers.toml")
COMPILED: Mapping[str, str] = _NAMES["compiled"]
"""Endings of files that other tools have compiled or packed for one runtime, and what they are."""
MOST = 128_000_000
"""Bytes of a GGUF header: the longest published vocabularies take about 20 MB."""
MOST_JSON = 32_000_000
"""Bytes of a safetensors header: about 200,000 tensors, thirty times those of the largest published files."""
MOST_ITEMS, MOST_DIMENSIONS = 5_000_000, 8
MOST_ENTRIES = 200_000
"""Keys of a GGUF header, and tensors: a hundred times those of the largest published files."""
MOST_PARTS = 1000
MOST_KEPT = 10_000
"""Entries of all arrays whose values are kept: one for each layer in each of a few keys."""

TYPES: Mapping[str, str] = _NAMES["types"]
"""`general.architecture` of GGUF files and the `model_type` that it is."""
KEYS: Mapping[str, str] = _NAMES["keys"]
"""Keys of GGUF files behind their architecture, and those of configurations."""
LATENT = ("q_lora_rank", "kv_lora_rank", "v_head_dim", "key_length_mla", "value_length_mla", "qk_rope_head_dim")
"""Keys of latent attention, which mean other things, or nothing, to the rest."""
FILE_TYPES: Mapping[int, str] = {int(code): name for code, name in _NAMES["file_types"].items()}
"""`general.file_type` and chipwise's name of the format (ggml-org/llama.cpp, include/llama.h)."""

BLOCKS: Mapping[int, tuple[str, int, int]] = {int(code): (*said,) for code, said in _NAMES["blocks"].items()}
"""Types of tensors in GGUF files: name, entries of a block, its bytes (ggml-org/llama.cpp, gguf-py, constants.py)."""

PART = re.compile(r"^(?P<stem>.+)-(?P<part>\d{5})-of-(?P<parts>\d{5})\.gguf$")
"""How llama.cpp names the files of a model in several parts."""

ARCHITECTURE, TIED = "general.architecture", "tie_word_embeddings"
FILE_TYPE, TOKENS, PARTS = "general.file_type", "tokenizer.ggml.tokens", "split.count"
GENERAL = (ARCHITECTURE, FILE_TYPE, TOKENS, PARTS)
SCALARS = ("B", "b", "H", "h", "I", "i", "f", "?")
STRING, ARRAY = 8, 9
WIDE = {10: "Q", 11: "q", 12: "d"}


def header_config(path: Path) -> tuple[dict[str, Any], tuple[str, ...], str]:
    """The configuration that a file's header gives, notes on what it does not say, and the number format of its
    weights where they are quantised, "" elsewhere.

    Raises `UsageError` for a header that is cut off, too long, or of a family that its tensors do not tell.
    """

    def load() -> bytes:
        try:
            with _opened(path) as file:
                read = _gguf if path.suffix == ".gguf" else _safetensors
                return json.dumps(read(file, path)).encode()
        except DAMAGED:
            raise _bad(path, "the header is cut off or damaged", "is the download complete?") from None
        except OSError as error:
            raise _bad(path, "cannot be read", error.strerror or "check the path") from None

    data, notes, *stored = json.loads(current().content(f"{path}#header", load))
    return data, tuple(notes), stored[0] if stored else ""  # an answer that was saved before holds two


def refuse_unread(text: str) -> None:
    """Raise `UsageError` for the name of a file of a kind that is not read: one that would have to be loaded, which can
    run code, or one that is compiled for a runtime."""
    lowered = text.lower().rstrip("/")
    if lowered.endswith(PICKLES):
        raise UsageError(
            f"{shorten(text)}: pickles can run code when they are loaded, so they are not opened",
            "convert it to safetensors, or give the model's config.json",
            field="model",
        )
    kind = next((what for ending, what in COMPILED.items() if lowered.endswith(ending)), None)
    if kind is not None:
        raise UsageError(f"{shorten(text)}: {kind} is not read", ITS_SOURCE, field="model")


class UnknownFamilyError(UsageError):
    """Weights whose header is sound, and does not say which family of models it is."""


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
    """The tensors of a safetensors or GGUF file by name, from its header alone.

    Raises `UsageError` for a header that is cut off, too long or malformed.
    """
    try:
        with _opened(path) as file:
            if path.suffix != ".gguf":
                return _tensors(file, path)
            found = _gguf_header(file, path)[1]
            unknown = next((t.dtype for t in found.values() if not t.bytes and t.entries), None)
            if unknown is not None:
                raise _bad(path, f"tensors of {unknown} have a size that is not known", "is it of a newer llama.cpp?")
            return found
    except DAMAGED:
        raise _bad(path, "the header is cut off or damaged", "is the download complete?") from None
    except OSError as error:
        raise _bad(path, "cannot be read", error.strerror or "check the path") from None


def _opened(path: Path) -> BinaryIO:
    """A regular file, open: a pipe would be waited for, and a device has no end. Raises `UsageError`, `OSError`."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise _bad(path, "not a file", "expected weights, GGUF or safetensors")
    return path.open("rb")


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


def _gguf_header(file: BinaryIO, path: Path) -> tuple[dict[str, Any], dict[str, StoredTensor]]:
    """The keys of a GGUF header that are kept, and its tensors by name. Raises what `DAMAGED` says, `UsageError`."""
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
    found: dict[str, StoredTensor] = {}
    for _ in range(tensors):
        name = source.text()
        dimensions = source.one("I")
        if dimensions > MOST_DIMENSIONS:
            raise struct.error("too many dimensions")
        shape = tuple(source.one("Q") for _ in range(dimensions))
        kind, _ = source.one("I"), source.one("Q")
        title, block, size = BLOCKS.get(kind, (f"type {kind}", 1, 0))
        found[name] = StoredTensor(title, shape, -(-_product(shape) // block) * size)
    return given, found


def gguf_parts(path: Path) -> list[Path]:
    """The files of a GGUF model that are there, the first part first; the file alone where it is no part."""
    named = PART.match(path.name)
    if named is None:
        return [path]
    files = [
        path.with_name(f"{named['stem']}-{n:05}-of-{named['parts']}.gguf")
        for n in range(1, min(int(named["parts"]), MOST_PARTS) + 1)
    ]
    return [file for file in files if file.is_file()] or [path]


def _gguf(file: BinaryIO, path: Path) -> tuple[dict[str, Any], list[str], str]:
    files = gguf_parts(path)
    given, tensors = _gguf_header(file, path)
    for other in files:
        if other.name != path.name:
            with _opened(other) as more:
                keys, held = _gguf_header(more, other)
            given, tensors = {**keys, **given}, {**tensors, **held}
    entries, head = sum(t.entries for t in tensors.values()), "output.weight" in tensors
    parts = given.get(PARTS, 1)
    parts = parts if isinstance(parts, int) else 1
    whole = parts <= len(files)
    if head or whole:  # else another part may hold the head
        given[TIED] = not head
    data, notes, stored = described(given, str(path))
    said = "" if whole else f" in {len(files)} of {parts} parts"
    notes = [f"the header of {path.name}: {entries:,} entries{said}, norms and tables included", *notes]
    return data, notes, stored


SAME = {
    "n_routed_experts": "num_experts",
    "moe_num_experts": "num_experts",
    "moe_k": "num_experts_per_tok",
    "num_shared_experts": "n_shared_experts",
    "moe_num_shared_experts": "n_shared_experts",
    "moe_layer_start_index": "first_k_dense_replace",
    "num_local_experts": "num_experts",
}
"""Names that families have for what headers call alike."""


def _stored(given: Mapping[str, Any]) -> str | None:
    """The mix of formats that a file says it is stored in."""
    said = given.get(FILE_TYPE)
    return FILE_TYPES.get(said) if isinstance(said, int) else None


def described(given: Mapping[str, Any], origin: str) -> tuple[dict[str, Any], list[str], str]:
    """The configuration that the keys of a GGUF header give, notes, and the mix of formats that its weights are in (""
    where they are not quantised): `general.architecture`, what they say of it
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
        raise UnknownFamilyError(what, known)
    data: dict[str, Any] = {"model_type": TYPES[kind], "torch_dtype": "bfloat16"}
    for key, common in KEYS.items():
        value = given.get(f"{kind}.{key}")
        if isinstance(value, (int, list)) and value:
            data[common] = value
    tokens = given.get(TOKENS)
    if isinstance(tokens, int):
        data.setdefault("vocab_size", tokens)
    data[TIED] = bool(given.get(TIED, True))
    if isinstance(data.get("num_nextn_predict_layers"), int):  # counted among the blocks
        data["num_hidden_layers"] = data.get("num_hidden_layers", 0) - data["num_nextn_predict_layers"]
    if kind == "deepseek2":
        _latent(data)
    else:
        data = {key: value for key, value in data.items() if key not in LATENT}
    if "num_experts" in data:
        _routed(data, kind)
    stored = _stored(given)
    notes = []
    if TIED not in given:
        notes.append("the head is taken for the embedding table: the header as given does not say")
    if stored is not None:
        notes.append(f"the file is stored as {stored}, which --precision replaces")
    return data, notes, "" if stored in (None, "bf16", "fp32") else str(stored)


SPELLED: Mapping[str, tuple[str, ...]] = {
    "deepseek_v2": ("n_routed_experts",), "deepseek_v3": ("n_routed_experts",), "glm4_moe": ("n_routed_experts",),
    "dots1": ("n_routed_experts",), "bailing_moe_v2": ("num_shared_experts",),
    "ernie4_5_moe": ("moe_num_experts", "moe_k", "moe_num_shared_experts", "moe_layer_start_index"),
}  # fmt: skip
"""How families call their experts, where it is not `num_local_experts`."""


def _routed(data: dict[str, Any], kind: str) -> None:
    """Keys of experts as configurations of the architecture spell them."""
    wanted = SPELLED.get(TYPES[kind], ("num_local_experts",))
    data |= {own: data[SAME[own]] for own in wanted if SAME[own] in data}
    if kind in ("llama", "gpt-oss"):
        data["model_type"] = "gpt_oss" if kind == "gpt-oss" else "mixtral"
        data["intermediate_size"] = data.pop("moe_intermediate_size", data.get("intermediate_size"))


def _latent(data: dict[str, Any]) -> None:
    """Keys of DeepSeek's latent attention from those of a header: keys are a part with positions and one without, their
    lengths those of `_mla` where the file has been written for a compressed cache."""
    keys, values = data.pop("key_length_mla", None), data.pop("value_length_mla", None)
    size, rope = keys or data.pop("head_dim", 0), data.get("qk_rope_head_dim", 0)
    data.pop("head_dim", None)
    data["num_key_value_heads"] = data.get("num_attention_heads")
    if isinstance(size, int) and isinstance(rope, int) and size > rope:
        data["qk_nope_head_dim"] = size - rope
    if values:
        data["v_head_dim"] = values
    if "q_lora_rank" not in data:
        data["q_lora_rank"] = None


LAYER = re.compile(r"^(?:model\.)?layers\.(\d+)\.(.+)$")


ENTRY_BYTES: Mapping[str, int] = {
    "F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "BF16": 2, "F16": 2, "I16": 2, "U16": 2,
    "I8": 1, "U8": 1, "BOOL": 1,
}  # fmt: skip
"""Bytes of an entry of types that are not packed (huggingface/safetensors README)."""


def _tensors(file: BinaryIO, path: Path) -> dict[str, StoredTensor]:
    source = _Bytes(file, MOST_JSON)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise _bad(path, "a name occurs twice in its header", "is it a safetensors file?")
        return found

    table: Any = json.loads(source.take(source.one("Q")), object_pairs_hook=unique)
    if not isinstance(table, dict):
        raise _bad(path, "not a safetensors header", "expected one JSON object")
    found: dict[str, StoredTensor] = {}
    spans: list[tuple[int, int]] = []
    for name, entry in table.items():
        if name == "__metadata__":
            continue
        fields = entry if isinstance(entry, dict) else {}
        shape, span = fields.get("shape", ""), fields.get("data_offsets", "")
        right = _whole(shape) and _whole(span) and len(span) == 2 and len(shape) <= MOST_DIMENSIONS
        if not (right and span[1] >= span[0]):
            raise _bad(path, f"tensor {shorten(str(name), 40)!r} has no shape or place", "is it a safetensors file?")
        found[name] = StoredTensor(str(fields.get("dtype")), tuple(shape), span[1] - span[0])
        size = ENTRY_BYTES.get(found[name].dtype)
        if size is not None and size * found[name].entries != found[name].bytes:
            what = f"tensor {shorten(str(name), 40)!r} has {found[name].bytes:,} bytes for its shape {shape}"
            raise _bad(path, shorten(what, 160), "is it damaged?")
        spans.append((span[0], span[1]))
    spans.sort()
    if any(begin < end for (_, end), (begin, _) in pairwise(spans)):
        raise _bad(path, "two tensors share a place", "is it damaged?")
    return found


TOLD_BY = {"self_attn.q_norm.weight": "qwen3", "self_attn.q_proj.bias": "qwen2"}
"""Families by a tensor that their layers have and Llama's have not."""


NEEDED = (*(f"self_attn.{p}_proj.weight" for p in "qkvo"), *(f"mlp.{p}_proj.weight" for p in ("gate", "up", "down")))
"""Matrices of a layer of Llama."""


def _layers(shapes: Mapping[str, list[int]]) -> tuple[int, dict[str, list[int]]]:
    """How many layers there are, 0 where some between are absent; shapes by their names in a layer."""
    named = [(found, shape) for name, shape in shapes.items() if (found := LAYER.match(name))]
    present = {int(found[1]) for found, _ in named}
    layers = 1 + max(present, default=-1)
    return layers if len(present) == layers else 0, {found[2]: shape for found, shape in named}


def _safetensors(file: BinaryIO, path: Path) -> tuple[dict[str, Any], list[str], str]:
    tensors = _tensors(file, path)
    shapes = {name: list(tensor.shape) for name, tensor in tensors.items()}
    stored = sum(tensor.bytes for tensor in tensors.values())
    entries = sum(tensor.entries for tensor in tensors.values())
    what = f"{len(shapes):,} tensors, {entries:,} entries, {stored:,} bytes"
    layers, inside = _layers(shapes)
    embedding = next((s for n, s in shapes.items() if n.endswith("embed_tokens.weight") and len(s) == 2), None)
    if embedding is None or not layers or any(len(inside.get(name, ())) != 2 for name in NEEDED):
        hint = "put its config.json next to it; alone only complete dense decoders with Llama's tensors are read"
        raise UnknownFamilyError(f"{path}: holds {what}, which do not tell the family", hint)
    size = inside.get("self_attn.q_norm.weight", [0])[0]
    queries, keys = inside[NEEDED[0]][0], inside[NEEDED[1]][0]
    notes = [f"the header of {path.name}: {what}"]
    if not 0 < size <= 1024:
        size = 64 if math.gcd(queries, keys) % 128 else 128
        notes.append(f"heads of {size} are assumed, which a header does not say")
    kind = next((k for tensor, k in TOLD_BY.items() if tensor in inside), "llama")
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
    return data, notes, ""


def _whole(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(i, int) and not isinstance(i, bool) and 0 <= i < 1e15 for i in value
    )


def _product(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
