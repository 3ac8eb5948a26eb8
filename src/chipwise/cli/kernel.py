"""kernel: one operator on one or several chips, with everything that leads to its time; trace: those of a network
of the user's own.

The commands are those of `OPERATORS`: options, help and defaults are read from there.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

from cyclopts import App, Parameter

from chipwise.api.amdahl import amdahl as compare_by_amdahl
from chipwise.api.operators import OPERATORS, Op, Operator
from chipwise.api.requests.field import pairs, split
from chipwise.api.requests.kernel import KernelRequest
from chipwise.api.requests.written import families_in
from chipwise.catalog.headers import ENDINGS
from chipwise.catalog.snapshot import own_exists
from chipwise.cli.options import Output, whole
from chipwise.errors import CommandText, Sentence, UnknownNameError, UsageError, shorten
from chipwise.report.kernel import amdahl_view
from chipwise.report.terminal import tell
from chipwise.report.traced import trace_report
from chipwise.tracing.sources import pipeline_of
from chipwise.units import parse_quantity
from chipwise.values import dataclass

kernel = App(
    name="kernel",
    help="One operator on one or several chips: mapping, bytes per memory level, roofline, time.",
    help_format="plaintext",
)


@Parameter(name="*")
@dataclass(frozen=True)
class Where:
    """The chips."""

    chip: Annotated[str, Parameter(name=("--chip", "--chips"), help="one or several, separated by commas")]
    set_: Annotated[
        str | None, Parameter(name="--set", help="override chip figures, e.g. hbm=4TB/s,bf16=1.2PFLOPS")
    ] = None


def _command(op: Op, operator: Operator) -> Callable[..., None]:
    """The command of one operator: needed options first, then where, then the rest with their defaults."""

    def run(where: Where, output: Output, **given: Any) -> None:
        request = KernelRequest(op=op, chips=where.chip, set_=where.set_, **given)
        report = output.of("kernel", request)
        output.show(report.tables(), report)

    types = get_type_hints(KernelRequest)
    keyword, either = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD

    def option(name: str, help_: str, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
        (kind,) = {t for t in get_args(types[name]) if t is not type(None)} or {types[name]}
        told = whole(help_) if kind is int else Parameter(name=f"--{name.rstrip('_')}", help=help_)
        if kind is not int and "_" in name.rstrip("_"):
            told = Parameter(help=help_)
        annotation: Any = Annotated[kind | None if default is None else kind, told]
        # the kind of a collective may stand alone: chipwise kernel collective all_reduce
        where = either if name == "kind" and name in operator.needed else keyword
        return inspect.Parameter(name, where, default=default, annotation=annotation)

    parameters = [
        *(option(name, text) for name, text in operator.needed.items()),
        inspect.Parameter("where", keyword, annotation=Where),
        *(option(name, text, default) for name, (text, default) in operator.besides.items()),
        inspect.Parameter("output", keyword, annotation=Output, default=Output()),
    ]

    def command(*values: Any, **given: Any) -> None:
        bound = inspect.Signature(parameters).bind(*values, **given)
        bound.apply_defaults()
        run(**bound.arguments)

    command.__name__, command.__doc__ = op, operator.help
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


for _op, _operator in OPERATORS.items():
    kernel.command(_command(_op, _operator), name=_op)  # type: ignore[arg-type]


@kernel.command(name="amdahl")
def amdahl(
    *,
    serial: Annotated[str, Parameter(help="part of the work that is serial, e.g. 0.01 or 1%")],
    where: Where,
    work: Annotated[str, Parameter(help="total operations, e.g. 1e12")] = "1e12",
    cpu: Annotated[
        str,
        Parameter(
            name=("--cpu", "--host"),
            help="the CPU to compare with, which also runs the serial part for each chip, e.g. i9-14900k",
        ),
    ] = "epyc-9654",
    output: Output = Output(),  # noqa: B008
) -> None:
    """A CPU, chips, and both together: which is fastest with a serial part (Amdahl's law)."""
    chips = split(where.chip)
    if not chips:
        raise UsageError("--chip: no chip", "name one or several, separated by commas")
    text = serial.strip()
    percent = text.endswith("%")
    fraction = parse_quantity(text.removesuffix("%"), "", "--serial") * (0.01 if percent else 1.0)
    report = compare_by_amdahl(
        chips, fraction, parse_quantity(work, "", "--work"), cpu_name=cpu, changes=pairs(where.set_, "--set")
    )
    for sentence in families_in(where.chip, cpu):
        tell(sentence)
    output.show((amdahl_view(report),), report)


def trace(
    source: Annotated[
        str,
        Parameter(
            help="FILE.py:function that returns a PyTorch module or (module, example, ...), FILE.onnx, a diffusers "
            "folder, or FILE.safetensors"
        ),
    ],
    *,
    training: Annotated[bool, Parameter(help="forward and backward of one training step")] = False,
    output: Output = Output(),  # noqa: B008
) -> None:
    """The operators, parameters and memory of your own model: a PyTorch module, ONNX, or files of weights."""
    if not source.strip():
        raise UsageError("trace needs a source", "for example FILE.py:function or FILE.onnx", field="source")
    found = pipeline_of(source, training=training)
    if found is None and source.endswith(ENDINGS) and own_exists(Path(source).expanduser()):
        what = f"{shorten(source)} is a language model's file, whose operators follow from its dimensions"
        raise UsageError(what, Sentence("ask: ", CommandText(f"estimate {shlex.quote(source)} --chip h100")))
    if found is None:
        hint = "give FILE.py:function, FILE.onnx, a diffusers folder or FILE.safetensors; fit takes models by name"
        raise UnknownNameError("file", source, (), hint)
    report = trace_report(found)
    output.show(report.tables(), report)
