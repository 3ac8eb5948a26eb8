"""One path from a question to its answer: searched, put in order, recorded; what stands beside comes last."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from chipwise.api.answering import Preferred, ranked
from chipwise.api.requests.desk import LocalRequest
from chipwise.api.requests.field import ChoiceRequest
from chipwise.api.requests.planning import PlanRequest
from chipwise.api.requests.reinforce import RlRequest
from chipwise.api.requests.training import TrainRequest
from chipwise.errors import InfeasibleError

SMALL = "Qwen/Qwen3-0.6B"
QUESTIONS: dict[str, ChoiceRequest] = {
    "serving": PlanRequest(model=SMALL, chips="l4,a10g", rate="1/s"),
    "network": PlanRequest(model="sdxl", chips="l4,l40s", rate="0.1/s"),
    "training": TrainRequest(model=SMALL, chips="h100", counts="8", tokens="1B"),
    "loop": RlRequest(model=SMALL, chips="h100", counts="8"),
    "machine": LocalRequest(have="rtx-4090", models=SMALL),
    "budget": LocalRequest(max_usd=1000, models=SMALL),
}


@dataclass
class Numbers:
    """A question about numbers: those that are wanted, in order."""

    most: int
    asked: list[str] = field(default_factory=list)

    def candidates(self) -> list[int]:
        self.asked.append("candidates")
        return [3, 1, 2]

    def choice(self, found: list[int]) -> Preferred[int]:
        self.asked.append("choice")
        return Preferred(tuple(sorted(n for n in found if n <= self.most)), ("sorted",))

    def refusal(self, found: list[int]) -> InfeasibleError:
        return InfeasibleError("no number", f"at least {min(found)}")

    def record(self, found: list[int], chosen: Preferred[int]) -> dict[str, Any]:
        self.asked.append("record")
        return {"plans": chosen.plans, "said": chosen.said}

    def beside(self, found: list[int], chosen: Preferred[int], report: dict[str, Any]) -> dict[str, Any]:
        self.asked.append("beside")
        return report | {"most": max(found)}


def test_what_stands_beside_is_worked_out_when_it_is_asked_for() -> None:
    question = Numbers(2)
    found = ranked(question)
    assert found.report == {"plans": (1, 2), "said": ("sorted",)}
    assert question.asked == ["candidates", "choice", "record"]
    assert found.whole() == found.report | {"most": 3}


def test_where_nothing_is_left_the_question_says_why() -> None:
    question = Numbers(0)
    with pytest.raises(InfeasibleError, match="at least 1"):
        ranked(question)
    assert question.asked == ["candidates", "choice"]


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_glance_has_the_plans_of_the_whole_answer(name: str) -> None:
    question = QUESTIONS[name]
    glance, whole = question.glance(), question.run()
    shown = [getattr(report, "plans", None) or report.models for report in (glance, whole)]
    assert [(p.chip, p.rank) for p in shown[0]] == [(p.chip, p.rank) for p in shown[1]]
