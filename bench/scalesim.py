"""How many times faster than SCALE-Sim the same counters come, on layers of ResNet-50.

SCALE-Sim v3 runs here when it is installed and its numpy is (3.0.0 fails with numpy 2.4); else the processor time
that it took when `RECORDED_S` was measured is compared with our time of today, and the line says which.
"""

from __future__ import annotations

import contextlib
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.timing import median_s
from chipwise.cost.systolic import SystolicArray, counters, im2col

__all__ = ["scalesim_ratio"]

# Height and width of the input, of the filter, channels, filters, stride: convolutions of ResNet-50.
LAYERS = ((58, 58, 3, 3, 64, 64, 1), (30, 30, 3, 3, 128, 128, 1), (16, 16, 3, 3, 256, 256, 1))
ROWS = COLS = 32
# Processor seconds of SCALE-Sim 3.0.0 with numpy 2.2, Python 3.11, one x86-64 core, 2026-11-21.
RECORDED_S = 60.0

_CONFIG = """[general]
run_name = layers
[architecture_presets]
ArrayHeight = {rows}
ArrayWidth = {cols}
IfmapSramSzkB = 256
FilterSramSzkB = 256
OfmapSramSzkB = 256
IfmapOffset = 0
FilterOffset = 10000000
OfmapOffset = 20000000
Dataflow = ws
Bandwidth = 64
ReadRequestBuffer = 64
WriteRequestBuffer = 64
[layout]
IfmapCustomLayout = False
FilterCustomLayout = False
IfmapSRAMBankBandwidth = 10
IfmapSRAMBankNum = 10
IfmapSRAMBankPort = 2
FilterSRAMBankBandwidth = 10
FilterSRAMBankNum = 10
FilterSRAMBankPort = 2
[sparsity]
SparsitySupport = false
[run_presets]
InterfaceBandwidth = CALC
UseRamulatorTrace = False
"""
_RUN = """
import contextlib, io, sys, time
from scalesim.scale_sim import scalesim
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    sim = scalesim(save_disk_space=True, verbose=False, config="c.cfg", topology="t.csv", layout="l.csv")
    start = time.process_time()
    sim.run_scale(top_path="out")
    taken = time.process_time() - start
print(taken)
"""


def scalesim_ratio() -> tuple[str, float]:
    """(where SCALE-Sim's time comes from, its seconds over ours)."""
    if importlib.util.find_spec("scalesim") is not None:
        with contextlib.suppress(RuntimeError):
            return "run here", scalesim_seconds() / our_seconds()
    return "its time of 2026-11", RECORDED_S / our_seconds()


def our_seconds() -> float:
    """Seconds for the six counters of all layers at once."""
    array = SystolicArray(float(ROWS), float(COLS))

    def work() -> None:
        for h, w, fh, fw, channels, filters, stride in LAYERS:
            counters(*im2col(h, w, fh, fw, channels, filters, stride, stride, partial_windows="keep"), array, "ws")

    return median_s(work, 51)


def scalesim_seconds() -> float:
    """Processor seconds that SCALE-Sim takes, without its imports. Raises `RuntimeError` when it fails."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "c.cfg").write_text(_CONFIG.format(rows=ROWS, cols=COLS), "utf-8")
        lines = [f"layer{i}, {', '.join(map(str, layer))}," for i, layer in enumerate(LAYERS)]
        head = "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,"
        (place / "t.csv").write_text("\n".join([head, *lines]) + "\n", "utf-8")
        layout = [f"layer{i}, {', '.join(['1'] * 20)}," for i in range(len(LAYERS))]
        (place / "l.csv").write_text("\n".join(["layout", *layout]) + "\n", "utf-8")
        done = subprocess.run([sys.executable, "-c", _RUN], cwd=place, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return float(done.stdout.split()[-1])
