"""The machine is asked by its own tools within two seconds; recordings are read whatever stands in the folder."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

import chipwise
from chipwise.api.requests.doors import read_request
from chipwise.errors import UsageError
from chipwise.measure import asking
from chipwise.measure.asking import read_recording, this_machine
from command_line import Run

GPUS = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-2)\n"
MODEL = "meta-llama/Llama-3.1-8B"

posix = pytest.mark.skipif(os.name != "posix", reason="needs executable scripts")


def tool(folder: Path, name: str, script: str) -> None:
    file = folder / name
    file.write_text(f"#!{sys.executable}\n{script}\n")
    file.chmod(0o755)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with no tool but those put into the folder."""
    tools = tmp_path / "tools"
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setattr(asking, "PLACES", ())
    monkeypatch.setattr(asking, "KERNEL", ())
    monkeypatch.setattr(asking, "_kernel_facts", dict)
    return tools


def test_this_machine_is_asked_within_two_seconds() -> None:
    began = time.monotonic()
    found = this_machine()
    assert time.monotonic() - began < 2.5
    assert found.machines or found.problems or found.host.cpu or not found.read


@posix
def test_a_tool_that_hangs_is_ended_and_the_others_heard(bare: Path, tmp_path: Path) -> None:
    tool(bare, "nvidia-smi", f"print({GPUS!r})")
    tool(bare, "rocm-smi", f"import time; open({str(tmp_path / 'pid')!r}, 'w').write('x'); time.sleep(60)")
    tool(bare, "hl-smi", "raise SystemExit(3)")
    began = time.monotonic()
    found = this_machine()
    assert time.monotonic() - began < 3.0
    assert found.have == "2xh100-sxm5-80gb"


@posix
def test_a_tool_that_prints_without_end_is_cut(bare: Path) -> None:
    tool(bare, "nvidia-smi", f"import sys\nwhile True: sys.stdout.write({GPUS!r} + 'x' * 1000)")
    began = time.monotonic()
    assert this_machine().have == "2xh100-sxm5-80gb"
    assert time.monotonic() - began < 5.0


@posix
def test_have_auto_is_the_machine_found(bare: Path, run: Run, tmp_path: Path) -> None:
    tool(bare, "nvidia-smi", f"print({GPUS!r})")
    done = run("plan", MODEL, "--have", "auto", "--format", "json")
    assert done.code == 0
    assert "2xh100-sxm5-80gb" in done.err
    assert {plan["chip"] for plan in json.loads(done.out)["plans"]} == {"h100-sxm5-80gb"}
    saved = tmp_path / "plan.json"
    assert run("plan", MODEL, "--have", "auto", "--save", str(saved)).code == 0
    assert json.loads(saved.read_text())["request"]["have"] == "2xh100-sxm5-80gb"  # the same wherever it is replayed
    assert chipwise.train(MODEL, tokens="1B", have="auto", task="finetune").plans


@posix
def test_auto_names_the_chips_of_verbs_that_take_no_machine(bare: Path, run: Run) -> None:
    """fit counts them, estimate and explain take the kind."""
    tool(bare, "nvidia-smi", f"print({GPUS!r})")
    fits = run("fit", MODEL, "--chips", "auto", "--format", "json")
    assert "--chips auto: 2xh100-sxm5-80gb" in fits.err
    assert [(f["chip"], f["chips"]) for f in fits.json["fits"]] == [("h100-sxm5-80gb", 2)]
    one = run("estimate", MODEL, "--chip", "auto", "--format", "json")
    assert "--chip auto: h100-sxm5-80gb" in one.err
    assert one.json["plans"][0]["chip"] == "h100-sxm5-80gb"
    assert chipwise.estimate(MODEL, chip="auto").plans[0].chip == "h100-sxm5-80gb"
    tool(bare, "nvidia-smi", "print('GPU 0: NVIDIA A100-SXM-64GB (UUID: GPU-0)')")
    near = run("estimate", MODEL, "--chip", "auto").refused(2)
    assert "A100-SXM-64GB" in near
    assert "--chip a100" in near
    assert "--chip 1x" not in near


def test_have_auto_without_devices_says_what_to_write(bare: Path, run: Run) -> None:
    done = run("plan", MODEL, "--have", "auto")
    assert done.code == 2
    assert "no device was found" in done.err
    assert "--have 8xh100" in done.err
    with pytest.raises(chipwise.ChipwiseError, match="no device"):
        chipwise.plan(MODEL, have="auto")


@pytest.mark.parametrize("verb", ["plan", "train"])
def test_doors_that_serve_others_do_not_look_at_their_own_machine(verb: str) -> None:
    with pytest.raises(UsageError, match="describe the machine that answers") as refused:
        read_request(verb, {"model": MODEL, "have": "auto"})
    assert refused.value.field == "have"
    assert "doctor --devices" in refused.value.hint


def test_a_folder_of_prints_through_the_command(run: Run, tmp_path: Path) -> None:
    (tmp_path / "nvidia-smi-L.txt").write_text(GPUS)
    (tmp_path / "proc-meminfo.txt").write_text("MemTotal:       527600748 kB\n")
    done = run("doctor", "--devices", "--from", str(tmp_path), "--format", "json")
    machine = json.loads(done.out)["machines"][0]
    assert (machine["chip"], machine["count"], machine["ambiguous"]) == ("h100-sxm5-80gb", 2, [])
    assert set(machine) >= {"chip", "count", "memory_gb", "differs", "ambiguous"}
    table = run("doctor", "--from", str(tmp_path)).out
    assert "--have 2xh100-sxm5-80gb" in table
    assert "540.3 GB" in table
    assert run("doctor", "--devices", "--from", str(tmp_path / "nvidia-smi-L.txt"), "--format", "csv").code == 0


def test_files_that_are_no_prints(tmp_path: Path) -> None:
    (tmp_path / "gpus.txt").write_text(GPUS)
    (tmp_path / "picture.png").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "windows.txt").write_bytes("Name : NVIDIA GeForce RTX 3090\nAdapterRAM : 1\n".encode("utf-16"))
    if os.name == "posix":
        (tmp_path / "nothing").symlink_to(tmp_path / "gone")
        (tmp_path / "endless").symlink_to("/dev/zero")
        os.mkfifo(tmp_path / "pipe")
    found = read_recording(str(tmp_path))
    assert found.machines[0].chip == "h100-sxm5-80gb"
    assert "picture.png: not a text" in found.notes
    assert "empty.txt: empty" in found.notes
    assert "windows.txt" in found.read


def test_a_huge_file_is_read_as_far_as_a_print_goes(tmp_path: Path) -> None:
    huge = tmp_path / "huge.txt"
    with huge.open("wb") as out:
        out.write(GPUS.encode())
        out.truncate(1_000_000_000)  # a hole: zeros that take no room
    with pytest.raises(UsageError, match="not a text"):
        read_recording(str(huge))
    with huge.open("wb") as out:
        out.write(GPUS.encode() + b"a line of text\n" * 200_000)
    found = read_recording(str(huge))
    assert found.have == "2xh100-sxm5-80gb"
    assert any("the first 2 MB" in note for note in found.notes)


@pytest.mark.parametrize("name", ["gone", "", "a\0b", "x" * 5000, "/dev/zero", "/dev/stdin"])
def test_what_cannot_be_read_is_one_clear_line(name: str, run: Run) -> None:
    if name.startswith("/dev") and os.name != "posix":
        pytest.skip("needs device files")
    done = run("doctor", "--from", name)
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "nvidia-smi" in done.err


def test_an_empty_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no file"):
        read_recording(str(tmp_path))
