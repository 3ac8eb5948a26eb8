"""What several requests ask alike: the use, the software, the money, the place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from chipwise.api.requests.field import MISSING, Asked, ask, count_of, pairs, quantity
from chipwise.catalog.pricing import Pricing
from chipwise.errors import UsageError
from chipwise.parallel.layout import Layout
from chipwise.units import parse_quantity
from chipwise.workload.workload import Task, Workload

if TYPE_CHECKING:
    from chipwise.calibrate.parameters import Parameters

__all__ = ["Lengths", "Money", "Place", "Software", "Targets", "numbers_of"]


@dataclass(frozen=True, kw_only=True)
class Lengths(Asked):
    """How long prompts and answers are."""

    in_: str = ask("mean prompt tokens", "2000", name="in")
    out: str = ask("mean output tokens", "300")

    def workload(self, task: Task) -> Workload:
        """The workload without load or targets."""
        return Workload(
            task=task,
            prompt_tokens=parse_quantity(self.in_, "", "--in", low=1, high=1e8),
            output_tokens=parse_quantity(self.out, "", "--out", low=1, high=1e8),
        )


@dataclass(frozen=True, kw_only=True)
class Targets(Lengths):
    """How the model is used: lengths, load, and what is asked of the time."""

    rate: str | None = ask("requests per second, as in 10/s; default: replicas run full")
    ttft: str | None = ask("target for the mean time to the first token, as in 500ms; serving alone: 2s")
    tpot: str | None = ask("target for the mean time per output token, as in 30ms; serving alone: 50ms")

    def workload_of(self, task: Task) -> Workload:
        """The workload with its load and targets; a served one without targets gets the stated ones."""
        ttft, tpot = self.ttft, self.tpot
        if task == "serve":
            ttft, tpot = ttft or "2s", tpot or "50ms"
        return replace(
            self.workload(task),
            rate_per_s=quantity(self.rate, "1/s", "--rate", low=1e-9, high=1e8),
            ttft_s=quantity(ttft, "s", "--ttft", low=1e-9, high=1e6),
            tpot_s=quantity(tpot, "s", "--tpot", low=1e-9, high=1e6),
        )


@dataclass(frozen=True, kw_only=True)
class Software(Asked):
    """What runs the model."""

    precision: str | None = ask("another number format than the checkpoint's, as in fp8 or int4")
    runtime: str | None = ask("serving software; default: the first that supports it")
    policy: str | None = ask("figures of the runtime, as in memory_share=0.95,max_sequences=64")
    set_: str | None = ask("figures of the chip, as in hbm=4TB/s,bf16=1.2PFLOPS", name="set")

    def settings(self) -> dict[str, Any]:
        """The arguments of the verbs that this stands for."""
        return {
            "precision": self.precision,
            "runtime": self.runtime,
            "policy": pairs(self.policy, "--policy"),
            "changes": pairs(self.set_, "--set"),
        }


@dataclass(frozen=True, kw_only=True)
class Money(Asked):
    """How chips are paid."""

    price: Literal["rent", "spot", "own"] = ask("rent on demand, rent on the spot, or own", "rent")
    provider: str = ask("offers of this provider only", "")
    region: str = ask("offers of this region only", "")
    owning: str | None = ask("figures of owning, as in capex_usd=30000,years=4,usd_per_kwh=0.12,pue=1.3")

    def pricing(self) -> Pricing:
        """The pricing that this stands for. Raises `UsageError` for figures of owning where one rents."""
        figures = {k: parse_quantity(v, "", k, high=1e12) for k, v in pairs(self.owning, "--owning").items()}
        if figures and self.price != "own":
            raise UsageError("--owning is for chips that one owns", "add --price own")
        return Pricing(self.price, self.provider, self.region, figures)


@dataclass(frozen=True, kw_only=True)
class Place(Asked):
    """One deployment: the chip and how the model is spread over it."""

    chip: str = ask("a chip, or a TOML file of your own", MISSING, file=True)
    count: int | None = ask("chips of one replica; default: what the layout needs")
    tp: int = ask("tensor parallelism", 1)
    pp: int = ask("pipeline stages", 1)
    dp: int = ask("attention replicas that share experts", 1)
    ep: int = ask("expert parallelism", 1)
    concurrency: float | None = ask("requests in flight; default: as many as fit")

    def layout(self) -> Layout:
        """The degrees as a layout. Raises `UsageError` for a degree, count or load that cannot be."""
        count_of(self.count, "--count", "chips")
        degrees = {name: getattr(self, name) for name in ("tp", "pp", "dp", "ep")}
        for name, degree in degrees.items():
            if not 1 <= degree <= 100_000:
                raise UsageError(f"--{name} {degree}: not a degree of parallelism", "at least 1")
        if self.concurrency is not None and not 0 < self.concurrency < 1e7:
            raise UsageError(f"--concurrency {self.concurrency:g} is out of range", "more than 0")
        return Layout(**{name: float(degree) for name, degree in degrees.items()})


def numbers_of(file: str | None) -> Parameters | None:
    """The parameters of a file; None: those shipped."""
    from chipwise.calibrate.parameters import load_parameters

    return None if file is None else load_parameters(file)
