"""A saved answer is made again, and a difference is told as what it is."""

from __future__ import annotations

import gzip
import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from chipwise.api.launching import launch
from chipwise.api.requests.catalogue import ChipsRequest
from chipwise.api.requests.evidence import EvidenceMatchRequest, EvidenceRequest
from chipwise.api.requests.kernel import KernelRequest
from chipwise.api.requests.kinds import Request
from chipwise.api.requests.planning import FitRequest, PlanRequest
from chipwise.api.requests.training import TrainRequest
from chipwise.api.saving import answered, diff, open_saved, replay, save
from chipwise.catalog.configs import find_config
from chipwise.catalog.snapshot import Snapshot, use
from chipwise.errors import UsageError
from chipwise.evidence.item import own_item
from chipwise.evidence.store import Store
from chipwise.report.diff import Cause, Change, DiffReport, ReplayReport, changes
from chipwise.report.saved import write_saved
from command_line import Run

MODEL = "meta-llama/Llama-3.1-8B"
OFFERS = "catalog/data/offers.csv"
CHIPS = "catalog/data/chips/nvidia.toml"
PLAN = PlanRequest(model=MODEL, chips="l4,h100-sxm5-80gb", rate="3/s")
REQUESTS: dict[str, Request] = {
    "plan": PLAN,
    "fit": FitRequest(model=MODEL, chips="l4"),
    "train": TrainRequest(model=MODEL, counts="64", tokens="10B"),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = str(tmp_path_factory.mktemp("saved") / "a.json")
    save("plan", PLAN, file)
    return file


@pytest.mark.parametrize("verb", REQUESTS)
def test_a_saved_answer_is_made_again(verb: str, tmp_path: Path) -> None:
    file = str(tmp_path / "saved.json")
    report = save(verb, REQUESTS[verb], file).report
    again = replay(file)
    assert again.identical
    assert again.report == report


def test_it_does_not_depend_on_the_installed_tables(saved: str) -> None:
    tables = dict(open_saved(saved).tables)
    tables[CHIPS] = tables[CHIPS].replace(b"memory_GBps = 3350", b"memory_GBps = 9990")
    with use(Snapshot(tables)):
        assert replay(saved).identical


def test_a_saved_answer_keeps_the_users_own_files(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    keys = dict(find_config(MODEL).data)
    config.write_text(json.dumps(keys))
    save("fit", FitRequest(model=str(config), chips="l4"), str(tmp_path / "a.json"))
    config.unlink()
    assert replay(str(tmp_path / "a.json")).identical


def test_the_same_answer_has_no_difference(saved: str) -> None:
    found = diff(saved, saved)
    assert not found.changes
    assert not found.causes


def test_a_changed_price_shows_as_exactly_that(saved: str, tmp_path: Path) -> None:
    """All H100 offers a hundredth dearer: the only cause is prices, and only figures in dollars moved."""
    before = open_saved(saved)
    lines = before.tables[OFFERS].decode().splitlines()
    for i, line in enumerate(lines):
        cells = line.split(",")
        if cells[2] == "h100-sxm5-80gb" and cells[7]:
            cells[7] = f"{float(cells[7]) * 1.01:.6g}"
            lines[i] = ",".join(cells)
    dearer = str(tmp_path / "b.json")
    with use(Snapshot({**before.tables, OFFERS: ("\n".join(lines) + "\n").encode()})):
        save("plan", PLAN, dearer)
    found = diff(saved, dearer)
    assert [c.cause for c in found.causes] == ["prices"]
    (prices,) = found.causes
    assert prices.changes == found.changes
    said = [f for f in prices.facts if not f.endswith(" more")]
    strange = [f for f in said if "h100-sxm5-80gb" not in f or "on_demand" not in f]
    assert strange == []
    moved = [c.figure for c in found.changes if not re.search("price|usd|^rank$|break_even|^saves$|ties", c.figure)]
    assert moved == []
    factors = [c.factor for c in found.changes if c.figure == "price.high"]
    assert factors
    assert factors == [pytest.approx(1.01, rel=1e-4)] * len(factors)


def test_causes_are_told_apart(saved: str, tmp_path: Path) -> None:
    """A faster chip and another question at once: two causes, each with its facts."""
    before = open_saved(saved)
    tables = dict(before.tables)
    assert b"memory_GBps = 3350" in tables[CHIPS]
    tables[CHIPS] = tables[CHIPS].replace(b"memory_GBps = 3350", b"memory_GBps = 3400")
    other = str(tmp_path / "b.json")
    with use(Snapshot(tables)):
        save("plan", PlanRequest(model=MODEL, chips="l4,h100-sxm5-80gb", rate="4/s"), other)
    found = diff(saved, other)
    assert [c.cause for c in found.causes] == ["catalogue", "question"]
    assert any("h100" in fact for fact in found.causes[0].facts)
    assert found.causes[1].facts == ("rate: 3/s -> 4/s",)


@pytest.mark.parametrize("damage", ["", "[]", '{"format": "other"}', "not json", "\0"])
def test_another_file_is_refused(damage: str, tmp_path: Path, run: Run) -> None:
    file = tmp_path / "x.json"
    file.write_text(damage)
    assert "not a saved answer" in run("replay", str(file)).refused(2)
    assert "not a saved answer" in run("diff", str(file), str(file)).refused(2)


def test_a_damaged_or_doctored_file_is_refused(saved: str, tmp_path: Path) -> None:
    document = json.loads(Path(saved).read_text())
    file = tmp_path / "x.json"
    for key, value in (("tables", "AAAA"), ("day", "soon"), ("request", 3), ("catalogue", "0" * 16)):
        file.write_text(json.dumps({**document, key: value}))
        with pytest.raises(UsageError, match=r"damaged|changed after"):
            open_saved(str(file))
    for field, value in (("rate", 3), ("model", None), ("task", "fly"), ("disaggregate", "yes"), ("tp", "8")):
        request = document["request"] | {field: value}
        file.write_text(json.dumps({**document, "request": request}))
        with pytest.raises(UsageError, match=r"of another kind|has no field"):
            replay(str(file))


def test_nothing_half_written_is_left(saved: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        write_saved(open_saved(saved), tmp_path / "no" / "where.json")
    folder = tmp_path / "folder.json"
    folder.mkdir()
    with pytest.raises(UsageError, match="cannot be written"):
        write_saved(open_saved(saved), folder)
    assert [p.name for p in tmp_path.iterdir()] == ["folder.json"]


def test_commands(saved: str, run: Run) -> None:
    assert "identical (every figure within 1e-9)" in run("replay", saved).out
    assert "identical" in run("diff", saved, saved).out
    assert run("replay", saved, "--format", "json").json["identical"] is True


def test_a_saved_answer_keeps_the_users_own_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHIPWISE_DATA_DIR", str(tmp_path / "data"))
    kept, file = own_item("test", {"model": "m", "result": 1.0, "unit": "Tokens/s"}), str(tmp_path / "a.json")
    Store().add([kept])
    save("evidence", EvidenceRequest(own=True), file)
    Store().path.unlink()
    assert Store().items() == ()
    again = replay(file)
    assert again.identical
    assert again.report.items == (kept,)


def test_files_of_another_question_have_not_changed(tmp_path: Path) -> None:
    """Two days in two files: the day is another one, no file came or went."""
    for name, peak in (("a", 3), ("b", 6)):
        day = tmp_path / f"{name}.txt"
        day.write_text(f"1,2,{peak},2")
        asked = PlanRequest(model=MODEL, chips="l4", day=str(day))
        save("plan", asked, str(tmp_path / f"{name}.json"))
        day.unlink()
    found = diff(str(tmp_path / "a.json"), str(tmp_path / "b.json"))
    assert [c.cause for c in found.causes] == ["question"]
    assert found.causes[0].changes == found.changes


def test_an_answer_without_plans_shows_its_own_figures(tmp_path: Path) -> None:
    files = [str(tmp_path / f"{m}.json") for m in (64, 128)]
    for m, file in zip((64, 128), files, strict=True):
        save("kernel", KernelRequest(op="gemm", chips="l4", m=m, n=4096, k=4096), file)
    (table,) = diff(*files).tables()
    assert ("l4", "flops") in [row[:2] for row in table.rows]
    save("chips", ChipsRequest(chips="l4"), files[0])
    save("chips", ChipsRequest(chips="l40s"), files[1])
    (table,) = diff(*files).tables()
    assert table.foot == ("new: l40s", "gone: l4")


def test_what_a_question_leaves_out_has_its_default(tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("a.json", "b.json")]
    for file, changed in zip(files, ({}, {"tokens": "2T", "curves": True, "layout": "pp=1"}), strict=True):
        save("train", TrainRequest(model=MODEL, chips="h100-sxm5-80gb", counts="8", **changed), file)
    found = diff(*files)
    assert set(found.causes[-1].facts) == {"tokens: 1T -> 2T", "curves: False -> True", "layout: not given -> pp=1"}


def test_the_first_plans_of_other_counts_are_compared(tmp_path: Path) -> None:
    """No plan is in both answers: what the question did to the best of each is shown, step, days, $ and MFU."""
    files = [str(tmp_path / name) for name in ("a.json", "b.json")]
    asked = [TrainRequest(model=MODEL, chips="h100-sxm5-80gb", counts=counts) for counts in ("64", "128")]
    reports = [save("train", ask, file).report for ask, file in zip(asked, files, strict=True)]
    cause = diff(*files).causes[-1]
    moved = {c.figure: (c.before, c.after) for c in cause.first if c.entry == "#1"}
    a, b = (r.plans[0] for r in reports)
    assert moved["mfu"] == (a.mfu, b.mfu)
    assert moved["usd.mid"] == (a.usd.mid, b.usd.mid)
    assert moved["plan"][1].startswith("128x h100")
    (table,) = diff(*files).tables()
    assert {"plan", "step", "days", "$", "MFU"} <= {row[1] for row in table.rows if row[0] == "#1"}


def test_one_figure_differs() -> None:
    one = (Change("", "considered", 1, 2),)
    (table,) = ReplayReport("plan", "2026-01-01", "0", "1", "1", False, one, None).tables()
    assert table.head[1].endswith("1 figure differs by more than 1e-9")


def test_how_an_answer_was_found_is_no_change_of_it() -> None:
    moved = (
        Change("", "considered", 100, 2000),
        Change("", "rejected.MEMORY", 1, 3),
        Change("", "workload.rate_per_s", 5.0, 9.0),
        Change("", "largest_batch", 4, 8),
    )
    (table,) = DiffReport("a", "b", (Cause("question", (), moved),), moved).tables()
    assert [row[:2] for row in table.rows] == [("the answer", "largest_batch")]
    assert table.foot == ("and 3 more figures (--format json)",)


def test_evidence_is_judged_anew_under_other_facts(tmp_path: Path) -> None:
    """A chip with another memory in the saved tables: what was worked out before under the installed ones is not
    used for it."""
    asked, file = EvidenceMatchRequest(model=MODEL, chip="l4", task="batch"), str(tmp_path / "a.json")
    now = save("match", asked, file).report
    tables = dict(open_saved(file).tables)
    assert b"memory_GBps = 300" in tables[CHIPS]
    tables[CHIPS] = tables[CHIPS].replace(b"memory_GBps = 300", b"memory_GBps = 900")
    with use(Snapshot(tables)):
        other = asked.run()
    assert now.anchored is not None
    assert other.anchored is not None
    assert other.anchored.model > 1.1 * now.anchored.model


def test_rounding_is_no_difference_and_more_is(saved: str, tmp_path: Path) -> None:
    """Another order of addition moves the last digits; the file says which Python and NumPy made it."""
    kept, file = open_saved(saved), tmp_path / "a.json"
    assert set(kept.made_with) == {"python", "numpy"}
    (first, *rest) = kept.report["plans"]
    for factor, same in ((1 + 3e-16, True), (1 + 5e-10, True), (1 - 1e-8, False)):
        figure = {**first["ttft_s"], "mid": first["ttft_s"]["mid"] * factor}
        report = {**kept.report, "plans": [{**first, "ttft_s": figure}, *rest]}
        write_saved(replace(kept, report=report, made_with={"python": "3.9.0", "numpy": "1.0"}), file)
        again = replay(str(file))
        assert again.identical == same
        assert [c.figure for c in again.changes] == ([] if same else ["ttft_s.mid"])
        assert (again.tolerance, again.saved_with) == (1e-9, {"python": "3.9.0", "numpy": "1.0"})
    head = again.tables()[0].head
    assert head[1].endswith("1 figure differs by more than 1e-9")
    assert head[2].startswith("likely cause: Python 3.9.0 -> 3")
    assert ", NumPy 1.0 -> " in head[2]


def test_counts_and_words_are_compared_exactly() -> None:
    assert changes({"a": 10**12}, {"a": 10**12 + 1})
    assert changes({"a": "x"}, {"a": "y"})
    assert changes({"a": True}, {"a": 1.5})
    assert not changes({"a": 0.0, "b": 1}, {"a": 1e-17, "b": 1.0})


def test_a_file_that_does_not_say_what_made_it(saved: str, tmp_path: Path) -> None:
    document = json.loads(Path(saved).read_text())
    del document["made_with"]
    file = tmp_path / "a.json"
    file.write_text(json.dumps(document))
    assert replay(str(file)).identical
    for wrong in (3, [1], "x"):
        file.write_text(json.dumps({**document, "made_with": wrong}))
        with pytest.raises(UsageError, match="damaged"):
            open_saved(str(file))


PACKED = "catalog/data/published/mlperf_inference.csv.gz"
DAMAGES: dict[str, dict[str, bytes]] = {
    "no text": {CHIPS: b"\xff\xfe"},
    "no TOML": {CHIPS: b"[[["},
    "other keys": {CHIPS: b'[x]\nname = "x"\n'},
    "other types": {CHIPS: b"l4 = 3\n"},
    "no rows": {OFFERS: b""},
    "other columns": {OFFERS: b"a,b\n1,2\n"},
    "no number": {"catalog/data/offers.csv": b"\x00\x01"},
    "not packed": {PACKED: b"plain"},
    "cut off": {PACKED: gzip.compress(b"a,b\n" * 1000)[:-30]},
    "bomb": {PACKED: gzip.compress(bytes(70_000_000))},
    "outside": {"catalog/data/../../../../etc/passwd": b"x"},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_tables_that_were_edited_end_in_one_line(damage: str, saved: str, tmp_path: Path, run: Run) -> None:
    """Their digest fits: anybody can work it out anew."""
    kept, file = open_saved(saved), str(tmp_path / "a.json")
    write_saved(replace(kept, tables={**kept.tables, **DAMAGES[damage]}), file)
    for command in (("replay", file), ("diff", saved, file), ("launch", file, "--for", "vllm")):
        found = run(*command)
        assert found.code in (0, 2, 3, 4), found.err
        if found.code:
            assert len(found.one_line()) < 700


@pytest.mark.parametrize("name", [CHIPS, OFFERS, "calibrate/data/serving.csv", "catalog/data/software.toml"])
@pytest.mark.parametrize("seed", range(6))
def test_bytes_of_tables_that_were_edited(name: str, seed: int, saved: str, tmp_path: Path, run: Run) -> None:
    kept, file, draw = open_saved(saved), str(tmp_path / "a.json"), random.Random(seed)
    if name not in kept.tables:
        pytest.skip("not read for this answer")
    content = bytearray(kept.tables[name])
    for _ in range(40):
        content[draw.randrange(len(content))] = draw.choice(b'0"=,[]-e\n\xff x')
    write_saved(replace(kept, tables={**kept.tables, name: bytes(content)}), file)
    found = run("replay", file)
    assert found.code in (0, 2, 3, 4), found.err


@pytest.mark.parametrize(
    ("field", "value"), [("plans", 3), ("plans", [3]), ("considered", "many"), ("assumptions", [1]), ("model", [])]
)
def test_a_field_of_another_type_is_refused(field: str, value: object, saved: str, tmp_path: Path) -> None:
    kept, file = open_saved(saved), str(tmp_path / "a.json")
    write_saved(replace(kept, report={**kept.report, field: value}), file)
    for ask in (lambda: replay(file), lambda: diff(saved, file), lambda: launch(file, "vllm")):
        with pytest.raises(UsageError, match=f"the saved answer's {field}"):
            ask()


def test_a_second_answer_carries_the_same_tables() -> None:
    """What a process remembers is no reason for a table to be missing from what an answer carries."""
    request = FitRequest(model=MODEL, chips="l4")
    first, second = answered("fit", request).saved, answered("fit", request).saved
    assert "workload/data/families.toml" in first.tables
    assert first.tables.keys() == second.tables.keys()


def test_one_version_in_two_builds_is_no_change_of_version(saved: str, tmp_path: Path) -> None:
    """An answer that this program gives otherwise is put down to a build, not to a version that is the same."""
    before = open_saved(saved)
    report = dict(before.report)
    report["plans"] = [dict(p, spare=7) for p in report["plans"]]
    other = tmp_path / "other.json"
    write_saved(replace(before, report=report), str(other))
    (cause,) = diff(saved, str(other)).causes
    assert "another build of chipwise" in cause.cause
    assert "->" not in cause.cause


@pytest.mark.parametrize("named", ["config.json", "mine", "./mine/config.json"])
def test_an_own_model_is_replayed_in_another_folder(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a model is that of the folder of its file, which a path may not say, and a folder may be gone."""
    there, here = tmp_path / "there", tmp_path / "here"
    for folder in (there / "mine", here):
        folder.mkdir(parents=True)
    for folder in (there, there / "mine"):
        (folder / "config.json").write_text(json.dumps(dict(find_config(MODEL).data)))
    monkeypatch.chdir(there)
    save("fit", FitRequest(model=named, chips="l4"), str(here / "a.json"))
    monkeypatch.chdir(here)
    assert replay("a.json").identical


@pytest.mark.parametrize("table", ["workload/data/families.toml", OFFERS])
def test_a_saved_table_that_is_no_utf_8_is_refused(table: str, saved: str, tmp_path: Path) -> None:
    found = open_saved(saved)
    content = found.tables[table]
    file = str(tmp_path / "bad.json")
    write_saved(replace(found, tables={**found.tables, table: content[:50] + b"\xff" + content[50:]}), file)
    with pytest.raises(UsageError, match=f"its table {table} is damaged"):
        replay(file)
