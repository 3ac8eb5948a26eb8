"""Any argument text ends in an answer or in one line with a designed exit code; never in a traceback."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.cli import main
from command_line import Ran

MODEL = "meta-llama/Llama-3.1-8B"
CHIP = "h100-sxm5-80gb"


def ran(*arguments: str) -> Ran:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as exit_:
        main(arguments)
    return Ran(int(exit_.value.code or 0), out.getvalue(), err.getvalue())


def check(done: Ran) -> None:
    assert done.code in (0, 2, 3, 4)
    if done.code == 0:
        assert done.err == "" or "is taken as" in done.err  # of a family of chips
    else:
        done.one_line()


numbers = st.one_of(
    st.integers(-10, 10**6).map(str),
    st.floats().map(repr),
    st.sampled_from(
        ["1e400", "-0", "+5", "0x10", "1,000", "1_0", "½", "١", "1e-30", "--", "-", "=", "5 5", "1/0", "9" * 400]
    ),
    st.text(max_size=12),
)
"""Numbers, nearly numbers, and what is none."""

formats = st.sampled_from(["table", "json", "csv", "md"])


@given(st.text(max_size=60))
def test_any_model_name(name: str) -> None:
    check(ran("models", "show", name))


@given(st.text(max_size=60))
def test_any_chip_name(name: str) -> None:
    check(ran("chips", "show", name))


@given(st.lists(st.text(max_size=12), max_size=5))
def test_any_words(words: list[str]) -> None:
    check(ran(*words))


@given(numbers, numbers, numbers, numbers, numbers)
def test_any_workload(in_: str, out: str, rate: str, ttft: str, tpot: str) -> None:
    asked = {"--in": in_, "--out": out, "--rate": rate, "--ttft": ttft, "--tpot": tpot}
    check(ran("plan", MODEL, "--chips", CHIP, *(f"{name}={value}" for name, value in asked.items())))


@given(
    st.sampled_from(
        "--in --out --rate --ttft --tpot --max-chips --max-usd-per-h --day --cv --prefix-hit --common-prefix "
        "--spare --software --speculate --kv --log".split()
    ),
    st.one_of(numbers, numbers.map("accept={},draft=2".format)),
)
@settings(max_examples=100)
def test_any_value_of_one_option(option: str, value: str) -> None:
    check(ran("plan", MODEL, "--chips", CHIP, f"{option}={value}"))


@given(st.sampled_from(["--tp", "--pp", "--dp", "--ep", "--count", "--concurrency"]), numbers, st.booleans(), formats)
@settings(max_examples=100)
def test_any_layout(option: str, value: str, joined: bool, form: str) -> None:
    given_ = (f"{option}={value}",) if joined else (option, value)
    done = ran("estimate", MODEL, "--chip", CHIP, *given_, "--format", form)
    check(done)
    if done.code == 0 and form == "json":
        assert done.json["plans"]


@given(numbers, numbers, numbers)
def test_any_fit(context: str, batch: str, count: str) -> None:
    asked = (f"--context={context}", f"--batch={batch}", f"--count={count}")
    done = ran("fit", MODEL, "--chip", CHIP, *asked, "--format", "json")
    check(done)
    if done.out:
        answer = done.json
        assert answer["error"]["what"] if "error" in answer else answer["fits"] or answer["refused"]


@given(st.sampled_from(["--set", "--policy", "--chips", "--precision", "--runtime"]), st.text(max_size=20))
def test_any_override(option: str, value: str) -> None:
    check(ran("fit", MODEL, "--chip", CHIP, f"{option}={value}"))


@given(
    st.sampled_from(["hbm", "memory", "bf16", "link", "memory_share", "max_sequences", "wings"]),
    numbers,
    st.sampled_from(["--set", "--policy"]),
)
def test_any_figure(name: str, value: str, option: str) -> None:
    check(ran("plan", MODEL, "--chips", CHIP, f"{option}={name}={value}"))


LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 256,
    "max_position_embeddings": 128,
    "torch_dtype": "bfloat16",
    "head_dim": 8,
    "tie_word_embeddings": False,
    "quantization_config": None,
    "rope_scaling": None,
    "text_config": None,
    "vision_config": None,
    "attention_bias": False,
}

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["llama", "qwen3_moe", "deepseek_v3", "fp8", "int4", "mixtral"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(sorted(LLAMA)), values)
@settings(max_examples=100)
def test_any_value_in_a_configuration(tmp_path_factory: pytest.TempPathFactory, key: str, value: object) -> None:
    file = tmp_path_factory.getbasetemp() / "fuzzed.json"
    file.write_text(json.dumps(LLAMA | {key: value}))
    check(ran("fit", str(file), "--chip", CHIP))


@given(st.dictionaries(st.sampled_from([*LLAMA, "num_experts", "layer_types", "sliding_window"]), values, max_size=8))
def test_any_configuration(tmp_path_factory: pytest.TempPathFactory, config: dict[str, object]) -> None:
    file = tmp_path_factory.getbasetemp() / "fuzzed.json"
    file.write_text(json.dumps(config))
    check(ran("fit", str(file), "--chip", CHIP))


@given(st.binary(max_size=300))
def test_any_rows(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.getbasetemp()
    rows, out = folder / "fuzzed.csv", folder / "answers.csv"
    rows.write_bytes(b"row_id,config_file\n" + content)
    done = ran("predict", "kv_cache", "--rows", str(rows), "--out", str(out))
    assert done.code in (0, 2)
    assert done.out == ""
    if done.code:
        done.one_line()
