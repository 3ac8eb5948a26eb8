"""Passes as other simulators describe them, read as the four numbers of a pass, and tables of passes as they load them.

What the contracts say was read from their sources in November 2026: SGLang's simulator (`time_predictor/base.py`;
a vLLM hook fills the same batches), `ForwardPassMetrics` version 1 of Dynamo and AISimulate (`rust_engine_step.py`,
`engine_query.py`), and the kernel profile of BLIS (`sim/latency/kernel_profile.go`). None of these packages is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import UnknownNameError, UsageError
from chipwise.predict.passes import BATCHES
from chipwise.predict.steptable import CHUNKS, CONTEXTS, ROWS, SHORT, StepTable
from chipwise.units import Array, Real

REQUEST = frozenset({"extend_length", "past_kv_length"})
BATCH = frozenset({"reqs", "forward_mode"})
MODES = frozenset({"EXTEND", "DECODE", "MIXED", "IDLE"})
"""Kinds of passes that are predicted; others (drafts, their verification) are not passes of the model alone."""
METRICS = frozenset("version worker_id dp_rank counter_id wall_time scheduled_requests queued_requests".split())
COUNTS = tuple(
    "num_prefill_requests sum_prefill_tokens sum_prefill_kv_tokens num_decode_requests sum_decode_kv_tokens".split()
)
LISTS = ("extend_lengths", "past_kv_lengths")
SCHEDULED = frozenset((*COUNTS, *LISTS, "var_prefill_length", "var_decode_kv_tokens"))
PROMPTS: Array = np.array([1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0])
"""requests: prompts of a pass at which a kernel profile holds their attention. Chosen: half octaves, between which it
is close to linear; moves passes of several prompts."""


class PassWork(NamedTuple):
    """The four numbers of a pass, as `StepTable.seconds` takes them: numbers or arrays."""

    decode: Real
    context: Real
    prompt: Real
    pairs: Real


def work_of_batch(batch: Any) -> PassWork:
    """A `ScheduleBatch`: requests that get `extend_length` tokens after `past_kv_length` known ones. Of one token
    after known ones, a request decodes, unless the batch says that it extends prompts."""
    try:
        requests = batch.reqs
        mode = getattr(batch, "forward_mode", None)
        new = [r.extend_length for r in requests]
        known = [r.past_kv_length for r in requests]
    except AttributeError as error:
        what = f"a batch has reqs of {' and '.join(sorted(REQUEST))}: {error}"
        raise UsageError(what, "as ScheduleBatch of the simulator", field="batch") from None
    if mode is not None:
        mode = getattr(mode, "name", mode)
        if mode not in MODES:
            raise UnknownNameError("forward_mode", str(mode), MODES)
    _known(getattr(batch, "__dict__", ()), BATCH, "field of a batch")
    if requests:
        _known(getattr(requests[0], "__dict__", ()), REQUEST, "field of a request")
    return _work_of(new, known, extends=mode == "EXTEND")


def work_of_batches(counts: Array, new: Array, known: Array) -> PassWork:
    """Many such batches: `counts` of requests in each, and their `new` tokens after `known` ones, batch after batch."""
    many, new, known = np.asarray(counts, dtype=np.intp), np.asarray(new, float), np.asarray(known, float)
    if many.sum() != len(new) or len(new) != len(known):
        what = f"{many.sum():,} requests in the batches, {len(new):,} and {len(known):,} lengths"
        raise UsageError(what, "one extend length and one past length for each request", field="counts")
    if min(a.min(initial=0) for a in (many, new, known)) < 0:
        raise _below("counts and lengths of requests")
    some, ends = many > 0, np.cumsum(many)
    starts: NDArray[np.intp] = ends - many
    held = np.zeros(len(many))
    held[some] = np.add.reduceat(known, starts[some]) if some.any() else 0.0
    # few requests are prompts: only these are looked at one by one
    rows = np.flatnonzero((new != 1.0) | (known == 0.0))
    q, past, which = new[rows], known[rows], np.searchsorted(ends, rows, side="right")
    prompts, tokens, before, pairs = (
        np.bincount(which, weights=w, minlength=len(many)) for w in (np.ones(len(rows)), q, past, q * (past + q / 2.0))
    )
    decode = np.asarray(many - prompts, float)
    return PassWork(decode, (held - before) / np.maximum(decode, 1.0), cast(Array, tokens), cast(Array, pairs))


def work_of_metrics(metrics: Mapping[str, Any]) -> PassWork:
    """The scheduled requests of one rank's `ForwardPassMetrics`, numbers or arrays. Prompts of a pass count as equally
    long, unless `extend_lengths` and `past_kv_lengths` say them one by one; what is queued, the time that it took and
    variances move nothing."""
    if not isinstance(metrics, Mapping):
        hint = "the metrics of one rank, or a list of those of all"
        raise UsageError(f"metrics: {type(metrics).__name__} is not a dictionary", hint, field="metrics")
    _known(metrics, METRICS, "field of forward-pass metrics")
    if metrics.get("version", 1) != 1:
        what = f"version {metrics['version']!r} of forward-pass metrics is not read"
        raise UsageError(what, "version 1 is", field="version")
    said = metrics.get("scheduled_requests", {})
    if not isinstance(said, Mapping):
        what = f"scheduled_requests: {type(said).__name__} is not a dictionary"
        raise UsageError(what, "its counts by name", field="scheduled_requests")
    _known(said, SCHEDULED, "field of scheduled_requests")
    if not said.keys().isdisjoint(LISTS):
        return _work_of_lists(said)
    return _work_of_counts(*[said.get(name, 0) for name in COUNTS])


def kernel_profile(table: StepTable, about: Mapping[str, str | int]) -> dict[str, Any]:
    """A table of passes as BLIS loads it: time of all tokens together, and what attention of prompts and of decoding
    sequences adds to it, in microseconds. Of one layer, which is the whole pass."""
    sizes = np.union1d(ROWS, BATCHES)
    batches, lengths = sizes[sizes <= BATCHES[-1]], sizes[sizes >= CHUNKS[0]]
    few = np.where(sizes <= BATCHES[-1], _decode(table, sizes, CONTEXTS[0]), np.inf)
    # the least of all passes of so many tokens, and more tokens take no less
    least = np.minimum.reduce([few, *(_prompts(table, sizes, sizes * part) for part in SHORT)])
    shared = np.minimum.accumulate(least[::-1])[::-1]
    # beyond the largest pass of the table, attention of more prompts takes as much more
    many = np.clip(sizes[-1] / lengths[:, None], 1.0, PROMPTS)
    tokens = many * lengths[:, None]
    together = _prompts(table, tokens, lengths[:, None]) - np.interp(tokens, sizes, shared)
    decoding = _decode(table, batches, CONTEXTS[:, None]) - shared[: len(batches)]
    layers = {"num_layers": 1, "num_moe_layers": 0, "num_dense_layers": 1}
    return {
        **about,
        **layers,
        "gemm": {"tokens": sizes.tolist(), "latency_us": _us(shared)},
        "context_attention": {
            "batch_size": PROMPTS.tolist(),
            "isl": lengths.tolist(),
            "latency_us": _us(together * PROMPTS / many),
        },
        "generation_attention": {"tokens": batches.tolist(), "context": CONTEXTS.tolist(), "latency_us": _us(decoding)},
        "allreduce": {"tokens": [1.0], "latency_us": [0.0]},
    }


def _known(given: Iterable[str], known: frozenset[str], kind: str) -> None:
    if not known.issuperset(given):
        raise UnknownNameError(kind, min(str(name) for name in given if name not in known), known)


def _work_of(new: list[float], known: list[float], *, extends: bool) -> PassWork:
    decode, tokens, pairs = len(new), 0.0, 0.0
    try:
        held, least = sum(known), min(known, default=0)
        # nearly all decode, and are not looked at one by one
        first = least > 0 and not extends
        for i in [i for i, q in enumerate(new) if q != 1] if first else range(len(new)):
            q, past = new[i], known[i]
            if q == 1 and past and not extends:
                continue
            if q < 0:
                raise _below("lengths of requests")
            decode -= 1
            held -= past
            tokens += q
            pairs += q * (past + q / 2.0)
    except TypeError:
        raise UsageError("lengths of requests are not all numbers", "tokens of each", field="batch") from None
    if least < 0:
        raise _below("lengths of requests")
    return PassWork(decode, held / decode if decode else 0, tokens, pairs)


def _work_of_lists(said: Mapping[str, Any]) -> PassWork:
    lengths, pasts = (said.get(name) or () for name in LISTS)
    requests = said.get("num_prefill_requests", 0) + said.get("num_decode_requests", 0)
    if not len(lengths) == len(pasts) == requests:
        what = f"{len(lengths)} extend_lengths and {len(pasts)} past_kv_lengths of {requests} requests"
        raise UsageError(what, "one of each for every scheduled request", field="extend_lengths")
    return _work_of(list(lengths), list(pasts), extends=False)


def _work_of_counts(prompts: Any, tokens: Any, read: Any, decode: Any, held: Any) -> PassWork:
    if type(prompts) is type(tokens) is type(read) is type(decode) is type(held) is int:
        if min(prompts, tokens, read, decode, held) < 0:
            raise _below("counts of scheduled_requests")
        if ((tokens or read) and not prompts) or (held and not decode):
            raise _uncounted()
        pairs = tokens * (read + tokens / 2.0) / prompts if prompts else 0.0
        return PassWork(decode, held / decode if decode else 0.0, tokens, pairs)
    columns = [_numbers(*given) for given in zip(COUNTS, (prompts, tokens, read, decode, held), strict=True)]
    return _work_of_columns(*columns)


def _work_of_columns(prompts: Array, tokens: Array, read: Array, decode: Array, held: Array) -> PassWork:
    columns = (prompts, tokens, read, decode, held)
    if any(c.min(initial=0.0) < 0 for c in columns):
        raise _below("counts of scheduled_requests")
    if (((tokens > 0) | (read > 0)) & (prompts == 0) | (held > 0) & (decode == 0)).any():
        raise _uncounted()
    pairs = tokens * (read + tokens / 2.0) / np.maximum(prompts, 1.0)
    return PassWork(decode, held / np.maximum(decode, 1.0), tokens, pairs)


def _numbers(name: str, given: Any) -> Array:
    try:
        found = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        found = np.asarray(np.nan)
    if not np.isfinite(found).all():
        raise UsageError(f"scheduled_requests: {name} is not a number", "a count of tokens or requests", field=name)
    return found


def _below(what: str) -> UsageError:
    return UsageError(f"{what} are not below 0", "0 where there are none")


def _uncounted() -> UsageError:
    what = "scheduled_requests: tokens of no request"
    return UsageError(what, "give num_prefill_requests and num_decode_requests", field="scheduled_requests")


def _decode(table: StepTable, batch: Array, context: Array) -> Array:
    return cast(Array, table.seconds(np.asarray(batch), context))


def _prompts(table: StepTable, tokens: Array, each: Array) -> Array:
    """Seconds of passes of so many `tokens` of prompts of `each`."""
    return cast(Array, table.seconds(np.zeros_like(tokens), 0.0, tokens, tokens * each / 2.0))


def _us(seconds: Array) -> Any:
    return np.maximum(1e6 * seconds, 0.0).round(3).tolist()
