"""Speech to text: Whisper (an encoder of 30 s windows, a decoder one token at a time), wav2vec2, Conformers with
transducers (Parakeet), LSTM transducers (RNN-T), and networks of 1-D convolutions (Jasper).

Shapes: openai/whisper, whisper/model.py; huggingface/transformers, models/wav2vec2; NVIDIA/NeMo, asr/modules/
conformer_encoder.py; mlcommons/training, rnn_speech_recognition; NVIDIA/DeepLearningExamples, SpeechRecognition/Jasper.
"""

from __future__ import annotations

from chipwise.values import dataclass
from chipwise.workload.media.layers import Grid, LayerBlock, Layers, join, shrunk
from chipwise.workload.media.text import CrossDecoder


def lstm(layers: Layers, steps: float, inputs: int, width: int, depth: int = 1) -> LayerBlock:
    """`depth` layers of `width`: inputs of all steps at once, then one product per step, one after the other."""
    parts = []
    for i in range(depth):
        recurrent = layers.linear(1, width, 4 * width, name="recurrent") + layers.pointwise(1, 4 * width, 2.0, "cell")
        parts += [layers.linear(steps, width if i else inputs, 4 * width), recurrent.again(steps)]
    return join(*parts)


@dataclass(frozen=True, kw_only=True)
class Whisper:
    """`encoder` and `decoder` layers of `width`; both ends of the decoder share one table."""

    width: int
    encoder: int
    decoder: int
    heads: int
    vocab: int = 51_865
    mels: int = 80
    positions: int = 1_500
    context: int = 448

    window_s = 30.0

    def encode(self, layers: Layers) -> LayerBlock:
        """One window of 30 s, 3,000 frames."""
        w, n = self.width, self.positions
        return join(
            layers.conv((2 * n,), self.mels, w),
            layers.act(2 * n, w),
            layers.conv((2 * n,), w, w, 3, 2),
            layers.act(n, w),
            layers.parameter(n * w),
            layers.residual(n, w),
            self.encoder * (layers.encoder_layer(n, w, self.heads, 4 * w) + layers.parameter(-w)),
            layers.norm(n, w),
        )

    @property
    def ahead(self) -> CrossDecoder:
        """The layers of the decoder: keys have no offset."""
        w, heads = self.width, self.heads
        return CrossDecoder(
            depth=self.decoder, width=w, heads=heads, head_dim=w // heads, ffn=4 * w, vocab=self.vocab, keyed=False
        )

    def states(self, layers: Layers) -> LayerBlock:
        """Keys and values of the encoder's states for every layer of the decoder, once a window."""
        return self.ahead.states(layers, self.positions)

    def step(self, layers: Layers, seen: float, tokens: int = 1, scored: int = 1) -> LayerBlock:
        """`tokens` new tokens of each sequence, as `CrossDecoder` has it."""
        return join(
            layers.embed(tokens, self.vocab, self.width),
            layers.parameter(self.context * self.width),
            self.ahead.step(layers, seen, self.positions, tokens, scored),
        )


@dataclass(frozen=True, kw_only=True)
class Wav2Vec2:
    """Convolutions over raw sound at 16 kHz, then an encoder; a position every 20 ms. `stable`: every convolution has
    an offset and a norm over its channels (XLS-R, HuBERT Large)."""

    width: int
    layers: int
    heads: int
    ffn: int
    stable: bool = False
    conv: int = 512
    kernels: tuple[int, ...] = (10, 3, 3, 3, 3, 2, 2)
    strides: tuple[int, ...] = (5, 2, 2, 2, 2, 2, 2)
    near: int = 128
    groups: int = 16
    labels: int = 32

    def block(self, layers: Layers, seconds: float) -> LayerBlock:
        """One pass over `seconds` of sound."""
        c, w, entry = self.conv, self.width, 1
        grid: Grid = (max(1, round(16_000 * seconds)),)
        parts = []
        for i, (kernel, stride) in enumerate(zip(self.kernels, self.strides, strict=True)):
            parts.append(layers.conv(grid, entry, c, kernel, stride, bias=self.stable))
            grid, entry = shrunk(grid, stride), c
            if self.stable:
                parts.append(layers.norm(grid[0], c))
            elif i == 0:
                parts.append(layers.norm(grid[0], c, "group"))
            parts.append(layers.act(grid[0], c))
        n = grid[0]
        near = layers.conv(grid, w, w, self.near, 1, self.groups) + layers.parameter(self.near) + layers.act(n, w)
        return join(
            *parts,
            layers.norm(n, c),
            layers.linear(n, c, w),
            layers.parameter(w),
            near,
            layers.norm(n, w),
            self.layers * layers.encoder_layer(n, w, self.heads, self.ffn),
            layers.linear(n, w, self.labels) if self.labels else LayerBlock(),
        )


@dataclass(frozen=True, kw_only=True)
class Conformer:
    """Feed-forward, attention with relative positions, convolution, feed-forward; frames of 10 ms are joined by
    `shorter` before, by convolutions of `sub` channels; a transducer of `predict` width ends it (0: one matrix), which
    passes a frame or says a label with each step, or `advance` of them where it tells durations too."""

    width: int
    layers: int
    heads: int
    kernel: int = 9
    shorter: int = 8
    sub: int = 256
    mels: int = 80
    vocab: int = 1_024
    predict: int = 640
    predict_layers: int = 1
    biased: bool = True
    advance: float = 1.0

    def block(self, layers: Layers, seconds: float) -> LayerBlock:
        """The encoder over `seconds` of sound."""
        w, b, entry, parts = self.width, self.biased, 1, []
        grid: Grid = (round(100 * seconds), self.mels)
        steps = self.shorter.bit_length() - 1
        for _ in range(steps):
            if entry == 1:
                parts.append(layers.conv(grid, 1, self.sub, 3, 2))
            else:
                after = shrunk(grid, 2)
                parts += [layers.conv(grid, entry, entry, 3, 2, entry), layers.conv(after, entry, entry, 1)]
            grid, entry = shrunk(grid, 2), self.sub
            parts.append(layers.act(grid[0] * grid[1], entry, "relu"))
        n = grid[0]
        parts.append(layers.linear(n, entry * grid[1], w))
        feed = layers.norm(n, w) + layers.mlp(n, w, 4 * w, bias=b) + layers.residual(n, w)
        places = layers.linear(2 * n - 1, w, w, False, "positions") + layers.parameter(2 * w)
        scores = layers.relative_positions(n, n * n, self.heads, w // self.heads)
        each = join(
            feed,
            layers.norm(n, w),
            layers.linear(n, w, 3 * w, b, "qkv"),
            places,
            scores,
            layers.attention(n, n, self.heads, w // self.heads),
            layers.linear(n, w, w, b, "out"),
            layers.residual(n, w),
            layers.norm(n, w),
            layers.linear(n, w, 2 * w, b),
            layers.gate(n, w, "glu"),
            layers.conv((n,), w, w, self.kernel, 1, w, b),
            layers.norm(n, w, "batch"),
            layers.act(n, w, "silu"),
            layers.linear(n, w, w, b),
            layers.residual(n, w),
            feed,
            layers.norm(n, w),
        ).beside(layers.bytes(n, w))
        head = LayerBlock() if self.predict else layers.linear(n, w, self.vocab + 1)
        return join(*parts, self.layers * each, head)

    def step(self, layers: Layers) -> LayerBlock:
        """One step of the transducer: predict from the last label, join with one frame."""
        p = self.predict
        return join(
            layers.embed(1, self.vocab + 1, p),
            lstm(layers, 1, p, p, self.predict_layers),
            layers.linear(1, self.width, p),
            layers.linear(1, p, p),
            layers.act(1, p, "relu"),
            layers.linear(1, p, self.vocab + 1),
        )

    def frames(self, seconds: float) -> int:
        """Positions of the encoder."""
        return -(-round(100 * seconds) // self.shorter)

    def calls(self, seconds: float, tokens: float) -> float:
        """Steps of the transducer that say so many labels of so much sound."""
        return (self.frames(seconds) + tokens) / self.advance


@dataclass(frozen=True, kw_only=True)
class Transducer:
    """An LSTM encoder whose time is halved after `before` layers, a predictor of labels, a joint network (RNN-T)."""

    width: int
    before: int
    after: int
    inputs: int = 240
    frame_s: float = 0.03
    predict: int = 320
    predict_layers: int = 2
    joint: int = 512
    vocab: int = 28

    def block(self, layers: Layers, seconds: float) -> LayerBlock:
        """The encoder over `seconds` of sound."""
        n, w = self.frames(seconds), self.width
        return lstm(layers, 2 * n, self.inputs, w, self.before) + lstm(layers, n, 2 * w, w, self.after)

    def step(self, layers: Layers) -> LayerBlock:
        """One step of the transducer: predict from the last label, join with one frame."""
        p = self.predict
        return join(
            layers.embed(1, self.vocab, p),
            lstm(layers, 1, p, p, self.predict_layers),
            layers.linear(1, self.width + p, self.joint),
            layers.act(1, self.joint, "relu"),
            layers.linear(1, self.joint, self.vocab + 1),
        )

    def frames(self, seconds: float) -> int:
        """Positions of the encoder."""
        return max(1, round(seconds / self.frame_s / 2))

    def calls(self, seconds: float, tokens: float) -> float:
        """Steps that say so many labels of so much sound: each passes a frame or says a label."""
        return self.frames(seconds) + tokens


@dataclass(frozen=True, kw_only=True)
class Jasper:
    """Blocks of `repeats` 1-D convolutions with batch norms; every block sees all blocks before it through 1 x 1
    convolutions. `blocks`: (width, kernel) of each."""

    blocks: tuple[tuple[int, int], ...]
    repeats: int = 5
    mels: int = 64
    labels: int = 29

    def block(self, layers: Layers, seconds: float) -> LayerBlock:
        """One pass over `seconds` of sound; time is halved by the first convolution."""

        def conv(n: int, entry: int, out: int, kernel: int, stride: int = 1) -> LayerBlock:
            after = -(-n // stride)
            norm = layers.norm(after, out, "batch") + layers.act(after, out, "relu")
            return layers.conv((n,), entry, out, kernel, stride, bias=False) + norm

        n = max(1, round(100 * seconds))
        parts, seen = [conv(n, self.mels, 256, 11, 2)], [256]
        n = -(-n // 2)
        for width, kernel in self.blocks:
            parts += [conv(n, seen[-1], width, kernel), (self.repeats - 1) * conv(n, width, width, kernel)]
            for entry in seen:
                parts += [layers.conv((n,), entry, width, 1, bias=False), layers.norm(n, width, "batch")]
            seen.append(width)
        parts += [conv(n, seen[-1], 896, 29), conv(n, 896, 1024, 1), layers.linear(n, 1024, self.labels)]
        return join(*parts)
