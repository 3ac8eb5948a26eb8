"""Golden answers: which changed, and by how much; and that they are of many kinds."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from chipwise.api import SUITES
from truth import AWAY

from .kinds import KINDS
from .net import Answer, Kind, difference
from .table import RevisionError, differences, markdown

SHOWN = 20


EACH = [pytest.param(k, marks=[pytest.mark.tables] if k.needs else [], id=name) for name, k in KINDS.items()]


@pytest.mark.parametrize("kind", EACH)
def test_no_answer_changed(kind: Kind) -> None:
    if kind.missing:
        pytest.skip(kind.missing)
    stored, now = kind.stored(), kind.answers()
    found = difference(stored, now)
    if found:
        asked = [f"  asked now, without a stored answer: {q}" for q in found.new[:SHOWN]]
        asked += [f"  stored, no longer asked: {q}" for q in found.gone[:SHOWN]]
        again = f"if that is meant: python -m tests.golden {kind.name}"
        pytest.fail("\n".join((f"{found.told(SHOWN)}; {again}", *asked)), pytrace=False)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("estimates", 250),
        ("search", 40),
        ("training", 40),
        ("kernels", 60),
        ("fits", 30),
        ("evidence", 20),
        ("networks", 40),
        ("local", 15),
        ("rl", 6),
        ("claims", 60),
        ("launch", 20),
        ("modules", 6),
        ("own_runs", 6),
    ],
)
def test_there_are_enough_answers(name: str, least: int) -> None:
    stored = KINDS[name].stored()
    assert len(stored) >= least
    refused = Counter(row["refused"] for row in stored.values() if isinstance(row.get("refused"), str))
    unknown = 4 if name == "claims" else 1 if name == "modules" else 0  # meant: nothing was judged, no such function
    assert refused["unknown-name"] == unknown, "a question that is misspelt"
    assert refused.total() < 0.5 * len(stored)


def test_deployments_differ_in_what_bounds_and_runs_them() -> None:
    plans = [row for row in KINDS["estimates"].stored().values() if "refused" not in row]
    assert {row["bound"] for row in plans} >= {"compute", "memory", "host", "network"}
    assert len({row["runtime"] for row in plans}) >= 5


def test_every_operator_and_family_is_priced() -> None:
    stored = KINDS["kernels"].stored()
    operators = {"gemm", "attention", "conv", "experts", "norm", "softmax", "elementwise", "copy", "collective"}
    assert {question.split()[1] for question in stored} >= operators
    formats = {word for question in stored for word in question.split()}
    assert formats >= {"fp8", "fp8_block", "int8", "nvfp4", "int4", "mxfp4", "fp32", "fp16"}
    priced = {chip for row in stored.values() for chip, k in row.items() if isinstance(k, dict) and "time_s" in k}
    assert priced >= {"h100-sxm5-80gb", "mi300x", "tpu-v6e", "trainium2", "epyc-9654", "groq-lpu1", "m4-max"}


def test_without_the_published_tables_the_digest_is_left_out(tmp_path: Path) -> None:
    away = replace(KINDS["predictions"], needs=tmp_path / "truth")
    assert away.missing == f"predictions {AWAY}"
    assert [kind.name for kind in KINDS.values() if kind.needs] == ["predictions"]


def test_every_suite_has_a_digest() -> None:
    stored = KINDS["predictions"].stored()

    assert {question for question in stored if " | " not in question} == set(SUITES)
    assert all(stored[suite]["answered"] for suite in SUITES)


def changed(before: Answer, now: Answer) -> list[str]:
    return [str(change) for change in difference({"q": before}, {"q": now}).changes]


def test_a_change_is_told() -> None:
    assert changed({"tpot_s": {"mid": 1.0}, "bound": "memory"}, {"tpot_s": {"mid": 1.05}, "bound": "host"}) == [
        "tpot_s.mid 1 -> 1.05 (+5.000%)",
        "bound memory -> host",
    ]
    assert changed({"a": 0.123456}, {"a": 0.123457}) == [], "rounded either way"
    assert changed({"a": 0.123456}, {"a": 0.12346}) == ["a 0.123456 -> 0.12346 (+0.003%)"]
    assert changed({"a": 1e-17}, {"a": 3e-17}) == [], "what rounding leaves over"
    assert changed({"a": 1}, {}) == ["a 1 -> -"]
    assert changed({"a": [1, 2]}, {"a": [2, 1]}) == ["a.0 1 -> 2 (+100.000%)", "a.1 2 -> 1 (-50.000%)"]
    assert changed({"a": True}, {"a": 1}) == ["a true -> 1"]
    assert changed({"a": {}}, {"a": {"b": 1}}) == ["a.b - -> 1"]


def test_the_largest_changes_are_told_first() -> None:
    before = {"a": {"x": 1.0}, "b": {"x": 1.0}, "c": {"x": 1.0}, "d": {"x": 1.0}}
    found = difference(before, {"a": {"x": 1.1}, "b": {"x": 3.0}, "c": {"x": 1.0}, "e": {"x": 1.0}})
    assert (found.new, found.gone) == (("e",), ("d",))
    told = found.told(1).splitlines()
    assert told[0] == "2 of 4 answers changed, largest 200.000%, 1 new, 1 gone"
    assert told[1].startswith("  b: x 1 -> 3")
    assert told[2] == "  and 1 more"


def test_an_answer_that_stays_keeps_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kind, "file", property(lambda kind: tmp_path / f"{kind.name}.jsonl"))

    def asked(*figures: float) -> Kind:
        def ask() -> Iterator[tuple[str, Answer]]:
            yield from ((f"q{i}", {"x": x, "flag": True}) for i, x in enumerate(figures))

        return Kind("toy", ask)

    assert asked(0.1234561, 2.0).renew().new == ("q0", "q1")
    first = asked(0.1).file.read_text("utf-8").splitlines()
    assert first == ['{"ask": "q0", "x": 0.123456, "flag": true}', '{"ask": "q1", "x": 2, "flag": true}']
    assert [c.question for c in asked(0.1234569, 2.5).renew().changes] == ["q1"]
    again = asked(0.1).file.read_text("utf-8").splitlines()
    assert again == [first[0], '{"ask": "q1", "x": 2.5, "flag": true}']


def test_words_are_shown_from_where_they_differ() -> None:
    long = " ".join(f"{i}x h100" for i in range(40))
    told = changed({"order": f"{long} 1x l4"}, {"order": f"{long} 2x l4"})
    assert told == ["order … 1x l4 -> … 2x l4"]
    assert changed({"a": "x" * 300}, {"a": "y" * 300}) == [f"a {'x' * 119}… -> {'y' * 119}…"]


def test_a_table_has_the_largest_figures_first_and_counts_the_rest() -> None:
    before = {"a": {"x": 1.0, "y": 1.0}, "b | c": {"x": 2.0, "of": "l4"}, "d": {"x": 1.0}}
    now = {"a": {"x": 1.1, "y": 1.0}, "b | c": {"x": 1.0, "of": "t4"}, "e": {"x": 1.0}}
    found = {"toy": difference(before, now), "still": difference(before, before)}
    table = markdown(found, 1).splitlines()
    assert table[2] == "| toy | 3 | 2 | 50.00% | 50.00% | 1 | 1 | 1 |"
    assert "Unchanged: still." in table
    figures = table.index("| kind | question | figure | before | now | by |")
    assert table[figures + 2] == "| toy | b \\| c | x | 2 | 1 | -50.000% |"
    assert table[figures + 4] == "and 1 more"
    assert "| toy | b \\| c | of | l4 | t4 |  |" in table
    assert "| toy | e | new |" in table
    assert markdown({"still": found["still"]}, 1) == "No golden answer of still changed."


def test_answers_are_compared_with_those_of_a_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kind, "file", property(lambda kind: tmp_path / f"{kind.name}.jsonl"))

    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(("git", *who, *words), cwd=tmp_path, check=True, capture_output=True)

    toy = Kind("toy", lambda: [("q", {"x": 3.0})])
    git("init")
    toy.file.write_text('{"ask": "q", "x": 1}\n')
    git("add", ".")
    git("commit", "-m", "first")
    toy.file.write_text('{"ask": "q", "x": 2}\n')
    written = differences({"toy": toy}, "HEAD", ask=False, folder=tmp_path)
    assert [str(c) for c in written["toy"].changes] == ["x 1 -> 2 (+100.000%)"]
    asked = differences({"toy": toy}, "HEAD", ask=True, folder=tmp_path)
    assert [str(c) for c in asked["toy"].changes] == ["x 1 -> 3 (+200.000%)"]
    assert toy.stored() == {"q": {"x": 2}}, "asking writes nothing"
    later = replace(toy, name="later")
    assert differences({"later": later}, "HEAD", ask=True, folder=tmp_path)["later"].new == ("q",)
    with pytest.raises(RevisionError, match="nonsense"):
        differences({"toy": toy}, "nonsense", ask=False, folder=tmp_path)
