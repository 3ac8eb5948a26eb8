"""Every tool over every transport: answers within the schema, short, and errors with the next step."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import anyio
import pytest
from agents import talk, text_of
from jsonschema import Draft202012Validator
from mcp.shared.exceptions import MCPError
from mcp.types import PromptReference

from chipwise.api.requests.catalogue import ModelsRequest
from chipwise.mcp import server
from chipwise.mcp.answers import once
from chipwise.mcp.resources import PROMPTS, KeptAnswers
from chipwise.mcp.tools import SILENT, TOOLS, fields_of
from mcp import Client

ROOT = Path(__file__).resolve().parents[2]
MODEL = "Qwen/Qwen3-235B-A22B"
SMALL = "meta-llama/Llama-3.1-8B"
CALLS: dict[str, dict[str, Any]] = {
    "plan": {"model": SMALL, "rate": "10/s", "tpot": "40ms", "in": 1000},
    "fit": {"model": MODEL, "chips": "h200-sxm-141gb,l4"},
    "estimate": {"model": SMALL, "chip": "h100-sxm5-80gb", "concurrency": 32},
    "explain": {"model": MODEL, "chip": "h200-sxm-141gb", "tp": 8},
    "compare": {"model": SMALL, "chips": "l4,h100-sxm5-80gb"},
    "local": {"have": "rtx-4090", "host_memory": "64GB"},
    "train": {"model": SMALL, "tokens": "100B", "counts": "8,64"},
    "rl": {"model": SMALL, "chips": "h100", "counts": "16", "out": 4000},
    "fleet": {"fleet": {"demand": [{"model": SMALL, "rate": "10/s"}], "supply": [{"chip": "h100", "count": 8}]}},
    "kernel": {"op": "gemm", "chips": "h100-sxm5-80gb,tpu-v5e", "m": 512, "n": 4096, "k": 4096},
    "evidence": {"search": "h200 llama2-70b server"},
    "match": {"model": MODEL, "chip": "h200-sxm-141gb", "count": 8},
    "operators": {"model": SMALL, "chip": "h100-sxm5-80gb"},
    "load": {"model": SMALL, "chip": "h100-sxm5-80gb"},
    "sensitivity": {"model": SMALL, "chip": "h100-sxm5-80gb"},
    "simulate": {"model": SMALL, "chip": "h100-sxm5-80gb", "rate": "4/s", "requests": 100},
    "frontier": {"model": SMALL, "chips": "l4,h100-sxm5-80gb"},
    "check_statement": {"text": "an H100 is 3x an A100"},
    "launch": {"saved": {"question": {"verb": "estimate", "request": {"model": SMALL, "chip": "l4"}}}, "for": "vllm"},
    "replay": {"saved": {"models": [], "question": {"verb": "models", "request": {"search": "qwen3 235b"}}}},
    "diff": {
        name: {"question": {"verb": "estimate", "request": {"model": SMALL, "chip": chip}}}
        for name, chip in (("before", "l4"), ("after", "l40s"))
    },
    "systems": {},
    "runtimes": {},
    "offers": {},
    "claim": {"model": MODEL, "result": "v4.0-03001", "tpot": "40ms", "against": "h100-sxm5-80gb"},
    "chips": {"chips": "mi300x"},
    "models": {"search": "qwen3 235b"},
}
WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "name": ("plan", {"model": "qwen3-235b-a2b"}, "Qwen/Qwen3-235B-A22B"),
    "chip": ("fit", {"model": SMALL, "chips": "h100x"}, "h100"),
    "field": ("plan", {"model": SMALL, "ratee": 3}, "rate"),
    "another tool's field": ("plan", {"model": SMALL, "qps": 3}, "here it is called rate: requests per second"),
    "a sentence": ("claim", {"statement": "an H100 is fast"}, "is checked by check_statement"),
    "a closed model": ("plan", {"model": "gpt-4o"}, "OpenAI publishes neither"),
    "a layout": ("explain", {"model": MODEL, "chip": "h100"}, "(pp="),
    "missing": ("kernel", {"op": "gemm", "chips": "l4"}, "needs m, n, k"),
    "target": ("plan", {"model": SMALL, "chips": "l4", "tpot": "1us"}, "tpot"),
    "bare": ("plan", {"model": SMALL, "chips": "l4", "tpot": 40}, "40ms or 40s"),
    "file": ("fit", {"model": "/etc/passwd"}, "files are not read here"),
    "chip file": ("fit", {"model": SMALL, "chips": "own.toml"}, "unknown chip"),
    "parameters": ("plan", {"model": SMALL, "parameters": "x.toml"}, "files are not read here"),
    "type": ("plan", {"model": [1, {}]}, "model"),
    "nothing": ("plan", {}, "needs 'model'"),
    "details": ("plan", {"model": SMALL, "details": True}, "whole_answer"),
    "a record that is none": ("launch", {"saved": "{}", "for": "vllm"}, "not a saved answer"),
    "an old address": ("launch", {"saved": "chipwise://answers/0", "for": "vllm"}, "no longer kept"),
    "counts": ("plan", {"model": MODEL, "chips": ["1xh100", "4xl4"]}, "1x h100-sxm5-80gb lack"),
    "own chips": ("plan", {"model": MODEL, "have": {"h100": 1}}, "1x h100-sxm5-80gb lack"),
    "too little memory": ("estimate", {"model": MODEL, "chip": "l4", "tp": 4}, "what would help"),
    "a small host": (
        "estimate",
        {"model": "flux", "chip": "rtx-4090", "offload": "model", "host_memory": "32GB"},
        "wait on the host",
    ),
    "huge text": ("plan", {"model": "x" * 100_000}, "at most 1,000"),
    "huge number": ("estimate", {"model": SMALL, "chip": "l4", "tp": 10**400}, "tp"),
    "script": ("plan", {"model": "<script>alert(1)</script>\u0000\u202e"}, "control character"),
    "tool": ("rm", {"path": "/"}, "one of plan"),
}


@dataclass(frozen=True)
class Heard:
    """What a client got from a server."""

    tools: dict[str, Any]
    answers: dict[str, Any]
    errors: dict[str, Any]
    parts: dict[str, str]
    started: Any
    again: Any
    unlike: Any
    resources: dict[str, str]
    refused: dict[str, str]
    name: str


async def everything(client: Client) -> Heard:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    errors = {name: await client.call_tool(tool, given) for name, (tool, given, _) in WRONG.items()}
    answers = {name: await client.call_tool(name, given) for name, given in CALLS.items()}
    whole = answers["plan"].structured_content["whole_answer"]
    parts = {}
    for part in ("", "/plans/1", "/model", "/record"):
        parts[part] = (await client.read_resource(whole + part)).contents[0].text  # type: ignore[union-attr]
    started = await client.call_tool("launch", {"saved": whole, "for": "vllm"})
    again = await client.call_tool("replay", {"saved": whole})
    other = answers["explain"].structured_content["whole_answer"]
    unlike = await client.call_tool("diff", {"before": whole, "after": other})
    uris = [str(r.uri) for r in (await client.list_resources()).resources]
    read = {}
    for uri in (*uris, "chipwise://chips/mi300x", "chipwise://fields/plan"):
        read[uri] = (await client.read_resource(uri)).contents[0].text  # type: ignore[union-attr]
    refused = {}
    for uri in (
        "chipwise://chips/..%2F..%2Fetc%2Fpasswd",
        "chipwise://nothing",
        "file:///etc/passwd",
        "chipwise://accuracy/nothing",
        "chipwise://fields/plam",
        f"{whole}/nothing",
        f"{whole}/plans/99",
        "chipwise://answers/0123456789abcdef",
    ):
        with pytest.raises(MCPError) as error:
            await client.read_resource(uri)
        refused[uri] = str(error.value)
    assert client.server_info is not None
    return Heard(tools, answers, errors, parts, started, again, unlike, read, refused, client.server_info.name)


@pytest.fixture(scope="module")
def heard() -> Heard:
    return talk("stdio", everything)


def test_a_server_on_the_network_has_the_same_tools(heard: Heard) -> None:
    async def listed(client: Client) -> tuple[Any, Any]:
        return (await client.list_tools()).tools, await client.call_tool("fit", CALLS["fit"])

    tools, fitted = talk("http", listed)
    assert {tool.name: tool for tool in tools} == heard.tools
    assert fitted.structured_content["fits"] == heard.answers["fit"].structured_content["fits"]


def test_all_tools_are_listed_and_read_only(heard: Heard) -> None:
    assert heard.name == "chipwise"
    assert set(heard.tools) == set(CALLS)
    for tool in heard.tools.values():
        assert tool.annotations.read_only_hint is True
        assert 40 < len(tool.description) < 900
        for field in tool.input_schema["properties"].values():
            assert field["description"]
        assert "parameters" not in tool.input_schema["properties"]


def tokens(text: str) -> float:
    """Tokens of a text, at four characters each."""
    return len(text) / 4


def test_the_list_and_the_answers_are_what_an_agent_can_afford(heard: Heard) -> None:
    listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in heard.tools.values()]
    assert tokens(json.dumps({"tools": listed})) < 7_000  # blanks included, as some clients write them
    for name, answer in heard.answers.items():
        assert not answer.is_error, f"{name}: {text_of(answer)}"
        assert json.loads(text_of(answer)) == answer.structured_content
        assert tokens(text_of(answer)) < 2_000, name
    assert {name for name, text in heard.resources.items() if tokens(text) >= 2_000} == set()


def _empty(value: Any, name: str = "") -> Iterator[str]:
    """The names of what says nothing in an answer."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _empty(part, key)
    elif isinstance(value, list) and value:
        for part in value:
            yield from _empty(part, f"{name}[]") if isinstance(part, dict) else ()
    elif value in (None, [], {}, "") or (name in SILENT and value == SILENT[name]):
        yield name


def test_answers_leave_out_what_says_nothing(heard: Heard) -> None:
    for verb, answer in heard.answers.items():
        assert list(_empty(answer.structured_content)) == [], verb
    line = heard.answers["plan"].structured_content["plans"][0]
    assert {"ttft_ms", "tpot_ms", "usd_per_h", "chips"} <= set(line)
    assert "hours" not in line


def test_fields_that_are_not_described_are_named(heard: Heard) -> None:
    """By their names, or by that of an earlier tool that has them, but for some that are named."""
    for verb, tool in heard.tools.items():
        shown, text = set(tool.input_schema["properties"]), tool.description
        others = re.findall(r"all of `(\w+)`(?: but ([\w ]+))?", text)
        lacked = {field for _, but in others for field in but.split(" and ") if but}
        inherited = {field for name, _ in others for field in fields_of(name)} - lacked
        assert inherited <= set(fields_of(verb))
        assert not lacked & set(fields_of(verb))
        for field in set(fields_of(verb)) - shown - inherited:
            assert re.search(rf"[ :]{field}[,.]", text), (verb, field)


def test_no_field_offers_a_file_that_is_not_read() -> None:
    shut, open_ = (fields_of("plan", files=files)["model"]["description"] for files in (False, True))
    assert "FILE" not in shut
    assert "folder" not in shut
    assert "dimensions" in shut
    assert "FILE.onnx" in open_


def test_the_schema_of_a_tool_takes_what_the_tool_takes(heard: Heard) -> None:
    for name, given in CALLS.items():
        Draft202012Validator(heard.tools[name].input_schema).validate(given)
    plan = Draft202012Validator(heard.tools["plan"].input_schema)
    assert plan.is_valid({"model": SMALL, "chips": ["l4", "h100"], "rate": 3})
    assert not plan.is_valid({"model": SMALL, "tpot": 40})
    assert not plan.is_valid({"model": SMALL, "tpot": "40"})
    assert not plan.is_valid({})
    assert not Draft202012Validator(heard.tools["launch"].input_schema).is_valid({"saved": {}, "for": "vllm", "own": 1})


def test_the_whole_is_read_by_its_address_part_by_part(heard: Heard) -> None:
    line = heard.answers["plan"].structured_content["plans"][0]
    plan = json.loads(heard.parts["/plans/1"])
    assert plan["tpot_s"]["mid"] * 1e3 == pytest.approx(line["tpot_ms"]["mid"], rel=0.01)
    assert json.loads(heard.parts["/model"])["name"] == SMALL
    assert json.loads(heard.parts["/record"])["question"]["verb"] == "plan"
    assert all(tokens(text) < 2_000 for text in heard.parts.values())
    files = heard.started.structured_content["files"]
    assert f"vllm serve {SMALL}" in files["serve.sh"]
    fields = json.loads(heard.resources["chipwise://fields/plan"])
    assert set(heard.tools["plan"].input_schema["properties"]) < set(fields)


def test_answers_are_compared_by_their_addresses(heard: Heard) -> None:
    assert "identical" in heard.again.structured_content["verdict"]
    assert "before answers plan and after explain" in text_of(heard.unlike)
    found = heard.answers["diff"].structured_content
    assert "chip: l4 -> l40s" in found["verdict"]
    assert [row for row in found["rows"] if row[1] == "TPOT"]


@pytest.mark.parametrize("name", WRONG)
def test_an_error_says_the_next_step(heard: Heard, name: str) -> None:
    answer, wanted = heard.errors[name], WRONG[name][2]
    assert answer.is_error
    assert wanted in text_of(answer)
    assert len(text_of(answer)) < 1200
    assert "Traceback" not in text_of(answer)


def test_resources_hold_what_they_say(heard: Heard) -> None:
    assert "**TTFT**" in heard.resources["chipwise://glossary"]
    assert "chipwise://accuracy/" in heard.resources["chipwise://accuracy"]
    assert "5300" in heard.resources["chipwise://chips/mi300x"]
    assert all("unknown" in said for said in heard.refused.values())
    for end, wanted in (
        ("/plam", "did you mean plan"),
        ("accuracy/nothing", "at-a-glance"),
        ("/99", "unknown number of plans: it has 1 to "),
        ("cdef", "no longer kept"),
    ):
        assert any(wanted in said for uri, said in heard.refused.items() if uri.endswith(end)), end


def test_prompts_and_completions() -> None:
    async def ask() -> tuple[Any, ...]:
        async with Client(server.create_server()) as client:
            prompts = (await client.list_prompts()).prompts
            said = await client.get_prompt("plan-my-model", {"model": "Qwen3-32B\n{users}"})
            with pytest.raises(MCPError, match="needs 'model'"):
                await client.get_prompt("plan-my-model", {})
            with pytest.raises(MCPError, match="did you mean"):
                await client.get_prompt("plan-my-modle", {})
            ref = PromptReference(type="ref/prompt", name="plan-my-model")
            found = await client.complete(ref, {"name": "model", "value": "qwen3-3"})
            none = await client.complete(ref, {"name": "nothing", "value": ""})
            lists = []
            for name, value in (("have", "2xl40s,8xh100"), ("model", "llama 3.1 8b"), ("claim", "torus")):
                lists.append((await client.complete(ref, {"name": name, "value": value})).completion.values)
            return prompts, said, found, none, lists

    prompts, said, found, none, (have, model, claim) = anyio.run(ask)
    assert [p.name for p in prompts] == list(PROMPTS)
    text = said.messages[0].content.text
    assert "Qwen3-32B {users}" in text
    assert "10 requests per second" in text
    assert "Qwen/Qwen3-32B" in found.completion.values
    assert none.completion.values == []
    assert "2xl40s,8xh100-sxm5-80gb" in have
    assert SMALL in model
    assert claim == ["TPUs are joined in a 4-D torus."]


def test_a_training_run_is_planned_by_plan_too(heard: Heard) -> None:
    async def ask() -> Any:
        async with Client(server.create_server()) as client:
            return await client.call_tool(
                "plan", {"model": SMALL, "task": "train", "tokens": "10B", "chips": "h100", "counts": [8]}
            )

    answer = anyio.run(ask)
    assert answer.structured_content["plans"][0]["mfu"] > 0.2


def test_a_sentence_with_figures_is_judged_by_a_tool(heard: Heard) -> None:
    async def ask(text: str) -> Any:
        async with Client(server.create_server()) as client:
            return (await client.call_tool("check_statement", {"text": text})).structured_content

    found = anyio.run(ask, "8xH100 serves Llama 3.1 70B at 24,000 tokens/s")
    assert found["verdict"].startswith("True with a condition. ")
    assert any("evidence claim" in command for command in found["statements"][0]["shown_by"])
    unknown = anyio.run(ask, "Whisper runs at 70x real time on an A100")
    assert unknown["would_answer_it"][0] == "chipwise plan whisper-large-v3 --chips a100-sxm4-80gb"


def test_answers_are_kept_under_names_that_nobody_guesses_and_not_for_ever() -> None:
    kept = KeptAnswers()
    first = kept.keep({"question": {}, "plans": [{"a": 1.23456}]})
    assert kept.read(f"{first}/plans/1") == '{"a":1.235}'
    for address in (f"{first}/plans/0", f"{first}/plans/2", f"{first}/nothing", first[:-1], "chipwise://answers/"):
        with pytest.raises(KeyError):
            kept.read(address)
    for _ in range(KeptAnswers.MOST):
        kept.keep({})
    with pytest.raises(KeyError):
        kept.read(first)


def test_an_evidence_verdict_is_in_the_answer(heard: Heard) -> None:
    claim = heard.answers["claim"].structured_content
    assert claim["verdict"].startswith(("not advice", "the axes support it"))
    assert claim["supported"] is False
    assert len(claim["axes"]) == 8
    assert claim["rivals"][0]["result"]["chip"] == "h100-sxm5-80gb"


def test_long_work_reports_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[float, str]] = []

    async def told(progress: float, total: float | None, message: str | None) -> None:
        said.append((progress, message or ""))

    async def slow() -> Any:
        async with Client(server.create_server()) as client:
            return await client.call_tool("models", {"limit": 500}, progress_callback=told)

    monkeypatch.setattr(server, "TICK_S", 0.001)
    assert not anyio.run(slow).is_error
    passed = [progress for progress, _ in said]
    assert len(passed) > 1
    assert passed == sorted(set(passed))
    assert any("working it out (2 of 3)" in message for _, message in said)
    assert all(message.startswith("models: ") for _, message in said)


@pytest.mark.parametrize("way", ["the client cancels", "it takes too long"])
def test_work_that_nobody_waits_for_stops(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only its answer is dropped: its thread ends, and its place is free for the next question."""
    steps: list[float] = []

    def slow(self: object) -> None:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            steps.append(time.monotonic())
            time.sleep(0.005)

    async def ask() -> tuple[int, int, Any, Any]:
        async with Client(server.create_server()) as client:
            given = None
            for _ in range(server.AT_ONCE + 1):
                with anyio.move_on_after(0.5 if way == "the client cancels" else 60):
                    given = await client.call_tool("models", {})
            await anyio.sleep(0.3)
            before = len(steps)
            await anyio.sleep(0.3)
            return before, len(steps), given, await client.call_tool("chips", {"chips": "l4"})

    monkeypatch.setattr(ModelsRequest, "run", slow)
    if way == "it takes too long":
        monkeypatch.setattr(server, "MOST_S", 0.5)
    before, after, given, other = anyio.run(ask)
    assert 0 < before == after
    assert not other.is_error
    if given is not None:
        assert "no answer within" in text_of(given)


def test_a_bug_does_not_end_the_server_or_show_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(verb: str, report: Any, links: str = "") -> Any:
        raise RuntimeError("a secret")

    async def call() -> tuple[Any, Any]:
        async with Client(server.create_server()) as client:
            bad = await client.call_tool("chips", {})
            return bad, await client.list_tools()

    monkeypatch.setattr(server, "shortened", broken)
    bad, tools = anyio.run(call)
    assert bad.is_error
    assert "report it" in text_of(bad)
    assert "secret" not in text_of(bad)
    assert tools.tools


def test_files_are_read_where_that_was_allowed(tmp_path: Path) -> None:
    config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 8}
    config |= {"num_key_value_heads": 4, "intermediate_size": 128, "vocab_size": 256, "torch_dtype": "bfloat16"}
    file = tmp_path / "own.json"
    file.write_text(json.dumps(config))

    async def call(files: bool) -> Any:
        async with Client(server.create_server(files=files)) as client:
            return await client.call_tool("fit", {"model": str(file), "chips": "l4"})

    assert anyio.run(call, True).structured_content["model"].startswith("own")
    assert anyio.run(call, False).is_error


def test_the_skill_names_every_tool_and_no_field_that_is_none() -> None:
    text = (ROOT / "SKILL.md").read_text("utf-8")
    assert [name for name in TOOLS if f"`{name}`" not in text] == []
    fields = {name for verb in TOOLS for name in fields_of(verb)}
    asked = set(re.findall(r'"(\w+)": (?:"|[A-Z\d])', text))
    assert asked <= fields | {"command"}


def test_the_shipped_accuracy_is_that_of_the_docs() -> None:
    shipped = resources.files("chipwise.report").joinpath("data", "accuracy.md").read_text("utf-8")
    documented = (ROOT / "docs" / "accuracy.md").read_text("utf-8")
    assert shipped == documented, "src/chipwise/report/data/accuracy.md is a link to docs/accuracy.md"


def test_an_assumption_of_several_chips_is_said_once() -> None:
    said = once(["l4: the bus (--set staged=3GB/s)", "no cache", "l40s: the bus (--set staged=3GB/s)"])
    assert said == ["l4, l40s: the bus (set staged=3GB/s)", "no cache"]
