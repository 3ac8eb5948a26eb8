"""What one types to run a model at a desk: a line per engine that people have."""

from __future__ import annotations

import shlex
from collections.abc import Collection

from chipwise.catalog.checkpoints import published_as
from chipwise.catalog.machine import Candidate, engine_line, with_files
from chipwise.report.plans import PlanRecord
from chipwise.workload.formats import GGML_BITS
from chipwise.workload.gguf import GGUF

GGML = "llama.cpp"
"""The engine whose files LM Studio and Ollama read too, where it runs."""
CONVERTED = frozenset(("fp8",))
"""Formats that servers make of a checkpoint, and that no file of GGUF has."""
DEFAULTS = frozenset(("q4_k_m", "mxfp4"))
"""Formats that the plain names of Ollama's library stand for."""


def desk_commands(
    c: Candidate,
    record: PlanRecord,
    context: int,
    runtimes: Collection[str],
    *,
    processor: bool = False,
    all_chips: int = 1,
) -> dict[str, str]:
    """The command lines that start a model as a plan has it, by engine; none for one without known files, of a file of
    the user's own that which reads it. `runtimes` run on the chip, `processor`: it is no card. There are `all_chips` of
    them."""
    if c.model.endswith(".gguf") and GGML in runtimes:
        line = f"llama-server -m {shlex.quote(c.model)} -c {context}{_placed(record, processor, all_chips)}"
        return {GGML: line + _blind(c, record)}
    own = _stored(c, record, context)
    if own or (record.converted and record.precision in CONVERTED):
        return own
    return _of_files(c, record, context, runtimes, _placed(record, processor, all_chips))


def _of_files(c: Candidate, record: PlanRecord, context: int, runtimes: Collection[str], placed: str) -> dict[str, str]:
    """What starts engines that read files of their own, parts `placed` so."""
    found: dict[str, str] = {}
    only, tag = _single(record.precision), record.precision.upper()
    gguf = c.gguf if GGML in runtimes else ""
    if gguf:
        file = _file(c, record.precision)
        options = placed + _blind(c, record)
        found["llama.cpp"] = f"llama-server -hf {file} -c {context}{options}"
        found["LM Studio"] = f"lms get {c.gguf}" + ("" if only else f"@{record.precision}")
    if c.ollama and GGML in runtimes and record.precision in DEFAULTS:
        found["Ollama"] = f"ollama run {c.ollama}"
    elif gguf:
        found["Ollama"] = f"ollama run hf.co/{c.gguf}" + ("" if only else f":{tag}")
    if c.mlx and "mlx" in runtimes and record.precision != "bf16":
        found["MLX"] = f"mlx_lm.server --model {c.mlx}" + ("" if only else f"-{_bits(record.precision)}bit")
    return found


def repository_file(model: str, precision: str) -> str:
    """What llama.cpp downloads for a model in a format, REPOSITORY:FORMAT; "" where no repository is known."""
    known = with_files(model)
    return _file(known, precision) if known.gguf else ""


def _file(c: Candidate, precision: str) -> str:
    return c.gguf if _single(precision) else f"{c.gguf}:{precision.upper()}"


def _single(precision: str) -> bool:
    """Whether a repository holds one file alone, as of a checkpoint of few bits."""
    return precision not in (*GGUF, "bf16")


def _stored(c: Candidate, record: PlanRecord, context: int) -> dict[str, str]:
    """What starts software that reads the checkpoint itself; none where that is not planned."""
    line, model, option = engine_line(record.runtime), c.model, ""
    if line is None or (record.converted and record.precision not in CONVERTED):
        return {}
    if record.converted:
        model = published_as(c.model, record.precision)
        option = "" if model else f" {line[2]} {record.precision}"
        if not model and not line[2]:
            return {}
    tp, pp = record.layout.tp, record.layout.pp
    return {line[0]: line[1].format(model=model or c.model, tp=tp, pp=pp, context=context) + option}


def _placed(record: PlanRecord, processor: bool, all_chips: int) -> str:
    """What llama-server is told of where parts lie and of the cache."""
    p = record.placed
    layers = 0 if processor else 99 if p is None or not p.host_layers else sum(p.cards)
    options = f" -ngl {layers}"
    if p is not None:
        options += f" --n-cpu-moe {p.host_experts}" if p.host_experts > p.host_layers else ""
        options += f" -ts {','.join(map(str, p.cards))}" if sum(n > 0 for n in p.cards) > 1 else ""
        options += " --no-op-offload" if p.prompts_on_host else ""
    elif record.chips < all_chips and record.replica_hosts == 1:
        options += f" -ts {','.join('1' * record.chips)}"  # nothing on the others
    if record.replica_hosts > 1:
        # each of the others runs rpc-server
        options += " --rpc " + ",".join(f"HOST{i}:50052" for i in range(2, record.replica_hosts + 1))
    if record.kv not in ("fp16", "bf16", "fp32"):
        options += f" -fa on -ctk {record.kv} -ctv {record.kv}"
    return options


def _blind(c: Candidate, record: PlanRecord) -> str:
    """What keeps -hf from loading the file of what sees, where a plan has no room for it."""
    return " --no-mmproj" if "vision" in c.uses and "weights: vision" not in record.memory.items else ""


def _bits(precision: str) -> int:
    """The repository of whole bits that is nearest below a mix with its scales."""
    return min(8, max(3, round(GGML_BITS[GGUF[precision]] - 0.4)))
