"""Networks from the configurations of a diffusers folder, by `_class_name` or `model_type`.

Keys: huggingface/diffusers, models/; huggingface/transformers, models/*/configuration_*.py. What is left out takes the
default of the class. A key whose value changes the shapes in a way that is not built is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from chipwise.errors import UnknownNameError, UsageError, shorten
from chipwise.workload.media.assemble import AskedNetwork, Diffusion, check_settings
from chipwise.workload.media.dit import (
    CogTransformer,
    CrossTransformer,
    HunyuanDiT,
    JointTransformer,
    MochiTransformer,
    SanaTransformer,
    SharedTransformer,
    StreamTransformer,
)
from chipwise.workload.media.text import T5, TextDecoder, TextEncoder
from chipwise.workload.media.unet import ControlNet, UNet
from chipwise.workload.media.vae import CausalVAE, DeepVAE, ImageVAE, LtxVAE, MochiVAE, PackedVAE, WanVAE
from chipwise.workload.media.vision import ViT
from chipwise.workload.pipeline import Pipeline


class _Config:
    """Keys of one configuration, with the defaults of its class, and the kind of each value checked."""

    def __init__(self, values: Mapping[str, Any], origin: str) -> None:
        self.values, self.origin = values, origin

    def whole(self, key: str, default: int | None = None, most: int = 10**7) -> int:
        """A whole number from 1 to `most`."""
        value = self.values.get(key)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= most:
            shown = shorten(repr(value))
            raise UsageError(f"{self.origin}: {key} = {shown} is not a whole number from 1 to {most:,}")
        return value

    def real(self, key: str, default: float) -> float:
        """A number above 0."""
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e6:
            raise UsageError(f"{self.origin}: {key} = {value!r} is not a number above 0")
        return float(value)

    def list(self, key: str, default: tuple[int, ...], length: int = 0) -> tuple[int, ...]:
        """Whole numbers above 0; one number stands for `length` of it."""
        value = self.values.get(key)
        value = default if value is None else value
        if isinstance(value, int) and not isinstance(value, bool) and length:
            value = (value,) * length
        good = isinstance(value, (list, tuple)) and 0 < len(value) <= 64
        if not good or not all(type(v) is int and 0 < v <= 10**7 for v in value):
            raise UsageError(f"{self.origin}: {key} = {shorten(repr(value))} is not a list of whole numbers")
        if length and len(value) != length:
            raise UsageError(f"{self.origin}: {key} has {len(value)} entries instead of {length}")
        return tuple(value)

    def flags(self, key: str, default: tuple[bool, ...], length: int = 0) -> tuple[bool, ...]:
        """Whether each of `length` levels (0: any number) does something."""
        value = self.values.get(key)
        value = default if value is None else value
        if not isinstance(value, (list, tuple)) or not all(isinstance(v, bool) for v in value):
            raise UsageError(f"{self.origin}: {key} = {shorten(repr(value))} is not a list of true and false")
        if length and len(value) != length:
            raise UsageError(f"{self.origin}: {key} has {len(value)} entries instead of {length}")
        return tuple(value)

    def names(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """Texts, in order."""
        value = self.values.get(key, default)
        if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
            raise UsageError(f"{self.origin}: {key} = {value!r} is not a list of texts")
        return tuple(value)

    def refuse(self, *keys: str) -> None:
        """Stop where a key that is not built is set."""
        for key in keys:
            if self.values.get(key):
                raise UsageError(
                    f"{self.origin}: {key} = {self.values[key]!r} is not built",
                    "trace the module instead: chipwise plan FILE.py:function",
                )

    def given(self, key: str, default: bool = False) -> bool:
        """Whether a switch is on."""
        value = self.values.get(key)
        return default if value is None else bool(value)


def _unet(c: _Config) -> UNet:
    c.refuse(
        "class_embed_type",
        "encoder_hid_dim",
        "dual_cross_attention",
        "num_class_embeds",
        "addition_embed_type_2",
    )
    channels = c.list("block_out_channels", (320, 640, 1280, 1280))
    levels = len(channels)
    blocks = c.names("down_block_types", (*("CrossAttnDownBlock2D",) * (levels - 1), "DownBlock2D"))
    strange = sorted(set(blocks) - {"CrossAttnDownBlock2D", "DownBlock2D"})
    if strange or len(blocks) != levels:
        raise UsageError(f"{c.origin}: down_block_types {', '.join(strange) or blocks} are not built")
    depths = c.list("transformer_layers_per_block", (1,) * levels, levels)
    heads = c.list(
        "num_attention_heads" if c.values.get("num_attention_heads") else "attention_head_dim",
        (8,) * levels,
        levels,
    )
    return UNet(
        channels=channels,
        depths=tuple(d if "Cross" in b else 0 for d, b in zip(depths, blocks, strict=True)),
        heads=heads,
        text_width=c.whole("cross_attention_dim", 1280),
        middle_depth=depths[-1],
        resnets=c.whole("layers_per_block", 2, 64),
        inputs=c.whole("in_channels", 4),
        outputs=c.whole("out_channels", 4),
        added=c.whole("projection_class_embeddings_input_dim") if c.values.get("addition_embed_type") else 0,
    )


def _controlnet(c: _Config) -> ControlNet:
    return ControlNet(unet=_unet(c), picture=c.list("conditioning_embedding_out_channels", (16, 32, 96, 256)))


def _flux(c: _Config) -> JointTransformer:
    return JointTransformer(
        heads=c.whole("num_attention_heads", 24),
        head_dim=c.whole("attention_head_dim", 128),
        double=c.whole("num_layers", 19),
        single=c.whole("num_single_layers", 38),
        inputs=c.whole("in_channels", 64) // 4,
        text_width=c.whole("joint_attention_dim", 4096),
        pooled=c.whole("pooled_projection_dim", 768),
        guidance=c.given("guidance_embeds"),
    )


def _chroma(c: _Config) -> JointTransformer:
    made = (("approximator_num_channels", 64), ("approximator_hidden_dim", 5120), ("approximator_layers", 5))
    channels, inner, depth = (c.whole(key, default) for key, default in made)
    return replace(_flux(c), pooled=0, guidance=False, approximator=(channels, inner, depth))


def _flux2(c: _Config) -> SharedTransformer:
    return SharedTransformer(
        heads=c.whole("num_attention_heads", 48),
        head_dim=c.whole("attention_head_dim", 128),
        double=c.whole("num_layers", 8),
        single=c.whole("num_single_layers", 48),
        inputs=c.whole("in_channels", 128),
        text_width=c.whole("joint_attention_dim", 15360),
        guidance=c.given("guidance_embeds", True),
        ratio=int(c.real("mlp_ratio", 3.0)),
    )


def _z_image(c: _Config) -> StreamTransformer:
    width, heads = c.whole("dim", 3840), c.whole("n_heads", 30)
    return StreamTransformer(
        heads=heads,
        head_dim=width // heads,
        kv_heads=heads,
        layers=c.whole("n_layers", 30),
        refine=c.whole("n_refiner_layers", 2),
        ffn=width * 8 // 3,
        inputs=c.whole("in_channels", 16),
        text_width=c.whole("cap_feat_dim", 2560),
        condition=min(width, 256),
        middle=1024,
        pads=2,
    )


def _lumina2(c: _Config) -> StreamTransformer:
    width, heads = c.whole("hidden_size", 2304), c.whole("num_attention_heads", 24)
    multiple, inner = c.whole("multiple_of", 256), 4 * width * c.real("ffn_dim_multiplier", 1.0)
    return StreamTransformer(
        heads=heads,
        head_dim=width // heads,
        kv_heads=c.whole("num_kv_heads", 8),
        layers=c.whole("num_layers", 26),
        refine=c.whole("num_refiner_layers", 2),
        ffn=-(-int(inner) // multiple) * multiple,
        inputs=c.whole("in_channels", 16),
        text_width=c.whole("cap_feat_dim", 1024),
        condition=min(width, 1024),
        middle=min(width, 1024),
    )


def _sd3(c: _Config) -> JointTransformer:
    side = c.whole("patch_size", 2)
    dual = c.values.get("dual_attention_layers") or ()
    return JointTransformer(
        heads=c.whole("num_attention_heads", 18),
        head_dim=c.whole("attention_head_dim", 64),
        double=c.whole("num_layers", 18),
        inputs=c.whole("in_channels", 16),
        outputs=c.whole("out_channels", 16),
        patch=(1, side, side),
        text_width=c.whole("joint_attention_dim", 4096),
        pooled=c.whole("pooled_projection_dim", 2048),
        qk_norm="rms" if c.values.get("qk_norm") else "",
        dual=len(dual),
        text_ends=True,
        rotary=False,
    )


def _qwen_image(c: _Config) -> JointTransformer:
    c.refuse("guidance_embeds")
    return JointTransformer(
        heads=c.whole("num_attention_heads", 24),
        head_dim=c.whole("attention_head_dim", 128),
        double=c.whole("num_layers", 60),
        inputs=c.whole("in_channels", 64) // 4,
        text_width=c.whole("joint_attention_dim", 3584),
        text_norm=True,
    )


def _hunyuan_video(c: _Config) -> JointTransformer:
    c.refuse("image_condition_type")
    side = c.whole("patch_size", 2)
    return JointTransformer(
        heads=c.whole("num_attention_heads", 24),
        head_dim=c.whole("attention_head_dim", 128),
        double=c.whole("num_layers", 20),
        single=c.whole("num_single_layers", 40),
        inputs=c.whole("in_channels", 16),
        outputs=c.whole("out_channels", 16),
        patch=(c.whole("patch_size_t", 1), side, side),
        text_width=c.whole("text_embed_dim", 4096),
        pooled=c.whole("pooled_projection_dim", 768),
        guidance=c.given("guidance_embeds", True),
        refiner=c.whole("num_refiner_layers", 2),
    )


def _hunyuan_video_15(c: _Config) -> JointTransformer:
    c.refuse("use_meanflow")
    side = c.whole("patch_size", 1)
    return JointTransformer(
        heads=c.whole("num_attention_heads", 16),
        head_dim=c.whole("attention_head_dim", 128),
        double=c.whole("num_layers", 54),
        inputs=c.whole("in_channels", 65),
        outputs=c.whole("out_channels", 32),
        patch=(c.whole("patch_size_t", 1), side, side),
        text_width=c.whole("text_embed_dim", 3584),
        refiner=c.whole("num_refiner_layers", 2),
        glyphs=(c.whole("text_embed_2_dim", 1472), 256),  # tokens as HunyuanVideo15Pipeline pads them
        pictured=(c.whole("image_embed_dim", 1152), 729),
    )


def _wan(c: _Config) -> CrossTransformer:
    c.refuse("pos_embed_seq_len")
    patch = c.list("patch_size", (1, 2, 2), 3)
    return CrossTransformer(
        heads=c.whole("num_attention_heads", 40),
        head_dim=c.whole("attention_head_dim", 128),
        ffn=c.whole("ffn_dim", 13824),
        layers=c.whole("num_layers", 40),
        inputs=c.whole("in_channels", 16),
        outputs=c.whole("out_channels", 16),
        patch=(patch[0], patch[1], patch[2]),
        caption=c.whole("text_dim", 4096),
        cross_norm=c.given("cross_attn_norm", True),
        image_width=c.whole("image_dim") if c.values.get("image_dim") else 0,
    )


def _ltx(c: _Config) -> CrossTransformer:
    heads, size, side = (
        c.whole("num_attention_heads", 32),
        c.whole("attention_head_dim", 64),
        c.whole("patch_size", 1),
    )
    return CrossTransformer(
        heads=heads,
        head_dim=size,
        ffn=4 * heads * size,
        layers=c.whole("num_layers", 28),
        inputs=c.whole("in_channels", 128),
        outputs=c.whole("out_channels", 128),
        patch=(c.whole("patch_size_t", 1), side, side),
        caption=c.whole("caption_channels", 4096),
    )


def _pixart(c: _Config) -> CrossTransformer:
    heads, size, side = (
        c.whole("num_attention_heads", 16),
        c.whole("attention_head_dim", 72),
        c.whole("patch_size", 2),
    )
    large = c.whole("sample_size", 128) == 128
    extra = c.values.get("use_additional_conditions")
    return CrossTransformer(
        heads=heads,
        head_dim=size,
        ffn=4 * heads * size,
        layers=c.whole("num_layers", 28),
        inputs=c.whole("in_channels", 4),
        outputs=c.whole("out_channels", 8),
        patch=(1, side, side),
        caption=c.whole("caption_channels", 4096),
        rotary=False,
        qk_norm="",
        sizes=large if extra is None else bool(extra),
    )


def _cog(c: _Config) -> CogTransformer:
    c.refuse("ofs_embed_dim", "use_learned_positional_embeddings")
    side = c.whole("patch_size", 2)
    return CogTransformer(
        heads=c.whole("num_attention_heads", 30),
        head_dim=c.whole("attention_head_dim", 64),
        layers=c.whole("num_layers", 30),
        inputs=c.whole("in_channels", 16),
        outputs=c.whole("out_channels", 16),
        patch=(c.whole("patch_size_t", 1), side, side),
        text_width=c.whole("text_embed_dim", 4096),
        time=c.whole("time_embed_dim", 512),
        rotary=c.given("use_rotary_positional_embeddings"),
    )


def _mochi(c: _Config) -> MochiTransformer:
    side = c.whole("patch_size", 2)
    return MochiTransformer(
        heads=c.whole("num_attention_heads", 24),
        head_dim=c.whole("attention_head_dim", 128),
        layers=c.whole("num_layers", 48),
        text_inner=c.whole("pooled_projection_dim", 1536),
        inputs=c.whole("in_channels", 12),
        patch=(1, side, side),
        text_width=c.whole("text_embed_dim", 4096),
    )


def _sana(c: _Config) -> SanaTransformer:
    return SanaTransformer(
        heads=c.whole("num_attention_heads", 70),
        head_dim=c.whole("attention_head_dim", 32),
        cross_heads=c.whole("num_cross_attention_heads", 20),
        layers=c.whole("num_layers", 20),
        inputs=c.whole("in_channels", 32),
        caption=c.whole("caption_channels", 2304),
        ratio=c.real("mlp_ratio", 2.5),
        normed=c.given("qk_norm"),
        guidance=c.given("guidance_embeds"),
    )


def _hunyuan_dit(c: _Config) -> HunyuanDiT:
    heads, size = c.whole("num_attention_heads", 16), c.whole("attention_head_dim", 88)
    inputs, t5 = c.whole("in_channels", 4), c.whole("text_len_t5", 256)
    return HunyuanDiT(
        heads=heads,
        head_dim=size,
        ffn=int(c.real("mlp_ratio", 4.0) * heads * size),
        layers=c.whole("num_layers", 40),
        inputs=inputs,
        outputs=inputs * (2 if c.given("learn_sigma", True) else 1),
        text=c.whole("text_len", 77) + t5,
        text_width=c.whole("cross_attention_dim", 1024),
        t5_width=c.whole("cross_attention_dim_t5", 2048),
        t5_tokens=t5,
        style=c.given("use_style_cond_and_image_meta_size", True),
    )


def _image_vae(c: _Config) -> ImageVAE:
    return ImageVAE(
        channels=c.list("block_out_channels", (64,)),
        latent=c.whole("latent_channels", 4),
        resnets=c.whole("layers_per_block", 1, 64),
        attention=c.given("mid_block_add_attention", True),
        quant=c.given("use_quant_conv", True),
    )


def _wan_vae(c: _Config) -> WanVAE:
    width, mult = c.whole("base_dim", 96), c.list("dim_mult", (1, 2, 4, 4))
    return WanVAE(
        width=width,
        decoder_width=c.whole("decoder_base_dim", width),
        latent=c.whole("z_dim", 16),
        mult=mult,
        resnets=c.whole("num_res_blocks", 2, 64),
        time=c.flags("temperal_downsample", (False, True, True), len(mult) - 1),
        patch=c.whole("patch_size", 1),
        shortcuts=c.given("is_residual"),
    )


def _hunyuan_vae(c: _Config) -> CausalVAE:
    return CausalVAE(
        channels=c.list("block_out_channels", (128, 256, 512, 512), 4),
        latent=c.whole("latent_channels", 16),
        resnets=c.whole("layers_per_block", 2, 64),
        attention=c.given("mid_block_add_attention", True),
        tile=(16, 32, 32),
    )


def _hunyuan_vae_15(c: _Config) -> PackedVAE:
    channels = c.list("block_out_channels", (128, 256, 512, 1024, 1024))
    count, latent = c.whole("layers_per_block", 2, 64), c.whole("latent_channels", 32)
    space = c.whole("spatial_compression_ratio", 16).bit_length() - 1
    time = c.whole("temporal_compression_ratio", 4).bit_length() - 1
    levels = len(channels)
    if space != levels - 1 or time > space:
        raise UsageError(
            f"{c.origin}: {levels} levels do not compress by 2 each", "spatial_compression_ratio"
        )
    packs = tuple((2 if level >= space - time else 1, 2, 2) for level in range(space))
    return PackedVAE(
        encoder=channels,
        encoder_resnets=(*(count,) * space, count + 2),
        packs=packs,
        decoder=channels[::-1],
        decoder_resnets=(count + 3, *(count + 1,) * space),
        spreads=packs[::-1],
        latent=latent,
        moments=2 * latent,
        scaled=True,
        attention=True,
        tile=(1000, 16, 16),
    )


def _cog_vae(c: _Config) -> CausalVAE:
    return CausalVAE(
        channels=c.list("block_out_channels", (128, 256, 256, 512), 4),
        latent=c.whole("latent_channels", 16),
        resnets=c.whole("layers_per_block", 3, 64),
        time=(True, True, False),
        attention=False,
        quant=c.given("use_quant_conv"),
        spatial_norm=True,
        chunk=2,
    )


def _ltx_vae(c: _Config) -> LtxVAE:
    c.refuse("timestep_conditioning")
    if any(c.flags("decoder_inject_noise", ())) or any(c.flags("upsample_residual", ())):
        raise UsageError(
            f"{c.origin}: this version of the autoencoder is not built", "the one of LTX-Video 0.9.0 is"
        )
    channels = c.list("block_out_channels", (128, 256, 512, 512))
    return LtxVAE(
        channels=channels,
        latent=c.whole("latent_channels", 128),
        resnets=c.list("layers_per_block", (4, 3, 3, 3, 4), len(channels) + 1),
        patch=c.whole("patch_size", 4),
    )


def _mochi_vae(c: _Config) -> MochiVAE:
    channels = c.list("decoder_block_out_channels", (128, 256, 512, 768))
    return MochiVAE(
        channels=channels,
        latent=c.whole("latent_channels", 12),
        resnets=c.list("layers_per_block", (3, 3, 4, 6, 3), len(channels) + 1),
        time=c.list("temporal_expansions", (1, 2, 3), len(channels) - 1),
    )


def _deep_vae(c: _Config) -> DeepVAE:
    channels = c.list("decoder_block_out_channels", (128, 256, 512, 512, 1024, 1024))
    return DeepVAE(
        channels=channels,
        latent=c.whole("latent_channels", 32),
        encoder=c.list("encoder_layers_per_block", (2, 2, 2, 3, 3, 3), len(channels)),
        decoder=c.list("decoder_layers_per_block", (3, 3, 3, 3, 3, 3), len(channels)),
        head_dim=c.whole("attention_head_dim", 32),
    )


def _clip_text(c: _Config) -> TextEncoder:
    projected = "CLIPTextModelWithProjection" in c.names("architectures", ())
    return TextEncoder(
        width=c.whole("hidden_size", 512),
        layers=c.whole("num_hidden_layers", 12),
        heads=c.whole("num_attention_heads", 8),
        ffn=c.whole("intermediate_size", 2048),
        vocab=c.whole("vocab_size", 49408),
        positions=c.whole("max_position_embeddings", 77),
        projection=c.whole("projection_dim", 512) if projected else 0,
        causal=True,
        final_norm=True,
    )


def _bert(c: _Config) -> TextEncoder:
    return TextEncoder(
        width=c.whole("hidden_size", 768),
        layers=c.whole("num_hidden_layers", 12),
        heads=c.whole("num_attention_heads", 12),
        ffn=c.whole("intermediate_size", 3072),
        vocab=c.whole("vocab_size", 30522),
        positions=c.whole("max_position_embeddings", 512),
        types=c.whole("type_vocab_size", 2),
        pooler=True,
    )


def _t5(c: _Config) -> T5:
    act = str(c.values.get("feed_forward_proj") or "")
    return T5(
        width=c.whole("d_model", 512),
        layers=c.whole("num_layers", 6),
        heads=c.whole("num_heads", 8),
        ffn=c.whole("d_ff", 2048),
        vocab=c.whole("vocab_size", 32128),
        head_dim=c.whole("d_kv", 64),
        buckets=c.whole("relative_attention_num_buckets", 32),
        gated=c.given("is_gated_act", act.startswith("gated")),
        every=c.values.get("model_type") == "umt5" or c.values.get("_class_name") == "UMT5EncoderModel",
    )


def _decoder(c: _Config) -> TextDecoder:
    inner = c.values.get("text_config")
    if isinstance(inner, Mapping):
        return _decoder(_Config({"model_type": c.values.get("model_type"), **inner}, c.origin))
    width, heads = c.whole("hidden_size"), c.whole("num_attention_heads")
    kind = str(c.values.get("model_type", ""))
    return TextDecoder(
        width=width,
        layers=c.whole("num_hidden_layers"),
        heads=heads,
        kv_heads=c.whole("num_key_value_heads", heads),
        head_dim=c.whole("head_dim", width // heads),
        ffn=c.whole("intermediate_size"),
        vocab=c.whole("vocab_size"),
        qkv_bias=kind.startswith("qwen2"),
        sandwich=kind.startswith("gemma2"),
    )


def _clip_vision(c: _Config) -> ViT:
    return ViT(
        width=c.whole("hidden_size", 768),
        layers=c.whole("num_hidden_layers", 12),
        heads=c.whole("num_attention_heads", 12),
        ffn=c.whole("intermediate_size", 3072),
        patch=c.whole("patch_size", 32),
        native=c.whole("image_size", 224),
        pre_norm=True,
        patch_bias=False,
        classes=c.whole("projection_dim", 512) if "projection_dim" in c.values else 0,
        biased=False,
    )


READERS: Mapping[str, Callable[[_Config], Any]] = {
    "UNet2DConditionModel": _unet,
    "ControlNetModel": _controlnet,
    "FluxTransformer2DModel": _flux,
    "ChromaTransformer2DModel": _chroma,
    "Flux2Transformer2DModel": _flux2,
    "SD3Transformer2DModel": _sd3,
    "ZImageTransformer2DModel": _z_image,
    "Lumina2Transformer2DModel": _lumina2,
    "QwenImageTransformer2DModel": _qwen_image,
    "HunyuanVideoTransformer3DModel": _hunyuan_video,
    "HunyuanVideo15Transformer3DModel": _hunyuan_video_15,
    "WanTransformer3DModel": _wan,
    "LTXVideoTransformer3DModel": _ltx,
    "PixArtTransformer2DModel": _pixart,
    "CogVideoXTransformer3DModel": _cog,
    "MochiTransformer3DModel": _mochi,
    "SanaTransformer2DModel": _sana,
    "HunyuanDiT2DModel": _hunyuan_dit,
    "AutoencoderKL": _image_vae,
    "AutoencoderKLFlux2": _image_vae,
    "AutoencoderKLWan": _wan_vae,
    "AutoencoderKLQwenImage": _wan_vae,
    "AutoencoderKLHunyuanVideo": _hunyuan_vae,
    "AutoencoderKLHunyuanVideo15": _hunyuan_vae_15,
    "AutoencoderKLCogVideoX": _cog_vae,
    "AutoencoderKLLTXVideo": _ltx_vae,
    "AutoencoderKLMochi": _mochi_vae,
    "AutoencoderDC": _deep_vae,
    "clip_text_model": _clip_text,
    "clip_vision_model": _clip_vision,
    "bert": _bert,
    "t5": _t5,
    "umt5": _t5,
    "llama": _decoder,
    "mistral": _decoder,
    "mistral3": _decoder,
    "qwen2": _decoder,
    "qwen3": _decoder,
    "qwen2_5_vl": _decoder,
    "gemma2": _decoder,
}
"""Readers by `_class_name` of diffusers or `model_type` of transformers."""

USUAL: Mapping[str, tuple[int, float, int, int, tuple[int, int]]] = {
    "UNet2DConditionModel": (50, 7.5, 77, 1, (0, 0)),
    "FluxTransformer2DModel": (28, 3.5, 512, 1, (1024, 1024)),
    "ChromaTransformer2DModel": (35, 5.0, 512, 1, (1024, 1024)),
    "Flux2Transformer2DModel": (50, 4.0, 512, 1, (1024, 1024)),
    "SD3Transformer2DModel": (28, 7.0, 333, 1, (1024, 1024)),
    "ZImageTransformer2DModel": (50, 5.0, 128, 1, (1024, 1024)),
    "Lumina2Transformer2DModel": (30, 4.0, 256, 1, (1024, 1024)),
    "QwenImageTransformer2DModel": (50, 4.0, 128, 1, (1328, 1328)),
    "PixArtTransformer2DModel": (20, 4.5, 120, 1, (0, 0)),
    "SanaTransformer2DModel": (20, 4.5, 300, 1, (1024, 1024)),
    "HunyuanDiT2DModel": (50, 5.0, 333, 1, (1024, 1024)),
    "HunyuanVideoTransformer3DModel": (50, 6.0, 256, 129, (1280, 720)),
    "HunyuanVideo15Transformer3DModel": (50, 6.0, 1000, 121, (1280, 720)),
    "WanTransformer3DModel": (50, 5.0, 512, 81, (832, 480)),
    "LTXVideoTransformer3DModel": (50, 3.0, 128, 161, (704, 512)),
    "CogVideoXTransformer3DModel": (50, 6.0, 226, 49, (720, 480)),
    "MochiTransformer3DModel": (64, 4.5, 256, 85, (848, 480)),
}
"""Steps, guidance, text tokens, frames and size (0: the denoiser's own) that are assumed: defaults of diffusers."""


APART = (
    "ChromaTransformer2DModel",
    "HunyuanVideo15Transformer3DModel",
    "QwenImageTransformer2DModel",
    "WanTransformer3DModel",
)
"""Denoisers whose two passes of guidance are calls of their own."""


def read_part(config: Mapping[str, Any], origin: str) -> Any:
    """The network that a configuration describes. Raises `UnknownNameError` for a class that is not built."""
    for key in ("_class_name", "model_type"):
        kind = str(config.get(key) or "")
        if kind in READERS:
            return READERS[kind](_Config(config, f"{origin} ({kind})"))
    kind = str(
        config.get("_class_name")
        or config.get("model_type")
        or next(iter(config.get("architectures") or ()), "")
    )
    raise UnknownNameError("class", kind or origin, READERS, f"{origin}: trace the module instead")


def from_parts(
    configs: Mapping[str, Mapping[str, Any]],
    *,
    name: str = "diffusers folder",
    batch: int = 1,
    precision: str = "bf16",
    trained: bool = False,
    **settings: Any,
) -> Pipeline:
    """A generator from the configurations of its components: text encoders, one denoiser or two, an autoencoder.

    `configs` by component ("unet", "transformer", "transformer_2", "vae", "text_encoder", "text_encoder_2",
    "controlnet", "image_encoder"); schedulers, tokenizers and the like are passed over. `settings` are those of
    `pipeline` for generators: resolution, frames, steps, guidance, text_tokens, part, attention. What is not said is
    assumed as diffusers' pipelines do, and listed.

    Raises `UsageError` where the denoiser or the autoencoder is missing or a key cannot be read, `UnknownNameError` for
    a class that is not built.
    """
    read = {key: read_part(c, key) for key, c in configs.items() if _network(key)}
    for wanted, keys in (("denoiser", ("unet", "transformer")), ("autoencoder", ("vae",))):
        if not any(key in read for key in keys):
            raise UsageError(f"{name} has no {wanted}", f"a component named {' or '.join(keys)} is needed")
    net, vae = read.get("unet") or read["transformer"], read["vae"]
    config = configs["unet" if "unet" in read else "transformer"]
    steps, guidance, tokens, frames, (width, height) = USUAL[str(config["_class_name"])]
    side = config.get("sample_size")
    if not width:
        width = height = (side if type(side) is int and side > 0 else 64) * vae.spatial
    texts = tuple(read[key] for key in sorted(read) if key.startswith("text_encoder"))
    each = tuple(77 if isinstance(text, TextEncoder) else tokens for text in texts)
    task = Diffusion(
        text=texts,
        text_tokens=each,
        seen=tokens,
        denoiser=net,
        controls=(read["controlnet"],) if "controlnet" in read else (),
        vae=vae,
        upcast=bool(configs["vae"].get("force_upcast")),
        width=width,
        height=height,
        frames=frames,
        steps=steps,
        guidance=guidance,
        distilled=isinstance(net, (JointTransformer, SharedTransformer, SanaTransformer)) and net.guidance,
        apart=config["_class_name"] in APART,
        experts=2 if "transformer_2" in read else 1,
        boundary=0.875,
        shift=12.0,
        image="image_encoder" in read,
        image_encoder=read.get("image_encoder", ""),
    )
    given = {key: tuple(v) if isinstance(v, list) else v for key, v in settings.items() if v is not None}
    check_settings(name, task, given)
    assumed = {"steps": steps, "guidance": guidance, "text_tokens": tokens, "resolution": f"{width}x{height}"}
    assumed |= {"frames": frames} if frames > 1 else {}
    said = tuple(f"{key} {value}" for key, value in assumed.items() if key not in given)
    found = task.pipeline(AskedNetwork(name, batch, precision, trained, given))
    return Pipeline(
        found.name,
        found.stages,
        found.batch,
        found.unit,
        found.trained,
        found.settings,
        (*found.assumptions, *said),
    )


def _network(key: str) -> bool:
    """Whether a component of a folder holds a network that a request runs."""
    known = ("unet", "transformer", "transformer_2", "vae", "controlnet", "image_encoder")
    return key in known or key.startswith("text_encoder")
