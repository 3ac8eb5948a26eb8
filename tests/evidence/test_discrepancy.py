"""The model of error: variances that were put in come out, blocks left out agree with refits, what ships is small."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.catalog.snapshot import shipped_text
from chipwise.evidence.discrepancy import (
    HEAVY,
    TABLE,
    FigureFamily,
    Observed,
    Posterior,
    Term,
    apart_of,
    families,
    fit,
    posterior,
    spread_of,
    states,
    winkler,
    write_states,
)

TERMS = (Term(("chip",)), Term(("who",)), Term(("chip", "who")), Term(("who",), "first"))
FAMILY = FigureFamily("test", TERMS, 0.1, 0.5)
SIGMAS = (0.3, 0.2, 0.1, 0.25)


def simulated(size: int = 900, seed: int = 0) -> Observed:
    """Rows of the family with `SIGMAS`, noise of t_4 and a scale of 0.1."""
    rng = np.random.default_rng(seed)
    chip, who = rng.integers(0, 20, size), rng.integers(0, 20, size)
    first = rng.random(size) < 0.4
    u, v, w, z = (s * rng.standard_normal(n) for s, n in zip(SIGMAS, (20, 20, 400, 20), strict=True))
    shared = u[chip] + v[who] + w[20 * chip + who]
    y = np.where(first, 0.5 * shared + z[who], shared) + 0.1 * rng.standard_t(4.0, size)
    axes = {"chip": np.char.add("c", chip.astype(str)), "who": np.char.add("w", who.astype(str))}
    return Observed(y, axes, np.where(first, "first", "rate"), np.full(size, "table"))


@pytest.fixture(scope="module")
def rows() -> Observed:
    return simulated()


@pytest.fixture(scope="module")
def fitted(rows: Observed) -> Posterior:
    return fit(FAMILY, rows)


def test_variances_of_simulated_rows_come_back(fitted: Posterior) -> None:
    for term, true in zip(fitted.family.terms, SIGMAS, strict=True):
        assert term.sigma == pytest.approx(true, rel=0.5), term.name
    for scale in fitted.scales.values():
        assert scale == pytest.approx(0.1, rel=0.3)


def test_intervals_hold_four_fifths_of_new_levels_and_of_known_ones(fitted: Posterior) -> None:
    state, new = fitted.state(), simulated(900, seed=0)
    unseen = simulated(3000, seed=5)
    far = state.spread({"chip": np.full(3000, "nobody's"), "who": unseen.axes["who"]}, "rate", "table")
    near = state.spread(new.axes, "rate", "table")
    assert np.median(near.sd()) < far.sd()[0], "known levels cost less"
    rate = new.take(new.figure == "rate")
    known = state.spread(rate.axes, "rate", "table")
    inside = np.abs(rate.y - known.mean) <= 1.2816 * known.sd()
    assert np.mean(inside) > 0.8, "what a state was made of, with its means, is held"
    plain = unseen.take(unseen.figure == "rate")
    blank = state.spread({"chip": np.full(len(plain), "x"), "who": np.full(len(plain), "y")}, "rate", "table")
    assert np.mean(np.abs(plain.y - blank.mean) <= 1.2816 * blank.sd()) == pytest.approx(0.8, abs=0.1)


def by_hand(fitted: Posterior, rows: Observed, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of rows left out, by generalised least squares over the covariance of all rows."""
    size = len(rows)
    v = np.full((size, size), FAMILY.intercept**2)
    for term in fitted.family.terms:
        level, x = term.levels(rows.axes, size), fitted.family.loading(term, rows.figure)
        v += term.sigma**2 * np.outer(x, x) * (level[:, None] == level[None, :])
    v += np.diag([fitted.scales[g] ** 2 for g in rows.group.tolist()])
    a, b = v[np.ix_(kept, kept)], v[np.ix_(~kept, kept)]
    share = np.linalg.solve(a, b.T).T
    return share @ rows.y[kept], v[np.ix_(~kept, ~kept)] - share @ b.T


def test_a_block_left_out_is_what_a_refit_without_it_says(fitted: Posterior, rows: Observed) -> None:
    out = rows.axes["who"] == "w7"
    mean, covariance = fitted.without(rows, out)
    wanted = by_hand(fitted, rows, ~out)
    assert mean == pytest.approx(wanted[0], abs=1e-3)
    assert covariance == pytest.approx(wanted[1], abs=1e-3)
    few = rows.take(np.arange(0, len(rows), 3))
    away = few.axes["who"] == "w7"
    mean, covariance = fitted.without(few, away)
    noise = (HEAVY - 1.0) * np.square([fitted.scales[g] for g in few.group[away].tolist()])
    lies, sd = fitted.left_out(few, few.axes["who"])
    assert lies[away] == pytest.approx(mean)
    assert sd[away] == pytest.approx(np.sqrt(np.diag(covariance) + noise))


def test_the_posterior_of_levels_is_that_of_least_squares(fitted: Posterior, rows: Observed) -> None:
    """Henderson's equations over levels against the covariance of rows: with light tails both are the same."""
    light = replace(rows, y=np.zeros(len(rows)))
    found = posterior(fitted, light)
    assert found.mean == pytest.approx(np.zeros(len(found.mean)), abs=1e-12)
    # a common shift of all rows of a level moves that level by its share of the variance
    again = posterior(fitted, replace(rows, y=rows.y * 1.0))
    assert again.mean == pytest.approx(fitted.mean, abs=0.02)


def test_what_two_rows_share_cancels(fitted: Posterior) -> None:
    """Of rows of one chip by one benchmarker only their noise is left; chips by one differ less than as if alone."""
    state, many = fitted.state(), simulated(500, seed=0)
    rate = many.take(many.figure == "rate")
    few = rate.take(np.arange(200))
    sd = state.apart(few.axes, "rate", "table")
    assert sd == pytest.approx(sd.T)
    noise = np.sqrt(2.0 * HEAVY) * fitted.scales["rate table"]
    same = (few.axes["chip"][:, None] == few.axes["chip"]) & (few.axes["who"][:, None] == few.axes["who"])
    np.fill_diagonal(same, val=False)
    assert same.any()
    assert sd[same] == pytest.approx(noise)
    assert np.diag(sd) == pytest.approx(0.0, abs=1e-9)
    each = state.spread(few.axes, "rate", "table")
    alone = np.hypot(each.sd(), each.mean)
    chips = few.axes["who"][:, None] == few.axes["who"]
    assert np.median(sd[chips & ~same & (sd > 0)]) < np.median(np.hypot(alone[:, None], alone))
    near, far = ({"chip": c, "runtime": "vllm", "format": "fp8"} for c in ("h100-sxm5-80gb", "mi300x"))
    assert apart_of(near, near, "serving") < apart_of(near, far, "serving")
    strangers = state.apart({"chip": ["x", "x", "y"], "who": ["", "", ""]}, "rate", "table")
    assert strangers[0, 1] < strangers[0, 2], "an unseen chip is itself in both"


def test_what_ships_is_read_as_it_was_written(fitted: Posterior) -> None:
    state = fitted.state(private=("who",), rank=40)
    assert not any("who" in state.family.terms[k].axes for k, _ in state.at if k >= 0)
    full, cut = fitted.state(rank=400), fitted.state(rank=40)
    axes = {"chip": ["c1", "c2", "c99"], "who": ["w1", "", "w3"]}
    assert np.all(cut.spread(axes).shared >= full.spread(axes).shared - 1e-12), "a cut is never surer"
    text = write_states([state])
    assert text.startswith("family,term,level,value,known")


def test_figures_of_strangers_lie_wider_where_rounds_say_so(fitted: Posterior) -> None:
    known = fitted.state()
    wider = replace(known, family=replace(known.family, strangers={"first": 1.5}))
    axes = {"chip": "c1", "who": "w1"}
    for figure, times in (("first", 1.5), ("rate", 1.0)):
        both = (s.spread(axes, figure, "table") for s in (wider, known))
        assert np.divide(*(s.sd() for s in both)) == pytest.approx(times)


def test_the_shipped_states_are_small_and_whole() -> None:
    assert len(shipped_text(TABLE)) < 500_000
    assert states().keys() == families().keys()
    for name, state in states().items():
        assert all(0.0 < term.sigma < 1.0 for term in state.family.terms), name
        assert not any("who" in state.family.terms[k].axes for k, _ in state.at if k >= 0), name


def test_what_nobody_measured_is_less_sure() -> None:
    known = {"vendor": "nvidia", "chip": "h100-sxm5-80gb", "runtime": "vllm", "mode": "together"}
    near = spread_of(known, "serving")
    far = spread_of({**known, "chip": "a-chip-of-tomorrow"}, "serving")
    assert near.known[0]
    assert not far.known[0]
    assert far.sd()[0] > near.sd()[0]
    assert spread_of(known, "serving", "first").sd()[0] > near.sd()[0], "first tokens are harder to predict"
    assert near.sd(3.0)[0] > 2.0 * near.sd(1.0)[0] * np.sqrt(near.shared[0]) / near.sd(1.0)[0]


def test_ten_thousand_plans_are_judged_at_once() -> None:
    chips = np.array(["h100-sxm5-80gb", "b200-sxm", "mi300x", "l4"])[np.arange(10_000) % 4]
    axes = {"vendor": np.full(10_000, "nvidia"), "chip": chips, "runtime": np.full(10_000, "vllm")}
    found = states()["serving"].spread(axes)
    one = spread_of({"vendor": "nvidia", "chip": "b200-sxm", "runtime": "vllm"}, "serving")
    assert found.sd().shape == (10_000,)
    assert found.sd()[1] == pytest.approx(one.sd()[0])


def test_the_score_of_an_interval() -> None:
    half = 1.2816 * 0.1
    assert winkler(np.array([0.0, half + 0.01]), np.array([0.1, 0.1])) == pytest.approx(
        [2 * half, 2 * half + 0.1], abs=1e-4
    )
