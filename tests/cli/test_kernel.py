"""kernel: one operator on several chips, in every format; and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from command_line import Run

H100, V5E, V6E = "h100-sxm5-80gb", "tpu-v5e", "tpu-v6e"
GEMM = ("kernel", "gemm", "--m", "4096", "--n", "4096", "--k", "4096")
DECODE = ("kernel", "attention", "--kv", "4096", "--heads", "32", "--kv-heads", "8", "--batch", "16")
REDUCE = ("kernel", "collective", "--kind", "all_reduce", "--bytes", "64MB", "--ranks", "8")
CONV = ("kernel", "conv", "--size", "56", "--channels", "64", "--filters", "64")
AMDAHL = ("kernel", "amdahl", "--serial", "1%")
EVERY = ",".join((H100, "mi300x", V5E, "trainium2", "gaudi2", "groq-lpu1", "wse3-cs3", "sn40l", "epyc-9654"))


def answer(run: Run, *arguments: str) -> Any:
    return run(*arguments, "--format", "json").json


@pytest.mark.parametrize("command", [GEMM, DECODE, CONV, (*DECODE, "--q", "512")])
def test_every_family_answers(run: Run, command: tuple[str, ...]) -> None:
    report = answer(run, *command, "--chip", EVERY)
    assert [k["chip"] for k in report["kernels"]] == EVERY.split(",")
    for k in report["kernels"]:
        assert k["time_s"]["low"] < k["time_s"]["mid"] < k["time_s"]["high"]
        assert sum(k["exposed_s"].values()) == pytest.approx(k["time_s"]["mid"])
        assert k["exposed_s"][k["bound"]] == max(k["exposed_s"].values())
        assert k["levels"]
        assert k["mapping_text"]
        assert 0 < k["share_of_peak"] < 1
        assert k["intensity"] == pytest.approx(k["flops"] / k["bytes"])


@pytest.mark.parametrize("form", ["table", "json", "csv", "md"])
@pytest.mark.parametrize("command", [GEMM, DECODE, REDUCE, CONV, AMDAHL])
def test_every_format(run: Run, command: tuple[str, ...], form: str) -> None:
    ran = run(*command, "--chip", H100, "--format", form)
    assert ran.code == 0
    assert H100 in ran.out
    assert ran.err == ""


def test_a_gpu_and_a_tpu_side_by_side(run: Run) -> None:
    report = answer(run, *GEMM, "--dtype", "bf16", "--chip", f"{H100},{V5E}")
    gpu, tpu = report["kernels"]
    assert gpu["mapping"]["waves"] <= gpu["mapping"]["rounds"]
    assert gpu["mapping"]["tiles"] * gpu["mapping"]["tile_rows"] * gpu["mapping"]["tile_cols"] >= 4096**2
    parts = ("load_cycles", "stream_cycles", "stall_cycles", "fill_cycles", "drain_cycles")
    assert sum(tpu["mapping"][part] for part in parts) == pytest.approx(tpu["mapping"]["cycles"])
    assert (tpu["mapping"]["fold_rows"], tpu["mapping"]["fold_cols"]) == (32, 32)
    levels = {k["chip"]: {v["name"]: v["bytes_per_mac"] for v in k["levels"]} for k in report["kernels"]}
    # the array reads an operand once and passes it on
    assert levels[V5E]["VMEM to arrays"] < 0.5 * levels[H100]["shared memory"]
    assert levels[V5E]["VMEM to arrays"] == pytest.approx(2 / 128 + 2 / 4096, rel=0.01)
    assert levels[H100]["HBM"] == levels[V5E]["HBM"]
    assert "passed from cell to cell" in report["lessons"][0]


def test_more_bytes_on_the_wire_take_longer(run: Run) -> None:
    small, large = (
        answer(run, *REDUCE[:-4], "--bytes", size, "--ranks", "8", "--chip", f"{H100},{V5E}")["kernels"]
        for size in ("1MB", "1GB")
    )
    for a, b in zip(small, large, strict=True):
        assert b["time_s"]["mid"] > 10 * a["time_s"]["mid"]
        assert b["bytes"] == pytest.approx(2 * 7 / 8 * 1e9)
        assert b["time_s"]["mid"] > b["roofline_s"]


def test_a_chip_of_ones_own(run: Run) -> None:
    plain = answer(run, *DECODE, "--chip", H100)["kernels"][0]
    faster = answer(run, *DECODE, "--chip", H100, "--set", "hbm=6.7TB/s")["kernels"][0]
    assert faster["time_s"]["mid"] < plain["time_s"]["mid"]
    assert faster["ridge"] == pytest.approx(plain["ridge"] / 2)


def test_amdahl(run: Run) -> None:
    row = answer(run, *AMDAHL, "--chip", H100)["chips"][0]
    assert 0 < row["crossover_fraction"] < 0.01
    assert row["faster"] == f"{H100}+epyc-9654"
    assert row["together_s"] < row["cpu_s"] < row["chip_s"]
    assert answer(run, *AMDAHL[:2], "--serial", "0", "--chip", H100)["chips"][0]["faster"] == H100


ON = ("--chip", H100)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("gemm", "--m", "0", "--n", "1", "--k", "1", *ON), "--m 0: not a size"),
        (("gemm", "--m", "1", "--n", "-3", "--k", "1", *ON), "--n -3: not a size"),
        (("gemm", "--m", "1", "--n", "1", "--k", "9" * 40, *ON), "not a size"),
        (("gemm", "--m", "1e3", "--n", "1", "--k", "1", *ON), "not a whole number"),
        (("gemm", "--m", "1", "--n", "1", "--k", "1", "--batch", "0", *ON), "--batch 0"),
        (("gemm", "--m", "1", "--n", "1", *ON), "--k"),
        (("gemm", "--m", "1", "--n", "1", "--k", "1"), "--chip"),
        (("gemm", "--m", "1", "--n", "1", "--k", "1", "--chip", ","), "','"),
        (("gemm", "--m", "1", "--n", "1", "--k", "1", *ON, "--set", "hbm"), "--set"),
        (("attention", "--kv", "1", "--q", "5", "--heads", "8", *ON), "--q 5"),
        (("attention", "--kv", "10", "--heads", "7", "--kv-heads", "2", *ON), "does not divide"),
        (("attention", "--kv", "10", "--heads", "8", "--window", "-1", *ON), "--window -1"),
        (
            ("conv", "--size", "2", "--channels", "1", "--filters", "1", "--kernel", "9", "--pad", "0", *ON),
            "kernel of 9",
        ),
        (("collective", "--kind", "all_reduce", "--bytes", "64XB", "--ranks", "8", *ON), "--bytes"),
        (("collective", "--kind", "all_reduce", "--bytes", "0", "--ranks", "8", *ON), "--bytes"),
        (("collective", "--kind", "all_reduce", "--bytes", "1MB", "--ranks", "1", *ON), "--ranks 1"),
        (("collective", "--kind", "p2p", "--bytes", "1MB", "--ranks", "3", *ON), "p2p"),
        (("collective", "--kind", "p2p", "--bytes", "1MB", "--ranks", "2", "--apart", "0", *ON), "--apart"),
        (("collective", "p2p", "--bytes", "1MB", "--ranks", "2", "--apart", "1000000", *ON), "1 to 100,000"),
        (("collective", "p2p", "--bytes", "1MB", "--ranks", "200000", *ON), "2 to 100,000"),
        (("collective", "--kind", "p2p", "--bytes", "1", "--ranks", "2", "--oversubscription", "0.5", *ON), "1 to 100"),
        (("amdahl", "--serial", "2", *ON), "--serial 2"),
        (("amdahl", "--serial", "nan", *ON), "--serial"),
        (("amdahl", "--serial", "0.1", "--work", "0", *ON), "--work"),
        (("amdahl", "--serial", "0.1", "--cpu", H100, *ON), "no CPU"),
    ],
)
def test_usage(run: Run, arguments: tuple[str, ...], words: str) -> None:
    assert words in run("kernel", *arguments).refused(2)


@pytest.mark.parametrize(
    "arguments",
    [
        (*GEMM, "--chip", "h1000"),
        (*GEMM, *ON, "--dtype", "fp7"),
        ("kernel", "collective", "--kind", "gossip", "--bytes", "1MB", "--ranks", "8", *ON),
        (*AMDAHL, "--cpu", "nothing", *ON),
    ],
)
def test_unknown_names(run: Run, arguments: tuple[str, ...]) -> None:
    assert "unknown" in run(*arguments).refused(3)


def test_a_name_holds_no_control_character(run: Run) -> None:
    assert "U+001B" in run(*GEMM, "--chip", f"{H100},no\nthing\x1b[31m").refused(2)


def test_nothing_to_price_is_infeasible(run: Run) -> None:
    desk = "rtx-4080"
    many = ("kernel", "collective", "--kind", "all_reduce", "--bytes", "1MB", "--ranks", "64", "--chip", desk)
    assert "no network is known" in run(*many).refused(4)
    # one chip of two can answer: the other is named
    report = answer(run, *many[:-1], f"{desk},{V6E}")
    assert [k["chip"] for k in report["kernels"]] == [V6E]
    assert report["refused"][0]["chip"] == desk


def test_exchanges_leave_the_domain_over_the_network(run: Run) -> None:
    wide = ("kernel", "collective", "--kind", "all_reduce", "--bytes", "64MB", "--ranks")
    near = answer(run, *wide, "8", "--chip", H100)["kernels"][0]
    far = answer(run, *wide, "64", "--chip", H100)["kernels"][0]
    assert far["mapping_text"].startswith("8 ranks: 14 steps, 112 MB through each port; 8 domains: 14 steps, 14.0 MB")
    assert far["time_s"]["mid"] > near["time_s"]["mid"]


def test_a_pair_of_a_full_mesh_has_one_link(run: Run) -> None:
    """MI300X: 64 GB/s to each of seven others; a switch gives any pair all of its links."""
    ask = ("kernel", "collective", "--bytes", "1GB", "--chip", f"{H100},mi300x", "--kind")
    for kind in ("p2p", "all_reduce"):
        switch, mesh = answer(run, *ask, kind, "--ranks", "2")["kernels"]
        assert mesh["bytes_per_s"] < 64e9 < 4.0 * 64e9 < switch["bytes_per_s"]
    four, eight = (answer(run, *ask, "all_gather", "--ranks", n)["kernels"][1] for n in ("4", "8"))
    assert four["bytes_per_s"] < 3 * 64e9 < eight["bytes_per_s"] < 7 * 64e9


def test_links_that_the_user_gives_count_across_domains_and_on_tori(run: Run) -> None:
    wide = ("kernel", "collective", "--kind", "all_reduce", "--bytes", "1GB", "--ranks", "64", "--chip")

    def seconds(chip: str, *more: str) -> float:
        return float(answer(run, *wide, chip, *more)["kernels"][0]["time_s"]["mid"])

    assert seconds("tpu-v5p", "--set", "link=300GB/s") > 1.9 * seconds("tpu-v5p")
    assert seconds(H100, "--set", "scaleout=25GB/s") > 1.5 * seconds(H100)
    assert seconds("rtx-4090", "--set", "scaleout=12GB/s") > 0.0


def test_what_hiding_costs_is_said(run: Run) -> None:
    report = answer(run, *REDUCE, "--chip", f"{H100},{V5E}")
    gpu, tpu = (" ".join(k["notes"]) for k in report["kernels"])
    assert "15% of the units" in gpu
    assert "free" in tpu


def test_broadcasts_go_round_or_down_a_tree(run: Run) -> None:
    ask = ("kernel", "collective", "--kind", "broadcast", "--bytes", "1GB", "--ranks", "8", "--chip")
    for k in answer(run, *ask, f"{H100},{V5E},mi300x,l40s")["kernels"]:
        assert k["bytes"] == 1e9
        assert k["bytes_per_s"] < 450e9


def test_without_a_system_chips_of_one_domain_meet_on_their_own_links(run: Run) -> None:
    ask = ("kernel", "collective", "--kind", "broadcast", "--bytes", "1GB", "--ranks")
    (alone,) = answer(run, *ask, "2", "--chip", "p100-sxm2")["kernels"]
    assert 1e9 / alone["time_s"]["mid"] < alone["bytes"] / alone["levels"][0]["time_s"]
    assert "no network is known" in run(*ask, "1000", "--chip", "p100-sxm2").refused(4)


def test_groups_that_interleave_share_links(run: Run) -> None:
    ask = ("kernel", "collective", "--kind", "all_gather", "--bytes", "1GB", "--chip", H100, "--ranks", "64")

    def seconds(*more: str) -> float:
        return float(answer(run, *ask, *more)["kernels"][0]["time_s"]["mid"])

    near, far, narrow = (seconds(), seconds("--apart", "128"), seconds("--apart", "128", "--oversubscription", "4"))
    assert seconds("--oversubscription", "4") == near
    assert far > 6.0 * near
    assert narrow == pytest.approx(2.0 * far, rel=0.04)


def test_the_kind_of_a_collective_is_an_argument_or_an_option(run: Run) -> None:
    more = ("--bytes", "64MB", "--ranks", "8", "--chip", H100)
    named = run("kernel", "collective", "--kind", "all_reduce", *more).out
    assert run("kernel", "collective", "all_reduce", *more).out == named


def test_the_link_that_limits_an_exchange_is_named_and_never_beaten(run: Run) -> None:
    """Inside a domain the fabric; ranks of a domain the cards of all of them; ranks 8 apart 50 GB/s each."""

    def first(kind: str, ranks: str, apart: str) -> Any:
        ask = ("kernel", "collective", kind, "--bytes", "1GB", "--ranks", ranks, "--apart", apart)
        return answer(run, *ask, "--chip", H100)["kernels"][0]

    assert first("all_gather", "8", "1")["levels"][0]["name"] == "fabric"
    for kind, ranks, apart, rate in (
        ("all_gather", "8", "8", 50e9),
        ("all_gather", "64", "1", 450e9),  # 63 / 64 of the bytes in the time of 7 / 64 over a card
        ("all_to_all", "8", "8", 50e9),
        ("p2p", "2", "8", 50e9),
    ):
        k = first(kind, ranks, apart)
        assert k["levels"][0]["name"] == "NIC"
        assert k["bytes"] / k["levels"][0]["time_s"] == pytest.approx(rate)
        assert 0.5 < k["share_of_peak"] <= 1.0
    # of 16 ranks in two domains half of the bytes leave their domain, over 50 GB/s each
    assert first("all_to_all", "16", "1")["time_s"]["mid"] > 0.5e9 / 50e9


def test_figures_as_given_are_among_the_assumptions(run: Run) -> None:
    ask = (*REDUCE, "--apart", "8", "--oversubscription", "3", "--chip", H100, "--set", "link=400GB/s")
    said = answer(run, *ask)["assumptions"]
    assert "leaf switches with 3 links down for one up" in said
    assert "chips: link 400GB/s, as given" in said
    assert "chips: hbm 4TB/s, as given" in answer(run, *GEMM, *ON, "--set", "hbm=4TB/s")["assumptions"]


EXPERTS = (
    "kernel", "experts", "--tokens", "256", "--hidden", "4096", "--inter", "1536", "--experts", "128", "--top-k", "8",
)  # fmt: skip
NORM = ("kernel", "norm", "--m", "4096", "--n", "4096")
COPY = ("kernel", "copy", "--bytes", "1GB")


@pytest.mark.parametrize("command", [EXPERTS, NORM, ("kernel", "softmax", *NORM[2:]), COPY])
def test_other_operators_answer_on_every_family(run: Run, command: tuple[str, ...]) -> None:
    chips = (H100, "mi300x", V5E, "epyc-9654")
    report = answer(run, *command, "--chip", ",".join(chips))
    answered = {k["chip"] for k in report["kernels"]} | {r["chip"] for r in report["refused"]}
    assert answered == set(chips)
    assert H100 in {k["chip"] for k in report["kernels"]}
    for k in report["kernels"]:
        assert sum(k["exposed_s"].values()) == pytest.approx(k["time_s"]["mid"])
        assert k["time_s"]["low"] < k["time_s"]["mid"] < k["time_s"]["high"]


def test_skewed_routing_loads_the_busiest_rank(run: Run) -> None:
    even, skewed = (
        answer(run, *EXPERTS, "--ranks", "8", "--routing", routing, "--chip", H100)["kernels"][0]
        for routing in ("balanced", "skewed")
    )
    assert even["mapping"]["imbalance"] == pytest.approx(1)
    assert skewed["mapping"]["imbalance"] > 1.1
    assert skewed["flops"] > even["flops"]
    assert 0 < skewed["mapping"]["experts_hit"] <= 16


def test_experts_that_no_token_hits_are_not_read(run: Run) -> None:
    few, many = (
        answer(run, *EXPERTS[:2], "--tokens", tokens, *EXPERTS[4:], "--chip", H100)["kernels"][0]
        for tokens in ("1", "4096")
    )
    assert few["mapping"]["experts_hit"] == pytest.approx(8)
    assert many["mapping"]["experts_hit"] == pytest.approx(128)
    assert many["time_s"]["mid"] > 5 * few["time_s"]["mid"]


def test_a_copy_from_the_host_is_bound_by_its_link(run: Run) -> None:
    outside, inside = (answer(run, *COPY, "--way", way, "--chip", H100)["kernels"][0] for way in ("to-chip", "on-chip"))
    assert outside["bound"] == "network"
    assert outside["time_s"]["mid"] > 10 * inside["time_s"]["mid"]
    assert 0.5 < outside["share_of_peak"] < 1


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ((*EXPERTS, "--ranks", "7"), "does not divide"),
        ((*EXPERTS, "--routing", "wild"), "wild"),
        (("kernel", "elementwise", "--m", "4", "--n", "4", "--kind", "nom"), "nom"),
        ((*COPY, "--way", "sideways"), "sideways"),
    ],
)
def test_strange_operators_are_refused(run: Run, command: tuple[str, ...], says: str) -> None:
    ran = run(*command, "--chip", H100)
    assert ran.code in (2, 3)
    assert says in ran.err


def test_weights_that_no_memory_holds_are_refused(run: Run) -> None:
    report = answer(run, *EXPERTS, "--chip", f"{H100},groq-lpu1")
    assert [r["chip"] for r in report["refused"]] == ["groq-lpu1"]
