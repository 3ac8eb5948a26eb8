"""What people have instead of a name: files of weights, diffusers folders, ONNX, and what is refused."""

from __future__ import annotations

import json
import os
import pickle
import random
import struct
import sys
import time
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from chipwise.api.requests.doors import read_request
from chipwise.catalog.configs import find_config
from chipwise.catalog.snapshot import Snapshot, use
from chipwise.errors import ChipwiseError, MissingExtraError, UnknownNameError, UsageError
from chipwise.tracing.sources import by_class, pipeline_of
from command_line import Run

SIZES = {"F32": 4, "BF16": 2, "F8_E4M3": 1}


def weights(path: Path, tensors: dict[str, list[int]], dtype: str = "BF16") -> Path:
    """The header of a safetensors file, without the weights behind it."""
    table: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, shape in tensors.items():
        size = SIZES[dtype]
        for n in shape:
            size *= n
        table[name] = {"dtype": dtype, "shape": shape, "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(table).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    return path


UNET = {
    "conv_in.weight": [320, 4, 3, 3], "down.0.attn1.to_q.weight": [320, 320],
    "down.0.ff.net.0.proj.weight": [2560, 320],
    "down.0.norm1.weight": [320], "time_embedding.linear_1.weight": [1280, 320],
}  # fmt: skip
ENTRIES = 320 * 36 + 320 * 320 + 2560 * 320 + 320 + 1280 * 320


def test_headers_alone_give_parameters_and_bytes_by_class(tmp_path: Path) -> None:
    found = pipeline_of(str(weights(tmp_path / "unet.safetensors", UNET)))
    assert found is not None
    assert (found.parameters, found.weight_bytes) == (ENTRIES, 2.0 * ENTRIES)
    assert found.settings["convolution_bytes"] == 2 * 320 * 36
    assert found.settings["ffn_bytes"] == 2 * 2560 * 320
    assert found.settings["attention_bytes"] == 2 * 320 * 320
    assert sum(found.settings.values()) == found.weight_bytes
    assert any("speed" in line for line in found.assumptions)


def test_names_of_tensors_tell_their_class() -> None:
    from chipwise.catalog.headers import StoredTensor

    names = {
        "model.embed_tokens.weight": "embedding", "lm_head.weight": "head", "model.layers.0.mlp.gate.weight": "router",
        "model.layers.0.mlp.experts.3.up_proj.weight": "expert", "model.layers.0.self_attn.q_proj.weight": "attention",
        "model.layers.0.mlp.gate_proj.weight": "ffn", "model.layers.0.input_layernorm.weight": "norm",
        "encoder.block.0.layer.1.DenseReluDense.wi.weight": "ffn",
        "transformer_blocks.0.attn.add_q_proj.weight": "attention",
        "bn1.running_mean": "norm", "h.0.ln_1.bias": "norm", "blob": "other",
    }  # fmt: skip
    for name, cls in names.items():
        assert list(by_class({name: StoredTensor("F32", (4, 4), 64)})) == [cls], name


def test_shards_add_up_and_variants_do_not(tmp_path: Path) -> None:
    for n in (1, 2):
        weights(tmp_path / f"model-0000{n}-of-00002.safetensors", {f"blocks.{n}.weight": [8, 8]})
    weights(tmp_path / "model.fp16.safetensors", {"blocks.1.weight": [8, 8]})
    whole = pipeline_of(str(tmp_path))
    assert whole is not None
    assert whole.parameters == 128
    index = tmp_path / "model.safetensors.index.json"
    names = {f"blocks.{n}.weight": f"model-0000{n}-of-00002.safetensors" for n in (1, 2)}
    index.write_text(json.dumps({"weight_map": names}))
    indexed = pipeline_of(str(index))
    assert indexed is not None
    assert indexed.parameters == 128
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(UsageError, match="1 of 2 files are missing"):
        pipeline_of(str(index))
    index.write_text(json.dumps({"weight_map": {"a": "../../etc/passwd"}}))
    with pytest.raises(UsageError, match="no index of safetensors files in its folder"):
        pipeline_of(str(index))


def diffusers(folder: Path) -> Path:
    """A folder of a pipeline whose classes nobody knows."""
    parts = {"transformer": "NewTransformer", "vae": "NewVae", "text_encoder": "NewText"}
    index: dict[str, Any] = {
        "_class_name": "NewPipeline",
        "scheduler": ["diffusers", "Euler"],
        "safety_checker": [None, None],
    }
    for part, cls in parts.items():
        weights(folder / part / "diffusion_pytorch_model.safetensors", UNET)
        (folder / part / "config.json").write_text(json.dumps({"_class_name": cls}))
        index[part] = ["diffusers", cls]
    index["../elsewhere"] = ["diffusers", "Evil"]
    (folder / "model_index.json").write_text(json.dumps(index))
    return folder


def test_a_diffusers_folder_is_its_parts(tmp_path: Path) -> None:
    folder = diffusers(tmp_path / "pipeline")
    for text in (str(folder), str(folder / "model_index.json")):
        found = pipeline_of(text)
        assert found is not None
        assert {s.name for s in found.stages} == {"transformer", "vae", "text_encoder"}
        assert found.parameters == 3 * ENTRIES
    part = pipeline_of(str(folder / "vae"))
    assert part is not None
    assert part.parameters == ENTRIES


def test_parts_without_weights_say_what_to_do(tmp_path: Path) -> None:
    folder = diffusers(tmp_path / "pipeline")
    for file in folder.glob("*/*.safetensors"):
        file.unlink()
    with pytest.raises(ChipwiseError, match="New"):
        pipeline_of(str(folder))
    with pytest.raises(ChipwiseError, match="NewVae"):
        pipeline_of('{"_class_name": "NewVae"}')
    (folder / "model_index.json").write_text('{"_class_name": "X"}')
    with pytest.raises(UsageError, match=r"none of its parts has a config\.json"):
        pipeline_of(str(folder))


@pytest.mark.parametrize("text", ["Qwen/Qwen3-32B", "14B", "transformer:layers=4,hidden=512,heads=8,ffn=64,vocab=99",
                                  '{"model_type": "llama"}', "", "no such thing", "\0", "a" * 5000])  # fmt: skip
def test_what_names_no_file_of_these_kinds_is_left_to_others(text: str) -> None:
    assert pipeline_of(text) is None


@pytest.mark.parametrize("name", ["model.bin", "model.pt", "a/model.pth", "sd.ckpt", "x.pkl", "MODEL.PT"])
def test_pickles_are_never_opened(name: str, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "ran",))

    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(pickle.dumps(Evil()))
    for read in (pipeline_of, find_config):
        with pytest.raises(UsageError, match=r"pickles can run code.*convert it to safetensors"):
            read(str(file))
    assert not (tmp_path / "ran").exists()


def test_an_answer_that_was_saved_needs_neither_file_nor_code(tmp_path: Path) -> None:
    file = weights(tmp_path / "unet.safetensors", UNET)
    with use(Snapshot(read={})) as seen:
        first = pipeline_of(str(file))
    file.unlink()
    assert seen.read
    with use(Snapshot(given=dict(seen.read))):
        assert pipeline_of(str(file)) == first


# What others send: names of files are not opened for them.


@pytest.mark.parametrize("verb", ["fit", "plan", "estimate", "operators"])
@pytest.mark.parametrize("ending", ["net.py:build", "net.py", "net.onnx", "model.safetensors", "model.pt", "folder"])
def test_doors_that_serve_others_open_no_file_and_run_no_code(verb: str, ending: str, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef build():\n    pass\n")
    weights(tmp_path / "model.safetensors", UNET)
    diffusers(tmp_path / "folder")
    with pytest.raises(UnknownNameError, match="files are not read here"):
        read_request(verb, {"model": str(tmp_path / ending), "chip": "h100"} if verb in ("estimate", "operators")
                     else {"model": str(tmp_path / ending)})  # fmt: skip
    assert not (tmp_path / "ran").exists()


def test_a_configuration_itself_is_taken_and_its_size_is_bounded() -> None:
    text = json.dumps({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 512, "num_attention_heads": 4,
                       "intermediate_size": 1024, "vocab_size": 1000})  # fmt: skip
    assert read_request("fit", {"model": text}).model == text  # type: ignore[attr-defined]
    for long in ('{"a": "' + "x" * 9_000_000 + '"}', '{"_class_name": "' + "x" * 9_000_000 + '"}'):
        assert pipeline_of(long) is None
        with pytest.raises(UsageError, match="characters"):
            find_config(long)


# Hostile headers.


def refusal(file: Path) -> str:
    """What is said about a file, "" where it is read; anything else than a refusal fails."""
    try:
        pipeline_of(str(file))
    except UsageError as error:
        return str(error)
    return ""


def test_headers_that_are_cut_or_damaged_are_one_line_in_bounded_memory(tmp_path: Path) -> None:
    draw = random.Random(0)
    whole = weights(tmp_path / "unet.safetensors", UNET).read_bytes()
    file = tmp_path / "x.safetensors"
    for _ in range(300):
        data = bytearray(whole[: draw.randrange(len(whole) + 1)])
        for _ in range(draw.randrange(4)):
            if data:
                data[draw.randrange(len(data))] = draw.randrange(256)
        file.write_bytes(bytes(data))
        said = refusal(file)
        assert "\n" not in said
        assert len(said) < 500


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 1_000_000,
        b'{"a":' * 100_000,
        b'{"a": {"dtype": "F32", "shape": [' + b"1," * 100_000 + b'1], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "F32", "shape": [9999999999999999999999], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}}',
        b'{"a": {"dtype": "F32", "shape": [1e3], "data_offsets": [0, 4]}}',
        b'{"a": 5}', b"5", b"\xff" * 100, b"9" * 10_000,
    ],
)  # fmt: skip
def test_hostile_headers(body: bytes, tmp_path: Path) -> None:
    file = tmp_path / "x.safetensors"
    file.write_bytes(struct.pack("<Q", len(body)) + body)
    with pytest.raises(UsageError) as caught:
        pipeline_of(str(file))
    assert "\n" not in str(caught.value)


def test_a_length_that_no_header_has_takes_no_memory(tmp_path: Path) -> None:
    file = tmp_path / "x.safetensors"
    for length in (2**63, 2**31, 200_000_000):
        file.write_bytes(struct.pack("<Q", length) + b"{}")
        tracemalloc.start()
        with pytest.raises(UsageError, match="cut off or damaged"):
            pipeline_of(str(file))
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
        tracemalloc.stop()


def test_a_gguf_with_endless_lists_ends(tmp_path: Path) -> None:
    file = tmp_path / "x.gguf"
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k"
    for kind, count in ((8, 2**40), (4, 2**40), (9, 2**40)):
        file.write_bytes(head + struct.pack("<IIQ", 9, kind, count) + bytes(1000))
        with pytest.raises(UsageError, match="cut off or damaged"):
            find_config(str(file))
    dimensions = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", 1) + b"t" + struct.pack("<I", 2**31)
    file.write_bytes(dimensions + bytes(1_000_000))
    with pytest.raises(UsageError, match="cut off or damaged"):
        find_config(str(file))


# The command.


def test_the_command_shows_operators_and_the_next_step(run: Run, tmp_path: Path) -> None:
    file = weights(tmp_path / "unet.safetensors", UNET)
    shown = run("trace", str(file))
    assert shown.code == 0
    assert "1.34 M parameters" in shown.out
    data = json.loads(run("trace", str(file), "--format", "json").out)
    assert data["parameters"] == ENTRIES
    refused = run("trace", "model.pt")
    assert (refused.code, "convert it to safetensors" in refused.err) == (2, True)
    unknown = run("trace", "Qwen/Qwen3-32B")
    assert (unknown.code, "FILE.py:function" in unknown.err) == (3, True)
    for name, file_name in (("net.py:build", "net.py"), ("net.onnx", "net.onnx")):
        told = run("fit", name)
        assert (told.code, file_name in told.err) == (2, True)


# ONNX.


def onnx_file(path: Path, *, open_: bool = False, external: bool = False, extra: Any = ()) -> Path:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    held = {"k": (8, 3, 3, 3), "t": (8, 4, 2, 2), "w": (4, 10), "u": (2, 3, 16, 6), "table": (100, 16)}
    weights = [numpy_helper.from_array(np.zeros(shape, np.float32), name) for name, shape in held.items()]
    weights.append(numpy_helper.from_array(np.array([0, -1], np.int64), "shape"))
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Sigmoid", ["r"], ["s"]),
        helper.make_node("ConvTranspose", ["s", "t"], ["d"], "up", strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["d"], ["p"]),
        helper.make_node("Reshape", ["p", "shape"], ["f"]),
        helper.make_node("Gemm", ["f", "w"], ["y"], "head"),
        *extra,
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "net", [info("x", TensorProto.FLOAT, ["N" if open_ else 2, 3, 16, 16])],
        [info("y", TensorProto.FLOAT, None)], weights,
    )  # fmt: skip
    options = {"save_as_external_data": True, "location": "w.data", "size_threshold": 64} if external else {}
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets), str(path), **options)
    return path


CONV, UP, HEAD = 2.0 * 256 * 8 * 27, 2.0 * 256 * 8 * 4 * 4, 2.0 * 4 * 10  # of one image


@pytest.mark.parametrize("kind", ["fixed", "open", "external"])
def test_an_onnx_graph_is_its_operators(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    file = onnx_file(tmp_path / "net.onnx", open_=kind == "open", external=kind == "external")
    (tmp_path / "w.data").unlink(missing_ok=True)
    found = pipeline_of(str(file))
    assert found is not None
    batch = 1 if kind == "open" else 2
    by_name = {op.name: float(op.flops) for _, op in found.stages[0].ops}
    assert (by_name["conv"], by_name["up"], by_name["head"]) == (batch * CONV, batch * UP, batch * HEAD)
    assert found.batch == batch
    assert found.parameters == 216 + 128 + 40 + 576 + 1600
    assert any({"open": "N = 1", "external": "external data"}.get(kind, "joined") in line for line in found.assumptions)
    (chain,) = [op for _, op in found.stages[0].ops if op.kind == "pointwise" and op.launches == 2]
    assert chain.activation_bytes == batch * 2 * 4 * 8 * 256  # ReLU and sigmoid read and write once


def test_what_onnx_cannot_tell_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    from onnx import helper

    whole = onnx_file(tmp_path / "net.onnx").read_bytes()
    cut = tmp_path / "cut.onnx"
    draw = random.Random(0)
    for _ in range(40):
        data = bytearray(whole[: draw.randrange(len(whole))])
        for _ in range(3):
            if data:
                data[draw.randrange(len(data))] = draw.randrange(256)
        cut.write_bytes(bytes(data))
        assert "\n" not in refusal(cut)
    unknown = [
        helper.make_node("Mystery", ["y"], ["q"], domain="mine"),
        helper.make_node("MatMul", ["q", "w"], ["z"], "lost"),
    ]
    file = onnx_file(tmp_path / "odd.onnx", extra=unknown)
    with pytest.raises(UsageError, match=r"shapes of (Mystery|MatMul).*symbolic_shape_infer"):
        pipeline_of(str(file))


def test_a_graph_of_a_million_operators_is_refused_soon(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    node = onnx.helper.make_node("Relu", ["x"], ["x"]).SerializeToString()
    graph = (b"\x0a" + bytes([len(node)]) + node) * 1_000_000
    size, length = len(graph), b""
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    file = tmp_path / "long.onnx"
    file.write_bytes(b"\x08\x08\x3a" + length + bytes([size]) + graph)
    begun = time.process_time()
    with pytest.raises(UsageError, match=r"1,000,000 operators are more than 200,000.*export one layer"):
        pipeline_of(str(file))
    assert time.process_time() - begun < 20


def test_without_torch_or_onnx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("def build():\n    raise SystemExit('was run')\n")
    for name, extra in (("net.py:build", "torch"), ("net.onnx", "onnx")):
        monkeypatch.setitem(sys.modules, extra, None)
        with pytest.raises(MissingExtraError, match=rf"pip install 'chipwise\[{extra}\]'"):
            pipeline_of(str(tmp_path / name))


def graph_of(path: Path, nodes: Any, inputs: Any, outputs: Any, weights: Any = (), **more: Any) -> Path:
    """An ONNX file; inputs and outputs as (name, type, shape), weights as (name, array)."""
    import onnx
    from onnx import helper, numpy_helper

    info = helper.make_tensor_value_info
    held = [numpy_helper.from_array(array, name) for name, array in weights]
    graph = helper.make_graph(nodes, "net", [info(*i) for i in inputs], [info(*o) for o in outputs], held)
    opsets = [helper.make_opsetid("", 22), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("own", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, **more), str(path))
    return path


def flops_of(file: Path, *kinds: str) -> float:
    found = pipeline_of(str(file))
    assert found is not None
    return sum(n * float(op.flops) for s in found.stages for n, op in s.ops if not kinds or op.kind in kinds)


def test_onnx_in_int8_reads_and_multiplies_what_is_stored(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    import numpy as np

    node, kind = onnx.helper.make_node, onnx.TensorProto.FLOAT
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["xq"]), node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        node("DequantizeLinear", ["wq", "s", "z"], ["wd"]), node("Conv", ["xd", "wd"], ["y"], "conv", pads=[1] * 4),
    ]  # fmt: skip
    weights = [("s", np.ones((), np.float32)), ("z", np.zeros((), np.int8)), ("wq", np.zeros((8, 3, 3, 3), np.int8))]
    shape = [1, 3, 16, 16]
    found = pipeline_of(
        str(graph_of(tmp_path / "q.onnx", nodes, [("x", kind, shape)], [("y", kind, [1, 8, 16, 16])], weights))
    )
    assert found is not None
    (op,) = [op for _, op in found.stages[0].ops]
    assert (op.kind, op.compute, op.weight, op.weight_bytes) == ("conv", "int8", "int8", 216.0)
    assert op.activation_bytes == 3 * 256 + 4 * 8 * 256


def test_onnx_functions_and_inner_graphs_are_counted(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    import numpy as np

    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    node, info = helper.make_node, helper.make_tensor_value_info
    square, once = ("x", kind, [4, 64]), 2.0 * 4 * 64 * 64
    weights = [("w", np.zeros((64, 64), np.float32)), ("n", np.array(10)), ("go", np.array(True))]
    own = helper.make_function(
        "own", "Own", ["a", "b"], ["c"], [node("MatMul", ["a", "b"], ["c"])], [helper.make_opsetid("", 22)]
    )
    called = graph_of(
        tmp_path / "f.onnx",
        [node("Own", ["x", "w"], ["y"], domain="own")],
        [square],
        [("y", kind, [4, 64])],
        weights,
        functions=[own],
    )
    assert flops_of(called, "gemm") == once

    branch = helper.make_graph([node("MatMul", ["x", "w"], ["t"])], "then", [], [info("t", kind, [4, 64])])
    other = helper.make_graph([node("Relu", ["x"], ["t"])], "else", [], [info("t", kind, [4, 64])])
    either = node("If", ["go"], ["y"], then_branch=branch, else_branch=other)
    assert flops_of(graph_of(tmp_path / "i.onnx", [either], [square], [("y", kind, [4, 64])], weights), "gemm") == once

    body = helper.make_graph(
        [node("MatMul", ["at", "w"], ["p"]), node("Relu", ["p"], ["next"]), node("Identity", ["more"], ["still"])],
        "body", [info("i", 7, []), info("more", 9, []), info("at", kind, [4, 64])],
        [info("still", 9, []), info("next", kind, [4, 64])],
    )  # fmt: skip
    for count, times in (("n", 10), ("m", 1)):
        asked = [square, ("m", 7, [])]
        loop = node("Loop", [count, "go", "x"], ["y"], body=body)
        file = graph_of(tmp_path / "l.onnx", [loop], asked, [("y", kind, [4, 64])], weights)
        assert flops_of(file, "gemm") == times * once

    step = helper.make_graph(
        [node("MatMul", ["s", "w"], ["p"]), node("Add", ["p", "v"], ["o"]), node("Identity", ["o"], ["r"])],
        "step", [info("s", kind, [4, 64]), info("v", kind, [4, 64])],
        [info("o", kind, [4, 64]), info("r", kind, [4, 64])],
    )  # fmt: skip
    scan = node("Scan", ["x", "all"], ["last", "y"], body=step, num_scan_inputs=1)
    file = graph_of(
        tmp_path / "s.onnx", [scan], [square, ("all", kind, [20, 4, 64])], [("y", kind, [20, 4, 64])], weights
    )
    assert flops_of(file, "gemm") == 20 * once


def test_operators_that_runtimes_contribute_are_counted(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    import numpy as np

    node, half = onnx.helper.make_node, onnx.TensorProto.FLOAT16
    own = {"domain": "com.microsoft"}
    nodes = [
        node("SkipSimplifiedLayerNormalization", ["q", "q", "g"], ["h"], **own),
        node("GroupQueryAttention", [*"hkv", "", "", *"lt"], ["a", "", ""], num_heads=8, kv_num_heads=2, **own),
        node("MatMul", ["a", "w"], ["y"], "out"),
    ]  # fmt: skip
    inputs = [
        ("q", half, [1, 128, 512]),
        ("k", half, [1, 128, 128]),
        ("v", half, [1, 128, 128]),
        ("l", 6, [1]),
        ("t", 6, [1]),
    ]
    weights = [("g", np.ones(512, np.float16)), ("w", np.zeros((512, 256), np.float16))]
    file = graph_of(tmp_path / "g.onnx", nodes, inputs, [("y", half, [1, 128, 256])], weights)
    assert flops_of(file, "attention") == 4.0 * 8 * 64 * (128 * 129 / 2)
    assert flops_of(file, "gemm") == 2.0 * 128 * 512 * 256
    single = onnx.TensorProto.FLOAT
    product = [node("Einsum", ["x", "w"], ["y"], equation="bij,jk->bik")]
    file = graph_of(
        tmp_path / "e.onnx", product, [("x", single, [2, 8, 64])], [("y", single, [2, 8, 32])],
        [("w", np.zeros((64, 32), np.float32))],
    )  # fmt: skip
    assert flops_of(file, "gemm") == 2.0 * 2 * 8 * 64 * 32


def test_onnx_graphs_that_are_none_are_one_line(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    node, kind = onnx.helper.make_node, onnx.TensorProto.FLOAT
    ends = [("x", kind, [4, 64])], [("b", kind, [4, 64])]
    file = tmp_path / "g.onnx"
    for nodes, match in (
        ([node("Add", ["b", "x"], ["a"]), node("Relu", ["a"], ["b"])], "which nothing before it writes"),
        ([node("Relu", ["x"], ["b"]), node("Tanh", ["x"], ["b"])], "'b' is written twice"),
    ):
        graph_of(file, nodes, *ends)
        with pytest.raises(UsageError, match=match):
            pipeline_of(str(file))
    graph_of(file, [node("Relu", ["x"], ["b"])], [("x", kind, [2**40, 2**40])], [("b", kind, None)])
    with pytest.raises(UsageError, match="a size of 1,099,511,627,776"):
        pipeline_of(str(file))
    opset = [onnx.helper.make_opsetid("own", 1)]
    deep = [  # each calls the next ten times: 10^20 operators
        onnx.helper.make_function("own", f"F{n}", ["a"], ["b"], [
            node(*((f"F{n + 1}", [a], [b], None, None, "own") if n < 19 else ("Relu", [a], [b])))
            for a, b in pairwise(["a", *(f"t{k}" for k in range(9)), "b"])
        ], [*opset, onnx.helper.make_opsetid("", 22)])
        for n in range(20)
    ]  # fmt: skip
    graph_of(file, [node("F0", ["x"], ["b"], domain="own")], *ends, functions=deep)
    with pytest.raises(UsageError, match="operators are more than 200,000"):
        pipeline_of(str(file))
    os.mkfifo(tmp_path / "p.onnx")
    with pytest.raises(UsageError, match="not a file"):
        pipeline_of(str(tmp_path / "p.onnx"))


def gguf_file(path: Path, architecture: str, kind: int) -> Path:
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    key = text("general.architecture") + struct.pack("<I", 8) + text(architecture)
    tensor = text("double_blocks.0.img_attn.qkv.weight") + struct.pack("<IQQIQ", 2, 256, 768, kind, 0)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + key + tensor)
    return path


def test_a_gguf_of_any_architecture_is_sized(run: Run, tmp_path: Path) -> None:
    """Its tensors say what it holds, and a built-in model of the same name is not asked about in its place."""
    file = gguf_file(tmp_path / "flux.gguf", "flux", 12)  # Q4_K
    found = pipeline_of(str(file))
    assert found is not None
    assert found.parameters == 256 * 768
    assert found.settings == {"attention_bytes": 256 * 768 * 144 / 256}
    shown = json.loads(run("fit", str(file), "--chips", "h100", "--format", "json").out)
    assert "flux-dev" not in json.dumps(shown)
    for n in (1, 2):
        gguf_file(tmp_path / f"net-{n:05}-of-00003.gguf", "flux", 12)
    with pytest.raises(UsageError, match="2 of 3 parts are here"):
        pipeline_of(str(tmp_path / "net-00001-of-00003.gguf"))
    with pytest.raises(UsageError, match="of type 99 have a size that is not known"):
        pipeline_of(str(gguf_file(tmp_path / "new.gguf", "flux", 99)))
