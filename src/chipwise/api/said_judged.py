"""Verdicts on sentences with figures: what the sentence quotes is held against catalogue, prediction and measurement.

Every reading names how the sentence was understood, the conditions under which it was worked out, and the commands that
show the figures; a quantity that holds under some conditions alone is "true with a condition".
"""

from __future__ import annotations

import contextlib
import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chipwise.api.loaded import load_generating
from chipwise.api.requests.command import command_line, plain_command
from chipwise.api.requests.kinds import DIRECT, question_in
from chipwise.api.said import SaidQuantity, Saying, Spoken, usual_chip
from chipwise.api.served import served_alone
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
from chipwise.report.statements import FigureOf, StatementRecord, shown
from chipwise.units import format_number, format_seconds

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
    """The figures behind a verdict and the commands that show them, as they are worked out."""

    figures: list[FigureOf]
    commands: list[str]
    kinds: set[str]

    def ask(self, verb: str, **given: Any) -> Any:
        """The answer of a verb, its command noted."""
        asked = {name: value for name, value in given.items() if value not in (None, "")}
        request = question_in(DIRECT, verb, asked)
        command = plain_command(verb, asked) or command_line(verb, request)  # type: ignore[arg-type]
        answer = request.run()
        if command not in self.commands:
            self.commands.append(command)
        return answer

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
        work = _Shown([], [], set())
        try:
            found = way(saying, work)
        except InfeasibleError:
            found = _lacking(saying, work)
        except ChipwiseError:
            continue
        if found is not None:
            if way in PLAIN and VERB_DENIED.search(saying.text):
                found = replace(found, verdict=DENIED_IS.get(found.verdict, found.verdict))
            return _record(saying, found, work)
    return None


def _lacking(saying: Saying, work: _Shown) -> _Verdict | None:
    """The verdict on a sentence whose model fits on none of its chips even in 4 bit; None where no plan was found for
    another reason, such as software that is not known to run it: that refutes nothing."""
    lacks = []
    for s in saying.chips:
        if _in_format(work, saying, s) is not None:
            return None
        lacks.append(_many(s.count or 1, s.chip) if s.count else f"any number of {get_chip(s.chip).name}")
    if not lacks or not saying.model or saying.network:
        return None
    because = f"{saying.model} does not fit on {' or '.join(lacks)}, in 4 bit either."
    return _Verdict("true" if saying.denied else "false", because, "")


def _in_format(work: _Shown, saying: Saying, s: Spoken) -> str | None:
    """The first format in which a model fits on as many chips as were said, "" for the checkpoint's own. Of a sentence
    with a format only that one. None where it fits in none."""
    for precision in (saying.precision,) if saying.precision else ("", "fp8", "w4a16"):
        with contextlib.suppress(ChipwiseError):
            fit = work.ask("fit", model=saying.model, chips=s.chip, count=s.count, precision=precision)
            if fit.fits and fit.fits[0].verdict != "no":
                return precision
    return None


RATE = re.compile(r"tokens?\s*(?:/|per)|per second|\btps\b", re.I)
"""A rate: a sentence with one is about more than what fits."""
SPEED = re.compile(r"\b(?:fast\w*|quick\w*|slow\w*|performance|outperforms?)\b", re.I)


def _rated(saying: Saying) -> bool:
    return bool(saying.chips and saying.model and not saying.network and saying.of("tokens/s"))


@dataclass(frozen=True, slots=True)
class _Verdict:
    """A verdict, why, and the sentence as it was understood."""

    verdict: str
    because: str
    read: str


VERB_DENIED = re.compile(
    r"\b(?:(?:does|do|did|is|are|can|will|has|have) not(?! (?:more|less|fewer))|cannot|never"
    r"|(?:do|does|is|are|ca|wo|has|have)n't)\b",
    re.I,
)
DENIED_IS = {"true": "false", "false": "true", "misleading": "true"}
"""What the verdict on a sentence makes of one that denies it."""


SHOWN_BY: Mapping[str, str] = {
    "chips show": "the catalogue: each figure has its source and date in what the command shows",
    "fit": "counted: the memory account",
    "models show": "counted from the model's configuration",
    "offers": "dated list prices of instances for rent",
}
"""What figures rest on that are not predicted, by the beginning of the command that shows them."""


def _record(saying: Saying, found: _Verdict, work: _Shown) -> StatementRecord:
    loose = [f"{s.words} stands for {get_chip(s.chip).name}" for s in saying.chips if s.loose]
    if saying.model and saying.model.rpartition("/")[2].lower() != saying.named.lower().replace(" ", "-"):
        loose.append(f"{saying.named} for {saying.model}")
    because = f"{found.because} Here {', '.join(loose)}." if loose else found.because
    because += " The price in it was not judged." if saying.left else ""
    basis = [f"predicted: {kind}" for kind in sorted(work.kinds)]
    commands = [c.removeprefix("chipwise ") for c in work.commands]
    basis += [words for verb, words in SHOWN_BY.items() if any(c.startswith(verb) for c in commands)]
    return StatementRecord(
        "read",
        found.read or saying.text,
        found.verdict,
        work.sure(),
        because,
        True,
        tuple(work.figures),
        tuple(basis),
        tuple(work.commands),
        (),
    )


def would_judge(saying: Saying) -> tuple[str, ...]:
    """Commands that would answer what a sentence is about, as far as it names something. What the reader has to fill in
    is in capitals."""
    model, chips = shlex.quote(saying.model), [s.chip for s in saying.chips]
    if saying.model and TRAINED.search(saying.text):
        count = next((s.count for s in saying.chips if s.count), 8)
        method = " --method lora" if "lora" in saying.text.lower() else ""
        chip = chips[0] if chips else usual_chip()
        return (
            f"chipwise plan {model} --task train --tokens TOKENS --chips {chip} --counts {count}{method}",
        )
    if len(chips) > 1:
        unpriced = [c for c in chips if saying.aspect in ("price", "per dollar") and not _priced(c)]
        price = f" --price-of {','.join(f'{c}=USD_PER_H' for c in unpriced)}" if unpriced else ""
        counted = ",".join(map(_counted, saying.chips))
        return (f"chipwise compare {model if saying.model else USUAL} --chips {counted}{price}",)
    if saying.model and chips:
        asked = f"chipwise plan {model} --chips {_counted(saying.chips[0])}"
        return asked, f"chipwise evidence match {model} --chip {chips[0]}"
    if saying.model:
        return (f"chipwise plan {model}",)
    return (f"chipwise chips show {chips[0]}",) if chips else ()


TRAINED = re.compile(r"\btrain\w*|fine-?tun\w+|gpu[- ]hours|lora\b", re.I)


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


def _at_desk(chip: str) -> bool:

    return any(s.form in DESKS for s in load_systems().holding(chip))


def _holding(work: _Shown, model: str, s: Spoken, precision: str = "") -> int:
    """The chips that were said, else the fewest that hold a model. Raises `InfeasibleError` where none do."""
    if s.count:
        return s.count
    fit = work.ask("fit", model=model, chips=s.chip, precision=precision)
    if not fit.fits or fit.fits[0].verdict == "no":
        raise InfeasibleError(f"{model} fits on no count of {s.chip}")
    return int(fit.fits[0].chips)


def _planned(
    work: _Shown, model: str, chip: str, count: int, task: str, precision: str, **lengths: Any
) -> Any:
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


# a rate of tokens


def _throughput(saying: Saying, work: _Shown) -> _Verdict | None:
    """A quoted rate against one user's, that of all requests of a long batch, and the nearest measurement."""
    quoted, s = saying.of("tokens/s"), saying.chips[0]
    assert quoted is not None
    model, precision = saying.model, saying.precision
    if _at_desk(s.chip) and not precision and (s.count or 1) == 1:
        return _at_a_desk(saying, work, quoted)
    if s.count:
        if (held := _in_format(work, saying, s)) is None:
            raise InfeasibleError(f"{model} does not fit on {_counted(s)}")
        precision = held
    count = _holding(work, model, s, precision)
    full_plan = _planned(work, model, s.chip, count, "batch", precision)
    short_plan = _planned(work, model, s.chip, count, "batch", precision, **SHORT)
    alone_plan = _planned(work, model, s.chip, count, "local", precision)
    alone = alone_plan.tokens_per_s_per_user
    set_of = _many(alone_plan.chips, s.chip)
    full, short = full_plan.tokens_per_s, short_plan.tokens_per_s
    one = work.speed(f"one user on {set_of}", alone)
    many = work.speed(f"all requests together, 2,000 tokens in and 300 out, {full_plan.precision}", full)
    most = work.speed(f"all requests together, 128 tokens in and 2,048 out, {short_plan.precision}", short)
    measured, best = _measured(work, saying, s, count)
    read = f"{_many(count, s.chip)} runs {model} at {quoted.words}."
    low, high = quoted.low, quoted.high
    guess = ""
    if alone.high < low <= GUESSED * alone.high:
        guess = " If one user is meant: speculative decoding may multiply that speed, and was not counted."
    together = f"All requests together reach {many} with prompts of 2,000 tokens, {most} with prompts of 128."
    if saying.alone and low > alone.high:
        if (narrow := _narrower(saying, work, s, count)) is not None and low <= narrow.high:
            four = work.speed(f"one user on {set_of}, weights in 4 bit", narrow)
            because = f"In 4 bit, where one user is predicted to see {four}; in {alone_plan.precision} {one}."
            return _Verdict("true with a condition", f"{because}{measured}", read)
        verdict = (
            "not settled"
            if low <= GUESSED * alone.high
            else "false"
            if low > 2 * alone.high
            else "misleading"
        )
        return _Verdict(verdict, f"One user is predicted to see {one}.{guess} {together}{measured}", read)
    if low <= alone.high and high >= alone.low:
        return _Verdict("true", f"That is the speed of one user: {one} predicted. {together}{measured}", read)
    if high < alone.low:
        if not low:
            return _Verdict(
                "false", f"One user alone is predicted to see more, {one}. {together}{measured}", read
            )
        said = f"One user alone is predicted to see more, {one}. {together}{measured}"
        return _Verdict("true with a condition", f"It is no limit. {said}", read)
    if low <= full.high:
        said = f"Of all requests together, not of one user, who sees {one}. {together}{measured}"
        return _Verdict("true with a condition", f"{said}{guess}", read)
    if low <= short.high:
        said = f"Of all requests together, and with short prompts alone. {together} One user sees {one}.{measured}"
        return _Verdict("true with a condition", said, read)
    if low <= best * NEAR:
        said = (
            f"Such a rate was measured, by a submission that was tuned for it.{measured} With software as it is "
            f"installed less is predicted. {together} One user sees {one}."
        )
        return _Verdict("true with a condition", said, read)
    beyond = f"More than is predicted at any load. {together} One user sees {one}.{measured}"
    soft = work.sure() == "low" and low <= 2 * short.high
    return _Verdict(
        "not settled" if soft else "false" if low > 2 * short.high else "misleading", beyond, read
    )


def _service(saying: Saying, work: _Shown) -> _Verdict | None:
    """A quoted rate of a chip that its vendor serves models with, against one user's at that service. None for other
    chips, for counts that the service does not run with, and for rates that no single stream may reach."""
    quoted, s = saying.of("tokens/s"), saying.chips[0]
    assert quoted is not None
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
    if any(quoted.low <= f.high and quoted.high >= f.low for f in speeds):
        return _Verdict("true", f"{said}.", read)
    if quoted.low > GUESSED * most:
        return None
    if quoted.low > most:
        why = "Software of such services is seldom published, and drafts may multiply a speed."
        return _Verdict("not settled", f"{said}. {why}", read)
    if not quoted.low:
        return _Verdict("false", f"{said}.", read)
    return _Verdict("true with a condition", f"It is no limit. {said}.", read)


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
    figure = best.tokens_per_s
    if quoted.low > figure.high:
        lean = quoted.low <= 4 * figure.high and best.precision not in ("q4_k_m", "q3_k_m", "q2_k")
        return _Verdict(
            "true with a condition" if lean else "false",
            f"{said} A format of fewer bits is faster." if lean else f"{said}",
            read,
        )
    if quoted.high < figure.low and not quoted.low:
        return _Verdict("false", said, read)
    if quoted.high < figure.low:
        return _Verdict("true with a condition", f"It is no limit. {said}", read)
    return _Verdict("true", said, read)


ALIKE = ("same", "near")


def _measured(work: _Shown, saying: Saying, s: Spoken, count: int) -> tuple[str, float]:
    """The nearest published result of such a model on that chip in a sentence, and its tokens per second on as many
    chips; "" and 0 where there is none near."""
    try:
        report = work.ask("match", model=saying.model, chip=s.chip, count=count)
    except ChipwiseError:
        return "", 0.0
    near = [
        m for m in report.matches if m.item.speed and m.mark("chip") == "same" and m.mark("model") in ALIKE
    ]
    if not near:
        work.commands.pop()
        return "", 0.0
    item = near[0].item
    name = f"{item.round} {item.benchmark} {item.scenario}, {item.chips}x {item.chip}"
    text = work.figure(f"nearest measurement: {name} ({item.id})", item.speed * (item.chips or 1), "")
    work.commands.append(f"chipwise evidence claim --result {item.id} --for {shlex.quote(saying.model)}")
    return f" Nearest measurement: {text} tokens/s, {name}: {near[0].verdict}.", item.speed * count


# seconds of a network without tokens


def _latency(saying: Saying, work: _Shown) -> _Verdict | None:
    quoted, s = saying.of("s"), saying.chips[0]
    assert quoted is not None
    steps, samples = saying.counted(STEPS), saying.counted(SAMPLES) or 1
    asked = {"steps": str(steps)} if steps else {}
    plan = work.ask("plan", model=saying.model, chips=s.chip, batch=1, **asked).plans[0]
    # one after another, on one chip
    one = plan.latency_s
    time = replace(one, mid=samples * one.mid, low=samples * one.low, high=samples * one.high)
    work.kinds.add(time.basis)
    how = (
        f"{plan.precision}, {plan.offload} offloaded" if plan.offload not in ("", "none") else plan.precision
    )
    settings = f"{steps} steps" if steps else "the model's usual settings"
    what = f"{samples} requests, one after another," if samples > 1 else "a request"
    work.figure(f"{what} with {settings}, {how}", time.mid, "s")
    rate = f"{format_seconds(time.mid)} [{format_seconds(time.low)} to {format_seconds(time.high)}] in {how}"
    of = "".join(f" {n} {word}" for n, word in ((samples > 1 and samples, "requests"), (steps, "steps")) if n)
    read = f"{saying.model}{of and f' with{of}'} takes {quoted.words} on {_many(1, s.chip)}."
    said = f"{what.capitalize()} with {settings} is predicted to take {rate}"
    if quoted.high < time.low:
        verdict = "true with a condition" if quoted.high * FEWER >= time.low else "misleading"
        verdict = "false" if quoted.high * DISTILLED < time.low else verdict
        why = "fewer steps, a distilled model or a smaller picture would be faster"
        why = (
            "no usual choice of steps, picture or distilled model is that fast" if verdict == "false" else why
        )
        return _Verdict(verdict, f"{said}; {why}.", read)
    if quoted.low > time.high:
        return _Verdict("true with a condition", f"{said}: it can be faster than that.", read)
    return _Verdict("true", f"{said}.", read)


STEPS, SAMPLES = r"(?:sampling |denoising )?steps?", r"images?|pictures?|clips?|videos?|samples?"
"""What a sentence counts of a request, and of requests."""

FEWER, DISTILLED = 2.0, 50.0
"""How many times as fast a picture is with half of the usual steps, which many take, and with one step instead of
fifty, the least there is."""


# two chips


def _compared(saying: Saying, work: _Shown) -> _Verdict | None:
    """A ratio of two chips in what the sentence is about, against the ratios that are worked out."""
    a, b = saying.chips
    worked_out = {
        "speed": _speeds,
        "training": _trainings,
        "price": _prices,
        "per dollar": _per_dollar,
        "energy": _energies,
        "power": _figures_of("power limit", lambda c: c.tdp_w),
        "memory": _figures_of("memory", lambda c: c.memory.usable_bytes),
        "bandwidth": _figures_of("bandwidth", lambda c: c.memory.bytes_per_s),
        "peak": _figures_of("dense bf16 peak", lambda c: c.matrix.get("bf16") or c.matrix.get("fp16")),
    }[saying.aspect]
    try:
        ratios = worked_out(saying, work, a, b)
    except InfeasibleError:
        return _held(saying, work)
    if not ratios:
        return None
    quoted = {what: work.figure(what, value, "x") for what, value in ratios.items()}
    said = ", ".join(f"{what} {text}" for what, text in quoted.items())
    first, second = (_many(s.count or 1, s.chip) for s in (a, b))
    about = {"price": "price an hour", "per dollar": "tokens per dollar", "energy": "tokens per joule"}
    of = about.get(saying.aspect, saying.aspect)
    exact = saying.aspect in ("power", "memory", "bandwidth", "peak")
    because = f"{first} over {second}{'' if exact else f', {of}'}: {said}."
    least, most = min(ratios.values()), max(ratios.values())
    verdict = _ratio_verdict(saying, least, most, NEAR if exact else TIE)
    if verdict in ("false", "misleading") and saying.ratio is not None and work.sure() == "low":
        far = max(saying.ratio[0] / most, least / saying.ratio[1])
        verdict = "not settled" if far < UNSURE else verdict
    if saying.aspect == "price" and SPEED.search(saying.text):
        because += " The speed in it was not judged."
        verdict = "true with a condition" if verdict == "true" else verdict
    if saying.aspect in ("speed", "training") and (a.count or 1) == (b.count or 1):
        peaks: Mapping[str, Callable[[Any], float | None]] = {
            "bf16 peaks": lambda c: c.matrix.get("bf16") or c.matrix.get("fp16"),
            "bandwidths": lambda c: c.memory.bytes_per_s,
        }
        for what, get in peaks.items():
            ours, theirs = get(work.chip(a.chip)), get(work.chip(b.chip))
            if ours and theirs:
                because += f" {what[0].upper()}{what[1:]}: {work.figure(what, ours / theirs, 'x')}."
    return _Verdict(verdict, because, "")


UNSURE = preferences().unseen
"""How far a ratio that rests on chips which no fit has seen may be from one that is said, without refuting it."""


def _held(saying: Saying, work: _Shown) -> _Verdict | None:
    """Two chips of which one at least does not hold the model that they are compared by: in 4 bit as in its own format,
    who holds it wins."""
    if not saying.model or saying.more != 1 or saying.ratio is not None:
        return None
    holds = []
    for s in saying.chips:
        fit = work.ask("fit", model=saying.model, chips=s.chip, count=s.count or 1, precision="w4a16")
        local = _local_fits(replace(saying, precision="w4a16"), work, s, s.count or 1)
        holds.append((bool(fit.fits) and fit.fits[0].verdict != "no") or local is not None)
        missing = 0.0 if holds[-1] else fit.fits[0].missing_bytes if fit.fits else 0.0
        work.figure(f"missing on each of {_many(s.count or 1, s.chip)}, weights in 4 bit", missing, "B")
    if holds[0] == holds[1]:
        return None
    first, second = (_many(s.count or 1, s.chip) for s in saying.chips)
    winner, other = (first, second) if holds[0] else (second, first)
    because = f"In 4 bit {saying.model} fits on {winner} and not on {other}."
    return _Verdict("true" if holds[0] != saying.denied else "false", because, "")


TURNED = {"true": "false", "false": "true"}
"""A verdict on a sentence that is denied."""


def _ratio_verdict(saying: Saying, least: float, most: float, tie: float) -> str:
    """The verdict on a ratio that is said, where those that hold lie between two; ratios within `tie` are one."""
    if saying.ratio is None:
        found = _way_verdict(saying.more or 0, least, most, tie)
        return TURNED.get(found, found) if saying.denied else found
    low, high = saying.ratio
    if low / tie <= least and most <= high * tie:
        found = "true"
    elif low / tie <= most and least <= high * tie:
        found = "true with a condition"
    elif (least > 1) == (low > 1) and (low > 1 or most < 1):
        # it goes the way that is said, but not so far; or further, and then what is said is no overstatement
        short = most < low if low > 1 else least > high
        found = "misleading" if short else "true with a condition"
    else:
        found = "false"
    return DENIED_IS.get(found, found) if saying.denied else found


def _way_verdict(more: int, least: float, most: float, tie: float) -> str:
    """The same where it is only said which way it goes."""
    if more == 0:
        holds, never = least > 1 / tie and most < tie, least > tie or most < 1 / tie
    elif more > 0:
        holds, never = least > tie, most < tie and least < 1 / tie
    else:
        holds, never = most < 1 / tie, least > 1 / tie and most > tie
    return "true" if holds else "false" if never else "true with a condition"


def _common(saying: Saying, work: _Shown, a: Spoken, b: Spoken) -> tuple[str, str, int, int]:
    """The model that two chips are compared by, its format, and how many of each hold it: as many as were said, else as
    many of both as the one that needs more (chips of SRAM by themselves). The format is the checkpoint's unless one was
    said: a chip that has a narrower one is not to win by it."""
    said = bool(a.count or b.count)
    for model in (saying.model,) if saying.model else (USUAL, LARGE):
        ones = [
            _holding(work, model, Spoken(s.chip, s.count or (1 if said else None), "", False, 0))
            for s in (a, b)
        ]
        if not said and max(ones) <= SERVER:
            ones = [max(ones)] * 2
        if saying.model or max(ones) <= SERVER:
            break
    precision = saying.precision or work.ask("models", model=model).models[0].precision
    return model, precision, ones[0], ones[1]


SERVER = 16
"""Chips of one machine or two; more are held against each other by machines, not by chips."""


def _speeds(saying: Saying, work: _Shown, a: Spoken, b: Spoken) -> dict[str, float]:
    """Ratios of predicted speed of one user and of a full batch, and of the best measured results of a benchmark."""
    model, precision, na, nb = _common(saying, work, a, b)
    one = [_planned(work, model, s.chip, n, "local", precision) for s, n in ((a, na), (b, nb))]
    found = {
        f"{_short(model)} in {precision}, one user": one[0].tokens_per_s_per_user.mid
        / one[1].tokens_per_s_per_user.mid
    }
    full = [_planned(work, model, s.chip, n, "batch", precision) for s, n in ((a, na), (b, nb))]
    whole = [p.tokens_per_s_per_chip.mid * n for p, n in zip(full, (na, nb), strict=True)]
    found["as many requests as fit"] = whole[0] / whole[1]
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


def _best_measured(work: _Shown, model: str, a: str, b: str) -> dict[str, float]:
    """The ratio of the best published results per chip of two chips, on the benchmark of such a model."""
    name = _benchmark(model)
    if not name:
        return {}
    try:
        report = work.ask("match", model=name)
    except ChipwiseError:
        return {}
    best = {
        chip: max(
            (i.speed or 0.0 for i in report.measured if (i.chip, i.scenario) == (chip, "Offline")),
            default=0.0,
        )
        for chip in (a, b)
    }
    if not all(best.values()):
        work.commands.pop()
        return {}
    return {f"measured, MLPerf {name} Offline, best results per chip": best[a] / best[b]}


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


def _trainings(saying: Saying, work: _Shown, a: Spoken, b: Spoken) -> dict[str, float]:
    model = saying.model or USUAL
    days = []
    for s in (a, b):
        counts = str(s.count or 8)
        plan = work.ask("train", model=model, tokens="10B", chips=s.chip, counts=counts).plans[0]
        work.kinds.add(plan.days.basis)
        days.append(plan.days.mid)
    return {
        f"speed of training {_short(model)} on {a.count or 8} and {b.count or 8} chips": days[1] / days[0]
    }


def _hourly(work: _Shown, chip: str) -> tuple[float, float] | None:
    """The lowest and the highest list price of one chip on demand an hour; None where none is known."""
    report = work.ask("offers", chip=chip)
    found = next((r for r in report.ranges if r.chip == chip), None)
    return (found.low, found.high) if found else None


def _prices(saying: Saying, work: _Shown, a: Spoken, b: Spoken) -> dict[str, float]:
    ours, theirs = _hourly(work, a.chip), _hourly(work, b.chip)
    if ours is None or theirs is None:
        return {}
    na, nb = a.count or 1, b.count or 1
    return {
        "lowest list prices": na * ours[0] / (nb * theirs[0]),
        "highest list prices": na * ours[1] / (nb * theirs[1]),
    }


def _per_dollar(saying: Saying, work: _Shown, a: Spoken, b: Spoken) -> dict[str, float]:
    model, precision, na, nb = _common(saying, work, a, b)
    plans = [_planned(work, model, s.chip, n, "batch", precision) for s, n in ((a, na), (b, nb))]
    prices = [p.usd_per_million_out for p in plans]
    if any(p is None for p in prices):
        return {}
    work.kinds |= {p.tokens_per_s.basis for p in plans}
    return {
        f"{_short(model)}, full batch, middle prices": prices[1].mid / prices[0].mid,
        "lowest prices": prices[1].low / prices[0].low,
    }


def _energies(saying: Saying, work: _Shown, a: Spoken, b: Spoken) -> dict[str, float]:
    model, precision, na, nb = _common(saying, work, a, b)
    plans = [_planned(work, model, s.chip, n, "batch", precision) for s, n in ((a, na), (b, nb))]
    energy = [p.kwh_per_million_out for p in plans]
    if any(e is None for e in energy):
        return {}
    work.kinds |= {p.tokens_per_s.basis for p in plans}
    return {f"{_short(model)}, full batch": energy[1].mid / energy[0].mid}


def _figures_of(what: str, get: Callable[[Any], float | None]) -> Callable[..., dict[str, float]]:
    def ratio(saying: Saying, work: _Shown, a: Spoken, b: Spoken) -> dict[str, float]:
        ends = [get(work.chip(s.chip)) for s in (a, b)]
        if not all(ends):
            return {}
        return {what: (a.count or 1) * ends[0] / ((b.count or 1) * ends[1])}  # type: ignore[operator]

    return ratio


# memory of a model


def _cache(saying: Saying, work: _Shown) -> _Verdict | None:
    quoted = saying.of("B/token")
    assert quoted is not None
    model = work.ask("models", model=saying.model).models[0]
    each = work.figure("cache of a token", model.kv_bytes_per_token, "B")
    near = quoted.low / NEAR <= model.kv_bytes_per_token <= quoted.high * NEAR
    because = f"A token of {model.name} keeps {each} in the cache, in 16 bit."
    return _Verdict("true" if near else "false", because, "")


def _memory(saying: Saying, work: _Shown) -> _Verdict | None:
    """Bytes that a model is said to need, or to fit into."""
    quoted = saying.of("B")
    assert quoted is not None
    record = work.ask("models", model=saying.model).models[0]
    if saying.aspect == "training":
        if "lora" in saying.text.lower():
            return None
        states = STATES * record.params
        whole = work.figure("weights, gradients and Adam's state of all parameters", states, "B")
        because = (
            f"Weights and gradients in 16 bit and what Adam keeps in 32 are {whole}, 16 bytes a parameter; "
            "activations come on top, LoRA or 8-bit optimisers take far less."
        )
        near = quoted.low / NEAR <= states <= quoted.high * NEAR
        return _Verdict("true with a condition" if near else "misleading", because, "")
    wide = work.figure(f"weights in {record.precision}", record.weight_bytes, "B")
    narrow_bytes = work.ask(
        "fit", model=saying.model, chips=usual_chip(), count=8, precision="w4a16"
    ).model.weight_bytes
    narrow = work.figure("weights in 4 bit", narrow_bytes, "B")
    cache = work.figure("cache of 1,000 tokens", 1000 * record.kv_bytes_per_token, "B")
    because = (
        f"Weights are {wide} in {record.precision} and {narrow} in 4 bit; every 1,000 tokens of a request "
        f"add {cache}, activations and the runtime some GB."
    )
    weights = narrow_bytes if saying.precision == "w4a16" else record.weight_bytes
    if saying.precision == "fp8" or saying.precision == "int8":
        weights = 0.53 * record.weight_bytes if record.precision in ("bf16", "fp16") else record.weight_bytes
    if saying.precision == "bf16" and record.precision not in ("bf16", "fp16"):
        weights = 2.0 * record.params
        because = f"In 16 bit weights are {work.figure('weights in 16 bit', weights, 'B')}. {because}"
    if saying.needs:
        near = quoted.low / NEAR <= weights <= quoted.high * NEAR
        lean = quoted.low / NEAR <= narrow_bytes <= quoted.high * NEAR
        exact = near and saying.precision
        verdict = "true" if exact else "true with a condition" if near or lean else "false"
    else:
        fits, lean = quoted.high > 1.1 * weights, quoted.high > 1.1 * narrow_bytes
        verdict = "true" if fits else "true with a condition" if lean else "false"
        verdict = {"true": "false", "false": "true"}.get(verdict, verdict) if saying.denied else verdict
    return _Verdict(verdict, because, "")


def _fits(saying: Saying, work: _Shown) -> _Verdict | None:
    """Whether a model fits on chips, in its own format or in 4 bit."""
    s = _exact(saying)[0]
    count = s.count or 1
    asked = work.ask("fit", model=saying.model, chips=s.chip, count=count, precision=saying.precision)
    if not asked.fits:
        return None
    fit = asked.fits[0]
    weights = work.figure(f"weights in {asked.model.precision}", asked.model.weight_bytes, "B")
    where = _many(count, s.chip)
    if fit.verdict != "no":
        batch = work.figure("requests of 2,300 tokens at once", float(fit.largest_batch), "")
        many = "1 request of 2,300 tokens fits" if batch == "1" else f"{batch} requests of 2,300 tokens fit"
        because = f"Weights of {weights} fit on {where}, and {many} too."
        verdict = (
            "true" if fit.verdict == "comfortable" or fit.largest_batch > MANY else "true with a condition"
        )
        return _Verdict({"true": "false"}.get(verdict, verdict) if saying.denied else verdict, because, "")
    if not saying.denied and (found := _local_fits(saying, work, s, count)) is not None:
        return found
    short = work.figure("missing on each", fit.missing_bytes, "B")
    held = count * (get_chip(s.chip).memory.usable_bytes or 0.0)
    if asked.model.weight_bytes <= held and not saying.denied:
        have = work.figure(f"memory of {where}", held, "B")
        because = (
            f"Weights of {weights} lie within the {have} of {where}, "
            f"but a server needs {short} more for cache and workspace."
        )
        return _Verdict("true with a condition", because, "")
    because = f"Weights are {weights} in {asked.model.precision}: on {where} each lacks {short}."
    fewest = work.ask("fit", model=saying.model, chips=s.chip, precision=saying.precision)
    if fewest.fits and fewest.fits[0].verdict != "no":
        because += f" The fewest that hold it are {work.figure('chips that hold it', float(fewest.fits[0].chips), '')}."
    verdict = "true" if saying.denied else "false"
    if not saying.precision:
        narrow = work.ask("fit", model=saying.model, chips=s.chip, count=count, precision="w4a16")
        if narrow.fits and narrow.fits[0].verdict != "no":
            size = work.figure("weights in 4 bit", narrow.model.weight_bytes, "B")
            because += f" In 4 bit ({size}) it fits."
            verdict = "true with a condition"
    return _Verdict(verdict, because, "")


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
            return _Verdict("true with a condition", f"{because} and a context of {LITTLE:,} tokens.", "")
    return None


LITTLE = 2048
"""Tokens of context of a chat that is short."""


def _needed(saying: Saying, work: _Shown) -> _Verdict | None:
    """How many chips a model is said to need."""
    quoted, s = saying.of("chips"), saying.chips[0]
    assert quoted is not None
    fewest = {}
    for precision in (saying.precision,) if saying.precision else ("", "int8", "w4a16"):
        with contextlib.suppress(ChipwiseError):
            fit = work.ask("fit", model=saying.model, chips=s.chip, precision=precision)
            if fit.fits and fit.fits[0].verdict != "no":
                fewest[fit.model.precision] = fit.fits[0].chips
    if not fewest:
        return None
    said = [f"{work.figure(f'fewest chips in {p}', float(n), '')} in {p}" for p, n in fewest.items()]
    because = (
        f"The fewest {get_chip(s.chip).name} that hold the weights and one request are {', '.join(said)}."
    )
    first = next(iter(fewest.values()))
    if quoted.low / NEAR <= first <= quoted.high * NEAR:
        return _Verdict("true", because, "")
    some = min(fewest.values()) <= quoted.high * NEAR and quoted.low <= SPARE * max(fewest.values())
    return _Verdict("true with a condition" if some else "false", because, "")


SPARE = 4
"""How many times the fewest chips people take for the cache of many requests, whole servers and speed."""
MANY = 8
"""Requests at once from which on a fit counts as one for serving."""


# the sheet of a chip


def _price(saying: Saying, work: _Shown) -> _Verdict | None:
    quoted, s = saying.of("$/h"), saying.chips[0]
    assert quoted is not None
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
        said = (
            f"{because} Below them are spot, reserved and owned chips, and offers that are not listed here."
        )
        return _Verdict("false" if far else "true with a condition", said, "")
    if each[0] > ends[1] * NEAR:
        return _Verdict("misleading", because, "")
    spread = ends[1] > 2 * ends[0]
    return _Verdict(
        "true with a condition" if spread else "true",
        f"{because} It depends on who rents it out." if spread else because,
        "",
    )


def _sheet(saying: Saying, work: _Shown) -> _Verdict | None:
    """Figures of a data sheet: memory, bandwidth, peaks, power."""
    s = saying.chips[0]
    chip = work.chip(s.chip)
    count = s.count or 1
    domain = chip.scaleup.domain if chip.scaleup is not None and DOMAIN.search(chip.name) else 1
    found = []
    for quoted in saying.quantities:
        if quoted.unit == "B":
            sold = [get_chip(name) for name in load_chips().entries[s.chip.partition(":")[0]].options]
            sizes = [c.memory.label_bytes or c.memory.usable_bytes or 0.0 for c in (chip, *sold)]
            said = quoted.high if math.isfinite(quoted.high) else quoted.low
            nearest = min(sizes, key=lambda size: abs(count * size - said))
            found.append(_like(work, quoted, "memory", nearest, count, domain))
        elif quoted.unit == "B/s" and "nvlink" in saying.text.lower():
            link = chip.scaleup.bytes_per_s if chip.scaleup else None
            found.append(_like(work, quoted, "link of one direction", link, count, domain))
            if found[-1] and found[-1][0] == "false" and link:
                found[-1] = _like(work, quoted, "links of both directions", 2 * link, count, domain)
        elif quoted.unit == "B/s":
            found.append(
                _like(work, quoted, "bandwidth of the memory", chip.memory.bytes_per_s, count, domain)
            )
        elif quoted.unit == "W":
            found.append(_like(work, quoted, "power limit", chip.tdp_w, count))
        elif quoted.unit == "FLOP/s":
            found.append(_peak(work, quoted, chip, count, saying))
    told = [part for part in found if part is not None]
    if not told:
        return None
    order = ("false", "misleading", "not settled", "true with a condition", "true")
    verdict = min((v for v, _ in told), key=order.index)
    return _Verdict(verdict, f"{chip.name}: {'; '.join(said for _, said in told)}.", "")


DOMAIN = re.compile(r"NVL\d{2,}")
"""Names of chips that are those of their rack too."""


def _like(
    work: _Shown, quoted: SaidQuantity, what: str, value: float | None, count: int, domain: int | None = 1
) -> tuple[str, str] | None:
    """A figure of so many chips, else of a `domain` of them: labels of memory count in 1,024, and people add them up in
    thousands."""
    if not value:
        return None

    def near(size: int) -> bool:
        whole = size * value
        label = whole / 2**30 * 1e9 if quoted.unit == "B" and whole % 2**30 == 0 else whole
        return any(quoted.low / LABEL <= v <= quoted.high * LABEL for v in (whole, label))

    size = count if near(count) or not domain or not near(domain) else domain
    text = work.figure(f"{what} of {size}" if size > count else what, size * value, quoted.unit)
    if quoted.unit == "B" and size * value % 2**30 == 0:
        text = f"{size * value / 2**30:,.0f} GiB ({text})"
    verdict = "true" if near(size) else "false"
    if size > count:
        return (
            "true with a condition" if verdict == "true" else verdict
        ), f"{what} of {size} together {text}"
    return verdict, f"{what} {text}"


LABEL = 1.08
"""How far a figure of a sheet may be from the catalogue's: rounded, or counted in 1,024."""
LIKE = {1: 1.04, 2: 1.12}
"""How far a peak that is said may be from the catalogue's, by whether it counts zeros: those are rounded up more."""


def _peak(
    work: _Shown, quoted: SaidQuantity, chip: Any, count: int, saying: Saying
) -> tuple[str, str] | None:
    """A peak: dense, with the zeros of structured sparsity counted, or of a whole domain of chips; of the types of the
    format that was said, where the catalogue has a peak of it."""
    every: Mapping[str, float] = {**chip.vector, **chip.matrix}
    kinds = saying.wide or TYPES.get(saying.precision, ())
    kinds = tuple(sorted(kinds, key=lambda kind: kind not in saying.text.lower()))
    said_of = {k: every[k] for kind in kinds for k in every if k.partition("/")[0] == kind}
    peaks = said_of if kinds else every
    if every and not peaks:
        return (
            "not settled",
            f"no peak in {' or '.join(kinds)} is published, which is another than in fewer bits",
        )
    if not peaks:
        return None
    best = max(peaks, key=lambda kind: peaks[kind])
    domain = chip.scaleup.domain if chip.scaleup is not None and chip.scaleup.domain else 1
    sizes: Sequence[int] = (count,) if count > 1 or saying.wide else (1, domain)
    for size in sizes:
        for zeros in (1,) if saying.wide else (1, 2):
            for kind in (best,) if not quoted.low else peaks:
                peak = peaks[kind]
                if quoted.low / LIKE[zeros] <= size * zeros * peak <= quoted.high * LIKE[zeros]:
                    dense = work.figure(
                        f"dense peak in {kind}" + (f" of {size}" if size > 1 else ""), size * peak, "FLOP/s"
                    )
                    said = (
                        f"the dense peak in {kind}"
                        + (f" of {size} chips" if size > 1 else "")
                        + f" is {dense}"
                    )
                    if zeros == 1:
                        return ("true" if size == count else "true with a condition"), said
                    return "misleading", f"{said}: twice that counts the zeros of structured sparsity"
    text = work.figure(f"highest dense peak, {best}", peaks[best] * count, "FLOP/s")
    if quoted.low / NEAR <= peaks[best] * count <= quoted.high * NEAR:
        return (
            "true with a condition",
            f"the dense peak in {best} is {text}: other clocks or editions of a sheet differ",
        )
    return "false", f"the highest dense peak is {text}, in {best}, and none is what is said"


TYPES = {
    "fp8": ("fp8",),
    "int8": ("int8",),
    "nvfp4": ("fp4",),
    "bf16": ("bf16", "fp16"),
    "w4a16": ("int4",),
}
"""Types of products by the formats that a sentence names."""


PLAIN = (_service, _throughput, _latency, _cache, _needed, _price, _sheet)
"""Ways that judge a sentence as if it affirmed: what denies is turned round afterwards."""


def _of_model(saying: Saying) -> bool:
    """Whether it is about a language model."""
    return bool(saying.model and not saying.network)


WAYS: tuple[tuple[Callable[[Saying], Any], Callable[[Saying, _Shown], _Verdict | None]], ...] = (
    (_rated, _service),
    (_rated, _throughput),
    (lambda s: len(s.chips) == 1 and s.model and s.network and s.of("s"), _latency),
    (lambda s: len(s.chips) == 2 and (s.ratio is not None or s.more is not None), _compared),
    (lambda s: _of_model(s) and s.of("B/token"), _cache),
    (lambda s: _of_model(s) and s.of("B") and not _exact(s), _memory),
    (lambda s: len(s.chips) == 1 and s.model and s.of("chips"), _needed),
    (lambda s: _placed(s) and _of_model(s) and s.fits and not RATE.search(s.text), _fits),
    (lambda s: len(s.chips) == 1 and s.of("$/h") is not None, _price),
    (lambda s: len(s.chips) == 1 and not s.model and s.quantities, _sheet),
)
"""What a sentence has to say for each way to judge it, in the order in which they are tried."""
