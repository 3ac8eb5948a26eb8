"""The pictures of the pages, computed when they are made."""

from __future__ import annotations

from docs.generate.picture import Series, plot

from chipwise.api.requests.detail import LoadRequest
from chipwise.api.requests.kernel import KernelRequest

__all__ = ["roofline_picture", "tradeoff_picture"]

ROWS = (1, 4, 16, 64, 256, 1024, 4096)


def roofline_picture(chip: str) -> str:
    """One product of a feed-forward layer for ever more tokens, under the chip's roofline."""
    found = [KernelRequest(op="gemm", m=m, n=14336, k=4096, chips=chip).run().kernels[0] for m in ROWS]
    first = found[0]
    peak, ridge = first.peak_flops_per_s / 1e12, first.ridge
    low, high = min(k.intensity for k in found), max(k.intensity for k in found)
    roof = Series("roofline", [(low, peak * low / ridge), (ridge, peak), (high, peak)], marked=False)
    points = Series(
        f"predicted on {chip}",
        [(k.intensity, k.flops_per_s / 1e12) for k in found],
        ["1 token", *(f"{m:,}" for m in ROWS[1:-1]), f"{ROWS[-1]:,} tokens"],
        joined=False,
    )
    title = f"Operations per second of a product against operations per byte on {chip}, under its roofline"
    return plot((roof, points), "operations per byte of memory", "TFLOP/s", title)


def tradeoff_picture(chips: str) -> str:
    """What a user gets against what a chip gives, from a lone request to as many as fit."""
    series = []
    for text in chips.split():
        chip, tp = text.split(":")
        load = LoadRequest(model="meta-llama/Llama-3.1-70B", chip=chip, tp=int(tp)).run()
        points = [(1.0 / p.tpot_s.mid, p.tokens_per_s.mid / int(tp)) for p in load.points]
        texts = [f"{load.points[0].concurrency:,.0f}", *[""] * (len(points) - 2), f"{load.points[-1].concurrency:,.0f}"]
        series.append(Series(f"{tp}x {chip}", points, texts))
    title = "Tokens per second of each user against tokens per second of each chip, one line per deployment"
    return plot(series, "tokens/s of each user", "tokens/s of each chip", title, names_below=True)
