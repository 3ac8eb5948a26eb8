"""Two tenants on one fleet against each alone: dollars of a day, and whether targets hold in the simulation.

`python -m bench.tenants FOLDER` with the two hours of Azure's services of 2023 in it (azure_llm_2023_conv.csv and
azure_llm_2023_code.csv). The hour of a trace, in twelve parts, is the curve of a day; lengths and bursts are those of
its requests. A tenant alone owns half the chips; what it lacks in an hour is rented.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import chipwise as cw
from chipwise.workload.arrivals import read_log

PARTS = 12
MODEL = "meta-llama/Llama-3.1-8B"
TENANTS: dict[str, dict[str, Any]] = {
    "chat": {"file": "azure_llm_2023_conv.csv", "times": 20.0},
    # its arrivals come in bursts of a dozen times the mean: replicas are filled to 15 %
    "code": {"file": "azure_llm_2023_code.csv", "times": 10.0, "utilisation": "15%"},
}
"""What each serves: so many times the rate of a trace."""


def demand(name: str, folder: Path) -> dict[str, Any]:
    """The demand of a tenant."""
    said = dict(TENANTS[name])
    path = folder / said.pop("file")
    log = read_log(str(path))
    assert log.time_s is not None
    counts, _ = np.histogram(log.time_s, PARTS, (float(log.time_s[0]), float(log.time_s[-1])))
    rates = counts / (log.span_s / PARTS) * said.pop("times")
    return {"name": name, "model": MODEL, "log": str(path), "day": [round(float(r), 3) for r in rates], **said}


def usd_per_day(demands: list[dict[str, Any]], owned: int) -> float:
    """What a day of some demands costs, and a line about them."""
    supply = [{"name": "own", "chip": "h100", "count": owned, "price": "own"}, {"name": "rented", "chip": "h100"}]
    found = cw.fleet({"demand": demands, "supply": supply}, simulate=True, gap="0")
    own, rented = found.supplies
    kept = sum(t.holds for t in found.simulated)
    print(
        f"{' and '.join(d['name'] for d in demands)} on {owned} owned H100: ${found.fleet.usd_per_day:,.2f} a day, gap "
        f"{found.fleet.gap:.1%}; at work {own.mean_chips:.2f} owned and {rented.mean_chips:.2f} rented chips on average"
        f"; {kept} of {len(found.simulated)} targets hold in the simulation"
    )
    return float(found.fleet.usd_per_day)


def main() -> None:
    """Both alone, then together."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--owned", type=int, default=6, help="chips of each")
    asked = parser.parse_args()
    tenants = [demand(name, asked.folder) for name in TENANTS]
    alone = sum(usd_per_day([one], asked.owned) for one in tenants)
    together = usd_per_day(tenants, 2 * asked.owned)
    print(f"saved together: ${alone - together:,.2f} of ${alone:,.2f} a day")


if __name__ == "__main__":
    main()
