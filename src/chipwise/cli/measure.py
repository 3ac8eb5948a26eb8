"""measure: what this machine, a model on it, or an endpoint really does."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import App, Parameter

from chipwise.api import measuring as api
from chipwise.api.evidence import layout_of
from chipwise.api.requests.field import split
from chipwise.cli.options import Output, whole
from chipwise.evidence.importers import ImportTerms
from chipwise.measure.endpoint import Load
from chipwise.report.measured import model_view, probe_view, serve_view
from chipwise.units import parse_quantity

measure = App(
    name="measure",
    help="Time what runs here: operators of this machine (probe), a model (model), an endpoint (serve).",
    help_format="plaintext",
)


@measure.command
def probe(
    *,
    budget: Annotated[str, Parameter(help="how long it may take, e.g. 60s or 5min")] = "60s",
    backend: Annotated[
        str, Parameter(help="torch, jax, onnxruntime, neuron, or auto: the first that is installed")
    ] = "auto",
    device: Annotated[
        str | None, Parameter(help="as the framework calls it: cpu, cuda, cuda:1, mps, tpu; default: its first")
    ] = None,
    threads: Annotated[
        int | None, whole("threads of a CPU that share an operator; default: as many as the framework takes")
    ] = None,
    dtypes: Annotated[
        str | None, Parameter(help="types to time, e.g. bf16,fp32; default: those that models run in here")
    ] = None,
    out: Annotated[str | None, Parameter(help="a file for all times, one line of JSON")] = None,
    keep: Annotated[bool, Parameter(help="keep it in your store", negative="--no-keep")] = True,
    output: Output = Output(),  # noqa: B008
) -> None:
    """Time products, attention, convolutions and copies on this machine, and say what it reaches."""
    report = api.measure_probe(
        backend,
        budget_s=parse_quantity(budget, "s", "--budget"),
        device=device,
        threads=threads,
        dtypes=split(dtypes) if dtypes else (),
        out=out,
        keep=keep,
        say=_progress,
    )
    if sys.stderr.isatty():
        print(file=sys.stderr)
    output.show((probe_view(report),), report)


@measure.command
def model(
    place: Annotated[str, Parameter(help="FILE.py:function, which returns (module, arguments), or arguments by pass")],
    *,
    train: Annotated[bool, Parameter(help="a training step too: forward and backward", negative=())] = False,
    device: Annotated[str | None, Parameter(help="as PyTorch calls it; default: that of the machine")] = None,
    threads: Annotated[int | None, whole("threads of a CPU; default: those the machine was measured with")] = None,
    machine: Annotated[
        str, Parameter(help="which measured machine predicts: an id, or a file of --out; default: the last")
    ] = "",
    budget: Annotated[str, Parameter(help="how long it may take, e.g. 60s")] = "60s",
    output: Output = Output(),  # noqa: B008
) -> None:
    """A PyTorch module of yours: predicted from this machine's measured operators, and measured, one by one."""
    report = api.measure_model(
        place,
        train=train,
        device=device,
        threads=threads,
        known=machine,
        budget_s=parse_quantity(budget, "s", "--budget"),
    )
    output.show(model_view(report), report)


@measure.command
def serve(
    url: Annotated[str, Parameter(help="an OpenAI-compatible server, e.g. http://localhost:8000")],
    *,
    model: Annotated[str, Parameter(help="the model as the server calls it")],
    in_: Annotated[int, Parameter(name="--in", help="words of a prompt; the server counts its tokens")] = 1000,
    out: Annotated[int, whole("tokens of an answer")] = 200,
    concurrency: Annotated[int | None, whole("requests in flight at any time")] = None,
    rate: Annotated[str | None, Parameter(help="requests that arrive at random, e.g. 4/s")] = None,
    requests: Annotated[int, whole("how many requests; default: ten for each in flight, or a minute of arrivals")] = 0,
    chip: Annotated[str | None, Parameter(help="the chip that it runs on")] = None,
    count: Annotated[int | None, whole("how many chips")] = None,
    precision: Annotated[str | None, Parameter(help="the number format of the weights")] = None,
    runtime: Annotated[str | None, Parameter(help="the software that serves, e.g. vllm")] = None,
    layout: Annotated[str | None, Parameter(help="degrees of a replica, e.g. tp=4; default: tp = count")] = None,
    keep: Annotated[bool, Parameter(help="keep it in your store", negative="--no-keep")] = True,
    output: Output = Output(),  # noqa: B008
) -> None:
    """Load an OpenAI-compatible endpoint as stated, and say what it does; your store keeps it for later answers."""
    given = ImportTerms(chip or "", count, "", precision or "", runtime or "", "", layout_of(layout) if layout else "")
    report = api.measure_endpoint(
        url,
        model,
        Load(concurrency, None if rate is None else parse_quantity(rate, "1/s", "--rate"), in_, out, requests),
        runs_on=given,
        keep=keep,
        say=_answered,
    )
    output.show((serve_view(report),), report)


def _answered(done: int, requests: int) -> None:
    if done % max(requests // 10, 1) == 0:
        print(f"{done} of {requests} requests (Ctrl-C keeps what is done)", file=sys.stderr)


def _progress(done: int, tasks: int, left: float) -> None:
    """How far it is: on a terminal one line that changes, elsewhere one for every tenth."""
    text = f"{done} of {tasks} tasks, at most {max(left, 0.0):.0f} s more (Ctrl-C keeps what is done)"
    if sys.stderr.isatty():
        print(f"\r{text}  ", end="", file=sys.stderr, flush=True)
    elif done % max(tasks // 10, 1) == 0:
        print(text, file=sys.stderr)
