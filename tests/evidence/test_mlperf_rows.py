from __future__ import annotations

import math

import numpy as np
import pytest

from chipwise.api.suites.mlperf import Answer, answer, fixed_row, measured_log
from chipwise.calibrate.fit_mlperf import FitRow, fit, folds, predict, shipped_mlperf, to_toml
from chipwise.catalog.published import find_result, load_inference_results
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError
from chipwise.evidence.mlperf_rows import Run, precision_of, read_run, run_of
from evidence.mlperf import ROW

RESNET = {**ROW, "model": "resnet", "model_base": "resnet", "unit": "Samples/s", "weight_precision": "int8"}


def figures(run: Run) -> dict[str, tuple[float, float, float]]:
    (found,) = answer([run])
    assert isinstance(found, Answer), found
    return found.figures()


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
    assert figures(read_run({**ROW, **measured})) == figures(read_run(ROW))


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
        read_run({**ROW, **change})


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


def test_units_follow_the_row() -> None:
    tokens = figures(read_run(ROW))["result"]
    queries = figures(read_run({**ROW, "unit": "Queries/s"}))
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
    mid, low, high = figures(run_of(next(rows)))["result"]
    assert low < mid < high


def test_no_factor_per_chip_or_submitter_and_constants_only_where_allowed() -> None:
    names = set(shipped_mlperf().table)
    allowed = {n for n in names if n.startswith("benchmark.")}
    for r in load_inference_results().values():
        try:
            run = run_of(r)
            found = fixed_row(run).features if run.benchmark.kind != "llm" else {}
        except ChipwiseError:
            continue
        assert {*found} <= names, r.id
        constants = {n for n in found if n in allowed}
        wanted = run.benchmark.constant and run.benchmark.kind != "llm"
        assert constants == ({f"benchmark.{run.benchmark.name}"} if wanted else set())
        assert r.submitter not in found


def line(name: str, cell: str, x: float, y: float) -> FitRow:
    return FitRow(name, (cell, "b"), 0.0, {"fixed.overall": 1.0, "fixed.power": x}, y)


def test_the_fit_finds_what_made_the_rows() -> None:
    rng = np.random.default_rng(1)
    rows = [line(str(i), str(i % 7), x, 0.3 + 0.4 * x) for i, x in enumerate(rng.normal(size=200))]
    fitted = fit(rows, shipped_mlperf().unfitted())
    assert fitted.value("fixed.overall") == pytest.approx(0.3, abs=0.02)
    assert fitted.value("fixed.power") == pytest.approx(0.4, abs=0.02)
    assert fitted.value("fixed.maturity") == shipped_mlperf().unfitted().value("fixed.maturity")
    assert np.allclose(predict(rows, fitted), [r.log_measured for r in rows], atol=0.03)


def test_outliers_do_not_steer_and_order_does_not_matter() -> None:
    rows = [line(str(i), str(i % 5), 0.0, 0.2) for i in range(40)]
    wild = [*rows, line("wild", "z", 0.0, 5.0)]
    prior = shipped_mlperf().unfitted()
    a, b = fit(rows, prior).value("fixed.overall"), fit(wild, prior).value("fixed.overall")
    assert abs(a - b) < 0.05
    assert fit(wild[::-1], prior).value("fixed.overall") == pytest.approx(b)


def test_folds_never_see_their_own_cell() -> None:
    rows = [line(str(i), str(i % 4), 0.0, 0.1) for i in range(16)]
    lone = line("alone", "only here", 0.0, 3.0)
    seen = folds([*rows, lone], shipped_mlperf().unfitted())
    assert seen[-1] < 0.5


def test_the_file_of_parameters_is_repeatable() -> None:
    text = to_toml(shipped_mlperf(), "note")
    assert text == to_toml(shipped_mlperf(), "note")
    assert text.startswith("# note\n")
    assert '"fixed.overall"' in text
