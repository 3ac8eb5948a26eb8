"""The axis letters as sizes; the legend is in `workload.axes`."""

from __future__ import annotations

from chipwise.workload.axes import Axis

M, H, K, D, W = Axis("M"), Axis("H"), Axis("K"), Axis("D"), Axis("W")
F, U, X, E, V, L = Axis("F"), Axis("U"), Axis("X"), Axis("E"), Axis("V"), Axis("L")
Q, R, N, P = Axis("Q"), Axis("R"), Axis("N"), Axis("P")
I, J = Axis("I"), Axis("J")  # noqa: E741 - index heads
G, Z, GD, ZD, C, GR = Axis("G"), Axis("Z"), Axis("g"), Axis("z"), Axis("c"), Axis("r")
S, SD, B, A = Axis("S"), Axis("s"), Axis("B"), Axis("a")
O, OR, OF = Axis("O"), Axis("o"), Axis("f")  # noqa: E741 - output groups
