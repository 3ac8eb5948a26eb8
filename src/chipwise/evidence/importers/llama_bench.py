"""`llama-bench` of llama.cpp as JSON, JSON Lines, CSV or Markdown (tools/llama-bench/README.md, builds to 2026).

Every row is one test: `pp512` prompt tokens at once, `tg128` tokens one after the other, `pg` both, `@ d4096` with so
many tokens there already. A prompt test and a generation test that share everything else are one item: TTFT is that of
the prompt, TPOT that of the generation (whose context is shorter by the prompt, less than 1 % of a token's time). What
starts at a depth says no TTFT, as the tokens before it were not timed.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath, PureWindowsPath

from chipwise.catalog.submitted_names import chip_of
from chipwise.evidence.importers.values import RowRefusedError, number, positive, text, whole
from chipwise.evidence.item import Item, own_item
from chipwise.values import dataclass

FORMAT = "llama-bench"
TEST = re.compile(r"(pp|tg) ?(\d+)(?: ?\+ ?tg ?(\d+))?(?: @ d(\d+))?")
QUANT = re.compile(r"(?i)\b(?:ud-)?(iq\d_\w+|q\d_k_\w+|q\d_k|q\d_[01]|bf16|f16|f32|mxfp4(?:_moe)?)\b")
LONG = {"small": "s", "medium": "m", "large": "l"}
SUFFIX = re.compile(r"(?i)[-.](ud-)?(iq\d_\w+|q\d(?:_\w+)?|bf16|f16|f32|fp16|mxfp4\w*)$")


@dataclass(frozen=True, slots=True)
class _Test:
    """One row: `prompt` and `generated` tokens, `depth` before them, tokens per second, and what ran."""

    prompt: int
    generated: int
    depth: int
    tokens_per_s: float
    kind: str
    model: str
    precision: str
    chip: str
    part: str
    build: str
    date: str

    @property
    def setting(self) -> tuple[str, ...]:
        """What tests of one item share."""
        return (self.kind, self.model, self.precision, self.part, self.build)


def recognise(data: object) -> bool:
    """Whether parsed JSON is what llama-bench writes: rows with `avg_ts` and `n_gen`."""
    rows = data if isinstance(data, list) else [data]
    return bool(rows) and all(isinstance(r, Mapping) and "avg_ts" in r and "n_gen" in r for r in rows)


def recognise_text(content: str) -> bool:
    """Whether a text is its CSV or a Markdown table of it."""
    return bool(_header(content)) or _is_csv(content)


def read(data: object, file: str) -> Iterator[Item | str]:
    """The items of parsed JSON, and why rows were left out."""
    return _items((data if isinstance(data, list) else [data]), file)


def read_text(content: str, file: str) -> Iterator[Item | str]:
    """The items of CSV or of Markdown, and why rows were left out."""
    if _is_csv(content):
        return _items(csv.DictReader(content.splitlines()), file)
    return _items(_table(content), file)


def _is_csv(content: str) -> bool:
    first = content.lstrip("\ufeff\n\r ").partition("\n")[0]
    return "avg_ts" in first and "n_gen" in first and not first.startswith(("{", "["))


def _header(content: str) -> list[str]:
    for line in content.splitlines()[:2000]:
        cells = _cells(line)
        if {"model", "test", "t/s"} <= set(cells):
            return cells
    return []


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")] if line.lstrip().startswith("|") else []


def _table(content: str) -> Iterator[Mapping[str, object]]:
    """Rows of all Markdown tables in a text, as JSON would have them; `ggml_cuda_init` lines name the GPU."""
    names: list[str] = []
    found = re.search(r"Device 0: ([^,\n]+)", content) or re.search(r"GPU name:\s*(.+)", content)
    build = re.search(r"build: (\w+)", content)
    for line in content.splitlines():
        cells = _cells(line)
        if {"model", "test", "t/s"} <= set(cells):
            names = cells
        elif names and len(cells) == len(names) and not set("".join(cells)) <= set("-: "):
            row = dict(zip(names, cells, strict=True))
            test = TEST.fullmatch(row["test"].replace("  ", " "))
            kind, first, second, depth = test.groups() if test else ("", "0", "0", "0")
            yield {
                "n_prompt": first if kind == "pp" else 0,
                "n_gen": (second or 0) if kind == "pp" else first,
                "n_depth": depth or 0,
                "avg_ts": row["t/s"].partition("±")[0].strip(),
                "model_type": row["model"],
                "gpu_info": "" if row.get("backend", "") == "CPU" else (found.group(1).strip() if found else ""),
                "build_commit": build.group(1) if build else "",
            }


def _items(rows: Iterable[object], file: str) -> Iterator[Item | str]:
    tests: list[_Test] = []
    for index, row in enumerate(rows, 1):
        try:
            tests.append(_test(row))
        except RowRefusedError as refusal:
            yield f"row {index}: {refusal}"
    prompts = {t.setting: t for t in tests if not t.generated and not t.depth}
    taken: set[tuple[str, ...]] = set()
    for t in tests:
        if not t.generated:
            continue
        first = prompts.get(t.setting) if not (t.depth or t.prompt) else None
        taken |= {t.setting} if first else set()
        yield _item(t, first, file)
    yield from (_item(t, t, file) for setting, t in prompts.items() if setting not in taken)


def _item(ran: _Test, prompt: _Test | None, file: str) -> Item:
    """A test, and the one of prompts that goes with it: a generation, or by itself."""
    first = prompt.prompt / prompt.tokens_per_s if prompt else None
    both = ran.generated > 0 and ran.prompt > 0  # a `pg` test: one speed for prompt and answer together
    alone = ran.tokens_per_s if ran.generated and not both else None
    before = (prompt or ran).prompt or ran.depth or 1
    notes = [f"llama.cpp calls it {ran.kind}"] if ran.kind and not ran.model else []
    notes += [f"{ran.depth} tokens were there before"] if ran.depth else []
    if both:
        notes.append("prompt and answer timed together: tokens per second count both")
    return own_item(
        FORMAT,
        {
            "model": ran.model,
            "result": ran.tokens_per_s,
            "unit": "Tokens/s",
            "chip": ran.chip,
            "part": ran.part,
            "chips": 1 if ran.chip else None,
            "precision": ran.precision,
            "scenario": "local",
            "date": ran.date,
            "runtime": f"llama.cpp {ran.build}".strip(),
            "concurrency": 1.0,
            "input_tokens": float(before),
            "output_tokens": float(ran.generated or 1),
            "tokens_per_s": alone,
            "ttft_mean_s": first,
            "tpot_mean_s": 1.0 / alone if alone else None,
            "file": file,
            "notes": tuple(notes),
        },
    )


def _test(row: object) -> _Test:
    if not isinstance(row, Mapping):
        raise RowRefusedError("not an object")
    speed = positive(row.get("avg_ts"), "avg_ts")
    prompt, made, depth = (whole(row.get(k)) or 0 for k in ("n_prompt", "n_gen", "n_depth"))
    if not (prompt or made):
        raise RowRefusedError("neither n_prompt nor n_gen: no test of prompts or of generation")
    kind = text(row.get("model_type"))
    name = PureWindowsPath(PurePath(text(row.get("model_filename"))).name).name
    layers = str(row.get("n_gpu_layers", ""))
    gpus = text(row.get("gpu_info"))
    on_host = layers == "0" or not gpus.strip()
    part = text(row.get("cpu_info")) if on_host else gpus
    if not on_host and re.search(r", |/", gpus):
        raise RowRefusedError(f"several GPUs ({gpus}): import it with --chip and --count of what ran")
    known = number(row.get("n_cpu_moe"))
    if known:
        raise RowRefusedError(f"{known:g} layers of experts on the host: not the chip's own speed")
    return _Test(
        prompt, made, depth, speed, kind, _model(name), quant_of(name) or quant_of(kind), chip_of(part), part,
        text(row.get("build_commit"))[:12], text(row.get("test_time"))[:10],
    )  # fmt: skip


def _model(file: str) -> str:
    """The model's name in a name of a file: `Qwen3-8B-Q4_K_M.gguf`. What llama.cpp prints beside it (`llama 7B`) is a
    size of a family, and names no model."""
    stem = re.sub(r"-\d{5}-of-\d{5}$", "", file.removesuffix(".gguf"))
    stem = SUFFIX.sub("", stem)
    return "" if re.fullmatch(r"(?i)(ggml-)?model", stem) else stem


def quant_of(name: str) -> str:
    """The format in the words of the catalogue: `Q4_K - Medium` and `Q4_K_M` are q4_k_m."""
    joined = re.sub(r"(?i)_k - (small|medium|large)", lambda m: "_K_" + LONG[m[1].lower()], name)
    found = QUANT.search(joined)
    quant = found.group(1).lower() if found else ""
    return {"f16": "fp16", "f32": "fp32", "mxfp4_moe": "mxfp4"}.get(quant, quant)
