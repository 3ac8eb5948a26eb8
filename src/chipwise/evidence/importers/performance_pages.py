"""Performance pages of TensorRT-LLM (docs/source/performance/perf-overview.md) and of NeMo (Megatron-Bridge, AutoModel:
performance-summary.md): tables in Markdown whose model, system and precision stand in headings and heads of columns.

TensorRT-LLM gives tokens per second of all GPUs at the largest load; NeMo tokens per second of a GPU while training.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from chipwise.catalog.submitted_names import chip_of
from chipwise.evidence.importers.values import RowRefusedError, number, positive, text, whole
from chipwise.evidence.item import Item, own_item

TENSORRT, NEMO = "TensorRT-LLM performance page", "NeMo performance page"
HEADING = re.compile(r"#+\s*(.+?)\s*$")
SYSTEM = re.compile(r"System:\s*(?:DGX-)?([\w-]+)(?:,\s*Precision:\s*(\w+))?", re.IGNORECASE)
LENGTHS = re.compile(r"(\d[\d,]*)\s*/\s*(\d[\d,]*)")
DEGREE = re.compile(r"\b(tp|pp|dp|ep)\s*(\d+)", re.IGNORECASE)
FORMAT = re.compile(r"\((fp\d+|bf16|nvfp4|mxfp4|int\d)\)", re.IGNORECASE)
RATE = "tokens/sec/gpu"


def recognise(content: str) -> str:
    """Which page a text is, "" for neither."""
    head = content[:400_000].lower().replace(" ", "")
    if "sequencelength(isl/osl)" in head:
        return TENSORRT
    return NEMO if RATE in head and re.search(r"\|#-?gpus\|", head) else ""


def read(content: str, file: str) -> Iterator[Item | str]:
    """The items of a page, and why figures were left out."""
    trained = recognise(content) == NEMO
    for around, names, row in _tables(content):
        try:
            found = [_trained(around, names, row, file)] if trained else _served(around, names, row, file)
            yield from found
        except RowRefusedError as refusal:
            yield f"{around[-1] if around else 'table'}: {refusal}"


def _tables(content: str) -> Iterator[tuple[tuple[str, ...], Sequence[str], Sequence[str]]]:
    """Headings and lines of text above, heads of columns and cells, for every row of every table."""
    around: list[str] = []
    names: Sequence[str] = ()
    for line in content.splitlines():
        if not line.lstrip().startswith("|"):
            names = ()
            found = HEADING.match(line.strip())
            if found or line.strip():
                around = [*around, found[1] if found else line.strip()][-8:]
            continue
        cells = [re.sub(r"<br\s*/?>|\*\*|`", " ", c).strip() for c in line.strip().strip("|").split("|")]
        if not names:
            names = cells
        elif not set("".join(cells)) <= set("-: ") and len(cells) == len(names):
            yield tuple(around), names, cells


def _served(around: Sequence[str], names: Sequence[str], row: Sequence[str], file: str) -> Iterator[Item]:
    lengths = LENGTHS.search(row[0])
    if lengths is None or "isl" not in names[0].lower():
        return
    isl, osl = (float(x.replace(",", "")) for x in lengths.groups())
    for name, cell in zip(names[1:], row[1:], strict=True):
        speed = number(cell.replace(",", ""))
        degrees = {k.lower(): int(v) for k, v in DEGREE.findall(name)}
        if not speed or not degrees:
            continue
        part = FORMAT.sub("", DEGREE.sub("", name)).strip(" ,")
        whose = part if not re.match(r"\d+ GPU", part) else around[-1]
        model = next((a for a in reversed(around) if not chip_of(a)), "")
        form = FORMAT.search(name)
        precision = form[1].lower() if form else ""
        yield own_item(
            TENSORRT,
            {
                "model": text(model),
                "result": speed,
                "unit": "Tokens/s",
                "chip": chip_of(whose),
                "part": whose,
                "chips": degrees.get("tp", 1) * degrees.get("pp", 1) * degrees.get("dp", 1),
                "precision": precision,
                "scenario": "offline",
                "runtime": "TensorRT-LLM",
                "layout": ",".join(f"{k}={v}" for k, v in degrees.items()),
                "submitter": "NVIDIA TensorRT-LLM",
                "input_tokens": isl,
                "output_tokens": osl,
                "tokens_per_s": speed,
                "file": file,
            },
        )


def _trained(around: Sequence[str], names: Sequence[str], row: Sequence[str], file: str) -> Item:
    plain = {re.sub(r"[^a-z0-9/]", "", n.lower()): c for n, c in zip(names, row, strict=True)}
    said = SYSTEM.search(" ".join(around))
    part = plain.get("system", "").removeprefix("DGX-") or (said[1] if said else "")
    precision = plain.get("precision", "") or (said[2] if said and said[2] else "")
    chips = whole(plain.get("gpus")) or 0
    if not chips or not plain.get("model"):
        raise RowRefusedError("no model, or no count of GPUs")
    speed = positive(plain.get(RATE, "").replace(",", "").split()[0] if plain.get(RATE) else None, RATE)
    return own_item(
        NEMO,
        {
            "model": text(re.sub(r"_", " ", plain["model"])),
            "result": speed,
            "unit": "Tokens/s/chip",
            "chip": chip_of(part),
            "part": part,
            "chips": chips,
            "precision": precision.lower(),
            "scenario": "training",
            "runtime": "NeMo",
            "layout": _layout(plain),
            "submitter": "NVIDIA NeMo",
            "concurrency": number(plain.get("gbs")) or number(plain.get("globalbatchsize")),
            "input_tokens": number(plain.get("seqlength")) or number(plain.get("sequencelength")),
            "tokens_per_s": speed * chips,
            "file": file,
            "notes": tuple(f"{k}={plain[k]}" for k in ("mbs",) if plain.get(k)),
        },
    )


def _layout(plain: Mapping[str, str]) -> str:
    degrees = {name: whole(plain.get(name)) for name in ("tp", "pp", "cp", "ep", "vp")}
    return ",".join(f"{name}={value}" for name, value in degrees.items() if value)
