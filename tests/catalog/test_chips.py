"""The chip catalogue against the table that it was made from, its provenance, and its strict reader."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import tomllib
from typing import get_args

import pytest

from chipwise.catalog.chip import Chip, Grade
from chipwise.catalog.chip_reader import read_chips
from chipwise.catalog.chips import exact_chip, family, get_chip, load_chips, memory_words
from chipwise.catalog.machine import parse_machine
from chipwise.catalog.rented import NAMES
from chipwise.catalog.snapshot import PACKAGE
from chipwise.catalog.system import parse_have
from chipwise.errors import UnknownNameError, UsageError
from command_line import Run
from truth import each_row, rows_of

CHIPS = list(load_chips().values())

FIGURES = {
    "process": "process",
    "memory_type": "memory_type",
    "mem_bw_GBps": "memory_GBps",
    "usable_memory_gb": "usable_memory_GB",
    "tier2_name": "tier2",
    "tier2_gb": "tier2_GB",
    "tier2_GBps": "tier2_GBps",
    "fp64_tflops": "vector_tflops.fp64",
    "fp64_matrix_tflops": "matrix_tflops.fp64",
    "fp32_vector_tflops": "vector_tflops.fp32",
    "fp32_matrix_tflops": "matrix_tflops.fp32",
    "tf32_tflops": "matrix_tflops.tf32",
    "fp16_tflops": "matrix_tflops.fp16",
    "bf16_tflops": "matrix_tflops.bf16",
    "fp16_fp16acc_tflops": "matrix_tflops.fp16/fp16",
    "fp8_tflops": "matrix_tflops.fp8",
    "int8_tops": "matrix_tflops.int8",
    "fp6_tflops": "matrix_tflops.fp6",
    "fp4_tflops": "matrix_tflops.fp4",
    "int4_tops": "matrix_tflops.int4",
    "compute_unit_kind": "unit",
    "compute_units": "units",
    "matrix_unit": "matrix_unit",
    "macs_per_unit_clk_16b": "macs_per_clock",
    "boost_clock_mhz": "boost_MHz",
    "peak_matching_clock_mhz": "peak_MHz",
    "sram_per_unit_kb": "sram_per_unit_KiB",
    "regfile_per_unit_kb": "registers_per_unit_KiB",
    "onchip_sram_bw_GBps": "sram_GBps",
    "host_link": "host",
    "host_GBps_per_dir": "host_GBps",
    "scaleup_name": "scaleup",
    "scaleup_GBps_per_dir_per_chip": "scaleup_GBps",
    "scaleup_p2p_GBps_per_dir": "scaleup_pairwise_GBps",
    "scaleout_GBps_typical": "scaleout_GBps",
    "tdp_w": "tdp_W",
}

BY_FIGURE = {figure: column for column, figure in FIGURES.items()} | {
    "memory": "memory_gb",
    "cache": "llc_mb",
    "sram": "onchip_sram_total_mb",
    "devices_per_package": "devices_per_package",
    "scaleup_topology": "scaleup_topology",
    "scaleup_domain": "scaleup_max_domain",
}

HALF_OF_FP16 = (
    *("gb10-dgx-spark", "rtx-spark-n1x", "jetson-thor-t5000", "jetson-thor-t4000", "jetson-agx-orin-64"),
    *("jetson-agx-orin-32", "jetson-orin-nx-16gb", "jetson-orin-nx-8gb"),
    *("jetson-orin-nano-super", "jetson-orin-nano-8gb", "jetson-orin-nano-4gb"),
)
"""Chips with matrix units of Ampere and later whose sheets leave TF32 out."""
NOT_IN_TABLE = (
    {("m1-max", "tdp_W"), ("m2-ultra", "tdp_W")}  # Apple's page on power, read later
    | {("mi455x", "process"), ("gaudi3", "peak_MHz"), ("gaudi3", "boost_MHz")}
    | {(chip, "macs_per_clock") for chip in ("a10g", "jetson-thor-t5000", "gb300-dgx-station")}
    | {(chip, "matrix_tflops.tf32") for chip in HALF_OF_FP16}
    | {("jetson-agx-orin-64", "matrix_tflops.bf16")}
    | {("ascend-910c", figure) for figure in ("unit", "units", "matrix_unit", "macs_per_clock", "peak_MHz")}
    | {
        ("ascend-910b", figure)
        for figure in ("matrix_unit", "macs_per_clock", "boost_MHz", "peak_MHz", "sram", "scaleup_pairwise_GBps")
    }
)
"""Figures read elsewhere that the table leaves blank."""

READ_LATER = {"gh200-96gb", "gh200-144gb", "gaudi2", "gaudi3", "mi455x"}
"""Chips whose own vendor tables were read after the table was made."""

FOUND_MIB = {"t4": 15360, "a10": 23028, "a40": 46068, "l20": 46068}
"""Memory that the driver reports (nvidia-smi) of boards with codes among the data, where the table assumes 0.99."""

IN_CORES = {"inferentia2": 2}
"""Software counts the NeuronCores of these chips, the table whole chips."""


@functools.cache
def table() -> dict[str, dict[str, str]]:
    """The rows of both tables as they were corrected; a figure that is not known is blank."""
    rows = {row["id"]: row for name in ("chips.csv", "chips_more.csv") for row in rows_of(name)}
    for row in rows_of("chips_corrections.csv"):
        found = rows[row["id"]]
        found[row["column"]] = "" if row["new"] == "unknown" else row["new"]
        if row["column"] in ("memory_gb", "memory_unit"):
            unit = {"GB": 1.0, "GiB": 2.0**30 / 1e9}[found["memory_unit"] or "GiB"]
            found |= {
                "usable_memory_gb": f"{0.99 * float(found['memory_gb']) * unit:.7g}",
                "usable_memory_grade": "assumed",
            }
    for name, mib in FOUND_MIB.items():
        rows[name] |= {"usable_memory_gb": f"{mib * 2.0**20 / 1e9:.6g}", "usable_memory_grade": "measured"}
    return rows


def row_of(chip: Chip) -> dict[str, str]:
    if chip.id not in table():
        pytest.skip("a chip that no table has")
    return table()[chip.id]


def test_every_chip_of_the_tables_is_there() -> None:
    assert set(table()) <= set(load_chips())


CORRECTED = {"m4": {"fp32_vector_tflops", "fp16_tflops", "bf16_tflops"}}
"""Figures by chip that a source which the tables did not have says otherwise: the note of the chip names it."""


@pytest.mark.parametrize("chip", CHIPS, ids=lambda c: c.id)
def test_figures_equal_the_table(chip: Chip) -> None:
    row = row_of(chip)
    assert [chip.name, chip.vendor, chip.kind, str(chip.year), chip.status] == [
        row[c].replace('"', "'") for c in ("name", "vendor", "kind", "year", "status")
    ]
    elsewhere = set(row["share_alike_columns"].split(";")) | CORRECTED.get(chip.id, set())
    for column, figure in FIGURES.items():
        if not row[column] or column in elsewhere:
            continue
        if column == "fp16_tflops" and chip.generation == "pascal" and figure not in chip.figures:
            figure = "vector_tflops.fp16"  # a path that kernels avoid: one sixty-fourth of fp32
        value = chip.figures[figure]
        if isinstance(value, str):
            assert value == row[column].strip().replace('"', "'"), figure
        else:
            assert value == pytest.approx(float(row[column]), rel=2e-5), figure
    if row["memory_gb"] and "memory_gb" not in elsewhere:
        assert (
            chip.memory.label_bytes
            == float(row["memory_gb"]) * {"GB": 1e9, "GiB": 2.0**30}[row["memory_unit"] or "GiB"]
        )
    if row["llc_mb"] and "llc_mb" not in elsewhere:
        assert chip.cache_bytes == float(row["llc_mb"]) * 2**20
    if row["onchip_sram_total_mb"] and "onchip_sram_total_mb" not in elsewhere:
        unit = 1e6 if chip.memory.kind == "sram" else 2**20
        assert chip.sram_bytes == float(row["onchip_sram_total_mb"]) * unit
    assert chip.devices_per_package == IN_CORES.get(chip.id, int(row["devices_per_package"]))
    if row["scaleup_max_domain"] and "scaleup_max_domain" not in elsewhere:
        assert (chip.scaleup.domain if chip.scaleup else 1) == int(row["scaleup_max_domain"])
    if chip.scaleup and "scaleup_topology" not in elsewhere:
        assert chip.scaleup.topology == row["scaleup_topology"]


@pytest.mark.parametrize("chip", CHIPS, ids=lambda c: c.id)
def test_nothing_is_shipped_that_the_table_leaves_blank(chip: Chip) -> None:
    row = row_of(chip)
    extra = {f for f in chip.figures if f in BY_FIGURE and not row[BY_FIGURE[f]]}
    assert {(chip.id, figure) for figure in extra} <= NOT_IN_TABLE


@pytest.mark.parametrize("chip", CHIPS, ids=lambda c: c.id)
def test_share_alike_figures_come_from_another_source(chip: Chip) -> None:
    elsewhere = set(row_of(chip)["share_alike_columns"].split(";"))
    for figure in chip.figures:
        if BY_FIGURE.get(figure) in elsewhere:
            refs = [source.ref for source in chip.provenance(figure).sources]
            assert refs
            assert not any("stas00" in ref for ref in refs), figure


@pytest.mark.parametrize("chip", CHIPS, ids=lambda c: c.id)
def test_every_figure_has_source_and_grade(chip: Chip) -> None:
    assert chip.figures
    for figure in chip.figures:
        origin = chip.provenance(figure)
        assert origin.grade in get_args(Grade), figure
        assert origin.sources, figure
        assert all(source.ref for source in origin.sources), figure


@pytest.mark.parametrize("chip", CHIPS, ids=lambda c: c.id)
def test_figures_not_read_in_a_source_are_graded_so(chip: Chip) -> None:
    row = row_of(chip)
    read_since = set(row["share_alike_columns"].split(";")) if chip.id in {"rubin-sxm", "mi455x"} else set()
    weak = {"derived", "assumed", "recalled"}
    if chip.default.grade in weak:
        return
    figures = {column: figure for figure, column in BY_FIGURE.items()}
    for column in filter(None, row["fields_not_read_in_a_source"].split(";")):
        figure = figures.get(column, "")
        if figure not in chip.figures or column in read_since:
            continue
        origin = chip.provenance(figure)
        # a figure that was found in print after the table was made cites that page as its own
        assert origin.grade in weak or origin.sources != chip.default.sources or chip.id in READ_LATER, figure


@pytest.mark.parametrize("chip", CHIPS, ids=lambda c: c.id)
def test_measured_capacity_is_marked(chip: Chip) -> None:
    row = row_of(chip)
    if row["usable_memory_gb"]:
        assert chip.provenance("usable_memory_GB").grade == row["usable_memory_grade"]
    else:
        assert chip.memory.usable_bytes is None


def test_provenance_of_an_unknown_figure() -> None:
    with pytest.raises(UnknownNameError, match="memory_GBps"):
        get_chip("t4").provenance("memory_GBs")


def test_package_figures() -> None:
    assert {c.id for c in CHIPS if c.devices_per_package > 1} == {
        "mi250x", "mi250", "inferentia2", "tpu-v7x", "ascend-910c", "gpu-max-1550", "m60", "k80", "a16",
        "tt-wormhole-n300", "tt-blackhole-p300c",
    }  # fmt: skip
    assert get_chip("mi250x").peak("bf16") == 383e12
    assert get_chip("mi250x").memory.label_bytes == 128 * 2**30


def test_peaks_by_accumulation() -> None:
    card = get_chip("rtx-4090")
    assert card.peak("fp16") == 165.2e12
    assert card.peak("fp16", "fp16") == pytest.approx(330.3e12)
    assert card.peak("fp4") is None


def test_families() -> None:
    found = {chip.id: chip.family for chip in CHIPS}
    assert found["gaudi2"] == found["trainium2"] == found["tpu-v5e"] == "systolic"
    assert found["groq-lpu1"] == found["wse3-cs3"] == found["qaic100-std"] == "dataflow"
    assert {chip.family for chip in CHIPS if chip.kind == "gpu"} == {"simt"}


def test_announced_chips_cannot_be_rented() -> None:
    away = [c for c in CHIPS if not c.rentable]
    assert {"rubin-sxm", "tpu-8i", "sn50", "mi430x", "rubin-cpx"} <= {c.id for c in away}
    for chip in away:
        assert load_chips()[chip.stand_in].rentable, chip.id
        verb = "was cancelled" if chip.status == "cancelled" else "is announced"
        assert chip.unavailable == (
            f"{chip.name.removesuffix(' (announced)').removesuffix(' (cancelled)')} {verb} and "
            f"{'was never sold' if chip.status == 'cancelled' else 'cannot be bought or rented yet'}"
            f"; the nearest chip that you can have is {chip.stand_in}"
        )


@pytest.mark.parametrize("row", each_row("chips_corrections.csv"), ids=lambda r: f"{r['id']}-{r['column']}")
def test_every_correction_is_in_the_catalogue(row: dict[str, str]) -> None:
    chip, column, new = load_chips()[row["id"]], row["column"], row["new"]
    if column in FIGURES:
        figure = FIGURES[column]
        if new == "unknown":
            assert figure not in chip.figures
            return
        value = chip.figures[figure]
        assert value == new if isinstance(value, str) else value == pytest.approx(float(new)), figure
        origin = chip.provenance(figure)
        assert origin.sources != chip.default.sources or origin.grade == "derived"
        assert not any(re.search(r"\bids? \d", source.ref) for source in origin.sources)
    elif column in ("memory_gb", "memory_unit"):
        assert new in str(chip.figures["memory"]).split()
    elif column == "scaleup_topology":
        assert chip.scaleup is not None
        assert chip.scaleup.topology == new
    elif column == "scaleup_max_domain":
        assert chip.scaleup is not None
        assert chip.scaleup.domain == int(new)
    elif column == "note":
        assert chip.default.note
    else:
        value = {"grade": chip.default.grade}.get(column) or getattr(chip, column)
        assert str(value) == new


def test_no_source_is_a_number_of_an_index_that_nobody_can_open() -> None:
    for chip in CHIPS:
        for origin in (chip.default, *chip.own.values()):
            said = (*(source.ref for source in origin.sources), origin.note)
            assert not any(re.search(r"\bids? \d{6}", text) for text in said), chip.id


@pytest.mark.parametrize(
    ("name", "memory_gib", "bandwidth"),
    [("m4-max:64gb", 64, 546e9), ("M4 Max:64GB", 64, 546e9), ("m4-max:36gb", 36, 410e9), ("mi50:32gb", 32, 1024e9),
     ("rtx-3060-ti:gddr6x", 8, 608e9), ("arc-a770-16gb:8gb", 8, 512e9), ("rtx-3060-12gb", 12, 360e9),
     ("780m:ddr5-5600", 96, 89.6e9), ("hx-370:ddr5-5600", 96, 89.6e9)],
)  # fmt: skip
def test_variants_of_a_product_are_options_of_one_entry(name: str, memory_gib: float, bandwidth: float) -> None:
    chip = get_chip(name)
    assert chip.memory.label_bytes == memory_gib * 2**30
    assert chip.memory.usable_bytes == pytest.approx(0.99 * memory_gib * 2**30)
    assert chip.memory.bytes_per_s == pytest.approx(bandwidth, rel=2e-3)
    if ":" in chip.id:
        assert chip.software_id == chip.id.partition(":")[0], "the same silicon: what was measured holds"
        assert chip.id in load_chips()
        assert chip.id not in set(load_chips())


def test_of_memories_of_several_speeds_the_one_that_was_taken_is_said() -> None:
    (line,) = memory_words(["igpu-radeon-780m", "rtx-4090", "m4-max:64gb", "igpu-radeon-880m:ddr5-5600"])
    assert line == "igpu-radeon-780m is taken with 120 GB/s of memory: igpu-radeon-780m:ddr5-5600 has 89.6"


def test_an_option_that_is_not_sold_names_those_that_are() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown option of m4-max '60gb'.*48gb, 64gb, 128gb"):
        get_chip("m4-max:60gb")
    with pytest.raises(UnknownNameError, match="it has none: h100-sxm5-80gb"):
        get_chip("h100:96gb")


ASKED = {
    "Vera Rubin": "rubin-sxm", "TPU v7": "tpu-v7x", "Trn1": "trainium1", "Trn2 Ultra": "trainium2",
    "Cerebras CS-3": "wse3-cs3", "Tenstorrent Blackhole": "tt-blackhole-p150", "Galaxy": "tt-wormhole-galaxy",
    "Kunlun": "kunlun-p800", "Hygon": "dcu-k100-ai", "A800": "a800-sxm4-80gb", "RTX PRO 5000": "rtx-pro-5000-48gb",
    "A5000": "rtx-a5000", "P100": "p100-pcie-16gb", "Orin Nano": "jetson-orin-nano-super", "B50": "arc-pro-b50",
    "Sapphire Rapids": "xeon-8480plus", "Axion": "axion-c4a", "Coral": "coral-edge-tpu", "Rebel": "rebel-quad",
    "Lunar Lake": "igpu-arc-140v", "Cloud AI 100": "qaic100-std", "ryzen-ai-max-395": "igpu-radeon-8060s",
    "NVIDIA GeForce RTX 4090 Laptop GPU": "rtx-4090-laptop", "4090 RTX": "rtx-4090", "80GB A100 PCIe": "a100-pcie-80gb",
    "Instinct MI 300X": "mi300x", "NVIDIA H100 80GB HBM3": "h100-sxm5-80gb", "H20": "h20-96gb", "H800": "h800-sxm5",
    "RTX 4090 D": "rtx-4090d", "RTX PRO 6000 Max-Q": "rtx-pro-6000-max-q", "apple m3 ultra": "m3-ultra",
}  # fmt: skip
SEVERAL = ("RTX 6000", "Orin NX", "Ryzen AI 9", "Hopper", "rtx")
NOT_HELD = {"Graphcore Bow", "Axelera", "Lightmatter", "Positron"}


@pytest.mark.parametrize("name", ASKED)
def test_names_as_people_type_them(name: str) -> None:
    assert get_chip(name).id == ASKED[name]


@pytest.mark.parametrize("name", SEVERAL)
def test_a_name_of_several_chips_lists_them(name: str) -> None:
    with pytest.raises(UnknownNameError, match="chips are called so: "):
        get_chip(name)


@pytest.mark.parametrize(
    "name",
    [
        "RTX 4090 Ti",
        "RTX 4090 Max-Q",
        "H100 laptop",
        "H2000",
        "RTX 5090 Super",
        "A100 96GB",
        "M4 Max Ultra",
        "L40G",
        "D",
    ],
)
def test_a_near_name_is_no_match(name: str) -> None:
    with pytest.raises(UnknownNameError):
        get_chip(name)


def test_names_that_were_asked_are_resolved() -> None:
    asked = [row["name"] for row in rows_of("names_asked.csv") if row["kind"] == "chip"]
    found, missed = {}, []
    for name in asked:
        try:
            found[name] = get_chip(name).id
        except UnknownNameError:
            missed.append(name)
    assert len(found) / (len(asked) - len(NOT_HELD)) >= 0.95, missed
    assert set(missed) >= NOT_HELD
    for name, chip in found.items():
        if name in load_chips():
            assert chip == name
        elif name in ASKED:
            assert chip == ASKED[name]


def test_only_what_is_for_rent_is_searched_without_a_name() -> None:
    market = set(load_chips().market())
    assert {"h100-sxm5-80gb", "mi300x", "l40", "rtx-4090"} <= market
    assert not market & {"gtx-1080", "rtx-4090-laptop", "raspberry-pi-5", "mi430x", "mi455x"}
    assert market == {c.id for c in CHIPS if c.rentable and not c.only_named}


def test_chips_that_nobody_measured_run_as_one_of_their_kind() -> None:
    for chip in CHIPS:
        if chip.runs_as:
            other = load_chips()[chip.runs_as]
            assert other.family == chip.family
            assert not other.runs_as
            assert chip.software_id == chip.id, "it takes no fitted number of the other"
        if chip.stand_in:
            assert load_chips()[chip.stand_in].rentable


@pytest.mark.parametrize(
    ("name", "chip"),
    [
        ("H100", "h100-sxm5-80gb"),
        ("h100_sxm", "h100-sxm5-80gb"),
        ("A100 SXM 80GB", "a100-sxm4-80gb"),
        ("MI300X", "mi300x"),
        ("ironwood", "tpu-v7x"),
        (" trn2 ", "trainium2"),
        ("RTX 4090", "rtx-4090"),
        ("WSE-3", "wse3-cs3"),
    ],
)
def test_names_people_use(name: str, chip: str) -> None:
    assert get_chip(name) is load_chips()[chip]


def test_unknown_chip_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"rtx-4090.*chipwise chips list"):
        get_chip("rtx-4091")
    with pytest.raises(UnknownNameError):
        get_chip("")


def test_aliases_are_written_as_they_are_looked_up() -> None:
    for chip in CHIPS:
        for alias in chip.aliases:
            assert get_chip(alias) is chip


def test_chips_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        get_chip("t4").year = 2020  # type: ignore[misc]


GOOD = """
vendor = "acme"
[sources]
sheet = { ref = "Acme, data sheet", date = "2026-11-20" }

[a1]
name = "Acme A1"
kind = "gpu"
family = "simt"
year = 2026
status = "ga"
sources = ["sheet"]
grade = "datasheet"
memory = "48 GB"
memory_kind = "hbm"
memory_GBps = 2000
matrix_tflops = { bf16 = 300, fp8 = 600 }
own = [{ figures = ["memory_GBps"], grade = "assumed", note = "stacks x pins" }]
"""


def test_a_matrix_instruction_is_one_that_formulas_know() -> None:
    with pytest.raises(UsageError, match="instruction must be wgmma or tcgen05, not 'mfma'"):
        read_chips(GOOD.replace('family = "simt"', 'family = "simt"\ninstruction = "mfma"'), "own.toml")


def test_a_users_chip() -> None:
    chip = read_chips(GOOD, "mine.toml")["a1"]
    assert chip.vendor == "acme"
    assert chip.memory.usable_bytes == 0.99 * 48e9
    assert chip.provenance("usable_memory_GB").grade == "assumed"
    assert chip.provenance("memory_GBps").note == "stacks x pins"
    assert chip.provenance("matrix_tflops.fp8").sources[0].date == "2026-11-20"
    assert chip.scaleup is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[a1]", "[a1", "mine.toml: not valid TOML"),
        ('vendor = "acme"', "", "no vendor"),
        ("memory_GBps = 2000", "memory_gbps = 2000", "'a1': unknown key 'memory_gbps'.*memory_GBps"),
        ("memory_GBps = 2000", 'memory_GBps = "2000"', "'a1': memory_GBps must be a positive number"),
        ("memory_GBps = 2000", "memory_GBps = -1", "must be a positive number"),
        ("memory_GBps = 2000", "memory_GBps = inf", "must be a positive number"),
        ("memory_GBps = 2000", "memory_GBps = nan", "must be a positive number"),
        ("memory_GBps = 2000", f"memory_GBps = 1{'0' * 400}", "must be a positive number"),
        ("memory_GBps = 2000", "memory_GBps = true", "must be a positive number"),
        ('memory = "48 GB"', 'memory = "48"', "memory must be a size such as '80 GiB'"),
        ('name = "Acme A1"', "", "'a1': no name"),
        ('family = "simt"', 'family = "gpu"', "family must be one of simt"),
        ("year = 2026", "year = 26", "year must be"),
        ('grade = "datasheet"', 'grade = "sure"', "grade must be one of measured"),
        ('sources = ["sheet"]', 'sources = ["shet"]', "source 'shet' is not in .sources.*sheet"),
        ('sources = ["sheet"]', "sources = []", "no sources"),
        ("bf16 = 300,", "bfloat16 = 300,", "unknown key 'bfloat16'.*bf16"),
        ('figures = ["memory_GBps"]', 'figures = ["tdp_W"]', "own lists 'tdp_W', which the table does not have"),
        ("memory_GBps = 2000", "memory_GBps = 2000\ntier2_GB = 480", "need tier2"),
        ("memory_GBps = 2000", "memory_GBps = 2000\nunits = 1.5", "units must be a whole number"),
        ("memory_GBps = 2000", 'memory_GBps = 2000\nexceptions = { fp8 = "x" }', "unknown key 'fp8'.*fp8_ratio"),
        ('{ ref = "Acme, data sheet", date = "2026-11-20" }', "{ date = 2026-11-20 }", "source 'sheet' needs a ref"),
        ("[a1]", "[A1]", "an id is made of"),
    ],
)
def test_bad_files_give_one_line(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(UsageError) as caught:
        read_chips(GOOD.replace(old, new), "mine.toml")
    assert str(caught.value).startswith("mine.toml")
    assert "\n" not in str(caught.value)
    assert re.search(message, str(caught.value)), str(caught.value)


def test_an_alias_of_two_chips_is_refused() -> None:
    twice = GOOD.replace('name = "Acme A1"', 'name = "Acme A1"\naliases = ["a"]')
    twice += twice[twice.index("[a1]") :].replace("[a1]", "[a2]")
    with pytest.raises(UsageError, match="'a' names both a1 and a2"):
        read_chips(twice, "mine.toml")


def test_chips_that_run_the_same_kernels_share_a_generation() -> None:
    chips = load_chips()
    assert {chips[c].generation for c in ("h100-pcie-80gb", "h200-nvl", "gh200-96gb")} == {"hopper"}
    assert chips["gb300-nvl72"].generation == "blackwell_ultra"
    assert chips["gb300-nvl72"].base_generation == chips["b200-sxm"].base_generation == "blackwell"
    assert chips["rtx-5090"].base_generation == "blackwell_rtx"
    assert chips["tpu-v5e"].generation == "tpu-v5e", "kernels that no other chip runs"
    for chip in chips.values():
        assert chip.base_generation in {c.generation for c in chips.values()}, chip.id


def test_every_gpu_with_kernels_of_its_vendor_has_a_generation() -> None:
    gpus = [c for c in CHIPS if c.family == "simt" and c.vendor in ("nvidia", "amd")]
    assert {c.id for c in gpus if c.generation == c.id and c.id != "groq-3-lpu"} == set()


def test_a_plan_on_recalled_figures_says_so(run: Run) -> None:
    """In the verdict, among the assumptions of every verb, and on the sheet; not of chips that were read up."""
    assert get_chip("a18-pro").recalled == ("memory", "memory_GBps", "matrix_tflops.fp16", "vector_tflops.fp32")
    assert get_chip("h100-sxm5-80gb").recalled == ()
    line = "figures recalled, not read in a source: a18-pro (memory, memory_GBps"
    model = ("Llama-3.2-3B", "--precision", "q4_k_m")
    told = run("estimate", *model, "--chip", "a18-pro")
    assert "Evidence: modelled, on recalled chip figures." in " ".join(told.out.split())
    for asked in (
        ("estimate", *model, "--chip", "a18-pro"),
        ("fit", *model, "--chips", "a18-pro"),
        ("local", "--have", "a18-pro", "--min-tps", "5", "--most", "1"),
        ("fit", "resnet50", "--chips", "a18-pro"),
    ):
        answer = run(*asked, "--format", "json").json
        assert any(note.startswith(line) for note in answer["assumptions"]), asked
    sheet = run("chips", "show", "a18-pro", "--format", "json").json
    assert "recalled" in json.dumps(sheet)
    plain = run("estimate", "Llama-3.1-8B", "--chip", "h100")
    assert "recalled" not in plain.out


@pytest.mark.parametrize(
    ("name", "chip", "count"),
    [
        ("p5.48xlarge", "h100-sxm5-80gb", 8),
        ("p6-b200.48xlarge", "b200-sxm", 8),
        ("trn2.48xlarge", "trainium2", 16),
        ("inf2.48xlarge", "inferentia2", 12),
        ("g6e.12xlarge", "l40s", 4),
        ("a3-highgpu-8g", "h100-sxm5-80gb", 8),
        ("a3-ultragpu-8g", "h200-sxm-141gb", 8),
        ("v5litepod-8", "tpu-v5e", 8),
        ("ND96isr_H100_v5", "h100-sxm5-80gb", 8),
        ("ND MI300X v5", "mi300x", 8),
        ("BM.GPU.MI300X.8", "mi300x", 8),
    ],
)
def test_machines_of_clouds_are_known_by_name(name: str, chip: str, count: int) -> None:
    """Asked for as a chip they say what is in them; as what one has they are their chips."""
    with pytest.raises(UnknownNameError, match=f"a machine for rent: {count}x {chip}") as caught:
        get_chip(name)
    assert caught.value.nearest == (chip,)
    assert parse_have(name) == ((chip, count),)
    assert parse_have(f"2x{name}") == ((chip, 2 * count),)
    assert parse_machine(name).cards == ((load_chips()[chip], count),)


def test_a_price_is_suggested_only_where_there_is_one() -> None:
    for name, priced in (("p5.48xlarge", True), ("a4x-highgpu-4g", False)):
        with pytest.raises(UnknownNameError) as caught:
            get_chip(name)
        assert ("--provider" in caught.value.hint) is priced, name


@pytest.mark.parametrize(("name", "maker"), [("intel-atom", "intel"), ("amd h900", "amd"), ("intel h1001", "intel")])
def test_a_maker_that_is_named_is_not_left(name: str, maker: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        get_chip(name)
    assert all(get_chip(near).vendor.lower() == maker for near in caught.value.nearest)
    assert "Rebellions" not in str(caught.value)


def test_a_series_of_machines_lists_them() -> None:
    with pytest.raises(UnknownNameError, match="name the chip") as caught:
        get_chip("ND96isr")
    assert set(caught.value.nearest) == {"h100-sxm5-80gb", "h200-sxm-141gb", "mi300x"}


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Graphcore Bow", "ipu-mk2-gc200"),
        ("Tesla Dojo", "tpu-v4"),
        ("B100", "b200-sxm"),
        ("B200 NVL72", "gb200-nvl72"),
        ("vera rubin nvl144", "rubin-sxm"),
        ("mac studio", "m4"),
    ],
)
def test_chips_without_figures_get_a_sentence_and_the_nearest(name: str, near: str) -> None:
    with pytest.raises(UnknownNameError, match="nearest with figures") as caught:
        get_chip(name)
    assert caught.value.nearest[0] == near
    assert set(caught.value.nearest) <= set(load_chips())


def test_a_maker_of_chips_of_several_kinds_lists_them() -> None:
    with pytest.raises(UnknownNameError, match="a maker of 14 chips: tpu-v1"):
        get_chip("google")


@pytest.mark.parametrize(
    ("name", "chip", "priced"),
    [
        ("inferentia", "inferentia2", True),
        ("tpu", "tpu-v6e", True),  # v7x is newer, and nobody states its price
        ("trainium", "trainium1", True),
        ("groq lpu", "groq-lpu1", False),  # the third is announced
        ("sambanova", "sn40l", False),
        ("cerebras", "wse3-cs3", False),
        ("intel i9", "core-i9-14900k", False),
        ("gaudi", "gaudi3", False),
        ("apple", "m6", False),  # of its chips of 2026 the plain one
    ],
)
def test_a_family_is_taken_as_its_newest(name: str, chip: str, priced: bool) -> None:
    taken = family(name)
    assert taken is not None
    assert (taken.chip, taken.priced) == (chip, priced)
    assert get_chip(name).id == chip
    assert chip not in taken.others
    with pytest.raises(UnknownNameError):
        exact_chip(name)


@pytest.mark.parametrize("name", ["h100", "RTX 4090 Ti", "p5", "ND96isr", "nvidia", "tpu-v4", "nothing"])
def test_one_chip_a_machine_and_a_wrong_name_are_no_family(name: str) -> None:
    assert family(name) is None


@pytest.mark.parametrize(
    ("name", "chip"),
    [
        ("5080", "rtx-5080"),
        ("M40", "m40-24gb"),
        ("MacBook Pro M3 Max", "m3-max"),
        ("Mac mini M4 Pro", "m4-pro"),
        ("framework desktop", "igpu-radeon-8060s"),
        ("grace hopper", "gh200-96gb"),
        ("HGX H100", "h100-sxm5-80gb"),
        ("DGX A100", "a100-sxm4-80gb"),
        ("Instinct MI300X OAM", "mi300x"),
    ],
)
def test_computers_and_boards_are_chosen_by_their_chip(name: str, chip: str) -> None:
    assert get_chip(name).id == chip


def test_names_of_the_catalogue_stand_behind_every_name_without_figures() -> None:
    table = tomllib.loads((PACKAGE / NAMES).read_text("utf-8"))
    near = {chip for row in table["without_figures"].values() for chip in row["near"]}
    assert near | {row["chip"] for row in table["machine"]} <= set(load_chips())
    for name, row in table["without_figures"].items():
        with pytest.raises(UnknownNameError, match=re.escape(row["say"])):
            get_chip(name)
