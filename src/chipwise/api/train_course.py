"""What a training run is besides its best layout, as it is asked about and as it comes out: phases, checkpoints,
failures, spare hosts, evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from chipwise.api.requests.field import whole
from chipwise.api.train_input import Ask
from chipwise.api.train_job import Site
from chipwise.catalog.failures import failing_fleet
from chipwise.errors import UnknownNameError, UsageError, check_known
from chipwise.predict.training.course import CheckpointStore, Failures, Phase, course_of, progress_ends, spares_for
from chipwise.predict.training.course import CourseSite as Place
from chipwise.predict.training.memory import state_bytes, trained_type
from chipwise.report.train_assemble import Running
from chipwise.search.training import Point, TrainJob, best, point, search
from chipwise.units import parse_quantity
from chipwise.values import dataclass

HOURS = 3600.0
# Names of the option: field, seconds of its unit.
FAILURES = {
    "mtbf": ("chip_mtbf_h", HOURS),
    "save": ("save_s", 1.0),
    "block": ("block_s", 1.0),
    "restart": ("restart_s", 1.0),
    "start": ("start_s", 1.0),
    "repair": ("repair_h", HOURS),
    "preempt": ("preempt_h", HOURS),
    "wait": ("wait_s", 1.0),
}
STORAGE = {
    "write": ("host_bytes_per_s", "B/s"),
    "most": ("most_bytes_per_s", "B/s"),
    "price": ("usd_per_gb_month", ""),
    "token": ("token_bytes", "B"),
}
PHASES = ("ramp", "context")
EVALUATION = ("every", "tokens")
SPOT_H = 240.0  # between pre-emptions of a host that is rented on the spot, where nobody says (assumed)
EVALUATED = 1.0 / 3.0  # of the work of a token that is trained: the forward pass
HOST = 8  # chips of a host whose system nobody knows


@dataclass(frozen=True)
class Wanted:
    """What is asked of a run besides its layout: `evaluate` are steps between evaluations and their tokens."""

    failures: Failures = field(default_factory=Failures)
    store: CheckpointStore = field(default_factory=CheckpointStore)
    phases: tuple[Phase, ...] = ()
    evaluate: tuple[float, float] | None = None

    def on(self, price: str) -> Wanted:
        """The same where hosts are rented on the `spot`: pre-empted, as often as is said or usual."""
        if price != "spot" or math.isfinite(self.failures.preempt_h):
            return self
        return replace(self, failures=replace(self.failures, preempt_h=SPOT_H))

    def check(self, ask: Ask) -> None:
        """Raises `UsageError` for phases of more tokens than the run has, a ramp whose steps would shrink, and a
        last stage whose sequences would."""
        if sum(p.tokens for p in self.phases) > ask.tokens:
            raise UsageError("phases have more tokens than the run", "a larger --tokens, or smaller phases")
        for phase in self.phases:
            ramp = phase.name == "ramp"
            given, main = (phase.global_batch, ask.batch) if ramp else (phase.seq, ask.seq)
            if ramp and given >= main:
                raise UsageError(
                    f"phases: a ramp from {given:,} sequences a step does not grow to the {main:,} of the run",
                    f"begin with fewer, as in ramp={phase.tokens:g}:{max(main // 4, 1)}, or a larger --global-batch",
                )
            if not ramp and given <= main:
                raise UsageError(
                    f"phases: sequences of {given:,} tokens are not longer than the {main:,} of the run",
                    f"a longer stage, as in context={phase.tokens:g}:{4 * main}, or a shorter --seq",
                )

    def told(self) -> tuple[str, ...]:
        """What was assumed or asked for, in words."""
        f = self.failures
        repair = "another host takes its place at once"
        if f.repair_h:
            repair = f"its host is back after {f.repair_h:g} h, {f.spares} stand by"
            if f.scatter > 1.0:
                repair += f", failures bunch (variance {f.scatter:g} x the mean of {f.among:,} hosts)"
        lost = f"a chip fails every {f.chip_mtbf_h:,.0f} h, {repair}"
        if math.isfinite(f.preempt_h):
            lost += f"; a host is pre-empted every {f.preempt_h:g} h, another comes {f.wait_s:g} s later"
        s = self.store
        kept = f"{s.kept} checkpoints are kept, each host writes {s.host_bytes_per_s / 1e9:g} GB/s"
        return lost, f"{kept} (--storage), at ${s.usd_per_gb_month:g} per GB and month"


def failures_of(given: Mapping[str, str]) -> Failures:
    """`mtbf=50000h,spares=2,repair=24h`, or `like=stepfun,spares=20`. Raises `UsageError`, `UnknownNameError`."""
    names = (*FAILURES, "spares", "like")
    found: dict[str, Any] = {}
    if "like" in given:
        fleet = failing_fleet(given["like"].strip())
        found = {"chip_mtbf_h": fleet.chip_mtbf_h, "repair_h": fleet.repair_h}
        found |= {"scatter": fleet.scatter, "among": fleet.servers}
    check_known("figure of failures", given, names)
    for name, text in given.items():
        if name in ("spares", "like"):
            continue
        own, unit = FAILURES[name]
        if text.strip(" 0.") and text.strip().replace(".", "").isdigit():
            raise UsageError(
                f"failures: {name}={text.strip()} has no unit", f"{name}={text.strip()}h or {name}={text.strip()}s"
            )
        least = 0.0 if name in ("start", "repair", "wait") else 1e-3
        found[own] = parse_quantity(text, "s", name, low=least, high=1e12) / unit
    spares = whole(given["spares"], "spares", low=0, high=100_000) if "spares" in given else 0
    if spares and not found.get("repair_h"):
        raise UsageError("spare hosts replace those that are being repaired", "say how long, as in spares=2,repair=24h")
    return Failures(**found, spares=spares)


def store_of(given: Mapping[str, str]) -> CheckpointStore:
    """`write=2GB/s,keep=3,price=0.023`. Raises `UsageError`, `UnknownNameError`."""
    names = (*STORAGE, "keep")
    found: dict[str, Any] = {}
    check_known("figure of storage", given, names)
    for name, text in given.items():
        if name != "keep":
            own, unit = STORAGE[name]
            least = 0.0 if name in ("price", "token") else 1.0
            found[own] = parse_quantity(text, unit, name, low=least, high=1e18)
        else:
            found["kept"] = whole(text, name, low=1, high=1_000_000)
    return replace(CheckpointStore(), **found)


def phases_of(given: Mapping[str, str]) -> tuple[Phase, ...]:
    """`ramp=50B:256,context=100B:131072`: the first tokens, from steps of 256 sequences on; the last, in sequences of
    131,072 tokens. Raises `UsageError`, `UnknownNameError`."""
    found = []
    check_known("phase", given, PHASES)
    for name, text in given.items():
        size, colon, number = text.partition(":")
        if not colon:
            what = "sequences of its first step" if name == "ramp" else "tokens of a sequence"
            raise UsageError(f"{name}: '{text[:40]}' has no {what}", f"as in {name}=50B:256")
        tokens = parse_quantity(size, "", name, low=1.0, high=1e17)
        count = round(parse_quantity(number, "", name, low=1.0, high=1e7))
        found.append(Phase(name, tokens, count if name == "ramp" else 0, 0 if name == "ramp" else count))
    return tuple(sorted(found, key=lambda p: PHASES.index(p.name)))


def evaluation_of(given: Mapping[str, str]) -> tuple[float, float] | None:
    """`every=1000,tokens=10M`: (steps between evaluations, tokens of each). Raises `UsageError`, `UnknownNameError`."""
    if not given:
        return None
    for name in given:
        if name not in EVALUATION:
            raise UnknownNameError("figure of evaluation", name, EVALUATION, f"{' and '.join(EVALUATION)}")
    if set(given) != set(EVALUATION):
        raise UsageError("evaluation takes steps between and tokens", "as in every=1000,tokens=10M")
    every, tokens = (parse_quantity(given[n], "", n, low=1.0, high=1e15) for n in EVALUATION)
    return every, tokens


def running_of(site: Site, job: TrainJob, at: Point, ask: Ask, wanted: Wanted, count: int) -> Running | None:
    """A run of this best layout; None where a phase has no layout on so many chips."""
    phases = []
    left = ask.tokens - sum(p.tokens for p in wanted.phases)
    for phase in (*wanted.phases, Phase("main", left, job.global_batch, job.seq)):
        found = _timed(site, job, at, phase)
        if found is None:
            return None
        phases.append(found)
    order = ("ramp", "main", "context")
    phases.sort(key=lambda p: order.index(p[0].name))
    phases = [p for p in phases if p[0].tokens > 0]
    evaluation = 0.0
    if wanted.evaluate is not None:
        every, tokens = wanted.evaluate
        evaluation = tokens * EVALUATED / (every * job.global_batch * job.seq)
    each = site.system.chips_per_host if site.system else HOST
    hosts = math.ceil(count / each)
    total, own = _kept_bytes(job, at)
    place = Place(count, hosts, total, own, float(job.cluster.host_bytes_per_s), site.trainer.compile_s, evaluation)
    f = wanted.failures
    course = course_of(f, wanted.store, place)
    run = Running(course, phases, total, wanted.store, f.spares, spares_for(place, f), evaluation)
    return replace(run, ends=progress_ends(course, f, place, run.days))


def _timed(site: Site, job: TrainJob, at: Point, phase: Phase) -> tuple[Phase, Point, float] | None:
    """A phase with its layout and tokens per second: a ramp keeps the layout, with as many micro-batches as its steps
    have, at least one of every rank; longer sequences get a layout of their own, at as many tokens per step."""
    if phase.name == "main":
        return phase, at, at.tokens_per_s
    if phase.name == "ramp":
        s = at.spread
        unit = float(s.dp) * float(s.micro_batch)
        steps = np.array(phase.batches(job.global_batch))
        taken = np.maximum(np.ceil(steps / unit), 1.0) * unit
        seconds = [float(job.step(replace(s, global_batch=b)).total_s) for b in taken]
        rate = len(steps) / sum(t / (b * job.seq) for t, b in zip(seconds, steps, strict=True))
        return replace(phase, seq=job.seq), at, rate
    batch = max(round(job.global_batch * job.seq / phase.seq), 1)
    batch = 2 ** round(math.log2(batch))
    longer = replace(job, seq=phase.seq, global_batch=batch)
    priced = search(longer, at.devices, site.pinned({}, recompute=False))
    chosen = best(longer, priced)
    if not len(chosen):
        return None
    found = point(longer, priced, int(chosen[0]))
    return replace(phase, global_batch=batch), found, found.tokens_per_s


def _kept_bytes(job: TrainJob, at: Point) -> tuple[float, float]:
    """Bytes of a checkpoint, and what one device copies to its host of it: weights in 16 bit, master copy and moments;
    of adapters theirs alone."""
    t, recipe, params = job.network, job.recipe, float(job.network.params)
    if job.adapter:
        total = float(trained_type(recipe) + recipe.moments) * job.adapter * params
        return total, total / at.devices
    each = 2.0 + float(recipe.master) + float(recipe.moments)
    # a rank copies what it alone keeps: at least its share, at most its whole state
    weights, _, optimiser, _ = state_bytes(t, at.spread, recipe)
    total = each * params
    return total, min(max(total / at.devices, float(np.asarray(optimiser))), float(np.asarray(weights + optimiser)))
