"""What is said of a machine that was measured."""

from __future__ import annotations

from dataclasses import replace

from chipwise.report.measured import ProbeReport, TaskRecord, probe_view

PROBE = ProbeReport(
    backend="torch", software="torch 2.13.0", device="cpu", chip="a processor", threads=1, date="2026-11-22",
    rates=(), stream_bytes_per_s=1e10, cache_bytes_per_s=1e11, cache_bytes=3e7, copy_s=1e-6, tasks=40, error=0.1,
    unseen=(TaskRecord("gemm", 1.1e-3, 1e-3, 0.02),), whole=True,
)  # fmt: skip


def test_a_probe_that_is_far_off_says_so() -> None:
    """Shapes that no number saw judge it."""
    assert "10% off" in " ".join(probe_view(PROBE).head)
    assert "rely on" not in " ".join(probe_view(PROBE).head)
    assert "too far off to rely on" in " ".join(probe_view(replace(PROBE, error=0.5)).head)
    assert "cut short" in " ".join(probe_view(replace(PROBE, whole=False)).head)
