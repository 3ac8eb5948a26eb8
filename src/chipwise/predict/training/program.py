"""A step of any program, written out for one size, as the equations of training take it: its operators priced as those
of the mean layer are, and the sizes that the equations read.

A layer is one attention core with what surrounds it. Work on elements is what software makes of it: passes over what
layers keep (`saved`), not the kernels of whoever wrote the network.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from chipwise.cost.price import price
from chipwise.parallel.layout import Spread
from chipwise.parallel.memory import MemoryAccount
from chipwise.parallel.shard import cut
from chipwise.predict.training.memory import MemoryRates, state_bytes, used
from chipwise.predict.training.operators import BLOCK_KERNELS, TrainKernels, TrainWork, orthogonal_s, pass_s
from chipwise.predict.training.values import Recipe, TrainSpread, Transformer
from chipwise.values import dataclass
from chipwise.workload.backward import AGAIN, LOGITS, OPTIMIZER, PARTS, SAVED
from chipwise.workload.op import Op
from chipwise.workload.program import Counted, Program

MASK_BYTES = 2.0
"""bytes per entry of the stream: of two masks a layer, of dropout. Exact: a byte each."""
LOSS_BYTES, NORM_BYTES = 8.0, 6.0
"""bytes per logit, per entry of the last norm: of one pass over them. Exact: those of the mean layer's head."""


@dataclass(frozen=True)
class StepProgram:
    """A training step of a network on `copies` devices that share its batch.

    `layer` has the sizes that the equations read, `products`, `cores` and `head` the operators of one part of the batch
    on one device; `tokens` of it; `saved` bytes that its layers keep, without masks; `logits` of it.
    """

    layer: Transformer
    spread: TrainSpread
    products: tuple[Counted, ...]
    cores: tuple[Counted, ...]
    head: tuple[Counted, ...]
    saved: float
    logits: float

    @classmethod
    def of(cls, p: Program, copies: int, zero: int) -> StepProgram | None:
        """Of a pipeline that is a training step; None where no attention says what its layers are."""
        ops = [(n, op) for stage in p.stages for n, op in stage.ops if op.name != OPTIMIZER]
        cores = [(n, op) for n, op in ops if op.kind == "attention"]
        if not p.trained or SAVED not in p.settings or not cores:
            return None
        parts = p.settings.get(PARTS, 1.0)
        layers = sum(n for n, _ in cores) / parts / (1.0 + AGAIN["attention"])
        d = max(cores, key=lambda core: core[0] * float(core[1].flops))[1].dims
        logits = p.settings.get(LOGITS, 0.0)
        head = _head(ops, logits)
        top = head[0][1].dims if head else {}
        hidden = float(top.get("k", d["heads"] * d["head_dim"]))
        vocab = float(top.get("n", 0.0))
        layer = Transformer(
            layers=layers,
            hidden=hidden,
            vocab=vocab,
            mixer_in=(p.parameters - vocab * hidden) / layers / hidden,
            mixer_out=0.0,
            core_width=float(d["heads"] * d["head_dim"]),
            heads=float(d["heads"]),
            head_dim=float(d["head_dim"]),
            kv_width=2.0 * float(d["kv_heads"] * d["head_dim"]),
            dense_share=0.0,
            tied=1.0,
        )
        spread = TrainSpread(
            dp=float(copies),
            micro_batch=p.batch / parts / copies,
            global_batch=float(p.batch),
            seq=float(d["batch"] * d["q"]) * parts / p.batch,
            zero=float(zero),
            shard=float(copies),
        )
        own = Spread(dp=copies)

        def each(several: Iterable[Counted]) -> tuple[Counted, ...]:
            return tuple((n / parts, cut(op, own)) for n, op in several)

        return cls(
            layer, spread, each(_but(ops, head)), each(cores), each(head), p.settings[SAVED] / copies, logits / copies
        )

    @property
    def _stream(self) -> float:
        """Entries of the stream that layers add to, of all layers."""
        return float(self.spread.tokens * self.layer.hidden * self.layer.layers)

    def work(self, recipe: Recipe, k: TrainKernels) -> TrainWork:
        """Its operators, priced; forward and backward together."""
        layers = float(self.layer.layers)
        one = pass_s((self.saved + MASK_BYTES * self._stream) / layers, k)
        loss = LOSS_BYTES * self.logits + NORM_BYTES * self.spread.tokens * self.layer.hidden
        return TrainWork(
            forward_s=_seconds(self.products, k) / layers,
            input_s=0.0,
            weight_s=0.0,
            routed_s=0.0,
            routed_back_s=0.0,
            core_s=_seconds(self.cores, k) / layers,
            core_back_s=0.0,
            pass_s=one + (BLOCK_KERNELS - 1.0) * pass_s(0.0, k),
            head_s=_seconds(self.head, k),
            loss_s=pass_s(loss, k) if self.logits else 0.0,
            update_s=orthogonal_s(self.layer, recipe, k),
        )

    def memory(self, recipe: Recipe, r: MemoryRates) -> MemoryAccount:
        """Bytes of one device under the policies of software."""
        state = state_bytes(self.layer, self.spread, recipe)
        saved = self.saved + MASK_BYTES * recipe.masks * self._stream
        return used(self.spread, state, saved, recipe.loss * self.logits, r)


def _head(ops: Sequence[Counted], logits: float) -> list[Counted]:
    """The products of the head, the one that writes `logits` first, and its gradients, which have the same sides."""
    top = next((op for _, op in ops if op.kind == "gemm" and _entries(op) == logits), None)
    if top is None:
        return []
    sides = sorted(float(top.dims[name]) for name in "mnk")
    found = [(n, op) for n, op in ops if op.kind == "gemm"]
    return [(n, op) for n, op in found if sorted(float(op.dims[x]) for x in "mnk") == sides]


def _but(ops: Sequence[Counted], head: Sequence[Counted]) -> list[Counted]:
    """The products of all but the head."""
    found = {id(op) for _, op in head}
    return [(n, op) for n, op in ops if op.kind in ("gemm", "conv") and id(op) not in found]


def _entries(op: Op) -> float:
    return float(op.dims["batch"] * op.dims["m"] * op.dims["n"])


def _seconds(ops: tuple[Counted, ...], k: TrainKernels) -> float:
    """Seconds of operators one after the other."""
    return sum(n * float(np.asarray(price(op, k.device, k.numbers).total_s)) for n, op in ops)
