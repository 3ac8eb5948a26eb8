"""How every verb that chooses hardware answers, whatever the task: a question that was read is searched, what was found
is put in order, and the plans in order become the record of the answer, beside which more is worked out. Where no plan
is left it says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from chipwise.errors import ChipwiseError
from chipwise.values import dataclass

F = TypeVar("F")
P = TypeVar("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Preferred(Generic[P]):
    """Plans that keep what was asked, in order, and what is said of how they were chosen."""

    plans: tuple[P, ...] = ()
    said: tuple[str, ...] = ()


class Choosing(Protocol[F, P, R]):
    """A question about plans of one task, which was read: chips, software, limits and targets are values in it."""

    def candidates(self) -> F:
        """All that can be had, priced, and what cannot, with why. Raises `ChipwiseError` for bad input."""

    def choice(self, found: F) -> Preferred[P]:
        """Those that keep targets and limits, in order."""

    def refusal(self, found: F) -> ChipwiseError:
        """Why there is none, with the smallest changes that were tried and give one."""

    def record(self, found: F, chosen: Preferred[P]) -> R:
        """The answer with the plans in order."""

    def beside(self, found: F, chosen: Preferred[P], report: R) -> R:
        """The answer with what can be read later: what would make the first plan better, and what takes its place."""


@dataclass(frozen=True)
class Ranked(Generic[R]):
    """Ranked plans, which can be shown already, and what is worked out beside them."""

    report: R
    beside: Callable[[R], R]

    def whole(self) -> R:
        """The answer with all of it."""
        return self.beside(self.report)


def ranked(question: Choosing[F, P, R]) -> Ranked[R]:
    """The answer to a question as soon as its plans are in order. Raises the errors of `candidates`, and `refusal`
    where no plan is left."""
    found = question.candidates()
    chosen = question.choice(found)
    if not chosen.plans:
        raise question.refusal(found)
    report = question.record(found, chosen)
    return Ranked(report, lambda shown: question.beside(found, chosen, shown))
