"""Model configurations: a `config.json` by path or folder, one of the bundled table by name, or a transformer by its
dimensions."""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from chipwise.catalog import networks
from chipwise.catalog.benchmarks import benchmark_of
from chipwise.catalog.files import is_file, read_text
from chipwise.catalog.headers import ARCHITECTURE, ENDINGS, described, header_config, refuse_unread
from chipwise.catalog.names import WEIGHTS, closed, holding, kind_of, meant, near, nickname, several
from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import (
    PACKAGE,
    current,
    own_exists,
    own_folder_name,
    own_is_folder,
    per_snapshot,
    shipped_text,
)
from chipwise.errors import CommandText, Sentence, UnknownNameError, UsageError, nearest, shorten
from chipwise.units import parse_quantity
from chipwise.values import dataclass

BY_DIMENSIONS = "transformer:"
"""What a model begins with that is given by its dimensions."""

INLINE = "{"
"""What a model begins with that is a configuration itself, as JSON."""

BY_SIZE = re.compile(r"^(\d{1,5}(?:\.\d+)?)([mMbBtT])$")
"""A model that is given by its number of parameters alone."""

TRACED = re.compile(r"\.py(?::\w*)?$|\.onnx$|model_index\.json$")
"""How the names of files end that hold a network rather than its configuration."""

ADAPTER = "adapter_config.json"
"""The file that says what an adapter (PEFT) adapts."""

CACHED = "models--"
"""How the folders of the Hugging Face cache begin, with a repository's name after it."""

# Key of a dimension -> key of a configuration, and the largest value.
DIMENSIONS: Mapping[str, tuple[str, float]] = {
    "layers": ("num_hidden_layers", 1e4),
    "hidden": ("hidden_size", 1e6),
    "heads": ("num_attention_heads", 1e5),
    "kv_heads": ("num_key_value_heads", 1e5),
    "head_dim": ("head_dim", 65_536),
    "ffn": ("intermediate_size", 1e7),
    "vocab": ("vocab_size", 1e8),
    "experts": ("num_experts", 1e5),
    "top_k": ("num_experts_per_tok", 1e5),
    "shared_ffn": ("shared_expert_intermediate_size", 1e7),
    "context": ("max_position_embeddings", 1e9),
}
SWITCHES = {"gated": True, "tied": False, "causal": True}  # and what each is unless it is said
NEEDED_DIMENSIONS = ("layers", "hidden", "heads", "ffn")
USUAL_VOCAB = 128_256  # words of Llama 3, about as many as decoders of 2024 to 2026 have
DIMENSIONS_EXAMPLE = "transformer:layers=40,hidden=5120,heads=40,kv_heads=8,ffn=13824,vocab=152064"

# Published configs are under 1 MB, the long ones because they list every layer that is not quantised.
MAX_BYTES = 8_000_000


@dataclass(frozen=True)
class ModelConfig:
    """A configuration as it was found: its name, its keys, and where it comes from.

    `alias` marks a second name of a bundled model; `notes` say how the name asked for was understood, `weights` in
    which number format its weights are where that name says another one ("": as the keys say).
    """

    name: str
    data: Mapping[str, Any]
    origin: str
    alias: bool = False
    notes: tuple[str, ...] = ()
    weights: str = ""

    @cached_property
    def content(self) -> tuple[str, str, str, tuple[str, ...]]:
        """All that a model is read from."""
        return self.name, self.origin, repr(self.data), self.notes


def _by_name(name: str, *, folder: bool) -> ModelConfig:
    """The bundled configuration that a name means, which may be that of a file that is not there; `folder`: it is one
    of the user's, without a configuration. Raises `UsageError`, `UnknownNameError`."""
    weights = name.endswith(ENDINGS)
    try:
        found = named_config(name)
    except UnknownNameError:
        if weights:
            hint = "give the file, a config.json, its folder, or a bundled name"
            raise UsageError(f"no such file: {shorten(name)}", hint, field="model") from None
        if name and folder:
            raise UsageError(
                f"{shorten(name)}: a folder without config.json or model_index.json",
                "give a model's folder",
                field="model",
            ) from None
        raise
    notes = (f"there is no file {shorten(name, 60)}", *found.notes)
    return replace(found, notes=notes) if weights else found


def find_config(name: str) -> ModelConfig:
    """The configuration of a model as people give one.

    At a path or in a folder (of a GGUF or safetensors file the header alone is read), bundled under a name as people
    call it (`named_config`), of a transformer by its dimensions, `transformer:layers=...,hidden=...`, or by its size
    alone, `14B`, or the configuration itself as JSON.

    Raises `UsageError` for a file that is no configuration or dimensions that make no transformer,
    `UnknownNameError` for an unknown name or dimension.
    """
    if name.startswith(BY_DIMENSIONS):
        return _by_dimensions(name)
    if name.lstrip().startswith(INLINE):
        return _as_given(name)
    refuse_unread(name)
    if TRACED.search(name):
        short = shlex.quote(shorten(name))
        what = f"{shorten(name)}: is traced, not read as a configuration, and this question is about language models"
        ask = Sentence(
            "ask: ",
            CommandText(f"estimate {short} --chip h100"),
            ", with --training of one step; ",
            CommandText(f"trace {short}"),
        )
        raise UsageError(what, ask)
    looks_like_path = name.startswith((".", "~", os.sep)) or name.endswith(".json")
    path = Path(name)
    try:
        path = path.expanduser()
        exists = own_exists(path)
    except (OSError, ValueError, RuntimeError):  # a name too long, a NUL in it, ~ of a user who is not there
        exists = False
    if exists and (looks_like_path or not own_is_folder(path) or _is_model(path)):
        return _read_path(path)
    if looks_like_path:
        raise UsageError(
            f"no such file: {shorten(name)}", "give a config.json, its folder, or a bundled name", field="model"
        )
    if size := BY_SIZE.match(name.strip()):
        return _by_size(name.strip(), float(size[1]) * {"m": 1e6, "b": 1e9, "t": 1e12}[size[2].lower()])
    return _by_name(name, folder=exists and path.is_dir())


def _is_model(folder: Path) -> bool:
    """Whether a folder holds a model's configuration, an adapter's, or is the cache's folder of a model."""
    named = any(own_exists(folder / name) for name in ("config.json", ADAPTER))
    return named or cached_snapshot(folder) is not None


@per_snapshot
def bundled_configs() -> Mapping[str, ModelConfig]:
    """All bundled configurations by name. Aliases (`also`) of one model share its keys; a model that is
    `like` another begins with the other's."""
    text = shipped_text("catalog/data/models.toml")
    table: dict[str, ModelConfig] = {}
    for name, entry in parse(text).items():
        origin, also, like = entry.pop("source"), entry.pop("also", ()), entry.pop("like", None)
        keys = {**table[like].data, **entry} if like else entry
        table[name] = ModelConfig(name, keys, origin)
        for alias in also:
            table[alias] = ModelConfig(alias, keys, origin, alias=True)
    return table


def parse_config(text: str, name: str, origin: str) -> ModelConfig:
    """`text` as a configuration. Raises `UsageError` for anything but one JSON object with unique keys."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table: dict[str, Any] = {}
        for key, value in pairs:
            if key in table:
                raise UsageError(f"{origin}: key '{shorten(key)}' occurs twice", "keep the one that is meant")
            table[key] = value
        return table

    try:
        data = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        what = f"{origin}: not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        raise UsageError(what, "is the download complete?") from None
    except (RecursionError, ValueError):
        raise UsageError(f"{origin}: not a model configuration", "nested too deeply or a number too long") from None
    if not isinstance(data, dict):
        raise UsageError(f"{origin}: not a model configuration", "expected one JSON object")
    return ModelConfig(name, data, origin)


def _as_given(text: str) -> ModelConfig:
    """A configuration that was given itself, called by the name in it or by its type."""
    if len(text) > MAX_BYTES:
        raise UsageError(f"the configuration given has {len(text):,} characters", f"at most {MAX_BYTES:,}")
    given = parse_config(text, "", "the configuration given")
    config = _of_header(given)
    named = given.data.get("_name_or_path") or given.data.get("general.name")
    return replace(config, name=shorten(str(named or f"{config.data.get('model_type', 'model')} as given"), 120))


def _of_header(config: ModelConfig) -> ModelConfig:
    """The configuration that the keys of a GGUF header give, written as JSON; any other as it is."""
    if ARCHITECTURE not in config.data:
        return config
    keys, notes, stored = described(config.data, config.origin)
    return replace(config, data=keys, notes=tuple(notes), weights=stored)


def _dimensions(text: str) -> dict[str, float]:
    """The dimensions that a text gives, by name. Raises `UsageError` for those that make no transformer,
    `UnknownNameError` for one that is unknown."""
    given: dict[str, float] = {}
    known = (*DIMENSIONS, *SWITCHES)
    for part in text.removeprefix(BY_DIMENSIONS).split(","):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if not key:
            raise UsageError("a dimension without a name", f"as in {DIMENSIONS_EXAMPLE}")
        if key not in known:
            raise UnknownNameError("dimension", shorten(key), known, f"as in {DIMENSIONS_EXAMPLE}")
        if key in given:
            raise UsageError(f"dimension '{key}' is given twice", "keep the one that is meant")
        if not value:
            raise UsageError(f"dimension '{key}' has no value", f"as in {DIMENSIONS_EXAMPLE}")
        low, high = (1.0, DIMENSIONS[key][1]) if key in DIMENSIONS else (0.0, 1.0)
        given[key] = number = parse_quantity(value, "", key, low=low, high=high)
        if number % 1:
            raise UsageError(f"{key}: {shorten(value)} is not a whole number", f"as in {DIMENSIONS_EXAMPLE}")
    absent = [key for key in NEEDED_DIMENSIONS if key not in given]
    if absent:
        raise UsageError(f"a transformer without {', '.join(absent)}", f"as in {DIMENSIONS_EXAMPLE}")
    for key, other in (("experts", "top_k"), ("top_k", "experts"), ("shared_ffn", "experts")):
        if key in given and other not in given:
            raise UsageError(f"{key} without {other}", f"add {other}, as in experts=8,top_k=2")
    return given


def _by_dimensions(text: str) -> ModelConfig:
    """The configuration of `transformer:layers=40,hidden=5120,...`, in 16 bit.

    Needed: layers, hidden, heads, ffn. As they follow: kv_heads (heads), head_dim (hidden / heads); vocab is 128,256
    where none is given, and said. With
    experts, which need top_k, ffn is the width of one expert and shared_ffn that of all shared ones. `gated` 1: three
    matrices per feed-forward; `tied` 1: the head is the embedding table; `causal` 0: every token sees all others;
    `context`: most tokens that the model reads.
    """
    keys: dict[str, Any] = {"model_type": "transformer", "torch_dtype": "bfloat16"}
    given = _dimensions(text)
    notes: tuple[str, ...] = ()
    if "vocab" not in given:
        given["vocab"], notes = USUAL_VOCAB, (f"a vocabulary of {USUAL_VOCAB:,} words, as none is given",)
    keys |= {DIMENSIONS[key][0]: int(number) for key, number in given.items() if key in DIMENSIONS}
    keys |= {key: bool(given.get(key, usual)) for key, usual in SWITCHES.items()}
    name = f"transformer {keys['num_hidden_layers']}x{keys['hidden_size']}"
    return ModelConfig(name, keys, "dimensions as given", notes=notes)


def _by_size(asked: str, params: float) -> ModelConfig:
    """A dense decoder of about so many parameters, shaped as those of 2023 to 2026 are: 128 of width per layer,
    heads of 128 of which eight hold keys and values, a feed-forward of 3.5 times the width, `USUAL_VOCAB` words.

    Raises `UsageError` for a size that no such decoder has.
    """
    vocab, least = USUAL_VOCAB, 512

    def total(width: int) -> float:
        heads = width + min(width, 8 * 128)
        return max(width // 128, 4) * (2.0 * width * heads + 3 * 3.5 * width * width) + 2.0 * vocab * width

    width = min(range(least, 65_536, 128), key=lambda w: abs(total(w) - params))
    if abs(total(width) / params - 1) > 0.2:
        raise UsageError(
            f"'{asked}': no dense decoder is that size", f"{total(least) / 1e6:,.0f}M to 20T, or a model's name"
        )
    layers, heads = max(width // 128, 4), width // 128
    while heads % min(heads, 8):
        heads -= 1
    text = f"{BY_DIMENSIONS}layers={layers},hidden={width},heads={heads},kv_heads={min(heads, 8)},head_dim=128"
    text += f",ffn={round(3.5 * width)},vocab={vocab}"
    note = f"'{asked}' is read as a dense decoder of that size, {text}; name a model for its own dimensions"
    return replace(_by_dimensions(text), name=f"{asked} decoder", notes=(note,))


def cached_snapshot(path: Path) -> Path | None:
    """The snapshot that a folder of the Hugging Face cache, `models--ORGANISATION--NAME`, has as its main one; None
    where it is no such folder. Layout: huggingface_hub, Understand caching."""
    inside = f"{path / 'snapshots'}{os.sep}"
    saved = [name for name in current().given if name.startswith(inside)]
    if saved:
        return Path(inside) / saved[0].removeprefix(inside).partition(os.sep)[0]
    try:
        if not path.name.startswith(CACHED) or not (path / "snapshots").is_dir():
            return None
        head = path / "refs" / "main"
        named = read_text(head, 1000, "the name of a snapshot").strip() if is_file(head) else ""
        if re.fullmatch(r"\w{1,100}", named) and (path / "snapshots" / named).is_dir():
            return path / "snapshots" / named
        found = sorted((path / "snapshots").iterdir())
    except OSError:
        return None
    return found[0] if len(found) == 1 else None


def _folder_name(file: Path) -> str:
    """What the model in a folder is called: by the folder, of a snapshot in the Hugging Face cache by repository."""
    parts = file.parts[-4:-1]
    if len(parts) == 3 and parts[1] == "snapshots" and parts[0].startswith(CACHED):
        return parts[0].removeprefix(CACHED).replace("--", "/")
    return own_folder_name(file)


def _of_adapter(file: Path) -> ModelConfig:
    """The model that an adapter was made for (PEFT writes `adapter_config.json`), by its name: a file is not read
    because another file names it. Raises `UsageError` for a base that is not bundled."""
    data = parse_config(read_text(file, MAX_BYTES, "the configuration of an adapter"), file.parent.name, str(file)).data
    base, kind, rank = (data.get(key) for key in ("base_model_name_or_path", "peft_type", "r"))
    if not isinstance(base, str) or not base:
        raise UsageError(f"{file}: names no base_model_name_or_path", "give the model that it adapts")
    try:
        found = named_config(base)
    except UnknownNameError:
        what = f"{file}: an adapter of {shorten(base, 80)!r}, which is not bundled"
        raise UsageError(what, "give that model's config.json or folder", field="model") from None
    said = f"{shorten(str(kind or 'LoRA'), 20)}{f', rank {rank}' if isinstance(rank, int) else ''}"
    note = f"{shorten(str(file.parent), 60)} is an adapter ({said}) of {found.name}: the model is planned, it merged"
    targets = data.get("target_modules")
    if isinstance(rank, int) and isinstance(targets, list) and targets:
        named = shorten("+".join(map(str, targets)), 80)
        note += f"; kept apart: chipwise fit {found.name} --lora rank={rank},targets={named}"
    return replace(found, notes=(*found.notes, note))


def _of_weights(path: Path) -> ModelConfig:
    """What lies beside a file of weights, else what its header says."""
    if path.suffix == ".safetensors":
        if own_exists(path.with_name("config.json")):
            return _read_path(path.with_name("config.json"))
        if own_exists(path.with_name(ADAPTER)):
            return _of_adapter(path.with_name(ADAPTER))
    keys, notes, stored = header_config(path)
    return ModelConfig(shorten(path.stem, 120), keys, f"header of {path}", notes=notes, weights=stored)


def _read_path(path: Path) -> ModelConfig:
    path = cached_snapshot(path) or path
    if path.suffix in ENDINGS and not path.is_dir():
        return _of_weights(path)
    folder = own_is_folder(path)
    file = path / "config.json" if folder else path
    if path.name == ADAPTER or (folder and not own_exists(file) and own_exists(path / ADAPTER)):
        return _of_adapter(path if path.name == ADAPTER else path / ADAPTER)
    if folder and not own_exists(file):
        hint = "give a config.json or its folder"
        if own_exists(path / "model_index.json"):
            short = shlex.quote(shorten(str(path)))
            asking = CommandText(f"estimate {short} --chip h100")
            hint = Sentence("a diffusers folder is asked about by ", asking, ", with --training too")
        raise UsageError(f"{path}: holds no config.json", hint)
    text = read_text(file, MAX_BYTES, "a model configuration")
    if file.name != "config.json":
        return _of_header(parse_config(text, shorten(file.stem.replace("__", "/"), 120), str(file)))
    config = _of_header(parse_config(text, shorten(_folder_name(file), 120), str(file)))
    return _with_sibling(config, file.with_name("hf_quant_config.json"))


def _with_sibling(config: ModelConfig, file: Path) -> ModelConfig:
    """The quantisation that NVIDIA's Model Optimizer writes into a file of its own, as part of the keys."""
    if "quantization_config" in config.data or not file.is_file():
        return config
    found = parse_config(read_text(file, MAX_BYTES, "a model configuration"), config.name, str(file)).data.get(
        "quantization"
    )
    if not isinstance(found, dict):
        raise UsageError(f"{file}: no object 'quantization'", "is it written by Model Optimizer?")
    data = {**config.data, "quantization_config": {"quant_method": "modelopt", **found}}
    return replace(config, data=data, origin=f"{config.origin} and {file.name}")


@per_snapshot
def named_config(name: str) -> ModelConfig:
    """The bundled model of a name: in any case, without its organisation where the rest is unique, as a tag
    (`llama3.1:8b`), or as words in any order (`Qwen 3 30B A3B`).

    Raises `UnknownNameError`, with a sentence that says which names are near, for one that means none or several.
    """
    table = bundled_configs()
    exact = _same(name, table)
    if exact is not None:
        return table[exact]
    exact = _same(name, _lines())
    if exact is not None:
        return _more(exact)
    tag = nickname(name)
    if tag is not None:
        return _noted(_any(tag), name) if _is_known(tag) else _unbundled(name, tag)
    found = meant(name, known_names(), _alike)
    if found is None:
        _unknown(name)
    return _noted(_any(found.name), name, found.left_out)


def known_names() -> tuple[str, ...]:
    """Every name of a bundled model, aliases too."""
    return (*bundled_configs(), *_lines())


def leading_names() -> tuple[str, ...]:
    """The same without second names of the same dimensions."""
    first = (name for name, config in bundled_configs().items() if not config.alias)
    return (*first, *(name for name, lead in _lines().items() if name == lead))


MORE = "catalog/data/more_models.tsv"
NAMES = "names"
"""Part of the second table: the names of each line."""


@per_snapshot
def _lines() -> Mapping[str, str]:
    """The models of the second table: each name and the name that its line begins with. The table is read by name, so
    that neither an answer nor what is saved with it holds the dimensions of all."""
    text = current().content(f"{MORE}#{NAMES}", lambda: shipped_part(NAMES) or b"")
    found: dict[str, str] = {}
    for line in text.decode().splitlines():
        names = line.split(" ")
        found |= dict.fromkeys(names, names[0])
    return found


def shipped_part(part: str) -> bytes | None:
    """What answers hold of the second table as it ships: its names, or the line of the model that it begins with; None
    where it has no such line."""
    if part == NAMES:
        return "\n".join(line for line, _, _ in _shipped()).encode()
    return next((f"{s}\t{k}".encode() for names, s, k in _shipped() if names.partition(" ")[0] == part), None)


def _shipped() -> Iterator[tuple[str, str, str]]:
    """Names, source and keys of each line."""
    for line in (PACKAGE / MORE).read_text("utf-8").splitlines()[1:]:
        names, source, keys = line.split("\t")
        yield names, source, keys


@per_snapshot
def _more(name: str) -> ModelConfig:
    first = _lines()[name]

    text = current().content(f"{MORE}#{first}", lambda: shipped_part(first) or b"")
    source, _, keys = text.decode().partition("\t")
    return ModelConfig(name, json.loads(keys), source, alias=name != first)


def _is_known(name: str) -> bool:
    return name in bundled_configs() or name in _lines()


def _any(name: str) -> ModelConfig:
    return bundled_configs()[name] if name in bundled_configs() else _more(name)


def _same(name: str, table: Mapping[str, Any]) -> str | None:
    """The name itself, in another case, or without its organisation where the rest is unique."""
    if name in table:
        return name
    wanted = name.strip().lower()
    whole = [key for key in table if key.lower() == wanted]
    tail = [key for key in table if key.lower().rsplit("/", 1)[-1] == wanted]
    return next((hits[0] for hits in (whole, tail) if len(hits) == 1), None)


SHAPE = (
    "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size",
    "num_experts", "num_local_experts", "n_routed_experts", "moe_intermediate_size", "d_model", "n_embd", "n_layer",
)  # fmt: skip


def _alike(one: str, other: str) -> bool:
    """Whether two models have one shape, so that either answers for both."""

    def shape(name: str) -> list[Any]:
        data = _any(name).data
        inner = data.get("text_config") or {}
        return [inner.get(key, data.get(key)) for key in SHAPE]

    return shape(one) == shape(other)


def _noted(config: ModelConfig, asked: str, left_out: str = "") -> ModelConfig:
    note = f"'{shorten(asked, 60)}' is read as {config.name}"
    weights = next((WEIGHTS[word] for word in left_out.split() if word in WEIGHTS), "")
    if weights:
        note += f", its weights in {weights}"
    elif left_out:
        note += f", in the format of that checkpoint: '{left_out}' is left to --precision"
    return replace(config, notes=(note,), weights=weights)


OWN = "a PyTorch module of your own: chipwise estimate FILE.py:function"
"""unit: text. Chosen: how a network is asked about that no table has."""


def _unbundled(asked: str, name: str) -> NoReturn:
    hint = "its dimensions are not bundled: give the path of its config.json"
    raise UnknownNameError("model", asked, (), f"it is {name}, {hint}")


def _either(names: tuple[str, ...], most: int = 4) -> str:
    first, last = names[:most], f" or {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(first)}{last}" if last else " or ".join(filter(None, (", ".join(first[:-1]), first[-1])))


def _unknown(name: str) -> NoReturn:
    several_ = [part.strip() for part in name.split(",") if part.strip()]
    if len(several_) > 1 and "=" not in name:
        raise UsageError(
            f"'{shorten(name, 60)}' are {len(several_)} models, and a question is about one",
            f"ask about {shorten(several_[0], 30)} first; compare sets chips side by side, e.g. --chips h100,l4",
            field="model",
        )
    kind, known = kind_of(name), known_names()
    _without_tokens(name, kind)
    if current := of_family(name):
        raise _but(name, f"did you mean {_either(current)}? The name leaves out the size or version", current)
    if fit := several(name, known, _alike):
        raise _but(name, f"did you mean {_either(fit)}? The name leaves out the size or version", fit[:4])
    if maker := closed(name):
        hint = f"{maker} publishes neither its weights nor its dimensions; open ones: chipwise models list"
        raise UnknownNameError("model", name, (), hint)
    alike = tuple(dict.fromkeys((*nearest(name, known, 2), *near(name, known))))[:4]
    others = networks.close(name) if kind is not None or not (alike or holding(name, known)) else alike
    if kind is not None:
        see = f"measured results: chipwise evidence match {shlex.quote(shorten(name, 30))}"
        nearby = f"did you mean {', '.join(others)}? " if others else ""
        raise _but(name, f"{nearby}It is {kind}; those built in: chipwise models list; {OWN}; {see}", others)
    if not others:
        hint = f"the bundled ones: chipwise models list; any other: the path of its config.json; {OWN}"
        raise UnknownNameError("model", name, (), hint)
    raise _but(name, f"did you mean {', '.join(others)}? Any other model: the path of its config.json", others)


def of_family(typed: str) -> tuple[str, ...]:
    """The bundled models of the family that a word without figures names, or nearly does, the newest version first:
    `lama` means Llama 4 before Llama 2."""
    versions: dict[str, list[tuple[float, str]]] = {}
    for name, config in bundled_configs().items():
        family = FAMILY.match(name.rpartition("/")[2].lower())
        if family is not None and not config.alias:
            versions.setdefault(family[1], []).append((float(family[2] or 0.0), name))
    word = typed.strip().lower()
    near = difflib.get_close_matches(word, versions, 1, FAMILIAR) if word.isalpha() else []
    found = sorted(versions[near[0]], key=lambda version: -version[0]) if near else []
    return tuple(name for _, name in found[:NEWEST])


FAMILY = re.compile(r"([a-z]+)[-_]?(?:(\d(?:\.\d+)?)(?![\d.]*b))?")
"""A name without its maker: family, and its version where it is no size."""
FAMILIAR, NEWEST = 0.8, 4
"""unit: ratio; names. Chosen: one letter of five may be wrong; what stands in a line; moves the names that an error
offers."""


def _but(name: str, hint: str, nearest: Sequence[str]) -> UnknownNameError:
    """An unknown model, with the nearest names where a hint has them already."""
    error = UnknownNameError("model", name, (), hint)
    error.nearest = tuple(nearest)
    return error


def _without_tokens(name: str, kind: str | None) -> None:
    """Raises `UsageError` for a network that is built in, `UnknownNameError` for one that was only measured."""
    if networks.is_built_in(name) and not name.startswith(networks.BY_COUNTS):
        own = networks.find(name).entry.name
        raise UsageError(
            f"{own} is {kind or 'no language model'}, and this question is about language models",
            Sentence(
                *("ask: ", CommandText(f"plan {own}"), "; one step of its training: "),
                *(
                    CommandText(f"estimate {own} --chip h100 --training"),
                    "; measured: ",
                    CommandText(f"evidence match {own}"),
                ),
            ),
            field="model",
        )
    measured = benchmark_of(name)
    if measured is not None and measured.own and not measured.benchmark.generates:
        see = f"what MLPerf measured: chipwise evidence match {shlex.quote(shorten(name, 30))}"
        raise UnknownNameError("model", name, (), f"its speed is not predicted; {see}")
