"""Rows of measured collectives -> formula: which ranks met over which links, and how many bytes.

Notes and kernel names of the table say what the chip does not: pairs that run over PCIe, hosts, direct algorithms,
exchanges of experts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.kernel_labels import KINDS, Columns, mapped, number_of, text_of
from chipwise.catalog.chip import Chip
from chipwise.parallel.collective import DIRECT_BYTES, CollectiveParameters, direct_all_reduce, exchange
from chipwise.parallel.network import Network
from chipwise.units import Array, Real

__all__ = ["exchange_rows"]

Index = NDArray[np.intp]
Model = Callable[[Mapping[str, Real], Index], Array]

PCIE_BYTES_PER_S = 16e9  # nominal PCIe 3 x16, one direction: where a chip names no host link


def exchange_rows(columns: Columns, chips: Mapping[str, Chip]) -> tuple[Model, dict[str, NDArray[np.str_]]]:
    """The formula of rows of collectives and its labels: kind, library, fabric."""
    kind = mapped(text_of(columns, "op"), lambda o: KINDS[o])
    kernel = text_of(columns, "kernel")
    notes = text_of(columns, "notes")
    routed = np.char.find(kernel, "deepep/") >= 0
    size = number_of(columns, "bytes", 1.0)
    eager = np.char.find(kernel, "eager") >= 0
    captured = (np.char.find(kernel, "graph") >= 0) | (np.char.find(kernel, "TRTLLM") >= 0)
    # larger buffers than a runtime's own kernels take go to the library, which cannot sum integers in the switch
    own = captured & ((size <= DIRECT_BYTES) | (np.char.find(kernel, "MNNVL") >= 0))
    direct = own | eager
    library = np.where(captured & ~own, "NCCL", np.where(kernel == "", "other", kernel))
    whole = (text_of(columns, "dtype") == "int8") & np.isin(kind, ["all_reduce", "reduce_scatter"])
    library = np.where(whole & (library == "NCCL"), "NCCL_int8", library)
    chip = text_of(columns, "chip")
    fast = np.array([_has_fabric(chips[c]) for c in chip])
    # the pairs of A40 ran at the rate of PCIe, linked or not
    fast &= np.char.find(notes, "a40_pairwise") < 0
    # messages between hosts, and pairs of links with PCIe between them, leave the domain
    ranks = np.maximum(number_of(columns, "ranks", 2.0), 2.0)
    pairs = np.char.find(notes, "pairwise") >= 0
    domain = np.minimum(mapped(notes, _per_node).astype(float), np.where(pairs, 2.0, np.inf))
    topk, tokens = number_of(columns, "topk", 1.0), number_of(columns, "tokens")
    per_token = 2.0 * number_of(columns, "hidden") * np.minimum(topk, ranks)
    network = Network(
        link_bytes_per_s=np.array([_link(chips[c], f) for c, f in zip(chip, fast, strict=True)]),
        domain=domain,
        nic_bytes_per_s=np.array([_card(chips[c], p) for c, p in zip(chip, pairs, strict=True)]),
    )
    sizes = np.where(routed, tokens * per_token, size)

    def model(values: Mapping[str, Real], i: Index) -> Array:
        out = np.empty(len(i))
        groups = np.char.add(kind[i], np.where(direct[i], "+direct", "+ring"))
        for group in np.unique(groups):
            at = np.flatnonzero(groups == group)
            name, algorithm = str(group).split("+")
            p = CollectiveParameters(
                **{f: np.broadcast_to(values[f], len(i))[at] for f in CollectiveParameters.__slots__}
            )
            rows = i[at]
            n = replace(
                network,
                **{f: getattr(network, f)[rows] for f in ("link_bytes_per_s", "domain", "nic_bytes_per_s")},
            )
            if algorithm == "direct":
                out[at] = direct_all_reduce(sizes[rows], ranks[rows], n, p).total_s
            else:
                out[at] = exchange(name, sizes[rows], ranks[rows], n, p).total_s  # type: ignore[arg-type]
        return out

    fabric = np.where(fast, "link", "pcie")
    labels = {
        "kind": np.where(routed, "exchange", kind),
        "library": library,
        "fabric": np.where(routed, "exchange", fabric),
        "routed": np.where(routed, chip, "no"),
    }
    return model, labels


def _per_node(notes: str) -> str:
    """Devices per node, where the notes say so."""
    tail = notes.partition("devices_per_node=")[2].split(" ")[0]
    return tail or "inf"


def _has_fabric(chip: Chip) -> bool:
    return chip.scaleup is not None and chip.scaleup.bytes_per_s is not None


def _link(chip: Chip, fast: bool) -> float:
    link = chip.scaleup if fast else chip.host
    return float(link.bytes_per_s) if link is not None and link.bytes_per_s else PCIE_BYTES_PER_S


def _card(chip: Chip, pairs: bool) -> float:
    """What joins domains: the network, or of pairs the host's bus."""
    return (None if pairs else chip.scaleout_bytes_per_s) or _link(chip, False)
