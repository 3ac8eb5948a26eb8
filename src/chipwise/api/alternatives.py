"""What stands beside the first plan: changes that would make it cheaper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from chipwise.api.context import Context
from chipwise.api.loaded import load_generating
from chipwise.catalog.checkpoints import published_as
from chipwise.catalog.chip import Chip
from chipwise.catalog.drafts import guessing
from chipwise.catalog.preferences import preferences
from chipwise.catalog.quality import UNKNOWN, quality_of, quality_words
from chipwise.catalog.runtime import get_runtime
from chipwise.errors import ChipwiseError
from chipwise.predict.speculative import Speculation
from chipwise.report.assemble import goal, rank_plans
from chipwise.report.plans import LeverRecord, PlanRecord
from chipwise.units import Array, duration_above, typed_s
from chipwise.values import dataclass
from chipwise.workload.lengths import PrefixCache

CACHED = 0.5
"""Of prompt tokens: what is asked of a prefix cache that nobody measured."""
GROUPS: Array = np.array([2.0**i for i in range(12)])
"""count: chips of a replica that share a machine. Exact: whatever layouts are tried."""
HALF_BYTE = 6.0  # bits of a weight on average, scales included, below which it is one of four
FLOATS = ("nvfp4", "mxfp4")
"""Formats of 4 bits, finer scales first."""
LOOSER = 4.0 / 3.0
"""Times a target for tokens: a pace that a reader does not notice, 40 ms in place of 30."""
GUESSED = Speculation(draft_tokens=3, acceptance=0.7)
"""What is asked of guesses that nobody measured: small drafts."""


@dataclass(frozen=True)
class _Lever:
    """One change of a question: the options that ask for it, and what they mean. `keeps`: it leaves the targets and the
    load as they are, so that it may stand together with another. `least`: the share of the cost that it has to save
    beside what it gives away. `eases`: it asks for less, which all software of the chip is asked for. `published`: the
    checkpoint that it takes."""

    options: str
    words: str
    change: Callable[[Context], Context]
    keeps: bool = False
    least: float = 0.0
    eases: bool = False
    published: str = ""

    def __add__(self, other: _Lever) -> _Lever:
        """Both at once."""
        return _Lever(
            f"{self.options} {other.options}",
            f"both: {self.words}; {other.words}",
            lambda context: other.change(self.change(context)),
            keeps=True,
        )


def levers(
    first: PlanRecord, chip: Chip, context: Context, model: str, plans: Callable[[Context, bool], list[PlanRecord]]
) -> tuple[LeverRecord, ...]:
    """Single changes that would make the first plan cheaper by at least `worth` on the same chip, most first, and the
    best two at once that leave the targets and the load as they are, where they save that much more than one of them.

    `context` is that of the first plan on its `chip`, `plans` searches that chip under another, with all software or
    that of the first plan alone. Each figure is the answer to the question with the change's options added, on that
    chip, in the format of the first plan; what asks for less may choose other software. Changes that a user
    has taken already, that the runtime cannot do, or that cost certainty of the targets without saying so are not among
    them.
    """
    if goal(first, context.workload, paid=True) is None or context.workload.task == "local":
        return ()
    changes = chain(_techniques(context), _looser(context, first), _narrower(context, model, first, chip))
    found = [(lever, record) for lever in changes if (record := _tried(lever, first, chip, context, plans))]
    found.sort(key=lambda pair: -pair[1].saves)
    records = [record for _, record in found]
    kept = [pair for pair in found if pair[0].keeps][:2]
    if len(kept) == 2:
        (one, alone), (other, _) = kept
        both = _tried(one + other, first, chip, context, plans)
        if both and 1.0 - both.saves <= (1.0 - alone.saves) * (1.0 - preferences().worth):
            records.insert(0, both)
    return tuple(records)


def _tried(
    lever: _Lever, first: PlanRecord, chip: Chip, context: Context, plans: Callable[[Context, bool], list[PlanRecord]]
) -> LeverRecord | None:
    """The lever as it is shown; None where it does not save enough, or no plan costs so much less."""
    before = goal(first, context.workload, paid=True)
    if before is None or before.mid <= 0.0:
        return None
    most = before.mid * (1.0 - preferences().worth) * (1.0 - lever.least)
    try:
        changed = lever.change(context)
        if changed.workload.driven and _least_usd(changed, chip) > most:
            return None
        ranked = rank_plans(plans(changed, lever.eases), changed.workload)
    except ChipwiseError:  # what cannot be done so is no lever
        return None
    if not ranked or not ranked[0].keeps_targets(changed.workload.confidence):
        return None
    plan, after = ranked[0], goal(ranked[0], context.workload, paid=True)
    if after is None or after.mid > most:
        return None
    other = f", with {plan.runtime}" if plan.runtime != first.runtime else ""
    saves = 1.0 - after.mid / before.mid
    words = lever.words + other
    return LeverRecord(lever.options, words, plan.chips, plan.spread, plan.price, saves, plan.chance, lever.published)


def _least_usd(context: Context, chip: Chip) -> float:
    """Dollars per hour that no plan on a chip costs less than: of as few as hold the weights, in groups of any size."""
    basis, graph = context.basis(chip.id), context.found.graph
    if basis is None:
        return 0.0
    held = sum(size for cls, size in graph.weight_bytes_by_class.items() if cls != "embedding")
    fewest = max(held / (chip.memory.found_bytes or np.inf), 1.0)
    return float(np.min(basis.paid(np.ceil(fewest / GROUPS) * GROUPS, GROUPS)[0]))


def _techniques(context: Context) -> Iterator[_Lever]:
    """What software may do that was not asked of it."""
    w, tactics = context.workload, context.tactics
    if not tactics.apart and w.task == "serve":
        yield _Lever(
            "--disaggregate",
            "prompts on separate workers",
            lambda c: replace(c, tactics=replace(c.tactics, apart=True)),
            keeps=True,
        )
    if w.prefix is None and w.prompt_tokens > 1:
        yield _Lever(
            f"--prefix-hit {CACHED:.0%}",
            f"if {CACHED:.0%} of prompt tokens are in the prefix cache",
            lambda c: replace(c, workload=replace(c.workload, prefix=PrefixCache(CACHED))),
        )
    if tactics.speculation is None and w.output_tokens > 1:
        graph = context.found.graph
        own = graph.extra("mtp") is not None
        guess = Speculation(1, round(guessing(graph.model.name, 1).acceptance, 2)) if own else GUESSED
        drafted = f"if {guess.draft_tokens} drafted tokens are accepted with {guess.acceptance:.0%} probability each"
        yield _Lever(
            f"--speculate accept={guess.acceptance:g},draft={guess.draft_tokens}",
            f"by the model's own module, if {guess.acceptance:.0%} of its tokens are accepted" if own else drafted,
            lambda c: replace(c, tactics=replace(c.tactics, speculation=guess)),
            keeps=own,
        )


def _looser(context: Context, first: PlanRecord) -> Iterator[_Lever]:
    """Targets that are held less surely, or are later."""
    w, p = context.workload, preferences()
    if first.chance is not None and w.confidence > p.even and first.load < p.idle * w.utilisation:
        yield _Lever(
            f"--confidence {p.even:.0%}",
            "if the targets may be missed as likely as not",
            lambda c: replace(c, workload=replace(c.workload, confidence=p.even)),
            eases=True,
        )
    if w.rate_per_s is not None and w.utilisation < p.fullest:
        yield _Lever(
            f"--utilisation {p.fullest:.0%}",
            f"if {p.fullest:.0%} of what they sustain may be used, with less room for bursts",
            lambda c: replace(c, workload=replace(c.workload, utilisation=p.fullest)),
            least=1.0 - w.utilisation / p.fullest,
            eases=True,
        )
    if w.tpot_s is not None and w.task == "serve":
        later = typed_s(LOOSER * w.tpot_s)
        yield _Lever(
            f"--tpot {duration_above(LOOSER * w.tpot_s)}",
            "if tokens may take a third longer",
            lambda c: replace(c, workload=replace(c.workload, tpot_s=later)),
            eases=True,
        )


def _narrower(context: Context, model: str, first: PlanRecord, chip: Chip) -> Iterator[_Lever]:
    """Fewer bits for the cache and for weights."""
    if first.kv in ("bf16", "fp16"):
        yield _Lever(
            f"--precision {first.precision} --kv fp8" if first.converted else "--kv fp8",
            f"the cache in fp8, {UNKNOWN}",
            lambda c: replace(c, found=load_generating(model, first.precision, "fp8")),
        )
    graph = context.found.graph
    if 8.0 * graph.weight_bytes / graph.parameters > HALF_BYTE:
        name, published = _four_bits(graph.model.name, first.runtime, chip)
        made = f" as {published} has them" if published else " of 4 bits"
        yield _Lever(
            f"--precision {name}",
            f"weights{made}: {quality_words(quality_of(graph.model.name, name, published))}",
            lambda c: replace(c, found=load_generating(model, name, None)),
            keeps=True,
            published=published,
        )


def _four_bits(model: str, runtime: str, chip: Chip) -> tuple[str, str]:
    """The format of 4 bits that the software multiplies in on the chip, else integers that it multiplies wider, and a
    checkpoint of the model in it, "" where none is known: formats with one first."""
    rule = get_runtime(runtime).rule(chip)
    native = {weight for weight, kind in rule.native if kind == "fp4"} if rule else set()
    ready = [name for name in FLOATS if name in native] or ["int4"]
    found = [(name, published_as(model, name)) for name in ready]
    return next((pair for pair in found if pair[1]), found[0])
