"""The list of changes that tests must notice is in step with the source, and what tries them tells what it should."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.mutants import ROOT, Mutant, NotThereError, copied, mutants, run, table

MUTANTS = mutants()
SOURCE = "def twice(x):\n    return 2 * x\n\n\ndef thrice(x):\n    return 3 * x\n"
TESTS = "from source import twice\n\n\ndef test_twice():\n    assert twice(2) == 4\n"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_a_change_has_its_text_and_its_tests(mutant: Mutant) -> None:
    """Where this fails, the line was written anew: write its change anew too, in bench/mutants.toml."""
    assert mutant.applied((ROOT / mutant.file).read_text("utf-8"))
    for test in mutant.tests:
        assert (ROOT / test.partition("::")[0]).exists(), test


def test_there_is_a_change_in_most_rooms() -> None:
    rooms = {Path(m.file).parts[2] for m in MUTANTS}
    assert len(MUTANTS) >= 36
    assert rooms >= {
        "catalog", "workload", "cost", "parallel", "predict", "calibrate", "search", "evidence", "report", "api",
        "web", "tracing",
    }  # fmt: skip


def test_what_is_caught_survives_or_is_gone(tmp_path: Path) -> None:
    (tmp_path / "source.py").write_text(SOURCE)
    (tmp_path / "test_source.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")

    def change(name: str, old: str, new: str, *tests: str) -> Mutant:
        return Mutant(name, "source.py", old, new, tests or ("test_source.py",))

    found = list(
        run(
            [
                change("caught", "2 * x", "4 * x"),
                change("survived", "3 * x", "5 * x"),
                change("gone", "7 * x", "8 * x"),
                change("twice", "return", "yield"),
                change("no test", "2 * x", "6 * x", "test_nothing.py"),
            ],
            tmp_path,
        )
    )
    assert [r.outcome for r in found] == ["caught", "survived", "error", "error", "error"]
    assert found[0].said == "test_source.py::test_twice"
    assert "gone: in source.py is not there: '7 * x'" in found[2].said
    assert "is there 2 times" in found[3].said
    assert "test_nothing.py" in found[4].said
    assert (tmp_path / "source.py").read_text() == SOURCE, "every change is taken back"
    assert "| caught | source.py | caught | test_source.py::test_twice |" in table(found)


def test_lists_that_cannot_be_tried(tmp_path: Path) -> None:
    one = '[[mutant]]\nname = "a"\nfile = "x"\nold = "b"\nnew = "c"\ntests = ["t"]\n'
    path = tmp_path / "list.toml"
    for text, words in (
        (one + one, "the same name"),
        (one.replace('"c"', '"b"'), "changes nothing"),
        (one.replace('["t"]', "[]"), "has no test"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=words):
            mutants(path)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a checkout of git")
def test_the_copy_is_what_git_knows_or_would_add(tmp_path: Path) -> None:
    tree = copied(ROOT, tmp_path)
    assert (tree / "src/chipwise/__init__.py").read_bytes() == (ROOT / "src/chipwise/__init__.py").read_bytes()
    assert not (tree / ".git").exists()
    with pytest.raises(NotThereError):
        MUTANTS[0].applied("")
