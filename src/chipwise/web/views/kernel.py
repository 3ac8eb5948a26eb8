"""One operator on several chips: its time, its place under the roof, and how it flows through them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chipwise.api.requests.kernel import KernelRequest
from chipwise.report.charts.kernel import level_bars, time_bars
from chipwise.report.charts.roofline import kernel_roofline
from chipwise.report.kernel import KernelRecord, KernelReport, kernel_view
from chipwise.web.views.view import PageChart, View

UNITS = {"simt": "units", "systolic": "arrays"}


def flow(kernel: KernelRecord, dims: Mapping[str, float]) -> dict[str, Any] | None:
    """What the moving picture of a product is drawn from: the mapping of the cost model. None: no picture."""
    mapping = kernel.mapping
    if not {"m", "n", "k"} <= set(dims):
        return None
    kind = (
        "tiles"
        if "tile_rows" in mapping and "waves" in mapping
        else "array"
        if "fold_rows" in mapping
        else ""
    )
    if not kind:
        return None
    sizes = {name: dims[name] for name in ("m", "n", "k")}
    held = "outputs" if "hold outputs" in kernel.mapping_text else "weights"
    return {"kind": kind, "unit": UNITS.get(kernel.family, "units"), "holds": held, **sizes, **mapping}


def _show(question: KernelRequest, report: KernelReport) -> dict[str, Any]:
    charts = [PageChart("kernel-time", "Time by what it waits for", time_bars(report))]
    if any(v.bytes_per_mac > 0 for k in report.kernels for v in k.levels):
        note = "An operand of a systolic array passes from cell to cell; a GPU reads it again for every small tile."
        charts.append(PageChart("kernel-levels", "Bytes per multiply-accumulate", level_bars(report), note))
    if any(k.flops > 0 for k in report.kernels):
        charts.append(PageChart("kernel-roofline", "Roofline", kernel_roofline(report), wide=True))
    flows = [(k, f) for k in report.kernels if (f := flow(k, report.dims)) is not None]
    best = min(report.kernels, key=lambda k: k.time_s.mid)
    badges = [(best.time_s.basis, best.time_s.basis)]
    return {"charts": charts, "flows": flows, "tables": kernel_view(report), "badges": badges}


KERNEL = View(
    verb="kernel",
    tab="Kernel",
    title="One operator, chip by chip",
    lead="How a product, a convolution, attention or an exchange is laid out on a chip, and what that costs.",
    example={
        "op": "gemm",
        "chips": "h100-sxm5-80gb,tpu-v6e",
        "m": "1024",
        "n": "8192",
        "k": "4096",
        "dtype": "bf16",
    },
    front=("op", "chips", "m", "n", "k", "batch", "dtype"),
    show=_show,
    template="kernel.html",
)
