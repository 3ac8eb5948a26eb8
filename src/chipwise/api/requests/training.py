"""plan --task train and finetune: what one can ask of a training run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING
from typing import TYPE_CHECKING, Any, Literal

from chipwise.api.requests.field import CONFIG, NAMES, PAIRS, SHARE, ChoiceRequest, ask, count_of
from chipwise.api.requests.parts import Money, OwnChips, TrainOptions, numbers_of
from chipwise.api.requests.planning import HAVE, MODEL
from chipwise.api.train import Training, TrainingAsked
from chipwise.api.train_course import Wanted, evaluation_of, failures_of, phases_of, store_of
from chipwise.catalog.machine import kinds
from chipwise.catalog.networks import find, is_built_in
from chipwise.errors import CommandText, Sentence, UsageError, shorten
from chipwise.report.training import TrainReport
from chipwise.values import dataclass

if TYPE_CHECKING:
    from chipwise.calibrate.parameters import Parameters

DAY_S = 86400.0


@dataclass(frozen=True, kw_only=True)
class TrainRequest(ChoiceRequest, OwnChips, Money, TrainOptions):
    """Rank chips, counts and layouts for a training run: step time, days, cost, goodput and bottleneck."""

    model: str = ask(MODEL, MISSING, file=True, reading=CONFIG)
    task: Literal["train", "finetune"] = ask("train from scratch, or fine-tune adapters", "train")
    chips: str | None = ask(
        "the chips to try, separated by commas; default: a few that clouds rent", file=True, reading=NAMES
    )
    have: str | None = ask(
        "chips that you have, e.g. 64xh100, or auto for this machine's; each kind is planned alone", reading=HAVE
    )
    confidence: str | None = ask(
        "required probability that the deadline holds; 50% plans on midpoints; default: 90%", reading=SHARE
    )
    max_chips: int | None = ask("at most this many chips")
    max_usd_per_h: float | None = ask("at most this many dollars per hour in total")
    precision: str = ask(
        "bf16, fp16, fp32, fp8, mxfp8 or nvfp4; best: bf16, and the fastest of the narrower ones that a chip has",
        "bf16",
    )
    parameters: str | None = ask("parameters that chipwise calibrate wrote; default: those shipped", file=True)
    set_: str | None = ask("override chip figures, e.g. hbm=4TB/s,bf16=1.2PFLOPS", name="set", reading=PAIRS)

    @classmethod
    def implied(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """The tokens of the task."""
        return {"tokens": "100M" if given.get("task") == "finetune" else "1T"}

    def run(self) -> TrainReport:
        """The best layout of every chip and count, ranked. Raises the errors of `ranked`."""
        found: TrainReport = self.ranked().whole()
        return found

    def asking(self, numbers: Parameters | None = None, *, published: bool = True) -> TrainingAsked:
        """The run, read; nothing published stands beside its plans."""
        try:
            return TrainingAsked.of(self.asked(numbers))
        except UsageError as error:
            if error.field != "model" or not is_built_in(self.model):
                raise
            raise UsageError(error.what, self._step(), field="model") from None

    def _step(self) -> Sentence:
        """How to ask for a step of a network without tokens on the chips that are named."""
        chips, counts = self._tried()
        chip, count = (chips or ("h100",))[0], (counts or (1,))[0]
        asked = f"estimate {find(self.model).entry.name} --chip {f'{count}x' if count > 1 else ''}{chip} --training"
        return Sentence("one step of its training: ", CommandText(asked))

    def _check_money(self) -> None:
        """Raises `UsageError` for a limit that nothing keeps."""
        for option, most in (("--max-usd", self.max_usd), ("--max-usd-per-h", self.max_usd_per_h)):
            if most is not None and not 0 < most < float("inf"):
                field = option[2:].replace("-", "_")
                raise UsageError(f"{option} {most:g} is out of range", "more than 0", field=field)

    def _tried(self) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """The chips and counts that are named. Raises `UsageError` for chips that are to have counts of their own."""
        given = self.values
        chips = kinds(given["chips"] or ())
        said = sorted({count for counts in chips.values() for count in counts if count is not None})
        if said and (given["counts"] or any(set(counts) != set(said) for counts in chips.values())):
            what = f"--chips {shorten(self.chips or '')}: a run tries the same counts on every chip"
            same = ",".join(str(count) for count in said)
            raise UsageError(what, f"--chips {','.join(chips)} --counts {same}", field="chips")
        return tuple(chips), given["counts"] or tuple(said)

    def asked(self, numbers: Parameters | None = None) -> Training:
        """The run that is asked about, under these fitted numbers (None: those of the question). Raises `UsageError`,
        `UnknownNameError`."""
        self._check_money()
        given = self.values
        chips, counts = self._tried()
        deadline = given["deadline"]
        return Training(
            model=self.model,
            task=self.task,
            chips=chips,
            counts=counts,
            have=self.owned(),
            tokens=given["tokens"],
            seq=given["seq"],
            global_batch=self.global_batch,
            precision=self.precision,
            method=self.method,
            layout=given["layout"] or {},
            trainer=self.trainer,
            memory=given["memory"] or {},
            adapters=given["adapter"] or {},
            objective=self.objective,
            documents=given["documents"] or {},
            known_to_run=self.known_to_run,
            deadline_days=None if deadline is None else deadline / DAY_S,
            confidence=given["confidence"],
            max_usd=self.max_usd,
            max_usd_per_h=self.max_usd_per_h,
            max_chips=count_of(self.max_chips, "--max-chips", "chips"),
            wanted=Wanted(
                failures_of(given["failures"] or {}),
                store_of(given["storage"] or {}),
                phases_of(given["phases"] or {}),
                evaluation_of(given["evaluate"] or {}),
            ),
            network_figures=given["network"] or {},
            changes=given["set_"] or {},
            pricing=self.pricing(),
            parameters=numbers or numbers_of(self.parameters),
            curves=self.curves,
            own_chips=given["own_chips"] or {},
        )
