"""Every fitted number in one value, passed explicitly to whoever needs it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from chipwise.cost.efficiency import Efficiency
from chipwise.errors import UnknownNameError
from chipwise.predict.overheads import Overheads

__all__ = ["Parameter", "Parameters", "shipped_parameters"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number with a meaning: its prior, its value, and `spread`, one standard deviation of log(value).

    `rows` is the hash of the rows that it was fitted on, empty while the value is the prior.
    """

    prior: float
    value: float
    spread: float
    unit: str
    source: str
    rows: str = ""


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

    def efficiency(self, family: str, runtime: str) -> Efficiency:
        """What a roofline of this family needs, under a runtime."""

        def of(name: str) -> float:
            return self.value(f"{family}.{name}", f"any.{name}")

        dtypes = ("fp32", "bf16", "fp16", "fp8", "int8", "int4", "fp4")
        return Efficiency(
            compute={d: of(f"compute.{d}") for d in dtypes},
            attention_compute=of("attention_compute"),
            expert_compute=of("expert_compute"),
            memory=of("memory"),
            expert_memory=of("expert_memory"),
            cache_memory=of("cache_memory"),
            pass_memory=of("pass_memory"),
            launch_s=self.value(f"runtime.{runtime}.launch", f"{family}.launch", "any.launch"),
            softness=of("softness"),
        )

    def overheads(self, family: str, runtime: str) -> Overheads:
        """Host and network overheads of a runtime on a family."""

        def of(name: str) -> float:
            return self.value(f"runtime.{runtime}.{name}", f"runtime.any.{name}")

        return Overheads(
            iteration_s=of("iteration"),
            sequence_s=of("sequence"),
            request_s=of("request"),
            link_share=self.value(f"{family}.link_share", "any.link_share"),
            link_base_s=self.value(f"{family}.link_base", "any.link_base"),
            link_hop_s=self.value(f"{family}.link_hop", "any.link_hop"),
        )


@cache
def shipped_parameters() -> Parameters:
    """The parameters that come with the package."""
    text = files("chipwise.calibrate").joinpath("data/parameters.toml").read_text("utf-8")
    data = tomllib.loads(text)
    sources = data.pop("sources")
    table: dict[str, Parameter] = {}
    _collect("", data, sources, table)
    return Parameters(table)


def _collect(
    prefix: str, node: Mapping[str, object], sources: Mapping[str, str], table: dict[str, Parameter]
) -> None:
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
