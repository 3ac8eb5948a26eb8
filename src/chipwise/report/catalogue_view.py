"""Models and offers as tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from chipwise.catalog.offer import Offer
from chipwise.catalog.price import ApiPrice
from chipwise.report.plan_view import cache_text, model_line
from chipwise.report.records import ModelRecord
from chipwise.report.table import Table
from chipwise.units import format_bytes, format_count

__all__ = ["model_view", "models_view", "offers_view", "token_prices_view"]


def models_view(models: Sequence[ModelRecord]) -> Table:
    """One line per model."""
    columns = ("model", "parameters", "active", "layers", "precision", "weights", "KV B/token", "context")
    rows = [
        (
            m.name,
            format_count(m.params),
            format_count(m.active_params),
            str(m.layers),
            m.precision,
            format_bytes(m.weight_bytes),
            f"{max(m.kv_bytes_in_window, m.kv_bytes_per_token):,.0f}",
            f"{m.max_context:,}",
        )
        for m in models
    ]
    return Table(columns, rows, right=frozenset(columns[1:]) - {"precision"}, records=models)


def model_view(m: ModelRecord) -> Table:
    """A model in full."""
    rows = [
        ("architecture", m.architecture),
        ("parameters", f"{m.params:,}"),
        ("active per token", f"{m.active_params:,}"),
        ("layers", str(m.layers)),
        ("precision", m.precision),
        ("weights", format_bytes(m.weight_bytes)),
        ("cache", cache_text(m)),
        ("longest context", f"{m.max_context:,} tokens"),
        ("from", m.origin),
        *(("assumed", text) for text in m.assumptions),
    ]
    return Table(("", "value"), rows, (model_line(m), ""))


def offers_view(offers: Sequence[Offer], today: date) -> Table:
    """Offers by price of one chip, cheapest first; those without a price last."""
    columns = ("chip", "$/chip/h", "spot", "provider", "instance", "chips", "region", "date", "")
    ordered = sorted(offers, key=lambda o: (o.chip, o.usd_per_chip_h is None, o.usd_per_chip_h or 0.0))
    rows = [
        (
            o.chip,
            _money(o.usd_per_chip_h),
            _money(o.spot_usd_per_chip_h),
            o.provider,
            o.instance,
            str(o.chips or "part"),
            o.region,
            o.date,
            "stale" if o.stale(today) else "",
        )
        for o in ordered
    ]
    foot = (
        "list prices, dated, no guarantee; differences under 25 % mean nothing; stale = older than 90 days",
    )
    return Table(columns, rows, (), foot, frozenset(("$/chip/h", "spot", "chips")), ordered)


def token_prices_view(prices: Sequence[ApiPrice]) -> Table:
    """Dollars per million tokens of vendors' APIs: no cost of a chip."""
    columns = ("chip", "provider", "model", "$/M in", "$/M out", "$/M cached", "source", "read")
    rows = [
        (
            p.chip,
            p.provider,
            p.model,
            _money(p.input_usd_per_million),
            _money(p.output_usd_per_million),
            _money(p.cached_usd_per_million),
            p.source.ref,
            p.source.date or "",
        )
        for p in prices
    ]
    foot = ("the price of an API, not the cost of a chip",)
    return Table(columns, rows, (), foot, frozenset(columns[3:6]), prices)


def _money(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
