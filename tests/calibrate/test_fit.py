"""The hierarchical fit on made-up rows whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray

from chipwise.calibrate.effects import EffectLevel, Effects, Quantity
from chipwise.calibrate.fit import FitRows, Fitting, bought, fit, log_spread
from chipwise.units import Array, Real

PRIOR = {
    "share": Quantity(0.7, 0.3, "share", (EffectLevel(("chip",), 0.2),), 0.01, 1.0),
    "start_s": Quantity(5e-6, 0.5, "s"),
}
TRUTH = {"a": 0.6, "b": 0.8}


def rows(chips: list[str], count: int, *, noise: float = 0.05, seed: int = 0) -> FitRows:
    """t = start + bytes / (share x 1 TB/s)."""
    rng = np.random.default_rng(seed)
    chip = np.repeat(np.array(chips), count)
    num_bytes = np.exp(rng.uniform(np.log(1e5), np.log(1e9), len(chip)))
    share = np.array([TRUTH.get(c, 0.7) for c in chip])
    measured = (3e-6 + num_bytes / (share * 1e12)) * np.exp(noise * rng.standard_normal(len(chip)))

    def model(values: Mapping[str, Real], i: NDArray[np.intp]) -> Array:
        return np.asarray(values["start_s"] + num_bytes[i] / (values["share"] * 1e12))

    return FitRows({"chip": chip}, measured, model)


def test_recovers_what_made_the_rows() -> None:
    data = rows(["a", "b"], 300)
    effects = fit(data, PRIOR)
    values = effects.values({"chip": np.array(["a", "b"])})
    assert values["share"] == pytest.approx([0.6, 0.8], rel=0.03)
    assert np.ravel(values["start_s"])[0] == pytest.approx(3e-6, rel=0.05)
    assert np.median(np.abs(data.predict(effects) / data.measured_s - 1)) < 0.05


def test_outliers_do_not_pull() -> None:
    data = rows(["a"], 200)
    spoiled = data.measured_s.copy()
    spoiled[:20] *= 30
    effects = fit(FitRows(data.labels, spoiled, data.model), PRIOR)
    assert effects.values({"chip": np.array(["a"])})["share"][0] == pytest.approx(0.6, rel=0.05)


def test_a_spoiled_row_pulls_no_harder_than_one_that_is_a_sixth_off() -> None:
    """A tenth of rows without noise, spoiled: each pulls with the constant force of its 0.15, shared among the nine
    that hold."""
    data = rows(["a"], 400, noise=0.0)
    spoiled = data.measured_s.copy()
    spoiled[::10] *= 30
    share = fit(FitRows(data.labels, spoiled, data.model), PRIOR).values({"chip": np.array(["a"])})["share"][0]
    assert np.log(0.6 / share) == pytest.approx(0.15 / 9, rel=0.25)


def test_an_unknown_chip_gets_the_shared_value_and_a_wider_interval() -> None:
    effects = fit(rows(["a", "b"], 300), PRIOR)
    labels = {"chip": np.array(["a", "never seen"])}
    values, spreads = effects.values(labels), effects.spreads(labels)
    assert 0.6 < values["share"][1] < 0.8
    assert spreads["share"][1] > 3 * spreads["share"][0]
    new = rows(["never seen"], 5)
    old = rows(["a"], 5)
    assert np.mean(log_spread(new, effects)) > 1.5 * np.mean(log_spread(old, effects))


def test_five_rows_move_part_of_the_way() -> None:
    many, few = rows(["b"], 300), rows(["a"], 5, noise=0.0)
    chip = np.concatenate([many.labels["chip"], few.labels["chip"]])
    measured = np.concatenate([many.measured_s, few.measured_s])
    size = len(many)

    def model(values: Mapping[str, Real], i: NDArray[np.intp]) -> Array:
        first, second = i[i < size], i[i >= size] - size
        head = many.model({k: np.broadcast_to(v, len(i))[i < size] for k, v in values.items()}, first)
        tail = few.model({k: np.broadcast_to(v, len(i))[i >= size] for k, v in values.items()}, second)
        return np.concatenate([head, tail])

    share = fit(FitRows({"chip": chip}, measured, model), PRIOR).values({"chip": np.array(["a", "none"])})["share"]
    assert abs(share[0] - 0.6) < abs(share[1] - 0.6)


def test_no_rows_of_a_quantity_keep_its_prior() -> None:
    data = rows(["a"], 50)
    prior = PRIOR | {"unused": Quantity(2.0, 0.1, "ratio")}
    effects = fit(data, prior)
    assert np.ravel(effects.values(data.labels)["unused"])[0] == pytest.approx(2.0)


def test_fitting_is_pure() -> None:
    data = rows(["a", "b"], 50)
    assert fit(data, PRIOR) == fit(data, PRIOR)


def test_parameters_round_trip() -> None:
    effects = fit(rows(["a", "b"], 100), PRIOR)
    table = effects.parameters("simt.stream", "made up")
    again = Effects.of(table, "simt.stream", PRIOR)
    labels = {"chip": np.array(["a", "b", "c"])}
    for name, values in effects.values(labels).items():
        assert again.values(labels)[name] == pytest.approx(values)


def test_rows_that_are_alike_share_a_scatter_of_their_own() -> None:
    calm, wild = rows(["a"], 200, noise=0.05), rows(["b"], 200, noise=0.4, seed=1)
    size = len(calm)

    def model(values: Mapping[str, Real], i: NDArray[np.intp]) -> Array:
        return np.concatenate(
            [
                calm.model({q: np.broadcast_to(v, 2 * size)[:size] for q, v in values.items()}, np.arange(size)),
                wild.model({q: np.broadcast_to(v, 2 * size)[size:] for q, v in values.items()}, np.arange(size)),
            ]
        )[i]

    chip = np.concatenate([calm.labels["chip"], wild.labels["chip"]])
    both = FitRows({"chip": chip}, np.concatenate([calm.measured_s, wild.measured_s]), model, alike=chip)
    effects = fit(both, PRIOR)
    spread = log_spread(both, effects)
    assert np.median(spread[size:]) > 5 * np.median(spread[:size])
    inside = np.abs(np.log(both.predict(effects) / both.measured_s)) < 1.2816 * spread
    assert 0.7 < inside[:size].mean() < 0.9
    assert 0.7 < inside[size:].mean() < 0.9
    again = Effects.of(effects.scatter.parameters("k", "test", ""), "k", PRIOR)
    seconds = both.predict(effects)
    assert again.scatter.of(seconds, chip) == pytest.approx(effects.scatter.of(seconds, chip), rel=0.11)


def test_what_is_not_worth_a_number_falls_back_to_its_relatives() -> None:
    """Ten chips of two generations: generations differ, one chip differs from its own, nine do not."""
    chips = np.array([f"c{i}" for i in range(10)]).repeat(40)
    labels = {"generation": np.where(np.arange(400) < 200, "old", "new"), "chip": chips}
    own = np.where(chips == "c7", 0.3, 0.0)
    noise = 0.02 * np.random.default_rng(0).standard_normal(400)
    seconds = np.exp(np.where(labels["generation"] == "old", 1.0, 0.0) + own + noise)
    prior = {"x": Quantity(1.0, 1.0, "s", (EffectLevel(("generation",), 1.0), EffectLevel(("chip",), 0.5)))}
    rows = FitRows(labels, seconds, lambda values, index: np.broadcast_to(values["x"], len(index)) * 1.0)
    whole, few = fit(rows, prior), fit(rows, prior, worth=1.0)
    assert len(whole.table) == 13
    assert {key for _, level, key in few.table if level == "chip"} == {"c7"}
    assert len([1 for _, level, _ in few.table if level != "chip"]) <= 2
    assert np.median(np.abs(np.log(rows.predict(few) / seconds))) < 0.03
    assert few.keys_of("chip") == whole.keys_of("chip"), "what was measured stays known"
    again = Effects.of(few.parameters("x", "test"), "x", prior)
    assert again.keys_of("chip") == whole.keys_of("chip")
    assert np.allclose(again.values(labels)["x"], few.values(labels)["x"], rtol=1e-3)
    seen, other = (log_spread(rows.take(np.arange(1)), few), log_spread(_renamed(rows), few))
    assert other[0] > 2.0 * seen[0], "a chip that no row had"


def _renamed(rows: FitRows) -> FitRows:
    one = rows.take(np.arange(1))
    return FitRows({**one.labels, "chip": np.array(["none"])}, one.measured_s, one.model)


FOLDS = [(np.flatnonzero(np.arange(400) % 3 != i), np.flatnonzero(np.arange(400) % 3 == i)) for i in range(3)]


def test_what_a_number_buys_is_told_on_rows_that_its_fit_had_not_seen() -> None:
    """Two chips are off what is known of all, for which nothing else can make up."""
    data = rows(["a", "b"], 200)
    known = {**PRIOR, "share": Quantity(0.7, 0.001, "share", PRIOR["share"].levels, 0.01, 1.0)}
    at = np.arange(1000, 1400)

    found = bought(Fitting(data, known), at, [(at[kept], at[out]) for kept, out in FOLDS])

    assert found == sorted(found, key=lambda b: b.buys)
    chips = {b.name: b for b in found if b.name.startswith("share.chip")}
    assert chips["share.chip=a"].value < 0.9 < 1.1 < chips["share.chip=b"].value
    for b in chips.values():
        assert b.rows == 200
        assert b.unknown > 1.5 * b.known
        assert b.buys > 0.02


def test_a_label_that_tells_nothing_buys_nothing() -> None:
    plain = rows(["a", "b"], 200)
    colour = np.tile(np.array(["red", "blue"]), 200)
    data = FitRows({**plain.labels, "colour": colour}, plain.measured_s, plain.model)
    levels = (*PRIOR["share"].levels, EffectLevel(("colour",), 0.2))
    prior = {**PRIOR, "share": Quantity(0.7, 0.3, "share", levels, 0.01, 1.0)}
    found = {b.name: b.buys for b in bought(Fitting(data, prior), np.arange(400), FOLDS)}
    assert all(abs(found[f"share.colour={c}"]) < 0.002 for c in ("red", "blue"))


def test_without_a_number_the_others_make_up_for_it() -> None:
    """As a fit without its level has it."""
    data = rows(["a"], 300)
    every = np.arange(300)
    folds = [(every[every % 2 == 0], every[every % 2 == 1])]
    found = {b.name: b for b in bought(Fitting(data, PRIOR), every, folds)}
    flat = {**PRIOR, "share": Quantity(0.7, 0.3, "share", (), 0.01, 1.0)}
    kept, out = folds[0]
    alone = fit(data.take(kept), flat)
    errors = np.abs(np.log(data.take(out).predict(alone) / data.measured_s[out]))
    assert found["share.chip=a"].unknown == pytest.approx(float(np.median(errors)), rel=0.05)


def test_numbers_without_rows_on_both_sides_are_left_out() -> None:
    data = rows(["a", "b"], 50)
    every = np.arange(100)
    found = bought(Fitting(data, PRIOR), every, [(every[:50], every[50:])])
    assert {b.name for b in found} == {"share.all", "start_s.all"}
