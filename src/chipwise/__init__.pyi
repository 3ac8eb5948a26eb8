# Written by `python -m docs.generate.stub`: not to be changed by hand.
# ruff: noqa
# fmt: off
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Generic, Literal, Optional, TypeAlias, TypeVar, overload

from chipwise.api.python import diff as diff
from chipwise.api.python import launch as launch
from chipwise.api.python import replay as replay
from chipwise.api.python import step as step
from chipwise.api.python import trace as trace
from chipwise.api.sweep import sweep as sweep
from chipwise.errors import ChipwiseError as ChipwiseError
from chipwise.workload.program import Program
from chipwise.report.catalogue import ChipsReport
from chipwise.report.catalogue import EvidenceReport
from chipwise.report.catalogue import ModelsReport
from chipwise.report.catalogue import OffersReport
from chipwise.report.catalogue import RuntimesReport
from chipwise.report.catalogue import SystemsReport
from chipwise.report.desk import LocalReport
from chipwise.report.evidence import ClaimReport
from chipwise.report.evidence import MatchReport
from chipwise.report.fit import FitReport
from chipwise.report.frontier import FrontierReport
from chipwise.report.kernel import AmdahlReport
from chipwise.report.kernel import KernelReport
from chipwise.report.media import MediaExplainReport
from chipwise.report.media import MediaReport
from chipwise.report.moved import MovedReport
from chipwise.report.operators import LoadReport
from chipwise.report.operators import OperatorsReport
from chipwise.report.plans import PlanRecord
from chipwise.report.plans import PlanReport
from chipwise.report.portfolio import PortfolioReport
from chipwise.report.records import Figure
from chipwise.report.reinforce import RlReport
from chipwise.report.sensitivity import SensitivityReport
from chipwise.report.simulated import SimulationReport
from chipwise.report.statements import StatementsReport
from chipwise.report.training import TrainReport

__version__: str

Path: TypeAlias = str | PathLike[str]
Number: TypeAlias = float | str | None
"""A quantity, as in `10` or `"10/s"`."""
Names: TypeAlias = str | Sequence[str | float] | None
Table: TypeAlias = str | Mapping[str, Any] | None
"""Values by name, as in `{"tp": 8}` or `"tp=8"`."""
Model: TypeAlias = Path | Mapping[str, Any] | Program
"""A name, a path, the keys of a configuration, or what `trace` made of a module."""
_Of = TypeVar("_Of")

class _Folded(Generic[_Of]):
    """Has no values: it makes an alias recursive, so that type checkers print the alias and not what it stands for."""

NetworkName: TypeAlias = Literal[
    "3D-UNet", "3d-unet", "3d-unet-99", "3d-unet-99.9", "3d-unet-kits19", "4x-UltraSharp", "ACE-Step",
    "ACE-Step 1.5", "ACE-Step-1.5-turbo", "ACE-Step/Ace-Step1.5", "AF3", "Alibaba-NLP/gte-modernbert-base",
    "Alpha-VLLM/Lumina-Image-2.0", "AlphaFold 3", "AlphaFold3", "AuraFlow-v0.2", "BAAI/bge-m3", "BART-large",
    "BERT base", "BERT base (bert-base-cased)", "BERT base (bert-base-uncased)", "BERT-base", "BERT-large",
    "Boltz-1", "ByteDance-Seed/SeedVR2-3B", "ByteDance-Seed/SeedVR2-7B", "ByteDance/Hyper-SD",
    "ByteDance/SDXL-Lightning", "CLIP-ViT-bigG-14", "ChaoningZhang/MobileSAM", "Chroma1-HD", "CogVideoX-2b",
    "CogVideoX-5b", "CogVideoX-5b-I2V", "CogVideoX1.5-5B", "CogView4", "ConsisID (CogVideoX-5b)", "CrisperWhisper",
    "DA3MONO-LARGE", "DEIM-D-FINE-L", "DINOv3", "DINOv3-7B", "DINOv3-B", "DINOv3-H+", "DINOv3-L", "DINOv3-S",
    "DLRM-large", "DLRM-small", "Depth-Anything-B", "Depth-Anything-L", "Depth-Anything-S",
    "Depth-Anything-V2-Base", "Depth-Anything-V2-Base-hf", "Depth-Anything-V2-Large", "Depth-Anything-V2-Large-hf",
    "Depth-Anything-V2-Small", "Depth-Anything-V2-Small-hf", "DepthPro", "DiT-XL-2", "DiT-XL/2",
    "DistilBERT base (distilbert-base-uncased)",
    "DistilBERT base (distilbert-base-uncased-finetuned-sst-2-english)", "DistilRoBERTa base (distilroberta-base)",
    "ECAPA-TDNN", "ECCV2022-RIFE", "ESRGAN_4x", "F5-TTS", "F5TTS_v1_Base", "FIBO", "FLUX.1-Fill-dev",
    "FLUX.1-Kontext-dev", "FLUX.1-Krea-dev", "FLUX.1-Turbo-Alpha", "FLUX.1-dev", "FLUX.1-schnell", "FLUX.2-dev",
    "FLUX.2-klein-4B", "FLUX.2-klein-9B", "FastPitch+HiFiGAN", "FastVideo/FastWan2.2-TI2V-5B-FullAttn-Diffusers",
    "FastWan2.2-TI2V-5B-FullAttn-Diffusers", "GFPGANv1.3", "GFPGANv1.4", "Helsinki-NLP/opus-mt-en-de",
    "Hunyuan3D-2", "Hunyuan3D-2-Turbo", "Hunyuan3D-2.0", "Hunyuan3D-2.1", "Hunyuan3D-2mini", "Hunyuan3D-Shape-v2-1",
    "HunyuanDiT", "HunyuanDiT-Diffusers", "HunyuanDiT-v1.2-Diffusers", "HunyuanImage-2.1",
    "HunyuanImage-2.1-Diffusers", "HunyuanVideo", "HunyuanVideo-1.5", "HunyuanVideo-1.5-480P-I2V-step-distill",
    "HunyuanVideo-1.5-480p_i2v", "HunyuanVideo-1.5-480p_t2v", "HunyuanVideo-1.5-720p_i2v",
    "HunyuanVideo-1.5-720p_t2v", "HunyuanVideo-1.5-Diffusers-480p_i2v",
    "HunyuanVideo-1.5-Diffusers-480p_i2v_step_distilled", "HunyuanVideo-1.5-Diffusers-480p_t2v",
    "HunyuanVideo-1.5-Diffusers-720p_i2v", "HunyuanVideo-1.5-Diffusers-720p_t2v", "Hyper-SDXL-8steps",
    "IDEA-Research/grounding-dino-base", "IDEA-Research/grounding-dino-tiny", "Illustrious-XL", "Intel/dpt-large",
    "Jasper-10x5dr", "Juggernaut-XL", "Kandinsky-5.0-T2V-Lite", "Kandinsky-5.0-T2V-Lite-sft-5s",
    "Kandinsky-5.0-T2V-Pro", "Kandinsky-5.0-T2V-Pro-sft-5s", "Kokoro-82M", "Kolors", "Kwai-Kolors/Kolors", "LTX-2",
    "LTX-2-Distilled", "LTX-2.3", "LTX-2.3-Distilled", "LTX-Video", "LTX-Video-0.9.7-dev",
    "LTX-Video-0.9.7-distilled", "LTX-Video-0.9.8-13B", "LTX-Video-0.9.8-13B-distilled", "LTX-Video-13B",
    "Lightricks/LTX-2", "Lightricks/LTX-2.3", "LiheYoung/depth-anything-base-hf",
    "LiheYoung/depth-anything-large-hf", "LiheYoung/depth-anything-small-hf", "LongCat-Image", "Lumina-Image-2.0",
    "MCG-NJU/videomae-base", "MCG-NJU/videomae-large", "MobileSAM", "ModernBERT-base", "ModernBERT-large",
    "MuseTalk", "MuseTalk-1.5", "NAFNet", "NCF(NeuMF)", "NoobAI-XL", "OmniGen2", "OmniGen2/OmniGen2",
    "OpenGVLab/InternViT-300M-448px", "OpenGVLab/internimage_b_1k_224", "OpenGVLab/internimage_s_1k_224",
    "OpenGVLab/internimage_t_1k_224", "PixArt Alpha", "PixArt Sigma", "PixArt-Sigma-XL-2-1024-MS",
    "PixArt-XL-2-1024-MS", "Protenix", "Qwen-Image", "Qwen-Image-2512", "Qwen-Image-Edit", "Qwen-Image-Edit-2509",
    "Qwen-Image-Edit-2509-Lightning", "Qwen-Image-Edit-2511", "Qwen-Image-Edit-2511-Lightning",
    "Qwen-Image-Edit-Lightning", "Qwen-Image-Lightning-8steps", "Qwen3-Embedding-0.6B", "Qwen3-Embedding-4B",
    "Qwen3-Embedding-8B", "Qwen3-Reranker-0.6B", "Qwen3-Reranker-4B", "Qwen3-Reranker-8B",
    "Qwen3-TTS-12Hz-0.6B-Base", "Qwen3-TTS-12Hz-0.6B-CustomVoice", "Qwen3-TTS-12Hz-1.7B-Base",
    "Qwen3-TTS-12Hz-1.7B-CustomVoice", "Qwen3-TTS-12Hz-1.7B-VoiceDesign", "RT-DETRv2", "RT-DETRv2-L", "RT-DETRv2-S",
    "RT-DETRv2-X", "Real-ESRGAN", "RealESRGAN_x2plus", "RealESRGAN_x4plus", "RealESRGAN_x4plus_anime_6B",
    "RealVisXL", "ResNet-50 v1.5", "ResNet50", "RoBERTa-base", "RoBERTa-large", "SANA", "SANA-1.6B", "SANA-1.6B-4K",
    "SANA-Sprint", "SANA-Sprint-1.6B", "SANA-Video", "SANA-Video_2B_480p_diffusers", "SANA1.5-1.6B", "SANA1.5-4.8B",
    "SANA1.5_1.6B_1024px_diffusers", "SANA1.5_4.8B_1024px_diffusers", "SD1.4", "SD1.5", "SD1.5+ControlNet", "SD2",
    "SD2 Inpainting", "SD2.1", "SD2.1-base", "SD3-medium", "SD3.5", "SDXL 1.0", "SDXL-base", "SSD300-ResNet50",
    "SWivid/F5-TTS", "Sana_1600M_1024px", "Sana_1600M_4Kpx_BF16", "Sana_Sprint_1.6B_1024px_diffusers", "SeedVR2",
    "SeedVR2-3B", "SeedVR2-7B", "SenseTime/deformable-detr", "SkyReels-V2-T2V-14B-540P",
    "SkyReels-V2-T2V-14B-540P-Diffusers", "SkyReels-V2-T2V-14B-720P", "SkyReels-V2-T2V-14B-720P-Diffusers",
    "Stable Audio Open", "T5-3B", "THUDM/CogView4-6B", "TMElyralab/MuseTalk", "TRELLIS", "TRELLIS-1",
    "TencentARC/GFPGAN", "Tongyi-MAI/Z-Image", "Tongyi-MAI/Z-Image-Turbo", "TripoSR", "V-JEPA2-ViT-L", "ViT-B/16",
    "ViT-L/14@336px", "Wan-Animate", "Wan-S2V", "Wan2.1-I2V-14B", "Wan2.1-I2V-14B-480P-Diffusers",
    "Wan2.1-I2V-14B-720P-Diffusers", "Wan2.1-T2V-1.3B", "Wan2.1-T2V-1.3B-Diffusers", "Wan2.1-T2V-14B",
    "Wan2.1-T2V-14B-Diffusers", "Wan2.1-VACE-14B", "Wan2.1-VACE-14B-diffusers", "Wan2.2-Animate-14B",
    "Wan2.2-Animate-14B-Diffusers", "Wan2.2-I2V-A14B", "Wan2.2-I2V-A14B-4steps-lora", "Wan2.2-I2V-A14B-Diffusers",
    "Wan2.2-Lightning", "Wan2.2-S2V-14B", "Wan2.2-T2V-A14B", "Wan2.2-T2V-A14B-4steps-lora",
    "Wan2.2-T2V-A14B-Diffusers", "Wan2.2-TI2V-5B", "Wan2.2-TI2V-5B I2V", "Wan2.2-TI2V-5B T2V",
    "Wan2.2-TI2V-5B-Diffusers", "XTTS-v2", "Z-Image", "Z-Image-Turbo", "Zonos-v0.1-transformer",
    "Zyphra/Zonos-v0.1-transformer", "ace-step-1.5", "acestep-v15-turbo", "aimv2", "aimv2-large",
    "aimv2_large_patch14_224", "albert-base", "albert-base-v2", "alimama-creative/FLUX.1-Turbo-Alpha",
    "all-MiniLM-L12-v2", "all-MiniLM-L6-v2", "alphafold3", "animagine-xl", "animagine-xl-4.0", "apple/DepthPro",
    "apple/DepthPro-hf", "apple/aimv2-large-patch14-224", "auraflow", "bart-base", "bart-large", "bart-large-cnn",
    "beit_base_patch16_224", "beitv2_large_patch16_224", "bert", "bert-99", "bert-99.9", "bert-base",
    "bert-base-uncased", "bert-large", "bert-large-uncased", "bge-base", "bge-base-en-v1.5", "bge-large",
    "bge-large-en-v1.5", "bge-m3", "bge-small", "bge-small-en-v1.5", "boltz-1", "boltz1",
    "bosonai/higgs-audio-v2-generation-3B-base", "briaai/FIBO", "byt5-small", "caidas/swin2SR-classical-sr-x2-64",
    "cait_s24_224", "canopyai/Orpheus-TTS", "chroma", "clap", "clap-htsat", "clip", "clip-b", "clip-b/32", "clip-l",
    "clip-l/14", "clip-l/14@336px", "clip-vit-b/32", "clip-vit-base-patch32", "clip-vit-l", "clip-vit-l/14",
    "clip-vit-large-patch14", "clip-vit-large-patch14-336", "clip-vit-large-patch14-336-vision",
    "clip_vit_base_patch32", "coatnet_2_rw_224", "cogvideox-2b", "cogvideox-5b", "cogvideox-5b-i2v",
    "cogvideox1.5-5b", "cogview4-6b", "colbertv2.0", "colpali", "colpali-v1.3", "conditional-detr",
    "conditional-detr-resnet-50", "conformer", "conformer-large", "control_v11p_sd15_canny",
    "controlnet-sd15-canny", "convnext-v2-huge", "convnext-v2-l", "convnext-v2-large", "convnext-v2-tiny",
    "convnext_base", "convnext_large", "convnext_small", "convnext_tiny", "convnext_xlarge", "convnextv2_base",
    "convnextv2_huge", "convnextv2_large", "convnextv2_tiny", "coqui/XTTS-v2", "crisper-whisper", "csm", "csm-1b",
    "d-fine", "d-fine-l", "deberta", "deberta-v3", "deberta-v3-base", "deberta-v3-large", "deberta-v3-small",
    "deeplabv3", "deeplabv3-resnet101", "deeplabv3-resnet50", "deeplabv3_resnet101", "deeplabv3_resnet50",
    "deformable-detr", "deim-l", "deit3_large_patch16_224", "deit_base_patch16_224", "densenet121",
    "depth-anything", "depth-anything-3", "depth-anything-3-mono", "depth-anything-v2", "depth-anything-v2-base",
    "depth-anything-v2-large", "depth-anything-v2-small", "depth-pro", "depth_anything_v2_vitb",
    "depth_anything_v2_vitl", "depth_anything_v2_vits", "detr", "detr-resnet-101", "detr-resnet-50", "dfine",
    "dfine-l", "dinov2", "dinov2-base", "dinov2-giant", "dinov2-large", "dinov2-small", "dinov3-convnext-tiny",
    "dinov3-vit7b16", "dinov3-vit7b16-pretrain-lvd1689m", "dinov3-vitb16", "dinov3-vitb16-pretrain-lvd1689m",
    "dinov3-vith16plus", "dinov3-vith16plus-pretrain-lvd1689m", "dinov3-vitl16", "dinov3-vitl16-pretrain-lvd1689m",
    "dinov3-vits16", "dinov3-vits16-pretrain-lvd1689m", "dinov3_vit7b16", "dinov3_vitb16", "dinov3_vith16plus",
    "dinov3_vitl16", "dinov3_vits16", "distil-large-v2", "distil-large-v3", "distil-large-v3.5", "distil-medium.en",
    "distil-small.en", "distil-whisper", "distil-whisper-large-v2", "distil-whisper-large-v3",
    "distil-whisper-large-v3.5", "distil-whisper-medium.en", "distil-whisper-small.en",
    "distil-whisper/distil-medium.en", "distil-whisper/distil-small.en", "distilbert", "distilbert-base",
    "distilbert-base-uncased", "distilroberta-base", "dit-xl-2-256", "dlrm", "dlrm-99", "dlrm-99.9", "dlrm-dcnv2",
    "dlrm-large", "dlrm-small", "dlrm-v2", "dlrm-v2-99", "dlrm-v2-99.9", "dlrm_dcnv2", "dm_nfnet_f1", "dmd2",
    "dpn92", "dpt-large", "dreamshaper", "dreamshaper-8", "e5-mistral", "e5-mistral-7b-instruct", "ecapa-tdnn",
    "edgenext_small", "efficientnet-b0", "efficientnet-b4", "efficientnet-b7", "efficientnet_b0", "efficientnet_b4",
    "efficientnet_b7", "efficientnetv2_l", "efficientnetv2_m", "efficientnetv2_s", "efficientvit_b1",
    "electra-base", "embeddinggemma", "embeddinggemma-300m", "esm2", "esm2-150m", "esm2-15b", "esm2-35m", "esm2-3b",
    "esm2-650m", "esm2_t12_35M_UR50D", "esm2_t30_150M_UR50D", "esm2_t33_650M_UR50D", "esm2_t36_3B_UR50D",
    "esm2_t48_15B_UR50D", "esrgan", "eva-giant", "eva02", "eva02-base", "eva02-large", "eva02_base_patch14_448",
    "eva02_large_patch14_448", "eva_giant_patch14_224", "f5-tts", "facebook/DiT-XL-2-256", "facebook/bart-base",
    "facebook/bart-large", "facebook/bart-large-cnn", "facebook/detr-resnet-101", "facebook/m2m100_1.2B",
    "facebook/m2m100_418M", "facebook/mask2former-swin-large-coco-panoptic",
    "facebook/mask2former-swin-tiny-coco-instance", "facebook/mbart-large-50",
    "facebook/metaclip-2-worldwide-huge-quickgelu", "facebook/mms-tts-eng", "facebook/nllb-200-1.3B",
    "facebook/nllb-200-3.3B", "facebook/nllb-200-distilled-1.3B", "facebook/nllb-200-distilled-600M",
    "facebook/sam3", "facebook/timesformer-base-finetuned-k400", "facebook/vjepa2-vitl-fpc64-256",
    "facebook/wav2vec2-large", "fal/AuraFlow", "fal/AuraFlow-v0.2", "faster-whisper-large-v3",
    "faster_rcnn_R_101_C4", "faster_rcnn_R_101_DC5", "faster_rcnn_R_101_FPN", "faster_rcnn_R_50_C4",
    "faster_rcnn_R_50_DC5", "faster_rcnn_R_50_FPN", "faster_rcnn_X_101_32x8d_FPN", "fastpitch", "fastpitch-hifigan",
    "fastvit_sa12", "fastwan", "fastwan2.2-ti2v-5b", "fcn-resnet101", "fcn_resnet101", "fibo", "flan-t5-base",
    "flan-t5-large", "flan-t5-small", "flan-t5-xl", "flan-t5-xxl", "flux", "flux-dev", "flux-dev-turbo",
    "flux-fill", "flux-fill-dev", "flux-kontext", "flux-kontext-dev", "flux-krea", "flux-schnell", "flux.1",
    "flux.2-dev", "flux.2-klein-4b", "flux.2-klein-9b", "flux2", "flux2-klein", "gfpgan", "ghostnet_100", "gliner",
    "gliner-large", "gliner-large-v2.1", "gmlp_s16_224", "google-t5/t5-11b", "google-t5/t5-3b", "google-t5/t5-base",
    "google-t5/t5-large", "google-t5/t5-small", "google/byt5-small", "google/embeddinggemma-300m",
    "google/flan-t5-base", "google/flan-t5-large", "google/flan-t5-small", "google/flan-t5-xl",
    "google/flan-t5-xxl", "google/madlad400-3b-mt", "google/mt5-base", "google/mt5-large", "google/mt5-small",
    "google/pegasus-large", "google/pegasus-xsum", "google/timesfm-2.5-200m-pytorch", "google/vit-base-patch16-224",
    "granite-embedding-english-r2", "grounding-dino", "grounding-dino-base", "grounding-dino-tiny",
    "groundingdino-swinb-cogcoor", "groundingdino-swint-ogc", "gte-large", "gte-modernbert-base",
    "hexgrad/Kokoro-82M", "hiera-large", "hiera_base_224", "hiera_large_224", "higgs-audio", "higgs-audio-v2",
    "higgs-audio-v2-generation-3B-base", "hrnet_w32", "hubert-large", "hubert-large-ll60k", "hubert-xl",
    "hubert-xlarge", "hubert-xlarge-ll60k", "hunyuan", "hunyuan3d", "hunyuan3d-2", "hunyuan3d-2-mini",
    "hunyuan3d-2-turbo", "hunyuan3d-2.1", "hunyuan3d-dit-v2-0-turbo", "hunyuandit", "hunyuanimage-2.1",
    "hunyuanvideo", "hunyuanvideo-1.5", "hunyuanvideo-1.5-480p", "hunyuanvideo-1.5-480p-i2v",
    "hunyuanvideo-1.5-480p-i2v-step-distilled", "hunyuanvideo-1.5-i2v", "hyper-sd", "hyper-sdxl", "hzwer/RIFE",
    "illustrious", "inception_v4", "internimage", "internimage-b", "internimage-h", "internimage-l",
    "internimage-s", "internimage-t", "internimage-xl", "internimage_h", "internimage_l", "internimage_xl",
    "internvit-300m", "jasper", "jasper-10x5dr", "jina-embeddings-v4", "jina-v4", "jinaai/jina-embeddings-v4",
    "kandinsky-5", "kandinsky-5-lite", "kandinsky-5-pro", "kandinsky-5.0-lite", "kandinsky-5.0-pro", "kokoro",
    "kokoro-82m", "kolors", "laion/CLIP-ViT-bigG-14-laion2B-39B-b160k", "laion/clap-htsat-unfused",
    "latent-consistency/lcm-lora-sdv1-5", "latent-consistency/lcm-sdxl", "layoutlmv3", "layoutlmv3-base",
    "lcm-lora-sdv1-5", "lcm-lora-sdxl", "lcm-sdxl", "levit_256", "lightx2v/Qwen-Image-Lightning",
    "llama-embed-nemotron-8b", "lodestones/Chroma", "lodestones/Chroma1-HD", "longcat-image", "ltx", "ltx-2",
    "ltx-2-19b", "ltx-2-19b-dev", "ltx-2-19b-distilled", "ltx-2-distilled", "ltx-2.3", "ltx-2.3-22b",
    "ltx-2.3-22b-dev", "ltx-2.3-22b-distilled", "ltx-2.3-distilled", "ltx-video", "ltx-video-13b",
    "ltx-video-13b-distilled", "ltx-video-2b", "ltxv-13b", "ltxv-13b-0.9.7-dev", "ltxv-13b-0.9.8-distilled",
    "lumina-image-2.0", "lumina2", "m2m100", "m2m100-1.2b", "m2m100-418m", "m2m100_1.2B", "m2m100_418M", "madlad",
    "madlad400-3b", "madlad400-3b-mt", "magic-leap-community/superpoint", "marian", "marianmt", "marigold",
    "marigold-depth", "mask-rcnn", "mask2former", "mask2former-swin-l", "mask2former-swin-large",
    "mask2former-swin-tiny", "mask_rcnn_R_50_FPN", "maxvit_base_tf_224", "maya-research/maya1", "maya1", "mbart",
    "mbart-large-50", "mbart-large-50-many-to-many-mmt", "metaclip2", "metaclip2-huge",
    "microsoft/TRELLIS-image-large", "microsoft/conditional-detr-resnet-50", "microsoft/deberta-v3-base",
    "microsoft/deberta-v3-large", "microsoft/deberta-v3-small", "microsoft/layoutlmv3-base",
    "microsoft/table-transformer-detection", "microsoft/table-transformer-structure-recognition", "midas",
    "midas-v3", "minilm-l12", "minilm-l3", "minilm-l6", "mixer_b16_224", "ml-depth-pro", "mms-tts", "mms-tts-eng",
    "mobile-sam", "mobilenet_v2", "mobilenet_v3_large", "mobilenetv2", "mobilenetv2_100", "mobilenetv3",
    "mobilenetv3_large_100", "mobilenetv4", "mobilenetv4-large", "mobilenetv4-medium", "mobilenetv4-small",
    "mobilenetv4_conv_large", "mobilenetv4_conv_medium", "mobilenetv4_conv_small", "mobilenetv4_hybrid_large",
    "mobilenetv4_hybrid_medium", "mobilesam", "mobilevit_s", "mochi", "mochi-1", "mochi-1-preview",
    "modernbert-base", "modernbert-large", "mpnet-base", "mt5-base", "mt5-large", "mt5-small", "musetalk",
    "mvit-v2-s", "mvit_v2_s", "nafnet-width64", "ncf", "neumf", "nfnet_l0", "nllb", "nllb-1.3b", "nllb-200-1.3b",
    "nllb-200-3.3b", "nllb-200-600m", "nllb-200-distilled-1.3B", "nllb-200-distilled-600M", "nllb-3.3b",
    "nllb-600m", "nnUNet-2D", "nnUNet-3D", "nnunet-2d", "nnunet-3d", "nomic-embed", "nomic-embed-text",
    "nomic-embed-text-v1.5", "noobai", "nvidia/llama-embed-nemotron-8b", "nvidia/parakeet-ctc-0.6b",
    "nvidia/parakeet-rnnt-0.6b", "nvidia/parakeet-rnnt-1.1b", "nvidia/parakeet-tdt-0.6b-v3",
    "nvidia/parakeet-tdt-1.1b", "nvidia/parakeet-tdt_ctc-110m", "nvidia/segformer-b1-finetuned-ade-512-512",
    "nvidia/segformer-b2-finetuned-ade-512-512", "nvidia/segformer-b3-finetuned-ade-512-512",
    "nvidia/segformer-b4-finetuned-ade-512-512", "nvidia/segformer-b5-finetuned-ade-640-640", "omnigen2",
    "openai/clip-vit-base-patch32", "openai/clip-vit-large-patch14", "openai/clip-vit-large-patch14-336",
    "openclip-bigg", "opus-mt", "opus-mt-en-de", "orpheus", "orpheus-3b", "orpheus-3b-tts", "orpheus-tts", "owlv2",
    "owlv2-base", "owlv2-base-patch16", "owlv2-base-patch16-ensemble", "owlv2-large", "owlv2-large-patch14",
    "owlv2-large-patch14-ensemble", "paligemma-3b-pt-448", "parakeet", "parakeet-ctc-0.6b", "parakeet-ctc-1.1b",
    "parakeet-rnnt-0.6b", "parakeet-rnnt-1.1b", "parakeet-tdt-0.6b", "parakeet-tdt-0.6b-v2", "parakeet-tdt-0.6b-v3",
    "parakeet-tdt-1.1b", "parakeet-tdt_ctc-110m", "paraphrase-MiniLM-L3-v2", "pegasus", "pegasus-large",
    "pegasus-xsum", "pixart", "pixart-alpha", "pixart-alpha-xl-2", "pixart-sigma", "playground-v2.5",
    "playground-v2.5-1024px-aesthetic", "pony-diffusion-v6-xl", "poolformer_m36", "protenix-base",
    "protenix_base_default_v0.5.0", "prs-eth/marigold-depth-v1-1", "pvt_v2_b2", "qwen-image", "qwen-image-edit",
    "qwen-image-edit-lightning", "qwen-image-lightning", "qwen3-embedding-0.6b", "qwen3-embedding-4b",
    "qwen3-embedding-8b", "qwen3-reranker-0.6b", "qwen3-reranker-4b", "qwen3-reranker-8b", "qwen3-tts",
    "qwen3-tts-0.6b", "qwen3-tts-1.7b", "r2plus1d-18", "r2plus1d_18", "r3d-18", "r3d_18", "raft", "raft-large",
    "raft_large", "real-esrgan-x4", "realesr-animevideo", "realesr-animevideov3", "realesr-general",
    "realesr-general-x4v3", "realesrgan", "realesrgan-anime", "realesrgan-x2plus", "realesrgan-x4plus",
    "realesrgan-x4plus-anime-6b", "realistic-vision", "regnety_032", "regnety_160", "repvgg_b1", "resnest50d",
    "resnet", "resnet-50", "resnet101", "resnet152", "resnet18", "resnet34", "resnet50", "resnet50d",
    "resnet50d.ra2_in1k", "resnetv2_101x1_bit", "resnext50_32x4d", "retinanet", "retinanet-mlperf",
    "retinanet-resnext50", "retinanet_R_101_FPN", "retinanet_R_50_FPN", "rf-detr", "rf-detr-base", "rfdetr-2xlarge",
    "rfdetr-base", "rfdetr-large", "rfdetr-medium", "rfdetr-nano", "rfdetr-small", "rfdetr-xlarge", "rife", "rnn-t",
    "rnnt", "roberta-base", "roberta-large", "rtdetr_v2_r101vd", "rtdetr_v2_r18vd", "rtdetr_v2_r34vd",
    "rtdetr_v2_r50vd", "rtdetrv2-r101", "rtdetrv2-r18", "rtdetrv2-r34", "rtdetrv2-r50", "rtmpose", "rtmpose-l",
    "rtmpose-m", "rtmpose-s", "rtmpose-t", "s3d", "sam", "sam-3", "sam-vit-base", "sam-vit-huge", "sam-vit-large",
    "sam2", "sam2-base-plus", "sam2-hiera-base-plus", "sam2-hiera-large", "sam2-hiera-small", "sam2-hiera-tiny",
    "sam2-large", "sam2-small", "sam2-tiny", "sam2.1", "sam2.1-base-plus", "sam2.1-hiera-base-plus",
    "sam2.1-hiera-large", "sam2.1-hiera-small", "sam2.1-hiera-tiny", "sam2.1-large", "sam2.1-small", "sam2.1-tiny",
    "sam2.1_hiera_base_plus", "sam2.1_hiera_large", "sam2.1_hiera_small", "sam2.1_hiera_tiny", "sam3", "sam_vit_b",
    "sam_vit_h", "sam_vit_l", "sana-1.6b", "sana-1.6b-4k", "sana-sprint-1.6b", "sana-video", "sana-video-2b",
    "sana1.5-1.6b", "sana1.5-4.8b", "sd-turbo", "sd1.5", "sd1.5-controlnet", "sd1.5-lcm", "sd14", "sd15",
    "sd2-inpainting", "sd2.1", "sd2.1-base", "sd21", "sd3", "sd3-medium", "sd3.5", "sd3.5-large",
    "sd3.5-large-turbo", "sd3.5-medium", "sdxl", "sdxl-base", "sdxl-dmd2", "sdxl-lcm", "sdxl-lightning",
    "sdxl-refiner", "sdxl-turbo", "seedvr2", "seedvr2-3b", "seedvr2-7b", "segformer-b0", "segformer-b0-ade-512",
    "segformer-b1", "segformer-b1-ade-512", "segformer-b2", "segformer-b2-ade-512", "segformer-b3",
    "segformer-b3-ade-512", "segformer-b4", "segformer-b4-ade-512", "segformer-b5", "segformer-b5-ade-640",
    "segment-anything-3", "sesame-csm-1b", "sesame/csm-1b", "siglip", "siglip-base-patch16-224",
    "siglip-so400m-patch14-384", "siglip2", "siglip2-base", "siglip2-base-patch16-224", "siglip2-so400m",
    "siglip2-so400m-patch14-384", "skyreels-v2", "skyreels-v2-t2v-14b-540p", "skyreels-v2-t2v-14b-720p",
    "speechbrain/spkrec-ecapa-voxceleb", "ssd-mobilenet", "ssd-mobilenet-v1", "ssd-resnet", "ssd300-resnet50",
    "stabilityai/TripoSR", "stabilityai/sd-turbo", "stabilityai/sdxl-turbo", "stabilityai/stable-audio-open-1.0",
    "stable-audio-open", "stable-audio-open-1.0", "stable-diffusion", "stable-diffusion-2-1",
    "stable-diffusion-2-1-base", "stable-diffusion-2-base", "stable-diffusion-2-inpainting",
    "stable-diffusion-3-medium", "stable-diffusion-3-medium-diffusers", "stable-diffusion-3.5-large",
    "stable-diffusion-3.5-large-turbo", "stable-diffusion-3.5-medium", "stable-diffusion-v1-4",
    "stable-diffusion-v1-5", "stable-diffusion-xl", "stable-diffusion-xl-base-1.0",
    "stable-diffusion-xl-refiner-1.0", "superpoint", "swin-v2-l", "swin-v2-s", "swin2SR", "swin2sr-classical-x2",
    "swin3d-b", "swin3d-t", "swin3d_b", "swin3d_t", "swin_base_patch4_window12_384", "swin_base_patch4_window7_224",
    "swin_large_patch4_window12_384", "swin_large_patch4_window7_224", "swin_small_patch4_window7_224",
    "swin_tiny_patch4_window7_224", "swinv2-large", "swinv2_base_window16_256", "swinv2_base_window8_256",
    "swinv2_large_window12to16_192to256", "swinv2_large_window16_256", "swinv2_small_window16_256",
    "swinv2_tiny_window8_256", "t5", "t5-11b", "t5-3b", "t5-base", "t5-large", "t5-small", "t5-v1_1-xxl", "t5-xxl",
    "table-transformer", "tencent/Hunyuan3D-2.1", "tencent/Hunyuan3D-2mini", "tencent/HunyuanImage-2.1",
    "tf_efficientnetv2_l", "tf_efficientnetv2_m", "tf_efficientnetv2_s", "thenlper/gte-large", "tianweiy/DMD2",
    "timesfm", "timesfm-2.5", "timesfm-2.5-200m", "timesformer", "timesformer-base", "tiny_vit_21m_224", "tinyvit",
    "tnt_s_patch16_224", "transformer-big", "transformer-big(WMT14)", "trellis-image-large", "trellis-large",
    "triposr", "twins_svt_base", "unet3d", "urchade/gliner_large-v2.1", "ustc-community/dfine-large-coco", "vgg11",
    "vgg16", "vgg19", "videomae-base", "videomae-large", "vidore/colpali-v1.3-hf", "vit", "vit-large-patch16-224",
    "vit_base_patch14_dinov2", "vit_base_patch16_224", "vit_base_patch16_384", "vit_base_patch16_siglip_224",
    "vit_base_patch32_224", "vit_giant_patch14_dinov2", "vit_gigantic_patch14_clip_224", "vit_huge_patch14_224",
    "vit_intern300m_patch14_448", "vit_large_patch14_clip_224", "vit_large_patch14_clip_336",
    "vit_large_patch14_dinov2", "vit_large_patch16_224", "vit_small_patch14_dinov2", "vit_small_patch16_224",
    "vit_so400m_patch14_siglip_384", "vit_tiny_patch16_224", "vitpose", "vitpose-b", "vitpose-base",
    "vitpose-base-simple", "vitpose-h", "vitpose-huge", "vitpose-huge-simple", "vitpose-l", "vitpose-large",
    "vitpose-large-simple", "vits", "vjepa2-vitl", "wan", "wan-1.3b", "wan-14b", "wan-2.2-t2v-a14b", "wan-animate",
    "wan-s2v", "wan-vace", "wan2.1", "wan2.1-i2v-14b", "wan2.1-t2v-1.3b", "wan2.1-t2v-14b", "wan2.1-vace-14b",
    "wan2.2", "wan2.2-5b", "wan2.2-animate-14b", "wan2.2-i2v-a14b", "wan2.2-i2v-a14b-lightning",
    "wan2.2-lightning-i2v", "wan2.2-lightning-t2v", "wan2.2-s2v-14b", "wan2.2-t2v-a14b",
    "wan2.2-t2v-a14b-lightning", "wan2.2-ti2v-5b", "wan2.2-ti2v-5b-i2v", "wav2vec2", "wav2vec2-base",
    "wav2vec2-large", "wav2vec2-large-960h-lv60-self", "wav2vec2-large-xlsr-53", "wav2vec2-xls-r-1b",
    "wav2vec2-xls-r-2b", "wav2vec2-xls-r-300m", "whisper", "whisper-base", "whisper-large", "whisper-large-v2",
    "whisper-large-v3", "whisper-large-v3-turbo", "whisper-medium", "whisper-small", "whisper-tiny",
    "whisper-turbo", "whisper-v3", "xcit_small_12_p16_224", "xls-r", "xls-r-1b", "xls-r-2b", "xls-r-300m", "xlsr",
    "xlsr-53", "xtts", "xtts-v2", "xttsv2", "yolo", "yolo-99", "yolo10", "yolo10b", "yolo10l", "yolo10m", "yolo10n",
    "yolo10s", "yolo10x", "yolo11-pose", "yolo11-posel", "yolo11-posem", "yolo11-posen", "yolo11-poses",
    "yolo11-posex", "yolo11-seg", "yolo11-segl", "yolo11-segm", "yolo11-segn", "yolo11-segs", "yolo11-segx",
    "yolo11l", "yolo11l-pose", "yolo11l-seg", "yolo11m", "yolo11m-pose", "yolo11m-seg", "yolo11n", "yolo11n-pose",
    "yolo11n-seg", "yolo11s", "yolo11s-pose", "yolo11s-seg", "yolo11x", "yolo11x-pose", "yolo11x-seg", "yolo12",
    "yolo12l", "yolo12m", "yolo12n", "yolo12s", "yolo12x", "yolo26", "yolo26l", "yolo26m", "yolo26n", "yolo26s",
    "yolo26x", "yolov10", "yolov10b", "yolov10l", "yolov10m", "yolov10n", "yolov10s", "yolov10x", "yolov12l",
    "yolov12m", "yolov12n", "yolov12s", "yolov12x", "yolov26l", "yolov26m", "yolov26n", "yolov26s", "yolov26x",
    "yolov3-tiny", "yolov5l", "yolov5lu", "yolov5m", "yolov5mu", "yolov5n", "yolov5nu", "yolov5s", "yolov5su",
    "yolov5x", "yolov5xu", "yolov6-n", "yolov6n", "yolov8l", "yolov8m", "yolov8n", "yolov8s", "yolov8x", "yolov9-c",
    "yolov9-e", "yolov9-m", "yolov9-s", "yolov9-t", "yolov9c", "yolov9e", "yolov9m", "yolov9s", "yolov9t",
    "z-image", "z-image-turbo", "zai-org/CogView4-6B", "zoedepth", "zoedepth-nyu-kitti", "zonos", "zonos-v0.1"
] | _Folded["NetworkName"]
"""Bundled networks that generate no tokens, by the names that are typed as such."""

class ServedPlan(PlanRecord):
    """A plan that serves tokens."""
    tpot_s: Figure
    tokens_per_s_per_user: Figure

class Plans(PlanReport):
    """Plans that serve tokens, best first."""
    plans: tuple[ServedPlan, ...]
    @property
    def best(self) -> ServedPlan: ...
    def __iter__(self) -> Iterator[ServedPlan]: ...
    @overload
    def __getitem__(self, at: int) -> ServedPlan: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[ServedPlan]: ...

class Explained(Plans):
    """One plan that serves tokens, and when a CPU would do a request of this size sooner."""
    amdahl: AmdahlReport | None

def check_statement(
    text: str | None = ...,
) -> StatementsReport: ...
def chips(
    search: str | None = ..., *, chips: Names = ..., vendor: str | None = ..., limit: str | int = ...,
) -> ChipsReport: ...
def claim(
    model: Model, *, result: str, in_: Number = ..., out: Number = ..., ttft: str | None = ...,
    tpot: str | None = ..., task: Literal['serve', 'batch', 'local'] = ..., precision: str | None = ...,
    runtime: str | None = ..., percentile: Number = ..., level: Literal['stock', 'tuned'] = ...,
    software: str | None = ..., sample: Table = ..., accuracy: Number = ..., against: Names = ...,
    count: str | int | None = ...,
) -> ClaimReport: ...
@overload
def compare(  # type: ignore[overload-overlap]
    model: NetworkName, *, chips: Names, deadline: str | None = ..., max_usd: str | float | None = ...,
    rate: Number = ..., e2e: str | None = ..., percentile: Number = ..., confidence: Number = ...,
    utilisation: Number = ..., day: Names = ..., own_chips: str | None = ..., precision: str | None = ...,
    runtime: str | None = ..., set_: Table = ..., share: Table = ..., software: str | None = ...,
    level: Literal['stock', 'tuned'] = ..., host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ...,
    provider: str = ..., region: str = ..., owning: Table = ..., price_of: Table = ...,
    evidence: Literal['all', 'none', 'published', 'own'] = ..., parameters: PathLike[str] | str | None = ...,
    batch: str | int | None = ..., resolution: Names | Number = ..., frames: str | int | None = ...,
    steps: str | int | None = ..., guidance: str | float | None = ..., settings: Table = ..., training: bool = ...,
    spread: Table = ..., offload: Table = ..., aside: Names = ..., have: Table = ..., host_memory: Number = ...,
    max_chips: str | int | None = ..., max_usd_per_h: str | float | None = ..., max_watts: Number = ...,
    spare: str | int = ..., samples: Number = ..., task: Literal['serve', 'batch', 'local'] = ...,
    by: Literal['chip', 'runtime', 'format', 'provider'] = ...,
) -> MediaReport: ...
@overload
def compare(
    model: Model, *, chips: Names, scale: Table = ..., tokens: Number = ..., deadline: str | None = ...,
    max_usd: str | float | None = ..., in_: Number = ..., out: Number = ..., images: Names = ...,
    cv: Number | Table = ..., log: PathLike[str] | str | None = ..., prefix_hit: Number = ...,
    common_prefix: Number = ..., sharers: Number = ..., rate: Number = ..., ttft: str | None = ...,
    tpot: str | None = ..., e2e: str | None = ..., percentile: Number = ..., confidence: Number = ...,
    utilisation: Number = ..., day: Names = ..., own_chips: str | None = ..., precision: str | None = ...,
    kv: str | None = ..., runtime: str | None = ..., policy: Table = ..., set_: Table = ..., share: Table = ...,
    speculate: Table = ..., lora: Table = ..., disaggregate: bool = ..., prefill: Table = ...,
    software: str | None = ..., level: Literal['stock', 'tuned'] = ..., harness: str | None = ...,
    host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ..., provider: str = ..., region: str = ...,
    owning: Table = ..., price_of: Table = ..., evidence: Literal['all', 'none', 'published', 'own'] = ...,
    parameters: PathLike[str] | str | None = ..., offload: Table = ..., have: Table = ...,
    host_memory: Number = ..., max_chips: str | int | None = ..., max_usd_per_h: str | float | None = ...,
    max_watts: Number = ..., spare: str | int = ..., samples: Number = ...,
    task: Literal['serve', 'batch', 'local'] = ..., by: Literal['chip', 'runtime', 'format', 'provider'] = ...,
) -> Plans: ...
@overload
def compare(
    model: Model, *, chips: Names, deadline: str | None = ..., max_usd: str | float | None = ...,
    rate: Number = ..., e2e: str | None = ..., percentile: Number = ..., confidence: Number = ...,
    utilisation: Number = ..., day: Names = ..., own_chips: str | None = ..., precision: str | None = ...,
    runtime: str | None = ..., set_: Table = ..., share: Table = ..., software: str | None = ...,
    level: Literal['stock', 'tuned'] = ..., host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ...,
    provider: str = ..., region: str = ..., owning: Table = ..., price_of: Table = ...,
    evidence: Literal['all', 'none', 'published', 'own'] = ..., parameters: PathLike[str] | str | None = ...,
    batch: str | int | None = ..., resolution: Names | Number = ..., frames: str | int | None = ...,
    steps: str | int | None = ..., guidance: str | float | None = ..., settings: Table = ..., training: bool = ...,
    spread: Table = ..., offload: Table = ..., aside: Names = ..., have: Table = ..., host_memory: Number = ...,
    max_chips: str | int | None = ..., max_usd_per_h: str | float | None = ..., max_watts: Number = ...,
    spare: str | int = ..., samples: Number = ..., task: Literal['serve', 'batch', 'local'] = ...,
    by: Literal['chip', 'runtime', 'format', 'provider'] = ...,
) -> MediaReport: ...
@overload
def estimate(  # type: ignore[overload-overlap]
    model: NetworkName, *, chip: PathLike[str] | str, rate: Number = ..., host_memory: Number = ...,
    own_chips: str | None = ..., precision: str | None = ..., runtime: str | None = ..., set_: Table = ...,
    share: Table = ..., software: str | None = ..., level: Literal['stock', 'tuned'] = ..., host: str | None = ...,
    price: Literal['rent', 'spot', 'own'] = ..., provider: str = ..., region: str = ..., owning: Table = ...,
    price_of: Table = ..., evidence: Literal['all', 'none', 'published', 'own'] = ...,
    parameters: PathLike[str] | str | None = ..., batch: str | int | None = ..., resolution: Names | Number = ...,
    frames: str | int | None = ..., steps: str | int | None = ..., guidance: str | float | None = ...,
    settings: Table = ..., training: bool = ..., spread: Table = ..., offload: Table = ..., aside: Names = ...,
    task: Literal['serve', 'batch', 'local'] = ...,
) -> MediaReport: ...
@overload
def estimate(
    model: Model, *, chip: PathLike[str] | str, count: str | int | None = ..., tp: str | int = ...,
    pp: str | int = ..., dp: str | int = ..., ep: str | int = ..., replicas: str | int = ...,
    concurrency: str | float | None = ..., rate: Number = ..., host_memory: Number = ..., in_: Number = ...,
    out: Number = ..., images: Names = ..., cv: Number | Table = ..., log: PathLike[str] | str | None = ...,
    prefix_hit: Number = ..., common_prefix: Number = ..., sharers: Number = ..., own_chips: str | None = ...,
    precision: str | None = ..., kv: str | None = ..., runtime: str | None = ..., policy: Table = ...,
    set_: Table = ..., share: Table = ..., speculate: Table = ..., lora: Table = ..., disaggregate: bool = ...,
    prefill: Table = ..., software: str | None = ..., level: Literal['stock', 'tuned'] = ...,
    harness: str | None = ..., host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ...,
    provider: str = ..., region: str = ..., owning: Table = ..., price_of: Table = ...,
    evidence: Literal['all', 'none', 'published', 'own'] = ..., parameters: PathLike[str] | str | None = ...,
    offload: Table = ..., task: Literal['serve', 'batch', 'local'] = ...,
) -> Plans: ...
@overload
def estimate(
    model: Model, *, chip: PathLike[str] | str, rate: Number = ..., host_memory: Number = ...,
    own_chips: str | None = ..., precision: str | None = ..., runtime: str | None = ..., set_: Table = ...,
    share: Table = ..., software: str | None = ..., level: Literal['stock', 'tuned'] = ..., host: str | None = ...,
    price: Literal['rent', 'spot', 'own'] = ..., provider: str = ..., region: str = ..., owning: Table = ...,
    price_of: Table = ..., evidence: Literal['all', 'none', 'published', 'own'] = ...,
    parameters: PathLike[str] | str | None = ..., batch: str | int | None = ..., resolution: Names | Number = ...,
    frames: str | int | None = ..., steps: str | int | None = ..., guidance: str | float | None = ...,
    settings: Table = ..., training: bool = ..., spread: Table = ..., offload: Table = ..., aside: Names = ...,
    task: Literal['serve', 'batch', 'local'] = ...,
) -> MediaReport: ...
def evidence(
    search: str | None = ..., *, benchmark: str | None = ..., chip: PathLike[str] | str | None = ...,
    scenario: str | None = ..., round_: str | None = ..., submitter: str | None = ..., own: bool = ...,
    best: bool = ..., limit: str | int = ...,
) -> EvidenceReport: ...
@overload
def explain(  # type: ignore[overload-overlap]
    model: NetworkName, *, chip: PathLike[str] | str, rate: Number = ..., host_memory: Number = ...,
    own_chips: str | None = ..., precision: str | None = ..., runtime: str | None = ..., set_: Table = ...,
    share: Table = ..., software: str | None = ..., level: Literal['stock', 'tuned'] = ..., host: str | None = ...,
    price: Literal['rent', 'spot', 'own'] = ..., provider: str = ..., region: str = ..., owning: Table = ...,
    price_of: Table = ..., evidence: Literal['all', 'none', 'published', 'own'] = ...,
    parameters: PathLike[str] | str | None = ..., batch: str | int | None = ..., resolution: Names | Number = ...,
    frames: str | int | None = ..., steps: str | int | None = ..., guidance: str | float | None = ...,
    settings: Table = ..., training: bool = ..., spread: Table = ..., offload: Table = ..., aside: Names = ...,
    task: Literal['serve', 'batch', 'local'] = ..., serial: Number = ...,
) -> MediaExplainReport: ...
@overload
def explain(
    model: Model, *, chip: PathLike[str] | str, count: str | int | None = ..., tp: str | int = ...,
    pp: str | int = ..., dp: str | int = ..., ep: str | int = ..., replicas: str | int = ...,
    concurrency: str | float | None = ..., rate: Number = ..., host_memory: Number = ..., in_: Number = ...,
    out: Number = ..., images: Names = ..., cv: Number | Table = ..., log: PathLike[str] | str | None = ...,
    prefix_hit: Number = ..., common_prefix: Number = ..., sharers: Number = ..., own_chips: str | None = ...,
    precision: str | None = ..., kv: str | None = ..., runtime: str | None = ..., policy: Table = ...,
    set_: Table = ..., share: Table = ..., speculate: Table = ..., lora: Table = ..., disaggregate: bool = ...,
    prefill: Table = ..., software: str | None = ..., level: Literal['stock', 'tuned'] = ...,
    harness: str | None = ..., host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ...,
    provider: str = ..., region: str = ..., owning: Table = ..., price_of: Table = ...,
    evidence: Literal['all', 'none', 'published', 'own'] = ..., parameters: PathLike[str] | str | None = ...,
    offload: Table = ..., task: Literal['serve', 'batch', 'local'] = ..., serial: Number = ...,
) -> Explained: ...
@overload
def explain(
    model: Model, *, chip: PathLike[str] | str, rate: Number = ..., host_memory: Number = ...,
    own_chips: str | None = ..., precision: str | None = ..., runtime: str | None = ..., set_: Table = ...,
    share: Table = ..., software: str | None = ..., level: Literal['stock', 'tuned'] = ..., host: str | None = ...,
    price: Literal['rent', 'spot', 'own'] = ..., provider: str = ..., region: str = ..., owning: Table = ...,
    price_of: Table = ..., evidence: Literal['all', 'none', 'published', 'own'] = ...,
    parameters: PathLike[str] | str | None = ..., batch: str | int | None = ..., resolution: Names | Number = ...,
    frames: str | int | None = ..., steps: str | int | None = ..., guidance: str | float | None = ...,
    settings: Table = ..., training: bool = ..., spread: Table = ..., offload: Table = ..., aside: Names = ...,
    task: Literal['serve', 'batch', 'local'] = ..., serial: Number = ...,
) -> MediaExplainReport: ...
@overload
def fit(  # type: ignore[overload-overlap]
    model: NetworkName, *, own_chips: str | None = ..., precision: str | None = ..., runtime: str | None = ...,
    set_: Table = ..., share: Table = ..., batch: str | int = ..., resolution: Names | Number = ...,
    frames: str | int | None = ..., steps: str | int | None = ..., guidance: str | float | None = ...,
    settings: Table = ..., training: bool = ..., spread: Table = ..., offload: Table = ..., aside: Names = ...,
    chips: Names = ..., software: str | None = ..., host_memory: Number = ...,
) -> MediaReport: ...
@overload
def fit(
    model: Model, *, own_chips: str | None = ..., precision: str | None = ..., kv: str | None = ...,
    runtime: str | None = ..., policy: Table = ..., set_: Table = ..., share: Table = ..., offload: Table = ...,
    chips: Names = ..., software: str | None = ..., count: str | int | None = ..., context: Number = ...,
    host_memory: Number = ..., lora: Table = ...,
) -> FitReport: ...
@overload
def fit(
    model: Model, *, own_chips: str | None = ..., precision: str | None = ..., runtime: str | None = ...,
    set_: Table = ..., share: Table = ..., batch: str | int = ..., resolution: Names | Number = ...,
    frames: str | int | None = ..., steps: str | int | None = ..., guidance: str | float | None = ...,
    settings: Table = ..., training: bool = ..., spread: Table = ..., offload: Table = ..., aside: Names = ...,
    chips: Names = ..., software: str | None = ..., host_memory: Number = ...,
) -> MediaReport: ...
def fleet(
    fleet: Table, *, gap: Number = ..., seconds: str | float = ..., simulate: bool = ...,
) -> PortfolioReport: ...
def frontier(
    model: Model, *, chips: Names, in_: Number = ..., out: Number = ..., images: Names = ...,
    cv: Number | Table = ..., log: PathLike[str] | str | None = ..., prefix_hit: Number = ...,
    common_prefix: Number = ..., sharers: Number = ..., own_chips: str | None = ..., precision: str | None = ...,
    kv: str | None = ..., runtime: str | None = ..., policy: Table = ..., set_: Table = ..., share: Table = ...,
    speculate: Table = ..., lora: Table = ..., disaggregate: bool = ..., prefill: Table = ...,
    software: str | None = ..., level: Literal['stock', 'tuned'] = ..., harness: str | None = ...,
    host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ..., provider: str = ..., region: str = ...,
    owning: Table = ..., price_of: Table = ..., evidence: Literal['all', 'none', 'published', 'own'] = ...,
    parameters: PathLike[str] | str | None = ..., max_chips: str | int | None = ..., formats: Table = ...,
) -> FrontierReport: ...
def kernel(
    op: Literal['gemm', 'attention', 'conv', 'experts', 'norm', 'softmax', 'elementwise', 'copy', 'collective'], *,
    chips: Names, dtype: str | None = ..., m: str | int | None = ..., n: str | int | None = ...,
    k: str | int | None = ..., batch: str | int | None = ..., kv: str | int | None = ..., q: str | int | None = ...,
    heads: str | int | None = ..., kv_heads: str | int | None = ..., head_dim: str | int | None = ...,
    value_dim: str | int | None = ..., window: str | int | None = ..., compute: str | None = ...,
    bidirectional: bool = ..., prompt: bool = ..., size: str | int | None = ..., channels: str | int | None = ...,
    filters: str | int | None = ..., kernel: str | int | None = ..., stride: str | int | None = ...,
    pad: str | int | None = ..., images: str | int | None = ..., tokens: str | int | None = ...,
    hidden: str | int | None = ..., inter: str | int | None = ..., experts: str | int | None = ...,
    top_k: str | int | None = ..., routing: str | None = ..., matrices: str | int | None = ...,
    kind: str | None = ..., bytes_: Number = ..., ranks: str | int | None = ..., apart: str | int | None = ...,
    oversubscription: str | float | None = ..., way: str | None = ..., runtime: str | None = ...,
    library: str | None = ..., launch: str | None = ..., fabric: str | None = ..., domain: str | int | None = ...,
    algorithm: str | None = ..., copies: str | int | None = ..., rotating: bool = ..., quantised: bool = ...,
    fetched: bool = ..., set_: Table = ...,
) -> KernelReport: ...
def load(
    model: Model, *, chip: PathLike[str] | str, count: str | int | None = ..., tp: str | int = ...,
    pp: str | int = ..., dp: str | int = ..., ep: str | int = ..., replicas: str | int = ...,
    concurrency: str | float | None = ..., rate: Number = ..., host_memory: Number = ..., in_: Number = ...,
    out: Number = ..., images: Names = ..., cv: Number | Table = ..., log: PathLike[str] | str | None = ...,
    prefix_hit: Number = ..., common_prefix: Number = ..., sharers: Number = ..., own_chips: str | None = ...,
    precision: str | None = ..., kv: str | None = ..., runtime: str | None = ..., policy: Table = ...,
    set_: Table = ..., share: Table = ..., speculate: Table = ..., lora: Table = ..., disaggregate: bool = ...,
    prefill: Table = ..., software: str | None = ..., level: Literal['stock', 'tuned'] = ...,
    harness: str | None = ..., host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ...,
    provider: str = ..., region: str = ..., owning: Table = ..., price_of: Table = ...,
    evidence: Literal['all', 'none', 'published', 'own'] = ..., parameters: PathLike[str] | str | None = ...,
    batch: str | int | None = ..., resolution: Names | Number = ..., frames: str | int | None = ...,
    steps: str | int | None = ..., guidance: str | float | None = ..., settings: Table = ..., training: bool = ...,
    spread: Table = ..., offload: Table = ..., aside: Names = ..., task: Literal['serve', 'batch', 'local'] = ...,
    ttft: str | None = ..., tpot: str | None = ...,
) -> LoadReport: ...
def local(
    *, have: Table = ..., host_memory: Number = ..., max_usd: str | float | None = ...,
    min_tps: str | float | None = ..., context: Number = ..., use: str | None = ..., models: Names = ...,
    most: str | int = ..., precision: str | None = ..., kv: str | None = ..., policy: Table = ...,
    set_: Table = ..., share: Table = ..., environment: str | None = ...,
) -> LocalReport: ...
def match(
    model: Model, *, in_: Number = ..., out: Number = ..., ttft: str | None = ..., tpot: str | None = ...,
    task: Literal['serve', 'batch', 'local'] = ..., precision: str | None = ..., runtime: str | None = ...,
    percentile: Number = ..., level: Literal['stock', 'tuned'] = ..., software: str | None = ...,
    sample: Table = ..., accuracy: Number = ..., chip: PathLike[str] | str | None = ...,
    count: str | int | None = ..., concurrency: str | float | None = ..., limit: str | int = ...,
) -> MatchReport: ...
def models(
    model: Model | None = ..., *, search: str | None = ..., limit: str | int = ...,
) -> ModelsReport: ...
def offers(
    *, chip: PathLike[str] | str | None = ..., provider: str | None = ..., limit: str | int = ...,
) -> OffersReport: ...
def operators(
    model: Model, *, chip: PathLike[str] | str, count: str | int | None = ..., tp: str | int = ...,
    pp: str | int = ..., dp: str | int = ..., ep: str | int = ..., replicas: str | int = ...,
    concurrency: str | float | None = ..., rate: Number = ..., host_memory: Number = ..., in_: Number = ...,
    out: Number = ..., images: Names = ..., cv: Number | Table = ..., log: PathLike[str] | str | None = ...,
    prefix_hit: Number = ..., common_prefix: Number = ..., sharers: Number = ..., own_chips: str | None = ...,
    precision: str | None = ..., kv: str | None = ..., runtime: str | None = ..., policy: Table = ...,
    set_: Table = ..., share: Table = ..., speculate: Table = ..., lora: Table = ..., disaggregate: bool = ...,
    prefill: Table = ..., software: str | None = ..., level: Literal['stock', 'tuned'] = ...,
    harness: str | None = ..., host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ...,
    provider: str = ..., region: str = ..., owning: Table = ..., price_of: Table = ...,
    evidence: Literal['all', 'none', 'published', 'own'] = ..., parameters: PathLike[str] | str | None = ...,
    batch: str | int | None = ..., resolution: Names | Number = ..., frames: str | int | None = ...,
    steps: str | int | None = ..., guidance: str | float | None = ..., settings: Table = ..., training: bool = ...,
    spread: Table = ..., offload: Table = ..., aside: Names = ..., task: Literal['serve', 'batch', 'local'] = ...,
) -> OperatorsReport: ...
@overload
def plan(  # type: ignore[overload-overlap]
    model: NetworkName, *, deadline: str | None = ..., max_usd: str | float | None = ..., rate: Number = ...,
    e2e: str | None = ..., percentile: Number = ..., confidence: Number = ..., utilisation: Number = ...,
    day: Names = ..., own_chips: str | None = ..., precision: str | None = ..., runtime: str | None = ...,
    set_: Table = ..., share: Table = ..., software: str | None = ..., level: Literal['stock', 'tuned'] = ...,
    host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ..., provider: str = ..., region: str = ...,
    owning: Table = ..., price_of: Table = ..., evidence: Literal['all', 'none', 'published', 'own'] = ...,
    parameters: PathLike[str] | str | None = ..., batch: str | int | None = ..., resolution: Names | Number = ...,
    frames: str | int | None = ..., steps: str | int | None = ..., guidance: str | float | None = ...,
    settings: Table = ..., training: bool = ..., spread: Table = ..., offload: Table = ..., aside: Names = ...,
    chips: Names = ..., have: Table = ..., host_memory: Number = ..., max_chips: str | int | None = ...,
    max_usd_per_h: str | float | None = ..., max_watts: Number = ..., spare: str | int = ..., samples: Number = ...,
    task: Literal['serve', 'batch', 'local'] = ..., by: Literal['chip', 'runtime', 'format', 'provider'] = ...,
) -> MediaReport: ...
@overload
def plan(
    model: Model, *, scale: Table = ..., tokens: Number = ..., deadline: str | None = ...,
    max_usd: str | float | None = ..., in_: Number = ..., out: Number = ..., images: Names = ...,
    cv: Number | Table = ..., log: PathLike[str] | str | None = ..., prefix_hit: Number = ...,
    common_prefix: Number = ..., sharers: Number = ..., rate: Number = ..., ttft: str | None = ...,
    tpot: str | None = ..., e2e: str | None = ..., percentile: Number = ..., confidence: Number = ...,
    utilisation: Number = ..., day: Names = ..., own_chips: str | None = ..., precision: str | None = ...,
    kv: str | None = ..., runtime: str | None = ..., policy: Table = ..., set_: Table = ..., share: Table = ...,
    speculate: Table = ..., lora: Table = ..., disaggregate: bool = ..., prefill: Table = ...,
    software: str | None = ..., level: Literal['stock', 'tuned'] = ..., harness: str | None = ...,
    host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ..., provider: str = ..., region: str = ...,
    owning: Table = ..., price_of: Table = ..., evidence: Literal['all', 'none', 'published', 'own'] = ...,
    parameters: PathLike[str] | str | None = ..., offload: Table = ..., chips: Names = ..., have: Table = ...,
    host_memory: Number = ..., max_chips: str | int | None = ..., max_usd_per_h: str | float | None = ...,
    max_watts: Number = ..., spare: str | int = ..., samples: Number = ...,
    task: Literal['serve', 'batch', 'local'] = ..., by: Literal['chip', 'runtime', 'format', 'provider'] = ...,
) -> Plans: ...
@overload
def plan(
    model: Model, *, deadline: str | None = ..., max_usd: str | float | None = ..., rate: Number = ...,
    e2e: str | None = ..., percentile: Number = ..., confidence: Number = ..., utilisation: Number = ...,
    day: Names = ..., own_chips: str | None = ..., precision: str | None = ..., runtime: str | None = ...,
    set_: Table = ..., share: Table = ..., software: str | None = ..., level: Literal['stock', 'tuned'] = ...,
    host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ..., provider: str = ..., region: str = ...,
    owning: Table = ..., price_of: Table = ..., evidence: Literal['all', 'none', 'published', 'own'] = ...,
    parameters: PathLike[str] | str | None = ..., batch: str | int | None = ..., resolution: Names | Number = ...,
    frames: str | int | None = ..., steps: str | int | None = ..., guidance: str | float | None = ...,
    settings: Table = ..., training: bool = ..., spread: Table = ..., offload: Table = ..., aside: Names = ...,
    chips: Names = ..., have: Table = ..., host_memory: Number = ..., max_chips: str | int | None = ...,
    max_usd_per_h: str | float | None = ..., max_watts: Number = ..., spare: str | int = ..., samples: Number = ...,
    task: Literal['serve', 'batch', 'local'] = ..., by: Literal['chip', 'runtime', 'format', 'provider'] = ...,
) -> MediaReport: ...
def rl(
    model: Model, *, price: Literal['rent', 'spot', 'own'] = ..., provider: str = ..., region: str = ...,
    owning: Table = ..., price_of: Table = ..., chips: Names = ..., counts: Names | Number = ...,
    prompts: str | int = ..., samples: str | int | None = ..., steps: str | int = ..., in_: Number = ...,
    out: Number = ..., cv: Number = ..., longest: Number = ..., algorithm: Literal['grpo', 'ppo', 'distill'] = ...,
    teacher: Model | None = ..., reference: bool = ..., method: Literal['full', 'lora'] = ...,
    placement: Literal['best', 'together', 'apart'] = ..., train_share: Number = ..., precision: str = ...,
    rollout_precision: str | None = ..., trainer: str | None = ..., runtime: str | None = ..., layout: Table = ...,
) -> RlReport: ...
def runtimes(
    *, runtime: str | None = ..., chip: PathLike[str] | str | None = ...,
) -> RuntimesReport: ...
def sensitivity(
    model: Model, *, chip: PathLike[str] | str, count: str | int | None = ..., tp: str | int = ...,
    pp: str | int = ..., dp: str | int = ..., ep: str | int = ..., replicas: str | int = ...,
    concurrency: str | float | None = ..., rate: Number = ..., host_memory: Number = ..., in_: Number = ...,
    out: Number = ..., images: Names = ..., cv: Number | Table = ..., log: PathLike[str] | str | None = ...,
    prefix_hit: Number = ..., common_prefix: Number = ..., sharers: Number = ..., own_chips: str | None = ...,
    precision: str | None = ..., kv: str | None = ..., runtime: str | None = ..., policy: Table = ...,
    set_: Table = ..., share: Table = ..., speculate: Table = ..., lora: Table = ..., disaggregate: bool = ...,
    prefill: Table = ..., software: str | None = ..., level: Literal['stock', 'tuned'] = ...,
    harness: str | None = ..., host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ...,
    provider: str = ..., region: str = ..., owning: Table = ..., price_of: Table = ...,
    evidence: Literal['all', 'none', 'published', 'own'] = ..., parameters: PathLike[str] | str | None = ...,
    batch: str | int | None = ..., resolution: Names | Number = ..., frames: str | int | None = ...,
    steps: str | int | None = ..., guidance: str | float | None = ..., settings: Table = ..., training: bool = ...,
    spread: Table = ..., offload: Table = ..., aside: Names = ..., task: Literal['serve', 'batch', 'local'] = ...,
) -> SensitivityReport: ...
def simulate(
    model: Model, *, cache_tiers: Table = ..., scale: Table = ..., chip: PathLike[str] | str | None = ...,
    count: str | int | None = ..., tp: str | int = ..., pp: str | int = ..., dp: str | int = ...,
    ep: str | int = ..., replicas: str | int = ..., concurrency: str | float | None = ..., rate: Number = ...,
    host_memory: Number = ..., in_: Number = ..., out: Number = ..., images: Names = ..., cv: Number | Table = ...,
    log: PathLike[str] | str | None = ..., prefix_hit: Number = ..., common_prefix: Number = ...,
    sharers: Number = ..., own_chips: str | None = ..., precision: str | None = ..., kv: str | None = ...,
    runtime: str | None = ..., policy: Table = ..., set_: Table = ..., share: Table = ..., speculate: Table = ...,
    lora: Table = ..., disaggregate: bool = ..., prefill: Table = ..., software: str | None = ...,
    level: Literal['stock', 'tuned'] = ..., harness: str | None = ..., host: str | None = ...,
    batch: str | int | None = ..., resolution: Names | Number = ..., frames: str | int | None = ...,
    steps: str | int | None = ..., guidance: str | float | None = ..., settings: Table = ..., training: bool = ...,
    spread: Table = ..., offload: Table = ..., aside: Names = ..., plan: str | int = ...,
    requests: str | int | None = ..., burstiness: str | float | None = ..., seed: str | int = ...,
    route: Optional[Literal['least', 'turn', 'prefix', 'queue']] = ..., ttft: str | None = ...,
    tpot: str | None = ..., e2e: str | None = ...,
) -> SimulationReport: ...
def systems(
    *, system: str | None = ..., chip: PathLike[str] | str | None = ...,
) -> SystemsReport: ...
def train(
    model: Model, *, tokens: Number = ..., deadline: str | None = ..., max_usd: str | float | None = ...,
    seq: Number = ..., global_batch: str | int = ..., counts: Names | Number = ..., layout: Table = ...,
    method: str | None = ..., trainer: str | None = ..., memory: Table = ..., adapter: Table = ...,
    objective: str | None = ..., documents: Table = ..., known_to_run: bool = ..., failures: Table = ...,
    storage: Table = ..., phases: Table = ..., evaluate: Table = ..., network: Table = ..., curves: bool = ...,
    price: Literal['rent', 'spot', 'own'] = ..., provider: str = ..., region: str = ..., owning: Table = ...,
    price_of: Table = ..., own_chips: str | None = ..., task: Literal['train', 'finetune'] = ...,
    chips: Names = ..., have: Table = ..., confidence: Number = ..., max_chips: str | int | None = ...,
    max_usd_per_h: str | float | None = ..., precision: str = ..., parameters: PathLike[str] | str | None = ...,
    set_: Table = ...,
) -> TrainReport: ...
