"""The GitHub Action: what it says of a changed configuration, and that nothing of a checkout is run."""

from __future__ import annotations

import importlib.util
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


def test_a_question_that_is_no_longer_answered_is_said_first(repository: Path) -> None:
    file = repository / "chat" / "serving.toml"
    before = 'verb = "estimate"\n[request]\nmodel = "config.json"\nchip = "l4"\ntp = 2\nrate = "0.5/s"\n'
    file.write_text(before)
    git(repository, "commit", "--quiet", "-am", "two")
    file.write_text(before.replace("tp = 2", "tp = 1").replace("0.5/s", "50/s"))
    text, _, _ = compared(repository)
    after_heading = text.partition("### `chat/serving.toml`")[2].strip()
    assert after_heading.startswith("**No longer answered: ")
    assert "are sustained, 50 were asked" in after_heading.splitlines()[0]
    assert row(text, "fits 2x l4")[1] == "-", "memory of the layout that is asked for"
    assert row(text, "fits 1x l4")[0] == "-"


def test_targets_and_the_most_load_are_compared(repository: Path) -> None:
    config = repository / "chat" / "config.json"
    config.write_text(json.dumps(CONFIG | {"num_hidden_layers": 48}))
    text, _, _ = compared(repository)
    before, after, change = row(text, "requests/s at most")
    assert float(before) > 2
    assert before != after
    assert change.endswith("%")
    assert row(text, "targets met with")[0].endswith("%")
    assert " whole " not in text


def git(folder: Path, *arguments: str) -> str:
    """What git says in a folder."""
    own = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *own, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


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
    before, after, change = row(text, "weights")
    assert before != after
    assert change.startswith("+")
    assert row(text, "cache per token")[2] == "+50.0%"
    assert row(text, "$/h")[0] != "-"
    assert "your files" in text, "the cause is named"
    assert "config.json: num_hidden_layers: 32 -> 48" in text


def test_a_tighter_target_and_a_question_that_is_new(repository: Path) -> None:
    (repository / "chat" / "serving.toml").write_text(SERVING.replace("80ms", "1us"))
    (repository / "chat" / "other.toml").write_text(SERVING)
    text, told, _ = compared(repository)
    assert told == "changed=true\n"
    assert row(text.partition("serving.toml")[0], "answer")[:2] == ["there is no such file", "-"]
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


GH = """#!{python}
import json, os, re, sys
words, file = sys.argv[2:], os.environ["COMMENTS"]
kept = json.load(open(file))
if "--jq" in words:
    print("\\n".join(json.dumps(c) for c in kept))
else:
    body = open(words[-1].removeprefix("body=@")).read()
    if "PATCH" in words:
        number = int(words[words.index("PATCH") + 1].rpartition("/")[2])
        next(c for c in kept if c["id"] == number)["body"] = body
    else:
        kept.append({{"id": len(kept) + 1, "kind": "Bot", "body": body}})
    json.dump(kept, open(file, "w"))
"""


def steps(repository: Path, temp: Path) -> list[dict[str, str]]:
    """The comments of a pull request after the last steps of the action, run as GitHub runs them; its `gh` is one that
    keeps comments in a file."""
    (temp / "chipwise" / "bin").mkdir(parents=True, exist_ok=True)
    python = temp / "chipwise" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (temp / "gh").write_text(GH.format(python=sys.executable))
    for program in (python, temp / "gh"):
        program.chmod(0o755)
    outputs = temp / "outputs"
    outputs.write_text("")
    env = os.environ | {
        "RUNNER_TEMP": str(temp), "GITHUB_ACTION_PATH": str(ROOT), "GITHUB_OUTPUT": str(outputs),
        "GITHUB_STEP_SUMMARY": str(temp / "summary.md"), "QUESTIONS": "chat/*.toml", "BASE": "HEAD",
        "REPOSITORY": "own/repository", "NUMBER": "7", "GH_TOKEN": "none", "COMMENTS": str(temp / "comments.json"),
        "PATH": f"{temp}:{os.environ['PATH']}",
    }  # fmt: skip
    action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    for step in action["runs"]["steps"]:
        if step.get("name") in ("Compare", "Comment"):
            # what a file of the project imports is that of this checkout
            text = step["run"].replace('python" -I', 'python"')
            env |= {"CHANGED": outputs.read_text().partition("changed=")[2].strip()}
            done = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", text], cwd=repository, env=env, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
            assert "::warning::" not in done.stdout
    found: list[dict[str, str]] = json.loads((temp / "comments.json").read_text())
    return found


def test_only_its_own_comment_is_edited_and_says_when_nothing_changes_any_more(
    repository: Path, tmp_path: Path
) -> None:
    temp = tmp_path / "temp"
    temp.mkdir()
    others = [{"id": 1, "kind": "Bot", "body": "Coverage: 97 %"}, {"id": 2, "kind": "User", "body": "<!-- chipwise "}]
    (temp / "comments.json").write_text(json.dumps(others))
    assert steps(repository, temp) == others, "no comment where nothing changes"
    config = repository / "chat" / "config.json"
    config.write_text(json.dumps(CONFIG | {"num_hidden_layers": 48}))
    first = steps(repository, temp)
    assert first[:2] == others
    assert len(first) == 3
    assert first[2]["body"].startswith("<!-- chipwise ")
    assert "| weights " in first[2]["body"]
    config.write_text(json.dumps(CONFIG | {"num_hidden_layers": 40}))
    second = steps(repository, temp)
    assert second[:2] == others
    assert len(second) == 3
    assert second[2]["body"] != first[2]["body"]
    config.write_text(json.dumps(CONFIG))
    third = steps(repository, temp)
    assert third[:2] == others
    assert len(third) == 3
    assert "No change any more" in third[2]["body"]


def test_another_verb_is_another_question(repository: Path) -> None:
    """Two verbs have no answers to compare one by one: the table says that it is another, and what both say."""
    asked = SERVING.replace('"plan"', '"compare"')
    (repository / "chat" / "serving.toml").write_text(asked)
    text, told, _ = compared(repository)
    assert told == "changed=true\n"
    assert row(text, "question") == ["plan", "compare", "changed"]
    before, after, change = row(text, "first plan")
    assert before == after
    assert "l4" in before
    assert change == ""
    assert "What did it" not in text


def test_a_network_without_tokens(repository: Path) -> None:
    """Its plans have other figures than those of a language model, and they are compared too."""
    question = 'verb = "plan"\n[request]\nmodel = "wan2.2"\nrate = "10/h"\nchips = "h100"\n'
    (repository / "chat" / "video.toml").write_text(question)
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "two")
    text, told, _ = compared(repository)
    assert told == "changed=false\n"
    assert text.count("Nothing changes.") == 2
    (repository / "chat" / "video.toml").write_text(question.replace("h100", "h200"))
    text, told, _ = compared(repository, "chat/video.toml")
    assert told == "changed=true\n"
    before, after, change = row(text, "first plan")
    assert "x h100" in before
    assert "x h200" in after
    assert change == "changed"
    for name in ("time", "samples/s", "$/h", "$/1,000"):
        before, after, change = row(text, name)
        assert before != after
        assert change.endswith("%")
    assert " of 85.0 GB" in row(text, "fits 1x h100-sxm5-80gb")[0]
    assert row(text, "parameters")[2] == ""
    assert "What did it" in text


def test_a_file_that_cannot_be_compared_costs_only_itself(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record of a kind that is not known says so under its own name; the others are compared."""
    spec = importlib.util.spec_from_file_location("compare", ROOT / "action" / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "compare", module)
    spec.loader.exec_module(module)
    (repository / "chat" / "config.json").write_text(json.dumps(CONFIG | {"num_hidden_layers": 48}))
    (repository / "chat" / "odd.toml").write_text(SERVING)
    known = module.figures

    def figures(answer: Path | None, fits: Path | None, why: str) -> object:
        if why == "there is no such file":
            raise KeyError("layout")
        return known(answer, fits, why)

    monkeypatch.setattr(module, "figures", figures)
    out = repository.parent / "out.md"
    for name, value in {"QUESTIONS": "chat/*.toml", "BASE": "HEAD"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("GITHUB_OUTPUT", raising=False)
    monkeypatch.setattr(sys, "argv", ["compare.py", str(out)])
    monkeypatch.chdir(repository)
    module.main()
    odd, _, serving = out.read_text().partition("### `chat/serving.toml`")
    assert "### `chat/odd.toml`" in odd
    assert "Cannot be compared: an answer of another kind: KeyError('layout')" in odd
    assert row(serving, "cache per token")[2] == "+50.0%"


def test_only_what_changed_is_named(repository: Path) -> None:
    (repository / "chat" / "config.json").write_text(json.dumps(CONFIG | {"num_key_value_heads": 32}))
    text, _, _ = compared(repository)
    assert "num_key_value_heads: 8 -> 32" in text
    assert "model of cost" not in text
    assert "is gone" not in text.partition("What did it")[2].partition("| of |")[0]
