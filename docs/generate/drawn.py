"""Pictures of the pages: charts of answers and of the project's own tables, as SVG for light ground and for dark.

`specification` asks the question that a picture is of and gives its chart in Vega-Lite; `figure` stands in a page;
`refresh_drawn` draws again those whose chart is another than the one they were drawn from, which `DIGESTS` remembers.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

from docs.generate.drawings import DRAWN, SHOTS, Drawn
from docs.generate.gallery import MADE

import chipwise
from chipwise.cli import main
from chipwise.cli.options import Output

__all__ = ["DIGESTS", "FOLDER", "digest", "digests", "figure", "file_digest", "refresh_drawn", "specification"]

FOLDER = Path(__file__).resolve().parents[1] / "pictures"
DIGESTS = FOLDER / "digests.json"
INKS = {"": ("#24292f", "#57606a", "#d0d7de", "#0b756d"), "-dark": ("#e6e8ec", "#aab2bd", "#434b57", "#3fc7ba")}
"""Per ground: text, axes, lines and the accent of the charts."""
ACCENT = "#0f8a80"
WIDTH = 620
DIGITS = 3
Spec = dict[str, Any]


def specification(drawn: Drawn) -> Spec:
    """The chart of a picture. Raises `ValueError` for a question that is not answered."""
    if drawn.made:
        return MADE[drawn.made]()
    answer = _asked(drawn.question)
    return dict(answer.chart(drawn.chart))


def digest(spec: Spec) -> str:
    """What a chart shows, in a few letters: numbers count with three digits."""
    return hashlib.sha256(json.dumps(_calm(spec), sort_keys=True).encode()).hexdigest()[:16]


def digests() -> Mapping[str, Mapping[str, str]]:
    """Of every picture the digests of its chart and of its files."""
    found: Mapping[str, Mapping[str, str]] = json.loads(DIGESTS.read_text("utf-8")) if DIGESTS.exists() else {}
    return found


def file_digest(path: Path) -> str:
    """What a file holds, in a few letters."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def figure(name: str) -> str:
    """A picture as it stands in a page: for both grounds, its caption, and the question below it."""
    drawn = next((d for d in (*DRAWN, *SHOTS) if d.name == name), None)
    if drawn is None:
        raise ValueError(f"no picture is called {name}: {', '.join(d.name for d in (*DRAWN, *SHOTS))}")
    up = "../" * drawn.page.count("/")
    images = "\n".join(
        f"![{drawn.alt}]({up}pictures/{name}{ground}.{drawn.kind}#only-{only}){{ .drawn loading=lazy }}"
        for ground, only in (("", "light"), ("-dark", "dark"))
    )
    asked = f" `{drawn.question}`" if drawn.question else ""
    return f"{images}\n*{drawn.caption}*{asked}"


def refresh_drawn(*, write: bool) -> list[str]:
    """The names of pictures whose chart changed, which are drawn again where `write`."""
    known = dict(digests())
    changed = []
    for drawn in DRAWN:
        spec = specification(drawn)
        if known.get(drawn.name, {}).get("chart") == digest(spec):
            continue
        changed.append(drawn.name)
        if write:
            known[drawn.name] = {"chart": digest(spec), **_draw(drawn.name, spec)}
    names = {d.name for d in DRAWN}
    if write and (changed or known.keys() - names):
        kept = {name: known[name] for name in sorted(known.keys() & names)}
        DIGESTS.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    return changed


def _draw(name: str, spec: Spec) -> dict[str, str]:
    """Both files of a picture."""
    FOLDER.mkdir(exist_ok=True)
    found = {}
    for ground in INKS:
        path = FOLDER / f"{name}{ground}.svg"
        path.write_text(_svg(spec, ground), "utf-8")
        found[path.name] = file_digest(path)
    return found


def _svg(spec: Spec, ground: str) -> str:
    ink, soft, line, accent = INKS[ground]
    text = json.dumps(spec).replace(ACCENT, accent)
    sized = {**json.loads(text), "config": _config(ink, soft, line)}
    for part in (sized, *sized.get("vconcat", ())):
        if part.get("width") == "container":
            part["width"] = WIDTH - 130
    try:
        drawer = import_module("vl_convert")
    except ImportError:
        raise ValueError("drawing needs vl-convert-python, of the group dev: pip install --group dev") from None
    svg: str = drawer.vegalite_to_svg(sized, vl_version="6.4")
    svg = re.sub(r' aria-(label|roledescription)="[^"]*"| role="graphics-[\w-]+"', "", svg)
    svg = re.sub(r"(\d+\.\d{2})\d+", r"\1", svg)
    return svg + "\n"


def _config(ink: str, soft: str, line: str) -> Spec:
    """The colours and sizes of the page's own charts."""
    return {
        "background": "transparent",
        "padding": {"left": 40, "right": 12, "top": 6, "bottom": 6},
        "font": "Arial, Helvetica, sans-serif",
        "axis": {
            "labelColor": soft, "titleColor": soft, "titleFontWeight": 500, "titleFontSize": 12, "labelFontSize": 12,
            "gridColor": line, "gridOpacity": 0.5, "domainColor": line, "tickColor": line, "titlePadding": 8,
            "labelLimit": 260,
        },
        "legend": {"labelColor": ink, "titleColor": soft, "labelFontSize": 12, "columns": 3, "columnPadding": 40, "labelLimit": 0},  # noqa: E501
        "header": {"labelColor": ink, "titleColor": soft},
        "view": {"stroke": None},
        "text": {"fill": ink},
        "rule": {"stroke": ink},
        "tick": {"color": ink},
        "point": {"strokeWidth": 1},
    }  # fmt: skip


def _asked(question: str) -> Any:
    """The answer to a command, or to an expression in Python."""
    if not question.startswith("chipwise "):
        return eval(question, {"cw": chipwise})
    found: list[Any] = []
    answered = Output.of

    def kept(self: Output, verb: str, request: Any) -> Any:
        found.append(answered(self, verb, request))
        return found[-1]

    with mock.patch.object(Output, "of", kept), _silent(), contextlib.suppress(SystemExit):
        main(shlex.split(question)[1:])
    if not found:
        raise ValueError(f"{question}\nhas no answer to draw")
    return found[-1]


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def _calm(value: Any) -> Any:
    """A chart with its numbers cut."""
    if isinstance(value, Mapping):
        return {key: _calm(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_calm(v) for v in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    return value
