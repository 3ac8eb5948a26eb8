"""Options of trainers and servers as their packages define them: name, type, default, version, date.

`data/launch_options.tsv` holds them; tests check every launch file against it. For whoever maintains the catalogue:
`python -m chipwise.catalog.options TOOL [FILE ...]` writes a tool's part anew from its packages (wheels or source
archives, or single files; named none: what `pip download` finds), as `data/launch_sources.toml` says where options
stand in them. Sources are read, never run.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from chipwise.catalog.snapshot import PACKAGE, shipped_text
from chipwise.errors import ChipwiseError, UsageError, check_known
from chipwise.values import dataclass

TABLE = "catalog/data/launch_options.tsv"
SOURCES = "catalog/data/launch_sources.toml"
NAME = re.compile(r"(--)?[a-z][a-z0-9_]*")
MAKES = re.compile(r"(^|\.)add_(negatable_bool_)?argument$")
"""Calls that make an argument: those of argparse, and those of Dynamo around them, which call its name `flag_name`."""
LITERALS = {"true": "bool", "false": "bool", "null": "any", "": "any", "~": "any"}
PLAIN = ("bool", "int", "float", "str", "list", "dict")
CONTAINERS = {"List": "list", "Sequence": "list", "tuple": "list", "set": "list", "Dict": "dict", "Mapping": "dict"}

Classes = Mapping[tuple[str, str], ast.ClassDef]
"""Classes by package and name."""


@dataclass(frozen=True, slots=True)
class ToolOption:
    """An option: types that it takes, joined by |, a choice in quotes, a `flag` without a value, `any` where its source
    does not say; `default` as its source writes it, "" where it has none there."""

    name: str
    type: str
    default: str = ""

    def takes(self, value: object) -> bool:
        """Whether a value, None for none, is of one of its types: a word of a command, or what a file holds."""
        kinds = self.type.split("|")
        if value is None:
            return not {"flag", "bool", "any"}.isdisjoint(kinds)
        return any(_is(value, kind) for kind in kinds)


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """Options of a tool by name, the packages that they were read from, with versions, and the day."""

    packages: tuple[str, ...]
    date: str
    options: Mapping[str, ToolOption]


def load_options() -> Mapping[str, ToolOptions]:
    """The options of every tool whose packages were read, by its id."""
    found: dict[str, ToolOptions] = {}
    for part in shipped_text(TABLE).split("\n\n"):
        head, *rows = part.strip().split("\n")
        tool, packages, date = head.removeprefix("# ").split("\t")
        options = (ToolOption(*row.split("\t")) for row in rows)
        found[tool] = ToolOptions(tuple(packages.split(", ")), date, {o.name: o for o in options})
    return found


def read_options(rows: Mapping[str, Iterable[str]], packages: Mapping[str, Mapping[str, str]]) -> list[ToolOption]:
    """The options that packages define, texts of their files by package and path: `rows` of "package path what" by the
    prefix of their names. What: a class (* for all), whose fields are options, those of its bases among `path`s too;
    with "factory:" before it, as Megatron-LM makes arguments of a class; a function or method behind "def:", whose
    parameters are; `add_argument`, the calls of argparse; `constants`, texts that are names; `keys` of a YAML file; or
    `bases`, classes alone, of which other rows speak.

    Raises `UsageError` for a row that finds nothing: a file was moved, or a class renamed.
    """
    found: dict[str, ToolOption] = {}
    split = {prefix: [row.split() for row in given] for prefix, given in rows.items()}
    files = {
        (package, path): _matching(packages, package, path) for given in split.values() for package, path, _ in given
    }
    classes = _by_name(files)
    for prefix, given in split.items():
        for package, path, what in given:
            made = list(_defined(package, files[package, path], what, classes))
            if not (made or (what == "bases" and files[package, path])):
                raise UsageError(f"{package}: no options of {what} in {path}", f"correct its row in {SOURCES}")
            for option in made:
                name = prefix + option.name
                found.setdefault(name, ToolOption(name, option.type, option.default))
    return sorted(found.values(), key=lambda o: o.name)


def _by_name(files: Mapping[tuple[str, str], Mapping[str, str]]) -> Classes:
    """The classes of all files, the first of a name in each package."""
    found: dict[tuple[str, str], ast.ClassDef] = {}
    for (package, _), texts in files.items():
        for path, text in texts.items():
            for name, node in _classes(ast.parse(text)) if path.endswith(".py") else ():
                found.setdefault((package, name), node)
    return found


def _matching(packages: Mapping[str, Mapping[str, str]], package: str, pattern: str) -> dict[str, str]:
    """The texts of a package whose path ends so."""
    check_known("package", (package,), packages)
    held = packages[package]
    return {path: text for path, text in held.items() if fnmatchcase(f"/{path}", f"*/{pattern}")}


def _classes(tree: ast.AST, outer: str = "") -> Iterator[tuple[str, ast.ClassDef]]:
    """Classes of a module by name, inner ones as Outer.Inner."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield outer + node.name, node
            yield from _classes(node, f"{outer}{node.name}.")


def _defined(package: str, texts: Mapping[str, str], what: str, classes: Classes) -> Iterator[ToolOption]:
    """Options that files of a package define, one way."""
    for text in texts.values():
        yield from _said(package, text, what, classes)
    kind, _, name = what.rpartition(":")
    every = (n for t in texts.values() for n, _ in _classes(ast.parse(t))) if name == "*" else (name,)
    for one in every:
        fields = _fields((package, one), classes) if (package, one) in classes else ()
        yield from _made(fields) if kind else (ToolOption(n, t, d) for n, t, d, _ in fields)


def _said(package: str, text: str, what: str, classes: Classes) -> Iterator[ToolOption]:
    """Options that a file defines outside of classes."""
    if what == "keys":
        yield from _keys(text)
    elif what == "constants":
        words = (n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant))
        yield from (ToolOption(w, "any") for w in words if isinstance(w, str) and NAME.fullmatch(w))
    elif what == "add_argument":
        yield from _arguments(package, ast.parse(text), classes)
    elif what.startswith("def:"):
        yield from _parameters(ast.parse(text), what.removeprefix("def:"))


def _fields(key: tuple[str, str], classes: Classes) -> Iterator[tuple[str, str, str, list[str]]]:
    """Fields of a class and of its bases: name, type, default, and the names that its `argparse_meta` gives it. A base
    is one of the same package, else of another."""
    for part in classes[key].body:
        if not (isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)):
            continue
        name, annotation = part.target.id, ast.unparse(part.annotation)
        if name[0] != "_" and not annotation.startswith(("ClassVar", "typing.ClassVar")):
            yield name, _type(part.annotation), _default(part.value), _argument_names(part.value)
    for base in map(ast.unparse, classes[key].bases):
        same = [(key[0], base), *(k for k in classes if k[1] == base)]
        if found := next((k for k in same if k in classes and k != key), None):
            yield from _fields(found, classes)


def _made(fields: Iterable[tuple[str, str, str, list[str]]]) -> Iterator[ToolOption]:
    """Arguments as Megatron-LM's ArgumentGroupFactory makes them of fields: hyphens, and a flag for what is off, or
    --no-x and --disable-x for what is on."""
    for name, kind, default, given in fields:
        plain = name.replace("_", "-")
        usual = [f"--no-{plain}", f"--disable-{plain}"] if (kind, default) == ("bool", "True") else [f"--{plain}"]
        for each in given or usual:
            yield ToolOption(each, "flag" if kind == "bool" else kind, default)


def _arguments(package: str, tree: ast.AST, classes: Classes) -> Iterator[ToolOption]:
    """The options of calls of `add_argument`, by each of their names, without a prefix that is put into them. What a
    call takes from a table of a class (vLLM's `get_kwargs(CLASS)["field"]`) is of the type of that field."""
    filled = dict(_filled(package, tree, classes))
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and MAKES.search(ast.unparse(node.func))):
            continue
        said = {word.arg: word.value for word in node.keywords if word.arg}
        own = ("flag" if "_bool_" in ast.unparse(node.func) else _argument_type(said), _shown(said.get("default")))
        kind, default = next((filled[t] for w in node.keywords if (t := _table_of(w)) in filled), own)
        for name in filter(None, (*node.args, said.get("flag_name"))):
            if (text := _option_name(name)).strip("-"):
                yield ToolOption(text, kind, default)


def _option_name(node: ast.expr) -> str:
    """An option's name as a call writes it; "" for what is none."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    text = "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))
    return text if text.startswith("-") else ""


def _table_of(word: ast.keyword) -> str:
    """What a call spreads into its keywords, as it is written; "" for a keyword of its own."""
    return "" if word.arg else ast.unparse(word.value)


def _filled(package: str, tree: ast.AST, classes: Classes) -> Iterator[tuple[str, tuple[str, str]]]:
    """Types and defaults of what names in a file hold of the fields of a class, by how calls write them."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        if not (ast.unparse(node.value.func).endswith("get_kwargs") and node.value.args):
            continue
        key = (package, ast.unparse(node.value.args[0]))
        for name, kind, default, _ in _fields(key, classes) if key in classes else ():
            made = "flag" if kind == "bool" else kind
            yield f"{ast.unparse(node.targets[0])}[{name!r}]", (made, default)


def _parameters(tree: ast.Module, name: str) -> Iterator[ToolOption]:
    """The parameters of a function of a module, or of a method of one of its classes."""
    owners: dict[str, ast.Module | ast.ClassDef] = {"": tree}
    owners |= {f"{owner}.": node for owner, node in _classes(tree)}
    for owner, node in owners.items():
        for part in node.body:
            if isinstance(part, ast.FunctionDef) and owner + part.name == name:
                plain = [*part.args.posonlyargs, *part.args.args]
                defaults = [
                    *[None] * (len(plain) - len(part.args.defaults)),
                    *part.args.defaults,
                    *part.args.kw_defaults,
                ]
                for one, default in zip([*plain, *part.args.kwonlyargs], defaults, strict=True):
                    kind = _type(one.annotation) if one.annotation else "any"
                    yield ToolOption(one.arg, kind, _shown(default))


def _argument_type(said: Mapping[str, ast.expr]) -> str:
    """The type of an argument of argparse."""
    action = ast.unparse(said["action"]) if "action" in said else ""
    if "store_" in action or action.endswith("BooleanOptionalAction"):
        return "flag"
    if "Boolean" in action:
        return "bool"  # a class of the package: a flag, or true and false behind it
    choices = said.get("choices")
    if isinstance(choices, ast.List | ast.Tuple) and all(isinstance(c, ast.Constant) for c in choices.elts):
        return _literals(choices.elts)
    given = said.get("type") or said.get("arg_type")
    kind = ast.unparse(given) if given else "any" if choices else "str"
    kind = kind if kind in PLAIN else "any"
    return f"{kind}|flag" if "nargs" in said and ast.unparse(said["nargs"]) == "'?'" else kind


def _type(node: ast.expr) -> str:
    """The types that an annotation names; classes of the package are `any`."""
    if isinstance(node, ast.Constant):
        return "" if node.value is None else _type(ast.parse(str(node.value), mode="eval").body)
    if isinstance(node, ast.BinOp):
        return _joined(_type(node.left), _type(node.right))
    if isinstance(node, ast.Subscript):
        name = ast.unparse(node.value).split(".")[-1]
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name == "Literal":
            return _literals(inner)
        if name in ("Optional", "Union"):
            return _joined(*map(_type, inner))
        return _type(inner[0]) if name in ("Annotated", "Final", "A") else _plain(name)
    return _plain(ast.unparse(node).split(".")[-1])


def _plain(name: str) -> str:
    return name if name in PLAIN else CONTAINERS.get(name, "any")


def _joined(*kinds: str) -> str:
    return "|".join(dict.fromkeys(k for kind in kinds for k in kind.split("|") if k))


def _literals(values: Iterable[ast.expr]) -> str:
    """Choices in quotes."""
    return _joined(*(f'"{v.value!s}"' for v in values if isinstance(v, ast.Constant) and v.value is not None))


def _default(node: ast.expr | None) -> str:
    """The default of a field, inside `field(default=...)` too."""
    if not isinstance(node, ast.Call):
        return _shown(node)
    said = {word.arg: word.value for word in node.keywords}
    inner = said.get("default", node.args[0] if node.args else None)
    factory = said.get("default_factory")
    return _shown(inner) if factory is None else f"{ast.unparse(factory)}()"


def _shown(node: ast.expr | None) -> str:
    """An expression as its source writes it, on one line; "" for none, or a long one."""
    text = "" if node is None else " ".join(ast.unparse(node).split())
    return "" if text == "..." or len(text) > 60 else text


def _argument_names(node: ast.expr | None) -> list[str]:
    """What `argparse_meta` of a field calls its argument."""
    for part in ast.walk(node) if node else ():
        if isinstance(part, ast.Dict):
            said = dict(zip((ast.unparse(k) for k in part.keys if k), part.values, strict=False))
            if names := said.get("'arg_names'"):
                return [str(name) for name in ast.literal_eval(names)]
    return []


def _keys(text: str) -> Iterator[ToolOption]:
    """The keys of a YAML file of scalars and maps, places in it joined by dots; groups of Hydra by their own names."""
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        found = re.match(r"( *(?:- )?)(?:override )?['\"]?([\w./-]+)['\"]?:(?: +(.*?))?(?: +#.*)?$", line)
        if not found:
            continue
        depth, name, value = len(found[1]), found[2], (found[3] or "").strip()
        above = [*((d, n) for d, n in above if d < depth), (depth, name)]
        kind = LITERALS.get(value.lower(), "str")
        if re.fullmatch(r"[+-]?[\d_]+", value):
            kind = "int|float"
        elif re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", value):
            kind = "float"
        elif value[:1] in "[{$":
            kind = {"[": "list", "{": "dict"}.get(value[:1], "any")
        yield ToolOption(
            ".".join(n for _, n in above).removeprefix("defaults."), kind, value if len(value) <= 60 else ""
        )


def _is(value: object, kind: str) -> bool:
    """Whether a value is of a type: a text also where it reads as one."""
    text = str(value)
    if kind[:1] == '"':
        return text == kind.strip('"')
    if kind == "int":
        return re.fullmatch(r"[+-]?\d+", text) is not None
    if kind == "float":
        return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text) is not None
    if kind == "bool":
        return text.lower() in ("true", "false")
    if kind in ("list", "dict"):
        return isinstance(value, str | (list if kind == "list" else dict))
    return kind != "flag" and (kind == "any" or isinstance(value, str))


def package_of(file: Path) -> tuple[str, str]:
    """The name and version of the package that an archive holds, as its file says; of a single file its own name, and
    no version."""
    found = re.match(r"([A-Za-z0-9_.-]+?)-(\d[^-]*?)(-.*\.whl|)$", file.name.removesuffix(".tar.gz"))
    return (re.sub(r"[_.]", "-", found[1]).lower(), found[2]) if found else (file.name, "")


def texts_of(file: Path) -> dict[str, str]:
    """The Python and YAML files of a wheel or source archive by path, or the single file that it is."""
    held: dict[str, bytes]
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            held = {name: wheel.read(name) for name in wheel.namelist() if _read(name)}
    elif file.name.endswith(".tar.gz"):
        with tarfile.open(file) as archive:
            members = ((m.name, archive.extractfile(m)) for m in archive if m.isfile() and _read(m.name))
            held = {name: member.read() for name, member in members if member}
    else:
        held = {file.name: file.read_bytes()}
    return {path: raw.decode("utf-8", "replace") for path, raw in held.items()}


def _read(path: str) -> bool:
    return path.endswith((".py", ".yaml", ".yml"))


def written(tool: str, files: Iterable[Path], date: str) -> str:
    """The table with a tool's part made anew from files. Raises `UsageError` for a tool, or a package of it, that is
    not there."""
    sources = _rows(tool)
    packages, names = {}, []
    for file in files:
        name, version = package_of(file)
        packages[name] = texts_of(file)
        names.append(f"{name} {version}".strip())
    head = "\t".join((f"# {tool}", ", ".join(names), date))
    rows = ("\t".join((o.name, o.type, o.default)).rstrip("\t") for o in read_options(sources, packages))
    parts = {p.split("\t")[0]: p.strip() for p in shipped_text(TABLE).split("\n\n") if p.strip()}
    parts[f"# {tool}"] = "\n".join((head, *rows))
    return "\n\n".join(parts[key] for key in sorted(parts)) + "\n"


def _rows(tool: str) -> dict[str, Any]:
    """Where options of a tool stand, by the prefix of their names. Raises `UnknownNameError`."""
    sources: dict[str, dict[str, Any]] = tomllib.loads(shipped_text(SOURCES))
    check_known("tool", (tool,), sources)
    return sources[tool]


def main(tool: str, *files: str) -> None:
    """Write a tool's part of the table anew, from files or from what pip finds of its packages."""
    with TemporaryDirectory() as folder:
        given = [Path(file) for file in files]
        if not given:
            needed = sorted({row.split()[0] for part in _rows(tool).values() for row in part})
            pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "-q", "-d", folder]
            subprocess.run([*pip, *needed], check=True)
            given = sorted(Path(folder).iterdir())
        text = written(tool, given, datetime.now(UTC).strftime("%Y-%m-%d"))
    target = PACKAGE / TABLE
    draft = target.with_suffix(".draft")
    draft.write_bytes(text.encode())
    draft.replace(target)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("python -m chipwise.catalog.options TOOL [FILE ...]")
    try:
        main(*sys.argv[1:])
    except ChipwiseError as error:
        sys.exit(f"{error}")
