"""A sweep: one verb asked over a grid of its fields, or over cells drawn from them, as TOML or a mapping says it.

```
verb = "estimate"
[fixed]                                   # what every cell asks
in = 1000
[grid]                                    # a list for each field that varies
model = ["llama-3.1-8b", "qwen3-32b"]
set.hbm = ["3TB/s", "5TB/s"]              # a part of a field of several
place = [{chip = "h100", tp = 2}, {chip = "b200", tp = 1}]   # fields that vary together
[random]                                  # draws cells in place of the whole grid
cells = 1000
seed = 1
```
With `[random]` a field may have a range in place of a list: `{low = 1, high = 64, log = true, whole = true}`, with
`unit = "ms"` where its values have one.
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from chipwise.api.requests.doors import read_request
from chipwise.api.requests.field import outer, split
from chipwise.api.requests.kinds import FORMER, Request, answer_type
from chipwise.api.requests.known import with_known
from chipwise.api.requests.verbs import VERBS
from chipwise.catalog.files import is_file, read_text
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError, check_known, shorten
from chipwise.values import dataclass

MOST_BYTES = 4_000_000
"""Characters of a file that describes a sweep."""
MOST_CELLS = 1_000_000_000
ABOUT_ANSWERS = ("launch", "replay", "diff")
"""Verbs about answers that were kept, which have no grid."""
KEYS = ("verb", "columns", "least", "most", "fixed", "grid", "random")
NAMING = ("model", "chip", "chips")
"""Fields whose names are looked up before a sweep starts."""
FILE = 'verb = "estimate" and a table [grid] with a list for each field, e.g. concurrency = [1, 8, 64]'


@dataclass(frozen=True)
class SweepDefaults:
    """Paths into the answer of a verb: the columns of its cells, and of figures of which less or more is better those
    that may be compared, the first that cells have."""

    columns: tuple[str, ...]
    least: tuple[str, ...] = ()
    most: tuple[str, ...] = ()


def _below(row: str, text: str) -> tuple[str, ...]:
    return tuple(f"{row}.{name}" for name in text.split())


_PLANS = SweepDefaults(
    _below(
        "plans.0",
        "chip chips replicas runtime precision layout.label concurrency ttft_s.mid ttft_s.low ttft_s.high tpot_s.mid "
        "tpot_s.low tpot_s.high latency_s.mid latency_s.low latency_s.high tokens_per_s.mid tokens_per_s_per_user.mid "
        "samples_per_s.mid price.mid usd_per_million_out.mid memory_range.mid chance bound",
    ),
    _below("plans.0", "usd_per_million_out.mid price.mid"),
    _below("plans.0", "tokens_per_s_per_user.mid samples_per_s.mid"),
)
DEFAULTS: Mapping[str, SweepDefaults] = {
    **dict.fromkeys(("plan", "estimate", "explain", "compare"), _PLANS),
    "fit": SweepDefaults(
        _below("fits.0", "chip chips layout.label runtime verdict missing_bytes largest_batch largest_context"),
        most=_below("fits.0", "largest_batch"),
    ),
    "train": SweepDefaults(
        _below(
            "plans.0",
            "chip chips stack precision layout.label step_s.mid step_s.low step_s.high tokens_per_s.mid mfu days.mid "
            "usd.mid price.mid memory_bytes chance bound",
        ),
        _below("plans.0", "usd.mid step_s.mid"),
        _below("plans.0", "tokens_per_s.mid"),
    ),
    "rl": SweepDefaults(
        _below("plans.0", "chip chips placement layout step_s.mid tokens_per_s.mid idle days.mid usd.mid price.mid"),
        _below("plans.0", "usd.mid step_s.mid"),
        _below("plans.0", "tokens_per_s.mid"),
    ),
    "kernel": SweepDefaults(
        _below("kernels.0", "chip time_s.mid time_s.low time_s.high roofline_s share_of_peak bound"),
        _below("kernels.0", "time_s.mid"),
    ),
    "simulate": SweepDefaults(
        _below(
            "simulation",
            "requests lost duration_s busy hit_rate requests_per_s ttft_s.p50.mid ttft_s.p99.mid tpot_s.p50.mid "
            "tpot_s.p99.mid e2e_s.p50.mid e2e_s.p99.mid",
        ),
        _below("simulation", "ttft_s.p99.mid e2e_s.p99.mid"),
        _below("simulation", "requests_per_s"),
    ),
    "local": SweepDefaults(
        _below("models.0", "model chip chips runtime precision tokens_per_s.mid ttft_s.mid memory_bytes bound"),
        most=_below("models.0", "tokens_per_s.mid"),
    ),
}  # fmt: skip
"""What a sweep shows of verbs that answer in figures; a sweep of another verb names its columns."""


@dataclass(frozen=True)
class SweepSpan:
    """A range that values are drawn from, evenly (`log`: evenly by ratio), as numbers or with their `unit`."""

    low: float
    high: float
    log: bool = False
    whole: bool = False
    unit: str = ""

    def at(self, share: float) -> Any:
        """The value at a share of the range; six digits."""
        if self.log:
            found = math.exp(math.log(self.low) + share * (math.log(self.high) - math.log(self.low)))
        else:
            found = self.low + share * (self.high - self.low)
        number = round(found) if self.whole else float(f"{found:.6g}")
        return f"{number}{self.unit}" if self.unit else number


@dataclass(frozen=True)
class SweepAxis:
    """One thing that varies: a field, a part of one (`set.hbm`), or, `together`, fields that each value sets."""

    name: str
    values: tuple[Any, ...] = ()
    span: SweepSpan | None = None
    together: bool = False

    def at(self, place: float) -> Any:
        """The value of a number, or at a share of the range."""
        return self.span.at(place) if self.span else self.values[int(place)]

    def said(self, value: Any) -> dict[str, Any]:
        """The columns of the design that a value fills."""
        given = value if self.together else {self.name: value}
        return {n: v if isinstance(v, str | int | float) else json.dumps(v) for n, v in given.items()}

    @property
    def ends(self) -> tuple[Any, ...]:
        """What is tried before the sweep starts: all values, or the ends of the range."""
        return (self.span.at(0.0), self.span.at(1.0)) if self.span else self.values

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of the design that it fills."""
        return tuple(dict.fromkeys(name for value in self.ends for name in self.said(value)))


@dataclass(frozen=True)
class SweepDesign:
    """A verb, what all its cells ask, and what varies; `drawn` cells by `seed`, 0 for the whole grid. The last axis
    varies fastest. `columns`, `least` and `most` are paths into the answer. `chosen`: the columns are those of the
    verb, which not every cell has; `usual`: so are `least` and `most`, the first of each that a cell has is compared.
    """

    verb: str
    axes: tuple[SweepAxis, ...]
    columns: tuple[str, ...]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    least: tuple[str, ...] = ()
    most: tuple[str, ...] = ()
    drawn: int = 0
    seed: int = 0
    chosen: bool = False
    usual: bool = False

    @property
    def cells(self) -> int:
        """How many questions it asks."""
        return self.drawn or math.prod(len(a.values) for a in self.axes)

    @property
    def named(self) -> tuple[str, ...]:
        """The columns of the design: what varies."""
        return tuple(dict.fromkeys(name for axis in self.axes for name in axis.columns))

    @property
    def text(self) -> str:
        """All of it in one form, whatever order its tables were written in."""
        axes = [[a.name, a.values, a.span and vars(a.span)] for a in self.axes]
        said = [self.verb, axes, self.columns, dict(self.fixed), self.least, self.most, self.drawn, self.seed]
        return json.dumps(said, sort_keys=True, default=str)

    @property
    def digest(self) -> str:
        """What tells it from other sweeps."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:32]

    def places(self, number: int) -> list[float]:
        """Where a cell lies on each axis, from its number alone: the number of a value, or the share of a range."""
        found: list[float] = []
        for axis in reversed(self.axes):
            if self.drawn:
                share = _share(self.seed, number, axis.name)
                place = share if axis.span else int(share * len(axis.values))
            else:
                number, place = divmod(number, len(axis.values))
            found.append(place)
        return found[::-1]

    def picks(self, number: int) -> list[Any]:
        """The value of each axis in a cell."""
        return [axis.at(place) for axis, place in zip(self.axes, self.places(number), strict=True)]

    def cell(self, number: int) -> dict[str, Any]:
        """What a cell asks, by the public names of the fields."""
        return self._given(self.picks(number))

    def labels(self, number: int) -> dict[str, Any]:
        """What varies, in a cell."""
        pairs = zip(self.axes, self.picks(number), strict=True)
        return {name: value for axis, pick in pairs for name, value in axis.said(pick).items()}

    def tried(self) -> Iterator[Request]:
        """A question for each value of each axis, the other axes at their first. Raises the errors of `read_request`:
        what is wrong with a value is known before any cell is answered."""
        first = [axis.ends[0] for axis in self.axes]
        yield self._read(first)
        for place, axis in enumerate(self.axes):
            for value in axis.ends[1:]:
                yield self._read([*first[:place], value, *first[place + 1 :]])

    def _read(self, picks: Sequence[Any]) -> Request:
        return read_request(self.verb, self._given(picks), files=True)

    def _given(self, picks: Sequence[Any]) -> dict[str, Any]:
        given = dict(self.fixed)
        for axis, value in zip(self.axes, picks, strict=True):
            for name, said in value.items() if axis.together else ((axis.name, value),):
                whole, _, part = name.partition(".")
                given[whole] = {**given.get(whole, {}), part: said} if part else said
        return given


def _share(seed: int, number: int, name: str) -> float:
    """A number from 0 to 1 for an axis of a cell: the same in every order and process."""
    drawn = hashlib.blake2b(f"{seed} {number} {name}".encode(), digest_size=8).digest()
    return int.from_bytes(drawn, "big") / 2.0**64 * (1.0 - 2.0**-53)


def read_sweep(path: str) -> SweepDesign:
    """The sweep of a TOML file. Raises the errors of `sweep_of`, and `UsageError` for a file that is no TOML."""
    try:
        return sweep_of(tomllib.loads(read_text(Path(path), MOST_BYTES, f"a sweep: {FILE}")))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not valid TOML: {error}", FILE) from None


def sweep_of(said: Mapping[str, Any]) -> SweepDesign:
    """The sweep that a mapping describes, every value of it tried. Raises `UnknownNameError` for a key, verb, field,
    model, chip or column that does not exist, `UsageError` for what cannot be used."""
    check_known("key of a sweep", said, KEYS)
    verb = FORMER.get(str(said.get("verb")), str(said.get("verb", "")))
    asked = {name: kind for name, kind in VERBS.items() if name not in ABOUT_ANSWERS}
    if not verb:
        raise UsageError("the sweep names no verb", FILE)
    check_known("verb", (verb,), asked)
    axes = tuple(_axes(_table(said, "grid"), {outer(f) for f in fields(asked[verb])}))  # type: ignore[arg-type]
    usual = DEFAULTS.get(verb, SweepDefaults(()))
    own, least, most = (tuple(_texts(said, name)) for name in ("columns", "least", "most"))
    none = not (least or most)
    if none:
        least, most = (tuple(n for n in names if not own or n in own) for names in (usual.least, usual.most))
    columns = tuple(dict.fromkeys((*(own or usual.columns), *least, *most)))
    design = SweepDesign(
        verb, axes, columns, _table(said, "fixed"), least, most, **_drawn(said, axes), chosen=not own, usual=none
    )
    _check(design)
    return design


def _check(design: SweepDesign) -> None:
    """Raises what is wrong with a design."""
    if not design.columns:
        raise UsageError(
            f"a sweep of {design.verb} names its columns", 'paths into its JSON, e.g. columns = ["items.0.id"]'
        )
    if design.cells > MOST_CELLS:
        raise UsageError(f"{design.cells:,} cells in one sweep", f"at most {MOST_CELLS:,}")
    _check_axes(design)
    kind = answer_type(VERBS[design.verb])
    for column in (*design.columns, *design.least, *design.most):
        _check_column(kind, column)
    by_names = {tuple(getattr(r, name, None) for name in NAMING): r for r in design.tried()}
    for request in by_names.values():
        _check_names(request)


def _check_axes(design: SweepDesign) -> None:
    """Raises `UsageError` for a name that stands twice, and a part of what is no table."""
    both = [name for name in design.named if name in design.fixed or name in design.columns]
    places = [name for axis in design.axes for name in axis.columns]
    both += [name for name in design.named if places.count(name) > 1]
    if both:
        raise UsageError(f"{both[0]} stands twice in the sweep", "once: under [fixed], in [grid] or in columns")
    for axis in design.axes:
        for name in axis.columns:
            whole = name.partition(".")[0]
            if name != whole and (whole in places or not isinstance(design.fixed.get(whole, {}), Mapping)):
                raise UsageError(f"{name}: {whole} is given as a whole too", f"a table [fixed.{whole}], or its parts")


def _check_names(request: Request) -> None:
    """Raises `UnknownNameError` for a model or a chip that is neither known nor a file."""
    try:
        with_known(request)
    except UnknownNameError as error:
        if error.field not in NAMING:
            return
        said = str(getattr(request, error.field))
        if not any(is_file(p) or p.is_dir() for part in (said, *split(said)) for p in (Path(part).expanduser(),)):
            raise
    except ChipwiseError:  # a file, which other doors do not read
        return


def _table(said: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = said.get(name, {})
    if not isinstance(found, Mapping):
        raise UsageError(f"[{name}] of a sweep is a table, not {shorten(repr(found), 40)}", FILE)
    return {str(n).removesuffix("_"): value for n, value in found.items()}


def _texts(said: Mapping[str, Any], name: str) -> list[str]:
    found = said.get(name, ())
    found = [found] if isinstance(found, str) else found
    if not isinstance(found, list | tuple) or not all(isinstance(part, str) for part in found):
        what = f"{name} of a sweep: cannot use {shorten(repr(found), 60)}"
        raise UsageError(what, 'a list of paths into the answer, e.g. ["plans.0.tpot_s.mid"]')
    return list(found)


def _axes(table: Mapping[str, Any], known: set[str], above: str = "") -> Iterator[SweepAxis]:
    """The axes of `[grid]`. A table inside it is a field of parts, unless it is a range."""
    for name, said in table.items():
        path = f"{above}{name}"
        if isinstance(said, Mapping) and {"low", "high"} <= said.keys():
            yield SweepAxis(path, span=_span(path, said))
        elif isinstance(said, Mapping):
            yield from _axes(said, known, f"{path}.")
        elif isinstance(said, str | bytes) or not isinstance(said, Sequence) or not said:
            hint = "a list of values; one value alone stands under [fixed]"
            raise UsageError(f"[grid] {path}: cannot use {shorten(repr(said), 60)}", hint, field=path)
        else:
            together = path not in known and not above and all(isinstance(v, Mapping) for v in said)
            alone = {json.dumps(v, sort_keys=True, default=str): v for v in said}  # each value once
            yield SweepAxis(path, tuple(alone.values()), together=together)


def _span(path: str, said: Mapping[str, Any]) -> SweepSpan:
    check_known(f"key of the range {path}", said, [f.name for f in fields(SweepSpan)])
    found = SweepSpan(**said)
    number = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (found.low, found.high))
    if not (number and found.low < found.high and (found.low > 0 or not found.log)):
        least = "above zero, " if found.log else ""
        raise UsageError(f"[grid] {path}: cannot use this range", f"numbers, {least}low < high", field=path)
    return found


def _drawn(said: Mapping[str, Any], axes: Sequence[SweepAxis]) -> dict[str, int]:
    """What `[random]` says. Raises `UsageError`, also for a range without it."""
    table = _table(said, "random")
    check_known("key of [random]", table, ("cells", "seed"))
    if "random" not in said:
        ranged = next((a.name for a in axes if a.span), None)
        if ranged:
            raise UsageError(f"[grid] {ranged} is a range", "draw from it: [random] with cells = 1000, seed = 1")
        return {}
    for name, low in (("cells", 1), ("seed", 0)):
        if not isinstance(table.get(name), int) or isinstance(table[name], bool) or table[name] < low:
            raise UsageError(f"[random] {name}: not a whole number from {low}", "e.g. cells = 1000, seed = 1")
    return {"drawn": table["cells"], "seed": table["seed"]}


# paths into an answer


def _kinds(hint: Any) -> list[Any]:
    """The types that a hint stands for, without None."""
    if get_origin(hint) is typing.Annotated:
        return _kinds(get_args(hint)[0])
    if get_origin(hint) in (typing.Union, types.UnionType):
        return [kind for part in get_args(hint) for kind in _kinds(part)]
    return [] if hint is type(None) else [hint]


def _inside(kind: Any, part: str) -> list[Any]:
    """The types that a part of a path leads to from one."""
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        hints = {f.name for f in fields(kind)}
        return _kinds(get_type_hints(kind)[part]) if part in hints else []
    if origin is not None and issubclass(origin, Mapping):
        return _kinds(inner[1])
    if origin is not None and issubclass(origin, Sequence) and part.isdigit():
        return _kinds(inner[0])
    return []


def _check_column(kind: Any, column: str) -> None:
    """Raises `UnknownNameError` for a path that leads nowhere in an answer, `UsageError` for one that stops early."""
    at = _kinds(kind)
    said: list[str] = []
    for part in column.split("."):
        found = [inner for k in at for inner in _inside(k, part)]
        if not found:
            known = [f.name for k in at if is_dataclass(k) for f in fields(k)] or ["0"]
            raise UnknownNameError("column", column, [".".join((*said, name)) for name in known])
        at = found
        said.append(part)
    if all(is_dataclass(k) for k in at):
        inner = [f"{column}.{f.name}" for k in at for f in fields(k)]
        raise UsageError(f"the column {column} is a record", f"name a part of it: {', '.join(inner[:6])}")


def reached(record: Any, path: str) -> Any:
    """What a path leads to in an answer, as it is written: None where there is nothing, or no finite number. Numbers
    have twelve digits."""
    for part in path.split("."):
        if isinstance(record, Mapping):
            record = record.get(part)
        elif isinstance(record, Sequence) and not isinstance(record, str):
            record = record[int(part)] if part.isdigit() and int(part) < len(record) else None
        else:
            record = getattr(record, part, None)
    if hasattr(record, "item"):  # a number of an array
        record = record.item()
    if isinstance(record, float):
        return float(f"{record:.12g}") if math.isfinite(record) else None
    if isinstance(record, list | tuple):
        return "; ".join(map(str, record))
    return record if record is None or isinstance(record, str | int) else str(record)
