"""Plan deep-learning hardware: which chip, how many, arranged how, for this model and this workload.

```
import chipwise as cw

plans = cw.plan("Qwen/Qwen3-32B", rate=10, tpot="40ms")
print(plans)                      # the table; a notebook shows it as HTML
plans.best.tpot_s.mid, plans.df   # figures, and all rows as a DataFrame
one = cw.estimate("meta-llama/Llama-3.1-8B", chip="h100", concurrency=32, in_=1000, out=200)
print(one.launch("vllm"))
```
A verb takes the options of its command, with `_` for `-`, as numbers, lists, dictionaries or texts with units, and
returns its answer. It is imported when it is first used. `evidence` is a room of the library too: calling the room asks
the verb, and its modules stay importable. The command line is `chipwise`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = [
    "ChipwiseError",
    "__version__",
    "check_statement",
    "chips",
    "claim",
    "compare",
    "diff",
    "estimate",
    "evidence",
    "explain",
    "fit",
    "fleet",
    "frontier",
    "kernel",
    "launch",
    "load",
    "local",
    "match",
    "models",
    "offers",
    "operators",
    "plan",
    "replay",
    "rl",
    "runtimes",
    "sensitivity",
    "simulate",
    "step",
    "sweep",
    "systems",
    "trace",
    "train",
]

__version__ = "0.1.0"

_PLAIN = ("diff", "launch", "replay", "step", "trace")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "ChipwiseError":
        return import_module("chipwise.errors").ChipwiseError
    if name == "evidence":
        return import_module("chipwise.evidence")
    if name == "sweep":
        return import_module("chipwise.api.sweep").sweep
    # by name: lower rooms import this module for the version, and must not lead to the verbs
    python = import_module("chipwise.api.python")
    return getattr(python, name) if name in _PLAIN else python.verb(name)


def __dir__() -> list[str]:
    return list(__all__)
