"""What a target is told of a plan: facts by name, and the rows of `launch_commands.toml` filled in with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from chipwise.catalog.tools import command_rows
from chipwise.catalog.trainer import KERNELS, learning_of
from chipwise.report.launch.command import Command, Env
from chipwise.report.launch.spec import ServeSpec, TrainSpec

Facts = Mapping[str, Any]
WHOLE = re.compile(r"\{(\w+)\}")
ASKED = re.compile(r"(!?)(\w+)(?:(!=|=|>)(.+))?")
PORT = 29500  # of the first host, where ranks meet
MEASURED = 30  # steps of the run that verifies a prediction


def facts_of(spec: ServeSpec | TrainSpec) -> dict[str, Any]:
    """The fields of a plan and of its machine, of a run those of its network too; what any target is told of hosts."""
    parts = (spec, spec.machine, spec.network) if isinstance(spec, TrainSpec) else (spec, spec.machine)
    found = {f.name: getattr(part, f.name) for part in parts for f in fields(part)}
    return found | {
        "hosts": spec.machine.hosts,
        "devices_of_host": spec.machine.devices_of_host,
        "several": spec.machine.hosts > 1,
        "single": spec.machine.devices == 1,
        "rank_of_host": Env("NODE_RANK"),
        "head": Env("HEAD_ADDRESS"),
        "head_29500": Env("HEAD_ADDRESS", then=f":{PORT}"),
        "head_20000": Env("HEAD_ADDRESS", then=":20000"),
    }


def run_facts(spec: TrainSpec, steps: int) -> dict[str, Any]:
    """The same of a training run of so many `steps`: `measuring` is the short one; `again`: layers run again in the
    backward pass; `passes` of a micro-batch make a step; `adapters` are trained or all weights. It learns at `rate`
    after `warm` steps and lowers that by a `decay` to `least` of it, `least_rate`. `examples` of a micro-batch, and of
    a step, may be `pairs`; `masked` tokens are learned."""
    learned = learning_of(spec.tuned, spec.network.active, spec.objective)
    return facts_of(spec) | {
        "rate": learned.rate,
        "warm": learned.warm(steps) if steps else 0,
        "warm_share": learned.warm(steps) / steps if steps else 0.0,
        "decay": learned.decay,
        "least": learned.least,
        "least_rate": float(f"{learned.rate * learned.least:.6g}"),
        "steps": steps,
        "measuring": steps <= MEASURED,
        "again": bool(spec.recomputed or spec.selective),
        "passes": max(spec.global_batch // (spec.dp * spec.micro_batch), 1),
        "examples": spec.examples,
        "examples_of_step": spec.global_batch // spec.together,
        "pairs": spec.together > 1,
        "masked": spec.objective == "masked",
        "adapters": spec.tuned in ("lora", "qlora"),
        "alpha": 2 * spec.rank,
        "data": Env("DATA_PATH", "the examples"),
        "output": Env("OUTPUT", "where checkpoints go"),
    }


def told(command: Command, facts: Facts, table: str = "", part: str = "options") -> Command:
    """The command with the options of a table, its tool's own by default. Raises `KeyError` for an option that is not
    documented, and for a fact that nobody gave."""
    table = table or command.tool.id
    joined = bool(command_rows()[table].get("joined"))
    for name, value in _said(table, part, facts):
        values = () if value == "" else value if isinstance(value, tuple) else (value,)
        command = command.setting(name, value) if joined and values else command.option(name, *values)
    return command


def document(table: str, facts: Facts, part: str = "file") -> dict[str, Any]:
    """The document that a table describes, an option with dots being a place in it."""
    found: dict[str, Any] = {}
    for path, value in _said(table, part, facts):
        *outer, last = path.split(".")
        place = found
        for name in outer:
            place = place.setdefault(name, {})
        place[last] = value
    return found


def unsaid(spec: TrainSpec, table: str) -> tuple[str, ...]:
    """Kernels that a plan fixes by name, and that no row of a table tells its tool."""
    rows = (row for part, rows in command_rows().get(table, {}).items() if part != "joined" for row in rows)
    asked = {word for row in rows for word in (*row, "", "")[2].split()}
    fixed = {setting: getattr(spec, f"{setting}_by") for setting in KERNELS}
    return tuple(
        f"{setting}={name}"
        for setting, name in fixed.items()
        if name and f"{setting}_by={name}" not in asked and not any(f"{setting}_by!=" in w for w in asked)
    )


def _said(table: str, part: str, facts: Facts) -> Iterator[tuple[str, Any]]:
    for name, *more in command_rows()[table][part]:
        value, when = (*more, "", "")[:2]
        if all(_holds(asked, facts) for asked in when.split()):
            yield name, _filled(value, facts)


def _holds(asked: str, facts: Facts) -> bool:
    """Whether a condition holds: a fact is so, is not ("!tied"), is a text ("loss=fused") or above a number."""
    found = ASKED.fullmatch(asked)
    if found is None:
        raise KeyError(f"{asked} is no condition")
    negated, name, how, other = found.groups()
    fact = facts[name]
    so = fact > float(other) if how == ">" else str(fact) == other if how else bool(fact)
    return so is not (bool(negated) or how == "!=")


def _filled(value: Any, facts: Facts) -> Any:
    """A value with facts in place of their names."""
    if isinstance(value, dict):
        return {name: _filled(inner, facts) for name, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, facts) for inner in value]
    if not isinstance(value, str):
        return value
    whole = WHOLE.fullmatch(value)
    return facts[whole[1]] if whole else value.format_map(facts)
