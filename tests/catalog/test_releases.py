"""Versions of software as dates."""

from __future__ import annotations

import pytest

import chipwise
from chipwise.api.tactics import OLDEST
from chipwise.catalog.chips import load_chips
from chipwise.catalog.releases import beyond, dated, load_first_builds, load_releases, newest_month
from chipwise.catalog.runtime import get_runtime
from chipwise.errors import InfeasibleError, UnknownNameError, UsageError


@pytest.mark.parametrize(
    ("asked", "runtime", "month"),
    [
        ("v0.11.0", "vllm", "2025-10"),
        ("0.11.2", "vllm", "2025-10"),
        ("vllm 0.6.1", "", "2024-09"),
        ("vllm==0.6.3.post1", "sglang", "2024-09"),
        ("SGLang v0.5.9", "", "2026-02"),
        ("1.0", "trtllm", "2025-09"),
        ("v0.11.0", "", "2025-10"),
        ("0.11.0", "trtllm", "2024-06"),
        ("v5.0", "vllm", "v5.0"),
        ("2025-08", "vllm", "2025-08"),
        ("", "vllm", ""),
    ],
)
def test_a_version_is_the_month_in_which_it_came_out(asked: str, runtime: str, month: str) -> None:
    assert dated(asked, runtime) == month


@pytest.mark.parametrize(("asked", "runtime"), [("0.1.0", "vllm"), ("0.5.0", ""), ("0.31", "mlx")])
def test_versions_of_no_known_month_are_refused(asked: str, runtime: str) -> None:
    with pytest.raises(UsageError):
        dated(asked, runtime)
    with pytest.raises(UnknownNameError):
        dated("nobody 1.2.3", runtime)


def test_months_rise_with_versions() -> None:
    for rows in load_releases().values():
        months = [rows[version] for version in sorted(rows)]
        assert months == sorted(months)
        assert months[-1] <= newest_month()


def test_a_version_newer_than_all_is_taken_for_the_newest_and_says_so() -> None:
    known = max(load_releases()["vllm"])
    assert dated("vllm 99.1", "") == load_releases()["vllm"][known]
    assert beyond("vllm 99.1", "") == beyond("v99.1.0", "vllm").replace("99.1.0", "99.1")
    assert "taken for" in beyond("vllm 99.1", "")
    assert not any(beyond(asked, "vllm") for asked in ("0.9.0", "v5.0", "2025-08", ""))


@pytest.mark.parametrize(
    ("asked", "chip", "named"),
    [
        ("vllm 0.6", "b200-sxm", "vllm 0.9.0"),
        ("2024-01", "rtx-5090", "vllm 0.9.0"),
        ("trtllm 0.15", "b200-sxm", "trtllm 0.17.0"),
        ("sglang 0.5.0", "mi355x", "sglang 0.5.2"),
    ],
)
def test_software_from_before_a_chip_is_refused_with_the_first_that_runs(asked: str, chip: str, named: str) -> None:
    question = {"model": "meta-llama/Llama-3.1-8B", "chip": chip, "concurrency": 4}
    with pytest.raises(InfeasibleError, match=f"{named}' or later"):
        chipwise.estimate(**question, software=asked)
    assert chipwise.estimate(**question, software=named).plans
    assert chipwise.estimate(**question, software="v4.1", level="tuned").plans, "submissions may be ahead"


def test_first_builds_name_generations_and_runtimes_of_the_catalogue() -> None:
    generations = {chip.generation for chip in load_chips().values()}
    for row in load_first_builds():
        assert set(row.generations) <= generations
        assert all(get_runtime(name).id == name for name in row.runtimes)
        assert row.source["ref"]
        assert OLDEST < row.month <= newest_month()
