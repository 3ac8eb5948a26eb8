"""Whether the tests would notice: `make mutants` changes one meaningful line at a time and expects a test to fail.

`python -m bench.mutants [NAME ...] [--list]`; the changes are in `mutants.toml`, each with the tests that must notice
it. The tree is copied as it stands, what is not committed included, and every change is made in the copy; nothing lies
beside it, so that the published tables notice nothing. First the tests run on the copy unchanged: where one fails, it
says nothing of a change.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Literal

__all__ = ["Mutant", "NotThereError", "Run", "copied", "mutants", "run", "table"]

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_name("mutants.toml")
LIMIT_S = 900  # of the tests of one change: the slowest golden kind takes 45 s
FAILED = 1  # exit code of pytest: tests were run, some failed

Outcome = Literal["caught", "survived", "error"]


class NotThereError(Exception):
    """The text that a change replaces is not in its file, or is there more than once."""


@dataclass(frozen=True)
class Mutant:
    """A change of one place: `old`, which occurs once in `file`, becomes `new`; `tests` are what pytest is given."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, text: str) -> str:
        """The file's text with the change. Raises `NotThereError` unless `old` occurs exactly once."""
        count = text.count(self.old)
        if count != 1:
            where = "is not there" if not count else f"is there {count} times"
            raise NotThereError(f"{self.name}: in {self.file} {where}: {self.old.strip()!r}")
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Run:
    """What came of a change: the test that noticed it, or why that is not known."""

    mutant: Mutant
    outcome: Outcome
    said: str
    seconds: float


def mutants(path: Path = LIST) -> tuple[Mutant, ...]:
    """All changes, in order. Raises `ValueError` where two have one name, or one changes nothing or has no test."""
    rows = tomllib.loads(path.read_text("utf-8"))["mutant"]
    found = tuple(Mutant(**row | {"tests": tuple(row["tests"])}) for row in rows)
    if len({m.name for m in found}) < len(found):
        raise ValueError(f"{path.name}: two changes have the same name")
    for m in found:
        if m.old == m.new or not m.tests:
            raise ValueError(f"{path.name}: {m.name} changes nothing or has no test")
    return found


def copied(root: Path, to: Path) -> Path:
    """The files of a checkout that git knows or would add, without what is ignored."""
    listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(listed, cwd=root, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (root / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name)
    return to


def run(found: Sequence[Mutant], tree: Path) -> Iterator[Run]:
    """Each change made in the copy, tested, and taken back."""
    for step, mutant in enumerate(found, start=1):
        path, began = tree / mutant.file, perf_counter()
        before = path.read_text("utf-8")
        try:
            _write(path, mutant.applied(before), step)
            code, said = _tested(mutant.tests, tree, "-x")
        except NotThereError as error:
            yield Run(mutant, "error", str(error), 0.0)
            continue
        finally:
            _write(path, before, len(found) + step)
        outcome: Outcome = "survived" if code == 0 else "caught" if code == FAILED else "error"
        yield Run(mutant, outcome, said, perf_counter() - began)


def _write(path: Path, text: str, step: int) -> None:
    """Write a file so that no older bytecode passes for it: that is told apart by whole seconds and size."""
    path.write_text(text, encoding="utf-8")
    os.utime(path, (path.stat().st_atime, path.stat().st_mtime + 2.0 * step))


def _tested(tests: Iterable[str], tree: Path, *more: str) -> tuple[int, str]:
    """The exit code of the tests in the copy, and the first that failed, or their last word."""
    inner = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    inner |= {"PYTHONPATH": str(tree / "src"), "CHIPWISE_TRUTH": str(tree / "no-tables")}
    command = (sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "--tb=line", *more, *tests)
    try:
        ran = subprocess.run(command, cwd=tree, env=inner, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return -1, f"still running after {LIMIT_S} s"
    lines = [line for line in (ran.stdout + ran.stderr).splitlines() if line.strip()] or [""]
    failed = [line.split(" - ")[0].split(" ", 1)[1] for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return ran.returncode, failed[0] if failed else lines[-1]


def table(runs: Iterable[Run]) -> str:
    """What came of all changes, as Markdown."""
    lines = ["| change | file | | noticed by | s |", "|---|---|---|---|---:|"]
    for r in runs:
        said = r.said.replace("|", "\\|")
        lines.append(f"| {r.mutant.name} | {r.mutant.file} | {r.outcome} | {said} | {r.seconds:.0f} |")
    return "\n".join(lines)


def main() -> int:
    """Run what is asked, print the table; 1 where a change survives or could not be tried."""
    parser = argparse.ArgumentParser(prog="python -m bench.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these; default: all")
    parser.add_argument("--list", action="store_true", help="only name them, and check that their text is there")
    asked = parser.parse_args()
    known = mutants()
    unknown = [name for name in asked.names if name not in {m.name for m in known}]
    if unknown:
        parser.error(f"no change is called '{unknown[0]}': one of {', '.join(m.name for m in known)}")
    wanted = [m for m in known if not asked.names or m.name in asked.names]
    if asked.list:
        return _listed(wanted)
    with TemporaryDirectory() as folder:
        tree = copied(ROOT, Path(folder))
        code, said = _tested(sorted({test for m in wanted for test in m.tests}), tree)
        if code:
            print(f"the tests fail without any change: {said}", file=sys.stderr)
            return 1
        runs = []
        for one in run(wanted, tree):
            print(f"{one.outcome}: {one.mutant.name} ({one.seconds:.0f} s) {one.said}", file=sys.stderr)
            runs.append(one)
    print(table(runs))
    caught = sum(1 for r in runs if r.outcome == "caught")
    print(f"\n{caught} of {len(runs)} changes are noticed.")
    return 0 if caught == len(runs) else 1


def _listed(wanted: Sequence[Mutant]) -> int:
    code = 0
    for m in wanted:
        try:
            m.applied((ROOT / m.file).read_text("utf-8"))
            print(f"{m.name}: {m.file}: {' '.join(m.tests)}")
        except (NotThereError, FileNotFoundError) as error:
            code = 1
            print(error, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
