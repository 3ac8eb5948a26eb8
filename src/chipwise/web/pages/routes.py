"""The addresses of the pages: GET /, GET /<verb> with the fields as query, .csv beside it, and .json of every verb."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from chipwise.api.requests.doors import problem_of, read_request
from chipwise.api.requests.kinds import FORMER, TRAINED
from chipwise.api.requests.kinds import Request as Question
from chipwise.api.requests.verbs import VERBS
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.configs import bundled_configs
from chipwise.errors import ChipwiseError
from chipwise.report.launch.spec import LaunchReport
from chipwise.report.table import render
from chipwise.values import dataclass
from chipwise.web.api import ask, run, soon, written
from chipwise.web.limits import RefusedError
from chipwise.web.openapi import operations
from chipwise.web.pages.form import STARTS, controls, groups
from chipwise.web.pages.render import STATIC, environment
from chipwise.web.pages.sheet import Sheet
from chipwise.web.security import FOREIGN
from chipwise.web.views import NAVIGATION, VIEWS, View
from chipwise.web.views.view import given, link, named, query_of
from chipwise.workload import media

GLANCE = "chipwise-glance"
"""Header of a question whose form is still moving: the chips that are on the screen."""
ANSWER, CHEAPER = "section#result", "div#cheaper"
"""What an answer goes into, as htmx says it: the place of the whole answer, and that of what is read last."""
AT_ONCE = "at-once"
"""Field of an address whose page comes with its answer: for browsers that run no scripts."""
MOST = 3
"""Chips that a glance compares, and models that it tries on a machine."""
LEAST: Mapping[str, Any] = {"curves": False, "most": MOST}
"""Fields of questions that ask for much beside the plans, as a glance has them."""
Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Glance:
    """A question that answers itself without what stands beside the plans."""

    question: Question

    @classmethod
    def among(cls, question: Any, chips: Sequence[str]) -> Glance:
        """The question among some chips, where it names none itself or more plans than that."""
        given = {f.name: getattr(question, f.name) for f in fields(question)}
        changed: dict[str, Any] = {}
        named = question.values.get("chips") or ()
        many = not named or (question.ranking and len(named) > MOST)
        if chips and "chips" in given and many and not given.get("have"):
            changed["chips"] = ",".join(chips[:MOST])
        changed |= {name: least for name, least in LEAST.items() if name in given}
        return cls(replace(question, **changed))

    def answers(self) -> Generator[Any, None, Any]:
        """The answer. Raises the errors of the verb."""
        yield from ()
        return self.question.glance()


class _Static(StaticFiles):
    """Scripts and styles; a browser may keep them, and asks whether they have changed."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """A file."""
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "no-cache"
        return response


def routes() -> list[BaseRoute]:
    """All pages."""
    found: list[BaseRoute] = [Route("/", _page(VIEWS["plan"], home=True))]
    for name, verb in (*((verb, verb) for verb in VERBS), *FORMER.items()):
        if verb in VIEWS:
            found += [Route(f"/{name}", _page(VIEWS[verb])), Route(f"/{name}.csv", _csv(VIEWS[verb]))]
            if VIEWS[verb].tab:
                found.append(Route(f"/{name}.html", _sheet(VIEWS[verb])))
        found.append(Route(f"/{name}.json", _json(verb)))
    found += [Route("/estimate", _detailed), Route("/launch.zip", _zipped), Route("/v1/docs", _docs)]
    return [*found, Mount("/static", _Static(directory=STATIC))]


def ready() -> None:
    """Compile the templates and list the names of a form, so that nobody who comes first waits for them."""
    _form(VIEWS["plan"], {}, home=True)
    for name in environment().list_templates(extensions=("html",)):
        environment().get_template(name)


def _headers(view: View, result: Mapping[str, Any], *, pushed: bool) -> dict[str, str]:
    """The headers of a page; one that is `pushed` becomes the address of its question."""
    address = {}
    if pushed and "request" in result:
        address = {"hx-push-url": f"/{view.verb}?{query_of(named(result['request']))}"}
    return {"vary": "HX-Request, Accept", **address}


def _form(view: View, values: Mapping[str, Any], *, home: bool) -> dict[str, Any]:
    """The form of a page, with the names that its fields offer; on the first page, questions to begin with."""
    found = controls(view.request, values)
    return {
        "front": [found[name] for name in view.front if name in found],
        "groups": groups(view.request, found, view.front),
        "models": sorted(bundled_configs()),
        "generators": sorted({n for e in map(media.entry, media.names()) for n in e.called}),
        "chips": sorted(load_chips()),
        "starts": [(s["text"], link(s["verb"], s["ask"])) for s in STARTS if home],
    }


def _page(view: View, *, home: bool = False) -> Handler:
    async def handler(request: Request) -> Response:
        if "application/json" in request.headers.get("accept", ""):
            return await _json(view.verb)(request)
        asked = given(request.query_params.multi_items())
        if _trained(view, request, asked):
            return RedirectResponse(f"/train?{query_of(asked)}", 307)
        opened = _opened(request) and not asked.pop(AT_ONCE, "")
        whole, into = "hx-request" not in request.headers, request.headers.get("hx-target", "")
        # a browser shows the page first, without a question that of the example, and then fetches the answer
        first = whole and (opened or not asked)
        values = _filled(view, asked, whole=whole)
        # a link of another site fills in the form, and starts no work
        foreign = bool(request.scope.get(FOREIGN))
        among = request.headers.get(GLANCE)
        early = into.startswith(ANSWER)
        result = {} if first or foreign else await _result(view, request, asked, among, early=early)
        status = result.get("status", 200)
        context = {
            "view": view,
            "navigation": NAVIGATION,
            "current": view.verb,
            "asked": bool(asked),
            "home": home,
            "values": values,
            "query": query_of(values),
            "result": result,
            "pending": first and not foreign,
            "foreign": foreign,
            # below another answer it is a part of that, and shows its pictures
            "part": not whole and not into.startswith("section#"),
        }
        if whole:
            context |= _form(view, values, home=home)
        name = "page.html" if whole else _fragment(into, result)
        text = await run_in_threadpool(environment().get_template(name).render, context)
        pushed = among is None and early and not _there(request, asked)
        return HTMLResponse(text, status, _headers(view, result, pushed=pushed))

    return handler


def _fragment(into: str, result: Mapping[str, Any]) -> str:
    """The template of what goes into a place of a page."""
    return "answer/cheaper.html" if into == CHEAPER and "record" in result else "fragment.html"


def _trained(view: View, request: Request, asked: Mapping[str, str]) -> bool:
    """Whether an address asks `plan` about training, which `plan --task train` answers on the command line."""
    return view.verb == "plan" and asked.get("task") in TRAINED and "hx-request" not in request.headers


def _opened(request: Request) -> bool:
    """Whether a browser opens the address, rather than a script or a program."""
    return request.headers.get("sec-fetch-mode") == "navigate"


def _filled(view: View, asked: dict[str, str], *, whole: bool) -> dict[str, str]:
    return dict(view.example) if whole and not asked else asked


def _there(request: Request, asked: Mapping[str, str]) -> bool:
    """Whether the address of the page that asks is that of the question already."""
    query = urlsplit(request.headers.get("hx-current-url", "")).query
    return bool(query) and given(parse_qsl(query)) == asked


async def _result(
    view: View, request: Request, asked: dict[str, str], among: str | None, *, early: bool
) -> dict[str, Any]:
    """What the template of a view is filled with: the answer and what is drawn from it, or what is wrong. `among` chips
    it is a glance, None: the whole answer, where `early` as soon as it can be read."""
    whole = True
    try:
        question = await run_in_threadpool(read_request, view.verb, asked)
        if among is None and early:
            record, whole = await soon(request, question)
        elif among is None:
            record = await run(request, question)
        else:
            names = [get_chip(name).id for name in among.split(",") if name.strip()]
            record = await run(request, Glance.among(question, names))
    except ChipwiseError as error:
        return {"problem": problem_of(error), "status": 422}
    except RefusedError as refused:
        return {"problem": refused.problem, "status": refused.status}
    shown = await run_in_threadpool(view.filled, question, record)
    query = query_of(named(question))
    return {"request": question, "record": record, "query": query, "whole": whole, **shown}


def _json(verb: str) -> Handler:
    """The record of a question; without one, that of the example where there is a page with one."""

    async def handler(request: Request) -> Response:
        asked = given(request.query_params.multi_items())
        example = VIEWS[verb].example if verb in VIEWS else {}
        text = await written(request, verb, dict(asked or example))
        return Response(text, media_type="application/json")

    return handler


def _csv(view: View) -> Handler:
    async def handler(request: Request) -> Response:
        asked = given(request.query_params.multi_items()) or dict(view.example)
        record = await ask(request, view.verb, dict(asked))
        out = io.StringIO()
        render(view.rows(record), record, "csv", out)
        name = f'attachment; filename="chipwise-{view.verb}.csv"'
        return Response(out.getvalue(), media_type="text/csv", headers={"content-disposition": name})

    return handler


def _sheet(view: View) -> Handler:
    """The answer as a file to be sent."""

    async def handler(request: Request) -> Response:
        asked = given(request.query_params.multi_items()) or dict(view.example)
        try:
            question = await run_in_threadpool(read_request, view.verb, asked)
        except ChipwiseError as error:
            raise RefusedError(422, problem_of(error)) from None
        text = await run(request, Sheet(view.verb, question))
        name = f'attachment; filename="chipwise-{view.verb}.html"'
        return HTMLResponse(text, headers={"content-disposition": name})

    return handler


async def _detailed(request: Request) -> Response:
    """The page of one plan in full is that of `explain`."""
    return RedirectResponse(f"/explain?{request.url.query}", 307)


async def _zipped(request: Request) -> Response:
    """Launch files in one archive; scripts may be run."""
    report = cast(LaunchReport, await ask(request, "launch", dict(given(request.query_params.multi_items()))))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in report.files:
            info = zipfile.ZipInfo(f"chipwise-{report.tool}/{file.name}")
            info.external_attr = (0o755 if file.script else 0o644) << 16
            archive.writestr(info, file.text)
    name = f'attachment; filename="chipwise-{report.tool}.zip"'
    return Response(out.getvalue(), media_type="application/zip", headers={"content-disposition": name})


async def _docs(request: Request) -> Response:
    """The HTTP API in words."""
    template = environment().get_template("docs.html")
    return HTMLResponse(await run_in_threadpool(lambda: template.render(operations=operations())))
