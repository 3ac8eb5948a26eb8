"""What people have instead of a name: `FILE.py:function`, an ONNX file, a diffusers folder, files of weights.

Text is recognised by how it ends or what it begins with, nothing is opened to find out. User code runs here, when the
command line or Python names it; doors that serve others refuse every path before they come here. Pickles can run code
when they are loaded and are never opened.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from chipwise.catalog.configs import ADAPTER, INLINE, MAX_BYTES, cached_snapshot, parse_config
from chipwise.catalog.files import is_file, read_text
from chipwise.catalog.headers import (
    ENDINGS,
    StoredTensor,
    UnknownFamilyError,
    gguf_parts,
    header_config,
    refuse_unread,
    stored_tensors,
)
from chipwise.catalog.networks import is_built_in
from chipwise.catalog.snapshot import current, own_exists
from chipwise.errors import MissingExtraError, UnknownNameError, UsageError, shorten
from chipwise.units import format_bytes
from chipwise.values import dataclass
from chipwise.workload.op import Op
from chipwise.workload.program import Program, Stage

CODE = re.compile(r"^(?P<file>.+\.py)(?::(?P<name>[A-Za-z_]\w*))?$", re.DOTALL)
INDEX = "model_index.json"
SHARD = re.compile(r"^(?P<stem>.*?)(?P<variant>\.(?:fp16|bf16|fp32|fp8|non_ema|ema))?(?:-\d+-of-\d+)?\.safetensors$")
PARTS = re.compile(r"-of-(\d{5})\.gguf$")
MOST_SHARDS = 2000


def trace(module: Callable[..., Any], *example: Any, training: bool = False, **keywords: Any) -> Program:
    """The operators of a PyTorch module: `module(*example, **keywords)` is run without memory and without computing.

    Examples give shapes and types, tensors on "meta" do. `training`: forward and backward of one step; the loss is the
    one that the module returns, else the sum of its results. Weights may be real, fake or on "meta".

    | of the result | meaning |
    |---|---|
    | stages | the module; of training "forward" and "backward" |
    | parameters, weight_bytes | of parameters, each once; of parameters and buffers as they are stored |
    | activation_bytes | most bytes alive at a time, inputs included, weights and their gradients not |
    | settings["peak_bytes"] | most bytes alive at a time with weights and gradients |

    Raises `UsageError` for what depends on data, has no rule, or does not fit the example; `MissingExtraError` without
    torch.
    """
    return _torch().trace_module(module, example, keywords, training=training)  # type: ignore[no-any-return]


TRAINING = "cw.trace(module, example, training=True)"
TRACED = "traced:"
"""What begins the text that names a module which this process has traced."""
_TRACED: dict[str, Program] = {}


def traced_name(pipeline: Program) -> str:
    """The text that names a pipeline in questions of this process; saved answers hold the pipeline itself."""
    digest = hashlib.sha256(json.dumps(_plain(pipeline), sort_keys=True).encode()).hexdigest()
    text = f"{TRACED}{pipeline.name}-{digest[:8]}"
    _TRACED[text] = pipeline
    return text


def _traced(text: str) -> TracedSource:
    """A module that was traced, at the size and in the phase of its example."""
    if text not in _TRACED:
        what = f"{shorten(text)} is a module of the Python that traced it"
        raise UsageError(what, "name the function that builds it: FILE.py:function", field="model")
    pipeline = _TRACED[text]

    def load(training: bool, sizes: Mapping[str, Any]) -> Program:
        if training != pipeline.trained:
            was, hint = ("with", "training=True") if pipeline.trained else ("without", TRAINING)
            what = f"{shorten(pipeline.name)} was traced {was} its backward pass"
            raise UsageError(what, hint, field="training")
        return pipeline

    return TracedSource(text, False, load)


@dataclass(frozen=True)
class TracedSource:
    """A file or folder that is a network. `sized`: its configurations say no sizes, so that a question may."""

    text: str
    sized: bool
    load: Callable[[bool, Mapping[str, Any]], Program]

    def pipeline(self, *, training: bool = False, sizes: Mapping[str, Any] | None = None) -> Program:
        """The network as operators; `sizes` (batch, precision, resolution, steps, ...) of one that is `sized`.

        Raises `UsageError` for a file that cannot be read, with what to do, and for sizes of what has its own;
        `MissingExtraError` where torch or onnx is needed.
        """
        given = {name: value for name, value in (sizes or {}).items() if value is not None}
        if given and not self.sized:
            name = next(iter(given))
            raise UsageError(
                f"{shorten(self.text)}: {name} says nothing about it, its sizes and formats are its own",
                "leave it out, or change it where the network is built",
                field=name,
            )
        key = _key(self.text, training) + (json.dumps(given, sort_keys=True) if self.sized else "")
        held = current().content(key, lambda: json.dumps(_plain(self.load(training, given))).encode())
        return _read(held)


def _key(text: str, training: bool) -> str:
    """The name under which a saved answer holds a pipeline; what follows it are its sizes."""
    return f"{text}#pipeline{'-training' if training else ''}"


def source_of(text: str) -> TracedSource | None:
    """What a text names; None where it names no file of these kinds, so that it is a model's name, a configuration or
    dimensions. In a saved answer it is what was saved: code does not run again.

    Raises `UsageError` for a file that is not one of them after all.
    """
    saved = [name for name in current().given if name.startswith(_key(text, False))]
    if saved:
        return TracedSource(text, saved[0].endswith("}"), _unsaved(text))
    found = _found(text)
    return replace(found, load=_unsaved(text)) if found is not None and current().given else found


def pipeline_of(text: str, *, training: bool = False) -> Program | None:
    """The pipeline that a text names at its own sizes, None where it names none; see `source_of` and `TracedSource`."""
    found = source_of(text)
    return None if found is None else found.pipeline(training=training)


def is_code(text: str) -> bool:
    """Whether a text names a function of a Python file, which reading it would run."""
    return "\n" not in text and CODE.match(text) is not None


def own_source(text: str) -> TracedSource | None:
    """The same where no built-in model has that name; a file of weights that is there comes before such a name."""
    named = is_built_in(text) and not (text.endswith(ENDINGS) and own_exists(Path(text).expanduser()))
    return None if named else source_of(text)


def is_pipeline(model: str) -> bool:
    """Whether a text names a model that generates no tokens, or files which are one."""
    return is_built_in(model) or source_of(model) is not None


def _plain(pipeline: Program) -> dict[str, Any]:
    """A pipeline as JSON holds it."""
    data = asdict(pipeline)
    for stage in data["stages"]:
        for _, op in stage["ops"]:
            for name, value in op.items():
                op[name] = value if isinstance(value, (str, dict)) else float(value)
            op["dims"] = {name: float(value) for name, value in op["dims"].items()}
    return data


def _unsaved(text: str) -> Callable[[bool, Mapping[str, Any]], Program]:
    """What stands for reading a file where the facts are those of a saved answer."""

    def load(training: bool, sizes: Mapping[str, Any]) -> Program:
        raise UsageError(
            f"{shorten(text)}: the saved answer does not hold it, and files are not read for it",
            "ask again, and save the new answer",
        )

    return load


def _found(text: str) -> TracedSource | None:
    if text.startswith(TRACED):
        return _traced(text)
    if text.lstrip().startswith(INLINE):
        ours = len(text) <= MAX_BYTES and '"_class_name"' in text
        config = parse_config(text, "", "the configuration given").data if ours else {}
        return _configured(text, lambda: {"model": config}, "model") if _is_part(config) else None
    if "\n" in text or "\0" in text:
        return None
    refuse_unread(text)
    code = CODE.match(text)
    if code is not None:
        file = Path(code["file"]).expanduser()
        return TracedSource(text, False, lambda training, _: _of_code(file, code["name"], training=training))
    if text.endswith(".onnx"):
        return _still(text, lambda: _of_onnx(text))
    path = _path(text)
    if path is None:
        return None
    path = cached_snapshot(path) or path
    if text.endswith((".safetensors", ".gguf", ".safetensors.index.json")):
        weights = _weights_of(text, path)
        return _still(text, lambda: _of_weights(weights())) if weights else None
    return _in_folder(text, path)


def _weights_of(text: str, path: Path) -> Callable[[], Sequence[Path]] | None:
    """The files of weights that a file of them belongs to; None of a language model's, whose reader is another."""
    if text.endswith(".safetensors.index.json"):
        return lambda: _indexed(path)
    if text.endswith(".gguf"):
        return (lambda: _all_parts(path)) if is_file(path) and not _is_decoder(path) else None
    described = any(own_exists(path.with_name(n)) for n in ("config.json", ADAPTER))
    return (lambda: [path]) if own_exists(path) and not described and not _is_decoder(path) else None


def _in_folder(text: str, path: Path) -> TracedSource | None:
    """A pipeline's folder, one network with its configuration, or a folder of weights alone."""
    if path.name == INDEX or is_file(path / INDEX):
        folder = path.parent if path.name == INDEX else path
        return _configured(text, lambda: _components(folder), folder.resolve().name, folder, folders=True)
    config_file = path if path.name == "config.json" else path / "config.json"
    if is_file(config_file):
        config = parse_config(read_text(config_file, MAX_BYTES, "a configuration"), "", str(config_file)).data
        name = config_file.resolve().parent.name
        if not _is_part(config):
            return None
        return _configured(text, lambda: {name: config}, name, config_file.parent)
    found = _weights_in(path) if _is_folder(path) and not is_file(path / ADAPTER) else None
    return _still(text, lambda: _of_weights(found)) if found else None


def _still(text: str, load: Callable[[], Program]) -> TracedSource:
    """A file that says what a call computes or holds, and nothing of training."""

    def loaded(training: bool, sizes: Mapping[str, Any]) -> Program:
        if training:
            what = f"{shorten(text)}: the file says nothing of a training step"
            raise UsageError(what, "trace the module itself: FILE.py:function", field="training")
        return load()

    return TracedSource(text, False, loaded)


def _configured(
    text: str,
    configs: Callable[[], Mapping[str, Mapping[str, Any]]],
    name: str,
    folder: Path | None = None,
    *,
    folders: bool = False,
) -> TracedSource:
    """Parts that are written out by their configurations, at the sizes of a question."""

    def load(training: bool, sizes: Mapping[str, Any]) -> Program:
        return _of_configs(configs(), shorten(name, 120), folder, sizes, folders=folders, training=training)

    return TracedSource(text, True, load)


def _is_part(config: Mapping[str, Any]) -> bool:
    """Whether it is the configuration of a diffusers module, which transformers would not know."""
    return isinstance(config.get("_class_name"), str) and "model_type" not in config


def _path(text: str) -> Path | None:
    try:
        return Path(text).expanduser()
    except (OSError, ValueError, RuntimeError):
        return None


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


# -- code


def _torch() -> Any:
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingExtraError("tracing PyTorch", "torch") from None
    from chipwise.tracing import module

    return module


def _of_code(file: Path, name: str | None, *, training: bool) -> Program:
    build = _function(file, name)
    return _torch().build_and_trace(build, training=training, name=name)  # type: ignore[no-any-return]


def code_in(place: str) -> Callable[[], Any]:
    """The function of `FILE.py:function`; the file is run for it.

    Raises `UsageError` for other text and for a file that does not run, `UnknownNameError`, `MissingExtraError`.
    """
    code = CODE.match(place)
    if code is None:
        raise UsageError(f"{shorten(place)} is not FILE.py:function", "as in model.py:build_model")
    return _function(Path(code["file"]).expanduser(), code["name"])


def _function(file: Path, name: str | None) -> Callable[[], Any]:
    functions = _functions(file)
    if name is None:
        near = functions[0] if len(functions) == 1 else "build_model"
        raise UsageError(
            f"{file}: which function builds the model?",
            f"write {file}:{near}, a function that returns a module, or (module, example, ...)",
        )
    if name not in functions:
        raise UnknownNameError(
            f"function in {file}", name, functions, f"it has {shorten(', '.join(functions) or 'none', 80)}"
        )
    _torch()
    spec = importlib.util.spec_from_file_location("__chipwise_traced__", file)
    assert spec is not None
    assert spec.loader is not None
    code = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.resolve().parent))
    try:
        spec.loader.exec_module(code)
    except (Exception, SystemExit) as error:
        said = shorten(" ".join(str(error).split()) or type(error).__name__, 200)
        raise UsageError(
            f"{file}: {type(error).__name__}: {said}", "the file has to run by itself: python FILE.py"
        ) from None
    finally:
        sys.path.remove(str(file.resolve().parent))
    return getattr(code, name)  # type: ignore[no-any-return]


def _functions(file: Path) -> list[str]:
    """Names at the top of a file that can be called or imported, without running it."""
    text = read_text(file, MAX_BYTES, "Python")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        raise UsageError(f"{file}: not valid Python{line}", "does it run by itself?") from None
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names += [(a.asname or a.name).partition(".")[0] for a in node.names]
        elif isinstance(node, ast.Assign):
            names += [t.id for t in node.targets if isinstance(t, ast.Name)]
    return names


def _of_onnx(text: str) -> Program:
    try:
        import onnx  # noqa: F401
    except ImportError:
        raise MissingExtraError("reading ONNX", "onnx") from None
    from chipwise.tracing.onnx_graph import read_onnx

    return read_onnx(Path(text).expanduser())


# -- folders and files of weights


def _components(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """The configurations of a diffusers folder by its parts."""
    file = folder / INDEX
    index = parse_config(read_text(file, MAX_BYTES, "an index of parts"), folder.name, str(file)).data
    configs: dict[str, Mapping[str, Any]] = {}
    for part, kind in index.items():
        own = folder / part / "config.json"
        # an index names folders beside it, and nothing else
        if isinstance(kind, list) and re.fullmatch(r"\w+", part) and is_file(own):
            configs[part] = parse_config(read_text(own, MAX_BYTES, "a configuration"), part, str(own)).data
    if not configs:
        raise UsageError(f"{file}: none of its parts has a config.json", "is the download complete?")
    return configs


def _of_configs(
    configs: Mapping[str, Mapping[str, Any]],
    name: str,
    folder: Path | None,
    sizes: Mapping[str, Any],
    *,
    folders: bool,
    training: bool,
) -> Program:
    """Parts by their configurations, else by the weights that lie beside them."""
    classes = ", ".join(str(c.get("_class_name") or c.get("architectures") or "?") for c in configs.values())
    told: UsageError | UnknownNameError = UsageError(
        f"{name}: a module of class {shorten(classes, 120)} alone is not read from its configuration",
        "give the folder with model_index.json, or put its safetensors files into its folder to size it",
    )
    try:
        if folders:
            from chipwise.workload.media import from_parts  # families of networks: read when one is asked for

            return from_parts(configs, name=name, trained=training, **sizes)
    except (UsageError, UnknownNameError) as error:
        if isinstance(error, UsageError) and error.field:  # a size of the question, not a part
            raise
        told = error
    parts: dict[str, list[Path]] = {}
    for part in configs if folder is not None else ():
        assert folder is not None
        if found := _weights_in(folder / part if folders else folder):
            parts[part] = found
    if not parts:
        raise told
    return _weights_only(name, {part: _all_tensors(files) for part, files in parts.items()})


def _indexed(file: Path) -> list[Path]:
    data = parse_config(read_text(file, MAX_BYTES, "an index of weights"), file.stem, str(file)).data
    names = (
        sorted({str(n) for n in data.get("weight_map", {}).values()})
        if isinstance(data.get("weight_map"), dict)
        else []
    )
    if not names or any(Path(n).name != n for n in names):
        raise UsageError(f"{file}: no index of safetensors files in its folder", "expected an object 'weight_map'")
    absent = [n for n in names if not is_file(file.with_name(n))]
    if absent:
        raise UsageError(
            f"{file}: {len(absent)} of {len(names)} files are missing, as {absent[0]}", "download them all"
        )
    return [file.with_name(n) for n in names]


def _all_parts(file: Path) -> list[Path]:
    """The files of a GGUF model. Raises `UsageError` where some of several are missing."""
    found = gguf_parts(file)
    said = PARTS.search(file.name)
    if said is not None and len(found) != int(said[1]):
        what = f"{file}: {len(found)} of {int(said[1])} parts are here"
        raise UsageError(what, "put them into one folder")
    return found


def _weights_in(folder: Path) -> list[Path]:
    """The safetensors files of a folder: of several variants of one model the plain one."""
    try:
        names = sorted(p.name for p in folder.iterdir() if p.suffix == ".safetensors")[:MOST_SHARDS]
    except OSError:
        return []
    groups: dict[tuple[str, str], list[Path]] = {}
    for name in names:
        found = SHARD.match(name)
        assert found is not None
        groups.setdefault((found["variant"] or "", found["stem"]), []).append(folder / name)
    return groups[min(groups)] if groups else []


def _is_decoder(path: Path) -> bool:
    """Whether tensors tell a language model's family, so that its name does."""
    try:
        header_config(path)
    except UnknownFamilyError:
        return False
    return True


def _of_weights(files: Sequence[Path]) -> Program:
    name = shorten(files[0].stem if len(files) == 1 else files[0].resolve().parent.name, 120)
    return _weights_only(name, {name: _all_tensors(files)})


def _all_tensors(files: Iterable[Path]) -> dict[str, StoredTensor]:
    found: dict[str, StoredTensor] = {}
    for file in files:
        found |= stored_tensors(file)
    return found


def _weights_only(name: str, parts: Mapping[str, Mapping[str, StoredTensor]]) -> Program:
    """Parts of which only the weights are known: enough to say whether they fit, not how fast they are."""
    stages: list[Stage] = []
    said: list[str] = []
    sizes: dict[str, float] = {}
    for part, tensors in parts.items():
        held = float(sum(t.bytes for t in tensors.values()))
        stages.append(Stage(part, (), parameters=sum(t.entries for t in tensors.values()), weight_bytes=held))
        classes = by_class(tensors)
        told = ", ".join(f"{cls} {format_bytes(size)}" for cls, size in classes.items())
        said.append(f"{part}: {len(tensors):,} tensors, {told}")
        for cls, size in classes.items():
            sizes[f"{cls}_bytes"] = sizes.get(f"{cls}_bytes", 0.0) + size
    said.append("only headers of weights were read: operators, and so speed and activations, are not known")
    return Program(name, tuple(stages), settings=sizes, assumptions=tuple(said))


CLASSES: Mapping[str, re.Pattern[str]] = {
    "embedding": re.compile(
        r"embed_tokens|embeddings?\.|\bwte\b|\bwpe\b|token_embd|^shared\.|word_embed|tok_emb|relative_att"
    ),
    "head": re.compile(r"lm_head|^output\.weight|logits|classifier|^fc\."),
    "router": re.compile(r"router|(?:mlp|moe|ffn|block_sparse_moe)\.gate\."),
    "expert": re.compile(r"experts?\b"),
    "norm": re.compile(r"norm|(?:^|[._])ln(?:[._]|\d)|\bbn\d*\b"),
    "attention": re.compile(r"att|qkv|(?:^|[._])to_(?:q|k|v|out|add_out)|(?:q|k|v|o)_proj|add_[qkv]_proj"),
    "ffn": re.compile(
        r"mlp|ffn?\b|ff_|feed_?forward|(?:up|down|gate)_proj|fc\d|wi_?\d?\b|wo\b|DenseReluDense|intermediate"
    ),
}
"""Classes of tensors by words of their names, the first that matches."""


def by_class(tensors: Mapping[str, StoredTensor]) -> dict[str, float]:
    """Bytes by class: those of language models, "convolution", and "other"; the largest first."""
    found: dict[str, float] = {}
    for name, tensor in tensors.items():
        cls = next((c for c, words in CLASSES.items() if words.search(name)), None)
        if cls is None:
            cls = "convolution" if len(tensor.shape) >= 3 else "other"
        found[cls] = found.get(cls, 0.0) + tensor.bytes
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _read(data: bytes) -> Program:
    """A pipeline as it was saved."""
    given = json.loads(data)
    stages = tuple(
        Stage(**{**stage, "ops": tuple((n, Op(**op)) for n, op in stage["ops"])}) for stage in given["stages"]
    )
    return Program(**{**given, "stages": stages, "assumptions": tuple(given["assumptions"])})
