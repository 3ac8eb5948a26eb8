"""local: what one can ask of a machine at a desk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.api.loaded import find_chip
from chipwise.api.local import BudgetAsked, MachineAsked, Wish
from chipwise.api.placing import Terms
from chipwise.api.requests.field import NAMES, OBJECT, PAIRS, ChoiceRequest, Reading, as_text, ask, count_of, figure
from chipwise.api.requests.parts import HOST_BYTES, HOST_MEMORY, shared
from chipwise.api.requests.planning import HAVE
from chipwise.catalog.environment import environment
from chipwise.catalog.machine import parse_machine
from chipwise.catalog.override import Share
from chipwise.errors import UsageError
from chipwise.report.desk import LocalReport
from chipwise.values import dataclass

if TYPE_CHECKING:
    from chipwise.calibrate.parameters import Parameters

SEEING = {"tower": "always"}
"""The setting of engines that models need to see."""


@dataclass(frozen=True, kw_only=True)
class LocalRequest(ChoiceRequest):
    """What a machine of one's own can run, in which format and how fast, with the commands; or what to buy."""

    have: str | None = ask(
        "the machine: rtx-4090, 2xrtx-3090, m4-max:64gb, rtx-4090+epyc-9654, auto for this one, or measured for "
        "the one that measure probe timed",
        reading=HAVE,
    )
    host_memory: str | None = ask(HOST_MEMORY, reading=HOST_BYTES)
    max_usd: float | None = ask("what to buy for at most this many dollars, instead of --have")
    min_tps: float | None = ask(
        "at least this many tokens per second; default: 10. With --max-usd the cheapest that does; without a speed or "
        "a context the best that the money buys"
    )
    context: str | None = ask(
        "tokens of prompts and answers together, e.g. 32k; default: 8192, or 4096 where no more fits",
        reading=figure("", low=512, high=1e8),
    )
    use: str | None = ask("what for: chat, code, reasoning or vision; default: anything")
    models: str | None = ask(
        "names or files, separated by commas; default: what people run at desks", file=True, reading=NAMES
    )
    most: int = ask("list at most this many models", 16)
    precision: str | None = ask("only this number format, e.g. q4_k_m; default: the widest that is fast enough")
    kv: str | None = ask("number format of the cache, e.g. q8_0; default: 16 bit")
    policy: str | None = ask("settings of the engine, e.g. reserved_bytes=0,memory_share=0.9", reading=PAIRS)
    set_: str | None = ask(
        "override chip figures, e.g. system=0GB for a card without a display", name="set", reading=PAIRS
    )
    share: str | None = ask(
        "what other work leaves of the chip, e.g. gpu=60%,memory=16GB (a renderer, a second model)",
        reading=Reading(shared, as_text, (OBJECT,)),
    )

    environment: str | None = ask(
        "where it runs: workstation, headless, laptop, edge, phone or browser; default: workstation"
    )

    def run(self) -> LocalReport:
        """The models of a machine, or the machines of a budget. Raises the errors of `ranked`."""
        found: LocalReport = self.ranked().whole()
        return found

    def asking(self, numbers: Parameters | None = None, *, published: bool = True) -> MachineAsked | BudgetAsked:
        """The question about a machine or about a budget, read."""
        if self.min_tps is not None and not 0 < self.min_tps < 1e6:
            raise UsageError(f"--min-tps {self.min_tps:g} is out of range", "more than 0", field="min_tps")
        context = self.values["context"]
        wish = Wish(
            Wish.min_tps if self.min_tps is None else self.min_tps,
            None if context is None else int(context),
            (self.use or "").strip().lower(),
            tuple(self.values["models"] or ()),
            count_of(self.most, "--most", "models", 1000) or 16,
        )
        if self.have is None:
            if self.max_usd is None:
                hint = "--have rtx-4090 (or auto), or --max-usd 3000 for what to buy"
                raise UsageError("local needs a machine or a budget", hint, field="have")
            if not 0 < self.max_usd < 1e9:
                what = f"--max-usd {self.max_usd:,.10g} is out of range"
                raise UsageError(what, "more than 0, less than 1,000,000,000", field="max_usd")
            if self.host_memory is not None:
                what = "--host-memory is of a machine that you have"
                raise UsageError(what, "add --have", field="host_memory")
            sparing = self.min_tps is not None or context is not None
            return BudgetAsked(self.max_usd, wish, self.terms(numbers), sparing)
        if self.max_usd is not None:
            what = "--max-usd asks what to buy, --have says that you have it"
            raise UsageError(what, "one of them", field="max_usd")
        machine = parse_machine(self.have, self.values["host_memory"], find_chip)
        return MachineAsked.of(machine, wish, self.terms(numbers))

    def terms(self, numbers: Parameters | None = None) -> Terms:
        """What this says of the terms of a verb."""

        return Terms(
            self.precision,
            self.kv,
            policy=(SEEING if self.use == "vision" else {}) | (self.values["policy"] or {}),
            changes=self.values["set_"] or {},
            parameters=numbers,
            share=self.values["share"] or Share(),
            environment=environment((self.environment or "").strip().lower()),
        )
