"""Refusals as a page, for who opens an address in a browser."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from chipwise.web.pages.render import environment
from chipwise.web.views import VIEWS

Refusing = Callable[[Request, Exception], Awaitable[Response]]


def as_page(refusing: Refusing) -> Refusing:
    """The same refusal, shown as a page where HTML is asked for."""

    async def shown(request: Request, error: Exception) -> Response:
        answer = await refusing(request, error)
        asked = request.headers.get("accept", "").partition(",")[0].strip()
        if asked != "text/html" or request.method != "GET":
            return answer
        page = environment().get_template("refused.html").render(json.loads(bytes(answer.body)), views=VIEWS)
        kept = {name: value for name, value in answer.headers.items() if name in ("retry-after", "allow")}
        return HTMLResponse(page, answer.status_code, {"vary": "Accept", **kept})

    return shown
