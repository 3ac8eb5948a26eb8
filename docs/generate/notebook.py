"""Notebooks: their cells are written by hand, their outputs are what running them shows.

A notebook runs in this process, one cell after the other, on the day of the documentation: what a cell prints, and what
its last line is worth, as text, HTML and chart.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docs.generate.pages import Problem

__all__ = ["fresh_notebook", "notebooks", "refresh_notebook"]

DOCS = Path(__file__).resolve().parents[1]
CUT = {"application/vnd.vegalite.v6+json"}  # the older form of a chart is drawn by more readers, and one is enough


def notebooks() -> list[Path]:
    """All notebooks of the documentation."""
    return sorted(DOCS.glob("*.ipynb"))


def fresh_notebook(text: str) -> str:
    """A notebook with every output made again. Raises what a cell raises."""
    book = json.loads(text)
    names: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            cell["execution_count"] = count
            cell["outputs"] = list(_outputs("".join(cell["source"]), names, count))
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def refresh_notebook(path: Path, *, write: bool) -> Problem | None:
    """Bring a notebook up to date, or only say that it is not. How pandas draws a frame is its own affair."""
    old = path.read_text("utf-8")
    new = fresh_notebook(old)
    if _compared(new) == _compared(old):
        return None
    if write:
        path.write_text(new, "utf-8")
    pairs = zip(_compared(old), _compared(new), strict=True)
    first = next((cell, a, b) for cell, (a, b) in enumerate(pairs) if a != b)
    return Problem(path.name, f"cell {first[0]} shows {str(first[2])[:200]}, not {str(first[1])[:200]}")


def _compared(text: str) -> list[Any]:
    """The outputs of every cell, without frames as HTML; numbers of charts to nine digits, as the last of a sum depends
    on what was asked with it."""
    found = []
    for cell in json.loads(text, parse_float=lambda number: float(f"{float(number):.9g}"))["cells"]:
        outputs = json.loads(json.dumps(cell.get("outputs", [])))
        for output in outputs:
            if 'class="dataframe"' in "".join(output.get("data", {}).get("text/html", ())):
                del output["data"]["text/html"]
        found.append(outputs)
    return found


def _outputs(code: str, names: dict[str, Any], count: int) -> Iterator[dict[str, Any]]:
    """What a cell prints, then what its last expression shows."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(tree, f"<cell {count}>", "exec"), names)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"<cell {count}>", "eval"), names)
    if out.getvalue():
        yield {"name": "stdout", "output_type": "stream", "text": _lines(out.getvalue())}
    if value is not None:
        data = dict(_shown(value))
        yield {"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"}


def _shown(value: Any) -> Iterator[tuple[str, Any]]:
    """A value by type of medium, as a notebook asks for it."""
    bundle = getattr(value, "_repr_mimebundle_", None)
    if bundle is not None:
        yield from sorted((kind, part) for kind, part in bundle().items() if kind not in CUT)
        return
    html = getattr(value, "_repr_html_", None)
    if html is not None:
        yield "text/html", _lines(html())
    yield "text/plain", _lines(repr(value))


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
