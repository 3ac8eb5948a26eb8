"""The fit of training: pure, finds what is there, leaves the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.calibrate.fit_training import Runs, fit, links_of, training_effects
from chipwise.calibrate.parameter import Parameter, read_table, write_table
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.calibrate.training_rates import MEMORY, QUANTITIES, labels_of, rates
from chipwise.catalog.chips import get_chip
from chipwise.catalog.trainer import get_trainer
from chipwise.cost.device import Device
from chipwise.parallel.memory import MemoryAccount
from chipwise.predict.training.dims import plain
from chipwise.predict.training.memory import MemoryRates, memory_use
from chipwise.predict.training.operators import TrainKernels, work_of
from chipwise.predict.training.step import StepTime, step_time
from chipwise.predict.training.values import Cluster, Recipe, TrainRates, TrainSpread

# All but what training is fitted to: exchanges are priced by the numbers of kernels.
NOTHING = Parameters({n: p for n, p in shipped_parameters().table.items() if not n.startswith("training.")})


def seconds_of(data: Runs, numbers: Parameters) -> StepTime:
    """Step time of every run by cause."""
    times, _ = training_effects(numbers)
    r = rates(times.values(data.labels), links_of(data, numbers))
    return step_time(data.network, data.spread, data.cluster, data.recipe, r, data.work)


def memory_of(data: Runs, numbers: Parameters) -> MemoryAccount:
    """Memory of every run by use."""
    _, memory = training_effects(numbers)
    return memory_use(data.network, data.spread, data.recipe, MemoryRates(**memory.values(data.labels)))


def runs(count: int = 24) -> Runs:
    """Runs of one stack whose matrix units reach three quarters of what is believed."""
    rng = np.random.default_rng(7)
    t = plain(32, 4096, 32, 16384, 51200)
    zeros = np.zeros(count)
    spread = TrainSpread(
        tp=2.0 ** rng.integers(0, 4, count),
        dp=2.0 ** rng.integers(0, 4, count),
        micro_batch=2.0 ** rng.integers(0, 3, count),
        global_batch=512.0 + zeros,
        seq=2048.0 + zeros,
        full=rng.integers(0, 2, count) * 1.0,
    )
    one = labels_of("16", get_trainer("nemo"), "hopper", moe=False)
    labels = {k: np.repeat(np.array([v]), count) for k, v in (one | {"chip": "h100-sxm5-80gb"}).items()}
    machine = Cluster(989e12, 989e12, 80e9, 3.35e12, 450e9, 8.0, 50e9)
    chip = get_chip("h100-sxm5-80gb")
    kernels = TrainKernels(Device.of(chip), shipped_parameters().efficiency("simt", "any"))
    made = Runs(
        t,
        _columns(spread, count),
        _columns(machine, count),
        _columns(Recipe(), count),
        _columns(work_of(t, spread, Recipe(), kernels), count),
        labels,
        zeros + np.nan,
        zeros + np.nan,
        zeros + 1.0,
    )
    made = replace(made, network=_columns(t, count))
    slow = replace(
        rates(
            {k: np.full(count, v) for k, v in _believed().items()},
            shipped_parameters().links(get_chip("h100-sxm5-80gb")),
        ),
        linear=np.full(count, 0.65),
    )
    from chipwise.predict.training.step import step_time

    seconds = step_time(made.network, made.spread, made.cluster, made.recipe, slow, made.work).total_s
    return replace(made, seconds=np.asarray(seconds))


def _believed() -> dict[str, float]:
    return {name: q.mid for name, q in QUANTITIES.items()}


def _columns(value, count):  # type: ignore[no-untyped-def]
    from dataclasses import fields

    return replace(
        value,
        **{f.name: np.broadcast_to(np.asarray(getattr(value, f.name), float), (count,)).copy() for f in fields(value)},
    )


def test_the_fit_is_pure() -> None:
    data = runs()
    assert fit(data, NOTHING).table == fit(data, NOTHING).table


def test_the_fit_finds_a_slow_matrix_unit() -> None:
    data = runs()
    before = np.asarray(seconds_of(data, NOTHING).total_s) / data.seconds - 1.0
    after = np.asarray(seconds_of(data, fit(data, NOTHING)).total_s) / data.seconds - 1.0
    assert np.median(np.abs(after)) < 0.05 < np.median(np.abs(before))


def test_other_parameters_are_passed_on() -> None:
    other = Parameters({**NOTHING.table, "any.memory": Parameter(0.8, 0.8, 0.1, "share", "test")})
    fitted = fit(runs(), other)
    assert fitted.table["any.memory"] == other.table["any.memory"]


def test_unknown_labels_get_the_general_value() -> None:
    data = runs()
    fitted = fit(data, NOTHING)
    strange = {**data.labels, "stack": np.repeat(np.array(["none-such"]), len(data))}
    times = np.asarray(seconds_of(replace(data, labels=strange), fitted).total_s)
    assert np.all(np.isfinite(times))


def test_shipped_numbers_are_within_their_meaning() -> None:
    table = shipped_parameters().table
    share = {
        q: table[f"training.{q}.all"].value if f"training.{q}.all" in table else spec.mid
        for q, spec in QUANTITIES.items()
    }
    assert 0.5 < share["linear"] < 0.9
    assert 0.4 < share["core"] < 1.0
    assert 0.5e9 < table["training.memory.base_bytes.all"].value < 6e9
    assert all(p.rows and p.source for name, p in table.items() if name.startswith("training."))


def test_the_table_survives_a_round_trip() -> None:
    data = runs()
    fitted = fit(data, NOTHING)
    back = Parameters(read_table(write_table(fitted.table), "test"))
    a, b = (np.asarray(seconds_of(data, n).total_s) for n in (fitted, back))
    assert np.allclose(a, b, rtol=2e-3)


def test_memory_without_rows_is_the_prior() -> None:
    data = runs()
    use = memory_of(data, fit(data, NOTHING))
    assert np.all(np.asarray(use.total_bytes) > 6e9)


def test_labels_name_all_that_levels_go_by() -> None:
    levels = [level for q in (*QUANTITIES.values(), *MEMORY.values()) for level in q.all_levels]
    asked = {name for level in levels for name in level.attributes}
    assert set(labels_of("16", get_trainer("nemo"), "hopper", moe=False)) >= asked
    assert set(_believed()) <= set(TrainRates.__dataclass_fields__)


@pytest.mark.parametrize("name", sorted(QUANTITIES))
def test_quantities_are_fields_of_rates(name: str) -> None:
    assert name in TrainRates.__dataclass_fields__
