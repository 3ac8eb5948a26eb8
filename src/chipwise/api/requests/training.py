"""plan --task train and finetune: what one can ask of a training run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from chipwise.api.requests.field import MISSING, ask, count_of, pairs, quantity, split, whole
from chipwise.api.requests.parts import Money, TrainOptions, numbers_of
from chipwise.api.requests.planning import MODEL
from chipwise.catalog.system import parse_have
from chipwise.errors import UnknownNameError, UsageError
from chipwise.report.train_assemble import Failures
from chipwise.report.training import TrainReport
from chipwise.units import parse_quantity

__all__ = ["TrainRequest"]

DAY_S = 86400.0
FAILURES = {"mtbf": "chip_mtbf_h", "save": "save_s", "block": "block_s", "restart": "restart_s"}


@dataclass(frozen=True, kw_only=True)
class TrainRequest(Money, TrainOptions):
    """Rank chips, counts and layouts for a training run: step time, days, cost, goodput, and what bounds it."""

    model: str = ask(MODEL, MISSING, file=True)
    task: Literal["train", "finetune"] = ask("train from scratch, or fine-tune adapters", "train")
    chips: str | None = ask(
        "the chips to try, separated by commas; default: a few that clouds rent", file=True
    )
    have: str | None = ask("chips that you have, as in 64xh100; each kind is planned alone")
    max_chips: int | None = ask("at most so many chips")
    max_usd_per_h: float | None = ask("at most so many dollars per hour in all")
    precision: str = ask("bf16, fp16, fp32, fp8, mxfp8 or nvfp4", "bf16")
    parameters: str | None = ask(
        "parameters that chipwise calibrate wrote; default: those shipped", file=True
    )
    set_: str | None = ask("figures of the chips, as in hbm=4TB/s,bf16=1.2PFLOPS", name="set")

    @classmethod
    def implied(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """The tokens of the task."""
        return {"tokens": "100M" if given.get("task") == "finetune" else "1T"}

    def run(self) -> TrainReport:
        """The best layout of every chip and count, ranked. Raises the errors of `train_plan`."""
        from chipwise.api.train import train_plan

        return train_plan(**self.arguments())

    def arguments(self) -> dict[str, Any]:
        """What is asked, as the arguments of `train_plan`. Raises `UsageError`, `UnknownNameError`."""
        for option, most in (("--max-usd", self.max_usd), ("--max-usd-per-h", self.max_usd_per_h)):
            if most is not None and not 0 < most < float("inf"):
                raise UsageError(f"{option} {most:g} is out of range", "more than 0")
        if self.have and self.chips:
            raise UsageError("--have and --chips exclude each other", "--have names the chips already")
        deadline = quantity(self.deadline, "s", "--deadline", low=1.0, high=1e12)
        counts = [whole(c, "--counts", low=1, high=1e6) for c in split(self.counts)]
        return {
            "model": self.model,
            "task": self.task,
            "chips": tuple(dict.fromkeys(split(self.chips))),
            "counts": tuple(dict.fromkeys(counts)),
            "have": dict(parse_have(self.have)) if self.have is not None else None,
            "tokens": quantity(self.tokens, "", "--tokens", low=1, high=1e18),
            "seq": None if self.seq is None else whole(self.seq, "--seq", low=1, high=1e7),
            "global_batch": self.global_batch,
            "precision": self.precision,
            "method": self.method,
            "layout": pairs(self.layout, "--layout"),
            "trainer": self.trainer,
            "known_to_run": self.known_to_run,
            "deadline_days": None if deadline is None else deadline / DAY_S,
            "max_usd": self.max_usd,
            "max_usd_per_h": self.max_usd_per_h,
            "max_chips": count_of(self.max_chips, "--max-chips", "chips"),
            "failures": self.failing(),
            "network_figures": pairs(self.network, "--network"),
            "changes": pairs(self.set_, "--set"),
            "pricing": self.pricing(),
            "parameters": numbers_of(self.parameters),
            "curves": self.curves,
        }

    def failing(self) -> Failures:
        """What failures cost. Raises `UsageError`, `UnknownNameError`."""
        given = pairs(self.failures, "--failures")
        for name in given:
            if name not in FAILURES:
                raise UnknownNameError("figure of failures", name, FAILURES, f"one of {', '.join(FAILURES)}")
        seconds = {name: parse_quantity(text, "s", name, low=1e-3, high=1e12) for name, text in given.items()}
        hours = {"mtbf": 3600.0}
        return Failures(**{FAILURES[name]: v / hours.get(name, 1.0) for name, v in seconds.items()})
