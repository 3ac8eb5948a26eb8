"""Statements about speed, checked with predictions and with published results."""

from __future__ import annotations

import contextlib

from docs.generate.claims.claim import Checked, Number, Verdict, cited, times

from chipwise.api.loaded import describe
from chipwise.api.requests.planning import EstimateRequest
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.published import load_inference_results
from chipwise.errors import ChipwiseError
from chipwise.report.records import PlanRecord
from chipwise.units import format_bytes

__all__ = [
    "SPEEDS",
    "bits",
    "eight",
    "fp8",
    "h200",
    "judge_gain",
    "judge_order",
    "judge_range",
    "lone",
    "order",
    "reads",
]

SMALL, LARGE = "meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B"
HOPPER = "h100-sxm5-80gb"
NEAR = 0.1
"""Predictions are not sharper than this: ratios closer are the same."""
LOADS = {"one request": 1.0, "16 in flight": 16.0, "128 in flight": 128.0}
COMPUTED = "predicted"


def judge_range(ratios: list[float], claimed: float) -> Verdict:
    """Whether a factor is reached everywhere, somewhere or nowhere; more than claimed counts as reached."""
    reached = [ratio >= claimed * (1.0 - NEAR) for ratio in ratios]
    return "true" if all(reached) else "true with a condition" if any(reached) else "misleading"


def judge_gain(gain: float, claimed: float) -> Verdict:
    """Whether one more of a resource gives as much more speed; none of it is false, some is misleading."""
    if gain >= (1.0 - NEAR) * claimed:
        return "true"
    return "false" if gain <= NEAR * claimed else "misleading"


def judge_order(won: int, disputed: int) -> Verdict:
    """Whether speed is ordered by what is claimed: of the pairs in which a rival explanation says the opposite, how
    many it gets right."""
    if disputed == 0 or won >= (1.0 - NEAR) * disputed:
        return "true"
    return "true with a condition" if won > 0.5 * disputed else "false"


def _plan(model: str, chip: str, load: float, **options: object) -> PlanRecord:
    return EstimateRequest(model=model, chip=chip, concurrency=load, **options).run().plans[0]  # type: ignore[arg-type]


def fp8() -> Checked:
    """Throughput of 8-bit weights and products over 16-bit ones."""
    chip = get_chip(HOPPER)
    peak = (chip.peak("fp8") or 0.0) / (chip.peak("bf16") or 1.0)
    gains = {}
    for name, load in LOADS.items():
        wide, narrow = (_plan(LARGE, HOPPER, load, tp=4, precision=p) for p in (None, "fp8"))
        gains[name] = narrow.tokens_per_s.mid / wide.tokens_per_s.mid
    tight = [
        EstimateRequest(model=LARGE, chip=HOPPER, tp=2, task="batch", precision=p).run().plans[0]
        for p in (None, "fp8")
    ]
    full = tight[1].tokens_per_s.mid / tight[0].tokens_per_s.mid
    room = f"{tight[0].concurrency:.0f} and {tight[1].concurrency:.0f}"
    numbers = (
        Number("peak of the chip", times(peak), cited(chip, "matrix_tflops.fp8")),
        *(Number(f"tokens/s on four chips, {name}", times(gain), COMPUTED) for name, gain in gains.items()),
        Number(f"tokens/s on two chips, as many requests as fit ({room})", times(full), COMPUTED),
    )
    because = (
        "The peak doubles and weights halve. Launches, exchanges between chips, the cache in 16 bit and the host stay "
        "as they were, so that a model which had room enough gains less. Where weights took nearly all memory, the "
        "room that is freed allows larger batches, and then the gain is larger than two."
    )
    return Checked(
        "FP8 doubles throughput.",
        judge_range([*gains.values(), full], 2.0),
        because,
        numbers,
        f"chipwise estimate {LARGE} --chip {HOPPER} --tp 4 --concurrency 16 --precision fp8",
    )


def order() -> Checked:
    """Does peak or bandwidth order chips by the speed of a lone user?"""
    plans = _alone(SMALL)
    chips = [get_chip(p.chip) for p in plans]
    speed = [1.0 / p.decode_s for p in plans]
    peaks = [_peak(c.id) for c in chips]
    widths = [c.memory.bytes_per_s or 0.0 for c in chips]
    each = range(len(plans))
    disputed = [(a, b) for a in each for b in each if peaks[a] > peaks[b] and widths[a] < widths[b]]
    lost = [(a, b) for a, b in disputed if speed[b] > speed[a]]
    a, b = max(lost, key=lambda pair: peaks[pair[0]] / peaks[pair[1]])
    numbers = (
        Number("GPUs of NVIDIA that hold it alone in 16 bit", str(len(plans)), "computed"),
        Number(
            "pairs of them in which one has more FLOPs, the other more bandwidth",
            str(len(disputed)),
            "computed",
        ),
        Number("of these, decoded faster by the one with more bandwidth", str(len(lost)), COMPUTED),
        *(
            Number(
                plans[i].chip,
                f"{peaks[i] / 1e12:.0f} TFLOPS, {widths[i] / 1e12:.2f} TB/s, {speed[i]:.0f} tokens/s",
                COMPUTED,
            )
            for i in (a, b)
        ),
    )
    because = (
        "A large chip usually has more of both, which is why the statement looks true. Where they disagree, bandwidth "
        "decides: one user's tokens wait for weights to be read. The two at the end are the widest such pair."
    )
    return Checked(
        "More TFLOPS means faster decoding.",
        judge_order(len(disputed) - len(lost), len(disputed)),
        because,
        numbers,
        f"chipwise explain {SMALL} --chip {plans[a].chip} --concurrency 1",
    )


def lone() -> Checked:
    """What twice the FLOPs would do for one request."""
    plain = _plan(SMALL, HOPPER, 1.0)
    chip = get_chip(HOPPER)
    peak = chip.peak("bf16") or 0.0
    doubled = _plan(SMALL, HOPPER, 1.0, set_=f"bf16={2 * peak / 1e12:.10g}TFLOPS")
    faster = _plan(SMALL, HOPPER, 1.0, set_=f"hbm={2 * (chip.memory.bytes_per_s or 0.0) / 1e12:.10g}TB/s")
    gain, width = plain.decode_s / doubled.decode_s - 1.0, plain.decode_s / faster.decode_s - 1.0
    numbers = (
        Number("a token of one request", f"{plain.decode_s * 1e3:.2f} ms", COMPUTED),
        Number("with twice the FLOPs", f"{doubled.decode_s * 1e3:.2f} ms ({gain:+.0%} tokens/s)", COMPUTED),
        Number(
            "with twice the bandwidth", f"{faster.decode_s * 1e3:.2f} ms ({width:+.0%} tokens/s)", COMPUTED
        ),
    )
    because = (
        "A single token multiplies each weight once and has to fetch it first. The matrix units wait, and more of "
        "them wait just as long."
    )
    return Checked(
        "Latency at batch 1 falls with TFLOPS.",
        judge_gain(gain, 1.0),
        because,
        numbers,
        f"chipwise explain {SMALL} --chip {HOPPER} --concurrency 1",
    )


def h200() -> Checked:
    """H200 against H100: sheets, predictions, published results."""
    old, new = get_chip(HOPPER), get_chip("h200-sxm-141gb")
    width = (new.memory.bytes_per_s or 0.0) / (old.memory.bytes_per_s or 1.0)
    peak = (new.peak("bf16") or 0.0) / (old.peak("bf16") or 1.0)
    gains = {}
    for name, load in LOADS.items():
        a, b = (_plan(LARGE, chip.id, load, tp=4) for chip in (old, new))
        gains[name] = b.tokens_per_s.mid / a.tokens_per_s.mid
    small = [EstimateRequest(model=LARGE, chip=c.id, tp=2, task="batch").run().plans[0] for c in (old, new)]
    full = small[1].tokens_per_s.mid / small[0].tokens_per_s.mid
    published = _published("llama2-70b", "Offline", "v4.1", old.id, new.id)
    numbers = (
        Number("memory bandwidth", times(width), cited(new, "memory_GBps")),
        Number("peak", times(peak), cited(new, "matrix_tflops.bf16")),
        *(Number(f"tokens/s on four chips, {name}", times(gain), COMPUTED) for name, gain in gains.items()),
        Number("tokens/s on two chips, as many requests as fit", times(full), COMPUTED),
        Number("MLPerf v4.1, llama2-70b Offline, best per chip", times(published), "MLCommons"),
    )
    because = (
        "Its FLOPs are the same and its bandwidth is 1.4 times, so that is what one gets where both hold the load. "
        "More is possible only where the H100 lacks the room for a batch, as with 70 B parameters on one or two chips."
    )
    return Checked(
        "An H200 is 1.9 times an H100 on Llama 70B.",
        judge_range([*gains.values(), full, published], 1.9),
        because,
        numbers,
        f"chipwise compare {LARGE} --chips {old.id},{new.id} --task batch",
    )


def reads() -> Checked:
    """Bandwidth over bytes of weights against what is predicted."""
    chip = get_chip(HOPPER)
    model = describe(SMALL)
    simple = (chip.memory.bytes_per_s or 0.0) / model.weight_bytes
    lone_user = _plan(SMALL, HOPPER, 1.0)
    real = 1.0 / lone_user.decode_s
    share = real / simple
    verdict: Verdict = (
        "true" if share >= 1.0 - NEAR else "true with a condition" if share >= 0.5 else "misleading"
    )
    numbers = (
        Number("bandwidth / weights", f"{simple:.0f} tokens/s", "computed"),
        Number("one request, predicted", f"{real:.0f} tokens/s, {share:.0%} of it", COMPUTED),
    )
    because = (
        "It is the bound that nothing beats without guessing tokens ahead. What is missing goes into the share of the "
        "bandwidth that kernels reach, their launches, the cache and the host."
    )
    return Checked(
        "Tokens per second are bandwidth divided by the size of the weights.",
        verdict,
        because,
        numbers,
        f"chipwise explain {SMALL} --chip {HOPPER} --concurrency 1",
    )


def eight() -> Checked:
    """What eight chips do for one user."""
    plans = {tp: _plan(SMALL, HOPPER, 1.0, tp=tp) for tp in (1, 2, 4, 8)}
    gains = {tp: plans[1].decode_s / plan.decode_s for tp, plan in plans.items()}
    numbers = tuple(
        Number(
            f"{tp} chips" if tp > 1 else "1 chip",
            f"{1e3 * plan.decode_s:.2f} ms a token, {times(gains[tp])}, bound by {plan.bound}",
            COMPUTED,
        )
        for tp, plan in plans.items()
    )
    because = (
        "Each chip reads an eighth of the weights, but launches as many kernels, and two exchanges per layer are "
        "added. What does not shrink is soon all that is left."
    )
    return Checked(
        "Eight GPUs answer one user eight times faster.",
        judge_gain(gains[8] - 1.0, 7.0),
        because,
        numbers,
        f"chipwise explain {SMALL} --chip {HOPPER} --tp 8 --concurrency 1",
    )


def bits() -> Checked:
    """Weights of 4 bits on a card at a desk."""
    chip = "rtx-4090"
    gains = []
    numbers = []
    for runtime, precision, load in (
        ("llama.cpp", "q4_k_m", 1.0),
        ("vllm", "int4", 1.0),
        ("vllm", "int4", 16.0),
    ):
        formats = (None, precision)
        sizes = [format_bytes(describe(SMALL, p).weight_bytes) for p in formats]
        wide, narrow = (
            _plan(SMALL, chip, load, precision=p, runtime=runtime, out="100", in_="500") for p in formats
        )
        gains.append(wide.decode_s / narrow.decode_s)
        numbers.append(
            Number(
                f"{runtime}, {precision}, {load:.0f} in flight: {' to '.join(sizes)}, a pass",
                f"{wide.decode_s * 1e3:.1f} to {narrow.decode_s * 1e3:.1f} ms: {times(gains[-1])}",
                COMPUTED,
            )
        )
    because = (
        "Weights of 4 bits, their scales included, are about a third of 16-bit ones with tables that stay wide, and "
        "products are still done in 16 bit. The gain is in reading; prompts, which are products, gain nothing."
    )
    return Checked(
        "4-bit weights make a model four times as fast.",
        judge_range(gains, 4.0),
        because,
        tuple(numbers),
        f"chipwise explain {SMALL} --chip {chip} --concurrency 1 --runtime llama.cpp --precision q4_k_m",
    )


def _alone(model: str) -> list[PlanRecord]:
    """One request on each NVIDIA GPU that holds the model in 16 bit."""
    plans = []
    for chip in load_chips().values():
        if chip.vendor == "nvidia" and chip.kind == "gpu" and _peak(chip.id):
            with contextlib.suppress(ChipwiseError):
                plans.append(_plan(model, chip.id, 1.0))
    return [p for p in plans if p.precision == "bf16" and p.chips == 1]


def _peak(chip: str) -> float:
    """16-bit operations per second, 0 where none are published."""
    found = get_chip(chip)
    return found.peak("bf16") or found.peak("fp16") or 0.0


def _published(benchmark: str, scenario: str, round_: str, old: str, new: str) -> float:
    """Ratio of the best published tokens per second and chip."""
    best = {
        chip: max(
            r.per_chip
            for r in load_inference_results().values()
            if (r.benchmark, r.scenario, r.round, r.chip) == (benchmark, scenario, round_, chip)
            and r.per_chip is not None
        )
        for chip in (old, new)
    }
    return best[new] / best[old]


SPEEDS = (fp8, order, lone, h200, reads, eight, bits)
