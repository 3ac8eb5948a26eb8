"""Rows of training runs as the questions that a user would ask: the fields of `plan --task train`."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping
from dataclasses import field, replace
from functools import lru_cache
from itertools import product as product_of
from pathlib import Path
from typing import Any, NamedTuple

from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import get_chip
from chipwise.catalog.configs import BY_DIMENSIONS, find_config
from chipwise.catalog.files import is_file
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.catalog.software import all_software
from chipwise.catalog.trainer import Trainer, get_trainer, trainer_called, usual_trainer
from chipwise.errors import ChipwiseError, UsageError
from chipwise.evidence.rows import Row, positive, said_of
from chipwise.values import dataclass
from chipwise.workload.load import load_model

RULES = "training_runs"
MODELS = "evidence/data/training_models.csv"

# Words of a precision -> precision of the question; the first that is found decides.
PRECISIONS: tuple[tuple[str, str], ...] = (
    (r"^$|autocast|bf16|^amp_b", "bf16"),
    (r"fp16", "fp16"),
    (r"fp4", "nvfp4"),
    (r"mx", "mxfp8"),
    (r"fp8", "fp8"),
    (r"fp32|tf32", "fp32"),
)
RECOMPUTE: tuple[tuple[str, str], ...] = ((r"full", "full"), (r"selective|minimal", "selective"), (r"none", "none"))
LIKELY = "likely"  # gated feed-forward of a family, unless the count says otherwise
MODERN = ("1", LIKELY)
AS_ASKED = ("memory", "adapter")  # columns that are options of the question, in its words
ROUNDED = 0.01  # batches that are published in rounded figures are off by less
EXPERTS = r"moe|mixtral|deepseek|oss|a\d+b|\dx\d+b|llama.?4|kimi|switch|maverick|scout|nemotron.?3|grok|dbrx|\bnano\b"


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """A row as a question: `fields` are those of `plan --task train`, `assumed` what neither the row nor its
    publication says about the network, the batch or the layout."""

    row: Row
    fields: Mapping[str, Any]
    assumed: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class _Entry:
    """A row, and what is known of its publication by field."""

    row: Row
    said: Mapping[str, str]

    def number(self, column: str, field: str = "") -> float | None:
        """A figure of the row, else of its publication."""
        said = self.said.get(field or column)
        return positive(self.row, column) or (float(said) if said else None)

    def degree(self, name: str) -> int | None:
        """A whole figure."""
        value = self.number(name)
        return None if value is None else int(value)

    def chip(self) -> Chip:
        """The kind of its chips. Raises `UsageError`."""
        name = self.row.get("chip") or self.said.get("chip")
        if not name:
            part = self.row.get("accelerator", "")[:60]
            raise UsageError(f"no chip for '{part}'", "name one: chipwise chips list")
        return get_chip(name)

    def chips(self) -> int:
        """Chips, where devices or dies were counted too. Raises `UsageError`."""
        counted = self.number("chips_total", "chips")
        if counted is None:
            raise UsageError(f"{self.row.get('row_id', 'row')}: no chips_total", "say how many chips")
        return math.ceil(counted / float(self.said.get("devices", 1)))

    def batch(self, chips: int) -> int | None:
        """Sequences of a step, as the publication says it."""
        if per_chip := self.said.get("batch_per_chip"):
            return round(float(per_chip) * chips)
        return int(self.said["global_batch"]) if "global_batch" in self.said else None

    def sequence(self, parts: int) -> int | None:
        """Tokens of a sequence that is cut in equal parts: lengths are published in rounded figures."""
        tokens = self.number("seq_len", "seq")
        if tokens is None:
            return None
        return round(tokens / parts) * parts if int(tokens) % parts else int(tokens)


def read_run(row: Row, folder: Path | None = None) -> TrainingRun:
    """The question that a row of `training` or `mlperf_training` asks; `config_file` is looked up in `folder` and its
    `models`, and so is a model by its full name.

    What is blank in the row and in what its publication is known to have done stays open: the answer chooses it, as
    for any user. Memory refuses nothing: the run exists. Raises `UsageError` saying what the row lacks.
    """
    said = said_of(row, RULES)
    run = _Entry(row, said)
    if "refuse" in said:
        raise UsageError(f"{_name(row)}: {said['refuse']}", "training of transformers over tokens is predicted")
    chips = run.chips()
    chip = run.chip()
    named = _trainer(row, said, chip)
    trainer = named or usual_trainer(chip)
    model, notes = _model(run, folder)
    layout, batch, open_ = _layout(run, trainer, chips * trainer.devices_of(chip))
    batch = run.batch(chips) if batch is None else batch
    seq = run.sequence(int(layout.get("cp", 1)))
    fields = {
        "model": model,
        "chips": chip.id,
        "counts": str(chips),
        "precision": said.get("precision") or _precision(row),
        "method": said.get("method", row.get("method") or "full"),
        "layout": _listed(layout),
        "known_to_run": True,
        "trainer": named and named.id,
        "seq": None if seq is None else str(seq),
        "global_batch": batch,
        "set_": said.get("set"),
        **_as_asked(run, chips, chip),
    }
    blank = [what for what, value in (("sequences", seq), ("global batch", batch)) if value is None]
    return TrainingRun(row, {k: v for k, v in fields.items() if v is not None}, (*notes, *blank, *open_))


def _listed(values: Mapping[str, object]) -> str:
    return ",".join(f"{k}={v}" for k, v in values.items())


def _trainer(row: Row, said: Mapping[str, str], chip: Chip) -> Trainer | None:
    """The trainer that a publication is known to have, else of the id or name that a row has, of those that run on the
    chip; one that nobody is called is software not listed."""
    if "trainer" in said:
        return get_trainer(said["trainer"])
    text = (row.get("trainer") or row.get("framework", "")).strip()
    found = all_software(Trainer).get(text.lower()) or trainer_called(text, chip)
    return found or (get_trainer("other") if text and get_trainer("other").on(chip) else None)


def _as_asked(run: _Entry, chips: int, chip: Chip) -> dict[str, str | None]:
    """Options of the question that a row has in its words, and the network."""
    known = _listed(_network(run, chips, chip.scaleup.domain if chip.scaleup else 1))
    asked = {name: run.row.get(name) or None for name in AS_ASKED}
    return {**asked, "network": run.row.get("network") or known or None}


@per_snapshot
def _models() -> tuple[tuple[re.Pattern[str], str], ...]:
    table = csv.DictReader(io.StringIO(shipped_text(MODELS)))
    return tuple((re.compile(r["name"]), r["model"]) for r in table)


def _name(row: Row) -> str:
    return row.get("model") or row.get("benchmark") or ""


def _precision(row: Row) -> str:
    text = row.get("precision", "").lower()
    found = next((name for pattern, name in PRECISIONS if re.search(pattern, text)), None)
    if found is None:
        raise UsageError(f"precision '{text[:40]}' is not read", "one of fp32, fp16, bf16, fp8, mxfp8, nvfp4")
    return found


def _model(run: _Entry, folder: Path | None) -> tuple[str, tuple[str, ...]]:
    """The network of a row: a configuration, a name, or dimensions; and what had to be assumed about it."""
    row = run.row
    beside = _beside(row, folder)
    if beside is not None:
        return beside, ()
    if "model" in run.said:
        return run.said["model"], ()
    name = _name(row)
    layers, hidden = positive(row, "layers"), positive(row, "hidden")
    filled = (row.get("dims_filled_in") or "") == "1"  # by whoever made the table, not by the publication
    routed = bool(re.search(EXPERTS, name.lower()))
    named = _named(row, name, layers)
    if filled or (routed and not positive(row, "experts")) or not layers or not hidden:
        if named is not None:
            return named, ()
        if routed:
            raise UsageError(f"{name}: its experts are not known", "name a bundled model: chipwise models list")
    if named is not None and _sized(named) == (layers, hidden, positive(row, "heads")):
        return named, ()
    return _by_dimensions(run, layers, hidden)


def _named(row: Row, name: str, layers: float | None) -> str | None:
    """The model that a row asks about by name, known by its full one or by a part of it; None: it is not known."""
    if given := row.get("ask_model"):
        return given
    if _bundled(name, layers):
        return name
    return next((model for pattern, model in _models() if pattern.search(name.lower())), None)


@lru_cache(maxsize=256)
def _bundled(name: str, layers: float | None) -> bool:
    """Whether a model without dimensions is known by its full name, `owner/model`."""
    try:
        return not layers and name.count("/") == 1 and find_config(name) is not None
    except ChipwiseError:
        return False


@lru_cache(maxsize=256)
def _sized(name: str) -> tuple[float, float, float]:
    """Layers, width and heads of a model by name or dimensions."""
    found = load_model(find_config(name))
    return float(found.layers), float(found.hidden), float(getattr(found.runs[0][1].mixer, "heads", 0))


def _beside(row: Row, folder: Path | None) -> str | None:
    """The configuration beside the rows: the file that a row names, in `models/` or next to the table, or one of the
    model's own name."""
    given, here = row.get("config_file", ""), folder or Path()
    if given:
        found = here / "models" / given
        return str(found if is_file(found) else here / given)
    own = here / "models" / f"{_name(row).replace('/', '__')}.json"
    return str(own) if folder and "/" in _name(row) and is_file(own) else None


def _by_dimensions(run: _Entry, layers: float | None, hidden: float | None) -> tuple[str, tuple[str, ...]]:
    row = run.row
    notes: tuple[str, ...] = ()
    params = positive(row, "params") or _params_in_name(_name(row))
    if not layers or not hidden:
        layers, hidden = _shape(row, params, layers, hidden)
        notes = ("dimensions",)
    encoder, gating = run.said.get("encoder") == "1", run.said.get("gated", "")
    heads, experts = positive(row, "heads") or max(round(hidden / 128.0), 1), positive(row, "experts")
    ffn = positive(row, "ffn")
    usual = round(hidden * 8.0 / 3.0) if gating in MODERN else 4.0 * hidden
    kv_heads, vocab = positive(row, "kv_heads") or heads, positive(row, "vocab")
    dims = _Sizes(layers, hidden, heads, kv_heads, ffn or usual, vocab or (30522.0 if encoder else 51200.0))
    more = {"experts": experts, "top_k": positive(row, "topk") or 2.0} if experts else {}
    found = dims.variant(params if ffn and not experts else None, gating)
    return dims.name(found, more, causal=not encoder), notes


def _params_in_name(name: str) -> float | None:
    match = re.search(r"(\d+(?:\.\d+)?)\s*([bm])\b", name, re.IGNORECASE)
    if match is None:
        return None
    return float(match.group(1)) * (1e9 if match.group(2).lower() == "b" else 1e6)


def _shape(row: Row, params: float | None, layers: float | None, hidden: float | None) -> tuple[float, float]:
    """12 L h^2 = params; where both are unknown, h = 115 L, the mean of published GPTs above 10 B."""
    if not params:
        raise UsageError(f"{_name(row)}: no dimensions", "fill layers, hidden, heads and ffn")
    if hidden:
        return max(round(params / (12.0 * hidden**2)), 1), hidden
    if layers:
        return layers, max(round((params / (12.0 * layers)) ** 0.5 / 128.0), 1) * 128.0
    depth = (params / (12.0 * 115.0**2)) ** (1.0 / 3.0)
    return max(round(depth), 1), max(round(115.0 * depth / 128.0), 1) * 128.0


class _Variant(NamedTuple):
    """What dimensions leave open: whether the feed-forward is gated, the size of a head, whether the head reads the
    embedding table."""

    gated: bool
    head_dim: float
    tied: bool


class _Sizes(NamedTuple):
    """Sizes of a transformer."""

    layers: float
    hidden: float
    heads: float
    kv_heads: float
    ffn: float
    vocab: float

    def variant(self, params: float | None, gating: str) -> _Variant:
        """What reproduces a parameter count best; what is unusual of a family costs more than the rounding of names.

        `gating` is what is known of the family: "1" gated, "0" not, `LIKELY`, or "", where the count decides. GPT-like
        models have heads of the usual size and one table; what their count holds more are learned positions.
        """
        modern, usual = gating in MODERN, self.hidden / self.heads
        if params is None:
            return _Variant(modern, usual, not modern)
        gates = {"1": (True,), "0": (False,)}.get(gating, (modern, not modern))
        sizes = dict.fromkeys((usual, 128.0, 256.0) if modern else (usual,))
        products = self.hidden * (2.0 * self.heads + 2.0 * self.kv_heads)  # of attention, per entry of a head

        def miss(choice: _Variant) -> float:
            layer = products * choice.head_dim + (3.0 if choice.gated else 2.0) * (self.hidden * self.ffn)
            unusual = 0.03 * (choice.gated != modern) + 0.01 * (choice.head_dim != usual)
            unusual += 0.1 * (choice.tied == modern)
            tables = (1.0 if choice.tied else 2.0) * (self.vocab * self.hidden)
            return abs((self.layers * layer + tables) / params - 1.0) + unusual

        tables = (False, True) if modern else (True,)
        return min((_Variant(*each) for each in product_of(gates, sizes, tables)), key=miss)

    def name(self, choice: _Variant, more: dict[str, float], causal: bool) -> str:
        """The model of these dimensions: what is usual is not said."""
        usual = {"kv_heads": self.heads, "head_dim": self.hidden / self.heads, "gated": 1, "tied": 0, "causal": 1}
        sizes = {name: getattr(self, name) for name in ("layers", "hidden", "heads", "ffn", "vocab", "kv_heads")}
        parts = sizes | {"head_dim": round(choice.head_dim)} | more
        parts |= {"gated": choice.gated, "tied": choice.tied, "causal": causal}
        return BY_DIMENSIONS + ",".join(f"{k}={v:.0f}" for k, v in parts.items() if v != usual.get(k))


@dataclass(frozen=True)
class _Degrees:
    """What a row says of its layout, with what follows from its batch; None where that stays open. `micro` and `batch`:
    sequences of a micro-batch and of a step."""

    tp: int | None
    pp: int | None
    cp: int | None
    dp: int | None
    ep: int | None
    micro: float | None
    batch: float | None

    @property
    def whole(self) -> bool:
        """Whether all but copies is said."""
        return None not in (self.tp, self.pp, self.cp)

    def pins(self, devices: int) -> dict[str, int | str]:
        """Degrees that are said."""
        said = {name: getattr(self, name) for name in ("tp", "pp", "cp")}
        pins: dict[str, int | str] = {name: value for name, value in said.items() if value is not None}
        if not self.whole and self.dp and devices % (self.dp * _product(pins)) == 0:
            pins["dp"] = self.dp
        return pins | ({"ep": self.ep} if self.ep else {})

    def ranks(self, devices: int) -> int | None:
        """Copies of the model, where that follows."""
        split = _product({n: v for n, v in self.pins(devices).items() if n in ("tp", "pp", "cp")})
        return devices // split if self.whole and devices % split == 0 else None

    def accumulated(self, steps: float, devices: int) -> _Degrees:
        """With what follows from the micro-batches that a replica takes in a step."""
        if not self.batch:
            return self
        micro = self.micro or max(self.batch / (steps * devices), 1.0)
        dp = int(min(self.batch / (steps * micro), devices))
        cp = self.cp
        if self.tp and self.pp and cp is None and devices % (dp * self.tp * self.pp) == 0:
            cp = devices // (dp * self.tp * self.pp)
        return replace(self, micro=micro, dp=dp, cp=cp)

    def divided(self, row: Row, devices: int) -> _Degrees:
        """With a batch that replicas divide. Batches are published in rounded figures; where they hold fewer sequences
        than replicas, more devices share one than is said."""
        ranks, batch = self.ranks(devices), self.batch
        if not ranks or not batch or not batch % ranks:
            return self
        near = max(round(batch / ranks), 1) * ranks
        if abs(near / batch - 1.0) < ROUNDED:
            return replace(self, batch=float(near))
        if batch >= ranks:
            return self
        tp, pp, ep = (getattr(self, name) if positive(row, name) else None for name in ("tp", "pp", "ep"))
        return replace(self, tp=tp, pp=pp, ep=ep, cp=None, dp=None)


def _product(degrees: Mapping[str, int | str]) -> int:
    return math.prod(int(value) for value in degrees.values())


def _degrees(run: _Entry, devices: int) -> _Degrees:
    """The degrees of a row."""
    row = run.row
    tp, pp, cp, ep, dp = (run.degree(name) for name in ("tp", "pp", "cp", "ep", "dp"))
    micro, batch = positive(row, "micro_batch"), positive(row, "global_batch")
    if tp is None and pp is None and dp is None and micro and batch == micro * devices:
        tp = pp = 1  # every device takes one micro-batch of a step
    found = _Degrees(tp, pp, cp, dp, ep, micro, batch)
    accumulate = positive(row, "grad_accum") if row.get("benchmark") else None
    if accumulate:
        found = found.accumulated(accumulate, devices)
    return found if tp is None or pp is None else replace(found, cp=found.cp or 1)


def _layout(run: _Entry, trainer: Trainer, devices: int) -> tuple[dict[str, int | str], int | None, tuple[str, ...]]:
    """(what is pinned, sequences of a step, what stays open) of a row, its degrees and batch."""
    row, said = run.row, run.said
    degrees = _degrees(run, devices).divided(row, devices)
    ranks, batch = degrees.ranks(devices), degrees.batch
    if batch is None and trainer.one_each and ranks:
        batch = float(int(degrees.micro or 0) * ranks) or None
    pins = degrees.pins(devices) | _stages(run, degrees)
    pins |= _micro_batch(said, trainer, replace(degrees, batch=batch), ranks)
    pins |= _sharding(row, trainer, degrees.pp or 1, ranks)
    text = row.get("recompute", "").lower()
    recompute = said.get("recompute") or next((to for at, to in RECOMPUTE if re.search(at, text)), None)
    pins |= {"recompute": recompute} if recompute else {}
    pins |= {"sequence": int(said["sequence"])} if "sequence" in said else {}
    open_ = () if degrees.whole or trainer.zero == (3,) else ("layout",)
    offload = int(said.get("offload", row.get("offload", "") not in ("", "0")))
    return pins | {"offload": offload}, None if batch is None else int(batch), open_


def _stages(run: _Entry, degrees: _Degrees) -> dict[str, int | str]:
    """The schedule of a pipeline, or how many parts a stage has."""
    if not degrees.pp or degrees.pp == 1:
        return {}
    if "schedule" in run.said:
        return {"schedule": run.said["schedule"]}
    parts = run.degree("vp")
    return {"vp": parts} if parts else {}


def _micro_batch(
    said: Mapping[str, str], trainer: Trainer, degrees: _Degrees, ranks: int | None
) -> dict[str, int | str]:
    """Sequences of a micro-batch, where the trainer accumulates or a pipeline passes them on, and the batch is made
    of them; of a trainer that counts those of a rank, what its stages pass on is said apart."""
    stages = (degrees.pp or 1) > 1
    if not degrees.micro or not int(degrees.micro) or not (trainer.accumulates or stages):
        return {}
    passed = float(said.get("micro_batch", degrees.micro)) or degrees.micro
    local = int(passed if trainer.one_each and stages else degrees.micro)
    fits = degrees.batch is None or ranks is None or int(degrees.batch) % (local * ranks) == 0
    return {"micro_batch": local} if fits else {}


def _zero(text: str) -> tuple[int, int] | None:
    """Stage of ZeRO and ranks that it cuts over (0: not said), as publications write them: FULL_SHARD, ZeRO-1 size 4,
    32."""
    if "full_shard" in text or text == "fsdp":
        return 3, 0
    if "grad_op" in text:
        return 2, 0
    if "zero" in text:
        size, stage = re.search(r"\((\d+)\)|size (\d+)", text), re.search(r"zero-(\d)", text)
        return int(stage[1]) if stage else 1, int(size[1] or size[2]) if size else 0
    degree = re.match(r"\d+", text)
    return (3, int(degree[0])) if degree and int(degree[0]) > 1 else None


def _sharding(row: Row, trainer: Trainer, stages: int, ranks: int | None) -> dict[str, int | str]:
    """Stage of ZeRO and ranks that it cuts over, where more than one copy is there to cut."""
    found = _zero(row.get("sharding", "").lower())
    if ranks == 1 or found is None:
        return {}
    zero, shard = found
    if zero == 3 and stages > 1 and trainer.kind == "fused":
        return {"zero": 1}
    pins: dict[str, int | str] = {"zero": zero}
    if shard and ranks and ranks % shard == 0 and shard < ranks:
        pins["shard"] = shard
    elif zero == 3 and ranks and shard in (0, ranks):
        pins["shard"] = ranks * int(positive(row, "cp") or 1)
    return pins


def _network(run: _Entry, chips: int, usual: int) -> dict[str, str]:
    """Speed beyond the fabric and chips on it, where row or publication says more than the catalogue."""
    found = {name: run.said[name] for name in ("nic", "domain") if name in run.said}
    if "slices" in run.said:
        found["domain"] = f"{chips / float(run.said['slices']):.0f}"
    per_node = positive(run.row, "chips_per_node")
    if per_node and "domain" not in found and per_node < usual < 72:
        found["domain"] = f"{per_node:.0f}"
    return found
