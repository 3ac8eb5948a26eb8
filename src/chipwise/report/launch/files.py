"""Files that start a plan: what a program holds of them, and how they are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from chipwise.catalog.files import create
from chipwise.errors import UsageError
from chipwise.values import dataclass


@dataclass(frozen=True, slots=True)
class LaunchFile:
    """A file by name; scripts are executable."""

    name: str
    text: str
    script: bool = False


class LaunchFiles(tuple[LaunchFile, ...]):
    """Files that start a plan: `print(files)` shows them all, below `note`: why they start another plan than the one
    that was asked for ("": they start that one)."""

    note: str

    def __new__(cls, files: Iterable[LaunchFile] = (), note: str = "") -> Self:
        """Files in their order, with a note."""
        made = super().__new__(cls, files)
        made.note = note
        return made

    def __str__(self) -> str:
        files = (f"# ---- {file.name} ----\n{file.text}" for file in self)
        return "\n".join((*([self.note] if self.note else []), *files))

    __repr__ = __str__

    def write(self, folder: str | Path) -> None:
        """Write all files to a folder, or none. Raises `UsageError` where one is there already."""
        write_files(self, folder)


def write_files(files: Sequence[LaunchFile], folder: str | Path) -> tuple[Path, ...]:
    """Write all files to a folder, or none; each is new, and nothing is written through a link.

    Raises `UsageError` where one is there already or cannot be written.
    """
    if not str(folder):
        raise UsageError("'': not a folder to write to", "name one: --out FOLDER")
    paths = tuple(Path(folder) / f.name for f in files)
    written: list[Path] = []
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for path, file in zip(paths, files, strict=True):
            path.parent.mkdir(exist_ok=True)
            with create(path, executable=file.script) as out:
                written.append(path)
                out.write(file.text)
    except (OSError, ValueError) as error:
        for path in written:
            path.unlink(missing_ok=True)
        if isinstance(error, FileExistsError) and len(written) < len(paths) and Path(folder).is_dir():
            raise UsageError(f"{paths[len(written)]} is there already", "name another --out") from None
        why = getattr(error, "strerror", None) or "check the path"
        raise UsageError(f"{folder}: cannot be written", why) from None
    return paths
