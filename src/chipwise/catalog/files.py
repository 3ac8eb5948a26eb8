"""Reading the user's own files without being surprised by what they are."""

from __future__ import annotations

import stat
from pathlib import Path

from chipwise.catalog.snapshot import current, own_bytes
from chipwise.errors import UsageError

__all__ = ["read_text"]


def read_text(path: Path, most_bytes: int, what: str) -> str:
    """The text of a regular file of at most `most_bytes`, expected to be `what`.

    Raises `UsageError` for a file that is missing, too large, no regular file, no text or not readable.
    """
    if str(path) in current().given:
        return own_bytes(path).decode("utf-8")
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):
            raise UsageError(f"{path}: not a file", f"expected {what}")
        if info.st_size > most_bytes:
            size = f"{info.st_size / 1e6:,.0f} MB"
            raise UsageError(
                f"{path}: {size} is too large", f"expected {what}, at most {most_bytes / 1e6:g} MB"
            )
        return own_bytes(path).decode("utf-8")
    except FileNotFoundError:
        raise UsageError(f"no such file: {path}", f"expected {what}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not a text file", f"expected {what}") from None
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path}: cannot be read", getattr(error, "strerror", None) or "check the path"
        ) from None
