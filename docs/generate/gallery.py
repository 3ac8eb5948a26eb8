"""Charts of the pages that no single answer has: several answers side by side, the code, the page of accuracy."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from docs.generate.accuracy import LINES, PAGE, accuracy_lines

import chipwise
from chipwise.report.charts.spec import SERIES, axis, chart

__all__ = ["MADE"]

ROOT = Path(__file__).resolve().parents[2]
Spec = dict[str, Any]
RATES = (0.5, 1, 2, 5, 10, 20, 40)
WAYS = ("API", "rented", "owned")
QUEUES = (5, 10, 15, 20, 25, 30)
CHIPS = ("l40s", "a100-sxm4-80gb", "h100-sxm5-80gb", "h200-sxm-141gb", "mi300x")
LOADS = (1, 4, 16, 64)


def _log(field: str, title: str) -> Spec:
    return axis(
        field, title, scale={"type": "log", "nice": False, "padding": 10}, axis={"tickCount": 6, "format": "~s"}
    )


def _lines(rows: Iterable[Mapping[str, Any]], description: str, x: Spec, y: Spec, names: tuple[str, ...]) -> Spec:
    """One line for every value of `name`."""
    scale = {"domain": names, "range": SERIES[: len(names)]}
    return chart(
        description,
        height=260,
        data={"values": list(rows)},
        mark={"type": "line", "point": {"size": 45, "filled": True}, "strokeWidth": 2},
        encoding={
            "x": x,
            "y": y,
            "color": {"field": "name", "type": "nominal", "scale": scale, "legend": {"title": None, "orient": "top"}},
        },
    )


def _ways() -> Spec:
    rows = []
    for rate in RATES:
        found = chipwise.plan(
            "meta-llama/Llama-3.1-70B", rate=f"{rate}/s", in_=2000, out=300, ttft="1s", tpot="40ms"
        ).decision
        own = found.own.usd_per_month if found.own else None
        for name, usd in zip(WAYS, (found.api_usd_per_month, found.rent_usd_per_month, own), strict=True):
            rows += [{"name": name, "rate": rate, "usd": round(usd)}] if usd is not None else []
    return _lines(
        rows, "Dollars a month against requests per second, by API, rented and owned",
        _log("rate", "requests per second"), _log("usd", "dollars a month"), WAYS,
    )  # fmt: skip


def _queue() -> Spec:
    names = ("half of all requests", "95 %", "99 %")
    rows = []
    for rate in QUEUES:
        answer = chipwise.simulate(
            "llama-3.1-8b", chip="h100", rate=f"{rate}/s", in_=1000, out=200, cv=1, requests=1000
        )
        times = next(row for row in answer if row.time.lower().startswith("ttft"))
        for name, found in zip(names, (times.p50, times.p95, times.p99), strict=True):
            rows.append({"name": name, "rate": rate, "ms": found.mid * 1e3})
    return _lines(
        rows, "Time to the first token against requests per second, three percentiles",
        axis("rate", "requests per second"), _log("ms", "time to the first token, ms"), names,
    )  # fmt: skip


def _sweep() -> Spec:
    rows = []
    for chip in CHIPS:
        for load in LOADS:
            plan = chipwise.estimate("llama-3.1-8b", chip=chip, concurrency=load, in_=1000, out=200).plans[0]
            rows.append(
                {"chip": chip, "load": load, "ms": plan.tpot_s.mid * 1e3, "text": f"{plan.tpot_s.mid * 1e3:.3g}"}
            )
    place = {"x": axis("load", "requests at once", "ordinal", axis={"labelAngle": 0}), "y": axis("chip", "", "nominal")}
    heat = {"field": "ms", "type": "quantitative", "scale": {"scheme": "blues", "type": "log"}, "legend": None}
    ink = {"condition": {"test": "datum.ms > 14", "value": "#ffffff"}, "value": "#14202b"}
    return chart(
        "Milliseconds per output token by chip and requests at once",
        height={"step": 34},
        data={"values": rows},
        layer=[
            {"mark": {"type": "rect", "cornerRadius": 3}, "encoding": {**place, "color": heat}},
            {"mark": {"type": "text", "fontSize": 12}, "encoding": {**place, "text": {"field": "text"}, "color": ink}},
        ],
    )


def _coverage() -> Spec:
    known = accuracy_lines(PAGE.read_text("utf-8"))
    rows = [
        {"name": " ".join(dict.fromkeys(w for w in (place[0], place[2], place[3]) if w != "all")).replace("_", " "),
         "held": known[place].held}
        for places in LINES.values()
        for place in places
    ]  # fmt: skip
    y = axis("name", "", "nominal", sort=None)
    return chart(
        "Share of measured rows inside the 80 % interval, by suite",
        height={"step": 22},
        layer=[
            {
                "data": {"values": rows},
                "mark": {"type": "bar", "color": SERIES[0], "height": 12},
                "encoding": {"y": y, "x":
                    axis("held", "measured rows inside the 80 % interval, %", scale={"domain": [0, 100]})},
            },
            {
                "data": {"values": [{"aim": 80}]},
                "mark": {"type": "rule", "strokeDash": [4, 3], "strokeWidth": 1.5},
                "encoding": {"x": axis("aim", "")},
            },
        ],
    )  # fmt: skip


def _rooms() -> Spec:
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"][0]
    rooms = [name.strip() for layer in contract["layers"] for name in layer.split("|")]
    found: Counter[tuple[str, str]] = Counter()
    for path in (ROOT / "src" / "chipwise").rglob("*.py"):
        room = path.relative_to(ROOT / "src" / "chipwise").parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            module = node.module if isinstance(node, ast.ImportFrom) and not node.level else None
            other = module.split(".")[1] if module and module.startswith("chipwise.") else ""
            if room in rooms and other in rooms and other != room:
                found[room, other] += 1
    rows = [{"from": a, "to": b, "imports": n} for (a, b), n in sorted(found.items())]
    return chart(
        "Packages in rows, packages that they import in columns, imports as colour",
        height={"step": 22},
        data={"values": rows},
        mark={"type": "rect", "cornerRadius": 2},
        encoding={
            "x": axis("to", "is imported", "nominal", scale={"domain": rooms},
                      axis={"orient": "top", "labelAngle": -45}),
            "y": axis("from", "imports", "nominal", scale={"domain": rooms}),
            "color": {"field": "imports", "type": "quantitative",
                      "scale": {"type": "sqrt", "range": ["#9ccbe8", "#1b6ca8"]},
                      "legend": {"title": "imports"}},
        },
    )  # fmt: skip


def _fleet() -> Spec:
    chat = {"name": "chat", "model": "meta-llama/Llama-3.1-8B", "day": [4, 60, 20], "priority": 1}
    nightly = {"name": "nightly", "model": "Qwen/Qwen3-32B", "tokens": "500M"}
    hall = {"name": "hall", "chip": "h100", "count": 8, "price": "own"}
    cloud = {"name": "cloud", "chip": "h200"}
    return dict(chipwise.fleet({"demand": [chat, nightly], "supply": [hall, cloud]}).chart())


MADE: Mapping[str, Callable[[], Spec]] = {
    "ways": _ways,
    "queue": _queue,
    "sweep": _sweep,
    "coverage": _coverage,
    "rooms": _rooms,
    "fleet": _fleet,
}
"""What each is called."""
