"""`python -m chipwise.api.suites.refit SUITE ROWS... [--write] [--keep=FOLDER]`: the numbers of a suite, fitted anew.

Fits to every measured row that counts and prints what moved; with --write ships the parameters in calibrate/data. To be
run again whenever the physics has changed, kernels first: fitted numbers are relative to it, and those of serving to
those of kernels. Last comes `discrepancy`, with all tables: the model of error behind every interval, fitted to what is
left of rows by fits that had not seen them and by the answers that ship. A user's own rows do not go here but through
`chipwise calibrate`, which moves what is shipped.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from chipwise.api.suites.doors import SUITES
from chipwise.api.suites.errors import ErrorLine, lines_of, observed
from chipwise.api.suites.suite import Trial
from chipwise.calibrate.parameter import Z80, Parameter, write_table
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog import parsed
from chipwise.catalog.files import writing
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError
from chipwise.evidence.discrepancy import (
    LEAN,
    TABLE,
    Observed,
    Posterior,
    State,
    families,
    fit,
    posterior,
    states,
    winkler,
    write_states,
)
from chipwise.evidence.residuals import Residuals
from chipwise.units import Array

MOVED = 0.01  # of a parameter, beyond which it is printed
DISCREPANCY = "discrepancy"
KEEP = "--keep="
BALANCE = ("who", "model", "chip", "runtime", "trainer", "format", "benchmark", "scenario")
"""Axes by which the rows of a fit of variances are dealt, so that no large table decides alone."""
ROWS = 1200  # of a fit of variances, whose cost grows with the third power
DRAWS = 8  # of a bootstrap over benchmarkers
PRIVATE = ("who",)
"""Axes of which no level ships: the benchmarker of a plan is nobody who was seen."""


def refitted(suite: str, paths: Sequence[str], keep: str = "") -> dict[str, str]:
    """Texts by the file of the package that ships them; `keep` as `discrepancy` has it.

    Raises `UnknownNameError` for a suite without parameters, `UsageError` for tables without measured rows.
    """
    able = [name for name, s in SUITES.items() if s.trial and s.trial.parameters]
    if suite == DISCREPANCY:
        return {TABLE: discrepancy(paths, keep)}
    if suite not in able:
        names = [*able, DISCREPANCY]
        raise UnknownNameError("suite to fit", suite, names, f"one of {', '.join(names)}")
    trial = SUITES[suite].trial
    assert isinstance(trial, Trial)
    numbers = shipped_parameters()
    table = trial.read(paths, numbers)
    fitted = trial.fit(table, np.arange(trial.size(table)), numbers)
    if trial.under is not None:
        table = trial.read(paths, trial.under(fitted))
        fitted = trial.fit(table, np.arange(trial.size(table)), numbers)
        table = trial.read(paths, trial.under(fitted))
    texts: dict[str, str] = {}
    for file, parameters in trial.parameters.items():
        found = parameters(fitted)
        _say(file, found, numbers.table)
        texts[f"calibrate/data/{file}"] = write_table(found)

    @cache
    def unseen(key: str) -> Residuals:
        return trial.unseen(table, numbers, key)

    if trial.more is not None:
        texts |= trial.more(table, fitted, unseen)
    return texts


def discrepancy(paths: Sequence[str], keep: str = "") -> str:
    """The table of the model of error, fitted to the lines of tables; families of which none has a line keep what
    ships. Prints sigmas with their levels, what a bootstrap over benchmarkers makes of their sum, and how intervals
    hold before and after.

    `keep` is a folder where lines of tables stay, by the content of the table and of this package: a run that was cut
    off goes on where it was.
    """
    rows = observed([line for path in paths for line in _kept_lines(path, keep)])
    shipped = states()
    found = []
    for name, family in families().items():
        if name not in rows:
            found.append(shipped[name])
            continue
        mine = rows[name]
        few = mine.balanced(ROWS, [a for a in BALANCE if a in mine.axes])
        fitted = fit(family, few)
        found.append(posterior(fitted, mine).state(PRIVATE))
        print("\n".join([*_log(fitted, mine), *_held(fitted, few, shipped[name])]), file=sys.stderr)
    return write_states(found)


def _kept_lines(path: str, keep: str) -> list[ErrorLine]:
    """The lines of a table, from the folder where they were kept."""
    if not keep:
        return list(lines_of(path))
    digest = hashlib.sha256(Path(path).read_bytes() + _package().encode()).hexdigest()[:16]
    file = Path(keep, f"{Path(path).stem}-{digest}.json")
    if file.exists():
        return [ErrorLine(*entry) for entry in json.loads(file.read_text("utf-8"))]
    found = list(lines_of(path))
    file.parent.mkdir(parents=True, exist_ok=True)
    with writing(str(file)) as out:
        json.dump([(x.family, x.figure, x.kind, x.y, dict(x.levels)) for x in found], out)
    print(f"{path}: {len(found)} lines", file=sys.stderr, flush=True)
    return found


@cache
def _package() -> str:
    """A digest of all that mids come from: the package without the model of error."""
    root = Path(str(files("chipwise")))
    found = hashlib.sha256()
    for file in sorted(root.rglob("*")):
        if file.is_file() and file.suffix != ".pyc" and not str(file).endswith(TABLE):
            found.update(file.read_bytes())
    return found.hexdigest()


def _held(fitted: Posterior, rows: Observed, shipped: State) -> Iterator[str]:
    """Coverage, width and score of rows whose benchmarker was left out, by figure, and what ships on the same rows."""
    who = rows.axes["who"] if "who" in rows.axes else np.array([])
    if len(np.unique(who)) < 2:
        return
    mean, sd = fitted.left_out(rows, who)
    for figure in np.unique(rows.figure).tolist():
        at = np.flatnonzero(rows.figure == figure)
        kinds = rows.kind[at]
        lies, now = np.empty(len(at)), np.empty(len(at))
        for kind in np.unique(kinds).tolist():
            part = rows.take(at[kinds == kind])
            levels = {name: column for name, column in part.axes.items() if name not in PRIVATE}
            scatter = shipped.spread(levels, figure, kind)
            lies[kinds == kind], now[kinds == kind] = scatter.lies, scatter.sd()
        y = rows.y[at]
        after, before = _interval(y - LEAN * mean[at], sd[at]), _interval(y - lies, now)
        yield f"  {figure}, {len(at)} rows, a benchmarker left out: {after}; what ships, on the same rows: {before}"


def _interval(y: Array, sd: Array) -> str:
    inside = float(np.mean(np.abs(y) <= Z80 * sd))
    width = float(np.median(np.exp(2.0 * Z80 * sd)))
    return f"{inside:.0%} inside, {width:.2f} x wide, score {float(np.mean(winkler(y, sd))):.2f}"


def _log(fitted: Posterior, rows: Observed) -> Iterator[str]:
    """Components of a family in words."""
    levels = Counter(k for k, _ in fitted.at)
    yield f"{fitted.family.name}: {len(rows)} rows"
    for k, term in enumerate(fitted.family.terms):
        yield f"  {term.name:44s} sigma {term.sigma:.3f}, {levels[k]} levels"
    for group, scale in sorted(fitted.scales.items()):
        yield f"  noise of {group:35s} scale {scale:.3f}"
    who, rng = rows.axes["who"] if "who" in rows.axes else np.array([]), np.random.default_rng(0)
    names = np.unique(who)
    if len(names) < 2:
        return
    sums = []
    for _ in range(DRAWS):
        drawn = np.concatenate([np.flatnonzero(who == n) for n in rng.choice(names, len(names))])
        part = rows.take(drawn).balanced(ROWS // 2, [a for a in BALANCE if a in rows.axes])
        sums.append(_whole(fit(fitted.family, part)))
    low, high = np.quantile(sums, (0.1, 0.9))
    yield f"  of a row of which nothing was seen {_whole(fitted):.2f}, bootstrap {low:.2f} to {high:.2f}"


def _whole(fitted: Posterior) -> float:
    return float(np.sqrt(sum(t.sigma**2 for t in fitted.family.terms if not t.figure)))


def main(arguments: Sequence[str]) -> None:
    """Fit, print what moved, ship on --write."""
    keep = next((a.removeprefix(KEEP) for a in arguments if a.startswith(KEEP)), "")
    suite, *paths = [a for a in arguments if not a.startswith("-")] or [""]
    if not paths:
        raise UsageError("no rows", "python -m chipwise.api.suites.refit serving serving_points.csv [--write]")
    texts = refitted(suite, paths, keep)
    if "--write" in arguments:
        for file, text in texts.items():
            Path(str(files("chipwise")), file).write_text(text, "utf-8")
        parsed.main()


def _say(file: str, fitted: Mapping[str, Parameter], before: Mapping[str, Parameter]) -> None:
    """What moved."""
    pairs = [(name, before[name].value if name in before else p.prior, p) for name, p in fitted.items()]
    moved = [(name, old, p) for name, old, p in pairs if old == 0.0 or abs(p.value / old - 1.0) > MOVED]
    print(f"{file}: {len(fitted)} parameters, {len(moved)} moved", file=sys.stderr)
    for name, old, p in moved:
        print(f"{name:64s} {old:10.4g} -> {p.value:10.4g}  spread {p.spread:.2f}", file=sys.stderr)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ChipwiseError as error:
        sys.exit(f"chipwise: {error}")
