"""What is preferred where physics leaves a choice: every threshold of a decision, with its unit and its reason."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import PACKAGE, per_snapshot, shipped_text
from chipwise.values import dataclass

TABLE = "catalog/data/preferences.toml"
SAID = ("value", "unit", "reason", "tried")


@dataclass(frozen=True, slots=True)
class Preferences:
    """The values of `catalog/data/preferences.toml`, which gives unit and reason of each.

    `confidence`, `utilisation`: defaults of a question. `equal`: costs that count as the same; `evidence`: what better
    evidence may cost at most; `sooner`: what a training run that ends sooner may. `comfortable`, `short`, `host_share`,
    `training_aim`, `training_limit`, `roomy`: shares of memory. `at_home`: of a step, for keeping data on the device.
    `stale_days`, `dated_days`, `undercut`, `forced`: of prices. `few_cards`, `most_chips`: of chips. `few_stages`,
    `more_stages`: of pipelines. `worth`: what a named change saves.
    `horizon_train`, `horizon_finetune`: days of a run. `desk_tokens_per_s`: the pace a user wants.
    `standstill`: of the time of a run. `even`, `likely`, `sure`, `sure_named`, `idle`, `costly`: of what less certainty
    would save. `told`, `noticed`: the least difference of a cost, and of other figures, that is worth a sentence.
    `rounded`, `tie`,
    `unseen`: ratios up to which what somebody says is not refuted.
    """

    confidence: float
    utilisation: float
    equal: float
    evidence: float
    sooner: float
    at_home: float
    comfortable: float
    training_aim: float
    training_limit: float
    roomy: float
    short: float
    host_share: float
    stale_days: float
    dated_days: float
    undercut: float
    forced: float
    few_cards: float
    most_chips: float
    few_stages: float
    more_stages: float
    worth: float
    horizon_train: float
    horizon_finetune: float
    desk_tokens_per_s: float
    standstill: float
    even: float
    likely: float
    sure: float
    sure_named: float
    costly: float
    idle: float
    told: float
    noticed: float
    fullest: float
    rounded: float
    tie: float
    unseen: float


@per_snapshot
def preferences() -> Preferences:
    """The shipped preferences; a table of an older saved answer has those of today where it has none of a name. Raises
    `ValueError` for a table that holds another, or gives no reason."""
    table: dict[str, dict[str, Any]] = parse(shipped_text(TABLE))
    wanted = [f.name for f in fields(Preferences)]
    if more := sorted(set(table) - set(wanted)):
        raise ValueError(f"{TABLE}: {more}")
    if len(table) < len(wanted):
        table = parse((PACKAGE / TABLE).read_text("utf-8")) | table
    for name, row in table.items():
        if tuple(row) != SAID or not all(row[key] for key in SAID):
            raise ValueError(f"{TABLE}, {name}: {', '.join(SAID)}, each of them said")
    return Preferences(**{name: float(row["value"]) for name, row in table.items()})
