"""One line per error, the nearest names, the designed exit codes."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import (
    ChipwiseError,
    CommandText,
    InfeasibleError,
    MissingExtraError,
    Sentence,
    Setting,
    UnknownNameError,
    UsageError,
    listed,
    nearest,
    shorten,
)

CHIPS = ("h100-sxm5-80gb", "h100-pcie-80gb", "a100-sxm4-80gb", "tpu-v5e", "mi300x")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ChipwiseError("x"), 1),
        (UsageError("x"), 2),
        (UnknownNameError("chip", "x", CHIPS), 3),
        (InfeasibleError("x"), 4),
        (MissingExtraError("reading Parquet", "parquet"), 5),
    ],
)
def test_exit_codes(error: ChipwiseError, code: int) -> None:
    assert error.exit_code == code


def test_an_error_says_what_and_the_next_step() -> None:
    assert str(UsageError("--tp 0", "at least 1")) == "--tp 0 (at least 1)"
    assert str(UsageError("--tp 0")) == "--tp 0"


def test_each_face_writes_options_its_own_way() -> None:
    plain = Sentence("--max-chips 8: too few, as (--kv-heads); a--b and --- stay")
    assert plain == "--max-chips 8: too few, as (--kv-heads); a--b and --- stay"
    assert plain.as_fields == "max_chips 8: too few, as (kv_heads); a--b and --- stay"
    add = Sentence("add ", Setting("price", "own"), " or --day")
    assert (add, add.as_fields) == ("add --price own or --day", "add price=own or day")


def test_commands_keep_their_options_and_their_verbs_are_called_by_name() -> None:
    save = Sentence("save one: ", CommandText("plan MODEL --save FILE"), "; see --out")
    assert save == "save one: chipwise plan MODEL --save FILE; see --out"
    assert save.as_fields == "save one: chipwise plan MODEL --save FILE; see out"
    assert Sentence(Sentence(save)).as_fields == pickle.loads(pickle.dumps(save)).as_fields == save.as_fields
    shows = Sentence(CommandText("fit 'a b'", "shows what would"))
    assert (shows, shows.as_fields) == ("chipwise fit 'a b' shows what would", "the verb fit shows what would")
    assert (listed("chips"), listed("chips").as_fields) == (
        "list them: chipwise chips list",
        "the verb chips lists them",
    )


@pytest.mark.parametrize(
    ("said", "field"),
    [("--kv-heads 3 does not", "kv_heads"), ("seq: 0", "seq"), ("no plan", ""), ("", ""), ("two words: x", "")],
)
def test_the_field_that_a_sentence_begins_with(said: str, field: str) -> None:
    assert Sentence(said).first == field


def test_a_missing_extra_prints_the_pip_line() -> None:
    assert "pip install 'chipwise[parquet]'" in str(MissingExtraError("reading Parquet", "parquet"))


def test_an_unknown_name_carries_the_nearest_and_a_way_to_list_them() -> None:
    error = UnknownNameError("chip", "h100-sxm", CHIPS, "chipwise chips list")
    assert error.nearest[0] == "h100-sxm5-80gb"
    assert "did you mean h100-sxm5-80gb" in str(error)
    assert str(error).endswith("chipwise chips list)")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("H100_SXM5_80GB", "h100-sxm5-80gb"),
        ("h100 pcie", "h100-pcie-80gb"),
        ("TPUv5e", "tpu-v5e"),
        ("mi300", "mi300x"),
        ("a100-smx4-80gb", "a100-sxm4-80gb"),
    ],
)
def test_nearest_forgives_case_separators_and_slips(typed: str, meant: str) -> None:
    assert nearest(typed, CHIPS)[0] == meant


def test_a_name_that_cannot_be_printed_is_not_offered() -> None:
    assert nearest("hidden_size", ["hid\x1bden_size", "hidden\u2028size", "hidden_sizes"]) == ("hidden_sizes",)


def test_nearest_looks_past_the_organisation() -> None:
    assert nearest("Llama-3.1-70B", ["meta-llama/Llama-3.1-70B", "Qwen/Qwen3-8B"]) == ("meta-llama/Llama-3.1-70B",)


@pytest.mark.parametrize("name", ["", "   ", "!!!", "zzzzzzzz"])
def test_nothing_near_is_no_suggestion(name: str) -> None:
    assert nearest(name, CHIPS) == ()


@given(st.text(max_size=400))
def test_any_name_makes_one_printable_line(name: str) -> None:
    text = str(UnknownNameError("chip", name, CHIPS))
    assert "\n" not in text
    assert text.isprintable()
    assert len(text) < 300


@given(st.text(), st.integers(5, 100))
def test_shorten_bounds_the_length(text: str, width: int) -> None:
    assert len(shorten(text, width)) <= width


def test_shorten_takes_the_sting_out_of_control_characters() -> None:
    assert shorten("a\nb\x1b[31mc\x00") == "a b?[31mc?"


def test_a_name_stands_in_another_from_the_begin_of_a_word_on() -> None:
    known = ("BSC-LT/salamandra-2b", "huggyllama/llama-7b", "nvidia-h100-sxm5")
    assert nearest("lama", known) == ("huggyllama/llama-7b",)
    assert nearest("h100", known) == ("nvidia-h100-sxm5",)
