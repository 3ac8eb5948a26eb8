"""Power by what a chip does: its bounds, what more work must do to it, and the machine around it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.api.requests.planning import EstimateRequest
from chipwise.calibrate.energy import EnergyFit
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.cost.device import Device
from chipwise.predict.energy import DUTY, SOFTNESS, SUPPLY, TILE, PoweredMachine, PowerModel, Use, issued
from chipwise.report.energy import form_of
from chipwise.workload.formats import FORMATS
from chipwise.workload.op import gemm

MODEL = PowerModel(0.12, 0.36, 1.7, 0.4)
SHARE = st.floats(0.0, 1.0)


def test_a_chip_that_waits_rests_and_one_that_does_all_runs_at_its_limit() -> None:
    assert float(MODEL.share(Use(0.0, 0.0))) == pytest.approx(0.12, rel=1e-3)
    assert 0.9 < float(MODEL.share(Use(1.0, 1.0))) < 1.0


def test_bytes_add_in_proportion_and_integers_cost_less() -> None:
    few, many = (float(MODEL.share(Use(m, 0.0))) for m in (0.2, 0.4))
    assert many - few == pytest.approx(0.36 * 0.2, rel=0.03)
    assert float(MODEL.share(Use(0.0, 0.0, 0.5))) < float(MODEL.share(Use(0.0, 0.5)))
    # an integer operation as dear as that share of a floating-point one
    assert MODEL.share(Use(0.0, 0.0, 0.5)) == pytest.approx(MODEL.share(Use(0.0, 0.2)))


def test_power_by_hand() -> None:
    """Half of the peak, half of the bandwidth: the sum of rest, bytes and operations, bent below the limit."""
    wanted = 0.12 + 0.36 * 0.5 + 1.7 * 0.1**DUTY
    assert wanted < 1.0
    bent = wanted / (1.0 + wanted**SOFTNESS) ** (1.0 / SOFTNESS)
    assert float(MODEL.share(Use(0.5, 0.1))) == pytest.approx(bent)


@given(SHARE, SHARE, SHARE, st.floats(1.0, 1.5))
def test_more_work_never_draws_less_and_nothing_beats_the_limit(
    memory: float, compute: float, integer: float, more: float
) -> None:
    use = Use(memory, compute, integer)
    one, other = float(MODEL.share(use)), float(MODEL.share(use * more))
    assert one <= other * (1 + 1e-12)
    assert other <= 1.0


def test_arrays_broadcast() -> None:
    memory, compute = np.linspace(0.0, 1.0, 3)[:, None], np.linspace(0.0, 1.0, 4)[None, :]
    table = MODEL.share(Use(memory, compute))
    assert table.shape == (3, 4)
    assert table[1, 2] == MODEL.share(Use(0.5, 2.0 / 3.0))


def test_the_wall_feeds_chips_their_machines_and_the_losses() -> None:
    machine = PoweredMachine(200.0, 0.25)
    assert machine.wall_w(8 * 400.0, 1) == pytest.approx((200.0 + 1.25 * 3200.0) / SUPPLY)
    assert machine.wall_w(0.0, 3) == pytest.approx(600.0 / SUPPLY)


@given(st.floats(1.0, 1e6), st.floats(20.0, 1500.0), st.integers(1, 16))
def test_what_a_limit_feeds_keeps_it_and_one_more_does_not(wall_w: float, chip_w: float, each: int) -> None:
    machine = PoweredMachine(200.0, 0.25)

    def drawn(chips: int) -> float:
        return float(machine.wall_w(chips * chip_w, -(-chips // each)))

    most = machine.fed(wall_w, chip_w, each)
    assert drawn(most) <= wall_w * (1 + 1e-9)
    assert drawn(most + 1) > wall_w * (1 - 1e-9)


def test_a_lone_row_is_a_tile_of_them_on_a_matrix_unit_and_one_on_lanes() -> None:
    device = Device.of(get_chip("h100-sxm5-80gb"))
    one, tile, many = (issued(gemm(rows, 4096.0, 4096.0), device) for rows in (1.0, TILE, 4.0 * TILE))
    assert one == tile
    assert many[1] == pytest.approx(4.0 * float(tile[1]))
    assert issued(gemm(1.0, 4096.0, 4096.0), device, lanes=True)[1] == pytest.approx(float(tile[1]) / TILE)
    narrow = FORMATS["int8"]
    assert issued(gemm(64.0, 4096.0, 4096.0, narrow, narrow), device)[0] == "integer"


@pytest.mark.parametrize(
    ("name", "chips", "form"),
    [
        ("rtx-4090", 1, "desktop"),
        ("rtx-4090", 4, "workstation"),
        ("rtx-4090", 8, "server"),
        ("h100-sxm5-80gb", 1, "server"),
        ("gb10-dgx-spark", 1, "board"),
        ("m4-max", 1, "board"),
        ("xeon-6980p", 1, "server"),
    ],
)
def test_chips_are_in_the_smallest_machine_that_holds_them(name: str, chips: int, form: str) -> None:
    assert form_of(get_chip(name), chips) == form


@pytest.mark.parametrize(
    ("model", "chip", "most_w"), [("llama-3.1-8b", "gb10-dgx-spark", 240.0), ("llama-3.1-8b", "rtx-4090", 850.0)]
)
def test_plugs_deliver_what_chips_draw_and_less_than_the_supply_gives(model: str, chip: str, most_w: float) -> None:
    asked = EstimateRequest(model=model, chip=chip, concurrency=1.0, in_="1000", out="300")
    plan = asked.report().plans[0]
    e = plan.energy
    assert e is not None
    assert e.chip_w.mid < e.limit_w
    assert e.chip_w.mid * plan.chips < e.wall_w.mid == e.node_w.mid * e.machines < most_w
    for end in ("low", "mid", "high"):
        assert getattr(e.joules_per_token, end) <= getattr(e.joules_per_token_wall, end)


def test_the_shipped_numbers_are_physical() -> None:
    fit = shipped_parameters().derived(EnergyFit.of)
    # 3.35 TB/s at 700 W: 3 to 12 pJ a bit, from cell to unit
    assert 3e-12 < fit.power.memory * 700.0 / 3.35e12 / 8.0 < 12e-12
    assert 0.1 < fit.power.rest < 0.5
    assert 0.1 < fit.power.integer < 1.0
    assert fit.machine("board").base_w < 20.0 < fit.machine("desktop").base_w < fit.machine("server").base_w
    assert fit.tuned("board") < fit.tuned("server") < 1.0
