"""kernel: what one can ask of one operator."""

from __future__ import annotations

import shlex
from dataclasses import MISSING, fields, replace
from typing import Any

from chipwise.api.kernel import answer
from chipwise.api.operators import OPERATORS, Op
from chipwise.api.requests.field import NAMES, PAIRS, Asked, ask, figure, option_of
from chipwise.catalog.override import told
from chipwise.errors import UsageError
from chipwise.report.kernel import KernelReport
from chipwise.values import dataclass


def _help(name: str) -> str:
    """What an option means, operator by operator where they differ."""
    said: dict[str, list[str]] = {}
    for op, operator in OPERATORS.items():
        if name in operator.options:
            default = operator.besides.get(name, ("", None))[1]
            text = operator.options[name]
            shown = text if default is None or default is False else f"{text} (default {default})"
            said.setdefault(shown, []).append(op)
    if len(said) == 1:
        ((text, names),) = said.items()
        return text if len(names) > 2 else f"{', '.join(names)}: {text}"
    return "; ".join(f"{', '.join(names)}: {text}" for text, names in said.items())


@dataclass(frozen=True, kw_only=True)
class KernelRequest(Asked):
    """One operator on one or several chips: mapping, bytes per memory level, roofline, time and bottleneck.

    gemm: m, n, k. attention (causal, over a cache): kv, heads. conv (square): size, channels, filters. experts (of
    the busiest rank): tokens, hidden, inter, experts, top_k. norm, softmax, elementwise (16 bit): m, n. copy: bytes.
    collective: kind, bytes, ranks.
    """

    op: Op = ask("gemm, attention, conv, experts, norm, softmax, elementwise, copy or collective", MISSING)
    chips: str = ask("one or several, separated by commas", MISSING, file=True, reading=NAMES)
    dtype: str | None = ask(_help("dtype"))
    m: int | None = ask(_help("m"))
    n: int | None = ask(_help("n"))
    k: int | None = ask(_help("k"))
    batch: int | None = ask(_help("batch"))
    kv: int | None = ask(_help("kv"))
    q: int | None = ask(_help("q"))
    heads: int | None = ask(_help("heads"))
    kv_heads: int | None = ask(_help("kv_heads"))
    head_dim: int | None = ask(_help("head_dim"))
    value_dim: int | None = ask(_help("value_dim"))
    window: int | None = ask(_help("window"))
    compute: str | None = ask(_help("compute"))
    bidirectional: bool = ask(_help("bidirectional"), False)
    prompt: bool = ask(_help("prompt"), False)
    size: int | None = ask(_help("size"))
    channels: int | None = ask(_help("channels"))
    filters: int | None = ask(_help("filters"))
    kernel: int | None = ask(_help("kernel"))
    stride: int | None = ask(_help("stride"))
    pad: int | None = ask(_help("pad"))
    images: int | None = ask(_help("images"))
    tokens: int | None = ask(_help("tokens"))
    hidden: int | None = ask(_help("hidden"))
    inter: int | None = ask(_help("inter"))
    experts: int | None = ask(_help("experts"))
    top_k: int | None = ask(_help("top_k"))
    routing: str | None = ask(_help("routing"))
    matrices: int | None = ask(_help("matrices"))
    kind: str | None = ask(_help("kind"))
    bytes_: str | None = ask(_help("bytes_"), name="bytes", reading=figure("B", low=1.0, high=1e15))
    ranks: int | None = ask(_help("ranks"))
    apart: int | None = ask(_help("apart"))
    oversubscription: float | None = ask(_help("oversubscription"))
    way: str | None = ask(_help("way"))
    runtime: str | None = ask(_help("runtime"))
    library: str | None = ask(_help("library"))
    launch: str | None = ask(_help("launch"))
    fabric: str | None = ask(_help("fabric"))
    domain: int | None = ask(_help("domain"))
    algorithm: str | None = ask(_help("algorithm"))
    copies: int | None = ask(_help("copies"))
    rotating: bool = ask(_help("rotating"), False)
    quantised: bool = ask(_help("quantised"), False)
    fetched: bool = ask(_help("fetched"), False)
    set_: str | None = ask("override chip figures, e.g. hbm=4TB/s,bf16=1.2PFLOPS", name="set", reading=PAIRS)

    def run(self) -> KernelReport:
        """The operator on each chip.

        Raises `UsageError` for sizes that are missing, strange or none, `UnknownNameError`
        for an unknown chip or type, `InfeasibleError` where no chip can be priced.
        """
        report = answer(self)
        return replace(report, assumptions=(*report.assumptions, *told(self.values["set_"] or {})))

    @property
    def command(self) -> str:
        """The command line that asks this, without options at their defaults."""
        parts = ["chipwise", "kernel", self.op, "--chip", self.chips]
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name not in ("op", "chips") and value is not None and value is not False:
                option = option_of(f.name)
                parts += [option] if value is True else [option, str(value)]
        return shlex.join(parts)

    def options(self) -> dict[str, Any]:
        """The options that were given. Raises `UsageError` for one that the operator lacks or does not have."""
        operator = OPERATORS[self.op]
        given = {
            f.name: v
            for f in fields(self)
            if f.name not in ("op", "chips", "set_") and (v := getattr(self, f.name)) is not None and v is not False
        }
        missing = [name for name in operator.needed if name not in given]
        if missing:
            names = ", ".join(n.rstrip("_") for n in missing)
            raise UsageError(f"{self.op} needs {names}", f"it has {operator.listed}", field=missing[0].rstrip("_"))
        strange = [name for name in given if name not in operator.options]
        if strange:
            name = strange[0].rstrip("_")
            raise UsageError(f"{self.op} has no {name}", f"it has {operator.listed}", field=name)
        return given
