"""Launch files use options that their tools' packages define, with values of their types; the packages are read."""

from __future__ import annotations

import json
import re
import shlex
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from chipwise.catalog.options import SOURCES, ToolOption, load_options, package_of, read_options, texts_of, written
from chipwise.catalog.snapshot import shipped_text
from chipwise.catalog.tools import load_tools
from chipwise.errors import ChipwiseError, UsageError
from chipwise.report.launch.command import Command
from chipwise.report.launch.spec import PipelineSpec
from chipwise.report.launch.targets import launch_files
from report.launch.plans import PLANS, plan_for

OUTSIDE = {
    # scripts of a repository, which no package holds: run_clm.py, run_lora_clm.py, gaudi_spawn.py
    "deepspeed": set("model_name_or_path config_name tokenizer_name dataset_name block_size max_seq_length".split()),
    "optimum-habana": set(
        "world_size use_deepspeed use_mpi hostfile model_name_or_path config_name tokenizer_name dataset_name "
        "block_size max_seq_length dataset_concatenation lora_rank lora_alpha lora_target_modules".split()
    ),
    # composer's own, before the program
    "llm-foundry": set("nproc world_size node_rank master_addr master_port".split()),
    "levanter": {"config_path"},  # draccus: the file
}
CHOSEN = {"_target_", "type"}  # which class a part of a document is of
OWN = ("mlx", "sglang")  # targets that start another tool's programs for pictures
HERE = re.compile(r"^cat > (\S+) <<'(END_*)'\n(.*?)^\2$", re.MULTILINE | re.DOTALL)
CHECK = re.compile(r"^python - .*<<'(CHECK_*)'\n.*?^\1$", re.MULTILINE | re.DOTALL)

Used = tuple[str, object]


def used(target: str, text: str) -> Iterator[Used]:
    """Names and values that a script gives a tool, in commands and in the documents that it writes."""
    for file, _, body in HERE.findall(text):
        if file.endswith((".yml", ".json")):
            yield from placed("", yaml.safe_load(body) if file.endswith(".yml") else json.loads(body), target)
    plain = CHECK.sub("", HERE.sub("", text)).replace("\\\n", " ")
    for line in plain.splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0] not in {"vllm", "export", "ray", "until", "exec"} - {target}:
            yield from given(words, target)


def given(words: list[str], target: str) -> Iterator[Used]:
    """Options of a command with the words that follow them, and what is set by `=`."""
    known = load_options()[target].options
    starters = {*load_tools()["torchrun"].options, *(f"--{name}" for name in OUTSIDE.get(target, ()))}
    words = words[: words.index("2>&1")] if "2>&1" in words else words
    for at, word in enumerate(words):
        name, is_set, value = word.removesuffix(")").partition("=")
        if re.fullmatch(r"[a-z][\w.]*", name) and is_set:
            yield name, value
        elif word.startswith("--") and word not in starters - set(known):
            following = words[at + 1] if at + 1 < len(words) else "--"
            own = not re.match(r"--|[a-z-]+:[a-z]+$|[a-z_.]+=", following)
            yield word.removesuffix(")"), following if own else None


def placed(path: str, value: object, target: str) -> Iterator[Used]:
    """Places of a document whose keys the package defines, and what stands there."""
    if isinstance(value, list):
        for each in value:
            yield from placed(path, each, target)
    if isinstance(value, dict):
        parts = {name.rpartition(".")[0] for name in load_options()[target].options if name[:1] != "-"}
        for name, inner in value.items():
            place = f"{path}.{name}" if path else name
            if path in parts and name not in CHOSEN:
                yield place, inner
            yield from placed(place, inner, target)


def texts(target: str) -> Iterator[tuple[str, str]]:
    """The scripts of every plan that a tool starts; programs are none."""
    for name in PLANS:
        spec = plan_for(name, target)
        try:
            files = launch_files(spec, target)
        except ChipwiseError:
            continue
        if target in OWN and isinstance(spec, PipelineSpec):
            continue  # files of its other tool, which are checked as such
        yield from ((f"{name}/{file.name}", file.text) for file in files if not file.name.endswith(".py"))


@pytest.mark.parametrize("target", load_options())
def test_files_use_options_that_the_package_defines(target: str) -> None:
    known, found = load_options()[target].options, 0
    for name, text in texts(target):
        for option, value in used(target, text):
            found += 1
            assert option in known, f"{target} {name}: {option} is no option of {load_options()[target].packages}"
            assert "$" in str(value) or known[option].takes(value), (
                f"{target} {name}: {option} {value!r}, of type {known[option].type}"
            )
    assert found > 5


@pytest.mark.parametrize("target", load_options())
def test_documented_options_are_of_the_package(target: str) -> None:
    """Those too that no kept plan uses: each is a name that the package defines, or a place or a program beside it."""
    known = load_options()[target].options
    for option in load_tools()[target].options:
        if option.startswith("--") and option[2:] not in OUTSIDE.get(target, ()):
            assert option in known, option


def test_what_a_package_lacks_or_takes_otherwise_is_found() -> None:
    script = "torchrun --nnodes 1 -m trl.scripts.sft --learning_rat 1e-4 --max_steps many --bf16 --packing true\n"
    known = load_options()["trl"].options
    said = dict(used("trl", script))
    assert said == {"--learning_rat": "1e-4", "--max_steps": "many", "--bf16": None, "--packing": "true"}
    assert [name for name in said if name not in known] == ["--learning_rat"]
    assert [name for name in said if name in known and not known[name].takes(said[name])] == ["--max_steps"]


SOURCE = """
from typing import Annotated, ClassVar, Literal, Optional
class Base:
    steps: int = 10
class Args(Base):
    kind: ClassVar[str] = "x"
    bf16: bool | None = field(default=None, metadata={"help": "x"})
    names: Optional[list[str]] = field(default_factory=list)
    how: Literal["a", "b"] = "a"
    fused: bool = True
    grad: bool = field(default=False, metadata={"argparse_meta": {"arg_names": ["--grad-x"]}})
    other: "Other" = None
    class Inner:
        rate: Annotated[float, 1] = 1e-3
    def build(self, a, b: int = 3, *, c: str | None = None): ...
parser.add_argument(f"--{prefix}deep", type=str)
parser.add_argument("--tp-size", "--tp", type=int, default=1, help="x")
parser.add_argument("--on", action="store_true")
parser.add_argument("--how", choices=["x", "y"])
parser.add_argument("--maybe", nargs="?", type=str)
"""
YAML = """
defaults:
  - engine: dp
top: 1 # words
part:
  rate: 1e-4
  'n': null
  on: True
  words: abc
"""


def read(what: str, prefix: str = "") -> dict[str, tuple[str, str]]:
    packages = {"pack": {"pack/a.py": SOURCE, "pack/b.yaml": YAML}}
    path = "pack/b.yaml" if what == "keys" else "pack/*.py"
    return {o.name: (o.type, o.default) for o in read_options({prefix: [f"pack {path} {what}"]}, packages)}


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        (
            "Args",
            {
                "bf16": ("bool", "None"),
                "names": ("list", "list()"),
                "how": ('"a"|"b"', "'a'"),
                "fused": ("bool", "True"),
                "grad": ("bool", "False"),
                "other": ("any", "None"),
                "steps": ("int", "10"),
            },
        ),
        ("Args.Inner", {"rate": ("float", "0.001")}),
        ("def:Args.build", {"self": ("any", ""), "a": ("any", ""), "b": ("int", "3"), "c": ("str", "None")}),
        (
            "add_argument",
            {
                "--deep": ("str", ""),
                "--tp-size": ("int", "1"),
                "--tp": ("int", "1"),
                "--on": ("flag", ""),
                "--how": ('"x"|"y"', ""),
                "--maybe": ("str|flag", ""),
            },
        ),
        (
            "keys",
            {
                "defaults": ("any", ""),
                "engine": ("str", "dp"),
                "top": ("int|float", "1"),
                "part": ("any", ""),
                "part.rate": ("float", "1e-4"),
                "part.n": ("any", "null"),
                "part.on": ("bool", "True"),
                "part.words": ("str", "abc"),
            },
        ),
    ],
)
def test_options_are_read_from_source(what: str, expected: dict[str, tuple[str, str]]) -> None:
    assert read(what) == expected


def test_arguments_made_of_fields() -> None:
    made = read("factory:Args")
    assert {"--no-fused", "--disable-fused", "--grad-x", "--steps", "--bf16"} <= set(made)
    assert "--fused" not in made
    assert made["--grad-x"][0] == "flag"


def test_a_row_that_finds_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="no options of Gone"):
        read("Gone")


@pytest.mark.parametrize(
    ("kind", "value", "so"),
    [
        ("int", "3", True),
        ("int", "3.5", False),
        ("float", 2e-5, True),
        ("float", 3, True),
        ("bool", None, True),
        ("bool", "yes", False),
        ("flag", None, True),
        ("flag", "true", False),
        ('"a"|"b"', "b", True),
        ('"a"|"b"', "c", False),
        ("str", None, False),
        ("list", ["x"], True),
        ("list", {}, False),
        ("any", 3, True),
    ],
)
def test_values_of_a_type(kind: str, value: object, so: bool) -> None:
    assert ToolOption("x", kind).takes(value) is so


def test_archives_are_read_without_being_run(tmp_path: Path) -> None:
    wheel, archive = tmp_path / "my_pack-1.2.3-py3-none-any.whl", tmp_path / "my-pack-1.2.3.tar.gz"
    with zipfile.ZipFile(wheel, "w") as out:
        out.writestr("pack/a.py", "raise SystemExit\nclass A:\n    x: int = 1\n")
        out.writestr("pack/data.bin", "x")
    (tmp_path / "a.py").write_text("class A:\n    x: int = 1\n")
    with tarfile.open(archive, "w:gz") as out_:
        out_.add(tmp_path / "a.py", "my-pack-1.2.3/pack/a.py")
    assert package_of(wheel) == package_of(archive) == ("my-pack", "1.2.3")
    assert set(texts_of(wheel)) == {"pack/a.py"}
    for texts in (texts_of(wheel), texts_of(archive)):
        assert read_options({"--": ["my-pack pack/a.py A"]}, {"my-pack": texts})[0] == ToolOption("--x", "int", "1")
    assert package_of(tmp_path / "a.py") == ("a.py", "")


def test_arguments_made_of_tables_of_classes_and_by_functions_around_argparse() -> None:
    """As vLLM and Dynamo make them: the type is that of the field, and a name may stand in a keyword."""
    made = """
kwargs = get_kwargs(Cache)
group.add_argument("--block-size", **kwargs["block_size"])
group.add_argument("--prefix-caching", "-p", **kwargs["prefix_caching"])
group.add_argument(f"--{name}", **kwargs["block_size"])
add_argument(group, flag_name="--http-port", default=8000, arg_type=int)
add_negatable_bool_argument(group, flag_name="--headless", default=False)
"""
    texts = {
        "a/args.py": made,
        "a/config.py": "class Cache:\n    block_size: int = 16\n    prefix_caching: bool = True\n",
    }
    found = read_options({"": ["a a/args.py add_argument", "a a/config.py bases"]}, {"a": texts})
    assert found == [
        ToolOption("--block-size", "int", "16"),
        ToolOption("--headless", "flag", "False"),
        ToolOption("--http-port", "int", "8000"),
        ToolOption("--prefix-caching", "flag", "True"),
        ToolOption("-p", "flag", "True"),
    ]
    with pytest.raises(UsageError, match="no options of bases"):
        read_options({"": ["a a/moved.py bases"]}, {"a": texts})


def test_a_part_is_written_anew_and_the_others_stay(tmp_path: Path) -> None:
    (tmp_path / "parsers.py").write_text('p.add_argument("--steps", type=int)\n')
    wheel = tmp_path / "mflux-9.9-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as out:
        out.write(tmp_path / "parsers.py", "mflux/cli/parser/parsers.py")
    text = written("mflux", [wheel], "2026-12-01")
    assert "# mflux\tmflux 9.9\t2026-12-01\n--steps\tint\n" in text
    assert text.count("\n# ") == len(load_options()) - 1
    with pytest.raises(ChipwiseError, match="mflux"):
        written("mflux", [], "2026-12-01")


def test_every_table_has_its_sources() -> None:
    assert set(load_options()) <= set(tomllib.loads(shipped_text(SOURCES)))
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\d", o.date) and o.packages for o in load_options().values())


def test_a_version_is_that_of_the_package() -> None:
    """What launch files say they use options of is what was read."""
    for target, table in load_options().items():
        versions = " ".join(name.partition(" ")[2] for name in table.packages)
        said = load_tools()[target].version.removeprefix("core ")
        assert any(v == said or v.startswith(f"{said}.") for v in versions.split()), (target, said, versions)


def test_commands_are_still_checked_when_they_are_written() -> None:
    with pytest.raises(KeyError):
        Command.of("trl", "trl sft").option("--learning_rat", 1)
