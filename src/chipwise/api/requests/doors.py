"""What the doors that serve others share: reading a question, and saying what is wrong with one.

The command line names its options itself and may open the user's files. Doors that answer somebody else read
plain values, take only names that chipwise knows, and turn every complaint into a `Problem`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from dataclasses import field as with_
from functools import cache
from typing import Any, get_type_hints

from chipwise.api.requests.field import Reading, outer, split
from chipwise.api.requests.verbs import VERBS, Request, question
from chipwise.catalog.benchmarks import benchmark_of
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.configs import BY_DIMENSIONS, BY_SIZE, INLINE, bundled_configs, named_config
from chipwise.catalog.machine import counted, joined, parse_machine
from chipwise.catalog.names import closed
from chipwise.catalog.networks import is_built_in
from chipwise.errors import ChipwiseError, InfeasibleError, Sentence, UnknownNameError, UsageError, shorten
from chipwise.report.records import SCHEMA_VERSION

KINDS = {2: "unusable-value", 3: "unknown-name", 4: "infeasible", 5: "missing-extra"}
Own = Mapping[str, Any]
"""Chips of the question's own, by id."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a question has no answer: what is wrong, the next step, and names that were perhaps meant.

    `kind`: unusable-value, unknown-name, infeasible (nothing fits, or a target cannot be met) or missing-extra.
    `field` is the part of the question that it is about, "" for the whole; `instead` are values of it that were
    perhaps meant. `reasons` counts candidates by what they fell to, `reachable` are the best figures that can be had.
    """

    kind: str
    what: str
    hint: str = ""
    nearest: tuple[str, ...] = ()
    field: str = ""
    instead: tuple[str, ...] = ()
    reasons: Mapping[str, int] = with_(default_factory=dict)
    reachable: Mapping[str, float] = with_(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.what} ({self.hint})" if self.hint else self.what


@dataclass(frozen=True, slots=True)
class Failure:
    """What stands where an answer would: the problem alone."""

    error: Problem
    schema_version: str = SCHEMA_VERSION


def problem_of(error: ChipwiseError) -> Problem:
    """An error as a problem; options of the command line become names of fields."""
    found = error.nearest if isinstance(error, UnknownNameError) else ()
    kind = KINDS.get(error.exit_code, "unusable-value")
    instead = error.instead if isinstance(error, UsageError) else ()
    hint = " or ".join(f'{error.field}="{way}"' for way in instead) or Sentence(error.hint).as_fields
    plain = kind, Sentence(error.what).as_fields, hint, tuple(found), error.field, instead
    if isinstance(error, InfeasibleError):
        return Problem(*plain, error.reasons, error.reachable)
    return Problem(*plain)


@cache
def request_adapter(verb: str) -> Any:
    """The pydantic adapter of a verb's question."""
    from pydantic import TypeAdapter

    return TypeAdapter(VERBS[verb])


def answer_type(verb: str) -> Any:
    """The type of a verb's answer."""
    return get_type_hints(VERBS[verb].run)["return"]


def request_schema(
    verb: str, template: str = "#/components/schemas/{model}", *, files: bool = False
) -> dict[str, Any]:
    """The JSON schema of a verb's question, shared parts under `$defs`, to be referred to by `template`. Without
    `files` it has no fields that can only name a file, and offers none in the help of the others."""
    schema: dict[str, Any] = request_adapter(verb).json_schema(ref_template=template)
    for f in fields(VERBS[verb]):  # type: ignore[arg-type]
        if f.metadata.get("file") and f.name not in NAMED and not files:
            schema["properties"].pop(outer(f))
        elif reading := f.metadata.get("reading"):
            _widen(schema["properties"][outer(f)], reading)
            if reading.told and not files:
                schema["properties"][outer(f)]["description"] = reading.told
    return schema


def _widen(schema: dict[str, Any], reading: Reading) -> None:
    """Adds to the schema of a text what else its field takes."""
    text = {"type": schema.pop("type")} if "type" in schema else {}
    told = [part for part in schema.pop("anyOf", ()) if part["type"] != "string"]
    ways = [*reading.schema(text or {"type": "string"}), *told]
    rest = dict(schema)
    schema.clear()
    schema |= (ways[0] if len(ways) == 1 else {"anyOf": ways}) | rest


def answer_schema(verb: str, template: str = "#/components/schemas/{model}") -> dict[str, Any]:
    """The JSON schema of a verb's answer as it is written."""
    return written_schema(answer_type(verb), template)


def written_schema(kind: Any, template: str) -> dict[str, Any]:
    """The JSON schema of a record as it is written: a number that is not finite becomes null."""
    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

    class WrittenSchema(GenerateJsonSchema):
        """Schemas of what is written."""

        def float_schema(self, schema: Any) -> dict[str, Any]:
            """A number, or null where it is not finite."""
            return {"type": ["number", "null"]}

        def tuple_schema(self, schema: Any) -> dict[str, Any]:
            """A tuple of equal parts as a list of that length: not every reader knows `prefixItems`."""
            found: dict[str, Any] = super().tuple_schema(schema)
            parts = found.get("prefixItems", ())
            if parts and all(part == parts[0] for part in parts):
                del found["prefixItems"]
                found["items"] = parts[0]
            return found

    schema = TypeAdapter(kind).json_schema(
        mode="serialization", ref_template=template, schema_generator=WrittenSchema
    )
    if "anyOf" not in schema:
        return schema
    # one of several records, of which each says its version
    return {"type": "object", "properties": {"schema_version": {"type": "string"}}, **schema}


def read_request(verb: str, given: Mapping[str, Any], *, files: bool = False) -> Request:
    """The question of a verb, by the names of its fields. Without `files` only names that chipwise knows are
    taken where the command line would open a file; code is run in neither case.

    Raises `UnknownNameError` for a verb, field, model or chip that does not exist, `UsageError` for a value
    that cannot be used.
    """
    request = question(verb, given)
    if not files:
        return _known(request)
    refuse_code(request)
    return request


def refuse_code(request: Request) -> None:
    """Raises `UsageError` for a question about `FILE.py:function`, which would run it: for questions that somebody
    else wrote."""
    from chipwise.tracing.sources import is_code

    model = getattr(request, "model", None)
    if isinstance(model, str) and is_code(model):
        raise UsageError(
            f"{shorten(model)}: code is not run here", "the command line and Python trace it", field="model"
        )


def warm_names() -> None:
    """Read the tables that questions are checked against, so that the first one does not wait for them."""
    for verb in VERBS:
        request_adapter(verb)
    bundled_configs()
    get_chip(next(iter(load_chips())))


def _known(request: Request) -> Request:
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
    from chipwise.tracing.sources import is_code, source_of
    from chipwise.workload import media

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
    return get_chip(name).id


def _chips(text: str, own: Own) -> str:
    return ",".join(_chip(name, own) for name in split(text))


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


NAMED: dict[str, Callable[[str, Own], str]] = {"model": _model, "chip": _chip, "chips": _chips, "day": _rates}
"""How each field that may name a file on the command line is read where it may not."""
