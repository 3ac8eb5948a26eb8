"""From a name and sizes to stages: what a request for images, clips, embeddings, labels or text runs, and how often."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any, ClassVar, Literal, Protocol

from chipwise.catalog import networks
from chipwise.catalog.snapshot import Snapshot, current
from chipwise.errors import UsageError, nearest
from chipwise.values import dataclass
from chipwise.workload.backward import backward, update
from chipwise.workload.formats import FORMATS
from chipwise.workload.media import facts
from chipwise.workload.media.layers import PRECISIONS, Grid, LayerBlock, Layers, get_precision, join
from chipwise.workload.media.recommender import DLRM
from chipwise.workload.media.sized import Sized
from chipwise.workload.media.speech import Conformer, Transducer, Whisper
from chipwise.workload.media.text import SeqToSeq
from chipwise.workload.media.unet import UNet
from chipwise.workload.media.voice import CodecVoice, GPTVoice
from chipwise.workload.program import Program, Stage

MOST_CACHED = 0.9  # of the steps of a request
MOST_BATCH = 10_000_000  # samples of a call
TEXT = "text_precision"  # setting of generators that read text
HOP = "hop_s"  # setting of networks that hear sound in windows
TALK = 0.3
"""ratio: deviation over mean of what is said in a window. Chosen: speakers differ by a fifth to a quarter (150 +- 30
words a minute), pauses add to it; a batch of 16 then takes 1.6 times the steps of its mean window."""
TRAINING: Mapping[str, str] = {
    "optimizer": "of training: adamw, adamw-bf16, adamw-8bit, adafactor, muon, sgd, none",
    "recompute": "of training: none, full",
    "accumulate": "of training: parts of a batch, one after the other, whose gradients are summed",
}
"""What can be asked of training steps."""


def _numbers(value: Any) -> tuple[Any, ...]:
    """The sides that a text, a number or a list says. Raises `UsageError` for another text."""
    if isinstance(value, str):
        words = value.lower().replace("px", "").split("x")
        if not all(word.strip().isdecimal() for word in words) or len(words) > 2:
            raise UsageError(
                f"resolution '{value}' cannot be read", "width x height, as in 1280x720", field="resolution"
            )
        return tuple(int(word) for word in words)
    pair = (value,) if isinstance(value, (int, float)) else tuple(value)
    return tuple(int(v) if isinstance(v, float) and v.is_integer() else v for v in pair)


@dataclass(frozen=True)
class AskedNetwork:
    """What a request says: settings by name, those that were left out absent."""

    name: str
    batch: int
    precision: str
    trained: bool
    settings: Mapping[str, Any]

    def layers(self, *, quantised: bool = True, precision: str = "") -> Layers:
        """Layers of the batch; parts that are not `quantised` keep the plain type of a quantised precision, and are
        loaded in that of an autocast (frozen parts beside a denoiser need no copy in fp32)."""
        found = get_precision(precision or self.precision)
        if not quantised and found.plain.bits < 16:  # nobody found scales for parts beside the network itself
            found = PRECISIONS["fp16"]
        if not quantised and found.stored.bits != found.plain.bits:
            found = PRECISIONS[found.plain.name]
        at_once = self.batch // self.parts
        return Layers(at_once, found, self.settings.get("attention") == "plain", self.trained)

    @property
    def parts(self) -> int:
        """Parts of the batch of a training step that follow each other."""
        parts = self.count("accumulate", 1) if self.trained else 1
        if self.batch % parts:
            near = max(n for n in range(1, parts) if self.batch % n == 0)
            raise UsageError(
                f"accumulate={parts} does not divide a batch of {self.batch}", f"accumulate={near}", field="accumulate"
            )
        return parts

    def number(self, name: str, default: float, low: float = 1.0) -> float:
        """A setting that is a number of at least `low`."""
        value = self.settings.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value < 1e9:
            raise UsageError(f"{name} {value!r} cannot be used", f"a number of at least {low:g}", field=name)
        return value

    def count(self, name: str, default: int, low: int = 1) -> int:
        """A setting that is a whole number of at least `low`."""
        value = self.number(name, default, low)
        if value != int(value):
            raise UsageError(f"{name} {value!r} is not a whole number", f"{name}={int(value)}", field=name)
        return int(value)

    def sides(self, default: tuple[int, int], multiple: int) -> tuple[int, int]:
        """(width, height) in pixels: a side of squares, "1280x720", or a pair; each a multiple of `multiple`."""
        value = self.settings.get("resolution")
        pair = default if value is None else _numbers(value)
        pair = pair * 2 if len(pair) == 1 else pair
        if len(pair) != 2 or not all(isinstance(side, int) and 0 < side <= 100_000 for side in pair):
            raise UsageError(
                f"resolution {value!r} cannot be used", "width x height, as in 1280x720", field="resolution"
            )
        if any(side % multiple for side in pair):
            near = "x".join(str(max(multiple, round(side / multiple) * multiple)) for side in pair)
            text = "x".join(str(side) for side in pair)
            raise UsageError(
                f"{self.name} cannot use resolution {text}: sides must be multiples of {multiple}",
                f"resolution={near}",
                field="resolution",
                instead=(near,),
            )
        return pair


Network = Any
"""A network, or the name of its part."""


class NetworkTask(Protocol):
    """A kind of request: fields come from the table, `settings` are what can be asked."""

    settings: ClassVar[Mapping[str, str]]

    def pipeline(self, asked: AskedNetwork) -> Program:
        """The stages of one request."""


def _finish(
    asked: AskedNetwork,
    stages: Iterable[Stage],
    unit: str,
    settings: Mapping[str, float],
    assumptions: Iterable[str] = (),
    members: int = 1,
) -> Program:
    """One request, or a training step of what it calls."""
    told = dict(settings), tuple(assumptions), members
    found = Program(asked.name, tuple(stages), asked.batch, unit, False, *told)
    if not asked.trained:
        return found
    optimizer, recompute = asked.settings.get("optimizer", "adamw"), asked.settings.get("recompute", "none")
    return update(backward(found, str(recompute), asked.parts), str(optimizer))


def _longest(batch: int, scatter: float) -> float:
    """The longest of `batch` lengths over their mean, to which all are padded: lognormal with `scatter` = deviation
    over mean, at the normal score of the largest of n, the quantile (n - 0.375) / (n + 0.25) (Blom 1958)."""
    deviation = math.sqrt(math.log1p(scatter**2))
    score = NormalDist().inv_cdf((batch - 0.375) / (batch + 0.25))
    return math.exp(deviation * score - deviation**2 / 2.0) if batch > 1 else 1.0


def _filled(members: int, batch: int) -> float:
    """The mean share of a batch that is filled: by the rounds of one sample that has more members, else by as many
    whole samples as it holds."""
    if batch >= members:
        return batch // members * members / batch
    return members / (math.ceil(members / batch) * batch)


@dataclass(frozen=True, kw_only=True)
class Diffusion:
    """Text encoders, `steps` calls of a denoiser, a decoder of latents.

    | field | meaning |
    |---|---|
    | text | encoders; each reads its number of `text_tokens` |
    | seen | text tokens that the denoiser attends to |
    | denoiser, controls | the network called at each step, and those called beside it |
    | vae | between latents and pictures |
    | upcast | the autoencoder runs in fp32 where the rest is fp16 |
    | guidance | above 1: each step has `guided_passes`, with text, without, and others, as a larger batch |
    | distilled | guidance is an input: one pass |
    | apart | the two passes are calls of their own, one after the other |
    | experts, boundary, shift | denoisers of which one is active: the first above `boundary` of the noise, with the \
schedule's `shift` |
    | image | an image is an input: it is encoded by the autoencoder and by `image_encoder`, where there is one, which \
sees `image_side` pixels a side; `image_frames` of the clip are encoded with it (0: all, empty ones too) |
    | beside | tokens of that image stand beside those that are made (editing) |
    """

    text: tuple[Network, ...] = ()
    text_tokens: tuple[int, ...] = ()
    seen: int = 77
    denoiser: Network
    controls: tuple[Network, ...] = ()
    vae: Network
    upcast: bool = False
    width: int
    height: int
    frames: int = 1
    steps: int
    guidance: float = 1.0
    guided_passes: int = 2
    distilled: bool = False
    apart: bool = False
    experts: int = 1
    boundary: float = 0.0
    shift: float = 1.0
    image: bool = False
    image_encoder: Network = ""
    image_side: int = 224
    image_frames: int = 0
    beside: bool = False

    settings: ClassVar[Mapping[str, str]] = {
        "resolution": "width x height of what is made",
        "frames": "frames of a clip",
        "steps": "calls of the denoiser",
        "guidance": "scale of classifier-free guidance",
        "cached": "share of the steps that reuse what an earlier one computed (TeaCache, cache-dit): 0 to 0.9",
        "text_tokens": "text tokens that the denoiser sees",
        "attention": "plain: scores are written to memory; fused (default)",
        "part": "one of text, denoiser, vae_encode, vae_decode",
        "vae_precision": "number format of the autoencoder",
        TEXT: "number format of the encoders of text, which stay in 16 bits otherwise, e.g. nf4-weight-only",
        **TRAINING,
    }

    def pipeline(self, asked: AskedNetwork) -> Program:
        """The stages of one request, or the training step of the denoiser."""
        net, vae = facts.part(self.denoiser), facts.part(self.vae)
        width, height = asked.sides((self.width, self.height), vae.spatial * net.multiple)
        video, temporal = self.frames > 1, getattr(vae, "temporal", 1)
        if "frames" in asked.settings and not video:
            raise UsageError(f"{asked.name} makes images: it has no frames", "leave frames out", field="frames")
        frames = self._frames(asked, temporal) if video else 1
        steps = asked.count("steps", self.steps)
        guidance = asked.number("guidance", self.guidance, 0.0)
        passes = self.guided_passes if guidance > 1 and not self.distilled else 1
        latent = ((frames - 1) // temporal + 1, height // vae.spatial, width // vae.spatial)
        used = {"width": width, "height": height, "steps": steps, "guidance": guidance, "passes": passes}
        used |= {"frames": frames} if video else {}
        rounded = frames != asked.settings.get("frames", frames)
        said = [f"frames are 1 and a multiple of {temporal}: {frames} are made"] if rounded else []
        seen = asked.count("text_tokens", self.seen)
        if asked.trained:
            return self._trained(asked, net, latent, seen, used)
        cached = asked.number("cached", 0.0, 0.0)
        if cached > MOST_CACHED:
            raise UsageError(f"cached {cached:g} cannot be used", f"a share of 0 to {MOST_CACHED}", field="cached")
        computed = max(round(steps * (1.0 - cached)), 1)
        used |= {"cached": 1.0 - computed / steps} if computed < steps else {}
        flat = not hasattr(vae, "temporal")
        grid, pixels = (latent[1:], (height, width)) if flat else (latent, (frames, height, width))
        upcast = "fp32" if self.upcast and asked.precision == "fp16" else ""
        given = pixels if flat or not self.image_frames else (self.image_frames, height, width)
        coder = asked.layers(quantised=False, precision=str(asked.settings.get("vae_precision") or upcast))
        stages = {
            "text": self._text(asked, passes, seen),
            "vae_encode": [vae.encode(coder, given).stage("vae_encode")] if hasattr(vae, "encode") else [],
            "denoiser": self._denoise(asked, net, latent, seen, computed, passes),
            "vae_decode": [vae.decode(coder, grid).stage("vae_decode")],
        }
        wanted = asked.settings.get("part")
        if wanted is not None:
            if not stages.get(str(wanted)):
                raise UsageError(
                    f"{asked.name} has no part '{wanted}'", f"one of {', '.join(stages)}", field="part", instead=stages
                )
            return _finish(asked, stages[str(wanted)], "clip" if video else "image", used, said)
        order = ["text", *(["vae_encode"] if self.image else []), "denoiser", "vae_decode"]
        made = [s for name in order for s in stages[name]]
        return _finish(asked, made, "clip" if video else "image", used, said)

    def _frames(self, asked: AskedNetwork, temporal: int) -> int:
        """Frames that can be made: 1 and a multiple of those that a latent stands for, as pipelines round them."""
        frames = asked.count("frames", self.frames)
        return max(1, round((frames - 1) / temporal) * temporal + 1)

    def _text(self, asked: AskedNetwork, passes: int, seen: int) -> list[Stage]:
        """Encoders; one that reads all that the denoiser sees follows what was asked."""
        own = asked.settings.get(TEXT)
        layers = asked.layers(precision=str(own)) if own else asked.layers(quantised=False)
        layers, found = layers.times(passes), []
        for i, (text, tokens) in enumerate(zip(self.text, self.text_tokens, strict=True), 1):
            block = facts.part(text).block(layers, seen if tokens == self.seen else tokens)
            found.append(block.stage(f"text_encoder:{text if isinstance(text, str) else i}"))
        if self.image_encoder:
            found.append(
                facts.part(self.image_encoder)
                .block(asked.layers(quantised=False), (self.image_side,) * 2)
                .stage("image_encoder")
            )
        return found

    def _call(self, layers: Layers, net: Any, latent: Grid, seen: int) -> LayerBlock:
        """One pass of the denoiser and of what steers it."""
        grid = latent[1:] if isinstance(net, UNet) else (latent[0] + self.beside, *latent[1:])
        return join(net.block(layers, grid, seen), *(facts.part(c).block(layers, grid, seen) for c in self.controls))

    def _denoise(self, asked: AskedNetwork, net: Any, latent: Grid, seen: int, steps: int, passes: int) -> list[Stage]:
        together, calls = (1, passes) if self.apart else (passes, 1)
        block = self._call(asked.layers().times(together), net, latent, seen)
        if self.experts == 1:
            return [block.stage("denoiser", calls * steps)]
        # noise after a share t: s u / (1 + (s - 1) u), u = 1 - t; the first expert works above the boundary
        left = self.boundary / (self.shift - (self.shift - 1.0) * self.boundary)
        first = min(max(round((1.0 - left) * steps), 0), steps)
        shares = (("denoiser:high_noise", first), ("denoiser:low_noise", steps - first))
        return [block.stage(name, calls * share) for name, share in shares]

    def _trained(self, asked: AskedNetwork, net: Any, latent: Grid, seen: int, used: dict[str, float]) -> Program:
        layers = asked.layers()
        stage = self._call(layers, net, latent, seen).stage("denoiser")
        kept = {k: v for k, v in used.items() if k in ("width", "height", "frames")}
        said = ("latents and text states are made before training",)
        return _finish(asked, [stage], "clip" if "frames" in used else "image", kept, said)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """An encoder of a picture, `steps` calls of a denoiser of latent vectors, a decoder that is asked at the points of
    a grid of `grid` + 1 a side, `chunk` points a call. Guidance above 1: two passes a step, as a larger batch."""

    image_encoder: str
    image_side: int
    image_tokens: int
    denoiser: str
    vae: str
    steps: int
    guidance: float
    grid: int
    chunk: int

    settings: ClassVar[Mapping[str, str]] = {
        "steps": "calls of the denoiser",
        "guidance": "scale of classifier-free guidance",
        "grid": "cells along a side of the volume that is sampled",
        "attention": "plain: scores are written to memory; fused (default)",
        **TRAINING,
    }

    def pipeline(self, asked: AskedNetwork) -> Program:
        """The stages up to the sampled volume, or the training step of the denoiser."""
        net, vae = facts.part(self.denoiser), facts.part(self.vae)
        steps, guidance = asked.count("steps", self.steps), asked.number("guidance", self.guidance, 0.0)
        side = asked.count("grid", self.grid)
        passes = 2 if guidance > 1 else 1
        plain = asked.layers(quantised=False)
        latent = (1, vae.latents, 1)
        if asked.trained:
            layers = asked.layers()
            stage = net.block(layers, latent, self.image_tokens).stage("denoiser")
            said = ("latents and image states are made before training",)
            return _finish(asked, [stage], "shape", {}, said)
        points = (side + 1) ** 3
        stages = [
            facts.part(self.image_encoder).block(plain, (self.image_side,) * 2).stage("image_encoder"),
            net.block(asked.layers().times(passes), latent, self.image_tokens).stage("denoiser", steps),
            vae.decode(plain).stage("decoder"),
            vae.ask(plain, self.chunk).stage("volume", points / self.chunk),
        ]
        used = {"steps": steps, "guidance": guidance, "passes": passes, "grid": side}
        return _finish(asked, stages, "shape", used, ("the surface is made from the volume on the host",))


@dataclass(frozen=True, kw_only=True)
class Reconstruction:
    """A picture to a shape in one pass: an encoder, planes of features, and a network that is asked at the points of a
    grid of `grid` a side, `chunk` points a call."""

    image_encoder: str
    image_side: int
    network: str
    grid: int
    chunk: int

    settings: ClassVar[Mapping[str, str]] = {
        "grid": "cells along a side of the volume that is sampled",
        "attention": "plain: scores are written to memory; fused (default)",
        **TRAINING,
    }

    def pipeline(self, asked: AskedNetwork) -> Program:
        """The stages up to the sampled volume, or a training step of the planes."""
        net, encoder = facts.part(self.network), facts.part(self.image_encoder)
        side, layers, sides = asked.count("grid", self.grid), asked.layers(), (self.image_side,) * 2
        planes = net.planes(layers, (self.image_side // encoder.patch) ** 2 + encoder.extra)
        if asked.trained:
            said = ("image states are made before training",)
            return _finish(asked, [planes.stage("planes")], "shape", {}, said)
        stages = [
            encoder.block(asked.layers(quantised=False), sides).stage("image_encoder"),
            planes.stage("planes"),
            net.ask(layers, self.chunk).stage("volume", side**3 / self.chunk),
        ]
        return _finish(asked, stages, "shape", {"grid": side}, ("the surface is made from the volume",))


@dataclass(frozen=True, kw_only=True)
class Voxels:
    """A picture to a shape in two stages (TRELLIS): `steps` calls of a denoiser of a coarse grid of `side`, decoded to
    the voxels that the surface crosses; `steps` of a denoiser of their latents, from which `decoders` make a mesh and
    other forms.

    Guidance above 1: a second call at the steps whose noise is at least `interval`, with the schedule's `shift`.
    `voxels`: those that a surface crosses, as many as a shape has.
    """

    image_encoder: str
    image_side: int
    coarse: str
    side: int
    grid: str
    denoiser: str
    voxels: int
    decoders: tuple[str, ...]
    forms: tuple[str, ...]
    steps: int
    guidance: float
    interval: float = 0.5
    shift: float = 3.0

    settings: ClassVar[Mapping[str, str]] = {
        "steps": "calls of each of the two denoisers",
        "guidance": "scale of classifier-free guidance",
        "voxels": "voxels that the surface crosses; depends on the shape",
        "form": "one of mesh, gaussians, field; default: all",
        "attention": "plain: scores are written to memory; fused (default)",
        **TRAINING,
    }

    def pipeline(self, asked: AskedNetwork) -> Program:
        """The stages up to the forms, or the training step of the denoiser of latents."""
        steps, guidance = asked.count("steps", self.steps), asked.number("guidance", self.guidance, 0.0)
        voxels, encoder = asked.count("voxels", self.voxels), facts.part(self.image_encoder)
        pictured = (self.image_side // encoder.patch) ** 2 + encoder.extra
        net, layers, plain = facts.part(self.denoiser), asked.layers(), asked.layers(quantised=False)
        said = [f"a surface crosses {voxels:,} of 64 x 64 x 64 voxels, which depends on the shape"]
        said.append("convolutions over voxels count absent neighbours too")
        if asked.trained:
            stage = net.block(layers, voxels, pictured).stage("latents")
            said.append("latents and image states are made before training")
            return _finish(asked, [stage], "shape", {"voxels": voxels}, said)
        form = asked.settings.get("form")
        if form is not None and form not in self.forms:
            raise UsageError(f"{asked.name} has no form '{form}'", f"one of {', '.join(self.forms)}", field="form")
        noise = (1.0 - i / steps for i in range(steps))
        guided = sum(self.shift * t / (1.0 + (self.shift - 1.0) * t) >= self.interval for t in noise)
        calls = steps + (guided if guidance > 1 else 0)
        coarse = facts.part(self.coarse).block(layers, self.side**3, pictured)
        stages = [
            encoder.block(plain, (self.image_side,) * 2).stage("image_encoder"),
            coarse.stage("structure", calls),
            facts.part(self.grid).block(plain, self.side).stage("grid"),
            net.block(layers, voxels, pictured).stage("latents", calls),
        ]
        for name, decoder in zip(self.forms, self.decoders, strict=True):
            block = facts.part(decoder).block(plain, voxels)
            stages.append(block.stage(name, float(form in (None, name))))
        used = {"steps": steps, "guidance": guidance, "calls": calls, "voxels": voxels}
        said.append("textures that are baked from renderings are not counted")
        return _finish(asked, stages, "shape", used, said)


@dataclass(frozen=True, kw_only=True)
class Structure:
    """Places of the atoms of `tokens` residues, bases and atoms of ligands: `cycles` of a trunk that reads `rows` of an
    alignment, `steps` of a denoiser for `samples` together, each of which is judged."""

    network: str
    tokens: int = 1024
    rows: int = 1024
    cycles: int = 10
    steps: int = 200
    samples: int = 5
    atoms_per_token: float = 8.0

    settings: ClassVar[Mapping[str, str]] = {
        "tokens": "residues, bases, and atoms of ligands",
        "rows": "rows of the alignment that the trunk reads",
        "cycles": "passes of the trunk",
        "steps": "calls of the denoiser",
        "samples": "structures that are made of one trunk",
        "attention": "plain: scores are written to memory; fused (default)",
        **TRAINING,
    }

    def pipeline(self, asked: AskedNetwork) -> Program:
        """The stages of a prediction, or a training step with one pass of the trunk."""
        net, layers = facts.part(self.network), asked.layers()
        tokens, rows = asked.count("tokens", self.tokens), asked.count("rows", self.rows)
        cycles, steps = asked.count("cycles", self.cycles), asked.count("steps", self.steps)
        samples, atoms = asked.count("samples", self.samples), math.ceil(self.atoms_per_token * tokens)
        atoms = -(-atoms // net.queries) * net.queries
        used: dict[str, float] = {"tokens": tokens, "rows": rows, "samples": samples}
        entry, trunk = net.embed(layers, tokens, atoms), net.cycle(layers, tokens, rows)
        denoiser, judge = net.denoise(layers, tokens, atoms, samples), net.judge(layers, tokens)
        if asked.trained:
            stage = join(entry, trunk, denoiser, judge).stage("model")
            return _finish(asked, [stage], "structure", used, ("the trunk passes once",))
        stages = [
            entry.stage("embedder"),
            trunk.stage("trunk", cycles),
            denoiser.stage("denoiser", steps),
            judge.stage("confidence", samples),
        ]
        said = (f"{self.atoms_per_token:g} atoms a token", "the alignment is searched before")
        return _finish(asked, stages, "structure", used | {"cycles": cycles, "steps": steps}, said)


@dataclass(frozen=True, kw_only=True)
class Voice:
    """Text read aloud: a network makes frames in one pass, or in `steps` of a denoiser that continues `reference_s` of
    a voice (guidance above 0: two passes a step, as a larger batch), and a `vocoder` sound of them, where the network
    does not make it itself. `tokens_per_s`: characters or phonemes in a second.

    Of music and sounds: `text` are encoders, each of its `text_tokens`, of which the denoiser sees `seen` tokens;
    `whole_s`: seconds that are made at least, of which what was asked is cut."""

    network: str
    vocoder: str = ""
    text: tuple[str, ...] = ()
    text_tokens: tuple[int, ...] = ()
    seen: int = 0
    whole_s: float = 0.0
    seconds: float = 10.0
    tokens_per_s: float = 15.0
    steps: int = 0
    guidance: float = 0.0
    reference_s: float = 0.0

    settings: ClassVar[Mapping[str, str]] = {
        "audio_s": "seconds of sound that are made",
        "tokens": "characters or phonemes of the text",
        "reference_s": "seconds of the voice that is imitated",
        "steps": "calls of the denoiser",
        "guidance": "strength of classifier-free guidance",
        "attention": "plain: scores are written to memory; fused (default)",
        **TRAINING,
    }

    def pipeline(self, asked: AskedNetwork) -> Program:
        """The stages of one reading, or a training step of the network."""
        net, seconds = facts.part(self.network), asked.number("audio_s", self.seconds, 0.01)
        strange = {"steps", "guidance"} & set(asked.settings)
        if strange and not self.steps:
            word = max(strange)
            raise UsageError(f"{asked.name} has no {word}", f"leave {word} out", field=word)
        tokens = asked.number("tokens", self.seen or max(1, round(self.tokens_per_s * seconds)))
        used = {"audio_s": seconds, "tokens": tokens}
        seconds = max(seconds, self.whole_s)
        before = asked.number("reference_s", self.reference_s, 0.0) if self.reference_s else 0.0
        frames, made = net.frames_per_s * (seconds + before), net.frames_per_s * seconds
        if isinstance(net, GPTVoice):
            return self._spoken(asked, net, seconds, tokens)
        if isinstance(net, CodecVoice):
            return self._coded(asked, net, seconds, tokens)
        if asked.trained:
            return _finish(asked, [net.block(asked.layers(), frames, tokens).stage("model")], "utterance", used)
        steps = asked.count("steps", self.steps) if self.steps else 1
        guided = bool(self.steps) and asked.number("guidance", self.guidance, 0.0) > 0
        main = net.block(asked.layers().times(1 + guided), frames, tokens)
        stages = self._texts(asked, 1 + guided)
        stages.append(main.stage("denoiser" if self.steps else "model", steps))
        if self.vocoder:
            plain = asked.layers(quantised=False)
            stages.append(facts.part(self.vocoder).block(plain, made).stage("vocoder"))
        said = self._said(asked, "characters or phonemes", before, "continued")
        used |= {"steps": steps, "passes": 1 + guided, "reference_s": before} if self.steps else {}
        return _finish(asked, stages, "utterance", used, said)

    def _texts(self, asked: AskedNetwork, passes: int) -> list[Stage]:
        layers = asked.layers(quantised=False).times(passes)
        parts = zip(self.text, self.text_tokens, strict=True)
        return [facts.part(name).block(layers, n).stage(f"text_encoder:{name}") for name, n in parts]

    def _spoken(self, asked: AskedNetwork, net: GPTVoice, seconds: float, tokens: float) -> Program:
        """A voice that says one code of sound after the other."""
        before, codes = (asked.number("reference_s", self.reference_s, 0.01), max(1, round(net.codes_per_s * seconds)))
        used = {"audio_s": seconds, "tokens": tokens, "codes": codes, "reference_s": before}
        layers, plain = asked.layers(), asked.layers(quantised=False)
        first, text = net.latents + tokens + 2, math.ceil(tokens)
        if asked.trained:
            whole = net.voice(layers, before) + net.run(layers, math.ceil(first + codes), 0.0, codes, text)
            return _finish(asked, [whole.stage("model")], "utterance", used)
        again = replace(net.run(layers, math.ceil(first + codes), 0.0, 0, text), parameters=0, weight_bytes=0.0)
        prompt = replace(net.run(layers, math.ceil(first), 0.0, 1, text), parameters=0, weight_bytes=0.0)
        vocoder = facts.part(self.vocoder).block(plain, net.frames_per_s * seconds)
        stages = [
            net.voice(plain, before).stage("voice"),
            prompt.stage("prompt"),
            net.run(layers, 1, first + codes / 2.0, 1, text).stage("decoder", codes),
            again.stage("states"),
            vocoder.stage("vocoder"),
        ]
        said = [] if "tokens" in asked.settings else [f"{self.tokens_per_s:g} tokens of text a second"]
        said.append(f"{before:g} s of a voice are imitated")
        return _finish(asked, stages, "utterance", used, said)

    def _coded(self, asked: AskedNetwork, net: CodecVoice, seconds: float, tokens: float) -> Program:
        """A language model that says codes of sound, and what makes sound of them."""
        before = asked.number("reference_s", self.reference_s, 0.0) if self.reference_s else 0.0
        first, frames = (math.ceil(tokens + net.frames_per_s * before), max(1, round(net.frames_per_s * seconds)))
        used = {"audio_s": seconds, "tokens": tokens, "codes": net.books * frames, "reference_s": before}
        if asked.trained:
            whole = join(net.run(asked.layers(), first + frames), net.predict(asked.layers().times(frames)))
            return _finish(asked, [whole.stage("model")], "utterance", used)
        layers, vocoder = asked.layers().times(net.passes), facts.part(self.vocoder)
        prompt = replace(net.run(layers, first), parameters=0, weight_bytes=0.0)
        stages = [prompt.stage("prompt"), net.run(layers, 1, first + frames / 2.0).stage("decoder", frames)]
        if net.predictor:
            stages.append(net.predict(layers).stage("predictor", (net.books - 1) * frames))
        stages.append(vocoder.block(asked.layers(quantised=False), net.frames_per_s * seconds).stage("vocoder"))
        said = self._said(asked, "tokens of text", before, "imitated")
        return _finish(asked, stages, "utterance", used, said)

    def _said(self, asked: AskedNetwork, unit: str, before: float, done: str) -> list[str]:
        """How much text a second has, where it was not asked, and what is done with a voice before."""
        said = [] if self.seen or "tokens" in asked.settings else [f"{self.tokens_per_s:g} {unit} a second"]
        return [*said, f"{before:g} s of a voice are {done}"] if before else said


@dataclass(frozen=True, kw_only=True)
class Text:
    """One pass over texts of `tokens` each; with a decoder `targets` tokens are written, one after the other (0: as
    many as are read)."""

    network: str
    tokens: int = 512
    targets: int = 0

    settings: ClassVar[Mapping[str, str]] = {
        "tokens": "tokens of each text",
        "attention": "plain: scores are written to memory; fused (default)",
        "head": "mlm: every token is predicted; qa; score; none",
        "targets": "tokens out, of a model with a decoder",
        "beams": "sequences that a decoder follows at a time",
        **TRAINING,
    }

    def pipeline(self, asked: AskedNetwork) -> Program:
        """The one stage; or encoder, what its states are to the decoder, and decoder."""
        net, layers = facts.part(self.network), asked.layers()
        tokens = asked.count("tokens", self.tokens)
        head = asked.settings.get("head")
        if head is not None:
            if not hasattr(net, "head") or head not in ("none", "mlm", "qa", "score"):
                raise UsageError(f"{asked.name} has no head '{head}'", "one of mlm, qa, score, none", field="head")
            net = replace(net, head="" if head == "none" else head)
        if isinstance(net, SeqToSeq):
            return self._written(asked, net, tokens)
        for word in ("targets", "beams"):
            if word in asked.settings:
                raise UsageError(f"{asked.name} has no decoder: it takes no {word}", f"leave {word} out", field=word)
        return _finish(asked, [net.block(layers, tokens).stage("encoder")], "sample", {"tokens": tokens})

    def _written(self, asked: AskedNetwork, net: SeqToSeq, tokens: int) -> Program:
        """Texts that are read, and texts written from them; or a training step on both."""
        layers, targets = asked.layers(), asked.count("targets", self.targets or tokens)
        used: dict[str, float] = {"tokens": tokens, "targets": targets}
        if asked.trained:
            return _finish(asked, [net.block(layers, tokens, targets).stage("model")], "sample", used)
        beams = layers.times(asked.count("beams", 1))
        used |= {"beams": beams.batch / layers.batch} if "beams" in asked.settings else {}
        kept = layers.bytes(tokens, 2 * net.heads * net.ahead.head_dim * net.decoder)
        written = net.step(beams, targets / 2.0, tokens).beside(kept).stage("decoder", targets)
        stages = [
            net.encode(layers, tokens).stage("encoder"),
            net.ahead.states(layers, tokens).stage("cross_states"),
            replace(written, host=(("token", 1.0), ("sequence", float(beams.batch)))),
        ]
        said = [] if self.targets or "targets" in asked.settings else ["as many tokens out as in"]
        return _finish(asked, stages, "sample", used, said)


@dataclass(frozen=True, kw_only=True)
class Vision:
    """One pass over pictures; `depth`: slices of a volume; `windows`: passes for one sample that is larger than a pass;
    `text` and `text_tokens`: a text tower beside it (CLIP)."""

    network: str
    width: int = 224
    height: int = 224
    depth: int = 0
    windows: float = 1.0
    text: str = ""
    text_tokens: int = 77

    settings: ClassVar[Mapping[str, str]] = {
        "resolution": "width x height of the pictures",
        "windows": "passes for one sample",
        "prompts": "points or boxes of each picture that masks are made for (Segment Anything)",
        "bias": "of positions in fused attention (Segment Anything): tensor (default), or inside of a kernel for it",
        "attention": "plain: scores are written to memory; fused (default)",
        **TRAINING,
    }

    def pipeline(self, asked: AskedNetwork) -> Program:
        """The one stage, or one for each tower."""
        net, layers = facts.part(self.network), asked.layers()
        if "prompts" in asked.settings:
            if not hasattr(net, "prompts"):
                raise UsageError(f"{asked.name} takes no prompts", "leave prompts out", field="prompts")
            net = replace(net, prompts=asked.count("prompts", 1))
        if "bias" in asked.settings:
            bias = asked.settings["bias"]
            if not hasattr(net, "inside") or bias not in ("tensor", "inside"):
                hint = "tensor or inside" if hasattr(net, "inside") else "leave bias out"
                raise UsageError(f"{asked.name} has no bias '{bias}'", hint, field="settings")
            net = replace(net, inside=bias == "inside")
        width, height = asked.sides((self.width, self.height), net.multiple)
        grid = (self.depth, height, width) if self.depth else (height, width)
        windows = 1.0 if asked.trained else asked.number("windows", self.windows)
        stages = [net.block(layers, grid).stage("model", windows)]
        if hasattr(net, "halves") and not asked.trained:
            names = ("encoder", "decoder")
            stages = [b.stage(n, windows) for n, b in zip(names, net.halves(layers, grid), strict=True)]
        if self.text:
            stages.append(facts.part(self.text).block(layers, self.text_tokens).stage("text_encoder"))
        return _finish(asked, stages, "image", {"width": width, "height": height})


@dataclass(frozen=True, kw_only=True)
class Speech:
    """A network over sound; with a decoder, `tokens_per_s` labels are said in a second.

    `prompt`: tokens that a decoder is given first; `window_s`: sound is cut into windows of that length (0: not).
    """

    network: str
    seconds: float = 30.0
    tokens_per_s: float = 0.0
    prompt: int = 0

    settings: ClassVar[Mapping[str, str]] = {
        "audio_s": "seconds of sound, the mean of a batch",
        "scatter": "deviation over mean of lengths in a batch, which is padded to the longest (default: 0)",
        "tokens": "tokens of the whole transcript",
        "beams": "sequences that are followed at a time",
        HOP: "seconds from one window of a long recording to the next where a batch is of windows (the software's own; "
        "0: windows follow each other, a batch is of recordings)",
        "part": "one of encoder, decoder (one token)",
        "attention": "plain: scores are written to memory; fused (default)",
        **TRAINING,
    }

    def pipeline(self, asked: AskedNetwork) -> Program:
        """Encoder, and decoder where there is one; or a training step of both."""
        net, mean = facts.part(self.network), asked.number("audio_s", self.seconds, 0.01)
        seconds = mean * _longest(asked.batch, asked.number("scatter", 0.0, 0.0))
        used: dict[str, float] = {"audio_s": seconds}
        said, members = [], 1
        if HOP in asked.settings and not isinstance(net, Whisper):
            raise UsageError(f"{asked.name} hears a recording whole", f"leave {HOP} out", field=HOP)
        if "tokens" not in asked.settings and self.tokens_per_s:
            said.append(f"{self.tokens_per_s:g} tokens a second of sound")
        tokens = asked.number("tokens", max(1, round(self.tokens_per_s * seconds)))
        layers = asked.layers()
        if isinstance(net, Whisper):
            used["tokens"] = tokens
            stages, members = self._windows(asked, net, seconds, tokens)
            said += [f"a batch is of windows of {net.window_s:g} s"] if members > 1 and asked.batch > 1 else []
        else:
            body = net.block(layers, seconds)
            ends = isinstance(net, Transducer) or (isinstance(net, Conformer) and net.predict > 0)
            if asked.trained:
                step = net.step(layers.times(net.frames(seconds))) if ends else LayerBlock()
                stages = [join(body, step).stage("model")]
            else:
                calls = net.calls(seconds, tokens) if ends else 0
                stages = [body.stage("encoder")]
                if ends:
                    step = net.step(layers).stage("decoder", calls)
                    stages.append(replace(step, looped=isinstance(net, Conformer)))
        wanted = asked.settings.get("part")
        if wanted is not None:
            found = [replace(s, calls=1.0) if s.name == "decoder" else s for s in stages if s.name == wanted]
            if not found or asked.trained:
                known = tuple(s.name for s in stages)
                raise UsageError(
                    f"{asked.name} has no part '{wanted}'", f"one of {', '.join(known)}", field="part", instead=known
                )
            stages = found
        return _finish(asked, stages, "utterance", used, said, members)

    def _windows(self, asked: AskedNetwork, net: Whisper, seconds: float, tokens: float) -> tuple[list[Stage], int]:
        """Stages, and windows of a recording where a batch is of windows.

        Windows of a batch overlap (every `hop_s` seconds one begins), and a round of a batch takes as many steps as
        the window with most to say.
        """
        windows, layers = math.ceil(seconds / net.window_s), asked.layers()
        each = tokens / windows
        if asked.trained:
            together = layers.times(windows)
            words = max(1, round(each))
            whole = join(net.encode(together), net.states(together), net.step(together, words, words, words))
            return [whole.stage("model")], 1
        hop, members, rounds, steps = asked.number(HOP, net.window_s, 0.0), 1, windows, tokens
        if hop and windows > 1:
            members = windows if asked.batch == 1 else math.ceil(seconds / min(hop, net.window_s))
        if members > 1 and asked.batch > 1:
            rounds = math.ceil(members / asked.batch)
            most = min(each * _longest(asked.batch, TALK), net.context / 2.0)
            steps, layers = rounds * max(most, each), layers.times(_filled(members, asked.batch))
        beams = layers.times(asked.count("beams", 1))
        seen = 1.0 if asked.settings.get("part") == "decoder" else self.prompt + each / 2.0
        prompt = replace(net.step(layers, self.prompt, self.prompt), parameters=0, weight_bytes=0.0)
        kept = layers.bytes(net.positions, 2 * net.width * net.decoder)
        decoder = net.step(beams, seen).beside(kept).stage("decoder", steps)
        spoken = (("token", 1.0), ("sequence", float(beams.batch)))
        padded = rounds * layers.batch * net.window_s
        heard = (("sound", padded), ("speech", min(padded, layers.batch * seconds)))
        stages = [
            Stage("sound", (), host=heard),
            net.encode(layers).stage("encoder", rounds),
            net.states(layers).stage("cross_states", rounds),
        ]
        stages += [prompt.stage("prompt", rounds)] if self.prompt else []
        # a part that is asked for alone is the network's, as benches call it
        return [*stages, decoder if "part" in asked.settings else replace(decoder, host=spoken)], members


@dataclass(frozen=True, kw_only=True)
class Recommend:
    """One pass over samples of features; a sample may be several `pairs` of a user and an item, scored together."""

    network: str

    settings: ClassVar[Mapping[str, str]] = {
        "pairs": "users and items that are scored for one sample",
        "table": "number format of the tables, as in int8",
        **{name: TRAINING[name] for name in ("optimizer", "recompute")},
    }

    def pipeline(self, asked: AskedNetwork) -> Program:
        """Lookups and the dense part."""
        net, layers = facts.part(self.network), asked.layers().times(asked.number("pairs", 1.0))
        if not isinstance(net, DLRM):
            return _finish(asked, [net.block(layers).stage("model")], "sample", {})
        table = str(asked.settings.get("table", net.table))
        if table not in FORMATS:
            raise UsageError(f"table '{table}' is no number format", "int8, fp16 or fp32", field="table")
        tables = replace(net, table=table).embeddings(layers)
        dense = _finish(asked, [net.block(layers).stage("dense")], "sample", {})
        if asked.trained:  # rows that were read are updated in place: as many again are read and written
            tables = replace(tables, ops=(*tables.ops, (2.0, tables.ops[0][1])))
        return replace(dense, stages=(tables.stage("embeddings"), *dense.stages))


TASKS: Mapping[str, type[Any]] = {
    "diffusion": Diffusion,
    "shape": Shape,
    "voxels": Voxels,
    "reconstruction": Reconstruction,
    "structure": Structure,
    "text": Text,
    "vision": Vision,
    "speech": Speech,
    "voice": Voice,
    "recommend": Recommend,
}
"""Kinds of requests by the name that models use."""


def names() -> tuple[str, ...]:
    """The models that are built in, by their own names."""
    return tuple(networks.entries())


def entry(name: str) -> networks.NetworkEntry:
    """What the table says of a model, by any of its names. Raises `UnknownNameError`."""
    return networks.find(name).entry


def windowed(name: str) -> bool:
    """Whether a built-in model hears a recording in windows. Raises `UnknownNameError`."""
    found = entry(name)
    return found.task == "speech" and isinstance(facts.part(found.values["network"]), Whisper)


def reads_text(name: str) -> bool:
    """Whether a model is built in and reads texts, as those that embed, rank or translate them do."""
    named = networks.is_built_in(name) and not name.startswith(networks.BY_COUNTS)
    return named and entry(name).task == "text"


def pipeline(
    name: str,
    *,
    batch: int = 1,
    precision: str = "bf16",
    resolution: int | str | tuple[int, int] | None = None,
    frames: int | None = None,
    steps: int | None = None,
    guidance: float | None = None,
    trained: bool = False,
    **settings: Any,
) -> Program:
    """A built-in model as stages of operators.

    `name`: one of `names()`, a nickname, an id with its organisation, or a name followed by "encoder", "decoder", "VAE
    encoder", "VAE decoder". `batch`: samples of a call. `precision`: fp32, tf32, bf16, fp16, amp-..., fp8 (both
    sides of matrix products of the denoiser or model), fp8-weight-only and the like. `resolution`: a side of squares,
    "1280x720" (width x height) or a pair. `steps`, `guidance`, `frames`: of generators; blank is what the model's
    publication uses. Further `settings` depend on the task: part, text_tokens, tokens, audio_s, beams, attention, head,
    targets, vae_precision, optimizer.

    Raises `UnknownNameError` for a name or precision, `UsageError` for a setting the model does not have or a value
    that is impossible for it.
    """
    given = {"resolution": resolution, "frames": frames, "steps": steps, "guidance": guidance, **settings}
    given = {key: value for key, value in given.items() if value is not None}
    for key, value in given.items():
        if not isinstance(value, (int, float, str, tuple, list)):
            raise UsageError(f"{key} {value!r} cannot be read", "a number or a text", field=key)
    frozen = tuple(sorted((k, tuple(v) if isinstance(v, list) else v) for k, v in given.items()))
    if isinstance(batch, bool) or not isinstance(batch, int) or not 1 <= batch <= MOST_BATCH:
        hint = f"a whole number of 1 to {MOST_BATCH:,}"
        raise UsageError(f"batch {batch!r} cannot be used", hint, field="batch")
    return _built(current(), name, batch, precision, trained, frozen)


def check_settings(name: str, task: NetworkTask, settings: Mapping[str, Any]) -> None:
    """Raise `UsageError` for a setting that the task of a model does not have, or a value of an unknown word."""
    for key in settings:
        if key not in task.settings:
            near = nearest(key, task.settings)
            known = ", ".join(task.settings)
            hint = f"did you mean {near[0]}?" if near else f"it has {known}"
            field = key if key in ("resolution", "frames", "steps", "guidance") else "settings"
            raise UsageError(f"{name} has no setting '{key}'", hint, field=field, instead=near)
    if settings.get("attention", "fused") not in ("fused", "plain"):
        raise UsageError(f"attention '{settings['attention']}' is not known", "fused or plain", field="attention")


@lru_cache(maxsize=512)
def _built(
    snapshot: Snapshot, name: str, batch: int, precision: str, trained: bool, given: tuple[tuple[str, Any], ...]
) -> Program:
    meant = networks.find(name)
    entry, part = meant.entry, meant.part
    if entry.task not in TASKS:
        raise UsageError(f"{networks.TABLE}: models.{entry.name} has task '{entry.task}'", f"one of {', '.join(TASKS)}")
    task: NetworkTask = facts.build(TASKS[entry.task], entry.values, f"{networks.TABLE}: models.{entry.name}")
    settings = dict(given) | ({"part": part} if part else {})
    check_settings(entry.name, task, settings)
    found = task.pipeline(AskedNetwork(entry.name, batch, precision, trained, settings))
    if not meant.note:
        return found
    return replace(found, name=meant.name, assumptions=(meant.note, *found.assumptions))


def from_macs(
    name: str,
    params_m: float,
    gmacs: float,
    *,
    macts_m: float = 0.0,
    style: Literal["conv", "transformer"] = "conv",
    batch: int = 1,
    precision: str = "bf16",
    trained: bool = False,
) -> Program:
    """A network of which only millions of parameters and 10^9 multiply-adds of a sample are known, as equal layers.

    `macts_m`: millions of values that its products write, where published; `style`: "conv" or "transformer".
    Raises `UsageError`.
    """
    if not (0 < params_m < 1e7 and 0 < gmacs < 1e9 and 0 <= macts_m < 1e9):
        raise UsageError(f"{name}: params_m {params_m} and gmacs {gmacs} cannot be used", "both are positive")
    if style not in ("conv", "transformer"):
        raise UsageError(f"style '{style}' is not known", "conv or transformer", instead=("conv", "transformer"))
    net = Sized(params_m=params_m, gmacs=gmacs, macts_m=macts_m, style=style)
    asked = AskedNetwork(name, batch, precision, trained, {})
    layers = asked.layers()
    said = ["only parameters and multiply-adds are known: equal square layers"]
    return _finish(asked, [net.block(layers, (224, 224)).stage("model")], "sample", {}, said)
