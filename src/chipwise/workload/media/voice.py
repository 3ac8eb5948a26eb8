"""Text to speech and to music: networks that make frames of a spectrum or states of sound from text, and vocoders that
make sound of frames.

Shapes: SWivid/F5-TTS src/f5_tts/model; gemelo-ai/vocos vocos/models.py; hexgrad/kokoro kokoro/istftnet.py, modules.py;
huggingface/transformers models/vits; NVIDIA/DeepLearningExamples SpeechSynthesis/FastPitch; jik876/hifi-gan models.py;
coqui-ai/TTS TTS/tts/layers/xtts/gpt.py, latent_encoder.py, perceiver_encoder.py, hifigan_decoder.py;
huggingface/diffusers stable_audio_transformer.py, ace_step_transformer.py, autoencoder_oobleck.py; huggingface/
transformers models/csm, higgs_audio_v2, dac.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

from chipwise.values import dataclass
from chipwise.workload.media.layers import LayerBlock, Layers, join
from chipwise.workload.media.speech import lstm
from chipwise.workload.media.text import TextDecoder, TextEncoder


def _spread(layers: Layers, n: float, entry: int, out: int, kernel: int, stride: int) -> LayerBlock:
    """A transposed convolution: every position writes `kernel` values of each filter, which overlap `stride` apart."""
    matrix = layers.linear(n, entry, kernel * out, False, "spread")
    return matrix + layers.parameter(out) + layers.pointwise(n * stride, out, 1.0 + kernel / stride, "fold")


@dataclass(frozen=True, kw_only=True)
class HifiGAN:
    """Frames of `mels` values to sound: transposed convolutions of `rates` and `kernels` from `width` channels, after
    each residual blocks of three kinds of filters, six convolutions each. `style`: width of a voice that scales every
    norm in them (0: there are none); `source_values`: those of an inverse Fourier transform that the last convolution
    writes for `hop` samples, made from a sine at the pitch as well (0: it writes samples). `speaker`: values of a voice
    that are added at every level (0: none)."""

    mels: int = 80
    width: int = 512
    rates: tuple[int, ...] = (8, 8, 2, 2)
    kernels: tuple[int, ...] = (16, 16, 4, 4)
    filters: tuple[int, ...] = (3, 7, 11)
    style: int = 0
    source_values: int = 0
    hop: int = 1
    speaker: int = 0

    def block(self, layers: Layers, frames: float) -> LayerBlock:
        """Sound of so many frames."""
        n, w, parts = frames, self.width, []
        if self.speaker:
            parts += [layers.linear(1, self.speaker, w >> i, name="speaker") for i in range(len(self.rates) + 1)]
        if not self.source_values:
            parts.append(layers.conv((math.ceil(n),), self.mels, w, 7))
        if self.source_values:  # nine harmonics of every sample, and their Fourier transform
            samples = n * math.prod(self.rates) * self.hop
            parts += [layers.pointwise(samples, 9, 8.0, "sine"), layers.parameter(10)]
            parts.append(layers.pointwise(samples, 2.0 * self.source_values / self.hop, 2.0, "fourier"))
        for i, (rate, kernel) in enumerate(zip(self.rates, self.kernels, strict=True)):
            parts += [layers.act(n, w, "leaky"), _spread(layers, n, w, w // 2, kernel, rate)]
            n, w = n * rate, w // 2
            if self.source_values:
                left = math.prod(self.rates[i + 1 :])
                taps = 2 * left if left > 1 else 1
                parts.append(layers.linear(n, taps * self.source_values, w, name="source"))
                parts += [self._residual(layers, n, w, 7 if left > 1 else 11), layers.residual(n, w)]
            parts += [self._residual(layers, n, w, kernel) for kernel in self.filters]
            parts.append((len(self.filters) - 1) * layers.residual(n, w))
        parts += [layers.act(n, w, "leaky"), layers.conv((math.ceil(n),), w, self.source_values or 1, 7)]
        if self.source_values:
            parts.append(layers.pointwise(n * self.hop, 1, 8.0, "fourier"))
        return join(*parts)

    def _residual(self, layers: Layers, n: float, w: int, kernel: int) -> LayerBlock:
        each = layers.conv((math.ceil(n),), w, w, kernel)
        if self.style:
            voice = layers.linear(1, self.style, 2 * w, name="style")
            each = join(voice, layers.norm(n, w, "group"), layers.modulate(n, w), layers.parameter(w), each)
        pair = 2 * (layers.act(n, w, "leaky") + each) + layers.residual(n, w)
        return 3 * pair


@dataclass(frozen=True, kw_only=True)
class Oobleck:
    """Frames of `inputs` values to sound of `channels`: transposed convolutions of `rates` from the widest of `widths`,
    after each three pairs of convolutions (Stable Audio Open, ACE-Step 1.5). `chunk`: frames that are worked through at
    a time (0: all)."""

    inputs: int = 64
    widths: tuple[int, ...] = (2048, 1024, 512, 256, 128, 128)
    rates: tuple[int, ...] = (8, 8, 4, 4, 2)
    channels: int = 2
    chunk: int = 0

    def block(self, layers: Layers, frames: float) -> LayerBlock:
        """Sound of so many frames."""
        whole = self._run(layers, frames)
        cut = self.chunk and frames > self.chunk
        return replace(whole, peak=self._run(layers, self.chunk).peak) if cut else whole

    def _run(self, layers: Layers, frames: float) -> LayerBlock:
        """A convolution has a length for each filter, an activation two scales a channel."""
        n, w, out = frames, self.widths[0], layers.parameter
        parts = [layers.conv((math.ceil(n),), self.inputs, w, 7), out(w)]
        for rate, (c, w) in zip(self.rates, itertools.pairwise(self.widths), strict=True):
            parts += [layers.act(n, c, "snake"), out(3 * c), _spread(layers, n, c, w, 2 * rate, rate)]
            n *= rate
            near = join(layers.conv((math.ceil(n),), w, w, 7), layers.linear(n, w, w), out(6 * w))
            parts.append(3 * (2 * layers.act(n, w, "snake") + near + layers.residual(n, w)))
        parts += [layers.act(n, w, "snake"), out(2 * w + self.channels)]
        return join(*parts, layers.conv((math.ceil(n),), w, self.channels, 7, bias=False))


@dataclass(frozen=True, kw_only=True)
class StyleVoice:
    """Kokoro: an ALBERT and convolutions read phonemes, LSTMs say how long and how high each sounds, and blocks whose
    norms a voice scales make states of sound, which `vocoder` continues at twice the rate. `width`: of states, `style`
    of a voice."""

    reader: TextEncoder
    vocoder: HifiGAN
    width: int = 512
    style: int = 128
    inner: int = 1024
    longest: int = 50
    vocab: int = 178
    frames_per_s: float = 40.0

    def block(self, layers: Layers, frames: float, tokens: float) -> LayerBlock:
        """Sound of so many frames from so many phonemes."""
        w, s, n = self.width, self.style, frames
        half = w // 2
        encode = layers.conv((math.ceil(tokens),), w, w, 5) + layers.norm(tokens, w)
        duration = 3 * (
            self._both(layers, tokens, w + s) + layers.linear(1, s, 2 * w) + layers.norm(tokens, w, affine=False)
        )
        pitch = 2 * join(
            self._voiced(layers, n, w, w),
            self._voiced(layers, n, w, half, up=True),
            self._voiced(layers, 2 * n, half, half),
            layers.linear(2 * n, half, 1),
        )
        joined = self.inner + 64 + 2
        decode = join(
            self._voiced(layers, n, w + 2, self.inner),
            layers.linear(n, w, 64),
            3 * self._voiced(layers, n, joined, self.inner),
            self._voiced(layers, n, joined, w, up=True),
        )
        return join(
            self.reader.block(layers, math.ceil(tokens)),
            layers.linear(tokens, self.reader.width, w),
            layers.embed(tokens, self.vocab, w),
            3 * encode,
            self._both(layers, tokens, w),
            duration,
            self._both(layers, tokens, w + s),
            layers.linear(tokens, w, self.longest),
            self._both(layers, n, w + s),
            pitch,
            decode,
            self.vocoder.block(layers, 2 * n),
        )

    def _both(self, layers: Layers, steps: float, inputs: int) -> LayerBlock:
        """An LSTM each way; torch keeps two offsets of each gate."""
        half = self.width // 2
        return 2 * lstm(layers, steps, inputs, half) + layers.parameter(8 * half)

    def _voiced(self, layers: Layers, n: float, entry: int, out: int, *, up: bool = False) -> LayerBlock:
        """Two convolutions behind norms that a voice scales; `up`: between them there are twice as many positions."""
        after = 2 * n if up else n

        def norm(positions: float, width: int) -> LayerBlock:
            voice = layers.linear(1, self.style, 2 * width, name="style")
            return voice + layers.norm(positions, width, "group", affine=False) + layers.modulate(positions, width)

        return join(
            norm(n, entry),
            layers.act(n, entry, "leaky"),
            layers.pointwise(after, entry, 2.0, "upsample") + layers.parameter(4 * entry) if up else LayerBlock(),
            layers.conv((math.ceil(after),), entry, out),
            norm(after, out),
            layers.act(after, out, "leaky"),
            layers.conv((math.ceil(after),), out, out),
            layers.linear(after, entry, out, False, "shortcut") if entry != out else LayerBlock(),
            layers.residual(after, out),
        )


def _fft_layer(layers: Layers, n: float, w: int, heads: int, size: int, inner: int, kernel: int) -> LayerBlock:
    """A transformer layer whose feed-forward is two convolutions."""
    grid = (math.ceil(n),)
    return join(
        layers.linear(n, w, 3 * heads * size, name="qkv"),
        layers.attention(n, n, heads, size),
        layers.linear(n, heads * size, w, False, "out"),
        layers.residual(n, w),
        layers.norm(n, w),
        layers.conv(grid, w, inner, kernel),
        layers.act(n, inner, "relu"),
        layers.conv(grid, inner, w, kernel),
        layers.residual(n, w),
        layers.norm(n, w),
    ).beside(layers.bytes(n, w))


@dataclass(frozen=True, kw_only=True)
class FastPitch:
    """Text to frames in one pass: layers over text, predictors of length, pitch and energy, layers over frames."""

    width: int = 384
    layers: int = 6
    heads: int = 1
    head_dim: int = 64
    inner: int = 1536
    kernel: int = 3
    vocab: int = 148
    mels: int = 80
    frames_per_s: float = 22_050 / 256

    def block(self, layers: Layers, frames: float, tokens: float) -> LayerBlock:
        """Frames from so many characters."""
        w, sizes = self.width, (self.heads, self.head_dim, self.inner, self.kernel)
        grid, narrow = (math.ceil(tokens),), 256

        def convolved(entry: int) -> LayerBlock:
            act = layers.act(tokens, narrow, "relu") + layers.norm(tokens, narrow)
            return layers.conv(grid, entry, narrow) + act

        predict = join(convolved(w), convolved(narrow), layers.linear(tokens, narrow, 1))
        placed = layers.conv(grid, 1, w) + layers.residual(tokens, w)
        return join(
            layers.embed(tokens, self.vocab, w),
            self.layers * _fft_layer(layers, tokens, w, *sizes),
            3 * predict + 2 * placed,
            layers.pointwise(frames, w, 2.0, "repeat"),
            self.layers * _fft_layer(layers, frames, w, *sizes),
            layers.linear(frames, w, self.mels),
        )


@dataclass(frozen=True, kw_only=True)
class VITS:
    """Text to sound in one pass: layers over text say a distribution of every frame, a flow turns it around, `vocoder`
    makes sound. Parameters are those of the checkpoint, with what training alone needs: `posterior` layers over a
    spectrum of `bins`, and what learns lengths."""

    vocoder: HifiGAN
    width: int = 192
    layers: int = 6
    heads: int = 2
    ffn: int = 768
    kernel: int = 3
    near: int = 4
    vocab: int = 38
    flows: int = 4
    flow_layers: int = 4
    posterior: int = 16
    bins: int = 513
    frames_per_s: float = 16_000 / 256

    def block(self, layers: Layers, frames: float, tokens: float) -> LayerBlock:
        """Sound of so many frames from so many characters."""
        w, n, size = self.width, frames, self.width // self.heads
        places = layers.parameter(2 * (2 * self.near + 1) * size)
        read = _fft_layer(layers, tokens, w, self.heads, size, self.ffn, self.kernel) + places
        read += layers.parameter(w)  # the output of attention has an offset
        unused = layers.parameter(self._learning)
        half = w // 2
        flow = self.flows * join(
            layers.linear(n, half, w), self._wave(layers, n, self.flow_layers), layers.linear(n, w, half)
        )
        return join(
            layers.embed(tokens, self.vocab, w),
            self.layers * read,
            layers.linear(tokens, w, 2 * w),
            self._lengths(layers, tokens),
            layers.pointwise(n, 2 * w, 3.0, "sample"),
            flow,
            unused,
            self.vocoder.block(layers, n),
        )

    def _wave(self, layers: Layers, n: float, depth: int) -> LayerBlock:
        """Gated convolutions of five positions, each adding to the stream and to the result."""
        w, grid = self.width, (math.ceil(n),)
        first = layers.conv(grid, w, 2 * w, 5) + layers.gate(n, w)
        both = layers.linear(n, w, 2 * w) + 2 * layers.residual(n, w)
        last = layers.linear(n, w, w) + layers.residual(n, w)
        return join((depth - 1) * (first + both), first, last)

    def _separable(self, layers: Layers, n: float) -> LayerBlock:
        """Three dilated convolutions of each channel, each with a matrix after it."""
        w, grid = self.width, (math.ceil(n),)
        norm = layers.norm(n, w) + layers.act(n, w)
        return 3 * join(layers.conv(grid, w, w, 3, 1, w), norm, layers.linear(n, w, w), norm, layers.residual(n, w))

    def _spline(self, layers: Layers, n: float) -> LayerBlock:
        """One flow of lengths: a spline of ten pieces whose 29 numbers a network says."""
        w = self.width
        return join(
            layers.linear(n, 1, w),
            self._separable(layers, n),
            layers.linear(n, w, 29),
            layers.pointwise(n, 29, 4.0, "spline"),
        )

    def _lengths(self, layers: Layers, n: float) -> LayerBlock:
        """Frames of every character, by flows from noise."""
        w = self.width
        entry = join(layers.linear(n, w, w), self._separable(layers, n), layers.linear(n, w, w))
        return join(entry, layers.parameter(4), 4 * self._spline(layers, n))

    @property
    def _learning(self) -> int:
        """Parameters that training alone needs."""
        one, w = Layers(), self.width
        posterior = join(one.linear(1, self.bins, w), self._wave(one, 1, self.posterior), one.linear(1, w, 2 * w))
        lengths = join(one.linear(1, 1, w), self._separable(one, 1), one.linear(1, w, w), 4 * self._spline(one, 1))
        return posterior.parameters + lengths.parameters + 4


@dataclass(frozen=True, kw_only=True)
class GPTVoice:
    """Sound as codes that a decoder says one after the other, continuing text and a voice (XTTS). The voice is read
    from a spectrum of `mels` by `reader` layers of attention and condensed to `latents` by `condenser` layers; once all
    codes are said, the decoder runs over them again, and its states go to a vocoder of `frames_per_s`."""

    width: int
    layers: int
    heads: int
    vocab: int
    codes: int
    codes_per_s: float
    frames_per_s: float
    longest: int = 605
    longest_text: int = 402
    latents: int = 32
    mels: int = 80
    mels_per_s: float = 22_050 / 256
    reader: int = 6
    condenser: int = 2

    def voice(self, layers: Layers, seconds: float) -> LayerBlock:
        """The latents of so many seconds of a voice."""
        n, w, heads = math.ceil(self.mels_per_s * seconds), self.width, self.heads
        read = join(
            layers.norm(n, w, "group"),
            layers.linear(n, w, 3 * w, name="qkv"),
            layers.attention(n, n, heads, w // heads),
            layers.linear(n, w, w, name="out"),
            layers.residual(n, w),
        )
        m, half, inner = self.latents, w // 2, 4 * w * 2 // 3
        condense = join(
            layers.linear(m, w, half, False, "q"),
            layers.linear(m + n, w, w, False, "kv"),
            layers.attention(m, m + n, 8, half // 8),
            layers.linear(m, half, w, False, "out"),
            layers.residual(m, w),
            layers.mlp(m, w, inner, gated=True),
            layers.residual(m, w),
        )
        return join(
            layers.linear(n, self.mels, w),
            self.reader * read,
            layers.parameter(m * w),
            self.condenser * condense,
            layers.norm(m, w, "rms"),
        )

    def run(self, layers: Layers, tokens: int, seen: float, scored: int, text: int) -> LayerBlock:
        """`tokens` new ones of each sequence, which then has `seen` (0: these alone), the last `scored` of which get a
        code; `text` of a prompt."""
        w, heads, n = self.width, self.heads, tokens
        each = join(
            layers.norm(n, w),
            layers.linear(n, w, 3 * w, name="qkv"),
            layers.attention(n, max(seen, n), heads, w // heads, causal=n > 1),
            layers.linear(n, w, w, name="out"),
            layers.residual(n, w),
            layers.norm(n, w),
            layers.mlp(n, w, 4 * w),
            layers.residual(n, w),
        ).beside(layers.bytes(n, w))
        tables = layers.embed(n, self.codes, w) + layers.embed(min(text, n), self.vocab, w)
        places = layers.parameter((self.longest + 3 + self.longest_text + 2) * w)
        learning = layers.parameter(self.vocab * (w + 1))  # training predicts the text as well
        return join(
            tables,
            places,
            layers.residual(n, w),
            self.layers * each,
            2 * layers.norm(n, w),
            layers.linear(scored, w, self.codes, name="codes") if scored else LayerBlock(),
            learning,
        )


@dataclass(frozen=True, kw_only=True)
class CodecVoice:
    """Sound as codes that a language model says, continuing text and a voice, `frames_per_s` steps a second.

    | field | meaning |
    |---|---|
    | talker | the language model; its table is that of text |
    | codes, books | rows of a table of codes; tables, each with a code in a frame |
    | predictor | says all codes of a frame but the first, one after the other (absent: all are said at once) |
    | tied | codes are words of the one table, which is the last matrix too |
    | passes | of a step, as a larger batch: with text, without |
    """

    talker: TextDecoder
    predictor: TextDecoder | None = None
    codes: int
    books: int = 1
    frames_per_s: float
    tied: bool = False
    passes: int = 1

    def run(self, layers: Layers, tokens: int, seen: float = 0.0) -> LayerBlock:
        """`tokens` new ones of each sequence, which then has `seen` (0: these alone); the last gets codes."""
        w, heads = self.talker.width, 1 if self.predictor else self.books
        table = layers.embed(tokens, self.books * self.codes, w)
        last = layers.linear(1, w, heads * self.codes, False, "codes")
        if self.tied:
            last = replace(last, parameters=0, weight_bytes=0.0)
        return join(table, self.talker.block(layers, tokens, seen), last)

    def predict(self, layers: Layers) -> LayerBlock:
        """One more code of a frame; every place in it has a matrix of its own."""
        if not self.predictor:
            return LayerBlock()
        w, rest = self.predictor.width, self.books - 1
        last = layers.linear(1, w, self.codes, False, "codes")
        more = layers.parameter((rest - 1) * w * self.codes)
        return join(self.predictor.block(layers, 1, (rest + 2) / 2.0), last, more)
