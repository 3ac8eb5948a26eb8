"""claim: what is said about hardware, with the verdict, the figures behind it and the command that shows them."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from chipwise.api.requests.statement import CheckStatementRequest
from chipwise.cli.options import Output
from chipwise.errors import CommandText, Sentence, UnknownNameError

claim = App(name="claim", help="Statements about hardware, checked: list, check.", help_format="plaintext")


@claim.command(name="list")
def list_statements(*, output: Output = Output()) -> None:  # noqa: B008
    """All statements that are known, with their verdicts."""
    report = CheckStatementRequest().run()
    output.show(report.tables(), report)


@claim.command
def check(
    *text: Annotated[str, Parameter(help="the statement, as somebody said it")],
    output: Output = Output(),  # noqa: B008
) -> None:
    """The verdict on a statement, the figures behind it, and the commands that show them."""
    report = CheckStatementRequest(text=" ".join(text)).run()
    if not report.statements:
        near = ", ".join(f'"{statement}"' for statement in report.nearest)
        hint: list[str | CommandText] = ["nothing was judged"]
        for command in report.commands:
            hint += ["; would answer it: ", CommandText(command.removeprefix("chipwise "))]
        hint += [f"; near to it: {near}"] if near else []
        raise UnknownNameError(
            "statement", report.asked, (), Sentence(*hint, "; all that are known: ", CommandText("claim list"))
        )
    output.show(report.tables(), report)
