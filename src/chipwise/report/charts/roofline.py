"""The roofline: what memory and arithmetic allow, and where the work of a plan or an operator lies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chipwise.report.charts.spec import MUTED, SERIES, Spec, axis, chart, ratio, tip
from chipwise.report.kernel import KernelReport
from chipwise.report.operators import OperatorsReport

LEFT, RIGHT = 0.25, 8192.0  # FLOP per byte, unless the work lies beyond
X = "arithmetic intensity, FLOP per byte of memory (log)"
Y = "FLOP/s (log)"


def roofline(report: OperatorsReport) -> Spec:
    """Every operator of a plan with FLOPs and bytes, in both phases, under the roof of its device.

    The size of a point is its share of the phase.
    """
    points = [
        {
            "name": o.name,
            "phase": o.phase,
            "intensity": o.intensity,
            "flops": o.flops_per_s,
            "share": o.share,
            "percent": f"{o.share:.1%}",
            "us": o.seconds * 1e6,
            "bound": o.bound,
            "repeats": o.repeats,
        }
        for o in report.operators
        if o.peak_flops_per_s and o.intensity > 0
    ]
    spread = [float(str(p["intensity"])) for p in points]
    low = min([LEFT, *(0.7 * x for x in spread)])
    roofs = [
        row
        for name, peak in report.peaks_flops_per_s.items()
        for row in _roof(name, peak, report.memory_bytes_per_s, low, max([RIGHT, *spread]))
    ]
    heavy = sorted(points, key=lambda p: -float(str(p["share"])))[:6]
    apart = _apart(heavy)
    words = "; ".join(f"{p['phase']} {p['name']} at {p['intensity']:.3g} FLOP/B" for p in heavy)
    where = {"x": ratio("intensity", X), "y": ratio("flops", Y)}
    return chart(
        f"Roofline of {report.device}: memory {report.memory_bytes_per_s / 1e12:.3g} TB/s. Largest operators: {words}.",
        height=340,
        layer=[
            _lines(roofs, where),
            {
                "data": {"values": points},
                "mark": {"type": "point", "filled": True, "opacity": 0.85},
                "encoding": {
                    **where,
                    "size": {
                        "field": "share",
                        "type": "quantitative",
                        "scale": {"domain": [0, 0.6], "range": [40, 600], "clamp": True},
                        "legend": None,
                    },
                    "color": {
                        "field": "phase",
                        "type": "nominal",
                        "scale": {"domain": ["decode", "prefill"], "range": [SERIES[0], SERIES[1]]},
                        "legend": {"title": None, "orient": "top"},
                    },
                    "shape": {
                        "field": "phase",
                        "type": "nominal",
                        "scale": {"domain": ["decode", "prefill"], "range": ["circle", "diamond"]},
                        "legend": {"title": None, "orient": "top"},
                    },
                    "tooltip": tip(
                        {
                            "name": "operator",
                            "phase": "phase",
                            "percent": "share of phase",
                            "us": "µs",
                            "intensity": "FLOP/B",
                            "flops": "FLOP/s",
                            "bound": "bottleneck",
                        }
                    ),
                },
            },
            {
                "data": {"values": apart},
                "mark": {"type": "text", "dy": -13, "fontSize": 11},
                "encoding": {**where, "text": {"field": "name"}},
            },
        ],
    )


def kernel_roofline(report: KernelReport) -> Spec:
    """One operator on several chips, each under its own roof. Collectives have none: raises `ValueError`."""
    kernels = [k for k in report.kernels if k.flops > 0]
    if not kernels:
        raise ValueError("a collective has no FLOPs")
    spread = [k.intensity for k in kernels]
    low, high = min([LEFT, *(0.5 * x for x in spread)]), max([RIGHT, *(2.0 * x for x in spread)])
    roofs = [row for k in kernels for row in _roof(k.chip, k.peak_flops_per_s, k.peak_flops_per_s / k.ridge, low, high)]
    points = [
        {
            "chip": k.chip,
            "roof": k.chip,
            "intensity": k.intensity,
            "flops": k.flops_per_s,
            "share": f"{k.share_of_peak:.1%}",
            "us": k.time_s.mid * 1e6,
            "bound": k.bound,
        }
        for k in kernels
    ]
    words = "; ".join(f"{p['chip']} reaches {p['share']} of its peak, bottleneck: {p['bound']}" for p in points)
    where = {"x": ratio("intensity", X), "y": ratio("flops", Y)}
    hues = {
        "field": "roof",
        "type": "nominal",
        "scale": {"domain": [k.chip for k in kernels], "range": list(SERIES)},
        "legend": {"title": None, "orient": "top"},
    }
    lines = _lines(roofs, where)
    lines["encoding"]["color"] = hues
    return chart(
        f"Roofline of {report.operator}: {words}.",
        height=300,
        layer=[
            lines,
            {
                "data": {"values": points},
                "mark": {"type": "point", "filled": True, "size": 160},
                "encoding": {
                    **where,
                    "color": hues,
                    "tooltip": tip(
                        {
                            "chip": "chip",
                            "us": "µs",
                            "intensity": "FLOP/B",
                            "flops": "FLOP/s",
                            "share": "of peak",
                            "bound": "bottleneck",
                        }
                    ),
                },
            },
        ],
    )


def _apart(points: Sequence[dict[str, object]], least: float = 0.16) -> list[dict[str, object]]:
    """Points whose labels have room: a factor away from every one before, in intensity or in FLOP/s."""
    kept: list[dict[str, object]] = []
    for p in points:
        x, y = (np.log10(float(str(p[n]))) for n in ("intensity", "flops"))
        near = (
            abs(x - np.log10(float(str(k["intensity"])))) < 3 * least
            and abs(y - np.log10(float(str(k["flops"])))) < least
            for k in kept
        )
        if not any(near):
            kept.append(p)
    return kept


def _roof(name: str, peak: float, bytes_per_s: float, low: float, high: float) -> list[dict[str, object]]:
    ridge = peak / bytes_per_s
    xs = np.unique([low, ridge, max(high, 2.0 * ridge)])
    return [{"roof": name, "intensity": float(x), "flops": min(peak, float(x) * bytes_per_s)} for x in xs]


def _lines(roofs: Sequence[dict[str, object]], where: Spec) -> Spec:
    detail = axis("roof", "", "nominal")
    return {
        "data": {"values": list(roofs)},
        "mark": {"type": "line", "strokeWidth": 2, "opacity": 0.7, "color": MUTED},
        "encoding": {**where, "detail": detail, "tooltip": tip({"roof": "roof", "flops": "FLOP/s"})},
    }
