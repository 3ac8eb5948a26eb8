"""A request as the command that asks it, and as another request about the same thing.

Every `next:` line and every hint that names a command is written here, so that it carries the user's own options.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, TypeVar

from chipwise.api.requests.field import Asked, as_text, option_of, outer
from chipwise.catalog.configs import INLINE
from chipwise.errors import CommandText, InfeasibleError, Sentence

R = TypeVar("R", bound=Asked)

MOST_INLINE = 600
"""Characters of a configuration that a command repeats: the keys of a header, or those that decide a model's size."""


def about(request: Asked, kind: type[R], **changed: Any) -> R:
    """The request of another kind that takes over every option which both have, with some `changed`."""
    own = {f.name for f in fields(request)}  # type: ignore[arg-type]
    shared = [f.name for f in fields(kind) if f.name in own]  # type: ignore[arg-type]
    return kind(**{name: getattr(request, name) for name in shared} | changed)


def command_line(verb: str, request: Asked) -> str:
    """The command that asks this, without options at their defaults."""
    parts = ["chipwise", *GROUPED.get(verb, (verb,))]
    named = len(parts)
    for f in fields(request):  # type: ignore[arg-type]
        value = getattr(request, f.name)
        if f.name in ("model", "op", "fleet"):
            # a configuration that was given itself, where it is too long for a line, is one that the user has in a file
            long = value.lstrip().startswith(INLINE) and (len(value) > MOST_INLINE or "\n" in value)
            parts.insert(named, "config.json" if long else value)
        elif value != f.default and value is not None:
            option = option_of(outer(f))
            parts += [option] if value is True else [option, as_text(value)]
    return shlex.join(parts)


GROUPED: dict[str, tuple[str, ...]] = {"match": ("evidence", "match")}
"""Verbs that the command line has under another."""


@contextmanager
def hinting(verb: str, request: Callable[[], Asked]) -> Iterator[None]:
    """Lets an error that points to a verb name the command with the options of what `request` makes."""
    try:
        yield
    except InfeasibleError as error:
        if error.see == verb:
            error.hint = Sentence(
                CommandText(command_line(verb, request()).removeprefix("chipwise "), "shows what would help")
            )
        raise


SPELT: dict[tuple[str, str], str] = {
    ("chips", "chips"): "chipwise chips show",
    ("models", "model"): "chipwise models show",
    ("systems", "system"): "chipwise systems show",
    ("runtimes", "runtime"): "chipwise runtimes show",
    ("offers", "chip"): "chipwise offers list",
    ("match", "model"): "chipwise evidence match",
}
"""How the command line spells a verb of the catalogue that asks for one thing alone."""


def plain_command(verb: str, given: Mapping[str, Any]) -> str | None:
    """The command that asks a verb of the catalogue for one thing, None for any other question."""
    if len(given) != 1:
        return None
    ((name, value),) = given.items()
    return f"{SPELT[verb, name]} {shlex.quote(str(value))}" if (verb, name) in SPELT else None
