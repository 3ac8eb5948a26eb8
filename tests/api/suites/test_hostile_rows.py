"""One bad row is one refused row, in every suite; the others are answered as if it were not there."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from chipwise.api.suites.doors import SUITES
from chipwise.api.suites.predicting import predict_suite
from chipwise.api.suites.suite import Suite, every_row
from chipwise.catalog.configs import find_config
from chipwise.errors import UsageError
from chipwise.evidence.rows import Predicted, RowPart, read_rows

Row = Mapping[str, str]
MODEL = "meta-llama/Llama-3.1-8B"
SOUND: dict[str, Row] = {
    "model_params": {"config_file": "m.json"},
    "kv_cache": {"config_file": "m.json", "context_tokens": "1000", "sequences": "1", "element_bytes": "2"},
    "systolic": {
        "dataflow": "ws", "array_rows": "32", "array_cols": "32", "kind": "gemm", "M": "64", "N": "64", "K": "64",
    },
    "kernels": {
        "chip": "h100-sxm5-80gb", "op": "gemm", "dtype": "bf16", "m": "64", "n": "4096", "k": "4096", "batch": "1",
    },
    "mlperf": {
        "chip": "h100-sxm5-80gb", "chips_total": "8", "nodes": "1", "model": "llama2-70b-99", "unit": "Tokens/s",
        "model_base": "llama2-70b", "scenario": "Offline", "round": "v4.1", "weight_precision": "fp8",
        "power_limit_w": "700", "framework": "TensorRT", "result": "21000",
    },
    "serving": {
        "config_file": "m.json", "chip": "h100-sxm5-80gb", "backend": "vllm", "isl": "1024", "osl": "128",
        "concurrency": "16", "tp": "1", "pp": "1", "ttft_ms": "200", "tpot_ms": "12",
    },
    "token_speeds": {
        "chip": "groq-lpu1", "model_family": "Llama 3.1 8B", "chips_total": "576", "prompt_tokens": "100", "batch": "1",
    },
    "training": {
        "chip": "a100-sxm4-80gb", "chips_total": "8", "layers": "24", "hidden": "1920", "heads": "16", "vocab": "51200",
        "seq_len": "2048", "global_batch": "512", "micro_batch": "8", "tp": "1", "pp": "1", "dp": "8",
    },
    "mlperf_training": {
        "chip": "h100-sxm5-80gb", "chips_total": "512", "nodes": "64", "chips_per_node": "8", "benchmark": "gpt3",
        "seq_len": "2048", "global_batch": "2048", "micro_batch": "1", "tp": "4", "pp": "8", "round": "3.0",
    },
}  # fmt: skip
HOSTILE = ("inf", "-1", "nan", "1e308", "0", "1e-308", "1e400", "9" * 400, "many", "\x00", "-inf", "0.5")
NUMBER = "0123456789"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    (folder / "models").mkdir()
    (folder / "models" / "m.json").write_text(json.dumps(dict(find_config(MODEL).data)))
    return folder


def table(folder: Path, rows: list[Row], name: str = "rows.csv") -> str:
    columns = list(dict.fromkeys(c for row in rows for c in row))
    with (folder / name).open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return str(folder / name)


def answers(folder: Path, suite: str, rows: list[Row], anchors: list[Row] | None = None) -> dict[str, list[Row]]:
    """The lines of every row, by its id."""
    out = str(folder / "out.csv")
    own = None if anchors is None else table(folder, anchors, "anchors.csv")
    predict_suite(suite, table(folder, rows), out, own)
    found: dict[str, list[Row]] = {row["row_id"]: [] for row in rows}
    for line in read_rows(out, ()):
        found[line["row_id"]].append(line)
    return found


@pytest.mark.parametrize("suite", SOUND)
def test_a_bad_row_leaves_the_others_as_they_are(suite: str, folder: Path) -> None:
    """Each number of the row is made hostile in turn, all of these rows between two sound ones."""
    row = {"row_id": "a", **SOUND[suite]}
    alone = answers(folder, suite, [row])["a"]
    assert alone
    assert all(line["refused"] == "" and float(line["predicted"]) > 0 for line in alone)
    numeric = [name for name, value in SOUND[suite].items() if value[0] in NUMBER]
    bad = [row | {"row_id": f"{name} {i}", name: value} for name in numeric for i, value in enumerate(HOSTILE)] or [
        row | {"row_id": "b", "config_file": "\x00"}
    ]
    found = answers(folder, suite, [row, *bad, row | {"row_id": "z"}])
    assert [{**line, "row_id": ""} for line in found["a"]] == [{**line, "row_id": ""} for line in alone]
    assert [{**line, "row_id": ""} for line in found["z"]] == [{**line, "row_id": ""} for line in alone]
    for name, lines in found.items():
        assert lines, name
        for line in lines:
            figures = [float(line[n]) for n in ("predicted", "low", "high") if line[n]]
            assert bool(line["refused"]) != bool(figures), name
            assert np.isfinite(figures).all(), name
            assert "Traceback" not in line["refused"]


@pytest.mark.parametrize("suite", [name for name, suite in SUITES.items() if suite.anchored])
def test_a_bad_anchor_anchors_nothing(suite: str, folder: Path) -> None:
    row = {"row_id": "a", **SOUND[suite]}
    measured = {"result": "21000", "tokens_per_s": "21000", "ttft_ms": "200", "tpot_ms": "12", "step_time_s": "9"}
    good = row | measured | {"row_id": "g"}
    bad = [
        good | {"row_id": f"{name} {value}", name: value}
        for name in SOUND[suite]
        if SOUND[suite][name][0] in NUMBER and name not in measured
        for value in ("inf", "-1", "1e308", "1e-308")
    ]
    wanted = answers(folder, suite, [row], [good])
    answered = answers(folder, suite, [good, *bad])
    refused = [anchor for anchor in bad if answered[anchor["row_id"]][0]["refused"]]
    assert refused
    assert answers(folder, suite, [row], [good, *refused]) == wanted


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [("power_limit_w", "-1", "power_limit_w = -1 is out of range"), ("nodes", "1e300", "out of range")],
)
def test_the_reason_names_the_column(column: str, value: str, says: str, folder: Path) -> None:
    (line,) = answers(folder, "mlperf", [{"row_id": "a", **SOUND["mlperf"], column: value}])["a"]
    assert says in line["refused"]


def test_the_cause_is_found_and_nothing_else_refused(folder: Path) -> None:
    """Whatever is raised, and however many rows raise it; warnings of NumPy and figures that are not finite as well."""
    causes = {
        3: lambda: 1 / 0, 4: lambda: np.float64(1e308) * 10.0, 9: lambda: [][1], 10: lambda: {}["x"],
        11: lambda: np.log(np.array(-1.0)), 12: lambda: float("nan"), 13: lambda: np.nanmean(np.array([np.nan])),
    }  # fmt: skip

    def answer(path: str) -> object:
        for row in read_rows(path, ("row_id",)):
            mid = float(causes.get(int(row["row_id"]), lambda: 1.0)())  # type: ignore[arg-type]
            yield Predicted(row["row_id"], "x", mid)

    path = table(folder, [{"row_id": str(i)} for i in range(16)])
    lines = every_row(Suite("suite", ("x",)), answer, path)  # type: ignore[arg-type]
    assert [line.row_id for line in lines] == [str(i) for i in range(16)]
    assert {int(line.row_id) for line in lines if line.refused} == set(causes)
    assert all((line.mid is None) == bool(line.refused) for line in lines)


def test_a_table_that_cannot_be_read_is_no_matter_of_rows(folder: Path) -> None:
    path = table(folder, [{"row_id": "a"}, {"row_id": "b"}])
    with pytest.raises(UsageError, match="no column"):
        SUITES["mlperf"].predict(path)
    part = RowPart.of(path, [{"row_id": "b"}])
    assert part == path
    assert list(read_rows(part, ("row_id",))) == [{"row_id": "b"}]
