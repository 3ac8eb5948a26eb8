"""The GitHub Action: what it says of a changed configuration, and that nothing of a checkout is run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}
SERVING = 'verb = "plan"\n[request]\nmodel = "config.json"\nchips = "l4,l40s"\nrate = "2/s"\ntpot = "80ms"\n'


def git(folder: Path, *arguments: str) -> str:
    """What git says in a folder."""
    own = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", *own, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a question about its own configuration."""
    folder = tmp_path / "repository"
    (folder / "chat").mkdir(parents=True)
    git(folder, "init", "--quiet")
    (folder / "chat" / "config.json").write_text(json.dumps(CONFIG))
    (folder / "chat" / "serving.toml").write_text(SERVING)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "one")
    return folder


def compared(repository: Path, questions: str = "chat/*.toml", code: int = 0) -> tuple[str, str, str]:
    """The comment, what was set for later steps, and stderr."""
    out, told = repository.parent / "out.md", repository.parent / "told"
    told.write_text("")
    done = subprocess.run(
        [sys.executable, str(ROOT / "action" / "compare.py"), str(out)],
        cwd=repository,
        env=os.environ | {"QUESTIONS": questions, "BASE": "HEAD", "GITHUB_OUTPUT": str(told)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert git(repository, "worktree", "list").count("\n") == 1, "no checkout is left"
    return out.read_text() if out.exists() else "", told.read_text(), done.stderr


def row(text: str, name: str) -> list[str]:
    """The cells of the line of a table."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {name} "))
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


def test_nothing_changed(repository: Path) -> None:
    text, told, _ = compared(repository)
    assert "Nothing changes." in text
    assert told == "changed=false\n"


def test_a_larger_model(repository: Path) -> None:
    (repository / "chat" / "config.json").write_text(json.dumps(CONFIG | {"num_hidden_layers": 48}))
    text, told, _ = compared(repository)
    assert told == "changed=true\n"
    assert "### `chat/serving.toml`" in text
    before, after = row(text, "weights")
    assert before != after
    assert row(text, "$/h")[0] != "-"
    assert "your files" in text, "the cause is named"
    assert "config.json: num_hidden_layers: 32 -> 48" in text


def test_a_tighter_target_and_a_question_that_is_new(repository: Path) -> None:
    (repository / "chat" / "serving.toml").write_text(SERVING.replace("80ms", "1us"))
    (repository / "chat" / "other.toml").write_text(SERVING)
    text, told, _ = compared(repository)
    assert told == "changed=true\n"
    assert row(text.partition("serving.toml")[0], "answer") == ["there is no such file", "-"]
    assert row(text.partition("serving.toml")[2], "answer")[0] == "-"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ('verb = "rm"\n[request]\n', "no question"),
        ("not TOML", "TOML with verb"),
        ('[request]\nmodel = "own.py:build"\n', "code is not run here"),
        ('[request]\nmodel = "config.json"\nrate = "fast"\n', "rate"),
        ("x = 1\n[request]\n", "no question"),
    ],
)
def test_what_is_no_question(repository: Path, said: str, words: str) -> None:
    (repository / "chat" / "own.py").write_text("open('ran', 'w')\n")
    (repository / "chat" / "serving.toml").write_text(said)
    text, told, _ = compared(repository)
    assert words in row(text, "answer")[1]
    assert told == "changed=true\n"
    assert not list(repository.rglob("ran"))


@pytest.mark.parametrize("questions", ["", "../*.toml", "/etc/passwd"])
def test_files_outside_are_none(repository: Path, questions: str) -> None:
    _, told, err = compared(repository, questions, code=1)
    assert told == ""
    assert err.startswith("chipwise: ")


def test_the_action_runs_no_text_of_others() -> None:
    """Inputs reach its scripts as variables alone; every step of a shell says which."""
    action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    for step in action["runs"]["steps"]:
        if "run" in step:
            assert "${{" not in step["run"]
            assert step["shell"] == "bash"
            assert subprocess.run(["bash", "-n"], input=step["run"], text=True).returncode == 0
    asked = {name for name in action["inputs"] if f"inputs.{name}" in json.dumps(action["runs"])}
    assert asked == set(action["inputs"])
