"""Rows of measured collectives -> formula: which ranks met over which links, and how many bytes.

Notes and kernel names of the table say what the chip does not: pairs that run over PCIe, hosts, direct algorithms,
exchanges of experts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from chipwise.calibrate.kernel_labels import KINDS, Columns, mapped, number_of, text_of
from chipwise.catalog.chip import Chip
from chipwise.parallel.collective import CollectiveParameters, collective
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
    exchange = np.char.find(kernel, "deepep/") >= 0
    direct = np.array([any(p in k for p in ("graph", "eager", "TRTLLM")) for k in kernel])
    chip = text_of(columns, "chip")
    fast = np.array([_has_fabric(chips[c]) for c in chip])
    # the pairs of A40 ran at the rate of PCIe, linked or not
    fast &= np.char.find(notes, "a40_pairwise") < 0
    # messages between hosts, and pairs of links with PCIe between them, leave the domain
    ranks = np.maximum(number_of(columns, "ranks", 2.0), 2.0)
    outside = ranks > mapped(notes, _per_node).astype(float)
    outside |= (np.char.find(notes, "pairwise") >= 0) & (ranks > 2.0)
    links = [_link(chips[c], f and not o) for c, f, o in zip(chip, fast, outside, strict=True)]
    topk, tokens = number_of(columns, "topk", 1.0), number_of(columns, "tokens")
    per_token = 2.0 * number_of(columns, "hidden") * np.minimum(topk, ranks)
    dims = {
        "num_bytes": np.where(exchange, tokens * per_token, number_of(columns, "bytes", 1.0)),
        "ranks": ranks,
        "link_bytes_per_s": np.array(links),
    }

    def model(values: Mapping[str, Real], i: Index) -> Array:
        d = {name: column[i] for name, column in dims.items()}
        out = np.empty(len(i))
        groups = np.char.add(kind[i], np.where(direct[i], "+direct", "+ring"))
        for group in np.unique(groups):
            at = np.flatnonzero(groups == group)
            name, algorithm = str(group).split("+")
            p = CollectiveParameters(
                **{f: np.broadcast_to(values[f], len(i))[at] for f in CollectiveParameters.__slots__}
            )
            dims_at = {field: column[at] for field, column in d.items()}
            out[at] = collective(name, **dims_at, p=p, algorithm=algorithm).total_s  # type: ignore[arg-type]
        return out

    library = np.where(kernel == "", "other", kernel)
    fabric = np.where(outside, "outside", np.where(fast, "link", "pcie"))
    labels = {
        "kind": np.where(exchange, "exchange", kind),
        "library": library,
        "fabric": np.where(exchange, "exchange", fabric),
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
