"""What is asked of a training plan, checked: each value legal by itself, and the nearest that is where it is not;
what a chip can be trained on with, and in which number formats: its units and the software that is documented."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

import numpy as np

from chipwise.api.requests.field import whole
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import get_chip
from chipwise.catalog.trainer import KERNELS
from chipwise.errors import UnknownNameError, UsageError, check_known
from chipwise.parallel.pipeline import most_virtual
from chipwise.predict.training.dims import TARGETS
from chipwise.predict.training.objective import NEXT, OBJECTIVES, Objective, usual_objective
from chipwise.predict.training.values import Adapters
from chipwise.search.training import TrainJob
from chipwise.search.training_space import RECOMPUTE, SCHEDULES, divisors, recomputed
from chipwise.units import parse_quantity
from chipwise.values import dataclass

Pins = Mapping[str, int | str]

# (class of the products' type, bytes per operand entry)
PRECISIONS: Mapping[str, tuple[str, float]] = {
    "fp32": ("fp32", 4.0),
    "fp16": ("16", 2.0),
    "bf16": ("16", 2.0),
    "fp8": ("8", 1.5),
    "mxfp8": ("8", 1.5),
    "nvfp4": ("4", 1.5),
}
BEST = "best"  # 16 bit, and of the narrower types that a chip has the fastest
METHODS = ("full", "lora", "qlora")
# Chips tried where none is named: the current accelerators that clouds rent by the server or slice at a known price,
# with a network and training software.
USUAL = ("h100-sxm5-80gb", "b200-sxm", "b300-sxm", "mi300x", "tpu-v5p", "tpu-v6e")
DEGREES = ("tp", "pp", "vp", "cp", "ep", "dp", "micro_batch")
NAMED: Mapping[str, Collection[str]] = {"schedule": SCHEDULES, "recompute": RECOMPUTE, **KERNELS}
SHARDING = {"zero": (0, 3), "shard": (1, 10**6), "offload": (0, 1), "stash": (0, 1), "sequence": (0, 1)}
PINNABLE = (*DEGREES, *SHARDING, *NAMED)
DEFAULT_SEQ = 4096  # of pre-training; what a model reads where that is less
DEFAULT_BATCH_TOKENS = 4e6  # of pre-training at scale; of fine-tuning 0.25 M
DEFAULT_TOKENS = {"train": 1e12, "finetune": 1e8}  # a fine-tune: some 100 thousand examples of a thousand tokens


@dataclass(frozen=True, slots=True)
class Ask:
    """The run that is planned; `method` is one of `METHODS`; `document` as `documents_of` has it; `objective` is one of
    `OBJECTIVES`."""

    tokens: float
    seq: int
    batch: int
    precision: str
    task: str
    method: str
    adapters: Adapters = field(default_factory=Adapters)
    document: float = 0.0
    objective: str = NEXT

    @property
    def adapter(self) -> bool:
        """Low-rank adapters on frozen weights."""
        return self.method != "full"


def asked(
    tokens: float | None, seq: int | None, batch: int, precision: str, task: str, method: str | None, context: int = 0
) -> Ask:
    """The run, with the defaults that blanks take; `context` is what the model reads at most, 0: not known. Raises
    `UsageError`, `UnknownNameError`."""
    seq = min(DEFAULT_SEQ, context or DEFAULT_SEQ) if seq is None else seq
    how = method or ("lora" if task == "finetune" else "full")
    usual = "finetune" if how in METHODS[1:] else task  # nobody trains adapters from scratch
    tokens = DEFAULT_TOKENS[usual] if tokens is None else tokens
    _check_sizes(tokens, seq, batch or 1)
    for name, word, known in (("precision", precision, (*PRECISIONS, BEST)), ("method", how, METHODS)):
        check_known(name, (word,), known)
    if how == "qlora" and precision != BEST and PRECISIONS[precision][0] != "16":
        raise UsageError("qlora computes in 16 bit on weights of 4 bits", f"not in {precision}: leave it out")
    if not batch:
        wanted = (DEFAULT_BATCH_TOKENS if usual == "train" else DEFAULT_BATCH_TOKENS / 16) / seq
        batch = 2 ** max(round(float(np.log2(max(wanted, 1.0)))), 0)
    return Ask(float(tokens), seq, batch, precision, task, how)


def objective_of(given: str | None, task: str, *, causal: bool) -> str:
    """What is learned: as asked, else what such a network is usually trained for. Raises `UsageError` for what does not
    go with network or task, `UnknownNameError`."""
    usual = usual_objective(task, causal=causal)
    if given is None:
        return usual
    check_known("objective", (given,), OBJECTIVES)
    found = OBJECTIVES[given]
    if found.reads == ("all" if causal else "before"):
        kind = "a decoder, whose tokens see those before them" if causal else "an encoder, whose tokens see all"
        able = ", ".join(name for name, o in OBJECTIVES.items() if o.reads in ("any", "before" if causal else "all"))
        raise UsageError(f"objective {given}: the model is {kind}", f"one of {able}", field="objective")
    if found.tuned and task != "finetune":
        raise UsageError(f"objective {given} trains published weights on", "--task finetune", field="objective")
    return given


def check_pairs(batch: int, pins: Pins, objective: Objective) -> None:
    """Sequences of an example lie in one micro-batch. Raises `UsageError`."""
    n = objective.together
    for name, number in (("global_batch", batch), ("micro_batch", int(pins.get("micro_batch", n)))):
        if number % n:
            raise UsageError(f"{name} {number}: an example is {n} sequences", f"a multiple of {n}, as in {number + 1}")


def _check_sizes(tokens: float, seq: int, batch: int) -> None:
    """Raises `UsageError` for sizes that no run has."""
    for name, value, most, hint in (
        ("tokens", tokens, 1e17, "at least 1, as in 15T"),
        ("seq", seq, 1e7, "1 to 10 million tokens"),
        ("global_batch", batch, 1e7, "sequences per step, at least 1"),
    ):
        if not 1 <= value <= most:
            said = f"{value:g}" if isinstance(value, float) else value
            raise UsageError(f"{name}: {said} is out of range", hint)


def documents_of(given: Mapping[str, str]) -> float:
    """Tokens that see each other where documents are packed into a sequence and attention is kept within each, as in
    mean=1200,cv=1.5: E[l^2] / E[l] = mean (1 + cv^2), so that pairs are as many as theirs; 0 where nothing is said.
    Raises `UsageError`, `UnknownNameError`."""
    legal = ("mean", "cv")
    for name in given:
        if name not in legal:
            raise UnknownNameError("figure of documents", name, legal, "as in mean=1200,cv=1.5")
    if not given:
        return 0.0
    if "mean" not in given:
        raise UsageError("documents: their mean length is missing", "as in mean=1200,cv=1.5", field="documents")
    mean = parse_quantity(given["mean"], "", "documents mean", low=1.0, high=1e7)
    cv = parse_quantity(given.get("cv", "0"), "", "documents cv", low=0.0, high=10.0)
    return mean * (1.0 + cv**2)


def adapters_of(given: Mapping[str, str]) -> Adapters:
    """Adapters as they are asked for, as in rank=64,targets=attention,dora=yes. Raises `UsageError`,
    `UnknownNameError`."""
    legal = ("rank", "targets", "dora")
    check_known("figure of adapters", given, legal)
    targets = given.get("targets", "linear")
    check_known("targets of adapters", (targets,), TARGETS)
    dora = given.get("dora", "no")
    if dora not in ("yes", "no"):
        raise UnknownNameError("dora", dora, ("yes", "no"), "yes or no")
    return Adapters(whole(given.get("rank", "16"), "rank", low=1, high=4096), targets, dora == "yes")


def pins_of(layout: Mapping[str, int | str]) -> dict[str, int | str]:
    """Degrees and choices that the user fixes, by name. Raises `UsageError`, `UnknownNameError`."""
    found: dict[str, int | str] = {}
    check_known("degree", layout, PINNABLE)
    for name, value in layout.items():
        if name in NAMED:
            if not _known(name, str(value)):
                raise UnknownNameError(name, str(value), NAMED[name], _choices(name))
            found[name] = str(value)
            continue
        least, most = SHARDING.get(name, (1, 10**6))
        number = value if isinstance(value, int) else whole(value, name, low=0, high=1e6)
        if not least <= number <= most:
            legal = "at least 1" if most > 3 else " or ".join(str(v) for v in range(least, most + 1))
            raise UsageError(f"{name}: {number} is out of range", legal)
        found[name] = number
    return found


def _choices(name: str) -> str:
    besides = ", or a share of the layers, as in 30%" if name == "recompute" else ""
    return f"one of {', '.join(NAMED[name])}{besides}"


def _known(name: str, text: str) -> bool:
    """Whether a schedule or a recomputation is called so; a share of the layers recomputes those."""
    if name != "recompute":
        return text in NAMED[name]
    try:
        return bool(recomputed(text))
    except ValueError:
        return False


def check_counts(counts: Sequence[int]) -> None:
    """Counts of chips that can be had. Raises `UsageError`."""
    if min(counts, default=1) < 1:
        raise UsageError(f"counts: {min(counts)} is out of range", "at least 1 chip")


def check_layout(pins: Pins, job: TrainJob, devices: int) -> None:
    """What the user fixes goes with the network, the count and the batch. Raises `UsageError`."""
    fixed = {name: int(pins[name]) for name in DEGREES if name in pins}
    sharding = {name: int(pins[name]) for name in ("zero", "shard") if name in pins}
    pp = fixed.get("pp", 1)
    _check_network(fixed, job)
    _check_stages(pins, fixed, int(float(job.network.layers)))
    if sharding.get("shard", 1) > 1 and sharding.get("zero") == 0:
        raise UsageError("zero 0 cuts nothing", "leave shard out, or take zero 1 to 3")
    degrees = int(np.prod([fixed.get(k, 1) for k in ("tp", "pp", "cp", "dp")]))
    if devices % degrees:
        raise UsageError(
            f"tp x pp x cp x dp = {degrees} does not divide {devices} chips", f"as in {near(degrees, devices)}"
        )
    _check_shard(sharding, devices // (fixed.get("tp", 1) * pp), job)
    if (devices // pp) % fixed.get("ep", 1):
        raise UsageError(
            f"ep {fixed['ep']} does not divide the {devices // pp} chips of a stage",
            f"nearest: {near(fixed['ep'], devices // pp)}",
        )
    parts = fixed.get("dp", 1) * fixed.get("micro_batch", 1)
    if job.global_batch % parts:
        raise UsageError(
            f"dp x micro-batch = {parts} does not divide the batch of {job.global_batch}",
            f"nearest: {near(parts, job.global_batch)}",
        )


def _check_network(fixed: Mapping[str, int], job: TrainJob) -> None:
    """Degrees divide what they cut. Raises `UsageError`."""
    t = job.network
    exact = {
        "tp": ("attention heads", int(float(t.heads))),
        "ep": ("experts", int(float(t.experts))),
        "cp": ("tokens of a sequence", job.seq),
    }
    if fixed.get("ep", 1) > 1 and not float(t.moe_share):
        raise UsageError(f"ep {fixed['ep']}: the model has no experts", "leave ep out")
    for name, (what, number) in exact.items():
        if name in fixed and number % fixed[name]:
            raise UsageError(
                f"{name} {fixed[name]} does not divide {number} {what}", f"nearest: {near(fixed[name], number)}"
            )


def _check_stages(pins: Pins, fixed: Mapping[str, int], layers: int) -> None:
    """Stages have layers, and a schedule has stages. Raises `UsageError`."""
    pp = fixed.get("pp", 1)
    if pp > layers:
        raise UsageError(f"pp {pp} is more than {layers} layers", f"at most {layers}")
    virtual = int(most_virtual(layers, pp))
    if pp > 1 and fixed.get("vp", 1) > max(virtual, 1):
        raise UsageError(
            f"vp {fixed['vp']} cuts {layers} layers, embedding and head into {pp * fixed['vp']} parts",
            f"vp at most {max(virtual, 1)}",
        )
    if pp > 1 and virtual < 2 and str(pins.get("schedule")) in ("interleaved", "zb-v"):
        raise UsageError(
            f"schedule {pins['schedule']}: {layers} layers on {pp} stages make no virtual stages",
            f"pp at most {(layers + 2) // 2}, or another schedule",
        )
    if pp == 1 and (pins.get("schedule") or fixed.get("vp", 1) > 1):
        what = "a pipeline schedule needs" if pins.get("schedule") else "virtual stages need"
        raise UsageError(f"{what} stages", "fix pp above 1 too, as in pp=4")


def _check_shard(sharding: Mapping[str, int], ranks: int, job: TrainJob) -> None:
    """States are cut over ranks that hold copies, as the trainer cuts them. Raises `UsageError`."""
    if ranks % sharding.get("shard", 1):
        raise UsageError(
            f"shard {sharding['shard']} does not divide the {ranks} ranks that hold copies",
            f"nearest: {near(sharding['shard'], ranks)}",
        )
    if 1 < sharding.get("shard", ranks) < ranks and not (job.software.hybrid or job.known):
        raise UsageError(
            f"shard {sharding['shard']} of {ranks}: this trainer cuts weights over all ranks",
            "leave it out, or name another --trainer",
        )


def near(value: int, number: int) -> str:
    """The divisors of a number on either side of a value."""
    legal = divisors(number, number)
    sides = (*[d for d in legal if d <= value][-1:], *[d for d in legal if d >= value][:1])
    return " or ".join(map(str, dict.fromkeys(sides)))


# Type of the unit that multiplies a format narrower than 16 bit.
UNITS = {"fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4"}
WIDE = ("fp32", "fp16")  # what every chip computes in, one way or another
# Vendors whose chips bitsandbytes supports (installation guide, v0.50).
NF4 = ("nvidia", "amd", "intel", "apple")


def check_chip(chip: Chip, ask: Ask, known_to_run: bool = False) -> None:
    """Raises `UsageError`, with what the chip has instead, where it does not train, or not so; a run that exists may
    have multiplied in a narrow type that buys nothing."""
    if chip.kind not in ("gpu", "tpu", "asic"):
        raise UsageError(f"{chip.id}: training is not timed on a {chip.kind}", "choose a gpu, tpu or asic")
    served = chip.serves_only or (get_chip(chip.like).serves_only if chip.like else "")
    if served:
        raise UsageError(f"{chip.id} is made for inference: {served}", "choose another chip")
    if ask.method == "qlora" and chip.vendor not in NF4:
        raise UsageError(f"{chip.id}: no software trains on weights of 4 bits (nf4) there", "method lora")
    if ask.precision in (*WIDE, *precisions_of(chip)):
        return
    unit = UNITS[ask.precision]
    why = f"{chip.id} has no {unit} unit"
    if unit in chip.matrix:
        why = _unscaled(chip, ask.precision)
        if known_to_run and not why:
            return
        why = why or f"{chip.id} multiplies {unit} no faster than 16 bit, and scaling costs time"
    raise UsageError(why, f"plan in {' or '.join(reversed(precisions_of(chip)))}")


def precisions_of(chip: Chip) -> tuple[str, ...]:
    """The precisions of at most 16 bit that a chip trains in, the widest first: those that it multiplies faster than
    16 bit."""
    usual = chip.matrix.get("bf16") or chip.matrix.get("fp16") or 0.0
    narrow = (p for p, unit in UNITS.items() if chip.matrix.get(unit, 0.0) > usual and not _unscaled(chip, p))
    return ("bf16", *narrow)


def _unscaled(chip: Chip, precision: str) -> str:
    """Why the units of a chip that multiply the type do not take the scales of the format, or no software trains with
    them; "" where it does.

    Scales per block came to matrix units together with 4-bit types: Blackwell, CDNA 4, NeuronCore-v4. Transformer
    Engine has MXFP8 on compute capability 10.x alone, the GPUs with HBM, and NVFP4 from Blackwell on (support matrix
    of its documentation, read 2026-11-21); AMD has MXFP8 and MXFP4 instead (Primus documentation of ROCm,
    read 2026-11-21).
    """
    if precision == "nvfp4" and chip.vendor != "nvidia":
        return f"{chip.id} has no software that trains in nvfp4, a format of NVIDIA's"
    if precision == "mxfp8" and "fp4" not in chip.matrix:
        return f"{chip.id} has no units that take scales per block of 32, as mxfp8 has"
    if precision == "mxfp8" and chip.vendor == "nvidia" and chip.memory.kind != "hbm":
        return f"{chip.id} has no software for mxfp8: Transformer Engine trains in it on data-centre Blackwell alone"
    return ""
