"""Tiers below the cache of a deployment: what of a host and its disks, over which links, and what they are worth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chipwise.api.estimating import AskedLoad
from chipwise.catalog.price import HOURS_PER_MONTH
from chipwise.errors import UsageError
from chipwise.predict.events.cache import ENDLESS, NEVER, CacheTier, depths
from chipwise.predict.events.engine import Fleet, Outcome
from chipwise.report.simulated import BelowRecord, CapacityRecord, TierRecord
from chipwise.values import dataclass
from chipwise.workload.arrivals import Arrivals

"""hours: of a month. Exact: a twelfth of a year."""
GROWTH = 2.0
"""From one row of hits by capacity to the next."""
ROWS = 8
"""count: rows of hits by capacity at most, beside those of the tiers and of endless room. Chosen: what one looks over;
moves nothing else."""
KNOWN = 0.001
"""share of prompt tokens: that endless room finds more, below which no row of more room is shown. Chosen: a digit of
the table; moves nothing else."""


@dataclass(frozen=True)
class GivenTiers:
    """Room for prefixes below the cache of each replica, in bytes: of its host's memory and, below that, of its disks
    (0: none). `host_bytes_per_s` is the link of each chip (None: as the catalogue says), `disk_bytes_per_s` what the
    disks of a replica read together."""

    host_bytes: float
    disk_bytes: float = 0.0
    host_bytes_per_s: float | None = None
    disk_bytes_per_s: float = 0.0

    @property
    def room(self) -> tuple[tuple[str, float], ...]:
        """Names and bytes of the tiers, from the top down."""
        return (("host", self.host_bytes), *((("disk", self.disk_bytes),) if self.disk_bytes else ()))


@dataclass(frozen=True)
class CacheBytes:
    """How a cache lies in memory: bytes of a token on the device that holds most of it (`device_bytes`) and on all that
    share it (`token_bytes`); `parts` ranks and stages of a replica keep caches of their own, with `room_bytes` on the
    chips of a replica, infinite where nothing limits them."""

    device_bytes: float
    token_bytes: float
    parts: int
    room_bytes: float

    @classmethod
    def of(cls, one: AskedLoad, fleet: Fleet, device_bytes: float) -> CacheBytes:
        """That of a deployment."""
        whole = device_bytes * float(np.asarray(one.layout.devices)) / fleet.ranks
        parts = fleet.ranks * fleet.stages
        endless = fleet.rules.blocks == ENDLESS
        tokens = np.inf if endless else fleet.rules.blocks * fleet.rules.block_tokens
        return cls(device_bytes, whole, parts, parts * tokens * whole)


def tiers_of(given: GivenTiers, one: AskedLoad, cache: CacheBytes, piece_tokens: int) -> tuple[CacheTier, ...]:
    """The tiers of one rank: its share of a replica's, whose links its stages use in turn. Raises `UsageError` where
    the software has no such tier, or nothing is known of the way to the host."""
    runtime, chip = one.deployment.runtime, one.deployment.chip
    below = runtime.cache_below
    for name, _ in given.room:
        if below is None or name not in below.holds:
            where = "on disk" if name == "disk" else "on the host"
            what = f"{runtime.name} keeps no prefixes {where}, as far as is known"
            raise UsageError(what, "--runtime vllm, sglang or trtllm", field="cache_tiers")
    known = chip.host.bytes_per_s if chip.host else None
    link = given.host_bytes_per_s or known
    if not link:
        what = f"{chip.id}: no link to the memory of a host is known"
        raise UsageError(what, "say it: --cache-tiers host=256GB,host_rate=50GB/s", field="cache_tiers")
    stages = float(np.asarray(one.layout.pp))
    up_s = piece_tokens * cache.device_bytes * chip.devices_per_package * stages / link
    piece_bytes = piece_tokens * cache.token_bytes
    found = [CacheTier(int(given.host_bytes / cache.parts / piece_bytes), up_s)]
    if given.disk_bytes:
        read_s = piece_bytes * cache.parts / given.disk_bytes_per_s
        found.append(CacheTier(int(given.disk_bytes / cache.parts / piece_bytes), max(read_s, up_s)))
    return tuple(found)


def check_log(log: Arrivals, *, apart: bool, static: bool) -> None:
    """Raises `UsageError` where no prefix can come up from a tier."""
    if log.blocks is None:
        hint = "--log FILE with hash_ids, as Mooncake's traces have, says which requests share what"
        raise UsageError("--cache-tiers changes nothing here: no request says its prefix", hint, field="cache_tiers")
    if apart:
        hint = "leave out --disaggregate and --prefill, or --cache-tiers"
        raise UsageError("tiers of separate prompt workers are not simulated", hint, field="cache_tiers")
    if static:
        what = "batches that start and end together keep no prefixes"
        raise UsageError(what, "--runtime vllm, sglang or trtllm", field="cache_tiers")


def below_record(
    given: GivenTiers,
    one: AskedLoad,
    cache: CacheBytes,
    tiers: Sequence[CacheTier],
    log: Arrivals,
    found: Outcome,
    without: Outcome,
) -> BelowRecord:
    """What tiers found and spared, beside the same requests `without` them; the prompt seconds spared are worth what
    the replicas cost in that time."""
    asked = max(found.found + found.computed, 1)
    replicas = one.replicas
    chip = one.deployment.chip
    chips = max(round(float(np.asarray(one.layout.devices)) / chip.devices_per_package), 1)
    price = one.context.price(chip.id, replicas * chips, chips)
    usd_h = None if price is None else price.mid / replicas
    records = []
    # ranks and stages of a replica compute at once: a second of one is a part of a replica's
    for (name, room), tier, tokens, spared_s in zip(given.room, tiers, found.loaded, found.spared_s, strict=True):
        hours = spared_s / cache.parts / max(found.whole_s, 1e-9) * HOURS_PER_MONTH
        usd = None if usd_h is None else hours * usd_h / (room / 1e9) / replicas
        bytes_per_s = log.block_tokens * cache.token_bytes / tier.piece_s
        records.append(TierRecord(name, room, bytes_per_s, tokens / asked, spared_s, hours, usd))
    here = found.found - sum(found.loaded)
    return BelowRecord(
        tuple(records),
        here / asked,
        without.hit_rate,
        *_ttft(without),
        *_ttft(found),
        usd_h,
        by_capacity(given, cache, log, replicas),
    )


def _ttft(found: Outcome) -> tuple[float, float]:
    """Seconds to the first token: the median and the slowest of a hundred."""
    return float(np.quantile(found.ttft_s, 0.5)), float(np.quantile(found.ttft_s, 0.99))


def by_capacity(given: GivenTiers, cache: CacheBytes, log: Arrivals, replicas: int) -> tuple[CapacityRecord, ...]:
    """The share of prompt tokens that one cache which all requests share finds, by its size: of the room that there is,
    of steps around it, and without end."""
    assert log.blocks is not None
    size = log.block_tokens
    deep = depths(log.blocks)
    counts = [len(ids) for ids in log.blocks]
    places = np.concatenate([np.arange(n) for n in counts])
    # one token of a prompt at least is computed
    usable = np.repeat((log.prompt.astype(int) - 1) // size, counts)
    deep = np.sort(deep[(places < usable) & (deep < NEVER)])
    piece_bytes = size * cache.token_bytes

    def hits(room: float) -> float:
        return float(np.searchsorted(deep, room / piece_bytes, "right") * size / log.prompt.sum())

    edges: dict[float, str] = {}
    room = cache.room_bytes * replicas
    if np.isfinite(room):
        edges[room] = "chips"
        for name, more in given.room:
            room += more * replicas
            edges[room] = f"with {name}"
    whole = hits(np.inf)
    start = min(edges, default=piece_bytes * max(len(deep) // 64, 1))
    for i in range(-2, ROWS - 2):
        step = start * GROWTH**i
        if i < 0 or whole - hits(step / GROWTH) > KNOWN:
            edges.setdefault(step, "")
    rows = [CapacityRecord(edges[at], at, hits(at)) for at in sorted(edges)]
    return (*rows, CapacityRecord("endless", None, whole))
