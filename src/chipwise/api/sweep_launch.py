"""`launch` of a sweep: its design and the files that it names, in one file that starts it elsewhere."""

from __future__ import annotations

from pathlib import Path

from chipwise.api.requests.sweep import MOST_BYTES, read_sweep
from chipwise.api.sweep_run import own_files
from chipwise.catalog.files import read_text
from chipwise.catalog.offer import own_table
from chipwise.errors import UsageError, shorten
from chipwise.evidence.store import KEPT
from chipwise.report.launch.spec import LaunchFile, SweepSpec
from chipwise.report.launch.sweeping import DESIGN
from chipwise.report.launch.targets import SWEEPS, launch_files

MOST_TEXT = 900_000
"""bytes: of all files together. Chosen: below 1 MiB, the most that a ConfigMap holds."""


def launch_sweep(path: str, target: str) -> tuple[LaunchFile, ...]:
    """The files that start the sweep of a TOML file with a tool. Raises the errors of `read_sweep` and `launch_files`,
    and `UsageError` for no tool, and for files of the user that do not travel."""
    if not target:
        raise UsageError("no tool is named for the sweep", f"--for {' or '.join(SWEEPS)}", field="for")
    design = read_sweep(path)
    own = own_files(design.tried())
    left = [own.pop(name, b"") for name in (KEPT, str(own_table()))]
    files = [(DESIGN, read_text(Path(path), MOST_BYTES, "a sweep"))]
    for name, content in own.items():
        if Path(name).name != name or name == DESIGN:
            what = f"{shorten(name)}: a file in another folder does not travel with the sweep"
            raise UsageError(what, "put it where you start chipwise, under another name than sweep.toml")
        files.append((name, content.decode("utf-8", "replace")))
    if sum(len(text.encode()) for _, text in files) > MOST_TEXT:
        raise UsageError(
            f"{path} and the files that it names are too large", f"at most {MOST_TEXT:,} bytes together"
        )
    spec = SweepSpec(
        f"a sweep: {design.verb}, {design.cells:,} cells",
        design.cells,
        tuple((name, tuple(text.expandtabs().strip().splitlines())) for name, text in files),
        ("your own evidence and prices stay here",) if any(left) else (),
    )
    return launch_files(spec, target)
