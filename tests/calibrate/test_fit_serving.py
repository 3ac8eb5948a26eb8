"""The serving fit: pure, recovers what made the rows, leaves what was never seen at its prior, and ships."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chipwise.calibrate.fit_serving import ServingFit, ServingRows, fit_serving, harnessed, served_overheads
from chipwise.calibrate.parameter import Parameter, read_table, write_table
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.harness import NO_HARNESS, Published, get_harness, harness_of, load_harnesses
from chipwise.predict.parts import PARTS
from chipwise.predict.passes import BATCHES, PassTable, Requests
from chipwise.predict.service import Engines, Service

ROWS = 60
APART = 6  # of the rows have workers for prompts of their own


def passes(size: int, rng: np.random.Generator) -> PassTable:
    """Passes of one part that reads weights, one that starts kernels and one that reads caches."""
    decode = np.zeros((size, len(BATCHES), len(PARTS)))
    decode[:, :, PARTS.index("gemm.w8.memory")] = rng.uniform(2e-3, 2e-2, size)[:, None]
    decode[:, :, PARTS.index("launch")] = rng.uniform(1e-3, 8e-3, size)[:, None]
    decode[:, :, PARTS.index("decode.memory")] = 2e-5 * BATCHES
    added = np.zeros((size, 5, 2, len(PARTS)))
    work = rng.uniform(1e-2, 1e-1, size)[:, None, None]
    added[..., PARTS.index("gemm.fp8.compute")] = work * np.array([1.0, 8.0])
    prompt = added[:, 0, [0, 1, 0]] + decode[:, :1]
    one = np.ones(size)
    asked = Requests(
        1000 * one, 500 * one, 1000 * one, 1000 * one, 1000 * one, 1250 * one, one, 0 * one, 8000 * one, one
    )
    return PassTable(tuple(PARTS), decode, added, prompt, np.zeros(size, dtype=bool), asked)


def engines(size: int, rng: np.random.Generator, workers: float | None = None) -> Engines:
    one = np.ones(size)
    pools = (
        {}
        if workers is None
        else {"prompts": passes(size, rng), "prompt_servers": workers * one[:, None], "transfer_s": 0.01 * one}
    )
    return Engines(passes(size, rng), one, one, one, one, 1e9 * one, **pools)  # type: ignore[arg-type]


TRUE = {"request_s": 0.08, "stream_tokens": 10.0}


@pytest.fixture(scope="module")
def rows() -> ServingRows:
    """Rows of two runtimes, of which vLLM adds more to a request."""
    rng = np.random.default_rng(2)
    runtime = np.where(np.arange(ROWS) % 2, "vllm", "trtllm")
    known = np.arange(ROWS)
    blank = ServingRows(
        (engines(ROWS - APART, rng), engines(APART, rng, 4.0)),
        (known[:-APART], known[-APART:]),
        clients=2.0 ** rng.integers(0, 8, ROWS),
        burst=np.full(ROWS, 0.05),
        slower=np.ones((ROWS, len(PARTS))),
        labels={"runtime": runtime, **{n: np.full(ROWS, n) for n in ("chip", "generation", "harness")}},
        tpot_s=np.ones(ROWS),
        ttft_s=np.ones(ROWS),
    )
    made = blank.served(TRUE | {"request_s": np.where(runtime == "vllm", 0.16, 0.08)})
    return ServingRows(**{**vars(blank), "tpot_s": made.tpot_s[:, 0], "ttft_s": made.ttft_s[:, 0]})


@pytest.fixture(scope="module")
def fitted(rows: ServingRows) -> ServingFit:
    return fit_serving(rows)


def test_the_fit_explains_what_made_the_rows(rows: ServingRows, fitted: ServingFit) -> None:
    values = fitted.first.values(rows.labels)
    served = rows.served(values)
    assert served.tpot_s[:, 0] == pytest.approx(rows.tpot_s, rel=0.01)
    assert np.median(np.abs(served.ttft_s[:, 0] / rows.ttft_s - 1)) < 0.05
    slow = rows.labels["runtime"] == "vllm"
    assert np.mean(values["request_s"][slow]) > 1.2 * np.mean(values["request_s"][~slow])


def test_it_is_pure(rows: ServingRows, fitted: ServingFit) -> None:
    again = fit_serving(rows)
    assert {k: e.value for k, e in again.first.table.items()} == {k: e.value for k, e in fitted.first.table.items()}


def test_some_rows_are_answered_as_all_are(rows: ServingRows) -> None:
    chosen = np.array([ROWS - 1, 3, 20, ROWS - 2])
    some, whole = rows.take(chosen).served(TRUE), rows.served(TRUE)
    assert some.ttft_s == pytest.approx(whole.ttft_s[chosen])
    assert len(rows.take(np.array([1, 2])).engines) == 1


def test_parameters_are_written_and_read_back(rows: ServingRows, fitted: ServingFit) -> None:
    numbers = Parameters(read_table(write_table(fitted.parameters()), "serving.csv"))
    read = ServingFit.of(numbers).first.values(rows.labels)
    for name, column in fitted.first.values(rows.labels).items():
        assert np.broadcast_to(read[name], (ROWS,)) == pytest.approx(np.broadcast_to(column, (ROWS,)), rel=0.02)


def test_nothing_fitted_is_all_priors(rows: ServingRows) -> None:
    values = ServingFit.of(Parameters({})).first.values(rows.labels)
    assert float(np.max(np.asarray(values["burst"]))) == 1


def test_plans_wait_for_what_their_runtime_adds_to_a_request() -> None:
    numbers = shipped_parameters()
    served = served_overheads(numbers, "simt", "vllm")
    assert served.request_s == pytest.approx(numbers.table["serving.first.request_s.all"].value)
    assert not served.factors
    for family, runtime in (("systolic", "vllm-tpu"), ("simt", "llama.cpp"), ("cpu", "vllm-cpu")):
        assert served_overheads(numbers, family, runtime) == numbers.overheads(family, runtime)


# ------------------------------------------------------------------- harnesses


def client(name: str, runtime: str = "vllm", **table: float) -> Service:
    """What clients of a runtime see under a harness, of which a fit says no more than `table`."""
    numbers = Parameters({n: Parameter(v, v, 0.1, "", "fit", "") for n, v in table.items()})
    return harnessed(Service(0.03), get_harness(name), runtime, numbers, apart=False)


def test_without_a_harness_nothing_is_added() -> None:
    assert client("none") == Service(0.03)
    assert get_harness(None) is NO_HARNESS


def test_a_burst_at_the_start_is_a_share_of_the_run() -> None:
    assert client("aiperf").burst == pytest.approx(1 / 20)
    assert client("poisson-bench").burst == 0
    assert client("vllm-bench").request_s == 0.03


def test_without_a_server_there_is_nothing_before_the_engine() -> None:
    assert client("trtllm-bench").request_s == 0


def test_what_a_fit_found_of_a_client_is_seen_under_it_alone() -> None:
    fitted = {
        "serving.first.stream_tokens.all": 1.0,
        "serving.first.stream_tokens.harness=inferencex": 5.0,
        "serving.first.request_s.all": 0.01,
        "serving.first.request_s.harness+runtime=inferencex+vllm": 4.0,
    }
    found = client("inferencex", **fitted)
    assert found.stream_tokens == pytest.approx(5.0)
    assert found.request_s == pytest.approx(0.04)
    assert client("aiperf", **fitted).stream_tokens == 0.0
    # a runtime that no run of the client had: what is the client's alone
    other = client("inferencex", "vllm-tpu", **fitted)
    assert (other.stream_tokens, other.request_s) == pytest.approx((5.0, 0.03))
    # the median request of the same runs waits for no first wave and no crowd, and meets a server that is warm
    own = client("inferencex-median", **fitted)
    assert (own.stream_tokens, own.request_s, own.burst) == pytest.approx((0.0, 0.03, 0.0))
    median = client("inferencex-median", "trtllm", **fitted)
    assert (median.stream_tokens, median.request_s, median.burst) == pytest.approx((0.0, 0.05, 0.0))


def test_every_harness_says_where_it_was_read() -> None:
    for name, h in load_harnesses().items():
        assert h.source, name
        assert h.date, name
        assert 0.5 < h.mean_length <= 1, name


def test_a_table_that_names_no_client_is_taken_to_have_one() -> None:
    (assumed,) = (h for h in load_harnesses().values() if h.assumed)
    assert harness_of("somebody's single-run table") is assumed
    named = next(h for h in load_harnesses().values() if h.named_by and h is not assumed)
    assert harness_of(f"a table of {named.named_by[0]}, 2026") is named


def test_a_run_of_a_suite_is_known_by_its_lengths_and_its_script() -> None:
    (suite,) = (h for h in load_harnesses().values() if h.sweep)
    run = Published("sglang", "b200-sxm", "Qwen/Qwen3.5-397B-A17B", "fp8_block", 64.0, 4, 1, 1024, 8192, "")
    assert harness_of("somebody's single-run table", run) is suite
    others = (
        replace(run, output=512.0),
        replace(run, chip="rtx-4090"),
        replace(run, model="meta-llama/Llama-3.1-8B-Instruct"),
    )
    assert all(harness_of("somebody's single-run table", other).assumed for other in others)


def test_everything_shipped_is_read_back() -> None:
    """A name that is shipped and not read would be a number lost."""
    table = shipped_parameters().table
    shipped = {name for name in table if name.startswith("serving.") and ".seen." not in name}
    read = ServingFit.of(shipped_parameters()).parameters()
    assert set(shipped) <= set(read)
    assert all(read[name].value == pytest.approx(table[name].value) for name in read if name in table)
