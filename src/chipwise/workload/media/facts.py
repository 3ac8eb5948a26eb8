"""Dimensions of published models, from `workload/data/media_models.toml`, read strictly.

`kind` of a part names its family, its other keys are the fields of the family's dataclass. Entries and names are
read by `catalog.networks`.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from chipwise.catalog.networks import TABLE, table
from chipwise.catalog.snapshot import per_snapshot
from chipwise.errors import UnknownNameError, UsageError
from chipwise.workload.media import cnn, recommender, sized, speech, text, unet, vae, vision, voice, written
from chipwise.workload.media import detect as detectors

KINDS: Mapping[str, type] = {
    "unet": unet.UNet,
    "controlnet": unet.ControlNet,
    "image-vae": vae.ImageVAE,
    "wan-vae": vae.WanVAE,
    "causal-vae": vae.CausalVAE,
    "packed-vae": vae.PackedVAE,
    "mochi-vae": vae.MochiVAE,
    "text": text.TextEncoder,
    "t5": text.T5,
    "decoder": text.TextDecoder,
    "connector": text.Connector,
    "seq2seq": text.SeqToSeq,
    "vit": vision.ViT,
    "dpt": vision.DPT,
    "sam": vision.SAM,
    "sam2": vision.SAM2,
    "detr": vision.DETR,
    "rt-detr": vision.RTDETR,
    "resnet": cnn.ResNet,
    "mobile": cnn.Mobile,
    "unet3d": cnn.UNet3D,
    "rcnn": detectors.RCNN,
    "retinanet": detectors.RetinaNet,
    "ssd": detectors.SSD,
    "yolo": detectors.YOLO,
    "yolo-rows": detectors.YoloRows,
    "whisper": speech.Whisper,
    "wav2vec2": speech.Wav2Vec2,
    "conformer": speech.Conformer,
    "transducer": speech.Transducer,
    "jasper": speech.Jasper,
    "style-voice": voice.StyleVoice,
    "fastpitch": voice.FastPitch,
    "vits": voice.VITS,
    "gpt-voice": voice.GPTVoice,
    "codec-voice": voice.CodecVoice,
    "hifigan": voice.HifiGAN,
    "oobleck": voice.Oobleck,
    "dlrm": recommender.DLRM,
    "ncf": recommender.NCF,
    "sized": sized.Sized,
}
"""Families that are code, by the name that parts use."""


@per_snapshot
def families() -> Mapping[str, type]:
    """All families by the name that parts use: those that are code, and those that are rows."""
    return {**KINDS, **written.families()}


def part(name: Any) -> Any:
    """The network of that name; a network is itself.

    Raises `UnknownNameError`, or `UsageError` for an entry that cannot be read.
    """
    return _part(name) if isinstance(name, str) else name


@per_snapshot
def _part(name: str) -> Any:
    rows = table()["parts"]
    if name not in rows:
        raise UnknownNameError("part", name, rows)
    row = dict(rows[name])
    origin = f"{TABLE}: parts.{name}"
    kind = row.pop("kind", None)
    if kind not in families():
        raise UsageError(f"{origin}: kind is '{kind}'", f"one of {', '.join(families())}")
    if not row.pop("source", ""):
        raise UsageError(f"{origin} has no source")
    return build(families()[kind], row, origin)


def build(cls: type, row: Mapping[str, Any], origin: str) -> Any:
    """An instance of a dataclass from a table: every key a field of the right type, no field without a value.

    A field that is itself a network takes the name of a part.
    """
    hints = get_type_hints(cls)
    fields = {f.name: f for f in dataclasses.fields(cls)}
    strange = sorted(set(row) - set(fields))
    if strange:
        raise UsageError(f"{origin}: unknown key '{strange[0]}'", f"one of {', '.join(fields)}")
    none = (dataclasses.MISSING, dataclasses.MISSING)
    needed = [n for n, f in fields.items() if (f.default, f.default_factory) == none and n not in row]
    if needed:
        raise UsageError(f"{origin}: {needed[0]} is missing")
    return cls(**{key: _value(hints[key], value, f"{origin}: {key}") for key, value in row.items()})


def _value(hint: Any, value: Any, origin: str) -> Any:
    shape, inner = get_origin(hint), get_args(hint)
    if hint is Any and isinstance(value, str):  # the name of a part
        return value
    if dataclasses.is_dataclass(hint) and isinstance(value, str):
        found = part(value)
        if isinstance(found, hint):  # type: ignore[arg-type]
            return found
    elif shape in (Union, types.UnionType):
        for kind in inner:
            try:
                return _value(kind, value, origin)
            except UsageError:
                continue
    elif shape is tuple and isinstance(value, list):
        kinds = (inner[0],) * len(value) if inner[-1] is ... else inner
        if len(kinds) == len(value):
            return tuple(_value(kind, v, origin) for kind, v in zip(kinds, value, strict=True))
    elif (shape is Literal and value in inner) or _is(hint, value):
        return float(value) if hint is float else value
    raise UsageError(f"{origin} = {value!r} cannot be read", "see the fields of its family")


def _is(hint: Any, value: Any) -> bool:
    """Whether a value is a plain one of that kind; counts are not below 0."""
    if hint is float:
        return type(value) in (int, float)
    return hint in (int, bool, str) and type(value) is hint and (hint is not int or value >= 0)
