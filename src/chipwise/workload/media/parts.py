"""Networks from the configurations of a diffusers folder, by `_class_name` or `model_type`: classes and their keys are
rows of `workload/data/diffusers.toml`.

What is left out takes the default of the class. A key whose value changes the shapes in a way that is not built is an
error.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from chipwise.catalog.parsed import parse
from chipwise.catalog.snapshot import per_snapshot, shipped_text
from chipwise.errors import UnknownNameError, UsageError, shorten
from chipwise.values import dataclass
from chipwise.workload.media.assemble import AskedNetwork, Diffusion, check_settings
from chipwise.workload.media.facts import families
from chipwise.workload.media.text import TextEncoder
from chipwise.workload.program import Program

TABLE = "workload/data/diffusers.toml"
KEY = re.compile(r"(?P<key>\w+)=(?P<default>[^/]+?)(?: // (?P<by>\d+))?")
"""A field that is a key of the configuration, its default, and by what its number is divided."""
MOST = {"layers_per_block": 64, "num_res_blocks": 64}
"""count: what a key holds at most, where more would be built for minutes. Chosen: eight times what is published."""


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

    def value(self, key: str, default: Any, length: int = 0) -> Any:
        """A key of the kind of its default; of one that may be missing (0) the number that is there."""
        if isinstance(default, bool):
            return self.given(key, default)
        if isinstance(default, list):
            read = self.flags if isinstance(default[0], bool) else self.list
            return read(key, tuple(default), length)
        if isinstance(default, float):
            return self.real(key, default)
        if default == 0 and not self.values.get(key):
            return 0
        return self.whole(key, default or None, MOST.get(key, 10**7))


Fields = Mapping[str, Any]
"""Fields of a network, by name, that were read before."""


@dataclass(frozen=True)
class PartClass:
    """A class of diffusers or transformers: its row of the table."""

    name: str
    row: Mapping[str, Any]

    @property
    def usual(self) -> Mapping[str, Any]:
        """What pipelines of a denoiser take where nothing is said."""
        return {"frames": 1, "size": (0, 0), **self.row["usual"]}

    def network(self, c: _Config) -> Any:
        """The network of a configuration."""
        c.refuse(*self.row.get("refuse", ()))
        told = ("classes", "part", "refuse", "usual", "apart", "said", "lengths")
        found: dict[str, Any] = {}
        for name, text in self.row.items():
            if name not in told:
                length = self._length(self.row.get("lengths", {}).get(name, "0"), found)
                found[name] = _read(c, text, found, length)
        more = MORE.get(self.name)
        return families()[self.row["part"]](**found, **(more(c, found) if more else {}))

    @staticmethod
    def _length(text: str, found: Fields) -> int:
        """Entries of a list: a number, or those of a field, one more or one less."""
        name, _, more = text.partition(" ")
        return int(name) if name.isdigit() else len(found[name]) + int(more.replace(" ", "") or 0)


def _read(c: _Config, text: Any, found: Fields, length: int = 0) -> Any:
    """The value of a field; `found` are those before it."""
    if isinstance(text, list):
        return tuple(_read(c, each, found) for each in text)
    if not isinstance(text, str):
        return text
    if text.startswith("="):
        return math.prod(int(word) if word.isdigit() else found[word] for word in text[1:].split(" * "))
    key = KEY.fullmatch(text)
    if key is None:
        return text
    value = c.value(key["key"], json.loads(key["default"]), length)
    return value // int(key["by"]) if key["by"] else value


def _unet(c: _Config, f: Fields) -> Fields:
    levels = len(f["channels"])
    blocks = c.names("down_block_types", (*("CrossAttnDownBlock2D",) * (levels - 1), "DownBlock2D"))
    strange = sorted(set(blocks) - {"CrossAttnDownBlock2D", "DownBlock2D"})
    if strange or len(blocks) != levels:
        raise UsageError(f"{c.origin}: down_block_types {', '.join(strange) or blocks} are not built")
    depths = c.list("transformer_layers_per_block", (1,) * levels, levels)
    heads = "num_attention_heads" if c.values.get("num_attention_heads") else "attention_head_dim"
    return {
        "depths": tuple(d if "Cross" in b else 0 for d, b in zip(depths, blocks, strict=True)),
        "heads": c.list(heads, (8,) * levels, levels),
        "middle_depth": depths[-1],
        "added": c.whole("projection_class_embeddings_input_dim") if c.values.get("addition_embed_type") else 0,
    }


def _controlnet(c: _Config, _: Fields) -> Fields:
    return {"unet": classes()["UNet2DConditionModel"].network(c)}


def _lumina2(c: _Config, f: Fields) -> Fields:
    width, multiple = c.whole("hidden_size", 2304), c.whole("multiple_of", 256)
    inner, middle = int(4 * width * c.real("ffn_dim_multiplier", 1.0)), min(width, 1024)
    ffn = -(-inner // multiple) * multiple
    return {"head_dim": width // f["heads"], "ffn": ffn, "condition": middle, "middle": middle}


def _z_image(c: _Config, f: Fields) -> Fields:
    width, heads = c.whole("dim", 3840), f["heads"]
    ffn, condition = width * 8 // 3, min(width, 256)
    return {"head_dim": width // heads, "kv_heads": heads, "ffn": ffn, "condition": condition}


def _pixart(c: _Config, _: Fields) -> Fields:
    large, extra = c.whole("sample_size", 128) == 128, c.values.get("use_additional_conditions")
    return {"sizes": large if extra is None else bool(extra)}


def _hunyuan_dit(c: _Config, f: Fields) -> Fields:
    return {
        "ffn": int(c.real("mlp_ratio", 4.0) * f["heads"] * f["head_dim"]),
        "outputs": f["inputs"] * (2 if c.given("learn_sigma", True) else 1),
        "text": c.whole("text_len", 77) + f["t5_tokens"],
    }


def _hunyuan_vae_15(c: _Config, f: Fields) -> Fields:
    channels, count = (c.list("block_out_channels", (128, 256, 512, 1024, 1024)), c.whole("layers_per_block", 2, 64))
    space = c.whole("spatial_compression_ratio", 16).bit_length() - 1
    time = c.whole("temporal_compression_ratio", 4).bit_length() - 1
    levels = len(channels)
    if space != levels - 1 or time > space:
        raise UsageError(f"{c.origin}: {levels} levels do not compress by 2 each", "spatial_compression_ratio")
    packs = tuple((2 if level >= space - time else 1, 2, 2) for level in range(space))
    return {
        "encoder": channels,
        "encoder_resnets": (*(count,) * space, count + 2),
        "packs": packs,
        "decoder": channels[::-1],
        "decoder_resnets": (count + 3, *(count + 1,) * space),
        "spreads": packs[::-1],
        "moments": 2 * f["latent"],
    }


def _ltx_vae(c: _Config, _: Fields) -> Fields:
    if any(c.flags("decoder_inject_noise", ())) or any(c.flags("upsample_residual", ())):
        raise UsageError(f"{c.origin}: this version of the autoencoder is not built", "the one of LTX-Video 0.9.0 is")
    return {}


def _clip_text(c: _Config, _: Fields) -> Fields:
    projected = "CLIPTextModelWithProjection" in c.names("architectures", ())
    return {"projection": c.whole("projection_dim", 512) if projected else 0}


def _t5(c: _Config, _: Fields) -> Fields:
    act = str(c.values.get("feed_forward_proj") or "")
    every = c.values.get("model_type") == "umt5" or c.values.get("_class_name") == "UMT5EncoderModel"
    return {"gated": c.given("is_gated_act", act.startswith("gated")), "every": every}


def _decoder(c: _Config, f: Fields) -> Fields:
    inner = c.values.get("text_config")
    if isinstance(inner, Mapping):
        return _decoder(_Config({"model_type": c.values.get("model_type"), **inner}, c.origin), f)
    width, heads = c.whole("hidden_size"), c.whole("num_attention_heads")
    kind = str(c.values.get("model_type", ""))
    return {
        "width": width,
        "layers": c.whole("num_hidden_layers"),
        "heads": heads,
        "kv_heads": c.whole("num_key_value_heads", heads),
        "head_dim": c.whole("head_dim", width // heads),
        "ffn": c.whole("intermediate_size"),
        "vocab": c.whole("vocab_size"),
        "qkv_bias": kind.startswith("qwen2"),
        "sandwich": kind.startswith("gemma2"),
    }


MORE: Mapping[str, Callable[[_Config, Fields], Fields]] = {
    "unet": _unet,
    "controlnet": _controlnet,
    "flux2": lambda c, _: {"ratio": int(c.real("mlp_ratio", 3.0))},
    "z_image": _z_image,
    "lumina2": _lumina2,
    "sd3": lambda c, _: {
        "qk_norm": "rms" if c.values.get("qk_norm") else "",
        "dual": len(c.values.get("dual_attention_layers") or ()),
    },
    "pixart": _pixart,
    "hunyuan_dit": _hunyuan_dit,
    "wan_vae": lambda c, f: {"decoder_width": c.whole("decoder_base_dim", f["width"])},
    "hunyuan_vae_15": _hunyuan_vae_15,
    "ltx_vae": _ltx_vae,
    "clip_text": _clip_text,
    "t5": _t5,
    "decoder": _decoder,
    "clip_vision": lambda c, _: {"classes": c.whole("projection_dim", 512) if "projection_dim" in c.values else 0},
}
"""Fields that depend on more than one key, by row."""


@per_snapshot
def classes() -> Mapping[str, PartClass]:
    """Classes that are built, by `_class_name` of diffusers or `model_type` of transformers."""
    rows = parse(shipped_text(TABLE))
    return {kind: PartClass(name, row) for name, row in rows.items() for kind in row["classes"]}


def read_part(config: Mapping[str, Any], origin: str) -> Any:
    """The network that a configuration describes. Raises `UnknownNameError` for a class that is not built."""
    for key in ("_class_name", "model_type"):
        kind = str(config.get(key) or "")
        if kind in classes():
            return classes()[kind].network(_Config(config, f"{origin} ({kind})"))
    kind = str(
        config.get("_class_name") or config.get("model_type") or next(iter(config.get("architectures") or ()), "")
    )
    raise UnknownNameError("class", kind or origin, classes(), f"{origin}: trace the module instead")


def from_parts(
    configs: Mapping[str, Mapping[str, Any]],
    *,
    name: str = "diffusers folder",
    batch: int = 1,
    precision: str = "bf16",
    trained: bool = False,
    **settings: Any,
) -> Program:
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
    kind = classes()[str(config["_class_name"])]
    steps, guidance, tokens, frames = (kind.usual[name] for name in ("steps", "guidance", "tokens", "frames"))
    width, height = kind.usual["size"]
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
        distilled=getattr(net, "guidance", False),
        apart=kind.row.get("apart", False),
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
    said = [f"{key} {value}" for key, value in assumed.items() if key not in given]
    said += [kind.row["said"]] if "said" in kind.row else []
    found = task.pipeline(AskedNetwork(name, batch, precision, trained, given))
    return Program(
        found.name, found.stages, found.batch, found.unit, found.trained, found.settings, (*found.assumptions, *said)
    )


def _network(key: str) -> bool:
    """Whether a component of a folder holds a network that a request runs."""
    known = ("unet", "transformer", "transformer_2", "vae", "controlnet", "image_encoder")
    return key in known or key.startswith("text_encoder")
