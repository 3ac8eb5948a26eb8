"""kernel, evidence and the catalogue as requests: the same as the command line, and what they refuse."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from pydantic import TypeAdapter

from chipwise.api.requests.doors import problem_of, read_request, request_schema
from chipwise.api.requests.verbs import VERBS
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError
from chipwise.report.table import to_json
from command_line import Run

SMALL = "meta-llama/Llama-3.1-8B"
SAME: dict[str, tuple[str, dict[str, Any]]] = {
    "kernel gemm --m 64 --n 4096 --k 4096 --chip l4 --dtype fp8": (
        "kernel",
        {"op": "gemm", "m": 64, "n": 4096, "k": 4096, "chips": "l4", "dtype": "fp8"},
    ),
    "kernel attention --kv 4096 --heads 32 --kv-heads 8 --chip l4,h100-sxm5-80gb": (
        "kernel",
        {"op": "attention", "kv": 4096, "heads": 32, "kv_heads": 8, "chips": "l4,h100-sxm5-80gb"},
    ),
    "kernel conv --size 56 --channels 64 --filters 64 --chip tpu-v5e --set hbm=1TB/s": (
        "kernel",
        {"op": "conv", "size": 56, "channels": 64, "filters": 64, "chips": "tpu-v5e", "set": "hbm=1TB/s"},
    ),
    "kernel collective --kind all_reduce --bytes 64MB --ranks 8 --chip h100-sxm5-80gb": (
        "kernel",
        {"op": "collective", "kind": "all_reduce", "bytes": "64MB", "ranks": 8, "chips": "h100-sxm5-80gb"},
    ),
    "kernel experts --tokens 512 --hidden 4096 --inter 1536 --experts 128 --top-k 8 --chip h100-sxm5-80gb": (
        "kernel",
        {"op": "experts", "tokens": 512, "hidden": 4096, "inter": 1536, "experts": 128, "top_k": 8}
        | {"chips": "h100-sxm5-80gb"},
    ),
    "kernel norm --m 64 --n 4096 --chip l4": ("kernel", {"op": "norm", "m": 64, "n": 4096, "chips": "l4"}),
    "kernel elementwise --m 64 --n 4096 --chip l4": (
        "kernel",
        {"op": "elementwise", "m": 64, "n": 4096, "chips": "l4"},
    ),
    "kernel copy --bytes 1GB --chip l4": ("kernel", {"op": "copy", "bytes": "1GB", "chips": "l4"}),
    f"evidence match {SMALL} --chip h200-sxm-141gb --count 8": (
        "match",
        {"model": SMALL, "chip": "h200-sxm-141gb", "count": 8},
    ),
    f"evidence claim --result v4.0-03001 --for {SMALL} --against h100-sxm5-80gb --tpot 40ms": (
        "claim",
        {"result": "v4.0-03001", "model": SMALL, "against": "h100-sxm5-80gb", "tpot": "40ms"},
    ),
}


@pytest.mark.parametrize("command", SAME)
def test_a_request_is_the_command(run: Run, command: str) -> None:
    verb, given = SAME[command]
    said = json.loads(run(*shlex.split(command), "--format", "json").out)
    asked = said.pop("question", {"verb": verb})
    assert asked["verb"] == verb
    assert said == json.loads(to_json(read_request(verb, given).run()))


@pytest.mark.parametrize(
    ("verb", "given", "said"),
    [
        ("kernel", {"op": "gemm", "chips": "l4", "m": 1}, "gemm needs n, k"),
        ("kernel", {"op": "gemm", "chips": "l4", "m": 1, "n": 1, "k": 1, "kv": 1}, "gemm has no kv"),
        ("kernel", {"op": "norm", "chips": "l4", "m": 1, "n": 1, "dtype": "fp8"}, "norm has no dtype"),
        ("kernel", {"op": "elementwise", "chips": "l4", "m": 1, "n": 1, "kind": "norm"}, "kind"),
        ("kernel", {"op": "gemm", "chips": "l4", "m": 0, "n": 1, "k": 1}, "m 0"),
        ("kernel", {"op": "fft", "chips": "l4"}, "op"),
        ("evidence", {"search": "h200", "chip": "l4"}, "search"),
        ("evidence", {"limit": 0}, "limit 0"),
        ("match", {"model": SMALL, "chip": "l4", "concurrency": -1}, "concurrency"),
        ("chips", {"vendor": "amdd"}, "vendor"),
        ("offers", {"provider": "nobody at all"}, "provider"),
        ("systems", {"system": "dgx-h10"}, "system"),
        ("models", {"model": "own.json"}, "model"),
    ],
)
def test_what_is_refused(verb: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ChipwiseError) as error:
        read_request(verb, given).run()
    problem = problem_of(error.value)
    assert said in problem.what
    assert "--" not in str(problem)


def test_the_catalogue_is_searched_by_words() -> None:
    chips = read_request("chips", {"search": "amd hbm3e"}).run()
    assert {"mi325x", "mi355x"} <= {c.id for c in chips.chips}
    assert not any(c.figures for c in chips.chips)
    assert "m4-max" in {c.id for c in read_request("chips", {"search": "mac"}).run().chips}
    full = read_request("chips", {"chips": "mi300x"}).run().chips[0]
    assert {f.name: f for f in full.figures}["memory_GBps"].sources
    models = read_request("models", {"search": "qwen3 235b", "limit": 1}).run()
    assert (len(models.models), models.found > 1) == (1, True)
    held = read_request("systems", {"chip": "tpu-v5e"}).run()
    assert all("tpu-v5e" in dict(s.members) for s in held.systems)
    offers = read_request("offers", {"chip": "h100-sxm5-80gb"}).run()
    prices = [o.usd_per_chip_h for o in offers.offers if o.usd_per_chip_h is not None]
    assert prices == sorted(prices)
    assert offers.ranges[0].low <= prices[-1]


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "./x", "~root", "x.toml", "x.toml:y", "..", "C:\\x", "a/b/c/config.json"]
)
def test_no_name_is_a_file(name: str) -> None:
    for verb, given in (
        ("fit", {"model": name}),
        ("chips", {"chips": name}),
        ("estimate", {"model": SMALL, "chip": name}),
    ):
        with pytest.raises(UnknownNameError):
            read_request(verb, given)
    with pytest.raises(UsageError, match="files are not read here"):
        read_request("plan", {"model": SMALL, "parameters": name})
    for field in ("log", "day"):
        with pytest.raises(UsageError, match="files are not read here"):
            read_request("plan", {"model": SMALL, field: name})
    assert read_request("plan", {"model": SMALL, "day": "2"}).curve().peak == 2.0  # type: ignore[attr-defined]
    assert "parameters" not in request_schema("plan")["properties"]
    assert "parameters" in request_schema("plan", files=True)["properties"]


@pytest.mark.parametrize("verb", VERBS)
def test_an_answer_has_a_schema(verb: str) -> None:
    from chipwise.api.requests.doors import answer_schema

    schema = answer_schema(verb, "#/$defs/{model}")
    assert schema["type"] == "object"
    assert "schema_version" in schema["properties"]
    TypeAdapter(VERBS[verb]).json_schema()


@pytest.mark.parametrize("task", ["train", "finetune"])
def test_a_task_of_training_names_its_verb(task: str) -> None:
    with pytest.raises(UsageError, match="the verb train does"):
        read_request("plan", {"model": "meta-llama/Llama-3.1-8B", "task": task, "tokens": "1T"})
