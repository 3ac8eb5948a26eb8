"""What sentences with figures ask: plans of what they name, formats that fit, prices, trainings and measurements."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from typing import Any

from chipwise.api.loaded import load_generating
from chipwise.api.said import Saying, Spoken
from chipwise.api.worked_out import WorkedOut
from chipwise.catalog.chips import get_chip
from chipwise.catalog.machine import DESKS
from chipwise.catalog.offer import load_offers
from chipwise.catalog.system import load_systems
from chipwise.errors import ChipwiseError, InfeasibleError, UsageError

USUAL = "meta-llama/Llama-3.1-8B"
LARGE = "meta-llama/Llama-3.1-70B"
"""What chips are compared by where no model is said: the first that fits on both."""


def sized(saying: Saying) -> tuple[Spoken, ...]:
    """The chips without those that a word of a family stands for next to a size of memory: "a 48GB GPU"."""
    memory = saying.of("B") is not None
    return tuple(s for s in saying.chips if not (memory and s.loose))


def placed(saying: Saying) -> bool:
    """Whether the sentence says on what a model is to fit; what it needs at least is another question."""
    return any(s.count or not (s.loose or "needs" in saying.marks) for s in sized(saying))


def many(count: int, chip: str) -> str:
    """So many chips in words."""
    name = get_chip(chip).name
    return f"{count}x {name}" if count > 1 else name


def few(s: Spoken) -> str:
    """A chip as it was counted, one where it was not."""
    return many(s.count or 1, s.chip)


def fleet(saying: Saying) -> int:
    """The chips of a training: those that were said, else a server."""
    return next((s.count for s in saying.chips if s.count), 8)


def budget(saying: Saying) -> str:
    """The tokens of a training that a sentence names."""
    return f"{said.low / 1e9:g}B" if (said := saying.of("tokens")) else ""


def priced(chip: str) -> bool:
    """Whether an offer of a chip has a price."""
    return any(o.chip == chip and o.usd_per_h is not None for o in load_offers())


def at_desk(chip: str) -> bool:
    """Whether machines at desks hold a chip."""
    return any(s.form in DESKS for s in load_systems().holding(chip))


def has_room(asked: Any) -> bool:
    """Whether what `fit` was asked fits."""
    return bool(asked.fits) and asked.fits[0].verdict != "no"


def formats(
    saying: Saying, work: WorkedOut, s: Spoken, count: int | None, *narrower: str, batch: int | None = None
) -> Iterator[tuple[str, Any]]:
    """The formats in which a model fits on so many chips, with what `fit` says of each: the checkpoint's own ("") and
    the `narrower` ones in their order; of a sentence with a format only that one."""
    for precision in (saying.precision,) if saying.precision else ("", *narrower):
        with contextlib.suppress(ChipwiseError):
            asked = {"model": saying.model, "chips": s.chip, "count": count, "precision": precision}
            fit = work.ask("fit", **asked, batch=batch)
            if has_room(fit):
                yield precision, fit


def first_format(work: WorkedOut, saying: Saying, s: Spoken) -> str | None:
    """The first format in which a model fits on as many chips as were said, "" for the checkpoint's own; None where it
    fits in none."""
    return next((precision for precision, _ in formats(saying, work, s, s.count, "fp8", "w4a16")), None)


def held(work: WorkedOut, model: str, s: Spoken, precision: str = "") -> int:
    """The chips that were said, else the fewest that hold a model. Raises `InfeasibleError` where none do."""
    if s.count:
        return s.count
    fit = work.look("fit", model=model, chips=s.chip, precision=precision)
    if not has_room(fit):
        raise InfeasibleError(f"{model} fits on no count of {s.chip}")
    return int(fit.fits[0].chips)


def best_plan(work: WorkedOut, model: str, chip: str, count: int, task: str, precision: str, **lengths: Any) -> Any:
    """The best plan on all of so many chips; on one machine of a desk the best of those that use at most as many. A
    chip that takes many to hold a model may take more than the fewest. Weights are as they are stored where nothing was
    said of them, but at a desk."""
    if task == "local" and not precision and not at_desk(chip):
        precision = load_generating(model).graph.model.precision.name
    ways = [{"have": f"{count}x{chip}"}] if count > 1 and not at_desk(chip) else []
    for way in (*ways, {"chips": f"{count}x{chip}"}):
        with contextlib.suppress(InfeasibleError, UsageError):
            return work.ask("plan", model=model, task=task, precision=precision, **way, **lengths).plans[0]
    return work.ask("plan", model=model, chips=chip, task=task, precision=precision, **lengths).plans[0]


BITS = {"w4a16": "q4", "int8": "q8"}
"""Formats of local engines by what sentences call them."""
LITTLE = 2048
"""Tokens of context of a chat that is short."""


def local_fit(saying: Saying, work: WorkedOut, s: Spoken, count: int, precision: str = "") -> str:
    """How a local engine runs a model on a desk machine that a server's runtime has no room on, in the format that was
    said or another, in a sentence. "" where it does not."""
    precision = precision or saying.precision
    if not at_desk(s.chip) or (precision and precision not in BITS):
        return ""
    with contextlib.suppress(ChipwiseError):
        machine = f"{count}x{s.chip}" if count > 1 else s.chip
        best = work.ask("local", have=machine, models=saying.model, min_tps=0.1, context=LITTLE).models[0]
        if best.precision.startswith(BITS.get(precision, "")):
            rate = work.figure(f"one user, {best.precision}", best.tokens_per_s, "tokens/s")
            because = f"In {best.precision} a local engine runs it on {many(count, s.chip)}, at {rate} for one user"
            return f"{because} and a context of {LITTLE:,} tokens."
    return ""


def trained(saying: Saying, work: WorkedOut, s: Spoken, model: str, count: int = 0) -> Any:
    """The best plan of a training, of as many tokens as are said."""
    asked = {"model": model, "tokens": budget(saying) or "10B", "chips": s.chip, "counts": str(count or fleet(saying))}
    plan = work.ask("train", **asked, method="lora" if "lora" in saying.marks else "").plans[0]
    work.kinds.add(plan.days.basis)
    return plan


def hourly(work: WorkedOut, chip: str) -> tuple[float, float] | None:
    """The lowest and the highest list price of one chip on demand an hour; None where none is known."""
    found = next((r for r in work.ask("offers", chip=chip).ranges if r.chip == chip), None)
    return (found.low, found.high) if found else None


def nearest_measured(work: WorkedOut, saying: Saying, s: Spoken, count: int) -> tuple[str, float]:
    """The nearest published result of such a model on that chip in a sentence, and its tokens per second on as many
    chips; "" and 0 where there is none near."""
    try:
        report = work.ask("match", model=saying.model, chip=s.chip, count=count)
    except ChipwiseError:
        return "", 0.0
    same = [m for m in report.matches if m.item.speed and m.mark("chip") == "same"]
    near = next((m for m in same if m.mark("model") in ("same", "near")), None)
    if near is None:
        work.commands.popitem()
        return "", 0.0
    item = near.item
    name = f"{item.round} {item.benchmark} {item.scenario}, {item.chips}x {item.chip}"
    text = work.figure(f"nearest measurement: {name} ({item.id})", item.speed * (item.chips or 1), "tokens/s")
    work.commands[f"chipwise evidence claim --result {item.id} --for {shlex.quote(saying.model)}"] = "match"
    return f" Nearest measurement: {text} tokens/s, {name}: {near.verdict}.", item.speed * count
