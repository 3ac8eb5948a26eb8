"""What is published of converted weights: facts with pages, told of the right model, and never more than they say."""

from __future__ import annotations

import csv
import io

import pytest

import chipwise as cw
from chipwise.catalog.checkpoints import FORMATS, published_as, same_maker
from chipwise.catalog.quality import FEWEST, LIKE, load_format_tests, quality_of, quality_words
from chipwise.catalog.quality import tested as known_of
from chipwise.catalog.snapshot import Snapshot, shipped_text, use
from chipwise.workload.labels import format_name

HEAD = "model,format,repository,test,base_score,score,page,date"
TABLE = "catalog/data/quality.csv"


def table(*rows: str) -> Snapshot:
    """A snapshot with a table of these rows alone."""
    return Snapshot({TABLE: "\n".join((HEAD, *rows)).encode()})


def test_every_row_has_a_known_format_a_page_and_plausible_scores() -> None:
    for row in load_format_tests():
        assert format_name(row.format) == row.format, row
        assert row.page.startswith("https://"), row
        assert len(row.date) >= 7, row
        assert 0.05 < row.kept < 1.3, row
    rows = list(csv.reader(io.StringIO(shipped_text(TABLE))))
    keys = [tuple(row[i] for i in (0, 1, 2, 3, 6)) for row in rows]
    assert len(set(keys)) == len(keys), "a test of a checkpoint stands twice"


def test_the_mean_and_the_worst_are_those_of_the_checkpoint_in_question() -> None:
    rows = (
        "maker/m-8B,fp8,maker/m-8B-FP8,MMLU,80,78,https://a.b/1,2026-01",
        "maker/m-8B,fp8,maker/m-8B-FP8,GSM8K,50,50,https://a.b/1,2026-01",
        "maker/m-8B,fp8,other/m-8B-FP8-dynamic,MMLU,80,80,https://a.b/2,2026-01",
    )
    with use(table(*rows)):
        own = quality_of("maker/m-8B", "fp8")
        assert own
        assert own.repository == "maker/m-8B-FP8"
        assert own.tests == 2
        assert own.kept == pytest.approx((78 / 80 + 1) / 2)
        assert own.worst == pytest.approx(78 / 80)
        assert own.words == (
            "keeps 98.8% of the score on average of 2 tests, at worst 97.5%: 78, unconverted 80, on MMLU "
            "(maker/m-8B-FP8)"
        )
        asked = quality_of("maker/m-8B", "fp8_block", "other/m-8B-FP8-dynamic")
        assert asked
        assert asked.repository == "other/m-8B-FP8-dynamic"
        assert asked.tests == 1


def test_a_base_model_is_not_the_one_tuned_to_answer() -> None:
    with use(table("maker/m-8B-Instruct,fp8,maker/m-8B-Instruct-FP8,MMLU,80,78,https://a.b/1,2026-01")):
        assert quality_of("maker/m-8B-Instruct", "fp8") is not None
        assert quality_of("maker/m-8B-base", "fp8") is None
        assert quality_words(quality_of("maker/m-8B-base", "fp8")) == "quality not assessed"


def test_other_models_count_once_each_and_say_that_they_are_others() -> None:
    rows = [f"maker/m{i}-8B,int4,,MMLU,100,{100 - i},https://a.b/{i},2026-01" for i in range(FEWEST)]
    rows.append("maker/m0-8B,int4,,GSM8K,100,98,https://a.b/0,2026-01")
    with use(table(*rows)):
        found = quality_of("maker/other-70B", "int4")
        assert found
        assert found.models == FEWEST
        assert found.kept == pytest.approx(0.99)
        assert "not tested on this one" in found.words
        assert "other models" in found.words
    with use(table(*rows[: FEWEST - 1])):
        assert quality_of("maker/other-70B", "int4") is None


def test_perplexity_gets_worse_as_it_grows() -> None:
    with use(table("maker/m-8B,q4_k_m,,WikiText-2 perplexity,6.233,6.407,https://a.b/1,2026-01")):
        found = quality_of("maker/m-8B", "q4_k_m")
        assert found
        assert found.kept < 1
        assert found.words == "has a WikiText-2 perplexity of 6.407, unconverted 6.233 (a.b/1)"


def test_a_plan_says_what_its_converted_weights_keep() -> None:
    report = cw.plan("meta-llama/Llama-3.1-70B-Instruct", rate=2, chips=["h100"])
    best = report[0]
    assert best.converted
    assert best.quality is not None
    assert not best.quality.models
    assert best.keeps in best.note
    assert best.keeps in " ".join(report.verdict())


def test_models_show_lists_what_was_tested() -> None:
    name = "meta-llama/Llama-3.1-70B-Instruct"
    kept = [record.kept for record in known_of(name)]
    assert kept
    assert kept == sorted(kept, reverse=True)
    assert all(record.models == 0 for record in known_of(name))


def test_what_its_maker_published_and_somebody_tested_is_a_published_checkpoint() -> None:
    for row in load_format_tests():
        if same_maker(row.repository, row.model) and row.format in FORMATS:
            assert published_as(row.model, row.format), row
    assert set(LIKE.values()) <= FORMATS
