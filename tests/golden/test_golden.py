"""Golden answers: which changed, and by how much; and that they are of many kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from chipwise.api import SUITES
from truth import AWAY

from .kinds import KINDS
from .net import Answer, Kind, difference

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
    unknown = (
        4 if name == "claims" else 1 if name == "modules" else 0
    )  # meant: nothing was judged, no such function
    assert refused["unknown-name"] == unknown, "a question that is misspelt"
    assert refused.total() < 0.5 * len(stored)


def test_deployments_differ_in_what_bounds_and_runs_them() -> None:
    plans = [row for row in KINDS["estimates"].stored().values() if "refused" not in row]
    assert {row["bound"] for row in plans} >= {"compute", "memory", "host", "network"}
    assert len({row["runtime"] for row in plans}) >= 5


def test_every_operator_and_family_is_priced() -> None:
    stored = KINDS["kernels"].stored()
    operators = {
        "gemm",
        "attention",
        "conv",
        "experts",
        "norm",
        "softmax",
        "elementwise",
        "copy",
        "collective",
    }
    assert {question.split()[1] for question in stored} >= operators
    formats = {word for question in stored for word in question.split()}
    assert formats >= {"fp8", "fp8_block", "int8", "nvfp4", "int4", "mxfp4", "fp32", "fp16"}
    priced = {
        chip for row in stored.values() for chip, k in row.items() if isinstance(k, dict) and "time_s" in k
    }
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
    assert changed(
        {"tpot_s": {"mid": 1.0}, "bound": "memory"}, {"tpot_s": {"mid": 1.05}, "bound": "host"}
    ) == [
        "tpot_s.mid 1 -> 1.05 (+5.000%)",
        "bound memory -> host",
    ]
    assert changed({"a": 0.123456}, {"a": 0.123457}) == [], "rounded either way"
    assert changed({"a": 0.123456}, {"a": 0.12346}) == ["a 0.123456 -> 0.12346 (+0.003%)"]
    assert changed({"a": 1e-17}, {"a": 3e-17}) == [], "what rounding leaves over"
    assert changed({"a": 1}, {}) == ["a 1.0 -> None"]
    assert changed({"a": [1, 2]}, {"a": [2, 1]}) == ["a.0 1 -> 2 (+100.000%)", "a.1 2 -> 1 (-50.000%)"]
    assert changed({"a": True}, {"a": 1}) == ["a true -> 1.0"]
    assert changed({"a": {}}, {"a": {"b": 1}}) == ["a.b None -> 1.0"]


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
