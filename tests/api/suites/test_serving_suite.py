"""Suites `serving` and `token_speeds`: what rows ask, what is refused and why, the published tables, and `validate`
where it has nothing to do."""

from __future__ import annotations

import csv
import shlex
from pathlib import Path

import numpy as np
import pytest

from chipwise.api.requests.command import command_line
from chipwise.api.requests.planning import EstimateRequest
from chipwise.api.suites.serving import ASKING, FIGURES, SERVING, ServingRun, measured_rows, question_of
from chipwise.api.suites.speeds import TOKEN_SPEEDS
from chipwise.api.suites.validating import validate
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.errors import ChipwiseError
from chipwise.evidence.residuals import Residuals, Validation
from chipwise.evidence.rows import Predicted
from chipwise.report.accuracy import write_section
from command_line import Run

ROW = {
    "row_id": "s1",
    "chip": "h200-sxm-141gb",
    "backend": "vllm",
    "backend_version": "0.19.0",
    "mode": "agg",
    "isl": "1024",
    "osl": "1024",
    "concurrency": "16",
    "precision": "fp8",
    "gemm_quant": "fp8",
    "moe_quant": "fp8",
    "tp": "4",
    "source": "dump 2026-04-06",
    "measured_date": "2026-04-03",
}
APART = {
    "mode": "disagg",
    "concurrency": "",
    "prefill_workers": "2",
    "prefill_tp": "1",
    "prefill_attention_dp": "4",
    "prefill_moe_ep": "4",
    "decode_workers": "3",
    "decode_batch": "5",
    "decode_tp": "8",
    "decode_moe_ep": "8",
}


def asks(model: str = "meta-llama/Llama-3.1-70B", **change: str) -> EstimateRequest:
    return question_of({**ROW, "config_file": model, **change}, Path())


# -------------------------------------------------------------------- questions


def test_a_plain_row_is_a_question_that_a_user_would_ask() -> None:
    q = asks()
    assert (q.chip, q.runtime, q.tp, q.pp, q.dp, q.ep) == ("h200-sxm-141gb", "vllm", 4, 1, 1, 1)
    assert (q.in_, q.out, q.concurrency, q.replicas) == ("1024", "1024", 16, 1)
    assert (q.precision, q.kv) == ("fp8", "bf16"), "vLLM keeps a 16-bit cache on Hopper"
    assert (q.harness, q.software, q.evidence) == ("inferencex", "2026-04", "none")
    assert q.prefill is None


@pytest.mark.parametrize(
    ("change", "degrees"),
    [
        ({"tp": "8", "moe_tp": "1", "moe_ep": "8"}, (8, 1, 1, 8)),
        ({"tp": "1", "attention_dp": "4", "moe_tp": "1", "moe_ep": "4"}, (1, 1, 4, 4)),
        ({"tp": "2", "attention_dp": "0", "moe_tp": "0", "moe_ep": "0"}, (2, 1, 1, 1)),
        ({"tp": "1", "attention_dp": "", "moe_tp": "", "moe_ep": "", "pp": "2"}, (1, 2, 1, 1)),
    ],
)
def test_layouts(change: dict[str, str], degrees: tuple[int, ...]) -> None:
    q = asks("Qwen/Qwen3-235B-A22B-FP8", **change)
    assert (q.tp, q.pp, q.dp, q.ep) == degrees


@pytest.mark.parametrize(
    ("model", "chip", "backend", "label", "precision", "cache"),
    [
        ("openai/gpt-oss-120b", "h200-sxm-141gb", "vllm", "nvfp4", None, "bf16"),
        ("openai/gpt-oss-120b", "b200-sxm", "trtllm", "nvfp4", "mxfp4_mxfp8", "fp8"),
        ("deepseek-ai/DeepSeek-V3", "b200-sxm", "sglang", "nvfp4", "nvfp4", "fp8"),
        ("deepseek-ai/DeepSeek-V3", "b200-sxm", "sglang", "fp8", None, "fp8"),
        ("deepseek-ai/DeepSeek-V3", "h200-sxm-141gb", "sglang", "nvfp4", "nvfp4_weights", "bf16"),
        ("moonshotai/Kimi-K2.5", "b300-sxm", "vllm", "nvfp4", "nvfp4", "fp8"),
        ("Qwen/Qwen3-32B", "b200-sxm", "trtllm", "", None, "bf16"),
    ],
)
def test_what_labels_of_precision_mean(
    model: str, chip: str, backend: str, label: str, precision: str | None, cache: str
) -> None:
    q = asks(model, chip=chip, backend=backend, gemm_quant=label, moe_quant=label)
    assert (q.precision, q.kv) == (precision, cache)


def test_pools() -> None:
    q = asks("deepseek-ai/DeepSeek-V3", **APART)
    assert q.prefill == "workers=2,tp=1,pp=1,dp=4,ep=4"
    assert (q.tp, q.ep, q.replicas) == (8, 8, 3)
    assert q.concurrency == 15, "without a load: what the decode workers run at a time"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"config_file": ""}, "no config_file"),
        ({"chip": ""}, "not in the catalogue"),
        ({"chip": "h201"}, "h200"),
        ({"backend": "vlm"}, "vllm"),
        ({"isl": "many"}, "cannot be read"),
        ({"osl": "0"}, "out of range"),
        ({"tp": "8", "moe_ep": "3"}, "moe_ep divides"),
        ({"gemm_quant": "fp7", "moe_quant": "fp7"}, "fp7"),
        ({"precision": "fp8 mtp"}, "acceptance"),
        ({**APART, "decode_workers": ""}, "workers is not known"),
    ],
)
def test_what_cannot_be_read_is_said(change: dict[str, str], words: str) -> None:
    with pytest.raises(ChipwiseError) as caught:
        asks("deepseek-ai/DeepSeek-V3", **change)
    assert words in f"{caught.value} {getattr(caught.value, 'hint', '')}"


SMALL = (
    '{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,'
    '"num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "torch_dtype": "bfloat16",'
    '"max_position_embeddings": 131072}'
)


def written(folder: Path, name: str, *rows: dict[str, str]) -> str:
    """A table of rows of a small model beside its configuration."""
    (folder / "models").mkdir(exist_ok=True)
    (folder / "models" / "m.json").write_text(SMALL)
    base = {**ROW, "config_file": "m.json", "tp": "1", "gemm_quant": "", "moe_quant": ""}
    table = [{**base, **row} for row in rows]
    with (folder / name).open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, list(dict.fromkeys(k for row in table for k in row)))
        writer.writeheader()
        writer.writerows(table)
    return str(folder / name)


def test_lengths_are_drawn_where_the_harness_draws_them(tmp_path: Path) -> None:
    rows = written(tmp_path, "a.csv", {}, {"row_id": "s2", "source": "NVIDIA single-run table"})
    drawn, even = (run for run in ASKING.questions(rows, None)[1] if isinstance(run, ServingRun))
    assert (drawn.question.harness, even.question.harness) == ("inferencex", "aiperf")
    assert drawn.asked.context.workload.prompt_tokens == pytest.approx(0.9 * 1024)
    assert even.asked.context.workload.prompt_tokens == 1024
    assert drawn.run.load == (16, pytest.approx(0.9 * 1024), pytest.approx(0.9 * 1024))


def test_measured_columns_are_never_read(tmp_path: Path) -> None:
    def answers(name: str, **measured: str) -> list[Predicted]:
        path = written(tmp_path, name, measured, {"row_id": "s2", "chip": "", **measured})
        return SERVING.predict(path)

    plain, told = answers("a.csv"), answers("b.csv", ttft_ms="1e9", tpot_ms="nonsense")
    assert plain == told
    assert [(p.row_id, p.metric) for p in plain] == [(i, m) for i in ("s1", "s2") for m in ("ttft_ms", "tpot_ms")]
    assert all(p.low < p.mid < p.high for p in plain[:2] if p.low and p.mid and p.high)
    assert all(p.mid is None and "catalogue" in p.refused for p in plain[2:])


def test_an_answer_of_one_token_has_no_time_per_further_one(tmp_path: Path) -> None:
    ttft, tpot = SERVING.predict(written(tmp_path, "a.csv", {"osl": "1"}))
    assert ttft.mid is not None
    assert ttft.mid > 0
    assert tpot.mid is None
    assert "one token" in tpot.refused


# ----------------------------------------------------------------------- anchors


def test_anchors_pull_their_own_deployment_alone(tmp_path: Path) -> None:
    rows = written(
        tmp_path,
        "rows.csv",
        {"row_id": "near", "concurrency": "16"},
        {"row_id": "far", "concurrency": "128"},
        {"row_id": "other", "chip": "b200-sxm"},
        {"row_id": "z", "concurrency": "8"},
    )
    plain = {(p.row_id, p.metric): p for p in SERVING.predict(rows)}
    slow = {m: f"{1.5 * (plain['z', m].mid or 0):.6f}" for m in FIGURES.values()}
    own = written(tmp_path, "own.csv", {"row_id": "z", "concurrency": "8", **slow})
    found = {(p.row_id, p.metric): p for p in SERVING.predict(rows, anchors=own)}
    ratio = {key: (p.mid or 0) / (plain[key].mid or 1) for key, p in found.items()}
    near, far = ratio["near", "tpot_ms"], ratio["far", "tpot_ms"]
    assert 1.05 < far < near < 1.5, "worth falls with the distance of the load"
    assert ratio["other", "tpot_ms"] == 1
    assert ratio["z", "tpot_ms"] == ratio["z", "ttft_ms"] == 1, "a row never corrects itself"
    right = {m: f"{1.05 * (plain['z', m].mid or 0):.6f}" for m in FIGURES.values()}
    near_right = written(tmp_path, "right.csv", {"row_id": "z", "concurrency": "8", **right})
    agreed = {(p.row_id, p.metric): p for p in SERVING.predict(rows, anchors=near_right)}
    widths = {
        name: {row: (p.high or 0) / (p.low or 1) for (row, metric), p in answers.items() if metric == "tpot_ms"}
        for name, answers in (("plain", plain), ("found", found), ("agreed", agreed))
    }
    assert widths["found"]["near"] < widths["found"]["far"]
    assert widths["agreed"]["near"] < widths["plain"]["near"], "what ran near it is known"
    assert widths["agreed"]["near"] < widths["found"]["near"], "a run far from what is predicted raises doubt"
    assert widths["found"]["other"] == widths["plain"]["other"]
    m = measured_rows([own], shipped_parameters())
    assert [r.id for r in m.runs] == ["z"]
    assert 1e3 * m.data.tpot_s[0] == pytest.approx(float(slow["tpot_ms"]))
    assert 1e3 * m.data.ttft_s[0] == pytest.approx(float(slow["ttft_ms"]))


# ------------------------------------------------- what ships is what is validated

EVERY, PRINTED = 25, 6


@pytest.fixture(scope="module")
def sampled(truth: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[ServingRun]]:
    """Every 25th open row, as a table beside its models, and what the rows ask."""
    source = truth / "serving_points.csv"
    folder = tmp_path_factory.mktemp("rows")
    (folder / "models").symlink_to(truth / "models")
    with source.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows[::EVERY])
    path = str(folder / "rows.csv")
    runs = [run for run in ASKING.questions(path, None)[1] if isinstance(run, ServingRun)]
    assert len(runs) > 100
    return path, runs


def test_a_row_takes_the_answer_of_its_question(sampled: tuple[str, list[ServingRun]]) -> None:
    path, runs = sampled
    said = {(p.row_id, p.metric): p for p in SERVING.predict(path)}
    for run in runs:
        (plan,) = run.question.run().plans
        for figure, metric in FIGURES.items():
            mine, sold = said[run.id, metric], getattr(plan, figure)
            if sold is None:
                assert mine.mid is None
                continue
            assert mine.command == command_line("estimate", run.question)
            found = [1e-3 * (x or 0.0) for x in (mine.mid, mine.low, mine.high)]
            assert found == pytest.approx([sold.mid, sold.low, sold.high], rel=1e-9), (run.id, metric)
            assert mine.basis == sold.basis


def test_the_printed_command_gives_the_answer_of_the_row(sampled: tuple[str, list[ServingRun]], run: Run) -> None:
    path, runs = sampled
    said = {(p.row_id, p.metric): p for p in SERVING.predict(path)}
    apart = [r for r in runs if r.apart][: PRINTED // 2]
    together = [r for r in runs if not r.apart]
    chosen = [*apart, *together[:: len(together) // (PRINTED - len(apart))]][:PRINTED]
    assert len(chosen) == PRINTED
    for one in chosen:
        _, *words = shlex.split(command_line("estimate", one.question))
        (plan,) = run(*words, "--format", "json").json["plans"]
        assert 1e3 * plan["ttft_s"]["mid"] == pytest.approx(said[one.id, "ttft_ms"].mid, rel=1e-9)
        assert 1e3 * plan["tpot_s"]["mid"] == pytest.approx(said[one.id, "tpot_ms"].mid, rel=1e-9)


# ------------------------------------------------------------------------ tables


def table(path: Path) -> dict[str, dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return {row["row_id"]: row for row in csv.DictReader(file)}


def test_scored_serving_rows_are_answered_and_near(truth: Path) -> None:
    path = truth / "serving_points.csv"
    rows = table(path)
    scored = {i for i, r in rows.items() if r["score"] == "1"}
    found = [p for p in SERVING.predict(str(path)) if p.row_id in scored]
    assert len(found) == 2 * len(scored)
    assert sum(p.mid is not None for p in found) >= 0.97 * len(found)
    # in sample: a regression test, not a figure of accuracy
    for metric, most in (("tpot_ms", 0.09), ("ttft_ms", 0.28)):
        errors = [abs(p.mid / float(rows[p.row_id][metric]) - 1) for p in found if p.metric == metric and p.mid]
        assert np.median(errors) < most
    assert {p.basis for p in found if p.mid is not None} == {"calibrated"}


def test_token_speeds_are_right_within_a_factor(truth: Path) -> None:
    path = truth / "token_speeds.csv"
    rows = table(path)
    found = {p.row_id: p for p in TOKEN_SPEEDS.predict(str(path))}
    main = [i for i, r in rows.items() if r["use"] == "main"]
    assert all(found[i].mid for i in main)
    off = [abs(np.log2(found[i].mid / float(rows[i]["tokens_per_s_per_user"]))) for i in main]  # type: ignore[operator]
    assert 2 ** np.median(off) < 1.6


def test_rows_for_a_fit_need_measured_columns(truth: Path, tmp_path: Path) -> None:
    bare = tmp_path / "rows.csv"
    bare.write_text("row_id,chip,backend,isl,osl,concurrency\nx,h100-sxm5-80gb,vllm,1,1,1\n")
    with pytest.raises(ChipwiseError, match="measured"):
        measured_rows([str(bare)], shipped_parameters())


@pytest.mark.parametrize(
    ("suite", "rows", "key", "words"),
    [
        ("servin", "x.csv", None, "serving"),
        ("serving", None, None, "no rows"),
        ("serving", "missing.csv", None, "no such file"),
        ("serving", "missing.csv", "phase of the moon", "unknown key"),
    ],
)
def test_what_cannot_be_validated(
    suite: str, rows: str | None, key: str | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CHIPWISE_TRUTH", raising=False)
    with pytest.raises(ChipwiseError) as caught:
        validate(suite, rows, key)
    assert words in f"{caught.value} {getattr(caught.value, 'hint', '')}"


def found(suite: str, remark: str) -> Validation:
    rows = Residuals.of(0, 1.1, 1.0, low=1.0, high=1.2, metric="m")
    return Validation(suite, "How.", {"all": rows.summaries()}, [remark])


def test_a_section_is_replaced_and_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "accuracy.md"
    write_section(found("one", "first"), str(path))
    write_section(found("two", "other"), str(path))
    write_section(found("one", "second"), str(path))
    text = path.read_text("utf-8")
    assert "second" in text
    assert "first" not in text
    assert "other" in text
    assert text.count("<!-- one: begin -->") == text.count("<!-- two: end -->") == 1
    assert "| all | m | 1 | 100.0 % | 10.0 % | 10.0 % | +10.0 % | 100.0 % |" in text
