"""The suites `training` and `mlperf_training` and their tables: out of fold workloads, publications, trainers, chips or
vendors are left out whole."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from chipwise.api.suites.suite import Index, Suite, Trial
from chipwise.api.suites.training import ASKING, MeasuredTraining, answered, lines_of, measured_runs
from chipwise.calibrate.fit import Fitting
from chipwise.calibrate.fit_training import Runs, fit, fitted_count, fitted_memory, fitted_times, timed_of, weighed_of
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.calibrate.training_rates import MEMORY_PREFIX, PREFIX
from chipwise.errors import ChipwiseError
from chipwise.evidence.residuals import Residuals, Validation
from chipwise.evidence.rows import Predicted
from chipwise.evidence.tiers import seen_of, tier_name
from chipwise.evidence.training_measured import row_group, unknown_batch, workload_key

FOLDS = 8  # groups of workloads

KEYS: Mapping[str, Callable[[MeasuredTraining], Sequence[Hashable]]] = {
    "workload": lambda m: [workload_key(run.row) for run in m.runs],
    "family": lambda m: ["vtrain" if r.row.get("family") == "vtrain" else row_group(r.row) for r in m.runs],
    "stack": lambda m: m.columns.labels["stack"].tolist(),
    "chip": lambda m: [run.fields["chips"] for run in m.runs],
    "vendor": lambda m: m.columns.labels["vendor"].tolist(),
}
"""What stays together: the split of the tables, a publication, a trainer, chips."""

_TITLES = {
    "workload": ("training", "refit without each workload; vTrain in no fit"),
    "family": ("training of a publication never seen", "refit without each publication; vTrain in no fit"),
    "stack": (
        "training with software never seen",
        "refit without each trainer, where its vendor has other; vTrain in no fit",
    ),
    "chip": ("training on a chip never seen", "refit without each chip, where its vendor has others; vTrain in no fit"),
    "vendor": ("training on a vendor never seen", "refit without each vendor; vTrain in no fit"),
}
"""By key: section of the accuracy page, and what was done."""


def _fit(m: MeasuredTraining, kept: Index, numbers: Parameters) -> Parameters | None:
    """The numbers that rows which count teach; none where none is left: a table of one vendor has nothing to leave."""
    used = kept[m.columns.weight[kept] > 0]
    return fit(m.columns.take(used), numbers) if len(used) else None


def _fitted(m: MeasuredTraining, numbers: Parameters) -> dict[str, tuple[Fitting, Index]]:
    used = np.flatnonzero(m.columns.weight > 0)
    runs = m.columns.take(used)
    timed, weighed = timed_of(runs), weighed_of(runs)
    return {
        PREFIX: (fitted_times(runs.take(timed), numbers), used[timed]),
        MEMORY_PREFIX: (fitted_memory(runs.take(weighed)), used[weighed]),
    }


def _answer(m: MeasuredTraining, out: Index, numbers: Parameters | None, key: str) -> Residuals:
    """Step time and memory of rows as `plan` answers them with numbers that had not seen them, each with its tier.

    vTrain's rows are in no fit. Those of one node are composed from about 32 layer times: they have a table of their
    own, by (hidden, tp, micro-batch), and are in no pooled figure.
    """
    if numbers is None:
        return Residuals.of([], [], [])
    return Residuals.join(_compared(m, int(i), numbers) for i in out)


def _compared(m: MeasuredTraining, i: int, numbers: Parameters) -> Residuals:
    run, columns, labels = m.runs[i], m.columns, _labels(m.columns, i)
    try:
        lines = {p.metric: p for p in lines_of(run, answered(run, numbers), numbers)}
    except ChipwiseError:
        lines = {}
    refused = Predicted(run.row["row_id"], "", None)
    group = row_group(run.row)
    dense = "dense" if labels["moe"] == "dense" else "experts"
    packed = run.fields["method"] == "qlora"
    time = lines.get("step_time_s") or lines.get("fwd_bwd_time_s") or refused
    measured = {
        "step_time_s": ("time", time, columns.seconds[i]),
        "memory_gb": ("memory", lines.get("memory_gb", refused), columns.memory_bytes[i] / 1e9),
    }
    return Residuals.join(
        Residuals.of(
            i,
            *(np.nan if x is None else x for x in (p.mid, value)),
            low=np.nan if p.low is None else p.low,
            high=np.nan if p.high is None else p.high,
            metric=metric,
            model=run.row.get("model", ""),
            row=run.row["row_id"],
            method=str(run.fields["method"]),
            precision=str(run.fields["precision"]),
            experts=dense,
            tier=tier_name(what, labels, seen=seen_of(numbers, labels, what, packed=packed)),
            group=group,
            kind="vtrain" if group.startswith("vtrain") else dense,
            chip=run.fields["chips"],
            stack=labels["stack"],
            vendor=labels["vendor"],
            guessed="yes" if unknown_batch(run) else "no",
            cell=f"h{run.row.get('hidden')} tp{run.row.get('tp')} b{run.row.get('micro_batch')}",
        )
        for metric, (what, p, value) in measured.items()
        if np.isfinite(value)
    )


def _report(m: MeasuredTraining, found: Residuals, key: str) -> Validation:
    """Trainers and chips count where the fit still sees others of their vendor."""
    if key in ("stack", "chip"):
        found = found.take(_with_relatives(m, key)[found.place])
    single = found.label("group") == "vtrain_single"
    pooled = found.take(~single & (found.label("guessed") == "no"))
    title, method = _TITLES[key]
    if any(run.row.get("benchmark") for run in m.runs):
        title = f"MLPerf {title}"
    tables = {
        "all": pooled.summaries("kind"),
        "by tier": pooled.summaries("tier"),
        "by publication": pooled.summaries("group"),
        "by chip": pooled.summaries("chip", 5),
    }
    if key == "vendor":
        tables |= {"dense, by vendor": pooled.where(kind="dense").summaries("vendor")}
    elif key == "stack":
        tables |= {"by software": pooled.summaries("stack", 5)}
    elif key == "workload":
        tables |= {"vTrain on one node, by hidden, tp, micro-batch": found.take(single).summaries("cell")}
    times = pooled.where(metric="step_time_s")
    return Validation(title, method, tables, (_budget(m), *_family_means(times.take(times.known))))


def _labels(columns: Runs, i: int) -> dict[str, str]:
    return {name: str(column[i]) for name, column in columns.labels.items()}


def _with_relatives(m: MeasuredTraining, key: str) -> np.ndarray:
    """Which rows are of a vendor that has more than one value of the key."""
    vendors, values = m.columns.labels["vendor"].tolist(), KEYS[key](m)
    seen: dict[str, set[Hashable]] = {}
    for vendor, value in zip(vendors, values, strict=True):
        seen.setdefault(vendor, set()).add(value)
    return np.array([len(seen[vendor]) > 1 for vendor in vendors])


def _budget(measured: MeasuredTraining) -> str:
    """Fitted numbers of step time and memory against the workloads that they were fitted on."""
    columns, runs = measured.columns, measured.runs
    used = np.flatnonzero(columns.weight > 0)
    cells = len({workload_key(runs[int(i)].row) for i in used})
    count = fitted_count(fit(columns.take(used), shipped_parameters()))
    return f"{count} fitted numbers on {cells} workloads"


def _family_means(times: Residuals) -> list[str]:
    lines = []
    for kind in ("dense", "experts", "vtrain"):
        rows = times.where(kind=kind)
        if len(rows):
            whole = float(np.mean(np.abs(rows.error)))
            groups = [float(np.mean(np.abs(each.error))) for _, each in rows.by("group")]
            mean = float(np.mean(groups))
            lines.append(f"{kind}: mean error {whole:.1%}; mean over {len(groups)} publications of theirs {mean:.1%}")
    return lines


def _shipped(numbers: Parameters | None) -> Mapping[str, Parameter]:
    table = {} if numbers is None else numbers.table
    return {name: p for name, p in table.items() if name.startswith(f"{PREFIX}.")}


def _suite(name: str) -> Suite:
    return Suite(
        name,
        ("step_time_s",),
        ASKING,
        Trial(
            f"{name}.csv",
            measured_runs,
            KEYS,
            _fit,
            _answer,
            _report,
            {"training.csv": _shipped},
            folds={"workload": FOLDS},
            under=lambda numbers: numbers or shipped_parameters(),
            fitted=_fitted,
        ),
        commanded=True,
    )


TRAINING, MLPERF_TRAINING = _suite("training"), _suite("mlperf_training")
