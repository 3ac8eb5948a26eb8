from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from chipwise.catalog.files import data_dir
from chipwise.errors import UnknownNameError, UsageError
from chipwise.evidence.item import Item, own_item
from chipwise.evidence.store import Store
from command_line import Run


def item(n: int) -> Item:
    return own_item("test", {"model": "m", "result": float(n + 1), "unit": "Tokens/s", "tokens_per_s": float(n + 1)})


def test_nothing_is_created_by_reading(tmp_path: Path) -> None:
    store = Store(tmp_path / "deep" / "er")
    assert store.items() == ()
    assert not (tmp_path / "deep").exists()


def test_adding_twice_changes_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.add([item(0), item(1)]) == (2, 0)
    assert store.add([item(1), item(2)]) == (1, 1)
    assert {i.result for i in store.items()} == {1.0, 2.0, 3.0}


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    def work(worker: int) -> None:
        for k in range(10):
            Store(tmp_path).add([item(worker * 10 + k), item(999)])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(Store(tmp_path).items()) == 81
    with sqlite3.connect(tmp_path / "evidence.sqlite3") as base:
        assert base.execute("pragma journal_mode").fetchone()[0] == "wal"
        assert base.execute("pragma integrity_check").fetchone()[0] == "ok"


PROCESS = """
import sys
from pathlib import Path
from chipwise.evidence.item import own_item
from chipwise.evidence.store import Store

folder, worker = Path(sys.argv[1]), int(sys.argv[2])
for k in range(8):
    values = {"model": "m", "unit": "Tokens/s"}
    mine = own_item("test", {**values, "result": 100.0 * worker + k + 1})
    Store(folder).add([mine, own_item("test", {**values, "result": 9999.0})])
"""


def test_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    started = [
        subprocess.Popen([sys.executable, "-c", PROCESS, str(tmp_path), str(n)], stderr=subprocess.PIPE)
        for n in range(4)
    ]
    errors = [p.communicate()[1].decode() for p in started]
    assert [p.returncode for p in started] == [0] * 4, errors
    assert len(Store(tmp_path).items()) == 33


def test_an_item_is_found_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add([item(0), item(1)])
    wanted = item(0)
    assert store.get(wanted.id[:12]) == wanted
    for name in ("own-", "own-zzz", "%", "_"):
        with pytest.raises(UnknownNameError):
            store.get(name)


def test_a_file_that_is_no_store_or_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "evidence.sqlite3"
    file.write_text("no database, but long enough to be looked at as one by the library")
    for use in (lambda: Store(tmp_path).add([item(0)]), Store(tmp_path).items, Store(tmp_path).ready):
        with pytest.raises(UsageError, match="damaged: file is not a database") as refused:
            use()
        assert f"mv {file} {file}.damaged" in refused.value.hint
        assert "--evidence none" in refused.value.hint
    assert file.read_text().startswith("no database")
    file.unlink()
    with sqlite3.connect(file) as base:
        base.execute("pragma user_version = 99")
    base.close()
    with pytest.raises(UsageError, match="later chipwise"):
        Store(tmp_path).items()


@pytest.mark.parametrize(
    "body",
    [
        '{"a":1}', "[]", "3", "null", "not json", "", b"\xff\xfe", 7, "[" * 100_000,
        '{"id":"i","origin":"own","format":"f","model":"m","result":"fast","unit":"u"}',
        '{"id":"i","origin":"stolen","format":"f","model":"m","result":1,"unit":"u"}',
        '{"id":"i","origin":"own","format":"f","model":"m","result":NaN,"unit":"u"}',
        '{"id":"i","origin":"own","format":"f","model":"m","result":1,"unit":"u","notes":"text"}',
        '{"id":"i","origin":"own","format":"f","model":"m","result":1,"unit":"u","chips":"8"}',
        '{"id":"i","origin":"own","format":"f","model":"m","result":1,"unit":"u","chips":true}',
    ],
)  # fmt: skip
def test_an_item_of_another_shape_is_named(
    body: object, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHIPWISE_DATA_DIR", str(tmp_path))
    store = Store()
    store.add([item(0), item(1)])
    with sqlite3.connect(store.path) as base:
        base.execute("update items set body = ? where id = ?", (body, min(item(0).id, item(1).id)))
    base.close()
    assert "cannot be read: " in run("evidence", "list", "--own").refused(2)


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    whole = replace(item(0), chips=8, power_limit_w=700, notes=("a\u2028b", "c\nd"))
    store = Store(tmp_path)
    store.add([whole, item(1)])
    assert set(store.items()) == {whole, item(1)}


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        Store(tmp_path / "file" / "sub").add([item(0)])


def test_the_data_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CHIPWISE_DATA_DIR", str(tmp_path))
    assert data_dir() == tmp_path
    monkeypatch.delenv("CHIPWISE_DATA_DIR")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert data_dir() == tmp_path / "chipwise"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert data_dir() == Path.home() / ".local" / "share" / "chipwise"


def test_a_store_that_was_cut_short_says_what_to_do(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHIPWISE_DATA_DIR", str(tmp_path))
    Store().add([item(0)])
    assert "1 runs and 0 machines" in run("doctor").out
    with Store().path.open("r+b") as file:
        file.truncate(6000)
    said = " ".join(run("evidence", "list", "--own").refused(2).split())
    assert "damaged: database disk image is malformed" in said
    assert "import again" in said
    ran = run("doctor")
    assert ran.code == 1
    assert "damaged" in ran.out
    assert run("estimate", "Qwen3-0.6B", "--chip", "h100", "--evidence", "none").code == 0


def test_a_store_that_can_be_written_is_ready(tmp_path: Path) -> None:
    Store(tmp_path).ready()
    assert Store(tmp_path).items() == ()
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        Store(tmp_path / "file" / "sub").ready()


def test_an_older_store_gets_what_it_lacks(tmp_path: Path) -> None:
    """As version 1 left it: no table of machines."""
    store = Store(tmp_path)
    store.add([item(0)])
    with sqlite3.connect(store.path) as base:
        base.executescript("drop table probes; pragma user_version = 1;")
    base.close()
    assert store.probes() == {}
    assert len(store.items()) == 1
    name = store.keep_probe("{}")
    assert store.probes() == {name: "{}"}
    assert len(store.items()) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes what is read-only")
def test_an_older_store_that_can_only_be_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add([item(0)])
    with sqlite3.connect(store.path) as base:
        base.executescript("drop table probes; pragma user_version = 1; pragma journal_mode = delete;")
    base.close()
    store.path.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        assert (len(store.items()), store.probes()) == (1, {})
    finally:
        tmp_path.chmod(0o700)


FULL = """
import resource, sys
from pathlib import Path
from chipwise.errors import UsageError
from chipwise.evidence.item import own_item
from chipwise.evidence.store import Store

store = Store(Path(sys.argv[1]))
store.add([own_item("test", {"model": "m", "unit": "Tokens/s", "result": 1.0})])
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
many = [own_item("test", {"model": "m" * 500, "unit": "Tokens/s", "result": float(k)}) for k in range(2, 2000)]
try:
    store.add(many)
except UsageError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_full_disk_is_said_and_nothing_is_lost(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "cannot be used as a store" in ran.stdout
    assert len(Store(tmp_path).items()) == 1
    assert Store(tmp_path).add([item(7)]) == (1, 0)


def test_a_store_is_read_where_no_file_can_be_made_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    store.add([item(0)])
    store.path.with_name(store.path.name + "-shm").mkdir()  # as where a disk is full
    assert len(store.items()) == 1
    with pytest.raises(UsageError, match="cannot be used as a store") as refused:
        store.add([item(1)])
    assert "the disk is full" not in str(refused.value)
    full = shutil.disk_usage(tmp_path)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.raises(UsageError, match="the disk is full"):
        store.add([item(1)])


KILLED = """
import os, signal, sys
from pathlib import Path
from chipwise.evidence.item import own_item
from chipwise.evidence.store import Store

def endless():
    for k in range(1, 10**6):
        if k == 500:
            os.kill(os.getpid(), signal.SIGKILL)
        yield own_item("test", {"model": "m", "unit": "Tokens/s", "result": float(k)})

store = Store(Path(sys.argv[1]))
store.add([own_item("test", {"model": "kept", "unit": "Tokens/s", "result": 1.0})])
with store._open(write=True) as base:
    for i in endless():
        base.execute("insert into items (id, format, model, chip, body) values (?,?,?,?,'{}')", (i.id, "", "", ""))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_killed_in_the_middle(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert ran.returncode == -9
    assert [i.model for i in Store(tmp_path).items()] == ["kept"]
    assert Store(tmp_path).add([item(1)]) == (1, 0)
