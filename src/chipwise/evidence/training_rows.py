"""Rows of training runs as the questions that a user would ask: the fields of `plan --task train`."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product as product_of
from pathlib import Path
from typing import Any, NamedTuple

from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import get_chip
from chipwise.catalog.configs import BY_DIMENSIONS, find_config
from chipwise.catalog.files import is_file
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.catalog.trainer import Trainer, get_trainer, trainer_called, usual_trainer
from chipwise.errors import UsageError
from chipwise.evidence.publications import said_of
from chipwise.evidence.rows import Row
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
RECOMPUTE: tuple[tuple[str, str], ...] = (
    (r"full", "full"),
    (r"selective|minimal", "selective"),
    (r"none", "none"),
)
LIKELY = "likely"  # gated feed-forward of a family, unless the count says otherwise
ROUNDED = 0.01  # batches that are published in rounded figures are off by less
EXPERTS = r"moe|mixtral|deepseek|oss|a\d+b|\dx\d+b|llama.?4|kimi|switch|maverick|scout|nemotron.?3|grok|dbrx|\bnano\b"


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """A row as a question: `fields` are those of `plan --task train`, `assumed` what neither the row nor its
    publication says about the network, the batch or the layout."""

    row: Row
    fields: Mapping[str, Any]
    assumed: tuple[str, ...] = field(default=())


def number(row: Row, column: str) -> float | None:
    """A positive number of a row; None where it is blank. Raises `UsageError`."""
    text = (row.get(column) or "").strip()
    try:
        value = float(text) if text else 0.0
    except ValueError:
        raise UsageError(f"{column} is '{text[:40]}'", "expected a number") from None
    return value if value > 0 else None


def read_run(row: Row, folder: Path | None = None) -> TrainingRun:
    """The question that a row of `training` or `mlperf_training` asks; `config_file` is looked up in `folder` and its
    `models`, and so is a model by its full name.

    What is blank in the row and in what its publication is known to have done stays open: the answer chooses it, as
    for any user. Memory refuses nothing: the run exists. Raises `UsageError` saying what the row lacks.
    """
    said = said_of(row, RULES)
    if "refuse" in said:
        raise UsageError(
            f"{_name(row)}: {said['refuse']}", "training of transformers over tokens is predicted"
        )
    chips = number(row, "chips_total") or (float(said["chips"]) if "chips" in said else None)
    if chips is None:
        raise UsageError(f"{row.get('row_id', 'row')}: no chips_total", "say how many chips")
    chips = math.ceil(chips / float(said.get("devices", 1)))
    chip = get_chip(row.get("chip") or said.get("chip") or _no_chip(row))
    framework = row.get("framework", "")
    named = get_trainer(said["trainer"]) if "trainer" in said else _trainer(framework, chip)
    trainer = named or usual_trainer(chip)
    devices = int(chips) * trainer.devices_of(chip)
    model, notes = _model(row, said, folder)
    layout, batch, open_ = _layout(row, said, trainer, devices)
    per_chip = said.get("batch_per_chip")
    if batch is None and ("global_batch" in said or per_chip):
        batch = round(float(per_chip) * chips) if per_chip else int(said["global_batch"])
    seq = number(row, "seq_len") or (float(said["seq"]) if "seq" in said else None)
    if seq and int(seq) % int(layout.get("cp", 1)):  # published in rounded figures
        seq = round(seq / int(layout["cp"])) * float(layout["cp"])
    fields: dict[str, Any] = {
        "model": model,
        "chips": chip.id,
        "counts": str(int(chips)),
        "precision": said.get("precision") or _precision(row),
        "method": said.get("method") or row.get("method") or "full",
        "layout": ",".join(f"{k}={v}" for k, v in layout.items()),
        "known_to_run": True,
    }
    network = _network(row, said, chips, chip.scaleup.domain if chip.scaleup else 1)
    given = {
        "trainer": named.id if named else None,
        "seq": None if seq is None else str(int(seq)),
        "global_batch": None if batch is None else batch,
        "network": ",".join(f"{k}={v}" for k, v in network.items()) or None,
        "set_": said.get("set"),
    }
    fields |= {k: v for k, v in given.items() if v is not None}
    notes += tuple(what for what, value in (("sequences", seq), ("global batch", batch)) if value is None)
    return TrainingRun(row, fields, (*notes, *open_))


def _trainer(framework: str, chip: Chip) -> Trainer | None:
    """The trainer of a name, of those that run on the chip; one that nobody is called is software not listed."""
    found = trainer_called(framework, chip)
    return found or (get_trainer("other") if framework.strip() and get_trainer("other").on(chip) else None)


@per_snapshot
def _models() -> tuple[tuple[re.Pattern[str], str], ...]:
    table = csv.DictReader(io.StringIO(shipped_text(MODELS)))
    return tuple((re.compile(r["name"]), r["model"]) for r in table)


def _name(row: Row) -> str:
    return row.get("model") or row.get("benchmark") or ""


def _no_chip(row: Row) -> str:
    raise UsageError(f"no chip for '{row.get('accelerator', '')[:60]}'", "name one: chipwise chips list")


def _precision(row: Row) -> str:
    text = row.get("precision", "").lower()
    found = next((name for pattern, name in PRECISIONS if re.search(pattern, text)), None)
    if found is None:
        raise UsageError(f"precision '{text[:40]}' is not read", "one of fp32, fp16, bf16, fp8, mxfp8, nvfp4")
    return found


def _model(row: Row, said: Mapping[str, str], folder: Path | None) -> tuple[str, tuple[str, ...]]:
    """The network of a row: a configuration, a name, or dimensions; and what had to be assumed about it."""
    beside = _beside(row, folder)
    if beside is not None:
        return beside, ()
    if "model" in said:
        return said["model"], ()
    name = _name(row)
    layers, hidden = number(row, "layers"), number(row, "hidden")
    filled = (row.get("dims_filled_in") or "") == "1"  # by whoever made the table, not by the publication
    routed = bool(re.search(EXPERTS, name.lower()))
    named = next((model for pattern, model in _models() if pattern.search(name.lower())), None)
    if filled or (routed and not number(row, "experts")) or not layers or not hidden:
        if named is not None:
            return named, ()
        if routed:
            raise UsageError(
                f"{name}: its experts are not known", "name a bundled model: chipwise models list"
            )
    if named is not None and _sized(named) == (layers, hidden, number(row, "heads")):
        return named, ()
    return _by_dimensions(row, said, layers, hidden)


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


def _by_dimensions(
    row: Row, said: Mapping[str, str], layers: float | None, hidden: float | None
) -> tuple[str, tuple[str, ...]]:
    params = number(row, "params") or _params_in_name(_name(row))
    notes: tuple[str, ...] = ()
    if not layers or not hidden:
        if not params:
            raise UsageError(f"{_name(row)}: no dimensions", "fill layers, hidden, heads and ffn")
        layers, hidden = _shape(params, layers, hidden)
        notes = ("dimensions",)
    encoder, gating = said.get("encoder") == "1", said.get("gated", "")
    modern = gating in ("1", LIKELY)
    heads = number(row, "heads") or max(round(hidden / 128.0), 1)
    kv_heads = number(row, "kv_heads") or heads
    vocab = number(row, "vocab") or (30522.0 if encoder else 51200.0)
    ffn = number(row, "ffn")
    width = ffn or (round(hidden * 8.0 / 3.0) if modern else 4.0 * hidden)
    found = _Variant(modern, hidden / heads, not modern)
    if params and ffn and not number(row, "experts"):
        attention = hidden * (2.0 * heads + 2.0 * kv_heads)
        found = _variant(params, layers, attention, hidden * width, vocab * hidden, hidden / heads, gating)
    parts = {"layers": layers, "hidden": hidden, "heads": heads, "ffn": width, "vocab": vocab}
    if kv_heads != heads:
        parts["kv_heads"] = kv_heads
    if found.head_dim != hidden / heads or hidden % heads:
        parts["head_dim"] = round(found.head_dim)
    if number(row, "experts"):
        parts |= {"experts": number(row, "experts") or 1.0, "top_k": number(row, "topk") or 2.0}
    parts |= {} if found.gated else {"gated": 0}
    parts |= {"tied": 1} if found.tied else {}
    parts |= {"causal": 0} if encoder else {}
    return BY_DIMENSIONS + ",".join(f"{k}={v:.0f}" for k, v in parts.items()), notes


def _params_in_name(name: str) -> float | None:
    match = re.search(r"(\d+(?:\.\d+)?)\s*([bm])\b", name, re.IGNORECASE)
    if match is None:
        return None
    return float(match.group(1)) * (1e9 if match.group(2).lower() == "b" else 1e6)


def _shape(params: float, layers: float | None, hidden: float | None) -> tuple[float, float]:
    """12 L h^2 = params; where both are unknown, h = 115 L, the mean of published GPTs above 10 B."""
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


def _variant(
    params: float, layers: float, attention: float, product: float, table: float, usual: float, gating: str
) -> _Variant:
    """What reproduces a parameter count best; what is unusual of a family costs more than the rounding of names.

    `attention`: parameters of a layer's four products per entry of a head, `product`: those of one product of its
    feed-forward, `table`: of tokens. `gating` is what is known of the family: "1" gated, "0" not, `LIKELY`, or "",
    where the count decides. GPT-like models have heads of the `usual` size and one table; what their count holds more
    are learned positions.
    """
    modern = gating in ("1", LIKELY)
    gates = {"1": (True,), "0": (False,)}.get(gating, (modern, not modern))
    sizes = dict.fromkeys((usual, 128.0, 256.0) if modern else (usual,))

    def miss(choice: _Variant) -> float:
        layer = attention * choice.head_dim + (3.0 if choice.gated else 2.0) * product
        unusual = 0.03 * (choice.gated != modern) + 0.01 * (choice.head_dim != usual)
        unusual += 0.1 * (choice.tied == modern)
        return abs((layers * layer + (1.0 if choice.tied else 2.0) * table) / params - 1.0) + unusual

    tables = (False, True) if modern else (True,)
    return min((_Variant(*each) for each in product_of(gates, sizes, tables)), key=miss)


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
        return self.tp is not None and self.pp is not None

    def pins(self, devices: int) -> dict[str, int | str]:
        """Degrees that are said."""
        said = {name: getattr(self, name) for name in ("tp", "pp", "cp")}
        pins: dict[str, int | str] = {name: value for name, value in said.items() if value is not None}
        if not self.whole and self.dp and devices % (self.dp * _product(pins)) == 0:
            pins["dp"] = self.dp
        return pins | ({"ep": self.ep} if self.ep and self.ep > 1 else {})

    def ranks(self, devices: int) -> int | None:
        """Copies of the model, where that follows."""
        split = _product({n: v for n, v in self.pins(devices).items() if n in ("tp", "pp", "cp")})
        return devices // split if self.whole and devices % split == 0 else None


def _product(degrees: Mapping[str, int | str]) -> int:
    return math.prod(int(value) for value in degrees.values())


def _degree(row: Row, said: Mapping[str, str], name: str) -> int | None:
    value = number(row, name) or (float(said[name]) if said.get(name) else None)
    return None if value is None else int(value)


def _degrees(row: Row, said: Mapping[str, str], devices: int) -> _Degrees:
    """The degrees of a row."""
    tp, pp, cp, ep, dp = (_degree(row, said, name) for name in ("tp", "pp", "cp", "ep", "dp"))
    micro, batch = number(row, "micro_batch"), number(row, "global_batch")
    accumulate = number(row, "grad_accum") if row.get("benchmark") else None
    if tp is None and pp is None and dp is None and micro and batch == micro * devices:
        tp = pp = 1  # every device takes one micro-batch of a step
    if accumulate and batch:
        micro = micro or max(batch / (accumulate * devices), 1.0)
        dp = int(min(batch / (accumulate * micro), devices))
        if tp and pp and cp is None and devices % (dp * tp * pp) == 0:
            cp = devices // (dp * tp * pp)
    if tp is not None and pp is not None:
        cp = cp or 1
    return _Degrees(tp, pp, cp, dp, ep, micro, batch)


def _layout(
    row: Row, said: Mapping[str, str], trainer: Trainer, devices: int
) -> tuple[dict[str, int | str], int | None, tuple[str, ...]]:
    """(what is pinned, sequences of a step, what stays open) of a row, its degrees and batch."""
    degrees = _degrees(row, said, devices)
    pins, ranks, batch, whole = degrees.pins(devices), degrees.ranks(devices), degrees.batch, degrees.whole
    if ranks and batch and batch % ranks:
        near = max(round(batch / ranks), 1) * ranks
        if abs(near / batch - 1.0) < ROUNDED:
            batch = float(near)
        elif batch < ranks:  # fewer sequences than replicas: more devices share one than is said
            pins = {k: v for k, v in pins.items() if k != "cp" and number(row, k)}
            ranks, whole = None, False
    if batch is None and not trainer.accumulates and ranks:
        batch = float(int(degrees.micro or 0) * ranks) or None
    pins |= _stages(row, said, degrees)
    pins |= _micro_batch(said, trainer, replace(degrees, batch=batch), ranks)
    pins |= _sharding(row, trainer, degrees.pp or 1, ranks)
    text = row.get("recompute", "").lower()
    recompute = said.get("recompute") or next((to for at, to in RECOMPUTE if re.search(at, text)), None)
    pins |= {"recompute": recompute} if recompute else {}
    pins |= {"sequence": int(said["sequence"])} if "sequence" in said else {}
    open_ = () if whole or trainer.zero == (3,) else ("layout",)
    return pins | {"offload": int(said.get("offload", 0))}, None if batch is None else int(batch), open_


def _stages(row: Row, said: Mapping[str, str], degrees: _Degrees) -> dict[str, int | str]:
    """The schedule of a pipeline, or how many parts a stage has."""
    if not degrees.pp or degrees.pp == 1:
        return {}
    if "schedule" in said:
        return {"schedule": said["schedule"]}
    parts = _degree(row, said, "vp")
    return {"vp": parts} if parts else {}


def _micro_batch(
    said: Mapping[str, str], trainer: Trainer, degrees: _Degrees, ranks: int | None
) -> dict[str, int | str]:
    """Sequences of a micro-batch, where the trainer accumulates or a pipeline passes them on, and the batch is made
    of them."""
    if not degrees.micro or not int(degrees.micro) or not (trainer.accumulates or (degrees.pp or 1) > 1):
        return {}
    passed = float(said.get("micro_batch", degrees.micro))  # of a pipeline
    local = int(degrees.micro if trainer.accumulates else passed or degrees.micro)
    fits = degrees.batch is None or ranks is None or int(degrees.batch) % (local * ranks) == 0
    return {"micro_batch": local} if fits else {}


def _sharding(row: Row, trainer: Trainer, stages: int, ranks: int | None) -> dict[str, int | str]:
    """Stage of ZeRO and ranks that it cuts over, as publications write them: FULL_SHARD, ZeRO-1 size 4, 32."""
    text = row.get("sharding", "").lower()
    if ranks == 1 or not text:
        return {}
    found: tuple[int, int] | None = None
    degree = re.match(r"(\d+)", text)
    if "full_shard" in text or text == "fsdp":
        found = 3, 0
    elif "grad_op" in text:
        found = 2, 0
    elif "zero" in text:
        size, stage = re.search(r"\((\d+)\)|size (\d+)", text), re.search(r"zero-(\d)", text)
        found = int(stage.group(1)) if stage else 1, int(size.group(1) or size.group(2)) if size else 0
    elif degree and int(degree.group(1)) > 1:
        found = 3, int(degree.group(1))
    if found is None:
        return {}
    zero, shard = found
    if zero == 3 and stages > 1 and trainer.kind == "fused":
        return {"zero": 1}
    pins: dict[str, int | str] = {"zero": zero}
    if shard and ranks and ranks % shard == 0 and shard < ranks:
        pins["shard"] = shard
    elif zero == 3 and ranks and shard in (0, ranks):
        pins["shard"] = ranks * int(number(row, "cp") or 1)
    return pins


def _network(row: Row, said: Mapping[str, str], chips: float, usual: int) -> dict[str, str]:
    """Speed beyond the fabric and chips on it, where row or publication says more than the catalogue."""
    found = {name: said[name] for name in ("nic", "domain") if name in said}
    if "slices" in said:
        found["domain"] = f"{chips / float(said['slices']):.0f}"
    per_node = number(row, "chips_per_node")
    if per_node and "domain" not in found and per_node < usual < 72:
        found["domain"] = f"{per_node:.0f}"
    return found
