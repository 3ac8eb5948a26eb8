"""What changed files do to answers, as Markdown: `python -I compare.py OUT`, in a checkout.

The variables QUESTIONS (files, one to a line) and BASE (a commit) say what is asked, and with what it is compared. The
files are data: nothing of the checkout is run.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

from chipwise.api.requests.command import about
from chipwise.api.requests.doors import refuse_code
from chipwise.api.requests.planning import FitRequest
from chipwise.api.requests.verbs import question
from chipwise.api.saving import diff, open_saved, save
from chipwise.catalog.files import read_text
from chipwise.errors import ChipwiseError, UsageError, shorten
from chipwise.report.diff import diff_view
from chipwise.report.table import Column, Table, render
from chipwise.units import format_bytes, format_count, format_number, format_seconds

MOST_FILES = 20
MOST_CHARS = 60_000
ASKED = ("plan", "estimate", "explain", "compare", "fit", "train")


def paths(patterns: str) -> list[Path]:
    """The files that lines of patterns name, of this commit or the one before, inside the checkout."""
    root, found = Path.cwd().resolve(), dict[Path, None]()
    for line in filter(None, map(str.strip, patterns.splitlines())):
        matches = sorted(root.glob(line)) if "*" in line else [root / line]
        for path in matches:
            if not path.resolve().is_relative_to(root):
                raise UsageError(f"{shorten(line)}: outside of the checkout")
            found[path.resolve().relative_to(root)] = None
    if not found:
        raise UsageError("no questions", "questions: serving/*.toml")
    return list(found)[:MOST_FILES]


@contextlib.contextmanager
def checkout(commit: str, folder: str) -> Iterator[Path]:
    """The files of a commit in a folder of their own."""
    tree = Path(folder) / "base"
    git = ("git", "-c", "core.hooksPath=/dev/null", "worktree")
    subprocess.run([*git, "add", "--quiet", "--detach", "--", str(tree), commit], check=True)
    try:
        yield tree
    finally:
        subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def asked(file: Path) -> tuple[str, Any]:
    """The question of a file. Raises `UsageError` for another file."""
    try:
        said = tomllib.loads(read_text(file, 1_000_000, "a question in TOML"))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file.name}: {shorten(str(error))}", "TOML with verb and [request]") from None
    verb, request = said.get("verb", "plan"), said.get("request")
    if verb not in ASKED or not isinstance(request, dict) or set(said) - {"verb", "request"}:
        raise UsageError(
            f"{file.name}: no question", f"verb = one of {', '.join(ASKED)}, and a table [request]"
        )
    found = question(verb, request)
    refuse_code(found)
    return verb, found


def answered(root: Path, file: Path, out: Path) -> tuple[Path | None, Path | None, str]:
    """The answers to a question of a checkout and, if it is about serving, to whether it fits, as saved files; or why
    there is none."""
    if not (root / file).is_file():
        return None, None, "there is no such file"
    answer, fits = out.with_suffix(".json"), out.with_suffix(".fit.json")
    why = ""
    try:
        with contextlib.chdir((root / file).parent):  # names of files in a question are relative to it
            verb, found = asked(Path(file.name))
            if verb in ("plan", "compare") and getattr(found, "chips", None):
                save("fit", about(found, FitRequest), str(fits))
            elif verb == "estimate":
                save("fit", about(found, FitRequest, chips=found.chip), str(fits))
            save(verb, found, str(answer))
    except ChipwiseError as error:
        why = str(error)
    return answer if answer.exists() else None, fits if fits.exists() else None, why


def figures(answer: Path | None, fits: Path | None, why: str) -> dict[str, str]:
    """What a table says of an answer."""
    report = dict(open_saved(str(answer)).report) if answer else {}
    found = {"answer": shorten(why, 300)} if why else {}
    plans = report.get("plans") or ()
    if plans:
        best = plans[0]
        layout = best["layout"]["label"]
        found["first plan"] = f"{best['chips']}x {best['chip']}, {layout}, {best['precision']}"
        for name, key in (("TTFT", "ttft_s"), ("TPOT", "tpot_s"), ("step", "step_s")):
            if best.get(key):
                found[name] = format_seconds(best[key]["mid"])
        price = best.get("price")
        if price:
            found["$/h"] = format_number(price["mid"])
        if best.get("usd_per_million_out"):
            found["$/M out"] = format_number(best["usd_per_million_out"]["mid"])
        if best.get("usd") and best.get("days"):
            found |= {"$": format_number(best["usd"]["mid"]), "days": format_number(best["days"]["mid"])}
    for fit in open_saved(str(fits)).report["fits"] if fits else report.get("fits") or ():
        room = fit["memory"]["cache_bytes"]
        said = {"no": f"no, {format_bytes(fit['missing_bytes'])} missing"}.get(fit["verdict"], fit["verdict"])
        found[f"fits {fit['chips']}x {fit['chip']}"] = (
            said if room < 0 else f"{said}, {format_bytes(room)} for the cache"
        )
    model = report.get("model") or (open_saved(str(fits)).report.get("model") if fits else None)
    if isinstance(model, dict):
        sizes = (("parameters", format_count, "params"), ("weights", format_bytes, "weight_bytes"))
        found = {name: form(model[key]) for name, form, key in sizes if key in model} | found
    return found


def section(file: Path, base: Path, folder: Path) -> tuple[str, bool]:
    """What is said of a question, and whether anything changed."""
    before = answered(base, file, folder / "before")
    after = answered(Path.cwd(), file, folder / "after")
    old, new = figures(*before), figures(*after)
    rows = [(name, old.get(name, "-"), new.get(name, "-")) for name in dict.fromkeys((*old, *new))]
    columns = [Column(head, lambda row, i=i: row[i]) for i, head in enumerate(("what", "before", "after"))]
    out = StringIO()
    out.write(f"### `{shorten(str(file)).replace('`', '')}`\n\n")
    changed = old != new
    if before[0] and after[0]:
        with contextlib.chdir(folder):
            report = diff(before[0].name, after[0].name)
        changed = changed or bool(report.changes)
        if not changed:
            out.write("Nothing changes.\n\n")
            return out.getvalue(), False
        render((Table.of(rows, columns),), None, "md", out)
        out.write("\n<details><summary>What did it</summary>\n\n")
        render(diff_view(report), report, "md", out)
        out.write("\n</details>\n")
    elif rows:
        render((Table.of(rows, columns),), None, "md", out)
    return out.getvalue() + "\n", changed


def main() -> None:
    """Write the comment to the file that is named, and `changed=true` or `false` to GITHUB_OUTPUT."""
    try:
        files = paths(os.environ.get("QUESTIONS", ""))
        with tempfile.TemporaryDirectory() as folder, checkout(os.environ["BASE"], folder) as base:
            found = []
            for i, file in enumerate(files):
                own = Path(folder) / str(i)
                own.mkdir()
                found.append(section(file, base, own))
    except ChipwiseError as error:
        sys.exit(f"chipwise: {error}")
    changed = any(moved for _, moved in found)
    text = "## chipwise\n\n" + "".join(said for said, _ in found)
    note = "\nFigures are predictions: the middle of an 80 % interval, at dated list prices.\n"
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write(text[:MOST_CHARS] + note)
    if "GITHUB_OUTPUT" in os.environ:
        with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as out:
            out.write(f"changed={str(changed).lower()}\n")


if __name__ == "__main__":
    main()
