"""plan --task train|finetune at the command line: one table to a CSV file, and a next command that can be run."""

from __future__ import annotations

import csv
import io

import pytest

from command_line import Run

ROW = "meta-llama/Llama-3.1-8B"
TRAIN = ("plan", ROW, "--task", "train", "--chips", "h100", "--counts", "8,64")


@pytest.mark.parametrize(("extra", "column"), [((), "goodput"), (("--curves",), "efficiency")])
def test_csv_is_one_table(run: Run, extra: tuple[str, ...], column: str) -> None:
    rows = list(csv.reader(io.StringIO(run(*TRAIN, *extra, "--format", "csv").out)))
    assert column in rows[0]
    assert all(len(row) == len(rows[0]) for row in rows)


@pytest.mark.parametrize(
    "verb", [("explain", "--chip", "h100"), ("estimate", "--chip", "h100"), ("compare", "--chips", "h100,b200")]
)
def test_other_verbs_point_to_plan(run: Run, verb: tuple[str, ...]) -> None:
    ran = run(verb[0], ROW, *verb[1:], "--task", "train")
    assert ran.code == 2
    hint = ran.err.split("(")[1].split(" shows")[0].split()
    assert run(hint[0], ROW, *hint[1:]).code == 0


@pytest.mark.parametrize("task", ["train", "finetune"])
def test_the_next_command_shows_the_first_plan_in_full(run: Run, task: str) -> None:
    ran = run("plan", ROW, "--task", task, "--chips", "h100", "--counts", "4,8", "--max-usd", "1e6")
    said, alone = ran.out, run(*ran.next)
    assert alone.code == 0
    assert f"{task}:" in alone.out
    assert "where a step of" in alone.out
    assert "memory of a device by pipeline stage" in alone.out
    first = next(line for line in said.splitlines() if line.lstrip().startswith("1 "))
    assert (
        first.split()[:3] == next(line for line in alone.out.splitlines() if line.lstrip().startswith("1 ")).split()[:3]
    )


def test_a_budget_is_read_as_tokens_are(run: Run) -> None:
    said = [
        run("plan", ROW, "--task", "train", "--chips", "h100", "--counts", "8", "--max-usd", usd).out
        for usd in ("1e6", "$1M")
    ]
    assert said[0] == said[1]
