"""Names as people type them."""

from __future__ import annotations

import pytest

from chipwise.api.loaded import load
from chipwise.catalog import networks
from chipwise.catalog.chips import get_chip
from chipwise.catalog.configs import find_config, known_names, of_family
from chipwise.catalog.names import holding
from chipwise.catalog.snapshot import Snapshot, use
from chipwise.catalog.system import counted_chip
from chipwise.errors import UnknownNameError, UsageError


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("llama3.1:8b", "meta-llama/Llama-3.1-8B-Instruct"),
        ("llama3.1:8b-instruct-q4_K_M", "meta-llama/Llama-3.1-8B-Instruct"),
        ("llama3.2", "meta-llama/Llama-3.2-3B-Instruct"),
        ("library/qwen3:30b", "Qwen/Qwen3-30B-A3B"),
        ("deepseek-r1:14b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B"),
        ("Qwen 3 30B A3B", "Qwen/Qwen3-30B-A3B"),
        ("30B Qwen3 A3B", "Qwen/Qwen3-30B-A3B"),
        ("qwen2.5-coder:7b", "Qwen/Qwen2.5-Coder-7B-Instruct"),
        ("mlx-community/Qwen3-14B-4bit", "Qwen/Qwen3-14B"),
        ("lmstudio-community/LFM2-1.2B-MLX-8bit", "LiquidAI/LFM2-1.2B"),
        ("hf.co/Qwen/Qwen3-32B", "Qwen/Qwen3-32B"),
        ("gemma-3-27b", "google/gemma-3-27b-it"),
        ("Jamba-1.5-Mini", "ai21labs/AI21-Jamba-Mini-1.5"),
        ("DeepSeek V3.2", "deepseek-ai/DeepSeek-V3.2"),
        ("DeepSeek-V3.2 671B", "deepseek-ai/DeepSeek-V3.2"),
    ],
)
def test_a_name_means_the_published_model(typed: str, name: str) -> None:
    assert find_config(typed).name == name


@pytest.mark.parametrize(
    "typed",
    [
        "Llama 4",  # two sizes
        "llama-70b",  # four versions
        "Gemma 3",
        "Qwen3-VL",
        "someone/Qwen3-8B",  # a copy of another organisation, perhaps changed
        "Qwen3-8B-medical",  # a tuned model, perhaps with other dimensions
        "qwen3:9b",
    ],
)
def test_a_name_that_means_several_or_another_is_refused_with_those_near(typed: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_config(typed)
    assert caught.value.nearest
    assert "did you mean" in str(caught.value)


def test_what_is_no_language_model_is_called_by_its_kind() -> None:
    with pytest.raises(UsageError, match=r"an image generator.*chipwise plan flux-dev"):
        find_config("FLUX.1-dev")


def test_how_a_name_was_read_is_said() -> None:
    assert find_config("Qwen/Qwen3-14B").notes == ()
    (note,) = find_config("mlx-community/Qwen3-14B-4bit").notes
    assert "is read as Qwen/Qwen3-14B" in note
    assert "'4bit' is left to --precision" in note


def test_sizes_are_searched_as_whole_words() -> None:
    found = holding("llama 8b", known_names())
    assert "meta-llama/Llama-3.1-8B" in found
    assert not any("18B" in name or "38B" in name for name in found)
    assert "deepseek-ai/DeepSeek-V3" in holding("deepseek 671b", known_names())
    assert all("fp8" in name.lower() for name in holding("qwen3 fp8", known_names()))


def test_an_answer_holds_the_line_of_its_model_alone() -> None:
    with use(Snapshot(read={})) as snapshot:
        first = find_config("LiquidAI/LFM2-1.2B")
    assert snapshot.read is not None
    held = {name: content for name, content in snapshot.read.items() if "more_models" in name}
    assert sum(map(len, held.values())) < 40_000
    with use(Snapshot(given=held)):
        assert find_config("LiquidAI/LFM2-1.2B") == first


def test_a_size_alone_is_a_decoder_of_that_size_and_says_so() -> None:
    config = find_config("14B")
    assert config.data["model_type"] == "transformer"
    assert "transformer:layers=39,hidden=4992" in config.notes[0]


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("wan 2.2 t2v", "wan2.2-t2v-a14b"),
        ("t2v wan2.2 14b", "wan2.2-t2v-a14b"),
        ("wan 2.2 text to video", "wan2.2-t2v-a14b"),
        ("wan 2.2 i2v", "wan2.2-i2v-a14b"),
        ("Wan-AI/Wan2.2-TI2V-5B", "wan2.2-ti2v-5b"),
        ("stable diffusion xl 1.0 base", "sdxl"),
        ("stabilityai/stable-diffusion-xl-base-1.0", "sdxl"),
        ("stability ai sdxl", "sdxl"),
        ("turbo sdxl", "sdxl-turbo"),
        ("sd 3.5 medium", "sd3.5-medium"),
        ("stable diffusion v1.5", "sd1.5"),
        ("flux dev", "flux-dev"),
        ("black forest labs flux.1 schnell", "flux-schnell"),
        ("flux 2 dev", "flux.2-dev"),
        ("tencent hunyuan video", "hunyuanvideo"),
        ("ltx", "ltx-video"),
        ("cog video x 5b", "cogvideox-5b"),
        ("genmo mochi 1", "mochi-1"),
        ("openai whisper large-v3 turbo", "whisper-large-v3-turbo"),
        ("large v3 whisper", "whisper-large-v3"),
        ("resnet 50", "resnet50"),
        ("bert large", "bert-large"),
        ("ViT-L/16", "vit_large_patch16_224"),
        ("vit l 16", "vit_large_patch16_224"),
        ("clip l14", "clip-vit-large-patch14"),
        ("sam 2", "sam2.1_hiera_large"),
        ("meta sam 2.1 tiny", "sam2.1_hiera_tiny"),
        ("yolo v8 x", "yolov8x"),
        ("sdxl vae decoder", "sdxl"),
        ("stable diffusion xl 1.0 base vae decoder", "sdxl"),
    ],
)
def test_a_network_is_found_as_people_type_it(typed: str, name: str) -> None:
    assert networks.find(typed).entry.name == name
    assert networks.is_built_in(typed)


@pytest.mark.parametrize(
    ("typed", "fit"),
    [
        ("wan t2v", {"wan2.1-t2v-1.3b", "wan2.1-t2v-14b", "wan2.2-t2v-a14b"}),
        ("cogvideox", {"cogvideox-2b", "cogvideox-5b", "cogvideox1.5-5b"}),
        ("swin base", {"swin_base_patch4_window7_224", "swin_base_patch4_window12_384"}),
        ("yolov8", {f"yolov8{size}" for size in "nsmlx"}),
    ],
)
def test_a_name_of_several_networks_lists_just_those(typed: str, fit: set[str]) -> None:
    with pytest.raises(UnknownNameError) as caught:
        networks.find(typed)
    assert fit <= set(caught.value.nearest)
    assert len(caught.value.nearest) <= len(fit) + 1
    assert not networks.is_built_in(typed)


@pytest.mark.parametrize(
    "typed",
    [
        "UNet",  # a picture's, not the volume's
        "sdxl medical",
        "hunyuan video 2.5",
        "tencent/HunyuanVideo-Foley",
        "flux dev lora",
        "wan 2.3 t2v",
        "BAAI/bge-large-en",  # of the language models, two versions before
        "qwen3 8b",
        "mistral 7b instruct",
        "t2v",
        "large",
        "model.py:build",
    ],
)
def test_another_network_is_never_taken_for_one_that_is_known(typed: str) -> None:
    assert not networks.is_built_in(typed)


def test_every_network_is_found_by_each_of_its_names() -> None:
    for entry in networks.entries().values():
        for name in entry.called:
            assert networks.find(name).entry is entry


def test_other_weights_keep_their_name() -> None:
    for name in ("BAAI/bge-reranker-v2-m3", "bge-reranker-v2-m3"):
        found = networks.find(name)
        assert (found.name, found.entry.name) == ("BAAI/bge-reranker-v2-m3", "bge-m3")
        assert found.note == "BAAI/bge-reranker-v2-m3 has the dimensions of bge-m3"
    assert networks.find("BAAI/bge-m3").name == "bge-m3"


def test_a_language_model_is_no_network() -> None:
    found = [networks.find(name) for name in known_names() if networks.is_built_in(name)]
    assert not [one for one in found if one.note and not one.alike]


def test_a_name_read_otherwise_is_said_and_its_format_is_left_to_precision() -> None:
    assert networks.find("flux-dev").note == ""
    assert networks.find("dev flux fp8").note == "'dev flux fp8' is read as flux-dev; 'fp8' is left to --precision"


def test_commands_of_hints_can_be_pasted() -> None:
    with pytest.raises(UnknownNameError, match=r"evidence match 'wan 2\.9 t2v'") as caught:
        find_config("wan 2.9 t2v")
    assert "wan2.2-t2v-a14b" in caught.value.nearest


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("llama 8b", "meta-llama/Llama-3.1-8B"),
        ("llama 70b", "meta-llama/Llama-3.1-70B"),
        ("llama 405b", "meta-llama/Llama-3.1-405B"),
        ("qwen3 coder", "Qwen/Qwen3-Coder-480B-A35B-Instruct"),
    ],
)
def test_a_family_and_a_size_say_which_models_they_fit(typed: str, first: str) -> None:
    """The newest first; none is taken for granted, as the first of a family often had no version."""
    with pytest.raises(UnknownNameError, match="leaves out the size or version") as caught:
        find_config(typed)
    assert caught.value.nearest[0] == first


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("qwen 30b a3b", "Qwen/Qwen3-30B-A3B"),
        ("qwen coder 32b", "Qwen/Qwen2.5-Coder-32B"),
        ("llama 4 scout", "meta-llama/Llama-4-Scout-17B-16E"),
        ("exaone 4 32b", "LGAI-EXAONE/EXAONE-4.0-32B"),
        ("granite 3.3 8b", "ibm-granite/granite-3.3-8b-instruct"),
        ("nvidia/DeepSeek-R1-0528-NVFP4", "deepseek-ai/DeepSeek-R1-0528"),
        ("casperhansen/llama-3-70b-instruct-awq", "meta-llama/Meta-Llama-3-70B-Instruct"),
    ],
)
def test_names_that_say_enough_are_read(typed: str, name: str) -> None:
    assert find_config(typed).name == name


@pytest.mark.parametrize("typed", ["gpt-4o", "chatgpt", "claude sonnet 4", "gemini 2.5 pro", "o3"])
def test_models_that_nobody_published_are_said_to_be_so(typed: str) -> None:
    with pytest.raises(UnknownNameError, match="publishes neither its weights nor its dimensions"):
        find_config(typed)


@pytest.mark.parametrize("typed", ["gpt-oss", "gpt2", "gpt-j", "gpt-neox-20b", "grok-1"])
def test_open_models_of_such_names_are_found(typed: str) -> None:
    find_config(typed)


@pytest.mark.parametrize("series", ["p5", "p6"])
def test_a_series_of_machines_is_no_chip_that_has_its_letters(series: str) -> None:
    with pytest.raises(UnknownNameError, match="machine for rent"):
        get_chip(series)


@pytest.mark.parametrize(("name", "count"), [("dgx h100", 8), ("hgx-b200", 8), ("dgx spark", 1), ("h100", 1)])
def test_a_server_holds_its_chips(name: str, count: int) -> None:
    assert counted_chip(name, get_chip)[1] == count


def test_a_format_asked_for_is_stored_as_the_published_checkpoint_stores_it() -> None:
    """NVIDIA's keeps attention and the Mamba layers before it in 16 bits, 6 of 23 (section 4 of its report)."""
    name = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B"
    asked, own = load(name, "nvfp4").graph.model, load(f"{name}-NVFP4").graph.model
    assert asked.runs == own.runs
    assert asked.name == name
    wide = [layer for count, layer in own.runs for _ in range(count) if layer.precision is not None]
    assert len(wide) == 12
    assert load(name).graph.model.precision.name == "bf16"
    # others have no list of their own: attention beside experts stays wide
    assert load("Qwen/Qwen3-30B-A3B", "nvfp4").graph.model.precision.weight("attention").bits == 16


def test_a_family_means_its_newest_models_first() -> None:
    for typed, newest in (("lama", "Llama-4"), ("llama", "Llama-4"), ("qwen", "Qwen3.5"), ("phi", "phi-4")):
        assert newest in of_family(typed)[0], typed
    assert of_family("llama3") == ()
    assert of_family("xyz") == ()
