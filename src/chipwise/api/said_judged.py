"""Verdicts on sentences with figures: what the sentence quotes is held against catalogue, prediction and measurement.

Kinds of sentence are rows of a table (`sayings.toml`): what they say, what is asked, and verdicts with reasons.
Here stand the one way to judge by such a row, and what rows cannot say of the questions. A quantity that holds under
some conditions alone is "true with a condition".
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from chipwise.api.said import SaidQuantity, Saying, Spoken, usual_chip
from chipwise.api.said_asked import (
    LARGE,
    USUAL,
    at_desk,
    best_plan,
    budget,
    few,
    first_format,
    fleet,
    formats,
    has_room,
    held,
    hourly,
    local_fit,
    many,
    nearest_measured,
    placed,
    priced,
    sized,
    trained,
)
from chipwise.api.said_compared import DENIED_IS, compared
from chipwise.api.suites.speeds import served_alone
from chipwise.api.worked_out import BASIS, SHORT, WorkedOut, confidence, value_of
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.preferences import preferences
from chipwise.catalog.statements import SentenceKind, load_sayings, load_wording, reads
from chipwise.errors import ChipwiseError, InfeasibleError
from chipwise.evidence.speed_rows import ANSWERED, PROMPT
from chipwise.report.records import Figure
from chipwise.report.statements import READ, StatementRecord
from chipwise.values import dataclass

NEAR = preferences().rounded
"""How far a figure of a sentence may be from the catalogue's or the counted one: it was rounded, or counts in 1,024."""
SHOWN_BY = ("offers", "chip", "fit", "models")
"""Questions whose answers are not predicted, in the order in which they are named."""
GUESSED = 5
"""How many times the speed of one user guesses that are all right may give."""
Known = dict[str, Any]
"""What is known of a sentence by name, for the expressions and texts of the table."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    """A verdict, why, and the sentence as it was understood."""

    verdict: str
    because: str
    read: str = ""


def judged(saying: Saying) -> StatementRecord | None:
    """The verdict on a sentence by the figures in it, None where no figure or comparison in it can be worked out."""
    known = _known(saying)
    for kind in load_sayings().kinds.values():
        if not value_of(kind.when, known):
            continue
        work = WorkedOut()
        try:
            found = _by(kind, saying, known, work)
        except InfeasibleError:
            found = _lacking(saying, work)
        except ChipwiseError:
            continue
        if found is not None:
            if not kind.denies and "turned" in saying.marks:
                found = replace(found, verdict=DENIED_IS.get(found.verdict, found.verdict))
            if "always" in saying.marks and found.verdict == "true with a condition":
                found = replace(found, verdict="false", because=f"Under conditions only. {found.because}")
            return _record(saying, found, work)
    return None


def _known(saying: Saying) -> Known:
    """What a sentence says, by the names that the table uses."""
    wording, exact = load_wording(), sized(saying)
    s = (exact or saying.chips or (None,))[0]
    language = bool(saying.model and not saying.network)
    quoted = {unit: saying.of(unit) for unit in wording.units}
    known: Known = {mark: mark in saying.marks for mark in (*wording.marks, *wording.bare)}
    known |= {
        "one": len(saying.chips) == 1,
        "two": len(saying.chips) == 2,
        "exact": len(exact),
        "placed": placed(saying),
    }
    known |= {"language": language, "quoted": quoted, "tokens": quoted["tokens"], "any_quoted": bool(saying.quantities)}
    known |= {name: getattr(saying, name) for name in ("model", "network", "aspect", "precision")}
    known |= {"compares": saying.ratio is not None or saying.more is not None, "need": s and _said_to_need(saying, s)}
    known |= {"rated": bool(s and language and quoted["tokens/s"]), "about_more": _about_more(saying)}
    known |= {"short": saying.model.rpartition("/")[2], "usual": USUAL, "larger": LARGE, "rounded": NEAR}
    known |= {"place": _held_against, "near": _near}
    if s is not None:
        known |= {"chip": s.chip, "name": get_chip(s.chip).name, "count": s.count or 1, "where": few(s)}
        known |= {"at_desk": at_desk(s.chip), "fleet": many(fleet(saying), s.chip)}
    return known


def _about_more(saying: Saying) -> bool:
    """Whether a sentence is about more than what fits: a rate, a price or a training."""
    return "per_second" in saying.marks or any(saying.of(unit) for unit in ("$/Mtok", "MFU", "run s"))


def _by(kind: SentenceKind, saying: Saying, known: Known, work: WorkedOut) -> _Verdict | None:
    """The verdict by a row of the table; None where its figures cannot be worked out."""
    known = {**known, "said": saying.of(kind.of)}
    if kind.way:
        if (found := WAYS[kind.way](saying, work)) is None:
            return None
        known |= found
    for name, ask in kind.asks.items():
        given = {field: v.format(**known) if isinstance(v, str) else v for field, v in ask.items()}
        helper = ASKED.get(given["verb"])
        known[name] = helper(saying, work, given) if helper else work.ask(**given)
    words = dict(known)
    for name, said in kind.figures.items():
        try:
            known[name] = value_of(said.value, known)
        except TypeError:  # of an answer that is None
            known[name] = None
        if known[name] is None:
            return None
        words[name] = work.figure(said.what.format(**known), known[name], said.unit)
    words["because"] = words.get("because") or kind.because.format(**words)
    for when, verdict, because in kind.cases:
        if value_of(when, known):
            return _Verdict(verdict.format(**words), because.format(**words), kind.read.format(**words))
    return None


ASKED: Mapping[str, Callable[[Saying, WorkedOut, Mapping[str, Any]], Any]] = {
    "trained": lambda saying, work, ask: trained(saying, work, saying.chips[0], ask.get("model", saying.model)),
    "held": lambda saying, work, _: held(work, saying.model, saying.chips[0], saying.precision),
    "many": lambda _, __, ask: many(int(ask["count"]), ask["chip"]),
    "hourly": lambda _, work, ask: hourly(work, ask["chip"]),
    "desk": lambda saying, work, _: _at_a_desk(saying, work),
}
"""Questions of the table that take more than one verb."""


def _lacking(saying: Saying, work: WorkedOut) -> _Verdict | None:
    """The verdict on a sentence whose model fits on none of its chips even in 4 bit; None where no plan was found for
    another reason, such as software that is not known to run it: that refutes nothing."""
    lacks = []
    for s in saying.chips:
        if first_format(work, saying, s) is not None:
            return None
        lacks.append(few(s) if s.count else f"any number of {get_chip(s.chip).name}")
    if not lacks or not saying.model or saying.network:
        return None
    because = f"{saying.model} does not fit on {' or '.join(lacks)}, in 4 bit either."
    return _Verdict("true" if saying.denied else "false", because)


def _basis(work: WorkedOut) -> list[str]:
    """What the figures rest on: facts by the commands that show them, then what was predicted, and how."""
    basis = [BASIS[verb] for verb in SHOWN_BY if verb in work.commands.values()]
    if work.kinds:
        of = f" ({', '.join(work.measures)})" if work.measures else ""
        weakest = "; confidence is that of the weakest" if len(work.kinds) > 1 else ""
        basis.append(f"predicted{of}: {' and '.join(sorted(work.kinds))}{weakest}")
    return basis


def _record(saying: Saying, found: _Verdict, work: WorkedOut) -> StatementRecord:
    loose = [f"{s.words} as {get_chip(s.chip).name}" for s in saying.chips if s.loose]
    if saying.model and saying.model.rpartition("/")[2].lower() != saying.named.lower().replace(" ", "-"):
        loose.append(f"{saying.named} as {saying.model}")
    because = f"{found.because} Read: {', '.join(loose)}." if loose else found.because
    because += " The price in it was not judged." if saying.left else ""
    # what is always so, or which of two costs less, leaves open more than was tried
    leaves = "always" in saying.marks or (saying.aspect == "price" and len(saying.chips) > 1)
    return StatementRecord(
        READ,
        found.read or saying.text,
        found.verdict,
        "medium" if leaves and confidence(work) == "high" else confidence(work),
        because,
        True,
        tuple(work.figures),
        tuple(_basis(work)),
        tuple(work.commands),
        (),
    )


def would_judge(saying: Saying) -> tuple[str, ...]:
    """Commands that would answer what a sentence is about, as far as it names something. What the reader has to fill in
    is in capitals."""
    chips = [s.chip for s in saying.chips]
    money = saying.aspect in ("price", "per dollar") or saying.of("$/Mtok")
    unpriced = ",".join(f"{c}=USD_PER_H" for c in chips if money and not priced(c))
    on = ",".join(f"{s.count}x{s.chip}" if (s.count or 1) > 1 else s.chip for s in saying.chips)
    known = _known(saying)
    known |= {"several": len(chips) > 1, "first": (*chips, "")[0], "trainer": (*chips, usual_chip())[0]}
    known |= {"on": f"{on} --price-of {unpriced}" if unpriced else on, "asked": shlex.quote(saying.model or "MODEL")}
    known |= {"budget": budget(saying) or "TOKENS", "chips": fleet(saying)}
    rows = load_sayings().would
    return next((tuple(c.format(**known) for c in would) for when, *would in rows if value_of(when, known)), ())


def _held_against(quoted: SaidQuantity, of: Figure) -> str:
    """Where a figure lies that was said: "above" a predicted interval or "within" it; below it as a "bound" that is
    exceeded, or as "less", which is no overstatement."""
    if quoted.low > of.high:
        return "above"
    if quoted.high >= of.low:
        return "within"
    return "less" if quoted.low else "bound"


def _near(quoted: SaidQuantity, value: float, by: float = NEAR) -> bool:
    """Whether a value is what was said, but for rounding."""
    return quoted.low / by <= value <= quoted.high * by


# a rate of tokens


def _rates(saying: Saying, work: WorkedOut) -> Known | None:
    """One user's predicted rate, that of all requests of a long batch with prompts of 2,000 tokens and of 128, the
    nearest measurement, and the words for them."""
    quoted, s, precision = saying.of("tokens/s"), saying.chips[0], saying.precision
    if quoted is None:
        return None
    if s.count:
        if (fitting := first_format(work, saying, s)) is None:
            raise InfeasibleError(f"{saying.model} does not fit on {few(s)}")
        precision = fitting
    count = held(work, saying.model, s, precision)
    full, brief = (best_plan(work, saying.model, s.chip, count, "batch", precision, **of) for of in ({}, SHORT))
    alone = best_plan(work, saying.model, s.chip, count, "local", precision)
    where, user = many(alone.chips, s.chip), alone.tokens_per_s_per_user
    one = work.figure(f"one user on {where}", user, "tokens/s")
    rates = [
        work.figure(f"all requests together, {lengths}, {plan.precision}", plan.tokens_per_s, "tokens/s")
        for plan, lengths in ((full, "2,000 tokens in and 300 out"), (brief, "128 tokens in and 2,048 out"))
    ]
    together = f"All requests together reach {rates[0]} with prompts of 2,000 tokens, {rates[1]} with prompts of 128."
    measured, best = nearest_measured(work, saying, s, count)
    lone, four = "alone" in saying.marks and quoted.low > user.high, ""
    if lone and not saying.precision:
        with contextlib.suppress(ChipwiseError):
            narrow = best_plan(work, saying.model, s.chip, count, "local", "w4a16").tokens_per_s_per_user
            if quoted.low <= narrow.high:
                four = work.figure(f"one user on {where}, weights in 4 bit", narrow, "tokens/s")
    drafts = user.high < quoted.low <= GUESSED * user.high
    guess = " If one user is meant: speculative decoding may multiply that speed, and was not counted."
    known = {"user": user, "full": full.tokens_per_s, "brief": brief.tokens_per_s, "best": best, "lone": lone}
    known |= {"one": one, "together": together, "measured": measured, "format": alone.precision, "four": four}
    return known | {"guess": guess if drafts else "", "unsure": confidence(work) == "low", "on": many(count, s.chip)}


def _service(saying: Saying, work: WorkedOut) -> Known | None:
    """One user's rate at the service of a chip's vendor. None for other chips, for counts that the service does not run
    with, and for rates that no single stream may reach."""
    quoted, s = saying.of("tokens/s"), saying.chips[0]
    served = served_alone(saying.model, s.chip, saying.precision, s.count or 0)
    if quoted is None or served is None or s.count not in (None, served.chips):
        return None
    where = many(served.chips, s.chip)
    lengths = {"in": round(PROMPT), "out": round(ANSWERED)}
    with contextlib.suppress(ChipwiseError):  # the service may run what the software list does not name
        best_plan(work, saying.model, s.chip, served.chips, "local", served.asked, **lengths)
    what = f"one user of the vendor's service, {served.precision} on {where}"
    one, drafted = work.figure(what, served.plain, "tokens/s"), ""
    if served.drafted:
        two = work.figure(f"the same with a draft model, since {served.since}", served.drafted, "tokens/s")
        drafted = f", and {two} since a small model drafts there ({served.since})"
    speeds = [served.plain, *([served.drafted] if served.drafted else [])]
    fastest = max(f.high for f in speeds)
    if quoted.low > GUESSED * fastest:
        return None
    within = any(_held_against(quoted, f) == "within" for f in speeds)
    return {"served": served, "where": where, "one": one, "drafted": drafted, "fastest": fastest, "within": within}


def _at_a_desk(saying: Saying, work: WorkedOut) -> Any:
    """The best of one user at a machine of their own, with the most memory it is sold with if it takes that: local
    engines run quantised weights."""
    s = saying.chips[0]
    machines = (s.chip, *load_chips().entries[s.chip.partition(":")[0]].options[-1:])
    for machine in machines:
        with contextlib.suppress(InfeasibleError):
            return work.ask("local", have=machine, models=saying.model, min_tps=0.1).models[0]
    raise InfeasibleError(f"{saying.model} fits in no format on {machines[-1]}")


# seconds of a network without tokens


def _latency(saying: Saying, work: WorkedOut) -> Known:
    """The time of as many requests as are said, one after another on one chip."""
    steps, samples = saying.counted(STEPS), saying.counted(SAMPLES) or 1
    plan = work.ask("plan", model=saying.model, chips=saying.chips[0].chip, batch=1, steps=str(steps) if steps else "")
    plan = plan.plans[0]
    how = plan.precision if plan.offload in ("", "none") else f"{plan.precision}, {plan.offload} offloaded"
    settings = f"{steps} steps" if steps else "the model's usual settings"
    what = f"{samples} requests, one after another," if samples > 1 else "a request"
    of = [*([f"{samples} requests"] if samples > 1 else []), *([f"{steps} steps"] if steps else [])]
    time = plan.latency_s.each(1 / samples)
    rate = work.figure(f"{what} with {settings}, {how}", time, "s")
    known = {"time": time, "rate": rate, "how": how, "settings": settings, "what": what.capitalize()}
    return known | {"of": f" with {' '.join(of)}" if of else ""}


STEPS, SAMPLES = r"(?:sampling |denoising )?steps?", r"images?|pictures?|clips?|videos?|samples?"
"""What a sentence counts of a request, and of requests."""


# memory of a model


def _memory(saying: Saying, work: WorkedOut) -> Known:
    """Bytes of a model: as it is stored, in 4 bit, and in the format that is said."""
    record = work.ask("models", model=saying.model).models[0]
    wide = work.figure(f"weights in {record.precision}", record.weight_bytes, "B")
    narrow = work.ask("fit", model=saying.model, chips=usual_chip(), count=8, precision="w4a16").model.weight_bytes
    four = work.figure("weights in 4 bit", narrow, "B")
    cache = work.figure("cache of 1,000 tokens", 1000 * record.kv_bytes_per_token, "B")
    full = record.precision in ("bf16", "fp16")
    weights, lead = float(record.weight_bytes), ""
    if saying.precision == "w4a16":
        weights = narrow
    elif saying.precision in ("fp8", "int8") and full:
        weights *= 0.53
    elif saying.precision == "bf16" and not full:
        weights = 2.0 * record.params
        lead = f"In 16 bit weights are {work.figure('weights in 16 bit', weights, 'B')}. "
    known = {"weights": weights, "narrow": narrow, "stored": record.precision}
    return known | {"wide": wide, "four": four, "cache": cache, "lead": lead}


def _fits(saying: Saying, work: WorkedOut) -> Known | None:
    """Whether a model fits on chips, in its own format, with a local engine or in 4 bit."""
    s = sized(saying)[0]
    count, where = s.count or 1, few(s)
    asked = work.ask("fit", model=saying.model, chips=s.chip, count=count, precision=saying.precision)
    if not asked.fits:
        return None
    fit, model = asked.fits[0], asked.model
    weights = work.figure(f"weights in {model.precision}", model.weight_bytes, "B")
    known: Known = dict.fromkeys(("local", "have", "lean", "lacking", "short", "many", "easy"), "")
    known |= {"weights": weights, "room": fit.verdict != "no"}
    if known["room"]:
        batch = work.figure("requests of 2,300 tokens at once", float(fit.largest_batch), "")
        requests = "1 request of 2,300 tokens fits" if batch == "1" else f"{batch} requests of 2,300 tokens fit"
        return known | {"many": requests, "easy": fit.verdict == "comfortable" or fit.largest_batch > MANY}
    if not saying.denied and (local := local_fit(saying, work, s, count)):
        return known | {"local": local}
    short = work.figure("missing on each", fit.missing_bytes, "B")
    memory = count * (get_chip(s.chip).memory.usable_bytes or 0.0)
    if model.weight_bytes <= memory and not saying.denied:
        return known | {"short": short, "have": work.figure(f"memory of {where}", memory, "B")}
    others, lean = _what_fits(saying, work, s, count)
    return known | {
        "lean": lean,
        "lacking": f"Weights are {weights} in {model.precision}: on {where} each lacks {short}.{others}",
    }


MANY = 8
"""Requests at once from which on a fit counts as one for serving."""


def _what_fits(saying: Saying, work: WorkedOut, s: Spoken, count: int) -> tuple[str, bool]:
    """How many chips would hold a model that does not fit, and whether it fits in 4 bit where no format was said."""
    because, lean = "", False
    fewest = work.ask("fit", model=saying.model, chips=s.chip, precision=saying.precision)
    if has_room(fewest):
        holding = work.figure("chips that hold it", float(fewest.fits[0].chips), "")
        because = f" The fewest that hold it are {holding}."
    if not saying.precision:
        narrow = work.ask("fit", model=saying.model, chips=s.chip, count=count, precision="w4a16")
        lean = has_room(narrow)
    if lean:
        because += f" In 4 bit ({work.figure('weights in 4 bit', narrow.model.weight_bytes, 'B')}) it fits."
    return because, lean


def _needed(saying: Saying, work: WorkedOut) -> Known | None:
    """The fewest chips that hold a model in each format, with the requests of all users where some are said."""
    s, users = saying.chips[0], saying.of("users")
    need = saying.of("chips") or _said_to_need(saying, s)
    batch = round(users.low or users.high) if users else None
    able = formats(saying, work, s, None, "int8", "w4a16", batch=batch)
    fewest = {fit.model.precision: fit.fits[0].chips for _, fit in able}
    if need is None or not fewest:
        return None
    said = [f"{work.figure(f'fewest chips in {p}', float(n), '')} in {p}" for p, n in fewest.items()]
    near = NEAR if need.low > 16 else 1.0  # people round hundreds, not a server's
    own, first = next(iter(fewest.items()))
    so = [p for p, n in fewest.items() if _near(need, n, near)]
    known = {"need": need, "own": own, "first": first, "so": so, "formats": " or ".join(so), "fewest": ", ".join(said)}
    known["held"] = f"{batch:,} requests of 2,300 tokens" if batch else "one request"
    return known | {"least": min(fewest.values()), "are": "is" if first == 1 else "are"}


def _said_to_need(saying: Saying, s: Spoken) -> SaidQuantity | None:
    """How many of the chip that it names a sentence says a model needs; None where it says nothing of that."""
    before, after = saying.text[: s.at], saying.text[s.at :]
    needs = reads("needed", before) or reads("needed_of", after, match=True)
    if not s.count or "trained" in saying.marks or not needs:
        return None
    under, over = reads("under", before), reads("over", before)
    if under:
        return SaidQuantity(0.0, s.count - bool(re.match("less|fewer|under|below", under[0], re.I)), "chips", s.words)
    if over and re.match("more|over|above|exceed", over[0], re.I):
        return SaidQuantity(s.count + 1.0, math.inf, "chips", s.words)
    return SaidQuantity(s.count, s.count, "chips", s.words)


# users


def _users(saying: Saying, work: WorkedOut) -> Known | None:
    """The requests that fit at once and, where a rate is said, what each user is predicted to see under that load and
    what all reach together."""
    said, s, rate = saying.of("users"), sized(saying)[0], saying.of("tokens/s")
    if said is None:
        return None
    users, count = round(said.low or said.high), s.count or 1
    holding: dict[str, int] = {}
    for _, fit in formats(saying, work, s, count, "fp8", "w4a16"):
        holding.setdefault(fit.model.precision, fit.fits[0].largest_batch)
    if not holding:
        raise InfeasibleError(f"{saying.model} does not fit on {few(s)}")
    held_at = [f"{work.figure(f'requests at once in {p}', float(n), '')} in {p}" for p, n in holding.items()]
    enough = [p for p, n in holding.items() if n >= users]
    known: Known = {"users": users, "enough": enough, "formats": " or ".join(enough), "own": next(iter(holding))}
    known |= {"held": ", ".join(held_at), "most": max(holding.values()), "rate": rate, "whole": "", "best": None}
    if rate is None:
        return known
    full = best_plan(work, saying.model, s.chip, count, "batch", saying.precision)
    most = work.figure(
        f"all requests together, 2,000 tokens in and 300 out, {full.precision}", full.tokens_per_s, "tokens/s"
    )
    low, of_all = rate.low or rate.high, "together" in saying.marks
    took = work.figure(f"{users:,} users at {rate.words}", (1 if of_all else users) * low, "tokens/s")
    known["whole"] = f" {users:,} users at {rate.words} take {took} tokens/s for all; full batches reach {most}."
    if enough and (best := _under_load(saying, work, users, s, count)) is not None:
        seen = work.figure(f"each of {users:,} users at once, {best.precision}", best.tokens_per_s_per_user, "tokens/s")
        known["each_sees"] = f"Each of {users:,} at once is predicted to see {seen} in {best.precision}. "
        known |= {"best": best, "low": low, "each": low / users if of_all else low}
    return known


def _under_load(saying: Saying, work: WorkedOut, users: int, s: Spoken, count: int) -> Any:
    """The plan under a load of so many users in which each sees most: of the layouts that suit a full batch and one
    user. None where none was worked out."""
    found = []
    for task in ("batch", "local"):
        with contextlib.suppress(ChipwiseError):
            plan = best_plan(work, saying.model, s.chip, count, task, saying.precision)
            layout = {name: getattr(plan.layout, name) for name in ("tp", "pp", "dp", "ep")}
            asked = {"precision": plan.precision, "replicas": plan.replicas, "runtime": plan.runtime}
            given = {"model": saying.model, "chip": s.chip, "concurrency": float(users), **layout, **asked}
            found.append(work.ask("estimate", **given).plans[0])
    return max(found, key=lambda p: p.tokens_per_s_per_user.mid, default=None)


# the sheet of a chip


VERDICTS = ("false", "misleading", "not settled", "true with a condition", "true")
"""Verdicts on parts of a sentence: the first that one of them has is that on all."""


def _sheet(saying: Saying, work: WorkedOut) -> Known | None:
    """Figures of a data sheet: memory, bandwidth, peaks, power."""
    s = saying.chips[0]
    chip, count = work.ask("chip", chip=s.chip), s.count or 1
    domain = (chip.scaleup.domain if chip.scaleup is not None and re.search(r"NVL\d{2,}", chip.name) else 1) or 1
    found = [
        _peak(work, quoted, chip, count, saying)
        if quoted.unit == "FLOP/s"
        else _like(work, quoted, *_row(saying, quoted, s, chip), (count, 1 if quoted.unit == "W" else domain))
        for quoted in saying.quantities
        if quoted.unit in ("B", "B/s", "W", "FLOP/s")
    ]
    told = [part for part in found if part is not None]
    if not told:
        return None
    verdict = min((v for v, _ in told), key=VERDICTS.index)
    return {"verdict": verdict, "because": f"{chip.name}: {'; '.join(said for _, said in told)}."}


def _row(saying: Saying, quoted: SaidQuantity, s: Spoken, chip: Any) -> tuple[str, float | None]:
    """The line of a chip's sheet that a figure is held against, and what stands there: of memory the size that is sold
    and nearest to what was said, of links one direction unless both are nearer."""
    if quoted.unit == "W":
        return "power limit", chip.tdp_w
    if quoted.unit == "B":
        said = quoted.high if math.isfinite(quoted.high) else quoted.low
        sold = [get_chip(name) for name in load_chips().entries[s.chip.partition(":")[0]].options]
        sizes = [c.memory.label_bytes or c.memory.usable_bytes or 0.0 for c in (chip, *sold)]
        return "memory", min(sizes, key=lambda size: abs((s.count or 1) * size - said))
    if "nvlink" not in saying.marks:
        return "bandwidth of the memory", chip.memory.bytes_per_s
    return "link of one direction", chip.scaleup.bytes_per_s if chip.scaleup else None


def _like(
    work: WorkedOut, quoted: SaidQuantity, what: str, value: float | None, sizes: tuple[int, int]
) -> tuple[str, str] | None:
    """A figure of so many chips, else of a domain of them: labels of memory count in 1,024, and people add them up in
    thousands, as they do both directions of links."""
    if not value:
        return None
    count = sizes[0]
    size = next((n for n in sizes if _labelled(quoted, n * value)), count)
    near = _labelled(quoted, size * value)
    text = work.figure(f"{what} of {size}" if size > count else what, size * value, quoted.unit)
    if not near and what in BOTH:
        return _like(work, quoted, BOTH[what], 2 * value, sizes)
    if quoted.unit == "B" and size * value % 2**30 == 0:
        text = f"{size * value / 2**30:,.0f} GiB ({text})"
    if size > count:
        return "true with a condition", f"{what} of {size} together {text}"
    return "true" if near else "false", f"{what} {text}"


def _labelled(quoted: SaidQuantity, value: float) -> bool:
    """Whether a value is what was said, by its label too."""
    label = value / 2**30 * 1e9 if quoted.unit == "B" and value % 2**30 == 0 else value
    return _near(quoted, value, LABEL) or _near(quoted, label, LABEL)


BOTH = {"link of one direction": "links of both directions"}
"""What sheets count twice."""
LABEL = 1.08
"""How far a figure of a sheet may be from the catalogue's: rounded, or counted in 1,024."""
LIKE = {1: 1.04, 2: 1.12}
"""How far a peak that is said may be from the catalogue's, by whether it counts zeros: those are rounded up more."""
TYPES = {"fp8": ("fp8",), "int8": ("int8",), "nvfp4": ("fp4",), "bf16": ("bf16", "fp16"), "w4a16": ("int4",)}
"""Types of products by the formats that a sentence names."""


def _peak(work: WorkedOut, quoted: SaidQuantity, chip: Any, count: int, saying: Saying) -> tuple[str, str] | None:
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
        if not _near(quoted, zeros * size * peaks[kind], LIKE[zeros]):
            continue
        of = f" of {size}" * (size > 1)
        dense = work.figure(f"dense peak in {kind}{of}", size * peaks[kind], "FLOP/s")
        said = f"the dense peak in {kind}{of}{' chips' * (size > 1)} is {dense}"
        if zeros > 1:
            return "misleading", f"{said}: twice that counts the zeros of structured sparsity"
        return ("true" if size == count else "true with a condition"), said
    text = work.figure(f"highest dense peak, {best}", count * peaks[best], "FLOP/s")
    if _near(quoted, count * peaks[best]):
        why = f"the dense peak in {best} is {text}: other clocks or editions of a sheet differ"
        return "true with a condition", why
    return "false", f"the highest dense peak is {text}, in {best}, and none is what is said"


def _said_peaks(saying: Saying, every: Mapping[str, float]) -> tuple[Sequence[str], Mapping[str, float]]:
    """The types of products that a sentence names, by their words before those of its format, and their peaks."""
    kinds = sorted(saying.wide or TYPES.get(saying.precision, ()), key=lambda k: k not in saying.text.lower())
    return kinds, {k: every[k] for kind in kinds for k in every if k.partition("/")[0] == kind} if kinds else every


def _compared(saying: Saying, work: WorkedOut) -> Known | None:
    found = compared(saying, work)
    return found and {"verdict": found[0], "because": found[1]}


WAYS: Mapping[str, Callable[[Saying, WorkedOut], Known | None]] = {
    "compared": _compared,
    "fits": _fits,
    "latency": _latency,
    "memory": _memory,
    "needed": _needed,
    "rates": _rates,
    "service": _service,
    "sheet": _sheet,
    "users": _users,
}
"""What rows of the table have prepared in code, by name."""
