"""launch, replay, diff, simulate: what one can ask of an answer that was kept, wherever it was kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, cast

from chipwise.api.launching import started, usual_tool
from chipwise.api.requests.command import about
from chipwise.api.requests.field import OBJECT, WORDS, Asked, Reading, ask
from chipwise.api.requests.planning import PlanRequest
from chipwise.api.requests.simulate import DeployedSimulation
from chipwise.api.saving import differing, kept_of, open_saved, replayed, request_of, saved_of
from chipwise.catalog.snapshot import own_exists
from chipwise.errors import UsageError
from chipwise.report.diff import DiffReport, ReplayReport
from chipwise.report.launch.spec import LaunchReport
from chipwise.report.saved import Saved
from chipwise.report.simulated import SimulationReport
from chipwise.values import dataclass

MOST_CHARS = 4_000_000
"""Characters of a record that is given as text."""


def _record(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _short_enough(text: str, option: str) -> str:
    if len(text) > MOST_CHARS:
        raise UsageError(f"{option}: {len(text):,} characters are no record", f"at most {MOST_CHARS:,}")
    return text


RECORD = Reading(_short_enough, _record, (OBJECT,), names=False)
"""The JSON of an answer that was kept."""
SAVED = "the JSON of an answer: what --save or --format json wrote, a page exported, or HTTP answered"


@dataclass(frozen=True, kw_only=True)
class LaunchRequest(Asked):
    """The files that start a plan of an answer with a tool, and the benchmark that verifies its estimate."""

    saved: str = ask(SAVED, MISSING, reading=RECORD)
    for_: str = ask(
        "the tool, e.g. vllm, llama.cpp, megatron, trl, skypilot, kubernetes or terraform; an unknown one is "
        "answered with all; default: that of the plan's software",
        "",
        name="for",
        reading=WORDS,
    )
    plan: int = ask("which plan of the answer, by its number", 1)

    def run(self) -> LaunchReport:
        """The files. Raises `UsageError` for text that is no answer with such a plan, or a tool that cannot start
        it."""
        saved = saved_of(self.saved, "saved")
        target = self.for_ or usual_tool(saved, self.plan)
        files, plan, words = started(saved, target, self.plan)
        return LaunchReport(target, plan, files, words)


@dataclass(frozen=True, kw_only=True)
class ReplayRequest(Asked):
    """Ask the question of a kept answer again of what is installed: the same to nine digits, or what differs."""

    saved: str = ask(SAVED, MISSING, reading=RECORD)

    def run(self) -> ReplayReport:
        """The comparison. Raises `UsageError` for text that is no answer, and the errors of its verb."""
        return replayed(kept_of(self.saved, "saved"), "saved")


@dataclass(frozen=True, kw_only=True)
class DiffRequest(Asked):
    """What changed between two answers of one verb and why: the question, or what was installed."""

    before: str = ask(SAVED, MISSING, reading=RECORD)
    after: str = ask("the other one", MISSING, reading=RECORD)

    def run(self) -> DiffReport:
        """The changes by cause. Raises `UsageError` for texts that are no answers of one verb."""
        return differing(kept_of(self.before, "before"), kept_of(self.after, "after"), "before", "after")


@dataclass(frozen=True, kw_only=True)
class SimulateRequest(DeployedSimulation):
    """A deployment request by request: recorded arrivals, a rate, or all at once; percentiles with their interval."""

    def run(self) -> SimulationReport:
        """What becomes of the requests. Raises the errors of `api.estimate` and `api.simulating.simulate`."""
        return DeployedSimulation.run(self.resolved())

    def _plan(self, saved: Saved) -> Mapping[str, Any]:
        """The plan of a saved answer that is asked about. Raises `UsageError` where it holds no such one."""
        listed = [p for p in saved.report.get("plans") or () if _deployed(p)]
        plans = {p.get("rank") or i: p for i, p in enumerate(listed, 1)}
        if not plans:
            what = f"{self.model} answers {saved.verb}, which holds no plan of a deployment"
            hint = "save a plan: chipwise plan MODEL --rate 10/s --save plan.json"
            raise UsageError(what, hint, field="model")
        if self.plan not in plans:
            raise UsageError(f"--plan {self.plan}: no such plan", f"1 to {len(plans)}", field="plan")
        found: Mapping[str, Any] = plans[self.plan]
        return found

    def resolved(self) -> SimulateRequest:
        """The same about a plan of the answer that `model` is the file of, under its options and, where nothing else is
        said, its rate. Raises `UsageError` where it is no such file, or holds no such plan."""
        if self.chip is not None:
            return self
        if not self.model.endswith(".json") or not own_exists(Path(self.model)):
            hint = "for example --chip h100, or the file of a saved plan"
            raise UsageError("simulate needs a chip", hint, field="chip")
        saved = open_saved(self.model)
        plan = self._plan(saved)
        question = request_of(saved.verb, saved.request)
        said = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        # the number of the plan has done its work
        own: dict[str, Any] = {name: value for name, value in said.items() if name not in ("model", "plan")}
        deployed: dict[str, Any] = {"harness": None}
        if isinstance(question, PlanRequest):
            if "latency_s" in plan:
                deployed |= question.deployed_network(plan)
            else:
                deployed |= question.deployed(plan)
                deployed |= {"concurrency": None, "replicas": plan["replicas"] - plan["spare"]}
        driven = {"rate", "concurrency", "log", "requests"} & set(own)
        load = {"rate": None, "concurrency": None} if driven else {}
        lengths = {"cv": None} if "log" in own else {}
        return about(cast(Asked, question), SimulateRequest, **{**deployed, **load, **lengths, **own})


def _deployed(plan: Mapping[str, Any]) -> bool:
    """Whether a plan of a saved answer says how a model is run, and not how one is trained."""
    return {"tpot_s", "layout"} <= plan.keys() or {"latency_s", "samples_per_s"} <= plan.keys()
