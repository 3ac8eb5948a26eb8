"""Names of accelerators as submitters write them -> ids of the catalogue."""

from __future__ import annotations

import re
from functools import cache

from chipwise.catalog.chips import get_chip
from chipwise.catalog.parts import load_parts
from chipwise.catalog.published import load_inference_results
from chipwise.errors import UnknownNameError

__all__ = ["chip_of"]

MAKERS = re.compile(
    r"^(nvidia|amd|intel\(r\)|intel|google|qualcomm|habana)\s+|\b(instinct|geforce|gpu|cloud ai)\b", re.I
)
# 1000 W parts of a 700 W chip are another power bin, not another chip
NOISE = re.compile(
    r"-(cts|nps\d|spx|trt|pg\d+|\d+w|aarch64)\b|\b\d+ ?gb( hbm\w*)?\b|-\d+gb|\(.*?\)|\bhbm\w*|\bx\d+\b", re.I
)


def chip_of(name: str) -> str:
    """The id of the chip that a submitter's name means, "" where the catalogue does not hold it."""
    if not name.strip():
        return ""
    known = _published().get(_plain(name))
    if known is not None:
        return known
    for pattern, chip in load_parts().items():
        if pattern.search(name):
            return chip
    shorter = NOISE.sub(" ", MAKERS.sub(" ", name)).strip(" -")
    for candidate in (name, shorter, shorter.replace(" ", "-")):
        try:
            return get_chip(candidate).id
        except UnknownNameError:
            continue
    return ""


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


@cache
def _published() -> dict[str, str]:
    """Names of parts in the bundled table, with their chips."""
    return {_plain(r.accelerator): r.chip for r in load_inference_results().values() if r.accelerator}
