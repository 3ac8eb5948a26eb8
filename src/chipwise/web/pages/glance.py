"""An answer while its form moves: soon enough to follow a slider, of the chips that are on the screen."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from chipwise.api.requests.kinds import Request

MOST = 3
"""Chips that a glance compares, and models that it tries on a machine."""
LEAST: Mapping[str, Any] = {"curves": False, "most": MOST}
"""Fields of questions that ask for much beside the plans, as a glance has them."""


@dataclass(frozen=True)
class Glance:
    """A question that answers itself without what stands beside the plans."""

    question: Request

    @classmethod
    def among(cls, question: Any, chips: Sequence[str]) -> Glance:
        """The question among some chips, where it names none itself or more plans than that."""
        given = {f.name: getattr(question, f.name) for f in fields(question)}
        changed: dict[str, Any] = {}
        named = question.values.get("chips") or ()
        many = not named or (question.ranking and len(named) > MOST)
        if chips and "chips" in given and many and not given.get("have"):
            changed["chips"] = ",".join(chips[:MOST])
        changed |= {name: least for name, least in LEAST.items() if name in given}
        return cls(replace(question, **changed))

    def answers(self) -> Generator[Any, None, Any]:
        """The answer. Raises the errors of the verb."""
        yield from ()
        return self.question.glance()
