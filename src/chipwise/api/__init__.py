"""The verbs of chipwise: text in, records out. The command line and programs call these."""

from __future__ import annotations

from chipwise.api.doctor import doctor
from chipwise.api.estimate import estimate
from chipwise.api.fit import fit
from chipwise.api.loaded import describe, load, models
from chipwise.api.plan import plan
from chipwise.api.suites import SUITES, predict_suite

__all__ = ["SUITES", "describe", "doctor", "estimate", "fit", "load", "models", "plan", "predict_suite"]
