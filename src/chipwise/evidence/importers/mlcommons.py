"""`summary_results.json` (v3.1 to v6.0: a list) and `summary.json` (v6.1: objects by number) of MLCommons.

Read off mlcommons/inference_results_v4.1@1e5a50f and mlcommons/inference_results_v6.1@10ecdff. Known
mistakes of the published tables are corrected, and every correction is said in the notes of the item.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from chipwise.catalog.benchmarks import load_benchmarks
from chipwise.catalog.chips import get_chip
from chipwise.catalog.parsed import names
from chipwise.catalog.published import ROUNDS
from chipwise.catalog.submitted_names import chip_of, load_bins
from chipwise.evidence.importers.values import RowRefusedError, number, positive, text, whole
from chipwise.evidence.item import Item, own_item

FORMAT = "MLCommons summary"

SAID = names("evidence/data/mlcommons.toml")
"""Fields of the two layouts, benchmarks by other names, and tables whose unit is another than they say."""
SUFFIX = re.compile(r"-(interactive|99\.9|99|edge)(?=-|$)")
WATTS = re.compile(r"\b(\d{2,4}) ?W\b(?=.*\b(TGP|TDP)\b)|\b(?:TGP|TDP):? ?(\d{2,4}) ?W\b", re.I)


def recognise(data: object) -> bool:
    """Whether parsed JSON is a table of results."""
    rows = list(_rows(data))
    return bool(rows) and _get(rows[0], "model") is not None and _get(rows[0], "result") is not None


def read(data: object, file: str) -> Iterator[Item | str]:
    """The results of a table: an item each, or the reason why a row was left out."""
    for index, row in enumerate(_rows(data)):
        try:
            yield _item(row, file)
        except RowRefusedError as refusal:
            yield f"row {index}: {refusal}"


def _rows(data: object) -> Iterator[Mapping[str, Any]]:
    values = list(data.values()) if isinstance(data, Mapping) else data if isinstance(data, list) else []
    return (row for row in values if isinstance(row, Mapping))


def _get(row: Mapping[str, Any], name: str) -> Any:
    return next((row[key] for key in SAID["fields"][name] if row.get(key) is not None), None)


def _item(row: Mapping[str, Any], file: str) -> Item:
    if number(row.get("errors")):
        raise RowRefusedError("its checker reports errors")
    if text(_get(row, "division")).lower() not in ("", "closed"):
        raise RowRefusedError(f"{text(_get(row, 'division'))} division: not comparable")
    model = text(_get(row, "model"))
    benchmark = SUFFIX.sub("", model)
    benchmark = benchmark if benchmark in load_benchmarks() else SAID["others"].get(benchmark.lower(), benchmark)
    scenario, unit, round_ = (text(_get(row, name)) for name in ("scenario", "unit", "round"))
    if "interactive" in model:
        scenario = "Interactive"
    result = positive(_get(row, "result"), "its result")
    notes = [note] if (note := text(_get(row, "notes"))) else []
    result, unit, tokens = _corrected(benchmark, scenario, round_, result, unit, notes)
    part = text(_get(row, "part"))
    power = _power(part, text(_get(row, "platform")), note)
    chip = chip_of(part)
    notes += [b.note for b in load_bins() if chip == b.chip and power and power >= b.from_w]
    precision = _precision(text(_get(row, "precision")), chip, benchmark, notes)
    model, prompt, answer = _network(benchmark)
    return own_item(
        FORMAT,
        {
            "model": model,
            "result": result,
            "unit": unit,
            "chip": chip,
            "part": part,
            "chips": whole(_get(row, "chips")),
            "nodes": whole(_get(row, "nodes")),
            "precision": precision,
            "scenario": scenario,
            "benchmark": benchmark,
            "round": round_,
            "date": ROUNDS.get(round_, ""),
            "runtime": text(_get(row, "runtime")),
            "submitter": text(_get(row, "submitter")),
            "environment": f"{power:g} W a chip" if power else "",
            "power_limit_w": power,
            "input_tokens": prompt,
            "output_tokens": answer,
            "tokens_per_s": tokens,
            "file": file,
            "notes": tuple(notes),
        },
    )


def _network(benchmark: str) -> tuple[str, float | None, float | None]:
    """The model of a benchmark, and its mean tokens in and out where it has them."""
    known = load_benchmarks().get(benchmark)
    if known is None:
        return benchmark, None, None
    return known.model or benchmark, known.input_tokens or None, known.output_tokens or None


def _corrected(
    benchmark: str, scenario: str, round_: str, result: float, unit: str, notes: list[str]
) -> tuple[float, str, float | None]:
    """Result, unit and tokens per second with the known mistakes of the tables put right."""
    known = load_benchmarks().get(benchmark)
    row = benchmark, scenario, round_, unit
    if any(all(said in ("", own) for said, own in zip(each, row, strict=True)) for each in SAID["mislabelled"]):
        notes.append(f"corrected: labelled {unit}, the figures are tokens per second")
        return result, "Tokens/s", result
    if row == ("llama2-70b", "Server", "v4.0", "Queries/s") and known:
        factor = known.nominal_output_tokens
        notes.append(f"tokens per second = queries x {factor:g}, within 2 %")
        return result, unit, result * factor
    if benchmark == "gptj" and unit in ("Samples/s", "Queries/s") and known:
        notes.append(f"tokens per second = samples x {known.output_tokens:g}")
        return result, unit, result * known.output_tokens
    return result, unit, result if unit == "Tokens/s" else None


def _power(part: str, platform: str, note: str) -> float | None:
    if re.search(r"-CTS\b|custom thermal", f"{part} {platform} {note}", re.I):
        return 1000.0
    found = WATTS.search(note) or re.search(r"-(\d{3,4})W\b", part)
    return next((float(g) for g in found.groups() if g), None) if found else None


def _precision(declared: str, chip: str, benchmark: str, notes: list[str]) -> str:
    """fp16 was declared for language models that ran in fp8 (v4.1 and some later rows)."""
    known = load_benchmarks().get(benchmark)
    if not chip or not known or known.kind != "llm" or declared.lower() not in ("fp16", "fp32", "bf16"):
        return declared
    if "fp8" not in get_chip(chip).matrix or benchmark == "gpt-oss-120b":
        return declared
    notes.append(f"declared {declared}; taken to have run in fp8, as all such submissions on this chip did")
    return "fp8"
