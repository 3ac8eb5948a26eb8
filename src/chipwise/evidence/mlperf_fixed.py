"""Samples of fixed size (pictures, sentences, scans, speech, recommendations) through one roofline.

One sample costs its arithmetic at the rate of its data type and its traffic at the memory's, softly the longer
of the two, plus rows gathered at random. The shares of peak are the same for all chips and all benchmarks of a
kind; they are priors, what is left of them is fitted as `fixed.*`. A single sample cannot fill a chip: a
latency adds a start-up and loses more of the peak the larger the chip.
"""

from __future__ import annotations

import math

from chipwise.catalog.benchmarks import Work
from chipwise.catalog.chip import Chip
from chipwise.cost.device import FALLBACK
from chipwise.errors import UsageError
from chipwise.evidence.mlperf_rows import Curve, Run
from chipwise.predict.energy import Use

__all__ = ["fixed_curve", "fixed_use"]

COMPUTE = {
    "convolution": 0.36,
    "attention": 0.50,
    "diffusion": 0.45,
    "recurrent": 0.35,
    "recommendation": 0.50,
}
MEMORY = 0.70  # share of bandwidth, streamed
GATHER = 0.20  # share of bandwidth, rows gathered at random
SOFTNESS = 3.0  # exponent of the soft maximum
BYTES = {"fp4": 0.5, "int4": 0.5, "fp8": 1.0, "int8": 1.0, "bf16": 2.0, "fp16": 2.0, "fp32": 4.0}

# Launches of a small network one after the other, and the arithmetic at which half of the peak is reached by
# one sample, per peak operation per second: 60 us of work, what a chip can overlap of one picture.
START_S = 2.5e-4
HALF_S = 6.0e-5

# A step of a recurrent network waits for the one before it.
STEP_S = 4.0e-5

# A sample of more arithmetic than this is spread over the chips of a system when it comes alone.
SPREAD_FLOPS = 1e14

SAMPLES = {"SingleStream": 1.0, "MultiStream": 8.0}


def fixed_curve(run: Run) -> Curve:
    """The rate of a run, or of a latency scenario the rate of one query after the other.

    Raises `UsageError` where the benchmark's work or a figure of the chip is not published.
    """
    work = run.benchmark.work
    if work is None:
        raise UsageError(
            f"{run.benchmark.name} is not predicted", run.benchmark.refused or "no published work"
        )
    peak, width = _peak(run.chip, run.precision or "fp16")
    bandwidth = run.chip.memory.bytes_per_s
    if not bandwidth:
        raise UsageError(f"{run.chip.id}: no published memory bandwidth")
    kind = run.benchmark.kind
    lone = SAMPLES.get(run.scenario)
    compute = work.flops / (COMPUTE[kind] * peak)
    traffic = _traffic(run.chip, work, width, lone) / (MEMORY * bandwidth)
    gather = work.gather * width / (GATHER * bandwidth)
    chips = float(run.chips)
    if lone:
        # one video is spread over all chips; of the others one chip answers a query
        chips = chips if work.flops > SPREAD_FLOPS else 1.0
        # one query at a time on one chip: its few samples share a start-up and cannot fill the peak
        compute = lone * compute + HALF_S / COMPUTE[kind]
        traffic *= lone
    body = (compute**SOFTNESS + traffic**SOFTNESS) ** (1.0 / SOFTNESS)
    start = (START_S + work.steps * STEP_S) * chips if lone else 0.0
    seconds = body + gather + start
    share = traffic**SOFTNESS / (compute**SOFTNESS + traffic**SOFTNESS) * body / seconds
    tokens = run.benchmark.output_tokens if run.unit == "Tokens/s" else 1.0
    return Curve(
        log_rate=math.log(chips * tokens / seconds),
        memory_share=float(share),
        gather_share=float(gather / seconds),
        start_share=float((start + (HALF_S / COMPUTE[kind] if lone else 0.0)) / seconds),
    )


def fixed_use(run: Run, log_rate: float) -> Use:
    """What the chips of a run do at a rate, the logarithm of samples or tokens per second of all of them. Raises
    `UsageError` as `fixed_curve` does."""
    work = run.benchmark.work
    if work is None:
        raise UsageError(f"{run.benchmark.name} is not predicted", "no published work")
    format_ = run.precision or "fp16"
    peak, width = _peak(run.chip, format_)
    tokens = run.benchmark.output_tokens if run.unit == "Tokens/s" else 1.0
    each = math.exp(log_rate) / tokens / run.chips
    traffic = _traffic(run.chip, work, width, SAMPLES.get(run.scenario)) + work.gather * width
    moved = min(each * traffic / (run.chip.memory.bytes_per_s or math.inf), 1.0)
    computed = min(each * work.flops / peak, 1.0)
    whole = format_.startswith("int")
    return Use(moved, 0.0 if whole else computed, computed if whole else 0.0)


def _peak(chip: Chip, name: str) -> tuple[float, float]:
    """Operations per second of the whole chip for a format and bytes of one element, widened as needed."""
    for wanted in FALLBACK.get(name, (name, "bf16", "fp16", "fp32")):
        rate = chip.matrix.get(wanted) or chip.vector.get(wanted)
        # parts whose int8 units were cut (B300) run these networks in fp8
        wider = chip.matrix.get("fp8", 0.0) if wanted == "int8" else 0.0
        if rate:
            return max(rate, wider), BYTES[name]
    raise UsageError(f"{chip.id}: no published peak for {name}")


def _traffic(chip: Chip, work: Work, width: float, lone: float | None) -> float:
    """Bytes of one sample at the memory: activations written and read, weights shared by some hundred samples.

    Chips that are programmed around their on-chip memory keep activations there as far as it holds them.
    """
    batch = lone or 256.0
    activations = 2.0 * work.activations * width
    if chip.family == "dataflow" and chip.sram_bytes:
        activations *= min(1.0, work.activations * width / chip.sram_bytes)
    return activations + work.params * width / batch
