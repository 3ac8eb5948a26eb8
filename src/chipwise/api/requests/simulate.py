"""step and simulate: a deployment pass by pass, and request by request."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import TYPE_CHECKING

from chipwise.api.requests.field import CONFIG, ask, option_of
from chipwise.api.requests.parts import Place, Serving
from chipwise.api.requests.planning import MODEL
from chipwise.errors import UsageError
from chipwise.workload.workload import Workload

if TYPE_CHECKING:
    from chipwise.api.stepping import PassTimes


def _generates(model: str, why: str) -> None:
    """Raises `UsageError` for a model that generates no tokens."""
    from chipwise.tracing.sources import is_pipeline

    if is_pipeline(model):
        hint = "chipwise estimate predicts its time, for example chipwise estimate resnet50 --chip h100"
        raise UsageError(f"{model} generates no tokens: {why}", hint, field="model")


@dataclass(frozen=True, kw_only=True)
class StepRequest(Serving, Place):
    """The seconds of any pass of a deployment: of one rank of one replica, as a value that answers without delay."""

    model: str = ask(MODEL, MISSING, file=True, reading=CONFIG)

    def run(self) -> PassTimes:
        """The passes. Raises the errors of `api.estimate`, and `UsageError` for what no pass depends on."""
        from chipwise.api.estimating import asked
        from chipwise.api.stepping import pass_times

        for name in ("concurrency", "rate", "replicas", "disaggregate", "prefill", "harness", "host_memory"):
            if getattr(self, name) != type(self).__dataclass_fields__[name].default:
                what = f"{option_of(name)} changes no pass"
                raise UsageError(what, "a pass is one of one rank of one replica: leave it out", field=name)
        _generates(self.model, "no pass of it is priced by tokens")
        return pass_times(asked(self.model, Workload(output_tokens=1.0), self.given(), self.terms()))
