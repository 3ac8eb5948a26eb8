"""What would make a deployment fit that does not: for those who ask by fields and get no answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chipwise.api.requests.doors import read_request
from chipwise.catalog.chips import load_chips
from chipwise.catalog.machine import kinds
from chipwise.catalog.offer import load_offers
from chipwise.errors import ChipwiseError
from chipwise.report.fit import FitRecord

VERBS = ("plan", "compare", "estimate", "explain")
ASKED = ("model", "precision", "kv", "runtime", "count")
"""Fields of a deployment that `fit` has too, chips apart."""
FIRST = 3
"""Chips that are named."""
MOST = 4
"""Remedies that are named."""


@dataclass(frozen=True, slots=True)
class Mending:
    """The first chips that were asked about and are `lacking` memory, the smallest changes that `mend` that, and the
    first chips `holding` the model: those that were asked about in other counts, else any."""

    lacking: tuple[FitRecord, ...]
    mend: tuple[str, ...]
    holding: tuple[FitRecord, ...]


def mending(verb: str, given: Mapping[str, Any], *, files: bool = False) -> Mending | None:
    """What would make the deployment of a question fit, by the fields that were `given`; None where the verb deploys
    nothing or chips were not named."""
    names = _names(given.get("chips") or given.get("chip") or given.get("have"))
    if verb not in VERBS or not names:
        return None
    asked = {name: given[name] for name in ASKED if given.get(name)}
    fits = _fits({**asked, "chips": names}, files)
    lacking = tuple(f for f in fits if f.verdict == "no")[:FIRST]
    mend = tuple(dict.fromkeys(m for f in fits for m in f.mend))[:MOST]
    anywhere = {name: value for name, value in asked.items() if name != "count"}
    these = {**anywhere, "chips": list(kinds(names))}
    holding = _holding(these, files) or _holding(anywhere, files)
    return Mending(lacking, mend, holding[:FIRST])


def _names(chips: Any) -> list[str]:
    """Chips as a question names them: text, a list, or counts by name; none where they are something else."""
    if isinstance(chips, str):
        return [n.strip() for n in chips.split(",") if n.strip()]
    if isinstance(chips, Mapping):
        return [f"{count}x{chip}" for chip, count in chips.items()]
    known = isinstance(chips, list) and all(isinstance(name, str) for name in chips)
    return chips if known else []


def _holding(asked: Mapping[str, Any], files: bool) -> tuple[FitRecord, ...]:
    """Chips that hold a model, those for rent first, then the fewest."""
    found = [f for f in _fits(asked, files) if f.verdict != "no" and load_chips()[f.chip].kind != "cpu"]
    rented = {o.chip for o in load_offers()}
    return tuple(sorted(found, key=lambda f: (f.chip not in rented, f.chips)))


def _fits(asked: Mapping[str, Any], files: bool) -> Sequence[FitRecord]:
    """What fit says of some chips, nothing where it has no answer or sizes a network without tokens."""
    try:
        report = read_request("fit", asked, files=files).run()
    except ChipwiseError:
        return ()
    found: Sequence[FitRecord] = getattr(report, "fits", ())
    return found
