"""The order in which a network computes, and element-wise work fused as compilers fuse it.

Whoever records a network tells a `Flow` each operator with the buffers that it reads and writes. Products,
convolutions, attention, lookups and scans stay alone. Element-wise work, norms and reductions of rows join the kernel
that made what they read, as TorchInductor and XLA do, where no operator that waits for that kernel lies between.
`OneByOne` is the same without a compiler: every operator is a kernel.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import field, replace

from chipwise.values import dataclass
from chipwise.workload.op import UNJOINED, Op


@dataclass(frozen=True, slots=True)
class Touch:
    """Bytes of a buffer that an operator reads or writes; `weight`: it is a parameter."""

    buffer: Hashable
    bytes: float
    weight: bool = False


@dataclass(frozen=True, slots=True)
class Starts:
    """Kernels that a framework starts for work on elements, and bytes but of weights that they move (None: those that
    it reads and writes)."""

    kernels: float = 1.0
    moved: float | None = None


ONE = Starts()


@dataclass(slots=True)
class _Kernel:
    """One operator that stays alone, or element-wise work that is still being fused."""

    name: str
    level: int
    op: Op | None = None
    repeats: float = 1.0
    elements: float = 0.0
    flops: float = 0.0
    launches: float = 0.0
    apart: float = 0.0  # bytes but of weights that its calls move where each is a kernel
    # (kernel that wrote it, buffer) -> bytes read
    reads: dict[tuple[int, Hashable], Touch] = field(default_factory=dict)
    writes: dict[Hashable, float] = field(default_factory=dict)
    readers: dict[Hashable, set[int]] = field(default_factory=dict)
    last: int = 0


class Flow:
    """Operators in the order of a run."""

    def __init__(self) -> None:
        self._kernels: list[_Kernel] = []
        self._merged: list[int] = []  # the kernel that each was fused into, itself where it was not
        self._maker: dict[Hashable, int] = {}
        self._late: set[Hashable] = set()  # results of reductions that end a kernel
        self._clock = 0
        self._sources: dict[Hashable, Sequence[Touch]] = {}  # of what is made by work on elements
        self._waited: set[Hashable] = set()  # what an operator that stays alone reads
        self._again: set[Hashable] = set()  # what kernels after the first `_forward` compute again
        self._forward = 0

    def alone(self, op: Op, reads: Iterable[Touch], writes: Iterable[Touch], *, repeats: float = 1.0) -> None:
        """An operator that is a kernel of its own."""
        level, touched = 0, list(reads)
        for touch in touched:
            level = max(level, self._level(touch.buffer))
        number = self._new(_Kernel(op.name, level + 1, op, repeats))
        self._waited |= {t.buffer for t in touched}
        self._link(number, touched, writes)

    def fused(
        self,
        name: str,
        elements: float,
        reads: Iterable[Touch],
        writes: Iterable[Touch],
        *,
        flops: float = 1.0,
        way: str = "fused",
        starts: Starts = ONE,
    ) -> None:
        """Element-wise work on `elements` values, `flops` operations on each.

        `way`: "ends" where its result is complete only when the kernel ends (a reduction over more than rows), "alone"
        where it begins a kernel besides. `starts`: what a framework without a compiler starts for it.
        """
        touched = list(reads)
        level = max((self._level(t.buffer) for t in touched), default=0)
        number = None if way == "alone" else self._joined(touched, level, elements)
        if number is None:
            number = self._new(_Kernel(name, self._after(touched, level)))
        kernel = self._kernels[number]
        kernel.name = name
        kernel.elements = max(kernel.elements, elements)
        kernel.flops += flops * elements
        kernel.launches += starts.kernels
        written = list(writes)
        own = sum(t.bytes for t in (*touched, *written) if not t.weight)
        kernel.apart += own if starts.moved is None else starts.moved
        self._link(number, touched, written)
        for touch in written:
            self._sources[touch.buffer] = touched
            (self._late.discard if way == "fused" else self._late.add)(touch.buffer)

    def ops(self, kept: Iterable[Hashable] = ()) -> list[tuple[float, Op]]:
        """(repeats, operator) in order; `kept` buffers are results and are written."""
        final = {buffer: self._root(number) for buffer, number in self._maker.items()}
        live: dict[int, set[Hashable]] = {}
        for buffer in kept:
            live.setdefault(final.get(buffer, -1), set()).add(buffer)
        roots = [n for n in range(len(self._kernels)) if self._merged[n] == n]
        roots.sort(key=lambda n: self._kernels[n].last)
        found: list[tuple[float, Op]] = []
        for n in roots:
            k = self._kernels[n]
            if k.op is not None:
                found.append((k.repeats, k.op))
                continue
            weights, moved = self._moved(n, live.get(n, set()))
            if weights + moved:
                found.append((1.0, _pointwise(k, weights, moved)))
        return found

    def _moved(self, n: int, results: set[Hashable]) -> tuple[float, float]:
        """Bytes of weights that a kernel of work on elements reads, and of all else that it reads or writes."""
        k = self._kernels[n]
        reads = self._made_again(k.reads) if n >= self._forward else k.reads
        outside = [t for (maker, _), t in reads.items() if maker < 0 or self._root(maker) != n]
        moved = sum(t.bytes for t in outside if not t.weight)
        moved += sum(size for buffer, size in k.writes.items() if buffer in results or self._written(n, buffer))
        return sum(t.bytes for t in outside if t.weight), moved

    def _written(self, n: int, buffer: Hashable) -> bool:
        """Whether another kernel reads what a kernel made, and does not make it again."""
        readers = {self._root(r) for r in self._kernels[n].readers.get(buffer, ())} - {n}
        again = n < self._forward and buffer in self._again
        return any(not again or r < self._forward or self._kernels[r].op is not None for r in readers)

    def _made_again(self, reads: Mapping[tuple[int, Hashable], Touch]) -> dict[tuple[int, Hashable], Touch]:
        """What a kernel reads that computes again what was not kept: what that is made of."""
        found: dict[tuple[int, Hashable], Touch] = {}
        left, seen = list(reads.items()), set()
        while left:
            (maker, buffer), touch = left.pop()
            if buffer in self._again and maker < self._forward and buffer not in seen:
                seen.add(buffer)
                left += [((self._maker.get(t.buffer, -1), t.buffer), t) for t in self._sources[buffer]]
            elif (maker, buffer) not in found or found[maker, buffer].bytes < touch.bytes:
                found[maker, buffer] = touch
        return found

    def kept(self, alive: Mapping[Hashable, float]) -> dict[Hashable, float]:
        """At the end of a forward pass, of the buffers that are `alive` (bytes) what kernels that join both passes
        keep: not what work on elements makes again of the rest and nothing but such work reads; and what such work made
        of one narrower tensor, as a norm's copy in fp32, as that tensor. Compilers cut the graph of both passes so
        (PyTorch torch/_functorch/partitioners.py, min_cut_rematerialization_partition), fused kernels of gated
        activations and norms are written so."""
        made: dict[Hashable, bool] = {}

        def lacking(buffer: Hashable) -> list[Touch]:
            return [
                t
                for t in self._sources[buffer]
                if not (t.weight or t.buffer in alive or (t.buffer in self._sources and again(t.buffer)))
            ]

        def again(buffer: Hashable) -> bool:
            if buffer not in made:
                made[buffer] = False  # what is written over itself is not made again
                made[buffer] = not lacking(buffer)
            return made[buffer]

        found: dict[Hashable, float] = {}
        for buffer, size in alive.items():
            lacks = lacking(buffer) if buffer in self._sources and buffer not in self._waited else None
            if lacks is None or len(lacks) > 1 or (lacks and lacks[0].bytes >= size):
                found[buffer] = size
            elif lacks:
                found[lacks[0].buffer] = lacks[0].bytes
        self._forward, self._again = len(self._kernels), set(alive) - set(found)
        return found

    def _level(self, buffer: Hashable) -> int:
        if buffer not in self._maker:
            return 0
        return self._kernels[self._root(self._maker[buffer])].level + (buffer in self._late)

    def _after(self, touched: Sequence[Touch], level: int) -> int:
        """The level of a kernel that cannot join those of its own level: one more."""
        same = [self._kernels[n] for n in self._makers(touched)]
        return level + any(k.op is None and k.level == level for k in same)

    def _makers(self, touched: Sequence[Touch]) -> list[int]:
        found = {self._root(self._maker[t.buffer]) for t in touched if t.buffer in self._maker}
        return sorted(found, reverse=True)

    def _joined(self, touched: Sequence[Touch], level: int, elements: float) -> int | None:
        """The kernel of this level that made an operand over as many elements; several become one."""
        late = {self._root(self._maker[t.buffer]) for t in touched if t.buffer in self._late}
        open_ = [n for n in self._makers(touched) if n not in late and self._open(n, level)]
        near = [n for n in open_ if 2 * self._kernels[n].elements >= elements]
        fitting = sorted(near, key=lambda n: self._kernels[n].elements < elements)
        if not fitting:
            return None
        first = max(fitting, key=lambda n: self._kernels[n].elements) if self._forward else fitting[0]
        self._kernels[first].level = level
        self._merge([n for n in fitting if n != first], first)
        return first

    def _open(self, number: int, level: int) -> bool:
        """Whether work of a level may join a kernel of work on elements: one of that level of the same pass, or of a
        backward pass one that nothing waits for yet, which can start later."""
        k = self._kernels[number]
        return k.op is None and number >= self._forward and (k.level == level or self._unread(number))

    def _unread(self, number: int) -> bool:
        """Whether a kernel of a backward pass has made nothing yet that another reads."""
        return self._forward > 0 and not any(self._kernels[number].readers.values())

    def _merge(self, others: Iterable[int], into: int) -> None:
        """Makes kernels of as many elements one; in a backward pass others too that nothing waits for."""
        for other in others:
            same = self._kernels[other].elements == self._kernels[into].elements
            if same or self._unread(other):
                self._merge_one(other, into)

    def _merge_one(self, one: int, into: int) -> None:
        a, b = self._kernels[one], self._kernels[into]
        self._merged[one] = into
        for key, touch in a.reads.items():
            held = b.reads.get(key)
            b.reads[key] = touch if held is None or held.bytes < touch.bytes else held
        for buffer, size in a.writes.items():
            b.writes[buffer] = max(size, b.writes.get(buffer, 0.0))
        for buffer, readers in a.readers.items():
            b.readers.setdefault(buffer, set()).update(readers)
        b.flops += a.flops
        b.launches += a.launches
        b.apart += a.apart

    def _new(self, kernel: _Kernel) -> int:
        self._kernels.append(kernel)
        self._merged.append(len(self._merged))
        return len(self._merged) - 1

    def _link(self, number: int, reads: Iterable[Touch], writes: Iterable[Touch]) -> None:
        kernel = self._kernels[number]
        self._clock += 1
        kernel.last = self._clock
        for touch in reads:
            maker = self._root(self._maker[touch.buffer]) if touch.buffer in self._maker else -1
            if maker == number:
                continue
            held = kernel.reads.get((maker, touch.buffer))
            if held is None or held.bytes < touch.bytes:
                kernel.reads[maker, touch.buffer] = touch
            if maker >= 0:
                self._kernels[maker].readers.setdefault(touch.buffer, set()).add(number)
        for touch in writes:
            kernel.writes[touch.buffer] = max(touch.bytes, kernel.writes.get(touch.buffer, 0.0))
            self._maker[touch.buffer] = number

    def _root(self, number: int) -> int:
        while self._merged[number] != number:
            self._merged[number] = self._merged[self._merged[number]]
            number = self._merged[number]
        return number


class OneByOne:
    """Operators as a framework without a compiler calls them: each reads its operands and writes its results."""

    def __init__(self) -> None:
        self._ops: list[tuple[float, Op]] = []

    def alone(self, op: Op, reads: Iterable[Touch], writes: Iterable[Touch], *, repeats: float = 1.0) -> None:
        """As `Flow.alone`; the operator counts its own bytes."""
        self._ops.append((repeats, op))

    def fused(
        self,
        name: str,
        elements: float,
        reads: Iterable[Touch],
        writes: Iterable[Touch],
        *,
        flops: float = 1.0,
        way: str = "fused",
        starts: Starts = ONE,
    ) -> None:
        """As `Flow.fused`, and joins nothing."""
        touched = list(reads)
        weights = sum(t.bytes for t in touched if t.weight)
        moved = sum(t.bytes for t in touched if not t.weight) + sum(t.bytes for t in writes)
        kernel = _Kernel(name, 0, elements=elements, flops=flops * elements, launches=starts.kernels)
        self._ops.append((1.0, _pointwise(kernel, weights, moved)))

    def ops(self, kept: Iterable[Hashable] = ()) -> list[tuple[float, Op]]:
        """(repeats, operator) in the order of the calls."""
        return list(self._ops)


def _pointwise(k: _Kernel, weights: float, moved: float) -> Op:
    return Op(
        kind="pointwise",
        name=k.name,
        compute="vector",
        flops=k.flops,
        weight_bytes=weights,
        activation_bytes=moved,
        launches=k.launches,
        dims={"elements": k.elements, UNJOINED: max(k.apart / moved, 1.0) if moved else 1.0},
    )


def counted(ops: Iterable[tuple[float, Op]]) -> tuple[tuple[float, Op], ...]:
    """Equal operators once, with the sum of their repeats, in the order of their first."""
    repeats: dict[Hashable, float] = {}
    first: dict[Hashable, Op] = {}
    for times, op in ops:
        key = (
            op.kind, op.name, op.compute, op.weight, float(op.flops), float(op.weight_bytes),
            float(op.activation_bytes), float(op.kv_bytes), op.launches, _dims(op.dims),
        )  # fmt: skip
        repeats[key] = repeats.get(key, 0.0) + times
        first.setdefault(key, op)
    return tuple((times, replace(first[key], dims=dict(first[key].dims))) for key, times in repeats.items())


def _dims(dims: Mapping[str, object]) -> Hashable:
    return tuple((name, float(value)) for name, value in sorted(dims.items()))  # type: ignore[arg-type]
