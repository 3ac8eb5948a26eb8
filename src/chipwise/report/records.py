"""What chipwise answers, as plain records: the same objects in Python, in JSON and in tables.

Units are in the names; `Figure` is a value with its 80 % interval and basis.
"""

from __future__ import annotations

from dataclasses import field, fields
from typing import TYPE_CHECKING

from chipwise.catalog.quality import QualityRecord
from chipwise.units import format_bytes, format_count, format_number
from chipwise.values import dataclass
from chipwise.workload.workload import CONFIDENCE, UTILISATION

if TYPE_CHECKING:
    from chipwise.evidence.judge import Estimate

SCHEMA_VERSION = "0.1"


class Quantified:
    """Base of records that hold figures: each figure takes its unit from the name of its field."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for f in fields(self):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if isinstance(value, Figure):
                object.__setattr__(value, "_field", f.name)


class _Named:
    """The name of the field that holds a figure: no part of the figure itself."""

    __slots__ = ("_field",)


@dataclass(frozen=True, slots=True)
class Figure(_Named):
    """`mid [low, high]`: the interval holds 80 % of outcomes; `provisional`: nobody measured the chip or the
    software, so that no measurement tests it.

    `float(figure)` is its middle in SI, `f"{figure:.3f}"` formats that, and `str(figure)` says all of it with its unit.
    """

    mid: float
    low: float
    high: float
    basis: str
    provisional: bool

    def __float__(self) -> float:
        return float(self.mid)

    def __format__(self, spec: str) -> str:
        return format(self.mid, spec) if spec else str(self)

    def __str__(self) -> str:
        unit, scale = _unit(getattr(self, "_field", ""), self.mid)
        mid, low, high = (format_number(x * scale) for x in (self.mid, self.low, self.high))
        ends = "" if low == high == mid else f" [{low} to {high}]"
        return f"{mid}{ends} {unit}".rstrip()

    def each(self, of: float) -> Figure:
        """The part of one of so many."""
        mid, low, high = (x / of for x in (self.mid, self.low, self.high))
        return Figure(mid, low, high, self.basis, self.provisional)

    __repr__ = __str__


def figure(estimate: Estimate) -> Figure:
    """An estimate as a record."""
    return Figure(estimate.mid, estimate.low, estimate.high, estimate.basis, estimate.provisional)


def _unit(name: str, value: float) -> tuple[str, float]:
    """The unit that figures of a field are shown in, and what SI is multiplied by for it."""
    per = {
        "usd_per_million_in": "$/M tokens in",
        "usd_per_million_out": "$/M tokens out",
        "kwh_per_million_out": "kWh/M tokens out",
        "chip_w": "W",
        "node_w": "W",
        "wall_w": "W",
        "joules_per_token": "J/token",
        "joules_per_token_wall": "J/token at the wall",
        "joules_per_request": "J/request",
        "joules_per_request_wall": "J/request at the wall",
        "tokens_per_s": "tokens/s",
        "tokens_per_s_per_chip": "tokens/s/chip",
        "tokens_per_s_per_user": "tokens/s/user",
        "days": "days",
        "usd": "$",
        "hours": "h",
    }
    if name in per or not name.endswith("_s"):
        return per.get(name, ""), 1.0
    unit, scale = next(
        ((u, 1.0 / s) for s, u in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")) if abs(value) >= s), ("ns", 1e9)
    )
    return unit, round(scale)


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A model in figures. `kv_bytes_per_token` is what a token adds to the cache once windows are full,
    `kv_bytes_in_window` before; `beside_bytes` are parts outside the main stack: vision, prediction modules.
    `tested`: what is published of converted weights, in the answer to `models show`."""

    name: str
    architecture: str
    params: int
    active_params: int
    layers: int
    precision: str
    weight_bytes: float
    kv_bytes_per_token: float
    kv_bytes_in_window: float
    beside_bytes: dict[str, float]
    max_context: int
    origin: str
    assumptions: tuple[str, ...]
    tested: tuple[QualityRecord, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """Name, parameters, weights and what is outside the main stack, what a token adds to the cache."""
        active = "" if self.active_params > 0.8 * self.params else f" ({format_count(self.active_params)} active)"
        others = "".join(f" + {name} {format_bytes(size)}" for name, size in self.beside_bytes.items())
        weights = f"{self.precision} {format_bytes(self.weight_bytes)}{others}"
        cache = f"KV {self.kv_bytes_per_token:,.0f} B/token"
        if self.kv_bytes_in_window > self.kv_bytes_per_token:
            cache = f"KV {self.kv_bytes_in_window:,.0f} B/token, {self.kv_bytes_per_token:,.0f} beyond its windows"
        return self.name, f"{format_count(self.params)} parameters{active}", weights, cache

    @property
    def line(self) -> str:
        """All of it in one line."""
        return "   ".join(self.words)


@dataclass(frozen=True, slots=True)
class NetworkRecord:
    """A built-in network that generates no tokens, at its own sizes: `names` are others that mean it, `family` is the
    kind of its request, `parts` are parameters by part, `flops` those of one request for one `unit`."""

    name: str
    names: tuple[str, ...]
    family: str
    unit: str
    params: int
    parts: dict[str, int]
    flops: float
    settings: dict[str, float]
    origin: str


@dataclass(frozen=True, slots=True)
class WorkloadRecord:
    """What was asked. Coefficients of variation are standard deviation over mean; `cached_share` of prompt tokens
    are found in a prefix cache, `common_tokens` of them in every prompt. Targets bound means, or what the share
    `percentile` of requests does not exceed, with the probability `confidence`; plans are given no more than
    `utilisation` of the load that they could carry. A job of `tokens` of output in all is done within `deadline_s` and
    for `max_usd`."""

    task: str
    prompt_tokens: float
    output_tokens: float
    rate_per_s: float | None
    ttft_s: float | None
    tpot_s: float | None
    prompt_cv: float = 0.0
    output_cv: float = 0.0
    cached_share: float = 0.0
    common_tokens: float = 0.0
    e2e_s: float | None = None
    percentile: float | None = None
    confidence: float = CONFIDENCE
    utilisation: float = UTILISATION
    tokens: float | None = None
    deadline_s: float | None = None
    max_usd: float | None = None


@dataclass(frozen=True, slots=True)
class LayoutRecord:
    """Degrees of parallelism of one replica."""

    tp: int
    pp: int
    dp: int
    ep: int
    label: str

    @property
    def each(self) -> str:
        """The label of one of several replicas: `tp1` where it is not sharded."""
        return self.label if max(self.tp, self.pp, self.dp, self.ep) > 1 else "tp1"


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """Bytes of one device by use. `cache_bytes` is the room for the cache (negative: missing); None tokens: the
    model keeps no cache."""

    items: dict[str, float]
    basis: dict[str, str]
    capacity_bytes: float
    withheld_bytes: float
    cache_bytes: float
    cache_tokens: int | None
    verdict: str


@dataclass(frozen=True, slots=True)
class PriceRecord:
    """Dollars per hour of all chips of the plan: `mid` of the offer that was picked, `low` and `high` over the
    providers that count, or one figure of owning; `basis` says how, `billed` are the chips paid for. The offer:
    `provider` and `instance`, `region` and `date` of its price ("" = not stated), and the chips of its smallest
    order. `stale`: the price may be older than 90 days. `sellers`: the providers that count (0: nobody is asked).
    `use`: the share of the hours in which chips of one's own work (0: these are rented). `wanted`: the region that was
    asked for, where no price is known there."""

    low: float
    mid: float
    high: float
    basis: str
    billed: int
    provider: str
    instance: str
    region: str
    date: str
    smallest: int
    stale: bool
    sellers: int = 0
    use: float = 0.0
    wanted: str = ""


@dataclass(frozen=True, slots=True)
class TailRecord:
    """Seconds that a share of requests does not exceed; None where the formula does not hold."""

    ttft_s: float | None
    tpot_s: float | None


@dataclass(frozen=True, slots=True)
class JobRecord(Quantified):
    """How long a batch job takes on a plan, and what it costs by the second (None: no price known)."""

    hours: Figure
    usd: Figure | None


@dataclass(frozen=True, slots=True)
class NearestRecord:
    """The published result nearest to a plan, what it is good for, and the plan's throughput moved by it.

    `distance` is 0 for the same conditions, `weight` the share of its prediction error that was applied;
    `supports`: no decisive axis differs or is unknown.
    """

    result: str
    label: str
    date: str
    verdict: str
    supports: bool
    distance: float
    tokens_per_s: float
    chips: int
    weight: float
    anchored_tokens_per_s: float


@dataclass(frozen=True, slots=True)
class EnergyRecord(Quantified):
    """Power and energy. `chip_w` is what one chip draws on average, `node_w` one machine at its plug (host, fans,
    network cards, losses of power supplies), `wall_w` all `machines`. Joules are those of the chips per output token
    (in training per token) and per request, with `_wall` those at the plugs. Cooling is in none of them: times `pue`
    they are what the meter of the building reads. `limit_w` is the power limit of a chip, `use` what it does as shares
    of what it could: of the bandwidth of `memory`, of the peak of operations (`compute`, and `integer` ones)."""

    chip_w: Figure
    node_w: Figure
    wall_w: Figure
    joules_per_token: Figure
    joules_per_token_wall: Figure
    joules_per_request: Figure | None
    joules_per_request_wall: Figure | None
    limit_w: float
    machines: int
    pue: float
    use: dict[str, float]


@dataclass(frozen=True, slots=True)
class PartRecord:
    """A part of a machine that shares a model with others: the chip and how many of it, what it `holds` in words, the
    memory of one of them, and the seconds that it works on one token (None: not timed)."""

    chip: str
    count: int
    holds: str
    memory: MemoryRecord
    decode_s: float | None = None


@dataclass(frozen=True, slots=True)
class PlacedRecord:
    """Where parts of a model lie in a machine: layers of each kind of card, the first layers whole on the host, the
    first layers whose routed experts are; `prompts_on_host`: the processor works on its part of prompts too."""

    cards: tuple[int, ...]
    host_layers: int
    host_experts: int
    prompts_on_host: bool


@dataclass(frozen=True, slots=True)
class RefusalRecord:
    """A chip without a plan and why. `reachable` are the best figures that it has, each for itself."""

    chip: str
    reason: str
    detail: str
    reachable: dict[str, float] = field(default_factory=dict)
