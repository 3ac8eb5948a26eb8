"""What agents can read besides the tools: the glossary, the accuracy table, a sheet for each chip."""

from __future__ import annotations

import io
import re
from importlib.resources import files
from urllib.parse import unquote

from mcp.types import (
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from chipwise.catalog.chips import get_chip, load_chips
from chipwise.report.catalogue import chip_view
from chipwise.report.glossary import GLOSSARY
from chipwise.report.table import render

__all__ = ["RESOURCES", "TEMPLATES", "read"]

MARKDOWN = "text/markdown"
SHEET = re.compile(r"chipwise://chips/([^/?#]+)")

RESOURCES = (
    Resource(
        uri="chipwise://glossary",
        name="glossary",
        title="Words of the field",
        description="What chipwise means by chip, plan, layout, basis, TTFT, TPOT and the rest.",
        mime_type=MARKDOWN,
    ),
    Resource(
        uri="chipwise://accuracy",
        name="accuracy",
        title="Accuracy",
        description="Errors of predictions on measurements that no fit behind them had seen, bad rows included.",
        mime_type=MARKDOWN,
    ),
)

TEMPLATES = (
    ResourceTemplate(
        uri_template="chipwise://chips/{id}",
        name="chip",
        title="Sheet of a chip",
        description="Every figure of a chip with its grade, source and date. Ids: the tool chips.",
        mime_type=MARKDOWN,
    ),
)


def read(uri: str) -> ReadResourceResult:
    """A resource as Markdown.

    Raises `UnknownNameError` for a chip that does not exist, `KeyError` for any other address.
    """
    sheet = SHEET.fullmatch(uri)
    if sheet is not None:
        text = _sheet(unquote(sheet.group(1)))
    else:
        text = {"chipwise://glossary": _glossary, "chipwise://accuracy": _accuracy}[uri]()
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=MARKDOWN, text=text)])


def _glossary() -> str:
    return (
        "\n".join(("# Glossary", "", *(f"- **{word}**: {meaning}" for word, meaning in GLOSSARY.items())))
        + "\n"
    )


def _accuracy() -> str:
    return files("chipwise.report").joinpath("data", "accuracy.md").read_text("utf-8")


def _sheet(name: str) -> str:
    chip = load_chips()[get_chip(name).id]
    out = io.StringIO()
    render((chip_view(chip),), chip, "md", out)
    return out.getvalue()
