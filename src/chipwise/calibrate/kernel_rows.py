"""Questions about operators -> what fits and prices need: labels, and seconds by `cost.price`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.fit import FitRows
from chipwise.calibrate.kernel_questions import DTYPES, KINDS, Questions, alike, op_of, run_of, taken
from chipwise.calibrate.simt_numbers import (
    chip_labels,
    kernel_type,
    library_facts,
    library_of,
    measured_runtime,
    through_host,
)
from chipwise.catalog.chip import Chip
from chipwise.catalog.runtime import own_kernels
from chipwise.cost.cost import Cost
from chipwise.cost.device import Device
from chipwise.cost.price import CostParameters, narrow, price
from chipwise.cost.roofline import PEAKS, roofline
from chipwise.cost.simt.family import SimtParameters, dtype_label, group_of
from chipwise.parallel.collective import CollectiveParameters, Kind, Traffic, direct_all_reduce, exchange, traffic
from chipwise.parallel.network import Network
from chipwise.predict.exchange import device_network
from chipwise.units import Array, Real
from chipwise.workload.op import Op

if TYPE_CHECKING:
    from chipwise.calibrate.parameters import Parameters

Index = NDArray[np.intp]
Values = Mapping[str, Real]

PCIE_BYTES_PER_S = 16e9  # nominal PCIe 3 x16, one direction: where a chip names no host link
CARDS = 8.0  # that meet on the bus of one host
_FORMULA_OF: Mapping[str, Kind] = {"expert_exchange": "all_to_all"}  # by kernels and numbers of its own


def known(asked: Questions, chips: Mapping[str, Chip]) -> NDArray[np.bool_]:
    """Questions about a SIMT chip of `chips` and an operator and type with a formula."""
    simt = [c for c, chip in chips.items() if chip.family == "simt"]
    good = np.isin(asked["chip"], simt) & np.isin(asked["op"], KINDS) & np.isin(asked["dtype"], list(DTYPES))
    return np.asarray(good & ~((asked["op"] == "collective") & np.isnan(asked["bytes"])))


def groups_of(asked: Questions) -> NDArray[np.str_]:
    """The formula of every question, under the name of its fitted numbers; "" for operators without one."""
    out = np.full(len(asked["op"]), "", dtype="U24")
    for at in alike(asked):
        op = str(asked["op"][at[0]])
        if op == "collective":
            out[at] = op
        elif op in KINDS and str(asked["dtype"][at[0]]) in DTYPES:
            out[at] = group_of(op_of(taken(asked, at[:1])))
    return out


def kernel_rows(asked: Questions, chips: Mapping[str, Chip], group: str, numbers: Parameters | None = None) -> FitRows:
    """Questions of one group (all `known`) as labels and a formula; without `latency_us` measured times are NaN.

    `numbers` bring what a runtime's own kernels do (local runtimes); fits to measured libraries need none.
    """
    size = len(asked["op"])
    kernels = KernelRows(asked, chips, group, numbers)
    latency = asked.get("latency_us", np.full(size, np.nan))
    labels = kernels.labels
    # kinds of exchange differ in how far they scatter, and so do generations of chips with their stacks
    return FitRows(labels, latency * 1e-6, kernels.seconds, alike=labels["kind" if "kind" in labels else "generation"])


class KernelRows:
    """Questions of one group on SIMT chips, ready to be priced again and again with other numbers."""

    def __init__(
        self, asked: Questions, chips: Mapping[str, Chip], group: str, numbers: Parameters | None = None
    ) -> None:
        self._asked, self._chips, self._group, self._numbers = asked, chips, group, numbers
        self.labels = _labels(asked, chips, group)
        self._prepared: tuple[bytes, list[_Part]] = (b"", [])

    def costs(self, values: Values, index: Index) -> Iterator[tuple[Index, Cost]]:
        """Seconds by resource of the questions at `index`, a part at a time: positions in `index`, and their cost.
        `values` are every quantity of the group's formula, a number or one per position."""
        key = index.tobytes()
        if key != self._prepared[0]:
            self._prepared = (key, list(self._parts(index)))
        for part in self._prepared[1]:
            at = part.at
            here = {name: np.asarray(v)[at] if np.ndim(v) else v for name, v in values.items()} | part.facts
            if isinstance(part.of, Network):
                yield at, _exchange_cost(part.asked, part.of, through_host(here, part.joined))
                continue
            numbers = part.own or SimtParameters(_same(here), PEAKS, None)
            cost = price(part.of, part.device, numbers, run_of(part.asked))
            if np.any(part.asked["quantised"]):
                cost = cost + narrow(part.of, part.device, numbers) * part.asked["quantised"]
            yield at, cost

    def seconds(self, values: Values, index: Index) -> Array:
        """Seconds of the questions at `index`."""
        out = np.empty(len(index))
        for at, cost in self.costs(values, index):
            out[at] = cost.total_s
        return out

    @property
    def own(self) -> bool:
        """Whether the runtime of the first question brings kernels of its own."""
        return bool(self._asked["runtime"][0] and own_kernels(str(self._asked["runtime"][0])))

    @property
    def network(self) -> Network:
        """What the ranks of the questions, which are about a collective, meet on."""
        return _network_of(self._asked, [self._chips[name] for name in self._asked["chip"].tolist()])

    def _parts(self, index: Index) -> Iterator[_Part]:
        asked = taken(self._asked, index)
        names, codes = np.unique(asked["chip"], return_inverse=True)
        chips = [self._chips[str(name)] for name in names.tolist()]
        devices = Device.stack([Device.of(chip) for chip in chips])
        own = _own_kernels(asked["runtime"], self._numbers)
        for same in alike(asked):
            for runtime in np.unique(own[same]).tolist():
                at = same[own[same] == runtime]
                part = taken(asked, at)
                labels = {name: column[index[at]] for name, column in self.labels.items()}
                facts = library_facts(self._group, labels)
                if self._group == "collective":
                    joined = [chips[i] for i in codes[at]]
                    yield _Part(at, part, _network_of(part, joined), devices, facts, joined=joined)
                    continue
                model = None
                if runtime and self._numbers is not None:
                    model = self._numbers.cost("simt", runtime, chips, alone=True).take(codes[at])
                yield _Part(at, part, op_of(part), devices.take(codes[at]), facts, model)


class _Part:
    """Questions that one call of a formula answers: about an operator, or an exchange on a network."""

    __slots__ = ("asked", "at", "device", "facts", "joined", "of", "own")

    def __init__(
        self,
        at: Index,
        asked: Questions,
        of: Op | Network,
        device: Device,
        facts: Mapping[str, Array],
        own: CostParameters | None = None,
        *,
        joined: Sequence[Chip] = (),
    ) -> None:
        self.at, self.asked, self.of, self.device = at, asked, of, device
        self.facts, self.own, self.joined = dict(facts), own, joined


def _same(values: Values) -> Callable[[str, Any], Values]:
    """These values, whatever is asked: the operators of a part have their labels already."""
    return lambda group, labels: values


def _own_kernels(runtimes: NDArray[np.str_], numbers: Parameters | None) -> NDArray[np.str_]:
    """Of every question the runtime where it has kernels of its own, else ""."""
    if numbers is None:
        return np.full(len(runtimes), "")
    keys, codes = np.unique(runtimes, return_inverse=True)
    own = [k if own_kernels(k) else "" for k in keys.tolist()]
    return np.array(own)[codes]


def _labels(asked: Questions, chips: Mapping[str, Chip], group: str) -> dict[str, NDArray[np.str_]]:
    names, codes = np.unique(asked["chip"], return_inverse=True)
    of = {k: v[codes] for k, v in chip_labels([chips[str(name)] for name in names.tolist()]).items()}
    runtime = _mapped(asked["runtime"], lambda r: measured_runtime(group, r))
    found = {**of, "runtime": runtime, "launch": asked["launch"].astype(str)}
    if group == "collective":
        return found | _exchange_labels(asked, of["chip"], of["fabric"])
    dtype = _dtypes(asked)
    if group.endswith(("prompt", "decode")):
        latent, decoding = group.startswith("simt.latent"), group.endswith("decode")
        width = asked["head_dim"].astype(int).astype(str)
        found["cache"] = np.where(dtype == "fp8", "fp8", "b16")
        found["dtype"] = np.where((asked["compute"] == "fp8") & (not decoding), "fp8", "b16")
        found["head_dim"] = np.full(len(width), "0") if latent else width
        found["heads"] = np.where((asked["heads"] == asked["kv_heads"]) & (not latent), "mha", "gqa")
        library = _libraries(asked, group, of["generation"], found["dtype"])
        found["library"] = np.where(asked["causal"] > 0, library, np.char.add(library, "_encoder"))
        return found
    kinds: dict[tuple[str, str], str] = {}
    for pair in set(zip(dtype.tolist(), asked["chip"].tolist(), strict=True)):
        kinds[pair] = kernel_type(pair[0], chips[pair[1]], group)
    found["dtype"] = dtype = np.array([kinds[p] for p in zip(dtype.tolist(), asked["chip"].tolist(), strict=True)])
    found["library"] = _libraries(asked, group, of["generation"], dtype)
    return found


def _exchange_labels(asked: Questions, chip: NDArray[np.str_], fabric: NDArray[np.str_]) -> dict[str, NDArray[np.str_]]:
    """kind, library, fabric and routed of every question; `chip` and `fabric` are those of its chips."""
    routed = np.isin(asked["kind"], list(_FORMULA_OF))
    return {
        "kind": np.where(routed, "exchange", asked["kind"]),
        "library": np.where(asked["library"] == "", "NCCL", asked["library"]),
        "fabric": np.where(routed, "exchange", np.where(asked["fabric"] == "pcie", "pcie", fabric)),
        "routed": np.where(routed, chip, "no"),
    }


def _network_of(asked: Questions, chips: Sequence[Chip]) -> Network:
    """What the ranks of every question meet on, `chips` being those of each: as many as `domain` says, or as the fabric
    joins; beyond it the network cards, or, where ranks meet on a bus, the bus again."""
    each = {chip.id: chip for chip in chips}
    codes = np.array([list(each).index(chip.id) for chip in chips], dtype=np.intp)
    device = Device.stack([Device.of(chip) for chip in each.values()]).take(codes)
    bus = np.array([chip.over_bus(_bus(chip)) for chip in each.values()])[codes]
    fabric = np.array([bool(c.scaleup and c.scaleup.bytes_per_s) for c in each.values()])[codes]
    slow = (asked["fabric"] == "pcie") | ~fabric
    pairs = asked["fabric"] == "pairs"
    own = np.isfinite(device.scaleout_bytes_per_s) & (asked["fabric"] != "pcie") & ~pairs
    joined = np.where(pairs, 2.0, np.where(slow, np.fmax(device.domain, CARDS), device.domain))
    found = device_network(device)
    w = found.wiring
    alike = slow | (np.asarray(w.near_pair_bytes_per_s) >= w.near_bytes_per_s)
    return replace(
        found,
        link_bytes_per_s=np.where(slow, bus, found.link_bytes_per_s),
        domain=np.minimum(asked["domain"], joined),
        nic_bytes_per_s=np.where(own, device.scaleout_bytes_per_s, bus),
        wiring=w if np.all(alike) else replace(w, near=np.where(alike, 0.0, w.near)),
    )


def _exchange_cost(asked: Questions, network: Network, values: Mapping[str, Real]) -> Cost:
    """Latency under "launch", transfer under "network", of questions that are `alike`."""
    p = CollectiveParameters(**{f.name: values[f.name] for f in fields(CollectiveParameters)})
    if str(asked["algorithm"][0]) == "direct":
        found = direct_all_reduce(asked["bytes"], asked["ranks"], network, p)
    else:
        found = exchange(_kind(asked), asked["bytes"], asked["ranks"], network, p)
    return Cost({"launch": found.latency_s, "network": found.transfer_s})


def exchange_tiers(asked: Questions, network: Network) -> tuple[Traffic, ...]:
    """Bytes and steps of questions that are `alike`, tier by tier."""
    return traffic(_kind(asked), asked["bytes"], asked["ranks"], network)


def _kind(asked: Questions) -> Kind:
    name = str(asked["kind"][0])
    return _FORMULA_OF.get(name, cast(Kind, name))


def _bus(chip: Chip) -> float:
    return float(chip.host.bytes_per_s) if chip.host and chip.host.bytes_per_s else PCIE_BYTES_PER_S


def _libraries(
    asked: Questions, group: str, generations: NDArray[np.str_], dtype: NDArray[np.str_]
) -> NDArray[np.str_]:
    """The library of every question, as fitted numbers name it: the one that was named, else the runtime's own."""
    memo: dict[tuple[str, str, str, str], str] = {}
    columns = (asked["library"], asked["runtime"], generations, dtype)
    keys = list(zip(*(column.tolist() for column in columns), strict=True))
    for key in set(keys):
        said, runtime, generation, kind = key
        if said and group in ("simt.decode", "simt.latent_decode"):
            said = f"{measured_runtime(group, runtime)}/{said}"
        memo[key] = said or library_of(group, runtime, generation, kind)
    return np.array([memo[key] for key in keys])


def _dtypes(asked: Questions) -> NDArray[np.str_]:
    """What fitted numbers call the type of a product, or of a cache."""
    out = np.full(len(asked["op"]), "b16", dtype="U12")
    for at in alike(asked):
        one = taken(asked, at[:1])
        if one["op"][0] == "attention":
            out[at] = "fp8" if DTYPES[str(one["dtype"][0])][0].bits < 12.0 else "b16"
        elif one["op"][0] in ("gemm", "experts"):
            out[at] = dtype_label(op_of(one))
    return out


def _mapped(values: NDArray[np.str_], function: Any) -> NDArray[np.str_]:
    keys, codes = np.unique(values, return_inverse=True)
    return np.array([function(str(k)) for k in keys.tolist()])[codes]


def roofline_s(asked: Questions, chips: Mapping[str, Chip]) -> Array:
    """Seconds of every question by peaks and nothing else: operations, compulsory bytes, bytes on one link. NaN for
    other chips and operators."""
    out = np.full(len(asked["op"]), np.nan)
    here = np.isin(asked["chip"], list(chips)) & np.isin(asked["op"], KINDS) & np.isin(asked["dtype"], list(DTYPES))
    for same in alike(asked):
        at = same[here[same]]
        if not len(at):
            continue
        part = taken(asked, at)
        each = [chips[name] for name in part["chip"].tolist()]
        if part["op"][0] == "collective":
            tiers = exchange_tiers(part, _network_of(part, each))
            out[at] = np.max([np.broadcast_to(tier.least_s, len(at)) for tier in tiers], axis=0)
            continue
        names, codes = np.unique(part["chip"], return_inverse=True)
        devices = Device.stack([Device.of(chips[str(name)]) for name in names.tolist()])
        out[at] = roofline(op_of(part), devices.take(codes))
    return out
