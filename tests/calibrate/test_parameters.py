"""Fitted numbers: each with a unit, a source and a spread; from the special to the general."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chipwise.calibrate.fit_training import training_effects
from chipwise.calibrate.parameter import Parameter, write_table
from chipwise.calibrate.parameters import Parameters, load_parameters, shipped_parameters
from chipwise.calibrate.simt_numbers import kernel_type
from chipwise.catalog.chips import load_chips
from chipwise.catalog.runtime_spec import Runtime
from chipwise.catalog.software import all_software
from chipwise.cost.simt.family import SimtParameters
from chipwise.cost.systolic.family import SystolicModel
from chipwise.errors import UnknownNameError

SHIPPED = shipped_parameters()


BELIEVED = sorted(name for name, p in SHIPPED.table.items() if not p.rows)
"""Parameters that were not fitted to rows: priors, read by people."""


@pytest.mark.parametrize("name", BELIEVED)
def test_a_parameter_without_rows_is_its_prior(name: str) -> None:
    p = SHIPPED.table[name]
    assert p.value == p.prior, "a value that is not the prior names its rows"
    if "share of" in p.unit:
        assert p.value <= 1, "nothing beats the roofline"


def test_every_shipped_parameter_is_whole() -> None:
    for name, p in SHIPPED.table.items():
        assert p.unit, name
        assert p.source, name
        # rows that were seen are counted, not estimated
        counted = p.unit in ("rows", "seen", "rows that were fitted")
        assert p.spread == 0.0 if counted else p.spread > 0, name
        assert counted or p.prior > 0, name
        assert math.isfinite(p.value), name
        assert p.value > 0, name


def test_a_parameter_with_rows_says_whether_they_were_fitted() -> None:
    with_rows = {name: p for name, p in SHIPPED.table.items() if p.rows}
    assert len(with_rows) > 1000
    assert all(len(p.rows) == 12 for p in with_rows.values())
    by_hand = {name for name, p in with_rows.items() if "chosen by hand" in p.source}
    assert by_hand == {"cpu.compute.bf16", "cpu.compute.int8"}
    assert all("fitted" in p.source for name, p in with_rows.items() if name not in by_hand)


def test_every_family_and_runtime_has_what_a_roofline_needs() -> None:
    for family in ("simt", "systolic", "cpu"):
        for runtime in all_software(Runtime):
            e, o = SHIPPED.efficiency(family, runtime), SHIPPED.overheads(family, runtime)
            assert all(0 < share <= 1 for share in e.compute.values())
            assert e.softness >= 1
            assert 0 < e.launch_s < 1e-3
            assert 0 < o.iteration_s < 1
            assert 0 < o.link_share <= 1


def table(**values: float) -> Parameters:
    return Parameters(
        {name.replace("__", "."): Parameter(value, value, 0.1, "1", "test") for name, value in values.items()}
    )


def test_the_special_wins_over_the_general() -> None:
    numbers = table(any__memory=0.8, cpu__memory=0.7)
    assert numbers.value("cpu.memory", "any.memory") == 0.7
    assert numbers.value("simt.memory", "any.memory") == 0.8


def test_overrides_reach_the_roofline() -> None:
    one = replace(SHIPPED.table["any.memory"], value=0.123)
    changed = Parameters({**SHIPPED.table, "simt.memory": one})
    assert changed.efficiency("simt", "vllm").memory == 0.123
    assert changed.efficiency("systolic", "vllm").memory == SHIPPED.efficiency("systolic", "vllm").memory
    launch = Parameters({**SHIPPED.table, "runtime.vllm.launch": replace(one, value=9e-6)})
    assert launch.efficiency("simt", "vllm").launch_s == 9e-6
    assert launch.efficiency("simt", "sglang").launch_s == SHIPPED.efficiency("simt", "sglang").launch_s


def test_an_unknown_name_is_an_error_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"any\.memory") as caught:
        SHIPPED.value("any.memmory")
    assert "any.memory" in caught.value.nearest


def test_shipped_parameters_are_read_once() -> None:
    assert shipped_parameters() is SHIPPED


def test_fitted_numbers_name_generations_of_the_catalogue() -> None:
    known = {c.generation for c in load_chips().values()}
    labels = {g for group in SHIPPED.kernels.values() for g in group.keys_of("generation")}
    labels |= {g for part in training_effects(SHIPPED) for g in part.keys_of("generation")}
    assert labels <= known
    assert "blackwell_ultra" in labels


def test_numbers_of_operators_may_be_the_runtimes_own() -> None:
    chip = load_chips()["gaudi3"]
    own = SHIPPED.cost("systolic", "vllm-gaudi", [chip])
    other = SHIPPED.cost("systolic", "any", [chip])
    assert isinstance(own, SystolicModel)
    assert isinstance(other, SystolicModel)
    assert np.all(own.numbers.block_s < 0.1 * np.asarray(other.numbers.block_s)), "a graph starts once for all"
    assert np.all(own.numbers.memory_share == other.numbers.memory_share)
    alone = SHIPPED.cost("systolic", "vllm-gaudi", [chip], alone=True)
    assert isinstance(alone, SystolicModel)
    assert np.all(alone.numbers.block_s == other.numbers.block_s), "an operator on its own is nobody's"


def test_a_library_as_installed_differs_where_it_was_found_to() -> None:
    chips = [load_chips()[name] for name in ("mi300x", "h100-sxm5-80gb")]
    tuned = SHIPPED.cost("simt", "vllm", chips)
    stock = SHIPPED.as_installed(tuned, "vllm", chips)
    assert isinstance(tuned, SimtParameters)
    assert isinstance(stock, SimtParameters)
    for dtype, expected in (("fp8", (0.42, 1.0)), ("b16", (1.0, 1.0))):
        labels = (("dtype", dtype),)
        ratio = stock.find("simt.gemm", labels)["compute_share"] / tuned.find("simt.gemm", labels)["compute_share"]
        assert ratio == pytest.approx(expected)


def test_a_server_expands_prompts_that_a_timed_kernel_left_latent() -> None:
    """SGLang on Hopper: the timed kernel multiplies with the latent, the server with full heads; decoding does not."""
    chips = [load_chips()["h200-sxm-141gb"]]
    costs = {name: SHIPPED.cost("simt", name, chips) for name in ("sglang", "trtllm")}
    labels = (("dtype", "b16"), ("cache", "b16"), ("head_dim", "0"))
    shares = {
        name: float(c.find("simt.latent_prompt", labels)["compute_share"][0])
        for name, c in costs.items()
        if isinstance(c, SimtParameters)
    }
    assert shares["sglang"] > 0.7 * shares["trtllm"]


def test_grouped_products_of_amd_are_as_the_library_has_them() -> None:
    chips = [load_chips()[name] for name in ("mi300x", "mi355x", "h200-sxm-141gb")]
    tuned = SHIPPED.cost("simt", "sglang", chips)
    stock = SHIPPED.as_installed(tuned, "sglang", chips)
    assert isinstance(tuned, SimtParameters)
    assert isinstance(stock, SimtParameters)
    for group in ("simt.gemm", "simt.experts"):
        shares = [costs.find(group, (("dtype", "fp8_block"),))["compute_share"] for costs in (stock, tuned)]
        assert shares[0] / shares[1] == pytest.approx([0.42, 0.42, 1.0])


def test_experts_of_a_model_take_the_numbers_of_the_library_that_runs_them() -> None:
    chips = [load_chips()[name] for name in ("h200-sxm-141gb", "mi300x", "b200-sxm")]
    costs = SHIPPED.cost("simt", "sglang", chips)
    of = {name: SHIPPED.as_installed(costs, "sglang", chips, architecture=name) for name in ("", "minimax_m2")}
    labels = (("dtype", "fp8_block"),)
    usual, own = (
        {k: np.asarray(v) for k, v in c.find("simt.experts", labels).items()}
        for c in of.values()
        if isinstance(c, SimtParameters)
    )
    assert (own["token_passes"] != usual["token_passes"]).tolist() == [False, True, True]
    assert np.all(own["load_bytes_per_clock"][1:] < usual["load_bytes_per_clock"][1:])


def test_a_value_of_nan_takes_a_number_away(tmp_path: Path) -> None:
    name = "runtime.vllm-gaudi.operator.block_s"
    file = tmp_path / "less.csv"
    file.write_text(write_table({name: replace(SHIPPED.table[name], value=math.nan)}), "utf-8")
    assert set(SHIPPED.table) - set(load_parameters(str(file)).table) == {name}


def test_hosts_start_passes_with_prompts_where_software_captures_only_decoding() -> None:
    numbers, chips = shipped_parameters(), [load_chips()["b200-sxm"]]

    def starts(runtime: str, software: str = "") -> tuple[float, float]:
        found = numbers.starts(numbers.overheads("simt", runtime), runtime, chips, software)
        return float(np.asarray(found.starts_s)[0]), float(np.asarray(found.eager_s)[0])

    captured, eager = starts("trtllm")
    assert captured == eager > 0.0
    assert starts("trtllm", "2025-06") == (0.0, 0.0)  # built engines, before 1.0
    assert 0.0 < starts("sglang")[0] < starts("sglang")[1]  # in pieces, unless the layout does not allow it
    assert starts("vllm") == (0.0, 0.0)


def test_what_software_stores_alone_is_multiplied_in_16_bits() -> None:
    """Thor has a unit for 4 bits, vLLM none of its kernels there (its table of formats): Marlin reads such weights."""
    chips = thor, pro = [load_chips()[name] for name in ("jetson-thor-t5000", "rtx-pro-6000-ws")]
    assert kernel_type("nvfp4", thor, "simt.experts", "vllm") == "w4a16"
    assert kernel_type("nvfp4", thor, "simt.gemm", "vllm") == "int4_wo"
    assert kernel_type("nvfp4", pro, "simt.experts", "vllm") == "nvfp4"
    assert kernel_type("nvfp4", thor, "simt.experts") == "nvfp4"
    costs = SHIPPED.cost("simt", "vllm", chips)
    assert isinstance(costs, SimtParameters)
    assert np.asarray(costs.find("simt.gemm", (("dtype", "nvfp4"),))["widened"]).tolist() == [1.0, 0.0]


def test_few_units_share_the_cache_of_a_generation() -> None:
    """RTX PRO 6000 has 188 units on 128 MiB, Thor 20 on 32: of the one each unit fills its tiles at what was fitted, of
    the other at more, and at no more than units of other generations."""
    names = ("rtx-pro-6000-ws", "jetson-thor-t5000", "rtx-5090", "h100-sxm5-80gb")
    costs = SHIPPED.cost("simt", "vllm", [load_chips()[name] for name in names])
    assert isinstance(costs, SimtParameters)
    found = np.asarray(costs.find("simt.gemm", (("dtype", "b16"),))["load_bytes_per_clock"])
    pro, thor, other, hopper = found.tolist()
    plain = SHIPPED.kernels["simt.gemm"].quantities["load_bytes_per_clock"].mid
    assert pro == other < thor <= plain < hopper
    assert thor == pytest.approx(pro * (32.0 / 20.0) / (128.0 / 188.0))
