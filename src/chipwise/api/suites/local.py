"""The suite `local`: published speeds and memory of local runtimes, asked through `estimate` as a user would ask.

Works on tables with the columns of `published_local.csv`: one figure a row, of the metric that the row names. What
kernels of local runtimes reach is fitted to the speeds: a row is the operators of its passes, flattened once, whose
seconds a fit asks for again and again.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from chipwise.api.placing import Terms, placed
from chipwise.api.requests.command import command_line
from chipwise.api.requests.planning import EstimateRequest
from chipwise.api.suites.suite import Asking, Index, Suite, Trial, each, kept_rows, readers
from chipwise.calibrate.effects import Effects
from chipwise.calibrate.fit import WORTH, FitRows, Fitting
from chipwise.calibrate.local import LOCAL as NUMBERS
from chipwise.calibrate.local import local_labels, local_model
from chipwise.calibrate.parameter import Parameter
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import get_chip
from chipwise.catalog.runtime import get_runtime
from chipwise.catalog.runtime_spec import Runtime
from chipwise.catalog.software import all_software
from chipwise.cost.local import LocalNumbers, LocalWork
from chipwise.errors import UsageError, shorten
from chipwise.evidence.residuals import Residuals, Validation
from chipwise.evidence.rows import Predicted, Row, id_of, number
from chipwise.parallel.layout import Layout
from chipwise.parallel.shard import shard
from chipwise.report.plans import PlanReport
from chipwise.units import Array, Real
from chipwise.values import dataclass
from chipwise.workload.graph import Graph
from chipwise.workload.step import Step, decode, prefill
from chipwise.workload.workload import Workload

NEEDED = ("model", "chip", "chips", "quant", "runtime", "context", "metric")
PROMPT, DECODE, MEMORY = "pp_tok_s", "tg_tok_s", "memory_gb"
FIGURES: Mapping[str, str] = {PROMPT: "ttft_s", DECODE: "tpot_s"}
GENERATED = 128  # tokens of a benchmark that does not say, as llama-bench does
BACKENDS = {"rocm": "hip", "vulkan-radv": "vulkan"}
FORMATS = {"f16": "fp16", "bf16": ""}
ELSEWHERE = "partly on the CPU"  # note of rows that say nothing of one chip
ROW_WEIGHT = 0.3
"""Rows of one box differ little, boxes of one kind by a fifth: about twice the scatter that the fit assumes."""
GROUPS = 20  # of folds: a fit takes seconds


@dataclass(frozen=True)
class AskedDesk:
    """A row as questions. `depth` tokens lie in the cache before the `new` ones of a prompt; `output` tokens come out;
    `whole`: the speed counts the time to the first of them."""

    row: Row
    new: int
    depth: int
    output: int
    whole: bool

    @classmethod
    def of(cls, row: Row) -> AskedDesk:
        """Raises `UsageError` for a metric that is not read."""
        if row["metric"] not in (*FIGURES, MEMORY):
            known = ", ".join((*FIGURES, MEMORY))
            raise UsageError(f"metric {shorten(row['metric'])} is not read", f"one of {known}")
        note, context = row.get("note", ""), max(1, int(number(row, "context")))
        chunk, ends = re.search(r"chunk=(\d+) depth=(\d+)", note), re.search(r"e2e out=(\d+)", note)
        if row["metric"] == PROMPT:
            new, depth = (int(chunk[1]), int(chunk[2])) if chunk else (context, 0)
            return cls(row, new, depth, 2, False)
        if row["metric"] == MEMORY:
            return cls(row, max(context - 1, 1), 0, 2, False)
        return cls(row, context, 0, max(int(ends[1]) if ends else GENERATED, 2), ends is not None)

    def question(self, prompt: int) -> EstimateRequest:
        """What a user would ask about a prompt of so many tokens."""
        row, runtime = self.row, self.runtime
        date, backend = (re.match(r"\d{4}-\d\d", row.get("date", "")), self._backend(runtime, get_chip(row["chip"])))
        chips, staged = int(number(row, "chips")), "pp" in runtime.features
        return EstimateRequest(
            model=row["model"],
            chip=row["chip"],
            task="local",
            in_=str(prompt),
            out=str(self.output),
            precision=self.precision,
            runtime=runtime.id,
            policy=f"backend={backend}" if backend else None,
            software=date[0] if date else None,
            evidence="none",
            tp=1 if staged else chips,
            pp=chips if staged else 1,
        )

    @property
    def runtime(self) -> Runtime:
        """The software of the row; where its note names a shell of that by itself, the shell."""
        said, note = get_runtime(self.row["runtime"]), self.row.get("note", "").lower()
        shells = (r for r in all_software(Runtime).values() if r.named and r.kernels_of == said.id)
        return next((r for r in shells if r.id in note), said)

    @property
    def precision(self) -> str | None:
        """The format of the weights, None for that of the checkpoint."""
        name = self.row["quant"].lower()
        if name == "mxfp4":  # of checkpoints that are in it
            return None
        return FORMATS.get(name, name) or None

    def _backend(self, runtime: Runtime, chip: Chip) -> str:
        """The backend of the row where it is not the default."""
        said = self.row.get("backend", "")
        name, able = BACKENDS.get(said, said), runtime.backends_on(chip)
        return name if name in able[1:] else ""

    def answer(self) -> tuple[float, float, float, str, EstimateRequest]:
        """The figure in the unit of the row with its interval, what it rests on, and the question it came from."""
        question = self.question(self.depth + self.new)
        report = question.report()
        plan = report.plans[0]
        if self.row["metric"] == MEMORY:
            size = _memory_gb(report, int(number(self.row, "context")))
            e = plan.memory_range
            return size, size * e.low / e.mid, size * e.high / e.mid, e.basis, question
        if self.row["metric"] == PROMPT:
            first, seconds = plan.ttft_s, plan.prefill_s
            if self.depth:
                seconds = seconds - self.question(self.depth).report().plans[0].prefill_s
            speed = self.new / seconds
        else:
            each_s = plan.tpot_s
            if each_s is None:
                raise UsageError("one token: there is no time per further one")
            whole_s = plan.ttft_s.mid + (self.output - 1) * each_s.mid
            first, speed = each_s, self.output / whole_s if self.whole else 1.0 / each_s.mid
        return speed, speed * first.mid / first.high, speed * first.mid / first.low, first.basis, question


def _memory_gb(report: PlanReport, tokens: int) -> float:
    """Weights, workspace and the cache of so many tokens."""
    items = report.plans[0].memory.items
    held = sum(size for name, size in items.items() if name.startswith("weights")) + items.get("workspace", 0.0)
    return (held + tokens * report.model.kv_bytes_per_token) / 1e9


def _read(row: Row, _: Path, __: Parameters | None) -> AskedDesk:
    return AskedDesk.of(row)


def _answer(asked: AskedDesk, _: Parameters | None) -> tuple[float, float, float, str, EstimateRequest]:
    return asked.answer()


def _lines(asked: AskedDesk, found: tuple[float, float, float, str, EstimateRequest]) -> Iterator[Predicted]:
    mid, low, high, basis, question = found
    row = asked.row
    command = command_line("estimate", question)
    yield Predicted(id_of(row), row["metric"], mid, low, high, basis, "", command)


# --------------------------------------------------------------- measurements


@dataclass(frozen=True)
class _Case:
    """A row placed: the operators of its passes, how often each counts towards a token, and the host's seconds."""

    asked: AskedDesk
    chip: Chip
    graph: Graph
    labels: Mapping[str, NDArray[np.str_]]
    work: LocalWork
    times: Array
    host_s: float

    @classmethod
    def of(cls, row: Row, numbers: Parameters) -> _Case:
        """Raises `UsageError` for memory, which is not fitted, and what `placed` raises."""
        asked = AskedDesk.of(row)
        if row["metric"] not in FIGURES:
            raise UsageError("not a speed")
        if ELSEWHERE in row.get("note", ""):
            raise UsageError("some of the model ran elsewhere: no speed of the chip")
        q = asked.question(asked.depth + asked.new)
        policy = {"backend": q.policy.partition("=")[2]} if q.policy else {}
        terms = Terms(precision=q.precision, runtime=q.runtime, policy=policy)
        length = float(asked.depth + asked.new)
        context, d = placed(
            row["model"], Workload("local", length, float(asked.output)), row["chip"], terms, together=float(q.pp)
        )
        if not d.runtime.backends:
            raise UsageError(f"{d.runtime.name} is not one of the local runtimes")
        stages = float(q.pp)
        month = q.software or ""
        model = local_model(numbers.local, d.runtime, [d.chip], d.policies, month).staged(stages)
        sharded = shard(context.found.graph, Layout(pp=stages))
        iteration_s = numbers.overheads(d.device.family, d.runtime.id).iteration_s * stages
        works, times, host_s = [], [], 0.0
        for count, step, passes in _passes(asked, float(d.policies.max_batched_tokens)):
            for repeat, op in sharded.ops(step):
                works.append(LocalWork.of(op, d.device, model))
                times.append(count * float(np.asarray(repeat)))
            host_s += count * passes * iteration_s
        labels = local_labels(d.runtime, d.policies.backend, [d.chip], month)
        return cls(asked, d.chip, context.found.graph, labels, LocalWork.join(works), np.array(times), host_s)


def _passes(asked: AskedDesk, budget: float) -> Iterator[tuple[float, Step, float]]:
    """How often a pass counts towards one token of the row's speed, the pass, and iterations of the engine in it."""
    new, depth, out = float(asked.new), float(asked.depth), float(asked.output)
    prompt, iterations = prefill(1.0, new, depth), float(np.ceil(new / budget))
    if asked.row["metric"] == PROMPT:
        yield 1.0 / new, prompt, iterations
        return
    decoding = decode(1.0, new + out / 2.0)
    if asked.whole:
        yield 1.0 / out, prompt, iterations
    yield (out - 1.0) / out if asked.whole else 1.0, decoding, 1.0


@dataclass(frozen=True)
class _LocalSpeeds:
    """Rows of speeds, placed, and as the fit reads them."""

    table: Sequence[Row]
    cases: Sequence[_Case]
    rows: FitRows


def _measured(paths: Sequence[str], numbers: Parameters) -> _LocalSpeeds:
    """Raises `UsageError` where no row can be read."""
    asking = LOCAL_SPEEDS.asking
    assert asking is not None
    read = (row for path in paths for row in asking.questions(path, None)[0])
    table, cases = kept_rows(read, lambda row: _Case.of(row, numbers), paths, "local speeds")
    work = LocalWork.join([case.work for case in cases])
    size = [len(case.times) for case in cases]
    first = np.concatenate([[0], np.cumsum(size)])
    times, host_s = np.concatenate([c.times for c in cases]), np.array([c.host_s for c in cases])

    def model(values: Mapping[str, Real], index: NDArray[np.intp]) -> Array:
        ops = np.concatenate([np.arange(first[i], first[i + 1]) for i in index])
        of_row = np.repeat(np.arange(len(index)), [size[i] for i in index])
        each = {name: np.broadcast_to(np.asarray(v), len(index))[of_row] for name, v in values.items()}
        seconds = np.asarray(work.take(ops).seconds(LocalNumbers(**each)).total_s) * times[ops]
        total: Array = np.bincount(of_row, seconds, len(index)) + host_s[index]
        return total

    labels = {name: np.concatenate([c.labels[name] for c in cases]) for name in cases[0].labels}
    measured = np.array([1.0 / float(row["value"]) for row in table])
    return _LocalSpeeds(table, cases, FitRows(labels, measured, model, np.full(len(table), ROW_WEIGHT)))


def _models(m: _LocalSpeeds) -> Sequence[Hashable]:
    """A chip with a model: what one page measures and others repeat."""
    return [(case.chip.software_id, row["model"]) for row, case in zip(m.table, m.cases, strict=True)]


KEYS = {"model": _models, "chip": lambda m: [case.chip.software_id for case in m.cases]}


def _fitting(rows: FitRows) -> Fitting:
    return Fitting(rows, NUMBERS.quantities, worth=WORTH)


def _fit(m: _LocalSpeeds, kept: Index, _: Parameters) -> Effects:
    return _fitting(m.rows.take(kept)).effects()


def _unfit(m: _LocalSpeeds, out: Index, fitted: Effects, key: str) -> Residuals:
    rows, cases = [m.table[i] for i in out], [m.cases[i] for i in out]
    return Residuals.of(
        out,
        m.rows.take(out).predict(fitted),
        m.rows.measured_s[out],
        metric=[row["metric"] for row in rows],
        row=[id_of(row) for row in rows],
        figure=[FIGURES[row["metric"]] for row in rows],
        tier="chip" if key == "model" else "vendor",
        key=[f"{case.chip.id} {row['model']}" for row, case in zip(rows, cases, strict=True)],
        cell=[f"{case.chip.id} {row['model']}" for row, case in zip(rows, cases, strict=True)],
        chip=[case.chip.id for case in cases],
        backend=m.rows.labels["backend"][out],
        source=[row["source"].split()[0] for row in rows],
        reader=[readers(case.chip, case.graph, "local") for case in cases],
        where=[f"{row['model'].split('/')[-1]} on {row['chip']}" for row in rows],
    )


def _report(m: _LocalSpeeds, found: Residuals, key: str) -> Validation:
    what = "model on its chip" if key == "model" else key
    return Validation(
        "local" if key == "model" else f"local with a {key} never seen",
        f"Every row predicted by a fit that never saw its {what}; errors are of seconds per token.",
        {
            "all": found.summaries(),
            "by backend": found.summaries("backend"),
            "by chip": found.summaries("chip", 5),
            "by source": found.summaries("source", 5),
        },
    ).shown(found)


def _shipped(fitted: Effects) -> Mapping[str, Parameter]:
    return NUMBERS.parameters(fitted)


LOCAL_SPEEDS = Suite(
    "local",
    (),
    Asking(NEEDED, _read, each(_answer), _lines),
    Trial(
        "published_local.csv",
        _measured,
        KEYS,
        _fit,
        _unfit,
        _report,
        {"local.csv": _shipped},
        folds={"model": GROUPS, "chip": GROUPS},
        fitted=lambda m, _: {NUMBERS.prefix: (_fitting(m.rows), np.arange(len(m.rows)))},
    ),
    commanded=True,
)
