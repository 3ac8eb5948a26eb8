"""Networks other than language models: counts as published, sizes by hand, settings and their errors."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chipwise.catalog.configs import find_config
from chipwise.catalog.networks import entries
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError
from chipwise.workload.backward import backward
from chipwise.workload.load import load_model
from chipwise.workload.media import from_macs, from_parts, names, pipeline
from chipwise.workload.media.assemble import TASKS
from chipwise.workload.media.facts import build, part
from chipwise.workload.media.layers import LayerBlock, Layers, get_precision, join, shrunk
from chipwise.workload.media.parts import classes, read_part
from chipwise.workload.media.tower import picture
from chipwise.workload.media.unet import UNet
from chipwise.workload.media.vae import ImageVAE
from chipwise.workload.media.written import family
from chipwise.workload.program import Program, Stage

LAYERS = Layers()
M = 1e6

# Millions of parameters. Models: num_parameters of the published checkpoint (model cards, or the sum of its tensors).
PARAMETERS = {
    "embeddinggemma-300m": 302.863,
    "segformer-b1": 13.716,
    "segformer-b3": 47.338,
    "segformer-b5": 84.709,
    "aimv2-large": 309.198,
    "internvit-300m": 304.012,
    "openclip-bigg": 1844.909,
    "metaclip2-huge": 630.766,
    "distil-small.en": 166.0,
    "distil-medium.en": 394.4,
    "bert-base": 109.482,
    "bert-large": 335.142,
    "roberta-base": 124.646,
    "distilbert-base": 66.363,
    "mpnet-base": 109.486,
    "minilm-l6": 22.713,
    "albert-base-v2": 11.684,
    "modernbert-base": 149.015,
    "modernbert-large": 394.78,
    "bge-m3": 567.755,
    "bart-large": 406.29,
    "t5-3b": 2851.598336,
    "t5-small": 60.506624,
    "t5-base": 222.903552,
    "t5-large": 737.668096,
    "t5-11b": 11307.321344,
    "flan-t5-small": 76.961152,
    "flan-t5-base": 247.577856,
    "flan-t5-large": 783.15008,
    "flan-t5-xl": 2849.757184,
    "flan-t5-xxl": 11135.332352,
    "mt5-small": 300.176768,
    "mt5-base": 582.40128,
    "mt5-large": 1229.581312,
    "byt5-small": 299.63776,
    "bart-base": 139.420416,
    "mbart-large-50": 610.879488,
    "nllb-200-600m": 615.073792,
    "nllb-200-1.3b": 1370.638336,
    "nllb-200-3.3b": 3344.863232,
    "m2m100-418m": 483.905536,
    "m2m100-1.2b": 1239.470080,
    "clip-vit-base-patch32": 151.277,
    "clip-vit-large-patch14": 427.617,
    "detr-resnet-50": 41.5,
    "segformer-b0-ade-512": 3.75,
    "sam_vit_b": 93.736,
    "sam_vit_h": 641.09,
    "sam2.1_hiera_tiny": 38.96,
    "sam2.1_hiera_small": 46.06,
    "sam2.1_hiera_base_plus": 80.85,
    "sam2.1_hiera_large": 224.45,
    "yolov8n": 3.1572,
    "yolov8s": 11.16656,
    "yolov8m": 25.90264,
    "yolov8l": 43.69152,
    "yolov8x": 68.229648,
    "yolo11n": 2.62408,
    "yolo11s": 9.458752,
    "yolo11m": 20.114688,
    "yolo11l": 25.37216,
    "yolo11x": 56.966176,
    "faster_rcnn_R_50_FPN": 41.7,
    "mask_rcnn_R_50_FPN": 44.4,
    "retinanet_R_50_FPN": 37.97,
    "retinanet": 37.0,
    "3d-unet": 31.2,
    "whisper-tiny": 37.76,
    "whisper-base": 72.594,
    "whisper-small": 241.735,
    "whisper-medium": 763.858,
    "whisper-large-v2": 1543.305,
    "whisper-large-v3": 1543.49,
    "whisper-large-v3-turbo": 808.88,
    "distil-whisper-large-v2": 756.22,
    "wav2vec2-base": 94.4,
    "parakeet-tdt-0.6b": 618.0,
    "parakeet-ctc-1.1b": 1062.0,
    "jasper-10x5dr": 333.0,
    "protenix-base": 368.09,
    "f5-tts": 335.8 + 13.5,
    "kokoro-82m": 81.763,
    "mms-tts-eng": 36.3,
    "triposr": 1677.2 / 4,  # bytes of the checkpoint in fp32
    "stable-audio-open-1.0": 109.628 + 1056.939 + 78.123,  # of both: transformers and diffusers 0.42
    "rtdetrv2-r18": 20.184,  # of transformers 5.24, with the frozen norms of the ResNet
    "rtdetrv2-r34": 31.442,
    "rtdetrv2-r50": 42.945,
    "rtdetrv2-r101": 76.662,
    "dinov3-vits16": 21.597,  # of transformers 5.24, as rounded in facebookresearch/dinov3
    "dinov3-vitb16": 85.66,
    "dinov3-vitl16": 303.13,
    "dinov3-vith16plus": 840.593,
    "dinov3-vit7b16": 6716.035,
    "ace-step-1.5": 595.777 + 404.789 + 201.481 + 1575.459 + 84.414,
    # of transformers 5.24, and of ultralytics 8.4 with one head
    "depth-anything-v2-small": 24.785089,
    "depth-anything-v2-base": 97.470785,
    "depth-anything-v2-large": 335.315649,
    "siglip2-so400m-patch14-384": 1136.008,
    "siglip2-base-patch16-224": 375.188,
    "colpali-v1.3": 2924.0,
    "esm2-650m": 651.041 - 1.64,  # without the pooler, which its checkpoint has not
    "esm2-15b": 15129.09 - 26.22,
    "deberta-v3-large": 434.01216,
    "xls-r-300m": 315.43872,
    "xls-r-1b": 962.497408,
    "xls-r-2b": 2159.259648,
    "parakeet-tdt-0.6b-v3": 627.0,
    "jina-embeddings-v4": 3754.623,  # of Qwen2.5-VL 3B
    "csm-1b": 1552.792 + 39.917 + 0.524,
    "higgs-audio-v2": 5377.183 + 20.25,
    "orpheus-3b-tts": 3300.867 + 12.98,
    "qwen3-tts-0.6b": 0.9e3 + 114,
    "convnextv2_large": 197.95684,
    "swinv2_large_window12to16_192to256": 196.739932,
    "realesrgan-x4plus": 16.697987,
    "realesrgan-x2plus": 16.703171,
    "realesrgan-x4plus-anime-6b": 4.467779,
    "yolo12n": 2.602288,
    "yolo12s": 9.284096,
    "yolo12m": 20.199168,
    "yolo12l": 26.450784,
    "yolo12x": 59.210784,
    "yolo26n": 2.417452,
    "yolo26s": 9.512892,
    "yolo26m": 20.43526,
    "yolo26l": 24.838716,
    "yolo26x": 55.772892,
    "yolov10n": 2.310624,
    "yolov10s": 7.27792,
    "yolov10m": 15.389968,
    "yolov10b": 19.101696,
    "yolov10l": 24.416,
    "yolov10x": 29.539408,
    "yolo11n-seg": 2.876848,
    "yolo11x-seg": 62.142656,
}

# Millions of parameters of networks, as their publications or the sums of their checkpoints' tensors say.
PARTS = {
    "omnigen2-dit": 3757.603,
    "hunyuanimage-2.1-dit": 17425.796,
    "clip-l": 123.060,
    "clip-g": 694.660,
    "t5-xxl": 4762.31,
    "umt5-xxl": 5680.91,
    "sd15-unet": 859.521,
    "sd21-unet": 865.911,
    "sdxl-unet": 2567.464,
    "sd15-controlnet": 361.279,
    "flux-dev-dit": 11901.408,
    "sd3-medium-mmdit": 2028.328,
    "sd3.5-large-mmdit": 8056.627,
    "sd3.5-medium-mmdit": 2243.17,
    "qwen-image-dit": 20430.4,
    "hunyuanvideo-dit": 12821.01,
    "wan-1.3b-dit": 1418.997,
    "wan-14b-dit": 14288.491,
    "wan-14b-i2v-dit": 16394.9,
    "wan2.2-5b-dit": 4999.787,
    "pixart-xl-dit": 611.35,
    "ltx-2b-dit": 1923.385,
    "cogvideox-2b-dit": 1693.8,
    "cogvideox-5b-dit": 5570.28,
    "mochi-dit": 10030.0,
    "sana-1.6b-dit": 1604.46,
    "chroma-dit": 8899.983,
    "hunyuanvideo1.5-dit": 8326.608,
    "ltx2-dit": 18876.175,
    "ltx2-connectors": 1431.475,
    "ltx2.3-dit": 18988.838,
    "ltx2.3-video-connector": 3172.228 - 789.039,  # both: 3,172,227,584
    "ltx-13b-dit": 13042.569,
    "wan2.1-vace-14b-dit": 17337.593,
    "wan2.2-animate-14b-dit": 17274.817,
    "wan2.2-s2v-14b-dit": 16295.756,  # by hand, from ComfyUI's modules
    "sana-sprint-dit": 1610.237,
    "flux-fill-dit": 11902.391,
    "kandinsky-5-lite-dit": 2007.703,
    "kandinsky-5-pro-dit": 19311.309,
    "sana-video-2b-dit": 2056.862,
    "musetalk-unet": 849.947,
    "seedvr2-3b-dit": 3391.476,  # by hand, from ComfyUI's modules
    "seedvr2-7b-dit": 8239.608,
}

# Millions of parameters with an encoder and a decoder.
AUTOENCODERS = {
    "sd-vae": 83.654,
    "flux-vae": 83.820,
    "wan-vae": 126.892,
    "wan2.2-vae": 704.69,
    "hunyuanvideo-vae": 246.5,
    "cogvideox-vae": 215.58,
    "ltx-vae": 419.2,
    "dc-ae": 312.25,
    "hunyuanvideo1.5-vae": 1260.634,
    "ltx2-vae": 1222.48,
    "ltx2.3-vae": 726.106,
}

# Millions of parameters and 10^9 multiply-adds (huggingface/pytorch-image-models, results/benchmark-infer-amp-*.csv).
TIMM = {
    "resnet18": (11.69, 1.82),
    "resnet34": (21.8, 3.67),
    "resnet50": (25.56, 4.11),
    "resnet101": (44.55, 7.83),
    "resnet152": (60.19, 11.56),
    "resnext50_32x4d": (25.03, 4.26),
    "efficientnet_b0": (5.29, 0.4),
    "efficientnet_b4": (19.34, 3.13),
    "tf_efficientnetv2_s": (21.46, 5.35),
    "tf_efficientnetv2_m": (54.14, 15.85),
    "mobilenetv2_100": (3.5, 0.31),
    "mobilenetv3_large_100": (5.48, 0.23),
    "convnext_tiny": (28.59, 4.47),
    "convnext_base": (88.59, 15.38),
    "convnext_large": (197.77, 34.4),
    "convnext_xlarge": (350.2, 60.98),
    "convnextv2_base": (88.72, 15.38),
    "vgg11": (132.86, 7.61),
    "vgg16": (138.36, 15.47),
    "vgg19": (143.67, 19.63),
    "densenet121": (7.98, 2.87),
    "regnety_032": (19.44, 3.2),
    "regnety_160": (83.59, 15.96),
    "vit_tiny_patch16_224": (5.72, 1.26),
    "vit_small_patch16_224": (22.05, 4.61),
    "vit_base_patch16_224": (86.57, 17.58),
    "vit_base_patch16_384": (86.86, 55.54),
    "vit_base_patch32_224": (88.22, 4.41),
    "vit_large_patch16_224": (304.33, 61.6),
    "vit_huge_patch14_224": (632.05, 167.4),
    "vit_large_patch14_clip_224": (304.2, 81.08),
    "vit_base_patch14_dinov2": (86.58, 151.71),
    "vit_large_patch14_dinov2": (304.37, 507.15),
    "vit_giant_patch14_dinov2": (1136.48, 1784.2),
    "vit_base_patch16_siglip_224": (92.88, 17.73),
    "vit_so400m_patch14_siglip_384": (428.23, 335.4),
    "beit_base_patch16_224": (86.53, 17.58),
    "beitv2_large_patch16_224": (304.43, 61.6),
    "swin_tiny_patch4_window7_224": (28.29, 4.51),
    "swin_base_patch4_window7_224": (87.77, 15.47),
    "swin_large_patch4_window12_384": (196.74, 104.08),
    "swinv2_base_window8_256": (87.92, 20.37),
    "swinv2_base_window16_256": (87.92, 22.02),
}


def macs(made: Program) -> float:
    """Multiply-adds as fvcore counts them: products, and two for each value that a batch norm scales."""
    ops = [(n, op) for stage in made.stages for n, op in stage.ops]
    products = sum(n * op.flops / 2 for n, op in ops if op.kind in ("gemm", "conv", "attention"))
    return float(products + sum(2 * n * op.dims["elements"] for n, op in ops if op.name == "batch_norm"))


def stages(made: Program) -> dict[str, Stage]:
    return {stage.name: stage for stage in made.stages}


@pytest.mark.parametrize(("name", "millions"), PARAMETERS.items())
def test_parameters_of_models(name: str, millions: float) -> None:
    assert pipeline(name).parameters / M == pytest.approx(millions, rel=0.005)


@pytest.mark.parametrize(("name", "millions"), PARTS.items())
def test_parameters_of_parts(name: str, millions: float) -> None:
    net = part(name)
    if hasattr(net, "unet") or isinstance(net, UNet):
        block = net.block(LAYERS, (64, 64), 77)
    elif not hasattr(net, "multiple"):
        block = net.block(LAYERS, 77)
    else:
        block = net.block(LAYERS, (3, 32, 32), 77)
    assert block.parameters / M == pytest.approx(millions, rel=0.0005)


@pytest.mark.parametrize(("name", "millions"), AUTOENCODERS.items())
def test_parameters_of_autoencoders(name: str, millions: float) -> None:
    net = part(name)
    small, large = ((3, 8, 8), (9, 128, 128)) if hasattr(net, "temporal") else ((8, 8), (128, 128))
    both = net.decode(LAYERS, small) + net.encode(LAYERS, large)
    assert both.parameters / M == pytest.approx(millions, rel=0.002)


@pytest.mark.parametrize(("name", "published"), TIMM.items())
def test_classifiers_as_timm_counts_them(name: str, published: tuple[float, float]) -> None:
    made = pipeline(name)
    assert made.parameters / M == pytest.approx(published[0], rel=0.002)
    assert macs(made) / 1e9 == pytest.approx(published[1], rel=0.03)


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("yolov8n", 8.7),
        ("yolov8m", 78.9),
        ("yolo11n", 6.5),
        ("yolo11m", 68.0),
        ("yolo11x", 194.9),
        ("rtdetrv2-r101", 259),
        ("yolo12n", 7.471),  # from here on twice the multiply-adds of ultralytics 8.4, counted
        ("yolo12x", 208.85),
        ("yolo26n", 5.48),
        ("yolo26x", 194.418),
        ("yolov10n", 6.757),
        ("yolov10x", 160.536),
        ("yolo11x-seg", 296.732),
    ],
)
def test_detectors_compute_what_their_makers_say(name: str, published: float) -> None:
    """10^9 operations of one picture of 640 x 640: ultralytics docs, yolov8 and yolo11; RT-DETR's README."""
    ops = [(n, op) for stage in pipeline(name).stages for n, op in stage.ops]
    products = sum(n * float(op.flops) for n, op in ops if op.kind in ("gemm", "conv", "attention"))
    assert products / 1e9 == pytest.approx(published, rel=0.008)


@pytest.mark.parametrize(
    ("name", "asked", "counted"),
    [
        ("depth-anything-v2-small", {}, 57.634),
        ("depth-anything-v2-large", {}, 652.109),
        ("realesrgan-x4plus", {"resolution": 256}, 1174.854),
        ("convnextv2_large", {}, 34.361),
        ("swinv2_large_window12to16_192to256", {}, 47.740),
        ("siglip2-so400m-patch14-384", {}, 361.738),
        ("esm2-650m", {}, 354.336),
        ("xls-r-300m", {"audio_s": 10.0}, 191.927),
        ("xls-r-1b", {"audio_s": 10.0}, 532.932),
    ],
)
def test_products_are_those_that_the_code_does(name: str, asked: dict[str, object], counted: float) -> None:
    """10^9 multiply-adds counted in products of transformers 5.24, timm 1.0.31 and spandrel 0.4.2."""
    ops = [(n, op) for stage in pipeline(name, **asked).stages for n, op in stage.ops]  # type: ignore[arg-type]
    products = sum(n * float(op.flops) / 2 for n, op in ops if op.kind in ("gemm", "conv", "attention"))
    assert products / 1e9 == pytest.approx(counted, rel=0.006)


def test_a_module_that_no_detector_has_is_named() -> None:
    rows = build(part("yolo11n-net").graph.__class__, {"rows": ["-1 1 Conv 64 3 2", "-1 1 Mamba 64"]}, "here")
    with pytest.raises(UsageError, match="'Mamba' is no module"):
        replace(part("yolo11n-net"), graph=rows).block(LAYERS, (640, 640))


def test_a_matrix_and_a_convolution_by_hand() -> None:
    linear = Layers(3).linear(5, 7, 11)
    assert linear.ops[0][1].flops == 2 * 3 * 5 * 7 * 11
    assert linear.parameters == 7 * 11 + 11
    assert linear.weight_bytes == 2 * linear.parameters
    assert linear.peak == 2 * 3 * 5 * (7 + 11)
    assert linear.kept == 2 * 3 * 5 * 7
    conv = Layers(2).conv((9, 8), 4, 6, 3, 2, 2)
    assert shrunk((9, 8), 2) == (5, 4)
    assert conv.ops[0][1].flops == 2 * 2 * (5 * 4) * 6 * 9 * (4 // 2)
    assert conv.parameters == 9 * 2 * 6 + 6


def test_blocks_add_up() -> None:
    one = LAYERS.linear(4, 8, 8)
    three = 3 * one
    assert three.parameters == 3 * one.parameters
    assert three.stage("x").flops == 3 * one.stage("x").flops
    assert three.peak == one.peak
    assert one.again(3).parameters == one.parameters
    assert one.beside(100).peak == one.peak + 100
    assert LayerBlock().beside(100).peak == 0
    both = join(one, one)
    assert both.stage("x").ops == ((2.0, one.ops[0][1]),)


def test_activations_of_a_vit_by_hand() -> None:
    """The most is alive at the activation: its input and output of 3,072 values, and the residual of 768."""
    (stage,) = pipeline("vit_base_patch16_224", batch=4).stages
    assert stage.activation_bytes == 4 * 197 * (2 * 3072 + 768) * 2


def test_activations_of_a_decoder_by_hand() -> None:
    """At 1,024 pixels, 256 channels are convolved to 128 beside the block's input; both sides have a copy."""
    decode = ImageVAE().decode(LAYERS, (128, 128))
    assert decode.peak == 1024**2 * 2 * (2 * (256 + 128) + 256)
    # measured: sayakpaul/diffusers-torchao, FLUX.1-dev, bf16, 1,024 pixels: 39.49 GiB at a batch of 4
    made = pipeline("flux-dev", batch=4)
    most = made.weight_bytes + max(stage.activation_bytes for stage in made.stages)
    assert most == pytest.approx(39.49 * 2**30, rel=0.02)


def test_a_step_has_two_passes_with_guidance() -> None:
    plain, guided = pipeline("sdxl", guidance=1.0), pipeline("sdxl", guidance=5.0)
    assert pipeline("sdxl", guidance=1.1).flops == guided.flops
    assert stages(guided)["denoiser"].flops == pytest.approx(2 * stages(plain)["denoiser"].flops)
    assert stages(guided)["denoiser"].calls == 50
    assert stages(guided)["vae_decode"].flops == stages(plain)["vae_decode"].flops
    distilled = pipeline("flux-dev", guidance=7.0)
    assert distilled.flops == pipeline("flux-dev", guidance=1.0).flops
    assert distilled.settings["passes"] == 1


def test_passes_of_wan_are_calls_of_their_own() -> None:
    made = stages(pipeline("wan2.1-t2v-14b", steps=20))
    assert made["denoiser"].calls == 40
    alone = stages(pipeline("wan2.1-t2v-14b", steps=20, guidance=1.0))
    assert alone["denoiser"].flops == made["denoiser"].flops


def test_cached_steps_are_not_computed_but_counted_among_the_steps() -> None:
    every, cached = pipeline("flux-dev", steps=20), pipeline("flux-dev", steps=20, cached=0.4)
    assert [s.calls for s in every.stages if s.name == "denoiser"] == [20]
    assert [s.calls for s in cached.stages if s.name == "denoiser"] == [12]
    assert cached.settings["steps"] == 20
    experts = pipeline("wan2.2-t2v-a14b", steps=40, cached=0.5)
    assert sum(s.calls for s in experts.stages if s.name.startswith("denoiser")) == 40  # two passes a step
    with pytest.raises(UsageError, match=r"a share of 0 to 0\.9"):
        pipeline("flux-dev", cached=1.0)


def test_two_experts_share_the_steps() -> None:
    made = stages(pipeline("wan2.2-t2v-a14b", steps=20, guidance=1.0))
    high, low = made["denoiser:high_noise"], made["denoiser:low_noise"]
    # noise 12 u / (1 + 11 u) falls below 0.875 at u = 0.368: 63 % of 20 steps
    assert (high.calls, low.calls) == (13, 7)
    assert high.parameters == low.parameters == 14_288_491_584


def test_tokens_of_a_video() -> None:
    """832 x 480 x 81: 52 x 30 patches in 21 latent frames, which all see each other."""
    made = stages(pipeline("wan2.1-t2v-1.3b", guidance=1.0))
    seen = [op.dims for _, op in made["denoiser"].ops if op.kind == "attention"]
    assert {(d["q"], d["kv"]) for d in seen} == {(21 * 30 * 52, 21 * 30 * 52), (21 * 30 * 52, 512)}


def test_frames_are_rounded_as_pipelines_round_them() -> None:
    made = pipeline("wan2.1", frames=80)
    assert made.settings["frames"] == 81
    assert made.assumptions == ("frames are 1 and a multiple of 4: 81 are made",)
    assert replace(made, assumptions=()) == pipeline("wan2.1", frames=81)


def test_a_chunk_sets_the_memory_of_a_clip() -> None:
    long, short = (part("wan-vae").decode(LAYERS, (n, 30, 52)) for n in (21, 2))
    assert long.peak == short.peak
    assert long.stage("x").flops > 10 * short.stage("x").flops


def test_tiles_cost_what_they_overlap() -> None:
    vae = part("hunyuanvideo-vae")
    tile = vae.decode(LAYERS, (16, 32, 32))
    wide = vae.decode(LAYERS, (16, 32, 96))  # a tile every 24 positions
    assert wide.stage("x").flops == pytest.approx(4 * tile.stage("x").flops)
    assert wide.peak == tile.peak


def test_words_of_whisper() -> None:
    made = stages(pipeline("whisper-large-v3", audio_s=60, tokens=200))
    assert made["encoder"].calls == 2
    assert made["decoder"].calls == 200
    crossed = [op.dims for _, op in made["decoder"].ops if op.kind == "attention" and op.dims["kv"] == 1500]
    assert len(crossed) == 1
    assert made["decoder"].weight_bytes > made["encoder"].weight_bytes  # the table of words is in it
    (step,) = pipeline("whisper-large-v3 decoder").stages
    assert step.calls == 1
    beams = stages(pipeline("whisper-large-v3", audio_s=60, tokens=200, beams=5))
    assert beams["decoder"].flops == pytest.approx(5 * made["decoder"].flops)
    short = stages(pipeline("whisper-large-v3", audio_s=7, tokens=20))
    assert dict(short["sound"].host) == {"sound": 30.0, "speech": 7.0}  # with what fills the window, and without


def test_words_of_a_translation() -> None:
    """The encoder reads once, keys and values of its states are made once, every word is a pass of the decoder."""
    made = stages(pipeline("nllb-200-600m", tokens=40, targets=30))
    assert {name: s.calls for name, s in made.items()} == {"encoder": 1, "cross_states": 1, "decoder": 30}
    assert made["cross_states"].flops == 12 * 2 * 40 * 1024 * 2 * 1024
    products = 12 * (4 * 1024**2 + 2 * 1024**2 + 2 * 1024 * 4096) + 1024 * 256206
    attention = 12 * 2 * 2 * 1024 * (15 + 40)
    assert made["decoder"].flops == pytest.approx(2 * products + attention, rel=1e-3)
    beams = stages(pipeline("nllb-200-600m", tokens=40, targets=30, beams=4))
    assert beams["decoder"].flops == pytest.approx(4 * made["decoder"].flops)
    assert beams["encoder"].flops == made["encoder"].flops
    assert pipeline("nllb-200-600m").settings["targets"] == 32, "a translation is as long as its source"
    whole = pipeline("t5-small", trained=True, tokens=64, targets=16)
    assert [s.name for s in whole.stages] == ["model", "optimizer"]
    with pytest.raises(UsageError, match="has no decoder: it takes no beams"):
        pipeline("bert-base", beams=4)


def test_tables_of_a_recommender() -> None:
    made = stages(pipeline("dlrm-v2", batch=1000))
    tables = made["embeddings"]
    assert tables.weight_bytes == pytest.approx(104.5e9, rel=0.01)  # "about 100 GB", mlcommons/inference
    read = tables.ops[0][1]
    assert read.weight_bytes == 1000 * (214 - 44) * 128 * 4  # 44 rows are of tables that caches hold
    assert read.activation_bytes == 1000 * 26 * 128 * 2  # one sum of each table
    bottom = 13 * 512 + 512 + 512 * 256 + 256 + 256 * 128 + 128
    top = 3456 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 512 + 512 + 512 * 256 + 256 + 256 + 1
    assert made["dense"].parameters == bottom + 3 * (2 * 3456 * 512 + 3456) + top


def test_plain_attention_multiplies_the_same_and_holds_its_scores() -> None:
    fused, plain = pipeline("bert-base"), pipeline("bert-base", attention="plain")
    assert macs(plain) == pytest.approx(macs(fused))
    assert plain.stages[0].activation_bytes >= 2 * 12 * 512 * 512 * 2
    moved = [sum(n * op.bytes for n, op in made.stages[0].ops) for made in (fused, plain)]
    assert moved[1] > 1.2 * moved[0]


def test_windows_are_all_that_scores_are_written_of() -> None:
    """Swin: 3,136 tokens see 49 each, whether scores are kept on chip or written."""
    name = "swin_tiny_patch4_window7_224"
    fused, plain = pipeline(name), pipeline(name, attention="plain")
    assert macs(plain) == pytest.approx(macs(fused))
    softmax = [op for _, op in plain.stages[0].ops if op.name == "softmax"]
    assert max(float(op.dims["elements"]) for op in softmax) == 3136 * 49 * 3


def test_biases_of_positions_are_added_to_written_scores() -> None:
    """Segment Anything: scores of 4,096 tokens and 12 heads, with their bias, and what softmax makes of them."""
    fused, plain = pipeline("sam_vit_b"), pipeline("sam_vit_b", attention="plain")
    assert fused.stages[0].activation_bytes < 3 * 12 * 4096**2 * 2 < plain.stages[0].activation_bytes


def test_fused_attention_takes_the_bias_of_positions_as_a_tensor_of_scores() -> None:
    fused, inside = pipeline("sam_vit_b"), pipeline("sam_vit_b", bias="inside")
    bias = 12 * 4096**2 * 2
    assert fused.stages[0].activation_bytes - inside.stages[0].activation_bytes > 0.9 * bias
    moved = [sum(n * op.bytes for n, op in made.stages[0].ops) for made in (fused, inside)]
    assert moved[0] - moved[1] >= 4 * 2 * bias  # four layers see all positions, written once and read once
    for name, value in (("sam_vit_b", "none"), ("resnet50", "inside")):
        with pytest.raises(UsageError, match="has no bias"):
            pipeline(name, bias=value)


def test_a_network_of_8_bits_passes_8_bits_on() -> None:
    def moved(precision: str) -> float:
        ops = pipeline("resnet50", precision=precision).stages[0].ops
        return sum(n * float(op.activation_bytes) for n, op in ops if op.kind == "conv")

    assert moved("int8-static") == pytest.approx(moved("fp16") / 2.0)
    (_, linear), *_ = Layers(3, get_precision("int8-static")).linear(5, 7, 11).ops
    assert linear.activation_bytes == 3 * 5 * (7 + 11)
    assert linear.dims["static"] == 1.0


def test_scores_that_are_sifted_are_written_in_32_bits_and_read() -> None:
    ops = pipeline("retinanet", precision="int8-static").stages[0].ops
    sifted = sum(n * float(op.bytes) for n, op in ops if op.name == "sift")
    positions = sum((-(-800 >> s)) ** 2 for s in range(3, 8))
    assert sifted == pytest.approx(8 * positions * 9 * 264, rel=0.01)
    assert not [op for _, op in pipeline("retinanet", trained=True).stages[0].ops if op.name == "sift"]


def test_a_loss_over_a_vocabulary_keeps_the_logarithms_of_its_probabilities() -> None:
    small, large = (
        pipeline("bert-base", head="mlm", tokens=n, trained=True).stages[0].activation_bytes for n in (256, 512)
    )
    bare = [pipeline("bert-base", tokens=n, trained=True).stages[0].activation_bytes for n in (256, 512)]
    grown = (large - small) - (bare[1] - bare[0])
    assert grown == pytest.approx(3 * 256 * 30522 * 2, rel=0.15)


def test_autocast_leaves_encoders_in_16_bits() -> None:
    full, cast = (stages(pipeline("wan2.1-t2v-1.3b", precision=p)) for p in ("bf16", "amp-bf16"))
    assert cast["text_encoder:umt5-xxl"].weight_bytes == full["text_encoder:umt5-xxl"].weight_bytes
    assert cast["denoiser"].weight_bytes == pytest.approx(2.0 * full["denoiser"].weight_bytes, rel=0.01)


def test_a_focal_loss_keeps_its_tensors() -> None:
    small, large = (pipeline("retinanet_R_50_FPN", batch=b, precision="fp32", trained=True) for b in (1, 2))
    scores = sum((800 >> s) * (1344 >> s) for s in range(3, 8)) * 9 * 80 * 4
    assert large.stages[0].activation_bytes - small.stages[0].activation_bytes > 10 * scores * 0.9


def test_quantised_weights_are_those_of_the_denoiser() -> None:
    full, less = stages(pipeline("flux-dev")), stages(pipeline("flux-dev", precision="fp8"))
    assert less["denoiser"].weight_bytes == pytest.approx(full["denoiser"].weight_bytes / 2, rel=0.001)
    assert less["text_encoder:t5-xxl"].weight_bytes == full["text_encoder:t5-xxl"].weight_bytes
    assert {op.compute for _, op in less["denoiser"].ops if op.kind == "gemm"} == {"fp8"}
    only = stages(pipeline("flux-dev", precision="fp8-weight-only"))["denoiser"]
    assert {op.compute for _, op in only.ops if op.kind == "gemm"} == {"bf16"}
    assert get_precision("amp-fp16").stored.bits == 32


def test_encoders_of_text_may_be_narrower_on_demand() -> None:
    few = "nf4-weight-only"
    wide, narrow = (stages(pipeline("flux-dev", precision=few, **more)) for more in ({}, {"text_precision": few}))
    assert narrow["denoiser"] == wide["denoiser"]
    text = "text_encoder:t5-xxl"
    assert narrow[text].weight_bytes < 0.35 * wide[text].weight_bytes


def test_a_decoder_that_needs_it_runs_in_fp32() -> None:
    half = stages(pipeline("sdxl", precision="fp16"))
    assert {op.compute for _, op in half["vae_decode"].ops if op.kind == "conv"} == {"fp32"}
    assert {op.compute for _, op in half["denoiser"].ops if op.kind == "conv"} == {"fp16"}
    kept = stages(pipeline("sdxl", precision="fp16", vae_precision="fp16"))
    assert {op.compute for _, op in kept["vae_decode"].ops if op.kind == "conv"} == {"fp16"}


def test_autocast_writes_the_softmax_of_written_scores_in_fp32() -> None:
    def moved(precision: str) -> float:
        found = pipeline("bert-base", precision=precision, attention="plain").stages[0].ops
        return sum(n * op.activation_bytes for n, op in found if op.name == "softmax")

    scores = 12 * 12 * 512 * 512
    assert moved("fp16") == pytest.approx(scores * (2 + 2))
    assert moved("amp-fp16") == pytest.approx(scores * (2 + 4 + 4 + 2))
    assert moved("fp32") == pytest.approx(scores * (4 + 4))


def test_a_training_step() -> None:
    plain, step = pipeline("bert-base"), pipeline("bert-base", trained=True)
    forward = {op.kind: 0.0 for _, op in plain.stages[0].ops}
    whole = dict(forward)
    for n, op in plain.stages[0].ops:
        forward[op.kind] += n * op.flops
    for n, op in step.stages[0].ops:
        whole[op.kind] += n * op.flops
    assert whole["gemm"] == pytest.approx(3 * forward["gemm"])
    assert whole["attention"] == pytest.approx(3.5 * forward["attention"])
    # gradients and two states as the weights are stored
    assert step.settings["state_bytes"] == pytest.approx((2 + 4) * step.parameters)
    sgd = pipeline("bert-base", trained=True, optimizer="sgd")
    assert sgd.settings["state_bytes"] == pytest.approx((2 + 2) * step.parameters)
    mixed = pipeline("bert-base", trained=True, precision="amp-bf16")
    assert mixed.settings["state_bytes"] == pytest.approx((4 + 8) * step.parameters, rel=1e-3)
    # a layer keeps its residual twice, q, k, v, their sum, and three times its inner tensor
    kept = 12 * 512 * (2 * 768 + 768 * 4 + 2 * 768 + 2 * 3072) * 2
    assert step.stages[0].activation_bytes == pytest.approx(kept, rel=0.1)


def test_layers_that_are_computed_again_keep_their_input() -> None:
    plain, again = (pipeline("bert-base", trained=True, recompute=r) for r in ("none", "full"))
    assert again.flops == pytest.approx(plain.flops * 4 / 3, rel=0.02)
    # eleven of twelve layers keep 512 x 768 values and not what is inside: four of 768, two of 3,072, and two norms'
    inside = (2 * 768 + 768 * 4 + 2 * 3072 - 768) * 512 * 2
    spared = plain.stages[0].activation_bytes - again.stages[0].activation_bytes
    assert spared == pytest.approx(11 * inside, rel=0.15)
    with pytest.raises(UsageError, match="none or full"):
        pipeline("bert-base", trained=True, recompute="some")


@pytest.mark.parametrize("name", ["trellis-image-large", "hunyuan3d-2"])
def test_denoisers_of_shapes_sum_gradients_over_parts(name: str) -> None:
    whole, parts = (pipeline(name, batch=4, trained=True, accumulate=n) for n in (1, 2))
    assert parts.flops == pytest.approx(whole.flops)
    assert parts.stages[0].activation_bytes == pytest.approx(whole.stages[0].activation_bytes / 2.0)


def test_gradients_are_summed_over_parts_of_a_batch() -> None:
    whole, parts = (pipeline("bert-base", batch=8, trained=True, accumulate=n) for n in (1, 4))
    assert parts.flops == pytest.approx(whole.flops)
    assert parts.stages[0].activation_bytes == pytest.approx(whole.stages[0].activation_bytes / 4.0)
    assert parts.settings["state_bytes"] == whole.settings["state_bytes"]
    # weights are updated once
    assert sum(n for n, op in parts.stages[-1].ops) == 1.0
    with pytest.raises(UsageError, match="does not divide") as refused:
        pipeline("bert-base", batch=8, trained=True, accumulate=3)
    assert refused.value.hint == "accumulate=2"


def test_what_is_frozen_has_no_backward_pass() -> None:
    block = LAYERS.linear(4, 8, 8)
    for made, count in ((block, 3), (block.frozen(), 1)):
        assert len(backward(Program("one", (made.stage("one"),))).stages[0].ops) == count


def test_only_totals_are_known() -> None:
    made = from_macs("x", 25.56, 4.11, macts_m=11.11, batch=2)
    assert made.parameters == 25_560_000
    assert macs(made) == pytest.approx(2 * 4.11e9, rel=0.03)
    (stage,) = made.stages
    products = [(n, op) for n, op in stage.ops if op.kind == "conv"]
    written = sum(n * op.dims["m"] * op.dims["n"] for n, op in products)
    assert written == pytest.approx(2 * 11.11e6, rel=0.01)
    assert sum(n * op.weight_bytes for n, op in products) == pytest.approx(2 * 25.56e6, rel=0.01)
    sound = part("mimi-decoder")  # of 125 frames
    assert 2 * sound.block(LAYERS, 125.0).ops[0][1].flops == sound.block(LAYERS, 250.0).ops[0][1].flops
    counted = part("videomae-base-net").block(LAYERS, (224, 224))
    assert sum(n for n, op in counted.ops if op.kind == "gemm") == part("videomae-base-net").products == 86
    with pytest.raises(UsageError, match="positive"):
        from_macs("x", 0, 4.11)
    with pytest.raises(UsageError, match="style"):
        from_macs("x", 1, 4.11, style="cone")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", names())
def test_every_model_is_built(name: str) -> None:
    made, double = pipeline(name), pipeline(name, batch=2)
    assert made.stages
    assert made.parameters > 0
    assert made.settings.get("steps", 1) >= 1
    assert double.flops == pytest.approx(2 * made.flops, rel=0.01)
    for stage in made.stages:
        if not stage.ops:  # what the host does has no weights
            continue
        assert stage.weight_bytes > 0 or stage.name in ("prompt", "states")  # weights that stand elsewhere
        assert stage.activation_bytes > 0
        assert all(op.flops >= 0 and op.bytes > 0 and n > 0 for n, op in stage.ops)
    step = pipeline(name, trained=True)
    assert step.trained
    assert step.flops > 0


def test_a_nickname_means_one_model() -> None:
    def plain(text: str) -> str:
        return "".join(c for c in text.lower() if c.isalnum())

    owner: dict[str, str] = {}
    for entry in entries().values():
        for name in (entry.name, *entry.names):
            assert owner.setdefault(plain(name), entry.name) == entry.name


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("FLUX.1-dev", "flux-dev"),
        ("black-forest-labs/FLUX.1-dev", "flux-dev"),
        ("stable-diffusion-xl", "sdxl"),
        ("wan-2.2-t2v-a14b", "wan2.2-t2v-a14b"),
        ("resnet", "resnet50"),
        ("bert-99.9", "bert-large"),
        ("dlrm-v2-99", "dlrm-v2"),
        ("whisper-tiny encoder", "whisper-tiny"),
        ("SDXL VAE decoder", "sdxl"),
    ],
)
def test_names(name: str, meant: str) -> None:
    assert pipeline(name).name == meant


@pytest.mark.parametrize(
    ("name", "asked", "says"),
    [
        ("flux-dev", {"resolution": 1001}, "multiples of 16.*1008x1008"),
        ("sdxl", {"resolution": "1280y720"}, "cannot be read.*1280x720"),
        ("sdxl", {"resolution": (1, 2, 3)}, "cannot be used"),
        ("sdxl", {"frames": 16}, "makes images"),
        ("sdxl", {"step": 16}, "no setting 'step'.*steps"),
        ("bert-base", {"steps": 5}, "no setting 'steps'"),
        ("sdxl", {"steps": 2.5}, "whole number"),
        ("sdxl", {"steps": True}, "cannot be used"),
        ("sdxl", {"steps": -1}, "at least 1"),
        ("sdxl", {"guidance": float("nan")}, "cannot be used"),
        ("sdxl", {"steps": {}}, "cannot be read"),
        ("sdxl", {"part": "decoder"}, "no part 'decoder'.*vae_decode"),
        ("whisper", {"part": "denoiser"}, "no part 'denoiser'.*encoder"),
        ("bert-base", {"attention": "flash"}, "fused or plain"),
        ("bert-base", {"targets": 5}, "no decoder"),
        ("bert-base", {"trained": True, "optimizer": "lion"}, "adamw"),
        ("bert-base", {"head": "tail"}, "no head"),
        ("sdxl", {"batch": 0}, "whole number of 1 to"),
        ("vit", {"resolution": 15}, "smaller than a patch"),
        ("sam", {"resolution": 1000}, "multiples of 16.*992x992"),
    ],
)
def test_errors_say_what_works(name: str, asked: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        pipeline(name, **asked)  # type: ignore[arg-type]
    assert re.search(says, str(caught.value)), str(caught.value)


def test_unknown_names() -> None:
    with pytest.raises(UnknownNameError, match="flux"):
        pipeline("flax-dev")
    with pytest.raises(UnknownNameError, match="fp8"):
        pipeline("sdxl", precision="fp7")


def test_facts_are_read_strictly() -> None:
    row = {"depths": [2, 2, 2, 2]}
    resnet = type(part("resnet50-net"))
    assert build(resnet, row, "x").depths == (2, 2, 2, 2)
    for bad, says in (
        ({}, "depths is missing"),
        ({**row, "depth": 3}, "unknown key 'depth'"),
        ({"depths": [2, "2"]}, "cannot be read"),
        ({"depths": [2, -2]}, "cannot be read"),
        ({**row, "bottleneck": 1}, "cannot be read"),
    ):
        with pytest.raises(UsageError, match=says):
            build(resnet, bad, "x")
    with pytest.raises(UnknownNameError):
        part("no such part")
    for entry in entries().values():
        assert entry.source
        build(TASKS[entry.task], entry.values, entry.name)


SDXL = {
    "unet": {
        "_class_name": "UNet2DConditionModel",
        "addition_embed_type": "text_time",
        "attention_head_dim": [5, 10, 20],
        "block_out_channels": [320, 640, 1280],
        "cross_attention_dim": 2048,
        "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
        "in_channels": 4,
        "layers_per_block": 2,
        "out_channels": 4,
        "projection_class_embeddings_input_dim": 2816,
        "sample_size": 128,
        "transformer_layers_per_block": [1, 2, 10],
    },
    "vae": {
        "_class_name": "AutoencoderKL",
        "block_out_channels": [128, 256, 512, 512],
        "latent_channels": 4,
        "layers_per_block": 2,
    },
    "text_encoder": {
        "model_type": "clip_text_model",
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_attention_heads": 12,
        "num_hidden_layers": 12,
        "projection_dim": 768,
    },
    "scheduler": {"_class_name": "EulerDiscreteScheduler"},
}


def test_a_folder_is_the_model_it_holds() -> None:
    folder, built = from_parts(SDXL, guidance=5.0), pipeline("sdxl")
    ours, theirs = stages(folder), stages(built)
    assert ours["denoiser"].ops == theirs["denoiser"].ops
    assert ours["vae_decode"].ops == theirs["vae_decode"].ops
    assert ours["denoiser"].parameters == theirs["denoiser"].parameters
    assert folder.settings["width"] == 1024
    assert "steps 50" in folder.assumptions
    assert not any("guidance" in line for line in folder.assumptions)


def test_folders_that_cannot_be_read() -> None:
    with pytest.raises(UsageError, match="no denoiser"):
        from_parts({"vae": SDXL["vae"]})
    with pytest.raises(UsageError, match="no autoencoder"):
        from_parts({"unet": SDXL["unet"]})
    with pytest.raises(UnknownNameError, match="UNet"):
        from_parts({**SDXL, "unet": {"_class_name": "UNet2DConditionModul"}})
    with pytest.raises(UsageError, match="in_channels"):
        from_parts({**SDXL, "unet": {**SDXL["unet"], "in_channels": "4"}})
    with pytest.raises(UsageError, match="down_block_types"):
        from_parts({**SDXL, "unet": {**SDXL["unet"], "down_block_types": ["KDownBlock2D"] * 3}})
    with pytest.raises(UsageError, match="not built"):
        from_parts({**SDXL, "unet": {**SDXL["unet"], "class_embed_type": "timestep"}})
    with pytest.raises(UsageError, match="no setting 'step'"):
        from_parts(SDXL, step=3)


@pytest.mark.parametrize(
    ("name", "millions", "tokens"),
    [
        ("Qwen2.5-VL-7B-Instruct", 676.55, 37 * 37),  # 28 pixels a token
        ("google/gemma-3-27b-it", 423.06, 256),
        ("Qwen3-VL-8B-Instruct", 576.39, 32 * 32),
    ],
)
def test_a_picture_becomes_tokens(name: str, millions: float, tokens: int) -> None:
    (tower,) = load_model(find_config(name)).towers
    stage, found = picture(tower, 1024, 1024)
    assert found == tokens
    assert stage.parameters / M == pytest.approx(millions, rel=0.0005)
    with pytest.raises(UsageError, match="pixels"):
        picture(tower, 0, 1024)


def test_most_layers_of_a_tower_see_a_window() -> None:
    """Qwen2.5-VL: 28 layers see 8 x 8 patches, 4 see all 74 x 74."""
    (tower,) = load_model(find_config("Qwen2.5-VL-7B-Instruct")).towers
    stage, _ = picture(tower, 1036, 1036)
    seen = {op.dims["kv"]: n for n, op in stage.ops if op.kind == "attention"}
    assert seen == {64: 28, 74 * 74: 4}


def test_a_shape_is_asked_at_every_point() -> None:
    made = stages(pipeline("hunyuan3d-2", grid=255))
    assert made["volume"].calls == 256**3 / 8000
    assert made["denoiser"].parameters / M == pytest.approx(1100, rel=0.02)  # 1.1 B, Hunyuan3D-2 README
    assert pipeline("hunyuan3d-2").flops > pipeline("hunyuan3d-2", grid=255).flops


def test_more_text_costs_its_encoder_more() -> None:
    short, long = (stages(pipeline("flux-dev", text_tokens=n)) for n in (256, 512))
    assert short["text_encoder:t5-xxl"].flops < 0.51 * long["text_encoder:t5-xxl"].flops
    assert short["text_encoder:clip-l"] == long["text_encoder:clip-l"]
    assert short["denoiser"].flops < long["denoiser"].flops


def test_pixels_beyond_the_last_patch_are_not_seen() -> None:
    assert pipeline("siglip", resolution=384).flops == pipeline("siglip", resolution=378).flops


ODD = [None, "x", -1, 0, 2, 10**7, 10**9, 2.5, True, [], [1], [0, 1], ["a"], [[1]], [10**7] * 4, {}]


@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_configuration_gives_a_pipeline_or_one_line(data: st.DataObject) -> None:
    part_name = data.draw(st.sampled_from(["unet", "vae", "text_encoder"]))
    key = data.draw(st.sampled_from(sorted(SDXL[part_name])))
    changed = {**SDXL, part_name: {**SDXL[part_name], key: data.draw(st.sampled_from(ODD))}}
    said = ""
    try:
        found = from_parts(changed).flops
    except ChipwiseError as error:
        found, said = 0.0, str(error)
    assert found >= 0
    assert "\n" not in said
    assert len(said) < 600


@pytest.mark.parametrize(("name", "billions"), [("flux.2-dev", 32), ("flux.2-klein-4b", 4), ("flux.2-klein-9b", 9)])
def test_denoisers_of_flux_2(name: str, billions: float) -> None:
    """Sizes as their READMEs say, rounded to 10^9; one pass a step."""
    made = stages(pipeline(name))
    assert made["denoiser"].parameters / 1e9 == pytest.approx(billions, rel=0.04)
    assert made["denoiser"].flops == stages(pipeline(name, guidance=1.0))["denoiser"].flops


def test_experts_of_a_shape_are_as_many_as_its_readme_says() -> None:
    """3.3 x 10^9 parameters of Hunyuan3D-Shape-v2-1, of which a vector passes 1.6 x 10^9 of the denoiser's."""
    made = stages(pipeline("hunyuan3d-2.1"))
    shape = sum(stage.parameters for name, stage in made.items() if name != "image_encoder")
    assert shape / 1e9 == pytest.approx(3.3, abs=0.05)
    products = sum(n * float(op.flops) for n, op in made["denoiser"].ops if op.kind == "gemm")
    assert products / (2 * 2 * 4097) == pytest.approx(1.6e9, rel=0.1)


STREAMS = {
    "z-image-turbo": (6_154_908_736, {"_class_name": "ZImageTransformer2DModel"}),
    "lumina-image-2.0": (2_609_769_152, {"_class_name": "Lumina2Transformer2DModel", "cap_feat_dim": 2304}),
    "chroma": (8_899_983_424, {"_class_name": "ChromaTransformer2DModel"}),
    "longcat-image": (11_877_803_072, {"_class_name": "LongCatImageTransformer2DModel"}),
    "skyreels-v2-t2v-14b-540p": (
        14_288_491_584,
        {"_class_name": "SkyReelsV2Transformer3DModel", "num_attention_heads": 40, "ffn_dim": 13824, "num_layers": 40},
    ),
    "sana-sprint-1.6b": (
        1_610_237_472,
        {"_class_name": "SanaTransformer2DModel", "guidance_embeds": True, "qk_norm": "rms_norm_across_heads"},
    ),
}
"""Parameters of the denoiser as diffusers 0.42 builds it, and its configuration where that differs from the class."""


@pytest.mark.parametrize("name", STREAMS)
def test_denoisers_have_the_parameters_of_their_code(name: str) -> None:
    counted, config = STREAMS[name]
    built = stages(pipeline(name))["denoiser"]
    assert built.parameters == counted
    assert stages(from_parts({**SDXL, "unet": config}))["denoiser"].parameters == counted


@pytest.mark.parametrize(
    ("kind", "counted"), [("BriaTransformer2DModel", 11_879_375_936), ("SkyReelsV2Transformer3DModel", 2_191_878_208)]
)
def test_classes_of_diffusers_by_their_defaults(kind: str, counted: int) -> None:
    assert stages(from_parts({**SDXL, "unet": {"_class_name": kind}}))["denoiser"].parameters == counted


@pytest.mark.parametrize(
    ("name", "counted"), [("cogview4-6b", 6_369_118_272), ("auraflow", 6_842_876_928), ("dit-xl-2-256", 675_129_632)]
)
def test_families_that_are_data_alone_have_the_parameters_of_their_code(name: str, counted: int) -> None:
    """As diffusers 0.42 builds them; DiT's own code, whose paper says 118.6 x 10^9 multiply-adds at 256 pixels."""
    made = pipeline(name, guidance=1.0)
    assert stages(made)["denoiser"].parameters == counted
    if name.startswith("dit"):
        products = [n * float(op.flops) for n, op in stages(made)["denoiser"].ops if op.kind != "pointwise"]
        assert sum(products) / 2e9 == pytest.approx(118.6, rel=0.01)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("linear n 4 w extra", "no 'extra'"),
        ("linear n 4 n.__class__", "cannot be worked out"),
        ("mamba n 4", "no layer 'mamba'"),
        ("_plain_bytes n", "no layer '_plain_bytes'"),
    ],
)
def test_a_row_of_a_family_that_cannot_be_read_is_named(rows: str, says: str) -> None:
    made = family("own", {"needs": ["w"], "blocks": {"block n": rows}}, {})
    with pytest.raises(UsageError, match=says):
        made(w=8).block(LAYERS, 2)


def test_what_a_folder_leaves_out_is_said() -> None:
    config = {"_class_name": "LongCatImageTransformer2DModel"}
    assert any("rewrite" in line for line in from_parts({**SDXL, "unet": config}).assumptions)


def test_rows_of_classes_name_fields_of_their_part() -> None:
    """A misspelt field would be an error of the first user who has such a folder."""
    sizes = "hidden_size num_attention_heads num_hidden_layers intermediate_size vocab_size".split()
    for name, kind in classes().items():
        given = dict.fromkeys(sizes, 64) if kind.row["part"] == "decoder" else {}
        key = "_class_name" if name[0].isupper() else "model_type"
        assert read_part({key: name, **given}, "test"), name


@pytest.mark.parametrize(
    ("name", "products", "convolutions", "norms"),
    [
        ("flux-dev", 504, 0, 115),
        ("sdxl", 743, 49, 256),
        ("sd1.5", 184, 96, 109),
        ("sd3-medium", 340, 1, 96),
        ("wan2.1-t2v-1.3b", 306, 1, 91),
        ("cogvideox-2b", 245, 1, 182),
        ("pixart-alpha", 286, 1, 57),
        ("sana-1.5-1.6b", 206, 61, 41),
    ],
)
def test_denoisers_call_products_and_norms_as_often_as_their_code(
    name: str, products: int, convolutions: int, norms: int
) -> None:
    """As diffusers 0.42 dispatches them in a pass; its convolutions of one position are products here."""
    ops = stages(pipeline(name))["denoiser"].ops
    called = {kind: sum(n * op.launches for n, op in ops if op.kind == kind) for kind in ("gemm", "conv")}
    assert sum(called.values()) == pytest.approx(products + convolutions, rel=0.015)
    plain = ("layer_norm", "group_norm")
    assert sum(n * op.launches for n, op in ops if op.name in plain) == pytest.approx(norms, rel=0.03)


def test_a_song_is_decoded_in_chunks_and_a_sound_is_made_whole() -> None:
    short, long = (stages(pipeline("ace-step-1.5", audio_s=s)) for s in (60.0, 240.0))
    assert long["vocoder"].activation_bytes == short["vocoder"].activation_bytes
    assert long["vocoder"].flops > 3.9 * short["vocoder"].flops
    assert pipeline("stable-audio-open-1.0", audio_s=5.0).flops == pipeline("stable-audio-open-1.0").flops


def test_a_clip_is_begun_by_one_frame_or_all_and_guided_by_as_many_passes_as_its_pipeline_makes() -> None:
    one, all_ = (stages(pipeline(name, frames=81)) for name in ("wan2.2-ti2v-5b-i2v", "wan2.1-i2v-14b"))
    assert one["vae_encode"].flops < all_["vae_encode"].flops / 20
    guided, alone = (stages(pipeline("ltx-2.3", guidance=g))["denoiser"].flops for g in (3.0, 1.0))
    assert guided == pytest.approx(4 * alone)


def test_a_folder_of_hunyuan_video_15_is_the_model_of_the_table() -> None:
    named, kinds = (pipeline("hunyuanvideo-1.5"), ("HunyuanVideo15Transformer3DModel", "AutoencoderKLHunyuanVideo15"))
    read = from_parts({key: {"_class_name": kind} for key, kind in zip(("transformer", "vae"), kinds, strict=True)})
    for part_ in ("denoiser", "vae_decode"):
        found, wanted = stages(read)[part_], stages(named)[part_]
        assert (found.parameters, found.calls) == (wanted.parameters, wanted.calls)
        assert found.flops == pytest.approx(wanted.flops)


@pytest.mark.parametrize(("edited", "made"), [("flux-kontext-dev", "flux-dev"), ("qwen-image-edit", "qwen-image")])
def test_an_edited_picture_stands_beside_the_one_that_is_made(edited: str, made: str) -> None:
    """As many parameters, and the tokens of both pictures attend to each other."""
    both, one = (stages(pipeline(n, resolution="1024x1024", text_tokens=128)) for n in (edited, made))
    assert both["denoiser"].parameters == one["denoiser"].parameters
    assert 2.0 < both["denoiser"].flops / one["denoiser"].flops < 3.0
    assert "vae_encode" in both
    assert "vae_encode" not in one


def test_a_structure_costs_more_than_the_square_of_its_tokens_and_samples_share_the_trunk() -> None:
    small, large = (pipeline("alphafold3", tokens=n) for n in (1024, 2048))
    assert 4.0 < large.flops / small.flops < 8.0
    one = stages(pipeline("alphafold3", tokens=1024, samples=1))
    for name, stage in stages(small).items():
        share = stage.flops * stage.calls / (one[name].flops * one[name].calls)
        assert share == pytest.approx(1.0) if name in ("embedder", "trunk") else 1.2 < share <= 5.0


def test_a_voice_costs_its_seconds_and_what_it_continues() -> None:
    short, long = (pipeline("kokoro-82m", audio_s=s) for s in (5.0, 10.0))
    assert long.flops / short.flops == pytest.approx(2.0, rel=0.02)
    alone, guided = (stages(pipeline("f5-tts", reference_s=0, guidance=g)) for g in (0, 2))
    assert guided["denoiser"].flops == pytest.approx(2 * alone["denoiser"].flops)
    assert guided["vocoder"].flops == alone["vocoder"].flops
    with pytest.raises(UsageError, match="no steps"):
        pipeline("kokoro-82m", steps=4)


def test_a_shape_of_voxels_is_made_in_two_stages() -> None:
    made = stages(pipeline("trellis"))
    flows = made["structure"].parameters + made["latents"].parameters + made["grid"].parameters
    assert flows / 1e9 == pytest.approx(1.2, rel=0.04)  # microsoft/TRELLIS README: 1.2B
    # 22 squares of the width in each of 24 layers, offsets and norms aside
    assert made["structure"].parameters == pytest.approx(24 * 22 * 1024**2, rel=0.005)
    # guided while the noise 3 t / (1 + 2 t) is at least a half, so down to t = 1/4: 19 of 25 steps
    assert made["structure"].calls == made["latents"].calls == 25 + 19
    assert stages(pipeline("trellis", guidance=1.0))["latents"].calls == 25
    small, mesh = stages(pipeline("trellis", voxels=5000)), stages(pipeline("trellis", form="mesh"))
    assert small["latents"].flops < made["latents"].flops / 4
    assert small["structure"].flops == made["structure"].flops
    assert (mesh["mesh"].calls, mesh["field"].calls) == (1.0, 0.0)
    with pytest.raises(UsageError, match="no form 'obj'"):
        pipeline("trellis", form="obj")


def test_a_voice_of_codes_says_one_after_the_other() -> None:
    short, long = (stages(pipeline("xtts-v2", audio_s=s, tokens=50)) for s in (5.0, 10.0))
    assert (short["decoder"].calls, long["decoder"].calls) == (108, 215)  # 22,050 / 1,024 a second
    assert long["vocoder"].flops == pytest.approx(2 * short["vocoder"].flops, rel=0.02)
    assert short["voice"].flops < stages(pipeline("xtts-v2", reference_s=12.0))["voice"].flops
    layer = 12 * 1024**2 + 13 * 1024  # GPT-2
    ends = 1026 * 1024 + 1026 * 1025 + 6681 * 1024 + 6681 * 1025 + (608 + 404) * 1024 + 4 * 1024
    assert short["decoder"].parameters == 30 * layer + ends
    assert pipeline("xtts-v2").parameters == sum(s.parameters for s in short.values())
    with pytest.raises(UsageError, match="no steps"):
        pipeline("xtts-v2", steps=4)


def test_a_voice_of_books_says_all_codes_of_a_frame() -> None:
    short, long = (stages(pipeline("csm-1b", audio_s=s, tokens=40)) for s in (4.0, 8.0))
    assert (short["decoder"].calls, short["predictor"].calls) == (50, 31 * 50)
    assert long["vocoder"].flops == pytest.approx(2 * short["vocoder"].flops)
    assert "predictor" not in stages(pipeline("higgs-audio-v2"))  # all eight codes come at once


def test_a_side_may_come_as_a_number_with_a_point() -> None:
    assert pipeline("resnet50", resolution=256.0).flops == pipeline("resnet50", resolution=256).flops


def test_windows_of_a_recording_are_a_batch() -> None:
    alone = stages(pipeline("whisper-large-v3", audio_s=600))
    assert alone["encoder"].calls == 20
    assert alone["decoder"].calls == 1800
    made = pipeline("whisper-large-v3", audio_s=600, batch=16, hop_s=20.0)
    parts = stages(made)
    assert (made.members, made.samples) == (30, 1)
    assert parts["encoder"].calls == 2  # 30 windows, one every 20 s, 16 at a time
    assert 1800 / 20 * 2 < parts["decoder"].calls < 2 * 1800 / 20 * 2  # padded to the longest of a batch
    assert dict(parts["sound"].host)["sound"] == pytest.approx(30 * 30)
    several = pipeline("whisper-large-v3", audio_s=600, batch=64, hop_s=20.0)
    assert several.samples == 2
    apart = pipeline("whisper-large-v3", audio_s=600, batch=16, hop_s=0.0)
    assert (apart.members, apart.samples) == (1, 16)
    short = pipeline("whisper-large-v3", audio_s=20, batch=16)
    assert (short.members, short.samples) == (1, 16)
    with pytest.raises(UsageError, match="hears a recording whole"):
        pipeline("wav2vec2-base", hop_s=20.0)


def test_a_transducer_that_tells_durations_takes_fewer_steps() -> None:
    steps = {
        name: next(s.calls for s in pipeline(name, audio_s=80.0).stages if s.name == "decoder")
        for name in ("parakeet-rnnt-1.1b", "parakeet-tdt-1.1b")
    }
    assert steps["parakeet-rnnt-1.1b"] == 1000 + 240  # frames of 80 ms, 3 labels a second
    assert steps["parakeet-tdt-1.1b"] == pytest.approx(1240 / 2.82)
