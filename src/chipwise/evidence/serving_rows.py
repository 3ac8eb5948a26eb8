"""Rows of published serving measurements as the predictor reads them: what ran, where, and under which load.

Works on tables with the columns of `serving_points.csv`. Nothing here reads a measured figure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import get_chip
from chipwise.catalog.configs import ModelConfig
from chipwise.catalog.runtime import Runtime, get_runtime
from chipwise.errors import UsageError, shorten
from chipwise.evidence.rows import Row
from chipwise.parallel.layout import Layout
from chipwise.workload.build import build
from chipwise.workload.formats import FORMATS
from chipwise.workload.graph import Graph
from chipwise.workload.load import load_model
from chipwise.workload.model import Model, MoE
from chipwise.workload.precision import LARGE, Precision, TensorClass, uniform

__all__ = ["Pool", "ServingRun", "graph_of", "measured_precision", "read_run"]

# Benchmarks that draw lengths evenly from 0.8 to 1 times the nominal length; the others send equal lengths.
DRAWN_MEAN = 0.9
DRAWN = re.compile(r"\bdump\b|inferencex|inferencemax", re.I)

DATE = re.compile(r"(\d{4})-(\d\d)")
STREAMED = re.compile(r"mtp|eagle|speculat|medusa|draft", re.I)


@dataclass(frozen=True, slots=True)
class Pool:
    """Workers of one kind: `workers` replicas of a layout. Serves prompts, decoding, or both."""

    layout: Layout
    workers: int

    @property
    def devices(self) -> float:
        """Devices of all workers."""
        return float(self.layout.devices) * self.workers


@dataclass(frozen=True, slots=True)
class ServingRun:
    """One engine under one closed-loop load.

    Either `pool` serves prompts and decoding (aggregated), or `prefill` does the first and `pool` the second.
    `prompt_tokens` and `output_tokens` are means; `equal_lengths` where every request has just that many.
    `cell` must stay together when a fit is tested. `stack` is the runtime and what launched it, `period`
    the quarter of the year when it was measured.
    """

    id: str
    model: Model
    architecture: str
    precision: Precision
    chip: Chip
    runtime: Runtime
    version: str
    pool: Pool
    prefill: Pool | None
    prompt_tokens: float
    output_tokens: float
    concurrency: float
    equal_lengths: bool
    stack: str
    period: str

    @property
    def cell(self) -> tuple[str, str]:
        """Architecture and chip."""
        return self.architecture, self.chip.id

    @property
    def harness(self) -> str:
        """How it was measured, as far as that changes the time to the first token."""
        lengths = "equal" if self.equal_lengths else "drawn"
        pools = ", apart" if self.prefill else ", replicas" if float(self.pool.layout.dp) > 1 else ""
        return f"{self.stack}, {lengths} lengths{pools}"


def read_run(row: Row, config: ModelConfig | None) -> ServingRun:
    """A row of a table with the columns of `serving_points.csv`; measured ones are not read.

    Raises `UsageError` for a row that lacks a column, names no chip of the catalogue or no workers, or has a
    layout that cannot be; `UnknownNameError` for an unknown chip or runtime.
    """
    if config is None:
        raise UsageError(f"{row.get('model', 'row')}: no config_file", "the model is read from a config.json")
    try:
        if not row["chip"]:
            raise UsageError("the chip is not in the catalogue", "chipwise chips list")
        chip, runtime = get_chip(row["chip"]), get_runtime(row["backend"])
        disagg = row.get("mode", "agg") == "disagg"
        pool = _pool(row, "decode_" if disagg else "")
        prefill = _pool(row, "prefill_") if disagg else None
        prompt, output = float(row["isl"]), float(row["osl"])
        clients = _clients(row, pool)
    except KeyError as error:
        raise UsageError(f"no column {error.args[0]}", "as in serving_points.csv") from None
    except ValueError:
        raise UsageError("a number of the row cannot be read") from None
    if not (prompt >= 1 and output >= 1 and clients >= 1):
        raise UsageError("isl, osl or concurrency is out of range")
    if STREAMED.search(row.get("precision", "")):
        raise UsageError("speculative decoding is named without an acceptance rate")
    drawn = bool(DRAWN.search(row.get("source", "")))
    factor = DRAWN_MEAN if drawn else 1.0
    model = _model(config)
    scheme = measured_precision(model, row.get("gemm_quant", ""), row.get("moe_quant", ""), chip, runtime)
    return ServingRun(
        id=row.get("row_id", ""),
        model=model,
        architecture=_architecture(model),
        precision=scheme,
        chip=chip,
        runtime=runtime,
        version=row.get("backend_version", ""),
        pool=pool,
        prefill=prefill,
        prompt_tokens=max(prompt * factor, 1.0),
        output_tokens=max(output * factor, 1.0),
        concurrency=clients,
        equal_lengths=not drawn,
        stack=_stack(row, runtime),
        period=_period(row.get("measured_date", "")),
    )


def _clients(row: Row, pool: Pool) -> float:
    """The concurrency, or where it is blank what all decode workers run at a time."""
    if row["concurrency"]:
        return float(row["concurrency"])
    return float(row.get("decode_batch") or 1) * pool.workers * float(pool.layout.dp)


def _pool(row: Row, prefix: str) -> Pool:
    """Blank degrees are 1; a degree of experts that is blank or 1 beside another takes what is left."""

    def degree(name: str) -> int:
        value = int(float(row.get(prefix + name) or 1))
        if not 0 <= value <= 4096:
            raise UsageError(f"{prefix}{name} = {value} is out of range")
        return max(value, 1)

    tp, pp, dp, ep = degree("tp"), degree("pp"), degree("attention_dp"), degree("moe_ep")
    if (tp * dp) % ep:
        raise UsageError(f"experts in {ep} groups on {tp * dp} devices", "moe_ep divides tp x attention_dp")
    workers = 1
    if prefix:
        if not row.get(prefix + "workers"):
            raise UsageError("the number of workers is not known")
        workers = degree("workers")
    return Pool(Layout(float(tp), float(pp), float(dp), float(ep)), workers)


_MODELS: dict[tuple[str, str], Model] = {}


def _model(config: ModelConfig) -> Model:
    """Read once per file: a table names few models in many rows."""
    key = config.origin, config.name
    if key not in _MODELS:
        _MODELS[key] = load_model(config)
    return _MODELS[key]


@lru_cache(maxsize=256)
def graph_of(model: Model, precision: Precision) -> Graph:
    """Operators of a model at a precision."""
    same = precision.name == model.precision.name and precision.weights == model.precision.weights
    return build(replace(model, precision=precision) if same else model.at_precision(precision))


def _stack(row: Row, runtime: Runtime) -> str:
    """Pools are always launched by something; only where one engine could have been alone is that a stack."""
    apart = row.get("mode", "agg") == "disagg"
    return f"{runtime.id} under dynamo" if "dynamo" in row.get("image", "") and not apart else runtime.id


def _period(date: str) -> str:
    """The quarter of a date, "" where there is none: the age of the software."""
    found = DATE.match(date)
    return f"{found[1]}Q{(int(found[2]) + 2) // 3}" if found else ""


def _architecture(model: Model) -> str:
    """Checkpoints of one architecture and size share a name: DeepSeek-R1 is V3."""
    return f"{model.architecture}-{model.layers}x{model.hidden}"


def measured_precision(model: Model, gemm: str, moe: str, chip: Chip, runtime: Runtime) -> Precision:
    """What a row's labels mean for a checkpoint.

    A checkpoint that is quantised to as few bits keeps its own formats (gpt-oss is mxfp4 whatever the label).
    4-bit checkpoints of mixtures of experts keep attention in 16 bit; of dense models they do not. Where the
    chip has no 4-bit units, activations stay 16 bit. The cache is 8 bit in TensorRT-LLM with quantised
    checkpoints; in vLLM and SGLang it is so from Blackwell on (inferred from memory limits: not recorded).
    """
    label = moe or gemm
    moes = any(isinstance(layer.ffn, MoE) for _, layer in model.runs)
    own = model.precision
    stored = own.weight("expert" if moes else "ffn")
    if not label or (stored.bits <= _bits(label, gemm) and stored.name != "int4"):
        scheme = own
    else:
        name = _format(label)
        scheme = uniform(name, base=own.base.name if own.base.bits == 16 else "bf16")
        if moes and FORMATS[name].bits < 8:
            scheme = scheme.without(("attention",))
    if "fp4" not in chip.matrix:
        narrow: list[TensorClass] = [c for c in LARGE if scheme.activation(c).compute == "fp4"]
        scheme = replace(scheme, activations={c: f for c, f in scheme.activations.items() if c not in narrow})
    elif scheme.weight("expert").name == "mxfp4" and "expert" not in scheme.activations:
        # gpt-oss on Blackwell: activations of the experts are narrowed to 8 bit
        scheme = replace(scheme, activations={**scheme.activations, "expert": FORMATS["mxfp8"]})
    quantised = any(scheme.weight(c).bits < 16 for c in LARGE)
    small_cache = quantised and (runtime.id == "trtllm" or "fp4" in chip.matrix)
    return scheme.with_kv("fp8" if small_cache else "bf16")


def _format(label: str) -> str:
    name = {"nvfp4": "nvfp4", "fp4": "nvfp4", "mxfp4": "mxfp4", "fp8": "fp8", "fp8_block": "fp8_block"}.get(
        label, label
    )
    if name not in FORMATS:
        raise UsageError(f"precision {shorten(label)} is not read", f"one of {', '.join(FORMATS)}")
    return name


def _bits(label: str, gemm: str) -> float:
    return min(FORMATS[_format(x)].bits for x in (label, gemm) if x)
