"""Asking a machine what it is: this one, by its own tools, or another by what they printed there.

The tools only read, none needs root, all run at once and none longer than `PATIENCE_S`; one that is missing says
nothing. What they print is kept in memory and never shown as it is: the report holds no serial numbers, addresses or
names of hosts and users.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from chipwise.errors import UsageError, shorten
from chipwise.measure.machine import MachineReport, machines_of

PATIENCE_S = 1.8
"""How long all tools together may take, in seconds."""
MAX_BYTES = 2_000_000
"""How much of one recorded file is read: nvidia-smi -q of 64 GPUs is shorter."""
MAX_TOLD = 300_000
"""How much of what one tool prints here: the table of 64 GPUs is a tenth."""
MAX_FILES, MAX_ALL = 200, 6_000_000
"""How many files of a folder are read, and how many characters of all."""

GPU_FIELDS = "index,name,pci.device_id,memory.total,power.limit,power.default_limit,ecc.mode.current,mig.mode.current"

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("nvidia-smi", f"--query-gpu={GPU_FIELDS}", "--format=csv"),
    ("nvidia-smi", "-L"),
    ("nvidia-smi",),
    ("nvidia-smi", "topo", "-m"),
    ("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--showmaxpower", "--json"),
    ("amd-smi", "static", "--asic", "--vram", "--limit", "--partition"),
    ("rocminfo",),
    ("hl-smi",),
    ("xpu-smi", "discovery"),
    ("sycl-ls",),
    ("neuron-ls",),
    ("tpu-info",),
    ("tt-smi", "-s"),
    ("lscpu",),
    ("numactl", "-H"),
    ("dmidecode", "-t", "memory"),
    ("system_profiler", "SPHardwareDataType", "SPDisplaysDataType"),
)
"""What is run. dmidecode answers root alone; to others it says nothing."""

PLACES = tuple(f"/{folder}" for folder in ("usr/lib/wsl/lib", "opt/rocm/bin", "opt/aws/neuron/bin", "usr/sbin", "sbin"))
"""Where tools are that are on no path."""

KERNEL = ("/proc/meminfo", "/proc/device-tree/model", "/sys/firmware/devicetree/base/model")


def ask(path: str | None = None) -> MachineReport:
    """The machine whose recorded prints lie in `path`, or this one. Raises `UsageError` for a path without prints."""
    return this_machine() if path is None else read_recording(path)


def this_machine() -> MachineReport:
    """This machine, as its tools and its kernel describe it."""
    texts = _run_all(COMMANDS)
    for name in KERNEL:
        with contextlib.suppress(OSError):
            texts[name] = _head(Path(name))
    texts |= _kernel_facts()
    return machines_of(texts)


def _run_all(commands: tuple[tuple[str, ...], ...]) -> dict[str, str]:
    """What every tool that is there prints, by its command, in the order of the commands."""
    path = os.pathsep.join((os.environ.get("PATH", ""), *PLACES))
    there = [(command, shutil.which(command[0], path=path)) for command in commands]
    deadline = time.monotonic() + PATIENCE_S
    found: dict[str, str] = {}
    running = [
        threading.Thread(target=_run, args=((tool, *command[1:]), " ".join(command), deadline, found), daemon=True)
        for command, tool in there
        if tool is not None
    ]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(max(deadline + 0.15 - time.monotonic(), 0.0))
    kept = dict(found)
    return {name: kept[name] for name in map(" ".join, commands) if name in kept}


def _run(argv: tuple[str, ...], name: str, deadline: float, found: dict[str, str]) -> None:
    """One tool: its output goes to `found`, also where it failed; at the deadline it is ended with its children."""
    try:
        running = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | {"LC_ALL": "C"},
            start_new_session=os.name == "posix",
        )
    except OSError:
        return
    timer = threading.Timer(max(deadline - time.monotonic(), 0.01), _end, (running,))
    timer.daemon = True
    timer.start()
    try:
        assert running.stdout is not None
        with running.stdout as out:
            text = out.read(MAX_TOLD)
        _end(running)
        found[name] = text.decode("utf-8", "replace")
    finally:
        timer.cancel()


def _end(running: subprocess.Popen[bytes]) -> None:
    """End a tool that still runs, and what it started."""
    if running.poll() is None:
        with contextlib.suppress(OSError):
            if os.name == "posix":
                os.killpg(running.pid, signal.SIGKILL)
            else:
                running.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(0.1)


def _kernel_facts() -> dict[str, str]:
    """What is known without a tool: display and accelerator devices by number, the kind of cloud instance and of TPU,
    whether this is WSL, versions of the driver and of libraries."""
    texts = {}
    lines = []
    for device in sorted(Path("/sys/bus/pci/devices").glob("*"))[:2000]:
        with contextlib.suppress(OSError, ValueError):
            kind = (device / "class").read_text()[:6]
            if kind in ("0x0300", "0x0302", "0x0380", "0x1200"):
                vendor, part = ((device / f).read_text().strip()[2:6] for f in ("vendor", "device"))
                lines.append(f"3D controller [{vendor}:{part}]")
    if lines:
        texts["/sys/bus/pci"] = "\n".join(lines)
    with contextlib.suppress(OSError):
        product = Path("/sys/devices/virtual/dmi/id/product_name").read_text().strip()
        if re.fullmatch(r"[a-z]\w{1,7}\.\w{3,20}", product):
            texts["/sys/devices/virtual/dmi"] = f"instance-type: {product}"
    kind = os.environ.get("TPU_ACCELERATOR_TYPE", "")
    if re.fullmatch(r"[\w-]{2,20}", kind):
        texts["TPU_ACCELERATOR_TYPE"] = f"ACCELERATOR_TYPE: '{kind}'"
    release = platform.release()
    if "WSL2" in release:
        texts["uname -r"] = release
    with contextlib.suppress(OSError):
        texts["/sys/module/amdgpu"] = f"amdgpu version: {Path('/sys/module/amdgpu/version').read_text().strip()}"
    for package, told in (("torch", "PyTorch version: {}"), ("jax", "jax: {}"), ("libtpu", "libtpu version: {}")):
        with contextlib.suppress(PackageNotFoundError):
            texts[package] = told.format(version(package))  # not imported: that takes seconds, and a device
    if not shutil.which("lscpu"):
        texts["/proc/cpuinfo"] = _cpuinfo()
    return texts


def _cpuinfo() -> str:
    """The first processor of /proc/cpuinfo, and the sockets of all; on a Mac, the brand."""
    with contextlib.suppress(OSError):
        text = _head(Path("/proc/cpuinfo"))
        sockets = len(set(re.findall(r"^physical id\s*:\s*(\d+)", text, re.MULTILINE))) or 1
        return text.partition("\n\n")[0] + f"\nSocket(s): {sockets}\n"
    return f"Model name: {platform.processor()}" if platform.processor() else ""


# recordings


def read_recording(path: str) -> MachineReport:
    """The machine whose prints are the files of a folder, or one file that holds what somebody pasted.

    Raises `UsageError` where nothing can be read. Long files are read as far as a print can go, and that is said;
    files that are no text are left out.
    """
    place = Path(path)
    notes: list[str] = []
    if not path.strip():
        raise UsageError("--from is empty", _HINT, field="from")
    try:
        info = place.stat()
        if stat.S_ISDIR(info.st_mode):
            files = sorted(p for p in place.iterdir() if not p.name.startswith("."))
        elif stat.S_ISREG(info.st_mode):
            files = [place]
        else:
            raise UsageError(f"{shorten(path)}: neither a file nor a folder", _HINT, field="from")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a name of a file"
        raise UsageError(f"{shorten(path)}: cannot be read: {why}", _HINT, field="from") from None
    texts = dict(_texts(files[:MAX_FILES], notes))
    if len(files) > MAX_FILES:
        notes.append(f"the first {MAX_FILES} of {len(files)} files were read")
    if not texts:
        said = notes[0] if notes else "it holds no file"
        raise UsageError(f"{shorten(path)}: nothing to read: {said}", _HINT, field="from")
    found = machines_of(texts)
    return replace(found, notes=(*found.notes, *notes))


_HINT = "a folder with one file per command, or a file of what a command printed, as nvidia-smi -q > gpu.txt"


def _texts(files: list[Path], notes: list[str]) -> Iterator[tuple[str, str]]:
    """Every file that is text, with its name; why others are not read goes to `notes`."""
    left = MAX_ALL
    for file in files:
        name = shorten(file.name, 60)
        if left <= 0:
            notes.append(f"{name} and those after it: not read, {MAX_ALL / 1e6:g} MB were read before")
            return
        try:
            info = file.stat()
            if not stat.S_ISREG(info.st_mode):
                if not stat.S_ISDIR(info.st_mode):
                    notes.append(f"{name}: not a file")
                continue
            text = _head(file)
        except (OSError, ValueError):
            notes.append(f"{name}: cannot be read")
            continue
        if text.count("\0") + text.count("�") > len(text) // 20 + 1:
            notes.append(f"{name}: not a text")
            continue
        if not text.strip():
            notes.append(f"{name}: empty")
            continue
        if info.st_size > MAX_BYTES:
            notes.append(f"{name}: the first {MAX_BYTES / 1e6:g} MB were read")
        left -= len(text)
        yield name, text


def _head(file: Path) -> str:
    """The beginning of a file as text, whatever encoding an editor or shell wrote it in."""
    with file.open("rb") as stream:
        raw = stream.read(MAX_BYTES)
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", "replace")
    return raw.decode("utf-8-sig", "replace")
