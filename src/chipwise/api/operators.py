"""The operators that `kernel` answers about, with their options: verb, command line and form are made of this table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from chipwise.calibrate.kernel_questions import DTYPES, EXCHANGES, FABRICS, ROUTINGS, ROW_WORK
from chipwise.cost.copies import WAYS
from chipwise.values import dataclass

Op = Literal["gemm", "attention", "conv", "experts", "norm", "softmax", "elementwise", "copy", "collective"]

ELEMENTWISE = tuple(kind for kind in ROW_WORK if kind not in ("norm", "softmax"))
"""Kinds of element-wise work."""

LAUNCHES = ("graph", "eager", "profiler", "tuner", "loop", "collective", "other")


@dataclass(frozen=True)
class Operator:
    """One operator: what it is, the options that it needs (name: help), and those it takes besides, with their
    defaults (None: a default that depends on the chip or on other options)."""

    help: str
    needed: Mapping[str, str]
    besides: Mapping[str, tuple[str, Any]] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, str]:
        """Every option with its help."""
        return {**self.needed, **{name: text for name, (text, _) in self.besides.items()}}

    @property
    def listed(self) -> str:
        """Every option by name."""
        return ", ".join(name.rstrip("_") for name in self.options)


_DTYPE = f"one of {', '.join(DTYPES)}"
_WHOSE: Mapping[str, tuple[str, Any]] = {
    "runtime": ("whose kernels, e.g. sglang; default vllm, or what runs on the chip", None),
    "library": ("kernels of this library, e.g. fa3, marlin, NCCL; default: what the runtime takes", None),
    "launch": (f"how calls are started: {', '.join(LAUNCHES)}", "graph"),
}
_COPIES = "equal weights or caches that take turns, 1 for a hot loop; default: never used again, e.g. a model"
_FEW_BYTES = "bytes read and written; default: by rows, values and kind"
OPERATORS: Mapping[str, Operator] = {
    "gemm": Operator(
        "C[m, n] = A[m, k] x W[k, n]: tiles and waves, or folds, fill and drain.",
        {"m": "rows: tokens", "n": "output features", "k": "input features"},
        {
            "dtype": (_DTYPE, "bf16"),
            "batch": ("independent products", 1),
            **_WHOSE,
            "copies": (_COPIES, None),
            "rotating": ("inputs and outputs take turns too, and come from memory", False),
            "quantised": ("the call writes its input in the narrow type first", False),
            "fetched": ("weights arrive while the operator before runs (systolic chips)", False),
        },
    ),
    "conv": Operator(
        "A convolution, unfolded to a product (im2col).",
        {"size": "height and width of the image", "channels": "input channels", "filters": "output channels"},
        {
            "kernel": ("height and width of a filter", 3),
            "stride": ("step of the filter", 1),
            "pad": ("rows and columns added on each side", 1),
            "images": ("images at once", 1),
            "dtype": (_DTYPE, "bf16"),
        },
    ),
    "attention": Operator(
        "Causal attention of new tokens over cached ones; --dtype is that of the cache.",
        {"kv": "tokens that are visible, the new ones included", "heads": "query heads of one device"},
        {
            "kv_heads": ("key and value heads; default: as many as heads", None),
            "head_dim": ("width of a head", 128),
            "value_dim": ("width of a value; default: of a head; with one key head wider than 256 a latent", None),
            "q": ("new tokens of each sequence: 1 decodes, more is a prompt", 1),
            "batch": ("sequences", 1),
            "window": ("sliding window in tokens, 0 for none", 0),
            "dtype": (_DTYPE, "bf16"),
            "compute": ("data type of scores: bf16 or fp8", "bf16"),
            "bidirectional": ("every token sees all others, e.g. an encoder", False),
            "prompt": ("by the kernels of prompts though --q is 1", False),
            **_WHOSE,
            "copies": (_COPIES, None),
        },
    ),
    "experts": Operator(
        "Routed experts of the busiest rank: grouped products, experts that are hit, imbalance.",
        {
            "tokens": "tokens of all ranks together",
            "hidden": "width of the model",
            "inter": "width of one expert on this rank",
            "experts": "experts of the layer",
            "top_k": "experts that a token takes",
        },
        {
            "ranks": ("ranks that share the experts out", 1),
            "routing": (f"one of {', '.join(ROUTINGS)}, or a power law, e.g. power_law_1.01", "random"),
            "matrices": ("matrices of an expert: 3 with a gate, 2 without", 3),
            "dtype": (_DTYPE, "bf16"),
            **_WHOSE,
            "copies": (_COPIES, None),
        },
    ),
    "norm": Operator(
        "A layer norm or RMS norm over rows of 16-bit values.",
        {"m": "rows: tokens", "n": "values of a row"},
        {"bytes_": (_FEW_BYTES, None), **_WHOSE},
    ),
    "softmax": Operator(
        "A softmax over rows of 16-bit values, as a separate kernel.",
        {"m": "rows", "n": "values of a row"},
        {"bytes_": (_FEW_BYTES, None), **_WHOSE},
    ),
    "elementwise": Operator(
        "Element-wise work: add, a gated or plain activation, conversion to fp8.",
        {"m": "rows: tokens", "n": "values of a row"},
        {"kind": (f"one of {', '.join(ELEMENTWISE)}", "add"), "bytes_": (_FEW_BYTES, None), **_WHOSE},
    ),
    "copy": Operator(
        "A copy between host and chip over PCIe or NVLink-C2C, or inside the chip's memory.",
        {"bytes_": "how much, e.g. 1GB"},
        {"way": (f"one of {', '.join(WAYS)}", "to-chip")},
    ),
    "collective": Operator(
        "One exchange between the devices of a scale-up domain, or across domains over the network.",
        {
            "kind": f"one of {', '.join(EXCHANGES)}",
            "bytes_": "buffer of each rank, e.g. 64MB",
            "ranks": "devices that take part",
        },
        {
            "apart": ("chips from one rank to the next, whose groups do the same at once", 1),
            "oversubscription": ("links down over links up of leaf switches", 1.0),
            "runtime": ("whose kernels, as measured; default: the library's own test", None),
            "library": ("as measured with this library, e.g. NCCL or vLLM_custom_graph", None),
            "fabric": (f"as measured over {', '.join(FABRICS)} (links in twos); default: the chip's own", None),
            "domain": ("as measured with this many devices per host; default: all that the fabric joins", None),
            "algorithm": ("as measured: ring, or direct (kernels that read their peers' memory)", None),
        },
    ),
}
"""Every operator by name: help texts, options, defaults and errors follow from here."""
