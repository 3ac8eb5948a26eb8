"""Options that several commands share, and how their text becomes values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, Token

from chipwise.catalog.pricing import Pricing
from chipwise.errors import UsageError, shorten
from chipwise.report.table import Format
from chipwise.search.space import Limits
from chipwise.units import parse_quantity
from chipwise.workload.lora import Adapter
from chipwise.workload.workload import Workload

if TYPE_CHECKING:
    from chipwise.calibrate.parameters import Parameters

__all__ = [
    "Money",
    "Numbers",
    "Output",
    "Place",
    "Software",
    "Use",
    "adapters_of",
    "limits_of",
    "numbers_of",
    "pairs",
    "pricing_of",
    "settings",
    "split",
    "whole",
    "workload_of",
]


def whole(text: str) -> Parameter:
    """An option that takes a whole number; cyclopts alone would round 2.6 to 3."""
    return Parameter(help=text, converter=_whole)


def _whole(_: object, tokens: Sequence[Token]) -> int:
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError("not a whole number") from None


@Parameter(name="*")
@dataclass(frozen=True)
class Output:
    """How the answer is printed."""

    format: Annotated[Format, Parameter(help="table, json, csv or md")] = "table"


@Parameter(name="*")
@dataclass(frozen=True)
class Use:
    """How the model is used."""

    task: Annotated[
        Literal["serve", "batch", "local", "train", "finetune"],
        Parameter(help="serve many users, batch for throughput, local for one user, train or finetune"),
    ] = "serve"
    in_: Annotated[str, Parameter(name="--in", help="mean prompt tokens")] = "2000"
    out: Annotated[str, Parameter(help="mean output tokens")] = "300"
    rate: Annotated[
        str | None, Parameter(help="requests per second, as in 10/s; default: replicas run full")
    ] = None
    ttft: Annotated[
        str | None, Parameter(help="target for the mean time to the first token, as in 500ms")
    ] = None
    tpot: Annotated[str | None, Parameter(help="target for the mean time per output token, as in 30ms")] = (
        None
    )


def workload_of(use: Use) -> Workload:
    """The workload of the options; a served workload without targets gets the stated defaults."""
    if use.task == "train" or use.task == "finetune":
        raise UsageError(f"--task {use.task} is planned, not estimated", "chipwise plan MODEL --task train")
    ttft, tpot = use.ttft, use.tpot
    if use.task == "serve":
        ttft, tpot = ttft or "2s", tpot or "50ms"
    return Workload(
        task=use.task,
        prompt_tokens=parse_quantity(use.in_, "", "--in", low=1, high=1e8),
        output_tokens=parse_quantity(use.out, "", "--out", low=1, high=1e8),
        rate_per_s=None
        if use.rate is None
        else parse_quantity(use.rate, "1/s", "--rate", low=1e-9, high=1e8),
        ttft_s=None if ttft is None else parse_quantity(ttft, "s", "--ttft", low=1e-9, high=1e6),
        tpot_s=None if tpot is None else parse_quantity(tpot, "s", "--tpot", low=1e-9, high=1e6),
    )


def split(text: str | None) -> tuple[str, ...]:
    """A comma-separated list; blanks between commas are left out, a list of blanks is an error."""
    if text is None:
        return ()
    parts = tuple(part.strip() for part in text.split(",") if part.strip())
    if not parts:
        raise UsageError(f"'{shorten(text)}' names nothing", "separate names by commas")
    return parts


def limits_of(task: str, max_chips: int | None, max_usd_per_h: float | None) -> Limits:
    """One machine for a local user, else up to 64 devices per replica."""
    most = 8 if task == "local" else 64
    return Limits(
        max_devices=min(most, (max_chips or most) * 2), max_chips=max_chips, max_usd_per_h=max_usd_per_h
    )


@Parameter(name="*")
@dataclass(frozen=True)
class Software:
    """What runs the model."""

    precision: Annotated[
        str | None, Parameter(help="another number format than the checkpoint's, as in fp8 or int4")
    ] = None
    runtime: Annotated[
        str | None, Parameter(help="serving software; default: the first that supports it")
    ] = None
    policy: Annotated[
        str | None, Parameter(help="figures of the runtime, as in memory_share=0.95,max_sequences=64")
    ] = None
    set_: Annotated[
        str | None, Parameter(name="--set", help="figures of the chip, as in hbm=4TB/s,bf16=1.2PFLOPS")
    ] = None


@Parameter(name="*")
@dataclass(frozen=True)
class Numbers:
    """Fitted numbers other than those shipped."""

    parameters: Annotated[
        str | None, Parameter(help="parameters that chipwise calibrate wrote; default: those shipped")
    ] = None


@Parameter(name="*")
@dataclass(frozen=True)
class Place:
    """One deployment: the chip and how the model is spread over it."""

    chip: Annotated[str, Parameter(help="a chip, or a TOML file of your own")]
    count: Annotated[int | None, whole("chips of one replica; default: what the layout needs")] = None
    tp: Annotated[int, whole("tensor parallelism")] = 1
    pp: Annotated[int, whole("pipeline stages")] = 1
    dp: Annotated[int, whole("attention replicas that share experts")] = 1
    ep: Annotated[int, whole("expert parallelism")] = 1
    concurrency: Annotated[float | None, Parameter(help="requests in flight; default: as many as fit")] = None


@Parameter(name="*")
@dataclass(frozen=True)
class Money:
    """How chips are paid."""

    price: Annotated[
        Literal["rent", "spot", "own"], Parameter(help="rent on demand, rent on the spot, or own")
    ] = "rent"
    provider: Annotated[str, Parameter(help="offers of this provider only")] = ""
    region: Annotated[str, Parameter(help="offers of this region only")] = ""
    owning: Annotated[
        str | None,
        Parameter(help="figures of owning, as in capex_usd=30000,years=4,usd_per_kwh=0.12,pue=1.3"),
    ] = None


def pricing_of(money: Money) -> Pricing:
    """The pricing of the options."""
    figures = {k: parse_quantity(v, "", k, high=1e12) for k, v in pairs(money.owning, "--owning").items()}
    if figures and money.price != "own":
        raise UsageError("--owning is for chips that one owns", "add --price own")
    return Pricing(money.price, money.provider, money.region, figures)


def settings(software: Software) -> dict[str, Any]:
    """The keyword arguments of the api that the options stand for."""
    return {
        "precision": software.precision,
        "runtime": software.runtime,
        "policy": pairs(software.policy, "--policy"),
        "changes": pairs(software.set_, "--set"),
    }


def numbers_of(given: Numbers) -> Parameters | None:
    """The parameters of a file; None: those shipped."""
    from chipwise.calibrate.parameters import load_parameters

    return None if given.parameters is None else load_parameters(given.parameters)


def adapters_of(text: str | None) -> dict[str, Any]:
    """The adapters that `rank=16,count=8,targets=q_proj+v_proj` describes, as arguments of `api.fit`."""
    if text is None:
        return {}
    given = pairs(text, "--lora")
    strange = sorted(set(given) - {"rank", "count", "targets"})
    if strange or "rank" not in given:
        what = f"no adapter has a {strange[0]}" if strange else "no rank"
        raise UsageError(f"--lora: {what}", "as in rank=16,count=8,targets=q_proj+v_proj")
    rank = int(parse_quantity(given["rank"], "", "rank", low=1, high=65_536))
    count = int(parse_quantity(given.get("count", "1"), "", "count", low=1, high=1e6))
    targets = tuple(given.get("targets", "all-linear").split("+"))
    return {"adapter": Adapter(rank, targets), "adapters": count}


def pairs(text: str | None, option: str) -> dict[str, str]:
    """`a=1,b=2` as a dictionary. Raises `UsageError` for a part without an equals sign."""
    found: dict[str, str] = {}
    for part in split(text):
        name, equals, value = part.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise UsageError(
                f"{option}: cannot read '{shorten(part)}'", "write NAME=VALUE, separated by commas"
            )
        found[name.strip()] = value.strip()
    return found
