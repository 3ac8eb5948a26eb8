"""Options of commands: made from the fields of questions, so that a new field is an option by itself."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cached_property
from typing import Annotated, Any, get_args, get_type_hints

from cyclopts import Group, Parameter

from chipwise.api.checkup import asks_for_own_chips, with_own_chips
from chipwise.api.requests.field import ALSO, homes_of, option_of, outer
from chipwise.api.requests.written import Origin, families
from chipwise.catalog.files import output_file
from chipwise.cli.app import read
from chipwise.cli.help import grouped
from chipwise.errors import ChipwiseError, MissingExtraError, UsageError
from chipwise.report.saved import write_saved
from chipwise.report.table import Format, Table, render
from chipwise.report.terminal import tell, waiting
from chipwise.values import dataclass

OTHERS = "Further options"
"""What options are about that a question alone has."""
FIRST = ("model", "fleet")  # the fields that need no option before them


def whole(text: str) -> Parameter:
    """An option that takes a whole number."""
    return Parameter(help=text, converter=read)


def taking(*kinds: type, **changed: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a command of a function: it takes the fields of the questions as options, and gets their values as a
    dictionary, its first argument. `changed` are other annotated types for some of them (None: no option).
    """
    return lambda run: _Command(run, kinds, changed)


class _Command:
    """What `taking` makes. Its options are made when it is asked for them: of the commands of a file one runs."""

    def __init__(self, run: Callable[..., None], kinds: Sequence[type], changed: Mapping[str, Any]) -> None:
        self.run, self.kinds, self.changed = run, kinds, changed
        self.__name__, self.__doc__ = run.__name__, run.__doc__

    def __call__(self, *values: Any, **given: Any) -> None:
        bound = self.__signature__.bind(*values, **given)
        bound.apply_defaults()
        mine = {p.name for p in self._own}
        asked = {name: value for name, value in bound.arguments.items() if name not in mine}
        self.run(_on_this_machine(asked), **{name: value for name, value in bound.arguments.items() if name in mine})

    @cached_property
    def _own(self) -> list[inspect.Parameter]:
        """The options that are of no question."""
        return list(inspect.signature(self.run, eval_str=True).parameters.values())[1:]

    @cached_property
    def __signature__(self) -> inspect.Signature:
        kinds = self.kinds
        # what two questions both ask is one option
        known = {o.name: o for kind in reversed(kinds) for o in _options(kind, self.changed)}
        homes = {
            name: home
            for kind in reversed(kinds)
            for name, home in homes_of(kind, OTHERS if kind is kinds[0] else "").items()
            if name in known
        }
        options = [_within(known[name], group) for name, group in grouped(homes).items()]
        return inspect.Signature(sorted([*options, *self._own], key=lambda p: p.kind))

    @property
    def __annotations__(self) -> dict[str, Any]:  # type: ignore[override]
        return {p.name: p.annotation for p in self.__signature__.parameters.values()}


def _on_this_machine(asked: dict[str, Any]) -> dict[str, Any]:
    """What was asked with the chips of this machine for `auto`, which are told on standard error."""
    if not any(asked.get(name) for name in ("have", "chips", "chip")):
        return asked
    meant = with_own_chips(asked)
    for name in asks_for_own_chips(asked):
        tell(f"--{name} auto: {meant[name]}")
    return meant


def _options(kind: Any, changed: Mapping[str, Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(kind)
    found = []
    for f in fields(kind):
        if changed.get(f.name, f) is None:
            continue
        first = f.name in FIRST
        others = [] if first else [f"--{name}" for name, other in ALSO.items() if other == outer(f)]
        names = () if first else (f"--{outer(f).replace('_', '-')}", *others)
        told = Parameter(name=names or None, help=f.metadata["help"])
        kind_, *own = get_args(changed[f.name]) if f.name in changed else (hints[f.name],)
        found.append(
            inspect.Parameter(
                f.name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD if first else inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if f.default is MISSING else f.default,
                annotation=Annotated[kind_, told, *own],
            )
        )
    return found


def _within(option: inspect.Parameter, group: Group | None) -> inspect.Parameter:
    """An option in a group of help."""
    if group is None:
        return option
    kind, *told = get_args(option.annotation)
    return option.replace(annotation=Annotated[kind, *told, Parameter(group=group)])


def refuse(given: Mapping[str, Any], kind: Any, but: tuple[str, ...], task: str) -> None:
    """Raise `UsageError` for an option of `kind` that was given and that the task does not read."""
    for f in fields(kind):
        if f.name not in but and given[f.name] != (None if f.default is MISSING else f.default):
            what = f"{option_of(outer(f))} says nothing about --task {task}"
            raise UsageError(what, "leave it out", field=outer(f))


@Parameter(name="*")
@dataclass(frozen=True)
class Output:
    """How the answer is printed."""

    format: Annotated[Format, Parameter(help="table, json, csv or md")] = "table"

    def of(self, verb: str, request: Any) -> Any:
        """The answer to a request, which knows its question."""
        with waiting():
            report = self._answered(verb, request)
        for sentence in families(request):
            tell(sentence)
        object.__setattr__(report, "_origin", Origin(verb, request))
        return report

    def show(self, tables: Sequence[Table], record: Any) -> None:
        """Print an answer: its tables, or the record. Raises its `failure` after it, where it is one: nothing fits, or
        no plan is as sure to keep the targets as was asked."""
        render(tables, record, self.format, sys.stdout)
        failure: ChipwiseError | None = getattr(record, "failure", None)
        if failure is not None:
            raise failure

    def _answered(self, verb: str, request: Any) -> Any:
        return request.answer()


@Parameter(name="*")
@dataclass(frozen=True)
class SavedOutput(Output):
    """How an answer is printed, and kept."""

    save: Annotated[
        str | None, Parameter(help="save the answer with all data it used, for replay, diff and launch")
    ] = None
    html: Annotated[
        str | None, Parameter(help="write the answer as a page to send: charts, launch files and the record inside it")
    ] = None

    def _answered(self, verb: str, request: Any) -> Any:
        """The answer to a request, kept if that was asked for."""
        if self.html is not None:
            return self._page(verb, request)
        if self.save is None:
            return request.answer()
        from chipwise.api.saving import save

        return save(verb, request, self.save).report

    def _page(self, verb: str, request: Any) -> Any:
        """The answer to a request that is written as a page."""
        try:
            from chipwise.web.pages.sheet import write_sheet
        except ImportError:
            raise MissingExtraError("writing a page", "serve") from None
        if self.save is None:
            return write_sheet(verb, request, str(self.html)).report
        output_file(self.save)  # before the work is done
        found = write_sheet(verb, request, str(self.html))
        write_saved(found.saved, self.save)
        return found.report
