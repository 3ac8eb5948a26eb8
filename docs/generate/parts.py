"""All generated parts by the name that pages call them by."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from docs.generate import reference, tables
from docs.generate.accuracy import accuracy_table, rounds_table
from docs.generate.drawn import figure
from docs.generate.pictures import roofline_picture, tradeoff_picture
from docs.generate.questions import questions_table, training_table
from docs.generate.statements import claims_page, claims_table
from docs.generate.stories import story_page
from docs.generate.tasks import tasks_table

__all__ = ["PARTS"]

PARTS: Mapping[str, Callable[[str], str]] = {
    "chips": tables.chips_table,
    "systems": tables.systems_table,
    "runtimes": tables.runtimes_table,
    "models": tables.models_table,
    "offers": tables.offers_table,
    "counts": tables.counts,
    "accuracy": accuracy_table,
    "rounds": rounds_table,
    "help": reference.help_page,
    "functions": reference.functions,
    "requests": reference.requests,
    "records": reference.records,
    "glossary": reference.glossary,
    "http": reference.paths,
    "tools": reference.tools,
    "resources": reference.resources,
    "launch-targets": reference.targets,
    "claims": lambda _: claims_page(),
    "verdicts": lambda _: claims_table(),
    "tasks": lambda _: tasks_table(),
    "story": story_page,
    "questions": questions_table,
    "training-questions": training_table,
    "picture": figure,
    "roofline-picture": roofline_picture,
    "tradeoff-picture": tradeoff_picture,
}
"""Each takes the argument that stands behind its name."""
