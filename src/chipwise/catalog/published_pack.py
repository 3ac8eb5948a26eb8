"""Packing published tables for the package: the columns that are shipped, as a compressed CSV.

`python -m chipwise.catalog.published_pack FOLDER` repacks the tables of a folder into the catalogue: results of MLPerf,
and figures that are counted, on which `validate` runs where no other tables are. The same rows give the same file: no
time stamp, rows in the order of the table.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from chipwise.catalog.configs import bundled_configs
from chipwise.catalog.published import INFERENCE_COLUMNS, TRAINING_COLUMNS

COUNTED = ("systolic", "model_params", "kv_cache")
"""Tables of which every column is shipped."""


def pack(rows: Iterable[Mapping[str, str]], columns: tuple[str, ...]) -> bytes:
    """The named columns of `rows` as gzip-compressed CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row[name] for name in columns] for row in rows)
    return gzip.compress(out.getvalue().encode(), 9, mtime=0)


def main(folder: str) -> None:
    """Repack the tables of `folder`."""
    target = Path(__file__).with_name("data") / "published"
    tables = (("inference", INFERENCE_COLUMNS), ("training", TRAINING_COLUMNS))
    for name, columns in tables:
        with (Path(folder) / f"mlperf_{name}.csv").open(newline="", encoding="utf-8") as source:
            (target / f"mlperf_{name}.csv.gz").write_bytes(pack(csv.DictReader(source), columns))
    known = {name.lower() for name in bundled_configs()}
    for name in COUNTED:
        with (Path(folder) / f"{name}.csv").open(newline="", encoding="utf-8") as source:
            rows = list(csv.DictReader(source))
        # rows whose model is not in the catalogue could not be counted
        kept = [r for r in rows if not r.get("config_file") or r["model"].lower() in known]
        (target / f"{name}.csv.gz").write_bytes(pack(kept, tuple(rows[0])))


if __name__ == "__main__":
    main(*sys.argv[1:])
