"""Sentences with figures are read as people write them, and judged by what is worked out for them."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator

import pytest
from docs.generate.console import on_the_day

from chipwise.api.said import said_in
from chipwise.api.statements import check_statement
from command_line import Run


@pytest.fixture(scope="module", autouse=True)
def _the_day() -> Iterator[None]:
    with on_the_day():
        yield


@pytest.mark.parametrize(
    ("text", "chips"),
    [
        ("8xH100 serves it", [("h100-sxm5-80gb", 8)]),
        ("two RTX 3090s beat one 4090", [("rtx-3090", 2), ("rtx-4090", 1)]),
        ("an H100 is 3x an A100", [("h100-sxm5-80gb", None), ("a100-sxm4-80gb", None)]),
        ("H100 is 3x A100", [("h100-sxm5-80gb", None), ("a100-sxm4-80gb", None)]),
        ("1.5x H100 performance", [("h100-sxm5-80gb", None)]),
        ("compared to an H100, the MI300X has more", [("mi300x", None), ("h100-sxm5-80gb", None)]),
        ("an A100 80GB has 2 TB/s", [("a100-sxm4-80gb", None)]),
        ("NVIDIA's H100 beats Groq", [("h100-sxm5-80gb", None), ("groq-lpu1", None)]),
        ("30.84M GPU hours on H100", [("h100-sxm5-80gb", None)]),
        ("a DGX H100 runs it", [("h100-sxm5-80gb", 8)]),
        ("weights in 4 bit take 140 GB", []),
        ("Llama 3 70B at 300 tokens/s", []),
    ],
)
def test_chips_are_read_with_their_counts(text: str, chips: list[tuple[str, int | None]]) -> None:
    assert [(s.chip, s.count) for s in said_in(text).chips] == chips


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("Groq runs Llama 2 70B at 300 tokens/s", "meta-llama/Llama-2-70b"),
        ("MI300X beats H100 in Llama 70B", "meta-llama/Llama-3.1-70B"),
        ("DeepSeek V3 fits on 8 H200", "deepseek-ai/DeepSeek-V3"),
        ("a 7B model fits in 8 GB", "7B"),
        ("SDXL takes 2 seconds", "sdxl"),
        ("8 GB are enough", ""),
        ("an H100 is 30x an A100", ""),
    ],
)
def test_models_are_read_as_people_call_them(text: str, model: str) -> None:
    found = said_in(text).model
    assert found == model or (model and found.startswith(model))


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("at 2,100 tokens per second", [(2100, "tokens/s")]),
        ("24k tok/s", [(24000, "tokens/s")]),
        ("20-30 tps", [(20, "tokens/s")]),
        ("3.35TB/s and 80GB", [(3.35e12, "B/s"), (80e9, "B")]),
        ("a 5 second video in 10 seconds", [(10, "s")]),
        ("989 TFLOPS or 1.4 exaflops", [(989e12, "FLOP/s"), (1.4e18, "FLOP/s")]),
        ("costs $2.50 per GPU hour", [(2.5, "$/h")]),
        ("2.5 MB per token", [(2.5e6, "B/token")]),
        ("needs 576 chips", [(576, "chips")]),
        ("takes 90 ms", [(0.09, "s")]),
        ("two 3090s", []),
        ("1 million tokens per second", [(1e6, "tokens/s")]),
        ("$0.50 per million tokens", [(0.5, "$/Mtok")]),
        ("$0.002 per 1k tokens", [(2.0, "$/Mtok")]),
        ("15T tokens in 3 days", [(15e12, "tokens"), (3 * 86400.0, "run s")]),
        ("an MFU of 55 %, or 40% MFU", [(0.55, "MFU"), (0.4, "MFU")]),
    ],
)
def test_figures_are_read_with_their_units(text: str, figures: list[tuple[float, str]]) -> None:
    assert [(pytest.approx(q.low), q.unit) for q in said_in(text).quantities] == figures


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("more than 64 GB", 64e9, math.inf),
        ("at least 64 GB", 64e9, math.inf),
        ("under 64 GB", 0.0, 64e9),
        ("no more than 64 GB", 0.0, 64e9),
        ("no less than 64 GB", 64e9, math.inf),
        ("64 GB or more", 64e9, math.inf),
        ("64 GB at most", 0.0, 64e9),
        ("about 64 GB", 64e9, 64e9),
    ],
)
def test_bounds_are_read(text: str, low: float, high: float) -> None:
    quantity = said_in(text).of("B")
    assert quantity is not None
    assert (quantity.low, quantity.high) == (low, high)


@pytest.mark.parametrize(
    ("text", "ratio", "more"),
    [
        ("an H100 is 30x an A100", (30, 30), 1),
        ("Gaudi 3 is 50% faster than H100", (1.5, 1.5), 1),
        ("Inferentia2 has lower latency than H100", None, 1),
        ("Inferentia2 has higher latency than H100", None, -1),
        ("30-40% better price performance", (1.3, 1.4), 1),
        ("A is 40% cheaper than B", (0.6, 0.6), -1),
        ("half the price of an H100", (0.5, 0.5), -1),
        ("as good as a 4090", None, 0),
        ("twice as slow", (0.5, 0.5), -1),
        ("beats it", None, 1),
        ("it has a torus", None, None),
    ],
)
def test_comparisons_are_read(text: str, ratio: tuple[float, float] | None, more: int | None) -> None:
    saying = said_in(text)
    assert saying.ratio == (pytest.approx(ratio) if ratio else None)
    assert saying.more == more


JUDGED = [
    ("An H100 gives 120 tokens/s to a single user on Llama 3 8B", "true", "speed of one user"),
    ("An H100 gives 3000 tokens/s on Llama 3 8B", "true with a condition", "all requests together"),
    ("8xH100 serves Llama 3.1 70B at 20,000 tokens/s", "true with a condition", "short prompts"),
    ("8xH100 serves Llama 3.1 70B at 15,000 tokens/s", "true with a condition", "short prompts"),
    ("an H100 does 40,000 tokens/s on Llama 3.1 8B", "false", "at any load"),
    ("An H100 gives each user 500 tokens/s on Llama 3.1 70B", "false", "One user"),
    ("Apple M3 Ultra can run DeepSeek R1 at 20 tokens/s", "true", "q4_k_m"),
    ("a 4090 does 800 tokens/s on Llama 3 8B", "false", "One user"),
    ("an H100 is 30x an A100", "misleading", "times the bf16 peak"),
    ("a 4090 is faster than an A100", "false", "times the bandwidth"),
    ("an A100 is not faster than an H100", "true", "times the bandwidth"),
    ("MI300X beats H100 in Llama 70B", "true with a condition", "MLPerf llama2-70b"),
    ("B200 is 4x faster than H100 for training", "misleading", "training"),
    ("the MI300X has 2.4x the memory of an H100", "true", "2.40 times as much memory"),
    ("MI300X has 192 GB and 5.3 TB/s", "true", "192 GiB"),
    ("M3 Ultra has 512GB", "true", "512 GiB"),
    ("A100 80GB has 3 TB/s", "false", "2.04 TB/s"),
    ("GB200 NVL72 delivers 1.4 exaflops", "misleading", "zeros"),
    ("An H100 costs $0.50 per hour", "false", "list prices"),
    ("Llama 70B needs 140GB of VRAM", "true with a condition", "141 GB"),
    ("Llama 70B needs 500GB of VRAM", "false", "141 GB"),
    ("A 4-bit 70B model fits on a single 48GB card", "true", "in 4 bit"),
    ("DeepSeek V3 fits on 8 H200", "true", "fit on 8x"),
    ("Llama 3.1 405B fits on 8 H100", "true with a condition", "In 4 bit"),
    ("An RTX 4090 does not run out of memory with Qwen3-8B", "true", "fit on"),
    ("Llama 3.1 70B is too big for an RTX 4090", "true", "lacks 120 GB"),
    ("Llama 3.1 405B cannot run on two H100", "true", "lacks"),
    ("Groq needs 576 chips for Llama 70B", "true", "617"),
    ("The KV cache of Llama 70B takes 2.5 MB per token", "false", "328 kB"),
    ("The KV cache of Llama 70B takes 420 kB per token", "false", "328 kB"),
    ("The KV cache of Llama 70B takes 350 kB per token", "true", "328 kB"),
    ("Fine-tuning a 7B model needs 112 GB", "true with a condition", "16 bytes a parameter"),
    ("Stable Diffusion XL takes 2 seconds on a 4090", "true with a condition", "fewer steps"),
    # speeds of services that their vendors published, and one that nothing explains
    ("Groq runs Llama 2 70B at 300 tokens per second", "true", "vendor's service"),
    ("Groq runs Llama 3 8B at over 600 tokens per second", "true", "in fp8"),
    ("Cerebras runs Llama 3.1 70B at 2,100 tokens/s", "true", "drafts"),
    ("Cerebras serves Llama 3.1 405B at 969 tokens per second", "true", "drafts"),
    ("Cerebras runs gpt-oss-120b at 3,000 tokens per second", "not settled", "seldom published"),
    ("Groq runs Llama 3 70B at 1,665 tokens/s", "true with a condition", "requests together"),
    ("8 Groq chips run Llama 2 70B at 300 tokens per second", "false", "does not fit"),
    ("Groq runs Llama 3.1 70B at less than 20 tokens/s", "false", "vendor's service"),
    ("8x B200 runs DeepSeek R1 at 250 tokens/s per user", "not settled", "speculative decoding"),
    ("One H100 serves Llama 3.1 8B at 1 million tokens per second", "false", "at any load"),
    # sheets
    ("An H200 has 141 GB of HBM3e", "true", "141 GiB"),
    ("MI325X has 256 GB of HBM3e and 6 TB/s", "true", "256 GiB"),
    ("An RTX 5090 has 24 GB of GDDR7", "false", "32 GiB"),
    ("DGX Spark has 128 GB of unified memory", "true", "128 GiB"),
    ("DGX Spark has 1 TB/s of memory bandwidth", "false", "273 GB/s"),
    ("An H100 has more than 64 GB of memory", "true", "80 GiB"),
    ("An H100 has more than 100 GB of memory", "false", "80 GiB"),
    ("An H100 does not have 80 GB of memory", "false", "80 GiB"),
    ("Trainium2 has 667 TFLOPS in bf16", "true", "dense peak in bf16"),
    ("Gaudi 3 has 1,835 TFLOPS in FP8", "true with a condition", "editions of a sheet"),
    ("An MI300X needs 4x the power of an RTX 4090", "misleading", "1.67 times as high a power limit"),
    ("An H100 uses less power than an A100", "false", "power limit"),
    # memory and comparisons
    ("A pair of RTX 3090s can run Llama 3.3 70B in 4-bit", "true with a condition", "requests of 2,300 tokens fit"),
    ("Two RTX 3090s are faster than one RTX 4090 for Llama 70B", "true", "fits on 2x"),
    ("Llama 3.1 70B in 8-bit needs 70 GB of memory", "true", "39.8 GB in 4 bit"),
    ("An A100 40GB is faster than an A100 80GB", "false", "0.76 times the bandwidth"),
    ("4x RTX 4090 can run Llama 3.1 70B in 4-bit", "true", "fit on 4x"),
    ("A single H200 can hold Llama 3.1 70B in bf16", "true with a condition", "a server needs"),
    ("A single MI300X can hold Llama 3.1 70B in bf16", "true", "fit on"),
    ("A GB200 NVL72 has 13.5 TB of memory", "true with a condition", "of 72 together"),
    ("A GB200 NVL72 has 130 TB/s of NVLink bandwidth", "true with a condition", "both directions"),
    ("8x H200 have 1.1 TB of memory", "true", "1,128 GiB"),
    ("8x H100 have 1 TB of memory", "false", "640 GiB"),
    ("H100 and H200 have the same compute", "true", "about as high a dense bf16 peak"),
    ("Cerebras needs 100 chips for Llama 3.1 70B", "false", "4 in bf16"),
    ("Cerebras runs Llama 3.1 8B at 50 tokens per second maximum", "false", "vendor's service"),
    ("DeepSeek V3 in BF16 needs 1.3 TB", "true", "In 16 bit"),
    ("A TPU v5e is cheaper than an H100 and just as fast", "true with a condition", "was not judged"),
    ("the A100 has 312 TFLOPS in fp32", "false", "fp32"),
    ("the H100 has 989 TFLOPS in fp64", "false", "fp64"),
    ("the H100 has 67 TFLOPS in fp32", "true", "fp32"),
    ("TPU v5e has 16 GB of HBM and 197 TFLOPS in fp32", "not settled", "no peak in fp32"),
    ("the H100 has 3.35 GB/s of memory bandwidth", "false", "3.35 TB/s"),
    ("flux takes 3 seconds for 10 images on an H100", "misleading", "10 requests"),
    ("SDXL with 50 steps takes 0.05 seconds on an RTX 4090", "false", "50 steps"),
    # training, tokens by the dollar and the joule, and what is said to be so always
    ("64 H100 train Llama-3 8B on 1T tokens in 3 days", "false", "1T tokens"),
    ("H100 trains Llama-3 8B in 3 days on 64 H100", "not settled", "tokens, which are not said"),
    ("Training Llama 3 70B reaches an MFU of 55% on 512 H100", "true", "for Llama-3-70B with"),
    ("MFU of 90 % on 512 H100", "misleading", "for Llama-3.1-8B with"),
    ("Trainium1 costs less than A100 for training Llama 3.1 70B", "false", "To train Llama-3.1-70B costs"),
    ("Llama 3.1 70B on 8 H100 costs $0.01 per million tokens", "false", "At full batches"),
    ("An H100 uses less energy per token than an A100", "true", "Per joule"),
    ("TPUs are always cheaper than GPUs", "false", "Not always: per token TPU v6e"),
    ("B200 is never cheaper than H100", "false", "It can be so: per token B200"),
    ("MI300X is faster than H100 at any batch size for Llama 70B", "false", "Not always: Instinct MI300X is"),
    ("Llama 3.1 405B never fits on 8 H100", "false", "In 4 bit"),
    # what is needed is the fewest that hold it
    ("DeepSeek-V3 needs 16 H200", "misleading", "6 are enough. "),
    ("DeepSeek-V3 needs 6 H200", "true", "6 in fp8_block"),
    ("Llama 70B needs at least 4 H100", "misleading", "2 are enough. "),
    ("Llama 70B needs no more than 4 H100", "true", "2 in bf16"),
    ("Llama 70B needs more than 2 H100", "misleading", "2 are enough. "),
    ("Llama 70B does not need 8 H100", "true", "2 are enough. "),
    ("8 H100 are needed to serve Llama 70B", "misleading", "2 are enough. "),
    ("Llama 70B needs one H100", "true with a condition", "In int8 or int4, not in bf16. "),
    ("Llama 70B needs 2 H100 to serve 200 users", "false", "That is too few. "),
    # users ask at once, each at the rate that is said
    ("Qwen3-32B on one H100 serves 100 users", "misleading", "Not where all 100 ask at once. "),
    ("Qwen3-32B on one H100 serves 1,000,000 users", "false", "Not where all 1,000,000 ask at once. "),
    ("Qwen3-32B on one H100 serves 100 users at 30 tokens/s", "misleading", "take 3,000 tokens/s for all"),
    ("Qwen3-32B on one H100 serves 10 users at 20 tokens/s", "true", "Each of 10 at once"),
    ("8xH100 serves Llama 3.1 70B to 200 users at 3,000 tokens/s", "true with a condition", "not of each"),
    # how far it goes: under which condition
    ("H100 is 2x faster than A100", "true with a condition", "it goes further in training; not so far in"),
    ("B200 is twice as expensive as H100", "misleading", "only per hour, not per token. "),
    ("A100 is half the price of H100", "misleading", "only per hour, not per token. "),
    ("MI300X is 50% cheaper than H100", "true with a condition", "not per token (lowest prices) or per hour. "),
    ("MI300X is cheaper than H100", "true with a condition", "clearly per token; per hour by little. "),
]


@pytest.mark.parametrize(("text", "verdict", "because"), JUDGED, ids=[text for text, _, _ in JUDGED])
def test_sentences_with_figures_are_judged(text: str, verdict: str, because: str) -> None:
    report = check_statement(text)
    (found,) = report.statements
    assert found.name == "read"
    assert found.verdict == verdict, found.because
    assert because in found.because
    assert found.commands
    assert found.basis


@pytest.mark.parametrize(
    "text",
    ["Qwen3-4B prompts run at 1,700 tokens/s on an M4 Max", "prefill of Llama 3 8B reaches 20,000 tokens/s on an H100"],
)
def test_prompts_are_not_judged_by_the_speed_of_answers(text: str, run: Run) -> None:
    assert "would answer it: chipwise estimate" in " ".join(run("claim", "check", text).refused(3).split())


def test_what_is_worked_out_is_what_the_commands_show(run: Run) -> None:
    (found,) = check_statement("8xH100 serves Llama 3.1 70B at 24,000 tokens/s").statements
    shown: list[float] = []

    def numbers(part: object) -> None:
        if isinstance(part, dict | list):
            for inner in part.values() if isinstance(part, dict) else part:
                numbers(inner)
        elif isinstance(part, int | float):
            shown.append(float(part))

    for command in found.commands:
        ran = run(*shlex.split(command)[1:], "--format", "json")
        assert ran.code in (0, 4), (command, ran.err)
        numbers(json.loads(ran.out))
    one = next(f for f in found.figures if f.what.startswith("one user"))
    assert any(math.isclose(one.value, s, rel_tol=1e-9) for s in shown if isinstance(one.value, float))


def test_a_maker_stands_for_a_chip_and_the_answer_says_so() -> None:
    (found,) = check_statement("Cerebras is 20x faster than GPUs").statements
    assert "Read: Cerebras as WSE-3 / CS-3, GPUs as H100" in found.because
    assert found.confidence == "low"
    assert found.verdict == "not settled"  # nobody measured it here, and 20 is not far from what is predicted


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("Llama 3 405B took 30.84M GPU hours on H100", "chipwise plan meta-llama/Llama-3.1-405B --task train"),
        ("Trainium2 is half the cost of H100", "--price-of trainium2=USD_PER_H"),
        ("Grok uses 100,000 H100s", "chipwise chips show h100-sxm5-80gb"),
        ("Whisper runs at 70x real time on an A100", "chipwise plan whisper-large-v3 --chips a100-sxm4-80gb"),
        ("Trainium2 serves Llama 3.1 8B at $0.10 per million tokens", "--price-of trainium2=USD_PER_H"),
        ("the moon is made of cheese", ""),
    ],
)
def test_what_cannot_be_judged_says_what_would(text: str, command: str) -> None:
    report = check_statement(text)
    assert report.statements == ()
    assert "nothing was judged" in report.note
    assert command in " ".join(report.commands)
    assert bool(report.commands) == bool(command)
    if not command:
        assert report.nearest == ()


def test_a_statement_about_serving_does_not_answer_for_training() -> None:
    (serving,) = check_statement("an H100 is 3x an A100").statements
    (training,) = check_statement("an H100 is 3x an A100 for training").statements
    assert serving.name == "h100-3x-a100"
    assert training.name == "read"
    assert "training" in training.because


def test_a_statement_that_answers_for_another_says_so_first() -> None:
    (found,) = check_statement("H200 is twice as fast as H100").statements
    assert found.because.startswith("This answers for 'An H200 is 1.9 times an H100 on Llama 70B'. On two chips, ")
    assert found.confidence == "medium"


def test_a_price_beside_a_speed_is_not_passed_over() -> None:
    (found,) = check_statement("Gaudi 3 has 1.5x H100 inference performance at half the price").statements
    assert found.because.endswith("The price in it was not judged.")
