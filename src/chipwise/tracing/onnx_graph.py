"""An ONNX graph as a `Program`: shapes inferred, weights by their sizes alone, so that external data may be missing.

Operators: onnx/onnx, docs/Operators.md (opset 22), and the contributed ones that exporters write.
"""

from __future__ import annotations

import math
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper, inliner, shape_inference

from chipwise.errors import UsageError, shorten
from chipwise.tracing.flow import Flow, Touch, counted
from chipwise.values import dataclass
from chipwise.workload.formats import FORMATS, Format
from chipwise.workload.op import Op, attention, convolution, gemm, lookup, scan
from chipwise.workload.program import Program, Stage

MOST_BYTES = 2**31  # the format's own limit of one file
MOST_NODES = 200_000
BATCH, LENGTH = 1, 128
"""What sizes are taken for that a graph leaves open: the first of an input, and others."""

TYPES: Mapping[int, tuple[str, float]] = {
    TensorProto.FLOAT: ("fp32", 32), TensorProto.DOUBLE: ("fp32", 64), TensorProto.FLOAT16: ("fp16", 16),
    TensorProto.BFLOAT16: ("bf16", 16), TensorProto.INT8: ("int8", 8), TensorProto.UINT8: ("int8", 8),
    TensorProto.INT32: ("fp32", 32), TensorProto.INT64: ("fp32", 64), TensorProto.BOOL: ("int8", 8),
    TensorProto.FLOAT8E4M3FN: ("fp8", 8), TensorProto.FLOAT8E5M2: ("fp8", 8), TensorProto.INT4: ("int4", 4),
    TensorProto.UINT4: ("int4", 4),
}  # fmt: skip
SIZES = (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL)
"""Types of constants that say sizes and places, which nobody trains."""
FREE = frozenset(
    "Constant Shape Reshape Squeeze Unsqueeze Flatten Identity Dropout Size ConstantOfShape Range NonZero".split()
)
"""Operators that move nothing to speak of."""
QUANTISED = frozenset(("QuantizeLinear", "DequantizeLinear"))
"""Runtimes fold them into the operators around them, which then read and write what is stored."""
MOST_DIMENSION = 2**32
MOST_DEPTH = 20  # of graphs within graphs


@dataclass(frozen=True, slots=True)
class _Value:
    """A tensor of the graph."""

    shape: tuple[int, ...]
    kind: int
    weight: bool = False

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def format(self) -> Format:
        name, bits = TYPES.get(self.kind, ("fp32", 32))
        return replace(FORMATS[name], bits=bits, scale_bits=0.0)

    @property
    def bytes(self) -> float:
        return self.size * self.format.bits / 8.0


def read_onnx(path: Path) -> Program:
    """The operators of a file.

    Raises `UsageError` for a file that is missing, damaged or too large, and for shapes that cannot be inferred.
    """
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):  # a pipe would be waited for
            raise UsageError(f"{path}: not a file", "expected an ONNX graph")
        if about.st_size > MOST_BYTES:
            raise UsageError(f"{path}: larger than {MOST_BYTES:,} bytes", "save its weights as external data")
        model = onnx.load(str(path), load_external_data=False)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read", error.strerror or "check the path") from None
    except UsageError:
        raise
    except Exception:  # what protobuf raises is private to its versions
        raise UsageError(f"{path}: not an ONNX file, or cut off", "is the download complete?") from None
    if not model.graph.node:
        raise UsageError(f"{path}: a graph without operators", "is it an ONNX file?")
    nodes = _calls(model)
    if nodes > MOST_NODES:
        hint = "export one layer or one step, or without unrolled loops"
        raise UsageError(f"{path}: {nodes:,.0f} operators are more than {MOST_NODES:,}", hint)
    imported = {opset.domain for opset in model.opset_import} | {"", "ai.onnx"}
    strange = next((n for n in model.graph.node if n.domain not in imported), None)
    if strange is not None:
        what = f"{path}: custom operator {strange.domain}::{strange.op_type} is of no operator set that it imports"
        raise UsageError(what, "export it with operators of ONNX")
    if model.functions:
        try:
            model = inliner.inline_local_functions(model)
        except Exception as error:  # what it raises is private to onnx
            said = shorten(" ".join(str(error).split()), 160)
            raise UsageError(f"{path}: its functions cannot be expanded: {said}", EXPORT) from None
    _sorted(path, model.graph)
    return _Graph(path, model).pipeline()


EXPORT = "check it with onnx.checker.check_model, and export it again"


def _calls(model: Any) -> float:
    """Operators of a graph once its functions are written out; infinitely many where they call each other in a
    circle."""
    own = {(f.domain, f.name): f for f in model.functions}
    sizes: dict[tuple[str, str], float] = {}

    def size(nodes: Any, within: frozenset[tuple[str, str]]) -> float:
        total = 0.0
        for node in nodes:
            key = (node.domain, node.op_type)
            if key in within or len(within) > MOST_DEPTH:
                return math.inf
            if key in own and key not in sizes:
                sizes[key] = size(own[key].node, within | {key})
            total += sizes.get(key, 1.0)
        return total

    return size(model.graph.node, frozenset())


def _sorted(path: Path, graph: Any) -> None:
    """Raise `UsageError` where an operator reads what none before it has written, or two write one value: such a graph
    has a circle, or is damaged."""
    known = {"", *(i.name for i in graph.input), *(t.name for t in graph.initializer)}
    known |= {t.values.name for t in graph.sparse_initializer}
    for node in graph.node:
        absent = next((name for name in node.input if name not in known), None)
        if absent is not None:
            what = f"{path}: {node.op_type} reads '{shorten(absent, 60)}', which nothing before it writes"
            raise UsageError(what, EXPORT)
        for name in node.output:
            if name and name in known:
                raise UsageError(f"{path}: '{shorten(name, 60)}' is written twice", EXPORT)
            known.add(name)


class _Graph:
    def __init__(self, path: Path, model: Any) -> None:
        self.path = path
        self.opsets = list(model.opset_import)
        self.notes: dict[str, None] = {}
        self.weights = {t.name: _Value(tuple(t.dims), t.data_type, weight=True) for t in model.graph.initializer}
        outside = sum(t.data_location == TensorProto.EXTERNAL for t in model.graph.initializer)
        if outside:
            self.notes[f"{outside:,} weights are external data: their shapes are read, not their values"] = None
        inputs = [i for i in model.graph.input if i.name not in self.weights]
        self.batch = self._fixed(inputs)
        self._slimmed(model.graph)
        nodes = list(model.graph.node)
        try:
            del model.graph.node[:]
            model.graph.node.extend(_stand_in(node) for node in nodes)
            model = shape_inference.infer_shapes(model, data_prop=True)
        except Exception as error:  # what it raises is private to onnx
            raise UsageError(
                f"{path}: shapes cannot be inferred: {shorten(' '.join(str(error).split()), 160)}",
                "is the graph whole?",
            ) from None
        self.graph = model.graph
        self.nodes = nodes
        self.values: dict[str, _Value] = {**_values(self.graph), **self.weights}
        self.counts = {
            t.name: int(onnx.numpy_helper.to_array(t).item())
            for t in self.graph.initializer
            if t.data_type in SIZES and math.prod(t.dims) == 1 and t.data_location != TensorProto.EXTERNAL
        }

    def _fixed(self, inputs: Iterable[Any]) -> int:
        """Sizes that are left open as numbers; the batch. Raises `UsageError` for one that no tensor has."""
        named: dict[str, int] = {}
        batch = 0
        for info in inputs:
            for place, dim in enumerate(info.type.tensor_type.shape.dim):
                if dim.dim_value > MOST_DIMENSION:
                    what = f"{self.path}: input '{shorten(info.name, 60)}' has a size of {dim.dim_value:,}"
                    raise UsageError(what, f"at most {MOST_DIMENSION:,}")
                if dim.dim_value <= 0:  # exporters write -1 and 0 for sizes that are open
                    usual = BATCH if place == 0 else LENGTH
                    size = named.setdefault(dim.dim_param or f"{info.name}[{place}]", usual)
                    dim.dim_value = size
                if place == 0:
                    batch = batch or dim.dim_value
        if named:
            said = ", ".join(f"{name} = {size}" for name, size in named.items())
            self.notes[f"open sizes are taken as {said}: export with fixed sizes for others"] = None
        return batch or 1

    def _slimmed(self, graph: Any) -> None:
        """Weights without their data, of which inference would make copies; short ones say shapes and stay."""
        for tensor in graph.initializer:
            if math.prod(tensor.dims) > 1024:
                for name in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
                    tensor.ClearField(name)
                kept = graph.input.add()
                kept.CopyFrom(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
        small = [t for t in graph.initializer if math.prod(t.dims) <= 1024]
        del graph.initializer[:]
        graph.initializer.extend(small)

    def pipeline(self) -> Program:
        flow = Flow()
        unknown: dict[str, str] = {}
        for node in self.nodes:
            if node.op_type in FREE:
                self._pass(node)
                continue
            if node.op_type in QUANTISED:
                self._pass(node, node.op_type == "DequantizeLinear")
                continue
            if any(a.type == onnx.AttributeProto.GRAPH for a in node.attribute):
                reads = [Touch(n, v.bytes, v.weight) for n in node.input if (v := self.values.get(n))]
                writes = [Touch(n, v.bytes) for n in node.output if (v := self.values.get(n))]
                for times, op in self._within(node, self.values):
                    flow.alone(op, reads, writes, repeats=times)
                continue
            outputs = [self.values.get(name) for name in node.output if name]
            inputs = [self.values.get(name) for name in node.input]
            if (
                not outputs
                or outputs[0] is None
                or any(v is None for n, v in zip(node.input, inputs, strict=True) if n)
            ):
                if node.op_type in HEAVY or node.domain not in ("", "ai.onnx"):
                    unknown.setdefault(node.op_type, node.name or node.output[0])
                continue
            self._add(flow, node, inputs, outputs)
        if unknown:
            kind, name = next(iter(unknown.items()))
            raise UsageError(
                f"{self.path}: the shapes of {kind} '{shorten(name, 60)}' are not known",
                "export with fixed sizes, or run onnxsim or onnxruntime's symbolic_shape_infer first",
            )
        kept = [o.name for o in self.graph.output]
        stage = Stage(
            self.graph.name or self.path.stem,
            counted(flow.ops(kept)),
            parameters=sum(v.size for v in self.weights.values() if v.kind not in SIZES),
            weight_bytes=sum(v.bytes for v in self.weights.values()),
            activation_bytes=self._peak(kept),
        )
        title = shorten(self.path.stem, 120)
        said = ("element-wise work is joined where the software compiles, else every call is a kernel", *self.notes)
        return Program(title, (stage,), batch=self.batch, assumptions=said)

    def _pass(self, node: Any, dequantised: bool = False) -> None:
        """A view of a weight stays a weight, and what is dequantised on the way stays what is stored."""
        first = self.values.get(node.input[0]) if node.input else None
        if first is None or not node.output or node.output[0] not in self.values:
            return
        found = self.values[node.output[0]]
        if first.weight or dequantised:
            kind = first.kind if dequantised else found.kind
            self.values[node.output[0]] = replace(found, weight=first.weight, kind=kind)

    def _within(self, node: Any, outer: Mapping[str, _Value], depth: int = 0) -> Iterator[tuple[float, Op]]:
        """Operators of the graphs in an If (of its branches that with more operations), a Loop or a Scan, as often as
        they run; said where that is not known."""
        graphs = [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
        times, what = (1.0, f"{node.op_type} '{shorten(node.name or (node.output[0] if node.output else ''), 40)}'")
        first = outer.get(node.input[0]) if node.input else None
        if node.op_type == "Loop":
            count = self.counts.get(node.input[0]) if node.input else None
            times = float(count) if count is not None else 1.0
            if count is None:
                self.notes[f"{what}: how often it runs depends on the data, counted once"] = None
        elif node.op_type == "Scan":
            scans = next((a.i for a in node.attribute if a.name == "num_scan_inputs"), 1)
            read = outer.get(node.input[len(node.input) - scans]) if 0 < scans <= len(node.input) else first
            times = float(read.shape[0]) if read is not None and read.shape else 1.0
        elif len(graphs) > 1:
            self.notes[f"{what}: the branch with more operations is counted"] = None
        if depth >= MOST_DEPTH:
            raise UsageError(f"{self.path}: graphs within graphs, more than {MOST_DEPTH} deep", EXPORT)
        best: list[tuple[float, Op]] = []
        for graph in graphs:
            found = [(times * n, op) for n, op in self._of_body(graph, outer, depth)]
            if not best or _flops(found) > _flops(best):
                best = found
        yield from best

    def _inferred(self, graph: Any, outer: Mapping[str, _Value]) -> Any:
        """An inner graph with the shapes of its values, those of the outer one given."""
        alone = onnx.GraphProto()
        alone.CopyFrom(graph)
        own = {*(i.name for i in graph.input), *(t.name for t in graph.initializer)}
        read = {name for node in graph.node for name in node.input} - own
        for name in sorted(read & outer.keys()):
            value = outer[name]
            alone.input.append(helper.make_tensor_value_info(name, value.kind, list(value.shape)))
        del alone.node[:]
        alone.node.extend(_stand_in(node) for node in graph.node)
        try:
            return shape_inference.infer_shapes(helper.make_model(alone, opset_imports=self.opsets)).graph
        except Exception:  # what it raises is private to onnx; what stays unknown is named where it matters
            return graph

    def _of_body(self, graph: Any, outer: Mapping[str, _Value], depth: int) -> Iterator[tuple[float, Op]]:
        values = {**outer, **_values(self._inferred(graph, outer))}
        for node in graph.node:
            inputs, outputs = [values.get(n) for n in node.input], [values.get(n) for n in node.output]
            if any(a.type == onnx.AttributeProto.GRAPH for a in node.attribute):
                yield from self._within(node, values, depth + 1)
                continue
            rule = RULES.get(node.op_type)
            if rule is None or node.op_type in FREE:
                continue
            if (
                not outputs
                or outputs[0] is None
                or any(v is None for n, v in zip(node.input, inputs, strict=True) if n)
            ):
                what = f"{self.path}: the shapes of {node.op_type} in an inner graph are not known"
                raise UsageError(what, "run onnxsim or onnxruntime's symbolic_shape_infer first")
            given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            name = shorten(node.name or node.op_type, 60)
            yield 1.0, replace(rule(inputs, outputs, given), name=name)

    def _add(self, flow: Flow, node: Any, inputs: list[Any], outputs: list[Any]) -> None:
        given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        reads = [Touch(n, v.bytes, v.weight) for n, v in zip(node.input, inputs, strict=True) if v is not None]
        writes = [
            Touch(n, v.bytes) for n, v in zip([o for o in node.output if o], outputs, strict=False) if v is not None
        ]
        name = shorten(node.name or node.op_type, 60)
        rule = RULES.get(node.op_type)
        if rule is not None:
            flow.alone(replace(rule(inputs, outputs, given), name=name), reads, writes)
            return
        if node.domain not in ("", "ai.onnx", "com.microsoft"):
            self.notes[f"custom operator {node.domain}::{node.op_type}: counted by the bytes that it moves"] = None
        elements = float(max(v.size for v in (*inputs, *outputs) if v is not None))
        way = "alone" if node.op_type in APART else "fused"
        flow.fused(name, elements, reads, writes, flops=COSTLY.get(node.op_type, 1.0), way=way)

    def _peak(self, kept: list[str]) -> float:
        """Most bytes alive at a time in the order of the graph, results kept to the end."""
        last: dict[str, int] = dict.fromkeys(kept, len(self.nodes))
        for place, node in enumerate(self.nodes):
            for name in node.input:
                last.setdefault(name, place)
                last[name] = max(last[name], place)
        ends: dict[int, list[str]] = {}
        for name, place in last.items():
            ends.setdefault(place, []).append(name)
        alive: dict[str, float] = {}
        total = 0.0
        for info in self.graph.input:
            if info.name not in self.weights and info.name in self.values and info.name in last:
                alive[info.name] = self.values[info.name].bytes
                total += alive[info.name]
        most = total
        for place, node in enumerate(self.nodes):
            for name in node.output if node.op_type not in FREE else ():
                value = self.values.get(name)
                if value is not None and not value.weight and name in last:
                    alive[name] = value.bytes
                    total += value.bytes
            most = max(most, total)
            for name in ends.get(place, ()):
                total -= alive.pop(name, 0.0)
        return most


def _values(graph: Any) -> dict[str, _Value]:
    """The tensors of a graph whose shapes are known, its own weights included."""
    found: dict[str, _Value] = {t.name: _Value(tuple(t.dims), t.data_type, weight=True) for t in graph.initializer}
    for info in (*graph.input, *graph.value_info, *graph.output):
        tensor = info.type.tensor_type
        sizes = [d.dim_value for d in tensor.shape.dim]
        if tensor.HasField("shape") and all(s > 0 for s in sizes):
            found.setdefault(info.name, _Value(tuple(sizes), tensor.elem_type))
    return found


def _flops(ops: Iterable[tuple[float, Op]]) -> float:
    return sum(n * float(op.flops) for n, op in ops)


def _stand_in(node: Any) -> Any:
    """An operator of ONNX whose first result has the shape of a contributed one's (microsoft/onnxruntime,
    docs/ContribOperators.md), of which inference knows nothing; any other as it is."""
    if node.domain != "com.microsoft" or not node.input or not node.output:
        return node
    first = 1 if node.op_type == "EmbedLayerNormalization" else 0
    if node.op_type in LIKE_FIRST:
        return helper.make_node("Identity", [node.input[first]], [node.output[0]], node.name)
    return node


Rule = Callable[[list[Any], list[Any], Mapping[str, Any]], Op]


def _matmul(inputs: list[Any], outputs: list[Any], given: Mapping[str, Any]) -> Op:
    a, b, y = inputs[0], inputs[1], outputs[0]
    k = a.shape[-1] if not given.get("transA") else a.shape[-2]
    n = y.shape[-1] if len(b.shape) > 1 else 1
    shared = math.prod(b.shape) == k * n  # one matrix for all rows
    batch = 1 if shared else math.prod(y.shape[:-2])
    return _product(a, b, y, y.size / (n * batch), n, k, batch)


def _product(a: Any, b: Any, y: Any, m: float, n: float, k: float, batch: float = 1) -> Op:
    op = gemm(m, n, k, b.format, a.format, batch=batch)
    moved = a.bytes + y.bytes
    if b.weight:
        return replace(op, weight_bytes=b.bytes, activation_bytes=moved)
    return replace(op, weight="", weight_bytes=0.0, activation_bytes=moved + b.bytes)


def _quantised(inputs: list[Any], outputs: list[Any], given: Mapping[str, Any]) -> Op:
    """MatMulNBits: weights of `bits` in blocks, activations of 16 or 32 bits."""
    a, b, y = inputs[0], inputs[1], outputs[0]
    n, k = int(given["N"]), int(given["K"])
    op = gemm(y.size / n, n, k, FORMATS["int4"], a.format)
    return replace(
        op, weight_bytes=sum(v.bytes for v in (b, *inputs[2:]) if v is not None), activation_bytes=a.bytes + y.bytes
    )


def _conv(inputs: list[Any], outputs: list[Any], given: Mapping[str, Any]) -> Op:
    quantised = len(inputs) >= 8  # QLinearConv: x, scale, zero, w, ...
    x, w, y = inputs[0], inputs[3 if quantised else 1], outputs[0]
    op = convolution(
        x.shape[0], x.shape[1], y.shape[1], math.prod(x.shape[2:]), math.prod(y.shape[2:]), math.prod(w.shape[2:]),
        w.format, x.format, groups=int(given.get("group", 1)),
    )  # fmt: skip
    return replace(op, weight_bytes=w.bytes, activation_bytes=x.bytes + y.bytes)


def _transposed(inputs: list[Any], outputs: list[Any], given: Mapping[str, Any]) -> Op:
    x, w, y = inputs[0], inputs[1], outputs[0]
    ins, outs = math.prod(x.shape[2:]), math.prod(y.shape[2:])
    op = convolution(
        x.shape[0], x.shape[1], y.shape[1], ins, outs, math.prod(w.shape[2:]) * ins / outs, w.format, x.format,
        groups=int(given.get("group", 1)),
    )  # fmt: skip
    return replace(op, weight_bytes=w.bytes, activation_bytes=x.bytes + y.bytes)


def _gathered(inputs: list[Any], outputs: list[Any], given: Mapping[str, Any]) -> Op:
    y = outputs[0]
    width = y.shape[-1] if y.shape else 1
    op = lookup(y.size / max(width, 1), width, inputs[0].format)
    weights = y.bytes if inputs[0].weight else 0.0
    return replace(
        op, weight=op.weight if weights else "", weight_bytes=weights, activation_bytes=2 * y.bytes - weights
    )


def _recurrent(inputs: list[Any], outputs: list[Any], given: Mapping[str, Any]) -> Op:
    """LSTM, GRU, RNN: products with both matrices at every step, one step after the other."""
    x, w, r = inputs[:3]
    steps, batch = x.shape[0], x.shape[1]
    flops = 2.0 * (w.size + r.size)
    op = scan(batch, steps, 1.0, flops, 0.0, x.shape[2] + r.shape[2])
    moved = sum(v.bytes for v in (x, *outputs) if v is not None)
    return replace(
        op, compute=x.format.compute, weight=w.format.name, weight_bytes=w.bytes + r.bytes, activation_bytes=moved
    )


def _attention(inputs: list[Any], outputs: list[Any], given: Mapping[str, Any]) -> Op:
    """Attention of opset 23: queries, keys, values of [batch, heads, length, size] or [batch, length, heads x size]."""
    q, k, v = inputs[:3]
    if len(q.shape) == 3:
        heads, kv_heads = int(given["q_num_heads"]), int(given["kv_num_heads"])
        lengths, sizes = (q.shape[1], k.shape[1]), (q.shape[2] // heads, v.shape[2] // kv_heads)
    else:
        heads, kv_heads = q.shape[1], k.shape[1]
        lengths, sizes = (q.shape[2], k.shape[2]), (q.shape[3], v.shape[3])
    causal = bool(given.get("is_causal"))
    op = attention(q.shape[0], *lengths, heads, kv_heads, sizes[0], q.format, causal=causal, value_dim=sizes[1])
    return replace(
        op, compute=q.format.compute, activation_bytes=q.bytes + outputs[0].bytes, kv_bytes=k.bytes + v.bytes
    )


def _grouped(inputs: list[Any], outputs: list[Any], given: Mapping[str, Any]) -> Op:
    """GroupQueryAttention and MultiHeadAttention of ONNX Runtime: [batch, length, heads x size]; the first may read
    queries, keys and values as one, and is causal."""
    q, k = inputs[0], inputs[1] if len(inputs) > 1 else None
    heads = int(given["num_heads"])
    kv_heads = int(given.get("kv_num_heads", heads))
    b, length = q.shape[0], q.shape[1]
    if k is None:  # packed
        size = q.shape[-1] // (heads + 2 * kv_heads) if "kv_num_heads" in given else q.shape[-1] // (3 * heads)
        seen = length
    else:
        size, seen = q.shape[-1] // heads, k.shape[1] if len(k.shape) == 3 else k.shape[2]
    past = next((v for v in inputs[3:5] if v is not None and len(v.shape) == 4), None)
    if past is not None and "kv_num_heads" in given:
        seen += past.shape[2]
    causal = "kv_num_heads" in given or bool(given.get("unidirectional"))
    op = attention(b, length, seen, heads, kv_heads, size, q.format, causal=causal)
    return replace(op, compute=q.format.compute)


def _einsum(inputs: list[Any], outputs: list[Any], given: Mapping[str, Any]) -> Op:
    """A product over the letters that the result does not have; those of all three are its batch."""
    said = given.get("equation", b"")
    text = (said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)).replace(" ", "")
    terms = text.partition("->")[0].split(",")
    known = len(inputs) == 2 and "." not in text and "->" in text
    if not known or any(len(t) != len(v.shape) for t, v in zip(terms, inputs, strict=False)):
        big = max((*inputs, *outputs), key=lambda v: v.size)
        return _product(inputs[0], inputs[-1], outputs[0], big.size, 1, 1)
    sizes = {c: n for t, v in zip(terms, inputs, strict=True) for c, n in zip(t, v.shape, strict=True)}
    out, one, two = map(set, (text.partition("->")[2], *terms))
    a, b, y = inputs[0], inputs[1], outputs[0]
    shared, kept = one & two & out, (one - two) & out
    m, n, k, batch = (
        math.prod(sizes[c] for c in letters) for letters in (kept, (two - one) & out, sizes.keys() - out, shared)
    )
    return _product(a, b, y, m, n, k, batch)


def _fourier(inputs: list[Any], outputs: list[Any], given: Mapping[str, Any]) -> Op:
    """5 n log2 n operations per transform of n (Cooley and Tukey)."""
    x, y = inputs[0], outputs[0]
    n = max(x.shape[1:-1], default=1)
    op = scan(x.size / max(n, 1), n, 1.0, 5.0 * math.log2(max(n, 2)), 0.0, 2.0)
    return replace(op, activation_bytes=x.bytes + y.bytes)


def _scan(inputs: list[Any], outputs: list[Any], given: Mapping[str, Any]) -> Op:
    y = outputs[0]
    length = y.shape[-1] if y.shape else 1
    return replace(scan(y.size / length, length, 1.0, 1.0, 0.0, 2.0), activation_bytes=2 * y.bytes)


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("MatMul", "Gemm", "MatMulInteger", "FusedMatMul"), _matmul),
    "QLinearMatMul": lambda i, o, g: _matmul([i[0], i[3]], o, g),
    "MatMulNBits": _quantised,
    **dict.fromkeys(("Conv", "ConvInteger", "QLinearConv", "FusedConv"), _conv),
    "ConvTranspose": _transposed,
    **dict.fromkeys(("Gather", "GatherElements", "GatherND", "ScatterND", "ScatterElements", "Scatter"), _gathered),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    "Attention": _attention,
    **dict.fromkeys(("GroupQueryAttention", "MultiHeadAttention"), _grouped),
    "Einsum": _einsum,
    "DFT": _fourier,
    "CumSum": _scan,
}
HEAVY = frozenset(RULES)
LIKE_FIRST = frozenset(
    "GroupQueryAttention MultiHeadAttention SkipLayerNormalization SkipSimplifiedLayerNormalization FastGelu BiasGelu "
    "QuickGelu Gelu RotaryEmbedding GemmaRotaryEmbedding SimplifiedLayerNormalization LayerNormalization MoE QMoE "
    "GroupNorm SkipGroupNorm DecoderMaskedMultiHeadAttention".split()
)
"""Contributed operators whose first result has the shape of their first operand."""
APART = frozenset(
    "TopK Sort Unique Resize Upsample MaxPool AveragePool GlobalAveragePool GlobalMaxPool NonMaxSuppression RoiAlign "
    "GridSample InstanceNormalization GroupNormalization".split()
)
COSTLY: Mapping[str, float] = {
    **dict.fromkeys("Exp Log Tanh Sigmoid Softmax LogSoftmax Erf Gelu Sin Cos Sqrt Pow Softplus Mish".split(), 4.0),
    **dict.fromkeys(
        "LayerNormalization RMSNormalization SimplifiedLayerNormalization SkipLayerNormalization".split(), 6.0
    ),
    **dict.fromkeys("InstanceNormalization GroupNormalization BatchNormalization".split(), 4.0),
}
