"""plan --task train and finetune: what one can ask of a training run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from chipwise.api.requests.field import MISSING, ask, pairs, quantity, split
from chipwise.api.requests.parts import Money, TrainOptions
from chipwise.api.requests.planning import MODEL
from chipwise.errors import UsageError
from chipwise.report.train_records import TrainReport
from chipwise.units import parse_quantity

__all__ = ["TrainRequest"]

DAY_S = 86400.0


@dataclass(frozen=True, kw_only=True)
class TrainRequest(Money, TrainOptions):
    """Rank chips, counts and layouts for a training run: step time, days, cost, goodput, and what bounds it."""

    model: str = ask(MODEL, MISSING, file=True)
    task: Literal["train", "finetune"] = ask("train from scratch, or fine-tune adapters", "train")
    chips: str | None = ask(
        "the chips to try, separated by commas; default: a few that clouds rent", file=True
    )
    precision: str = ask("bf16, fp8, mxfp8 or nvfp4", "bf16")
    set_: str | None = ask("figures of the chips, as in hbm=4TB/s,bf16=1.2PFLOPS", name="set")

    def run(self) -> TrainReport:
        """The best layout of every chip and count, ranked. Raises the errors of `train_plan`."""
        from chipwise.api.train import train_plan

        if self.max_usd is not None and not self.max_usd > 0:
            raise UsageError(f"--max-usd {self.max_usd:g} is out of range", "more than 0")
        deadline = quantity(self.deadline, "s", "--deadline", low=1.0, high=1e12)
        degrees = pairs(self.layout, "--layout")
        counts = [parse_quantity(c, "", "--counts", low=1, high=1e6) for c in split(self.counts)]
        options: dict[str, Any] = {
            "task": self.task,
            "chips": tuple(dict.fromkeys(split(self.chips))),
            "precision": self.precision,
            "changes": pairs(self.set_, "--set"),
            "pricing": self.pricing(),
        }
        return train_plan(
            self.model,
            tokens=parse_quantity(self.tokens, "", "--tokens", low=1, high=1e18),
            seq=int(parse_quantity(self.seq, "", "--seq", low=1, high=1e8)),
            global_batch=self.global_batch,
            counts=tuple(dict.fromkeys(map(int, counts))),
            deadline_days=None if deadline is None else deadline / DAY_S,
            max_usd=self.max_usd,
            layout=degrees,
            method=self.method,
            curves=self.curves,
            **options,
        )
