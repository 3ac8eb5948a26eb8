"""`evidence`: published results and the user's own: list, search, show, import."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from chipwise import __version__
from chipwise.api.suites.mlperf import MlperfAnswer, answer
from chipwise.api.suites.round import freeze, frozen_beside, score
from chipwise.api.suites.sync import sync
from chipwise.catalog.benchmarks import load_benchmarks
from chipwise.catalog.chips import get_chip
from chipwise.catalog.files import writing
from chipwise.catalog.published import ROUNDS, TrainingResult, best_results, find_result, load_inference_results, select
from chipwise.catalog.snapshot import today
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError, shorten
from chipwise.evidence.importers import ImportTerms, read_paths
from chipwise.evidence.item import Item, item_of, to_json
from chipwise.evidence.mlperf_rows import SCENARIOS, run_of
from chipwise.evidence.residuals import Validation
from chipwise.evidence.store import Store
from chipwise.report.evidence import ImportReport, Shown, SyncReport
from chipwise.values import dataclass


@dataclass(frozen=True, slots=True)
class Filter:
    """Which evidence is meant; None = any."""

    benchmark: str | None = None
    chip: str | None = None
    scenario: str | None = None
    round: str | None = None
    submitter: str | None = None


def _known(what: str, name: str | None, known: Collection[str], hint: str = "one of {}") -> None:
    """Raises `UnknownNameError` for a name that is given and not known."""
    if name is not None and name not in known:
        raise UnknownNameError(what, name, known, hint.format(", ".join(known)))


def list_evidence(wanted: Filter = Filter(), *, own: bool = False, best: bool = False) -> tuple[Item, ...]:  # noqa: B008
    """Published results, or with `own` the user's, that pass a filter; `best` of each chip, count and round."""
    if own:
        items: Iterable[Item] = Store().items()
        chip = get_chip(wanted.chip).id if wanted.chip else None
        pairs = ((wanted.benchmark, "benchmark"), (chip, "chip"), (wanted.scenario, "scenario"))
        return tuple(i for i in items if all(v is None or getattr(i, n).lower() == v.lower() for v, n in pairs))
    scenario = None if wanted.scenario is None else wanted.scenario.lower()
    _known("benchmark", wanted.benchmark, load_benchmarks(), "")
    _known("round", wanted.round, ROUNDS)
    if scenario not in [s.lower() for s in SCENARIOS]:
        _known("scenario", wanted.scenario, SCENARIOS)
    found = select(
        load_inference_results().values(),
        benchmark=wanted.benchmark,
        chip=get_chip(wanted.chip).id if wanted.chip else None,
        scenario=wanted.scenario,
        round_=wanted.round,
        submitter=wanted.submitter,
    )
    return tuple(map(item_of, best_results(found) if best else found))


def search_evidence(words: Sequence[str]) -> tuple[Item, ...]:
    """Evidence whose text holds all words, the user's own first. Raises `UsageError` for no words."""
    if not any(w.strip() for w in words):
        raise UsageError("nothing to search for", "as in: chipwise evidence search h200 llama2-70b server")
    wanted = [w.lower() for word in words for w in word.split()]
    everything = (*Store().items(), *map(item_of, load_inference_results().values()))

    def text(i: Item) -> str:
        parts = (i.id, i.model, i.benchmark, i.chip, i.part, i.scenario, i.round, i.submitter, i.runtime)
        return " ".join((*parts, i.precision, i.environment, i.format, *i.notes)).lower()

    return tuple(i for i in everything if all(w in text(i) for w in wanted))


def show_evidence(name: str) -> Shown:
    """One piece of evidence by id. Raises `UnknownNameError` with the nearest ids."""
    if name.startswith("own-"):
        return Shown(Store().get(name), None, None, None, "")
    found = find_result(name)
    if isinstance(found, TrainingResult):
        return Shown(None, None, found, None, "")
    try:
        run = run_of(found)
        (given,) = answer([run])
        if not isinstance(given, MlperfAnswer):
            raise given
        predicted, note = given.figures()["result"], run.precision_note
    except ChipwiseError as error:
        predicted, note = None, str(error)
    return Shown(item_of(found), found, None, predicted, note)


def layout_of(text: str) -> str:
    """Degrees of parallelism as `Item.layout` has them, from a text as in "tp=4,dp=2". Raises `UsageError`."""
    degrees: dict[str, int] = {}
    for part in text.replace(" ", "").split(","):
        name, _, value = part.partition("=")
        if name not in ("tp", "pp", "dp", "ep") or not value.isdigit() or not 1 <= int(value) <= 100_000:
            raise UsageError(f"--layout {shorten(text)}: '{shorten(part)}' is no degree", "as in tp=4,dp=2")
        degrees[name] = int(value)
    return ",".join(f"{name}={value}" for name, value in degrees.items())


def round_of(rows: str, frozen: str | None = None) -> tuple[str, Validation | None]:
    """Freeze the product's answers to a table that nobody has read, or where they are frozen score them: the file of
    frozen answers, and the score. Raises the errors of `freeze` and `score`."""
    file = frozen or frozen_beside(rows)
    if Path(file).exists():
        return file, score(rows, file)
    freeze(rows, file, today().isoformat(), __version__)
    return file, None


def export_evidence(path: str) -> int:
    """Write everything of the user's store to a file, an item to a line, for `evidence import` elsewhere; how many.

    Raises `UsageError` where there is nothing, or the file cannot be written.
    """
    items = Store().items()
    if not items:
        raise UsageError("nothing was imported or measured yet", "chipwise evidence import FILES")
    with writing(path) as out:
        out.writelines(to_json(item) + "\n" for item in items)
    return len(items)


def import_evidence(
    paths: Sequence[str],
    given: ImportTerms = ImportTerms(),  # noqa: B008
    folder: Path | None = None,
) -> ImportReport:
    """Read benchmark files into the user's store; what cannot be read is named and skipped.

    Raises `UsageError` where not one result could be read, or the store cannot be written.
    """
    given = _by_id(given)
    files = tuple(read_paths(paths, given))
    items = [item for file in files for item in file.items]
    if not items:
        first = next(((f.file, f.skipped[0]) for f in files if f.skipped), None)
        what = f"{first[0]}: {first[1]}" if first else "no files of results found"
        more = f", and {len(files) - 1} more" if len(files) > 1 else ""
        raise UsageError(f"nothing was imported: {what}{more}")
    store = Store(folder)
    new, known = store.add(items)
    return ImportReport(files, new, known, str(store.path))


def sync_evidence(paths: Sequence[str], folder: str, given: ImportTerms) -> SyncReport:
    """Read benchmarks of others into the tables of a folder, as rows that `evidence round` and a refit read.

    Raises the errors of `sync`.
    """
    return sync(paths, folder, _by_id(given))


def _by_id(given: ImportTerms) -> ImportTerms:
    """The terms with the catalogue's name of the chip. Raises `UnknownNameError`."""
    return replace(given, chip=get_chip(given.chip).id) if given.chip else given
