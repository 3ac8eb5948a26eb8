"""Versions of software as dates."""

from __future__ import annotations

import pytest

from chipwise.catalog.releases import dated, load_releases, newest_month
from chipwise.errors import UnknownNameError, UsageError


@pytest.mark.parametrize(
    ("asked", "runtime", "month"),
    [
        ("v0.11.0", "vllm", "2025-10"),
        ("0.11.2", "vllm", "2025-10"),
        ("vllm 0.6.1", "", "2024-09"),
        ("vllm==0.6.3.post1", "sglang", "2024-09"),
        ("SGLang v0.5.9", "", "2026-02"),
        ("1.0", "trtllm", "2025-09"),
        ("v5.0", "vllm", "v5.0"),
        ("2025-08", "vllm", "2025-08"),
        ("", "vllm", ""),
    ],
)
def test_a_version_is_the_month_in_which_it_came_out(asked: str, runtime: str, month: str) -> None:
    assert dated(asked, runtime) == month


@pytest.mark.parametrize(("asked", "runtime"), [("0.1.0", "vllm"), ("v0.11.0", ""), ("0.31", "mlx")])
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
