"""Templates, how figures are written in them, and refusals as a page."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from chipwise.catalog.chips import get_chip
from chipwise.errors import UnknownNameError
from chipwise.report.charts.plans import at_most
from chipwise.report.figures import split_s
from chipwise.report.plans import PlanRecord
from chipwise.report.records import Figure
from chipwise.units import format_bytes, format_count, format_number
from chipwise.web.views import NAVIGATION
from chipwise.web.words import in_words

HERE = Path(__file__).parents[1]
STATIC = HERE / "static"


@cache
def environment() -> Environment:
    """The templates with their filters; text from data is always escaped."""
    found = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., Any]] = {
        "bytes": format_bytes,
        "count": format_count,
        "number": format_number,
        "span_s": _span_s,
        "span": _span,
        "layout": _layout,
        "words": in_words,
        "product": _product,
        "percent": lambda x, digits=0: f"{100 * x:.{digits}f} %",
        "json": lambda value: json.dumps(value, separators=(",", ":"), allow_nan=False),
    }
    found.filters |= filters
    found.globals |= {"place": place, "at_most": at_most}
    return found


def place(value: float, low: float, high: float) -> float:
    """Where a value lies between two others on a logarithmic scale, from 0 to 100."""
    if not (0 < low < high) or value <= 0:
        return 50.0
    return round(100.0 * min(max(math.log(value / low) / math.log(high / low), 0.0), 1.0), 2)


def _layout(p: PlanRecord) -> str:
    """Replicas of a plan and what each is spread over."""
    text = p.spread.replace(" x (", " × (")
    return text if p.kv in ("bf16", "fp16") else f"{text} · kv {p.kv}"


def _product(chip: str) -> str:
    """The name of a chip; of one that is in no catalogue its id."""
    try:
        return get_chip(chip).name
    except UnknownNameError:
        return chip


def _span_s(figure: Figure) -> dict[str, str]:
    """A time and its interval in the unit of the middle one."""
    mid, low, high, unit = split_s(figure)
    return {"mid": mid, "low": low, "high": high, "unit": unit.replace("us", "µs")}


def _span(figure: Any) -> dict[str, str]:
    """A number and its interval."""
    mid, low, high = (format_number(x) for x in (figure.mid, figure.low, figure.high))
    return {"mid": mid, "low": low, "high": high, "unit": ""}


Refusing = Callable[[Request, Exception], Awaitable[Response]]


def as_page(refusing: Refusing) -> Refusing:
    """The same refusal, shown as a page where HTML is asked for."""

    async def shown(request: Request, error: Exception) -> Response:
        answer = await refusing(request, error)
        asked = request.headers.get("accept", "").partition(",")[0].strip()
        if asked != "text/html" or request.method != "GET":
            return answer
        page = (
            environment()
            .get_template("refused.html")
            .render(json.loads(bytes(answer.body)), navigation=NAVIGATION, current="")
        )
        kept = {name: value for name, value in answer.headers.items() if name in ("retry-after", "allow")}
        return HTMLResponse(page, answer.status_code, {"vary": "Accept", **kept})

    return shown
