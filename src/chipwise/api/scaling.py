"""Replicas that follow the load: how long one takes to start, and the cheapest policy under which targets hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import ceil

import numpy as np

from chipwise.api.estimating import AskedLoad
from chipwise.catalog.chip import Chip
from chipwise.errors import UsageError
from chipwise.predict.events.engine import Outcome
from chipwise.predict.events.scaling import Scaling, ScalingGiven
from chipwise.predict.training.course import CheckpointStore
from chipwise.values import dataclass

BOOT_S = 120.0
"""seconds: until a new replica serves, besides the reading of its weights: container, processes, compiler, graphs.
Source: logs of vLLM, issues 11005 (39 s, 8B on one GPU), 19824 (205 s, 70B on eight) and 44881 (259 s, 35B on one)."""
FLOORS = 2
"""count: of floors that hold, those compared. Chosen: a higher floor may start fewer replicas; moves search time."""
WHOLE = 8
"""count: policies that the whole of a log is run with at most. Chosen: each takes as long as the log; moves the time of
a search."""
TARGETS = (1, 2, 4, 8, 16, 32, 64, 128)
"""count: requests in flight per replica that policies are tried with, besides those of formulas."""
STEADIEST = float(TARGETS[0])
"""count: the fewest of them, under which the most replicas run."""
STARTS_S = (300.0, 120.0, 60.0, 30.0, 15.0, 5.0)
"""seconds: that starts are tried with where no policy holds at that of the deployment. Chosen: steps of about two;
moves what is said of the least change."""


def start_up_s(weight_bytes: float, chip: Chip, chips: float, hosts: int) -> float:
    """Seconds until a new replica serves: its weights come from the store of its hosts and over the links of its chips,
    where these are known, the slower of both; the rest is the software's."""
    read = hosts * CheckpointStore().host_bytes_per_s
    link = chip.host.bytes_per_s * chips if chip.host and chip.host.bytes_per_s else read
    return BOOT_S + weight_bytes / min(read, link)


def ready_s(one: AskedLoad) -> float:
    """Seconds until a new replica of a deployment serves."""
    d, weights = one.deployment, one.context.found.graph.weight_bytes
    chips = float(np.asarray(one.layout.devices)) / d.chip.devices_per_package
    return start_up_s(weights, d.chip, chips, ceil(chips / (d.system.chips_per_host if d.system else chips)))


def policy(given: ScalingGiven, start_s: float, target: float, least: int, most: int) -> Scaling:
    """A policy for replicas that take `start_s` to start where nothing is said of it."""
    start_s = start_s if given.start_s is None else given.start_s
    return Scaling(target, most, start_s, least, given.every_s, given.hold_s)


def said_policy(given: ScalingGiven | None, start_s: float, most: int, more: str) -> Scaling | None:
    """The policy of a deployment of `most` replicas at most, which take `start_s` to start; None where nothing is said;
    `more` says how there are more. Raises `UsageError` for a policy that cannot be."""
    if given is None:
        return None
    if given.target is None:
        hint = "as in --scale target=8,least=2; plan --log finds the cheapest that holds the targets"
        raise UsageError("--scale names no target", hint, field="scale")
    least = given.least or 1
    if not least <= most > 1:
        what = f"--scale: {most} replica{'s' * (most > 1)} cannot follow the load from {least} on"
        raise UsageError(what, f"{more} is how many there are at most", field="scale")
    return policy(given, start_s, given.target, least, most)


@dataclass(frozen=True)
class TriedPolicy:
    """A policy, whether the targets hold under it, and what became of the requests."""

    scaling: Scaling
    holds: bool
    outcome: Outcome


def cheapest_policy(
    policy_of: Callable[[float, int], Scaling],
    given: ScalingGiven,
    replicas: int,
    closed: float,
    peak: Callable[[Scaling], bool],
    whole: Callable[[Scaling], tuple[bool, Outcome]],
) -> tuple[TriedPolicy | None, TriedPolicy]:
    """The cheapest policy of at most so many replicas with which the targets hold, None where all have to run
    throughout, and that of formulas: `closed` requests in flight for each. That is tried first, and found where nothing
    is cheaper; then of the lowest floors that hold with the `peak` of a log, each with the highest target, the first
    two that hold over the `whole` of it. `policy_of` is that of a target and a floor."""

    def tried(target: float, least: int) -> TriedPolicy:
        scaling = policy_of(target, least)
        return TriedPolicy(scaling, *whole(scaling))

    ruled = tried(closed if given.target is None else given.target, given.least or 1)
    held = [ruled] if ruled.holds else []
    floors, targets = _floors(given, replicas, closed, lambda *both: peak(policy_of(*both)))
    first, runs = 0, 0
    for least in floors:
        last = len(targets) - 1
        while first < last:
            middle = (first + last + 1) // 2
            first, last = (middle, last) if peak(policy_of(targets[middle], least)) else (first, middle - 1)
        for target in targets[first::-1]:
            found = tried(target, least)
            runs += 1
            if found.holds:
                held.append(found)
                break
        if len(held) >= FLOORS + ruled.holds or runs >= WHOLE:
            break
    return min(held, key=lambda one: one.outcome.paid_s, default=None), ruled


def longest_start(start_s: float, holds: Callable[[float], bool]) -> float | None:
    """The longest of some times to start, shorter than this one, with which replicas may follow the load; None where
    none does."""
    return next((s for s in STARTS_S if s < start_s and holds(s)), None)


def _floors(
    given: ScalingGiven, replicas: int, closed: float, holds: Callable[[float, int], bool]
) -> tuple[Iterable[int], Sequence[float]]:
    """Floors from the lowest that holds with the lowest target, and all targets."""
    targets = sorted({*map(float, TARGETS), closed}) if given.target is None else [given.target]
    floors = range(1, replicas) if given.least is None else range(given.least, given.least + 1)
    low, high = floors.start, floors.stop
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(targets[0], middle) else (middle + 1, high)
    return range(low, floors.stop), targets
