"""What comes out where: data on stdout in four formats, the rest on stderr, exit codes by the design."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from chipwise import __version__, api
from chipwise.api.placing import Given
from chipwise.api.requests.field import Asked, outer
from chipwise.api.requests.verbs import VERBS
from chipwise.cli.app import COMMANDS as SUMMARIES
from chipwise.cli.app import GROUPS
from chipwise.parallel.layout import Layout
from chipwise.workload.workload import Workload
from command_line import Run

MODEL = "meta-llama/Llama-3.1-8B"
CHIPWISE = [sys.executable, "-m", "chipwise"]

COMMANDS = {
    "train": ("train", MODEL, "--counts", "8", "--chips", "h100-sxm5-80gb", "--tokens", "1B"),
    "plan": ("plan", MODEL, "--chips", "h100-sxm5-80gb,l4"),
    "compare": ("compare", MODEL, "--chips", "h100-sxm5-80gb,a100-sxm4-80gb"),
    "fit": ("fit", MODEL, "--chip", "h100-sxm5-80gb,l4"),
    "estimate": ("estimate", MODEL, "--chip", "h100-sxm5-80gb"),
    "local": ("local", "--have", "rtx-4090", "--most", "3"),
    "explain": ("explain", MODEL, "--chip", "h100-sxm5-80gb"),
    "chips list": ("chips", "list"),
    "chips show": ("chips", "show", "h100-sxm5-80gb"),
    "chips compare": ("chips", "compare", "h100-sxm5-80gb", "mi300x"),
    "systems list": ("systems", "list"),
    "systems show": ("systems", "show", "dgx-h100"),
    "runtimes list": ("runtimes", "list"),
    "runtimes show": ("runtimes", "show", "vllm"),
    "models list": ("models", "list"),
    "models show": ("models", "show", MODEL),
    "offers list": ("offers", "list", "h100-sxm5-80gb"),
    "evidence list": ("evidence", "list", "--benchmark", "llama2-70b", "--chip", "mi300x"),
    "evidence show": ("evidence", "show", "v5.1-05440"),
    "evidence search": ("evidence", "search", "tpu-v5e"),
    "evidence match": ("evidence", "match", MODEL, "--chip", "h200-sxm-141gb", "--count", "8"),
    "evidence match alone": ("evidence", "match", "resnet50"),
    "claim list": ("claim", "list"),
    "claim check": ("claim", "check", "an H100 is 3x an A100"),
    "evidence claim": ("evidence", "claim", "--result", "v5.1-05440", "--for", MODEL),
    "kernel gemm": ("kernel", "gemm", "--m", "64", "--n", "4096", "--k", "4096", "--chip", "h100-sxm5-80gb,tpu-v5e"),
    "chips search": ("chips", "search", "mac", "studio"),
    "kernel amdahl": ("kernel", "amdahl", "--serial", "1%", "--chip", "h100-sxm5-80gb"),
    "doctor": ("doctor",),
    "glossary": ("glossary",),
}


def plain(record: object) -> object:
    """A record as JSON shows it."""
    return json.loads(json.dumps(asdict(record)))  # type: ignore[call-overload]


@pytest.fixture(scope="module", autouse=True)
def _asked_once() -> Iterator[None]:
    """The last question is remembered: it is shown in one format after the other."""
    last: dict[str, Any] = {}
    answer = Asked.answer

    def ask(asked: Asked) -> Any:
        said = repr(asked)
        if said not in last:
            last.clear()
            last[said] = answer(asked)
        return last[said]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Asked, "answer", ask)
        yield


@pytest.mark.parametrize("form", ["table", "json", "csv", "md"])
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_in_every_format(run: Run, name: str, form: str) -> None:
    ran = run(*COMMANDS[name], "--format", form)
    assert (ran.code, ran.err) == (0, "")
    assert "\x1b" not in ran.out
    if form == "json":
        assert ran.json
    elif form == "csv":
        for block in ran.out.split("\n\n"):
            assert len({len(line) for line in csv.reader(io.StringIO(block.strip("\n")))}) == 1
    elif form == "md":
        lines = [line for line in ran.out.splitlines() if line.startswith("|")]
        assert set(lines[1]) <= set("|-: ")
    else:
        assert len(ran.out.splitlines()) > 2


def test_a_limit_of_cost_that_is_too_low_names_the_cheapest(run: Run) -> None:
    asked = ("plan", "meta-llama/Llama-3.1-70B", "--rate", "5/s")
    plans = run(*asked, "--all", "--format", "json").json["plans"]
    cheapest = min((p for p in plans if p["price"]), key=lambda p: p["price"]["mid"])
    said = run(*asked, "--max-usd-per-h", "1").err
    assert f"is {cheapest['chips']}x {cheapest['chip']} at ${cheapest['price']['mid']:.3g}/h" in said


@pytest.mark.parametrize("kind", ["all_reduce", "allreduce", "All-Reduce", "AllReduce"])
def test_a_collective_by_any_spelling(run: Run, kind: str) -> None:
    rest = ("--bytes", "1MB", "--ranks", "8", "--chip", "h100-sxm5-80gb")
    assert "8 ranks: 14 steps" in run("kernel", "collective", "--kind", kind, *rest).out


def test_chips_are_found_by_the_machines_they_are_in(run: Run) -> None:
    found = run("chips", "search", "mac", "studio", "--format", "json").json["items"]
    assert {"m2-ultra", "m3-ultra", "m4-max"} <= {c["id"] for c in found}
    assert {c["vendor"] for c in found} == {"apple"}


@pytest.mark.parametrize("name", ["plan", "compare", "fit", "estimate", "explain"])
def test_json_has_a_schema_version(run: Run, name: str) -> None:
    assert run(*COMMANDS[name], "--format", "json").json["schema_version"] == "0.1"


def test_plan_gives_the_same_numbers_as_the_api(run: Run) -> None:
    flags = ("--in", "1k", "--out", "200", "--rate", "600/min", "--ttft", "1s", "--tpot", "40ms")
    ran = run("plan", MODEL, "--chips", "h100-sxm5-80gb,l40s", *flags, "--format", "json")
    workload = Workload("serve", 1000.0, 200.0, 10.0, 1.0, 0.04)
    assert ran.json == plain(api.plan(MODEL, workload, chips=("h100-sxm5-80gb", "l40s")))


def test_fit_gives_the_same_numbers_as_the_api(run: Run) -> None:
    ran = run("fit", MODEL, "--chip", "l4", "--context", "8k", "--batch", "3", "--format", "json")
    assert ran.json == plain(api.fit(MODEL, chips=["l4"], context=8000, sequences=3))


def test_estimate_gives_the_same_numbers_as_the_api(run: Run) -> None:
    place = ("--chip", "h100-sxm5-80gb", "--tp", "2", "--concurrency", "10")
    report = api.estimate(MODEL, Workload("serve"), Given("h100-sxm5-80gb", Layout(tp=2.0), concurrency=10))
    assert run("estimate", MODEL, *place, "--format", "json").json == plain(report)


def test_explain_and_estimate_are_of_the_same_plan(run: Run) -> None:
    explained = run(*COMMANDS["explain"], "--format", "json").json
    assert explained.pop("amdahl") is None
    assert explained == run(*COMMANDS["estimate"], "--format", "json").json


def test_the_command_that_a_plan_ends_with_works(run: Run) -> None:
    command = run("plan", MODEL, "--rate", "5/s").next
    assert command[0] == "explain"
    assert run(*command).code == 0


def test_the_command_of_a_plan_carries_the_options_of_the_question(run: Run) -> None:
    asked = ("--precision", "fp8", "--kv", "fp8", "--set", "hbm=3TB/s", "--in", "1k", "--price", "spot")
    words = run("plan", MODEL, "--chips", "h100-sxm5-80gb", *asked).next
    for name, value in pairwise(asked):
        if name.startswith("--"):
            assert words[words.index(name) + 1] == value
    assert run(*words).code == 0


def test_a_hint_carries_the_options_of_the_question(run: Run) -> None:
    large = "meta-llama/Llama-3.1-405B"
    said = run("plan", large, "--have", "2xl4", "--kv", "fp8", "--in", "3k").refused(4)
    command = said.rpartition("(chipwise ")[2].partition(" shows")[0]
    assert command == f"fit {large} --kv fp8 --chips l4 --count 2 --context 3300"
    assert run(*command.split()).code == 4


def test_no_plan_is_an_object_for_programs(run: Run) -> None:
    ran = run("plan", MODEL, "--rate", "1e6/s", "--max-chips", "4", "--chips", "l4,a100-sxm4-80gb", "--format", "json")
    assert ran.code == 4
    found = json.loads(ran.out)["error"]
    assert found["kind"] == "infeasible"
    assert "out of reach" in found["what"]
    assert found["reasons"]["above the limit of chips, of cost or of power"] > 0
    largest = found["reachable"]["requests_per_s"]
    again = run("plan", MODEL, "--rate", f"{largest * 0.99}/s", "--max-chips", "4", "--chips", "l4,a100-sxm4-80gb")
    assert again.code == 0
    unknown = run("plan", "llama-3.1-80b", "--format=json")
    assert json.loads(unknown.out)["error"]["nearest"]


def test_a_serial_part_is_compared_with_a_cpu(run: Run) -> None:
    ran = run(*COMMANDS["explain"], "--serial", "5%", "--format", "json")
    (row,) = ran.json["amdahl"]["chips"]
    assert ran.json["amdahl"]["serial_fraction"] == 0.05
    assert (row["cpu_s"] < row["chip_s"]) == (row["crossover_fraction"] < 0.05)


def test_without_a_command_help_is_printed(run: Run) -> None:
    ran = run()
    assert ran.code == 0
    assert "plan" in ran.out


@pytest.mark.parametrize("place", SUMMARIES)
def test_the_help_of_a_command_begins_with_its_summary(run: Run, place: str) -> None:
    name = place.partition(":")[2]
    whole, own = run("--help"), run(name, "--help")
    assert (own.code, own.err) == (0, "")
    words = " ".join(own.out.split("╭")[0].split())
    assert words.endswith(SUMMARIES[place])
    assert f"│ {name} " in whole.out


@pytest.mark.parametrize("name", ["plan", "estimate", "train"])
def test_help_explains_the_first_options_and_names_all(run: Run, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    short, whole = run(name, "--help").out, run(name, "--help-all").out
    assert len(short.splitlines()) < 60 < len(whole.splitlines())
    assert "--help-all explains these too" in short
    explained = short.partition("╯")[0]
    assert "MODEL" in explained
    options = set(re.findall(r"--[a-z][a-z-]+", explained)) - {"--all", "--format", "--save", "--html", "--model"}
    assert 12 <= len(options) <= 14
    names = {f"--{outer(f).replace('_', '-')}" for f in fields(VERBS[name])}  # type: ignore[arg-type]
    assert {n for n in names if n not in short} == set()


def test_every_command_is_tried_here() -> None:
    tried = {name.split()[0] for name in COMMANDS} | {"predict", "calibrate", "validate"}
    tried |= {"replay", "diff", "launch"}  # tests/api/test_saving.py, test_launching.py
    tried |= {"web", "mcp", "watch", "completion"}  # tests/web, tests/mcp, tests/measure, below
    tried |= {"measure", "trace", "rl"}  # tests/measure, tests/tracing, tests/api/test_reinforcing.py
    tried |= {"fleet"}  # tests/api/test_portfolio.py
    tried |= {"simulate"}  # tests/api/test_simulating.py
    tried |= {"sweep"}  # tests/api/test_sweep.py
    assert tried == {place.partition(":")[2] for place in SUMMARIES}


def test_version(run: Run) -> None:
    assert run("--version").out == run("version").out == f"{__version__}\n"


def test_help_is_a_word_too(run: Run) -> None:
    assert run("help").out == run("--help").out
    assert run("help", "plan").out == run("plan", "--help").out


def test_help_shows_commands_by_what_they_are_for(run: Run) -> None:
    whole = run("--help").out
    titles = [line.split("─")[1].strip() for line in whole.splitlines() if line.startswith("╭")]
    assert titles == [*GROUPS, "Options"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("plan", MODEL, "--tp", "2"), 2),
        (("plan", "meta-llama/Llama-9-8B"), 3),
        (("plan", MODEL, "--chips", "h100x"), 3),
        (("plan", MODEL, "--runtime", "vlm"), 3),
        (("plan", MODEL, "--precision", "fp3"), 3),
        (("plan", MODEL, "--tpot", "1us"), 4),
        (("plan", MODEL, "--rate", "1e6/s", "--max-chips", "1"), 4),
        (("plan", MODEL, "--chips", "tpu-v1"), 4),
        (("plan", "meta-llama/Llama-3.1-405B", "--chips", "l4", "--max-chips", "1"), 4),
        (("estimate", "meta-llama/Llama-3.1-70B", "--chip", "h100-sxm5-80gb"), 4),
    ],
)
def test_a_refusal_is_one_line_on_stderr_and_nothing_on_stdout(run: Run, arguments: tuple[str, ...], code: int) -> None:
    ran = run(*arguments)
    assert len(ran.refused(code)) < 400


def test_a_model_that_does_not_fit_is_an_answer_with_code_4(run: Run) -> None:
    ran = run("fit", "meta-llama/Llama-3.1-70B", "--chip", "a100-sxm4-80gb", "--count", "1", "--format", "json")
    assert ran.code == 4
    assert ran.json["fits"][0]["verdict"] == "no"
    ran.one_line()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plan", MODEL, "--tpot", "1us"), ("TPOT out of reach", "best TPOT", "what works: --tpot")),
        (("plan", MODEL, "--rate", "1e6/s", "--max-chips", "1"), ("--max-chips",)),
        (("plan", "llama-3.1-80b"), ("did you mean", "Llama-3.1-70B")),
        (("plan", MODEL, "--chips", "h100-sxm"), ()),
        (("plan", MODEL, "--chips", "mi301x"), ("did you mean", "mi300x")),
        (("plan", MODEL, "--chps", "l4"), ("--chips",)),
        (("plna", MODEL), ("plan",)),
        (("local", "rtx-4090"), ("no option stands before 'rtx-4090'", "chipwise local --help")),
        (("glossary", "prefil l"), ()),
        (("predict", "model_param", "--rows", "x", "--out", "y"), ("model_params",)),
        (("estimate", MODEL, "--chip", "h100-sxm5-80gb", "--tp", "3"), ("divisor",)),
        (("plan", MODEL, "--kv", "q3"), ("one of fp32, bf16,", "fp8")),
        (("plan", MODEL, "--policy", "foo=1"), ("one of memory_share, reserved_bytes, ",)),
        (("chips", "search", "mi301x"), ("did you mean", "mi300x")),
        (("estimate", "meta-llama/Llama-3.1-70B", "--chip", "h100-sxm5-80gb"), ("GB short", "chipwise fit")),
    ],
)
def test_a_refusal_names_the_next_step(run: Run, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    err = run(*arguments).err
    assert [word for word in words if word not in err] == []


def test_a_missing_extra_is_code_5_with_the_pip_line(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [m for m in sys.modules if m.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    out = tmp_path / "out.csv"
    ran = run("predict", "model_params", "--rows", str(tmp_path / "rows.parquet"), "--out", str(out))
    assert ran.code == 5
    assert "pip install 'chipwise[parquet]'" in ran.err
    assert not out.exists()


def test_a_bug_is_code_1() -> None:
    script = (
        "from chipwise import cli\nfrom chipwise.api import planning\n"
        "def broken(*a, **k): raise ZeroDivisionError\n"
        "planning.PlansAsked.of = broken\n"
        f"cli.main(['plan', '{MODEL}'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr


def test_a_pipe_gets_no_colour_and_no_cut_lines() -> None:
    done = subprocess.run([*CHIPWISE, *COMMANDS["fit"]], capture_output=True, text=True, check=True)
    assert "\x1b" not in done.stdout
    assert done.stderr == ""
    assert "…" not in done.stdout


def terminal(*arguments: str, **environment: str) -> str:
    """What a command writes to a terminal."""
    leader, follower = pty.openpty()
    inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    env = inherited | {"TERM": "xterm-256color"} | environment
    process = subprocess.Popen([*CHIPWISE, *arguments], stdout=follower, stderr=follower, env=env)
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # how Linux says that the other end was closed
            break
        if not part:
            break
        shown += part
    os.close(leader)
    assert process.wait() == 0
    return shown.decode()


def test_no_color_is_kept_on_a_terminal() -> None:
    assert "\x1b[3" not in terminal("glossary", "TTFT", NO_COLOR="1")


def test_a_terminal_that_can_do_nothing_gets_plain_text() -> None:
    assert "\x1b" not in terminal("glossary", "TTFT", TERM="dumb")


def test_a_reader_that_leaves_is_no_error() -> None:
    process = subprocess.Popen(
        [*CHIPWISE, "chips", "show", "h100-sxm5-80gb"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0
    assert said == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*CHIPWISE, "glossary"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "chipwise: standard output: No space left on device\n"


def test_a_pipe_that_only_knows_ascii_gets_ascii() -> None:
    done = subprocess.run(
        [*CHIPWISE, "chips", "list"], capture_output=True, check=True, env=os.environ | {"PYTHONIOENCODING": "ascii"}
    )
    assert done.stdout.isascii()
    assert done.stderr == b""


def test_completion_knows_commands_and_options(run: Run) -> None:
    """As the shell would ask: what begins with --tp after `chipwise plan`."""
    script = run("completion", "bash").out
    ask = "COMP_WORDS=(chipwise plan --tp); COMP_CWORD=2; _chipwise; echo ${COMPREPLY[@]}"
    done = subprocess.run(["bash"], input=f"{script}\n{ask}", capture_output=True, text=True, check=True)
    assert "--tpot" in done.stdout.split()
    for shell in ("zsh", "fish"):
        assert "evidence" in run("completion", shell).out


def test_an_answer_is_saved_and_written_as_a_page_at_once(run: Run, tmp_path: Path) -> None:
    kept, page = tmp_path / "answer.json", tmp_path / "answer.html"
    asked = run("estimate", MODEL, "--chip", "h100", "--save", str(kept), "--html", str(page))
    assert asked.code == 0
    assert run("replay", str(kept)).code == 0
    assert "<html" in page.read_text("utf-8")


def test_a_network_that_does_not_fit_is_shown_and_ends_as_others_do(run: Run) -> None:
    short = run("estimate", "flux-dev", "--chip", "h100", "--batch", "16")
    assert short.code == 4
    assert "memory may be off by as much" in " ".join(short.out.split())
    fits = run("estimate", "flux-dev", "--chip", "h100", "--batch", "8")
    assert "s for a batch of 8 images" in " ".join(fits.out.split())


@pytest.mark.parametrize("verb", ["train", "rl"])
def test_verbs_of_language_models_say_what_to_ask_of_others(run: Run, verb: str) -> None:
    said = " ".join(run(verb, "flux").refused(2).split())
    assert "flux-dev is an image generator" in said
    assert "chipwise estimate flux-dev --chip h100 --training" in said


def test_a_claim_says_what_it_took_for_what_was_left_out(run: Run) -> None:
    claim = run("evidence", "claim", "--result", "v4.0-02875", "--for", "Llama-3.1-70B", "--against", "h100")
    said = " ".join(claim.out.split())
    for part in ("2,000 tokens in, 300 out (--in, --out)", "TPOT within 50.0 ms", "0.99 of requests"):
        assert part in said
