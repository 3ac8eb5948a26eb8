"""Structures of molecules from sequences: AlphaFold 3 and its reproductions (Protenix, Boltz-1).

A trunk refines a state of every pair of tokens (`Pairformer`), a denoiser of atoms is called at every step, and what
comes out is judged. Pairs grow with the square of tokens, sums over triangles with the cube.

Shapes: google-deepmind/alphafold3 src/alphafold3/model/network; bytedance/Protenix protenix/model/modules and
configs/configs_base.py; jwohlwend/boltz src/boltz/model/modules.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.values import dataclass
from chipwise.workload.media.layers import LayerBlock, Layers, join
from chipwise.workload.op import gemm

FINGERPRINT = 449  # features of a token: residue type, profile of the alignment, deletions, and atoms' states
RELATIVE = 139  # features of a pair: distances along the chain, in tokens and between chains
ATOMS = 389  # features of an atom: place, charge, mask, element, name
RECYCLED = 34  # features of a row of an alignment
TEMPLATE = 108  # features of a pair in a template


@dataclass(frozen=True, kw_only=True)
class AlphaFold:
    """Pairs of width `pair`, tokens of `single`, rows of an alignment of `aligned`; `blocks` of the trunk.

    | field | meaning |
    |---|---|
    | heads, pair_heads | of attention between tokens, and along rows and columns of pairs |
    | msa_blocks, template_blocks | blocks that read an alignment, and templates, at each cycle |
    | denoiser, token | layers of the denoiser, and the width of its tokens |
    | atom, atom_pair, atom_blocks | widths and layers around it, in windows of `queries` atoms that see `keys` |
    | judged | blocks that judge each sample |
    | templates, template | how many templates each cycle reads, and the width of their pairs |
    """

    pair: int = 128
    single: int = 384
    aligned: int = 64
    blocks: int = 48
    heads: int = 16
    pair_heads: int = 4
    msa_blocks: int = 4
    template_blocks: int = 2
    template: int = 64
    templates: int = 4
    denoiser: int = 24
    token: int = 768
    atom: int = 128
    atom_pair: int = 16
    atom_blocks: int = 3
    queries: int = 32
    keys: int = 128
    judged: int = 4

    def embed(self, layers: Layers, tokens: int, atoms: int) -> LayerBlock:
        """Features to states, once: atoms in windows, tokens, and every pair of them."""
        n2, c, s = tokens * tokens, self.pair, self.single
        return join(
            self._atoms(layers, atoms, tokens, s),
            2 * layers.linear(n2, FINGERPRINT, c, False, "pairs"),
            layers.linear(tokens, FINGERPRINT, s, False),
            layers.linear(n2, RELATIVE, c, False, "relative"),
            layers.linear(n2, 1, c, False, "bonds"),
            layers.residual(n2, c),
        )

    def cycle(self, layers: Layers, tokens: int, rows: int) -> LayerBlock:
        """One pass of the trunk: templates, `rows` of an alignment, and the blocks."""
        n2, c, s, m = tokens * tokens, self.pair, self.single, self.aligned
        again = join(layers.norm(n2, c), layers.linear(n2, c, c, False), layers.residual(n2, c))
        again += layers.norm(tokens, s) + layers.linear(tokens, s, s, False)
        entry = layers.linear(rows * tokens, RECYCLED, m, False) + layers.linear(
            tokens, FINGERPRINT, m, False
        )
        # the last block leaves the alignment as it is
        msa = join(
            self.msa_blocks * (self._outer(layers, tokens, rows) + self._pairs(layers, tokens, c)),
            max(self.msa_blocks - 1, 0) * self._rows(layers, tokens, rows),
        )
        trunk = self.blocks * (self._pairs(layers, tokens, c) + self._tokens(layers, tokens))
        return join(again, self._templates(layers, tokens), entry, msa, trunk)

    def denoise(self, layers: Layers, tokens: int, atoms: int, samples: int) -> LayerBlock:
        """One step for `samples` structures, which share what depends on pairs alone."""
        n, n2, c, s, t = tokens, tokens * tokens, self.pair, self.single, self.token
        each = layers.times(samples)
        wide = join(
            layers.norm(n2, 2 * c),
            layers.linear(n2, 2 * c, c, False),
            2 * self._transition(layers, n2, c, 2),
        )
        states = join(
            each.norm(n, s + FINGERPRINT),
            each.linear(n, s + FINGERPRINT, s, False),
            each.linear(1, 256, s, False, "time") + each.norm(1, 256),
            2 * self._transition(each, n, s, 2),
            each.norm(n, s),
            each.linear(n, s, t, False),
        )
        bias = layers.norm(n2, c) + layers.linear(n2, c, self.heads, False, "bias")
        layer = bias + self._adaptive_layer(each, n, t, s, self.heads, n, 1.0)
        return join(
            layers.linear(n2, RELATIVE, c, False, "relative"),
            wide,
            states,
            self._atoms(each, atoms, tokens, t, placed=True),
            self.denoiser * layer,
            each.norm(n, t),
            self._atoms_out(each, atoms, tokens),
        )

    def judge(self, layers: Layers, tokens: int) -> LayerBlock:
        """One structure: blocks over its distances, and heads for pairs and tokens."""
        n2, c, s = tokens * tokens, self.pair, self.single
        return join(
            2 * layers.linear(tokens, FINGERPRINT, c, False),
            layers.linear(n2, 39, c, False, "distances"),
            self.judged * (self._pairs(layers, tokens, c) + self._tokens(layers, tokens)),
            3 * layers.linear(n2, c, 64, False, "errors"),
            layers.norm(tokens, s) + layers.linear(tokens, s, 50 * 24, False),
        )

    # ----------------------------------------------------------------- parts

    def _pairs(self, layers: Layers, tokens: int, c: int) -> LayerBlock:
        """Two sums over triangles, attention along rows and along columns, a feed-forward."""
        n2 = tokens * tokens
        held = layers.bytes(n2, c)
        return join(
            2 * self._triangle(layers, tokens, c).beside(held),
            2 * self._axis(layers, tokens, c).beside(held),
            self._transition(layers, n2, c, 4).beside(held),
        )

    def _triangle(self, layers: Layers, tokens: int, c: int) -> LayerBlock:
        """z_ij += gate x sum over k of a_ik b_jk, channel by channel."""
        n2, p = tokens * tokens, layers.precision.plain
        product = gemm(tokens, tokens, tokens, p, p, batch=layers.batch * c, name="triangle")
        live = layers.bytes(n2, 3 * c)
        return join(
            layers.norm(n2, c),
            layers.linear(n2, c, 4 * c, False, "triangle_in"),
            layers.gate(n2, 2 * c),
            layers.pointwise(n2, 3 * c, 2.0, "transpose"),
            LayerBlock(((1.0, product),), peak=live, kept=live),
            layers.norm(n2, c),
            layers.linear(n2, c, c, False, "out"),
            layers.linear(n2, c, c, False, "gate"),
            layers.gate(n2, c),
            layers.residual(n2, c),
        )

    def _axis(self, layers: Layers, tokens: int, c: int) -> LayerBlock:
        """Every row of pairs sees itself, biased by a third side."""
        n2, inner = tokens * tokens, c
        size = c // self.pair_heads
        return join(
            layers.norm(n2, c),
            layers.linear(n2, c, 3 * inner, False, "qkv"),
            layers.linear(n2, c, self.pair_heads, False, "bias"),
            layers.attention(tokens, tokens, self.pair_heads, size, windows=tokens),
            # every row reads the bias of all pairs of columns
            replace(layers.pointwise(n2, tokens * self.pair_heads, 1.0, "bias"), peak=0.0),
            layers.linear(n2, c, inner, False, "gate"),
            layers.gate(n2, inner),
            layers.linear(n2, inner, c, False, "out"),
            layers.residual(n2, c),
        )

    def _transition(self, layers: Layers, positions: int, width: int, times: int) -> LayerBlock:
        feed = layers.mlp(positions, width, times * width, gated=True, bias=False)
        return layers.norm(positions, width) + feed + layers.residual(positions, width)

    def _tokens(self, layers: Layers, tokens: int) -> LayerBlock:
        """Attention between tokens biased by pairs, and a feed-forward."""
        s, n2, c = self.single, tokens * tokens, self.pair
        return join(
            layers.norm(n2, c),
            layers.linear(n2, c, self.heads, False, "bias"),
            layers.norm(tokens, s),
            layers.linear(tokens, s, 3 * s, False, "qkv") + layers.parameter(s),
            layers.attention(tokens, tokens, self.heads, s // self.heads),
            layers.linear(tokens, s, s, False, "gate"),
            layers.gate(tokens, s),
            layers.linear(tokens, s, s, False, "out"),
            layers.residual(tokens, s),
            self._transition(layers, tokens, s, 4),
        )

    def _outer(self, layers: Layers, tokens: int, rows: int) -> LayerBlock:
        """Products of columns of the alignment, averaged over its rows, as pairs."""
        n2, m, c, inner = tokens * tokens, self.aligned, self.pair, 32
        p = layers.precision.plain
        product = gemm(inner * tokens, inner * tokens, rows, p, p, batch=layers.batch, name="outer")
        live = layers.bytes(n2, inner * inner)
        return join(
            layers.norm(rows * tokens, m),
            2 * layers.linear(rows * tokens, m, inner, False),
            LayerBlock(((1.0, product),), peak=live, kept=live),
            layers.linear(n2, inner * inner, c),
            layers.residual(n2, c),
        )

    def _rows(self, layers: Layers, tokens: int, rows: int) -> LayerBlock:
        """Rows of the alignment averaged by weights of pairs, and a feed-forward."""
        n, m, c, heads, inner = rows * tokens, self.aligned, self.pair, 8, 256
        p = layers.precision.plain
        product = gemm(tokens, rows * inner / heads, tokens, p, p, batch=layers.batch * heads, name="average")
        live = layers.bytes(n, 2 * inner)
        return join(
            layers.norm(n, m),
            layers.linear(n, m, inner, False),
            layers.norm(tokens * tokens, c),
            layers.linear(tokens * tokens, c, heads, False, "bias"),
            LayerBlock(((1.0, product),), peak=live, kept=live),
            layers.linear(n, m, inner, False, "gate"),
            layers.gate(n, inner),
            layers.linear(n, inner, m, False),
            layers.residual(n, m),
            self._transition(layers, n, m, 4),
        )

    def _templates(self, layers: Layers, tokens: int) -> LayerBlock:
        """Pairs of a template through blocks of their own."""
        if not self.template_blocks:
            return LayerBlock()
        n2, t = tokens * tokens, self.template
        held = layers.bytes(n2, t)
        each = join(
            2 * self._triangle(layers, tokens, t).beside(held),
            2 * self._axis(layers, tokens, t).beside(held),
            self._transition(layers, n2, t, 2),
        )
        one = join(
            layers.linear(n2, TEMPLATE, t, False),
            layers.norm(n2, self.pair),
            layers.linear(n2, self.pair, t, False),
            self.template_blocks * each,
            layers.norm(n2, t),
        )
        return one.again(self.templates) + layers.linear(n2, t, self.pair, False)

    def _adaptive_layer(
        self, layers: Layers, n: int, width: int, state: int, heads: int, seen: float, windows: float
    ) -> LayerBlock:
        """Attention and a feed-forward of `n` positions that see `seen` in each of `windows`, both scaled, shifted and
        gated by states of width `state`."""
        steer = join(
            layers.norm(n, width, affine=False),
            layers.norm(n, state, "rms"),
            layers.linear(n, state, 2 * width, False, "steer"),
            layers.parameter(width),
            layers.modulate(n, width),
        )
        gate = layers.linear(n, state, width, name="gate") + layers.gate(n, width)
        attend = layers.attention(n / windows, seen, heads, width // heads, windows=windows)
        return join(
            steer,
            layers.linear(n, width, 3 * width, False, "qkv") + layers.parameter(width),
            attend,
            layers.linear(n, width, width, False, "gate"),
            layers.gate(n, width),
            layers.linear(n, width, width, False, "out"),
            gate,
            layers.residual(n, width),
            steer,
            layers.mlp(n, width, 2 * width, gated=True, bias=False),
            gate,
            layers.residual(n, width),
        ).beside(layers.bytes(n, width))

    def _local(self, layers: Layers, atoms: int) -> LayerBlock:
        """Layers over atoms: windows of queries see their neighbours, biased by pairs of atoms."""
        a, pairs = self.atom, atoms * self.keys
        bias = layers.norm(pairs, self.atom_pair) + layers.linear(pairs, self.atom_pair, 4, False, "bias")
        windows = atoms / self.queries
        return self.atom_blocks * (
            bias + self._adaptive_layer(layers, atoms, a, a, 4, float(self.keys), windows)
        )

    def _atoms(
        self, layers: Layers, atoms: int, tokens: int, out: int, *, placed: bool = False
    ) -> LayerBlock:
        """Atoms to tokens of width `out`; `placed`: with noisy places, states and pairs of the trunk."""
        a, p, pairs = self.atom, self.atom_pair, atoms * self.keys
        small = 3 * (layers.linear(pairs, p, p, False) + layers.act(pairs, p, "relu"))
        parts = [
            layers.linear(atoms, ATOMS, a, False),
            layers.linear(pairs, 5, p, False),
            2 * layers.linear(atoms, a, p, False),
            small,
            self._local(layers, atoms),
            layers.linear(atoms, a, out, False),
        ]
        if placed:
            parts += [
                layers.linear(atoms, 3, a, False),
                layers.norm(tokens, self.single) + layers.linear(tokens, self.single, a, False),
                layers.norm(tokens * tokens, self.pair) + layers.linear(tokens * tokens, self.pair, p, False),
            ]
        return join(*parts)

    def _atoms_out(self, layers: Layers, atoms: int, tokens: int) -> LayerBlock:
        """Tokens to moves of atoms."""
        return join(
            layers.linear(tokens, self.token, self.atom, False),
            self._local(layers, atoms),
            layers.norm(atoms, self.atom),
            layers.linear(atoms, self.atom, 3, False),
        )
