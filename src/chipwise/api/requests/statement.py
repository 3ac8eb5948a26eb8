"""check_statement: what one can ask about a sentence that somebody said."""

from __future__ import annotations

from chipwise.api.requests.field import Asked, ask
from chipwise.report.statements import StatementsReport
from chipwise.values import dataclass


@dataclass(frozen=True, kw_only=True)
class CheckStatementRequest(Asked):
    """Is what people say about hardware true: statements with a verdict, the figures behind it and what shows them."""

    text: str | None = ask("the statement, as somebody said it; default: all that are known, with their verdicts")

    def run(self) -> StatementsReport:
        """The statements that the text makes, or that none is known and the nearest."""
        from chipwise.api.statements import check_statement, list_statements

        return list_statements() if self.text is None else check_statement(self.text)
