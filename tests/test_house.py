"""The rules of the house: what is exported, what an import loads, how long a file is, what the wheel holds."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from types import ModuleType

import pytest

import chipwise
from chipwise.calibrate.fit_training import training_effects
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import load_chips
from chipwise.catalog.runtime_spec import Runtime
from chipwise.catalog.software import all_software

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src" / "chipwise"
SOURCES = sorted(SRC.rglob("*.py"))
ROOMS = sorted(p.name for p in SRC.iterdir() if (p / "__init__.py").exists())
HEAVY = {"numpy", "pydantic", "pyarrow", "asyncio", "rich", "cyclopts", "chipwise.api", "chipwise.catalog.chips"}
TOOLS = {"pydantic", "pyarrow", "asyncio", "multiprocessing", "ssl", "http.client", "matplotlib", "torch"}

MODULES = ["chipwise", *(m.name for m in pkgutil.walk_packages(chipwise.__path__, "chipwise."))]
MODULES.remove("chipwise.__main__")


@pytest.fixture(params=MODULES)
def module(request: pytest.FixtureRequest) -> ModuleType:
    return importlib.import_module(str(request.param))


def defined(path: Path) -> set[str]:
    """Functions and classes that a file defines."""
    tree = ast.parse(path.read_text("utf-8"))
    return {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}


def test_what_is_exported_exists_once(module: ModuleType) -> None:
    names = list(getattr(module, "__all__", []))
    assert [n for n in names if not hasattr(module, n)] == []
    assert len(set(names)) == len(names)
    assert not [n for n in names if n.startswith("_") and n != "__version__"]


def test_values_are_made_by_the_house() -> None:
    """Classes of the standard library take half of the time of imports; neither kind inherits the other."""
    theirs = re.compile(r"^from dataclasses import .*\bdataclass\b|\bdataclasses\.dataclass\(", re.MULTILINE)
    assert [p for p in SOURCES if p != SRC / "values.py" and theirs.search(p.read_text("utf-8"))] == []


def test_only_packages_say_what_they_export(module: ModuleType) -> None:
    """In a file a name without an underscore is there for others: a list of them would say it a second time."""
    assert hasattr(module, "__path__") or not hasattr(module, "__all__")


def test_every_module_and_every_name_for_others_is_documented(module: ModuleType) -> None:
    assert module.__doc__
    assert module.__doc__.strip(". \n"), "a docstring that says nothing"
    assert module.__file__ is not None
    public = {name for name in defined(Path(module.__file__)) if not name.startswith("_")}
    for name in public | set(getattr(module, "__all__", [])):
        value = getattr(module, name)
        if callable(value) and getattr(value, "__module__", "").startswith("chipwise"):
            assert value.__doc__, name


def test_rooms_export_no_more_than_they_use(module: ModuleType) -> None:
    """What a package exports is defined in that package."""
    for name in getattr(module, "__all__", []):
        home = getattr(getattr(module, name), "__module__", None)
        if isinstance(home, str) and home.startswith("chipwise") and hasattr(module, "__path__"):
            assert home.startswith(module.__name__), f"{name} comes from {home}"


def tracked() -> list[Path]:
    folders = [ROOT / name for name in ("src", "tests", "bench", "docs", "examples")]
    kinds = {".py", ".toml", ".md", ".csv", ".html", ".js", ".css", ".json", ".yml", ".txt"}
    found = [p for folder in folders for p in folder.rglob("*") if p.suffix in kinds]
    return [*found, *(ROOT / name for name in ("pyproject.toml", "Makefile", "README.md"))]


def test_no_file_mentions_a_path_of_a_machine() -> None:
    homes = re.compile(r"(?<![\w.])/(?:home|root|Users|work|mnt|tmp|opt|usr/local)/|[A-Z]:\\\\Users")
    found = {
        f"{path.relative_to(ROOT)}: {line.strip()[:80]}"
        for path in tracked()
        for line in path.read_text("utf-8").splitlines()
        if homes.search(line) and path != Path(__file__)
    }
    assert found == set()


def test_every_folder_of_tests_is_a_room() -> None:
    folders = {p.relative_to(ROOT / "tests").parts[0] for p in (ROOT / "tests").glob("*/test_*.py")}
    assert folders - set(ROOMS) <= {"docs", "golden"}


def test_every_room_has_tests() -> None:
    assert [room for room in ROOMS if not list((ROOT / "tests" / room).glob("test_*.py"))] == []


def test_names_of_test_files_are_unique() -> None:
    names = [p.name for p in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(set(names)) == sorted(names)


def test_the_page_about_structure_names_what_is_there() -> None:
    """Files and what they define in its table, and the rooms behind each step of the life of a plan."""
    page = (ROOT / "docs" / "structure.md").read_text("utf-8")
    named = re.findall(r"`([a-z_/]+\.py)`(?:: `(\w+)`)?", page)
    assert len(named) >= 8
    for file, name in named:
        assert re.search(rf"^ *(def |class |){name}\b", (SRC / file).read_text("utf-8"), re.M), (file, name)
    steps = [word.strip() for said in re.findall(r"\*\(([a-z_.,; \n]+)\)\*", page) for word in re.split("[,;]", said)]
    assert len(steps) >= 15
    for step in steps:
        path = SRC / step.replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").is_file(), step


def test_every_room_is_a_layer() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = {name.strip() for layer in contracts[0]["layers"] for name in layer.split("|")}
    assert set(ROOMS) - {"report"} <= layers
    assert {"report", "units", "errors"} <= layers


def loaded_by(code: str) -> set[str]:
    """Modules that a fresh interpreter holds after running `code`."""
    script = f"{code}\nimport sys\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def command(*arguments: str) -> str:
    return f"""
from chipwise.cli import main
try:
    main({list(arguments)!r})
except SystemExit:
    pass
"""


@pytest.mark.parametrize("code", ["import chipwise", "import chipwise.cli", "import chipwise.errors"])
def test_an_import_loads_nothing_heavy(code: str) -> None:
    assert loaded_by(code) & HEAVY == set()


@pytest.mark.parametrize("arguments", [(), ("--version",), ("--help",)])
def test_help_and_version_load_no_numbers(arguments: tuple[str, ...]) -> None:
    assert loaded_by(command(*arguments)) & (TOOLS | {"numpy", "chipwise.api"}) == set()


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "meta-llama/Llama-3.1-8B", "--chips", "l4"),
        ("plan", "meta-llama/Llama-3.1-8B", "--chips", "l4", "--format", "csv"),
        ("fit", "meta-llama/Llama-3.1-8B", "--chip", "l4"),
        ("chips", "list"),
        ("plan", "nothing"),
    ],
)
def test_a_command_loads_no_more_than_it_needs(arguments: tuple[str, ...]) -> None:
    assert loaded_by(command(*arguments)) & TOOLS == set()


def test_the_api_loads_no_face() -> None:
    loaded = loaded_by("import chipwise.api")
    assert not {name for name in loaded if name.startswith(("chipwise.cli", "cyclopts", "rich"))}
    assert loaded & TOOLS == set()


DATA = sorted(p.relative_to(SRC) for p in SRC.rglob("*") if p.suffix in {".toml", ".csv", ".json", ".html", ".js"})


def test_there_are_tables_to_ship() -> None:
    assert len(DATA) > 20


@pytest.mark.parametrize("path", DATA, ids=str)
def test_data_is_found_as_a_resource_of_its_package(path: Path) -> None:
    room = f"chipwise.{path.parts[0]}"
    assert resources.files(room).joinpath(*path.parts[1:]).is_file()


def test_the_wheel_takes_the_whole_package() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert build["targets"]["wheel"] == {"packages": ["src/chipwise"]}
    assert "exclude" not in build
    ignored = (ROOT / ".gitignore").read_text().split()  # what git ignores, hatchling leaves out
    assert not [p for p in DATA if any(Path(p).match(pattern.strip("/")) for pattern in ignored)]


def test_the_version_is_one() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", chipwise.__version__)
    assert (SRC / "py.typed").is_file()


WORDS = {"other", "eager", "mlperf"}
"""Ids that are words too: of labels, timings and suites."""

ROOMS_OF_FACTS = ("catalog/", "report/launch/")

# Files that still name a machine or its software, and why. The list only gets shorter: a file on it that names none
# fails.
SPOKEN = "an example or a default that people see"
TRAINING = "what published tables left out becomes rows (HOUSE 9), with training on Layout (HOUSE 6)"
KERNELS = "names that tables of measured kernels use"
PRINTS = "what a maker's own tools print, and how they count devices"
STILL_NAMED: dict[str, str] = {
    "api/amdahl.py": SPOKEN,
    "cli/kernel.py": SPOKEN,
    "web/views/evidence.py": SPOKEN,
    "web/views/inside.py": SPOKEN,
    "web/views/train.py": SPOKEN,
    "web/views/tables.py": SPOKEN,
    "report/charts/chips.py": "colours of vendors, the same on every picture",
    "api/launching.py": "the setting of one queue moves to report/launch",
    "calibrate/kernel_questions.py": SPOKEN,
    "calibrate/kernel_table.py": KERNELS,
    "api/train_input.py": TRAINING,
    "measure/prints.py": PRINTS,
    "measure/machine.py": PRINTS,
    "measure/asking.py": "a library of Python whose version is asked for, called like a trainer",
    "measure/backend.py": "frameworks that measure, by the names of their packages",
    "measure/jax_backend.py": "frameworks that measure, by the names of their packages",
}


def ids() -> set[str]:
    """Chips, generations, vendors and runtimes of the catalogue, and the trainers that were fitted."""
    chips = load_chips().values()
    of_chips = {name for c in chips for name in (c.id, c.generation, c.base_generation, c.vendor)}
    trainers = {name for part in training_effects(shipped_parameters()) for name in part.keys_of("stack")}
    return (of_chips | set(all_software(Runtime)) | trainers) - WORDS


def texts(path: Path) -> set[str]:
    """String literals of a file, docstrings left out."""
    tree = ast.parse(path.read_text("utf-8"))
    said = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    found = (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in said)
    return {n.value for n in found if isinstance(n.value, str)}


def test_machines_and_their_software_are_named_in_the_catalogue_alone() -> None:
    known = ids()
    named = {
        name: sorted(texts(path) & known)
        for path in SOURCES
        if not (name := path.relative_to(SRC).as_posix()).startswith(ROOMS_OF_FACTS)
    }
    found = {name: words for name, words in named.items() if words and name not in STILL_NAMED}
    assert found == {}, "a fact about a machine or its software is a field of its row"
    done = [name for name in STILL_NAMED if not named.get(name)]
    assert done == [], "they name nothing any more: take them off the list"


# What stands behind a number of a formula: `unit: what it is. Source: where it was read.`, or `Exact:` of what follows
# from definitions, or `Chosen:` with why and what it moves.
SAID = re.compile(r"[^:]+: .+?\. (Source: .+|Exact: .+|Chosen: .+; moves .+)\.", re.DOTALL)
FORMULAS = ("cost", "parallel", "predict", "search")


def unsaid(text: str) -> list[str]:
    """Names of the module's own floats that the text behind them does not give a unit, a meaning and an origin."""
    body = ast.parse(text).body
    found = []
    for node, following in zip(body, [*body[1:], ast.Pass()], strict=True):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        floats = [n for n in ast.walk(node.value) if isinstance(n, ast.Constant) and isinstance(n.value, float)]
        behind = following.value if isinstance(following, ast.Expr) else None
        said = behind.value if isinstance(behind, ast.Constant) else ""
        if floats and not SAID.fullmatch(" ".join(str(said).split())):
            found.append(ast.unparse(node).partition(" =")[0])
    return found


@pytest.mark.parametrize("room", FORMULAS)
def test_every_number_of_a_formula_has_a_unit_a_meaning_and_an_origin(room: str) -> None:
    files = sorted((SRC / room).rglob("*.py"))
    found = {p.relative_to(SRC).as_posix(): names for p in files if (names := unsaid(p.read_text("utf-8")))}
    assert found == {}, 'a text behind it: """unit: what. Source: ...""", or Exact: ..., or Chosen: ...; moves ..."""'


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('A = 1.5\n"""s: what it takes. Source: a page."""', []),
        ('A = 1.5\n"""s: what it takes. Chosen: as it is seen; moves all."""', []),
        ('A = 1.5\n"""s: what it takes. Chosen: as it is seen."""', ["A"]),
        ('A = 1.5\n"""What it takes."""', ["A"]),
        ("A = 1.5  # s, what it takes", ["A"]),
        ("A: Final = (1, 2.5)\nB = 3", ["A: Final"]),
        ("def f(x=1.5): return x", []),
    ],
)
def test_what_counts_as_said(text: str, names: list[str]) -> None:
    assert unsaid(text) == names


# Functions of more than seven arguments, and why. The list only gets shorter: elsewhere an object is missing.
COMMAND = "a command: an argument is an option"
SIZES = "an operator: an argument is one of its sizes, given by name"
EQUATION = "an equation: an argument is one of its quantities, given by name"
VERB = "a verb of the library: an argument is a part of the question"
MISSING = "an object is missing"
LONG: dict[str, str] = {
    "api/fitting.py: fit": VERB,
    "api/measuring.py: measure_probe": VERB,
    "cli/catalogue.py: add_offer": COMMAND,
    "cli/measure.py: probe": COMMAND,
    "cli/measure.py: serve": COMMAND,
    "cli/serving.py: watch": COMMAND,
    "catalog/price.py: own_usd_per_h": EQUATION,
    "cost/anatomy.py: _tile": SIZES,
    "cost/simt/attention.py: decode_attention": SIZES,
    "cost/simt/experts.py: experts": SIZES,
    "cost/simt/gemm.py: gemm": SIZES,
    "cost/simt/attention.py: prompt_attention": SIZES,
    "cost/simt/tiles.py: tiled": SIZES,
    "cost/systolic/array.py: im2col": SIZES,
    "workload/op.py: attention": SIZES,
    "workload/op.py: convolution": SIZES,
    "predict/training/dims.py: plain": SIZES,
    "workload/media/assemble.py: from_macs": SIZES,
    "parallel/collective.py: exchange": EQUATION,
    "parallel/memory.py: account": EQUATION,
    "api/evidence_match.py: _measured_claim": MISSING,
    "predict/passes.py: tabulate": MISSING,
    "search/deployments.py: deployments": MISSING,
    "search/evaluate.py: engines_of": MISSING,
    "workload/media/assemble.py: pipeline": MISSING,
}


def arguments(path: Path) -> dict[str, int]:
    """How many arguments the functions of each name in a file take at most, themselves left out."""
    tree = ast.parse(path.read_text("utf-8"))
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            count = len([a for a in given if a.arg not in ("self", "cls")])
            found[node.name] = max(count, found.get(node.name, 0))
    return found


def test_a_function_takes_seven_arguments_or_says_why() -> None:
    long = {
        f"{path.relative_to(SRC).as_posix()}: {name}"
        for path in SOURCES
        for name, count in arguments(path).items()
        if count > 7
    }
    assert long - set(LONG) == set(), "more than seven arguments: an object is missing"
    assert set(LONG) - long == set(), "they take fewer now, or went: take them off the list"


FACES = ("cli", "mcp", "web", "report")


def test_faces_ask_a_record_and_not_what_kind_it_is() -> None:
    """A record declares its rows, tables, pictures and why it is no plan to follow."""
    kinds = {
        node.name
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef) and node.name.endswith(("Report", "Request"))
    }
    assert len(kinds) > 40
    asked = [
        f"{path.relative_to(SRC).as_posix()}:{node.lineno}"
        for path in SOURCES
        if path.relative_to(SRC).parts[0] in FACES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
        and kinds & {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
    ]
    assert asked == []


@pytest.mark.parametrize("file", ["errors.py", "api/requests/doors.py", "mcp/server.py", "web/problems.py"])
def test_sentences_of_errors_are_written_and_not_searched(file: str) -> None:
    """An error is made of parts (`errors.Said`), so that no face looks for options in what was said already."""
    tree = ast.parse((SRC / file).read_text("utf-8"))
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    assert "re" not in names


def test_a_class_name_stands_once() -> None:
    """A reader who looks for a name finds one thing."""
    homes: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(path.relative_to(SRC).as_posix())
    assert len(homes) > 700
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}, "call it by what it is"


def imported(path: Path) -> Iterator[tuple[str, bool]]:
    """Modules of the house that a file imports, wherever it does so, and whether inside a function."""
    tree = ast.parse(path.read_text("utf-8"))
    within = {
        id(node)
        for f in ast.walk(tree)
        if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(f)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("chipwise"):
            for name in node.names:
                whole = f"{node.module}.{name.name}"
                yield whole if whole in MODULES else str(node.module), id(node) in within


def module_of(path: Path) -> str:
    """`chipwise.report.plan` of its file."""
    parts = ("chipwise", *path.relative_to(SRC).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def circles(edges: Mapping[str, set[str]]) -> list[set[str]]:
    """Modules that lead back to themselves, those of one circle together: what each reaches, and is reached from."""
    reached: dict[str, set[str]] = {}
    for start in edges:
        found: set[str] = set()
        rest = [*edges[start]]
        while rest:
            if (at := rest.pop()) not in found:
                found.add(at)
                rest += edges.get(at, ())
        reached[start] = found
    looped = {m for m in edges if m in reached[m]}
    return [set(c) for c in {frozenset(n for n in looped if n in reached[m] and m in reached[n]) for m in looped}]


LATE = {"api": 29, "cli": 7, "mcp": 4, "measure": 4, "tracing": 3, "web": 7}
"""Names imported inside functions by room: of extras, and of what would make every command or program wait for what one
verb needs (evidence and its importers, networks without tokens, launch files, pages). The numbers only get smaller."""


def test_no_file_leads_back_to_itself_by_its_imports() -> None:
    """Imports inside functions and for types count too."""
    known = {module_of(p) for p in SOURCES}
    edges = {module_of(p): {m for m, _ in imported(p)} & known - {module_of(p)} for p in SOURCES}
    assert circles(edges) == []


def test_circles_are_found() -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "e"}, "e": set()}
    assert circles(edges) == [{"a", "b", "c"}]


def test_imports_stand_at_the_top() -> None:
    late: dict[str, int] = {}
    for path in SOURCES:
        room = path.relative_to(SRC).parts[0]
        late[room] = late.get(room, 0) + sum(inside for _, inside in imported(path))
    assert {room: n for room, n in late.items() if n > LATE.get(room, 0)} == {}


MOST_PATHS = 15
"""Independent paths through a function (McCabe): decisions, and one."""
HALLS = {
    "calibrate": 2, "catalog": 1, "cost": 2, "measure": 5, "predict": 8, "search": 1, "tracing": 9, "workload": 9,
}  # fmt: skip
"""Functions with more by room; none in the faces, in reports and in `api`. The numbers only get smaller."""


def paths(function: ast.AST) -> int:
    """Independent paths: one, and one for each condition, loop, handler, part of and/or, and comprehension."""
    one = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert, ast.match_case)
    count = 1
    for node in ast.walk(function):
        if isinstance(node, (*one, ast.Lambda)):
            count += 1
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            count += 1 + len(node.ifs)
    return count


def test_functions_are_no_halls() -> None:
    found: dict[str, list[str]] = {}
    for path in SOURCES:
        name = path.relative_to(SRC)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and paths(node) > MOST_PATHS:
                found.setdefault(name.parts[0], []).append(f"{name.as_posix()}: {node.name}")
    many = {room: names for room, names in found.items() if len(names) > HALLS.get(room, 0)}
    assert many == {}, "a part of one of them has a name of its own"
