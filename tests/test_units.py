"""Quantities at the door: what is read, what is refused, and three digits on the way out."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import UsageError
from chipwise.units import (
    GIB,
    amount,
    duration_above,
    duration_words,
    format_bytes,
    format_count,
    format_number,
    format_seconds,
    parse_quantity,
)

UNITS = ("s", "B", "B/s", "FLOP/s", "Hz", "W", "1/s", "")


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("500ms", "s", 0.5),
        ("30 ms", "s", 0.03),
        ("2", "s", 2.0),
        ("1.5min", "s", 90.0),
        ("1h", "s", 3600.0),
        ("10/s", "1/s", 10.0),
        ("600/min", "1/s", 10.0),
        ("43200/d", "1/s", 0.5),
        ("3.6e3/h", "1/s", 1.0),
        ("5", "1/s", 5.0),
        ("80GB", "B", 80e9),
        ("80GiB", "B", 80 * GIB),
        ("3.35TB/s", "B/s", 3.35e12),
        ("200Gb/s", "B/s", 25e9),
        ("200 Gbit/s", "B/s", 25e9),
        ("1.6Tbps", "B/s", 200e9),
        ("989 TFLOPS", "FLOP/s", 989e12),
        ("1.98GHz", "Hz", 1.98e9),
        ("700W", "W", 700.0),
        ("2k", "", 2000.0),
        ("2K", "", 2000.0),
        ("70B", "", 70e9),
        ("1,234,567", "", 1234567.0),
        ("1_000", "", 1000.0),
        (".5", "", 0.5),
        ("1e3", "", 1000.0),
        ("  7  ", "", 7.0),
        ("+7", "", 7.0),
    ],
)
def test_quantities_are_read_into_si(text: str, unit: str, value: float) -> None:
    assert parse_quantity(text, unit, "--x") == pytest.approx(value, rel=1e-12)


def test_gb_is_not_gib() -> None:
    assert parse_quantity("1GiB", "B", "--x") / parse_quantity("1GB", "B", "--x") == 2**30 / 1e9


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "abc",
        "nan",
        "inf",
        "-",
        "1..2",
        "1e",
        "--5",
        "5 apples",
        "5ms",
        "0x10",
        "1/2",
        "\x00",
        "1,5",
        "1,,000",
        "12,34",
        "1__0",
        "١٢x",
    ],
)
def test_what_is_no_quantity_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--rate: cannot read"):
        parse_quantity(text, "1/s", "--rate")


def test_a_decimal_comma_is_not_taken_for_a_thousand() -> None:
    with pytest.raises(UsageError, match="cannot read '1,5'"):
        parse_quantity("1,5", "", "--in")


@pytest.mark.parametrize("text", ["-5", "1e99", "1e999", "101", "0.5"])
def test_out_of_range_names_the_bounds(text: str) -> None:
    with pytest.raises(UsageError, match=r"--in: .* is out of range \(1 to 100\)"):
        parse_quantity(text, "", "--in", low=1, high=100)


def test_overflow_is_out_of_range_even_without_a_bound() -> None:
    with pytest.raises(UsageError, match="out of range"):
        parse_quantity("1e999", "s", "--ttft")


@given(st.text(max_size=40), st.sampled_from(UNITS))
def test_any_text_is_a_number_or_a_usage_error(text: str, unit: str) -> None:
    try:
        value = parse_quantity(text, unit, "--x", low=0.0)
    except UsageError:
        return
    assert math.isfinite(value)
    assert value >= 0


@given(st.floats(1e-6, 1e9), st.sampled_from(UNITS))
def test_a_bare_number_is_si(value: float, unit: str) -> None:
    assert parse_quantity(repr(value), unit, "--x") == pytest.approx(value, rel=1e-12)


def test_long_text_is_read_in_no_time() -> None:
    with pytest.raises(UsageError) as caught:
        parse_quantity("1" + " " * 200_000 + "x" + " " * 200_000 + "y", "s", "--ttft")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (format_bytes(141.1e9), "141 GB"),
        (format_bytes(5.4e9), "5.40 GB"),
        (format_bytes(999.4e6), "999 MB"),
        (format_bytes(999.6e6), "1.00 GB"),
        (format_bytes(9.996e9), "10.0 GB"),
        (format_bytes(0), "0 B"),
        (format_bytes(-6.52e9), "-6.52 GB"),
        (format_seconds(0.0241), "24.1 ms"),
        (format_seconds(1.0), "1.00 s"),
        (format_seconds(12e-6), "12.0 us"),
        (format_count(70.553e9), "70.6 B"),
        (format_count(12), "12.0"),
    ],
)
def test_shown_with_three_digits(text: str, shown: str) -> None:
    assert text == shown


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [
        (1234.0, 3, "1,230"),
        (2250.0, 3, "2,250"),
        (27.5, 3, "27.5"),
        (40.0, 3, "40"),
        (0.9996, 3, "1"),
        (152.0, 2, "150"),
        (0.74, 2, "0.74"),
        (0.0, 3, "0"),
        (1e-5, 3, "0.00001"),
    ],
)
def test_numbers_have_no_exponent(value: float, digits: int, shown: str) -> None:
    assert format_number(value, digits) == shown


@given(st.floats(1e-8, 1e16), st.sampled_from([format_bytes, format_count, format_seconds]))
def test_shown_within_half_a_percent_and_never_more_than_three_digits(value: float, shown_by) -> None:
    number, _, suffix = shown_by(value).partition(" ")
    factor = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15, "k": 1e3, "M": 1e6, "T": 1e12}
    factor |= {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "h": 3600.0} | {"B": 1.0 if shown_by is format_bytes else 1e9}
    scale = factor.get(suffix, 1.0)
    assert float(number.replace(",", "")) * scale == pytest.approx(value, rel=0.0051)
    if 1 <= value / scale < 1000:
        assert len(number.replace(".", "")) == 3


def test_a_range_of_bytes_is_said_in_bytes_that_people_read() -> None:
    with pytest.raises(UsageError, match=r"memory: 10 is out of range \(1\.00 MB to 100 TB\)"):
        parse_quantity("10", "B", "memory", low=1e6, high=1e14)
    with pytest.raises(UsageError, match=r"\(512 to 100,000,000\)"):
        parse_quantity("0", "", "context", low=512, high=1e8)


@pytest.mark.parametrize(
    ("seconds", "typed"), [(0.0123, "13ms"), (1.999, "1999ms"), (2.5, "3s"), (119.2, "120s"), (121.0, "3min")]
)
def test_a_duration_above_is_no_shorter_and_can_be_typed(seconds: float, typed: str) -> None:
    assert duration_above(seconds) == typed
    assert parse_quantity(typed, "s", "x") >= seconds


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0405, "40.5 ms"),
        (1.0, "1 s"),
        (60.0, "60 s"),
        (913.0, "15.2 minutes"),
        (3600.0, "1 hour"),
        (86_400.0, "24 hours"),
        (146_000.0, "40.6 hours"),
        (864_000.0, "10 days"),
    ],
)
def test_durations_are_said_in_the_unit_that_people_use(seconds: float, words: str) -> None:
    assert duration_words(seconds) == words


def test_one_of_a_thing_is_singular() -> None:
    assert amount(1, "clip") == "1 clip"
    assert amount(1.5, "clip") == "1.5 clips"
    assert amount(10_000, "clip") == "10,000 clips"


def test_times_of_hours_are_not_written_in_seconds() -> None:
    assert format_seconds(146_000.0) == "40.6 h"
    assert format_seconds(913.0) == "913 s"
