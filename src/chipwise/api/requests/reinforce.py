"""rl: what one can ask of reinforcement learning on a language model."""

from __future__ import annotations

from dataclasses import MISSING
from typing import TYPE_CHECKING, Literal

from chipwise.api.reinforcing import AskedLoop, LoopAsked
from chipwise.api.requests.field import CONFIG, NAMES, PAIRS, SHARE, ChoiceRequest, ask, figure
from chipwise.api.requests.parts import COUNTS, LENGTH, Money
from chipwise.api.requests.planning import MODEL
from chipwise.api.train_input import USUAL
from chipwise.errors import UsageError
from chipwise.predict.training.rollout import Answers
from chipwise.report.reinforce import RlReport
from chipwise.values import dataclass

if TYPE_CHECKING:
    from chipwise.calibrate.parameters import Parameters

MOST_ANSWERS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class RlRequest(ChoiceRequest, Money):
    """Reinforcement learning on one fleet: sampling answers, scoring, training and handing weights over, together or
    apart: time of a step, days, cost and bottleneck."""

    model: str = ask(MODEL, MISSING, file=True, reading=CONFIG)
    chips: str | None = ask(
        "the chips to try, separated by commas; default: three that clouds rent", file=True, reading=NAMES
    )
    counts: str | None = ask("chips to try, e.g. 16,64; default: 8, 16, 32 and 64", reading=COUNTS)
    prompts: int = ask("prompts of a step", 256)
    samples: int | None = ask("answers to each prompt; default: 8, with a teacher 1")
    steps: int = ask("steps of the run", 500)
    in_: str = ask("mean prompt tokens", "500", name="in", reading=LENGTH)
    out: str = ask("mean tokens of an answer", "4000", reading=LENGTH)
    cv: str = ask("spread of answers, deviation over mean, e.g. 0.8", "0.8", reading=figure("", low=0.0, high=5.0))
    longest: str | None = ask("answers are cut there; default: four times the mean", reading=LENGTH)
    algorithm: Literal["grpo", "ppo", "distill"] = ask(
        "grpo: the policy alone is trained; ppo: a critic of its size too; distill: it learns from --teacher", "grpo"
    )
    teacher: str | None = ask(
        "distill: the model that reads every answer, whose logits are matched", file=True, reading=CONFIG
    )
    reference: bool = ask("answers are scored by a frozen reference model too", True)
    method: Literal["full", "lora"] = ask("what is trained: full, or lora", "full")
    placement: Literal["best", "together", "apart"] = ask(
        "together: all chips sample, then train; apart: side by side, one step off policy", "best"
    )
    train_share: str | None = ask(
        "apart: chips that train, of all, e.g. 50%; default: what keeps both sides busy", reading=SHARE
    )
    precision: str = ask("of training: bf16, fp16, fp8, mxfp8", "bf16")
    rollout_precision: str | None = ask("of the engines that sample, e.g. fp8; default: that of the checkpoint")
    trainer: str | None = ask("the software that trains; default: the usual one of the chip")
    runtime: str | None = ask("the software that samples; default: the preferred one of the chip")
    layout: str | None = ask("parts of the training layout to fix, e.g. tp=4,recompute=full", reading=PAIRS)

    def run(self) -> RlReport:
        """The plans, cheapest first. Raises the errors of `ranked`."""
        found: RlReport = self.ranked().whole()
        return found

    def asking(self, numbers: Parameters | None = None, *, published: bool = True) -> LoopAsked:
        """The loop, read; nothing published stands beside its plans."""
        return LoopAsked.of(self.asked(), numbers)

    def asked(self) -> AskedLoop:
        """The loop that is asked about. Raises `UsageError`."""
        taught = self.algorithm == "distill"
        samples = (1 if taught else 8) if self.samples is None else self.samples
        for name, value in (("prompts", self.prompts), ("samples", samples), ("steps", self.steps)):
            if not 1 <= value <= MOST_ANSWERS:
                raise UsageError(f"--{name} {value} is out of range", f"1 to {MOST_ANSWERS:,}", field=name)
        if taught is not bool(self.teacher):
            what = "distill needs a teacher" if taught else "a teacher is for --algorithm distill"
            raise UsageError(what, "--algorithm distill --teacher MODEL", field="teacher")
        v = self.values
        self._check_share(v["train_share"])
        mean = float(v["out"])
        longest = float(v["longest"] or 4.0 * mean)
        if longest < mean:
            raise UsageError("--longest is below the mean of --out", f"at least {mean:g}", field="longest")
        return AskedLoop(
            model=self.model,
            chips=tuple(dict.fromkeys(v["chips"] or USUAL[:3])),
            counts=v["counts"] or (8, 16, 32, 64),
            answers=Answers(self.prompts, samples, float(v["in_"]), mean, float(v["cv"]), longest),
            steps=self.steps,
            critic=self.algorithm == "ppo",
            reference=self.reference and not taught,
            teacher=self.teacher or "",
            method=self.method,
            placement=self.placement,
            train_share=v["train_share"],
            precision=self.precision,
            rollout_precision=self.rollout_precision,
            trainer=self.trainer,
            runtime=self.runtime,
            layout=v["layout"] or {},
            pricing=self.pricing(),
        )

    def _check_share(self, share: float | None) -> None:
        """Raises `UsageError` for a share that leaves one side without chips, or beside --placement together."""
        if share is None:
            return
        if self.placement == "together":
            raise UsageError(
                "--train-share parts chips, --placement together does not", "one of them", field="train_share"
            )
        if not 0.0 < share < 1.0:
            raise UsageError("--train-share leaves chips on both sides", "for example 50%", field="train_share")
