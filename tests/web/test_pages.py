"""The pages in a browser without network: every view drawn, from form to answer, shared, saved, cancelled."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, unquote_plus, urlencode

import httpx
import pytest
from browsing import Visit, chromium
from playwright.sync_api import Browser, expect
from serving import served
from starlette.applications import Starlette
from starlette.testclient import TestClient

from chipwise.api.launching import launch
from chipwise.api.requests.doors import Problem, read_request
from chipwise.api.requests.verbs import VERBS
from chipwise.api.saving import replay
from chipwise.cli.app import GROUPS
from chipwise.errors import UsageError
from chipwise.web.limits import RefusedError
from chipwise.web.pages import routes
from chipwise.web.pages.form import STARTS, controls
from chipwise.web.views import NAVIGATION, VIEWS
from chipwise.web.views.view import CATALOGUE

PLAN = "/plan?model=meta-llama/Llama-3.1-8B&rate=5/s&chips=l4,h100-sxm5-80gb,tpu-v6e,mi300x"
CONFIG = {
    "model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256, "max_position_embeddings": 8192,
}  # fmt: skip
CHIP = """vendor = "acme"
[sources]
sheet = { ref = "Acme, data sheet of the A1", date = "2026-11-20" }

[acme-a1]
name = "Acme A1"
kind = "gpu"
family = "simt"
like = "h100-sxm5-80gb"
year = 2026
status = "ga"
sources = ["sheet"]
grade = "datasheet"
memory = "48 GB"
memory_kind = "hbm"
memory_GBps = 2000
matrix_tflops = { bf16 = 300 }
"""
CHARTS = {
    "plan": {"first-cost", "first-speed", "first-largest", "cost-against-speed", "frontier", "timeline"},
    "compare": {"compare-cost", "compare-speed", "compare-tpot", "compare-ttft", "compare-memory"},
    "frontier": {"frontier"},
    "sensitivity": {"tornado"},
    "check_statement": set(),
    "explain": {"memory", "elasticities", "roofline", "operators-decode", "tornado", "load-ttft", "timeline"},
    "operators": {"roofline", "operators-decode", "operators-prefill"},
    "load": {"load-ttft", "load-tpot", "load-tokens"},
    "fit": {"memory"},
    "train": {"turnaround", "step", "pipeline", "scaling-strong", "scaling-weak"},
    "rl": set(),
    "kernel": {"kernel-time", "kernel-roofline", "kernel-levels"},
    "match": set(),
    "claim": set(),
    "chips": {"chips"},
    "local": set(),
    "launch": set(),
    "simulate": set(),
    "evidence": set(),
    "models": set(),
    "systems": set(),
    "runtimes": set(),
    "offers": set(),
}

LOOKS: tuple[tuple[int, Literal["light", "dark"], tuple[str, ...]], ...] = (
    (1440, "light", ()),
    (1440, "dark", ("color-contrast",)),
    (1024, "dark", ()),
    (390, "light", ()),
)
"""Widths and colours that every view is looked at in, and the rules (none: all)."""

Open = Callable[..., Visit]


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def visit(browser: Browser, site: str) -> Iterator[Open]:
    """Opens visits, and fails for anything that went wrong on one of them."""
    visits: list[Visit] = []

    def call(**context: Any) -> Visit:
        visits.append(Visit(browser, site, **context))
        return visits[-1]

    yield call
    for found in visits:
        found.close()
    assert not [wrong for found in visits for wrong in found.wrong]


def test_every_view_is_tried() -> None:
    assert set(CHARTS) == set(VIEWS)


@pytest.fixture(scope="module")
def reader(browser: Browser, site: str) -> Iterator[Visit]:
    """One visit that goes from view to view."""
    found = Visit(browser, site)
    yield found
    found.close()


@pytest.mark.parametrize("verb", CHARTS)
def test_a_view_is_drawn_and_can_be_used_by_all(reader: Visit, verb: str) -> None:
    on, page = reader, reader.page
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")
    on.open(f"/{verb}" if verb != "chips" else "/chips?vendor=google")
    names = page.eval_on_selector_all("[data-chart]", "all => all.map(f => f.dataset.chart)")
    assert CHARTS[verb] <= set(names)
    for plot in page.query_selector_all("[data-spec] .plot"):
        picture = plot.query_selector("svg")
        assert picture is not None
        assert len(picture.get_attribute("aria-label") or "") > 30
        assert picture.query_selector_all("path, rect, line, text")
    for width, scheme, rules in LOOKS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        expect(page.locator("html")).to_have_attribute("data-theme", scheme)
        page.wait_for_timeout(120)
        on.settle()
        assert on.faults(*rules) == [], (width, scheme)
        assert on.too_wide() <= 0, width
    assert on.wrong == []


def test_from_the_form_to_an_answer_that_can_be_shared(visit: Open) -> None:
    page = visit().open("/")
    assert page.input_value("[name=rate]") == "10/s"
    first = page.inner_text("#result h2")
    page.fill("[name=chips]", "h100-sxm5-80gb,mi300x") if page.is_visible("[name=chips]") else page.click(
        "text=More options"
    )
    page.fill("[name=chips]", "h100-sxm5-80gb,mi300x")
    page.fill("[name=rate]", "40/s")
    page.press("[name=rate]", "Enter")
    expect(page.locator("tr[data-rank]")).to_have_count(2)
    second = page.inner_text("#result h2")
    assert second != first
    expect(page.locator("#status")).to_contain_text("2 plans")
    assert "rate=40%2Fs" in page.url
    other = visit().open(page.url.removeprefix(page.url.split("/plan")[0]))
    assert other.input_value("[name=rate]") == "40/s"
    assert other.input_value("[name=chips]") == "h100-sxm5-80gb,mi300x"
    assert other.inner_text("#result h2") == second


def test_a_plan_is_picked_from_table_and_chart(visit: Open) -> None:
    on = visit()
    page = on.open(PLAN)
    page.click("tr[data-rank='2'] a.pick")
    page.wait_for_selector("#detail [data-chart=roofline]")
    on.settle()
    chip = page.inner_text("tr[data-rank='2'] a.pick")
    assert page.inner_text("#detail h2").startswith(chip)
    assert page.evaluate("document.activeElement.id") == "detail"
    page.locator("[data-chart=cost-against-speed] .mark-symbol path").first.click()
    page.wait_for_selector("tr[data-rank='1'].picked")
    expect(page.locator("#detail h2").first).to_contain_text(page.inner_text("tr[data-rank='1'] a.pick"))
    on.settle()


def test_a_picked_plan_is_in_the_address_and_back_leaves_it(visit: Open) -> None:
    page = visit().open(PLAN)
    page.click("#plan-2")
    page.wait_for_selector("#detail .headline")
    assert page.url.endswith("#plan=2")
    page.go_back()
    expect(page.locator("#detail > *")).to_have_count(0)
    expect(page.locator("tr.picked")).to_have_count(0)
    assert page.input_value("[name=rate]") == "5/s"
    other = visit().open(f"{PLAN}#plan=2")
    other.wait_for_selector("tr[data-rank='2'].picked")
    expect(other.locator("#detail h2").first).to_contain_text(other.inner_text("#plan-2"))


def test_a_name_that_was_meant_is_a_button(visit: Open) -> None:
    on = visit()
    on.page.goto(f"{on.site}/fit?model=meta-llama/Llama-3.1-8B&chips=l4,h100-sxm5-80gp")
    page = on.page
    field = page.locator("[name=chips]")
    expect(field).to_have_attribute("aria-invalid", "true")
    page.click("#result .problem button:text-is('h100-sxm5-80gb')")
    expect(page.locator("#result .headline .sentence")).to_contain_text("2 of 2 chips")
    assert field.input_value() == "l4,h100-sxm5-80gb"
    on.wrong = [line for line in on.wrong if "422" not in line]  # the refusal


def test_an_answer_fades_once_the_question_is_another(visit: Open) -> None:
    page = visit().open(PLAN)
    page.fill("[name=rate]", "7/s")
    expect(page.locator("#result.stale")).to_have_count(1)
    page.fill("[name=rate]", "5/s")
    expect(page.locator("#result.stale")).to_have_count(0)


def test_a_slider_is_followed_by_its_answer(visit: Open) -> None:
    on = visit()
    page = on.open(PLAN)
    asked: list[str] = []
    page.on("request", lambda r: asked.append(r.url) if "/plan?" in r.url else None)
    slide = page.locator("[data-slide=rate]")
    assert slide.get_attribute("aria-valuetext") == "5/s"
    # faster than answers come: the last one counts
    move = "s => { for (s.value of [500, 600, 700]) s.dispatchEvent(new Event('input', {bubbles: true})); }"
    slide.evaluate(move)
    assert page.input_value("[name=rate]") == "63/s"
    page.wait_for_selector("#result.glancing .headline.glance")
    expect(page.locator("#result .headline .verdict")).to_contain_text("It serves 63 requests/s")
    assert len(asked) == 1
    slide.dispatch_event("change")
    page.wait_for_selector("#result:not(.glancing) .headline:not(.glance)")
    assert "rate=63%2Fs" in page.url
    assert page.locator("#result.stale").count() == 0


def test_a_first_answer_stands_in_until_the_whole_one_is_there(visit: Open) -> None:
    page = visit().open(PLAN)
    held: list[Any] = []
    page.route(
        "**/plan?*",
        lambda route: route.continue_() if "chipwise-glance" in route.request.headers else held.append(route),
    )
    page.fill("[name=rate]", "7/s")
    page.click("#ask button[type=submit]")
    expect(page.locator("#result .headline.glance.early .verdict")).to_contain_text("It serves 7 requests/s")
    held[0].continue_()
    expect(page.locator("#result > .headline:not(.glance) .verdict")).to_contain_text("It serves 7 requests/s")
    assert page.locator("#result.glancing").count() == 0


def test_ranked_plans_do_not_wait_for_what_would_make_them_cheaper(visit: Open) -> None:
    title = "What would make it cheaper"
    page = visit().open(PLAN)
    page.fill("[name=rate]", "13/s")
    # not that of the question before, which may still be on its way
    asks = re.compile(r"/plan\?.*rate=13%2Fs")
    with page.expect_response(
        lambda r: r.request.headers.get("hx-target") == "div#cheaper" and bool(asks.search(r.url))
    ) as rest:
        page.click("#ask button[type=submit]")
    lines = page.locator("#cheaper ul.notes li")
    expect(page.locator("#cheaper h2")).to_have_text(title)
    assert rest.value.ok
    verdict = page.locator(".verdict").inner_text()
    # who asks without a browser, or again, has all of it at once, and the same
    again = httpx.get(page.url, headers={"HX-Request": "true", "HX-Target": "section#result"})
    for text in (httpx.get(page.url).text, again.text):
        assert 'id="cheaper"' not in text
        said = (title, *filter(None, verdict.splitlines()), *lines.all_inner_texts())
        assert all(line in html.unescape(text) for line in said)


def test_older_questions_of_a_slider_are_given_up(visit: Open) -> None:
    page = visit().open(PLAN)
    held: list[Any] = []
    page.route("**/plan?*", lambda route: held.append(route) if not held else route.continue_())
    given_up: list[str] = []
    page.on("requestfailed", lambda r: given_up.append(r.url))
    move = "(s, at) => { s.value = at; s.dispatchEvent(new Event('input', {bubbles: true})); }"
    slide = page.locator("[data-slide=in]")
    slide.evaluate(move, 400)
    page.wait_for_timeout(300)
    slide.evaluate(move, 700)
    page.wait_for_selector("#result.glancing .headline.glance")
    assert len(given_up) == 1


def test_the_form_follows_the_question(visit: Open) -> None:
    page = visit().open(PLAN)
    shown = {name: page.locator(f"[name={name}]") for name in ("rate", "deadline", "resolution", "owning", "prefill")}
    expect(shown["rate"]).to_be_visible()
    for name in ("deadline", "resolution", "owning", "prefill"):
        expect(shown[name]).to_be_hidden()
    page.select_option("[name=task]", "batch")
    expect(shown["deadline"]).to_be_visible()
    expect(shown["rate"]).to_be_hidden()
    assert "rate" not in page.evaluate("[...new FormData(document.getElementById('ask')).keys()]")
    page.select_option("[name=price]", "own")
    expect(shown["owning"]).to_be_visible()
    page.fill("[name=model]", "black-forest-labs/FLUX.1-dev")
    expect(shown["resolution"]).to_be_visible()
    expect(page.locator("[name=in]")).to_be_hidden()
    page = visit().open("/kernel")
    page.select_option("[name=op]", "attention")
    expect(page.locator("[name=heads]")).to_be_attached()
    expect(page.locator("[name=m]")).to_be_hidden()
    assert not page.locator("[name=heads]").evaluate("e => e.closest('.field').hidden")


def test_a_chip_of_ones_own_is_pasted(visit: Open) -> None:
    on = visit()
    page = on.open("/fit?model=meta-llama/Llama-3.1-8B&chips=h100-sxm5-80gb")
    page.click("text=More options")
    page.fill("[name=own_chips]", CHIP)
    assert page.input_value("[name=chips]") == "h100-sxm5-80gb,acme-a1"
    page.click("#ask button[type=submit]")
    expect(page.locator("#result table").first).to_contain_text("acme-a1")
    page.fill("[name=own_chips]", "[acme-a1]\nname = 3")
    page.click("#ask button[type=submit]")
    expect(page.locator("#result .problem")).to_contain_text("vendor")
    expect(page.locator("[name=own_chips]")).to_have_attribute("aria-invalid", "true")
    on.wrong = [line for line in on.wrong if "422" not in line]  # the refusal


GPU = """Object.defineProperty(navigator, 'gpu', {configurable: true, value: %s});"""


@pytest.mark.parametrize(
    ("gpu", "told", "filled"),
    [
        ("undefined", "no WebGPU", "rtx-3090"),
        ("{requestAdapter: async () => null}", "finds no GPU", "rtx-3090"),
        (
            "{requestAdapter: async () => ({info: {vendor: 'nvidia', description: 'NVIDIA GeForce RTX 4090'},"
            " limits: {maxBufferSize: 4294967296}})}",
            "rtx-4090",
            "rtx-4090",
        ),
        (
            "{requestAdapter: async () => ({info: {vendor: 'acme', description: 'Acme Graphics 9'}, limits: {}})}",
            "names no chip",
            "rtx-3090",
        ),
    ],
)
def test_the_desk_asks_the_browser_for_its_gpu(visit: Open, gpu: str, told: str, filled: str) -> None:
    on = visit()
    on.page.add_init_script(GPU % gpu)
    page = on.open("/local?have=rtx-3090&models=Qwen/Qwen3-8B")
    page.click("[data-device]")
    expect(page.locator(".device [role=status]")).to_contain_text(told)
    assert page.input_value("[name=have]") == filled
    on.wrong = [line for line in on.wrong if "422" not in line]  # a name that the catalogue does not know


def test_statements_are_a_page_with_what_shows_them(visit: Open) -> None:
    page = visit().open("/check_statement")
    assert page.locator(".statement").count() > 10
    first = page.locator(".statement").first
    assert first.locator(".badges li").count() == 2
    first.locator("h2 a").click()
    page.wait_for_selector("#result .statement table")
    expect(page.locator("#result .statement")).to_have_count(1)
    expect(page.locator(".statement pre").first).to_contain_text("chipwise ")


@pytest.mark.parametrize(
    "verb",
    [
        v.verb
        for v in VIEWS.values()
        if v.tab and v.group != CATALOGUE and v.verb not in ("evidence", "check_statement")
    ],
)
def test_every_tab_begins_with_how_sure_it_is(site: str, verb: str) -> None:
    text = httpx.get(
        f"{site}/{verb}?{'&'.join(f'{n}={quote(v)}' for n, v in VIEWS[verb].example.items())}", timeout=60
    ).text
    headline = text[text.index('class="headline') : text.index('class="exports"')]
    assert '<ul class="badges"' in headline
    assert headline.count('<li class="basis') >= 1


def test_a_comparison_begins_with_the_first_plan(site: str) -> None:
    text = httpx.get(f"{site}/compare", params=VIEWS["compare"].example, timeout=60).text
    headline = text[text.index('class="headline') : text.index('class="exports"')]
    (title,) = re.findall(r'<h2 id="lead">(.*?)</h2>', headline, re.DOTALL)
    assert "×" in title
    assert len(re.sub(r"<[^>]+>", "", title)) < 80
    assert '<ul class="verdict"' in headline


def test_a_generated_answer_says_each_sentence_once(visit: Open) -> None:
    page = visit().open("/plan?model=wan2.2-t2v-a14b&rate=10/h&chips=h100-sxm5-80gb,l40s")
    head = page.locator("#result .headline")
    said = [line for line in head.inner_text().splitlines() if line]
    assert len(said) == len(set(said))
    sentence = head.locator("h2.sentence").inner_text()
    assert sentence.startswith("Rent")
    assert head.inner_text().count(sentence) == 1
    assert "It delivers" in head.locator(".verdict").inner_text()
    slide = page.locator("[data-slide=rate]")
    assert slide.get_attribute("aria-valuetext") == "10/h"
    assert "unset" not in (slide.get_attribute("class") or ""), "the load is read, whatever its unit"


def test_a_link_shows_the_page_before_its_answer_and_a_pinned_plan_says_what_changed(visit: Open) -> None:
    on = visit()
    path = "/plan?model=meta-llama/Llama-3.1-8B&rate=5/s&chips=h100-sxm5-80gb,l40s&evidence=none"
    navigating = {"sec-fetch-mode": "navigate"}
    shell = httpx.get(f"{on.site}{path}", headers=navigating, timeout=60).text
    assert "The answer is on its way" in shell
    assert 'value="5/s"' in shell
    assert (
        "data-pin"
        in httpx.get(f"{on.site}{path}&at-once=true", headers={"sec-fetch-mode": "navigate"}, timeout=60).text
    )
    page = on.open(path)
    assert page.evaluate("history.length") == 2, "the answer of a link is no page of its own"
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.locator(".since")).to_contain_text("nothing has changed")
    page.evaluate(
        'localStorage.setItem(\'kept\', localStorage.getItem(\'kept\').replace(/"\\$\\/h":"[^"]*"/, \'"$/h":"99"\'))'
    )
    on.open(path)
    expect(page.locator(".since")).to_contain_text("$/h 99 →")
    page.evaluate(
        """localStorage.setItem('kept', localStorage.getItem('kept')
        .replace('"figures":{', '"figures":{"gone":"7",'))"""
    )
    on.open(path)
    expect(page.locator(".since")).to_contain_text("gone 7 → unknown")
    assert page.locator("#kept a").all_inner_texts()[1].startswith("Plan: ")
    assert page.locator("#kept small").all_inner_texts()[1].startswith("Llama-3.1-8B, 5/s")
    on.open("/train?model=meta-llama/Llama-3.1-8B&tokens=1B&chips=h100&counts=8")
    assert any("Tokens 1B" in text for text in page.locator("#kept small").all_inner_texts()), "other questions too"
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.locator(".since")).to_contain_text("nothing has changed")
    fill = page.locator("[data-fill]")
    if fill.count():
        asked = json.loads(fill.first.get_attribute("data-fill") or "")
        fill.first.click()
        on.settle()
        for name, value in asked.items():
            assert urlencode({name: value}) in page.url


def test_a_long_table_is_folded(site: str) -> None:
    text = httpx.get(f"{site}/frontier", params=VIEWS["frontier"].example, timeout=60).text
    (count,) = re.findall(r"<summary>(\d+) more lines</summary>", text)
    folded = text[text.index(" more lines</summary>") :]
    assert folded[: folded.index("</details>")].count("<tr") == int(count) + 1


def test_a_training_answer_is_one_screen_with_curves_below(visit: Open) -> None:
    on = visit()
    on.page.set_viewport_size({"width": 1440, "height": 900})
    page = on.open("/train")
    end = "e => e.getBoundingClientRect().bottom + scrollY"
    ends = page.locator("section[aria-label='Plans for training'] table").evaluate(end)
    assert ends < 900
    assert page.locator(".charts").evaluate("e => e.getBoundingClientRect().top + scrollY") > ends


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_nothing_is_cut_and_every_tab_is_reachable(visit: Open, width: int) -> None:
    on = visit()
    on.page.set_viewport_size({"width": width, "height": 900})
    page = on.open(PLAN)
    cut = "all => all.filter(t => t.scrollWidth > t.parentElement.clientWidth + 1).length"
    assert page.eval_on_selector_all(".scroll > table", cut) == 0
    assert page.locator("#ask button[type=submit]").is_visible() == (width > 980), "a link shows its answer first"
    assert page.locator("table.plans.cards").count() == (width < 600), "cards are for phones"
    ends = page.eval_on_selector_all("nav a", "all => all.map(a => a.getBoundingClientRect().right)")
    assert len(ends) >= 8
    assert max(ends) <= width


def test_a_plan_is_launched_from_the_page(visit: Open, site: str) -> None:
    page = visit().open("/explain?model=meta-llama/Llama-3.1-8B&chip=h100-sxm5-80gb")
    page.wait_for_selector(".launch pre")
    assert "vllm serve meta-llama/Llama-3.1-8B" in page.inner_text(".launch pre")
    address = page.get_attribute(".launch a[download]", "href")
    answer = httpx.get(f"{site}{address}")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.namelist() == ["chipwise-vllm/serve.sh", "chipwise-vllm/verify.sh"]
        assert archive.infolist()[0].external_attr >> 16 & 0o100
    page.click(".launch >> text=kubernetes")
    page.wait_for_selector(".launch summary:has-text('deployment.yaml')")


def test_a_config_is_pasted(visit: Open) -> None:
    page = visit().open("/fit?model=meta-llama/Llama-3.1-8B&chips=h100-sxm5-80gb")
    page.click("text=Your own config.json, GGUF or ONNX file")
    page.fill("textarea[data-into=model]", "no config")
    expect(page.locator(".paste [role=status]")).to_contain_text("not the JSON")
    page.fill("textarea[data-into=model]", json.dumps(CONFIG))
    page.click("#ask button[type=submit]")
    expect(page.locator("#result .headline")).to_contain_text("llama as given")


def gguf(pairs: dict[str, int | str], *, version: int = 3, parts: int = 1, keys: int = 0, rest: bytes = b"") -> bytes:
    """A GGUF file with these keys, a vocabulary of 1000, a tensor and `rest`; `keys`: the count that it states."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    said = [
        text(key) + (struct.pack("<I", 8) + text(v) if isinstance(v, str) else struct.pack("<II", 4, v))
        for key, v in pairs.items()
    ]
    said += [text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 1000) + text("ab") * 1000]
    said += [text("split.count") + struct.pack("<IH", 2, parts)]
    tensor = text("token_embd.weight") + struct.pack("<IQQIQ", 2, 2048, 1000, 0, 0)
    head = struct.pack("<IQQ", version, 1, keys or len(said))
    return b"GGUF" + head + b"".join(said) + tensor + rest


def test_a_header_of_weights_is_read_where_it_lies(visit: Open, tmp_path: Path) -> None:
    """Of a GGUF file the keys of its header are asked about, and nothing of it but these leaves the browser."""
    numbers = {"embedding_length": 2048, "block_count": 16, "attention.head_count": 32}
    numbers |= {"attention.head_count_kv": 8, "feed_forward_length": 8192, "context_length": 8192}
    pairs = {"general.architecture": "llama"} | {f"llama.{key}": value for key, value in numbers.items()}
    on = visit()
    page = on.open("/fit?model=meta-llama/Llama-3.1-8B&chips=h100-sxm5-80gb")
    page.click("text=Your own config.json, GGUF or ONNX file")
    said = page.locator(".paste [role=status]")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(unquote_plus(request.url + (request.post_data or ""))))

    def choose(data: bytes) -> None:
        file = tmp_path / "own.gguf"
        file.write_bytes(data)
        page.set_input_files(".paste input[type=file]", file)

    choose(gguf(pairs | {"llama.secret": 7, "other.secret": "kept here"}, rest=b"SECRET" * 200_000))
    expect(said).to_contain_text("llama, 16 layers of 2048 loaded")
    expect(page.locator("#result .headline")).to_contain_text("975 M parameters")
    expect(page.locator(".own b")).to_have_text("llama, 16 layers of 2048")
    expect(page.locator("#f-model")).to_be_hidden()
    assert any("llama.block_count" in address for address in sent)
    assert all("secret" not in address.lower() and len(address) < 2000 for address in sent)
    assert '"tie_word_embeddings":true' in page.input_value("textarea[data-into=model]")

    choose(gguf(pairs, parts=2))
    expect(page.locator("textarea[data-into=model]")).not_to_have_value(re.compile("tie_word_embeddings"))
    expect(said).to_contain_text("loaded")
    asked = json.loads(page.input_value("textarea[data-into=model]"))
    assert "tie_word_embeddings" not in asked
    assert set(asked) == {*pairs, "tokenizer.ggml.tokens"}

    on.settle()
    sent.clear()
    key = struct.pack("<Q", 1) + b"k"
    arrays = key + struct.pack("<IIQ", 9, 4, 2**40)
    for data, what in (
        (gguf(pairs, version=7), "GGUF version 7 is not read: 2 or 3"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 0), "names no general.architecture"),
        (gguf(pairs)[:200], "cut off or damaged"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + key + struct.pack("<IQ", 77, 1), "cut off or damaged"),
        (gguf(pairs, keys=2_500_000, rest=bytes(4_000_000)), "cut off or damaged"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + arrays + bytes(1000), "cut off or damaged"),
    ):
        page.fill("textarea[data-into=model]", "before")
        expect(said).to_contain_text("not the JSON")
        choose(data)
        expect(said).to_contain_text(what)
        assert page.input_value("textarea[data-into=model]") == "before"
    assert sent == []
    page.get_by_role("button", name="Remove").click()
    expect(page.locator("#f-model")).to_be_visible()
    assert page.input_value("#f-model") == ""


def field(number: int, value: int | bytes) -> bytes:
    """A field of a message of protobuf whose numbers are small."""

    def integer(n: int) -> bytes:
        return bytes([n]) if n < 128 else bytes([n % 128 + 128]) + integer(n // 128)

    if isinstance(value, int):
        return integer(8 * number) + integer(value)
    return integer(8 * number + 2) + integer(len(value)) + value


def onnx(*, shaped: bool) -> bytes:
    """A convolution of 16 filters of 3 x 3 x 3 over 224 x 224, and its result with sizes or without."""

    def value(name: bytes, sizes: tuple[int, ...]) -> bytes:
        dims = b"".join(field(1, field(1, n) if n else field(2, b"batch")) for n in sizes)
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))

    node = field(1, b"x") + field(1, b"w") + field(2, b"y") + field(4, b"Conv")
    weight = field(1, 16) + field(1, 3) + field(1, 3) + field(1, 3) + field(2, 1) + field(8, b"w")
    weight += field(9, b"SECRET" * 288)
    graph = field(1, node) + field(5, weight) + field(11, value(b"x", (0, 3, 224, 224)))
    if shaped:
        graph += field(12, value(b"y", (0, 16, 224, 224)))
    return field(1, 10) + field(7, graph)


def test_an_onnx_file_is_dropped_anywhere_and_asked_about(visit: Open) -> None:
    """Its totals are asked about; its weights stay in the browser."""
    on = visit()
    page = on.open("/plan?model=sdxl&chips=rtx-4090")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(unquote_plus(request.url + (request.post_data or ""))))
    drop = """([name, bytes]) => {
      const given = new DataTransfer();
      given.items.add(new File([new Uint8Array(bytes)], name));
      const said = {dataTransfer: given, bubbles: true, cancelable: true};
      document.querySelector('#answer').dispatchEvent(new DragEvent('drop', said));
    }"""
    page.evaluate(drop, ["own.onnx", list(onnx(shaped=False))])
    expect(page.locator(".paste [role=status]")).to_contain_text("does not state the shapes of its Conv")
    page.evaluate(drop, ["own.onnx", list(onnx(shaped=True))])
    asked = f"macs:params=432,gmacs={432 * 224 * 224 / 1e9:.6g},macts=0.802816M,style=conv"
    expect(page.locator("#f-model")).to_have_value(asked)
    on.settle()
    expect(page.locator("#result .headline")).to_contain_text("432 parameters")
    assert sent
    assert all("SECRET" not in address and len(address) < 2000 for address in sent)
    page.evaluate(drop, ["own.onnx", [7, 7, 7, 7]])
    expect(page.locator(".paste [role=status]")).to_contain_text("cut off or damaged")
    assert on.wrong == []


def test_the_first_page_offers_questions(visit: Open) -> None:
    on = visit()
    page = on.open("/")
    assert on.faults() == []
    links = page.locator(".starts a")
    assert links.count() == len(STARTS)
    for start in STARTS:
        assert start["verb"] in VIEWS
        read_request(start["verb"], dict(start["ask"]))
    links.last.click()
    expect(page.locator("#result")).to_contain_text("A 70B model cannot run on RTX 4090s")


def test_a_short_screen_shows_the_first_plans_and_the_others_on_request(visit: Open) -> None:
    on = visit()
    on.page.set_viewport_size({"width": 390, "height": 900})
    page = on.open("/plan?model=meta-llama/Llama-3.1-8B&rate=5/s&evidence=none")
    shown = "all => all.filter(row => row.getClientRects().length).length"
    rows = page.locator("table.plans").first.locator("tbody tr")
    assert rows.evaluate_all(shown) == 5
    page.get_by_role("button", name="Show 7 more").click()
    assert rows.evaluate_all(shown) == 12
    assert on.too_wide() <= 0


@pytest.mark.parametrize(
    ("asked", "field", "value", "said", "charts", "tool", "started"),
    [
        pytest.param(
            "/plan?model=meta-llama/Llama-3.1-8B&rate=5/s",
            "rate",
            "6/s",
            "It serves 6 requests/s",
            ("cost-against-speed", "frontier", "roofline", "tornado", "load-ttft"),
            "vllm",
            "vllm serve",
            id="serving",
        ),
        pytest.param(
            "/train?model=meta-llama/Llama-3.1-8B&chips=h100-sxm5-80gb&tokens=1T&counts=64,128&curves=true",
            "counts",
            "64,256",
            "256x h100-sxm5-80gb",
            ("turnaround", "step", "scaling-weak"),
            "torchrun",
            "torchrun",
            id="training",
        ),
        pytest.param(
            "/plan?model=Wan-AI/Wan2.2-T2V-A14B&chips=h100-sxm5-80gb",
            "frames",
            "49",
            "frames 49",
            ("timeline",),
            "",
            "",
            id="video",
        ),
        pytest.param(
            "/local?have=rtx-3090", "have", "rtx-4090", "rtx-4090", (), "llama.cpp", "llama-server", id="desk"
        ),
    ],
)
def test_an_answer_is_sent_as_one_page(
    visit: Open,
    tmp_path: Path,
    asked: str,
    field: str,
    value: str,
    said: str,
    charts: tuple[str, ...],
    tool: str,
    started: str,
) -> None:
    """Asked in the form, sent as a file, opened elsewhere, printed, launched and made again from what it holds."""
    asking = visit().open(asked)
    if not asking.is_visible(f"[name={field}]"):
        asking.click("text=More options")
    asking.fill(f"[name={field}]", value)
    asking.click("#ask button[type=submit]")
    verdict = "#result > .headline:not(.glance)"
    expect(asking.locator(verdict).first).to_contain_text(said, timeout=30_000)
    with asking.expect_download(timeout=60_000) as download:
        asking.click(f"{verdict} >> text=Report")
    file = tmp_path / "report.html"
    download.value.save_as(file)
    on = visit()
    opened: list[str] = []
    on.page.on("request", lambda r: opened.append(r.url))
    on.page.goto(file.as_uri())
    for name in charts:
        on.page.wait_for_selector(f"[data-chart={name}][data-drawn=true]")
    on.settle()
    expect(on.page.locator(".headline").first).to_contain_text(said)
    assert opened == [file.as_uri()]
    assert not on.page.query_selector_all("a[href^='/'], [hx-get]")
    assert len(re.findall(rb"/Type\s*/Page\b", on.page.pdf(format="A4"))) <= 3
    assert replay(str(file)).identical
    if tool:
        assert any(started in f.text for f in launch(str(file), tool))
    else:
        with pytest.raises(UsageError, match="generates no tokens"):
            launch(str(file), "vllm")


def test_a_chip_sheet_says_who_says_so(visit: Open) -> None:
    page = visit().open("/chips?chips=mi300x")
    assert page.inner_text("#result h2") == "Instinct MI300X"
    row = page.locator(".figures tr", has_text="memory bandwidth").first
    expect(row).to_contain_text("5,300 GB/s")
    number = row.locator("sup a").first.inner_text()
    assert page.locator(f"#source-{number}").inner_text()


def test_a_rectangle_marks_the_plans_in_it(visit: Open) -> None:
    page = visit().open(PLAN)
    chart = page.locator("[data-chart=cost-against-speed] svg")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.12, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.98, box["y"] + box["height"] * 0.8, steps=4)
    page.mouse.up()
    assert page.locator("tr.brushed").count() >= 2


def test_curves_are_zoomed_picked_and_pinned(visit: Open) -> None:
    page = visit().open("/frontier")
    figure = page.locator("[data-chart=frontier]")
    figure.scroll_into_view_if_needed()
    ends = "e => [...e.querySelectorAll('.role-axis-label text')].map(t => t.textContent + t.getAttribute('transform'))"
    whole, dots = figure.evaluate(ends), figure.locator(".dots_marks path")
    many = dots.count()
    box = figure.locator("svg").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.wheel(0, 40)
    page.wait_for_timeout(200)
    assert figure.evaluate(ends) == whole, "the wheel moves the page until the picture was clicked"
    dots.nth(many - 1).click()
    pinned = figure.locator(".mark-text text:has(tspan)")
    expect(pinned).to_have_count(1)
    expect(pinned).to_contain_text("tokens/s per user")
    page.mouse.wheel(0, -100)
    page.wait_for_timeout(200)
    assert figure.evaluate(ends) != whole
    figure.locator(".role-legend-symbol path").nth(1).click()
    page.wait_for_timeout(200)
    assert 0 < dots.count() < many


def test_plans_are_sorted_by_a_figure(visit: Open) -> None:
    page = visit().open(PLAN)
    heading = page.locator(".plans th", has_text="TPOT").first
    for order, turned in (("ascending", False), ("descending", True)):
        heading.locator("button").click()
        expect(heading).to_have_attribute("aria-sort", order)
        cells = page.eval_on_selector_all("tr[data-rank]", "all => all.map(r => Number(r.cells[5].dataset.value))")
        assert len(cells) >= 2
        assert cells == sorted(cells, reverse=turned)


def test_charts_and_tables_are_saved(visit: Open, tmp_path: Path) -> None:
    page = visit().open(PLAN)
    for kind, begin in (("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<!doctype html>")):
        with page.expect_download() as download:
            page.click("[data-chart=cost-against-speed] .save summary")
            page.click(f"[data-chart=cost-against-speed] [data-export={kind}]")
        expect(page.locator("details.save[open]")).to_have_count(0)
        assert download.value.suggested_filename == f"chipwise-cost-against-speed.{kind}"
        file = tmp_path / kind
        download.value.save_as(file)
        assert file.read_bytes().startswith(begin)
        assert file.stat().st_size > 3000
        if kind != "png":  # a picture says what it is, what was asked, when and of whom
            text = file.read_text("utf-8")
            assert "Cost against speed" in text
            assert "model meta-llama/Llama-3.1-8B, " in text
            assert ", rate 5/s" in text
            assert re.search(r"answered \d{4}-\d\d-\d\d · chipwise \d", text)
    links = dict(
        page.eval_on_selector_all("#result > .headline .exports a", "all => all.map(a => [a.textContent, a.href])")
    )
    record = httpx.get(links["JSON"]).json()
    rows = list(csv.DictReader(io.StringIO(httpx.get(links["CSV"]).text)))
    shown = page.locator("tr[data-rank]").count()
    assert len(record["plans"]) == len(rows) == shown
    assert httpx.get(links["Link"], headers={"Accept": "application/json"}).json() == record


def test_what_moves_can_be_stopped(visit: Open) -> None:
    still = visit(reduced_motion="reduce").open("/kernel")
    assert still.locator("[data-flow]").count() == 2
    assert still.locator("[data-play]").all_inner_texts() == ["Play", "Play"]
    moving = visit(reduced_motion="no-preference").open("/kernel")
    slider, button = moving.locator("[data-flow] input").first, moving.locator("[data-play]").first
    before = slider.input_value()
    expect(slider).not_to_have_value(before)
    button.click()
    expect(button).to_have_text("Play")
    held = slider.input_value()
    moving.wait_for_timeout(120)
    assert slider.input_value() == held
    slider.focus()
    slider.press("End")
    told = moving.inner_text("[data-flow] .phase")
    record = httpx.get(moving.url.replace("/kernel", "/kernel.json")).json()
    mapping = record["kernels"][0]["mapping"]
    with moving.expect_download() as download:
        moving.locator("[data-flow] [data-export=png]").first.click()
    assert download.value.suggested_filename.endswith(".png")
    assert f"{mapping['tiles']:,.0f} tiles in {mapping['waves']:.2f} waves" in told


def test_long_work_is_shown_and_cancelled(visit: Open) -> None:
    on = visit()
    page = on.open(PLAN)
    before = page.inner_text("#result h2")
    page.route("**/plan?*", lambda route: None)  # an answer that does not come
    page.fill("[name=rate]", "7/s")
    page.click("#ask button[type=submit]")
    expect(page.locator("#busy")).to_be_visible()
    expect(page.locator("#busy .elapsed")).to_contain_text("working")
    page.click("#busy [data-cancel]")
    expect(page.locator("#busy")).to_be_hidden()
    expect(page.locator("#status")).to_have_text("cancelled")
    assert page.inner_text("#result h2") == before


def test_the_keyboard_reaches_everything(visit: Open) -> None:
    page = visit().open(PLAN)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the answer"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "answer"
    page.focus("#theme")
    page.keyboard.press("Enter")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def shown(page: Any) -> None:
    """Without scripts the answer is behind a link of the page that is shown first."""
    page.goto(f"{page.url}&at-once=true")


def test_tables_and_forms_work_without_scripts(visit: Open, site: str) -> None:
    page = visit(java_script_enabled=False).page
    page.goto(f"{site}{PLAN}")
    shown(page)
    assert page.locator("tr[data-rank]").count() >= 2
    page.fill("[name=rate]", "9/s")
    page.click("#ask button[type=submit]")
    assert "rate=9%2Fs" in page.url
    shown(page)
    assert page.locator("tr[data-rank]").count() >= 2
    page.click("tr[data-rank='1'] a.pick")
    shown(page)
    assert page.locator("#result caption").first.inner_text()


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("model=meta-llama/Llama-3.1-70C", "unknown model"),
        ("model=meta-llama/Llama-3.1-8B&rate=fast", "cannot read"),
        ("model=meta-llama/Llama-3.1-70B&chips=l4&rate=10/s&ttft=1us", "out of reach"),
        ("model=<script>alert(1)</script>", "&lt;script&gt;"),
        ("model=/etc/passwd", "files are not read here"),
    ],
)
def test_what_is_wrong_is_said_on_the_page(site: str, query: str, told: str) -> None:
    answer = httpx.get(f"{site}/plan?{query}")
    assert answer.status_code == 422
    assert told in answer.text
    assert "<script>alert" not in answer.text


def test_training_is_led_to_its_page(site: str) -> None:
    asked = {"model": "meta-llama/Llama-3.1-8B", "task": "train", "tokens": "1T"}
    answer = httpx.get(f"{site}/plan", params=asked)
    assert answer.status_code == 307
    assert answer.headers["location"] == f"/train?{urlencode(sorted(asked.items()))}"


def test_a_page_names_fields_and_no_options(site: str) -> None:
    text = httpx.get(f"{site}/plan", params=VIEWS["plan"].example, timeout=60).text
    verdict = text[text.index('id="verdict"') : text.index("</ul>", text.index('id="verdict"'))]
    cheaper = text[text.index("What would make it cheaper") : text.index("About the first plan")]
    assert "Utilisation 70%" in verdict
    assert "--" not in verdict + re.sub(r"<[^>]+>", "", cheaper)


def test_a_network_shows_its_ranking_and_bars(site: str) -> None:
    text = httpx.get(f"{site}/plan", params={"model": "sdxl", "rate": "2/s"}, timeout=120).text
    assert text.count('data-chart="first-') == 3
    assert text.index(">1</td>") < text.index("more lines</summary>")


def test_a_machine_shows_models_and_commands_that_start_them(site: str) -> None:
    text = httpx.get(f"{site}/local", params={**VIEWS["local"].example}, timeout=60).text
    assert "all on it" not in text
    assert text.count("data-copy") == 3
    assert "llama-server -hf " in text


def test_a_refusal_is_a_page_too() -> None:
    class Busy:
        async def run(self, *_: Any) -> None:
            raise RefusedError(429, Problem("busy", "too many questions at once", "ask again soon"), 2)

    app = Starlette(routes=routes())
    app.state.jobs = Busy()
    answer = TestClient(app).get(PLAN)
    assert answer.status_code == 429
    assert "too many questions at once" in answer.text
    assert 'id="ask"' in answer.text


@pytest.mark.parametrize("verb", VIEWS)
def test_pages_hold_no_script_or_style_of_their_own(site: str, verb: str) -> None:
    text = httpx.get(f"{site}/{verb}").text
    assert text.count("<script") == text.count("<script src=")
    assert "<style" not in text
    assert " style=" not in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text


@pytest.mark.parametrize("verb", VIEWS)
def test_every_option_is_in_the_form(site: str, verb: str) -> None:
    text = httpx.get(f"{site}/{verb}").text
    found = controls(VERBS[verb], {})
    assert found
    for name in found:
        assert f'name="{name}"' in text


FLEET = '{"demand":[{"model":"meta-llama/Llama-3.1-8B","rate":"10/s"}],"supply":[{"chip":"h100","count":8}]}'


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_its_twin(site: str, verb: str) -> None:
    record = '{"question":{"verb":"estimate","request":{"model":"meta-llama/Llama-3.1-8B","chip":"l4"}}}'
    examples = {
        "estimate": "?model=meta-llama/Llama-3.1-8B&chip=l4",
        "simulate": "?model=meta-llama/Llama-3.1-8B&chip=l4&rate=1/s&requests=20",
        "rl": "?model=Qwen/Qwen3-8B&chips=h100&counts=16&out=4000",
        "fleet": f"?fleet={quote(FLEET)}",
        "launch": f"?for=vllm&saved={quote(record)}",
        "replay": f"?saved={quote(record[:-1])},%22plans%22:[]}}",
        "diff": f"?before={quote(record)}&after={quote(record)}",
    }
    answer = httpx.get(f"{site}/{verb}.json{examples.get(verb, '')}", timeout=30)
    assert answer.status_code == 200, answer.text
    assert json.loads(answer.text)["schema_version"]


def test_an_error_marks_its_field_and_offers_what_was_meant(site: str) -> None:
    page = httpx.get(f"{site}/plan?model=meta-llama/Llama-3.1-8B&tpot=40", timeout=60)
    assert page.status_code == 422
    (field,) = re.findall(r'<input id="f-tpot"[^>]*>', page.text)
    assert 'aria-invalid="true"' in field
    assert page.text.count("aria-invalid") == 1
    assert "tpot 40: 40ms or 40s?" in page.text
    assert re.findall(r'data-instead="(\w+)"', page.text) == ["40ms", "40s"]


def test_pages_stand_in_the_groups_of_the_help() -> None:
    assert set(NAVIGATION) <= set(GROUPS)
    assert all(NAVIGATION.values())
    assert sum(map(len, NAVIGATION.values())) == sum(bool(v.tab) for v in VIEWS.values())
