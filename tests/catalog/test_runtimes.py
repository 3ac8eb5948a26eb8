"""The runtime catalogue: every rentable chip is covered, cited cells of the support matrix, and bad files."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import tomllib
from collections import Counter

import pytest

from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.runtime import get_runtime, kernel_era, kernel_library, runtimes_for
from chipwise.catalog.runtime_spec import FIGURES, Operator, Policies, Runtime
from chipwise.catalog.snapshot import shipped_text
from chipwise.catalog.software import SoftwareTable, all_software
from chipwise.errors import UnknownNameError, UsageError
from chipwise.units import GIB
from chipwise.workload.formats import FORMATS

RUNTIMES = list(all_software(Runtime).values())
CHIPS = list(load_chips().values())

# (name, runtime, chip, weights, activations, cache, state, arithmetic); where each stands is in the comment
CELLS = [
    # docs.vllm.ai v0.32 llm_compressor/fp8: "Turing/Ampere GPUs are supported for W8A16 ... Marlin kernels"
    ("fp8 on A100 is stored only", "vllm", "a100-sxm4-80gb", "fp8", "fp8", "bf16", "weights_only", "bf16"),
    ("fp8 on H100 is computed", "vllm", "h100-sxm5-80gb", "fp8", "fp8", "fp8", "yes", "fp8"),
    # marlin_utils_fp4.py: "does not have native support for FP4 computation ... Weight-only FP4 compression"
    ("nvfp4 on Hopper is stored only", "vllm", "h200-sxm-141gb", "nvfp4", "nvfp4", "fp8", "weights_only", "bf16"),
    ("mxfp4 on Hopper is stored only", "vllm", "h100-sxm5-80gb", "mxfp4", "bf16", "bf16", "weights_only", "bf16"),
    ("nvfp4 on B200 is computed", "vllm", "b200-sxm", "nvfp4", "nvfp4", "fp8", "yes", "fp4"),
    # vllm-project/vllm issue 41477: on GB10 only Marlin and emulation work
    ("nvfp4 on DGX Spark is stored only", "vllm", "gb10-dgx-spark", "nvfp4", "fp4", "bf16", "weights_only", "bf16"),
    # llm_compressor/int8_w8a8: "INT8 is not supported on compute capability >= 10.0"
    ("no int8 on Blackwell", "vllm", "b200-sxm", "int8", "int8", "bf16", "no", None),
    ("int8 on A100 is computed", "vllm", "a100-pcie-40gb", "int8", "int8", "bf16", "yes", "int8"),
    # marlin_utils.py: GPTQ of 8 bits multiplies in 16, as of Qwen2.5's GPTQ-Int8 checkpoints on A100 (vLLM 0.6.3)
    ("int8 weights alone", "vllm", "a100-pcie-40gb", "int8", "bf16", "bf16", "weights_only", "bf16"),
    # vLLM issue 57838: W8A8 kernels and an fp8 cache on gfx1201
    ("fp8 on RDNA 4", "vllm", "r9700", "fp8", "fp8", "fp8", "yes", "fp8"),
    ("no fp8 on RDNA 3", "vllm", "rx-7900-xtx", "fp8", "fp8", "bf16", "no", None),
    # vllm gpu_worker.py: "Bfloat16 is only supported on GPUs with compute capability of at least 8.0"
    ("no bf16 on T4", "vllm", "t4", "bf16", "bf16", "fp16", "no", None),
    ("fp16 on T4", "vllm", "t4", "fp16", "fp16", "fp16", "yes", "fp16"),
    # docs.vllm.ai v0.31 installation: compute capability 7.5 or higher; v0.14: 7.0 or higher (e.g. V100)
    ("V100 is too old for vLLM", "vllm", "v100-sxm2-32gb", "fp16", "fp16", "fp16", "no", None),
    ("V100 runs in vLLM 0.14", "vllm-legacy", "v100-sxm2-32gb", "fp16", "fp16", "fp16", "yes", "fp16"),
    # vllm quantization table: FP8 W8A8 on AMD GPUs; MI300 holds e4m3fnuz
    ("fp8 on MI300X is computed", "vllm", "mi300x", "fp8", "fp8", "fp8", "yes", "fp8"),
    # docs/features/quantization/quark.md: MXFP4 simulated on MI325, MI300 and MI250
    ("mxfp4 on MI325X is stored only", "vllm", "mi325x", "mxfp4", "mxfp4", "bf16", "weights_only", "bf16"),
    ("mxfp4 on MI355X is computed", "vllm", "mi355x", "mxfp4", "mxfp4", "fp8", "yes", "fp4"),
    # TensorRT-LLM docs/source/features/quantization.md, hardware support matrix
    ("TensorRT-LLM has no fp8 on Ampere", "trtllm", "a100-sxm4-80gb", "fp8", "fp8", "bf16", "no", None),
    ("TensorRT-LLM: fp8 cache on Ampere", "trtllm", "a100-sxm4-80gb", "int4", "bf16", "fp8", "weights_only", "bf16"),
    ("TensorRT-LLM has no nvfp4 on Hopper", "trtllm", "h100-sxm5-80gb", "nvfp4", "fp4", "bf16", "no", None),
    ("TensorRT-LLM W4A8 on Hopper", "trtllm", "h100-sxm5-80gb", "int4", "fp8", "fp8", "yes", "fp8"),
    ("TensorRT-LLM has no AWQ on Blackwell", "trtllm", "b200-sxm", "int4", "bf16", "bf16", "no", None),
    # SGLang quantization.md: petit_nvfp4 on MI300X; modelopt_fp4 on SM100+
    ("SGLang nvfp4 on MI300X is stored only", "sglang", "mi300x", "nvfp4", "fp4", "fp8", "weights_only", "bf16"),
    # tpu-inference docs/includes/quantization.md: INT8 W8A8 on v5, v6; FP8 on v7
    ("TPU v5e int8", "vllm-tpu", "tpu-v5e", "int8", "int8", "bf16", "yes", "int8"),
    ("TPU v5e has no fp8", "vllm-tpu", "tpu-v5e", "fp8", "fp8", "bf16", "no", None),
    ("TPU v7x fp8", "vllm-tpu", "tpu-v7x", "fp8", "fp8", "bf16", "yes", "fp8"),
    # vllm-gaudi supported_features.md: FP8 model and KV cache quantization with INC
    ("Gaudi2 fp8", "vllm-gaudi", "gaudi2", "fp8", "fp8", "fp8", "yes", "fp8"),
    # Neuron data types and error EVRF051: e4m3 on Trainium2, e4m3fn from Trainium3
    ("Trainium2 fp8", "neuronx", "trainium2", "fp8", "fp8", "bf16", "yes", "fp8"),
    # mlx.core.quantize: affine 2 to 8 bits
    ("MLX 4 bits", "mlx", "m4-max", "int4", "fp16", "fp16", "weights_only", "fp16"),
    ("no fp8 in MLX", "mlx", "m4-max", "fp8", "fp8", "fp16", "no", None),
    # llama.cpp README: 1.5 to 8 bit integer quantization; AVX, AMX and NEON
    ("Q4_K_M on a CPU", "llama.cpp", "epyc-9654", "Q4_K_M", "fp16", "q8_0", "weights_only", "fp32"),
    ("Q4_K_M on Apple", "llama.cpp", "m1", "q4_k_m", "fp16", "fp16", "weights_only", "fp16"),
    ("no fp8 cache in llama.cpp", "llama.cpp", "rtx-4090", "q4_k_m", "fp16", "fp8", "no", None),
]


@pytest.mark.parametrize(
    ("runtime", "chip", "weights", "activations", "cache", "state", "compute"),
    [cell[1:] for cell in CELLS],
    ids=[cell[0] for cell in CELLS],
)
def test_a_cited_cell_of_the_support_matrix(
    runtime: str, chip: str, weights: str, activations: str, cache: str, state: str, compute: str | None
) -> None:
    found = get_runtime(runtime).supports(get_chip(chip), weights, activations, cache)
    assert (found.state, found.compute) == (state, compute), found.reason
    assert found.reason
    assert found.provenance.sources
    assert bool(found) == (state != "no")


@pytest.mark.parametrize("chip", [c.id for c in CHIPS if c.rentable])
def test_every_rentable_chip_has_a_runtime_or_a_reason_why_not(chip: str) -> None:
    found = runtimes_for(get_chip(chip))
    assert found or "no serving software is known" in get_chip(chip).unavailable
    if found and found[0].access != "public":
        assert found[0].note


def test_chips_without_a_public_runtime_say_so() -> None:
    closed = {c.id: found[0].id for c in CHIPS if (found := runtimes_for(c)) and found[0].access != "public"}
    assert closed == {
        "groq-lpu1": "groq-cloud",
        "wse2-cs2": "cerebras-inference",
        "wse3-cs3": "cerebras-inference",
        "sn30": "sambanova",
        "sn40l": "sambanova",
        "tpu-v1": "google-internal",
    }


def test_announced_chips_have_none_and_groups_name_only_chips_that_exist() -> None:
    announced = [c for c in CHIPS if not c.rentable]
    assert announced
    assert not any(runtimes_for(c) for c in announced)
    listed = RUNTIMES[0].listed_chips
    assert listed == {c.id for c in CHIPS if runtimes_for(c) and not c.runs_as}


@pytest.mark.parametrize(
    ("chip", "first"),
    [
        ("h100-sxm5-80gb", "vllm"),
        ("rtx-4090", "vllm"),
        ("mi300x", "vllm"),
        ("v100-sxm2-16gb", "vllm-legacy"),
        ("tpu-v6e", "vllm-tpu"),
        ("trainium2", "neuronx"),
        ("gaudi3", "vllm-gaudi"),
        ("m3-max", "mlx"),
        ("xeon-6980p", "vllm-cpu"),
        ("igpu-radeon-780m", "llama.cpp"),
    ],
)
def test_the_best_default_stands_first(chip: str, first: str) -> None:
    assert runtimes_for(get_chip(chip))[0].id == first


@pytest.mark.parametrize("runtime", RUNTIMES, ids=lambda r: r.id)
def test_every_figure_has_a_grade_and_a_source_unless_it_is_assumed(runtime: Runtime) -> None:
    for figure in (*FIGURES, "architectures", "features"):
        assert runtime.provenance(figure).sources or runtime.provenance(figure).grade == "assumed", figure
    for tier in runtime.tiers:
        assert set(tier.own) == set(tier.changes)
        assert all(p.sources or p.grade == "assumed" for p in tier.own.values())
    assert all(rule.provenance.sources or rule.provenance.grade == "assumed" for rule in runtime.rules)
    for source in {s for rule in runtime.rules for s in rule.provenance.sources}:
        if source.date is None:
            assert source.ref.startswith("general knowledge")
        else:
            assert "2015" <= source.date <= "2026-11-23"


@pytest.mark.parametrize("runtime", RUNTIMES, ids=lambda r: r.id)
def test_no_chip_stands_in_two_rows_of_a_runtime(runtime: Runtime) -> None:
    seen = Counter(chip for rule in runtime.rules for chip in rule.chips)
    assert not [chip for chip, count in seen.items() if count > 1]


@pytest.mark.parametrize("runtime", RUNTIMES, ids=lambda r: r.id)
def test_policies_agree_with_each_other(runtime: Runtime) -> None:
    for chip in CHIPS:
        p = runtime.policies_on(chip)
        assert (p.kv_reservation != "growing") == (p.kv_reserved_share == 1.0)
        assert p.workspace == "profiled" or p.reserved_bytes > 0
        assert p.kv_format == "model" or p.kv_format in runtime.formats
        assert p.memory_base == "free_before_load" or p.reserved_bytes == 0 or runtime.id == "llama.cpp"


def test_formats_are_those_of_the_workload_and_gguf() -> None:
    formats = RUNTIMES[0].formats
    # mixes and files of local runtimes are made by label
    assert {name for name, kind in formats.items() if kind not in ("gguf", "mlx", "exl")} == {
        name for name in FORMATS if formats.get(name) != "gguf"
    }


def test_native_formats_of_8_and_4_bits_are_peaks_that_the_chip_has() -> None:
    # else they would be priced at a peak that does not exist; the block format of Tenstorrent stands for fp8
    missing = {
        (runtime.id, chip.id, kind)
        for runtime in RUNTIMES
        for chip in CHIPS
        if (rule := runtime.rule(chip)) is not None
        for _, kind in rule.native
        if kind in ("fp8", "fp4") and chip.matrix and kind not in chip.matrix
    }
    assert missing == set()


def test_vllm_takes_a_larger_token_budget_on_large_devices_but_not_on_a100() -> None:
    vllm = get_runtime("vllm")
    budget = {
        c: vllm.policies_on(get_chip(c)).max_batched_tokens for c in ("l4", "a100-sxm4-80gb", "h200-nvl", "mi300x")
    }
    assert budget == {"l4": 2048, "a100-sxm4-80gb": 2048, "h200-nvl": 8192, "mi300x": 16384}
    assert vllm.provenance("max_batched_tokens", get_chip("mi300x")).note == "since v0.28"


def test_the_three_meanings_of_a_memory_share() -> None:
    bases = {name: get_runtime(name).policies.memory_base for name in ("vllm", "sglang", "trtllm")}
    assert bases == {"vllm": "total", "sglang": "free_before_load", "trtllm": "free_after_load"}


def test_llama_70b_in_bf16_just_fits_two_a100_80gb_under_vllm() -> None:
    p: Policies = get_runtime("vllm").policies_on(get_chip("a100-sxm4-80gb"))
    total = 79.25 * GIB  # what the driver reports
    weights = 70.6e9 * 2 / 2
    cache = p.memory_share * total - weights - p.workspace_bytes - p.graph_bytes
    assert p.context_bytes + p.collective_bytes < (1 - p.memory_share) * total
    assert 4 * GIB < cache < 6 * GIB
    assert 25_000 < 2 * cache / 327_680 < 45_000


def test_an_architecture_that_was_not_read_is_unknown_not_no() -> None:
    found = get_runtime("vllm").supports(get_chip("h100-sxm5-80gb"), "bf16", architecture="brand_new")
    assert (found.state, found.compute) == ("unknown", "bf16")
    assert "brand_new" in found.reason
    assert not found


def test_a_chip_that_a_runtime_does_not_list_is_no() -> None:
    vllm = get_runtime("vllm")
    own = dataclasses.replace(get_chip("h100-sxm5-80gb"), id="my-chip")
    assert vllm.supports(own, "bf16").state == "no"
    assert vllm.supports(dataclasses.replace(own, like="h100-sxm5-80gb"), "bf16").state == "yes"
    assert vllm.supports(get_chip("tpu-v5e"), "bf16").state == "no"
    assert runtimes_for(own) == ()


def test_unknown_names() -> None:
    with pytest.raises(UnknownNameError, match="did you mean vllm"):
        get_runtime("vlm")
    chip = get_chip("h100-sxm5-80gb")
    for arguments in (("fp88",), ("fp8", "fp88"), ("fp8", "fp8", "fp88")):
        with pytest.raises(UnknownNameError, match="number format"):
            get_runtime("vllm").supports(chip, *arguments)
    with pytest.raises(UnknownNameError, match="memory_share"):
        get_runtime("vllm").provenance("memory_shares")


FIGURE_LINES = "\n".join(
    f"{name} = {value}"
    for name, value in {
        "memory_base": '"total"',
        "memory_share": "0.9",
        **dict.fromkeys(("reserved_bytes", "context_bytes", "collective_bytes", "graph_bytes"), '"1 GiB"'),
        "workspace": '"profiled"',
        "workspace_bytes": '"1 GiB"',
        "kv_block_tokens": "16",
        "kv_reservation": '"growing"',
        "kv_reserved_share": "0.5",
        "kv_format": '"model"',
        "max_batched_tokens": "2048",
        "max_sequences": "256",
        "prefill": '"mixed"',
    }.items()
)
GOOD = f"""
[formats]
bf16 = "bf16"
fp8 = "fp8"
[sets]
half = ["bf16"]
[group]
hopper = ["h100-sxm5-80gb"]
[source.page]
ref = "a page"
date = "2026-11-21"
[preset]
[software.mine]
name = "Mine"
version = "1"
source = "page"
grade = "datasheet"
[software.mine.serves]
access = "public"
[software.mine.serves.policies]
{FIGURE_LINES}
[software.mine.serves.features]
is = ["tp"]
[software.mine.serves.architectures]
is = ["llama"]
[[software.mine.serves.on]]
chips = ["hopper"]
native = ["@half", "fp8"]
kv = ["bf16"]
"""


def test_a_good_file_is_read() -> None:
    mine = SoftwareTable(GOOD, "mine.toml").able(Runtime)["mine"]
    assert mine.policies.graph_bytes == GIB
    assert mine.supports(get_chip("h100-sxm5-80gb"), "bf16", architecture="llama").state == "yes"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[formats]", "[formats", "not TOML"),
        ("memory_share = 0.9", "memory_shar = 0.9", "did you mean memory_share"),
        ("memory_share = 0.9", "", "key 'memory_share' is missing"),
        ("memory_share = 0.9", "memory_share = 1.5", "is no share"),
        ("memory_share = 0.9", 'memory_share = "0.9"', "expected a number"),
        ("memory_share = 0.9", "memory_share = true", "expected a number"),
        ("max_sequences = 256", "max_sequences = 0", "is not a count"),
        ("max_sequences = 256", "max_sequences = 1.5", "is not a count"),
        ('graph_bytes = "1 GiB"', 'graph_bytes = "1 GiBB"', "cannot read"),
        ('graph_bytes = "1 GiB"', "graph_bytes = 1", "expected text"),
        ('prefill = "mixed"', 'prefill = "mix"', "did you mean mixed"),
        ('prefill = "mixed"', 'prefill = { is = "mixed", sourc = "page" }', "did you mean source"),
        ('prefill = "mixed"', 'prefill = { is = "mixed", source = "pag" }', "did you mean page"),
        ('prefill = "mixed"', 'prefill = { is = "mixed", grade = "guess" }', "unknown value 'guess'"),
        ('access = "public"', 'access = "publik"', "did you mean public"),
        ('is = ["tp"]', 'is = ["tensor"]', "unknown value 'tensor'"),
        ('is = ["llama"]', 'is = "llama"', "expected a list"),
        ('chips = ["hopper"]', 'chips = ["hoper"]', "did you mean hopper"),
        ('chips = ["hopper"]', "", "key 'chips' is missing"),
        ('"@half", "fp8"', '"@halves", "fp8"', "did you mean half"),
        ('"@half", "fp8"', '"@half", "fp9"', "did you mean fp8"),
        ('native = ["@half", "fp8"]', "native = []", "say why in note"),
        ('half = ["bf16"]', 'half = ["bf17"]', "did you mean bf16"),
        ("[preset]", "[presets]", "did you mean preset"),
        ("[preset]", "[preset.a]\nmemory_shares = 1.0", "did you mean memory_share"),
        ('kv = ["bf16"]', 'kv = ["bf16"]\nmixed = ["fp8"]', "unknown value ''"),
        (
            'kv = ["bf16"]',
            'kv = ["bf16"]\n[[software.mine.serves.tier]]\nfrom_byte = "1 GiB"',
            "did you mean from_bytes",
        ),
    ],
)
def test_a_bad_file_is_refused_with_the_place_and_the_nearest_key(old: str, new: str, message: str) -> None:
    assert GOOD.count(old) >= 1
    with pytest.raises(UsageError, match=message):
        SoftwareTable(GOOD.replace(old, new, 1), "mine.toml").able(Runtime)


def test_loading_pulls_in_nothing_heavy() -> None:
    code = (
        "import sys; from chipwise.catalog.runtime_spec import Runtime;"
        "from chipwise.catalog.software import all_software; all_software(Runtime);"
        "print([m for m in ('pydantic', 'rich', 'cyclopts', 'chipwise.workload') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("operator", "runtime", "chip", "dtype", "library"),
    [
        ("attention", "vllm", "h100-sxm5-80gb", "", "fa3"),
        ("attention", "vllm-legacy", "v100-sxm2-16gb", "", "fa2"),
        ("attention", "sglang", "b200-sxm", "", "trtllm_mha"),
        ("attention", "sglang", "rtx-5090", "", "flashinfer"),
        ("attention", "trtllm", "h100-sxm5-80gb", "", "trtllm"),
        ("attention", "llama.cpp", "rtx-4090", "", ""),
        ("latent_attention", "vllm", "gb300-nvl72", "", "trtllm_mla"),
        ("latent_attention", "sglang", "h200-sxm-141gb", "", "fa2"),
        ("latent_prompt", "sglang", "h200-sxm-141gb", "", "fa3"),
        ("latent_prompt", "sglang", "b200-sxm", "", ""),
        ("experts", "vllm", "mi300x", "b16", "fmoe"),
        ("experts", "sglang", "b200-sxm", "int4_wo", "trtllm"),
        ("experts", "vllm", "b200-sxm", "int4_wo", "marlin"),
        ("experts", "any", "h100-sxm5-80gb", "w4a16", "triton"),
        ("experts", "any", "a100-sxm4-80gb", "w4a16", "marlin"),
        ("experts", "sglang", "h100-sxm5-80gb", "fp8_block", "triton"),
        ("experts", "sglang", "h100-sxm5-80gb", "fp8", "cutlass_sm90"),
        ("experts", "vllm", "h100-sxm5-80gb", "w4a16", "triton_kernels"),
        ("all_reduce", "vllm-legacy", "v100-sxm2-16gb", "", "vLLM_custom_graph"),
        ("all_reduce", "llama.cpp", "rtx-4090", "", ""),
    ],
)
def test_whose_kernels_run_an_operator(operator: Operator, runtime: str, chip: str, dtype: str, library: str) -> None:
    assert kernel_library(operator, runtime, get_chip(chip).generation, dtype) == library


def test_rows_of_kernels_name_generations_of_the_catalogue() -> None:
    table = tomllib.loads(shipped_text("catalog/data/software.toml"))
    named = {g for row in table["kernel"] for g in row.get("generations", ())}
    assert named
    assert named <= {chip.generation for chip in load_chips().values()}


def test_kernels_of_older_software() -> None:
    blackwell = get_chip("b200-sxm").generation
    assert kernel_library("experts", "trtllm", blackwell, "nvfp4", software="2025-09") == "cutlass_sm100"
    assert kernel_library("experts", "trtllm", blackwell, "nvfp4", software="v5.1") == "cutlass_sm100"
    assert kernel_library("experts", "trtllm", blackwell, "nvfp4", software="2025-10") == "trtllm"
    assert kernel_library("experts", "trtllm", blackwell, "nvfp4") == "trtllm"
    assert (kernel_era("2025-10"), kernel_era("2025-12-11")) == ("2025-11", "2025-12")
    assert kernel_era("") == kernel_era("2027-01") == ""


@pytest.mark.parametrize(
    ("backend", "month", "library"),
    [
        ("cuda", "2025-08", "host_sorted"),
        ("sycl", "2026-04", "single"),
        ("sycl", "2026-05", "single_prompts_unfused"),
        ("sycl", "", "single_prompts"),
    ],
)
def test_experts_of_backends(backend: str, month: str, library: str) -> None:
    pascal = get_chip("gtx-1080-ti").generation
    assert kernel_library("experts", "llama.cpp", pascal, software=month, backend=backend) == library
    assert kernel_library("experts", "llama.cpp", pascal, software=month, backend="vulkan") != library


def test_passes_with_prompts_are_captured_in_pieces_where_software_does_so() -> None:
    cdna, hopper = get_chip("mi300x").generation, get_chip("h100").generation
    assert kernel_library("prompt_pass", "sglang", hopper, software="2026-03") == "eager"
    assert kernel_library("prompt_pass", "sglang", hopper, software="2026-04") == "pieces"
    assert kernel_library("prompt_pass", "sglang", cdna) == "eager"
    assert kernel_library("prompt_pass", "vllm", hopper) == ""


def test_passes_that_decode_are_captured_where_and_since_the_engine_does_so() -> None:
    ada, turing, pascal = (get_chip(c).generation for c in ("rtx-4090", "rtx-2080-ti", "gtx-1080-ti"))
    assert kernel_library("decode_pass", "llama.cpp", ada, software="2024-06") == "eager"
    assert kernel_library("decode_pass", "llama.cpp", ada, software="2024-07") == ""
    assert kernel_library("decode_pass", "llamafile", ada, software="2026-08") == "eager"
    assert kernel_library("decode_pass", "ollama", turing, software="2026-07") == "eager"
    assert kernel_library("decode_pass", "ollama", turing) == ""
    assert kernel_library("decode_pass", "llamafile", pascal) == "eager"
    assert kernel_library("decode_pass", "llama.cpp", get_chip("m1-max").generation, software="2023-01") == ""


def test_shells_are_taken_only_where_they_are_named() -> None:
    chip = get_chip("rtx-4090")
    assert not {"ollama", "llamafile"} & {r.id for r in runtimes_for(chip)}
    ollama, plain = (get_runtime(name).policies_on(chip) for name in ("ollama", "llama.cpp"))
    assert (ollama.tower, plain.tower) == ("always", "asked")  # its files hold what sees
    assert dataclasses.replace(ollama, tower="asked") == plain
    assert get_runtime("ollama").rule(chip) is not None


def test_whose_experts_run_follows_the_model() -> None:
    """SGLang runs experts of some models by the library that is fastest on a chip, those of others by Triton."""
    blackwell, cdna = (get_chip(name).generation for name in ("b200-sxm", "mi300x"))
    for generation, dtype, architecture, library in (
        (blackwell, "fp8_block", "deepseek_v3", "trtllm"),
        (blackwell, "fp8_block", "qwen3_moe", "trtllm"),
        (blackwell, "b16", "qwen3_moe", "triton"),
        (blackwell, "fp8_block", "minimax_m2", "triton"),
        (cdna, "fp8_block", "deepseek_v3", "fmoe"),
        (cdna, "fp8_block", "minimax_m2", "triton"),
    ):
        assert kernel_library("experts", "sglang", generation, dtype, architecture=architecture) == library
    assert kernel_library("experts", "vllm", blackwell, "fp8_block", architecture="minimax_m2") == "trtllm"


def test_what_makers_do_not_vouch_for_is_said() -> None:
    """vLLM's plugin for TPUs recommends three generations and some families."""
    plugin, vllm = get_runtime("vllm-tpu"), get_runtime("vllm")
    beyond, early = f"glm4_moe models under {plugin.name}", f"{plugin.name} on tpu-v5p"
    assert plugin.untested(get_chip("tpu-v6e"), "qwen3") == ()
    assert plugin.untested(get_chip("tpu-v5p"), "qwen3") == (early,)
    assert plugin.untested(get_chip("tpu-v6e"), "glm4_moe") == (beyond,)
    assert plugin.untested(get_chip("tpu-v5p"), "glm4_moe") == (beyond, early)
    # its list was read in part
    assert vllm.untested(get_chip("h100-sxm5-80gb"), "no_such_model") == ()
