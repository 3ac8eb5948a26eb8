"""Pages of a table and a picture: does it fit, what a machine runs, one operator chip by chip, statements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chipwise.api.requests.desk import LocalRequest
from chipwise.api.requests.kernel import KernelRequest
from chipwise.api.requests.planning import FitRequest
from chipwise.api.requests.portfolio import FleetRequest
from chipwise.api.requests.statement import CheckStatementRequest
from chipwise.report.charts.kernel import level_bars, time_bars
from chipwise.report.charts.memory import memory_bars
from chipwise.report.charts.roofline import kernel_roofline
from chipwise.report.charts.sweep import machines_by_hour
from chipwise.report.desk import LocalReport
from chipwise.report.fit import FitReport
from chipwise.report.kernel import KernelRecord, KernelReport
from chipwise.report.portfolio import EXACT, PortfolioReport
from chipwise.report.statements import StatementsReport
from chipwise.web.views.view import EVIDENCE, INSIDE, MODEL, PageChart, View, link

SHOWN = 16
COUNTED = ("memory counted, not measured", "")
CAVEAT = (("on some chips no known software runs it", "weak"),)
UNITS = {"simt": "units", "systolic": "arrays"}


def flow(kernel: KernelRecord, dims: Mapping[str, float]) -> dict[str, Any] | None:
    """What the moving picture of a product is drawn from: the mapping of the cost model. None: no picture."""
    mapping = kernel.mapping
    if not {"m", "n", "k"} <= set(dims):
        return None
    kind = "tiles" if "tile_rows" in mapping and "waves" in mapping else "array" if "fold_rows" in mapping else ""
    if not kind:
        return None
    sizes = {name: dims[name] for name in ("m", "n", "k")}
    held = "outputs" if "hold outputs" in kernel.mapping_text else "weights"
    return {"kind": kind, "unit": UNITS.get(kernel.family, "units"), "holds": held, **sizes, **mapping}


def _fit(question: FitRequest, report: FitReport) -> dict[str, Any]:
    devices = [(f"{f.chips}x {f.chip}", f.memory) for f in report.fits[:SHOWN]]
    note = (
        f"The first {SHOWN} of {len(report.fits)} chips; name chips to see others." if len(report.fits) > SHOWN else ""
    )
    memory = PageChart("memory", "Memory of a device against its capacity", memory_bars(devices), note)
    return {"charts": [memory], "badges": [COUNTED, *CAVEAT[: any(f.caveat for f in report.fits)]]}


def _local(question: LocalRequest, report: LocalReport) -> dict[str, Any]:
    first = report.models[0] if report.models else None
    badges = [(first.basis, first.basis), (f"scores {first.scores}", "")] if first else []
    found: dict[str, Any] = {"badges": [b for b in badges if b[0]]}
    if first is None or report.buy:
        return found
    speeds = [r.tokens_per_s for r in report.models]
    (table,) = report.tables(everything=True)
    commands = {f"{engine}: {text}" for engine, text in first.commands.items()}
    return found | {
        "template": "local.html",
        "load": table.head[-2],
        "scale": (min(s.low for s in speeds), max(s.high for s in speeds)),
        "notes": [
            line
            for line in table.foot
            if line.removeprefix("#1").strip() not in commands and line not in report.assumptions
        ],
    }


def _fleet(question: FleetRequest, report: PortfolioReport) -> dict[str, Any]:
    charts = [
        PageChart(f"machines-{i}", f"Chips of {s.name} by the hour", machines_by_hour(report, s))
        for i, s in enumerate(report.working, 1)
    ]
    gap = report.fleet.gap
    badges = [("cheapest of all assignments" if gap < EXACT else f"within {gap:.2%} of the cheapest", "")]
    if report.simulated:
        kept = all(t.holds for t in report.simulated)
        badges.append(("targets met in the simulation" if kept else "misses in the simulation", "" if kept else "weak"))
    return {"charts": charts, "badges": badges}


def _kernel(question: KernelRequest, report: KernelReport) -> dict[str, Any]:
    charts = [PageChart("kernel-time", "Time by what it waits for", time_bars(report))]
    if any(v.bytes_per_mac > 0 for k in report.kernels for v in k.levels):
        note = "An operand of a systolic array passes from cell to cell; a GPU reads it again for every small tile."
        charts.append(PageChart("kernel-levels", "Bytes per multiply-accumulate", level_bars(report), note))
    if any(k.flops > 0 for k in report.kernels):
        charts.append(PageChart("kernel-roofline", "Roofline", kernel_roofline(report), wide=True))
    flows = [(k, f) for k in report.kernels if (f := flow(k, report.dims)) is not None]
    best = min(report.kernels, key=lambda k: k.time_s.mid)
    badges = [(best.time_s.basis, best.time_s.basis)]
    return {"charts": charts, "flows": flows, "badges": badges}


def _statements(question: CheckStatementRequest, report: StatementsReport) -> dict[str, Any]:
    said = [*(s.text for s in report.statements), *report.nearest]
    # basis, sources and commands stand beside the figures of a statement
    bare = [replace(table, foot=()) for table in report.tables(everything=True)]
    return {"links": {text: link("check_statement", {"text": text}) for text in said}, "tables": bare}


FIT = View(
    verb="fit",
    tab="Fit",
    title="Does it fit",
    lead="Memory by use on every chip: the fewest that hold the model, what is left for a cache, the smallest fix.",
    example={"model": MODEL, "chips": "h100-sxm5-80gb,h200-sxm-141gb,mi300x,tpu-v5e,tpu-v6e,rtx-4090"},
    front=("model", "chips", "count", "context", "batch", "precision"),
    show=_fit,
)
LOCAL = View(
    verb="local",
    tab="Local",
    title="What your machine runs",
    lead="Which models your machine runs, in which format, how fast and with which command; or what to buy.",
    example={"have": "rtx-4090", "host_memory": "64GB"},
    front=("have", "host_memory", "max_usd", "min_tps", "context", "use"),
    show=_local,
)
FLEET = View(
    verb="fleet",
    tab="Fleet",
    title="Many demands on one fleet",
    lead="Which demand runs on which machines, hour by hour, what it costs, and what one more machine would change.",
    front=("fleet",),
    show=_fleet,
)
KERNEL = View(
    group=INSIDE,
    verb="kernel",
    tab="Kernel",
    title="One operator, chip by chip",
    lead="How a matrix product, a convolution, attention or a collective maps onto a chip, and how long it takes.",
    example={"op": "gemm", "chips": "h100-sxm5-80gb,tpu-v6e", "m": "1024", "n": "8192", "k": "4096", "dtype": "bf16"},
    front=("op", "chips", "m", "n", "k", "batch", "dtype"),
    show=_kernel,
    template="kernel.html",
)
STATEMENTS = View(
    group=EVIDENCE,
    verb="check_statement",
    tab="Fact check",
    title="Fact check",
    lead="Statements about hardware: a verdict, its confidence, and the commands that show the figures.",
    front=("text",),
    show=_statements,
    template="statements.html",
)
