"""InferenceX (SemiAnalysis; InferenceMAX before): results as `utils/process_result.py` aggregates them, an object or a
list, and rows of its database, whose figures lie under `metrics`.

Throughputs are per GPU, times in seconds and means. Runs with drafts, and those whose prompts have GPUs of their own,
are left out: what they measured is no figure of one engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from chipwise.catalog.submitted_names import chip_of
from chipwise.evidence.importers.values import RowRefusedError, number, positive, text, whole
from chipwise.evidence.item import Item, own_item

FORMAT = "InferenceX"
T = TypeVar("T")


def recognise(data: object) -> bool:
    """Whether parsed JSON is one of its results, or a list of them."""
    first = data[0] if isinstance(data, list) and data else data
    if not isinstance(first, Mapping):
        return False
    figures = first.get("metrics") if isinstance(first.get("metrics"), Mapping) else first
    return "tput_per_gpu" in (figures or {}) and ("hw" in first or "hardware" in first) and "conc" in first


def read(data: object, file: str) -> Iterator[Item | str]:
    """The items of its results, and why some were left out."""
    for index, row in enumerate(data if isinstance(data, list) else [data], 1):
        try:
            if not isinstance(row, Mapping):
                raise RowRefusedError("no object")
            yield _item(row, file)
        except RowRefusedError as refusal:
            yield f"row {index}: {refusal}"


def _first(read: Callable[[object], T | None], row: Mapping[str, Any], *names: str) -> T | None:
    """What the first of several fields says that says something."""
    return next((found for name in names if (found := read(row.get(name)))), None)


def _item(row: Mapping[str, Any], file: str) -> Item:
    found = row.get("metrics")
    figures: Mapping[str, Any] = found if isinstance(found, Mapping) else row
    if row.get("disagg") in (True, "true") or row.get("is_multinode") in (True, "true"):
        raise RowRefusedError("separate prefill, or several hosts: not one engine")
    drafts = _first(text, row, "spec_decoding", "spec_method", "mtp") or ""
    if drafts and drafts.lower() not in ("none", "off"):
        raise RowRefusedError(f"speculative decoding ({drafts})")
    part = _first(text, row, "hw", "hardware") or ""
    tp, ep = (_first(whole, row, name, f"decode_{name}") or 1 for name in ("tp", "ep"))
    apart = row.get("dp_attention", row.get("decode_dp_attention")) in (True, "true")
    rate = number(figures.get("output_tput_per_gpu"))
    total = positive(figures.get("tput_per_gpu"), "tput_per_gpu")
    return own_item(
        FORMAT,
        {
            "model": text(row.get("model")),
            "result": (rate or total) * tp,
            "unit": "Tokens/s",
            "chip": chip_of(part.split("_")[0]),
            "part": part,
            "chips": tp,
            "precision": text(row.get("precision")).lower(),
            "scenario": "closed loop",
            "date": text(row.get("date"), 10),
            "runtime": text(row.get("framework")).lower(),
            "layout": f"dp={tp},ep={ep}" if apart else f"tp={tp},ep={ep}",
            "submitter": "SemiAnalysis",
            "concurrency": positive(row.get("conc"), "conc"),
            "input_tokens": positive(row.get("isl"), "isl"),
            "output_tokens": positive(row.get("osl"), "osl"),
            "tokens_per_s": rate * tp if rate else None,
            "ttft_mean_s": number(figures.get("mean_ttft")),
            "tpot_mean_s": number(figures.get("mean_tpot")),
            "file": file,
        },
    )
