"""Text encoders behind a server: where requests come at a rate one that is a server is planned, and launched."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

import chipwise as cw
from chipwise.api.launching import launch
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.media_runtime import MediaRuntime, get_media_runtime, media_runtimes_tried
from chipwise.catalog.software import all_software
from chipwise.errors import UsageError
from chipwise.workload import media

SERVERS = [r for r in all_software(MediaRuntime).values() if r.server]


@pytest.mark.parametrize("runtime", SERVERS, ids=lambda r: r.id)
def test_what_servers_name_is_known(runtime: MediaRuntime) -> None:
    chips = {name for chip in load_chips().values() for name in (chip.software_id, chip.base_generation)}
    assert all(any(fnmatchcase(name, one) for name in chips) for one in runtime.not_on)
    assert all(any(fnmatchcase(name, one) for name in media.names()) for one in runtime.models)


def test_a_server_runs_its_chips_models_and_formats() -> None:
    tei, vllm = get_media_runtime("text-embeddings-inference"), get_media_runtime("vllm")
    runs = {name: tei.runs_on(get_chip(name)) for name in ("t4", "l4", "h100-sxm5-80gb", "b300-sxm", "gh200-96gb")}
    assert runs == {"t4": True, "l4": True, "h100-sxm5-80gb": True, "b300-sxm": False, "gh200-96gb": False}
    assert vllm.runs_on(get_chip("mi300x"))
    assert not vllm.runs_on(get_chip("v100-sxm2-32gb"))
    assert tei.has("bge-m3")
    assert not tei.has("qwen3-reranker-8b")
    assert (tei.computes(None), tei.takes("bf16"), vllm.takes("fp8")) == ("fp16", False, True)
    tried = media_runtimes_tried(get_chip("l4"), "text", "bge-m3", "bf16")
    assert tei not in tried
    assert vllm in tried
    with pytest.raises(UsageError, match=r"does not run bf16 .*precision fp16 or fp32"):
        cw.estimate("bge-m3", chip="l4", runtime="tei", precision="bf16")


def test_a_rate_is_served_by_a_server() -> None:
    asked = {"rate": "100/s", "settings": "tokens=512"}
    first = cw.plan("BAAI/bge-reranker-v2-m3", chips="l4", **asked)
    assert first.model == "BAAI/bge-reranker-v2-m3"
    assert "BAAI/bge-reranker-v2-m3 has the dimensions of bge-m3" in first.assumptions
    assert (first.plans[0].runtime, first.plans[0].usual) == ("tei", "tei")
    assert "instead of" not in first.verdict()[0]
    assert not [c for c in first.changes if "tuned" in c.options or c.options == "--precision fp8"]
    every = cw.plan("bge-m3", chips="l4", by="runtime", **asked).plans
    assert {"tei", "vllm", "eager"} <= {p.runtime for p in every}
    assert every[0].runtime in {r.id for r in SERVERS}


def test_without_a_rate_or_a_server_it_is_as_before() -> None:
    assert cw.estimate("bge-m3", chip="l4").plans[0].runtime == "eager"
    assert cw.plan("resnet50", chips="l4", rate="100/s").plans[0].runtime not in {r.id for r in SERVERS}


@pytest.mark.parametrize(
    ("model", "chip", "name", "told"),
    [
        ("bge-m3", "l4", "BAAI/bge-m3", ("--model-id BAAI/bge-m3", "/embed", "--dtype float16")),
        ("intfloat/e5-base-v2", "l4", "intfloat/e5-base-v2", ("--model-id intfloat/e5-base-v2",)),
        ("bge-reranker-large", "l4", "BAAI/bge-reranker-large", ("/rerank", '"texts"')),
        ("Qwen/Qwen3-Reranker-0.6B", "l4", "Qwen/Qwen3-Reranker-0.6B", ("vllm serve", "--hf-overrides", "/rerank")),
        ("bge-m3", "mi300x", "BAAI/bge-m3", ("--runner pooling", "/v1/embeddings", "--dtype bfloat16")),
    ],
)
def test_the_plan_is_launched_with_its_own_server(
    model: str, chip: str, name: str, told: tuple[str, ...], tmp_path: Path
) -> None:
    path = str(tmp_path / "plan.json")
    cw.plan(model, chips=chip, rate="20/s", settings="tokens=128").save(path)
    serve, verify = launch(path)
    assert (serve.name, verify.name) == ("serve.sh", "verify.py")
    assert all(words in serve.text for words in (*told, name)), serve.text
    compile(verify.text, verify.name, "exec")
    assert f"'weights': '{name}'" in verify.text
    assert "'rate_per_s': " in verify.text


def test_lengths_of_a_text_are_those_of_a_prompt_and_an_answer() -> None:
    said = cw.estimate("bge-m3", chip="l4", in_=256)
    assert said.settings["tokens"] == 256
    assert said.best.latency_s == cw.estimate("bge-m3", chip="l4", settings="tokens=256").best.latency_s
    written = cw.estimate("nllb-200-1.3b", chip="l4", in_=64, out=32)
    assert (written.settings["tokens"], written.settings["targets"]) == (64, 32)
