"""The accuracy page begins with what readers care about, of all its sections, however often they are written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chipwise.evidence.residuals import Residuals, Validation
from chipwise.report.accuracy import HEAD, write_section


def found(suite: str, who: str, where: str, ratio: float, count: int = 6) -> Validation:
    rows = Residuals.of(range(count), ratio, 1.0, low=0.5, high=1.5, metric="tpot_s of users", reader=who, where=where)
    validation = Validation(suite, "How.", {"all": rows.summaries()}).shown(rows)
    return replace(validation, command=f"chipwise validate {suite}")


def screen(path: Path) -> str:
    text = path.read_text("utf-8")
    assert text.count(f"<!-- {HEAD}: begin -->") == text.count(f"<!-- {HEAD}: end -->") == 1
    return text.partition(f"<!-- {HEAD}: end -->")[0]


def test_the_first_screen_is_of_all_sections(tmp_path: Path) -> None:
    path = tmp_path / "accuracy.md"
    path.write_text("# Accuracy\n\nIntroduction.\n\n<!-- one: begin -->\nold\n<!-- one: end -->\n", "utf-8")
    write_section(found("one", "aws trainium, dense, stock", "a model on trainium9", 1.1), str(path))
    write_section(found("two", "nvidia, dense, stock", "a model on h100", 0.4), str(path))
    write_section(found("one", "aws trainium, dense, stock", "a model on trainium9", 1.2), str(path))
    head = screen(path)
    assert head.startswith("# Accuracy\n\nIntroduction.\n")
    line = "| aws trainium, dense, stock | TPOT | 6 | 20.0 % | +20.0 % | 100.0 % | `chipwise validate one` |"
    assert line in head
    assert "+10.0 %" not in head, "a section that was written anew"
    worst = head.partition("## The worst")[2]
    assert worst.index("a model on h100") < worst.index("a model on trainium9")
    assert "predicted less than was measured; no reason is known" in worst
    assert "old" not in path.read_text("utf-8")


def test_reasons_that_were_looked_into_are_told(tmp_path: Path) -> None:
    path = tmp_path / "accuracy.md"
    write_section(found("one", "intel gaudi, experts, stock", "Mixtral-8x7B-v0.1 on gaudi2, x", 1.5), str(path))
    assert "every expert runs for every token" in screen(path)


def test_few_rows_make_no_line(tmp_path: Path) -> None:
    path = tmp_path / "accuracy.md"
    write_section(found("one", "nvidia, dense, stock", "a model on h100", 0.4, count=3), str(path))
    assert "h100" not in screen(path)
    assert "| nvidia" not in screen(path)
