"""What `explain` answers beyond the plan itself."""

from __future__ import annotations

from dataclasses import dataclass, fields

from chipwise.report.kernel_records import AmdahlReport
from chipwise.report.records import PlanReport

__all__ = ["ExplainReport"]


@dataclass(frozen=True, slots=True, repr=False)
class ExplainReport(PlanReport):
    """One plan, and, where a serial part was named, when a CPU would do a request of this size sooner."""

    amdahl: AmdahlReport | None = None

    @classmethod
    def of(cls, report: PlanReport, amdahl: AmdahlReport | None) -> ExplainReport:
        """A report with more to it."""
        return cls(**{f.name: getattr(report, f.name) for f in fields(report)}, amdahl=amdahl)
