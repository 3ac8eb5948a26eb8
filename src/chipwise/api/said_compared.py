"""Verdicts on sentences that compare two chips: the ratio that is said against those that are worked out."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from chipwise.api.said import Aspect, Saying, Spoken
from chipwise.api.said_asked import LARGE, USUAL, best_plan, few, has_room, held, hourly, local_fit, trained
from chipwise.api.worked_out import SHORT, WorkedOut, confidence, value_of
from chipwise.catalog.benchmarks import benchmark_of, load_benchmarks
from chipwise.catalog.names import core
from chipwise.catalog.preferences import preferences
from chipwise.catalog.statements import load_sayings
from chipwise.errors import ChipwiseError, InfeasibleError
from chipwise.evidence.claim import TIE
from chipwise.report.statements import shown

Of = tuple[str, str]
"""What is compared, and the condition that it holds under."""
Ratios = dict[Of, float]
"""Ratios of the first of two chips over the second."""
UNSURE = preferences().unseen
"""How far a ratio that rests on chips which no fit has seen may be from one that is said, without refuting it."""
SERVER = 16
"""Chips of one machine or two; more are held against each other by machines, not by chips."""
SERVERS = 64
"""Chips of a few servers, which hold a large model in training."""
THE_SAME = 1.02
"""ratio: below it two figures are about the same. Chosen: half of what list prices of one day differ by; moves words
alone."""
DENIED_IS = {"true": "false", "false": "true", "misleading": "true"}
"""What the verdict on a sentence makes of one that denies it."""


def compared(saying: Saying, work: WorkedOut) -> tuple[str, str] | None:
    """The verdict on a ratio of two chips in what a sentence is about, and why; None where none can be worked out."""
    a, b = saying.chips
    exact = next((m for m, row in load_sayings().measures.items() if row.aspect == saying.aspect), "")
    try:
        ratios = _sheet_ratio(exact, work, a, b) if exact else _ratios(saying, work, a, b)
    except InfeasibleError:
        return _held_in_four(saying, work)
    if not ratios:
        return None
    _note(work, ratios)
    if "always" in saying.marks:
        return _always(saying, ratios)
    verdict = _verdict(saying, ratios.values(), preferences().rounded if exact else TIE, confidence(work))
    if verdict == "false" and not saying.ratio:  # what refutes it first
        ratios = dict(sorted(ratios.items(), key=lambda of: of[1] * (saying.more or 0)))
    lead = ""
    if saying.ratio is None or verdict == "true with a condition":
        verdict, lead = _by_measure(verdict, ratios, saying)
    told = _in_a_sentence(ratios, saying)
    return _with_the_rest(saying, work, verdict, f"{lead}{told[0].upper()}{told[1:]}")


def _note(work: WorkedOut, ratios: Ratios) -> None:
    """Ratios noted as figures, and which of them were predicted."""
    work.measures[:] = dict.fromkeys(m for m, _ in ratios if load_sayings().measures[m].predicted)
    for (measure, under), value in ratios.items():
        work.figure(f"{measure}, {under}" if under else measure, value, "x")


def _with_the_rest(saying: Saying, work: WorkedOut, verdict: str, because: str) -> tuple[str, str]:
    """A verdict on two chips with what goes with it: a speed that was not judged, or what their sheets say."""
    if saying.aspect == "price" and "speed" in saying.marks:
        return "true with a condition" if verdict == "true" else verdict, f"{because} The speed in it was not judged."
    sheets = ", ".join(_sheets(work, *saying.chips)) if saying.aspect in ("speed", "training") else ""
    return verdict, f"{because} By its sheet it has {sheets}." if sheets else because


# what is worked out


def _ratios(saying: Saying, work: WorkedOut, a: Spoken, b: Spoken) -> Ratios:
    """The ratios that a sentence is judged by: of prices what is paid for tokens before what is paid for hours; of what
    is said to be so always those under other choices too."""
    training = saying.aspect == "price" and saying.model and "trained" in saying.marks
    ratios = (_training_prices if training else PREDICTIONS[saying.aspect])(saying, work, a, b)
    if ratios and saying.aspect == "price":
        return _other_choices(saying, work, a, b) | ratios
    return ratios | _other_choices(saying, work, a, b) if ratios and "always" in saying.marks else ratios


def _sheet_ratio(measure: str, work: WorkedOut, a: Spoken, b: Spoken) -> Ratios:
    """The ratio of figures of two data sheets; none where one is unknown."""
    figure = load_sayings().measures[measure].figure
    ours, theirs = ((s.count or 1) * (value_of(figure, {"chip": work.ask("chip", chip=s.chip)}) or 0) for s in (a, b))
    return {(measure, ""): ours / theirs} if ours and theirs else {}


def _sheets(work: WorkedOut, a: Spoken, b: Spoken) -> Iterator[str]:
    """What the data sheets say of as many of two chips, whose speeds are compared."""
    if (a.count or 1) == (b.count or 1):
        for measure, what in (("dense bf16 peak", "bf16 peak"), ("bandwidth", "bandwidth")):
            for ratio in _sheet_ratio(measure, work, replace(a, count=1), replace(b, count=1)).values():
                yield f"{work.figure(what, ratio, 'x')} times the {what}"


def _common(saying: Saying, work: WorkedOut, a: Spoken, b: Spoken) -> tuple[str, str, int, int]:
    """The model that two chips are compared by, its format, and how many of each hold it: as many as were said, else as
    many of both as the one that needs more (chips of SRAM by themselves). The format is the checkpoint's unless one was
    said: a chip that has a narrower one is not to win by it."""
    said = bool(a.count or b.count)
    for model in (saying.model,) if saying.model else (USUAL, LARGE):
        ones = [held(work, model, replace(s, count=s.count or (1 if said else None))) for s in (a, b)]
        if not said and max(ones) <= SERVER:
            ones = [max(ones)] * 2
        if saying.model or max(ones) <= SERVER:
            break
    precision = saying.precision or work.look("models", model=model).models[0].precision
    return model, precision, ones[0], ones[1]


def _both(saying: Saying, work: WorkedOut, a: Spoken, b: Spoken, task: str, **lengths: Any) -> tuple[str, list[Any]]:
    """The model that two chips are compared by, and the best plan of each."""
    model, precision, na, nb = _common(saying, work, a, b)
    return model, [best_plan(work, model, s.chip, n, task, precision, **lengths) for s, n in ((a, na), (b, nb))]


def _whole(saying: Saying, work: WorkedOut, a: Spoken, b: Spoken, **lengths: Any) -> tuple[float, list[Any]]:
    """The ratio of full batches on all chips of two, and their plans."""
    _, _, *counts = _common(saying, work, a, b)
    _, plans = _both(saying, work, a, b, "batch", **lengths)
    ours, theirs = (p.tokens_per_s_per_chip.mid * n for p, n in zip(plans, counts, strict=True))
    return ours / theirs, plans


def _speeds(saying: Saying, work: WorkedOut, a: Spoken, b: Spoken) -> Ratios:
    """Ratios of predicted speed of one user and of a full batch, and of the best measured results of a benchmark."""
    model, precision, na, nb = _common(saying, work, a, b)
    ours, theirs = (p.tokens_per_s_per_user.mid for p in _both(saying, work, a, b, "local")[1])
    found: Ratios = {("speed", f"{_short(model)} in {precision}, one user"): ours / theirs}
    found["speed", "as many requests as fit"], full = _whole(saying, work, a, b)
    work.kinds |= {p.tokens_per_s.basis for p in full}
    if saying.model and na == nb:
        found |= _best_measured(work, model, a.chip, b.chip)
    if "served" not in saying.marks and not saying.model and a.count == b.count:
        with contextlib.suppress(ChipwiseError):
            found |= _trainings(saying, work, a, b)
    return found


def _short(model: str) -> str:
    return model.rpartition("/")[2]


def _best_measured(work: WorkedOut, model: str, a: str, b: str) -> Ratios:
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
        work.commands.popitem()
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


def _trainings(saying: Saying, work: WorkedOut, a: Spoken, b: Spoken) -> Ratios:
    model = saying.model or USUAL
    ours, theirs = (trained(saying, work, s, model, s.count or 8).days.mid for s in (a, b))
    return {("speed of training", f"{_short(model)}, {a.count or 8} and {b.count or 8} chips"): theirs / ours}


def _training_prices(saying: Saying, work: WorkedOut, a: Spoken, b: Spoken) -> Ratios:
    counts = (a.count or b.count or SERVERS, b.count or a.count or SERVERS)
    plans = (trained(saying, work, s, saying.model, n) for s, n in zip((a, b), counts, strict=True))
    ours, theirs = (p.usd for p in plans)
    return {("price of training", ""): ours.mid / theirs.mid} if ours and theirs else {}


def _prices(saying: Saying, work: WorkedOut, a: Spoken, b: Spoken) -> Ratios:
    ours, theirs = hourly(work, a.chip), hourly(work, b.chip)
    if ours is None or theirs is None:
        return {}
    # the highest are of unlike providers
    return {("price per hour", "lowest list prices"): (a.count or 1) * ours[0] / ((b.count or 1) * theirs[0])}


def _per_million(
    saying: Saying, work: WorkedOut, a: Spoken, b: Spoken, measure: str, field: str, ends: Mapping[str, str]
) -> Ratios:
    """How many times as many tokens the first makes of what a million of them take, at full batches; `ends` of that by
    the condition."""
    model, plans = _both(saying, work, a, b, "batch")
    ours, theirs = (getattr(p, field) for p in plans)
    if not (ours and theirs):
        return {}
    work.kinds |= {p.tokens_per_s.basis for p in plans}
    of = {under.format(model=_short(model)): end for under, end in ends.items()}
    return {(measure, under): getattr(theirs, end) / getattr(ours, end) for under, end in of.items()}


PER_DOLLAR = {"{model}, full batch, middle prices": "mid", "lowest prices": "low"}
_per_dollar = partial(_per_million, measure="tokens per dollar", field="usd_per_million_out", ends=PER_DOLLAR)
_per_joule = partial(
    _per_million, measure="tokens per joule", field="kwh_per_million_out", ends={"{model}, full batch": "mid"}
)
PREDICTIONS: Mapping[Aspect, Callable[[Saying, WorkedOut, Spoken, Spoken], Ratios]] = {
    "speed": _speeds,
    "training": _trainings,
    "price": _prices,
    "per dollar": _per_dollar,
    "energy": _per_joule,
}
"""What is worked out for a comparison that no sheet answers, by what it is about."""


def _other_choices(saying: Saying, work: WorkedOut, a: Spoken, b: Spoken) -> Ratios:
    """The ratios under other choices that a sentence leaves open, as it says that it always holds: of speed short
    prompts and, where no model is said, a larger one; of prices dollars for the same tokens."""
    found: Ratios = {}
    with contextlib.suppress(ChipwiseError):
        if saying.aspect == "price":
            found = {("price per token", under): 1 / x for (_, under), x in _per_dollar(saying, work, a, b).items()}
        elif saying.aspect == "speed":
            found["speed", "short prompts and long answers"] = _whole(saying, work, a, b, **SHORT)[0]
            if not saying.model and _common(saying, work, a, b)[0] != LARGE:
                other = _speeds(replace(saying, model=LARGE), work, a, b)
                found |= {(m, what if LARGE[-3:] in what else f"{what}, 70B"): x for (m, what), x in other.items()}
    return found


def _held_in_four(saying: Saying, work: WorkedOut) -> tuple[str, str] | None:
    """Two chips of which one at least does not hold the model that they are compared by: in 4 bit as in its own format,
    who holds it wins."""
    if not saying.model or saying.more != 1 or saying.ratio is not None:
        return None
    holds = [_holds_in_four(saying, work, s) for s in saying.chips]
    if holds[0] == holds[1]:
        return None
    names = [few(s) for s in saying.chips]
    winner, other = names if holds[0] else reversed(names)
    because = f"In 4 bit {saying.model} fits on {winner} and not on {other}."
    return "true" if holds[0] != saying.denied else "false", because


def _holds_in_four(saying: Saying, work: WorkedOut, s: Spoken) -> bool:
    """Whether a server's runtime or a local engine has room for a model in 4 bit."""
    fit = work.ask("fit", model=saying.model, chips=s.chip, count=s.count or 1, precision="w4a16")
    holds = bool(local_fit(saying, work, s, s.count or 1, "w4a16")) or has_room(fit)
    missing = 0.0 if holds or not fit.fits else fit.fits[0].missing_bytes
    work.figure(f"missing on each of {few(s)}, weights in 4 bit", missing, "B")
    return holds


# what follows of the ratios


def _always(saying: Saying, ratios: Ratios) -> tuple[str, str]:
    """The verdict on what is said to be so always, or never: one of the choices that are left open is enough to refute
    it, the clearest first."""
    low, high = saying.ratio or (1.0, 1.0)
    way = saying.more or 0

    def so(ratio: float) -> bool:
        if not way:
            return 1 / TIE < ratio < TIE
        return ratio * TIE >= low and ratio > 1 if way > 0 else ratio <= high * TIE and ratio < 1

    against = [of for of, ratio in ratios.items() if so(ratio) == saying.denied]
    first = sorted(ratios, key=lambda of: -abs(math.log(ratios[of])) if of in against else 1.0)
    told = _in_a_sentence({of: ratios[of] for of in first}, saying)
    if against:
        return "false", f"{'It can be so' if saying.denied else 'Not always'}: {told}"
    return "true", f"None of {len(ratios)} choices of what it leaves open contradicts it: {told}"


def _verdict(saying: Saying, ratios: Collection[float], tie: float, sure: str) -> str:
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
    if more < 0:  # less of the first is more of the second
        more, least, most = 1, 1 / most, 1 / least
    holds, never = (least > tie, most < THE_SAME and least < 1 / tie) if more else (False, False)
    if not more:
        holds, never = least > 1 / tie and most < tie, least > tie or most < 1 / tie
    return "true" if holds else "false" if never else "true with a condition"


def _by_measure(verdict: str, ratios: Ratios, saying: Saying) -> tuple[str, str]:
    """The verdict on which way a comparison goes, or how far, where it holds in some of what was worked out and not in
    the rest, or by less than predictions err, and in which, before the ratios: what is paid for tokens says more than
    what is paid for hours."""
    if not saying.more:
        return verdict, ""
    places: dict[str, list[Of]] = {"holds": [], "further": [], "fails": []}
    for of, ratio in ratios.items():
        places[_place(saying, ratio)].append(of)
    holds, beyond, fails = places.values()
    tokens = [of for of in fails if of[0] == "price per token"]
    if tokens and {measure for measure, _ in (*holds, *beyond)} == {"price per hour"}:
        return "misleading", f"only {_where([*holds, *beyond], ratios)}, not {_where(tokens, ratios)}. "
    if beyond:
        return verdict, _further(places, ratios)
    if holds and fails:
        return "true with a condition", f"{_where(holds, ratios)}, not {_where(fails, ratios, 'or')}. "
    return verdict, "" if saying.ratio or verdict != "true with a condition" else _slightly(holds, ratios)


def _further(places: Mapping[str, Sequence[Of]], ratios: Ratios) -> str:
    """In which of the ratios what is said holds, in which it goes further, and in which not so far."""
    words = (("holds", "", "and"), ("further", "it goes further ", "and"), ("fails", "not so far ", "or"))
    parts = (f"{lead}{_where(places[at], ratios, joined)}" for at, lead, joined in words if places[at])
    return f"{'; '.join(parts)}. "


def _place(saying: Saying, ratio: float) -> str:
    """Whether what a sentence says of two chips "holds" of a ratio, which may go "further" than it says, or "fails"."""
    if saying.ratio is None:
        so = ratio > THE_SAME if saying.more == 1 else ratio < 1 / THE_SAME
        return "holds" if so != saying.denied else "fails"
    low, high = saying.ratio
    if not saying.denied and (ratio > high * TIE if low > 1 else ratio < low / TIE):
        return "further"
    return "holds" if (low / TIE <= ratio <= high * TIE) != saying.denied else "fails"


def _slightly(holds: Sequence[Of], ratios: Ratios) -> str:
    """In which of the ratios that go the way that is said they do so by too little to count on."""
    slight = [of for of in holds if 1 / TIE <= ratios[of] <= TIE]
    clear = [of for of in holds if of not in slight]
    lead = f"clearly {_where(clear, ratios)}; {_where(slight, ratios)} " if clear and slight else ""
    predicted = any(load_sayings().measures[m].predicted for m, _ in slight)
    return f"{lead}by {'less than such predictions err' if predicted else 'little'}. " if slight else ""


# words


def _where(some: Sequence[Of], every: Ratios, joined: str = "and") -> str:
    """Some of the ratios by name: the measure alone where all its cases are among them."""
    found = []
    for measure in dict.fromkeys(m for m, _ in some):
        mine, cases = ([u for m, u in of if m == measure] for of in (some, every))
        words = load_sayings().measures[measure].where or f"in {measure}"
        found.append(words if len(mine) == len(cases) else f"{words} ({'; '.join(mine)})")
    return f" {joined} ".join(found)


def _in_a_sentence(ratios: Ratios, saying: Saying) -> str:
    """Ratios in words: measure by measure, each with what it holds under; those that are about the same as a range."""
    a, b = map(few, saying.chips)
    parts: list[str] = []
    for measure in dict.fromkeys(m for m, _ in ratios):
        cases = {under: ratio for (m, under), ratio in ratios.items() if m == measure}
        least, most = min(cases.values()), max(cases.values())
        if most < TIE * least:
            cases = {"; ".join(filter(None, cases)): math.sqrt(least * most)}
        times = [_times(ratio) for ratio in cases.values()]
        if most < TIE * least and shown(least, "x") != shown(most, "x"):
            times = [f"{shown(least, 'x')} to {shown(most, 'x')} times "]
        under = [f" ({words})" if words else "" for words in cases]
        says = load_sayings().measures[measure].says.format(a=a, b=b, n=times[0], model=_short(saying.model)) + under[0]
        if parts:
            says = says.replace(a, "it").replace(f" as {b}", "")
        parts.append(", ".join((says, *(f"{n.strip()}{words}" for n, words in zip(times[1:], under[1:], strict=True)))))
    return f"{'; '.join(parts)}."


def _times(ratio: float) -> str:
    """A ratio before "as much as"."""
    return "about " if abs(math.log(ratio)) < math.log(THE_SAME) else f"{shown(ratio, 'x')} times "
