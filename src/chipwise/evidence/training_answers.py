"""Answers to rows of `training` and `mlperf_training`: every measured column that physics can give, with its
80 % interval."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chipwise.calibrate.fit_training import memory_of, seconds_of, training_effects
from chipwise.calibrate.parameters import Parameters
from chipwise.errors import ChipwiseError
from chipwise.evidence.rows import Predicted, Row
from chipwise.evidence.training_anchors import anchor_factors
from chipwise.evidence.training_case import Case
from chipwise.evidence.training_convergence import samples_to_target, time_to_train_s
from chipwise.evidence.training_models import number
from chipwise.evidence.training_rows import read_case, stack_cases
from chipwise.predict.training.memory import activation_bytes, state_bytes
from chipwise.predict.training.result import Convention, step_flops
from chipwise.units import Array

__all__ = ["NOISY", "TIERS", "answer_training", "interval_of", "tier_of"]

# Software whose rows scatter as those with assumed inputs do.
NOISY = ("eager", "habana", "neuron", "neuron-nemo")

# Factors (low, high) of the 80 % interval of measured / predicted step time, by tier: the 10 % and 90 %
# quantiles of residuals of rows that the fit had not seen (workloads in eight folds; `unseen`: whole stacks
# and generations left out).
TIERS: dict[str, tuple[float, float]] = {
    "dense, stated": (0.90, 1.10),
    "dense, assumed": (0.86, 1.36),
    "experts, stated": (0.69, 1.32),
    "experts, assumed": (0.80, 1.50),
    "mlperf": (0.88, 1.19),
    "composed": (0.85, 1.14),
    "dense, unseen": (0.865, 1.27),
    "experts, unseen": (0.73, 1.61),
    "memory": (0.895, 1.14),
    "analytic": (0.97, 1.03),
}


@dataclass(frozen=True, slots=True)
class _Row:
    row: Row
    case: Case


def answer_training(rows: Sequence[Row], numbers: Parameters, anchors: Sequence[Row] = ()) -> list[Predicted]:
    """Lines for all rows, in order: figures with intervals, or one refusal that names the reason.

    `anchors` are measured rows of the user's own: they correct rows of other workloads on the same chips.
    """
    found: list[_Row | Predicted] = []
    for row in rows:
        try:
            found.append(_Row(row, read_case(row)))
        except ChipwiseError as error:
            found.append(Predicted(row["row_id"], "step_time_s", None, refused=str(error)))
    read = [f for f in found if isinstance(f, _Row)]
    if not read:
        return [f for f in found if isinstance(f, Predicted)]
    runs = stack_cases([f.case for f in read])
    seconds = np.asarray(seconds_of(runs, numbers).total_s)
    known = _known(numbers)
    seconds = seconds * _corrections(read, anchors, numbers, known[1])
    memory = np.asarray(memory_of(runs, numbers).total_bytes)
    lines: list[Predicted] = []
    place = 0
    for f in found:
        if isinstance(f, Predicted):
            lines.append(f)
            continue
        lines += _lines(f, seconds[place], memory[place], known)
        place += 1
    return lines


def _corrections(
    read: Sequence[_Row], anchors: Sequence[Row], numbers: Parameters, known: frozenset[str]
) -> Array:
    kept: list[_Row] = []
    for row in anchors:
        with contextlib.suppress(ChipwiseError):
            kept.append(_Row(row, read_case(row)))
    if not kept:
        return np.ones(len(read))
    own = stack_cases([f.case for f in kept], [f.row for f in kept])
    ratios = np.log(own.seconds / np.asarray(seconds_of(own, numbers).total_s))
    rows, cases = [f.row for f in read], [f.case for f in read]
    return anchor_factors(rows, cases, [f.row for f in kept], [f.case for f in kept], ratios, known)


def _known(numbers: Parameters) -> tuple[frozenset[str], frozenset[str]]:
    """Stacks and generations of chips that the fit has seen."""
    effects, _ = training_effects(numbers)
    return frozenset(effects.keys_of("stack")), frozenset(effects.keys_of("generation"))


def interval_of(row: Row, case: Case, kind: str = "") -> tuple[float, float]:
    """Factors of a row's interval whose stack and chips are taken as known; `kind` names another tier."""
    return TIERS[kind or tier_of(row, case, (frozenset(), frozenset()))]


def tier_of(row: Row, case: Case, known: tuple[frozenset[str], frozenset[str]]) -> str:
    """Which residuals a row's interval comes from."""
    labels = case.labels
    kind = "dense" if labels["moe"] == "dense" else "experts"
    if known[0] and (labels["stack"] not in known[0] or labels["generation"] not in known[1]):
        return f"{kind}, unseen"
    if row.get("benchmark"):
        return "mlperf"
    if row.get("family") == "vtrain" and (number(row, "chips_total") or 0) <= 8:
        return "composed"
    assumed = any(not g.startswith(("micro-batch", "no ")) for g in case.guessed)
    noisy = labels["stack"] in NOISY
    return f"{kind}, {'assumed' if assumed or noisy else 'stated'}"


def _lines(
    f: _Row, seconds: float, memory: float, known: tuple[frozenset[str], frozenset[str]]
) -> list[Predicted]:
    row, case = f.row, f.case
    name = row["row_id"]
    s, t = case.spread, case.network
    chips = number(row, "chips_total") or 1.0
    tier = tier_of(row, case, known)
    low, high = TIERS[tier]
    basis = "modelled" if tier.endswith("unseen") else "calibrated"
    lines: list[Predicted] = []

    def time(metric: str, value: float) -> None:
        lines.append(Predicted(name, metric, value, value * low, value * high, basis))

    def rate(metric: str, value: float) -> None:
        lines.append(Predicted(name, metric, value, value / high, value / low, basis))

    def size(metric: str, value: float, kind: str) -> None:
        a, b = TIERS[kind]
        lines.append(Predicted(name, metric, value, value * a, value * b, basis))

    samples = float(s.global_batch) / seconds
    if row.get("benchmark"):
        time("step_time_s", seconds)
        rate("samples_per_s", samples)
        needed = samples_to_target(row)
        if needed is not None:
            middle, below, above = needed
            lines.append(Predicted(name, "samples_to_target", middle, below, above, "published"))
            whole = time_to_train_s(row, middle, seconds, float(s.global_batch)) / 60.0
            spread = math.hypot(math.log(high / low), math.log(above / below)) / 2.0
            ends = (whole * math.exp(-spread), whole * math.exp(spread))
            lines.append(Predicted(name, "time_to_train_min", whole, *ends, basis))
        return lines
    if row.get("task") == "train step":
        time("fwd_bwd_time_s", seconds)
        return lines
    time("step_time_s", seconds)
    rate("samples_per_s", samples)
    rate("tokens_per_s_per_chip", samples * float(s.seq) / chips)
    flops = float(step_flops(t, s, _convention(row, case))) / (seconds * chips)
    rate("tflops_per_chip", flops / 1e12)
    peak = _peak(case)
    quoted: Convention = "hardware" if case.labels["stack"] == "megatron-2020" else "model"
    rate("mfu_pct", 100.0 * float(step_flops(t, s, quoted)) / (seconds * chips) / peak)
    rate("hfu_pct", 100.0 * float(step_flops(t, s, "hardware")) / (seconds * chips) / peak)
    size("memory_gb", memory / 1e9, "memory")
    arrays = [
        np.asarray(x, dtype=float)
        for x in (activation_bytes(t, s, case.recipe), *state_bytes(t, s, case.recipe))
    ]
    size("activation_memory_gb", float(arrays[0]) / 1e9, "analytic")
    size("state_memory_gb", float(_sum(arrays[1:])) / 1e9, "analytic")
    return lines


def _sum(parts: Sequence[Array]) -> float:
    return float(np.sum(parts))


def _peak(case: Case) -> float:
    """Dense FLOP/s per chip that utilisation is quoted against: of the type that products run in."""
    return float(case.cluster.narrow) * case.devices_per_chip


def _convention(row: Row, case: Case) -> Convention:
    """What a source counts, as its own times and rates imply: Megatron-LM of 2020-21 and InternEvo what runs;
    Megatron-Bridge, NeMo AutoModel, Primus and MaxText since July 2025 half of the pairs; the others all."""
    if row.get("flop_convention") == "includes_recompute" or case.labels["stack"] == "megatron-2020":
        return "hardware"
    text = f"{row.get('framework', '')} {row.get('family', '')}".lower()
    if any(word in text for word in ("bridge", "automodel", "primus")) or row.get("chip") == "tpu-v7x":
        return "causal"
    return "model"
