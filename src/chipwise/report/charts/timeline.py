"""Time from left to right: a request from arrival to its last token, a step of a pipeline of devices, and the stages of
a request to a model without tokens."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.report.charts.spec import ACCENT, MUTED, RESOURCES, SERIES, Spec, axis, chart, color, said, tip
from chipwise.report.media import MediaPlan
from chipwise.report.plans import PlanReport
from chipwise.report.training import TrainPlanRecord
from chipwise.workload.backward import GRADIENTS

SHOWN = 16
"""Micro-batches of a step that are drawn, and the most stages: a pipeline repeats itself."""


def request_timeline(report: PlanReport) -> Spec:
    """The mean request of the first plan: waiting, its prompt, its tokens, and what other requests' prompts add.

    The time to the first token is split at what its prompt takes alone, the time per token at what a pass takes without
    others' prompts. Ends of the 80 % interval are marked at the first and at the last token.
    """
    p, w = report.plans[0], report.workload
    tokens = max(w.output_tokens - 1.0, 0.0)
    pace = p.tpot_s
    prompt = min(p.prefill_s, p.ttft_s.mid)
    each = pace.mid if pace else 0.0
    alone = min(p.decode_s, each)
    parts = [
        ("waiting", "queue", p.ttft_s.mid - prompt),
        ("its prompt", "compute", prompt),
        (f"{tokens:,.0f} more tokens", "memory", tokens * alone),
        ("waiting for other prompts", "bubble", tokens * (each - alone)),
    ]
    rows, at = [], 0.0
    for name, hue, seconds in parts:
        if seconds > 1e-9:
            rows.append(_bar("a request", name, hue, at, at + seconds))
        at += max(seconds, 0.0)
    ends = [("first token", p.ttft_s.mid, p.ttft_s.low, p.ttft_s.high)]
    if pace and tokens:
        low, high = p.ttft_s.low + tokens * pace.low, p.ttft_s.high + tokens * pace.high
        ends.append(("last token", at, low, high))
    marks = [{"row": "a request", "what": n, "at": m, "from": a, "to": b} for n, m, a, b in ends]
    words = ", ".join(f"{r['part']} {said(r['seconds'])} s" for r in rows)
    spec = _bars(f"A mean request on {p.chips}x {p.chip}: {words}; the last token after {said(at)} s.", rows, "seconds")
    spec["layer"] += [
        {
            "data": {"values": marks},
            "mark": {"type": "rule", "strokeWidth": 1.5, "yOffset": 16},
            "encoding": {"y": axis("row", "", "nominal"), "x": axis("from", ""), "x2": {"field": "to"}},
        },
        {
            "data": {"values": marks},
            "mark": {"type": "point", "shape": "diamond", "filled": True, "size": 60, "color": ACCENT, "yOffset": 16},
            "encoding": {
                "y": axis("row", "", "nominal"),
                "x": axis("at", ""),
                "tooltip": tip({"what": "what", "at": "s", "from": "80 % from", "to": "80 % to"}),
            },
        },
    ]
    spec["height"] = 70
    return spec


def stage_timeline(plan: MediaPlan) -> Spec:
    """The parts of a request to a model without tokens in the order in which they run."""
    rows, at = [], 0.0
    for i, (name, seconds) in enumerate(plan.stages.items()):
        said_name = name.replace("_", " ").replace(":", ", ")
        rows.append(_bar("a request", said_name, SERIES[i % len(SERIES)], at, at + seconds))
        at += seconds
    words = ", ".join(f"{r['part']} {said(r['seconds'])} s" for r in rows)
    spec = _bars(f"A request on {plan.chips}x {plan.chip}: {words}.", rows, "seconds")
    spec["height"] = 50
    return spec


def pipeline_step(plan: TrainPlanRecord) -> Spec:
    """A training step of a pipeline, stage by stage: passes forward and backward of its micro-batches as 1F1B orders
    them (Narayanan et al., 2021), a backward pass twice as long as a forward one, and the time that a stage waits. With
    more micro-batches than are drawn the middle of the step is left out. Raises `ValueError` without stages.
    """
    stages, count = plan.layout.pp, plan.layout.micro_batches
    if stages < 2:
        raise ValueError("a plan without stages has no pipeline")
    drawn, shown = min(count, max(SHOWN, stages + 4)), min(stages, SHOWN)
    rows = [
        _bar(f"stage {stage + 1}", f"{kind} {number + 1}", hue, start, end)
        for stage, kind, number, start, end in _one_forward_one_backward(stages, drawn)
        if stage < shown
        for hue in (ACCENT if kind == "forward" else SERIES[1],)
    ]
    cut = f", {count - drawn} of {count} micro-batches left out" if drawn < count else ""
    bubble = plan.shares.get("bubble", 0.0)
    order = plan.layout.schedule or "1F1B"
    other = "" if order.lower() == "1f1b" else f" The plan's schedule is {order}, which waits less than this order."
    spec = _bars(
        f"A step of {stages} stages and {count} micro-batches{cut}: {bubble:.0%} of the whole step is waiting for "
        f"other stages.{other}",
        rows,
        "time, forward passes of a micro-batch",
    )
    spec["height"] = {"step": 22}
    return spec


def _order(stage: int, stages: int, count: int) -> list[tuple[str, int]]:
    """The passes of a stage in order: as many forward ones as stages follow, then one backward for each forward."""
    warm = min(stages - stage - 1, count)
    order = [("forward", i) for i in range(warm)]
    for i in range(count - warm):
        order += [("forward", warm + i), ("backward", i)]
    return order + [("backward", i) for i in range(count - warm, count)]


def _before(stage: int, kind: str, i: int, stages: int) -> tuple[int, str, int] | None:
    """The pass that one waits for; None: the first forward ones wait for nothing."""
    if kind == "forward":
        return (stage - 1, kind, i) if stage else None
    return (stage + 1, kind, i) if stage + 1 < stages else (stage, "forward", i)


def _one_forward_one_backward(stages: int, count: int) -> Iterator[tuple[int, str, int, float, float]]:
    """(stage, forward or backward, micro-batch, start, end) of every pass, a forward pass taking 1."""
    order = [_order(stage, stages, count) for stage in range(stages)]
    ends: dict[tuple[int, str, int], float] = {}
    free, place = [0.0] * stages, [0] * stages
    while any(place[s] < len(order[s]) for s in range(stages)):
        for s in range(stages):
            while place[s] < len(order[s]):
                kind, i = order[s][place[s]]
                needs = _before(s, kind, i, stages)
                if needs is not None and needs not in ends:
                    break
                start = max(free[s], ends[needs] if needs is not None else 0.0)
                free[s] = ends[s, kind, i] = start + (1.0 if kind == "forward" else GRADIENTS)
                place[s] += 1
                yield s, kind, i, start, free[s]


def _bar(row: str, part: str, hue: str, start: float, end: float) -> dict[str, str | float]:
    return {
        "row": row,
        "part": part,
        "hue": RESOURCES.get(hue, hue),
        "start": start,
        "end": end,
        "seconds": end - start,
    }


def _bars(words: str, rows: list[dict[str, str | float]], title: str) -> Spec:
    names = list(dict.fromkeys(str(r["part"]).rstrip("0123456789 ") for r in rows))
    hues = {str(r["part"]).rstrip("0123456789 "): str(r["hue"]) for r in rows}
    for r in rows:
        r["name"] = str(r["part"]).rstrip("0123456789 ")
    fill = color(names, "name")
    fill["scale"]["range"] = [hues[n] for n in names]
    return chart(
        words,
        data={"values": rows},
        layer=[
            {
                "mark": {"type": "bar", "height": 17, "stroke": MUTED, "strokeWidth": 0.4},
                "encoding": {
                    "y": axis("row", "", "nominal", sort=None, axis={"title": None}),
                    "x": axis("start", title, axis={"tickCount": 6}),
                    "x2": {"field": "end"},
                    "color": fill,
                    "tooltip": tip({"part": "part", "seconds": title.split(",")[0]}),
                },
            }
        ],
    )
