"""The pages: every view a plain address with the fields of its question, with JSON and CSV next to it."""

from chipwise.web.pages.render import as_page
from chipwise.web.pages.routes import ready, routes

__all__ = ["as_page", "ready", "routes"]
