"""The short table of accuracy says what the page of accuracy says."""

from __future__ import annotations

from docs.generate.accuracy import ENERGY, LINES, PAGE, Line, accuracy_lines, accuracy_table

TEXT = """## serving
**by mode**
|  | metric | rows | answered | median | p90 | bias | in 80 % interval |
|---|---|---:|---:|---:|---:|---:|---:|
| aggregated | tpot_ms | 1,951 | 100.0 % | 8.5 % | 29.4 % | -2.0 % | 78.4 % |
| refused | tpot_ms | 12 | 0.0 % | - | - | - | - |
## kernels
**all**
| all | latency_us | 150,998 | 100.0 % | 10.8 % | 39.1 % | +1.8 % | 79.9 % |
"""


def test_lines_are_read_by_section_heading_row_and_metric() -> None:
    assert accuracy_lines(TEXT) == {
        ("serving", "by mode", "aggregated", "tpot_ms"): Line(8.5, 78.4),
        ("kernels", "all", "all", "latency_us"): Line(10.8, 79.9),
    }


def test_every_figure_of_the_table_stands_on_the_page() -> None:
    known = accuracy_lines(PAGE.read_text("utf-8"))
    shown = f"{accuracy_table()}\n{accuracy_table('energy')}"
    for what, places in (LINES | ENERGY).items():
        (row,) = [line for line in shown.splitlines() if line.startswith(f"| {what} |")]
        for place, said in zip(places, row.split("|")[2].split(","), strict=True):
            assert abs(float(said.removesuffix("% ").rstrip(" %")) - known[place].median) <= 0.5
