"""What a machine at a desk can run, or what to buy for it: records, columns, view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from chipwise.report.answer import Answer
from chipwise.report.plan import RANK, Plan
from chipwise.report.records import SCHEMA_VERSION, Figure, PartRecord, RefusalRecord
from chipwise.report.table import Column, Table
from chipwise.units import format_bytes, format_number, format_seconds
from chipwise.values import dataclass

SHOWN = 12
OPENED = 2
"""machines with more memory that are named in the verdict, and models of those that only they run."""


@dataclass(frozen=True, slots=True)
class LocalRecord(Plan):
    """A model on a machine of one user, in the format that was chosen for it.

    `context` tokens are held, `largest_context` would be; `ttft_s` is of a prompt of the length that the answer names.
    `memory_bytes` are used on the first card of `capacity_bytes`, a full cache included and the system's own left out,
    `host_bytes` beside cards. `download_bytes` are those of the file. `wide`: weights have at least 4 bits. `score` is
    published, in percent, of the benchmark that the answer names (None: none found); `scores` says all that was found,
    with its source. `commands` start it, by engine. `usd` is the price of the machine or of its cards (`covers`; None:
    it is there already), `item` what is bought. `tight`: the option with which alone it fits ("": it fits as it is).
    """

    model: str
    params: int
    active_params: int
    wide: bool
    kv: str
    context: int
    largest_context: int
    tokens_per_s: Figure
    ttft_s: Figure
    memory_bytes: float
    capacity_bytes: float
    host_bytes: float
    download_bytes: float
    placement: str
    score: float | None
    scores: str
    commands: dict[str, str]
    machine: str
    basis: str
    item: str = ""
    usd: float | None = None
    covers: str = ""
    tight: str = ""
    parts: tuple[PartRecord, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class LocalReport(Answer[LocalRecord]):
    """The answer to `local`: models on a machine, or with `buy` machines with the most that each runs. `machine` is the
    one that was asked about ("": none), with what was assumed of it in `assumptions`. `benchmark` is what `score` is
    of. What to buy comes cheapest first where it is `sparing`, else fastest; `instead` is the rank of the first of the
    other order, `opens` are models that only what has more memory for the money runs, each on the best of it."""

    rows: ClassVar[str] = "models"

    machine: str
    context: int
    prompt_tokens: float
    min_tokens_per_s: float
    max_usd: float | None
    use: str
    models: tuple[LocalRecord, ...]
    refused: tuple[RefusalRecord, ...]
    assumptions: tuple[str, ...]
    benchmark: str = ""
    buy: bool = False
    sparing: bool = False
    instead: int = 0
    opens: tuple[LocalRecord, ...] = ()
    schema_version: str = field(default=SCHEMA_VERSION)

    def verdict(self) -> tuple[str, ...]:
        """The answer in one sentence."""
        return (_verdict(self),)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """A line per model."""
        rows = self.models if everything else self.models[:SHOWN]
        shown = [c for c in DESK if self.buy or c.head not in ("machine", "$")]
        target = f"at least {self.min_tokens_per_s:g} tokens/s"
        least = min((r.context for r in rows), default=self.context)
        held = f"{self.context:,} tokens of context"
        held += f" ({least:,} where a row says so)" if least < self.context else ""
        load = f"{held}, {target}" + (f", for {self.use}" if self.use else "")
        foot = []
        if len(rows) < len(self.models):
            foot.append(f"{len(self.models) - len(rows)} more (--all)")
        if self.models:
            foot += _commands(self.models[0].commands)
            foot += [f"#1: {self.models[0].precision} {self.models[0].keeps}"] if self.models[0].quality else []
        if self.refused:
            named = "; ".join(f"{r.chip.rpartition('/')[2]}: {r.detail}" for r in self.refused[:4])
            rest = len(self.refused) - 4
            foot.append(f"not among them: {named}" + (f"; and {rest} more" if rest > 0 else ""))
        foot += self.assumptions
        return (Table.of(rows, shown, (*self.verdict(), load, ""), foot),)


def _speed(r: LocalRecord) -> str:
    f = r.tokens_per_s
    return f"{format_number(f.mid, 2)} [{format_number(f.low, 2)}-{format_number(f.high, 2)}]"


def _first(r: LocalRecord) -> str:
    return f"{format_seconds(r.ttft_s.mid)} [{format_seconds(r.ttft_s.low)}-{format_seconds(r.ttft_s.high)}]"


def _used(r: LocalRecord) -> str:
    alike = r.parts[0].count if r.parts else 1
    times = f"{alike} x " if alike > 1 else ""
    beside = f" + {format_bytes(r.host_bytes)}" if r.host_bytes else ""
    return f"{times}{format_bytes(r.memory_bytes)}{beside}"


def _price(r: LocalRecord) -> str | None:
    return None if r.usd is None else f"{r.usd:,.0f}"


DESK = (
    RANK,
    Column("machine", lambda r: r.item or None, spare=0, prose=True),
    Column("$", _price, right=True),
    Column("", "usd", short="usd"),
    Column("", "machine", short="machine"),
    Column("model", lambda r: r.model.rpartition("/")[2]),
    Column("", "model", short="model"),
    Column("score", lambda r: "*" if r.score is None else f"{r.score:.1f}", right=True),
    Column("", "score", short="score"),
    Column("format", "precision", short="precision"),
    Column("tok/s", _speed, right=True),
    Column("", "tokens_per_s", short="tokens_per_s"),
    Column("first token", _first, right=True, spare=3),
    Column("", "ttft_s", short="ttft_s"),
    Column("context", "context", "{:,}".format, right=True, spare=2, short="context", scale=0),
    Column("", "largest_context", short="largest_context", scale=0),
    Column("memory", _used, right=True),
    Column("", "memory_bytes", short="memory_gb", scale=1e-9),
    Column("", "host_bytes", short="host_gb", scale=1e-9),
    Column("download", "download_bytes", format_bytes, right=True, spare=4, short="download_gb", scale=1e-9),
    Column("where", "placement", spare=5, prose=True, short="placement"),
    Column("basis", "basis", spare=6, short="basis"),
    Column("", "scores", short="scores"),
    Column("", "keeps", short="quality"),
    Column("", "commands", short="commands"),
)
"""What is said of a model on a machine."""


def _verdict(report: LocalReport) -> str:
    if not report.models:
        return f"Nothing here runs at {report.min_tokens_per_s:g} tokens/s or more."
    r = report.models[0]
    figures = f"{_speed(r)} tokens/s, first token of {report.prompt_tokens:,.0f} after {format_seconds(r.ttft_s.mid)}"
    what = f"{r.model.rpartition('/')[2]} in {r.precision} at {figures}"
    if report.buy:
        of = "cards alone" if r.covers == "card" else "the machine"
        return f"Buy {r.item} (${r.usd:,.0f}, {of}): {what}.{_instead(report)}{_opens(report)}"
    where = f", {format_bytes(r.host_bytes)} of it in the computer's memory" if r.host_bytes else ""
    where += f", tightly: with {r.tight}" if r.tight else ""
    if len(report.models) == 1:
        return f"{report.machine} runs {what}{where}."
    return f"Best of {len(report.models)} models for {report.machine}: {what}{where}."


def _instead(report: LocalReport) -> str:
    """What one buys for less, or for more, with what it gives."""
    if report.instead <= 1:
        return ""
    r = report.models[report.instead - 1]
    what = f"{r.item} (${r.usd:,.0f}) at {_speed(r)} tokens/s in {r.precision}"
    if report.sparing:
        return f" That is the cheapest that is enough; about the fastest that the money buys: {what}."
    return (
        f" No more than a few percent faster is to be had for the money; the cheapest that runs the same model: {what}."
    )


def _opens(report: LocalReport) -> str:
    """What larger models take."""
    if not report.opens:
        return ""
    found: dict[str, list[LocalRecord]] = {}
    for one in report.opens:
        found.setdefault(one.item, []).append(one)
    said = []
    for mine in list(found.values())[:OPENED]:
        models = ", ".join(f"{one.model.rpartition('/')[2]} at {_speed(one)} tokens/s" for one in mine[:OPENED])
        more = f" and {len(mine) - OPENED} more" if len(mine) > OPENED else ""
        said.append(f"{mine[0].item} (${mine[0].usd:,.0f}) also runs {models}{more}")
    return f" For larger models: {'; '.join(said)}."


def _commands(commands: Mapping[str, str]) -> list[str]:
    return [f"{'#1 ' if i == 0 else '   '}{engine}: {text}" for i, (engine, text) in enumerate(commands.items())]
