"""Training software: what each trainer does by design, and which one a chip is usually trained with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal

from chipwise.catalog.chip import Chip
from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.errors import UnknownNameError, UsageError

__all__ = ["Trainer", "get_trainer", "load_trainers", "trainer_called", "usual_trainer"]

TABLE = "catalog/data/trainers.toml"
Kind = Literal["eager", "fsdp", "fused", "xla"]
Counting = Literal["model", "causal", "hardware"]


@dataclass(frozen=True, slots=True)
class Trainer:
    """A trainer as the equations see it.

    | field | meaning |
    |---|---|
    | kind | eager, fsdp, fused or xla, as in the head of the table |
    | called | words that names of it contain, in small letters; the longest that is found decides |
    | chips | vendor, kind or beginning of the id of the chips that it is the usual trainer of |
    | schedules | pipeline schedules that it has; none named: all |
    | zero | stages of ZeRO that it runs; none named: all |
    | usual_zero, usual_recompute, usual_schedule | what its configurations set unless told; schedule: without virtual
    stages |
    | accumulates | whether a step without stages takes several micro-batches |
    | flash, score_passes | attention core fused; else traffic of its softmax over that of one fused kernel |
    | attention | whose fused kernels it calls: FlashAttention-2 ("fa2") or the chip's own ("native") |
    | overlaps | collectives of tensor parallelism can hide behind products |
    | sequence | norms are cut by tensor parallelism too |
    | regather | FSDP gathers weights again for every micro-batch |
    | graphs, flat, broadcast | as in `predict.training.values.Recipe` |
    | devices | devices that software sees in a chip, by id, where it is not as in the catalogue of chips |
    | kernels | the runtime whose measured kernels stand for its own |
    | counts | how it counts the FLOPs that it logs: `predict.training.result.Convention` |
    """

    id: str
    name: str
    kind: Kind
    source: str
    called: tuple[str, ...] = ()
    chips: tuple[str, ...] = ()
    schedules: tuple[str, ...] = ()
    zero: tuple[int, ...] = ()
    usual_zero: int | None = None
    usual_recompute: str = ""
    usual_schedule: str = ""
    accumulates: bool = True
    flash: bool = True
    score_passes: float = 1.0
    attention: Literal["native", "fa2"] = "native"
    overlaps: bool = True
    sequence: bool = True
    regather: bool = True
    graphs: bool = False
    flat: bool = False
    broadcast: bool = False
    kernels: str = "any"
    counts: Counting = "model"
    devices: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def compiled(self) -> bool:
        """One program per step: no host work per layer, weights gathered once per step."""
        return self.kind == "xla"

    def devices_of(self, chip: Chip) -> int:
        """Devices that layouts count in one chip."""
        return self.devices.get(chip.support_id, 1)


@per_snapshot
def load_trainers() -> Mapping[str, Trainer]:
    """All trainers by id. Raises `UsageError` for a table that is wrong."""
    known = {f.name for f in fields(Trainer)} - {"id"}
    raw: dict[str, dict[str, Any]] = parse(shipped_text(TABLE))
    found: dict[str, Trainer] = {}
    for name, entry in raw.items():
        like = entry.pop("like", None)
        shared = {k: v for k, v in raw[like].items() if k not in ("called", "chips")} if like else {}
        figures = {**shared, **entry}
        for key in figures:
            if key not in known:
                raise UsageError(
                    f"{TABLE}: {name}: unknown key '{key}'", f"one of {', '.join(sorted(known))}"
                )
        lists: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in figures.items()}
        found[name] = Trainer(id=name, **lists)
    return MappingProxyType(found)


def get_trainer(name: str) -> Trainer:
    """The trainer of this id, or the one that is called so. Raises `UnknownNameError`."""
    table = load_trainers()
    found = table.get(name.strip().lower()) or trainer_called(name)
    if found is None:
        raise UnknownNameError("trainer", name, table, f"one of {', '.join(table)}")
    return found


def trainer_called(text: str) -> Trainer | None:
    """The trainer whose longest word a name contains; None: nobody is called so."""
    lowered = text.lower()
    words = [(word, t) for t in load_trainers().values() for word in t.called if word in lowered]
    return max(words, key=lambda w: len(w[0]))[1] if words else None


def usual_trainer(chip: Chip) -> Trainer:
    """The trainer that a chip is usually used with."""
    names = (chip.vendor, chip.kind) if chip.kind == "gpu" else (chip.kind,)

    def fits(t: Trainer) -> bool:
        return any(c in names or chip.support_id.startswith(c) for c in t.chips)

    return next((t for t in load_trainers().values() if fits(t)), get_trainer("pytorch-fsdp"))
