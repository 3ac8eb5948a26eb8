"""Every request describes itself, and answers as the command line does."""

from __future__ import annotations

import json
import pickle
import shlex
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from chipwise.api.requests.command import about, command_line
from chipwise.api.requests.doors import read_request
from chipwise.api.requests.kinds import FORMER
from chipwise.api.requests.planning import EstimateRequest, FitRequest, PlanRequest
from chipwise.api.requests.verbs import VERBS
from chipwise.api.requests.written import Origin
from chipwise.errors import ChipwiseError, UnknownNameError, UsageError
from chipwise.report.table import to_json
from command_line import Run

FILES = {"model", "models", "chip", "chips", "parameters", "log", "day", "fleet", "teacher"}
MODEL = "meta-llama/Llama-3.1-8B"
LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 4,
    "hidden_size": 1024,
    "num_attention_heads": 8,
    "intermediate_size": 4096,
    "vocab_size": 32000,
    "max_position_embeddings": 8192,
    "torch_dtype": "bfloat16",
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_request_describes_every_field(verb: str) -> None:
    schema = TypeAdapter(VERBS[verb]).json_schema()
    assert schema["additionalProperties"] is False
    assert set(schema.get("required", ())) == {n for n, p in schema["properties"].items() if "default" not in p}
    for name, part in schema["properties"].items():
        assert part["description"], name
        assert not name.endswith("_")


@pytest.mark.parametrize("verb", VERBS)
def test_what_may_be_a_file_is_marked(verb: str) -> None:
    marked = {f.name for f in fields(VERBS[verb]) if f.metadata["file"]}  # type: ignore[arg-type]
    named = {f.name for f in fields(VERBS[verb])} & FILES  # type: ignore[arg-type]
    assert marked == named


DOORS: dict[str, Callable[..., Any]] = {
    "agents, HTTP": lambda **given: read_request("plan", given),
    "Python": lambda **given: PlanRequest(**{"in_" if name == "in" else name: v for name, v in given.items()}),
}


@pytest.mark.parametrize("door", DOORS)
def test_natural_values_are_read_at_every_door(door: str) -> None:
    said = {"model": MODEL, "in": "500", "rate": "2", "tpot": "40ms", "chips": "l4,h100", "day": "1,2.5,"}
    said |= {"policy": "max_sequences=64,chunk=2048", "cv": "in=0.5,out=0", "have": "2xl4", "max_chips": "8"}
    natural = {"model": MODEL, "in": 500.0, "rate": np.int64(2), "tpot": "40ms", "chips": ["l4", "h100"]}
    natural |= {"day": (1, 2.5), "policy": {"max_sequences": 64, "chunk": 2048}, "cv": {"in": 0.5, "out": 0}}
    natural |= {"have": {"l4": 2}, "max_chips": 8.0}
    for name in said:
        both = [DOORS[door](**{"model": MODEL, name: given[name]}) for given in (said, natural)]
        if name in ("chips", "day") and door == "agents, HTTP":
            assert both[0] == both[1]  # names are resolved, rates are written out
            continue
        assert (both[0], both[0].values) == (both[1], both[1].values), name


def test_a_question_survives_being_sent() -> None:
    asked = PlanRequest(model=MODEL, rate=2, policy={"chunk": 2048})
    sent = pickle.loads(pickle.dumps(asked))
    assert (sent, sent.values) == (asked, asked.values)
    assert asked.values["rate"] == 2.0


@pytest.mark.parametrize("verb", ["plan", "load", "match"])
@pytest.mark.parametrize("name", ["ttft", "tpot"])
@pytest.mark.parametrize("bare", ["40", 40, 0.04, " 40 "])
def test_a_bare_number_for_a_time_is_refused_with_both_readings(verb: str, name: str, bare: object) -> None:
    number = str(bare).strip()
    with pytest.raises(UsageError, match=rf"{number}: {number}ms or {number}s[?]") as refused:
        read_request(
            verb, {"model": MODEL, "chip": "l4", name: bare} if verb != "plan" else {"model": MODEL, name: bare}
        )
    assert (refused.value.field, refused.value.instead) == (name, (f"{number}ms", f"{number}s"))


def test_a_bare_number_of_a_deadline_and_of_an_answer_is_refused_too() -> None:
    with pytest.raises(UsageError, match=r"30: 30d or 30h[?]"):
        read_request("train", {"model": MODEL, "deadline": 30})
    with pytest.raises(UsageError, match=r"20: 20ms or 20s[?]"):
        read_request("plan", {"model": MODEL, "e2e": 20})


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({}, "model", "needs 'model'"),
        ({"model": MODEL, "task": "train"}, "task", "does not answer the task train"),
        ({"model": MODEL, "task": "dream"}, "task", "expected 'serve', 'batch' or 'local'"),
        ({"model": MODEL, "rate": "ten"}, "rate", "cannot read 'ten'"),
        ({"model": MODEL, "rate": [1, 2]}, "rate", r"cannot use \[1, 2\], expected text or a number"),
        ({"model": MODEL, "rate": True}, "rate", "cannot use True"),
        ({"model": MODEL, "in": float("nan")}, "in", "cannot use nan"),
        ({"model": MODEL, "chips": {"l4": 1}}, "chips", "expected text or a list"),
        ({"model": MODEL, "policy": [1]}, "policy", "cannot read '1'"),
        ({"model": MODEL, "max_chips": 2.5}, "max_chips", "not a whole number"),
        ({"model": MODEL, "max_chips": True}, "max_chips", "expected a whole number"),
        ({"model": MODEL, "disaggregate": "perhaps"}, "disaggregate", "expected true or false"),
        ({"model": MODEL, "max_usd_per_h": "cheap"}, "max_usd_per_h", "cannot read 'cheap'"),
        ({"model": [MODEL]}, "model", "expected text or an object"),
        ({"model": MODEL, "chips": "l44"}, "chips", "unknown chip"),
    ],
)
def test_an_error_carries_its_field(given: dict[str, object], field: str, said: str) -> None:
    with pytest.raises(ChipwiseError, match=said) as refused:
        read_request("plan", given)
    assert refused.value.field == field


def test_a_field_that_no_question_has_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown field of plan 'ratee'.*did you mean rate[?]"):
        read_request("plan", {"model": MODEL, "ratee": 3})


@pytest.mark.parametrize("files", [False, True])
def test_a_configuration_is_taken_as_an_object_at_every_door(files: bool) -> None:
    asked = read_request("fit", {"model": LLAMA, "chips": "l4"}, files=files)
    text = read_request("fit", {"model": json.dumps(LLAMA), "chips": "l4"}, files=files)
    report = asked.run()
    assert report.model.params == text.run().model.params == 4 * 16 * 1024**2 + 2 * 32000 * 1024 + 9 * 1024
    assert report.model.name == "llama as given"
    repeated = shlex.split(command_line("fit", asked))
    assert (json.loads(repeated.pop(2)), repeated) == (LLAMA, ["chipwise", "fit", "--chips", "l4"])
    with pytest.raises(UsageError, match="given: key 'model_type' occurs twice"):
        read_request("fit", {"model": '{"model_type": "llama", "model_type": "llama"}'}).run()
    with pytest.raises(UsageError, match="not valid JSON"):
        read_request("fit", {"model": '{"model_type": "llama"'}).run()


def test_a_request_answers_as_the_command_does(run: Run) -> None:
    asked = FitRequest(model=MODEL, chips="l4", lora="rank=16,count=8")
    command = run("fit", MODEL, "--chips", "l4", "--lora", "rank=16,count=8", "--format", "json")
    assert command.out == to_json(asked.run(), Origin("fit", asked).written()) + "\n"


@pytest.mark.parametrize("given", [{"day": "/etc/hostname"}, {"log": "/etc/hostname"}, {"day": "README.md"}])
def test_doors_open_no_file_of_a_question(given: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"files are not read here|no rate"):
        read_request("plan", {"model": MODEL, **given})


def test_doors_take_a_day_that_is_written_out() -> None:
    asked = read_request("plan", {"model": MODEL, "day": "1, 2 3"})
    assert asked.curve().peak == 3.0  # type: ignore[attr-defined]


def test_a_question_becomes_a_command_and_another_question() -> None:
    asked = PlanRequest(model=MODEL, in_="1k", precision="fp8", have="2xl4", disaggregate=True, spare=1, rate="5/s")
    line = command_line("plan", asked)
    assert line == (f"chipwise plan {MODEL} --in 1k --rate 5/s --precision fp8 --disaggregate --have 2xl4 --spare 1")
    sized = about(asked, FitRequest, chips="l4")
    assert command_line("fit", sized) == f"chipwise fit {MODEL} --precision fp8 --chips l4"


@pytest.mark.parametrize(("former", "verb"), FORMER.items())
def test_a_name_that_a_verb_had_is_still_understood(former: str, verb: str) -> None:
    assert former not in VERBS
    given = {"model": MODEL, "chip": "l4"} if verb == "match" else {"model": MODEL}
    given |= {"result": "v5.1-05440"} if verb == "claim" else {}
    assert read_request(former, given) == read_request(verb, given)


def test_training_is_one_verb_under_both_of_its_commands(run: Run) -> None:
    asked = ("--chips", "h100-sxm5-80gb", "--counts", "8", "--tokens", "1B", "--format", "json")
    assert run("train", MODEL, *asked).json == run("plan", MODEL, "--task", "train", *asked).json


def test_settings_are_given_once_and_shares_may_be_percentages() -> None:
    def asked(**fields: Any) -> Any:
        return FitRequest(model="flux-dev", chips="h100", **fields)

    share, part = (asked(settings=s).sampling().settings["cached"] for s in ("cached=40%", "cached=0.4"))
    assert share == pytest.approx(part)
    with pytest.raises(UsageError, match="'steps' is given twice"):
        asked(settings="steps=20,steps=30").sampling()
    with pytest.raises(UsageError, match="steps is given twice: as --steps and in --settings"):
        asked(steps=20, settings="steps=30").sampling()
    for name in ("run", "model", "training", "settings", "bogus"):
        with pytest.raises(UsageError, match=f"flux-dev has no setting '{name}'") as caught:
            asked(settings=f"{name}=1").run()
        assert caught.value.field == "settings"
    for name in ("batch", "precision", "trained", "name"):
        with pytest.raises(UsageError, match=f"{name} is no setting: it is asked by itself"):
            asked(settings=f"{name}=3").run()


def test_a_short_configuration_given_itself_is_repeated_in_the_next_command() -> None:
    given = '{"model_type": "llama", "hidden_size": 64}'
    assert shlex.split(command_line("fit", FitRequest(model=given, chips="l4")))[2] == given
    for long in (given + " " * 1000, given.replace(" ", "\n")):
        assert shlex.split(command_line("fit", FitRequest(model=long, chips="l4")))[2] == "config.json"


def test_one_pass_is_not_split_by_guidance() -> None:
    with pytest.raises(UsageError, match="takes 1 pass a step: cfg=2 has nothing to split"):
        EstimateRequest(model="flux-dev", chip="h100", spread="cfg=2").run()
    assert EstimateRequest(model="sdxl", chip="h100", spread="cfg=2").run()


def test_a_served_door_leads_from_a_network_to_what_was_measured_of_it() -> None:
    with pytest.raises(UnknownNameError, match="evidence match rgat"):
        read_request("plan", {"model": "rgat"})
