"""Output appears whole or not at all, and never in the place of what is no file."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chipwise.catalog.configs import bundled_configs
from chipwise.catalog.files import create, writing
from chipwise.errors import UsageError
from chipwise.evidence.residuals import Validation
from chipwise.report.accuracy import write_section
from command_line import Run

MODEL = "meta-llama/Llama-3.1-8B"


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def circle(path: Path) -> None:
    path.symlink_to(path)


def dangling(path: Path) -> None:
    path.symlink_to(path.with_name("elsewhere"))


def to_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("a-pipe"))
    path.symlink_to("a-pipe")


KINDS = {
    "folder": Path.mkdir,
    "pipe": pipe,
    "socket": listening,
    "circle of links": circle,
    "link to nothing": dangling,
    "link to a pipe": to_pipe,
    "no name": None,
}
COMMANDS = {
    "plan": ("plan", MODEL, "--chips", "l4", "--rate", "1/s", "--save"),
    "predict": ("predict", "systolic", "--rows", "rows.csv", "--out"),
    "calibrate": ("calibrate", "kernels", "--rows", "rows.csv", "--out"),
}
SAID = "cannot be written, it is not a file (name a regular file, or one that is not there yet)"


def tree(folder: Path) -> list[tuple[str, int]]:
    return sorted((p.name, stat.S_IFMT(p.lstat().st_mode)) for p in folder.iterdir())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_output_refuses_what_is_no_file(
    kind: str, command: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("row_id,chip,op,latency_us\na,l4,gemm,1\n")
    make: Callable[[Path], None] | None = KINDS[kind]
    if make is not None:
        make(tmp_path / "out")
    before = tree(tmp_path)
    assert SAID in run(*COMMANDS[command], "" if make is None else "out").refused(2)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("kind", ["folder", "pipe", "link to nothing", "no name"])
def test_a_report_of_validation_is_written_the_same_way(kind: str, tmp_path: Path) -> None:
    make = KINDS[kind]
    if make is not None:
        make(tmp_path / "out")
    found = Validation("suite", "how", {}, ())
    with pytest.raises(UsageError, match="it is not a file"):
        write_section(found, "" if make is None else str(tmp_path / "out"))
    file = tmp_path / "new.md"
    write_section(found, str(file))
    write_section(found, str(file))
    assert file.read_text().count("## suite") == 1


def test_a_link_is_no_output_and_rights_of_a_file_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    with pytest.raises(UsageError, match=f"not a file but a link .*{file}"), writing(link) as out:
        out.write("new")
    assert file.read_text() == "old"
    with writing(file) as out:
        out.write("new")
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("new", 0o640)
    assert link.is_symlink()
    assert len(tree(tmp_path)) == 2


def test_a_folder_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "folder").symlink_to(tmp_path / "real")
    with writing(tmp_path / "folder" / "file") as out:
        out.write("new")
    assert (tmp_path / "real" / "file").read_text() == "new"


@pytest.mark.parametrize("option", ["--save", "--html"])
def test_an_answer_is_not_written_through_a_link(run: Run, tmp_path: Path, option: str) -> None:
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_text("old")
    link.symlink_to(victim)
    said = run("fit", MODEL, "--chips", "l4", option, str(link)).refused(2)
    assert "not a file but a link" in " ".join(said.split())
    assert (victim.read_text(), link.is_symlink()) == ("old", True)


def test_an_error_leaves_all_as_it_was(tmp_path: Path) -> None:
    def fails(out: object) -> None:
        out.write("half")  # type: ignore[attr-defined]
        raise RuntimeError("in the middle")

    (tmp_path / "file").write_text("old")
    for name in ("file", "new"):
        with pytest.raises(RuntimeError, match="middle"), writing(tmp_path / name) as out:
            fails(out)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "old"


def test_what_is_read_is_not_replaced(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(dict(bundled_configs()[MODEL].data)))
    before = config.read_text()
    said = run("fit", str(config), "--chips", "l4", "--save", str(config)).refused(2)
    assert "would replace" in said
    assert config.read_text() == before


def test_a_new_file_is_new(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(FileExistsError):
        create(tmp_path / "link")
    assert not (tmp_path / "target").exists()
    with create(tmp_path / "x.sh", executable=True) as out:
        out.write("true")
    assert os.access(tmp_path / "x.sh", os.X_OK)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_program_that_is_ended_leaves_nothing_half_written(number: signal.Signals, tmp_path: Path) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip(f"{number.name} is ignored here, as under nohup, and so in what is started")
    program = (
        "import time\nfrom chipwise.catalog.files import writing\n"
        "with writing('out') as out:\n    out.write('half')\n    out.flush()\n"
        "    open('ready', 'w').close()\n    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path) as child:
        for _ in range(600):
            if (tmp_path / "ready").exists():
                break
            time.sleep(0.05)
        assert len(tree(tmp_path)) == 2
        child.send_signal(number)
        assert child.wait(30) == 128 + number
    assert [p.name for p in tmp_path.iterdir()] == ["ready"]
