"""How the software is run, beyond its policies: guessing ahead, pools apart, its level and its age."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from chipwise.calibrate.fit_level import STARTING, LevelFit
from chipwise.calibrate.parameters import Parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.drafts import guessing
from chipwise.catalog.harness import NO_HARNESS, Harness
from chipwise.catalog.processors import get_processor, host_speed
from chipwise.catalog.published import month_of, software_age
from chipwise.catalog.releases import first_build, first_version, newest_month
from chipwise.catalog.runtime import kernel_era
from chipwise.catalog.runtime_spec import Runtime
from chipwise.errors import UsageError
from chipwise.parallel.layout import Layout, Reason
from chipwise.predict.overheads import Overheads
from chipwise.predict.parts import PARTS
from chipwise.predict.speculative import LOOKED_UP, Speculation
from chipwise.report.records import RefusalRecord
from chipwise.search.space import Deployment
from chipwise.units import Array, format_bytes
from chipwise.values import dataclass
from chipwise.workload.graph import Graph
from chipwise.workload.lora import Adapter, adapter_bytes
from chipwise.workload.workload import Workload

OLDEST = "2023-04"

Level = Literal["stock", "tuned"]


@dataclass(frozen=True)
class Tactics:
    """`speculation`: tokens guessed ahead (None: none), by the model's own module for it or, with `lookup` or where
    it has none, free by lookup in the prompt. `apart`: prompts are worked off in workers of their own; `prefill`
    says how many of which layout (None: as many of the plan's own as keep up). `software`: a date or MLPerf round
    whose software it is ("": the newest measured); `beyond`: what a version that nobody knows yet is taken for.
    `harness`: the benchmark client that will measure it. `level`: what the runtime's defaults give, or what a benchmark
    submission reaches with it. `host`: the processor of the machine, by name or clock ("": that of the system that the
    catalogue builds the chip into). `adapters`: so many low-rank ones of a kind are held beside the model (None: none).

    Raises `UnknownNameError` for software of no such date or a processor that nobody knows, `UsageError` for software
    before all that was measured or after all that is known.
    """

    speculation: Speculation | None = None
    lookup: bool = False
    apart: bool = False
    software: str = ""
    harness: Harness = NO_HARNESS
    prefill: tuple[Layout, int] | None = None
    level: Level = "stock"
    host: str = ""
    adapters: tuple[int, Adapter] | None = None
    beyond: str = ""

    def __post_init__(self) -> None:
        if self.host:
            get_processor(self.host)
        if self.software and software_age(self.software) < software_age(OLDEST):
            raise UsageError(f"software of {self.software}: nothing that old was measured", f"{OLDEST} or later")
        if month_of(self.software) > newest_month():
            raise UsageError(
                f"software of {self.software} is not out yet, as far as is known here",
                f"up to {newest_month()}, or leave it out for the newest",
            )

    def of(self, graph: Graph) -> Tactics:
        """The same with the acceptance that is published of the model, where the user left it out. Raises `UsageError`
        for a model without a module of its own."""
        guess = self.speculation
        if guess is None or guess.published != LOOKED_UP:
            return self
        if graph.extra("mtp") is None:
            raise UsageError(
                f"--speculate: no acceptance, and {graph.model.name} cannot guess its own tokens",
                "for example accept=0.7,draft=3",
            )
        found = guessing(graph.model.name, guess.draft_tokens)
        return replace(self, speculation=Speculation(guess.draft_tokens, found.acceptance, found.words))

    def factors(self, numbers: Parameters, runtime: Runtime, chips: Sequence[Chip]) -> Mapping[str, Array]:
        """Parts of passes of software of this level and age over those of stock software of the newest, one per chip:
        what submissions to MLPerf show; and what the host does, by the speed of its threads."""
        fitted = numbers.derived(LevelFit.of)
        host = host_speed(self.host, chips)
        if self.level == "stock":
            parts: dict[str, Array] = fitted.aged(runtime.id, chips, self.software)
        else:
            pace = fitted.pace(runtime.id, chips, tuned=True, software=self.software)
            started = pace * (fitted.starts if "engines" in runtime.features else 1.0)
            parts = {part: started if part in STARTING else pace for part in PARTS}
        return {part: f / host if part.startswith("host.") else f for part, f in parts.items()}

    def drawn(self, workload: Workload) -> Workload:
        """The workload with the lengths that the harness really sends: their mean is below the nominal one."""
        scale = self.harness.mean_length
        if scale == 1.0:
            return workload
        prompt, output = (max(scale * n, 1.0) for n in (workload.prompt_tokens, workload.output_tokens))
        lengths = workload.lengths
        if lengths is not None:
            lengths = replace(lengths, prompt_tokens=prompt, output_tokens=output)
        return replace(workload, prompt_tokens=prompt, output_tokens=output, lengths=lengths)

    def on(
        self, offered: Sequence[Deployment], graph: Graph, said: Collection[str] = ()
    ) -> tuple[list[Deployment], list[RefusalRecord]]:
        """Deployments run so, and a refusal for each that cannot be. Policies that the user `said` stay, whatever they
        were in software of that date."""
        found: list[Deployment] = []
        refused: dict[str, RefusalRecord] = {}
        drafts = self._drafts(graph)
        adapters = self._adapter_bytes(graph)
        for d in offered:
            if why := self._unable(d.runtime) or self._too_old(d.runtime, d.chip):
                refused[d.chip.id] = RefusalRecord(d.chip.id, Reason.NO_RUNTIME.name, why)
            else:
                dated = d.runtime.policies_until(d.chip, month_of(self.software))
                changed = {name: value for name, value in dated.items() if name not in said}
                policies = replace(d.policies, **changed) if changed else d.policies
                held = d.adapter_bytes if self.adapters is None else adapters
                run = replace(d, policies=policies, speculation=self.speculation, adapter_bytes=held)
                found.append(replace(run, drafts=drafts, apart=self.apart))
        able = {d.chip.id for d in found}
        return found, [r for chip, r in refused.items() if chip not in able]

    def _unable(self, runtime: Runtime) -> str:
        """Why a runtime does not run a model so; "" where it does."""
        if self.apart and "disaggregated" not in runtime.features:
            return f"{runtime.name} does not process prompts on separate workers"
        if self.adapters is not None and "lora" not in runtime.features:
            return f"{runtime.name} is not known to serve low-rank adapters"
        return ""

    def _too_old(self, runtime: Runtime, chip: Chip) -> str:
        """Why stock software of that date does not run on a chip; "" where it does, or where none is named."""
        first = first_build(runtime.id, chip.generation)
        month = month_of(self.software)
        if self.level == "tuned" or first is None or not "" < month < first.month:
            return ""
        version = first_version(runtime.id, first.month)
        named = f"{runtime.id} {version}" if version else first.month
        return (
            f"{runtime.name} of {month} does not run on {chip.name}: the first that does is of {first.month} "
            f"({first.by}); --software '{named}' or later"
        )

    def _adapter_bytes(self, graph: Graph) -> float:
        if self.adapters is None:
            return 0.0
        count, adapter = self.adapters
        return count * adapter_bytes(graph, adapter)

    def _drafts(self, graph: Graph) -> bool:
        return self.speculation is not None and not self.lookup and graph.extra("mtp") is not None

    def paced(self, overheads: Overheads, numbers: Parameters, runtime: Runtime, chips: Sequence[Chip]) -> Overheads:
        """Overheads of deployments under software of this level and age."""
        factors = self.factors(numbers, runtime, chips)
        request_s = overheads.request_s / (get_processor(self.host).speed if self.host else 1.0)
        moved = {part: overheads.factors.get(part, 1.0) * f for part, f in factors.items() if np.any(f != 1.0)}
        return replace(overheads, factors={**overheads.factors, **moved}, request_s=request_s)

    def notes(self, graph: Graph, numbers: Parameters) -> list[str]:
        """What they mean, in words."""
        said = []
        if self.speculation is not None:
            s = self.speculation
            how = "the model's own prediction module" if self._drafts(graph) else "lookup in the prompt, free"
            said.append(
                f"speculative decoding: {s.draft_tokens} token{'' if s.draft_tokens == 1 else 's'} guessed by {how}, "
                f"each right with probability "
                f"{s.acceptance:.2g} ({s.published or 'yours'}), {s.tokens_per_pass:.2f} tokens a pass"
            )
        else:
            said.append("no speculative decoding")
        if self.prefill is not None:
            layout, workers = self.prefill
            said.append(f"prompts on {workers} separate workers ({layout.label()}), caches sent between them")
        elif self.apart:
            said.append("prompts on separate workers, as many as are 80 % busy, caches sent between machines")
        if self.adapters is not None:
            count, adapter = self.adapters
            said.append(
                f"{count} low-rank adapter{'' if count == 1 else 's'} of rank {adapter.rank} held with the model, "
                f"{format_bytes(self._adapter_bytes(graph))}; the time of their products is not counted"
            )
        if self.harness.id:
            said.append(f"measured by {self.harness.name}, as published runs are")
        if self.level == "tuned":
            said.append(
                "software tuned as for a benchmark submission: what MLPerf's closed division shows of this "
                "runtime beyond its defaults"
            )
        if self.host:
            found = get_processor(self.host)
            said.append(
                f"host: {found.name}, whose threads do {found.speed:.2f} of the work of those that most published "
                "servers have (clock x work per clock)"
            )
        if self.beyond:
            said.append(self.beyond)
        if self.software:
            said.append(self._dated(numbers))
        return said

    def _dated(self, numbers: Parameters) -> str:
        """What the age of software does to passes."""
        tuned = self.level == "tuned"
        slower = numbers.derived(LevelFit.of).slower(self.software, tuned=tuned)
        plain = "" if tuned else "; plain products of cuBLAS do not"
        besides = "; kernels that were replaced since come on top" if kernel_era(self.software) else ""
        return (
            f"software of {self.software}: passes take {slower:.2f}x as long as with the newest measured "
            f"(submissions to MLPerf on unchanged chips){plain}{besides}"
        )
