"""This machine against its own measurements: `python -m bench.machine [--threads N] [--budget 60s]`, seven minutes.

Two probes of each backend predict shapes that they held out, and each other's; a transformer and a ResNet are predicted
from the first probe and run, forward and in training. Nothing else should run meanwhile: with `--threads 1` the clock
leaves others out (their traffic in the caches stays).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from chipwise.measure.timed import TimedMachine, machine_of

__all__ = ["resnet", "transformer"]

SHAPES, AGREE, PASS, MEMORY = 0.15, 0.10, 0.20, 0.10
"""Aims: the median error on shapes held out, between two probes, of a pass, and of the peak of its tensors."""
UNSEEN = 30


def transformer() -> Any:
    """Six layers of an encoder, 512 wide, with embeddings and a head of 8,000 words; 4 x 256 tokens."""
    import torch
    from torch import nn

    layer = nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
    module = nn.Sequential(nn.Embedding(8000, 512), encoder, nn.Linear(512, 8000))
    return module, (torch.randint(0, 8000, (4, 256)),)


def resnet() -> Any:
    """ResNet-50 (He et al. 2015) on 8 images of 224 x 224."""
    import torch
    from torch import nn

    def normed(wide: int, out: int, kernel: int, stride: int = 1) -> nn.Sequential:
        conv = nn.Conv2d(wide, out, kernel, stride, kernel // 2, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(out))

    class Block(nn.Module):
        def __init__(self, wide: int, out: int, stride: int) -> None:
            super().__init__()
            inner = out // 4
            self.first, self.middle = normed(wide, inner, 1), normed(inner, inner, 3, stride)
            self.last = normed(inner, out, 1)
            self.beside = normed(wide, out, 1, stride) if wide != out else nn.Identity()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.relu(self.middle(torch.relu(self.first(x))))
            return torch.relu(self.last(y) + self.beside(x))

    parts: list[nn.Module] = [normed(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    wide = 64
    for out, blocks, stride in ((256, 3, 1), (512, 4, 2), (1024, 6, 2), (2048, 3, 2)):
        for block in range(blocks):
            parts.append(Block(wide, out, stride if block == 0 else 1))
            wide = out
    parts += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)]
    return nn.Sequential(*parts), (torch.randn(8, 3, 224, 224),)


def _asked(*arguments: str) -> Any:
    """What `chipwise measure` answers, in a process of its own: frameworks keep their threads."""
    line = [sys.executable, "-m", "chipwise", "measure", *arguments, "--format", "json"]
    ran = subprocess.run(line, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"{' '.join(line)}\n{ran.stderr}")
    return json.loads(ran.stdout)


def _differences(one: TimedMachine, other: TimedMachine) -> np.ndarray:
    """|ratio - 1| of what two probes predict for the products, convolutions and attentions that either timed."""
    ops = {
        t.task: t.task.op
        for t in (*one.timed, *other.timed)
        if t.task.kind in ("gemm", "conv", "attention") and min(one.count(t.task.op), other.count(t.task.op))
    }
    return np.array([abs(one.seconds(op) / other.seconds(op) - 1.0) for op in ops.values()])


def _rows(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, float, float]]:
    threads = ["--threads", str(options.threads)] if options.threads else []
    for backend in [b for b in ("torch", "jax") if find_spec(b)]:
        machines = []
        for number in (1, 2):
            out = str(folder / f"{backend}{number}.json")
            ask = ("--backend", backend, "--budget", options.budget, "--no-keep", "--out", out)
            report = _asked("probe", *ask, *threads)
            unseen = len(report["unseen"])
            few = "" if unseen >= UNSEEN else f", fewer than {UNSEEN}"
            yield f"{backend}, probe {number}: {unseen} unseen shapes{few}", report["error"], SHAPES
            machines.append(machine_of(Path(out).read_text()))
        yield f"{backend}, two probes of the same shapes", float(np.median(_differences(*machines))), AGREE
    if not find_spec("torch"):
        return
    for name in ("transformer", "resnet"):
        known = ("--machine", str(folder / "torch1.json"), "--budget", "30s", "--train")
        for p in _asked("model", f"{__file__}:{name}", *known)["passes"]:
            yield f"{name}, {p['name']}: seconds", p["predicted_s"] / p["measured_s"] - 1.0, PASS
            if p["measured_peak_bytes"]:
                off = p["predicted_peak_bytes"] / p["measured_peak_bytes"] - 1.0
                yield f"{name}, {p['name']}: peak of tensors", off, MEMORY


def main() -> int:
    """All checks as one table; 0 where every figure is within its aim."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", type=int, help="threads that share an operator; default: the framework's")
    parser.add_argument("--budget", default="60s", help="of each probe, e.g. 60s (default)")
    options, missed = parser.parse_args(), 0
    print("| check | off | aim |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, off, aim in _rows(options, Path(folder)):
            missed += abs(off) > aim
            print(f"| {name} | {off:+.1%} | {aim:.0%}{'' if abs(off) <= aim else ', missed'} |", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
