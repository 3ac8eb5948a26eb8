"""What the doors that serve others share: reading a question, and saying what is wrong with one.

The command line names its options itself and may open the user's files. Doors that answer somebody else read
plain values, take only names that chipwise knows, turn every complaint into a `Problem`, and say what would make a
deployment fit that does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field as with_
from dataclasses import fields
from functools import cache
from typing import Any

from chipwise.api.requests.field import Reading, outer
from chipwise.api.requests.kinds import Request, answer_type
from chipwise.api.requests.known import NAMED, refuse_code, with_known
from chipwise.api.requests.verbs import VERBS, question
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.configs import bundled_configs
from chipwise.catalog.machine import kinds
from chipwise.catalog.offer import load_offers
from chipwise.errors import ChipwiseError, InfeasibleError, Sentence, UnknownNameError, UsageError
from chipwise.report.fit import FitRecord
from chipwise.report.records import SCHEMA_VERSION
from chipwise.values import dataclass

KINDS = {2: "unusable-value", 3: "unknown-name", 4: "infeasible", 5: "missing-extra"}


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


def request_schema(verb: str, template: str = "#/components/schemas/{model}", *, files: bool = False) -> dict[str, Any]:
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
    return written_schema(answer_type(VERBS[verb]), template)


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

    schema = TypeAdapter(kind).json_schema(mode="serialization", ref_template=template, schema_generator=WrittenSchema)
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
        return with_known(request)
    refuse_code(request)
    return request


def warm_names() -> None:
    """Read the tables that questions are checked against, so that the first one does not wait for them."""
    for verb in VERBS:
        request_adapter(verb)
    bundled_configs()
    get_chip(next(iter(load_chips())))


DEPLOYING = ("plan", "compare", "estimate", "explain")
ASKED = ("model", "precision", "kv", "runtime", "count")
"""Fields of a deployment that `fit` has too, chips apart."""
FIRST = 3
"""Chips that are named."""
MOST = 4
"""Remedies that are named."""


@dataclass(frozen=True, slots=True)
class Mending:
    """The first chips that were asked about and are `lacking` memory, the smallest changes that `mend` that, and the
    first chips `holding` the model: those that were asked about in other counts, else any."""

    lacking: tuple[FitRecord, ...]
    mend: tuple[str, ...]
    holding: tuple[FitRecord, ...]


def mending(verb: str, given: Mapping[str, Any], *, files: bool = False) -> Mending | None:
    """What would make the deployment of a question fit, by the fields that were `given`; None where the verb deploys
    nothing or chips were not named."""
    names = _names(given.get("chips") or given.get("chip") or given.get("have"))
    if verb not in DEPLOYING or not names:
        return None
    asked = {name: given[name] for name in ASKED if given.get(name)}
    fits = _fits({**asked, "chips": names}, files)
    lacking = tuple(f for f in fits if f.verdict == "no")[:FIRST]
    mend = tuple(dict.fromkeys(m for f in fits for m in f.mend))[:MOST]
    anywhere = {name: value for name, value in asked.items() if name != "count"}
    these = {**anywhere, "chips": list(kinds(names))}
    holding = _holding(these, files) or _holding(anywhere, files)
    return Mending(lacking, mend, holding[:FIRST])


def _names(chips: Any) -> list[str]:
    """Chips as a question names them: text, a list, or counts by name; none where they are something else."""
    if isinstance(chips, str):
        return [n.strip() for n in chips.split(",") if n.strip()]
    if isinstance(chips, Mapping):
        return [f"{count}x{chip}" for chip, count in chips.items()]
    known = isinstance(chips, list) and all(isinstance(name, str) for name in chips)
    return chips if known else []


def _holding(asked: Mapping[str, Any], files: bool) -> tuple[FitRecord, ...]:
    """Chips that hold a model, those for rent first, then the fewest."""
    found = [f for f in _fits(asked, files) if f.verdict != "no" and load_chips()[f.chip].kind != "cpu"]
    rented = {o.chip for o in load_offers()}
    return tuple(sorted(found, key=lambda f: (f.chip not in rented, f.chips)))


def _fits(asked: Mapping[str, Any], files: bool) -> Sequence[FitRecord]:
    """What fit says of some chips, nothing where it has no answer or sizes a network without tokens."""
    try:
        report = read_request("fit", asked, files=files).run()
    except ChipwiseError:
        return ()
    found: Sequence[FitRecord] = getattr(report, "fits", ())
    return found
