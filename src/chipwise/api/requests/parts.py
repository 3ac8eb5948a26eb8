"""What several requests ask alike: the use, the software, the money, the place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from chipwise.api.requests.field import MISSING, Asked, ask, count_of, pairs, quantity, share, whole
from chipwise.catalog.harness import get_harness
from chipwise.catalog.pricing import Pricing
from chipwise.errors import UsageError, shorten
from chipwise.parallel.layout import Layout
from chipwise.predict.speculative import Speculation
from chipwise.units import parse_quantity
from chipwise.workload.curve import RateCurve, read_curve
from chipwise.workload.lengths import Lengths as Distribution
from chipwise.workload.lengths import PrefixCache, read_lengths
from chipwise.workload.workload import CONFIDENCE, UTILISATION, Task, Workload

if TYPE_CHECKING:
    from chipwise.api.tactics import Tactics
    from chipwise.calibrate.parameters import Parameters

__all__ = ["Lengths", "Money", "Place", "Serving", "Software", "Targets", "TrainOptions", "numbers_of"]


@dataclass(frozen=True, kw_only=True)
class Lengths(Asked):
    """How long prompts and answers are."""

    in_: str = ask("mean prompt tokens", "2000", name="in")
    out: str = ask("mean output tokens", "300")
    cv: str | None = ask(
        "spread of lengths, deviation over mean, as in 0.8 or in=1.2,out=0.6; default: all alike"
    )
    log: str | None = ask(
        "a log of requests in place of --in and --out: CSV or JSONL with prompt_tokens, output_tokens",
        file=True,
    )
    prefix_hit: str | None = ask("part of prompt tokens that a prefix cache answers, as in 30%")
    common_prefix: str | None = ask("tokens that begin every prompt, kept once, as in 1k; needs --prefix-hit")

    def workload(self, task: Task) -> Workload:
        """The workload without load or targets. Raises `UsageError` for lengths that cannot be."""
        spread = self._lengths()
        alike = not (spread.prompt_cv or spread.output_cv)
        return Workload(
            task=task,
            prompt_tokens=spread.prompt_tokens,
            output_tokens=spread.output_tokens,
            lengths=None if alike else spread,
            prefix=self._prefix(),
        )

    def _lengths(self) -> Distribution:
        if self.log is not None:
            if self.cv is not None:
                raise UsageError("--log and --cv exclude each other", "the log holds its own spread")
            return read_lengths(self.log)
        means = (
            parse_quantity(self.in_, "", "--in", low=1, high=1e8),
            parse_quantity(self.out, "", "--out", low=1, high=1e8),
        )
        if self.cv is None:
            return Distribution(*means)
        both = pairs(self.cv, "--cv") if "=" in self.cv else {"in": self.cv, "out": self.cv}
        strange = sorted(set(both) - {"in", "out"})
        if strange:
            raise UsageError(f"--cv: no lengths are called '{shorten(strange[0])}'", "as in in=1.2,out=0.6")
        given = {name: parse_quantity(text, "", "--cv", low=0, high=10) for name, text in both.items()}
        return Distribution(*means, given.get("in", 0.0), given.get("out", 0.0))

    def _prefix(self) -> PrefixCache | None:
        found = share(self.prefix_hit, "--prefix-hit")
        common = quantity(self.common_prefix, "", "--common-prefix", low=0, high=1e8)
        if not found and common:
            raise UsageError("--common-prefix needs --prefix-hit", "the part of prompt tokens that is found")
        return PrefixCache(found, common or 0.0) if found else None


@dataclass(frozen=True, kw_only=True)
class Targets(Lengths):
    """How the model is used: lengths, load, and what is asked of the time."""

    rate: str | None = ask("requests per second, as in 10/s; default: replicas run full")
    ttft: str | None = ask("target for the time to the first token, as in 500ms; serving alone: 2s")
    tpot: str | None = ask("target for the time per output token, as in 30ms; serving alone: 50ms")
    e2e: str | None = ask("target for the time of a whole answer, as in 20s")
    percentile: str | None = ask("what targets hold for, as in p99; default: the mean")
    confidence: str | None = ask(
        "probability that targets hold, 50% for the middles; default: 90%, the upper end of the intervals"
    )
    utilisation: str | None = ask(
        "how much of the load that it could carry within the targets a plan is given; default: 70%"
    )
    day: str | None = ask(
        "requests per second over a day in equal slices, as in 2,2,1,4,9, or a file of them; sized for its peak",
        file=True,
    )

    def workload_of(self, task: Task) -> Workload:
        """The workload with its load and targets; a served one without targets gets the stated ones."""
        ttft, tpot = self.ttft, self.tpot
        if task == "serve" and self.e2e is None:
            ttft, tpot = ttft or "2s", tpot or "50ms"
        rate = quantity(self.rate, "1/s", "--rate", low=1e-9, high=1e8)
        curve = self.curve()
        if curve is not None and (task != "serve" or rate is not None):
            raise UsageError("--day is a load of its own", "without --rate, and with --task serve")
        return replace(
            self.workload(task),
            rate_per_s=rate if curve is None else curve.peak,
            ttft_s=quantity(ttft, "s", "--ttft", low=1e-9, high=1e6),
            tpot_s=quantity(tpot, "s", "--tpot", low=1e-9, high=1e6),
            e2e_s=quantity(self.e2e, "s", "--e2e", low=1e-9, high=1e6),
            percentile=self._percentile(),
            confidence=share(self.confidence, "--confidence") or CONFIDENCE,
            utilisation=share(self.utilisation, "--utilisation") or UTILISATION,
        )

    def _percentile(self) -> float | None:
        text = (self.percentile or "").strip().lower().removeprefix("p")
        if self.percentile is None or text == "mean":
            return None
        return parse_quantity(text, "", "--percentile", low=50.0, high=99.9) / 100.0

    def curve(self) -> RateCurve | None:
        """The arrivals of a day, None where none were given."""
        return None if self.day is None else read_curve(self.day)


@dataclass(frozen=True, kw_only=True)
class Software(Asked):
    """What runs the model."""

    precision: str | None = ask("another number format than the checkpoint's, as in fp8 or int4")
    kv: str | None = ask("number format of the cache, as in fp8; default: the checkpoint's, else 16 bit")
    runtime: str | None = ask(
        "serving software, or best for the best of all that can; default: the first that can"
    )
    policy: str | None = ask("figures of the runtime, as in memory_share=0.95,max_sequences=64")
    set_: str | None = ask("figures of the chip, as in hbm=4TB/s,bf16=1.2PFLOPS", name="set")

    def settings(self) -> dict[str, Any]:
        """The arguments of the verbs that this stands for."""
        return {
            "precision": self.precision,
            "kv": self.kv,
            "runtime": self.runtime,
            "policy": pairs(self.policy, "--policy"),
            "changes": pairs(self.set_, "--set"),
        }


@dataclass(frozen=True, kw_only=True)
class Serving(Software):
    """How that software is run."""

    speculate: str | None = ask(
        "guess tokens ahead, as in accept=0.7,draft=3; the acceptance is yours to know, with=lookup needs no module"
    )
    disaggregate: bool = ask("work off prompts in workers of their own", False)
    prefill: str | None = ask(
        "separate workers for prompts and their layout, as in workers=2,tp=4; default: as many as keep up"
    )
    software: str | None = ask(
        "date or MLPerf round of the software, as in 2025-06 or v5.0; default: the newest"
    )
    level: Literal["stock", "tuned"] = ask(
        "stock: what the runtime's defaults give; tuned: what benchmark submissions reach with it", "stock"
    )
    harness: str | None = ask(
        "benchmark client whose figures to predict, as in vllm-bench or inferencex; default: none"
    )

    def settings(self) -> dict[str, Any]:
        """The same, with how it is run."""
        return {**super().settings(), "tactics": self._tactics()}

    def _tactics(self) -> Tactics:
        """Raises `UsageError` for values that cannot be."""
        from chipwise.api.tactics import Tactics

        given = pairs(self.speculate, "--speculate")
        hint = "as in accept=0.7,draft=3, or with=lookup too"
        strange = sorted(set(given) - {"accept", "draft", "with"})
        if strange:
            raise UsageError(f"--speculate: no part is called '{shorten(strange[0])}'", hint)
        speculation = None
        if given:
            if "accept" not in given:
                raise UsageError("--speculate: no acceptance, which depends on model, draft and text", hint)
            accept = share(given["accept"], "accept")
            draft = parse_quantity(given.get("draft", "3"), "", "draft", low=1, high=64)
            speculation = Speculation(int(draft), accept or 0.0)
        if given.get("with", "lookup") != "lookup":
            raise UsageError(f"--speculate: cannot guess with '{shorten(given['with'])}'", hint)
        prefill = self._prefill()
        return Tactics(
            speculation,
            "with" in given,
            self.disaggregate or prefill is not None,
            self.software or "",
            get_harness(self.harness),
            prefill,
            self.level,
        )

    def _prefill(self) -> tuple[Layout, int] | None:
        given = pairs(self.prefill, "--prefill")
        if not given:
            return None
        known = ("workers", "tp", "pp", "dp", "ep")
        strange = sorted(set(given) - set(known))
        if strange:
            raise UsageError(f"--prefill: no part is called '{shorten(strange[0])}'", "as in workers=2,tp=4")
        counts = {name: whole(text, f"--prefill {name}", low=1, high=100_000) for name, text in given.items()}
        workers = counts.pop("workers", 1)
        return Layout(**{name: float(n) for name, n in counts.items()}), workers


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
    replicas: int = ask("replicas of the layout that share the load", 1)
    concurrency: float | None = ask(
        "clients that each wait for their answer before they send again; default: as many as fit, of a local user one"
    )
    rate: str | None = ask("requests per second that arrive at random, as in 10/s, in place of --concurrency")

    def layout(self) -> Layout:
        """The degrees as a layout. Raises `UsageError` for a degree, count or load that cannot be."""
        count_of(self.count, "--count", "chips")
        count_of(self.replicas, "--replicas", "replicas", 100_000)
        degrees = {name: getattr(self, name) for name in ("tp", "pp", "dp", "ep")}
        for name, degree in degrees.items():
            if not 1 <= degree <= 100_000:
                raise UsageError(f"--{name} {degree}: not a degree of parallelism", "at least 1")
        if self.concurrency is not None and not 0 < self.concurrency < 1e7:
            raise UsageError(f"--concurrency {self.concurrency:g} is out of range", "more than 0")
        return Layout(**{name: float(degree) for name, degree in degrees.items()})

    def arrivals(self) -> float | None:
        """Requests per second, None where clients or capacity set the load. Raises `UsageError` for two loads."""
        if self.rate is not None and self.concurrency is not None:
            raise UsageError("--rate and --concurrency are two loads", "open arrivals or a number of clients")
        return quantity(self.rate, "1/s", "--rate", low=1e-9, high=1e8)


@dataclass(frozen=True, kw_only=True)
class TrainOptions(Asked):
    """What is trained, how far, and within which limits."""

    tokens: str | None = ask("training: tokens in all, as in 15T; default: 1T, of finetune 100M")
    seq: str | None = ask(
        "training: tokens of a sequence; default: 4096, or what the model reads if that is less"
    )
    global_batch: int = ask("training: sequences of a step; 0: 4 M tokens, fine-tuning 0.25 M", 0)
    counts: str | None = ask("training: chips to try, as in 64,256")
    deadline: str | None = ask("training: at most so long, as in 30d")
    max_usd: float | None = ask("training: at most so many dollars")
    layout: str | None = ask(
        "training: what to keep, as in tp=8,pp=4,schedule=interleaved,zero=3,shard=8,recompute=full,offload=1,"
        "sequence=0"
    )
    method: str | None = ask("training: full, lora or qlora; of finetune lora")
    trainer: str | None = ask(
        "training: the software, as in nemo or torchtitan, with what its configurations set; default: the usual one of "
        "the chip, tuned"
    )
    known_to_run: bool = ask(
        "training: the run exists, so that predicted memory refuses no layout of it", False
    )
    failures: str | None = ask(
        "training: hours between failures of a chip, time to save, for which of it the run stops (block=60s: all), and "
        "to restart; default: mtbf=50000h,save=60s,block=5s,restart=10min"
    )
    network: str | None = ask(
        "training: the network, as in nic=200Gb/s,domain=8,oversubscription=3,leaf=16: speed of a chip beyond the "
        "fabric, one direction; chips that meet on the fabric; links down over links up of a leaf switch, and hosts "
        "under it"
    )
    curves: bool = ask("training: weak and strong scaling too; as csv alone", False)


def numbers_of(file: str | None) -> Parameters | None:
    """The parameters of a file; None: those shipped."""
    from chipwise.calibrate.parameters import load_parameters

    return None if file is None else load_parameters(file)
