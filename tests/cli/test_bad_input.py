"""Bad input ends in one clear line, the designed exit code, and nothing written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chipwise.catalog.snapshot import Snapshot, use
from command_line import Run

MODEL = "meta-llama/Llama-3.1-8B"
PLAN = ("plan", MODEL)
ESTIMATE = ("estimate", MODEL, "--chip", "h100-sxm5-80gb")
FIT = ("fit", MODEL, "--chip", "h100-sxm5-80gb")

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def config(folder: Path, text: str | bytes | dict[str, Any]) -> str:
    file = folder / "config.json"
    content = json.dumps(text) if isinstance(text, dict) else text
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(file)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*PLAN, "--spot", "--rate", "1/s"), "unknown option --spot: chipwise plan meta-llama/Llama-3.1-8B --rate"),
        ((*PLAN, "--gpu", "h100"), "unknown option --gpu: chipwise plan meta-llama/Llama-3.1-8B --chips h100"),
        (("check-statement", "a TPU"), "unknown command check-statement: chipwise claim check 'a TPU'"),
        (("claim", "a TPU"), "a statement is checked with chipwise claim check 'a TPU'"),
        ((*PLAN, "--format", "yaml"), 'Invalid value "yaml" for --format. Choose from: "table", "json"'),
        (("local", "--chip", "rtx-4090"), "unknown option --chip: chipwise local --have rtx-4090"),
        (
            ("plan", "qwen3-8b", "--qps=5", "--cached", "50%"),
            "unknown option --qps, --cached: chipwise plan qwen3-8b --rate=5 --prefix-hit 50%",
        ),
        (("estimate", "qwen3-8b", "--gpus", "h100"), "unknown option --gpus: chipwise estimate qwen3-8b --chip"),
        (("estimate", "qwen3-8b"), "estimate needs --chip (chipwise estimate --help)"),
        (("kernel", "gemm", "--n", "4096"), "kernel gemm needs --m (chipwise kernel gemm --help)"),
        (("plan", "resnet50", "--in", "256"), "--in says nothing about resnet50"),
        (("plan", "bge-m3", "--in", "256", "--settings", "tokens=5"), "tokens is given twice: as --in and in"),
        ((*PLAN, "--percentile", "40"), "--percentile: 40 is out of range (50 to 99.9)"),
        ((*PLAN, "--rate", "abc"), "--rate: cannot read 'abc'"),
        ((*PLAN, "--rate", "0"), "--rate"),
        ((*PLAN, "--rate", "-1/s"), "--rate: -1/s is out of range"),
        ((*PLAN, "--task", "train", "--tokens", "-5B"), "--tokens: -5B is out of range"),
        ((*PLAN, "--task", "train", "--deadline", "tomorrow"), "with one of ns, us, ms, s, min, h, d)"),
        ((*PLAN, "--in", "5x"), "with one of k, M, B, T)"),
        ((*ESTIMATE, "--tp", "16"), "h100-sxm5-80gb joins 8 (tp x dp at most 8,"),
        (("chips", "search"), "nothing to search for"),
        ((*PLAN, "--rate", "nan"), "--rate"),
        ((*PLAN, "--in", "-5"), "--in: -5 is out of range"),
        ((*PLAN, "--in", "1e99"), "--in: 1e99 is out of range"),
        ((*PLAN, "--in", "0"), "--in"),
        ((*PLAN, "--in", ""), "--in"),
        ((*PLAN, "--in", "5ms"), "--in: cannot read '5ms'"),
        ((*PLAN, "--out", "1e9"), "--out"),
        ((*PLAN, "--ttft", "fast"), "--ttft: cannot read 'fast'"),
        ((*PLAN, "--e2e", "10m"), "10min for minutes, 10ms for milliseconds"),
        (("plan", "wan2.2", "--rate", "200/h", "--deadline", "10min"), "for a whole answer is --e2e, e.g. 10min"),
        ((*PLAN, "--tpot", "0"), "--tpot"),
        ((*PLAN, "--tpot", "30MB"), "--tpot"),
        ((*PLAN, "--max-chips", "-1"), "--max-chips -1"),
        ((*PLAN, "--max-chips", "0"), "--max-chips 0"),
        ((*PLAN, "--max-chips", "1.5"), "--max-chips"),
        ((*PLAN, "--max-usd-per-h", "-1"), "--max-usd-per-h"),
        ((*PLAN, "--max-usd-per-h", "0"), "--max-usd-per-h"),
        ((*PLAN, "--max-usd-per-h", "nan"), "--max-usd-per-h"),
        ((*PLAN, "--max-usd-per-h", "inf"), "--max-usd-per-h"),
        ((*PLAN, "--max-usd-per-h", "much"), "not a number, as in 2.5 or 5M"),
        ((*PLAN, "--chips", ","), "','"),
        ((*PLAN, "--task", "train", "--rate", "10/s"), "--rate says nothing about --task train"),
        ((*PLAN, "--task", "finetune", "--runtime", "vllm"), "--runtime says nothing"),
        ((*PLAN, "--deadline", "3d"), "--deadline is the limit of a job"),
        ((*PLAN, "--task", "train", "--tokens", "0"), "--tokens: 0 is out of range"),
        ((*PLAN, "--task", "train", "--counts", "8.5"), "not a whole number (for example 8)"),
        ((*PLAN, "--task", "train", "--have", "8xh100", "--chips", "b200"), "exclude each other"),
        ((*PLAN, "--chips", ""), "''"),
        ((*PLAN, "--task", "dream"), "dream"),
        ((*PLAN, "--format", "xml"), "xml"),
        ((*PLAN, "--colour", "red"), "--colour"),
        ((*PLAN, "extra", "words"), "extra"),
        ((*PLAN, "--rate"), "--rate"),
        (("plan",), "model"),
        (("plan", "--rate", "1"), "model"),
        (("estimate", MODEL), "--chip"),
        (("compare", MODEL), "--chips"),
        (("predict", "model_params"), "--rows"),
        (("chips", "show"), "chip"),
        (("unknown-command",), "unknown-command"),
        (("--unknown-option",), "--unknown-option"),
        ((*ESTIMATE, "--tp", "0"), "--tp 0"),
        ((*ESTIMATE, "--tp", "3"), "nearest: tp 2 or 4"),
        ((*ESTIMATE, "--pp", "33"), "nearest: pp 32"),
        ((*ESTIMATE, "--tp", "-8"), "--tp -8"),
        ((*ESTIMATE, "--tp", "two"), "--tp"),
        ((*ESTIMATE, "--tp", "2.6"), "--tp"),
        ((*FIT, "--batch", "1.5"), "--batch"),
        ((*FIT, "--count", "nan"), "--count"),
        ((*ESTIMATE, "--tp", "3"), "tp3"),
        ((*ESTIMATE, "--tp", "1000000000000"), "--tp"),
        ((*ESTIMATE, "--pp", "33"), "pp33"),
        ((*ESTIMATE, "--ep", "2"), "experts"),
        ((*ESTIMATE, "--tp", "16"), "tp16"),
        ((*ESTIMATE, "--count", "0"), "--count 0"),
        ((*ESTIMATE, "--count", "-1"), "--count -1"),
        ((*ESTIMATE, "--count", "2"), "2"),
        ((*ESTIMATE, "--concurrency", "nan"), "--concurrency"),
        ((*ESTIMATE, "--concurrency", "0"), "--concurrency"),
        ((*ESTIMATE, "--concurrency", "-1"), "--concurrency"),
        ((*ESTIMATE, "--concurrency", "inf"), "--concurrency"),
        ((*FIT, "--count", "0"), "--count 0"),
        ((*FIT, "--count", "100000000"), "--count"),
        ((*FIT, "--batch", "0"), "--batch 0"),
        ((*FIT, "--batch", "many"), "--batch"),
        ((*FIT, "--context", "0"), "--context"),
        ((*FIT, "--context", "1e99"), "--context"),
        ((*FIT, "--context", "nan"), "--context"),
        (("plan", "./nothing.json"), "no such file: ./nothing.json"),
        (("plan", "/dev/zero"), "not a file"),
        (("plan", "/dev"), "holds no config.json"),
        (("plan", "~no-such-user-here/x"), "no such file"),
        (("trace", ""), "trace needs a source"),
        (("plan", "x" * 100_000), "at most 1,000"),
        ((*PLAN, "--chips", "x" * 100_000), "at most 1,000"),
    ],
)
def test_usage(run: Run, arguments: tuple[str, ...], words: str) -> None:
    assert words.lower() in run(*arguments).refused(2).lower()


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", ""),
        ("plan", " "),
        ("plan", "nobody/nothing"),
        (*PLAN, "--chips", "h100-sxm5-80gb,nothing"),
        (*PLAN, "--runtime", "a\nb"),
        (*PLAN, "--precision", ""),
        ("estimate", MODEL, "--chip", ""),
        ("chips", "show", "h1\n00\x1b[0m"),
        ("chips", "list", "--vendor", "nvidai"),
        ("models", "show", "nothing"),
        ("offers", "list", "nothing"),
        ("glossary", "nothing"),
        ("predict", "nothing", "--rows", "x.csv", "--out", "y.csv"),
    ],
)
def test_unknown_names(run: Run, arguments: tuple[str, ...]) -> None:
    assert "unknown" in run(*arguments).refused(3)


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "a\nb\x1b[31m\x00c"),
        ("plan", "\u202e\u2066evil"),
        (*PLAN, "--chips", "l4\x07"),
        (*PLAN, "--runtime", "vllm\x1b]0;x"),
        ("estimate", MODEL, "--chip", "l4", "--precision", "fp8\x00"),
    ],
)
def test_no_control_character_stands_in_a_name(run: Run, arguments: tuple[str, ...]) -> None:
    said = run(*arguments).refused(2)
    assert "holds the control character U+" in said
    assert said.rstrip("\n").isprintable()


def test_files_of_one_runtime_are_read_by_it_alone(run: Run) -> None:
    said = run("estimate", MODEL, "--chip", "l4", "--precision", "bfloat4_b").refused(4)
    assert "does not read bfloat4_b weights" in " ".join(said.split())
    assert run("estimate", MODEL, "--chip", "tt-wormhole-n300", "--tp", "2", "--precision", "bfloat4_b").code == 0


BROKEN: dict[str, str | bytes] = {
    "nothing": "",
    "truncated": json.dumps(LLAMA)[:100],
    "a list": "[1, 2]",
    "a number": "42",
    "null": "null",
    "a key twice": '{"model_type": "llama", "hidden_size": 8, "hidden_size": 16}',
    "deep": '{"a":' * 50_000,
    "binary": bytes(range(256)) * 10,
    "not UTF-8": b'{"model_type": "\xff\xfe"}',
    "a long number": '{"hidden_size": ' + "9" * 50_000 + "}",
    "an empty object": "{}",
    "no model_type": json.dumps({k: v for k, v in LLAMA.items() if k != "model_type"}),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_configurations(run: Run, tmp_path: Path, what: str) -> None:
    assert "config.json: " in run("plan", config(tmp_path, BROKEN[what])).refused(2)


WRONG: dict[str, tuple[str, Any]] = {
    "no heads": ("num_attention_heads", 0),
    "negative heads": ("num_attention_heads", -32),
    "heads as text": ("num_attention_heads", "32"),
    "heads as a list": ("num_attention_heads", [32]),
    "heads as a flag": ("num_attention_heads", True),
    "half a head": ("num_attention_heads", 31.5),
    "heads of NaN": ("num_attention_heads", float("nan")),
    "endless heads": ("num_attention_heads", float("inf")),
    "heads missing": ("num_attention_heads", None),
    "no layers": ("num_hidden_layers", 0),
    "absurd layers": ("num_hidden_layers", 10**30),
    "negative width": ("hidden_size", -1),
    "absurd width": ("hidden_size", 10**300),
    "no vocabulary": ("vocab_size", 0),
    "no feed-forward": ("intermediate_size", 0),
    "no key heads": ("num_key_value_heads", 0),
    "key heads that do not divide": ("num_key_value_heads", 7),
    "negative context": ("max_position_embeddings", -1),
    "unknown format": ("torch_dtype", "float3"),
    "a format of a wrong kind": ("torch_dtype", 16),
    "tying as text": ("tie_word_embeddings", "no"),
    "model type of a wrong kind": ("model_type", ["llama"]),
    "quantisation of a wrong kind": ("quantization_config", "fp8"),
    "unknown quantisation": ("quantization_config", {"quant_method": "magic"}),
    "text part of a wrong kind": ("text_config", 7),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_values_name_the_key_and_what_is_legal(run: Run, tmp_path: Path, what: str) -> None:
    key, value = WRONG[what]
    said = run("plan", config(tmp_path, LLAMA | {key: value})).refused(2)
    assert key in said or "quant_method" in said


def test_an_unknown_family_suggests_the_nearest(run: Run, tmp_path: Path) -> None:
    said = run("plan", config(tmp_path, LLAMA | {"model_type": "lama"})).refused(3)
    assert "did you mean llama" in said


def test_a_key_misspelt_is_suggested(run: Run, tmp_path: Path) -> None:
    keys = {("hiden_size" if k == "hidden_size" else k): v for k, v in LLAMA.items()}
    assert "did you mean hiden_size" in run("plan", config(tmp_path, keys)).refused(2)


def test_an_unread_key_is_printed_as_an_assumption(run: Run, tmp_path: Path) -> None:
    ran = run("plan", config(tmp_path, LLAMA | {"number_of_wings": 2}))
    assert ran.code == 0
    assert "number_of_wings was not read" in ran.out


def test_a_huge_sparse_file(run: Run, tmp_path: Path) -> None:
    with (tmp_path / "config.json").open("wb") as out:
        out.truncate(2_000_000_000)
    assert "2,000 MB" in run("plan", str(tmp_path)).refused(2)


def test_files_that_are_no_files(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    (tmp_path / "empty").mkdir()
    for name in ("pipe.json", "loop.json", "empty", "nothing.json"):
        assert str(tmp_path) in run("plan", str(tmp_path / name)).refused(2)


def test_a_path_with_control_characters_stays_on_one_line(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "a\nb\x1b[31m"
    folder.mkdir()
    run("plan", config(folder, "{")).refused(2)


ROWS = "row_id,config_file\np00,Some__Model.json\n"


def suite(run: Run, rows: Path, out: Path | str, code: int) -> str:
    before = sorted(rows.parent.iterdir()) if rows.parent.is_dir() else []
    said = run("predict", "model_params", "--rows", str(rows), "--out", str(out)).refused(code)
    if rows.parent.is_dir():
        assert sorted(rows.parent.iterdir()) == before
    return said


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("nothing.csv", None, "no such file"),
        ("empty.csv", b"", "no rows"),
        ("header.csv", b"row_id,config_file\n", "no rows"),
        ("other.csv", b"id,name\n1,2\n", "no column row_id"),
        ("binary.csv", bytes(range(256)), "not a CSV file"),
        ("wide.csv", b"row_id\n" + b"x" * 200_000 + b"\n", "not a CSV file"),
        ("text.parquet", b"row_id\n1\n", "not a Parquet file"),
        ("empty.parquet", b"", "not a Parquet file"),
    ],
)
def test_predict_with_unreadable_rows(run: Run, tmp_path: Path, name: str, content: bytes | None, words: str) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="needs the parquet extra")
    rows = tmp_path / name
    if content is not None:
        rows.write_bytes(content)
    assert words in suite(run, rows, tmp_path / "out.csv", 2)


def test_predict_with_rows_that_are_no_file(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for rows in (tmp_path, tmp_path / "pipe.csv", Path("/dev/zero")):
        assert "no such file" in run(
            "predict", "kv_cache", "--rows", str(rows), "--out", str(tmp_path / "out.csv")
        ).refused(2)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("out", ["", ".", "missing/out.csv", "rows.csv/out.csv", "x" * 300])
def test_predict_where_nothing_can_be_written(
    run: Run, tmp_path: Path, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = tmp_path / "rows.csv"
    rows.write_text(ROWS)
    assert "cannot be written" in (said := suite(run, rows, out, 2)) or "not a file" in said


def test_predict_never_replaces_a_device(run: Run, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text(ROWS)
    assert "not a file" in suite(run, rows, "/dev/null", 2)
    assert Path("/dev/null").is_char_device()


def test_a_row_that_cannot_be_answered_is_a_line_with_the_reason(run: Run, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "broken.json").write_text("{")
    rows = tmp_path / "rows.csv"
    rows.write_text(f"row_id,config_file\np00,nothing.json\np01,broken.json\np02,\np03,{'9' * 400}\n")
    out = tmp_path / "out.csv"
    ran = run("predict", "model_params", "--rows", str(rows), "--out", str(out))
    assert (ran.code, ran.out) == (0, "")
    assert "4 refused" in ran.err
    lines = out.read_text().splitlines()
    assert [line.partition(",")[0] for line in lines] == ["row_id", "p00", "p01", "p02", "p03"]
    assert "no such file" in lines[1]
    assert "not valid JSON" in lines[2]


@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize(("word", "code"), [("l4", 0), ("l4-of-nobody", 3)])
def test_closed_streams_lead_nowhere(closed: tuple[int, ...], word: str, code: int, tmp_path: Path) -> None:
    """Nothing is written to whatever file is opened next, and the exit code is what it would be."""
    said = [open(tmp_path / f"{n}", "w+b") for n in (1, 2)]  # noqa: SIM115 - closed below

    shut = " ".join(f"{number}>&-" for number in closed)
    command = ["sh", "-c", f'exec "$0" "$@" {shut}', sys.executable, "-m", "chipwise", "chips", "show", word]
    done = subprocess.run(command, stdout=said[0], stderr=said[1], cwd=tmp_path)
    for file in said:
        file.close()
    texts = {n: (tmp_path / f"{n}").read_text() for n in (1, 2)}
    assert done.returncode == code
    for number, text in texts.items():
        wanted = number not in closed and (number == 1) == (code == 0)
        assert bool(text) == wanted
        assert "Traceback" not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("kv_cache", "--without"), "no fitted numbers"),
        (("rounds", "--without"), "no fitted numbers"),
        (("local", "--without", "--out", "x.md"), "--out"),
    ],
)
def test_what_numbers_buy_is_told_of_suites_that_have_numbers(
    words: tuple[str, ...], said: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = run("validate", *words)
    assert found.code == 2
    assert said in found.err
    assert not list(tmp_path.iterdir())


NO_TEXT = b'timestamp,prompt_tokens,output_tokens\n1,"\xff\xfe",3\n'
DOORS = {
    "a model": ("fit", "bad.json"),
    "a module": ("trace", "bad.py:model"),
    "a chip": ("estimate", MODEL, "--chip", "bad.toml"),
    "parameters": ("estimate", MODEL, "--chip", "l4", "--parameters", "bad.toml"),
    "a log to simulate": ("simulate", MODEL, "--chip", "l4", "--log", "bad.csv"),
    "a log to plan for": ("plan", MODEL, "--log", "bad.csv"),
    "a day": ("plan", MODEL, "--rate", "1/s", "--day", "bad.csv"),
    "prices": ("offers", "update", "--from", "bad.csv"),
    "rows to predict": ("predict", "serving", "--rows", "bad.csv", "--out", "out.csv"),
    "rows to validate": ("validate", "serving", "--rows", "bad.csv"),
    "rows to calibrate": ("calibrate", "kernels", "--rows", "bad.csv", "--out", "out.toml"),
    "an answer made again": ("replay", "bad.json"),
    "answers that differ": ("diff", "bad.json", "bad.json"),
    "an answer to launch": ("launch", "bad.json", "--for", "vllm"),
    "an answer to simulate": ("simulate", "bad.json", "--requests", "3"),
    "an answer to watch": ("watch", "--saved", "bad.json", "--url", "http://127.0.0.1:1"),
    "results to import": ("evidence", "import", "bad.json"),
    "one's own prices": ("plan", MODEL, "--rate", "1/s"),
    "one's own prices, listed": ("offers", "list"),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_file_that_is_no_utf8(door: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each door that reads a file says which one is none of text; nothing is written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHIPWISE_DATA_DIR", ".")
    bad = "offers.csv" if door.startswith("one's own") else next(w for w in DOORS[door] if w[:3] == "bad")
    bad = bad.partition(":")[0]
    (tmp_path / bad).write_bytes(NO_TEXT)
    with use(Snapshot()):  # what was read before is not known
        assert bad in run(*DOORS[door]).refused(2)
    assert [p.name for p in tmp_path.iterdir()] == [bad]


def test_a_file_where_the_text_of_chips_is_expected(run: Run) -> None:
    said = run("plan", MODEL, "--own-chips", "mine.toml", "--host-memory", "64GB").refused(2)
    assert "--own-chips: 'mine.toml' is no TOML text" in said or "mine.toml is no TOML text" in said
    assert "--chips FILE.toml" in said
