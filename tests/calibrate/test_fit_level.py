"""The fit of level, age and prompts finds what made the rows, and ships what it found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.calibrate.fit_level import (
    FACTORS,
    LEVELS,
    MIDDLE,
    PROMPTS,
    STARTS,
    LevelFit,
    LevelRows,
    fit_level,
    immaturity,
    without_level,
)
from chipwise.calibrate.parameter import read_table, write_table
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.catalog.published import ROUNDS, software_age

STACKS = (("trtllm", "nvidia"), ("vllm", "amd"))
BENCHMARKS = ("short", "long")
STARTING = 4.0  # of engines, which one of the stacks is


def rows(tuned: dict[str, float], immature: float, prompt: dict[str, float]) -> LevelRows:
    """Submissions of a machine whose rate falls with passes, with the root of the prompt, and of engines of which up to
    a third of the time is starting kernels."""
    rng = np.random.default_rng(0)
    size = 240
    stack, benchmark = rng.integers(2, size=size), rng.integers(2, size=size)
    age = rng.integers(-1, 6, size=size).astype(float)
    base = rng.normal(8.0, 1.0, size)
    labels = {
        "runtime": np.array([STACKS[i][0] for i in stack]),
        "vendor": np.array([STACKS[i][1] for i in stack]),
        "benchmark": np.array([BENCHMARKS[i] for i in benchmark]),
    }
    lag = np.maximum(immaturity(age) - immaturity(software_age("2026-06")), 0.0)
    pace = np.array([tuned[r] for r in labels["runtime"]]) * np.exp(immature * lag)
    length = np.array([prompt[b] for b in labels["benchmark"]])
    engines, share = stack == 0, rng.uniform(0.0, 0.3, size)
    by_starts = base[:, None] - share[:, None] * np.log(STARTS)
    started = np.where(engines, share * np.log(STARTING / STARTS[MIDDLE]), 0.0)
    return LevelRows(
        np.exp(-(base - np.log(pace) - 0.5 * np.log(length) - started)),
        base[:, None] - np.log(FACTORS),
        base[:, None] - 0.5 * np.log(PROMPTS),
        by_starts,
        age,
        np.ones(size, dtype=bool),
        engines,
        labels,
    )


def test_the_fit_finds_what_made_the_rows() -> None:
    data = rows({"trtllm": 0.7, "vllm": 0.95}, 0.8, {"short": 0.6, "long": 1.8})
    fitted = fit_level(data)
    assert np.allclose(data.predicted(fitted.effects.values(data.labels)), data.seconds, rtol=0.02)
    ours = fitted.pace("trtllm", [get_chip("h200-sxm-141gb")], tuned=True, software="")
    theirs = fitted.pace("vllm", [get_chip("mi300x")], tuned=True, software="")
    assert ours[0] / theirs[0] == pytest.approx(0.7 / 0.95, rel=0.03)
    assert fitted.prompt("long") / fitted.prompt("short") == pytest.approx(3.0, rel=0.1)
    assert fitted.starts == pytest.approx(STARTING, rel=0.1)
    assert fitted.slower("v4.0") == pytest.approx(np.exp(0.8 * (immaturity(0.0) - immaturity(4.5))), rel=0.05)


def test_what_is_shipped_reads_back() -> None:
    fitted = fit_level(rows({"trtllm": 0.7, "vllm": 0.95}, 0.8, {"short": 0.6, "long": 1.8}))
    table = read_table(write_table(fitted.parameters()), "level.csv")
    again = LevelFit.of(replace(shipped_parameters(), table=table))
    chips = [get_chip("h200-sxm-141gb")]
    one, two = (f.pace("trtllm", chips, tuned=True, software="v4.0")[0] for f in (fitted, again))
    assert one == pytest.approx(two, rel=1e-3)
    assert fitted.prompt("long") == pytest.approx(again.prompt("long"), rel=1e-3)


def test_older_software_is_slower_and_newer_than_measured_is_not_faster() -> None:
    fitted = shipped_parameters().derived(LevelFit.of)
    paces = [fitted.slower(name) for name in ROUNDS]
    assert paces == sorted(paces, reverse=True)
    assert fitted.slower("v4.0") > 1.1
    assert fitted.slower("2026-11") == fitted.slower("") == 1.0


def test_products_of_a_chips_own_library_do_not_age() -> None:
    """cuBLAS was there before runtimes of language models; compilers of other vendors learned with them."""
    fitted = shipped_parameters().derived(LevelFit.of)
    slower = fitted.slower("2024-01", tuned=False)
    assert slower > 1.2
    own, other = (fitted.aged("vllm", [get_chip(chip)], "2024-01") for chip in ("a100-sxm4-80gb", "mi300x"))
    assert own["gemm.w16.memory"] == own["gemm.bf16.compute"] == 1.0
    assert own["decode.memory"] == own["launch"] == other["gemm.w16.memory"] == pytest.approx(slower)


def test_stock_is_what_nothing_is_fitted_to() -> None:
    fitted = shipped_parameters().derived(LevelFit.of)
    chips = [get_chip("h200-sxm-141gb"), get_chip("b200-sxm")]
    assert (fitted.pace("trtllm", chips, tuned=False, software="") == 1.0).all()
    plain = without_level(shipped_parameters(), pace=0.5).derived(LevelFit.of)
    assert (plain.pace("trtllm", chips, tuned=True, software="") == 0.5).all()


def test_fewer_numbers_than_half_of_the_cells() -> None:
    own = [n for n in shipped_parameters().table if n.startswith("level.") and ".seen." not in n]
    cells = 67  # (chip, benchmark) of language models in the open table
    assert 0 < len(own) <= cells / 2
    assert not any(get in n for n in own for get in ("chip=", "submitter"))
    assert all(
        LEVELS["prompt"].low - 1e-3 <= shipped_parameters().table[n].value <= LEVELS["prompt"].high + 1e-3
        for n in own
        if ".prompt." in n
    )
