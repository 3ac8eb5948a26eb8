"""Reading and writing the user's own files without being surprised by what they are."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TextIO

from chipwise.catalog.snapshot import current, own_bytes
from chipwise.errors import UsageError, shorten

ENDING = [n for n in ("SIGTERM", "SIGHUP") if hasattr(signal, n)]  # signals that end a program at once


def data_dir() -> Path:
    """Where the user's data lives: CHIPWISE_DATA_DIR, else the rule of the platform."""
    own = os.environ.get("CHIPWISE_DATA_DIR")
    if own:
        return Path(own).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "chipwise"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "chipwise"
    xdg = os.environ.get("XDG_DATA_HOME", "")
    return (Path(xdg) if xdg.startswith("/") else Path.home() / ".local" / "share") / "chipwise"


def is_file(path: Path) -> bool:
    """Whether a name is that of a file; names that no file can have are not."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long; a NUL in it
        return False


def read_text(path: Path, most_bytes: int, what: str) -> str:
    """The text of a regular file of at most `most_bytes`, expected to be `what`.

    Raises `UsageError` for a file that is no text, and as `read_bytes` does.
    """
    try:
        return read_bytes(path, most_bytes, what).decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not a text file", f"expected {what}") from None


def read_bytes(path: Path, most_bytes: int, what: str) -> bytes:
    """The same of a file that need not be text.

    Raises `UsageError` for a file that is missing, too large, no regular file or not readable.
    """
    try:
        if str(path) in current().given:
            return own_bytes(path)
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):
            raise UsageError(f"{path}: not a file", f"expected {what}")
        if info.st_size > most_bytes:
            size = f"{info.st_size / 1e6:,.0f} MB"
            raise UsageError(f"{path}: {size} is too large", f"expected {what}, at most {most_bytes / 1e6:g} MB")
        return own_bytes(path)
    except FileNotFoundError:
        raise UsageError(f"no such file: {path}", f"expected {what}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read", getattr(error, "strerror", None) or "check the path") from None


def output_file(path: str | Path, *inputs: str | None) -> Path:
    """The file that an option of output names: a regular file or a name that is free, and none of the `inputs` that are
    read. Raises `UsageError` for anything else: a folder, a pipe, a device, a link wherever it leads (a folder on the
    way may be one).
    """
    given = Path(path)
    try:
        target = given.resolve()
        linked = given.is_symlink()
        usable = bool(str(path)) and not linked and (target.is_file() or not os.path.lexists(target))
        same = [name for name in inputs if name and Path(name).resolve() == target]
    except (OSError, ValueError, RuntimeError):  # a NUL or too long a name; links in a circle
        usable, linked, same = False, False, []
    if linked and target.is_file():
        what = f"{shorten(str(path), 200)}: cannot be written, it is not a file but a link"
        raise UsageError(what, f"name the file that it leads to: {shorten(str(target), 200)}")
    if not usable:
        raise UsageError(
            f"{shorten(str(path)) or repr('')}: cannot be written, it is not a file",
            "name a regular file, or one that is not there yet",
        )
    if same:
        raise UsageError(
            f"{shorten(str(path), 200)}: would replace {shorten(same[0], 200)}, which is read", "name another file"
        )
    return target


@contextmanager
def writing(path: str | Path, *inputs: str | None) -> Iterator[TextIO]:
    """An open text file that takes the place of the named one when all is written; if it is not, because of an error
    or a signal that ends the program, nothing has changed. An existing file keeps its permissions.

    Raises `UsageError` as `output_file` does, and where the file cannot be written.
    """
    target = output_file(path, *inputs)
    draft = target.with_name(f".{os.urandom(8).hex()}.part")
    try:
        with _undone_when_ended():
            try:
                with create(draft) as out:
                    yield out
                if target.exists():
                    draft.chmod(stat.S_IMODE(target.stat().st_mode))
                draft.replace(target)
            finally:
                with contextlib.suppress(OSError):
                    draft.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{shorten(str(path))}: cannot be written", error.strerror or "check the path") from None


def create(path: Path, *, executable: bool = False) -> TextIO:
    """A new text file, open to be written. Raises `FileExistsError` where anything has its name, a link to nothing
    included, and other kinds of `OSError`."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o777 if executable else 0o666)
    return os.fdopen(number, "w", encoding="utf-8", newline="")


@contextmanager
def _undone_when_ended() -> Iterator[None]:
    """Signals that end the program at once let `finally` run before; only the main thread hears of them."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    numbers = [getattr(signal, name) for name in ENDING]
    alone = threading.current_thread() is not threading.main_thread()
    taken = [] if alone else [n for n in numbers if signal.getsignal(n) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def write_own(path: Path, text: str) -> None:
    """Write a table of the user's data whole or not at all, in a folder that is made. Raises `UsageError` where that
    cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path.parent}: cannot be made", error.strerror or "check CHIPWISE_DATA_DIR") from None
    with writing(path) as out:
        out.write(text)
