"""What, beside a roofline, decides how fast a submission with samples of fixed size is: few factors with a meaning.

    log rate = log of what physics reaches + sum of features x parameters

Features hold the age of the software, its vendor, the power of the chip, the kind of network. There is none per chip or
submitter, and one per benchmark only where MLCommons publishes no lengths (`Benchmark.constant`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from chipwise.catalog.chip import Chip
from chipwise.evidence.mlperf_rows import Curve, Run

__all__ = ["features"]

# Dense 16-bit operations per watt that parts of a year sustain under a large product: V100 0.42, A100 0.78, H100
# 1.41 TFLOPS per watt, and no better per watt since, though peaks rose. What a part promises beyond, its power
# limit does not hold.
SUSTAINED_YEAR, SUSTAINED_TFLOPS_PER_W, SUSTAINED_DOUBLINGS = 2022, 1.41, 0.43

VENDORS = ("amd", "google", "intel", "qualcomm")
"""Vendors with several chips or benchmarks among the published results."""

FABRIC_BYTES_PER_S = 301e9
"""Cards joined by less than this meet over PCIe or a bridge of two; HGX, NVL and OAM systems have more."""


def features(run: Run, curve: Curve) -> Mapping[str, float]:
    """Features of a run by name of parameter."""
    found = {
        "fixed.overall": 1.0,
        "fixed.maturity": -math.exp(-run.age - 3.0),
        f"fixed.{run.benchmark.kind}": 1.0,
    }
    if run.benchmark.constant:
        found[f"benchmark.{run.benchmark.name}"] = 1.0
    found["fixed.memory_share"] = curve.memory_share
    found["fixed.gather_share"] = curve.gather_share
    found["fixed.start_share"] = curve.start_share
    if run.benchmark.name == "dlrm-v2" and run.accuracy == "99.9":
        found["fixed.accurate"] = -1.0
    if run.precision != "int8":
        found[f"fixed.{run.precision}"] = 1.0
    if run.scenario == "SingleStream":
        found["fixed.lone"] = 1.0
    if run.scenario == "MultiStream":
        found["fixed.eight"] = 1.0
    if run.scenario in ("Server", "Interactive"):
        found["fixed.online"] = -1.0
    return {name: value for name, value in (found | _hardware(run)).items() if value}


def _hardware(run: Run) -> dict[str, float]:
    chip = run.chip
    found: dict[str, float] = {}
    if chip.kind == "cpu":
        found["fixed.cpu"] = 1.0
    elif chip.vendor != "nvidia":
        found["fixed.other_vendor"] = -1.0
        if chip.vendor in VENDORS:
            found[f"fixed.vendor_{chip.vendor}"] = 1.0
    if _is_card(chip):
        found["fixed.card"] = 1.0
    if chip.tdp_w and run.power_w:
        found["fixed.power"] = math.log(run.power_w / chip.tdp_w)
    found["fixed.power_density"] = -_density(run)
    found["fixed.maxq"] = -float(run.variant == "maxq")
    found["fixed.virtual"] = -float(run.variant in ("virtual", "mig"))
    found["fixed.untuned"] = -float(run.untuned)
    if run.nodes > 1:
        # hosts of one NVLink domain are nearly one
        found["fixed.hosts"] = -math.log2(run.nodes) * (0.5 if "nvl72" in chip.id else 1.0)
    return found


def _is_card(chip: Chip) -> bool:
    """A PCIe card: what it exchanges goes over the host's bus or a bridge of two."""
    link = chip.scaleup.bytes_per_s if chip.scaleup else None
    return chip.kind == "gpu" and (link is None or link < FABRIC_BYTES_PER_S)


def _density(run: Run) -> float:
    """How far the promised operations per watt lie above what parts of the year sustain, as a logarithm."""
    chip = run.chip
    peak = chip.matrix.get("bf16") or chip.matrix.get("fp16")
    if not peak or not chip.tdp_w:
        return 0.0
    years = min(0, chip.year - SUSTAINED_YEAR)
    sustained = SUSTAINED_TFLOPS_PER_W * 2.0 ** (years * SUSTAINED_DOUBLINGS)
    return max(0.0, math.log(peak / 1e12 / chip.tdp_w / sustained))
