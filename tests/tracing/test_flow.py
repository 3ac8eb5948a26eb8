"""Element-wise work fused as compilers fuse it: what is read, what is written, which kernels."""

from __future__ import annotations

import pytest

from chipwise.tracing.flow import Flow, Touch, counted
from chipwise.workload.op import gemm

KB = 1024.0


def t(name: str, size: float = KB, *, weight: bool = False) -> Touch:
    return Touch(name, size, weight)


def test_a_chain_reads_its_first_operand_and_writes_its_last_result() -> None:
    flow = Flow()
    flow.fused("a", 512, [t("x")], [t("y")])
    flow.fused("b", 512, [t("y"), t("w", weight=True)], [t("z")])
    flow.fused("c", 512, [t("z")], [t("u")])
    ((_, op),) = flow.ops(["u"])
    assert (op.activation_bytes, op.weight_bytes, op.launches, op.flops) == (2 * KB, KB, 3.0, 3 * 512)


def test_a_result_that_a_product_reads_is_written_and_the_chain_ends_there() -> None:
    flow = Flow()
    flow.fused("a", 512, [t("x")], [t("y")])
    flow.alone(gemm(1, 1, 1), [t("y"), t("w", weight=True)], [t("z")])
    flow.fused("b", 512, [t("z"), t("x")], [t("u")])
    names = [op.name for _, op in flow.ops(["u"])]
    assert names == ["a", "gemm", "b"]
    assert [op.activation_bytes for _, op in flow.ops(["u"]) if op.kind == "pointwise"] == [2 * KB, 3 * KB]


def test_gates_of_two_products_are_one_kernel() -> None:
    """silu(gate(x)) * up(x): the second product does not wait for the first's activation."""
    flow = Flow()
    for name in ("gate", "up"):
        flow.alone(gemm(1, 1, 1, name=name), [t("x")], [t(name)])
        if name == "gate":
            flow.fused("silu", 512, [t("gate")], [t("s")])
    flow.fused("mul", 512, [t("s"), t("up")], [t("y")])
    pointwise = [op for _, op in flow.ops(["y"]) if op.kind == "pointwise"]
    assert [(op.launches, op.activation_bytes) for op in pointwise] == [(2.0, 3 * KB)]


def test_a_sum_over_everything_ends_its_kernel_a_sum_of_rows_does_not() -> None:
    for ends, kernels in ((True, 2), (False, 1)):
        flow = Flow()
        flow.fused("square", 512, [t("x")], [t("q")])
        flow.fused("sum", 512, [t("q")], [t("s", 4.0)], way="ends" if ends else "fused")
        flow.fused("scale", 512, [t("x"), t("s", 4.0)], [t("y")])
        assert len(flow.ops(["y"])) == kernels


def test_what_nobody_reads_is_not_written_and_a_kernel_that_moves_nothing_is_none() -> None:
    flow = Flow()
    flow.fused("made", 512, [], [t("x")])
    assert flow.ops() == []
    assert [op.activation_bytes for _, op in flow.ops(["x"])] == [KB]


def test_no_kernel_waits_for_one_that_waits_for_it() -> None:
    """A residual's sum is not fused into the kernel before the layer that it goes around."""
    flow = Flow()
    flow.fused("norm", 512, [t("x")], [t("n")])
    flow.alone(gemm(1, 1, 1, name="down"), [t("n")], [t("d")])
    flow.fused("add", 512, [t("n"), t("d")], [t("y")])
    assert [op.name for _, op in flow.ops(["y"])] == ["norm", "down", "add"]


@pytest.mark.parametrize("times", [1, 3])
def test_equal_operators_are_counted(times: int) -> None:
    same = [(1.0, gemm(4, 4, 4)) for _ in range(times)]
    ((repeats, op),) = counted(same)
    assert (repeats, op.flops) == (times, 128.0)
    assert len(counted([*same, (1.0, gemm(4, 4, 8))])) == 2


def test_a_backward_pass_computes_again_what_is_not_kept_and_joins_no_kernel_of_the_forward_pass() -> None:
    """A norm's copy in fp32: its gradient reads the tensor in 16 bit, which was written anyway, and nobody the copy."""
    flow = Flow()
    flow.alone(gemm(1, 1, 1), [t("in")], [t("x")])
    flow.fused("widen", 512, [t("x")], [t("copy", 2 * KB)])
    flow.fused("norm", 512, [t("copy", 2 * KB)], [t("y")])
    flow.alone(gemm(1, 1, 1), [t("y")], [t("z")])
    flow.fused("inplace", 512, [t("z")], [t("z")])
    flow.kept({"x": KB, "copy": 2 * KB, "y": KB, "z": KB})
    flow.alone(gemm(1, 1, 1), [t("z")], [t("dy")])
    flow.fused("twice", 512, [t("copy", 2 * KB)], [t("x2", 2 * KB)])
    flow.fused("gradient", 512, [t("dy"), t("x2", 2 * KB)], [t("dx")])
    found = [(op.name, op.activation_bytes, op.launches) for _, op in flow.ops(["dx"]) if op.kind == "pointwise"]
    assert found == [("norm", 2 * KB, 2.0), ("inplace", 2 * KB, 1.0), ("gradient", 3 * KB, 2.0)]
