"""Transcripts of the documentation: what is run, what is filtered, what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from docs.generate.console import DAY, on_the_day, python, run, transcript
from docs.generate.pages import fresh, inline_commands

from chipwise.catalog.snapshot import today


@pytest.fixture(autouse=True)
def _the_day() -> Iterator[None]:
    with on_the_day():
        yield


def test_questions_are_asked_on_the_day_of_the_documentation() -> None:
    assert today() == DAY


def test_output_is_replaced_and_commands_are_kept() -> None:
    block = "$ chipwise --version\nsomething old\n$ chipwise --version | head -n 1"
    again = transcript(block)
    assert "something old" not in again
    assert [line for line in again.splitlines() if line.startswith("$")] == block.splitlines()[::2]
    assert transcript(again) == again


def test_filters_do_what_the_shell_does() -> None:
    whole = run("chipwise chips list --format csv").text.splitlines()
    assert run("chipwise chips list --format csv | head -n 3").text.splitlines() == whole[:3]
    assert run("chipwise chips list --format csv | cut -c1-10 | head -n 2").text.splitlines() == [
        line[:10].rstrip() for line in whole[:2]
    ]
    assert run("chipwise chips list --format csv | grep mi300x").text.splitlines() == [
        x for x in whole if "mi300x" in x
    ]


@pytest.mark.parametrize("command", ["rm -r x", "chipwise chips list | sort", "chipwise chips list | head"])
def test_nothing_else_is_run(command: str) -> None:
    with pytest.raises(ValueError, match=r"not a chipwise command|cannot filter"):
        run(command)


def test_a_command_that_fails_is_no_transcript_unless_it_says_so() -> None:
    with pytest.raises(ValueError, match="exits with 3"):
        transcript("$ chipwise chips show h100-smx5")
    said = transcript("$ chipwise chips show h100-smx5  # exits with 3")
    assert "did you mean" in said


def test_an_answer_is_not_cut_before_it_says_anything() -> None:
    with pytest.raises(ValueError, match="cut before the first row"):
        transcript("$ chipwise kernel gemm --m 1 --n 4096 --k 4096 --chip l4 | head -n 4")


def test_files_of_a_transcript_stay_in_its_folder() -> None:
    save = "chipwise fit meta-llama/Llama-3.1-8B --chip l4 --save kept.json"
    assert run(save).code == 0
    assert run("chipwise replay kept.json").code == 0


def test_python_is_run_and_its_output_shown() -> None:
    page = "```python\nprint(6 * 7)\n```\n\n```text\n41\n```\n"
    assert fresh(page) == page.replace("41", "42")
    assert python("x = 1") == ""


def test_only_generated_parts_are_changed() -> None:
    page = "by hand\n\n```text\n$ chipwise nonsense\n```\n\n<!-- generated: counts -->\nold\n<!-- end -->\nby hand\n"
    again = fresh(page)
    assert again.replace(again[again.index("-->") : again.index("<!-- end")], "-->\nold\n") == page
    assert "old" not in again
    with pytest.raises(ValueError, match="no generated part"):
        fresh("<!-- generated: nonsense -->\n<!-- end -->")


def test_commands_in_running_text_are_found() -> None:
    text = "as `chipwise fit MODEL` says\n```console\n$ chipwise plan x\n`chipwise no`\n```\n"
    assert inline_commands(text) == ["chipwise fit MODEL"]
