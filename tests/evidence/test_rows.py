"""Rows in, predictions out: what cannot be read is said in one line, and a file appears whole or not at all."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from chipwise.errors import MissingExtraError, UsageError
from chipwise.evidence.rows import Predicted, read_rows, write_predictions

ROW = Predicted("p00", "params", 1.5, 1.0, 2.0, "modelled")


def rows_of(path: Path, *required: str) -> list[dict[str, str]]:
    return list(read_rows(str(path), required or ("row_id",)))


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_rows_are_text_and_nulls_are_blank(tmp_path: Path) -> None:
    file = written(tmp_path / "r.csv", b"row_id,a,b\np00,1,\np01\n")
    assert rows_of(file) == [{"row_id": "p00", "a": "1", "b": ""}, {"row_id": "p01", "a": "", "b": ""}]


def test_cells_beyond_the_header_are_dropped(tmp_path: Path) -> None:
    assert rows_of(written(tmp_path / "r.csv", b"row_id\np00,x,y\n")) == [{"row_id": "p00"}]


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path) -> None:
    assert rows_of(written(tmp_path / "r.csv", "\ufeffrow_id\np00\n".encode())) == [{"row_id": "p00"}]


def test_quoted_newlines_and_commas(tmp_path: Path) -> None:
    assert rows_of(written(tmp_path / "r.csv", b'row_id,a\np00,"x,\ny"\n'))[0]["a"] == "x,\ny"


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no column config_file"):
        rows_of(written(tmp_path / "r.csv", b"row_id,a\np00,1\n"), "row_id", "config_file")


@pytest.mark.parametrize(
    "content",
    [b"", b"row_id,a\n", b"\n\n\n", bytes(range(256)) * 8, b"\xff\xfe\x00", b'row_id,a\n1,"' + b"x" * 200_000],
    ids=["empty", "header only", "blank lines", "binary", "utf-16", "endless cell"],
)
@pytest.mark.parametrize("name", ["r.csv", "r.parquet", "r"])
def test_what_holds_no_rows_is_one_line(tmp_path: Path, content: bytes, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        rows_of(written(tmp_path / name, content))
    assert str(tmp_path) in str(caught.value)


def test_neither_a_folder_nor_a_pipe_nor_nothing_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    for path in (tmp_path, tmp_path / "nothing.csv", pipe, Path("/dev/zero")):
        with pytest.raises(UsageError, match="no such file"):
            rows_of(path)


def test_parquet_reads_like_csv(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="needs the parquet extra")
    from pyarrow import parquet

    table = pa.table({"row_id": ["p00", "p01"], "n": [1, None], "x": [0.5, 2.0]})
    parquet.write_table(table, tmp_path / "r.PARQUET")
    rows = rows_of(tmp_path / "r.PARQUET")
    assert rows == [{"row_id": "p00", "n": "1", "x": "0.5"}, {"row_id": "p01", "n": "", "x": "2.0"}]


@pytest.mark.parametrize("keep", [4, 100, 0.5, 0.99])
def test_a_parquet_file_cut_short_is_one_line(tmp_path: Path, keep: float) -> None:
    pa = pytest.importorskip("pyarrow", reason="needs the parquet extra")
    from pyarrow import parquet

    file = tmp_path / "r.parquet"
    parquet.write_table(pa.table({"row_id": [str(i) for i in range(1000)]}), file)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(keep if keep >= 1 else keep * len(whole))])
    with pytest.raises(UsageError, match="not a Parquet file"):
        rows_of(file)


def test_a_parquet_file_with_a_hole_is_one_line(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="needs the parquet extra")
    from pyarrow import parquet

    file = tmp_path / "r.parquet"
    parquet.write_table(pa.table({"row_id": [str(i) for i in range(5000)]}), file)
    data = bytearray(file.read_bytes())
    data[4:2000] = bytes(1996)
    file.write_bytes(bytes(data))
    with pytest.raises(UsageError, match="not a Parquet file"):
        rows_of(file)


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [m for m in sys.modules if m.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'chipwise\[parquet\]'"):
        rows_of(written(tmp_path / "r.parquet", b"PAR1"))


def test_predictions_are_written_with_all_digits(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    refused = Predicted("p01", "params", None, refused="no, because")
    assert write_predictions([ROW, refused, Predicted("p02", "n", np.float64(0.1), 7, 1e300)], str(out)) == 3
    with out.open(newline="") as source:
        lines = list(csv.reader(source))
    assert lines[0] == ["row_id", "metric", "predicted", "low", "high", "basis", "refused"]
    assert lines[1] == ["p00", "params", "1.5", "1.0", "2.0", "modelled", ""]
    assert lines[2] == ["p01", "params", "", "", "", "", "no, because"]
    assert lines[3][2:5] == ["0.1", "7", "1e+300"]


def test_an_interrupted_write_leaves_what_was_there(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("before")

    def breaks() -> Iterator[Predicted]:
        yield ROW
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_predictions(breaks(), str(out))
    assert out.read_text() == "before"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_a_neighbouring_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out.csv.part").write_text("mine")
    write_predictions([ROW], str(tmp_path / "out.csv"))
    assert (tmp_path / "out.csv.part").read_text() == "mine"


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    (tmp_path / "real.csv").touch()
    with pytest.raises(UsageError, match="a link"):
        write_predictions([ROW], str(tmp_path / "link.csv"))
    assert (tmp_path / "real.csv").read_text() == ""


@pytest.mark.parametrize("name", ["", ".", "..", "/", "nowhere/out.csv", "x" * 300, "a\0b"])
def test_where_nothing_can_be_written(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"cannot be written|not a file"):
        write_predictions([ROW], name)
    assert os.listdir(tmp_path) == []


def test_a_device_is_never_replaced_by_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="not a file"):
        write_predictions([ROW], str(pipe))
    assert pipe.is_fifo()
