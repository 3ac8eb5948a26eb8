"""Training layouts per second: step time and memory of random layouts of one model on one system."""

from __future__ import annotations

import numpy as np

from bench.timing import median_s
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.cost.device import Device
from chipwise.predict.training.dims import plain
from chipwise.predict.training.memory import MemoryRates
from chipwise.predict.training.operators import TrainKernels
from chipwise.predict.training.values import Cluster, Recipe, TrainRates, TrainSpread
from chipwise.search.training import TrainJob, evaluate

__all__ = ["layouts_per_s"]

COUNT = 200_000


def layouts_per_s() -> float:
    """Median over repeats, in the chunks of the search; legality included."""
    rng = np.random.default_rng(0)
    model = plain(80, 8192, 64, 28672, 128256, kv_heads=8, gated=True, tied=False)
    machine = Cluster(989e12, 989e12, 80e9, 3.35e12, 450e9, 8.0, 50e9)
    chip = get_chip("h100-sxm5-80gb")
    numbers = shipped_parameters().cost(chip.family, "any", [chip]).take(np.zeros((), dtype=np.intp))
    kernels = TrainKernels(Device.of(chip), numbers)
    job = TrainJob(model, machine, Recipe(), TrainRates(), MemoryRates(), kernels, 1024, 8192)
    ones = np.ones(COUNT)
    spread = TrainSpread(
        tp=2.0 ** rng.integers(0, 4, COUNT),
        pp=2.0 ** rng.integers(0, 4, COUNT),
        vp=ones,
        cp=ones,
        ep=ones,
        dp=2.0 ** rng.integers(0, 7, COUNT),
        micro_batch=2.0 ** rng.integers(0, 3, COUNT),
        global_batch=1024.0,
        seq=8192.0,
        zero=rng.choice([1.0, 3.0], COUNT),
        shard=2.0 ** rng.integers(0, 7, COUNT),
        full=rng.choice([0.0, 0.5, 1.0], COUNT),
    )
    return COUNT / median_s(lambda: evaluate(job, spread))
