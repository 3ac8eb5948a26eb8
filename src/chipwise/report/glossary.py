"""The words of the field as chipwise uses them."""

from __future__ import annotations

from chipwise.catalog.parsed import names

GLOSSARY: dict[str, str] = names("report/data/glossary.toml")
"""Words and what they mean."""
