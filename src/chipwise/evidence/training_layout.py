"""How a row of training measurements was spread over its devices: stated degrees, and what blanks follow from."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from chipwise.evidence.rows import Row
from chipwise.evidence.training_models import number
from chipwise.evidence.training_stack import RowStack
from chipwise.predict.training.values import Cluster, Spread, Transformer

__all__ = ["row_spread"]

# Sequence lengths where a row has none, by words of the model's name; the first that is found decides.
USUAL_SEQ: tuple[tuple[str, float], ...] = (
    (r"104b|200b", 2048.0),
    (r"bert.*ph1", 128.0),
    (r"bert", 512.0),
    (r"vit", 197.0),
    (r"llama.?-?3|405b", 8192.0),
    (r"llama|mixtral|deepseek|qwen|scout|nemotron|oss", 4096.0),
)


@dataclass(frozen=True, slots=True)
class _Split:
    """Degrees that cut the model, and what had to be assumed."""

    tp: float
    pp: float
    cp: float | None
    told: str = ""


def row_spread(
    row: Row, t: Transformer, stack: RowStack, c: Cluster, devices: float
) -> tuple[Spread, tuple[str, ...]]:
    """Degrees and batch of a row, and what was assumed: what is blank follows from the others, then from the
    stack's habit."""
    guessed: list[str] = []
    tp, pp, cp, dp = (number(row, k) for k in ("tp", "pp", "cp", "dp"))
    tp = tp or stack.tp or None
    micro, batch = number(row, "micro_batch"), number(row, "global_batch")
    seq = number(row, "seq_len")
    if seq is None:
        seq = _usual_seq(row)
        guessed.append(f"sequences of {seq:.0f}")
    accumulate = number(row, "grad_accum") if row.get("benchmark") else None
    if accumulate and batch:
        micro = micro or max(batch / (accumulate * devices), 1.0)
        dp = min(batch / (accumulate * micro), devices)
    if tp is None and pp is None and dp is None and micro and batch == micro * devices:
        tp = pp = 1.0  # every device takes one micro-batch of a step
    if tp is None or pp is None:
        split = _split(t, stack, c, devices, _Given(tp, pp, cp, dp, batch))
        tp, pp, cp = split.tp, split.pp, split.cp
        guessed += [split.told] if split.told else []
    cp = cp or 1.0
    if dp is not None and accumulate:
        cp = max(cp, devices / dp / (tp * pp))
    dp = max(devices / (tp * pp * cp), 1.0)
    if batch is None:
        batch, micro = _usual_batch(stack, dp, pp, micro)
        if not (stack.name.startswith("torchtitan") and micro):
            guessed.append(f"global batch of {batch:.0f}")
    whole = batch / dp
    titan = stack.name.startswith("torchtitan")
    if titan and pp > 1:
        micro = 1.0
    elif stack.one_micro_batch:
        micro = whole
    elif micro is None:
        micro = 1.0 if pp > 1 or stack.kind == "eager" else whole
        guessed.append(f"micro-batch of {micro:g}")
    zero, shard = stack.zero, stack.shard or dp * cp
    if zero == 3 and c.axes and c.domain < devices:
        shard = float(c.domain) / tp
    if pp > 1 and zero == 3 and stack.kind == "fused":
        zero = 1.0
    if not zero and not stack.adapter and dp > 1 and _state(t, tp * pp) > float(c.memory_bytes):
        zero = 1.0 if pp > 1 else 3.0  # no device holds a replica
    return (
        Spread(
            tp=tp,
            pp=pp,
            vp=min(number(row, "vp") or stack.vp or 1.0, math.ceil(float(t.layers) / pp)) if pp > 1 else 1.0,
            cp=cp,
            ep=number(row, "ep") or stack.ep or 1.0,
            dp=dp,
            micro_batch=min(micro, whole),
            global_batch=batch,
            seq=seq,
            zero=zero,
            shard=min(shard, dp * cp),
            sequence=stack.sequence,
            full=stack.full,
            selective=stack.selective,
            bubble=stack.bubble,
            in_flight=stack.in_flight,
            adapter=stack.adapter,
        ),
        tuple(guessed),
    )


def _usual_seq(row: Row) -> float:
    name = (row.get("model") or "").lower()
    old = row.get("chip", "").startswith("v100") or row.get("family") == "megatron_2020"
    if old and not re.search(USUAL_SEQ[0][0], name):
        return 1024.0
    if "bert" in name and row.get("task") == "fine-tune":
        return 384.0  # questions and answers
    if row.get("chip", "").startswith("gaudi"):
        return 256.0 if "falcon" in name else 2048.0  # Optimum Habana's examples of language modelling
    return next((seq for pattern, seq in USUAL_SEQ if re.search(pattern, name)), 2048.0)


def _usual_batch(stack: RowStack, dp: float, pp: float, micro: float | None) -> tuple[float, float | None]:
    """(global batch, micro-batch) where a row has no global batch."""
    if stack.batch:
        return stack.batch, micro
    if stack.name.startswith("torchtitan") and micro:
        return micro * dp, micro
    if stack.kind == "xla" and micro is None:
        micro = 8.0
    return (micro or 1.0) * dp * (4.0 * pp if pp > 1 else 1.0), micro


@dataclass(frozen=True, slots=True)
class _Given:
    tp: float | None
    pp: float | None
    cp: float | None
    dp: float | None
    batch: float | None


def _split(t: Transformer, stack: RowStack, c: Cluster, devices: float, g: _Given) -> _Split:
    """Degrees that are blank: what the data-parallel degree leaves; else the smallest split of the model that
    holds its state in 60 % of memory, tp within a domain, then stages."""
    fixed = g.dp is not None
    room = devices / g.dp if g.dp is not None else devices
    params, domain = float(t.params), float(c.domain)
    if g.tp is not None and g.pp is None:
        stages = max(room / g.tp / (g.cp or 1.0), 1.0) if fixed else 1.0
        return _Split(g.tp, stages, g.cp, "" if fixed or g.tp == devices else "no pipeline stages")
    if g.pp is not None and g.tp is None:
        rest = max(room / g.pp / (g.cp or 1.0), 1.0) if fixed else 1.0
        if fixed and rest > 4.0 and g.cp is None:
            return _Split(4.0, g.pp, rest / 4.0, "tp4, the rest context-parallel")
        return _Split(rest, g.pp, g.cp, "" if fixed else "no tensor parallelism")
    if fixed:
        tp = min(room, 4.0 if room > 4 or params > 30e9 else 1.0, domain)
        if not stack.adapter and room / tp > 1 and params > 100e9:
            return _Split(tp, room / tp, g.cp, "tp and pp from the data-parallel degree")
        return _Split(tp, 1.0, room / tp, "tp and cp from the data-parallel degree")
    if stack.zero == 3:
        return _Split(1.0, 1.0, g.cp)
    need = (2.0 if stack.adapter else 8.0) * params / (0.6 * float(c.memory_bytes))
    tp = min(_power(need), min(domain, 8.0), devices)
    stages = min(_power(need / tp), max(devices / tp, 1.0))
    if g.batch and devices / (tp * stages) > g.batch:
        # fewer sequences than replicas: the rest of the devices must split the model
        tp = min(domain, 8.0)
        stages = min(max(devices / tp / g.batch, 1.0), float(t.layers))
    return _Split(tp, stages, g.cp, f"layout tp{tp:.0f} pp{stages:.0f}")


def _state(t: Transformer, ranks: float) -> float:
    """Bytes per device of weights, gradients and Adam's state in mixed precision, cut over so many ranks."""
    return 16.0 * float(t.params) / ranks


def _power(number: float) -> float:
    """The next power of two, at least 1."""
    return 2.0 ** math.ceil(math.log2(max(number, 1.0)))
