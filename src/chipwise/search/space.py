"""The candidates: chips, counts and layouts, as columns of numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from chipwise.catalog.chip import Chip
from chipwise.catalog.preferences import preferences
from chipwise.catalog.price import OwnCosts, Rent
from chipwise.catalog.runtime_spec import Policies, Runtime
from chipwise.catalog.system_spec import System
from chipwise.cost.device import Device
from chipwise.numeric import root
from chipwise.parallel.layout import Layout, illegal, spans
from chipwise.parallel.shard import Sharded, shard
from chipwise.predict.speculative import Speculation
from chipwise.units import Array
from chipwise.values import dataclass
from chipwise.workload.graph import Graph

By = Literal["chip", "runtime", "format", "provider"]
"""What plans are listed by: the best of each."""

FEW = int(preferences().few_cards)
FEW_WORDS = (
    f"at most {FEW} of chips that no server for rent holds (gaming cards, desktops), or that only marketplaces or one "
    "small provider rent out (--chips NAME: more)"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a plan may use: devices of one replica, chips in all, dollars per hour in all, watts at the plugs in all
    with every chip at its power limit (`fed`: so many of each chip), and, where the user has chips, how many of each.
    `spare` replicas stand beside those that carry the load (N + spare). Of the chips in `few`, cards made for desks and
    those that are rarely for rent, no more than `FEW` are taken, of those in `at_most` so many each. Plans are
    listed `by` what each is the best of, unless only the first is asked for (`first_alone`). `nearest`: where that is
    too little, a plan takes all that is allowed, and keeps its targets as surely as that does."""

    max_devices: int = 64
    max_chips: int | None = None
    max_usd_per_h: float | None = None
    max_watts: float | None = None
    have: Mapping[str, int] = field(default_factory=dict)
    spare: int = 0
    few: frozenset[str] = frozenset()
    fed: Mapping[str, int] = field(default_factory=dict)
    host_memory: float | None = None
    at_most: Mapping[str, int] = field(default_factory=dict)
    by: By = "chip"
    first_alone: bool = False
    nearest: bool = False

    @property
    def every(self) -> bool:
        """Whether plans of all layouts are listed: of chips that one has."""
        return bool(self.have) and not self.first_alone

    def chips(self, chip: str) -> float:
        """The most chips of a kind that a plan may take in all."""
        return min(
            np.inf if self.max_chips is None else self.max_chips,
            self.have.get(chip, 0 if self.have else np.inf),
            FEW if chip in self.few else np.inf,
            self.at_most.get(chip, np.inf),
            self.fed.get(chip, 0 if self.fed else np.inf),
        )

    def paid(self, prices: Mapping[str, Rent | OwnCosts | None]) -> Limits:
        """The same with no more chips of a kind than the dollars per hour pay for; any where no price is known."""
        if self.max_usd_per_h is None:
            return self
        known = {chip: basis for chip, basis in prices.items() if basis is not None}
        one, limit = np.ones(1), self.max_usd_per_h
        most = {chip: int(affordable(basis, one, one, limit)[0]) for chip, basis in known.items()}
        return replace(self, at_most={**self.at_most, **{c: int(min(n, self.chips(c))) for c, n in most.items()}})


MOST_REPLICAS = 2**14
"""count: the most replicas that a limit of dollars is tried with. Chosen: more than any plan has; moves nothing."""


def affordable(basis: Rent | OwnCosts, each: Array, group: Array, limit: float) -> Array:
    """The most whole replicas, of `each` chips [N], `group` [N] of them in one machine, that cost no more than a limit
    of dollars per hour: more never cost less."""
    none = np.zeros(len(each))
    with np.errstate(divide="ignore"):
        most = np.minimum(np.floor(limit / (each * basis.least_usd)) + 1.0, MOST_REPLICAS)
    return root(lambda n: basis.paid(n * each, group)[0] <= limit, none, most)[0]


@dataclass(frozen=True, slots=True)
class Deployment:
    """A chip under a runtime, in the machines of a `system`: what a layout is tried on.

    `caveat` says why no known runtime launches the model there; such a deployment is sized, never planned.
    `note` is a remark on how it is launched. `adapter_bytes` of low-rank adapters are held beside the model.
    `speculation` is how tokens are guessed ahead (None: not at all), `drafts` whether the model's own module
    guesses them; `apart`: prompts are worked off in a pool of workers of their own. `holds` is the part of the model
    that it keeps where other devices of the machine keep the rest (None: all of it).
    """

    chip: Chip
    device: Device
    runtime: Runtime
    policies: Policies
    caveat: str = ""
    note: str = ""
    adapter_bytes: float = 0.0
    system: System | None = None
    speculation: Speculation | None = None
    drafts: bool = False
    apart: bool = False
    holds: Graph | None = None


@dataclass(frozen=True)
class Group:
    """Candidates that share every formula: one family, one runtime, one set of policies.

    `which` indexes `deployments`; the layout's columns have the same length.
    """

    deployments: tuple[Deployment, ...]
    which: NDArray[np.int64]
    layout: Layout
    shaped: dict[int, Device] = field(default_factory=dict, compare=False, repr=False)
    cut: dict[int, Sharded] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def single(cls, deployment: Deployment, layout: Layout) -> Group:
        """A group of one candidate."""
        return cls((deployment,), np.zeros(1, dtype=np.int64), layout.arrays())

    def take(self, some: NDArray[np.intp] | NDArray[np.bool_]) -> Group:
        """Some of the candidates."""
        return Group(self.deployments, self.which[some], self.layout.take(some))

    def device(self, *, trailing: int = 0) -> Device:
        """Devices of all candidates, shaped [N, 1, ...] with `trailing` ones."""
        if trailing not in self.shaped:
            stacked = Device.stack([d.device for d in self.deployments])
            self.shaped[trailing] = stacked.take(self.which.reshape(-1, *([1] * trailing)))
        return self.shaped[trailing]

    def layouts(self, *, trailing: int = 0) -> Layout:
        """Layouts of all candidates, shaped [N, 1, ...]."""
        columns = (np.asarray(self.layout.part(p)).reshape(-1, *([1] * trailing)) for p in ("tp", "pp", "dp", "ep"))
        return Layout(*columns)

    def sharded(self, graph: Graph) -> Sharded:
        """What a rank of each candidate has of a model, shaped [N, 1]: its sizes are worked out once."""
        if id(graph) not in self.cut:
            self.cut[id(graph)] = shard(graph, self.layouts(trailing=1))
        return self.cut[id(graph)]


def candidates(
    graph: Graph,
    deployments: tuple[Deployment, ...],
    limits: Limits,
    but: Mapping[str, frozenset[tuple[int, ...]]] | None = None,
) -> Iterator[Group]:
    """Every layout of every deployment, legal or not, in groups that are priced in one go; `but` for those of a chip
    that need not be tried."""
    but = but or {}
    by_formula: dict[tuple[str, str, Policies], list[Deployment]] = {}
    for d in deployments:
        by_formula.setdefault((d.device.family, d.runtime.id, d.policies), []).append(d)
    for members in by_formula.values():
        which: list[int] = []
        rows: list[tuple[int, int, int, int]] = []
        for index, d in enumerate(members):
            left_out = but.get(d.chip.id, frozenset())
            for row in layouts_for(graph, d, limits):
                if row not in left_out:
                    which.append(index)
                    rows.append(row)
        if rows:
            columns = np.array(rows, dtype=float).T
            yield Group(tuple(members), np.array(which), Layout(*columns))


def layouts_for(graph: Graph, d: Deployment, limits: Limits) -> Iterator[tuple[int, int, int, int]]:
    """(tp, pp, dp, ep) worth trying: powers of two inside a scale-up domain, any small number of stages.

    Stages leave the domain only where a network figure is known.

    Attention replicas only where there are experts to share and the runtime can; expert parallelism over all
    ranks of a stage, or none; over the network attention replicas that share whole experts.
    """
    domain, most = int(d.device.domain), _most_devices(d, limits)
    features = d.runtime.features
    experts = graph.routed
    stages = _stages(min(graph.layers, most)) if "pp" in features else [1]
    for tp, dp, eps in _ranks(min(domain, most), features, experts=experts):
        whole = [p for p in stages if tp * dp * p <= most and not (tp * dp * p) % d.chip.devices_per_package]
        yield from ((tp, pp, dp, ep) for pp in whole for ep in eps)
    if experts and {"attention_dp", "wide_ep"} <= features:
        yield from ((1, 1, ranks, ranks) for ranks in _powers(most) if ranks > domain)


def _stages(most: int) -> list[int]:
    """Numbers of stages: any small one, then every fourth."""
    return [p for p in range(1, most + 1) if p <= 8 or p % 4 == 0]


def _ranks(most: int, features: Collection[str], *, experts: bool) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """(tp, dp, degrees of ep) of the stages of at most so many ranks."""
    shared, parted = (experts and name in features for name in ("attention_dp", "ep"))
    for tp in _powers(most) if "tp" in features else [1]:
        for dp in _powers(most // tp) if shared else [1]:
            yield tp, dp, (1, tp * dp) if parted and tp * dp > 1 else (1,)


def _most_devices(d: Deployment, limits: Limits) -> int:
    """Devices of the largest replica: of a kind with SRAM alone as many as its machine joins, for a model takes
    hundreds of such chips, and they are built for it."""
    domain, most = int(d.device.domain), limits.max_devices
    if d.chip.memory.kind == "sram":
        most = max(most, domain)
    most = int(min(most, limits.chips(d.chip.id) * d.chip.devices_per_package))
    return most if np.isfinite(float(d.device.scaleout_bytes_per_s)) else min(most, domain)


def layouts_of(graph: Graph, d: Deployment, devices: int) -> list[tuple[int, int, int, int]]:
    """Every (tp, pp, dp, ep) of exactly so many devices that can be launched: those that `estimate` takes, odd degrees
    too. Attention replicas only where they share experts; experts over all ranks of a stage, or none."""
    features, domain = d.runtime.features, float(np.asarray(d.device.domain))
    found = []
    for tp in _divisors(devices) if "tp" in features else [1]:
        for pp in _divisors(devices // tp) if "pp" in features else [1]:
            dp = devices // tp // pp
            if tp * pp * dp == devices and (dp == 1 or graph.routed):
                found += [(tp, pp, dp, ep) for ep in dict.fromkeys((1, tp * dp) if graph.routed else (1,))]
    if not found:
        return []
    columns = Layout(*np.array(found, dtype=float).T)
    networked = np.isfinite(float(np.asarray(d.device.scaleout_bytes_per_s)))
    good = spans(columns, domain, networked=networked, wide="wide_ep" in features)
    good &= illegal(graph, columns, **filled(d.runtime)) == 0
    return [row for row, able in zip(found, good, strict=True) if able]


def filled(runtime: Runtime) -> dict[str, bool]:
    """What a runtime fills up where a degree does not divide it: the arguments of `illegal`."""
    return {"padded": "padded_heads" in runtime.features, "spare": "spare_experts" in runtime.features}


def _divisors(n: int) -> list[int]:
    return [i for i in range(1, n + 1) if n % i == 0]


def smallest_layouts(rows: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Layouts by devices, fewest first; of equal counts the one with the fewest stages."""
    return sorted(rows, key=lambda r: (r[0] * r[1] * r[2], r[1], r[2], r[3]))


def _powers(most: int) -> list[int]:
    return [2**i for i in range(max(most, 1).bit_length()) if 2**i <= most]
