from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Run


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CHIPWISE_DATA_DIR", str(tmp_path / "store"))
    return tmp_path / "store"


RUN = {
    "model_id": "meta-llama/Llama-3.1-8B-Instruct",
    "completed": 10,
    "total_input_tokens": 10240,
    "total_output_tokens": 1280,
    "output_throughput": 2000.0,
    "mean_ttft_ms": 50.0,
    "mean_tpot_ms": 9.0,
    "max_concurrency": 32,
}


def test_list_filters(run: Run) -> None:
    rows = run("evidence", "list", "--benchmark", "llama2-70b", "--chip", "h200-sxm-141gb", "--format", "json").json[
        "items"
    ]
    assert {r["chip"] for r in rows} == {"h200-sxm-141gb"}
    assert run("evidence", "list", "--own").out.strip().endswith("no results")
    assert "did you mean" in run("evidence", "list", "--benchmark", "llama2").refused(3)
    run("evidence", "list", "--round", "v9").refused(3)
    run("evidence", "list", "--scenario", "Someday").refused(3)
    run("evidence", "list", "--limit", "0").refused(2)


def test_show_has_the_source_and_a_prediction(run: Run) -> None:
    found = run("evidence", "show", "v5.1-05440")
    assert "mlcommons/inference_results_v5.1" in found.out
    assert "predicted by chipwise" in found.out
    assert "trademark of MLCommons" in found.out
    assert "did you mean" in run("evidence", "show", "v5.1-0544").refused(3)
    assert "time to train, min" in run("evidence", "show", "mt000").out


def test_search_needs_words_and_finds_all_of_them(run: Run) -> None:
    rows = run("evidence", "search", "gaudi2", "llama2-70b", "--format", "json").json["items"]
    assert rows
    assert all(r["chip"] == "gaudi2" for r in rows)
    run("evidence", "search").refused(2)


def test_import_match_and_list_own(run: Run, tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text(json.dumps(RUN))
    (tmp_path / "bad.json").write_text("{")
    first = run("evidence", "import", str(tmp_path), "--chip", "l40s", "--count", "1")
    assert first.code == 0, first.err
    assert "bad.json" in first.out
    assert "1 new, 0 known already" in first.out
    assert "0 new, 1 known already" in run("evidence", "import", str(tmp_path), "--chip", "l40s", "--count", "1").out
    own = run("evidence", "list", "--own", "--format", "json").json["items"]
    assert [o["chip"] for o in own] == ["l40s"]
    assert run("evidence", "show", own[0]["id"]).code == 0
    options = ("--chip", "l40s", "--count", "1", "--in", "1024", "--out", "128", "--task", "batch")
    report = run("evidence", "match", "Llama-3.1-8B", *options, "--format", "json").json
    assert report["matches"][0]["item"]["id"] == own[0]["id"]
    assert own[0]["id"] in report["anchored"]["used"]


def test_nothing_imported_is_an_error_in_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{")
    assert "bad.json" in run("evidence", "import", str(tmp_path / "bad.json")).refused(2)
    run("evidence", "import").refused(2)
    run("evidence", "import", str(tmp_path / "bad.json"), "--chip", "h999").refused(3)
    assert not (tmp_path / "store").exists()


def test_a_claim_names_what_reverses_it(run: Run) -> None:
    options = ("--for", "meta-llama/Llama-3.1-8B", "--in", "500", "--out", "100", "--against", "b300-sxm")
    found = run("evidence", "claim", "--result", "v6.1-06836", *options)
    assert found.code == 0, found.err
    assert "not advice" in found.out
    assert "against b300-sxm" in found.out
    run("evidence", "claim", "--result", "mt000", "--for", "Llama-3.1-8B").refused(2)
    other = run("evidence", "claim", "--result", "v3.0-00144", "--for", "Llama-3.1-8B")  # of 3d-unet
    assert "not advice: the row differs in model" in other.out
    run("evidence", "claim", "--result", "v6.1-06836", "--for", "no-such-model").refused(3)


def test_the_suite_answers_and_refuses_by_name(run: Run, tmp_path: Path) -> None:
    head = "row_id,round,chip,accelerator,chips_total,framework,model,model_base,scenario,weight_precision,unit\n"
    rows = "a,v6.0,b200-sxm,B200,8,TensorRT,llama2-70b-99,llama2-70b,Offline,fp4,Tokens/s\n"
    rows += "b,v6.0,,L40,8,TensorRT,resnet,resnet,Offline,int8,Samples/s\n"
    (tmp_path / "rows.csv").write_text(head + rows)
    out = tmp_path / "out.csv"
    assert run("predict", "mlperf", "--rows", str(tmp_path / "rows.csv"), "--out", str(out)).code == 0
    lines = out.read_text().splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [["a", "result"], ["a", "tokens_per_s"], ["b", "result"]]
    assert "L40 is not in the catalogue" in lines[3]
