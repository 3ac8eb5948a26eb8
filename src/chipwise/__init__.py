"""Plan deep-learning hardware: which chip, how many, arranged how, for this model and this workload.

The verbs are in `chipwise.api`; the command line is `chipwise`.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
