"""Rows of published token speeds: which model in which format on which machine, or why there is no answer."""

from __future__ import annotations

import re

from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import get_chip
from chipwise.catalog.configs import ModelConfig, bundled_configs
from chipwise.catalog.runtime import runtimes_for
from chipwise.errors import UnknownNameError, UsageError, shorten
from chipwise.evidence.rows import Row, number
from chipwise.values import dataclass

NOISE = re.compile(r"\(.*?\)|\b(instruct|instant|versatile|preview|ctx|it|hf|meta|base|chat)\b|[^a-z0-9.]+")
# Software of before captured graphs were usual: every kernel is started by the host.
GRAPHS_SINCE = "2024-07"
PROMPT = 1000.0
ANSWERED = 100.0
CONTEXT = PROMPT + ANSWERED
"""Tokens that one pass looks back on where nobody says: a prompt, and what was answered so far."""


@dataclass(frozen=True, slots=True)
class SpeedRun:
    """One user's stream. `precision` is a label of formats, "" for the checkpoint's own; `chips` 0 = unknown;
    `eager`: software that starts each kernel from the host. `stored`: what the service keeps 16-bit weights in.
    `drafts`: the service is known to draft for large models, though the row does not say."""

    id: str
    config: ModelConfig
    chip: Chip
    chips: int
    precision: str
    context: float
    batch: float
    eager: bool
    stored: str = ""
    drafts: bool = False


def read_speed(row: Row) -> SpeedRun:
    """A row of a table with the columns of `token_speeds.csv`; the measured one is not read.

    Raises `UsageError` for a part that is not in the catalogue and for speculative decoding, whose acceptance
    rate nobody published; `UnknownNameError` for an unknown chip or model.
    """
    if row.get("speculative") == "yes":
        raise UsageError("speculative decoding: its acceptance rate is not known", "give a speed without it")
    if not row.get("chip"):
        raise UsageError(f"{shorten(row.get('hardware_text', '')) or 'the part'} is not in the catalogue")
    chips = int(number(row, "chips_total", 0.0, 1e6, blank=0.0))
    prompt = number(row, "prompt_tokens", 1.0, 1e8, blank=PROMPT)
    batch = number(row, "batch", 1.0, 1e6, blank=1.0)
    chip, day = get_chip(row["chip"]), row.get("date") or "9"
    said = row.get("speculative") in ("no", "none")
    service = next((r.service for r in runtimes_for(chip) if r.service), None)
    since = service.drafts_since if service else ""
    return SpeedRun(
        row.get("row_id", ""),
        model_named(row.get("model_family") or row.get("model", "")),
        chip,
        chips,
        _precision(row.get("precision", "")),
        prompt + ANSWERED,
        batch,
        day < GRAPHS_SINCE,
        service.stored if service else "",
        bool(since) and not said and day >= since,
    )


def _precision(text: str) -> str:
    plain = text.lower().replace(" ", "")
    if plain in ("8-bit", "8bit"):
        return "fp8"
    if plain in ("16-bit", "16bit"):
        return "bf16"
    return {"fp16": "bf16"}.get(plain, plain)


def model_named(text: str) -> ModelConfig:
    """The bundled model that a marketing name means: all its words, and as few others as possible.

    Raises `UnknownNameError` where no bundled name holds all words.
    """
    words = _words(text)
    table = bundled_configs()
    scored = []
    for name in table:
        own = _words(name.rpartition("/")[2])
        if words and all(w in own for w in words):
            scored.append((len(own) - len(words), table[name].alias, len(name), name))
    if not scored:
        raise UnknownNameError("model", text, table)
    return table[min(scored)[3]]


def _words(text: str) -> list[str]:
    spaced = NOISE.sub(" ", text.lower().replace("gpt-oss", "gptoss"))
    return re.sub(r"(?<=[a-z])(?=\d)(?!\d+[be]\b)", " ", spaced).split()
