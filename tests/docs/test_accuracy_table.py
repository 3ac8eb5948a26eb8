"""The short table of accuracy says what the page of accuracy says."""

from __future__ import annotations

from docs.generate.accuracy import ENERGY, LINES, PAGE, Line, accuracy_lines, accuracy_table

from chipwise.evidence.rounds import register

TEXT = """## serving
**by mode**
|  | metric | rows | answered | median | p90 | bias | in 80 % interval |
|---|---|---:|---:|---:|---:|---:|---:|
| aggregated | tpot_ms | 1,951 | 100.0 % | 8.5 % | 29.4 % | -2.0 % | 78.4 % | 0.8 | 28.2 % [13-46] of 22 |
| refused | tpot_ms | 12 | 0.0 % | - | - | - | - |
## kernels
**all**
| all | latency_us | 150,998 | 100.0 % | 10.8 % | 39.1 % | +1.8 % | 79.9 % |
"""


def test_lines_are_read_by_section_heading_row_and_metric() -> None:
    assert accuracy_lines(TEXT) == {
        ("serving", "by mode", "aggregated", "tpot_ms"): Line(8.5, 78.4, 28.2),
        ("kernels", "all", "all", "latency_us"): Line(10.8, 79.9),
    }


def test_every_figure_of_the_table_stands_on_the_page() -> None:
    known = accuracy_lines(PAGE.read_text("utf-8"))
    shown = f"{accuracy_table()}\n{accuracy_table('energy')}"
    for what, places in (LINES | ENERGY).items():
        (row,) = [line for line in shown.splitlines() if line.startswith(f"| {what} |")]
        medians, means = (cell.split(",") for cell in row.split("|")[2:4])
        for place, median, mean in zip(places, medians, means, strict=True):
            assert abs(float(median.strip(" %")) - known[place].median) <= 0.5
            cells = known[place].cells
            assert mean.strip() == "-" if cells is None else abs(float(mean.strip(" %")) - cells) <= 0.5


def test_the_words_of_a_basis_stand_beside_the_coverage_of_the_last_round() -> None:
    last = max(line.round for line in register())
    held = {line.found.name.rpartition("basis ")[2]: line.found.coverage for line in register() if line.round == last}
    text = " ".join((PAGE.parent / "choose.md").read_text("utf-8").split())
    said = f"In round {last}, of figures that no fit had seen, {held['calibrated']:.0%} of the calibrated and "
    assert f"{said}{held['modelled']:.0%} of the modelled ones".replace("%", " %") in text
