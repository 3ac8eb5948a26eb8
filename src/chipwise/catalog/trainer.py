"""Training software: what each trainer does by design, which one a chip is usually trained with, and the learning rates
and schedules that published recipes use, by what is trained."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self, get_args

from chipwise.catalog.chip import Chip
from chipwise.catalog.parsed import names, parse
from chipwise.catalog.schema import record
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.catalog.software import Software, SoftwareTable, all_software
from chipwise.catalog.tools import get_tool
from chipwise.errors import UnknownNameError, UsageError, check_known
from chipwise.values import dataclass

Kind = Literal["eager", "fsdp", "fused", "xla"]
Counting = Literal["model", "causal", "hardware"]
DEGREES = ("tp", "pp", "cp", "ep")
# Nothing, what is cheap (attention cores, norms, activation functions), some of the layers whole, or all of them.
Recompute = Literal["none", "selective", "shares", "full"]
RECOMPUTE: tuple[Recompute, ...] = get_args(Recompute)
NOTHING: Mapping[str, Any] = MappingProxyType({})
TABLE = "catalog/data/training_kernels.toml"


@dataclass(frozen=True, slots=True)
class TrainerKernel:
    """A kernel that a trainer can be told of by name.

    | field | meaning |
    |---|---|
    | sets | fields of `Trainer` as they are with it |
    | source | where that was read |
    | made_for | matrix instructions of the chips that it is written for; none: any chip's |
    | elsewhere | what is called on other chips; "": it is refused there |
    | warps | instructions of chips whose matrix units it uses by the older instructions of a warp |
    """

    sets: Mapping[str, bool | float | str]
    source: str
    made_for: tuple[str, ...] = ()
    elsewhere: str = ""
    warps: tuple[str, ...] = ()

    def able(self, chip: Chip) -> bool:
        """Whether it is written for a chip."""
        return not self.made_for or chip.instruction in self.made_for


KERNELS: Mapping[str, Mapping[str, TrainerKernel]] = MappingProxyType(
    {
        setting: MappingProxyType(
            {name: record(TrainerKernel, entry, f"{TABLE}: {setting}.{name}") for name, entry in table.items()}
        )
        for setting, table in names(TABLE).items()
    }
)
"""What trainers can be told of their kernels, by setting and name: `--layout attention=flash3`."""


@dataclass(frozen=True, slots=True)
class Optimizer:
    """What an optimiser keeps of a trained parameter and does with it.

    | field | unit | meaning |
    |---|---|---|
    | state | bytes | kept of a parameter in fp32 |
    | flops | FLOPs | of the update of a parameter, counted from the published algorithm |
    | alike | | the state has the type of its parameters (torch.optim: `zeros_like(param)`); others keep their own |
    | products | FLOPs | in matrix products, of a parameter for each row of the shorter side of its matrix |
    """

    state: float
    flops: float
    alike: bool = False
    products: float = 0.0

    def bytes(self, width: float) -> float:
        """Bytes that it keeps of a parameter of `width` bytes."""
        return self.state * (width / FULL if self.alike else 1.0)


FULL = 4.0
"""bytes: of a parameter in fp32. Exact."""
# Adam two moments in fp32, in bf16, in 8 bits with a scale per block of 256 that is read and written anew (Dettmers et
# al., 2022); Adafactor sums of rows and columns; Muon one moment (Adam's two for tables alone), and five
# Newton-Schulz steps of at most 6 n m^2 for a matrix of n by m, m its shorter side (Jordan et al., 2024); SGD momentum.
OPTIMIZERS = {
    "adamw": Optimizer(8.0, 16.0, alike=True),
    "adamw-bf16": Optimizer(4.0, 16.0),
    "adamw-8bit": Optimizer(2.03, 24.0),
    "adafactor": Optimizer(0.01, 12.0),
    "muon": Optimizer(4.0, 7.0, alike=True, products=30.0),
    "sgd": Optimizer(4.0, 6.0, alike=True),
}
GRADIENTS = {"fp32": 4.0, "bf16": 2.0, "released": 2.0}
# Bytes per logit at the peak of the loss: in 16 bit with an fp32 copy, softmax and gradient one after the other
# ("copied", Hugging Face), autograd's own ("whole"), 16 bit and its gradient where a compiler joins the rest
# ("compiled"), in place by a fused kernel ("fused"), eight chunks of the tokens.
LOSSES = {"copied": 10.0, "whole": 6.0, "compiled": 4.0, "fused": 2.0, "chunked": 0.75}
# Bytes per parameter of a layer and of a table that FSDP gathered: two layers and one's gradients; by single tensors.
GATHERS = {"layers": (6.0, 4.0), "tensors": (2.0, 2.0)}


@dataclass(frozen=True, slots=True)
class MemoryPolicy:
    """How software keeps what it trains in a device's memory.

    | field | choices |
    |---|---|
    | optimizer | one of `OPTIMIZERS` |
    | master | a copy of the weights in fp32 beside those that compute |
    | gradients | type that they are summed in; `released`: the optimiser runs inside the backward pass and frees each |
    | loss | one of `LOSSES` |
    | buffers | bytes per parameter that the update takes besides: gradients copied into fp32, buckets |
    | gathers | what FSDP gathers at once: `layers` or `tensors` |
    | basis | what its figures count: tensors (`allocated`), the allocator's pool (`reserved`), or the `device` |
    """

    optimizer: str = "adamw"
    master: bool = True
    gradients: str = "fp32"
    loss: str = "whole"
    buffers: float = 0.0
    gathers: str = "layers"
    basis: str = "device"

    def __post_init__(self) -> None:
        for name, legal in CHOICES.items():
            if getattr(self, name) not in legal:
                given = getattr(self, name)
                text = "yes" if given is True else "no" if given is False else str(given)
                names = ["yes" if v is True else "no" if v is False else str(v) for v in legal]
                raise UnknownNameError(f"{name} of a memory policy", text, names, f"one of {', '.join(names)}")

    def changed(self, given: Mapping[str, str]) -> MemoryPolicy:
        """With what a user says, as in optimizer=adamw-8bit,master=no. Raises `UnknownNameError`."""
        check_known("memory policy", given, CHOICES)
        switch = {"yes": True, "no": False, "1": True, "0": False}
        read: dict[str, Any] = {k: switch.get(v, v) if k == "master" else v for k, v in given.items()}
        return replace(self, **read)

    @property
    def figures(self) -> dict[str, float]:
        """Fields of `predict.training.values.Recipe`."""
        layer, table = GATHERS[self.gathers]
        return {
            "master": 4.0 if self.master else 0.0,
            "moments": OPTIMIZERS[self.optimizer].state + self.buffers,
            "products": OPTIMIZERS[self.optimizer].products,
            "gradient": GRADIENTS[self.gradients],
            "released": float(self.gradients == "released"),
            "loss": LOSSES[self.loss],
            "gathered": layer,
            "gathered_table": table,
        }


CHOICES: Mapping[str, Collection[Any]] = {
    "optimizer": OPTIMIZERS,
    "master": (True, False),
    "gradients": GRADIENTS,
    "loss": LOSSES,
    "gathers": GATHERS,
    "basis": ("allocated", "reserved", "device"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainer(Software):
    """A trainer as the equations see it.

    | field | meaning |
    |---|---|
    | kind | eager, fsdp, fused or xla, as in the head of the table |
    | called | words that names of it contain, in small letters; the longest that is found decides |
    | chips | vendor, kind or beginning of the id of the chips that it is the usual trainer of |
    | runs_on | the same, of the chips that it runs on; none named: all |
    | tried | the same, of the chips that it is planned for beside the usual trainer where nobody names one |
    | methods | what it is usually taken for, the commonest first: full, lora, qlora |
    | objectives | what it trains for, of `predict.training.objective.OBJECTIVES` |
    | degrees | what it can cut besides data parallelism: tp, pp, cp, ep |
    | offloads | the optimiser's state can wait in host memory |
    | recompute | what it can run again in the backward pass: of `RECOMPUTE` |
    | stashes | beside which of these what layers save can wait in host memory; none named: beside none |
    | hybrid | FSDP over fewer ranks than hold copies |
    | staged | FSDP beside pipeline stages |
    | tool | the target of `launch` that starts it, and is told no more than stands here; "": none brings a program |
    | captures_experts | vendor, kind or beginning of the id of the chips on which its configurations capture layers of
    experts in CUDA graphs, of networks with attention in every layer |
    | hides_experts | dispatch and combine of experts run behind the products of another micro-batch |
    | fuses_experts | precisions on generations of chips, as in mxfp8+blackwell, in which one kernel multiplies the
    rows of all gated experts, applies their activation and quantises the result; such layers are captured too |
    | memory | how it keeps what it trains |
    | alone | what of it is otherwise on one device, where nothing is cut up, as `--memory` names it |
    | leaner | policies that it can be told to keep instead, as changes to its own, the leanest last; not said: any |
    | told | what it can be told of its kernels: names of `KERNELS` by setting |
    | permutes | kernels of experts sort tokens to them and back, and apply their activations |
    | copies | a token is sent to each of its experts, not once to each machine that holds any |
    | warps | its attention multiplies by instructions of a warp on chips whose units have later ones |
    | whole_logits | every rank of tensor parallelism holds the logits of all the vocabulary |
    | adapter_passes, dropped | as in `predict.training.values.Recipe` |
    | speed | the trainer whose fitted numbers it shares |
    | schedules | pipeline schedules that it has; none named: all |
    | zero | stages of ZeRO that it runs; none named: all |
    | usual_zero, usual_recompute, usual_schedule | what its configurations set unless told; schedule: without virtual
    stages |
    | accumulates | whether a step without stages can take several micro-batches |
    | single | it takes one of every rank where no batch is given, as what does not accumulate does |
    | flash, score_passes | attention core fused; else traffic of its softmax over that of one fused kernel |
    | attention | whose fused kernels it calls: FlashAttention-2 ("fa2"), the first one in Triton ("triton") or the
    chip's own ("native") |
    | overlaps | collectives of tensor parallelism can hide behind products |
    | sequence | norms are cut by tensor parallelism too |
    | regather | FSDP gathers weights again for every micro-batch |
    | summed | type in which FSDP sums gradients between ranks: bf16, fp32 |
    | quantises | torchao's products in 8 and 4 bit: operands are narrowed by kernels of their own, and saved in 16 bit
    where they are multiplied in 8 |
    | graphs, flat, broadcast, hooked, looped, grouped, stops | as in `predict.training.values.Recipe` |
    | compile_s | seconds in which it compiles before the first step |
    | devices | devices that software sees in a chip, by id, where it is not as in the catalogue of chips |
    | counts | how it counts the FLOPs that it logs: `predict.training.result.Convention` |
    """

    capability: ClassVar[str] = "trains"
    own_keys: ClassVar[tuple[str, ...]] = ("called", "chips")

    kind: Kind
    called: tuple[str, ...] = ()
    chips: tuple[str, ...] = ()
    runs_on: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()
    methods: tuple[str, ...] = ("full",)
    objectives: tuple[str, ...] = ("next-token",)
    degrees: tuple[str, ...] = DEGREES
    offloads: bool = True
    recompute: tuple[Recompute, ...] = RECOMPUTE
    stashes: tuple[Recompute, ...] = ()
    hybrid: bool = True
    staged: bool = True
    tool: str = ""
    hides_experts: bool = False
    fuses_experts: tuple[str, ...] = ()
    captures_experts: tuple[str, ...] = ()
    memory: MemoryPolicy = field(default_factory=MemoryPolicy)
    alone: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    leaner: tuple[Mapping[str, str], ...] | None = None
    told: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: NOTHING)
    permutes: bool = False
    copies: bool = False
    warps: bool = False
    whole_logits: bool = False
    adapter_passes: float = 0.0
    dropped: float = 0.0
    speed: str = ""
    schedules: tuple[str, ...] = ()
    zero: tuple[int, ...] = ()
    usual_zero: int | None = None
    usual_recompute: str = ""
    usual_schedule: str = ""
    accumulates: bool = True
    single: bool = False
    flash: bool = True
    score_passes: float = 1.0
    attention: Literal["native", "fa2", "triton"] = "native"
    overlaps: bool = True
    sequence: bool = True
    regather: bool = True
    graphs: bool = False
    flat: bool = False
    broadcast: bool = False
    hooked: bool = False
    looped: bool = False
    grouped: bool = False
    stops: bool = False
    quantises: bool = False
    summed: Literal["bf16", "fp32"] = "bf16"
    counts: Counting = "model"
    compile_s: float = 0.0
    devices: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def read(cls, table: SoftwareTable, where: str, entry: Mapping[str, Any], common: Mapping[str, Any]) -> Self:
        """The trainer of one table `trains`. Raises `UsageError`."""
        made = record(cls, entry, where, **common)
        if cannot := made.refusal(made.usual):
            raise UsageError(f"{where}: usual_{cannot}", "usual_* are of what the trainer can run")
        return made

    @property
    def compiled(self) -> bool:
        """One program per step: no host work per layer, weights gathered once per step."""
        return self.kind == "xla"

    def devices_of(self, chip: Chip) -> int:
        """Devices that layouts count in one chip."""
        return self.devices.get(chip.support_id, 1)

    @property
    def one_each(self) -> bool:
        """Whether a step takes one micro-batch of every rank where no batch is given."""
        return self.single or not self.accumulates

    @property
    def stack(self) -> str:
        """The id under which its numbers are fitted."""
        return self.speed or self.id

    @property
    def usual(self) -> Mapping[str, int | str]:
        """What its configurations set of a layout unless told, as a layout is fixed."""
        said = {"schedule": self.usual_schedule, "zero": self.usual_zero, "recompute": self.usual_recompute}
        return {name: value for name, value in said.items() if value not in ("", None)}

    def _unknown_way(self, pins: Mapping[str, int | str]) -> str:
        """What of schedule, ZeRO and recomputation it does not know, and what it does; "" where it knows all."""
        ways = {"schedule": self.schedules, "zero": self.zero, "recompute": self.recompute}
        for name, able in ways.items():
            if name not in pins or not able:  # not fixed, or it knows all
                continue
            given = pins[name]
            if name == "recompute" and given not in RECOMPUTE:
                given = "shares"  # so much of the layers
            if given not in able:
                return f"{name} {pins[name]}: this trainer knows {', '.join(map(str, able))}"
        return ""

    def _unknown_kernel(self, pins: Mapping[str, int | str]) -> str:
        """Which kernel that is fixed by name it cannot be told of, and which it can; "" where it can all."""
        for name in KERNELS:
            able = self.told.get(name, ())
            if name in pins and pins[name] not in able:
                return f"{name} {pins[name]}: this trainer knows {', '.join(able) or 'none by name'}"
        return ""

    def refusal(self, pins: Mapping[str, int | str]) -> str:
        """What of a layout that is fixed by name (`--layout`) it cannot run, and what it can; "" where it can all."""
        for name in DEGREES:
            if int(pins.get(name, 1)) > 1 and name not in self.degrees:
                return f"{name} {pins[name]}: this trainer cuts {', '.join(self.degrees) or 'data alone'}"
        if said := self._unknown_way(pins) or self._unknown_kernel(pins):
            return said
        if int(pins.get("zero", 0)) == 3 and int(pins.get("pp", 1)) > 1 and not self.staged:
            return "zero 3 with stages: this trainer runs FSDP in one stage"
        homes = {"offload": (self.offloads, "the optimiser"), "stash": (bool(self.stashes), "activations")}
        for name, (able_to, what) in homes.items():
            if int(pins.get(name, 0)) and not able_to:
                return f"{name} {pins[name]}: this trainer keeps {what} on the device"
        return ""

    def as_told(self, pins: Mapping[str, int | str], chip: Chip) -> Self:
        """With the kernels that are fixed by name (`KERNELS`). Raises `UsageError` for kernels of other chips."""
        made = self
        for setting, able in KERNELS.items():
            if (name := str(pins.get(setting, ""))) not in able:
                continue
            kernel = able[name] if able[name].able(chip) else able.get(able[name].elsewhere)
            if kernel is None:
                others = ", ".join(n for n, k in able.items() if not k.made_for)
                what = f"{setting} {name} is written for other matrix units than those of {chip.name}"
                raise UsageError(what, f"--layout {setting}= one of {others}", field="layout")
            sets: dict[str, Any] = dict(kernel.sets)
            if setting == "attention":
                sets["warps"] = chip.instruction in kernel.warps
            made = replace(made, **sets)
        return made

    def keeps(self, given: Mapping[str, str]) -> str:
        """What of a memory policy it cannot keep, and what it can; "" where it can all, or nobody says."""
        known = self.leaner or ()
        for name, value in given.items() if self.leaner is not None else ():
            own = getattr(self.memory, name, value)
            text = ("no", "yes")[own] if isinstance(own, bool) else own
            has = dict.fromkeys((text, *(p[name] for p in (self.alone, *known) if name in p)))
            if name not in ("gathers", "basis") and value not in has:
                return f"{name}={value}: this trainer keeps {name}={' or '.join(map(str, has))}"
        return ""

    def captures_on(self, chip: Chip) -> bool:
        """Whether its configurations capture layers of experts in CUDA graphs there."""
        return _among(chip, self.captures_experts)

    def fuses_on(self, chip: Chip, precision: str) -> bool:
        """Whether its kernels of gated experts' products activate and quantise there in a precision."""
        return f"{precision}+{chip.generation}" in self.fuses_experts

    def on(self, chip: Chip) -> bool:
        """Whether it runs on a chip."""
        return not self.runs_on or _among(chip, self.runs_on)


def get_trainer(name: str) -> Trainer:
    """The trainer of this id, or the one that is called so: without a version today's, whatever rows of papers mean by
    it. Raises `UnknownNameError`."""
    table, said = all_software(Trainer), name.strip().lower()
    found = table.get(said) or next((t for t in table.values() if said in t.also), None) or trainer_called(name)
    if found is None:
        hint = f"one of {', '.join(table)}; 'other' for software that is not listed"
        raise UnknownNameError("trainer", name, table, hint)
    return found


def trainer_called(text: str, chip: Chip | None = None) -> Trainer | None:
    """The trainer whose longest word a name contains, among those that run on the chip, before what stands in brackets
    is read (what a trainer is made of); None: nobody is called so."""
    lowered = text.lower()
    able = [t for t in all_software(Trainer).values() if chip is None or t.on(chip)]
    said = [[(word, t) for t in able for word in t.called if word in part] for part in (lowered.split("(")[0], lowered)]
    words = said[0] or said[1]
    # of two that are called the same, the one that is made for the chip
    return max(words, key=lambda w: (len(w[0]), bool(w[1].runs_on) == (chip is not None)))[1] if words else None


def usual_trainer(
    chip: Chip,
    method: str = "full",
    pins: Mapping[str, int | str] = NOTHING,
    *,
    anew: bool = True,
    experts: bool = False,
    objective: str = "next-token",
) -> Trainer:
    """The trainer that a chip is usually used with for a method, of those that can run what is fixed of a layout and
    train for the `objective`; where ranks that weights are cut over are, one that knows groups. Trained weights (not
    `anew`) without `experts`, whose matrices such software starts one by one, are trained on in full with what is made
    to adapt them."""
    fitting = _fitting(chip, pins, objective)
    able = [t for t in fitting if method in t.methods]
    adapting = [t for t in able if not (anew or experts) and t.methods[0] != "full"]
    return next(iter((*adapting, *able, *fitting)), get_trainer("pytorch-fsdp"))


def _fitting(chip: Chip, pins: Mapping[str, int | str], objective: str) -> list[Trainer]:
    """The trainers that a chip is usually used with, those that can run what is fixed of a layout where one can."""
    usual = [t for t in all_software(Trainer).values() if _among(chip, t.chips)]
    able = [t for t in usual if objective in t.objectives] or usual
    fitting = [t for t in able if not t.refusal(pins)] or able
    groups = int(pins.get("zero", 0)) == 3 and "shard" in pins
    return [t for t in fitting if t.hybrid or not groups] or fitting


def able_trainers(
    chip: Chip,
    method: str,
    pins: Mapping[str, int | str] = NOTHING,
    *,
    anew: bool = False,
    experts: bool = False,
    objective: str = "next-token",
    model: str = "",
) -> tuple[Trainer, ...]:
    """The trainers that a plan may take on a chip where nobody names one, the usual one first: those that are `tried`
    there, are taken for the method and can run what is fixed of a layout; `anew`, from random weights on, without those
    that are made to adapt trained ones; for another `objective` than next tokens those that are started for it; of
    trained weights those whose tool, where it knows models by name, knows this one."""
    usual = usual_trainer(chip, method, pins, anew=anew, experts=experts, objective=objective)
    others = (t for t in all_software(Trainer).values() if t is not usual and _among(chip, t.tried))
    made = (t for t in others if _started(t, objective))
    made = (t for t in made if (method == t.methods[0] if anew else _knows(t, model)))
    return (usual, *(t for t in made if method in t.methods and not t.refusal(pins)))


def _started(trainer: Trainer, objective: str) -> bool:
    """Whether it trains for an objective and, of others than next tokens, a launch file says so."""
    if objective not in trainer.objectives or objective == "next-token":
        return objective in trainer.objectives
    return bool(trainer.tool) and objective in get_tool(trainer.tool).objectives


def _knows(trainer: Trainer, model: str) -> bool:
    """Whether its tool has a configuration of a model, or needs none."""
    return not trainer.tool or not (known := get_tool(trainer.tool).models) or model in known


def _among(chip: Chip, names: Collection[str]) -> bool:
    """Whether a vendor, a kind or the beginning of an id names a chip."""
    own = (chip.vendor, chip.kind) if chip.kind == "gpu" else (chip.kind,)
    return any(name in own or chip.support_id.startswith(name) for name in names)


TABLE = "catalog/data/launch_rates.toml"


@dataclass(frozen=True, slots=True)
class Learning:
    """What a run of a method and `objective` learns at: `rate` after `warmup` of its steps, `longest` steps at most,
    then lowered (`decay`) to `least` of it. `above` are the parameters a token passes through from which the row
    holds."""

    method: str
    above: float
    rate: float
    warmup: float
    longest: int
    decay: str
    least: float
    source: str
    objective: str = "next-token"

    def warm(self, steps: int) -> int:
        """Steps until the rate is reached, of so many: at least 1, and 0 of a single one."""
        return min(max(round(self.warmup * steps), 1), self.longest, steps - 1)


@per_snapshot
def learning_rows() -> tuple[Learning, ...]:
    """All rows, small models first."""
    rows = parse(shipped_text(TABLE))["rate"]
    found = (record(Learning, row, f"{TABLE}: {row.get('method')}") for row in rows)
    return tuple(sorted(found, key=lambda row: (row.method, row.above)))


def learning_of(method: str, parameters: float, objective: str = "next-token") -> Learning:
    """What a method ("" from random weights, full, lora, qlora) learns at in a network of so many parameters that a
    token passes through, for an objective: as for next tokens where no row is of it. Raises `UnknownNameError` for
    another method."""
    able = [row for row in learning_rows() if row.method == method and row.above <= parameters]
    rows = [[row for row in able if row.objective == name] for name in (objective, "next-token")]
    if not any(rows):
        raise UnknownNameError("method", method, [row.method for row in learning_rows() if row.method])
    return (rows[0] or rows[1])[-1]
