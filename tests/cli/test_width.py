"""Every command prints at most 100 columns, on every terminal and into a pipe, and leaves CSV and JSON whole."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import time
from typing import Any

import pytest

from chipwise.report.table import Table
from chipwise.report.terminal import WIPED, waiting
from command_line import Run

MODEL = "meta-llama/Llama-3.1-8B"
WIDTHS = (80, 100, 200)
COMMANDS = {
    "plan": ("plan", "meta-llama/Llama-3.1-70B", "--rate", "10/s", "--ttft", "1s", "--tpot", "40ms"),
    "plan one token": ("plan", MODEL, "--rate", "5/s", "--out", "1", "--chips", "h100,l4"),
    "plan local": ("plan", MODEL, "--task", "local"),
    "train": ("plan", MODEL, "--task", "train", "--chips", "h100", "--counts", "64,128", "--tokens", "100B"),
    "train one": ("plan", "meta-llama/Llama-3.1-70B", "--task", "train", "--chips", "h100", "--counts", "256"),
    "compare": ("compare", MODEL, "--chips", "h100,mi300x,tpu-v6e"),
    "estimate": ("estimate", MODEL, "--chip", "h100", "--concurrency", "32"),
    "explain": ("explain", MODEL, "--chip", "h100", "--serial", "1%"),
    "fit": ("fit", "meta-llama/Llama-3.1-70B"),
    "local": ("local", "--have", "rtx-4090", "--host-memory", "64GB"),
    "buy": ("local", "--max-usd", "1500", "--models", "qwen3-14b"),
    "parts": ("estimate", "openai/gpt-oss-120b", "--task", "local", "--chip", "rtx-4090+epyc-9654"),
    "fit parts": ("fit", "openai/gpt-oss-120b", "--chips", "rtx-4090", "--host-memory", "128GB"),
    "fit one": ("fit", MODEL, "--chips", "rtx-4090"),
    "gemm": ("kernel", "gemm", "--chips", "h100,tpu-v5e", "--m", "512", "--n", "4096", "--k", "4096"),
    "collective": ("kernel", "collective", "all_reduce", "--chips", "h100", "--bytes", "1GB", "--ranks", "8"),
    "evidence": ("evidence", "search", "h200", "llama2-70b", "server"),
    "result": ("evidence", "show", "v5.0-03955"),
    "match": ("evidence", "match", "meta-llama/Llama-3.1-70B", "--chip", "h100", "--count", "8"),
    "claim": ("evidence", "claim", "--for", MODEL, "--result", "v4.0-03001", "--tpot", "40ms"),
    "chips": ("chips", "list"),
    "chip": ("chips", "show", "h100"),
    "chips compare": ("chips", "compare", "h100", "mi300x", "tpu-v6e"),
    "systems": ("systems", "list"),
    "system": ("systems", "show", "dgx-h100"),
    "runtimes": ("runtimes", "list"),
    "runtime": ("runtimes", "show", "vllm"),
    "models": ("models", "list"),
    "model": ("models", "show", MODEL),
    "offers": ("offers", "list"),
    "tokens": ("offers", "tokens"),
    "glossary": ("glossary",),
    "doctor": ("doctor",),
}


def too_long(text: str, width: int) -> list[str]:
    """Lines that are longer than they may be, but for those that hold one word: an address, a name."""
    lines = (line for line in text.splitlines() if len(line) > width)
    return [line for line in lines if max(map(len, line.split())) + 8 < width]


@pytest.mark.parametrize("name", COMMANDS)
def test_no_line_is_longer_than_the_terminal(name: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[Table] = []
    as_text = Table.text

    def text(table: Table, width: int | None = None, **options: Any) -> str:
        printed.append(table)
        return as_text(table, width, **options)

    monkeypatch.setattr(Table, "text", text)
    monkeypatch.delenv("COLUMNS", raising=False)
    done = run(*COMMANDS[name])
    assert done.code == 0, done.err
    assert too_long(done.out, 100) == []
    assert printed
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        shown = "".join(as_text(table) for table in printed)
        assert too_long(shown, width) == []


@pytest.mark.parametrize("width", [None, *WIDTHS])
@pytest.mark.parametrize("command", [("chips", "list"), ("plan", "--help"), ("plan", "--help-all"), ("--help",)])
def test_a_pipe_and_a_terminal_get_the_same(
    command: tuple[str, ...], width: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if width is not None:
        monkeypatch.setenv("COLUMNS", str(width))
    done = subprocess.run([sys.executable, "-m", "chipwise", *command], capture_output=True, text=True, check=True)
    assert too_long(done.stdout, width or 100) == []
    if width == 200 and "--help" not in command[-1]:
        assert max(map(len, done.stdout.splitlines())) > 100


def test_what_text_leaves_out_is_in_csv_and_markdown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    asked = COMMANDS["compare"]
    text, csv, md = (run(*asked, "--format", form).out for form in ("table", "csv", "md"))
    (left,) = re.findall(r"not shown: (.*?) \(--format", " ".join(text.split()))
    assert "batch" in left
    assert "| batch |" in md
    assert "tokens_per_s_per_user.mid" in csv.splitlines()[0]


def test_answers_of_one_token_have_no_price_of_tokens(run: Run) -> None:
    text = run(*COMMANDS["plan one token"]).out
    assert "answers of one token" in text
    assert "$/k requests" in text
    assert not re.search(r"\bb0\b|\b0-0\b", text)


class Terminal(io.StringIO):
    """What is written to a terminal."""

    def isatty(self) -> bool:
        return True


def test_what_takes_long_is_counted_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown, piped = Terminal(), io.StringIO()
    for out in (shown, piped):
        monkeypatch.setattr(sys, "stderr", out)
        with waiting(after_s=0.02):
            time.sleep(0.2)
    assert "working, 0 s" in shown.getvalue()
    assert shown.getvalue().endswith(WIPED), "nothing of it is left"
    assert piped.getvalue() == ""
    quick = Terminal()
    monkeypatch.setattr(sys, "stderr", quick)
    with waiting():
        pass
    assert quick.getvalue() == ""
