"""A model by name, path or folder, read and turned into operators."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from chipwise.api.probed import measured_chip
from chipwise.catalog.checkpoints import published_as
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import get_chip, read_chip_file
from chipwise.catalog.configs import ModelConfig, bundled_configs, find_config, known_names, named_config
from chipwise.catalog.override import with_figures
from chipwise.catalog.quality import UNKNOWN, load_format_tests, quality_of, quality_words, tested
from chipwise.errors import ChipwiseError, CommandText, Sentence, UnknownNameError, UsageError
from chipwise.report.assemble import model_record
from chipwise.report.records import ModelRecord
from chipwise.values import dataclass
from chipwise.workload.build import build
from chipwise.workload.families.decoder import families
from chipwise.workload.graph import Graph
from chipwise.workload.labels import format_name, parse_precision
from chipwise.workload.load import load_model
from chipwise.workload.media.tower import picture
from chipwise.workload.model import Model
from chipwise.workload.op import Op
from chipwise.workload.program import Pictures
from chipwise.workload.workload import Workload

CHANGED = "{}: changes the model's numerics; {}"


@dataclass(frozen=True)
class Loaded:
    """A model that was found and read, at the precision it will run in; `notes` say what that changed."""

    config: ModelConfig
    graph: Graph
    notes: tuple[str, ...] = ()


def load(model: str, precision: str | None = None, kv: str | None = None) -> Loaded:
    """A model by name, path or folder; `precision` replaces that of the checkpoint, `kv` that of its cache.

    Raises `UsageError` for a configuration that cannot be read, `UnknownNameError` for an unknown model or
    format.
    """
    config = find_config(model)
    return _loaded(
        _Read(config, scored=precision is not None), (config.weights or None) if precision is None else precision, kv
    )


class _Read:
    """A configuration as part of a cache key: by its content, since a file may change between two questions, and with
    the tables that it is read by, so that every answer carries them: of converted weights how they `scored` too."""

    def __init__(self, config: ModelConfig, *, scored: bool) -> None:
        self.config = config
        self.content = config.content
        self.tables = families(), load_format_tests() if scored else ()

    def __hash__(self) -> int:
        return hash(self.content)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Read) and other.content == self.content and other.tables == self.tables


@lru_cache(maxsize=256)
def _loaded(read: _Read, precision: str | None, kv: str | None) -> Loaded:
    config = read.config
    try:
        found = load_model(config)
    except ChipwiseError as error:
        error.field = error.field or "model"
        raise
    notes: list[str] = []
    if precision is not None and precision != found.precision.name:
        found = _as_published(found, precision) or found.at_precision(parse_precision(precision, found))
        notes.append(CHANGED.format(precision, quality_words(quality_of(found.name, found.precision.name))))
    if kv is not None and format_name(kv) != found.precision.kv.name:
        try:
            found = found.with_kv(format_name(kv))
        except UnknownNameError as error:
            error.field = "kv"
            raise
        notes.append(CHANGED.format(f"{kv} cache", UNKNOWN))
    return Loaded(config, build(found), tuple(notes))


def _as_published(model: Model, precision: str) -> Model | None:
    """The model as its bundled checkpoint in that format stores it, where that keeps some layers wider than others;
    None where none does."""
    label = format_name(precision)
    name = published_as(model.name, label)
    if name not in known_names():
        return None
    own = load_model(named_config(name))
    differ = any(layer.precision not in (None, own.precision) for _, layer in own.runs)
    return replace(own, name=model.name) if differ and own.precision.name == label else None


def load_generating(model: str, precision: str | None = None, kv: str | None = None) -> Loaded:
    """The same for a model whose generation can be timed.

    Raises `UsageError` for an encoder, which generates nothing, and for an encoder-decoder.
    """
    found = load(model, precision, kv)
    name = found.graph.model.name
    if not found.graph.model.ends.head:
        raise UsageError(
            f"{name} is an encoder and generates no tokens",
            Sentence(CommandText(f"fit {shlex.quote(model)}", "sizes it")),
        )
    if found.graph.encoder:
        raise UsageError(
            f"{name} has an encoder, which is not timed yet",
            Sentence(CommandText(f"fit {shlex.quote(model)}", "sizes it")),
        )
    return found


def check_length(found: Loaded, tokens: float) -> None:
    """Refuse a sequence that is longer than the model can read. Raises `UsageError`."""
    model = found.graph.model
    if model.max_context and tokens > model.max_context:
        what = f"{tokens:,.0f} tokens are more than {model.name} can read: {model.max_context:,}"
        longer = reading(found, tokens)
        if longer:
            hint = f"{longer[0]} has its dimensions and reads as many"
            raise UsageError(what, hint, field="model", instead=longer)
        raise UsageError(what, "prompt and output together: a smaller --in or --out", field="in")


def reading(found: Loaded, tokens: float) -> tuple[str, ...]:
    """Bundled models of the same maker, dimensions and format that read as many tokens."""
    model, params = found.graph.model, found.graph.parameters
    maker = model.name.split("/")[0].lower()
    names = []
    for name, config in bundled_configs().items():
        if name.split("/")[0].lower() != maker:
            continue
        try:
            other = load_model(config)
        except ChipwiseError:
            continue
        alike = (other.architecture, other.precision.name) == (model.architecture, model.precision.name)
        if alike and (other.max_context or 0) >= tokens and build(other).parameters == params:
            names.append(name)
    return tuple(sorted(names, key=lambda name: (len(name), name)))


def shown(found: Loaded, workload: Workload) -> tuple[Loaded, Workload]:
    """The model and the workload with the pictures of its requests: work of the vision tower, and tokens of the prompt.

    Raises `UsageError` where the model sees none, or its tower is not read.
    """
    if not workload.pictures:
        return found, workload
    model = found.graph.model
    if not model.towers:
        raise UsageError(
            f"{model.name} sees no pictures", "leave --images out, or name a model that does", field="images"
        )
    tower, tokens = model.towers[0], 0
    ops: list[tuple[float, Op]] = []
    layers = sum(repeat for repeat, _ in tower.runs)
    exchanged = exchanges = 0.0
    for p in workload.pictures:
        stage, each = picture(tower, p.width, p.height, batch=p.count)
        tokens += p.count * each
        ops += stage.ops
        # twice a layer its tokens at 16 bits
        rows = max(float(op.dims["m"]) for _, op in stage.ops if op.kind == "gemm")
        exchanged += 2.0 * layers * rows * tower.hidden * 2.0
        exchanges += 2.0 * layers
    longer = workload.longer(tokens)
    seen = Pictures(tuple(ops), exchanges, exchanged / exchanges, longer.prompt_tokens)
    sizes = ", ".join(f"{p.count} of {p.width}x{p.height}" for p in workload.pictures)
    flops = sum(n * op.flops for n, op in ops)
    note = (
        f"pictures ({sizes}) are {tokens:,} of {longer.prompt_tokens:,.0f} prompt tokens; the vision tower works on "
        f"them first, {flops / 1e12:.3g} TFLOP a request, cut by tensors as the model"
    )
    graph = replace(found.graph, pictures=seen)
    return replace(found, graph=graph, notes=(*found.notes, note)), longer


def scaled_positions(found: Loaded, tokens: float) -> Loaded:
    """The same with a note where a sequence is longer than the model was trained on, which positions that are computed
    bear. Raises `UsageError` for a table of positions, which ends."""
    model = found.graph.model
    if not model.max_context or tokens <= model.max_context:
        return found
    if any(table.name == "positions" for table in model.ends.tables):
        check_length(found, tokens)
    note = f"{tokens:,.0f} tokens are more than the {model.max_context:,} that {model.name} is made for: its positions "
    return replace(found, notes=(*found.notes, note + "have to be scaled (RoPE), quality not assessed"))


def describe(model: str, precision: str | None = None) -> ModelRecord:
    """A model in figures."""
    found = load(model, precision)
    record = model_record(found.graph, found.config)
    return replace(record, tested=tested(record.name))


def models() -> tuple[ModelRecord, ...]:
    """All bundled models, aliases left out."""
    names = [name for name, config in bundled_configs().items() if not config.alias]
    return tuple(describe(name) for name in names)


def find_chip(name: str, changes: Mapping[str, str] | None = None, own: Mapping[str, Chip] | None = None) -> Chip:
    """A chip by name, one of the user's `own` first, or of the user's own TOML file (`FILE.toml`, or `FILE.toml:ID` of
    several), or a machine that was probed (`measured`, `probe-...`), with figures replaced by `changes`.

    Raises `UsageError` for a file or figure that cannot be read, `UnknownNameError` for an unknown chip.
    """
    file, ending, wanted = name.partition(".toml")
    if own and name.strip() in own:
        chip = own[name.strip()]
    elif name == "measured" or name.startswith("probe-"):
        chip = measured_chip(name)
    elif not ending:
        chip = get_chip(name)
    else:
        chips = read_chip_file(Path(file + ".toml"))
        wanted = wanted.removeprefix(":")
        products = [c for c in chips if ":" not in c]  # the others are options of them
        if not wanted and len(products) != 1:
            raise UsageError(
                f"{file}.toml holds {len(products)} chips", f"name one: {file}.toml:{next(iter(products), 'ID')}"
            )
        wanted = wanted or products[0]
        if wanted not in chips:
            raise UnknownNameError(f"chip in {file}.toml", wanted, chips)
        chip = chips[wanted]
    return with_figures(chip, changes) if changes else chip
