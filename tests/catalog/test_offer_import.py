"""The user's own offers: tables of other tools, taken over whole or not at all."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from chipwise.catalog.offer import load_offers, offers_of, own_table
from chipwise.catalog.offer_import import keep, one_offer, read_prices, text_of
from chipwise.catalog.price import rent_basis
from chipwise.catalog.snapshot import Snapshot, use
from chipwise.errors import UnknownNameError, UsageError

DAY = dt.date(2026, 11, 22)
SKYPILOT = """InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,Zone
p5.48xlarge,H100,8.0,192.0,2048.0,,50.0,21.0,us-east-1,us-east-1a
p5.48xlarge,H100,8.0,192.0,2048.0,,50.0,20.0,us-east-1,us-east-1b
p5.48xlarge,H100,8.0,192.0,2048.0,,50.0,20.0,us-west-2,us-west-2b
p4d.24xlarge,A100,8.0,96,1152,,21.0,,us-east-1,
g4ad.4xlarge,Radeon Pro V520,1.0,16,64,,0.8,,us-east-1,
m5.large,,,2,8,,0.09,,us-east-1,
"""
GPUHUNT = """instance_name,location,price,cpu,memory,gpu_vendor,gpu_count,gpu_name,gpu_memory,spot,disk_size
a100x8,eu,12.0,96,1000,nvidia,8,A100,80,False,100
a100x8,eu,5.0,96,1000,nvidia,8,A100,80,True,100
l4,eu,0.7,8,32,nvidia,1,L4,24,False,50
cpu,eu,0.1,8,32,,0,,,False,50
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHIPWISE_DATA_DIR", str(tmp_path / "data"))


def test_a_table_of_skypilot() -> None:
    found = read_prices(SKYPILOT, "catalogs/v9/aws/vms.csv", DAY)
    rows = [(o.provider, o.chip, o.chips, o.usd_per_h, o.spot_usd_per_h, o.region) for o in found.offers]
    assert rows == [
        ("aws", "h100-sxm5-80gb", 8, 50.0, 20.0, "us-east-1/us-west-2"),
        ("aws", "a100-sxm4-40gb", 8, 21.0, None, "us-east-1"),
    ]
    assert found.unknown == {"Radeon Pro V520": 1}
    with pytest.raises(UsageError, match=r"does not say whose prices.*--provider NAME"):
        read_prices(SKYPILOT, "downloads/vms.csv", DAY)


def test_a_table_of_gpuhunt() -> None:
    found = read_prices(GPUHUNT, "gpus.csv", DAY, provider="runpod-secure")
    rows = [(o.chip, o.chips, o.usd_per_h, o.spot_usd_per_h) for o in found.offers]
    assert rows == [("a100-sxm4-80gb", 8, 12.0, 5.0), ("l4", 1, 0.7, None)]


def test_a_table_of_gpuhunt_over_providers_says_whose_each_is_and_instances_say_their_form() -> None:
    header, *rows = GPUHUNT.replace(
        "l4,eu,0.7,8,32,nvidia,1,L4,24", "1x_h100_pcie,eu,2.5,8,32,nvidia,1,H100,80"
    ).splitlines()
    text = "\n".join((f"provider,{header}", *(f"runpod,{row}" for row in rows)))
    found = read_prices(text, "all.csv", DAY)
    assert [(o.provider, o.chip) for o in found.offers] == [("runpod", "a100-sxm4-80gb"), ("runpod", "h100-pcie-80gb")]


def test_what_was_taken_over_prices_plans_and_newer_rows_replace_older_ones() -> None:
    for usd in (48.0, 40.0):
        path, rows = keep(read_prices(SKYPILOT.replace("50.0", str(usd)), "aws/vms.csv", DAY).offers)
    assert (path, rows) == (own_table(), 2)
    with use(Snapshot(day=DAY, read={})) as seen:
        aws = [o for o in offers_of("h100-sxm5-80gb") if o.provider == "aws" and o.chips == 8]
        assert [o.usd_per_h for o in aws] == [40.0]
        assert rent_basis("h100-sxm5-80gb", DAY, providers=("aws",)).hour(8, 8).mid == 40.0
    assert seen.read is not None
    assert str(path) in seen.read, "a saved answer carries the user's prices"
    path.unlink()
    with use(Snapshot(seen.read)):
        assert 40.0 in {o.usd_per_h for o in load_offers()}


def test_a_saved_answer_made_without_own_prices_is_made_again_without_them() -> None:
    with use(Snapshot(read={})) as seen:
        before = load_offers()
    keep((one_offer("mi325x", 2.2, "mine", DAY),))
    assert seen.read is not None
    with use(Snapshot(dict(seen.read))):
        assert load_offers() == before
    with use(Snapshot()):
        assert {o.provider for o in offers_of("mi325x")} > {o.provider for o in before if o.chip == "mi325x"}


def test_one_price() -> None:
    offer = one_offer("H100", 30.0, "mine", DAY, chips=8)
    assert (offer.chip, offer.usd_per_chip_h, offer.smallest, offer.holds_any) == ("h100-sxm5-80gb", 3.75, 8, False)
    assert one_offer("H100", 3.0, "mine", DAY).holds_any
    with pytest.raises(UsageError, match="on_demand_usd_per_h must be a positive number"):
        one_offer("H100", -3.0, "mine", DAY)
    with pytest.raises(UnknownNameError):
        one_offer("h1000", 3.0, "mine", DAY)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("a,b\n1,2\n", "no table of prices that is known"),
        (SKYPILOT.replace("21.0,,us-east-1", "free,,us-east-1"), "line 5: Price must be a number of 0 or more"),
        (SKYPILOT.replace(",A100,8.0", ",A100,many"), "line 5: AcceleratorCount must be a number"),
        ("provider,chip,chips,date\nmine,h1000,1,2026\n", "unknown chip 'h1000'"),
        ("provider,chip,chips,date\nmine,H100,1,2026\n", "write it as h100-sxm5-80gb"),
    ],
)
def test_a_table_that_is_wrong_is_not_taken_over_by_half(text: str, wrong: str) -> None:
    with pytest.raises((UsageError, UnknownNameError), match=wrong):
        keep(read_prices(text, "aws/vms.csv", DAY).offers)
    assert not own_table().exists()


def test_what_cannot_be_fetched_says_what_to_do() -> None:
    with pytest.raises(UsageError, match=r"cannot be fetched.*offers update --from FILE"):
        text_of("https://127.0.0.1:1/vms.csv")
    with pytest.raises(UsageError, match="no such file"):
        text_of("no/such/vms.csv")
