"""Layouts of a training run worth trying, as columns: degrees, pipeline schedule, sharding, recomputation, offload."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from chipwise.predict.training.values import Cluster, Transformer

__all__ = ["COLUMNS", "RECOMPUTE", "SCHEDULES", "Schedule", "layout_rows", "powers", "recomputed"]

Row = tuple[float, ...]
COLUMNS = (
    "tp", "pp", "vp", "bubble", "in_flight", "cp", "gather", "ep", "dp", "micro_batch", "zero", "shard", "offload",
    "full", "selective",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Schedule:
    """A pipeline schedule: the share of the 1F1B bubble it leaves, the micro-batches that wait (of p; 0: all), and
    its virtual stages (0: any above 1)."""

    name: str
    bubble: float
    in_flight: float
    virtual: int


# GPipe (Huang et al., 2019); 1F1B and interleaved (Narayanan et al., 2021): the bubble divided by v is in the step
# time; zero-bubble H1 and V-shaped ZB-V (Qi et al., 2024): weight gradients fill a third and nine tenths of it.
SCHEDULES: Mapping[str, Schedule] = {
    s.name: s
    for s in (
        Schedule("1f1b", 1.0, 1.0, 1),
        Schedule("interleaved", 1.0, 1.0, 0),
        Schedule("gpipe", 1.0, 0.0, 1),
        Schedule("zero-bubble", 1.0 / 3.0, 1.0, 1),
        Schedule("zb-v", 0.2, 1.0, 2),
    )
}

# (share of layers recomputed whole, attention cores, norms and activation functions recomputed)
RECOMPUTE: Mapping[str, tuple[float, float]] = {
    "none": (0.0, 0.0),
    "selective": (0.0, 1.0),
    "quarter": (0.25, 0.0),
    "half": (0.5, 0.0),
    "three-quarters": (0.75, 0.0),
    "full": (1.0, 0.0),
}
VIRTUAL = 16  # virtual stages of one stage that are tried, at most
RING_FROM = 16384  # tokens of a sequence from which context parallelism is tried


def layout_rows(
    t: Transformer,
    c: Cluster,
    devices: int,
    batch: int,
    seq: int,
    pins: Mapping[str, int | str],
) -> Iterator[Row]:
    """Rows of `COLUMNS`, legal or not.

    tp up to the domain (64 at most), dividing the heads; stages that divide the rest, every schedule with virtual
    stages that leave the slowest stage no more layers than it has without; context parallelism from 16 k tokens on,
    round a ring or gathered; experts over all or some ranks of a stage; ZeRO-1, in a single stage also ZeRO-2 (where a
    step is one micro-batch: more would sum cut gradients in each) and FSDP over all ranks or over those of a domain;
    micro-batches of up to 64 sequences; the optimiser on the device or in host memory; recomputation of nothing, of
    cores, norms and activation functions, of a quarter, half or three quarters of the layers, of all.
    """
    domain = int(min(float(c.domain), 64.0))
    heads = float(t.heads)
    usual = set(powers(domain))
    wide = [d for d in _divisors(devices, domain) if d in usual or heads % d == 0]

    def options(name: str, usual: list[int]) -> list[int]:
        return [int(pins[name])] if name in pins else usual

    experts = int(float(t.experts)) if float(t.moe_share) else 1
    contexts = [1] if seq < RING_FROM else [1, 2, 4, 8, 16, 32]
    again = [recomputed(str(pins["recompute"]))] if "recompute" in pins else list(RECOMPUTE.values())
    for tp in options("tp", wide):
        rest = devices // tp if devices % tp == 0 else 1
        for pp in options("pp", _divisors(rest, int(float(t.layers)))):
            for cp in options("cp", contexts):
                dp, over = divmod(devices, tp * pp * cp)
                if over or int(pins.get("dp", dp)) != dp:
                    continue
                whole = max(batch // dp, 1)
                eps = options("ep", [e for e in _divisors(experts, experts) if (tp * cp * dp) % e == 0])
                cuts = _cuts(dp * cp, max(domain // tp, 1), pp, pins)
                gathers = [0.0, 1.0] if cp > 1 else [0.0]
                micros = options("micro_batch", _divisors(whole, 64) if batch % dp == 0 else [1])
                homes = [float(int(pins["offload"]))] if "offload" in pins else [0.0, 1.0]
                for (vp, bubble, held), gather, ep, micro, (zero, shard), home, (
                    full,
                    core,
                ) in itertools.product(_pipelines(t, pp, pins), gathers, eps, micros, cuts, homes, again):
                    if zero == 2.0 and batch != dp * micro and "zero" not in pins:
                        continue
                    yield (
                        tp, pp, vp, bubble, held, cp, gather, ep, dp, micro, zero, shard, home, full, core,
                    )  # fmt: skip


def _pipelines(t: Transformer, pp: int, pins: Mapping[str, int | str]) -> list[tuple[float, float, float]]:
    """(virtual stages, bubble, in flight) of every schedule; one stage has none."""
    if pp == 1:
        return [] if int(pins.get("vp", 1)) > 1 or "schedule" in pins else [(1.0, 1.0, 1.0)]
    layers = int(float(t.layers))
    most = -(-layers // pp)
    even = [v for v in range(2, min(most, VIRTUAL) + 1) if -(-layers // (pp * v)) * v == most]
    found = []
    for s in SCHEDULES.values():
        if pins.get("schedule", s.name) != s.name:
            continue
        chunks = [s.virtual] if s.virtual else even
        if "vp" in pins:
            fixed = int(pins["vp"])
            chunks = [fixed] if fixed == s.virtual or (not s.virtual and fixed > 1) else []
        found += [(float(v), s.bubble, s.in_flight) for v in chunks]
    return found


def _cuts(ranks: int, near: int, stages: int, pins: Mapping[str, int | str]) -> list[tuple[float, float]]:
    """(ZeRO stage, ranks that it cuts over) of so many copies, of which `near` share a domain."""
    zero = int(pins["zero"]) if "zero" in pins else None
    if ranks == 1:
        return [] if zero else [(0.0, 1.0)]
    usual = [1, 2, 3] if stages == 1 else [1]
    kinds = usual if zero is None else [zero]
    cuts = []
    for kind in kinds:
        spans = [ranks] if kind else [1]
        if kind == 3 and 1 < near < ranks and ranks % near == 0:
            spans.append(near)
        if kind and "shard" in pins:
            spans = [int(pins["shard"])] if ranks % int(pins["shard"]) == 0 else []
        cuts += [(float(kind), float(span)) for span in spans]
    return cuts


def recomputed(text: str) -> tuple[float, float]:
    """The pair of `RECOMPUTE` by name, or of a share of the layers, as in `30%`. Raises `ValueError`."""
    if text in RECOMPUTE:
        return RECOMPUTE[text]
    share = float(text.removesuffix("%")) * (0.01 if text.endswith("%") else 1.0)
    if not 0.0 <= share <= 1.0:
        raise ValueError(text)
    return share, 0.0


def powers(most: int) -> list[int]:
    """Powers of two up to `most`."""
    return [2**i for i in range(max(most, 1).bit_length()) if 2**i <= most]


def _divisors(number: int, most: int) -> list[int]:
    return [d for d in range(1, min(number, most) + 1) if number % d == 0]
