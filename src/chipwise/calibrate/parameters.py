"""Every fitted number in one value, passed explicitly to whoever needs it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from chipwise.calibrate.effects import Effects
from chipwise.calibrate.families import SPEEDS, cpu_model, dataflow_model
from chipwise.calibrate.local import LOCAL, local_model
from chipwise.calibrate.parameter import Parameter, read_table
from chipwise.calibrate.priors import PRIORS
from chipwise.calibrate.simt_numbers import Memo, simt_parameters
from chipwise.calibrate.systolic_kernels import systolic_effects, systolic_model
from chipwise.catalog.chip import Chip
from chipwise.catalog.files import read_text
from chipwise.catalog.parsed import parse
from chipwise.catalog.runtime import kernel_library, kernels_of
from chipwise.catalog.runtime_spec import Operator, Policies, Runtime
from chipwise.catalog.snapshot import per_snapshot, shipped_names, shipped_text
from chipwise.catalog.software import all_software
from chipwise.cost.dataflow import StageNumbers
from chipwise.cost.price import CostParameters
from chipwise.cost.roofline import Efficiency
from chipwise.cost.simt.family import Labels, SimtParameters
from chipwise.cost.systolic.family import SystolicParameters
from chipwise.errors import UnknownNameError
from chipwise.parallel.collective import KINDS, CollectiveParameters, Kind
from chipwise.predict.exchange import exchange_numbers
from chipwise.predict.overheads import Overheads
from chipwise.units import Array
from chipwise.values import dataclass

T = TypeVar("T")
N = TypeVar("N", SystolicParameters, StageNumbers)

MOST_BYTES = 5_000_000
BENCHMARKS = "chosen: published benchmarks"  # how the source of a number begins that was chosen from them


@dataclass(frozen=True)
class Parameters:
    """Parameters by dotted name: `simt.compute.bf16`, `runtime.vllm.iteration`."""

    table: Mapping[str, Parameter]

    def value(self, *names: str) -> float:
        """The first of `names` that exists: from the special to the general. Raises `UnknownNameError`."""
        for name in names:
            if name in self.table:
                return self.table[name].value
        raise UnknownNameError("parameter", names[0], self.table)

    @cached_property
    def from_benchmarks(self) -> tuple[str, ...]:
        """Names of numbers of runtimes that were chosen from other people's published benchmarks."""
        return tuple(n for n, p in self.table.items() if n.startswith("runtime.") and p.source.startswith(BENCHMARKS))

    @cached_property
    def kernels(self) -> Mapping[str, Effects]:
        """The fitted effects of every group of kernels; priors where there are none."""
        return _Kernels(self.table)

    @cached_property
    def arrays(self) -> Mapping[str, Effects]:
        """The same for the operators of systolic chips."""
        return systolic_effects(self.table)

    @cached_property
    def speeds(self) -> Effects:
        """What a token waits for on dataflow machines."""
        return SPEEDS.of(self.table)

    @cached_property
    def local(self) -> Effects:
        """What the kernels of local runtimes reach."""
        return LOCAL.of(self.table)

    @cached_property
    def _memo(self) -> Memo:
        return {}

    @cached_property
    def _derived(self) -> dict[Callable[[Parameters], Any], Any]:
        return {}

    def derived(self, make: Callable[[Parameters], T]) -> T:
        """`make(self)`, made once for these numbers."""
        if make not in self._derived:
            self._derived[make] = make(self)
        found: T = self._derived[make]
        return found

    def cost(
        self,
        family: str,
        runtime: str,
        chips: Sequence[Chip],
        *,
        alone: bool = False,
        software: str = "",
        policies: Policies | None = None,
    ) -> CostParameters:
        """What `cost.price` needs for chips of one family under a runtime: a number per chip where they differ,
        to be taken along with a stack of their devices. `alone`: an operator on its own, not one of a model.
        `software` is the date of the runtime, "" the newest; `policies` are those that it runs under, by default its
        own on each chip."""
        known = all_software(Runtime).get(runtime)
        if known and known.backends:
            return local_model(self.local, known, chips, policies, software)
        if family == "systolic":
            arrays = systolic_model(self.arrays, chips, alone=alone)
            return arrays if alone else replace(arrays, numbers=self._brought(runtime, chips, software, arrays.numbers))
        if family == "cpu":
            return cpu_model(self.value, runtime, chips, alone=alone)
        if family == "dataflow":
            stages = dataflow_model(self.value, self.speeds, chips, alone=alone)
            return stages if alone else replace(stages, numbers=self._brought(runtime, chips, software, stages.numbers))
        rest = self.efficiency(family, runtime)
        if family != "simt":
            return rest
        found = simt_parameters(self.kernels, rest, runtime, chips, alone=alone, software=software, memo=self._memo)
        launch_s = found.launch_s if alone else self._launch_s(runtime, rest.launch_s, chips)
        sustained = {} if alone else self._sustained
        return replace(found, launch_s=launch_s, sustained=sustained)

    def _brought(self, runtime: str, chips: Sequence[Chip], software: str, numbers: N) -> N:
        """The numbers of operators with those of kernels that a runtime brings in their place: of its attention, of how
        it starts operators. `runtime.NAME.operator.FIELD`, or `.FIELD.KIND` for a generation or a vendor; before them
        `.LIBRARY.FIELD` of the attention that its software of that date runs, NAME whose kernels they are."""
        changes: dict[str, Any] = {}
        own, whose = f"runtime.{runtime}.operator", f"runtime.{kernels_of(runtime)}.operator"
        attends = [kernel_library("attention", runtime, c.generation, software=software) for c in chips]
        for field in (f.name for f in fields(numbers)):
            name = f"{own}.{field}"
            each = np.array(
                [
                    self._first(f"{whose}.{library}.{field}", *_kinds(name, chip), name)
                    for library, chip in zip(attends, chips, strict=True)
                ]
            )
            if not np.isnan(each).all():
                changes[field] = np.where(np.isnan(each), getattr(numbers, field), each)
        return replace(numbers, **changes)

    @cached_property
    def _sustained(self) -> Mapping[str, float]:
        """Energy of an operation in long runs over that of short timings, by type of products."""
        start = "sustained.energy."
        return {name[len(start) :]: p.value for name, p in self.table.items() if name.startswith(start)}

    def _launch_s(self, runtime: str, default_s: float, chips: Sequence[Chip]) -> float | Array:
        """Seconds per kernel, one for all chips or one each, where some have no captured graphs."""
        each = self._of_kind(f"runtime.{runtime}.launch_of", chips)
        return default_s if np.isnan(each).all() else np.where(np.isnan(each), default_s, each)

    def as_installed(
        self, costs: CostParameters, runtime: str, chips: Sequence[Chip], software: str = "", architecture: str = ""
    ) -> CostParameters:
        """The numbers of a runtime as it is installed, whose library picks kernels that a tuner would not: quantities
        of measured kernels times `runtime.NAME.stock.GROUP.QUANTITY.TYPE.KIND`, by generation or vendor; experts of
        models that the catalogue names by the library that it names for them; and what its software of that date does
        between the kernels of a layer, with latent attention or other, by `_layer_s`."""
        if not isinstance(costs, SimtParameters):
            return costs
        costs = replace(
            costs,
            latent_layer_s=self._layer_s("latent_layer", runtime, chips, software),
            layer_s=self._layer_s("layer", runtime, chips, software),
        )
        stem = f"runtime.{runtime}.stock."
        named = [name.removeprefix(stem).rsplit(".", 3)[:3] for name in self.table if name.startswith(stem)]
        measured = costs.find
        factors = {(g, q, t): self._of_kind(f"{stem}{g}.{q}.{t}", chips) for g, q, t in named}

        def library(chip: Chip, dtype: str) -> str:
            """Whose experts run on a chip, "" where it is who runs everybody's."""
            usual, own = (
                kernel_library("experts", runtime, chip.generation, dtype, software=software, architecture=a)
                for a in ("", architecture)
            )
            return "" if own == usual else own

        def find(group: str, labels: Labels) -> Mapping[str, Array]:
            found = {name: np.asarray(value) for name, value in measured(group, labels).items()}
            if group == "simt.experts" and architecture:
                runs = np.array([library(c, dict(labels).get("dtype", "")) for c in chips])
                for own in sorted(set(runs.tolist()) - {""}):
                    others = measured(group, (*labels, ("library", own)))
                    found = {k: np.where(runs == own, others[k], v) for k, v in found.items()}
            for (g, quantity, dtype), each in factors.items():
                if g == group and ("dtype", dtype) in labels:
                    found[quantity] = np.asarray(found[quantity] * np.where(np.isnan(each), 1.0, each))
            return found

        return replace(costs, find=find)

    def _layer_s(self, kind: Operator, runtime: str, chips: Sequence[Chip], software: str) -> Array:
        """`runtime.NAME.layer.LIBRARY.KIND`, by generation or vendor: seconds that a layer of a kind takes in a
        decoding pass beyond its kernels, one per chip; 0 where the catalogue names no library for it."""
        each = []
        for chip in chips:
            library = kernel_library(kind, runtime, chip.generation, software=software)
            found = self._of_kind(f"runtime.{runtime}.layer.{library}", [chip])[0] if library else 0.0
            each.append(0.0 if np.isnan(found) else float(found))
        return np.array(each)

    def starts(self, overheads: Overheads, runtime: str, chips: Sequence[Chip], software: str = "") -> Overheads:
        """Overheads with what the host of each chip takes to start a kernel of a pass with prompts, by
        `runtime.NAME.starts.LIBRARY.KIND`, by generation or vendor; 0 where the catalogue names no such library."""

        def seconds(chip: Chip, library: str) -> float:
            found = self._of_kind(f"runtime.{runtime}.starts.{library}", [chip])[0] if library else 0.0
            return 0.0 if np.isnan(found) else float(found)

        libraries = [kernel_library("prompt_pass", runtime, c.generation, software=software) for c in chips]
        eager = ["eager" if library == "pieces" else library for library in libraries]
        return replace(
            overheads,
            starts_s=np.array([seconds(*each) for each in zip(chips, libraries, strict=True)]),
            eager_s=np.array([seconds(*each) for each in zip(chips, eager, strict=True)]),
        )

    def _of_kind(self, name: str, chips: Sequence[Chip]) -> Array:
        """A number per chip, by its generation or else by its vendor; NaN where there is none."""
        return np.array([self._first(*_kinds(name, chip)) for chip in chips])

    def _first(self, *names: str) -> float:
        """The first of `names` that exists, NaN where none does."""
        return next((self.table[name].value for name in names if name in self.table), np.nan)

    def efficiency(self, family: str, runtime: str) -> Efficiency:
        """What a roofline of this family needs, under a runtime."""

        def of(name: str) -> float:
            return self.value(f"{family}.{name}", f"any.{name}")

        dtypes = ("fp32", "bf16", "fp16", "fp8", "int8", "int4", "fp4")
        return Efficiency(
            compute={d: of(f"compute.{d}") for d in dtypes} | {"tf32": of("compute.bf16")},
            attention_compute=of("attention_compute"),
            expert_compute=of("expert_compute"),
            memory=of("memory"),
            expert_memory=of("expert_memory"),
            cache_memory=of("cache_memory"),
            pass_memory=of("pass_memory"),
            launch_s=self.value(f"runtime.{runtime}.launch", f"{family}.launch", "any.launch"),
            softness=of("softness"),
        )

    def links(self, chip: Chip) -> dict[Kind, CollectiveParameters]:
        """Numbers of exchanges of a chip by the usual library, by kind."""
        costs = self.cost(chip.family, "any", [chip], alone=True).take(np.zeros((), dtype=np.intp))
        overheads = self.overheads(chip.family, "any")
        return {kind: exchange_numbers(kind, costs, overheads) for kind in KINDS}

    def overheads(self, family: str, runtime: str) -> Overheads:
        """Host and network overheads of a runtime on a family."""

        def of(name: str) -> float:
            return self.value(f"runtime.{runtime}.{name}", f"runtime.any.{name}")

        return Overheads(
            iteration_s=of("iteration"),
            sequence_s=of("sequence"),
            request_s=of("request"),
            link_share=self.value(f"runtime.{runtime}.link_share", f"{family}.link_share", "any.link_share"),
            link_base_s=self.value(f"runtime.{runtime}.link_base", f"{family}.link_base", "any.link_base"),
            link_hop_s=self.value(f"runtime.{runtime}.link_hop", f"{family}.link_hop", "any.link_hop"),
        )


class _Kernels(Mapping[str, Effects]):
    """Effects by group of kernels, each collected when it is first asked for: a question meets a few groups."""

    def __init__(self, table: Mapping[str, Parameter]) -> None:
        self._table = table
        self._found: dict[str, Effects] = {}

    def __getitem__(self, group: str) -> Effects:
        if group not in self._found:
            self._found[group] = Effects.of(self._table, group, PRIORS[group])
        return self._found[group]

    def __iter__(self) -> Iterator[str]:
        return iter(PRIORS)

    def __len__(self) -> int:
        return len(PRIORS)


def _kinds(name: str, chip: Chip) -> tuple[str, str]:
    """A number by the generation of a chip, and by its vendor."""
    return f"{name}.{chip.generation}", f"{name}.{chip.software_vendor}"


@per_snapshot
def shipped_parameters() -> Parameters:
    """The parameters that come with the package: those that people edit (TOML) and those that fits write (CSV)."""
    table = _read_toml(shipped_text("calibrate/data/parameters.toml"))
    for name in shipped_names("calibrate/data", ".csv"):
        table |= read_table(shipped_text(name), name.rpartition("/")[2])
    return Parameters(table)


def load_parameters(path: str) -> Parameters:
    """The shipped parameters with those of a file, as `chipwise calibrate` writes it, in their place; a value of nan
    takes a number away.

    Raises `UsageError` for a file that cannot be read.
    """
    text = read_text(Path(path), MOST_BYTES, "parameters that chipwise calibrate wrote")
    table = {**shipped_parameters().table, **read_table(text, path)}
    return Parameters({name: p for name, p in table.items() if not math.isnan(p.value)})


def _read_toml(text: str) -> dict[str, Parameter]:
    data = parse(text)
    sources = data.pop("sources")
    table: dict[str, Parameter] = {}
    _collect("", data, sources, table)
    return table


def _collect(prefix: str, node: Mapping[str, object], sources: Mapping[str, str], table: dict[str, Parameter]) -> None:
    for name, entry in node.items():
        if not isinstance(entry, Mapping):
            raise TypeError(f"parameters.toml: {prefix}{name} is no table")
        if "prior" not in entry:
            _collect(f"{prefix}{name}.", entry, sources, table)
            continue
        prior = float(entry["prior"])
        table[prefix + name] = Parameter(
            prior=prior,
            value=float(entry.get("value", prior)),
            spread=float(entry["spread"]),
            unit=str(entry["unit"]),
            source=sources[str(entry["source"])],
            rows=str(entry.get("rows", "")),
        )
