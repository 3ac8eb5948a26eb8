"""What was read is remembered, and what was remembered is read instead of what is there now."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from chipwise.catalog.chips import load_chips
from chipwise.catalog.configs import find_config
from chipwise.catalog.offer import load_offers
from chipwise.catalog.snapshot import Snapshot, today, use
from chipwise.errors import UsageError

OFFERS = "catalog/data/offers.csv"


def test_what_is_read_is_recorded() -> None:
    with use(Snapshot(read={})) as snapshot:
        load_offers()
    assert snapshot.read is not None
    beside = {"catalog/data/offer_sources.csv", "catalog/data/order_sizes.toml"}
    assert set(snapshot.read) == {OFFERS, *beside}


def test_a_given_table_replaces_the_shipped_one_for_a_while() -> None:
    shipped = load_offers()
    with use(Snapshot(read={})) as before:
        load_offers()
    assert before.read is not None
    header, first, *_ = before.read[OFFERS].decode().splitlines()
    with use(Snapshot({OFFERS: f"{header}\n{first}\n".encode()})):
        assert load_offers() == shipped[:1]
    assert load_offers() is shipped


def test_a_folder_of_a_snapshot_is_whole() -> None:
    chips = load_chips()
    with use(Snapshot(read={})) as before:
        load_chips()
    assert before.read is not None
    some = {name: content for name, content in before.read.items() if name.endswith("google.toml")}
    with use(Snapshot(some)):
        found = set(load_chips())
        assert {c for c in found if chips[c].vendor == "google"} == found
        assert "tpu-v5e" in found


def test_the_day_is_that_of_the_question() -> None:
    assert today() == dt.date.today()
    with use(Snapshot(day=dt.date(2026, 1, 2))):
        assert today() == dt.date(2026, 1, 2)


def test_a_file_of_the_user_is_kept_when_it_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "my.json"
    file.write_text('{"model_type": "llama"}')
    with use(Snapshot(read={})) as snapshot:
        found = find_config(str(file))
    file.unlink()
    with pytest.raises(UsageError, match="no such file"):
        find_config(str(file))
    with use(Snapshot(snapshot.read or {})):
        assert find_config(str(file)) == found
