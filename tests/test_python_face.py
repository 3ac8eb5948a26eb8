"""The verbs as Python functions: flat, lazy, the same answers as the command line, at home in a notebook."""

from __future__ import annotations

import inspect
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from docs.generate.stub import FILE, stub

import chipwise as cw
from chipwise.api.requests.planning import EstimateRequest
from chipwise.api.requests.verbs import VERBS
from chipwise.errors import ChipwiseError, MissingExtraError, Sentence, UnknownNameError, UsageError
from chipwise.report.records import Figure
from chipwise.report.table import Table, to_json
from command_line import Run

MODEL = "meta-llama/Llama-3.1-8B"
ROUND = {"diff", "launch", "replay", "step", "sweep", "trace", "__version__", "ChipwiseError"}


@pytest.fixture(scope="module")
def plans() -> Any:
    return cw.plan(MODEL, rate=10, tpot="40ms", chips=["h100", "l4", "mi300x"])


@pytest.fixture(scope="module")
def one() -> Any:
    return cw.estimate(MODEL, chip="h100", concurrency=8, in_=1000, out=200)


def test_every_name_is_a_verb_and_every_verb_has_a_name() -> None:
    assert sorted(dir(cw)) == sorted(cw.__all__)
    assert set(cw.__all__) - ROUND == set(VERBS) - {"launch", "replay", "diff"}
    assert all(callable(getattr(cw, name)) for name in set(cw.__all__) - {"__version__"})
    with pytest.raises(AttributeError, match="no attribute 'plann'"):
        cw.plann  # noqa: B018


def test_importing_it_loads_no_verb() -> None:
    code = "import sys, chipwise; print(any(m.startswith(('chipwise.', 'numpy')) for m in sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


def test_a_room_and_the_verb_of_its_name_are_one() -> None:
    import chipwise.evidence.store as store

    assert cw.evidence.store is store
    best = cw.evidence(chip="h200", best=True, limit=3)
    assert len(best.items) == 3 < best.found
    assert best.best.chip == "h200-sxm-141gb"


@pytest.mark.parametrize("name", sorted(set(cw.__all__) - ROUND - {"evidence"}))
def test_help_names_every_keyword_and_what_it_means(name: str) -> None:
    verb = getattr(cw, name)
    (first, *_) = names = list(inspect.signature(verb).parameters)
    assert (first == "model") == ("model" in names)
    for f in VERBS[name].__dataclass_fields__.values():  # type: ignore[attr-defined]
        assert f"    {f.name}: {Sentence(f.metadata['help']).as_fields}" in verb.__doc__
    assert verb.__name__ == name
    assert " --" not in verb.__doc__, "keywords, not options of the command line"


def test_numbers_lists_and_dictionaries_are_taken_for_text(one: Any) -> None:
    typed = EstimateRequest(model=MODEL, chip="h100", concurrency=8, in_="1000", out="200").run()
    assert one == typed
    assert to_json(one) == to_json(typed)
    policies = [cw.estimate(MODEL, chip="h100", policy=p) for p in ("max_sequences=64", {"max_sequences": 64})]
    assert policies[0] == policies[1]
    assert cw.estimate(model=MODEL, chip="h100", concurrency="8", in_=1e3, out="200") == one


def test_an_answer_is_a_sequence_of_its_rows(plans: Any) -> None:
    assert [p.rank for p in plans] == [p.rank for p in plans.plans]
    assert (len(plans), plans[0], plans[-1:]) == (len(plans.plans), plans.best, plans.plans[-1:])
    assert cw.evidence(search="nobody ran this"), "an answer without rows is one"


def test_an_answer_is_saved_in_the_format_of_its_name(one: Any, tmp_path: Path) -> None:
    for name, start in (("a.csv", "rank,"), ("a.html", "<!doctype html>"), ("a.json", "{")):
        assert one.save(tmp_path / name) == str(tmp_path / name)
        assert (tmp_path / name).read_text().startswith(start)


TYPED = """
import chipwise as cw

seconds: float = float(cw.plan("Qwen/Qwen3-8B", rate=2, tpot="40ms", chips=["l40s"]).best.tpot_s)
plans: list[tuple[str, int]] = [(plan.chip, plan.layout.tp) for plan in cw.plan("m", in_="2k", have={"h100": 8})]
picture: float = float(cw.estimate("flux", chip="h100", resolution=1024).best.latency_s)
cw.plan("m", rat=10)
cw.plan("m", tpot=40)
cw.fit("m", chips="l4").bset
"""


def test_types_are_told_to_a_checker(tmp_path: Path) -> None:
    assert FILE.read_text() == stub(), "python -m docs.generate.stub"
    (tmp_path / "asked.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", "asked.py"]
    environment = {**os.environ, "MYPYPATH": str(FILE.parents[1])}
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    found = [line for line in run.stdout.splitlines() if ": error:" in line]
    assert sorted({line.split(":")[1] for line in found}) == ["7", "8", "9"], run.stdout + run.stderr
    assert "'rat'" in found[0].replace('"', "'")


def test_training_takes_lists_and_layouts() -> None:
    asked = {"chips": ("h100",), "counts": (8,), "tokens": 1e9, "global_batch": 64}
    report = cw.train(MODEL, task="train", layout={"tp": 2}, **asked)
    assert (report.best.chips, report.best.layout.tp) == (8, 2)
    assert str(report.best.days).endswith(" days")
    assert "MFU" in str(report)


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"chpi": "h100"}, "unknown field of estimate 'chpi'.*did you mean chip"),
        ({}, "estimate needs 'chip'"),
        ({"chip": "h100", "concurrency": 4, "rate": "1/s"}, "^rate and concurrency are two loads"),
        ({"chip": "h100", "harness": "nobody"}, "unknown harness"),
    ],
)
def test_what_is_asked_wrongly(asked: dict[str, object], match: str) -> None:
    with pytest.raises(ChipwiseError, match=match):
        cw.estimate(MODEL, **asked)


def test_a_plan_shows_itself_as_explain_does(one: Any) -> None:
    said = str(one.best)
    assert said.startswith("1x h100-sxm5-80gb  unsharded  bf16  vllm  8 in flight\n")
    assert str(cw.explain(MODEL, chip="h100", concurrency=8, in_=1000, out=200)) == said
    assert one.best._repr_html_().count("<table") == len(one.best.tables())


def test_what_a_verb_is_about_needs_no_name() -> None:
    size = {"m": 4096, "n": 4096, "k": 4096, "chips": "h100"}
    assert cw.kernel("gemm", **size) == cw.kernel(op="gemm", **size)
    assert cw.evidence("llama2-70b") == cw.evidence(search="llama2-70b")


def test_an_answer_is_saved_under_the_name_of_its_verb(
    one: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert one.save() == "estimate.json"
    assert cw.replay("estimate.json").changes == ()


def test_a_latency_without_a_unit_is_refused_in_the_words_of_python() -> None:
    with pytest.raises(UsageError, match=r'^tpot 0.04: 0.04ms or 0.04s\? \(tpot="0.04ms" or tpot="0.04s"\)$'):
        cw.plan(MODEL, tpot=0.04)
    with pytest.raises(UsageError, match="only model can be given without its name"):
        cw.plan(MODEL, "h100")


@pytest.mark.parametrize(
    ("asked", "field", "match"),
    [
        ({"chip": "h1000"}, "chip", "unknown chip 'h1000'.*did you mean h100"),
        ({"model": "lama-3.1-8b"}, "model", "unknown model"),
        ({"model": "no/where/config.json"}, "model", "no such file"),
        ({"runtime": "vlm"}, "runtime", "unknown runtime"),
        ({"software": "0.10"}, "software", "whose version is"),
        ({"host_memory": 64}, "host_memory", r'host_memory="64GB" or host_memory="64TB"'),
        ({"max_usd": 5, "task": "batch"}, "max_usd", "unknown field"),
    ],
)
def test_an_error_carries_the_field(asked: dict[str, object], field: str, match: str) -> None:
    with pytest.raises(ChipwiseError, match=match) as error:
        cw.estimate(**({"model": MODEL, "chip": "h100"} | asked))
    assert error.value.field == field


@pytest.mark.parametrize("asked", [{"count": 2}, {"replicas": 2}])
def test_what_moves_nothing_of_a_network_without_tokens_is_refused(asked: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="says nothing about flux") as error:
        cw.estimate("flux", chip="h100", **asked)
    assert error.value.field in asked


def test_what_to_add_is_written_as_keywords() -> None:
    with pytest.raises(UsageError, match=r"\(add task=batch tokens=1B,"):
        cw.plan(MODEL, max_usd=100)


def test_a_field_is_taken_under_its_other_name() -> None:
    assert cw.fit(MODEL, chip="l4", count=2) == cw.fit(MODEL, chips="l4", count=2)
    claim = cw.claim(result="v5.1-05440", for_=MODEL)
    assert claim == cw.claim(result="v5.1-05440", model=MODEL)


def test_arrays_and_sizes_are_taken_for_text() -> None:
    numpy = pytest.importorskip("numpy")
    rate, chips = numpy.float64(3), numpy.array(["h100", "l4"])
    assert cw.plan(MODEL, rate=rate, chips=chips) == cw.plan(MODEL, rate="3/s", chips="h100,l4")
    pictures = {"chip": "h100", "images": "2*1280x720,336x336"}
    given = cw.estimate("Qwen/Qwen2.5-VL-7B-Instruct", **pictures)
    pictures["images"] = ["2*1280x720", (336, 336)]  # type: ignore[assignment]
    assert cw.estimate("Qwen/Qwen2.5-VL-7B-Instruct", **pictures) == given
    wide = {"chip": "h100", "resolution": (1280, 768), "steps": 4}
    assert cw.estimate("flux", **wide) == cw.estimate("flux", **(wide | {"resolution": "1280x768"}))


def test_a_share_of_more_than_the_whole_is_refused_with_what_was_meant() -> None:
    with pytest.raises(UsageError, match=r'confidence="90%" or confidence="0.9"') as error:
        cw.plan(MODEL, rate="1/s", confidence=90)
    assert error.value.field == "confidence"


def test_an_empty_list_is_not_everything() -> None:
    with pytest.raises(UsageError, match="chips: an empty list names nothing"):
        cw.plan(MODEL, chips=[])


def test_an_empty_dictionary_changes_nothing() -> None:
    found = cw.train(MODEL, chips=["h100"], counts=[8], layout={}, memory={})
    assert found.plans[0].step_s == cw.train(MODEL, chips=["h100"], counts=[8]).plans[0].step_s


def test_what_is_no_answer_is_not_launched() -> None:
    with pytest.raises(UsageError, match="answer: cannot launch 5"):
        cw.launch(5, "vllm")  # type: ignore[arg-type]


# What somebody types first into a notebook.

SNIPPETS: Mapping[str, str] = {
    "a plan, its best": 'cw.plan(MODEL, rate=10, tpot="40ms", chips=["h100", "l4"]).best.chip',
    "my own configuration": 'cw.fit({"model_type": "llama", "num_hidden_layers": 4, "hidden_size": 1024, '
    '"num_attention_heads": 8, "intermediate_size": 4096, "vocab_size": 32000}, chips="l4").best.verdict',
    "a figure in milliseconds": "f\"{1e3 * float(cw.estimate(MODEL, chip='h100').best.tpot_s):.1f} ms\"",
    "chips against each other": '[p.chip for p in cw.compare(MODEL, chips=["h100", "mi300x"], rate=5).plans]',
    "why so slow": 'cw.explain(MODEL, chip="h100", tp=2, concurrency=64).best.bound',
    "does it fit at home": 'cw.fit(MODEL, chips=["rtx-4090"], precision="int4", context="8k").best.chips',
    "one product": 'str(cw.kernel(op="gemm", chips=["h100"], m=4096, n=4096, k=4096).seconds)',
    "a training run": 'cw.train(MODEL, chips=["h100"], counts=[64], tokens="100B").best.mfu',
    "who measured that": 'cw.evidence(search="h200 llama2-70b server").best.id',
    "which chips are there": '[c.id for c in cw.chips(vendor="amd").chips]',
    "a sweep": '[cw.estimate(MODEL, chip="h100", concurrency=n).best.tpot_s.mid for n in (1, 8, 64)]',
    "what starts it": 'print(cw.estimate(MODEL, chip="h100").launch("vllm"))',
}


@pytest.mark.parametrize("snippet", SNIPPETS.values(), ids=SNIPPETS)
def test_what_is_typed_first_works(snippet: str) -> None:
    out = io.StringIO()
    with redirect_stdout(out):
        found = eval(snippet, {"cw": cw, "MODEL": MODEL})
    assert found or "vllm serve" in out.getvalue()
    if isinstance(found, list) and isinstance(found[0], float):
        assert found == sorted(found)


def test_an_answer_prints_as_a_table_of_80_columns(plans: Any, one: Any) -> None:
    for answer in (plans, one):
        text = str(answer)
        assert repr(answer) == text
        assert max(map(len, text.splitlines())) <= 80
        assert "TPOT" in text
        assert "next:" not in text
    assert f"1x {plans.best.chip}" in str(plans)


class _Cells(HTMLParser):
    """The cells of a page, by kind."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: dict[str, list[str]] = {"th": [], "td": [], "script": []}
        self._in = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in self.cells:
            self._in = tag
            self.cells[tag].append("")

    def handle_data(self, data: str) -> None:
        if self._in:
            self.cells[self._in][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._in = ""


def test_a_notebook_shows_the_same_table_as_html(plans: Any) -> None:
    page = _Cells()
    page.feed(plans._repr_html_())
    (table,) = plans.tables()
    assert tuple(page.cells["th"]) == table.columns
    shown = tuple(cell.replace("\u00a0", " ") for cell in page.cells["td"])  # figures do not break
    assert shown == tuple(cell for row in table.rows for cell in row)


def test_html_escapes_everything() -> None:
    evil = "<script>alert('1')</script>\" onload=\"x"
    text = Table((evil,), [(evil,)], head=(evil,), foot=(evil,)).html()
    page = _Cells()
    page.feed(text)
    assert page.cells == {"th": [evil], "td": [evil], "script": []}
    named = cw.fit(
        {"_name_or_path": evil, "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 512,
         "num_attention_heads": 4, "intermediate_size": 1024, "vocab_size": 1000}, chips="l4"
    )  # fmt: skip
    assert "<script" in str(named)
    assert "<script" not in named._repr_html_()


def test_a_figure_is_a_number_and_says_its_unit(one: Any) -> None:
    tpot = one.best.tpot_s
    assert float(tpot) == tpot.mid
    assert f"{tpot:.4f}" == f"{tpot.mid:.4f}"
    assert str(tpot) == f"{tpot}"
    assert str(tpot).endswith(" ms")
    assert repr(tpot) == str(tpot)  # what a notebook shows
    assert str(one.best.tokens_per_s_per_chip).endswith(" tokens/s/chip")
    assert str(one.best.usd_per_million_out).endswith(" $/M tokens out")
    assert str(Figure(2.0, 1.0, 3.0, "modelled", True)) == "2 [1 to 3]"


def test_all_rows_make_a_data_frame(plans: Any) -> None:
    pytest.importorskip("pandas")
    frame = plans.df
    assert list(frame["chip"]) == [p.chip for p in plans.plans]
    assert list(frame["tpot_s.mid"]) == [p.tpot_s.mid for p in plans.plans]
    assert cw.chips(vendor="amd").df["id"].tolist() == [c.id for c in cw.chips(vendor="amd").chips]


def test_without_pandas_the_extra_is_named(one: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'chipwise\[notebook\]'"):
        one.df  # noqa: B018


def test_charts_are_specifications_that_notebooks_draw(plans: Any, one: Any) -> None:
    bundle = plans.chart()._repr_mimebundle_()
    assert bundle["text/plain"].startswith("Cost against speed of 3 plans")
    for version in (5, 6):
        spec = bundle[f"application/vnd.vegalite.v{version}+json"]
        assert spec["$schema"].endswith(f"/v{version}.json")
        json.dumps(spec, allow_nan=False)
    assert [v["plan"] for v in plans.chart("tpot")["data"]["values"]] == [f"{p.chips}x {p.chip}" for p in plans.plans]
    assert one.chart() == one.chart("elasticities")
    with pytest.raises(UnknownNameError, match=r"unknown chart 'piechart'.*one of pareto, cost"):
        plans.chart("piechart")


def test_what_has_no_rows_or_charts_says_so() -> None:
    claim = cw.claim(MODEL, result="v5.1-05440", count=8)
    for wrong in (lambda: claim.best, claim.chart):
        with pytest.raises(UsageError, match="print"):
            wrong()
    with pytest.raises(UsageError, match="does not know its question"):
        EstimateRequest(model=MODEL, chip="h100").run().save("nowhere.json")


def test_an_answer_is_kept_replayed_compared_and_launched(one: Any, run: Run, tmp_path: Path) -> None:
    kept = tmp_path / "one.json"
    one.save(str(kept))
    assert cw.replay(str(kept)).identical
    assert not cw.diff(str(kept), str(kept)).changes
    command = run("launch", str(kept), "--for", "vllm")
    assert str(one.launch("vllm")) == command.out.rstrip("\n") + "\n"
    assert cw.launch(str(kept), for_="vllm") == cw.launch(one, for_="vllm") == one.launch("vllm")
    written = cw.launch(one, for_="vllm", out=str(tmp_path / "files"))
    assert {p.name: p.read_text() for p in (tmp_path / "files").iterdir()} == {f.name: f.text for f in written}
    with pytest.raises(UnknownNameError, match="vlm"):
        one.launch("vlm")


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("operators", {"model": MODEL, "chip": "h100"}),
        ("load", {"model": MODEL, "chip": "h100", "tpot": "20ms"}),
        ("kernel", {"op": "gemm", "chips": ["h100", "tpu-v6e"], "m": 64, "n": 512, "k": 512}),
        ("match", {"model": MODEL, "chip": "h200", "count": 8}),
        ("models", {"search": "qwen3"}),
        ("models", {"model": MODEL}),
        ("chips", {"chips": "h100"}),
        ("systems", {"chip": "h100"}),
        ("runtimes", {"runtime": "vllm"}),
        ("offers", {"chip": "h100"}),
        ("explain", {"model": MODEL, "chip": "h100", "serial": 0.05}),
    ],
)
def test_every_answer_shows_itself(name: str, asked: dict[str, Any]) -> None:
    answer = getattr(cw, name)(**asked)
    tables = answer.tables()
    assert tables
    assert all(table.rows for table in tables)
    page = _Cells()
    page.feed(answer._repr_html_())
    assert len(page.cells["td"]) == sum(len(row) for table in tables for row in table.rows)
    assert max(map(len, str(answer).splitlines())) <= 80
    assert answer.best is not None


def test_a_report_is_saved_in_a_format_that_its_name_says(tmp_path: Path) -> None:
    with pytest.raises(cw.ChipwiseError, match="ending says no format") as refused:
        cw.fit("Qwen/Qwen3-8B", chips="l40s").save(tmp_path / "x.txt")
    assert all(kind in str(refused.value.hint) for kind in (".html", ".json", ".csv"))


def test_the_figure_that_ranks_has_the_name_that_agents_read() -> None:
    best = cw.plan("Qwen/Qwen3-8B", rate=2, chips=["l40s"]).best
    assert best.price is not None
    assert best.usd_per_h == best.price.mid


def test_a_plan_of_a_network_prints_as_tables_too() -> None:
    said = str(cw.plan("flux-dev", rate=1, chips="gh200-96gb").best)
    assert "MediaPlan(" not in said
    assert "time by part of the model" in said
    assert max(map(len, said.splitlines())) <= 80


def test_files_that_start_another_plan_say_so() -> None:
    found = cw.plan("Qwen/Qwen3-8B", rate=1, chips="l40s", runtime="best")
    first, other = found.plans[:2]
    files = found.launch(other.runtime)
    said = f"plan 1 runs {first.runtime}: these files start plan 2, {other.machines} with {other.runtime}"
    assert files.note.startswith(said)
    assert str(files).startswith(files.note)
