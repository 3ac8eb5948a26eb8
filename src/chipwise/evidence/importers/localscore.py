"""LocalScore (localscore.ai; llamafile, a llama.cpp): rows of its leaderboard as its interface gives them.

Means over its nine tests, whose prompts have 1,332 tokens in the mean; rates per second, the time to the first token in
milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chipwise.catalog.submitted_names import chip_of
from chipwise.evidence.importers.llama_bench import quant_of
from chipwise.evidence.importers.values import RowRefusedError, number, positive, text
from chipwise.evidence.item import Item, own_item

FORMAT = "LocalScore"
PROMPT, GENERATED = 1332.0, 1012.0
"""Tokens of its nine tests in the mean: prompts of 16 to 4096, answers of 16 to 3072."""


def recognise(data: object) -> bool:
    """Whether parsed JSON is rows of its leaderboard."""
    row = next(_rows(data), None)
    return isinstance(row, Mapping) and {"avg_gen_tps", "accelerator_name", "model_name"} <= row.keys()


def read(data: object, file: str) -> Iterator[Item | str]:
    """An item of every row, and why some were left out."""
    for index, row in enumerate(_rows(data), 1):
        try:
            yield _item(row, file)
        except RowRefusedError as refusal:
            yield f"row {index}: {refusal}"


def _rows(data: object) -> Iterator[Mapping[str, Any]]:
    for entry in data if isinstance(data, list) else [data]:
        if isinstance(entry, Mapping):
            inner = entry.get("results")
            yield from (r for r in inner if isinstance(r, Mapping)) if isinstance(inner, list) else (entry,)


def _item(row: Mapping[str, Any], file: str) -> Item:
    speed, part = positive(row.get("avg_gen_tps"), "avg_gen_tps"), text(row.get("accelerator_name"))
    chip = chip_of(part)
    return own_item(
        FORMAT,
        {
            "model": text(row.get("model_name")),
            "result": speed,
            "unit": "Tokens/s",
            "chip": chip,
            "part": part,
            "chips": 1 if chip else None,
            "precision": quant_of(text(row.get("model_quant"))),
            "scenario": "local",
            "runtime": "llama.cpp llamafile",
            "submitter": "localscore.ai",
            "concurrency": 1.0,
            "input_tokens": PROMPT,
            "output_tokens": GENERATED,
            "tokens_per_s": speed,
            "ttft_mean_s": number(row.get("avg_ttft"), 1e-3),
            "tpot_mean_s": 1.0 / speed,
            "file": file,
        },
    )
