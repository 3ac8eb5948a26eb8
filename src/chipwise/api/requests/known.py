"""Names in a question that somebody else wrote: those that chipwise knows, where the command line would open a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

from chipwise.api.requests.field import as_text, outer, split
from chipwise.api.requests.kinds import Request
from chipwise.api.requests.portfolio import fleet_document, is_inline
from chipwise.catalog.benchmarks import benchmark_of
from chipwise.catalog.chips import family, get_chip
from chipwise.catalog.configs import BY_DIMENSIONS, BY_SIZE, INLINE, named_config
from chipwise.catalog.machine import counted, joined, parse_machine
from chipwise.catalog.names import closed
from chipwise.catalog.networks import is_built_in
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError, shorten
from chipwise.tracing.sources import is_code, source_of
from chipwise.workload import media

Own = Mapping[str, Any]
"""Chips of the question's own, by id."""


def refuse_code(request: Request) -> None:
    """Raises `UsageError` for a question about `FILE.py:function`, which would run it: for questions that somebody
    else wrote."""
    model = getattr(request, "model", None)
    if isinstance(model, str) and is_code(model):
        raise UsageError(
            f"{shorten(model)}: code is not run here", "the command line and Python trace it", field="model"
        )


def with_known(request: Request) -> Request:
    """The request with the names of its models and chips resolved. Raises for anything that could be a file."""
    changed: dict[str, Any] = {}
    own = request.values.get("own_chips") or {}
    for f in fields(request):  # type: ignore[arg-type]
        value = getattr(request, f.name)
        if not f.metadata.get("file") or value is None:
            continue
        try:
            if f.name not in NAMED:
                raise UsageError(f"{f.name}: files are not read here", "the command line reads them")
            if f.name == "model" and getattr(request, "by_benchmark", False) and benchmark_of(value):
                continue  # asked for what was measured of it: no file of that name is opened
            changed[f.name] = NAMED[f.name](value, own)
        except ChipwiseError as error:
            error.field = outer(f)
            raise
    return replace(request, **changed) if changed else request  # type: ignore[type-var]


def _model(name: str, own: Own) -> str:
    if name.startswith((BY_DIMENSIONS, INLINE)) or BY_SIZE.match(name.strip()):  # names no file
        return name
    hint = "the verb models lists and searches them; files are not read here: send the keys of a config.json"
    if is_code(name) or name.endswith(".onnx"):
        traced = "files are not read here: the command line traces code and graphs on your own machine"
        raise UnknownNameError("model", name, (), traced)
    if is_built_in(name):
        return name.removesuffix(".gguf").removesuffix(".safetensors")  # never a file that lies here
    try:
        found = named_config(name)
    except UnknownNameError as error:
        if error.nearest or benchmark_of(name) is not None or closed(name):
            raise
        raise UnknownNameError("model", name, media.names(), hint) from None
    known = name if found.weights else found.name
    if source_of(known) is not None:  # a file that lies where the server was started
        raise UnknownNameError("model", name, (), hint)
    return known


def _chip(name: str, own: Own) -> str:
    if name.strip() in own:
        return name.strip()
    several = counted(name)
    if several is not None:
        return f"{several[1]}x{several[0]}"
    if joined(name):
        return parse_machine(name, find=lambda part: own.get(part) or get_chip(part)).name
    return name.strip() if family(name) else get_chip(name).id


def _models(text: str, own: Own) -> str:
    return ",".join(_model(name, own) for name in split(text))


def _chips(text: str, own: Own) -> str:
    return ",".join(_chip(name, own) for name in dict.fromkeys(split(text)))


def _rates(text: str, own: Own) -> str:
    """Rates written out, with a comma: text without one could be the name of a file."""
    words = text.replace(",", " ").split()
    for word in words:
        try:
            float(word)
        except ValueError:
            raise UsageError(
                f"day: '{shorten(word)}' is no rate", "requests per second, files are not read here"
            ) from None
    return f"{','.join(words)},"


def _fleet(text: str, own: Own) -> str:
    """A fleet as an object, with the names in its demands and supplies resolved."""
    if not is_inline(text):
        raise UsageError("fleet: files are not read here", "send its tables as an object")
    document = fleet_document(text)
    for table in (t for kind in ("demand", "supply") for t in document.get(kind, ())):
        if "log" in table:
            raise UsageError("log: files are not read here", "the command line reads them", field="fleet")
        for name in NAMED.keys() & table.keys():
            said = table[name] if isinstance(table[name], str) else f"{as_text(table[name])},"
            table[name] = NAMED[name](said, own)
    return json.dumps(document)


NAMED: dict[str, Callable[[str, Own], str]] = {
    "model": _model,
    "models": _models,
    "teacher": _model,
    "chip": _chip,
    "chips": _chips,
    "day": _rates,
    "fleet": _fleet,
}
"""How each field that may name a file on the command line is read where it may not."""
