"""The suite of pipelines: rows become questions of users, take the same answers, are fitted without their own."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from chipwise.api.suites.doors import SUITES
from chipwise.api.suites.media import MEDIA, question_of
from chipwise.api.suites.predicting import predict_suite
from chipwise.api.suites.validating import VALIDATIONS
from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.habits import habit_of
from chipwise.cli import main
from chipwise.errors import UsageError

COLUMNS = (
    "row_id,task,phase,model,model_detail,params_m,gmacs,chip,chips,parallel,batch,precision,runtime,runtime_version,"
    "offload,metric,value,date,source,note"
).split(",")

BASE = {
    "task": "image", "phase": "infer", "model": "FLUX.1-dev", "chip": "h100-sxm5-80gb", "chips": "1", "batch": "1",
    "model_detail": "width=1024;height=1024;steps=28;guidance=3.5;distilled_guidance=1", "precision": "bf16",
    "runtime": "compile", "runtime_version": "torch 2.5.1", "offload": "none", "metric": "latency_s", "value": "4.3",
    "date": "2025-02-19", "source": "somewhere",
}  # fmt: skip


def row(name: str = "r1", **changes: str) -> dict[str, str]:
    return dict.fromkeys(COLUMNS, "") | BASE | {"row_id": name} | changes


def table(path: Path, rows: list[dict[str, str]]) -> str:
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


ROWS = [
    row("flux"),
    row("step", metric="step_s", value="0.15"),
    row("rate", metric="it_per_s", value="6.6"),
    row("memory", metric="peak_memory_gb", value="36.4"),
    row("shared", chips="4", parallel="ulysses=2;ring=2", value="1.8"),
    row(
        "vision", task="vision", model="resnet50", model_detail="image_size=224;memory_format=channels_last",
        chip="rtx-4090", batch="512", precision="amp-fp16", runtime="eager", metric="samples_per_s", value="5000",
    ),
    row(
        "counts", task="vision", model="somenet_b9", model_detail="image_size=224;macts=6.8", params_m="5.3",
        gmacs="0.4", batch="256", precision="amp-fp16", metric="samples_per_s", value="9000",
    ),
    row(
        "train", task="vision", phase="train", model="resnet50", model_detail="image_size=224", chips="8",
        parallel="dp=8", batch="512", precision="amp-fp16", runtime="eager", metric="samples_per_s", value="9000",
    ),
]  # fmt: skip


def test_a_row_is_the_command_that_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, commands = tmp_path / "out.csv", tmp_path / "cmd.csv"
    written, refused = predict_suite("media", table(tmp_path / "media.csv", ROWS), str(out), commands=str(commands))
    assert (written, refused) == (len(ROWS), 0)
    said = {r["row_id"]: r for r in csv.DictReader(out.read_text().splitlines())}
    lines = {r["row_id"]: r["command"] for r in csv.DictReader(commands.read_text().splitlines())}
    fields = {"images_per_s": "samples_per_s"}
    for one in ROWS:
        with pytest.raises(SystemExit) as done:
            main([*shlex.split(lines[one["row_id"]])[1:], "--format", "json"])
        assert not done.value.code
        plan = json.loads(capsys.readouterr().out)["plans"][0]
        metric = one["metric"]
        assert said[one["row_id"]]["metric"] == metric
        figure = plan["memory_bytes"] / 1e9 if metric == "peak_memory_gb" else plan[fields.get(metric, metric)]["mid"]
        assert figure == pytest.approx(float(said[one["row_id"]]["predicted"]), rel=1e-9)
        low, mid, high = (float(said[one["row_id"]][name]) for name in ("low", "predicted", "high"))
        assert low <= mid <= high


def test_what_a_row_says_becomes_options() -> None:
    shared = question_of(row(chips="4", parallel="sp=4;fsdp=4", precision="int8-dynamic"))
    assert shared.spread == "ulysses=4,fsdp=1"
    assert shared.precision == "int8"
    assert shared.resolution == "1024x1024"
    assert shared.guidance is None  # an input of the model, no second pass
    assert question_of(row(precision="fp16-amp")).precision == "amp-fp16"
    assert question_of(row(precision="fp32(conv tf32 on A100)")).precision == "fp32"
    trained = question_of(
        row(model="resnet50", phase="train", batch="", model_detail="micro_batch=8", chips="2", parallel="dp=2")
    )
    assert trained.training
    assert trained.batch == 16


def test_software_that_a_version_names_stands_for_how_it_runs() -> None:
    def runtime(column: str, version: str) -> str | None:
        return question_of(row(runtime=column, runtime_version=version)).runtime

    assert runtime("eager", "LightX2V (2025-12)") == "lightx2v"
    assert runtime("eager", "SGL-diffusion (2025-12)") == "sglang-diffusion"
    assert runtime("eager", "xDiT (2025-12)") == runtime("eager", "TensorRT 8.6") == "eager"
    assert runtime("compile", "LightX2V (2025-12)") == "compile"
    assert runtime("compile", "onediff nexfort") == "onediff"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"chips": "8"}, "how 8 chips share"),
        ({"metric": "joules"}, "joules is not read"),
        ({"model": "Nobody/Knows"}, "not built in"),
        ({"model_detail": "unit=tokens_per_s"}, "not samples"),
        ({"model_detail": "frames_steps_not_stated=1"}, "must be known"),
        ({"phase": "train", "batch": ""}, "batch of a step"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_reason(changes: dict[str, str], why: str) -> None:
    with pytest.raises(UsageError) as refused:
        question_of(row(**changes))
    assert why in str(refused.value)


def test_what_a_source_does_not_say_is_a_fact_of_the_catalogue() -> None:
    own = habit_of("Wan-Video/Wan2.2 README.md")
    assert own.precision["bf16"] == "amp-bf16"
    assert (own.memory, own.gigabyte, own.sharded) == ("device", 2.0**30, True)
    assert habit_of("sayakpaul/diffusers-torchao README.md").memory == "allocated"
    assert habit_of("another").gigabyte == 1e9
    for source in (
        "huggingface/blog simple_sdxl",
        "github huggingface/blog simple_sdxl",
        "github:huggingface/blog simple_sdxl",
    ):
        assert habit_of(source).memory == "allocated"
    assert question_of(row(source="Wan-Video/x", chips="4", parallel="sp=4")).spread == "ulysses=4,fsdp=1"
    assert question_of(row(chips="4", parallel="sp=4")).spread == "ulysses=4"
    plain = question_of(row(model="sam_vit_b", model_detail="image_size=1024;stage=bf16"))
    assert plain.settings == "attention=plain"
    made = question_of(row(model="sam_vit_b", model_detail="image_size=1024;stage=Triton"))
    assert made.settings == "bias=inside"
    zoo = {"model": "retinanet_R_50_FPN", "source": "facebookresearch/detectron2 MODEL_ZOO.md", "phase": "train"}
    asked = {**zoo, "batch": "2", "model_detail": "image_size=800x1333"}
    assert question_of(row(**asked)).resolution == "992x736"
    assert question_of(row(**asked, metric="peak_memory_gb")).resolution == "1344x800"  # the highest of a run


def test_a_figure_of_memory_counts_what_its_source_counts(tmp_path: Path) -> None:
    rows = [
        row(name, metric="peak_memory_gb", value="36", source=source)
        for name, source in (("all", "x"), ("tensors", "sayakpaul/diffusers-torchao README.md"))
    ]
    out = tmp_path / "out.csv"
    predict_suite("media", table(tmp_path / "media.csv", rows), str(out))
    said = {r["row_id"]: float(r["predicted"]) for r in csv.DictReader(out.read_text().splitlines())}
    assert 0.0 < said["all"] - said["tensors"] < 5.0


def test_the_suite_has_its_doors() -> None:
    assert SUITES["media"] is MEDIA
    assert "media" in VALIDATIONS
    assert MEDIA.commanded


def test_rows_that_a_fit_did_not_see(tmp_path: Path) -> None:
    """Every row is left out once, by source and model; doubtful rows count for nothing."""
    trial = MEDIA.trial
    assert trial is not None
    rows = [row(f"{n}", source=f"s{n % 3}", value=f"{4.0 + 0.1 * n}") for n in range(6)]
    rows += [row(f"m{n}", source=f"s{n}", metric="peak_memory_gb", value="36") for n in range(3)]
    rows += [row("doubt", note="DOUBT: one may wonder"), row("context", note="CONTEXT: scaling alone")]
    found = trial.read([table(tmp_path / "media.csv", rows)], shipped_parameters())
    assert len(found.lines) == 9
    unseen = trial.unseen(found, shipped_parameters(), "cell")
    assert len(unseen) == 9
    assert np.all(np.isfinite(unseen.predicted))
    assert set(unseen.label("kind")) == {"time", "memory"}
    report = trial.report(found, unseen, "cell")
    assert report.tables["all"]
