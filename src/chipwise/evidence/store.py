"""The user's own evidence: one SQLite file in the user's data directory.

Safe under several writers at once (WAL, one transaction per import, a busy timeout); importing the same
content again changes nothing. The schema has a version: a file of an earlier one gets what it lacks when it is next
written, a file of a later one is left alone. Whatever kills a program, what was written before stays.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from chipwise.catalog.files import data_dir
from chipwise.catalog.snapshot import current
from chipwise.errors import CommandText, Sentence, UnknownNameError, UsageError, shorten
from chipwise.evidence.item import Item, from_json, to_json

VERSION = 2
KEPT = "evidence.jsonl"  # what a saved answer calls the user's evidence
BUSY_S = 30.0  # the longest another writer is waited for
AGAIN_S = 0.01  # between two tries where SQLite does not wait itself
LITTLE_BYTES = 2**18
SCHEMA = """
create table if not exists items (
  id text primary key,
  format text not null,
  model text not null,
  chip text not null,
  body text not null,
  added text not null default (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
) without rowid;
create index if not exists items_by_chip on items (chip, model);
create table if not exists probes (
  id text primary key,
  body text not null,
  added text not null default (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
) without rowid;
"""


class Store:
    """The store in a folder, by default the user's. Nothing is created before the first `add`."""

    def __init__(self, folder: Path | None = None) -> None:
        self.path = (folder or data_dir()) / "evidence.sqlite3"

    def add(self, items: Iterable[Item]) -> tuple[int, int]:
        """Keep items, all or none; returns how many are new and how many were there already.

        Raises `UsageError` where the store cannot be written.
        """
        rows = [(i.id, i.format, i.model, i.chip, to_json(i)) for i in items]
        with self._open(write=True) as base:
            before = base.total_changes
            base.executemany("insert or ignore into items (id, format, model, chip, body) values (?,?,?,?,?)", rows)
            new = base.total_changes - before
            base.execute("commit")
        return new, len(rows) - new

    def ready(self) -> None:
        """Returns where something can be kept. Raises `UsageError` before the work that would be lost is done."""
        with self._open(write=True) as base:
            base.execute("rollback")

    def items(self) -> tuple[Item, ...]:
        """Everything that was imported, in order of id; empty where there is no store yet."""
        return tuple(map(self._item, self.lines()))

    def keep_probe(self, text: str, instead: str = "") -> str:
        """Keep a machine that was measured, a line of JSON, `instead` of an earlier state of it; returns its id, a hash
        of the text.

        Raises `UsageError` where the store cannot be written.
        """
        name = "probe-" + hashlib.sha256(text.encode()).hexdigest()[:12]
        with self._open(write=True) as base:
            base.execute("insert or ignore into probes (id, body) values (?, ?)", (name, text))
            if instead != name:
                base.execute("delete from probes where id = ?", (instead,))
            base.execute("commit")
        return name

    def probes(self) -> dict[str, str]:
        """Machines that were measured, lines of JSON by id, the latest last; none where there is no store yet."""
        if not self.path.exists() or not self._rows("select 1 from sqlite_master where name = 'probes'"):
            return {}  # or one of an earlier version, which was not written since
        return {str(name): str(body) for name, body in self._rows("select id, body from probes order by added, id")}

    def _rows(self, query: str) -> list[tuple[object, ...]]:
        with self._open() as base:
            return base.execute(query).fetchall()

    def lines(self) -> list[str]:
        """The items as lines of JSON: those of the saved answer that is made again, else those of the store."""
        text = current().content(KEPT, self._lines).decode(errors="replace")
        return text.split("\n") if text else []

    def _lines(self) -> bytes:
        if not self.path.exists():
            return b""
        bodies = [str(body).replace("\n", " ") for (body,) in self._rows("select body from items order by id")]
        return "\n".join(bodies).encode()

    def _item(self, line: str) -> Item:
        """The item of a line. Raises `UsageError` where it is of another shape than this version's."""
        try:
            return from_json(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f"{self.path}: evidence '{shorten(line, 60)}' cannot be read: {error}",
                "move the file away and import the results again",
            ) from None

    def get(self, name: str) -> Item:
        """The item of an id or of the beginning of one. Raises `UnknownNameError`."""
        # most stores are large and most ids whole: only lines that can hold it are read
        lines = [line for line in self.lines() if name in line]
        found = [i for i in map(self._item, lines) if i.id.startswith(name)]
        exact = [i for i in found if i.id == name]
        if exact or len(found) == 1:
            return (exact or found)[0]
        raise UnknownNameError(
            "evidence", name, (i.id for i in self.items()), Sentence(CommandText("evidence list --own"))
        )

    @contextmanager
    def _open(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """The database, with its schema. Errors of the file become one clear line."""
        try:
            if write:
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with closing(self._prepared(write=write)) as base:
                yield base
        except sqlite3.Error as error:
            if type(error) is sqlite3.DatabaseError:  # what is in the file, not what may be done with it
                aside = f"move it away (mv {self.path} {self.path}.damaged) and import again"
                hint = f"{aside}; --evidence none answers without it"
                raise UsageError(f"{self.path}: damaged: {error}", hint) from None
            raise UsageError(f"{self.path}: cannot be used as a store", self._why(error)) from None
        except OSError as error:
            raise UsageError(f"{self.path}: cannot be written", error.strerror or "check the path") from None

    def _prepared(self, *, write: bool) -> sqlite3.Connection:
        """The file, open and with the present schema; to `write`, in a transaction of its own. SQLite does not wait for
        whoever changes the kind of journal or takes the last one down, so this does."""
        until = time.monotonic() + BUSY_S
        while True:
            with ExitStack() as otherwise:
                try:
                    base = self._connected(write=write)
                    otherwise.callback(base.close)
                    self._bring_up(base, write=write)
                    if write:
                        base.execute("begin immediate")
                    otherwise.pop_all()
                    return base
                except sqlite3.OperationalError as error:
                    if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                        raise
            time.sleep(AGAIN_S)

    def _bring_up(self, base: sqlite3.Connection, *, write: bool) -> None:
        """Gives a new file its schema and an older one what it lacks. Raises `UsageError` for a later one."""
        version = base.execute("pragma user_version").fetchone()[0]
        if version > VERSION:
            raise UsageError(f"{self.path}: written by a later chipwise", "upgrade, or set CHIPWISE_DATA_DIR")
        if version < VERSION:
            # an older one that can only be read is read as it is
            with suppress(*(() if write or not version else (sqlite3.OperationalError,))):
                base.execute("pragma journal_mode = wal")
                base.executescript(f"begin immediate; {SCHEMA} pragma user_version = {VERSION}; commit;")

    def _connected(self, *, write: bool) -> sqlite3.Connection:
        """The file, open. Readers of a journal need a file beside it: where none can be made, as on a full disk, and
        nothing waits in the journal, the file is read as it lies there."""
        base = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None)
        base.execute(f"pragma busy_timeout = {int(BUSY_S * 1000)}")
        journal = self.path.with_name(self.path.name + "-wal")
        try:
            base.execute("pragma user_version").fetchone()
        except sqlite3.DatabaseError as error:
            base.close()
            waits = journal.exists() and journal.stat().st_size
            if write or waits or not isinstance(error, sqlite3.OperationalError):
                raise
            base = sqlite3.connect(f"{self.path.absolute().as_uri()}?immutable=1", uri=True)
        return base

    def _why(self, error: sqlite3.Error) -> str:
        """What stands in the way, and the next step."""
        if self._full():
            return "the disk is full: free some space; what was kept stays"
        folder = self.path.parent
        if folder.is_dir() and not os.access(folder, os.W_OK):
            return f"{error}: {folder} cannot be written; set CHIPWISE_DATA_DIR to a folder that can"
        return str(error)

    def _full(self) -> bool:
        """Whether the disk has no room for another page or two."""
        return self.path.parent.exists() and shutil.disk_usage(self.path.parent).free < LITTLE_BYTES
