"""A hook of MkDocs: links that lead elsewhere open in a tab of their own, and tell the other site nothing; lists of the
menu have names."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["on_page_content", "on_post_page", "on_post_template"]

LINK = re.compile(r'<a (?=[^>]*href="https?://)(?![^>]*target=)')


# The theme names a list of the menu by a label that is empty where the group has a page of its own.
MENU = re.compile(
    r'(<nav class="md-nav" data-md-level="\d+") aria-labelledby="[^"]*"([^>]*>\s*<label class="md-nav__title"[^>]*>'
    r'\s*<span class="md-nav__icon md-icon"></span>\s*)([^<]*[^<\s])'
)
UNNAMED = {
    '<div class="md-search" data-md-component="search" role="dialog">': ' aria-label="Search"',
    '<input class="md-toggle" data-md-toggle="search"': ' aria-label="Search"',
    '<input class="md-toggle" data-md-toggle="drawer"': ' aria-label="Menu"',
}


def on_post_page(output: str, **_: Any) -> str:
    """A page whose menus and switches have names."""
    for tag, name in UNNAMED.items():
        kind, _, rest = tag.partition(" ")
        output = output.replace(tag, f"{kind}{name} {rest}")
    return MENU.sub(r'\1 aria-label="\3"\2\3', output)


def on_post_template(output_content: str, template_name: str, **_: Any) -> str:
    """The same of the page that says that there is none."""
    return on_post_page(output_content) if template_name.endswith(".html") else output_content


def on_page_content(html: str, **_: Any) -> str:
    """A page's text with its links elsewhere marked."""
    return LINK.sub('<a target="_blank" rel="noopener noreferrer" ', html)
