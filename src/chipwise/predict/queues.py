"""Waiting in queues, where a formula of the literature says it."""

from __future__ import annotations

import numpy as np

from chipwise.units import Array, Real

__all__ = ["shared_wait_s"]


def shared_wait_s(service_s: Real, servers: Real, utilisation: Real, spread: Real = 1.0) -> Array:
    """Mean wait for one of c alike servers, Poisson arrivals: (1 + c_s^2) / 2 S / c u^(sqrt(2 (c + 1)) - 1) /
    (1 - u), infinite from u = 1 on; `spread` is 1 + c_s^2.

    Source: Sakasegawa, "An approximation formula for L_q = alpha rho^beta / (1 - rho)", 1977; exact for c = 1.
    """
    u, c = np.asarray(utilisation, dtype=float), np.asarray(servers, dtype=float)
    idle = np.maximum(1.0 - u, 0.0)
    with np.errstate(divide="ignore"):
        wait = 0.5 * spread * np.asarray(service_s) / c * u ** (np.sqrt(2.0 * (c + 1.0)) - 1.0) / idle
    return np.asarray(wait)
