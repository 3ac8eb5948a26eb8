"""The compact table of parameters: what is written is read back; what cannot be read says where."""

from __future__ import annotations

from importlib.resources import files

import pytest

from chipwise.calibrate.parameter import COLUMNS, Parameter, read_table, write_table
from chipwise.errors import UsageError

TABLE = {
    "a.share.all": Parameter(0.75, 0.7712, 0.01, "share of peak", "some rows", "0123456789ab"),
    "a.share.chip=x": Parameter(1.0, 1.05, 0.02, "factor", "some rows", "0123456789ab"),
    "a.share.chip=y.z": Parameter(0.8, 0.9, 0.02, "factor", "some rows", "0123456789ab"),
    "a.start_s.library=v/w+1": Parameter(1.0, 0.5, 0.3, "factor", "some rows", "0123456789ab"),
    "b.start_s.all": Parameter(2e-6, 4.454e-6, 0.1, "s", "other rows", "ba9876543210"),
}


def test_what_is_written_is_read_back() -> None:
    assert read_table(write_table(TABLE), "here") == TABLE


def test_lines_leave_out_what_the_line_above_said() -> None:
    lines = write_table(TABLE).splitlines()
    assert lines[0] == ",".join(COLUMNS)
    assert lines[2] == "a.share.chip=,x,1.05,0.02,,factor,,"
    assert lines[3] == ",y.z,0.9,0.02,0.8,,,"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a table of parameters"),
        ("name,value\nx,1\n", "not a table of parameters"),
        (",".join(COLUMNS) + "\na.b.,all,one,0.1,,s,x,\n", "line 2"),
        (",".join(COLUMNS) + "\na.b.,all,1,0.1,,s,x,\n,c,1\n", "line 3"),
    ],
)
def test_what_cannot_be_read_says_where(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        read_table(text, "mine.csv")
    assert "mine.csv" in str(caught.value)


def test_the_shipped_table_is_small_and_canonical() -> None:
    text = files("chipwise.calibrate").joinpath("data/kernels.csv").read_text("utf-8")
    assert len(text) < 125_000
    assert write_table(read_table(text, "kernels.csv")) == text
