"""Nothing that a plan says is run: hostile texts in every leaf, and the files really executed, with stubs for tools.

The stub `owned` leaves a mark; a payload that any shell expands or takes for a command calls it.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import textwrap
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any

import hcl2
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from chipwise.api.launching import launch, spec_of
from chipwise.api.requests.planning import EstimateRequest
from chipwise.api.requests.training import TrainRequest
from chipwise.api.saving import save
from chipwise.catalog.configs import bundled_configs
from chipwise.catalog.tools import get_tool
from chipwise.errors import ChipwiseError
from chipwise.report.launch.command import Command, Env, asked_for, here_document, terminator
from chipwise.report.launch.files import LaunchFile, write_files
from chipwise.report.launch.markup import Heredoc, hcl
from chipwise.report.launch.targets import TARGETS, launch_files
from chipwise.report.saved import Saved, write_saved
from report.launch.plans import PLANS, plan_for, served
from whole import some

PAYLOADS = (
    '"$(owned)"',
    "$(owned)",
    "`owned`",
    "'; owned; '",
    '"; owned; #',
    "x\nowned\n",
    "x\nEND\nowned\n",
    'x\nSTART\n}\nresource "null_resource" "pwn" {',
    '"${PROGRAM:?}$(owned)"',
    '${file("/etc/passwd")}$${x}%{ if true }',
    "& owned | owned > owned-file",
    "--trust-remote-code",
    "x\u2028owned\x1b[2J\x00",
)
WRITTEN = {
    *("trtllm.yaml", "axolotl.yml", "automodel.yml", "ds.json", "llm-foundry.yml", "levanter.yml", "primus.yaml"),
    *("olmo_core.py", "axlearn_plan.py", "neuron_plan.py", "embed.py", "verify.log"),
}  # what scripts write themselves
TOOLS = (
    "vllm",
    "python",
    "trtllm-serve",
    "mpirun",
    "llama-server",
    "torchrun",
    "tune",
    "pip",
    "neuronx",
    "composer",
    "bash",
    "mlx_lm.convert",
    "mlx_lm.server",
    "mflux-generate",
    "sglang",
    "python3",
    "ray",
    "sleep",
    "docker",
    "trtexec",
)
GIVEN = (
    "NODE_RANK",
    "HEAD_ADDRESS",
    "OUTPUT",
    "DATA_PATH",
    "WEIGHTS",
    "CHECKPOINTS",
    "HOSTS",
    "SKYPILOT_NODE_RANK",
    "GPU",
    "PORT",
)
HEADS = re.compile(r'(terraform|variable "image"|provider "\w+"|resource "\w+_instance" "chipwise") \{\}?')


class Shell:
    """A folder of stubs, and what ran in it."""

    def __init__(self, folder: Path) -> None:
        self.here, stubs = folder / "here", folder / "stubs"
        self.here.mkdir()
        stubs.mkdir()
        self.mark = folder / "ran"
        for name in (*TOOLS, "owned"):
            stub = stubs / name
            stub.write_text(f"#!/bin/sh\n: > '{self.mark}'\n" if name == "owned" else "#!/bin/sh\n")
            stub.chmod(stub.stat().st_mode | stat.S_IXUSR)
        for name in ("cat", "head", "tee"):
            (stubs / name).symlink_to(shutil.which(name) or name)
        self.bash = shutil.which("bash") or "bash"
        self.environment = dict.fromkeys(GIVEN, "1") | {
            "PATH": str(stubs),
            "PROGRAM": "vllm",
            **dict.fromkeys(("PROMPT", "TRAIN_FILES", "VAL_FILES"), "1"),
            "SKYPILOT_NODE_IPS": "10.0.0.1\n10.0.0.2",
            "JOB_COMPLETION_INDEX": "1",
        }
        self.seen: set[str] = set()

    def run(self, script: str) -> None:
        """Run a script that did not run before; fails where it is malformed, or anything but tools ran."""
        if script in self.seen:
            return
        self.seen.add(script)
        if script.startswith("#!/usr/bin/env python3"):
            # of a program of Python a payload may be text, never a name that is read
            names = {node.id for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Name)}
            assert "owned" not in names, script
            return
        done = subprocess.run(
            [self.bash, "-c", script], cwd=self.here, env=self.environment, capture_output=True, timeout=60
        )
        assert done.returncode == 0, (script, done.stderr)
        assert not self.mark.exists(), script
        assert {p.name for p in self.here.iterdir()} <= WRITTEN, script


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(tmp_path_factory.mktemp("shell"))


def scripts(file: LaunchFile) -> Iterator[str]:
    """What a shell is given of a file: all of it, blocks of YAML, or what machines of Terraform start with."""
    if file.script:
        yield file.text
    elif file.name == "main.tf":
        yield from started(file.text)
    elif file.name != "trtllm.yaml":
        lines = file.text.splitlines()
        for i, line in enumerate(lines):
            if line.endswith(" |"):
                depth = len(lines[i + 1]) - len(lines[i + 1].lstrip())
                ends = (j for j in range(i + 1, len(lines)) if not lines[j].startswith(" " * depth))
                yield textwrap.dedent("\n".join(lines[i + 1 : next(ends, len(lines))]))


def started(text: str) -> Iterator[str]:
    """The here documents of a Terraform file, read as Terraform reads them; outside there are only our own blocks, and
    nothing is expanded but what we wrote."""
    found = list(re.finditer(r"= <<-(START_*)\n(.*?)\n\1\n", text, re.DOTALL))
    for match in found:
        yield read_hcl(match[2])
        text = text.replace(match[0], "\n")
    for line in text.splitlines():
        assert line == "}" or line.startswith((" ", "#")) or not line or HEADS.fullmatch(line), line
        if not line.lstrip().startswith("#"):
            assert "owned" not in line or '"' in line
            read_hcl(line.replace("${count.index}", ""))


def read_hcl(text: str) -> str:
    """A template of Terraform without any expression but a quoted text; fails on any other."""

    def said(match: re.Match[str]) -> str:
        if match[0] in ("$${", "%%{"):
            return match[0][1:]
        assert match[1] is not None, text
        return match[1] + "{"

    return re.sub(r'\$\$\{|%%\{|\$\{"([$%]+)"\}\{|[$%]\{', said, text)


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Places of all texts of a plan."""
    if is_dataclass(value):
        for f in fields(value):
            yield from leaves(getattr(value, f.name), (*place, f.name))
    elif isinstance(value, tuple):
        for i, part in enumerate(value):
            yield from leaves(part, (*place, i))
    elif isinstance(value, str):
        yield place


def changed(value: Any, place: tuple[Any, ...], text: str) -> Any:
    """The value with another text at a place."""
    if not place:
        return text
    head, *rest = place
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{head: changed(getattr(value, head), tuple(rest), text)})
    return (*value[:head], changed(value[head], tuple(rest), text), *value[head + 1 :])


@pytest.mark.parametrize("target", TARGETS)
def test_no_text_of_a_plan_is_run(target: str, shell: Shell) -> None:
    """Every target and every text of every plan; a control character is refused, all others stand for themselves."""
    answered, before = 0, len(shell.seen)
    for name in PLANS:
        spec = plan_for(name, target)
        try:
            launch_files(spec, target)
        except ChipwiseError:
            continue
        for place in leaves(spec):
            for payload in PAYLOADS:
                try:
                    files = launch_files(changed(spec, place, payload), target)
                except ChipwiseError:
                    continue
                assert payload.isprintable()
                answered += 1
                for file in files:
                    for script in scripts(file):
                        shell.run(script)
    assert answered > 20
    # mlx starts mflux for pictures, sglang its server of them; the scripts of keda are those of kubernetes, a planner's
    # file has none
    known = ("mflux", "sglang-diffusion", "keda", "dynamo-planner")
    assert len(shell.seen) > before or target in known


def shape(node: Any) -> Any:
    """What a document consists of, without its texts and numbers."""
    if isinstance(node, dict):
        return {name: shape(part) for name, part in node.items()}
    return [shape(part) for part in node] if isinstance(node, list) else None


def parsed(file: LaunchFile) -> list[Any]:
    """A file as parsers of others read it."""
    if file.name.endswith(".tf"):
        return [hcl2.loads(file.text)]
    return list(yaml.safe_load_all(file.text)) if file.name.endswith((".yaml", ".yml")) else []


@pytest.mark.parametrize("target", ["terraform", "kubernetes", "skypilot", "trtllm"])
def test_no_text_adds_a_part_to_a_document(target: str) -> None:
    """YAML and Terraform, read by their own parsers, hold the same resources and keys whatever the plan says."""
    spec, taken = plan_for("dense", target), 0
    plain = [shape(document) for file in launch_files(spec, target) for document in parsed(file)]
    assert plain
    for place in leaves(spec):
        for payload in PAYLOADS:
            try:
                files = launch_files(changed(spec, place, payload), target)
            except ChipwiseError:
                continue
            found = [shape(document) for file in files for document in parsed(file)]
            if found != plain:  # another runtime or provider is another document, of our own names alone
                assert "owned" not in json.dumps(found), (place, payload)
                assert "pwn" not in json.dumps(found), (place, payload)
            taken += 1
    assert taken > 50


@pytest.mark.parametrize("target", ["vllm", "sglang", "trtllm", "dynamo", "llama.cpp", "skypilot", "kubernetes"])
@given(name=st.text(min_size=1, max_size=40))
def test_any_name_reaches_the_tool_as_it_is(target: str, name: str) -> None:
    """The shell's own reading of the command gives the name back, or the name is refused."""
    model = f"m/{name}"
    spec = replace(plan_for("dense", target), model=model)  # type: ignore[arg-type]
    if target == "llama.cpp":
        spec = replace(plan_for("local", target), model=model)  # type: ignore[arg-type]
    try:
        files = launch_files(spec, target)
    except ChipwiseError:
        assert not model.isprintable()
        return
    words = [w for f in files for s in scripts(f) for w in shlex.split(s, comments=True)]
    wanted = f"{name.rpartition('/')[2]}-Q4_K_M.gguf" if target == "llama.cpp" else model
    assert wanted in words


@given(st.text('$%{}"x\\ \n', max_size=30))
def test_terraform_expands_nothing_in_a_text(text: str) -> None:
    tool = replace(get_tool("terraform"), options={"b": ""})
    (line, *_) = hcl([("a", {"b": text})], tool).splitlines()[1:]
    assert json.loads(read_hcl(line.partition(" = ")[2])) == text
    whole = hcl([("a", {"b": Heredoc(text)})], tool)
    match = re.search(r"= <<-(START_*)\n(.*)\n\1\n\}\n$", whole, re.DOTALL)
    assert match is not None
    assert read_hcl(match[2]) == text


@given(st.lists(st.sampled_from(["END", "END_", " END", "x", "START"]), max_size=6))
def test_a_here_document_ends_where_its_text_ends(lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    assert terminator("END", text) not in {line.strip() for line in lines}
    first, *body, last, rest = here_document("a b", text).split("\n")
    assert first == f"cat > 'a b' <<'{last}'"
    assert ("".join(f"{line}\n" for line in body), rest) == (text, "")


def test_only_variables_are_expanded() -> None:
    command = Command.of("vllm", "vllm serve", '"$(x)"').option("--model", Env("NAME", "why", ":80"))
    assert str(command) == 'vllm serve \'"$(x)"\' \\\n  --model "${NAME:?why}:80"'
    assert asked_for(f"{command} '${{OTHER:?}}' 'a'\"'\"'${{THIRD:?}}'") == ("NAME",)
    for wrong in ({"name": "a b"}, {"name": "A", "needed": "}$(x)"}, {"name": "A", "then": '"'}):
        with pytest.raises(ValueError, match="not the name of a variable"):
            Env(**wrong)
    with pytest.raises(ValueError, match="not the name of a variable"):
        Env("A", times="1))$(owned)")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "--help"}, "begins like an option"),
        ({"model": "a\nb"}, "control character"),
        ({"title": "a\x00"}, "control character"),
        ({"tp": 0}, "tp: 0 is not between"),
        ({"replicas": 10**400}, "replicas: "),
        ({"rate_per_s": float("nan")}, "rate_per_s: nan"),
        ({"spread": (float("inf"), 0.0)}, "spread: inf"),
        ({"expected": ({},)}, "of another kind"),
    ],
)
def test_what_no_file_may_hold_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ChipwiseError, match=said):
        launch_files(served(**changes), "vllm")


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Saved]:
    folder = tmp_path_factory.mktemp("saved")
    asked = {
        "served": ("estimate", EstimateRequest(model="meta-llama/Llama-3.1-8B", chip="h100-sxm5-80gb")),
        "trained": (
            "train",
            TrainRequest(model="meta-llama/Llama-3.1-8B", chips="h100-sxm5-80gb", counts="8", tokens="1B"),
        ),
    }
    return {name: save(*ask, str(folder / name)).saved for name, ask in asked.items()}  # type: ignore[arg-type]


def places(node: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Places of all leaves of a document."""
    if isinstance(node, dict | list) and node:
        for key, part in node.items() if isinstance(node, dict) else enumerate(node):
            yield from places(part, (*place, key))
    else:
        yield place


def put(node: Any, place: tuple[Any, ...], value: Any) -> Any:
    """A document with another value at a place."""
    if not place:
        return value
    head, *rest = place
    other = dict(node) if isinstance(node, dict) else list(node)
    other[head] = put(node[head], tuple(rest), value)
    return other


@pytest.mark.parametrize("kind", ["served", "trained"])
def test_no_leaf_of_a_saved_file_is_run(
    kind: str, answers: dict[str, Saved], shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text, and a number or nothing, in leaves of question and answer: refused, or rendered and run."""
    saved, taken = answers[kind], 0
    seen: set[str] = set()  # most leaves reach no script: what they leave as it was is run once
    facts = saved.snapshot  # the same tables each time: read once
    monkeypatch.setattr(Saved, "snapshot", facts)
    targets = ("vllm", "terraform") if kind == "served" else ("megatron", "torchtitan", "skypilot")
    for part in ("report", "request"):
        document = json.loads(json.dumps(getattr(saved, part)))
        for place, other in zip(some([*places(document)], 3), cycle((-1, None)), strict=False):
            for value in ('"$(owned)"', other):
                try:
                    spec = spec_of(replace(saved, **{part: put(document, place, value)}))
                except ChipwiseError:
                    continue
                for target in targets:
                    try:
                        files = launch_files(spec, target)
                    except ChipwiseError:
                        continue
                    taken += 1
                    for file in files:
                        for script in scripts(file):
                            if script not in seen:
                                shell.run(script)
                            seen.add(script)
    assert taken > 20
    assert len(seen) > 5


def test_a_folder_with_a_hostile_name(answers: dict[str, Saved], shell: Shell, tmp_path: Path) -> None:
    """The name of a folder is the model's: it reaches the tool as it is."""
    folder = tmp_path / '"$(owned)"'
    folder.mkdir()
    keys = dict(bundled_configs()["meta-llama/Llama-3.1-8B"].data)
    (folder / "config.json").write_text(json.dumps(keys))
    file = str(tmp_path / "a.json")
    save("estimate", EstimateRequest(model=str(folder), chip="h100-sxm5-80gb"), file)
    files = launch(file, "vllm")
    assert all(f"'{folder}'" in f.text for f in files)
    for f in files:
        shell.run(f.text)


def test_offers_of_a_tampered_table(answers: dict[str, Saved], tmp_path: Path) -> None:
    saved = answers["served"]
    name = "catalog/data/offers.csv"
    table = saved.tables[name].decode().replace("p5.4xlarge", "${file(1)}").replace("p5.48xlarge", "${file(1)}")
    assert "${file(1)}" in table
    file = tmp_path / "a.json"
    write_saved(replace(saved, tables={**saved.tables, name: table.encode()}), file)
    text = launch(str(file), "terraform")[0].text
    assert '"$${file(1)}"' in text
    assert list(started(text))


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    folder, target = tmp_path / "out", tmp_path / "target"
    folder.mkdir()
    (folder / "verify.sh").symlink_to(target)
    files = (LaunchFile("serve.sh", "true\n", script=True), LaunchFile("verify.sh", "true\n", script=True))
    with pytest.raises(ChipwiseError, match=r"verify.sh is there already"):
        write_files(files, folder)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["out", "verify.sh"]
    with pytest.raises(ChipwiseError, match="not a folder"):
        write_files(files, "")
    for path in write_files(files, tmp_path / "new"):
        assert os.access(path, os.X_OK)
