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
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Self

from chipwise.api.requests.command import about
from chipwise.api.requests.doors import refuse_code
from chipwise.api.requests.planning import FitRequest
from chipwise.api.requests.verbs import question
from chipwise.api.saving import diff, open_saved, save
from chipwise.catalog.files import read_text
from chipwise.catalog.machine import counted
from chipwise.errors import ChipwiseError, UsageError, shorten
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
        raise UsageError(f"{file.name}: no question", f"verb = one of {', '.join(ASKED)}, and a table [request]")
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
                own = found.count or found.tp * found.pp * found.dp  # chips of one replica
                alone = counted(found.chip) is None
                save("fit", about(found, FitRequest, chips=found.chip, count=own if alone else None), str(fits))
            save(verb, found, str(answer))
    except ChipwiseError as error:
        why = str(error)
    return answer if answer.exists() else None, fits if fits.exists() else None, why


@dataclass(frozen=True)
class Said:
    """A figure as a table says it; `value` is it as a number, where its change is one."""

    text: str = "-"
    value: float | None = None

    def change(self, before: Self) -> str:
        """How far it is from the one before, "changed" where that is no number, "" where there was none."""
        if self.text == before.text or "-" in (self.text, before.text):
            return ""
        if self.value is None or not before.value:
            return "changed"
        return f"{self.value / before.value - 1.0:+.1%}"


def figures(answer: Path | None, fits: Path | None, why: str) -> dict[str, Said]:
    """What a table says of an answer."""
    report = dict(open_saved(str(answer)).report) if answer else {}
    fitted = open_saved(str(fits)).report if fits else report
    found = {"answer": Said(shorten(why, 300))} if why else {}
    plans = report.get("plans") or ()
    if plans:
        best = plans[0]
        found["first plan"] = Said(f"{best['chips']}x {best['chip']}, {_layout(best)}, {best['precision']}")
        for name, key, form in FIGURES:
            if best.get(key):
                found[name] = Said(form(best[key]["mid"]), best[key]["mid"])
        for name, key, form in PLAIN if best.get("chance") is not None else ():
            if best.get(key) is not None:
                found[name] = Said(form(best[key]), best[key])
    for fit in fitted.get("fits") or ():
        room = fit["memory"]["cache_bytes"]
        said = {"no": f"no, {format_bytes(fit['missing_bytes'])} missing"}.get(fit["verdict"], fit["verdict"])
        if room > 0:
            said += f", {format_bytes(room)} for the cache"
        if fit.get("largest_batch"):
            said += f", {fit['largest_batch']:,} sequences of {fitted['context']:,} tokens"
        found[f"fits {fit['chips']}x {fit['chip']}"] = Said(said)
    if "unit" in fitted:  # of a network without tokens, whose report has a plan for each chip
        for plan in fitted["plans"]:
            room = f"{format_bytes(plan['memory_bytes'])} of {format_bytes(plan['capacity_bytes'])}"
            if plan["offload"] != "none":
                room += f", offload {plan['offload']}"
            found.setdefault(f"fits {plan['chips']}x {plan['chip']}", Said(f"{plan['verdict']}, {room}"))
    model = report.get("model") or fitted.get("model")
    sizes = model if isinstance(model, dict) else report or fitted
    return {name: Said(form(sizes[key]), sizes[key]) for name, key, form in SIZES if key in sizes} | found


def _layout(plan: dict[str, Any]) -> str:
    """How the devices of a plan share the work, as its own kind of record says it."""
    said = plan["spread"] if "spread" in plan else plan["layout"]["label"]
    return "unsharded" if said in ("", "whole") else str(said)


FIGURES = (
    ("TTFT", "ttft_s", format_seconds),
    ("TPOT", "tpot_s", format_seconds),
    ("time", "latency_s", format_seconds),
    ("step", "step_s", format_seconds),
    ("samples/s", "samples_per_s", format_number),
    ("$/h", "price", format_number),
    ("$/M out", "usd_per_million_out", format_number),
    ("$/1,000", "usd_per_1000", format_number),
    ("$", "usd", format_number),
    ("days", "days", format_number),
)
PLAIN = (
    ("requests/s at most", "largest_requests_per_s", format_number),
    ("targets met with", "chance", lambda share: f"{share:.0%}"),
)
SIZES = (
    ("parameters", "params", format_count),
    ("parameters", "parameters", format_count),
    ("weights", "weight_bytes", format_bytes),
    ("cache per token", "kv_bytes_per_token", format_bytes),
)


def section(file: Path, base: Path, folder: Path) -> tuple[str, bool]:
    """What is said of a question, and whether anything changed."""
    before = answered(base, file, folder / "before")
    after = answered(Path.cwd(), file, folder / "after")
    old, new = figures(*before), figures(*after)
    verbs = [open_saved(str(answer)).verb if answer else "" for answer in (before[0], after[0])]
    if all(verbs) and verbs[0] != verbs[1]:
        old, new = ({"question": Said(verb)} | said for verb, said in zip(verbs, (old, new), strict=True))
    none = Said()
    rows = []
    for name in dict.fromkeys((*old, *new)):
        was, now = old.get(name, none), new.get(name, none)
        rows.append((name, was.text, now.text, now.change(was)))
    columns = [Column(head, lambda row, i=i: row[i]) for i, head in enumerate(("what", "before", "after", "change"))]
    out = StringIO()
    out.write(_heading(file))
    changed, report = old != new, None
    if verdict := _verdict(before, after):
        out.write(f"**{verdict}**\n\n")
    if before[0] and after[0] and verbs[0] == verbs[1]:
        with contextlib.chdir(folder):
            report = diff(before[0].name, after[0].name)
        changed = changed or bool(report.changes)
    if not changed:
        out.write(f"Nothing changes{f': {rows[0][1]}' if rows and rows[0][0] == 'answer' else ''}.\n\n")
        return out.getvalue(), False
    render((Table.of(rows, columns),), None, "md", out)
    if report is not None:
        out.write("\n<details><summary>What did it</summary>\n\n")
        render(report.tables(), report, "md", out)
        out.write("\n</details>\n")
    return out.getvalue() + "\n", changed


def _verdict(before: tuple[Path | None, Path | None, str], after: tuple[Path | None, Path | None, str]) -> str:
    """What a reviewer has to see first: that a question is not answered any more, is new, or is answered again."""
    was, now = bool(before[0]), bool(after[0])
    why = shorten(after[2], 300).replace("*", "")
    if was and not now:
        return f"No longer answered: {why}"
    if now and not was:
        return "Answered for the first time." if "no such file" in before[2] else "Answered again."
    return "" if now or before[2] == after[2] else f"Not answered: {why}"


def _heading(file: Path) -> str:
    return f"### `{shorten(str(file)).replace('`', '')}`\n\n"


OTHER_KIND = (ChipwiseError, LookupError, TypeError, AttributeError, ValueError, ArithmeticError, OSError)
"""What reading a record of an unknown kind raises."""


def told(file: Path, base: Path, folder: Path) -> tuple[str, bool]:
    """What `section` says, or why this file cannot be compared: the comment still holds what the others say."""
    try:
        return section(file, base, folder)
    except OTHER_KIND as error:
        print(f"chipwise: {file}: {error!r}", file=sys.stderr)
        why = str(error) if isinstance(error, ChipwiseError) else f"an answer of another kind: {error!r}"
        return f"{_heading(file)}Cannot be compared: {shorten(why, 300)}\n\n", True


def main() -> None:
    """Write the comment to the file that is named, and `changed=true` or `false` to GITHUB_OUTPUT."""
    try:
        files = paths(os.environ.get("QUESTIONS", ""))
        with tempfile.TemporaryDirectory() as folder, checkout(os.environ["BASE"], folder) as base:
            found = []
            for i, file in enumerate(files):
                own = Path(folder) / str(i)
                own.mkdir()
                found.append(told(file, base, own))
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
