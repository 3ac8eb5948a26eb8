"""The network that a row of training measurements means: by its columns, by its model's name, or not at all."""

from __future__ import annotations

import re
from functools import cache

from chipwise.catalog.configs import find_config
from chipwise.errors import UsageError
from chipwise.evidence.rows import Row
from chipwise.predict.training.dims import plain, transformer
from chipwise.predict.training.values import Transformer
from chipwise.workload.build import build
from chipwise.workload.load import load_model

__all__ = ["number", "row_network"]

# Names as publications write them, to bundled configurations; the first pattern that is found decides.
BUNDLED: tuple[tuple[str, str], ...] = (
    (r"deepseek.?v?4.?flash", "deepseek-ai/DeepSeek-V4-Flash"),
    (r"deepseek.?v?4", "deepseek-ai/DeepSeek-V4-Pro"),
    (r"deepseek.?v?2.?lite", "deepseek-ai/DeepSeek-V2-Lite"),
    (r"deepseek.?v?2", "deepseek-ai/DeepSeek-V2"),
    (r"deepseek", "deepseek-ai/DeepSeek-V3"),
    (r"kimi.?k2", "moonshotai/Kimi-K2-Instruct"),
    (r"gpt.?oss.?120", "openai/gpt-oss-120b"),
    (r"gpt.?oss.?20", "openai/gpt-oss-20b"),
    (r"qwen3.?next", "Qwen/Qwen3-Next-80B-A3B-Instruct"),
    (r"qwen3.?vl.?30b", "Qwen/Qwen3-30B-A3B"),
    (r"qwen3.?(vl.?)?235b", "Qwen/Qwen3-235B-A22B"),
    (r"qwen3.?30b", "Qwen/Qwen3-30B-A3B"),
    (r"qwen3.?32b", "Qwen/Qwen3-32B"),
    (r"qwen3.?14b", "Qwen/Qwen3-14B"),
    (r"qwen3.?8b", "Qwen/Qwen3-8B"),
    (r"qwen2.?5?.?72b", "Qwen/Qwen2.5-72B"),
    (r"qwen2.?5?.?32b", "Qwen/Qwen2.5-32B"),
    (r"qwen2.?5?.?14b", "Qwen/Qwen2.5-14B"),
    (r"qwen2.?5?.?7b", "Qwen/Qwen2.5-7B"),
    (r"mixtral.?8x22b", "mistralai/Mixtral-8x22B-v0.1"),
    (r"mixtral", "mistralai/Mixtral-8x7B-v0.1"),
    (r"mistral.?7b", "mistralai/Mistral-7B-v0.1"),
    (r"nemotron.?(3|v3)?.?super", "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16"),
    (r"nemotron.?(3|v3)?.?ultra", "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16"),
    (r"nemotron.?h.?56b", "nvidia/Nemotron-H-56B-Base-8K"),
    (r"llama.?4.?scout", "meta-llama/Llama-4-Scout-17B-16E"),
    (r"llama.?4.?maverick", "meta-llama/Llama-4-Maverick-17B-128E"),
    (r"llama.?(3|31|3\.1|3_1).?405b", "meta-llama/Llama-3.1-405B"),
    (r"llama.?(3|31|3\.1|3\.3|3_1).?70b", "meta-llama/Llama-3.1-70B"),
    (r"llama.?(3|31|3\.1|3_1).?8b", "meta-llama/Llama-3.1-8B"),
    (r"llama.?3\.2.?3b", "meta-llama/Llama-3.2-3B"),
    (r"llama.?3\.2.?1b", "meta-llama/Llama-3.2-1B"),
    (r"llama.?2.?70b", "meta-llama/Llama-2-70b-hf"),
    (r"llama.?2.?13b", "meta-llama/Llama-2-13b-hf"),
    (r"llama.?2.?7b", "meta-llama/Llama-2-7b-hf"),
    (r"gemma.?4.?31b", "google/gemma-4-31b"),
    (r"gemma.?3.?27b", "google/gemma-3-27b-pt"),
    (r"gemma.?3.?12b", "google/gemma-3-12b-pt"),
    (r"gemma.?3.?4b", "google/gemma-3-4b-pt"),
    (r"gemma.?2.?27b", "google/gemma-2-27b"),
    (r"gemma.?2.?9b", "google/gemma-2-9b"),
    (r"gemma.?7b", "google/gemma-7b"),
    (r"falcon.?180b", "tiiuae/falcon-180B"),
    (r"falcon.?40b", "tiiuae/falcon-40b"),
    (r"falcon.?7b", "tiiuae/falcon-7b"),
    (r"gpt.?j", "EleutherAI/gpt-j-6b"),
    (r"gpt.?neox|neox.?20b", "EleutherAI/gpt-neox-20b"),
    (r"bert.?large", "bert-large"),
    (r"bert.?base", "bert-base"),
    (r"opt.?1\.3b", "facebook/opt-1.3b"),
    (r"gpt2.?large", "gpt2-large"),
)

# (layers, hidden, heads, ffn, vocab, kv heads, head size or 0, gated): published dimensions of models that
# have no bundled configuration. NVIDIA NeMo launcher configs; Brown et al. 2020, table 2.1; InternLM reports;
# BigScience's scripts (experiments/gpt2-meg) and tr11-200B chronicles (width 14,400, layers to fit the stages).
# GPT3-XL is NeuSight's (scripts/asplos/data/DLmodel_configs/gpt3_xl.json): heads of 128 make it 3,072 wide, where
# Brown et al. print 2,048.
TABLE: dict[str, tuple[float, float, float, float, float, float, float, bool]] = {
    r"^gpt3$": (96, 12288, 96, 49152, 51200, 96, 0, False),
    r"gpt3.?xl": (24, 3072, 24, 12288, 50257, 24, 0, False),
    r"gpt3.?2\.7b": (32, 2560, 32, 10240, 50257, 32, 0, False),
    r"gpt3.?5b": (24, 4096, 32, 16384, 51200, 32, 0, False),
    r"gpt3.?20b": (44, 6144, 48, 24576, 51200, 48, 0, False),
    r"gpt3.?23b": (28, 8192, 64, 32768, 50257, 64, 0, False),
    r"gpt3.?46b": (56, 8192, 64, 32768, 50257, 64, 0, False),
    r"gpt3.?40b": (48, 8192, 64, 32768, 51200, 64, 0, False),
    r"gpt3.?175b": (96, 12288, 96, 49152, 51200, 96, 0, False),
    r"nemotron.?4?.?340b": (96, 18432, 96, 73728, 256000, 8, 0, False),
    r"nemotron.?4?.?22b": (40, 6144, 48, 24576, 256000, 48, 0, False),
    r"nemotron.?4?.?15b": (32, 6144, 48, 24576, 256000, 8, 0, False),
    r"nemotron.?4?.?8b": (32, 4096, 32, 16384, 256000, 32, 0, False),
    r"internlm.?20b": (60, 5120, 40, 13824, 103168, 40, 0, True),
    r"internlm.?7b": (32, 4096, 32, 11008, 103168, 32, 0, True),
    r"^gpt 104b$": (64, 11600, 80, 46400, 51200, 80, 0, False),
    r"^gpt 7\.5b$": (36, 4096, 32, 16384, 50257, 32, 0, False),
    r"^gpt 14b$": (32, 6144, 32, 24576, 50257, 32, 0, False),
    r"^gpt 18b$": (40, 6144, 32, 24576, 50257, 32, 0, False),
    r"^gpt 2[2-5]b$": (40, 7168, 32, 28672, 50257, 32, 0, False),
    r"^gpt 30b$": (48, 7168, 32, 28672, 50257, 32, 0, False),
    r"^gpt 39b$": (48, 8192, 32, 32768, 50257, 32, 0, False),
    r"^gpt 5[02]b$": (64, 8192, 32, 32768, 50257, 32, 0, False),
    r"^gpt 65b$": (64, 9216, 32, 36864, 50257, 32, 0, False),
    r"^gpt (78|81)b$": (64, 10240, 32, 40960, 50257, 32, 0, False),
    r"^gpt 97b$": (64, 11264, 32, 45056, 50257, 32, 0, False),
    r"^gpt 116b$": (64, 12288, 32, 49152, 50257, 32, 0, False),
    r"^gpt 206b$": (64, 16384, 32, 65536, 50257, 32, 0, False),
    r"^gpt 20b$": (8, 14400, 32, 57600, 250880, 32, 0, False),
    r"^gpt 183b$": (72, 14400, 96, 57600, 250880, 96, 0, False),
    r"^gpt 187b$": (80, 13824, 96, 55296, 250880, 96, 0, False),
    r"^gpt 19[15]b$": (77, 14400, 96, 57600, 250880, 96, 0, False),
    r"^gpt 194b$": (78, 14400, 96, 57600, 250880, 96, 0, False),
    r"^gpt 200b$": (80, 14400, 96, 57600, 250880, 96, 0, False),
    r"^gpt 205b$": (81, 14400, 96, 57600, 250880, 96, 0, False),
    r"^1024b$": (128, 16384, 256, 114688, 32000, 256, 128, True),
    r"mt.?nlg": (105, 20480, 128, 81920, 51200, 128, 0, False),
    r"vit.?base": (12, 768, 12, 3072, 1000, 12, 0, False),
}

ENCODERS = re.compile(r"bert|vit", re.IGNORECASE)
GATED = re.compile(r"^\d+b$|llama|mistral|mixtral|qwen|deepseek|internlm|gemma|palm|oss|kimi", re.IGNORECASE)
EXPERTS = re.compile(
    r"moe|mixtral|deepseek|oss|a\d+b|\dx\d+b|llama.?4|kimi|switch|maverick|scout|nemotron.?3|gemma.?4.?26b",
    re.IGNORECASE,
)
DIFFUSION = re.compile(r"wan|flux|diffusion|sdxl|dit\b", re.IGNORECASE)


def number(row: Row, column: str) -> float | None:
    """A positive number of a row; None where it is blank."""
    text = (row.get(column) or "").strip()
    try:
        value = float(text) if text else 0.0
    except ValueError:
        raise UsageError(f"{column} is '{text[:40]}'", "expected a number") from None
    return value if value > 0 else None


def row_network(row: Row) -> tuple[Transformer, tuple[str, ...]]:
    """The network of a row, and what had to be assumed about it.

    Raises `UsageError` for diffusion models and for models whose dimensions are neither in the row nor known.
    """
    name = row.get("model") or row.get("benchmark") or ""
    if DIFFUSION.search(name):
        raise UsageError(f"{name}: a diffusion model", "training of transformers over tokens is predicted")
    if "perceiver" in name.lower() or "perveriver" in name.lower() or "clip" in name.lower():
        raise UsageError(f"{name}: not a transformer over tokens", "no dimensions are known")
    layers, hidden = number(row, "layers"), number(row, "hidden")
    heads, ffn = number(row, "heads"), number(row, "ffn")
    filled = (row.get("dims_filled_in") or "") == "1"  # by whoever made the table, not by the publication
    if filled or EXPERTS.search(name) or not layers or not hidden:
        known = _by_name(name)
        if known is not None:
            return known, ()
        if EXPERTS.search(name):
            raise UsageError(
                f"{name}: its experts are not known", "name a bundled model: chipwise models list"
            )
    params = number(row, "params") or _params_in_name(name)
    notes: tuple[str, ...] = ()
    if not layers or not hidden:
        if not params:
            raise UsageError(f"{name}: no dimensions", "fill layers, hidden, heads and ffn")
        shape = _shape(params, layers, hidden)
        layers, hidden = shape
        notes = (f"dimensions from the parameter count: {layers:.0f} layers of {hidden:.0f}",)
    heads = heads or max(round(hidden / 128.0), 1)
    vocab = number(row, "vocab") or (30522.0 if ENCODERS.search(name) else 51200.0)
    gated, head_dim, width = _variant(
        name, layers, hidden, heads, number(row, "kv_heads"), ffn, vocab, params
    )
    network = plain(
        layers,
        hidden,
        heads,
        width,
        vocab,
        kv_heads=number(row, "kv_heads") or heads,
        head_dim=head_dim,
        gated=gated,
        causal=not ENCODERS.search(name),
        tied=not GATED.search(name),
    )
    return network, notes


@cache
def _by_name(name: str) -> Transformer | None:
    for pattern, (layers, hidden, heads, ffn, vocab, kv, d, gated) in TABLE.items():
        if re.search(pattern, name, re.IGNORECASE):
            return plain(
                layers,
                hidden,
                heads,
                ffn,
                vocab,
                kv_heads=kv,
                head_dim=d,
                gated=gated,
                causal=not ENCODERS.search(name),
                tied=not GATED.search(name),
            )
    for pattern, config in BUNDLED:
        if re.search(pattern, name, re.IGNORECASE):
            return transformer(build(load_model(find_config(config))))
    return None


def _params_in_name(name: str) -> float | None:
    match = re.search(r"(\d+(?:\.\d+)?)\s*([bm])\b", name, re.IGNORECASE)
    if match is None:
        return None
    return float(match.group(1)) * (1e9 if match.group(2).lower() == "b" else 1e6)


def _shape(params: float, layers: float | None, hidden: float | None) -> tuple[float, float]:
    """12 L h^2 = params; where both are unknown, h = 115 L, the mean of published GPTs above 10 B."""
    if hidden:
        return max(round(params / (12.0 * hidden**2)), 1), hidden
    if layers:
        return layers, round((params / (12.0 * layers)) ** 0.5 / 128.0) * 128.0
    depth = (params / (12.0 * 115.0**2)) ** (1.0 / 3.0)
    return max(round(depth), 1), max(round(115.0 * depth / 128.0), 1) * 128.0


def _variant(
    name: str,
    layers: float,
    hidden: float,
    heads: float,
    kv_heads: float | None,
    ffn: float | None,
    vocab: float,
    params: float | None,
) -> tuple[bool, float, float]:
    """Gated or not, head size, and width: what reproduces the parameter count best; the name breaks ties."""
    likely = bool(GATED.search(name))
    width = ffn or (hidden * 8.0 / 3.0 if likely else 4.0 * hidden)
    if not params or not ffn:
        return likely, hidden / heads, width

    def miss(choice: tuple[bool, float]) -> float:
        gated, d = choice
        one = plain(layers, hidden, heads, width, vocab, kv_heads=kv_heads or heads, head_dim=d, gated=gated)
        unlikely = (0.03 if gated != likely else 0.0) + (0.01 if d != hidden / heads else 0.0)
        return abs(float(one.params) / params - 1.0) + unlikely

    # GPT-like models have heads of hidden / heads; what their count holds more are learned positions
    sizes = dict.fromkeys((hidden / heads, 128.0, 256.0) if likely else (hidden / heads,))
    options = [(gated, d) for gated in (likely, not likely) for d in sizes]
    gated, d = min(options, key=miss)
    return gated, d, width
