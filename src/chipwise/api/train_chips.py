"""What a chip can be trained on with, and in which number formats: its units and the software that is documented."""

from __future__ import annotations

from chipwise.api.train_input import Ask
from chipwise.catalog.chip import Chip
from chipwise.catalog.chips import get_chip
from chipwise.errors import UsageError

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
