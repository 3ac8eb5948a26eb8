"""The verbs of chipwise: text in, records out. The command line and programs call these.

A verb is imported when it is first used, so that one answer does not wait for the code of all others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipwise.api.checkup import devices, doctor, with_own_chips
    from chipwise.api.estimating import estimate
    from chipwise.api.fitting import fit
    from chipwise.api.loaded import describe, load, models
    from chipwise.api.planning import plan
    from chipwise.api.suites.doors import SUITES
    from chipwise.api.suites.kernels import calibrate_kernels_file
    from chipwise.api.suites.predicting import predict_suite
    from chipwise.api.suites.validating import VALIDATIONS, validate

__all__ = [
    "SUITES",
    "VALIDATIONS",
    "calibrate_kernels_file",
    "describe",
    "devices",
    "doctor",
    "estimate",
    "fit",
    "load",
    "models",
    "plan",
    "predict_suite",
    "validate",
    "with_own_chips",
]

# Modules are not called like their verbs: importing one would hide the verb of that name.
_HOMES = {
    "SUITES": "suites.doors",
    "VALIDATIONS": "suites.validating",
    "calibrate_kernels_file": "suites.kernels",
    "describe": "loaded",
    "devices": "checkup",
    "doctor": "checkup",
    "estimate": "estimating",
    "fit": "fitting",
    "load": "loaded",
    "models": "loaded",
    "plan": "planning",
    "predict_suite": "suites.predicting",
    "validate": "suites.validating",
    "with_own_chips": "checkup",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
