"""Training out of fold: what is left out, and what stays in."""

import csv
from pathlib import Path

import pytest

from chipwise.api.suites.training_folds import KEYS
from chipwise.api.suites.validating import validate
from chipwise.errors import UnknownNameError
from chipwise.evidence.residuals import Summary, Validation

FAMILIES = ("maxtext", "neusight", "nemo_launcher", "gaudi")


@pytest.fixture(scope="module")
def few(truth: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs on chips of four vendors, one of which has one chip and one software."""
    with (truth / "training.csv").open(newline="") as file:
        reader = csv.DictReader(file)
        rows = [row for row in reader if row["family"] in FAMILIES]
        names = reader.fieldnames or ()
    path = tmp_path_factory.mktemp("rows") / "training.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    return path


def _rows(found: Validation, title: str) -> dict[str, Summary]:
    return {s.name: s for s in found.tables[title] if s.metric == "step_time_s"}


def test_software_counts_where_its_vendor_has_other(few: Path) -> None:
    found = validate("training", str(few), "stack")
    assert found.suite == "training with software never seen"
    assert {"pytorch-unfused", "nemo"} <= set(_rows(found, "by software"))
    assert "maxtext" not in _rows(found, "by publication")  # XLA is all that the fit could know of TPUs


def test_what_no_fit_has_seen_is_judged_as_such(few: Path) -> None:
    found = validate("training", str(few), "vendor")
    assert all(", not seen" in tier for tier in _rows(found, "by tier"))
    assert found.remarks[0].endswith("workloads")


def test_another_key_is_named(few: Path) -> None:
    with pytest.raises(UnknownNameError, match=next(iter(KEYS))):
        validate("training", str(few), "colour")
