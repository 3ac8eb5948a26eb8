"""A chip of one's own that is like one of the catalogue gives the very same answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass
from datetime import date
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from chipwise.api import estimate
from chipwise.api.placing import Given, Terms
from chipwise.api.requests.kernel import KernelRequest
from chipwise.catalog.chip_reader import INHERITED, read_chips, template
from chipwise.catalog.chips import get_chip, load_chips, read_chip_file
from chipwise.errors import ChipwiseError, UsageError
from chipwise.parallel.layout import Layout
from chipwise.workload.workload import Workload
from trained import train_plan

DAY = date(2026, 11, 21)
ON = Terms(today=DAY)
MINE = "a-chip-of-my-own"
SMALL = "Qwen/Qwen2.5-0.5B"
CHAT = Workload(task="local", prompt_tokens=1000, output_tokens=300)

# Offers and published results name chips of the catalogue: what one has oneself has no price and no row of its own.
OF_OTHERS = {"price", "usd", "usd_per_million_in", "usd_per_million_out", "saves", "on_front", "nearest", "assumptions"}

OF_SYSTEMS = {"system", "mapping_text"}
"""What names a system, which may have the name of its chip."""

QUESTIONS: Mapping[str, Callable[[str], object]] = {
    "estimate": lambda chip: estimate(SMALL, CHAT, Given(chip, concurrency=4.0), ON),
    "two": lambda chip: estimate(SMALL, CHAT, Given(chip, Layout(tp=2.0), concurrency=4.0), ON),
    "train": lambda chip: train_plan(SMALL, chips=(chip,), counts=(1,), tokens=1e9, today=DAY),
    "train 8": lambda chip: train_plan(SMALL, chips=(chip,), counts=(8,), tokens=1e9, today=DAY),
    "gemm": lambda chip: KernelRequest(op="gemm", chips=chip, m=512, n=4096, k=4096).run(),
    "decode": lambda chip: KernelRequest(op="attention", chips=chip, batch=8, kv=2048, heads=32, kv_heads=8).run(),
    "prompt": lambda chip: KernelRequest(op="attention", chips=chip, q=2048, kv=2048, heads=32, kv_heads=8).run(),
    "all-reduce": lambda chip: KernelRequest(
        op="collective", chips=chip, kind="all-reduce", bytes_="10MB", ranks=4
    ).run(),
    "as measured": lambda chip: KernelRequest(
        op="collective", chips=chip, kind="all-reduce", bytes_="10MB", ranks=4, library="NCCL"
    ).run(),
    "experts": lambda chip: KernelRequest(
        op="experts", chips=chip, tokens=64, hidden=4096, inter=1536, experts=128, top_k=8
    ).run(),
}


def table_of(name: str) -> str:
    """The file of a bundled chip with that chip alone."""
    for file in (resources.files("chipwise") / "catalog/data/chips").iterdir():
        text = file.read_text("utf-8")
        head, *tables = re.split(r"^(?=\[)", text, flags=re.MULTILINE)
        mine = [t for t in tables if re.match(rf'\["?{re.escape(name)}"?[\].]', t)]
        if mine:
            sources = next(t for t in tables if t.startswith("[sources]"))
            return (
                head + sources + "".join(re.sub(r'\["?' + re.escape(name) + '"?', f"[{MINE}", t, count=1) for t in mine)
            )
    raise AssertionError(name)


def copy_of(name: str, folder: Path, like: str = "") -> str:
    """A TOML file of the same figures under another id; what is inherited is left out."""
    lines = table_of(name).splitlines()
    kept = [x for x in lines if x.partition(" = ")[0] not in INHERITED and 'figures = ["serves_only"]' not in x]
    path = folder / "mine.toml"
    text = "\n".join(kept).replace(f"[{MINE}]", f'[{MINE}]\nlike = "{like or name}"')
    path.write_text(text, "utf-8")
    return str(path)


def figures(ask: Callable[[str], object], chip: str, name: str) -> Any:
    """Everything that an answer says but prices and what others measured, with the name of the chip taken out."""
    try:
        return told(ask(chip), name)
    except ChipwiseError as error:
        return named(str(error).replace(chip, name) if chip.endswith(".toml") else str(error), name)


def told(value: Any, name: str) -> Any:
    """A record as plain values."""
    if is_dataclass(value) and not isinstance(value, type):
        return told(asdict(value), name)
    if isinstance(value, Mapping):
        return {k: v if k in OF_SYSTEMS else told(v, name) for k, v in value.items() if k not in OF_OTHERS}
    if isinstance(value, list | tuple):
        return [told(v, name) for v in value]
    return named(value, name) if isinstance(value, str) else value


def named(text: str, name: str) -> str:
    """A text in which the chip has the other name."""
    return re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", MINE, text)


MANY = [*load_chips().market(), *list(load_chips())[::12]]
"""Those that are searched, and one in twelve of all."""


@pytest.mark.parametrize("chip", dict.fromkeys(MANY))
def test_a_copy_gives_the_same_answers_to_the_last_digit(chip: str, tmp_path: Path) -> None:
    copy = copy_of(chip, tmp_path)
    for name, ask in QUESTIONS.items():
        assert figures(ask, copy, MINE) == figures(ask, chip, chip), name


@pytest.mark.parametrize("name", load_chips())
def test_a_template_is_the_chip_and_like_alone_is_enough(name: str) -> None:
    entries, theirs = load_chips().entries, load_chips()[name]
    other = frozenset(("id", "name", "like", "own", "default", "aliases", "exceptions", "figures", "note"))
    for text in (template(entries[name]), f'[my-chip]\nlike = "{name}"\n'):
        mine = read_chips(text, "mine.toml", entries)["my-chip"]
        assert mine.software_id == name
        for field in fields(theirs):
            if field.name not in other | {"only_named", "generation", "base_generation", "core"}:
                assert getattr(mine, field.name) == getattr(theirs, field.name), field.name


def test_of_a_chip_that_is_like_one_what_it_says_is_given_by_the_user() -> None:
    text = '[mine]\nlike = "m4-max:64gb"\nmemory = "96 GiB"\nmatrix_tflops = { fp16 = 40 }\n'
    theirs, mine = get_chip("m4-max:64gb"), read_chips(text, "mine.toml", load_chips().entries)["mine"]
    assert mine.memory.label_bytes == 96 * 2**30
    assert 0.9 < (mine.memory.usable_bytes or 0.0) / (96 * 2**30) <= 1.0  # not that of the smaller memory
    assert mine.memory.bytes_per_s == theirs.memory.bytes_per_s
    assert mine.matrix == {"fp16": 40e12}
    assert mine.provenance("matrix_tflops.fp16").grade == "assumed"
    assert mine.provenance("memory_GBps").sources == theirs.provenance("memory_GBps").sources


@pytest.mark.parametrize(
    ("line", "words"),
    [("memory = 80", "memory must be a text"), ("memori = 1", "memori"), ('own = ["x"]', "own: expected a table")],
)
def test_a_wrong_line_beside_like_is_named(line: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_chips(f'[mine]\nlike = "h100-sxm5-80gb"\n{line}\n', "mine.toml", load_chips().entries)


def test_a_chip_has_the_software_of_what_it_is_like_whoever_makes_it(tmp_path: Path) -> None:
    path = Path(copy_of("h100-sxm5-80gb", tmp_path, like="h100"))
    path.write_text(path.read_text("utf-8").replace('vendor = "nvidia"', 'vendor = "acme"', 1), "utf-8")
    mine, theirs = read_chip_file(path)[MINE], get_chip("h100-sxm5-80gb")
    assert mine.like == mine.software_id == theirs.id
    assert mine.vendor == "acme"
    assert [getattr(mine, name) for name in INHERITED] == [getattr(theirs, name) for name in INHERITED]
    assert figures(QUESTIONS["gemm"], str(path), MINE) == figures(QUESTIONS["gemm"], theirs.id, theirs.id)


def test_a_chip_like_none_shares_with_none(tmp_path: Path) -> None:
    path = Path(copy_of("h100-sxm5-80gb", tmp_path))
    path.write_text(path.read_text("utf-8").replace('like = "h100-sxm5-80gb"', ""), "utf-8")
    mine = read_chip_file(path)[MINE]
    assert mine.generation == mine.base_generation == mine.software_id == MINE


def test_a_chip_like_an_unknown_one_is_refused(tmp_path: Path) -> None:
    path = Path(copy_of("h100-sxm5-80gb", tmp_path, like="h1000-sxm5"))
    with pytest.raises(UsageError, match="like names no chip of the catalogue: 'h1000-sxm5'"):
        read_chip_file(path)
