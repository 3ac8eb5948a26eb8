"""Verdicts on sentences with figures: what the sentence quotes is held against catalogue, prediction and measurement.

Every reading names how the sentence was understood, the conditions under which it was worked out, and the commands that
show the figures; a quantity that holds under some conditions alone is "true with a condition".
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from chipwise.api.loaded import load_generating
from chipwise.api.requests.command import command_line, plain_command
from chipwise.api.requests.kinds import DIRECT, question_in
from chipwise.api.said import OVER, UNDER, Aspect, SaidQuantity, Saying, Spoken, usual_chip
from chipwise.api.suites.speeds import served_alone
from chipwise.catalog.benchmarks import benchmark_of, load_benchmarks
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.machine import DESKS
from chipwise.catalog.names import core
from chipwise.catalog.offer import load_offers
from chipwise.catalog.preferences import preferences
from chipwise.catalog.system import load_systems
from chipwise.errors import ChipwiseError, InfeasibleError, UsageError
from chipwise.evidence.claim import TIE
from chipwise.evidence.speed_rows import ANSWERED, PROMPT
from chipwise.report.records import Figure
from chipwise.report.statements import READ, FigureOf, StatementRecord, shown
from chipwise.units import format_number, format_seconds
from chipwise.values import dataclass

USUAL = "meta-llama/Llama-3.1-8B"
LARGE = "meta-llama/Llama-3.1-70B"
"""What chips are compared by where no model is said: the first that fits on both."""
SHORT = {"in": 128, "out": 2048}
"""Short prompts and long answers, as sellers quote throughput."""
NEAR = preferences().rounded
"""How far a figure of a sentence may be from the catalogue's or the counted one: it was rounded, or counts in 1,024."""
SURE = {"measured": "high", "published": "high", "calibrated": "medium", "modelled": "low"}
STATES = 16
"""Bytes of a parameter in full training with Adam: weights and gradients in 16 bit, weights and two moments in 32."""


@dataclass
class _Shown:
    """The figures behind a verdict and the commands that show them, as they are worked out; `kinds` of predictions and
    the `measures` that were predicted."""

    figures: list[FigureOf]
    commands: list[str]
    kinds: set[str]
    measures: list[str]

    def ask(self, verb: str, **given: Any) -> Any:
        """The answer of a verb, its command noted."""
        asked = {name: value for name, value in given.items() if value not in (None, "")}
        command = plain_command(verb, asked) or command_line(verb, question_in(DIRECT, verb, asked))  # type: ignore[arg-type]
        answer = self.look(verb, **asked)
        if command not in self.commands:
            self.commands.append(command)
        return answer

    @staticmethod
    def look(verb: str, **given: Any) -> Any:
        """The answer of a verb that only prepares a question, and shows no figure."""
        asked = {name: value for name, value in given.items() if value not in (None, "")}
        return question_in(DIRECT, verb, asked).glance()  # of plans the first counts

    def figure(self, what: str, value: float | str, unit: str) -> str:
        """A figure noted; as it is quoted."""
        text = shown(value, unit)
        self.figures.append(FigureOf(what, value, unit, text))
        return text

    def speed(self, what: str, figure: Figure) -> str:
        """A predicted rate noted with its interval; as it is quoted."""
        self.kinds.add(figure.basis)
        text = f"{format_number(figure.mid)} [{format_number(figure.low)} to {format_number(figure.high)}]"
        self.figures.append(FigureOf(what, figure.mid, "tokens/s", f"{text} tokens/s"))
        return f"{text} tokens/s"

    def chip(self, name: str) -> Any:
        """A row of the catalogue, its command noted."""
        command = f"chipwise chips show {name}"
        if command not in self.commands:
            self.commands.append(command)
        return get_chip(name)

    def sure(self) -> str:
        """How sure a verdict is that rests on these figures: as sure as the weakest."""
        weakest = [k for k in ("modelled", "calibrated", "published", "measured") if k in self.kinds]
        return SURE[weakest[0]] if weakest else "high"


def judged(saying: Saying) -> StatementRecord | None:
    """The verdict on a sentence by the figures in it, None where no figure or comparison in it can be worked out."""
    for applies, way in WAYS:
        if not applies(saying):
            continue
        work = _Shown([], [], set(), [])
        try:
            found = way(saying, work)
        except InfeasibleError:
            found = _lacking(saying, work)
        except ChipwiseError:
            continue
        if found is not None:
            if way in PLAIN and VERB_DENIED.search(saying.text):
                found = replace(found, verdict=DENIED_IS.get(found.verdict, found.verdict))
            if saying.always and found.verdict == "true with a condition":
                found = replace(found, verdict="false", because=f"Under conditions only. {found.because}")
            return _record(saying, found, work)
    return None


def _lacking(saying: Saying, work: _Shown) -> _Verdict | None:
    """The verdict on a sentence whose model fits on none of its chips even in 4 bit; None where no plan was found for
    another reason, such as software that is not known to run it: that refutes nothing."""
    lacks = []
    for s in saying.chips:
        if _in_format(work, saying, s) is not None:
            return None
        lacks.append(_few(s) if s.count else f"any number of {get_chip(s.chip).name}")
    if not lacks or not saying.model or saying.network:
        return None
    because = f"{saying.model} does not fit on {' or '.join(lacks)}, in 4 bit either."
    return _Verdict("true" if saying.denied else "false", because)


def _room(asked: Any) -> bool:
    """Whether what `fit` was asked fits."""
    return bool(asked.fits) and asked.fits[0].verdict != "no"


def _formats(
    saying: Saying, work: _Shown, s: Spoken, count: int | None, *narrower: str, batch: int | None = None
) -> Iterator[tuple[str, Any]]:
    """The formats in which a model fits on so many chips, with what `fit` says of each: the checkpoint's own ("") and
    the `narrower` ones in their order; of a sentence with a format only that one."""
    for precision in (saying.precision,) if saying.precision else ("", *narrower):
        with contextlib.suppress(ChipwiseError):
            asked = {"model": saying.model, "chips": s.chip, "count": count, "precision": precision}
            fit = work.ask("fit", **asked, batch=batch)
            if _room(fit):
                yield precision, fit


def _in_format(work: _Shown, saying: Saying, s: Spoken) -> str | None:
    """The first format in which a model fits on as many chips as were said, "" for the checkpoint's own; None where it
    fits in none."""
    return next((precision for precision, _ in _formats(saying, work, s, s.count, "fp8", "w4a16")), None)


RATE = re.compile(r"tokens?\s*(?:/|per)|per second|\btps\b", re.I)
SPEED = re.compile(r"\b(?:fast\w*|quick\w*|slow\w*|performance|outperforms?)\b", re.I)


def _about_more(saying: Saying) -> bool:
    """Whether a sentence is about more than what fits: a rate, a price or a training."""
    return bool(RATE.search(saying.text) or any(saying.of(unit) for unit in ("$/Mtok", "MFU", "run s")))


def _rated(saying: Saying) -> bool:
    return bool(saying.chips and saying.model and not saying.network and saying.of("tokens/s"))


@dataclass(frozen=True, slots=True)
class _Verdict:
    """A verdict, why, and the sentence as it was understood."""

    verdict: str
    because: str
    read: str = ""


VERB_DENIED = re.compile(
    r"\b(?:(?:does|do|did|is|are|can|will|has|have) not(?! (?:more|less|fewer))|cannot|never"
    r"|(?:do|does|is|are|ca|wo|has|have)n't)\b",
    re.I,
)
DENIED_IS = {"true": "false", "false": "true", "misleading": "true"}
"""What the verdict on a sentence makes of one that denies it."""


SHOWN_BY: Mapping[str, str] = {
    "offers": "dated list prices of instances for rent",
    "chips show": "the catalogue: each figure has its source and date in what the command shows",
    "fit": "counted: the memory account",
    "models show": "counted from the model's configuration",
}
"""What figures rest on that are not predicted, by the beginning of the command that shows them."""


def _basis(work: _Shown) -> list[str]:
    """What the figures rest on: facts by the commands that show them, then what was predicted, and how."""
    commands = [c.removeprefix("chipwise ") for c in work.commands]
    basis = [words for verb, words in SHOWN_BY.items() if any(c.startswith(verb) for c in commands)]
    if work.kinds:
        of = f" ({', '.join(work.measures)})" if work.measures else ""
        weakest = "; confidence is that of the weakest" if len(work.kinds) > 1 else ""
        basis.append(f"predicted{of}: {' and '.join(sorted(work.kinds))}{weakest}")
    return basis


def _record(saying: Saying, found: _Verdict, work: _Shown) -> StatementRecord:
    loose = [f"{s.words} as {get_chip(s.chip).name}" for s in saying.chips if s.loose]
    if saying.model and saying.model.rpartition("/")[2].lower() != saying.named.lower().replace(" ", "-"):
        loose.append(f"{saying.named} as {saying.model}")
    because = f"{found.because} Read: {', '.join(loose)}." if loose else found.because
    because += " The price in it was not judged." if saying.left else ""
    return StatementRecord(
        READ,
        found.read or saying.text,
        found.verdict,
        "medium" if _open(saying) and work.sure() == "high" else work.sure(),
        because,
        True,
        tuple(work.figures),
        tuple(_basis(work)),
        tuple(work.commands),
        (),
    )


def _open(saying: Saying) -> bool:
    """Whether a sentence leaves open more than was tried: what is always so, or which of two costs less."""
    return saying.always or (saying.aspect == "price" and len(saying.chips) > 1)


def would_judge(saying: Saying) -> tuple[str, ...]:
    """Commands that would answer what a sentence is about, as far as it names something. What the reader has to fill in
    is in capitals."""
    model, chips = shlex.quote(saying.model or "MODEL"), [s.chip for s in saying.chips]
    counted = ",".join(map(_counted, saying.chips))
    if saying.of("MFU") or (saying.model and TRAINED.search(saying.text)):
        return (_would_train(saying, model),)
    if len(chips) > 1:
        return (f"chipwise compare {model if saying.model else USUAL} --chips {counted}{_price_of(saying)}",)
    if saying.model and chips:
        asked = f"chipwise plan {model} --chips {counted}{_price_of(saying)}"
        return asked, f"chipwise evidence match {model} --chip {chips[0]}"
    if saying.model:
        return (f"chipwise plan {model}",)
    return (f"chipwise chips show {chips[0]}",) if chips else ()


def _price_of(saying: Saying) -> str:
    """The option that gives prices which a sentence about money lacks."""
    money = saying.aspect in ("price", "per dollar") or saying.of("$/Mtok")
    unpriced = [s.chip for s in saying.chips if money and not _priced(s.chip)]
    return f" --price-of {','.join(f'{c}=USD_PER_H' for c in unpriced)}" if unpriced else ""


def _would_train(saying: Saying, model: str) -> str:
    """The command that says how long a training takes."""
    chip = saying.chips[0].chip if saying.chips else usual_chip()
    tokens = f"{said.low / 1e9:g}B" if (said := saying.of("tokens")) else "TOKENS"
    return (
        f"chipwise plan {model} --task train --tokens {tokens} --chips {chip} --counts {_fleet(saying)}"
        f"{' --method lora' if _method(saying) else ''}"
    )


def _fleet(saying: Saying) -> int:
    """The chips of a training: those that were said, else a server."""
    return next((s.count for s in saying.chips if s.count), 8)


def _method(saying: Saying) -> str:
    return "lora" if "lora" in saying.text.lower() else ""


TRAINED = re.compile(r"\btrain(?:s|ed|ing)?\b|fine-?tun\w+|gpu[- ]hours|lora\b", re.I)


def _priced(chip: str) -> bool:
    return any(o.chip == chip and o.usd_per_h is not None for o in load_offers())


def _exact(saying: Saying) -> tuple[Spoken, ...]:
    """The chips without those that a word of a family stands for beside a size of memory: "a 48GB GPU"."""
    sized = saying.of("B") is not None
    return tuple(s for s in saying.chips if not (sized and s.loose))


def _placed(saying: Saying) -> bool:
    """Whether the sentence says on what a model is to fit; what it needs at least is another question."""
    return any(s.count or not (s.loose or saying.needs) for s in _exact(saying))


def _counted(s: Spoken) -> str:
    return f"{s.count}x{s.chip}" if (s.count or 1) > 1 else s.chip


def _many(count: int, chip: str) -> str:
    name = get_chip(chip).name
    return f"{count}x {name}" if count > 1 else name


def _few(s: Spoken) -> str:
    """A chip as it was counted, one where it was not."""
    return _many(s.count or 1, s.chip)


def _at_desk(chip: str) -> bool:

    return any(s.form in DESKS for s in load_systems().holding(chip))


def _holding(work: _Shown, model: str, s: Spoken, precision: str = "") -> int:
    """The chips that were said, else the fewest that hold a model. Raises `InfeasibleError` where none do."""
    if s.count:
        return s.count
    fit = work.look("fit", model=model, chips=s.chip, precision=precision)
    if not _room(fit):
        raise InfeasibleError(f"{model} fits on no count of {s.chip}")
    return int(fit.fits[0].chips)


def _planned(work: _Shown, model: str, chip: str, count: int, task: str, precision: str, **lengths: Any) -> Any:
    """The best plan on all of so many chips; on one machine of a desk the best of those that use at most as many. A
    chip that takes many to hold a model may take more than the fewest. Weights are as they are stored where nothing was
    said of them, but at a desk."""
    if task == "local" and not precision and not _at_desk(chip):
        precision = load_generating(model).graph.model.precision.name
    ways = [{"have": f"{count}x{chip}"}] if count > 1 and not _at_desk(chip) else []
    for way in (*ways, {"chips": f"{count}x{chip}"}):
        with contextlib.suppress(InfeasibleError, UsageError):
            return work.ask("plan", model=model, task=task, precision=precision, **way, **lengths).plans[0]
    return work.ask("plan", model=model, chips=chip, task=task, precision=precision, **lengths).plans[0]


def _held_against(quoted: SaidQuantity, low: float, high: float) -> str:
    """Where a figure lies that was said: "above" a predicted interval or "within" it; below it as a "bound" that is
    exceeded, or as "less", which is no overstatement."""
    if quoted.low > high:
        return "above"
    if quoted.high >= low:
        return "within"
    return "less" if quoted.low else "bound"


LIMITED: Mapping[str, tuple[str, str]] = {
    "within": ("true", "It is within the predicted range. "),
    "bound": ("false", ""),
    "less": ("true with a condition", "It is no limit. "),
}
"""The verdict on a rate that is not above what is predicted, and what is said before the figures."""


# a rate of tokens


@dataclass(frozen=True, slots=True)
class _Rates:
    """Predicted rates of a model on chips: of one user, of all requests with prompts of 2,000 tokens, and of 128; the
    best that was `measured`, per second; whether it is `unsure`; and the words for them."""

    alone: Figure
    full: Figure
    short: Figure
    measured: float
    unsure: bool
    words: Mapping[str, str]

    def guess(self, low: float) -> str:
        """What may make more of one user's speed."""
        if not self.alone.high < low <= GUESSED * self.alone.high:
            return ""
        return " If one user is meant: speculative decoding may multiply that speed, and was not counted."


def _throughput(saying: Saying, work: _Shown) -> _Verdict | None:
    """A quoted rate against one user's, that of all requests of a long batch, and the nearest measurement."""
    quoted, s, precision = saying.quoted("tokens/s"), saying.chips[0], saying.precision
    if _at_desk(s.chip) and not precision and (s.count or 1) == 1:
        return _at_a_desk(saying, work, quoted)
    if s.count:
        if (held := _in_format(work, saying, s)) is None:
            raise InfeasibleError(f"{saying.model} does not fit on {_counted(s)}")
        precision = held
    count = _holding(work, saying.model, s, precision)
    rates = _rates(saying, work, s, count, precision)
    read = f"{_many(count, s.chip)} runs {saying.model} at {quoted.words}."
    words = {**rates.words, "guess": rates.guess(quoted.low)}
    if saying.alone and quoted.low > rates.alone.high:
        narrow = _narrower(saying, work, s, count)
        if narrow is not None and quoted.low <= narrow.high:
            words["four"] = work.speed(f"one user on {words['set_of']}, weights in 4 bit", narrow)
            return _Verdict("true with a condition", IN_FOUR.format(**words), read)
        cases = ONE_USER
    else:
        cases = RATES
    verdict, said = next((v, said) for holds, v, said in cases if holds(quoted, rates))
    return _Verdict(verdict, said.format(**words), read)


def _rates(saying: Saying, work: _Shown, s: Spoken, count: int, precision: str) -> _Rates:
    full = _planned(work, saying.model, s.chip, count, "batch", precision)
    short = _planned(work, saying.model, s.chip, count, "batch", precision, **SHORT)
    alone = _planned(work, saying.model, s.chip, count, "local", precision)
    set_of = _many(alone.chips, s.chip)
    one = work.speed(f"one user on {set_of}", alone.tokens_per_s_per_user)
    many = f"all requests together, 2,000 tokens in and 300 out, {full.precision}"
    most = f"all requests together, 128 tokens in and 2,048 out, {short.precision}"
    together = (
        f"All requests together reach {work.speed(many, full.tokens_per_s)} with prompts of 2,000 tokens, "
        f"{work.speed(most, short.tokens_per_s)} with prompts of 128."
    )
    measured, best = _measured(work, saying, s, count)
    words = {"one": one, "together": together, "measured": measured, "set_of": set_of}
    words["format"] = alone.precision
    unsure = work.sure() == "low"
    return _Rates(alone.tokens_per_s_per_user, full.tokens_per_s, short.tokens_per_s, best, unsure, words)


IN_FOUR = "In 4 bit, where one user is predicted to see {four}; in {format} {one}.{measured}"
NO_USER = "One user is predicted to see {one}.{guess} {together}{measured}"
BEYOND = "More than is predicted at any load. {together} One user sees {one}.{measured}"
SEES_MORE = "One user alone is predicted to see more, {one}. {together}{measured}"
RateCases = tuple[tuple[Callable[[SaidQuantity, _Rates], bool], str, str], ...]
ONE_USER: RateCases = (
    (lambda q, r: bool(r.guess(q.low)), "not settled", NO_USER),
    (lambda q, r: q.low > 2 * r.alone.high, "false", NO_USER),
    (lambda q, r: True, "misleading", NO_USER),
)
"""A rate of one user above what is predicted: when, the verdict, and why; the first that holds."""
RATES: RateCases = (
    (
        lambda q, r: _held_against(q, r.alone.low, r.alone.high) == "within",
        "true",
        "That is the speed of one user: {one} predicted. {together}{measured}",
    ),
    (lambda q, r: _held_against(q, r.alone.low, r.alone.high) == "bound", "false", SEES_MORE),
    (lambda q, r: q.high < r.alone.low, "true with a condition", f"It is no limit. {SEES_MORE}"),
    (
        lambda q, r: q.low <= r.full.high,
        "true with a condition",
        "Of all requests together, not of one user, who sees {one}. {together}{measured}{guess}",
    ),
    (
        lambda q, r: q.low <= r.short.high,
        "true with a condition",
        "Of all requests together, and with short prompts alone. {together} One user sees {one}.{measured}",
    ),
    (
        lambda q, r: q.low <= r.measured * NEAR,
        "true with a condition",
        "Such a rate was measured, by a submission that was tuned for it.{measured} With software as it is "
        "installed less is predicted. {together} One user sees {one}.",
    ),
    (lambda q, r: r.unsure and q.low <= 2 * r.short.high, "not settled", BEYOND),
    (lambda q, r: q.low > 2 * r.short.high, "false", BEYOND),
    (lambda q, r: True, "misleading", BEYOND),
)
"""The same of a rate of whomever."""


def _service(saying: Saying, work: _Shown) -> _Verdict | None:
    """A quoted rate of a chip that its vendor serves models with, against one user's at that service. None for other
    chips, for counts that the service does not run with, and for rates that no single stream may reach."""
    quoted, s = saying.quoted("tokens/s"), saying.chips[0]
    served = served_alone(saying.model, s.chip, saying.precision, s.count or 0)
    if served is None or s.count not in (None, served.chips):
        return None
    where = _many(served.chips, s.chip)
    speeds = [served.plain, *([served.drafted] if served.drafted else [])]
    lengths = {"in": round(PROMPT), "out": round(ANSWERED)}
    with contextlib.suppress(ChipwiseError):  # the service may run what the software list does not name
        _planned(work, saying.model, s.chip, served.chips, "local", served.asked, **lengths)
    one = work.speed(f"one user of the vendor's service, {served.precision} on {where}", served.plain)
    said = f"One user of the vendor's service is predicted to see {one} on {where} in {served.precision}"
    if served.drafted:
        two = work.speed(f"the same with a draft model, since {served.since}", served.drafted)
        said += f", and {two} since a small model drafts there ({served.since})"
    most = max(f.high for f in speeds)
    read = f"{get_chip(s.chip).name}, as its vendor serves it, runs {saying.model} at {quoted.words}."
    places = [_held_against(quoted, f.low, f.high) for f in speeds]
    if quoted.low > GUESSED * most:
        return None
    if quoted.low > most:
        why = "Software of such services is seldom published, and drafts may multiply a speed."
        return _Verdict("not settled", f"{said}. {why}", read)
    verdict, before = LIMITED["within" if "within" in places else "less" if quoted.low else "bound"]
    return _Verdict(verdict, f"{before}{said}.", read)


def _narrower(saying: Saying, work: _Shown, s: Spoken, count: int) -> Figure | None:
    """One user's speed with weights in 4 bit, where no format was said and such weights are served there."""
    if saying.precision:
        return None
    with contextlib.suppress(ChipwiseError):
        found: Figure = _planned(work, saying.model, s.chip, count, "local", "w4a16").tokens_per_s_per_user
        return found
    return None


GUESSED = 5
"""How many times the speed of one user guesses that are all right may give."""


def _at_a_desk(saying: Saying, work: _Shown, quoted: SaidQuantity) -> _Verdict | None:
    """A quoted rate of one user at a machine of their own: local engines run quantised weights."""
    s = saying.chips[0]
    sold = load_chips().entries[s.chip.partition(":")[0]].options[-1:]
    for machine in (s.chip, *sold):
        try:
            report = work.ask("local", have=machine, models=saying.model, min_tps=0.1)
        except InfeasibleError:
            continue
        break
    else:
        raise InfeasibleError(f"{saying.model} fits in no format on {(s.chip, *sold)[-1]}")
    best = report.models[0]
    rate = work.speed(f"one user, {best.precision}", best.tokens_per_s)
    read = f"{get_chip(s.chip).name} runs {saying.model} at {quoted.words}."
    said = f"One user is predicted to see {rate} in {best.precision}, as a local engine runs it there."
    place = _held_against(quoted, best.tokens_per_s.low, best.tokens_per_s.high)
    if place == "above":
        lean = best.precision not in ("q4_k_m", "q3_k_m", "q2_k") and quoted.low <= 4 * best.tokens_per_s.high
        faster = " A format of fewer bits is faster." if lean else ""
        return _Verdict("true with a condition" if lean else "false", f"{said}{faster}", read)
    verdict, before = LIMITED[place]
    return _Verdict(verdict, f"{before}{said}", read)


ALIKE = ("same", "near")


def _measured(work: _Shown, saying: Saying, s: Spoken, count: int) -> tuple[str, float]:
    """The nearest published result of such a model on that chip in a sentence, and its tokens per second on as many
    chips; "" and 0 where there is none near."""
    try:
        report = work.ask("match", model=saying.model, chip=s.chip, count=count)
    except ChipwiseError:
        return "", 0.0
    near = [m for m in report.matches if m.item.speed and m.mark("chip") == "same" and m.mark("model") in ALIKE]
    if not near:
        work.commands.pop()
        return "", 0.0
    item = near[0].item
    name = f"{item.round} {item.benchmark} {item.scenario}, {item.chips}x {item.chip}"
    text = work.figure(f"nearest measurement: {name} ({item.id})", item.speed * (item.chips or 1), "tokens/s")
    work.commands.append(f"chipwise evidence claim --result {item.id} --for {shlex.quote(saying.model)}")
    return f" Nearest measurement: {text} tokens/s, {name}: {near[0].verdict}.", item.speed * count


# seconds of a network without tokens


def _latency(saying: Saying, work: _Shown) -> _Verdict | None:
    quoted, s = saying.quoted("s"), saying.chips[0]
    steps, samples = saying.counted(STEPS), saying.counted(SAMPLES) or 1
    plan = work.ask("plan", model=saying.model, chips=s.chip, batch=1, steps=str(steps) if steps else "").plans[0]
    # one after another, on one chip
    low, mid, high = (samples * t for t in (plan.latency_s.low, plan.latency_s.mid, plan.latency_s.high))
    work.kinds.add(plan.latency_s.basis)
    how = plan.precision if plan.offload in ("", "none") else f"{plan.precision}, {plan.offload} offloaded"
    settings = f"{steps} steps" if steps else "the model's usual settings"
    what = f"{samples} requests, one after another," if samples > 1 else "a request"
    work.figure(f"{what} with {settings}, {how}", mid, "s")
    of = [*([f"{samples} requests"] if samples > 1 else []), *([f"{steps} steps"] if steps else [])]
    read = f"{saying.model}{' with ' if of else ''}{' '.join(of)} takes {quoted.words} on {_many(1, s.chip)}."
    rate = f"{format_seconds(mid)} [{format_seconds(low)} to {format_seconds(high)}] in {how}"
    said = f"{what.capitalize()} with {settings} is predicted to take {rate}"
    if quoted.high < low:
        verdict, why = next((v, why) for times, v, why in FASTER if quoted.high * times >= low)
        return _Verdict(verdict, f"{said}; {why}.", read)
    if quoted.low > high:
        return _Verdict("true with a condition", f"{said}: it can be faster than that.", read)
    return _Verdict("true", f"{said}.", read)


STEPS, SAMPLES = r"(?:sampling |denoising )?steps?", r"images?|pictures?|clips?|videos?|samples?"
"""What a sentence counts of a request, and of requests."""

SMALLER = "fewer steps, a distilled model or a smaller picture would be faster"
FASTER = (
    (2.0, "true with a condition", SMALLER),
    (50.0, "misleading", SMALLER),
    (math.inf, "false", "no usual choice of steps, picture or distilled model is that fast"),
)
"""How many times as fast a picture is with half of the usual steps, which many take, and with one step instead of
fifty, the least there is: verdicts on times that are shorter than predicted."""


# two chips


def _compared(saying: Saying, work: _Shown) -> _Verdict | None:
    """A ratio of two chips in what the sentence is about, against the ratios that are worked out."""
    a, b = saying.chips
    row = TRAINING if _of_training(saying) else RATIOS[saying.aspect]
    try:
        ratios = _both_ways(saying, work, row, a, b)
    except InfeasibleError:
        return _held(saying, work)
    if not ratios:
        return None
    _note(work, ratios)
    if saying.always:
        return _of_always(saying, ratios, a, b)
    verdict = _ratio_verdict(saying, ratios.values(), NEAR if row.exact else TIE, work.sure())
    if verdict == "false" and not saying.ratio:  # what refutes it first
        ratios = dict(sorted(ratios.items(), key=lambda of: of[1] * (saying.more or 0)))
    told = _in_a_sentence(ratios, a, b, saying)
    because = f"{told[0].upper()}{told[1:]}"
    if saying.ratio is None or verdict == "true with a condition":
        verdict, held = _by_measure(verdict, ratios, saying)
        because = f"{held}{because}"
    return _beside(saying, work, _Verdict(verdict, because, ""))


def _beside(saying: Saying, work: _Shown, found: _Verdict) -> _Verdict:
    """A verdict on two chips with what stands beside it: a speed that was not judged, or what their sheets say."""
    if saying.aspect == "price" and SPEED.search(saying.text):
        verdict = "true with a condition" if found.verdict == "true" else found.verdict
        return _Verdict(verdict, f"{found.because} The speed in it was not judged.")
    if saying.aspect not in ("speed", "training"):
        return found
    sheets = ", ".join(_sheets(work, *saying.chips))
    return replace(found, because=f"{found.because} By its sheet it has {sheets}.") if sheets else found


def _by_measure(verdict: str, ratios: Ratios, saying: Saying) -> tuple[str, str]:
    """The verdict on which way a comparison goes, or how far, where it holds in some of what was worked out and not in
    the rest, or by less than predictions err, and in which, before the ratios: what is paid for tokens says more than
    what is paid for hours."""
    if not saying.more:
        return verdict, ""
    holds, beyond, fails = ([of for of, x in ratios.items() if _place(saying, x) == at] for at in PLACES)
    so = [*holds, *beyond]
    tokens = [of for of in fails if of[0] == "price per token"]
    if so and tokens and all(measure == "price per hour" for measure, _ in so):
        return "misleading", f"only {_where(so, ratios)}, not {_where(tokens, ratios)}. "
    if beyond:
        return verdict, _further(holds, beyond, fails, ratios)
    if holds and fails:
        return "true with a condition", f"{_where(holds, ratios)}, not {_where(fails, ratios, 'or')}. "
    return verdict, _slightly(saying, holds, ratios) if verdict == "true with a condition" else ""


def _further(
    holds: Sequence[tuple[str, str]],
    beyond: Sequence[tuple[str, str]],
    fails: Sequence[tuple[str, str]],
    ratios: Ratios,
) -> str:
    """In which of the ratios what is said holds, in which it goes further, and in which not so far."""
    more, less = f"it goes further {_where(beyond, ratios)}", f"not so far {_where(fails, ratios, 'or')}"
    parts = {_where(holds, ratios): holds, more: beyond, less: fails}
    return f"{'; '.join(words for words, some in parts.items() if some)}. "


PLACES = ("holds", "further", "fails")


def _place(saying: Saying, ratio: float) -> str:
    """Whether what a sentence says of two chips "holds" of a ratio, which may go "further" than it says, or "fails"."""
    if saying.ratio is None:
        so = ratio > THE_SAME if saying.more == 1 else ratio < 1 / THE_SAME
        return "holds" if so != saying.denied else "fails"
    low, high = saying.ratio
    if not saying.denied and (ratio > high * TIE if low > 1 else ratio < low / TIE):
        return "further"
    return "holds" if (low / TIE <= ratio <= high * TIE) != saying.denied else "fails"


def _slightly(saying: Saying, holds: Sequence[tuple[str, str]], ratios: Ratios) -> str:
    """In which of the ratios that go the way that is said they do so by too little to count on; "" where it is said how
    far they go."""
    if saying.ratio:
        return ""
    slight = [of for of in holds if 1 / TIE <= ratios[of] <= TIE]
    clear = [of for of in holds if of not in slight]
    held = f"clearly {_where(clear, ratios)}; {_where(slight, ratios)} " if clear and slight else ""
    by = "less than such predictions err" if any(m in PREDICTED for m, _ in slight) else "little"
    return f"{held}by {by}. " if slight else ""


def _where(some: Sequence[tuple[str, str]], every: Ratios, joined: str = "and") -> str:
    """Some of the ratios by name: the measure alone where all its cases are among them."""
    found = []
    for measure in dict.fromkeys(m for m, _ in some):
        mine, cases = ([u for m, u in of if m == measure] for of in (some, every))
        words = WHERE.get(measure, f"in {measure}")
        found.append(words if len(mine) == len(cases) else f"{words} ({'; '.join(mine)})")
    return f" {joined} ".join(found)


def _both_ways(saying: Saying, work: _Shown, row: _Ratios, a: Spoken, b: Spoken) -> Ratios:
    """The ratios that a sentence is judged by: of prices what is paid for tokens before what is paid for hours; of what
    is said to be so always those under other choices too."""
    ratios = row.of(saying, work, a, b)
    if ratios and saying.aspect == "price":
        return _sweep(saying, work, a, b) | ratios
    return ratios | _sweep(saying, work, a, b) if ratios and saying.always else ratios


def _of_always(saying: Saying, ratios: Ratios, a: Spoken, b: Spoken) -> _Verdict:
    """The verdict on what is said to be so always, what refutes it first."""
    verdict, before, against = _always(saying, ratios)
    # what refutes it most clearly first
    first = sorted(ratios, key=lambda of: -abs(math.log(ratios[of])) if of in against else 1.0)
    told = _in_a_sentence({of: ratios[of] for of in first}, a, b, saying)
    return _Verdict(verdict, f"{before}: {told}")


def _note(work: _Shown, ratios: Ratios) -> None:
    """Ratios noted as figures, and which of them were predicted."""
    work.measures[:] = dict.fromkeys(m for m, _ in ratios if m in PREDICTED)
    for (measure, under), value in ratios.items():
        work.figure(f"{measure}, {under}" if under else measure, value, "x")


def _in_a_sentence(ratios: Ratios, a: Spoken, b: Spoken, saying: Saying) -> str:
    """Ratios in words: measure by measure, each with what it holds under; those that are about the same as a range."""
    parts: list[str] = []
    for measure in dict.fromkeys(m for m, _ in ratios):
        cases = {under: ratio for (m, under), ratio in ratios.items() if m == measure}
        least, most = min(cases.values()), max(cases.values())
        if most < TIE * least:
            cases = {"; ".join(filter(None, cases)): math.sqrt(least * most)}
        times = [_times(ratio) for ratio in cases.values()]
        if most < TIE * least and shown(least, "x") != shown(most, "x"):
            times = [f"{shown(least, 'x')} to {shown(most, 'x')} times "]
        held = [f" ({under})" if under else "" for under in cases]
        more = [f"{n.strip()}{under}" for n, under in zip(times[1:], held[1:], strict=True)]
        first = SAYS[measure].format(a=_few(a), b=_few(b), n=times[0], model=_short(saying.model)) + held[0]
        if parts:
            first = first.replace(_few(a), "it").replace(f" as {_few(b)}", "")
        parts.append(", ".join((first, *more)))
    return f"{'; '.join(parts)}."


def _times(ratio: float) -> str:
    """A ratio before "as much as"."""
    return "about " if abs(math.log(ratio)) < math.log(THE_SAME) else f"{shown(ratio, 'x')} times "


def _sheets(work: _Shown, a: Spoken, b: Spoken) -> Iterator[str]:
    """What the data sheets say of as many of two chips, whose speeds are compared."""
    for what, get in (("bf16 peak", _bf16), ("bandwidth", _bandwidth)) if (a.count or 1) == (b.count or 1) else ():
        ours, theirs = get(work.chip(a.chip)), get(work.chip(b.chip))
        if ours and theirs:
            yield f"{work.figure(what, ours / theirs, 'x')} times the {what}"


def _bf16(chip: Any) -> float | None:
    return chip.matrix.get("bf16") or chip.matrix.get("fp16")  # type: ignore[no-any-return]


def _bandwidth(chip: Any) -> float | None:
    return chip.memory.bytes_per_s  # type: ignore[no-any-return]


def _sweep(saying: Saying, work: _Shown, a: Spoken, b: Spoken) -> Ratios:
    """The ratios under other choices that a sentence leaves open, as it says that it always holds: of speed short
    prompts and, where no model is said, a larger one; of prices dollars for the same tokens."""
    found: Ratios = {}
    with contextlib.suppress(ChipwiseError):
        if saying.aspect == "price":
            found = {("price per token", under): 1 / x for (_, under), x in _per_dollar(saying, work, a, b).items()}
        elif saying.aspect == "speed":
            model, precision, na, nb = _common(saying, work, a, b)
            rates = [
                _planned(work, model, s.chip, n, "batch", precision, **SHORT).tokens_per_s_per_chip.mid * n
                for s, n in ((a, na), (b, nb))
            ]
            found["speed", "short prompts and long answers"] = rates[0] / rates[1]
            if not saying.model and model != LARGE:
                other = _speeds(replace(saying, model=LARGE), work, a, b)
                found |= {(m, what if LARGE[-3:] in what else f"{what}, 70B"): x for (m, what), x in other.items()}
    return found


def _always(saying: Saying, ratios: Ratios) -> tuple[str, str, Collection[tuple[str, str]]]:
    """The verdict on what is said to be so always, or never, how its reason begins, and the choices that refute it, the
    clearest first: one of what is left open is enough."""
    ends = saying.ratio or (1.0, 1.0)
    way = saying.more or 0

    def so(ratio: float) -> bool:
        if not way:
            return 1 / TIE < ratio < TIE
        return ratio * TIE >= ends[0] and ratio > 1 if way > 0 else ratio <= ends[1] * TIE and ratio < 1

    against = [of for of, ratio in ratios.items() if so(ratio) == saying.denied]
    if against:
        return "false", "It can be so" if saying.denied else "Not always", against
    return "true", f"None of {len(ratios)} choices of what it leaves open contradicts it", against


Ratios = dict[tuple[str, str], float]
"""Ratios of the first of two chips over the second, by what is compared and the condition that it holds under."""
UNSURE = preferences().unseen
"""How far a ratio that rests on chips which no fit has seen may be from one that is said, without refuting it."""


def _held(saying: Saying, work: _Shown) -> _Verdict | None:
    """Two chips of which one at least does not hold the model that they are compared by: in 4 bit as in its own format,
    who holds it wins."""
    if not saying.model or saying.more != 1 or saying.ratio is not None:
        return None
    holds = [_holds_in_four(saying, work, s) for s in saying.chips]
    if holds[0] == holds[1]:
        return None
    names = [_few(s) for s in saying.chips]
    winner, other = names if holds[0] else reversed(names)
    because = f"In 4 bit {saying.model} fits on {winner} and not on {other}."
    return _Verdict("true" if holds[0] != saying.denied else "false", because)


def _holds_in_four(saying: Saying, work: _Shown, s: Spoken) -> bool:
    """Whether a server's runtime or a local engine has room for a model in 4 bit."""
    fit = work.ask("fit", model=saying.model, chips=s.chip, count=s.count or 1, precision="w4a16")
    local = _local_fits(replace(saying, precision="w4a16"), work, s, s.count or 1)
    holds = _room(fit) or local is not None
    missing = 0.0 if holds or not fit.fits else fit.fits[0].missing_bytes
    work.figure(f"missing on each of {_few(s)}, weights in 4 bit", missing, "B")
    return holds


def _ratio_verdict(saying: Saying, ratios: Collection[float], tie: float, sure: str) -> str:
    """The verdict on a ratio that is said, against those that hold; ratios within `tie` are one. What rests on chips
    that no fit has seen refutes nothing that is near."""
    least, most = min(ratios), max(ratios)
    if saying.ratio is None:
        found = _way_verdict(saying.more or 0, least, most, tie)
        return DENIED_IS.get(found, found) if saying.denied else found
    low, high = saying.ratio
    found = _far_verdict(low, high, least, most, tie)
    found = DENIED_IS.get(found, found) if saying.denied else found
    near = sure == "low" and max(low / most, least / high) < UNSURE
    return "not settled" if near and found in ("false", "misleading") else found


def _far_verdict(low: float, high: float, least: float, most: float, tie: float) -> str:
    """The same where it is said how far it goes."""
    if low / tie <= least and most <= high * tie:
        return "true"
    if low / tie <= most and least <= high * tie:
        return "true with a condition"
    if (least > 1) == (low > 1) and (low > 1 or most < 1):
        # it goes the way that is said, but not so far; or further, and then what is said is no overstatement
        short = most < low if low > 1 else least > high
        return "misleading" if short else "true with a condition"
    return "false"


def _way_verdict(more: int, least: float, most: float, tie: float) -> str:
    """The same where it is only said which way it goes."""
    if more == 0:
        holds, never = least > 1 / tie and most < tie, least > tie or most < 1 / tie
    elif more > 0:
        holds, never = least > tie, most < THE_SAME and least < 1 / tie
    else:
        holds, never = most < 1 / tie, least > 1 / THE_SAME and most > tie
    return "true" if holds else "false" if never else "true with a condition"


def _common(saying: Saying, work: _Shown, a: Spoken, b: Spoken) -> tuple[str, str, int, int]:
    """The model that two chips are compared by, its format, and how many of each hold it: as many as were said, else as
    many of both as the one that needs more (chips of SRAM by themselves). The format is the checkpoint's unless one was
    said: a chip that has a narrower one is not to win by it."""
    said = bool(a.count or b.count)
    for model in (saying.model,) if saying.model else (USUAL, LARGE):
        ones = [_holding(work, model, Spoken(s.chip, s.count or (1 if said else None), "", False, 0)) for s in (a, b)]
        if not said and max(ones) <= SERVER:
            ones = [max(ones)] * 2
        if saying.model or max(ones) <= SERVER:
            break
    precision = saying.precision or work.look("models", model=model).models[0].precision
    return model, precision, ones[0], ones[1]


SERVER = 16
"""Chips of one machine or two; more are held against each other by machines, not by chips."""


def _speeds(saying: Saying, work: _Shown, a: Spoken, b: Spoken) -> Ratios:
    """Ratios of predicted speed of one user and of a full batch, and of the best measured results of a benchmark."""
    model, precision, na, nb = _common(saying, work, a, b)
    one = [_planned(work, model, s.chip, n, "local", precision) for s, n in ((a, na), (b, nb))]
    found: Ratios = {
        ("speed", f"{_short(model)} in {precision}, one user"): one[0].tokens_per_s_per_user.mid
        / one[1].tokens_per_s_per_user.mid
    }
    full = [_planned(work, model, s.chip, n, "batch", precision) for s, n in ((a, na), (b, nb))]
    whole = [p.tokens_per_s_per_chip.mid * n for p, n in zip(full, (na, nb), strict=True)]
    found["speed", "as many requests as fit"] = whole[0] / whole[1]
    work.kinds |= {p.tokens_per_s.basis for p in full}
    if saying.model and na == nb:
        found |= _best_measured(work, model, a.chip, b.chip)
    if not INFERENCE.search(saying.text) and not saying.model and a.count == b.count:
        with contextlib.suppress(ChipwiseError):
            found |= _trainings(saying, work, a, b)
    return found


INFERENCE = re.compile(r"inference|serving|serve|decod|generat|token|llm|chat|latency", re.I)
"""Words of a sentence that is about serving, not about training too."""


def _short(model: str) -> str:
    return model.rpartition("/")[2]


def _best_measured(work: _Shown, model: str, a: str, b: str) -> Ratios:
    """The ratio of the best published results per chip of two chips, on the benchmark of such a model."""
    name = _benchmark(model)
    if not name:
        return {}
    try:
        report = work.ask("match", model=name)
    except ChipwiseError:
        return {}
    best = dict.fromkeys((a, b), 0.0)
    for i in report.measured:
        if i.chip in best and i.scenario == "Offline":
            best[i.chip] = max(best[i.chip], i.speed or 0.0)
    if not all(best.values()):
        work.commands.pop()
        return {}
    return {("speed", f"measured, MLPerf {name} Offline, best results per chip"): best[a] / best[b]}


def _benchmark(model: str) -> str:
    """The benchmark that runs this model or, of another version, one of its family and size; "" where none does."""
    named = benchmark_of(model)
    if named is not None:
        return named.benchmark.name
    words = core(model)
    for benchmark in load_benchmarks().values():
        theirs = core(benchmark.model) if benchmark.model else ()
        if len(theirs) > 1 and (words[0], words[-1]) == (theirs[0], theirs[-1]):
            return benchmark.name
    return ""


def _trainings(saying: Saying, work: _Shown, a: Spoken, b: Spoken) -> Ratios:
    model = saying.model or USUAL
    ours, theirs = (_trained(work, model, s.chip, s.count or 8, "10B").days.mid for s in (a, b))
    return {("speed of training", f"{_short(model)}, {a.count or 8} and {b.count or 8} chips"): theirs / ours}


def _trained(work: _Shown, model: str, chip: str, count: int, tokens: str, method: str = "") -> Any:
    """The best plan of a training."""
    asked = {"model": model, "tokens": tokens, "chips": chip, "counts": str(count), "method": method}
    plan = work.ask("train", **asked).plans[0]
    work.kinds.add(plan.days.basis)
    return plan


def _training_prices(saying: Saying, work: _Shown, a: Spoken, b: Spoken) -> Ratios:
    counts = (a.count or b.count or SERVERS, b.count or a.count or SERVERS)
    plans = [_trained(work, saying.model, s.chip, n, "10B") for s, n in zip((a, b), counts, strict=True)]
    usd = [p.usd for p in plans]
    return {("price of training", ""): usd[0].mid / usd[1].mid} if all(usd) else {}


SERVERS = 64
"""Chips of a few servers, which hold a large model in training."""


def _hourly(work: _Shown, chip: str) -> tuple[float, float] | None:
    """The lowest and the highest list price of one chip on demand an hour; None where none is known."""
    report = work.ask("offers", chip=chip)
    found = next((r for r in report.ranges if r.chip == chip), None)
    return (found.low, found.high) if found else None


def _prices(saying: Saying, work: _Shown, a: Spoken, b: Spoken) -> Ratios:
    na, nb = a.count or 1, b.count or 1
    ours, theirs = _hourly(work, a.chip), _hourly(work, b.chip)
    if ours is None or theirs is None:
        return {}
    return {
        ("price per hour", "lowest list prices"): na * ours[0] / (nb * theirs[0])
    }  # the highest are of unlike providers


def _per_dollar(saying: Saying, work: _Shown, a: Spoken, b: Spoken) -> Ratios:
    model, ours, theirs = _per_million(saying, work, a, b, "usd_per_million_out")
    if not (ours and theirs):
        return {}
    return {
        ("tokens per dollar", f"{_short(model)}, full batch, middle prices"): theirs.mid / ours.mid,
        ("tokens per dollar", "lowest prices"): theirs.low / ours.low,
    }


def _per_million(
    saying: Saying, work: _Shown, a: Spoken, b: Spoken, what: str
) -> tuple[str, Figure | None, Figure | None]:
    """What a million tokens take of two chips at full batches, and of which model."""
    model, precision, na, nb = _common(saying, work, a, b)
    plans = [_planned(work, model, s.chip, n, "batch", precision) for s, n in ((a, na), (b, nb))]
    ours, theirs = (getattr(p, what) for p in plans)
    if ours and theirs:
        work.kinds |= {p.tokens_per_s.basis for p in plans}
    return model, ours, theirs


def _energies(saying: Saying, work: _Shown, a: Spoken, b: Spoken) -> Ratios:
    model, ours, theirs = _per_million(saying, work, a, b, "kwh_per_million_out")
    if not (ours and theirs):
        return {}
    return {("tokens per joule", f"{_short(model)}, full batch"): theirs.mid / ours.mid}


@dataclass(frozen=True, slots=True)
class _Ratios:
    """How two chips are compared in one aspect: the ratios `of` the first over the second, and whether sheets say them
    exactly."""

    of: Callable[[Saying, _Shown, Spoken, Spoken], Ratios]
    exact: bool = False


def _figures_of(what: str, get: Callable[[Any], float | None]) -> _Ratios:
    def ratio(saying: Saying, work: _Shown, a: Spoken, b: Spoken) -> Ratios:
        ends = [get(work.chip(s.chip)) for s in (a, b)]
        if not all(ends):
            return {}
        return {(what, ""): (a.count or 1) * ends[0] / ((b.count or 1) * ends[1])}  # type: ignore[operator]

    return _Ratios(ratio, exact=True)


RATIOS: Mapping[Aspect, _Ratios] = {
    "speed": _Ratios(_speeds),
    "training": _Ratios(_trainings),
    "price": _Ratios(_prices),
    "per dollar": _Ratios(_per_dollar),
    "energy": _Ratios(_energies),
    "power": _figures_of("power limit", lambda c: c.tdp_w),
    "memory": _figures_of("memory", lambda c: c.memory.usable_bytes),
    "bandwidth": _figures_of("bandwidth", _bandwidth),
    "peak": _figures_of("dense bf16 peak", _bf16),
}
"""What is worked out for a comparison, by what it is about."""
SAYS: Mapping[str, str] = {
    "price per hour": "per hour {a} costs {n}as much as {b}",
    "price per token": "per token {a} costs {n}as much as {b}",
    "price of training": "to train {model} costs {n}as much on {a} as on {b}",
    "tokens per dollar": "per dollar {a} makes {n}as many tokens as {b}",
    "tokens per joule": "per joule {a} makes {n}as many tokens as {b}",
    "speed": "{a} is {n}as fast as {b}",
    "speed of training": "in training {a} is {n}as fast as {b}",
    "power limit": "{a} has {n}as high a power limit as {b}",
    "memory": "{a} has {n}as much memory as {b}",
    "bandwidth": "{a} has {n}as much bandwidth as {b}",
    "dense bf16 peak": "{a} has {n}as high a dense bf16 peak as {b}",
}
"""What is compared of two chips, and how a sentence says it."""
WHERE = {"price per hour": "per hour", "price per token": "per token", "speed": "in inference"}
WHERE |= {"speed of training": "in training"}
"""Where a comparison holds, by what is compared."""
PREDICTED = frozenset(
    {"price per token", "price of training", "tokens per dollar", "tokens per joule", "speed", "speed of training"}
)
"""Those of them that are predicted."""
THE_SAME = 1.02
"""ratio: below it two figures are about the same. Chosen: half of what list prices of one day differ by; moves words
alone."""
TRAINING = _Ratios(_training_prices)
"""The same for dollars of a model's training."""


def _of_training(saying: Saying) -> bool:
    return bool(saying.aspect == "price" and saying.model and TRAINED.search(saying.text))


# memory of a model


def _cache(saying: Saying, work: _Shown) -> _Verdict | None:
    quoted = saying.quoted("B/token")
    model = work.ask("models", model=saying.model).models[0]
    each = work.figure("cache of a token", model.kv_bytes_per_token, "B")
    near = quoted.low / NEAR <= model.kv_bytes_per_token <= quoted.high * NEAR
    because = f"A token of {model.name} keeps {each} in the cache, in 16 bit."
    return _Verdict("true" if near else "false", because)


def _memory(saying: Saying, work: _Shown) -> _Verdict | None:
    """Bytes that a model is said to need, or to fit into."""
    quoted = saying.quoted("B")
    record = work.ask("models", model=saying.model).models[0]
    if saying.aspect == "training":
        return None if _method(saying) else _states(quoted, work, record)
    wide = work.figure(f"weights in {record.precision}", record.weight_bytes, "B")
    fit = work.ask("fit", model=saying.model, chips=usual_chip(), count=8, precision="w4a16")
    narrow = fit.model.weight_bytes
    four = work.figure("weights in 4 bit", narrow, "B")
    cache = work.figure("cache of 1,000 tokens", 1000 * record.kv_bytes_per_token, "B")
    because = (
        f"Weights are {wide} in {record.precision} and {four} in 4 bit; every 1,000 tokens of a request "
        f"add {cache}, activations and the runtime some GB."
    )
    weights = _weights(record, narrow, saying.precision)
    if saying.precision == "bf16" and record.precision not in FULL:
        because = f"In 16 bit weights are {work.figure('weights in 16 bit', weights, 'B')}. {because}"
    if saying.needs:
        near, lean = (quoted.low / NEAR <= size <= quoted.high * NEAR for size in (weights, narrow))
        sure = near and bool(saying.precision)
    else:
        sure, lean = quoted.high > 1.1 * weights, quoted.high > 1.1 * narrow
        near = sure
    verdict = "true" if sure else "true with a condition" if near or lean else "false"
    turned = saying.denied and not saying.needs
    return _Verdict(DENIED_IS.get(verdict, verdict) if turned else verdict, because)


FULL = ("bf16", "fp16")


def _weights(record: Any, narrow: float, precision: str) -> float:
    """Bytes of the weights in a format that was said; as they are stored where none was, or they are leaner."""
    if precision == "w4a16":
        return narrow
    if precision in ("fp8", "int8") and record.precision in FULL:
        return 0.53 * float(record.weight_bytes)
    if precision == "bf16" and record.precision not in FULL:
        return 2.0 * float(record.params)
    return float(record.weight_bytes)


def _states(quoted: SaidQuantity, work: _Shown, record: Any) -> _Verdict:
    """Bytes of full training."""
    states = STATES * record.params
    whole = work.figure("weights, gradients and Adam's state of all parameters", states, "B")
    because = (
        f"Weights and gradients in 16 bit and what Adam keeps in 32 are {whole}, 16 bytes a parameter; "
        "activations come on top, LoRA or 8-bit optimisers take far less."
    )
    near = quoted.low / NEAR <= states <= quoted.high * NEAR
    return _Verdict("true with a condition" if near else "misleading", because)


def _fits(saying: Saying, work: _Shown) -> _Verdict | None:
    """Whether a model fits on chips, in its own format or in 4 bit."""
    s = _exact(saying)[0]
    count, where = s.count or 1, _few(s)
    asked = work.ask("fit", model=saying.model, chips=s.chip, count=count, precision=saying.precision)
    if not asked.fits:
        return None
    fit = asked.fits[0]
    weights = work.figure(f"weights in {asked.model.precision}", asked.model.weight_bytes, "B")
    if fit.verdict != "no":
        verdict, many = _roomy(work, fit)
        verdict = DENIED_IS.get(verdict, verdict) if saying.denied else verdict
        return _Verdict(verdict, f"Weights of {weights} fit on {where}, and {many} too.")
    if not saying.denied and (found := _local_fits(saying, work, s, count)) is not None:
        return found
    short = work.figure("missing on each", fit.missing_bytes, "B")
    held = count * (get_chip(s.chip).memory.usable_bytes or 0.0)
    if asked.model.weight_bytes <= held and not saying.denied:
        have = work.figure(f"memory of {where}", held, "B")
        within = f"Weights of {weights} lie within the {have} of {where}"
        because = f"{within}, but a server needs {short} more for cache and workspace."
        return _Verdict("true with a condition", because)
    because = f"Weights are {weights} in {asked.model.precision}: on {where} each lacks {short}."
    others, lean = _what_fits(saying, work, s, count)
    verdict = "true with a condition" if lean else "true" if saying.denied else "false"
    return _Verdict(verdict, f"{because}{others}")


def _roomy(work: _Shown, fit: Any) -> tuple[str, str]:
    """Whether a fit is one for serving, and how many requests fit too."""
    batch = work.figure("requests of 2,300 tokens at once", float(fit.largest_batch), "")
    easy = fit.verdict == "comfortable" or fit.largest_batch > MANY
    many = "1 request of 2,300 tokens fits" if batch == "1" else f"{batch} requests of 2,300 tokens fit"
    return "true" if easy else "true with a condition", many


def _what_fits(saying: Saying, work: _Shown, s: Spoken, count: int) -> tuple[str, bool]:
    """How many chips would hold a model that does not fit, and whether it fits in 4 bit where no format was said."""
    because, lean = "", False
    fewest = work.ask("fit", model=saying.model, chips=s.chip, precision=saying.precision)
    if _room(fewest):
        holding = work.figure("chips that hold it", float(fewest.fits[0].chips), "")
        because = f" The fewest that hold it are {holding}."
    if not saying.precision:
        narrow = work.ask("fit", model=saying.model, chips=s.chip, count=count, precision="w4a16")
        lean = _room(narrow)
    if lean:
        size = work.figure("weights in 4 bit", narrow.model.weight_bytes, "B")
        because += f" In 4 bit ({size}) it fits."
    return because, lean


BITS = {"w4a16": "q4", "int8": "q8"}
"""Formats of local engines by what sentences call them."""


def _local_fits(saying: Saying, work: _Shown, s: Spoken, count: int) -> _Verdict | None:
    """Whether a local engine runs a model on a desk machine that a server's runtime has no room on, in the
    format that was said or another. None where it does not."""
    if not _at_desk(s.chip) or (saying.precision and saying.precision not in BITS):
        return None
    quant = BITS.get(saying.precision, "")
    with contextlib.suppress(ChipwiseError):
        best = work.ask("local", have=_counted(s), models=saying.model, min_tps=0.1, context=LITTLE).models[0]
        if best.precision.startswith(quant):
            rate = work.speed(f"one user, {best.precision}", best.tokens_per_s)
            because = f"In {best.precision} a local engine runs it on {_many(count, s.chip)}, at {rate} for one user"
            return _Verdict("true with a condition", f"{because} and a context of {LITTLE:,} tokens.")
    return None


LITTLE = 2048
"""Tokens of context of a chat that is short."""


def _needed(saying: Saying, work: _Shown) -> _Verdict | None:
    """How many chips a model is said to need: the fewest that hold it, with the requests of all users where some are
    said."""
    s, users = saying.chips[0], saying.of("users")
    quoted = saying.of("chips") or _said_to_need(saying)
    if quoted is None:
        return None
    batch = round(users.low or users.high) if users else None
    able = _formats(saying, work, s, None, "int8", "w4a16", batch=batch)
    fewest = {fit.model.precision: fit.fits[0].chips for _, fit in able}
    if not fewest:
        return None
    said = [f"{work.figure(f'fewest chips in {p}', float(n), '')} in {p}" for p, n in fewest.items()]
    held = f"{batch:,} requests of 2,300 tokens" if batch else "one request"
    because = f"The fewest {get_chip(s.chip).name} that hold the weights and {held} are {', '.join(said)}."
    verdict, lead, more = _against_fewest(quoted, fewest)
    return _Verdict(verdict, f"{lead}{because}{more}")


def _against_fewest(quoted: SaidQuantity, fewest: Mapping[str, int]) -> tuple[str, str, str]:
    """The verdict on a need of chips by the fewest that hold a model in each format, its own first; what is said before
    they are told, and what after."""
    near = NEAR if quoted.low > SERVER else 1.0  # people round hundreds, not a server's
    own, first = next(iter(fewest.items()))
    so = [p for p, n in fewest.items() if quoted.low / near <= n <= quoted.high * near]
    if own in so:
        return "true", "", ""
    if so:
        return "true with a condition", f"In {' or '.join(so)}, not in {own}. ", ""
    if quoted.low > first:
        far = quoted.low > SPARE * first
        more = "" if far else " More hold more requests at once and are faster."
        are = "is" if first == 1 else "are"
        return "false" if far else "misleading", f"{first:,} {are} enough. ", more
    lean = min(fewest.values()) < quoted.high
    enough = "That is enough in fewer bits alone. "
    return ("misleading", enough, "") if lean else ("false", "That is too few. ", "")


SPARE = 4
"""How many times the fewest chips people take for the cache of many requests, whole servers and speed."""
NEEDED = re.compile(r"\b(?:needs?|requires?|takes?)\b(?:(?!\b(?:on|in|with|from)\b)[^,.;\d])*$", re.I)
NEEDED_OF = re.compile(r"^[^,.;]*\b(?:is|are) (?:needed|required|necessary)\b", re.I)
"""What stands before and behind chips that a model is said to need."""


def _said_to_need(saying: Saying) -> SaidQuantity | None:
    """How many of the chip that it names a sentence says a model needs; None where it says nothing of that."""
    s = saying.chips[0]
    before, after = saying.text[: s.at], saying.text[s.at :]
    if not s.count or TRAINED.search(saying.text) or not (NEEDED.search(before) or NEEDED_OF.search(after)):
        return None
    under, over = UNDER.search(before), OVER.search(before)
    if under:
        return SaidQuantity(0.0, s.count - bool(re.match("less|fewer|under|below", under[0], re.I)), "chips", s.words)
    if over and re.match("more|over|above|exceed", over[0], re.I):
        return SaidQuantity(s.count + 1.0, math.inf, "chips", s.words)
    return SaidQuantity(s.count, s.count, "chips", s.words)


# users


def _users(saying: Saying, work: _Shown) -> _Verdict | None:
    """How many who ask at once are said to be served: against the requests that fit at once and, where a rate is said,
    against what each is predicted to see under that load and what all reach together."""
    said, s = saying.quoted("users"), _exact(saying)[0]
    users, count = round(said.low or said.high), s.count or 1
    where = _many(count, s.chip)
    held = _held_at_once(saying, work, s, count)
    many = [f"{work.figure(f'requests at once in {p}', float(n), '')} in {p}" for p, n in held.items()]
    because = f"Requests of 2,300 tokens that fit at once on {where} are {', '.join(many)}."
    enough = [p for p, n in held.items() if n >= users]
    whole = _rate_of_all(saying, work, users, s, count)
    if not enough:
        verdict = "false" if users > GUESSED * max(held.values()) else "misleading"
        return _Verdict(verdict, f"Not where all {users:,} ask at once. {because}{whole}")
    lead, verdict = "", "true"
    if next(iter(held)) not in enough:
        lead, verdict = f"In {' or '.join(enough)}, not in {next(iter(held))}. ", "true with a condition"
    if rate := saying.of("tokens/s"):
        verdict, lead = _users_at(saying, work, rate, users, s, count) or (verdict, lead)
    if saying.needs and verdict == "true":
        verdict, lead = "true with a condition", "They are enough; whether fewer are was not tried. "
    return _Verdict(verdict, f"{lead}{because}{whole}")


def _held_at_once(saying: Saying, work: _Shown, s: Spoken, count: int) -> dict[str, int]:
    """The requests that fit at once on so many chips, by format, the model's own first. Raises `InfeasibleError` where
    the model fits in none."""
    held: dict[str, int] = {}
    for _, fit in _formats(saying, work, s, count, "fp8", "w4a16"):
        held.setdefault(fit.model.precision, fit.fits[0].largest_batch)
    if not held:
        raise InfeasibleError(f"{saying.model} does not fit on {_many(count, s.chip)}")
    return held


TOGETHER = re.compile(r"\b(?:total|together|altogether|combined|overall)\b", re.I)
"""What makes a rate that of all users."""


def _rate_of_all(saying: Saying, work: _Shown, users: int, s: Spoken, count: int) -> str:
    """What users at the rate that is said take together, and what all requests reach, in a sentence; "" without a
    rate."""
    rate = saying.of("tokens/s")
    if rate is None:
        return ""
    full = _planned(work, saying.model, s.chip, count, "batch", saying.precision)
    most = work.speed(f"all requests together, 2,000 tokens in and 300 out, {full.precision}", full.tokens_per_s)
    low = rate.low or rate.high
    each = 1 if TOGETHER.search(saying.text) else users
    took = work.figure(f"{users:,} users at {rate.words}", each * low, "tokens/s")
    return f" {users:,} users at {rate.words} take {took} tokens/s for all; full batches reach {most}."


def _users_at(
    saying: Saying, work: _Shown, rate: SaidQuantity, users: int, s: Spoken, count: int
) -> tuple[str, str] | None:
    """The verdict on a rate under a load of so many users, and its first sentence: the best of the layouts that suit a
    full batch and one user. None where the load was not worked out."""
    found = []
    for task in ("batch", "local"):
        with contextlib.suppress(ChipwiseError):
            plan = _planned(work, saying.model, s.chip, count, task, saying.precision)
            layout = {name: getattr(plan.layout, name) for name in ("tp", "pp", "dp", "ep")}
            asked = {"precision": plan.precision, "replicas": plan.replicas, "runtime": plan.runtime}
            given = {"model": saying.model, "chip": s.chip, "concurrency": float(users), **layout, **asked}
            found.append(work.ask("estimate", **given).plans[0])
    if not found:
        return "not settled", "What each sees under that load was not worked out. "
    best = max(found, key=lambda p: p.tokens_per_s_per_user.mid)
    low = rate.low or rate.high
    each = low / users if TOGETHER.search(saying.text) else low
    seen = work.speed(f"each of {users:,} users at once, {best.precision}", best.tokens_per_s_per_user)
    told = f"Each of {users:,} at once is predicted to see {seen} in {best.precision}. "
    high = best.tokens_per_s_per_user.high
    if each <= high:
        near = each > best.tokens_per_s_per_user.mid
        return "not settled" if near else "true", f"{'Near what is predicted. ' if near else ''}{told}"
    if low <= best.tokens_per_s.high:
        return "true with a condition", f"Of all together, not of each. {told}"
    return ("false" if each > 2 * high else "misleading"), told


MANY = 8
"""Requests at once from which on a fit counts as one for serving."""


# training, and what tokens cost


def _utilisation(saying: Saying, work: _Shown) -> _Verdict | None:
    """A model FLOPs utilisation against that of the best plan; without a model of a small and a large one."""
    quoted, s = saying.quoted("MFU"), saying.chips[0]
    count = _fleet(saying)
    places, told = [], []
    for model in (saying.model,) if saying.model else (USUAL, LARGE):
        plan = _trained(work, model, s.chip, count, "10B", _method(saying))
        # of the same steps a longer one has less of it
        low, high = (plan.mfu * plan.step_s.mid / t for t in (plan.step_s.high, plan.step_s.low))
        mid = work.figure(f"MFU of training {_short(model)} with {plan.stack}", plan.mfu, "%")
        places.append(_held_against(quoted, low, high))
        told.append(f"{mid} [{low:.0%} to {high:.0%}] for {_short(model)} with {plan.stack}")
    because = f"The best plan on {_many(count, s.chip)} is predicted to reach an MFU of {', '.join(told)}."
    if len(set(places)) > 1:
        return _Verdict("true with a condition", f"{because} It depends on the model.")
    if places[0] == "above":
        return _Verdict("false" if quoted.low > 1.0 else "misleading", f"{because} Less is predicted.")
    verdict, before = LIMITED[places[0]]
    return _Verdict(verdict, f"{before}{because}")


def _training(saying: Saying, work: _Shown) -> _Verdict | None:
    """How long a training is said to take: of as many tokens as are said, else how many it could be."""
    quoted, s, tokens = saying.quoted("run s"), saying.chips[0], saying.of("tokens")
    count = _fleet(saying)
    asked = f"{tokens.low / 1e9:g}B" if tokens else "10B"
    plan = _trained(work, saying.model, s.chip, count, asked, _method(saying))
    where = f"{_short(saying.model)} on {_many(count, s.chip)} with {plan.stack}"
    if tokens is None:
        reached = [10e9 * quoted.high / (DAY * days) for days in (plan.days.mid, plan.days.high, plan.days.low)]
        if not all(map(math.isfinite, reached)):
            return None
        mid = work.figure(f"tokens in {quoted.words}, billions", reached[0] / 1e9, "")
        low, high = (shown(n / 1e9, "") for n in reached[1:])
        because = f"It depends on the tokens, which are not said: {quoted.words} are enough for {mid}"
        return _Verdict("not settled", f"{because} [{low} to {high}] billion of {where}.")
    mid, low, high = (format_seconds(DAY * days) for days in (plan.days.mid, plan.days.low, plan.days.high))
    work.figure(f"time of training {where}", DAY * plan.days.mid, "s")
    because = f"{tokens.words} for {where} are predicted to take {mid} [{low} to {high}]."
    if quoted.high < DAY * plan.days.low:
        far = DAY * plan.days.low > 2 * quoted.high
        return _Verdict("false" if far else "misleading", f"{because} That is longer.")
    if quoted.low > DAY * plan.days.high:
        return _Verdict("true with a condition", f"{because} It can be faster than that.")
    return _Verdict("true", because)


DAY = 86400.0
"""s: of a day. Exact: by definition."""


def _token_price(saying: Saying, work: _Shown) -> _Verdict | None:
    """Dollars for a million generated tokens on chips at dated prices and full batches: the least that it takes."""
    quoted, s = saying.quoted("$/Mtok"), saying.chips[0]
    count = _holding(work, saying.model, s, saying.precision)
    plan = work.ask(
        "plan", model=saying.model, chips=f"{count}x{s.chip}", task="batch", precision=saying.precision
    ).plans[0]
    cost = plan.usd_per_million_out
    if cost is None:
        return None
    work.kinds.add(plan.tokens_per_s.basis)
    where = f"{_many(plan.chips, s.chip)}, {plan.precision}, 2,000 tokens in and 300 out"
    low, mid, high = (
        work.figure(f"{what} of a million generated tokens on {where}", x, "$")
        for what, x in (("lowest price", cost.low), ("middle price", cost.mid), ("highest price", cost.high))
    )
    because = f"At full batches a million generated tokens cost {mid} [{low} to {high}] on {where}."
    if quoted.high < cost.low:
        far = 2 * quoted.high < cost.low
        why = "Shorter prompts, spot and owned chips cost less."
        return _Verdict("false" if far else "true with a condition", f"{because} {why}")
    if quoted.low > cost.high:
        return _Verdict("true with a condition", f"{because} At a lighter load each costs more.")
    return _Verdict("true with a condition", f"{because} It depends on the load and on who rents it out.")


# the sheet of a chip


def _price(saying: Saying, work: _Shown) -> _Verdict | None:
    quoted, s = saying.quoted("$/h"), saying.chips[0]
    ends = _hourly(work, s.chip)
    if ends is None:
        return None
    low, high = (
        work.figure(f"{what} list price of one, on demand, an hour", value, "$")
        for what, value in zip(("lowest", "highest"), ends, strict=True)
    )
    because = f"Dated list prices of one on demand go from {low} to {high} an hour."
    each = [value / (s.count or 1) for value in (quoted.low, quoted.high)]
    if each[1] < ends[0] / NEAR:
        far = each[1] < ends[0] / 2
        because = because if far else f"not on demand. {because}"
        said = f"{because} Below them are spot, reserved and owned chips, and offers that are not listed."
        return _Verdict("false" if far else "true with a condition", said)
    if each[0] > ends[1] * NEAR:
        return _Verdict("misleading", because)
    spread = ends[1] > 2 * ends[0]
    if spread:
        return _Verdict("true with a condition", f"{because} It depends on who rents it out.")
    return _Verdict("true", because)


def _sheet(saying: Saying, work: _Shown) -> _Verdict | None:
    """Figures of a data sheet: memory, bandwidth, peaks, power."""
    s = saying.chips[0]
    chip, count = work.chip(s.chip), s.count or 1
    domain = chip.scaleup.domain if chip.scaleup is not None and DOMAIN.search(chip.name) else 1
    found = [
        _peak(work, quoted, chip, count, saying)
        if quoted.unit == "FLOP/s"
        else _like(work, quoted, *_row(saying, quoted, s, chip), count, 1 if quoted.unit == "W" else domain)
        for quoted in saying.quantities
        if quoted.unit in ("B", "B/s", "W", "FLOP/s")
    ]
    told = [part for part in found if part is not None]
    if not told:
        return None
    order = ("false", "misleading", "not settled", "true with a condition", "true")
    verdict = min((v for v, _ in told), key=order.index)
    return _Verdict(verdict, f"{chip.name}: {'; '.join(said for _, said in told)}.")


def _row(saying: Saying, quoted: SaidQuantity, s: Spoken, chip: Any) -> tuple[str, float | None]:
    """The line of a chip's sheet that a figure is held against, and what stands there: of memory the size that is sold
    and nearest to what was said, of links one direction unless both are nearer."""
    if quoted.unit == "W":
        return "power limit", chip.tdp_w
    said = quoted.high if math.isfinite(quoted.high) else quoted.low
    if quoted.unit == "B":
        sold = [get_chip(name) for name in load_chips().entries[s.chip.partition(":")[0]].options]
        sizes = [c.memory.label_bytes or c.memory.usable_bytes or 0.0 for c in (chip, *sold)]
        return "memory", min(sizes, key=lambda size: abs((s.count or 1) * size - said))
    if "nvlink" not in saying.text.lower():
        return "bandwidth of the memory", chip.memory.bytes_per_s
    return "link of one direction", chip.scaleup.bytes_per_s if chip.scaleup else None


DOMAIN = re.compile(r"NVL\d{2,}")
"""Names of chips that are those of their rack too."""


def _like(
    work: _Shown, quoted: SaidQuantity, what: str, value: float | None, count: int, domain: int | None = 1
) -> tuple[str, str] | None:
    """A figure of so many chips, else of a `domain` of them: labels of memory count in 1,024, and people add them up in
    thousands, as they do both directions of links."""
    if not value:
        return None

    joined = bool(domain) and not _labelled(quoted, count * value) and _labelled(quoted, (domain or 1) * value)
    size = (domain or 1) if joined else count
    near = _labelled(quoted, size * value)
    text = work.figure(f"{what} of {size}" if size > count else what, size * value, quoted.unit)
    if not near and what in BOTH:
        return _like(work, quoted, BOTH[what], 2 * value, count, domain)
    if quoted.unit == "B" and size * value % 2**30 == 0:
        text = f"{size * value / 2**30:,.0f} GiB ({text})"
    if size > count:
        return "true with a condition", f"{what} of {size} together {text}"
    return "true" if near else "false", f"{what} {text}"


def _labelled(quoted: SaidQuantity, value: float) -> bool:
    """Whether a value is what was said, by its label too."""
    label = value / 2**30 * 1e9 if quoted.unit == "B" and value % 2**30 == 0 else value
    return any(quoted.low / LABEL <= v <= quoted.high * LABEL for v in (value, label))


BOTH = {"link of one direction": "links of both directions"}
"""What sheets count twice."""


LABEL = 1.08
"""How far a figure of a sheet may be from the catalogue's: rounded, or counted in 1,024."""
LIKE = {1: 1.04, 2: 1.12}
"""How far a peak that is said may be from the catalogue's, by whether it counts zeros: those are rounded up more."""


def _peak(work: _Shown, quoted: SaidQuantity, chip: Any, count: int, saying: Saying) -> tuple[str, str] | None:
    """A peak: dense, with the zeros of structured sparsity counted, or of a whole domain of chips; of the types of the
    format that was said, where the catalogue has a peak of it."""
    kinds, peaks = _said_peaks(saying, {**chip.vector, **chip.matrix})
    if not peaks:
        why = f"no peak in {' or '.join(kinds)} is published, which is another than in fewer bits"
        return ("not settled", why) if chip.vector or chip.matrix else None
    best = max(peaks, key=peaks.__getitem__)
    domain = chip.scaleup.domain if chip.scaleup is not None and chip.scaleup.domain else 1
    sizes, counted = ((count,), (1,)) if saying.wide else ((count,) if count > 1 else (1, domain), (1, 2))
    for size, zeros, kind in itertools.product(sizes, counted, peaks if quoted.low else (best,)):
        whole = size * peaks[kind]
        if not quoted.low / LIKE[zeros] <= zeros * whole <= quoted.high * LIKE[zeros]:
            continue
        dense = work.figure(f"dense peak in {kind}{f' of {size}' * (size > 1)}", whole, "FLOP/s")
        said = f"the dense peak in {kind}{f' of {size} chips' * (size > 1)} is {dense}"
        if zeros > 1:
            return "misleading", f"{said}: twice that counts the zeros of structured sparsity"
        return ("true" if size == count else "true with a condition"), said
    return _no_peak(work, quoted, best, peaks[best] * count)


def _said_peaks(saying: Saying, every: Mapping[str, float]) -> tuple[Sequence[str], Mapping[str, float]]:
    """The types of products that a sentence names, by their words before those of its format, and their peaks."""
    kinds = sorted(saying.wide or TYPES.get(saying.precision, ()), key=lambda k: k not in saying.text.lower())
    return kinds, {k: every[k] for kind in kinds for k in every if k.partition("/")[0] == kind} if kinds else every


def _no_peak(work: _Shown, quoted: SaidQuantity, kind: str, peak: float) -> tuple[str, str]:
    """A peak that is not what is said: near it, or far off."""
    text = work.figure(f"highest dense peak, {kind}", peak, "FLOP/s")
    if quoted.low / NEAR <= peak <= quoted.high * NEAR:
        why = f"the dense peak in {kind} is {text}: other clocks or editions of a sheet differ"
        return "true with a condition", why
    return "false", f"the highest dense peak is {text}, in {kind}, and none is what is said"


TYPES = {"fp8": ("fp8",), "int8": ("int8",), "nvfp4": ("fp4",), "bf16": ("bf16", "fp16"), "w4a16": ("int4",)}
"""Types of products by the formats that a sentence names."""


PLAIN = (
    _service, _throughput, _latency, _cache, _needed, _users, _price, _sheet, _utilisation, _training, _token_price
)  # fmt: skip
"""Ways that judge a sentence as if it affirmed: what denies is turned round afterwards."""


def _of_model(saying: Saying) -> bool:
    """Whether it is about a language model."""
    return bool(saying.model and not saying.network)


WAYS: tuple[tuple[Callable[[Saying], Any], Callable[[Saying, _Shown], _Verdict | None]], ...] = (
    (lambda s: len(s.chips) == 1 and not s.network and s.of("MFU"), _utilisation),
    (lambda s: len(s.chips) == 1 and _of_model(s) and s.of("run s") and TRAINED.search(s.text), _training),
    (lambda s: len(s.chips) == 1 and _of_model(s) and s.of("$/Mtok"), _token_price),
    (lambda s: len(s.chips) == 1 and _of_model(s) and not s.of("tokens/s") and _said_to_need(s), _needed),
    (lambda s: len(_exact(s)) == 1 and _of_model(s) and (u := s.of("users")) and u.high > 1, _users),
    (_rated, _service),
    (_rated, _throughput),
    (lambda s: len(s.chips) == 1 and s.model and s.network and s.of("s"), _latency),
    (lambda s: len(s.chips) == 2 and (s.ratio is not None or s.more is not None), _compared),
    (lambda s: _of_model(s) and s.of("B/token"), _cache),
    (lambda s: _of_model(s) and s.of("B") and not _exact(s), _memory),
    (lambda s: len(s.chips) == 1 and s.model and s.of("chips"), _needed),
    (lambda s: _placed(s) and _of_model(s) and s.fits and not _about_more(s) and not TRAINED.search(s.text), _fits),
    (lambda s: len(s.chips) == 1 and s.of("$/h") is not None, _price),
    (lambda s: len(s.chips) == 1 and not s.model and s.quantities, _sheet),
)
"""What a sentence has to say for each way to judge it, in the order in which they are tried."""
