from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from chipwise.api.suites.mlperf import measured_log, predict_run, run_curve
from chipwise.api.suites.mlperf_folds import fit_rows
from chipwise.api.suites.mlperf_rates import language_curve
from chipwise.calibrate.fit_mlperf import FitRow, fit, folds, predict, shipped_mlperf, software_speed, to_toml
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.published import find_result, load_inference_results, software_age
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError
from chipwise.evidence.mlperf_features import features
from chipwise.evidence.mlperf_rows import SLACK, precision_of, read_run, run_of
from evidence.mlperf import ROW


def test_a_row_and_its_published_result_are_the_same_run() -> None:
    r = load_inference_results()["v5.1-05440"]
    run = run_of(r)
    assert (run.chip.id, run.chips, run.scenario, run.precision, run.age) == (
        "h200-sxm-141gb",
        8,
        "Server",
        "fp8",
        3.0,
    )
    assert run.cell == ("h200-sxm-141gb", "llama2-70b")


def test_measured_columns_are_not_read() -> None:
    measured = {"result": "1", "tokens_per_s": "1", "ttft_p99_ms": "1", "tpot_p99_ms": "1"}
    assert predict_run(read_run({**ROW, **measured})) == predict_run(read_run(ROW))


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"chip": ""}, UsageError),
        ({"chip": "h999"}, UnknownNameError),
        ({"model_base": "llama9"}, UnknownNameError),
        ({"scenario": "Someday"}, UsageError),
        ({"round": "v9.9"}, UsageError),
        ({"chips_total": "many"}, UsageError),
        ({"chips_total": "0"}, UsageError),
        ({"power_limit_w": "x"}, UsageError),
    ],
)
def test_bad_rows_are_one_clear_error(change: dict[str, str], kind: type[ChipwiseError]) -> None:
    with pytest.raises(kind):
        predict_run(read_run({**ROW, **change}))


def test_precision_that_was_mislabelled() -> None:
    run = read_run(ROW)
    assert precision_of(run.benchmark, run.chip, "fp16") == ("fp8", "declared fp16: taken to have run in fp8")
    assert precision_of(run.benchmark, run.chip, "fp8") == ("fp8", "")
    b200 = read_run({**ROW, "chip": "b200-sxm"})
    assert precision_of(b200.benchmark, b200.chip, "fp4")[0] == "nvfp4"
    mi = read_run({**ROW, "chip": "mi355x"})
    assert precision_of(mi.benchmark, mi.chip, "fp4")[0] == "mxfp4"


def test_bert_at_its_high_accuracy_is_not_in_int8() -> None:
    row = {**ROW, "model": "bert-99.9", "model_base": "bert", "unit": "Samples/s", "weight_precision": ""}
    found = {chip: read_run({**row, "chip": chip}).precision for chip in ("l40s", "h200-sxm-141gb")}
    assert found == {"l40s": "fp16", "h200-sxm-141gb": "fp8"}
    assert read_run({**row, "chip": "l40s", "model": "bert-99"}).precision == "int8"


def test_wider_limits_are_never_slower_and_offline_has_none() -> None:
    numbers = shipped_parameters()
    server = language_curve(read_run({**ROW, "scenario": "Interactive"}), numbers).log_rate
    offline = language_curve(read_run(ROW), numbers).log_rate
    assert (np.diff(server) >= -1e-12).all()
    assert np.ptp(offline) == 0.0
    assert (server <= offline[0] + 1e-9).all()


def test_units_follow_the_row() -> None:
    tokens = predict_run(read_run(ROW))["result"]
    queries = predict_run(read_run({**ROW, "unit": "Queries/s", "round": "v5.1"}))
    assert tokens is not None
    assert queries["result"] is not None
    assert queries["tokens_per_s"] == pytest.approx(tokens)
    assert queries["result"][0] == pytest.approx(tokens[0] / 294.45)
    for name in ("v3.0-00144", "v5.1-05440"):
        r = find_result(name)
        run = run_of(r)  # type: ignore[arg-type]
        assert math.isfinite(measured_log(run, r.result))  # type: ignore[union-attr, arg-type]


def test_a_latency_turns_over_with_its_interval() -> None:
    rows = (
        r for r in load_inference_results().values() if r.benchmark == "resnet" and r.chip and "ms" in r.unit
    )
    found = predict_run(run_of(next(rows)))["result"]
    assert found is not None
    mid, low, high = found
    assert low < mid < high


def test_twice_the_chips_twice_the_replicas() -> None:
    one, two = (predict_run(read_run({**ROW, "chips_total": n}))["result"] for n in ("8", "16"))
    assert one is not None
    assert two is not None
    assert two[0] == pytest.approx(2 * one[0], rel=0.1)


def test_newer_software_is_not_slower() -> None:
    rates = [
        predict_run(read_run({**ROW, "round": r}))["result"] for r in ("v4.0", "v4.1", "v5.0", "v5.1", "v6.0")
    ]
    mids = [r[0] for r in rates if r]
    assert mids == sorted(mids)
    assert mids[-1] / mids[0] > 1.2


def test_software_grows_towards_a_mature_stack() -> None:
    speeds = [software_speed(software_age(d), shipped_mlperf()) for d in ("2024-03", "2025-03", "2026-11")]
    assert speeds == sorted(speeds)
    assert 0.4 < speeds[0] < 0.7
    assert 0.95 < speeds[2] < 1.0


def test_no_factor_per_chip_or_submitter_and_constants_only_where_allowed() -> None:
    names = set(shipped_mlperf().table)
    allowed = {n for n in names if n.startswith("benchmark.")}
    for r in load_inference_results().values():
        try:
            run = run_of(r)
            speed, limit = features(run, run_curve(run))
        except ChipwiseError:
            continue
        assert {*speed, *limit} <= names, r.id
        constants = {n for n in speed if n in allowed}
        assert constants == ({f"benchmark.{run.benchmark.name}"} if run.benchmark.constant else set())
        assert r.submitter not in speed


def line(name: str, cell: str, x: float, y: float, curve: np.ndarray | None = None) -> FitRow:
    flat = np.zeros(len(SLACK)) if curve is None else curve
    return FitRow(name, (cell, "b"), SLACK, flat, {"llm.overall": 1.0, "llm.power": x}, {"limit.all": 1.0}, y)


def test_the_fit_finds_what_made_the_rows() -> None:
    rng = np.random.default_rng(1)
    rows = [line(str(i), str(i % 7), x, 0.3 + 0.4 * x) for i, x in enumerate(rng.normal(size=200))]
    fitted = fit(rows, shipped_mlperf().unfitted())
    assert fitted.value("llm.overall") == pytest.approx(0.3, abs=0.02)
    assert fitted.value("llm.power") == pytest.approx(0.4, abs=0.02)
    assert fitted.value("llm.maturity") == shipped_mlperf().unfitted().value("llm.maturity")
    assert np.allclose(predict(rows, fitted), [r.log_measured for r in rows], atol=0.03)


def test_a_slow_machine_meets_its_limit_at_a_smaller_batch() -> None:
    rows = [line(str(i), "c", 0.0, -0.6, 0.5 * SLACK) for i in range(50)]
    # rate = x + x / 2: the factor shows 1.5 times where a limit binds
    assert fit(rows, shipped_mlperf().unfitted()).value("llm.overall") == pytest.approx(-0.3, abs=0.15)


def test_outliers_do_not_steer_and_order_does_not_matter() -> None:
    rows = [line(str(i), str(i % 5), 0.0, 0.2) for i in range(40)]
    wild = [*rows, line("wild", "z", 0.0, 5.0)]
    prior = shipped_mlperf().unfitted()
    a, b = fit(rows, prior).value("llm.overall"), fit(wild, prior).value("llm.overall")
    assert abs(a - b) < 0.05
    assert fit(wild[::-1], prior).value("llm.overall") == pytest.approx(b)


def test_folds_never_see_their_own_cell() -> None:
    rows = [line(str(i), str(i % 4), 0.0, 0.1) for i in range(16)]
    lone = line("alone", "only here", 0.0, 3.0)
    seen = folds([*rows, lone], shipped_mlperf().unfitted())
    assert seen[-1] < 0.5


def test_the_file_of_parameters_is_repeatable() -> None:
    text = to_toml(shipped_mlperf(), "note")
    assert text == to_toml(shipped_mlperf(), "note")
    assert text.startswith("# note\n")
    assert '"llm.overall"' in text


# Errors on cells that the fit did not see, with room for a change of the physics: the fit is to be run again
# after one (python -m chipwise.api.suites.refit_mlperf).
BOUNDS = {"Offline": (0.12, 0.35), "Server": (0.14, 0.45), "Interactive": (0.25, 0.70)}


def test_errors_on_unseen_cells(truth: Path) -> None:
    with (truth / "mlperf_inference.csv").open(newline="", encoding="utf-8") as source:
        rows = [row for row in csv.DictReader(source) if row["chip_known"] == "1"]
    pairs = [(run, row) for run, row in fit_rows(rows) if run.benchmark.kind == "llm"]
    seen = folds([row for _, row in pairs], shipped_mlperf().unfitted())
    for scenario, (middle, tail) in BOUNDS.items():
        here = [i for i, (run, _) in enumerate(pairs) if run.scenario == scenario]
        error = np.abs(np.exp(seen[here] - [pairs[i][1].log_measured for i in here]) - 1.0)
        assert np.median(error) < middle, scenario
        assert np.quantile(error, 0.9) < tail, scenario
