"""What, beside physics, decides how fast an MLPerf submission is: few factors with a meaning, shared by all.

A run's rate is predicted as

    log rate = x + curve(x + h),   x = sum of speed features x parameters,   h = sum of limit features x parameters

where `curve` is the logarithm of what physics reaches when the latency limits are e^(x + h) times as wide: a
machine that runs e^x times as fast as the model says also meets a limit at a larger batch. Speed features
hold the age of the software, its vendor, the power of the chip, how a replica is joined; limit features how
means become 99th percentiles. There is none per chip or submitter, and one per benchmark only where MLCommons
publishes no lengths (`Benchmark.constant`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from chipwise.calibrate.fit_mlperf import immaturity
from chipwise.catalog.chip import Chip
from chipwise.evidence.mlperf_rows import Curve, Run

__all__ = ["chip_features", "features", "is_card"]

# Dense 16-bit operations per watt that parts of a year sustain under a large product: V100 0.42, A100 0.78, H100
# 1.41 TFLOPS per watt, and no better per watt since, though peaks rose. What a part promises beyond, its power
# limit does not hold.
SUSTAINED_YEAR, SUSTAINED_TFLOPS_PER_W, SUSTAINED_DOUBLINGS = 2022, 1.41, 0.43

NEW_EXPERTS = ("deepseek-r1", "qwen3-vl-235b-a22b")
"""Mixtures of experts that are spread over chips, whose first submissions ran on engines that had just learned
to. One that fits a chip (gpt-oss-120b) ran from the start as it does now."""

EXPERTS = (*NEW_EXPERTS, "gpt-oss-120b", "mixtral-8x7b")

OF_ROUNDS = frozenset({"llm.new_experts", "llm.community_stack"})

VENDORS = {"llm": ("amd", "google", "intel"), "fixed": ("amd", "google", "intel", "qualcomm")}
"""Vendors with several chips or benchmarks among the published results."""

FABRIC_BYTES_PER_S = 301e9
"""Cards joined by less than this meet over PCIe or a bridge of two; HGX, NVL and OAM systems have more."""


def features(run: Run, curve: Curve) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Speed and limit features of a run by name of parameter."""
    return _speed(run, curve), _limit(run)


def chip_features(run: Run, curve: Curve) -> Mapping[str, float]:
    """The speed features that a plan of one's own has as well: chip, power, precision, how replicas are joined.

    What belongs to submissions is left out: tuned engines, the round, constants of benchmarks, arrivals.
    """
    return {
        n: v for n, v in (_language(run, curve) | _hardware(run, "llm")).items() if v and n not in OF_ROUNDS
    }


def _speed(run: Run, curve: Curve) -> dict[str, float]:
    group = "llm" if run.benchmark.kind == "llm" else "fixed"
    found = {f"{group}.overall": 1.0}
    found[f"{group}.maturity"] = -immaturity(run.age) if group == "llm" else -math.exp(-run.age - 3.0)
    if run.benchmark.constant:
        found[f"benchmark.{run.benchmark.name}"] = 1.0
    if group == "llm":
        found |= _language(run, curve)
    else:
        found[f"fixed.{run.benchmark.kind}"] = 1.0
        found["fixed.memory_share"] = curve.memory_share
        found["fixed.gather_share"] = curve.gather_share
        found["fixed.start_share"] = curve.start_share
        if run.benchmark.name == "dlrm-v2" and run.accuracy == "99.9":
            found["fixed.accurate"] = -1.0
        if run.precision != "int8":
            found[f"fixed.{run.precision}"] = 1.0
    if run.scenario == "SingleStream":
        found[f"{group}.lone"] = 1.0
    if run.scenario == "MultiStream":
        found[f"{group}.eight"] = 1.0
    if run.scenario in ("Server", "Interactive"):
        found[f"{group}.online"] = -1.0
    return {name: value for name, value in (found | _hardware(run, group)).items() if value}


def _language(run: Run, curve: Curve) -> dict[str, float]:
    found: dict[str, float] = {}
    if run.benchmark.name in NEW_EXPERTS:
        found["llm.new_experts"] = -math.exp(-run.rounds_since_first)
    if run.benchmark.name == "gpt-oss-120b" and "fp4" not in run.chip.matrix:
        # products wait for weights to be widened; what waits for the memory does not
        found["llm.widened_fp4"] = curve.compute_share
    if run.precision in ("nvfp4", "mxfp4"):
        found["llm.fp4"] = 1.0
    if run.precision in ("int8", "int4"):
        found[f"llm.{run.precision}"] = 1.0
    if is_card(run.chip) and curve.devices > 1:
        found["llm.joined_by_pcie"] = -1.0
    if (
        run.chip.vendor == "nvidia"
        and "vllm" in run.framework.lower()
        and "tensorrt" not in run.framework.lower()
    ):
        found["llm.community_stack"] = -1.0
    return found


def _hardware(run: Run, group: str) -> dict[str, float]:
    chip = run.chip
    found: dict[str, float] = {}
    if chip.kind == "cpu":
        found[f"{group}.cpu"] = 1.0
    elif chip.vendor != "nvidia":
        found[f"{group}.other_vendor"] = -1.0
        if chip.vendor in VENDORS[group]:
            found[f"{group}.vendor_{chip.vendor}"] = 1.0
    if is_card(chip):
        found[f"{group}.card"] = 1.0
    if chip.tdp_w and run.power_w:
        found[f"{group}.power"] = math.log(run.power_w / chip.tdp_w)
    found[f"{group}.power_density"] = -_density(run)
    found[f"{group}.maxq"] = -float(run.variant == "maxq")
    found[f"{group}.virtual"] = -float(run.variant in ("virtual", "mig"))
    found[f"{group}.untuned"] = -float(run.untuned)
    if run.nodes > 1:
        # hosts of one NVLink domain are nearly one
        found[f"{group}.hosts"] = -math.log2(run.nodes) * (0.5 if "nvl72" in chip.id else 1.0)
    return found


def _limit(run: Run) -> dict[str, float]:
    if run.benchmark.kind != "llm" or run.scenario not in ("Server", "Interactive"):
        return {}
    found = {"limit.all": 1.0}
    if run.scenario == "Interactive":
        found["limit.interactive"] = 1.0
    if run.benchmark.name in EXPERTS:
        found["limit.experts"] = 1.0
    if run.benchmark.name in NEW_EXPERTS:
        found["limit.new_experts"] = -math.exp(-run.rounds_since_first)
    if "nvl72" in run.chip.id and run.nodes > 1:
        found["limit.one_domain"] = 1.0  # prompts and answers on chips of their own
    if run.scenario in run.benchmark.speculative:
        found["limit.speculative"] = 1.0
    return found


def is_card(chip: Chip) -> bool:
    """A PCIe card: what it exchanges goes over the host's bus or a bridge of two."""
    link = chip.scaleup.bytes_per_s if chip.scaleup else None
    return chip.kind == "gpu" and (link is None or link < FABRIC_BYTES_PER_S)


def _density(run: Run) -> float:
    """How far the promised operations per watt lie above what parts of the year sustain, as a logarithm.

    A peak in 8 or 4 bits counts as its half or quarter in 16. Weights in 4 bits with wider activations
    (gpt-oss-120b) do not run at the peak of 4.
    """
    chip = run.chip
    peak = chip.matrix.get("bf16") or chip.matrix.get("fp16")
    if not peak or not chip.tdp_w:
        return 0.0
    if run.precision in ("nvfp4", "mxfp4"):
        peak = max(peak, chip.matrix.get("fp4", 0.0) / 4.0)
    years = min(0, chip.year - SUSTAINED_YEAR)
    sustained = SUSTAINED_TFLOPS_PER_W * 2.0 ** (years * SUSTAINED_DOUBLINGS)
    return max(0.0, math.log(peak / 1e12 / chip.tdp_w / sustained))
