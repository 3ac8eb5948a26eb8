"""What each benchmark of MLPerf Inference asks for: model, lengths, limits, or what a sample is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Literal

from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.errors import UnknownNameError, is_name
from chipwise.values import dataclass

Kind = Literal["llm", "convolution", "attention", "diffusion", "recurrent", "recommendation"]


@dataclass(frozen=True, slots=True)
class Limit:
    """Latency limits at the 99th percentile, in seconds: first token, per further token, or the whole."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    total_s: float | None = None


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark: a language model with mean lengths in tokens, or a `network` that reads or makes samples.

    `output_tokens` is the mean of logs where these say it, `nominal_output_tokens` what the rules multiply
    samples by. `input_std` and `output_std` say how lengths scatter, 0 where that is not known, `spread_note` how it is
    known. `constant`: one fitted number is allowed (of a language model its mean prompt), as lengths are
    unpublished. `refused` says why chipwise does not predict it, "" where it does. `speculative` names
    scenarios that were won with speculative decoding, `speculate` how well it guesses, as plans are told. `names` are
    names of the very network, `kin` first words of networks of its sort; `sample` is what one sample is. `ask` are
    fields of a question about the network; a name of a scenario among them holds those that differ there.
    """

    name: str
    task: str
    kind: Kind
    model: str
    data: str
    input_tokens: float
    input_note: str
    input_std: float
    output_tokens: float
    nominal_output_tokens: float
    output_std: float
    beams: int
    constant: bool
    network: str
    ask: Mapping[str, Any]
    refused: str
    rounds: tuple[str, ...]
    limits: Mapping[str, Limit] = field(default_factory=dict)
    speculative: tuple[str, ...] = ()
    speculate: str = ""
    spread_note: str = ""
    note: str = ""
    names: tuple[str, ...] = ()
    kin: tuple[str, ...] = ()
    sample: Mapping[str, str] = field(default_factory=dict)

    @property
    def generates(self) -> bool:
        """Whether it runs a language model, whose speed is predicted from its configuration."""
        return self.kind == "llm" and bool(self.model)

    def asked(self, scenario: str) -> dict[str, Any]:
        """What a question says of a sample of its network in a scenario."""
        shared = {name: value for name, value in self.ask.items() if not isinstance(value, Mapping)}
        return shared | dict(self.ask.get(scenario, {}))


@dataclass(frozen=True, slots=True)
class Named:
    """The benchmark that a model's name leads to: it runs this very network, or one of the same sort (`own` false)."""

    benchmark: Benchmark
    own: bool


@per_snapshot
def load_benchmarks() -> Mapping[str, Benchmark]:
    """All benchmarks by the name of their results' `benchmark`; read once."""
    text = shipped_text("catalog/data/published/benchmarks.toml")
    return MappingProxyType({name: _benchmark(name, entry) for name, entry in parse(text).items()})


def get_benchmark(name: str) -> Benchmark:
    """The benchmark of that name. Raises `UnknownNameError` with the nearest names."""
    table = load_benchmarks()
    key = name.strip().lower()
    if key not in table:
        raise UnknownNameError("benchmark", name, table)
    return table[key]


ACCURACY = re.compile(r"-(99(?:\.9)?)$")
"""How names of results end that were held to a share of the reference's accuracy, in percent."""


def benchmark_of(model: str) -> Named | None:
    """The benchmark that a model's name leads to, None where none does.

    The name of the network itself (an owner before a slash, a required accuracy at the end and signs between words
    aside) wins over the first words that it shares with networks of a sort; of those the longest wins.
    """
    if not is_name(model):
        return None
    name = _signs(ACCURACY.sub("", model.strip().lower().rstrip("/").rpartition("/")[2]))
    kin: list[tuple[int, Benchmark]] = []
    for benchmark in load_benchmarks().values():
        if _plain(name) in {_plain(n) for n in _names(benchmark)}:
            return Named(benchmark, True)
        for word in map(_signs, benchmark.kin):
            if re.match(rf"{re.escape(word)}(?![a-z])", name):
                kin.append((len(word), benchmark))
    return Named(max(kin, key=lambda k: k[0])[1], False) if kin else None


def near_benchmarks(model: str) -> tuple[str, ...]:
    """Names of benchmarks that begin with a name that is too short to mean one."""
    name = _plain(model.strip().rpartition("/")[2]) if is_name(model) else ""
    return tuple(b.name for b in load_benchmarks().values() if name and _plain(b.name).startswith(name))


def _names(benchmark: Benchmark) -> tuple[str, ...]:
    """What means a benchmark: its name, names of its network, the language model that it runs."""
    model = benchmark.model.rpartition("/")[2]
    return (benchmark.name, *benchmark.names, *((model,) if model else ()))


def required_accuracy(model: str) -> str:
    """The share of the reference's accuracy, in percent, that a result's model name ends with; "" where with none."""
    found = ACCURACY.search(model)
    return found.group(1) if found else ""


def _plain(name: str) -> str:
    """A name without the signs between its words."""
    return _signs(name).replace("-", "")


def _signs(name: str) -> str:
    """A name with one sign between its words."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


def _benchmark(name: str, entry: Mapping[str, Any]) -> Benchmark:
    output = float(entry.get("output_tokens", 0.0))
    return Benchmark(
        name=name,
        task=entry["task"],
        kind=entry.get("kind", "llm"),
        model=entry.get("model", ""),
        data=entry["data"],
        input_tokens=float(entry.get("input_tokens", 0.0)),
        input_note=entry.get("input_note", ""),
        input_std=float(entry.get("input_std", 0.0)),
        output_tokens=output,
        nominal_output_tokens=float(entry.get("nominal_output_tokens", output)),
        output_std=float(entry.get("output_std", 0.0)),
        beams=int(entry.get("beams", 1)),
        constant=bool(entry.get("constant", 0)),
        network=entry.get("network", ""),
        ask=MappingProxyType(dict(entry.get("ask", {}))),
        refused=entry.get("refused", ""),
        rounds=tuple(entry["rounds"]),
        limits={scenario: Limit(**limit) for scenario, limit in entry.get("limits", {}).items()},
        speculative=tuple(entry.get("speculative", ())),
        speculate=entry.get("speculate", ""),
        spread_note=entry.get("spread_note", ""),
        note=entry.get("note", ""),
        names=tuple(entry.get("names", ())),
        kin=tuple(entry.get("kin", ())),
        sample=MappingProxyType(dict(entry.get("sample", {}))),
    )
