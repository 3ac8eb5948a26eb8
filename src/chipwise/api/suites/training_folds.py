"""Errors of the answers to training questions out of fold: workloads, publications, trainers, chips or vendors left
out whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chipwise.api.suites.training import Measured, answered, lines_of, measured_runs
from chipwise.calibrate.fit_training import Runs, fit, fitted_count, seen_pairs
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.errors import ChipwiseError, UnknownNameError
from chipwise.evidence.rows import Predicted
from chipwise.evidence.training_measured import row_group, unknown_batch, workload_key
from chipwise.evidence.training_rows import Run
from chipwise.evidence.training_tiers import CALIBRATED, Tier, tier_name
from chipwise.evidence.validate import Judged, Validation, leave_out, summarise

__all__ = ["KEYS", "measured_tiers", "validate_training"]

FOLDS = 8

KEYS: Mapping[str, Callable[[Run, Mapping[str, str]], str]] = {
    "workload": lambda run, labels: workload_key(run.row),
    "family": lambda run, labels: "vtrain" if run.row.get("family") == "vtrain" else row_group(run.row),
    "stack": lambda run, labels: labels["stack"],
    "chip": lambda run, labels: run.fields["chips"],
    "vendor": lambda run, labels: labels["vendor"],
}
"""What stays together: the split of the tables, a publication, a trainer, chips."""

_TITLES = {
    "workload": ("training", "refit without each workload; vTrain in no fit"),
    "family": ("training of a publication never seen", "refit without each publication; vTrain in no fit"),
    "stack": (
        "training with software never seen",
        "refit without each trainer, where its vendor has other; vTrain in no fit",
    ),
    "chip": (
        "training on a chip never seen",
        "refit without each chip, where its vendor has others; vTrain in no fit",
    ),
    "vendor": ("training on a vendor never seen", "refit without each vendor; vTrain in no fit"),
}
"""By key: section of the accuracy page, and what was done."""


@dataclass(frozen=True, slots=True)
class _Out:
    """A row that a fit had not seen, as `plan` answers it with the numbers of that fit: its lines by metric (none where
    it was refused), and its tier."""

    index: int
    lines: Mapping[str, Predicted]
    tier: str


def validate_training(rows: str, numbers: Parameters, key: str = "workload") -> Validation:
    """Refit without each key in turn (workloads: in eight groups), answer what was left out through the code of `plan`,
    and report the errors.

    Trainers and chips count where the fit still sees others of their vendor. vTrain's rows are in no fit. Those of one
    node are composed from about 32 layer times: they have a table of their own, by (hidden, tp, micro-batch), and are
    in no pooled figure. Raises `UnknownNameError`.
    """
    if key not in KEYS:
        raise UnknownNameError("key", key, KEYS, f"one of {', '.join(KEYS)}")
    measured = measured_runs([rows], numbers)
    wanted = [True] * len(measured.runs)
    if key in ("stack", "chip"):
        wanted = _with_relatives(measured, key)
    judged = [j for out in _out_of_fold(measured, key, wanted) for j in _judged(measured, out)]
    pooled = [j for j in judged if j.slices["group"] != "vtrain_single" and j.slices["guessed"] == "no"]
    cells = [j for j in judged if j.slices["group"] == "vtrain_single"]
    title, method = _TITLES[key]
    if any(run.row.get("benchmark") for run in measured.runs):
        title = f"MLPerf {title}"
    tables = {
        "all": summarise(pooled, "kind"),
        "by tier": summarise(pooled, "tier"),
        "by publication": summarise(pooled, "group"),
        "by chip": summarise(pooled, "chip", 5),
    }
    if key == "vendor":
        tables |= {
            "dense, by vendor": summarise([j for j in pooled if j.slices["kind"] == "dense"], "vendor")
        }
    elif key == "stack":
        tables |= {"by software": summarise(pooled, "stack", 5)}
    elif key == "workload":
        tables |= {"vTrain on one node, by hidden, tp, micro-batch": summarise(cells, "cell")}
    means = _family_means([j for j in pooled if j.metric == "step_time_s"])
    return Validation(title, method, tables, (_budget(measured), *means))


def measured_tiers(measured: Measured) -> dict[str, Tier]:
    """Intervals by tier, from residuals out of fold: of pairs of trainer and generation that a fit has seen those
    without workloads, of others those without publications, trainers and chips; memory without workloads. What a tier
    covers is counted without publications."""
    wanted = [not row_group(r.row).startswith("vtrain") and not unknown_batch(r) for r in measured.runs]
    residuals: dict[str, list[float]] = {}
    without: dict[str, list[float]] = {}
    for key in ("workload", "family", "stack", "chip"):
        for out in _out_of_fold(measured, key, wanted):
            for name, log in _residuals(measured, out):
                unseen = name.endswith("not seen")
                if unseen if key != "workload" else not unseen:
                    residuals.setdefault(name, []).append(log)
                if key == "family":
                    without.setdefault(name, []).append(log)
    found = {}
    for name, logs in residuals.items():
        low, high = np.quantile(logs, [0.1, 0.9])
        tested = np.array(without.get(name, []))
        covered = float(np.mean((low <= tested) & (tested <= high))) if len(tested) else 0.0
        basis = "calibrated" if covered >= CALIBRATED and not name.endswith("not seen") else "modelled"
        found[name] = Tier(float(np.exp(low)), float(np.exp(high)), basis, len(logs), covered)
    return found


def _residuals(measured: Measured, out: _Out) -> Iterator[tuple[str, float]]:
    """(tier, log of measured / predicted) of what was measured in a row."""
    columns, i = measured.columns, out.index
    time = next((p for m, p in out.lines.items() if m in ("step_time_s", "fwd_bwd_time_s")), None)
    if time and time.mid and np.isfinite(columns.seconds[i]):
        yield out.tier, float(np.log(columns.seconds[i] / time.mid))
    memory = out.lines.get("memory_gb")
    if memory and memory.mid and np.isfinite(columns.memory_bytes[i]):
        yield "memory", float(np.log(columns.memory_bytes[i] / 1e9 / memory.mid))


def _out_of_fold(measured: Measured, key: str, wanted: Sequence[bool]) -> Iterator[_Out]:
    """Every row that is wanted, as `plan` answers it with numbers that were fitted without the row's key."""
    runs, columns = measured.runs, measured.columns
    keys = [KEYS[key](run, _labels(columns, i)) for i, run in enumerate(runs)]
    for kept, left in leave_out(keys, FOLDS if key == "workload" else 0):
        used: NDArray[np.intp] = kept[columns.weight[kept] > 0]
        if not len(used):
            continue  # a table of one vendor has nothing to leave
        numbers = fit(columns.take(used), shipped_parameters())
        seen = seen_pairs(numbers)
        for i in left:
            if not wanted[i]:
                continue
            labels = _labels(columns, i)
            pair = f"{labels['stack']}+{labels['generation']}"
            packed = runs[i].fields["method"] == "qlora"
            tier = tier_name(pair, seen, routed=labels["moe"] == "moe", packed=packed)
            try:
                lines = {p.metric: p for p in lines_of(runs[i], answered(runs[i], numbers))}
            except ChipwiseError:
                lines = {}
            yield _Out(int(i), lines, tier)


def _labels(columns: Runs, i: int) -> dict[str, str]:
    return {name: str(column[i]) for name, column in columns.labels.items()}


def _with_relatives(measured: Measured, key: str) -> list[bool]:
    """Which rows are of a vendor that has more than one value of the key."""
    seen: dict[str, set[str]] = {}
    every = [(run, _labels(measured.columns, i)) for i, run in enumerate(measured.runs)]
    for run, labels in every:
        seen.setdefault(labels["vendor"], set()).add(KEYS[key](run, labels))
    return [len(seen[labels["vendor"]]) > 1 for _, labels in every]


def _judged(measured: Measured, out: _Out) -> Iterator[Judged]:
    """Step time and memory of a row against what was measured."""
    run, columns, i = measured.runs[out.index], measured.columns, out.index
    group, labels = row_group(run.row), _labels(measured.columns, i)
    kind = "dense" if labels["moe"] == "dense" else "experts"
    slices = {
        "group": group,
        "kind": "vtrain" if group.startswith("vtrain") else kind,
        "tier": out.tier,
        "chip": run.fields["chips"],
        "stack": labels["stack"],
        "vendor": labels["vendor"],
        "guessed": "yes" if unknown_batch(run) else "no",
        "cell": f"h{run.row.get('hidden')} tp{run.row.get('tp')} b{run.row.get('micro_batch')}",
    }
    name = run.row["row_id"]
    refused = Predicted(name, "", None)
    time = next((p for m, p in out.lines.items() if m in ("step_time_s", "fwd_bwd_time_s")), refused)
    memory = out.lines.get("memory_gb", refused)
    for metric, p, value, scale in (
        ("step_time_s", time, columns.seconds[i], 1.0),
        ("memory_gb", memory, columns.memory_bytes[i], 1e-9),
    ):
        if np.isfinite(value):
            mid, low, high = (np.nan if x is None else x for x in (p.mid, p.low, p.high))
            yield Judged(name, metric, mid, low, high, float(value) * scale, slices)


def _budget(measured: Measured) -> str:
    """Fitted numbers of step time and memory against the workloads that they were fitted on."""
    columns, runs = measured.columns, measured.runs
    used = np.flatnonzero(columns.weight > 0)
    cells = len({workload_key(runs[int(i)].row) for i in used})
    count = fitted_count(fit(columns.take(used), shipped_parameters()))
    return f"{count} fitted numbers on {cells} workloads"


def _family_means(judged: Sequence[Judged]) -> list[str]:
    lines = []
    for kind in ("dense", "experts", "vtrain"):
        groups: dict[str, list[float]] = {}
        for j in judged:
            if j.slices["kind"] == kind and np.isfinite(j.predicted):
                groups.setdefault(j.slices["group"], []).append(abs(j.error))
        if groups:
            whole = float(np.mean([e for v in groups.values() for e in v]))
            mean = float(np.mean([np.mean(v) for v in groups.values()]))
            lines.append(
                f"{kind}: mean error {whole:.1%}; mean over {len(groups)} publications of theirs {mean:.1%}"
            )
    return lines
