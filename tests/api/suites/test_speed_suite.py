"""Published speeds per user: near for services that say what they run, refused where a row is no plain speed."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from chipwise.api.suites.speeds import TOKEN_SPEEDS, served_alone
from truth import published, rows_of

COLUMNS = ("row_id", "chip", "hardware_text", "chips_total", "model_family", "prompt_tokens", "batch", "precision",
           "speculative", "date")  # fmt: skip


def table(tmp_path: Path, **given: str) -> str:
    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS, restval="")
        writer.writeheader()
        writer.writerow({"row_id": "r0", "chip": "groq-lpu1", "model_family": "Llama 3.1 8B", **given})
    return str(path)


def speed(tmp_path: Path, **given: str) -> float:
    (found,) = TOKEN_SPEEDS.predict(table(tmp_path, **given))
    assert found.mid is not None, found.refused
    return found.mid


def test_main_rows_are_within_a_factor() -> None:
    rows = {r["row_id"]: r for r in rows_of("token_speeds.csv") if r["use"] == "main"}
    found = {p.row_id: p for p in TOKEN_SPEEDS.predict(str(published("token_speeds.csv"))) if p.row_id in rows}
    off = [abs(np.log(p.mid / float(rows[name]["tokens_per_s_per_user"]))) for name, p in found.items() if p.mid]
    assert len(off) == len(rows), "every row that tells plain speeds is answered"
    assert np.exp(np.median(off)) < 1.3
    assert np.exp(np.quantile(off, 0.9)) < 1.6


def test_speculation_is_refused_where_it_is_said(tmp_path: Path) -> None:
    (found,) = TOKEN_SPEEDS.predict(table(tmp_path, speculative="yes"))
    assert found.mid is None
    assert "speculative" in found.refused


def test_services_that_draft_are_faster_on_large_models_only(tmp_path: Path) -> None:
    def on_wafer(model: str, date: str, said: str = "unknown") -> float:
        return speed(tmp_path, chip="wse3-cs3", model_family=model, date=date, speculative=said)

    before, after = (on_wafer("Llama 3.1 70B", d) for d in ("2024-09", "2025-05"))
    assert after > 2 * before
    assert on_wafer("Llama 3.1 70B", "2025-05", "no") == before
    assert on_wafer("Llama 3.1 8B", "2024-09") == on_wafer("Llama 3.1 8B", "2025-05")


def test_a_token_waits_for_layers_not_for_chips(tmp_path: Path) -> None:
    # hundreds of LPUs hold a model; what a token takes is set by its layers
    small, large = (speed(tmp_path, model_family=f"Llama 3.1 {size}", precision="8-bit") for size in ("8B", "70B"))
    assert 2 < small / large < 5, "80 layers against 32"


def test_a_machine_streams_weights_from_all_its_sockets(tmp_path: Path) -> None:
    rdu = {"chip": "sn40l", "model_family": "Llama 3.1 70B", "precision": "16-bit", "speculative": "no"}
    sixteen, eight = (speed(tmp_path, chips_total=n, **rdu) for n in ("16", "8"))
    assert 1.5 < sixteen / eight < 2.1
    # never faster than reading the weights once
    assert sixteen < 16 * 1.6e12 / 141e9


@pytest.mark.parametrize(
    ("model", "chip"),
    [
        ("meta-llama/Llama-2-70b", "groq-lpu1"),
        ("meta-llama/Llama-3.1-70B", "wse3-cs3"),
        ("meta-llama/Llama-3.1-8B", "sn40l"),
    ],
)
def test_a_service_is_asked_as_rows_of_published_speeds_are(tmp_path: Path, model: str, chip: str) -> None:
    served = served_alone(model, chip)
    assert served is not None
    for figure, date in ((served.plain, "2023-01"), (served.drafted, "2025-05")):
        if figure is None:
            continue
        (row,) = TOKEN_SPEEDS.predict(table(tmp_path, chip=chip, model_family=model.rpartition("/")[2], date=date))
        assert (figure.mid, figure.low, figure.high) == pytest.approx((row.mid, row.low, row.high))


def test_chips_that_users_run_themselves_have_no_service() -> None:
    assert served_alone("meta-llama/Llama-3.1-8B", "h100-sxm5-80gb") is None
