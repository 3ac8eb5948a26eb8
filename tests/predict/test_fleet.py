"""Rates, replicas and days: figures by hand, and interpolation against the prediction itself."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.predict.fleet import over_day, replicas_for
from chipwise.workload.curve import RateCurve


def test_replicas() -> None:
    assert replicas_for(10.0, 2.5) == 4
    assert replicas_for(10.0, 2.5, spare=1) == 5
    assert replicas_for(10.0, 2.5, most_used=0.8) == 5
    assert replicas_for(0.0, 2.5, spare=1) == 2, "one at least"
    assert replicas_for(np.array([1.0, 9.0]), np.array([3.0, 0.0]), spare=1).tolist() == [2, 0]


def test_a_day_by_hand() -> None:
    day = over_day(RateCurve((1.0, 1.0, 4.0, 2.0)), 1.0, 4, 2.0, 100.0)
    assert day.peak_utilisation == 1
    assert day.mean_utilisation == pytest.approx(0.5)
    assert day.saturated_hours == 0
    assert day.tokens_per_day == pytest.approx(8 * 21600 * 100)
    assert day.usd_per_day == pytest.approx(4 * 24 * 2)
    assert day.scaled_usd_per_day == pytest.approx((1 + 1 + 4 + 2) * 6 * 2)
    assert day.usd_per_m_tokens == pytest.approx(day.usd_per_day / day.tokens_per_day * 1e6)
    assert day.mean_scaled_replicas == 2
    # three more before the third slice, an hour ahead; never more than all throughout
    led = day.led(3600.0)
    assert led.scaled_usd_per_day == pytest.approx(day.scaled_usd_per_day + 3 * 2)
    assert led.scaled_usd_per_m_tokens == pytest.approx(led.scaled_usd_per_day / day.tokens_per_day * 1e6)
    assert day.led(1e6).mean_scaled_replicas == pytest.approx((8 + 3) / 4)
    assert over_day(RateCurve((1.0, 3.0)), 1.0, 3, 2.0, 100.0).led(43_200.0).mean_scaled_replicas == 3


def test_a_fleet_too_small_for_the_peak_says_for_how_long() -> None:
    day = over_day(RateCurve((1.0, 1.0, 4.0, 2.0)), 1.0, 3, 2.0, 100.0, spare=1)
    assert day.saturated_hours == 6
    assert day.peak_utilisation == pytest.approx(4 / 3)
    assert day.requests_per_day == pytest.approx((1 + 1 + 3 + 2) * 21600)
    assert day.scaled_usd_per_day <= day.usd_per_day
