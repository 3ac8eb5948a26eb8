"""Requests through time: logs as tools write them, and streams that are drawn."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import own_bytes, per_snapshot, shipped_text
from chipwise.errors import UsageError, shorten
from chipwise.units import Array, duration_words, format_number
from chipwise.values import dataclass
from chipwise.workload.lengths import LONGEST, Lengths

WINDOWS = (1.0, 10.0, 60.0)
"""Seconds over which arrivals are counted, to say how much they scatter; minutes where fewer than one a minute come."""
POISSON = 1.5
"""Index of dispersion over one second up to which arrivals count as random: Poisson has 1, and a log of some thousand
requests shows up to 1.1 by chance. Azure's conversations have 1.4, and formulas hold for them."""
BUSY = 0.9
"""Share of what is carried up to which the busiest minute of arrivals does no harm."""
_FEW = 10.0  # windows that a log has to span to be counted by
_UNITS = {"s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0}
_EPOCHS = ((1e18, 1e-9), (1e15, 1e-6), (1e12, 1e-3), (1e9, 1.0))
"""A time since 1970, in this century: from so many it is counted in units of so many seconds."""
_COARSE_S = 0.999  # times in steps of at least that, several requests at each, are spread over the step
_UNEVEN = 0.02  # of a step, and of all steps: still even
_GAP = 0.1  # of the whole log: a pause as long as that is said
_MOST_BYTES = 2_000_000_000  # of a log, unpacked
_MINUTE_S = 60.0  # below one request a minute rates are told by the hour


def rate_words(rate_per_s: float, what: str = "") -> str:
    """`20/s`, or `20 requests/s`; of fewer than one a minute by the hour."""
    by, unit = (3600.0, "h") if rate_per_s < 1.0 / _MINUTE_S else (1.0, "s")
    return f"{format_number(rate_per_s * by)}{' ' * bool(what)}{what}/{unit}"


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Requests in order of time: when each arrives (`time_s`, from the first one; None: not known), its prompt and
    output in tokens, and where known the ids of its prompt's blocks of `block_tokens`: equal ids are equal beginnings.
    `said` is what was assumed; not `sized`: of work without tokens, a sample each. All arrays have the same length."""

    prompt: Array
    output: Array
    time_s: Array | None = None
    blocks: tuple[tuple[int, ...], ...] | None = None
    block_tokens: int = 0
    said: tuple[str, ...] = ()
    named: str = ""
    sized: bool = True

    def __len__(self) -> int:
        return len(self.prompt)

    @cached_property
    def lengths(self) -> Lengths:
        """The distribution of its lengths."""
        return Lengths.of_log(zip(self.prompt.tolist(), self.output.tolist(), strict=True))

    @property
    def span_s(self) -> float:
        """Seconds from the first to the last arrival; 0 where all come at once or no times are known."""
        return 0.0 if self.time_s is None or len(self) < 2 else float(self.time_s[-1] - self.time_s[0])

    @property
    def rate_per_s(self) -> float | None:
        """Mean arrivals per second; None where they have no times, or one."""
        return (len(self) - 1) / self.span_s if self.span_s > 0 else None

    def at_rate(self, rate_per_s: float) -> Arrivals:
        """The same requests, arriving faster or slower by one factor. Raises `UsageError` where no times are known."""
        if self.time_s is None or self.rate_per_s is None:
            raise UsageError(f"{self.named or 'the log'} holds no times to scale", "leave --rate out", field="rate")
        words = f"time scaled by {format_number(self.rate_per_s / rate_per_s)}: {rate_words(rate_per_s)}"
        return replace(self, time_s=self.time_s * (self.rate_per_s / rate_per_s), said=(*self.said, words))

    def first(self, count: int) -> Arrivals:
        """The first `count` of them."""
        known = None if self.blocks is None else self.blocks[:count]
        times = None if self.time_s is None else self.time_s[:count]
        return replace(self, prompt=self.prompt[:count], output=self.output[:count], time_s=times, blocks=known)

    def counts(self, window_s: float) -> Array:
        """Arrivals in windows side by side; none where it spans fewer than ten."""
        if self.time_s is None or self.span_s < _FEW * window_s:
            return np.zeros(0)
        place = ((self.time_s - self.time_s[0]) / window_s).astype(np.intp)
        whole = int(self.span_s / window_s)  # the last one is not full
        return np.bincount(place, minlength=whole)[:whole].astype(float)

    @property
    def windows(self) -> tuple[float, ...]:
        """`WINDOWS` in seconds."""
        slow = (self.rate_per_s or 1.0) < 1.0 / _MINUTE_S
        return tuple(_MINUTE_S * w for w in WINDOWS) if slow else WINDOWS

    def dispersion(self, window_s: float) -> float | None:
        """Index of dispersion: variance over mean of counts, 1 of arrivals at random; None for too short a log."""
        counts = self.counts(window_s)
        return float(counts.var() / counts.mean()) if len(counts) else None

    def busiest(self, window_s: float) -> float | None:
        """Arrivals of the busiest window over those of a mean one; None for too short a log."""
        counts = self.counts(window_s)
        return float(counts.max() / counts.mean()) if len(counts) else None

    @property
    def random(self) -> bool:
        """Whether arrivals scatter over the shortest window no more than at random, as formulas take them to."""
        index = self.dispersion(self.windows[0])
        return index is not None and index < POISSON

    @cached_property
    def reused(self) -> float | None:
        """Share of prompt tokens that an endless cache of one replica would find; None where no blocks are known."""
        if self.blocks is None:
            return None
        known: set[int] = set()
        found = 0.0
        for ids, tokens in zip(self.blocks, self.prompt.tolist(), strict=True):
            hits = 0
            for one in ids:
                if one not in known:
                    break
                hits += 1
            found += min(hits * self.block_tokens, tokens - 1)
            known.update(ids)
        return found / float(self.prompt.sum())

    @property
    def line(self) -> str:
        """All of it in one line: arrivals, how they scatter, lengths, what prompts share."""
        parts = [f"{len(self):,} requests"]
        if self.rate_per_s is not None:
            parts[0] += f" in {duration_words(self.span_s)}, {rate_words(self.rate_per_s)}"
            found = [(w, d) for w in self.windows if (d := self.dispersion(w)) is not None]
            if found:
                windows, values = (
                    " / ".join(format_number(x, 2) for x in column) for column in zip(*found, strict=True)
                )
                parts.append(f"index of dispersion {values} over {windows} s")
                w = found[-1][0]
                parts.append(f"busiest {w:g} s {format_number(self.busiest(w) or 0.0, 2)} x the mean")
        elif self.time_s is None:
            parts.append("no times")
        if self.sized:
            means = f"{self.prompt.mean():,.0f} and outputs of {self.output.mean():,.0f}"
            parts.append(f"prompts of {means} tokens in the mean")
        if self.reused is not None:
            parts.append(f"{self.reused:.1%} of prompt tokens were seen before")
        return ", ".join(parts)

    @classmethod
    def drawn(
        cls, lengths: Lengths, count: int, rate_per_s: float | None, *, burstiness: float = 1.0, seed: int = 0
    ) -> Arrivals:
        """`count` requests of a distribution of lengths that arrive at random: gaps are gamma-distributed with a
        coefficient of variation `burstiness` (1: Poisson, 0: a clock). Without a rate all come at once. Equal seeds
        draw equal requests."""
        of_lengths, of_gaps = np.random.default_rng((seed, 0)), np.random.default_rng((seed, 1))
        normal = of_lengths.standard_normal((2, count))
        r = lengths.correlation
        both = normal[0], r * normal[0] + np.sqrt(max(1.0 - r * r, 0.0)) * normal[1]
        prompt, output = (_sampled(lengths, side, z) for side, z in zip(("prompt", "output"), both, strict=True))
        if rate_per_s is None:
            times = np.zeros(count)
        else:
            square = burstiness * burstiness
            gaps = of_gaps.gamma(1.0 / square, square, count) if square > 0 else np.ones(count)
            times = np.cumsum(gaps) / rate_per_s
            times -= times[0]
        return cls(prompt, output, times)


def _sampled(lengths: Lengths, side: Any, normal: Array) -> Array:
    """Whole lengths of one side at standard normal places."""
    mean, cv = getattr(lengths, f"{side}_tokens"), getattr(lengths, f"{side}_cv")
    if getattr(lengths, f"{side}_points"):
        points = lengths.points(side)
        share = np.array([NormalDist().cdf(z) for z in normal.tolist()])
        found = points[np.minimum((share * len(points)).astype(np.intp), len(points) - 1)]
    elif cv > 0:
        sigma = np.sqrt(np.log1p(cv * cv))
        found = mean * np.exp(sigma * normal - sigma * sigma / 2.0)
    else:
        found = np.full(len(normal), mean)
    return np.maximum(np.round(found), 1.0)


@dataclass(frozen=True)
class _Columns:
    """Which column of a log says what: their names as they stand in it, "" where none does, and the seconds of a unit
    of time (0: to be seen from the values)."""

    prompt: str
    output: str
    time: str
    blocks: str
    block_tokens: str
    unit_s: float
    tool: Mapping[str, Any]


def read_times(path: str) -> Arrivals:
    """The arrivals of a log of requests without tokens, a sample each: its column of time alone is read. Raises the
    errors of `read_log`, and `UsageError` where nothing says when requests came."""
    rows = list(_rows(path, _text(path)))
    if not rows:
        raise UsageError(f"{path}: the log holds no requests", "a line for each, with a timestamp")
    columns = _columns(path, rows[0][1], _TIME)
    times = _times(path, rows, columns)
    if times is None:
        raise UsageError(f"{path}: {columns.time} is empty in every line", "when each request came")
    said: list[str] = []
    kept, times = _in_order(np.arange(len(rows)), times, said)
    ones = np.ones(len(kept))
    return Arrivals(ones, ones, times, said=tuple(said), named=Path(path).name, sized=False)


def read_log(path: str) -> Arrivals:
    """The requests of a log: CSV with a head, or JSON, an object a line or one for all, `.gz` or not; columns in any
    order, under the names that public traces and benchmark clients use (`workload/data/logs.toml`).

    Times may be dates, or numbers from anywhere in units that their name, the tool or their size tells. What is read
    otherwise than it stands is in `said`. Raises `UsageError`, with file and line, for what cannot be read.
    """
    rows = list(_rows(path, _text(path)))
    if not rows:
        raise UsageError(f"{path}: the log holds no requests", "a line for each, with prompt_tokens and output_tokens")
    columns = _columns(path, rows[0][1], _LENGTHS)
    said: list[str] = []
    prompt, output = (
        np.array([_length(path, line, row.get(name), name) for line, row in rows])
        for name in (columns.prompt, columns.output)
    )
    failed = (prompt + output == 0) | ((output == 0) & bool(columns.tool.get("failed")))
    if failed.all():
        hint = f"columns {columns.prompt} and {columns.output}"
        raise UsageError(f"{path}: no request of the log has tokens", hint)
    for what, found in (
        ("requests without tokens left out as failed", failed),
        ("requests of no prompt tokens taken to have one", (prompt == 0) & ~failed),
        ("requests of no output tokens taken to have one", (output == 0) & ~failed),
    ):
        if found.any():
            said.append(f"{int(found.sum()):,} {what} (first in line {rows[int(np.argmax(found))][0]})")
    kept = np.flatnonzero(~failed)
    times = _times(path, rows, columns) if columns.time else None
    if times is not None:
        kept, times = _in_order(kept, times[kept], said)
    blocks, block = None, 0
    if columns.blocks:
        numbers: dict[Any, int] = {}
        blocks = tuple(_blocks(path, *rows[i], columns.blocks, numbers) for i in kept)
        block = int(columns.tool.get("block_tokens", 0))
        if columns.block_tokens:
            line, row = rows[0]
            block = int(_length(path, line, row.get(columns.block_tokens), columns.block_tokens))
        block = block or _block_size(prompt[kept], blocks)
        said.append(f"{columns.blocks}: blocks of {block} tokens")
    lengths = np.maximum(prompt[kept], 1.0), np.maximum(output[kept], 1.0)
    return Arrivals(*lengths, times, blocks, block, tuple(said), Path(path).name)


def _in_order(kept: NDArray[np.intp], times: Array, said: list[str]) -> tuple[NDArray[np.intp], Array]:
    """Requests in order of their times, and these from the first one on."""
    late = int(np.sum(np.diff(times) < 0))
    if late:
        said.append(f"times out of order in {late:,} places: sorted")
    order = np.argsort(times, kind="stable")
    times = _spread(times[order] - times[order[0]], said)
    gaps = np.diff(times)
    longest = float(gaps.max(initial=0.0))
    if longest > max(_GAP * float(times[-1]), WINDOWS[-1]):
        said.append(f"nothing arrives for {duration_words(longest)}: taken as it is")
    return kept[order], times


def _text(path: str) -> str:
    file = Path(path)
    try:
        found = own_bytes(file)
        if found[:2] == b"\x1f\x8b":
            with gzip.open(io.BytesIO(found)) as packed:
                found = packed.read(_MOST_BYTES)
        return found.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read", str(error)) from None


def _rows(path: str, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Requests with the lines that they stand in."""
    start = text.lstrip()[:1]
    if start == "[" or (start == "{" and not _is_object(text.split("\n", 1)[0])):
        try:
            whole = json.loads(text)
        except ValueError as error:
            line = getattr(error, "lineno", 1)
            raise UsageError(f"{path}, line {line}: no JSON", str(error)) from None
        for one in whole if isinstance(whole, list) else [whole]:
            yield from _unfolded(path, 1, one)
    elif start == "{":
        for line, said in enumerate(text.splitlines(), 1):
            if said.strip():
                try:
                    found = json.loads(said)
                except ValueError:
                    found = None
                yield from _unfolded(path, line, found)
    else:
        head = text.split("\n", 1)[0]
        mark = max(",;\t", key=head.count)
        reader = csv.DictReader(io.StringIO(text), delimiter=mark)
        for row in reader:
            yield reader.line_num, row


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _unfolded(path: str, line: int, found: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The requests of a JSON value: one, those under the names that reports of benchmarks use, or columns of them."""
    if not isinstance(found, dict):
        raise UsageError(f"{path}, line {line}: no JSON object", "one for each request, or a table with a head")
    for name in ("benchmarks", "requests", "successful"):
        inner = found.get(name)
        if isinstance(inner, dict):
            yield from _unfolded(path, line, inner)
            return
        if isinstance(inner, list) and inner and all(isinstance(one, dict) for one in inner):
            for one in inner:
                yield from _unfolded(path, line, one)
            return
    for request in _by_columns(f"{path}, line {line}", found):
        yield line, request


def _by_columns(where: str, found: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The requests of an object whose lengths are lists; of any other the object itself."""
    sizes = {name: value for name, value in found.items() if isinstance(value, list) and _role(name) in _SIDES}
    if not sizes:
        yield found
        return
    count = {len(value) for value in sizes.values()}
    if len(count) > 1:
        raise UsageError(f"{where}: {', '.join(sizes)} have different lengths", "one for each request")
    size = count.pop()
    columns = {n: v for n, v in found.items() if isinstance(v, list) and len(v) == size and _role(n)}
    for i in range(size):
        yield {name: value[i] for name, value in columns.items()}


_SIDES = ("prompt", "output")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")


def _unit(name: str) -> tuple[str, float]:
    """A plain name without the unit behind it, and the seconds of that; 0 where it says none."""
    stem, _, unit = name.rpartition("_")
    return (stem, _UNITS[unit]) if stem and unit in _UNITS else (name, 0.0)


def _role(name: str) -> str:
    """What a column says, "" for nothing that is read."""
    plain = _plain(name)
    stem = _unit(plain)[0]
    for role, names in _known()["columns"].items():
        if plain in names or (
            role == "time" and (stem in names or stem.removesuffix("s") in names or plain.removesuffix("s") in names)
        ):
            return str(role)
    return ""


@per_snapshot
def _known() -> Mapping[str, Any]:
    return parse(shipped_text("workload/data/logs.toml"))


_LENGTHS = {"prompt": "prompt_tokens", "output": "output_tokens"}
_TIME = {"time": "timestamp"}


def _columns(path: str, row: Mapping[str, Any], needed: Mapping[str, str]) -> _Columns:
    """The columns of a log. Raises `UsageError` where one that is `needed` is missing, by what it says, each with the
    name that is asked for."""
    table = _known()
    plain = {_plain(name): name for name in row if isinstance(name, str)}
    found = dict.fromkeys(table["columns"], "")
    for role, names in table["columns"].items():
        found[role] = next((plain[n] for n in names if n in plain), "")
    times = {_unit(_plain(n))[0].removesuffix("s"): n for n in plain.values() if _role(n) == "time"}
    found["time"] = next((times[n] for n in table["columns"]["time"] if n in times), found["time"])
    missing = [name for role, name in needed.items() if not found[role]]
    if missing:
        has = shorten(", ".join(map(str, row)), 80)
        hint = f"columns {' and '.join(needed.values())}"
        hint += "" if "time" in needed else ", and timestamp where arrivals are known"
        raise UsageError(f"{path}: no column of {' and '.join(missing)} among {has}", hint)
    tool: Mapping[str, Any] = next((t for t in table["tool"] if all(n in plain for n in t["columns"])), {})
    unit = _unit(_plain(found["time"]))[1] or _UNITS.get(tool.get("unit", ""), 0.0)
    return _Columns(found["prompt"], found["output"], found["time"], found["blocks"], found["block_tokens"], unit, tool)


def _length(path: str, line: int, value: Any, name: str) -> float:
    try:
        tokens = float(str(value).replace(",", "") if isinstance(value, str) else value)
    except (TypeError, ValueError):
        raise UsageError(
            f"{path}, line {line}: {name} is {shorten(repr(value), 30)}, not a number of tokens", "a whole number"
        ) from None
    if not 0 <= tokens <= LONGEST:
        raise UsageError(f"{path}, line {line}: {name} is {tokens:g}: out of range", "0 to 100 million tokens")
    return tokens


def _times(path: str, rows: Sequence[tuple[int, Mapping[str, Any]]], columns: _Columns) -> Array | None:
    """Seconds of all requests, from anywhere; None where no request has a time."""
    name = columns.time
    values = [row.get(name) for _, row in rows]
    if all(v is None or v == "" for v in values):
        return None
    found = np.array([_time(path, line, value, name) for (line, _), value in zip(rows, values, strict=True)])
    dated = isinstance(values[0], str) and not _is_number(values[0])
    unit = 1.0 if dated else columns.unit_s
    if unit == 0.0:
        unit = next((s for least, s in _EPOCHS if found.min() >= least), 1.0)
    return found * unit


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _time(path: str, line: int, value: Any, name: str) -> float:
    try:
        if isinstance(value, str) and not _is_number(value):
            found = datetime.fromisoformat(value.strip())
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = float("nan")
    if not np.isfinite(seconds):
        raise UsageError(
            f"{path}, line {line}: {name} is {shorten(repr(value), 30)}, no time",
            "seconds, or a date such as 2026-11-16 18:17:03.97",
        )
    return seconds


def _spread(times: Array, said: list[str]) -> Array:
    """Times that were written in coarse steps, several requests at each, spread evenly over the step."""
    different, place, count = np.unique(times, return_inverse=True, return_counts=True)
    if len(different) < 2 or len(times) < 2 * len(different):
        return times
    gaps = np.diff(different)
    step = float(np.median(gaps))
    even = np.abs(gaps / step - np.round(gaps / step)) < _UNEVEN
    if step < _COARSE_S or even.mean() < 1.0 - _UNEVEN:
        return times
    said.append(f"times stand in steps of {step:g} s, up to {count.max()} requests at one: spread over the step")
    rank = np.arange(len(times)) - (np.cumsum(count) - count)[place]
    room = np.minimum(np.append(gaps, step), step)
    return np.asarray(times + (rank + 0.5) / count[place] * room[place])


def _blocks(path: str, line: int, row: Mapping[str, Any], name: str, numbers: dict[Any, int]) -> tuple[int, ...]:
    value = row.get(name)
    try:
        found = json.loads(value) if isinstance(value, str) else value
        return tuple(numbers.setdefault(one, len(numbers)) for one in found or ())
    except (TypeError, ValueError):
        raise UsageError(f"{path}, line {line}: {name} is no list of ids", "as in [0, 1, 2]") from None


def _block_size(prompt: Array, blocks: Sequence[Sequence[int]]) -> int:
    """Tokens of a block: the fewest, of a power of two, with which all blocks of a prompt are needed."""
    counts = np.array([len(b) for b in blocks], dtype=float)
    each = prompt[counts > 0] / counts[counts > 0]
    return int(2 ** np.ceil(np.log2(np.max(each)))) if len(each) else 1
