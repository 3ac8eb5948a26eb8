"""What any face wrote launches, replays and differs; figures of a record are never trusted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import chipwise as cw
from chipwise.api.requests.doors import read_request
from chipwise.api.requests.verbs import question
from chipwise.errors import ChipwiseError, UsageError
from command_line import Run

MODEL = "meta-llama/Llama-3.1-8B"
CONFIG = {
    "model_type": "llama",
    "hidden_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "intermediate_size": 4096,
    "vocab_size": 32000,
    "torch_dtype": "bfloat16",
}


@pytest.fixture(scope="module")
def one() -> dict[str, Any]:
    """A record as HTTP and the page write it."""
    from chipwise.api.requests.written import Origin
    from chipwise.report.table import to_json

    asked = question("estimate", {"model": MODEL, "chip": "l4", "concurrency": 4})
    document: dict[str, Any] = json.loads(to_json(asked.run(), Origin("estimate", asked).written()))
    return document


def _script(saved: Any) -> str:
    report = read_request("launch", {"saved": saved, "for": "vllm"}).run()
    return str(next(f.text for f in report.files if f.name == "serve.sh"))


def test_the_json_of_a_face_launches_replays_and_differs(one: dict[str, Any], run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps(one))
    shown = run("launch", str(file), "--for", "vllm").out
    assert f"vllm serve {MODEL}" in shown
    assert _script(one) in shown
    assert _script(json.dumps(one)) == _script(one)
    assert run("replay", str(file)).code == 0
    assert run("diff", str(file), str(file)).code == 0
    written = run("estimate", MODEL, "--chip", "l4", "--concurrency", "4", "--format", "json")
    assert _script(written.out) == _script(one)


def test_what_save_wrote_launches_at_every_door(run: Run, tmp_path: Path, one: dict[str, Any]) -> None:
    file = str(tmp_path / "s.json")
    assert run("estimate", MODEL, "--chip", "l4", "--concurrency", "4", "--save", file).code == 0
    assert _script(Path(file).read_text()) == _script(one)


def test_figures_of_a_record_are_not_trusted(one: dict[str, Any], run: Run, tmp_path: Path) -> None:
    forged = json.loads(json.dumps(one))
    forged["plans"][0]["chip"] = "h100; reboot"
    forged["plans"][0]["runtime"] = "$(reboot)"
    assert _script(forged) == _script(one)
    file = str(tmp_path / "s.json")
    run("estimate", MODEL, "--chip", "l4", "--tp", "2", "--save", file)
    document = json.loads(Path(file).read_text())
    document["report"]["plans"][0]["layout"]["tp"] = 1
    Path(file).write_text(json.dumps(document))
    assert "was changed" in run("launch", file, "--for", "vllm").refused(2)


def test_a_record_is_compared_by_its_own_figures(one: dict[str, Any], run: Run, tmp_path: Path) -> None:
    """A doctored figure of an exported answer shows; the same at every door."""
    forged = json.loads(json.dumps(one))
    forged["plans"][0]["ttft_s"]["mid"] *= 2.0
    file, other = tmp_path / "a.json", tmp_path / "b.json"
    file.write_text(json.dumps(forged))
    other.write_text(json.dumps(one))
    again = run("replay", str(file))
    assert again.code == 4
    assert "1 figure differs" in again.out
    replayed = read_request("replay", {"saved": forged}).run()
    assert [c.figure for c in replayed.changes] == ["ttft_s.mid"]
    assert read_request("replay", {"saved": one}).run().identical
    found = read_request("diff", {"before": one, "after": forged}).run()
    assert [c.cause.partition(" (")[0] for c in found.causes] == ["what is installed"]
    assert "-> what was" in run("diff", str(other), str(file)).out


def test_only_answers_are_compared(one: dict[str, Any]) -> None:
    question_alone = {"question": one["question"]}
    with pytest.raises(UsageError, match="without its answer"):
        read_request("replay", {"saved": question_alone}).run()
    assert not read_request("diff", {"before": question_alone, "after": one}).run().changes
    nested = {"question": {"verb": "replay", "request": {"saved": json.dumps(one)}}, "verb": "plan"}
    with pytest.raises(UsageError, match="about another answer"):
        read_request("replay", {"saved": nested}).run()
    for wrong in ({**one, "plans": 3}, {**one, "plans": [{"chip": 3}]}):
        with pytest.raises(UsageError, match="cannot use"):
            read_request("replay", {"saved": wrong}).run()


def test_ones_own_configuration_is_in_the_record() -> None:
    report = cw.estimate(CONFIG, chip="l4", concurrency=2)
    asked = question("estimate", {"model": CONFIG, "chip": "l4", "concurrency": 2})
    from chipwise.api.requests.written import Origin

    assert read_request("launch", {"saved": {"question": Origin("estimate", asked).written()}, "for": "vllm"}).run()
    assert report.plans[0].chip == "l4"


@pytest.mark.parametrize(
    "saved",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"question": 3}',
        '{"question": {"verb": "plan"}}',
        '{"question": {"verb": "rm", "request": {}}}',
        '{"question": {"verb": "launch", "request": {"saved": "{}", "for": "vllm"}}}',
        '{"question": {"verb": "estimate", "request": {"model": "/etc/passwd", "chip": "l4"}}}',
        '{"question": {"verb": "estimate", "request": {"model": "Qwen/Qwen3-8B", "chip": "own.toml"}}}',
        '{"question": {"verb": "plan", "request": {"model": "Qwen/Qwen3-8B", "parameters": "/etc/passwd"}}}',
        '{"question": {"verb": "chips", "request": {}}}',
        '{"format": "chipwise-saved", "tables": "AAAA", "verb": "plan", "request": {"model": "/etc/passwd"}}',
        "[" * 100_000,
    ],
)
def test_what_is_no_record_is_refused_and_no_file_is_opened(saved: str) -> None:
    with pytest.raises(ChipwiseError):
        read_request("launch", {"saved": saved, "for": "vllm"}).run()
    with pytest.raises(UsageError, match="are no record"):
        read_request("launch", {"saved": "x" * 5_000_000, "for": "vllm"})
