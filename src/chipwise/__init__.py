"""Plan deep-learning hardware: which chip, how many, arranged how, for this model and this workload.

```
import chipwise as cw

cw.plan("Qwen/Qwen3-32B", rate="10/s", tpot="40ms").plans[0].chip
cw.estimate("meta-llama/Llama-3.1-8B", chip="h100", concurrency=32, in_=1000, out=200).plans[0].tpot_s.mid
```
A verb takes the options of its command, with `_` for `-`, as numbers, lists, dictionaries or texts with units, and
returns a record. A verb is imported when it is first used. The command line is `chipwise`.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

__all__ = [
    "__version__",
    "chips",
    "compare",
    "estimate",
    "explain",
    "fit",
    "kernel",
    "load",
    "models",
    "offers",
    "operators",
    "plan",
    "runtimes",
    "systems",
    "train",
]

__version__ = "0.1.0"

_NAMED = {"train": "train_plan"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # by name: lower rooms import this module for the version, and must not lead to the verbs
    ask = import_module("chipwise.api.requests.doors").ask
    return partial(ask, _NAMED.get(name, name))


def __dir__() -> list[str]:
    return list(__all__)
