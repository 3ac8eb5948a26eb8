"""A hook of MkDocs: links that lead elsewhere open in a tab of their own, and tell the other site nothing."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["on_page_content"]

LINK = re.compile(r'<a (?=[^>]*href="https?://)(?![^>]*target=)')


def on_page_content(html: str, **_: Any) -> str:
    """A page's text with its links elsewhere marked."""
    return LINK.sub('<a target="_blank" rel="noopener noreferrer" ', html)
