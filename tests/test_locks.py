"""What a server is made of: every package of `pyproject.toml` is locked, with hashes, and the locks agree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def pinned(name: str) -> dict[str, set[str]]:
    """Versions of a lock by package; a package may have several, by platform."""
    found: dict[str, set[str]] = {}
    for line in (ROOT / name).read_text().splitlines():
        if match := re.match(r"([A-Za-z0-9._-]+)==([^\s;\\]+)", line):
            found.setdefault(canonicalize_name(match[1]), set()).add(match[2])
    return found


def asked() -> list[tuple[str, str]]:
    """What is needed, by the lock that holds it."""
    extras = PROJECT["project"]["optional-dependencies"]
    server = [*PROJECT["project"]["dependencies"], *extras["serve"]]
    more = [*extras["parquet"], *extras["notebook"], *PROJECT["dependency-groups"]["dev"]]
    return [("requirements.lock", n) for n in server] + [("requirements-dev.lock", n) for n in (*server, *more)]


@pytest.mark.parametrize(("lock", "needed"), asked())
def test_what_is_needed_is_locked(lock: str, needed: str) -> None:
    wanted = Requirement(needed)
    versions = pinned(lock).get(canonicalize_name(wanted.name), set())
    assert versions, f"{needed} is not in {lock}: make lock"
    assert all(wanted.specifier.contains(v, prereleases=True) for v in versions)


def test_every_package_of_a_server_has_hashes() -> None:
    text = (ROOT / "requirements.lock").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if "==" in line]
    assert lines
    assert all("--hash=sha256:" in line for line in lines)


def test_the_locks_agree() -> None:
    server, tests = pinned("requirements.lock"), pinned("requirements-dev.lock")
    assert {n for n, versions in server.items() if tests.get(n) != versions} == set()
