"""The speed that one user sees of a model that a chip's vendor serves itself.

Such chips are hardly sold: who names one means the vendor's service. It stores models in formats of its own and may
let a small model draft; both are facts of its runtime. Speed and interval are those of the suite of published speeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from chipwise.api.suites.speeds import Case, judged
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.catalog.configs import named_config
from chipwise.catalog.runtime import runtimes_for
from chipwise.evidence.speed_rows import CONTEXT, SpeedRun
from chipwise.report.records import Figure, figure


@dataclass(frozen=True, slots=True)
class Served:
    """What one user of a vendor's service is predicted to see: tokens/s `plain`, and `drafted` since the date `since`
    for a model that is large enough for a small one to draft for it (None: no draft is known). `chips` serve one
    replica in `precision`; `asked` is the format as a question names it, "" for the checkpoint's own."""

    chips: int
    precision: str
    asked: str
    plain: Figure
    drafted: Figure | None
    since: str


def served_alone(model: str, chip: str, precision: str = "", chips: int = 0) -> Served | None:
    """One user's speed at the vendor's own service, at a short prompt; `chips` 0: the vendor's own number.

    None for chips that users run themselves. Raises `UsageError` for a model that cannot be laid out there.
    """
    part = get_chip(chip)
    runtime = next(iter(runtimes_for(part)), None)
    if runtime is None or runtime.access != "vendor" or runtime.service is None:
        return None
    service = runtime.service
    run = SpeedRun(
        "",
        named_config(model),
        part,
        chips,
        precision,
        CONTEXT,
        1.0,
        False,
        service.stored,
        bool(service.drafts_since),
    )
    known = shipped_parameters()
    case = Case.of(run, known)
    speed = partial(_speed, case)
    drafts = known.speeds.values({"kind": np.array([part.kind])})["drafts"].item()
    return Served(
        round(float(np.min(np.asarray(case.sharded.layout.devices))) / part.devices_per_package),
        (held := case.sharded.graph.model.precision.name),
        precision or (service.stored if held == service.stored else ""),
        speed(1.0),
        speed(drafts) if case.drafted else None,
        service.drafts_since,
    )


def _speed(case: Case, drafts: float) -> Figure:
    return figure(judged(case.run, 1.0 / case.seconds(case.costs, drafts)))
