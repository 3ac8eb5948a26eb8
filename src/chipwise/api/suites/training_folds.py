"""The suites `training` and `mlperf_training` and their tables: out of fold workloads, publications, trainers, chips or
vendors are left out whole."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from chipwise.api.suites.suite import Index, Suite, Trial
from chipwise.api.suites.training import ASKING, MeasuredTraining, answered, lines_of, measured_runs
from chipwise.calibrate.fit_training import Runs, fit, fitted_count, seen_runs
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.calibrate.training_rates import PREFIX
from chipwise.errors import ChipwiseError
from chipwise.evidence.residuals import Residuals, Validation
from chipwise.evidence.rows import Predicted
from chipwise.evidence.training_measured import row_group, unknown_batch, workload_key
from chipwise.evidence.training_tiers import CALIBRATED, COMPILED, TABLE, Tier, tier_name, write_tiers
from chipwise.units import Array

FOLDS = 8  # groups of workloads
FEW = 30  # lines that make no interval of their own
KNOWN = 4  # publications that tell how far others lie from those that were seen
SHARE = 0.8  # of the interval
WIDTHS = np.arange(1.0, 2.005, 0.01)  # of the stretched interval
FAR = ("family", "stack", "chip")  # what tiers of trainers never seen are made without


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
    "chip": (
        "training on a chip never seen",
        "refit without each chip, where its vendor has others; vTrain in no fit",
    ),
    "vendor": ("training on a vendor never seen", "refit without each vendor; vTrain in no fit"),
}
"""By key: section of the accuracy page, and what was done."""


def _fit(m: MeasuredTraining, kept: Index, numbers: Parameters) -> Parameters | None:
    """The numbers that rows which count teach; none where none is left: a table of one vendor has nothing to leave."""
    used = kept[m.columns.weight[kept] > 0]
    return fit(m.columns.take(used), numbers) if len(used) else None


def _answer(m: MeasuredTraining, out: Index, numbers: Parameters | None, key: str) -> Residuals:
    """Step time and memory of rows as `plan` answers them with numbers that had not seen them, each with its tier.

    vTrain's rows are in no fit. Those of one node are composed from about 32 layer times: they have a table of their
    own, by (hidden, tp, micro-batch), and are in no pooled figure.
    """
    if numbers is None:
        return Residuals.of([], [], [])
    seen = seen_runs(numbers)
    return Residuals.join(_compared(m, int(i), numbers, seen) for i in out)


def _compared(m: MeasuredTraining, i: int, numbers: Parameters, seen: frozenset[str]) -> Residuals:
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
            tier=tier_name(what, labels, seen, packed=packed),
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


def measured_tiers(m: MeasuredTraining, unseen: Callable[[str], Residuals]) -> dict[str, Tier]:
    """Intervals by tier, from residuals out of fold: of what a fit has seen those without workloads and publications,
    of other trainers and chips those without publications, trainers and chips, of compiled programs without vendors
    too.

    Conformal over publications, whose rows resemble one another (`_ends`): the ends of 80 % are stretched about the
    middle until a publication that neither the fit nor the ends have seen lies inside for 80 % on average. Tiers of
    under `KNOWN` such publications are stretched as the dense ones of their sort; those of none are not, since nothing
    tells by how much. A tier is `calibrated` where ends that are not stretched hold `CALIBRATED`, on at least `KNOWN`
    publications.
    """
    wanted = [not row_group(r.row).startswith("vtrain") and not unknown_batch(r) for r in m.runs]
    known = {key: unseen(key) for key in ("workload", *FAR, "vendor")}
    known = {key: lines.take(lines.known & np.array(wanted)[lines.place]) for key, lines in known.items()}
    found: dict[str, Tier] = {}
    widths: dict[str, float] = {}
    for name in sorted({str(n) for lines in known.values() for n in lines.label("tier")}):
        made = Residuals.join(known[key].where(tier=name) for key in _without(name))
        if len(made) <= FEW:
            continue
        trials = _left_out(made, known["family"].where(tier=name))
        own = next((w for w in WIDTHS if _covered(trials, w) >= SHARE), WIDTHS[-1]) if trials else 1.0
        width = widths.get(_dense(name), own) if 0 < len(trials) < KNOWN else own
        widths[name] = width
        low, high = np.exp(_stretched(_ends(made), width))
        sure = _covered(trials, 1.0) >= CALIBRATED and len(trials) >= KNOWN and "not seen" not in name
        basis = "calibrated" if sure else "modelled"
        found[name] = Tier(float(low), float(high), basis, len(made), _covered(trials, width))
    return found


def _without(tier: str) -> Sequence[str]:
    """What was left out of the fits whose residuals make the interval of a tier."""
    if tier.endswith(", seen"):
        return ("workload", "family")
    return (*FAR, "vendor") if tier.endswith(COMPILED) else FAR


def _dense(tier: str) -> str:
    """The tier of dense models that lies as far from what was measured."""
    return tier.replace("experts", "dense")


def _ends(lines: Residuals) -> Array:
    """The 10 %, 50 % and 90 % quantiles of log residuals. A publication of n lines counts as n / (1 + (n - 1) rho) of
    them, rho the share of publications in the variance: alike where only publications differ, by lines where they do
    not (the design effect of samples in clusters: Kish, 1965)."""
    _, group, size = np.unique(lines.label("group"), return_inverse=True, return_counts=True)
    order = np.argsort(lines.log, kind="stable")
    weight = (1.0 / (1.0 + (size - 1.0) * _alike(lines.log, group, size)))[group][order]
    centre = np.cumsum(weight) - weight / 2.0
    return np.asarray(np.interp((0.1, 0.5, 0.9), centre / weight.sum(), lines.log[order]))


def _alike(values: Array, group: Index, size: Index) -> float:
    """Share of groups in the variance of values, by analysis of variance, outliers drawn in to the 5 and 95 %
    quantiles; 1 of a group alone."""
    groups, n = len(size), len(values)
    if not 1 < groups < n:
        return 1.0
    x = np.clip(values, *np.quantile(values, (0.05, 0.95)))
    mean = np.bincount(group, x) / size
    inside = float(np.sum((x - mean[group]) ** 2)) / (n - groups)
    between = float(np.sum(size * (mean - x.mean()) ** 2)) / (groups - 1)
    own = max((between - inside) / ((n - float(np.sum(size**2.0)) / n) / (groups - 1)), 0.0)
    return own / (own + inside) if own else 0.0


def _stretched(ends: Array, width: float) -> tuple[float, float]:
    """Low and high end, so many times as far from the middle."""
    low, middle, high = ends
    return middle + width * (low - middle), middle + width * (high - middle)


def _left_out(made: Residuals, tested: Residuals) -> list[tuple[Array, Array]]:
    """By publication its log residuals, and the ends that all others make."""
    trials = []
    for (group,), own in tested.by("group"):
        others = made.take(made.label("group") != group)
        if len(others):
            trials.append((own.log, _ends(others)))
    return trials


def _covered(trials: Sequence[tuple[Array, Array]], width: float) -> float:
    """The share of what was measured that lies in the ends of others so wide, each publication counted alike."""
    shares = []
    for own, ends in trials:
        low, high = _stretched(ends, width)
        shares.append(float(np.mean((low <= own) & (own <= high))))
    return float(np.mean(shares)) if shares else 0.0


def _more(m: MeasuredTraining, _: Parameters | None, unseen: Callable[[str], Residuals]) -> Mapping[str, str]:
    return {TABLE: write_tiers(measured_tiers(m, unseen))}


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
            lines.append(
                f"{kind}: mean error {whole:.1%}; mean over {len(groups)} publications of theirs {mean:.1%}"
            )
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
            more=_more,
            under=lambda numbers: numbers or shipped_parameters(),
        ),
        commanded=True,
    )


TRAINING, MLPERF_TRAINING = _suite("training"), _suite("mlperf_training")
