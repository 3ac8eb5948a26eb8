"""Systolic arrays: cycles, utilisation and on-chip traffic of a matrix product.

`counters` equals SCALE-Sim v3 exactly, artefacts included; `serial` is the same schedule without them;
`weight_stationary` and `output_stationary` are the double-buffered schedules of real matrix units;
`systolic_time` prices any operator with them.
"""

from chipwise.cost.systolic.array import DATAFLOWS, Dataflow, Folds, Gemm, SystolicArray, folds, im2col
from chipwise.cost.systolic.facts import Arrays
from chipwise.cost.systolic.family import SystolicModel, SystolicParameters, pace_hz, product, systolic_time
from chipwise.cost.systolic.physical import Schedule, output_stationary, serial, weight_stationary
from chipwise.cost.systolic.scalesim import Counters, counters

__all__ = [
    "DATAFLOWS",
    "Arrays",
    "Counters",
    "Dataflow",
    "Folds",
    "Gemm",
    "Schedule",
    "SystolicArray",
    "SystolicModel",
    "SystolicParameters",
    "counters",
    "folds",
    "im2col",
    "output_stationary",
    "pace_hz",
    "product",
    "serial",
    "systolic_time",
    "weight_stationary",
]
