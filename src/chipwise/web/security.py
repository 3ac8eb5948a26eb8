"""Who may ask this server, and what browsers are told about its pages.

A server on the loopback address is reachable by every page that a browser on the machine shows: a foreign page
can send requests there, and with a name that is first bound to its own address and then to 127.0.0.1 it can
read the answers (DNS rebinding). So requests are taken only under names that are this machine's, and from pages
that are this server's. Beyond the loopback address a token is asked for as well.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from asyncio import sleep
from dataclasses import field
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request, cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chipwise.api.requests.doors import Problem
from chipwise.listening import origin_host
from chipwise.values import dataclass
from chipwise.web.problems import problem_response

COOKIE = "chipwise_token"
FOREIGN = "chipwise.foreign"
"""What a scope says of a request that a page of another site led to: it may be shown a form, and starts no work."""
OPEN = frozenset(("/healthz",))

CSP = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""What pages may load: this server's files; no script or style inside a page, no eval, no frame around it."""

HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


def loopback(host: str) -> bool:
    """Whether an address to bind to is reachable from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Access:
    """Under which names, and with which token, a server that listens on `host` may be asked ("" = none). Who sends a
    wrong token waits `wrong_s` seconds to hear so."""

    host: str = "127.0.0.1"
    token: str = ""
    names: frozenset[str] = field(default=frozenset())
    wrong_s: float = 1.0

    def knows(self, host: str) -> bool:
        """Whether a Host header names this server.

        Rebinding needs a name: on an open address all numeric ones are taken. On loopback only loopback is.
        """
        name = _name_of(host)
        if name is None:
            return False
        if name in self.names or loopback(name):
            return True
        if loopback(self.host):
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in (self.host.lower(), socket.gethostname().lower(), socket.getfqdn().lower())
        return True

    def opens(self, given: str) -> bool:
        """Whether a token is the right one, in time that does not depend on how much of it is."""
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode())


class Guard:
    """Middleware: Host, Origin, fetch site, token, length of the address; headers on every answer."""

    def __init__(self, app: ASGIApp, access: Access, target_bytes: int) -> None:
        self.app = app
        self.access = access
        self.target_bytes = target_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no websockets here
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None and refusal.status_code == 401 and _guessed(scope):
            await sleep(self.access.wrong_s)
        await (refusal or self.app)(scope, receive, marked)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > self.target_bytes:
            return problem_response(414, Problem("unusable-value", "the address is too long"))
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.access.knows(hosts[0]):
            hint = "ask under the name that the server was started with"
            return problem_response(421, Problem("refused", "this server is not known by that name", hint))
        origins = headers.getlist("origin")
        if any(origin_host(origin) != hosts[0].lower() for origin in origins):
            return problem_response(403, Problem("refused", "requests from other sites are not taken"))
        site, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode", "navigate")
        linked = mode == "navigate" and scope["method"] in ("GET", "HEAD")
        foreign = site not in ("none", "same-origin")
        if foreign and not linked:
            return problem_response(403, Problem("refused", "requests from other sites are not taken"))
        scope[FOREIGN] = foreign
        return self._token_refusal(scope, headers) if self.access.token else None

    def _token_refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if scope["path"] in OPEN:
            return None
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self.access.opens(bearer.strip()):
            return None
        if self.access.opens(cookie_parser(headers.get("cookie", "")).get(COOKIE, "")):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if scope["method"] == "GET" and any(n == "token" and self.access.opens(v) for n, v in query):
            return self._admit(scope, [(n, v) for n, v in query if n != "token"])
        hint = "send Authorization: Bearer TOKEN, or open the address that chipwise web printed"
        refusal = problem_response(401, Problem("refused", "this server asks for a token", hint))
        refusal.headers["www-authenticate"] = 'Bearer realm="chipwise"'
        return refusal

    def _admit(self, scope: Scope, query: list[tuple[str, str]]) -> Response:
        """The token of an address becomes a cookie, and leaves the address."""
        # two slashes at the beginning would name another host
        path = "/" + Request(scope).url.path.lstrip("/\\")
        answer = RedirectResponse(f"{path}?{urlencode(query)}" if query else path, 303)
        secure = scope.get("scheme") == "https"
        answer.set_cookie(COOKIE, self.access.token, httponly=True, samesite="strict", secure=secure)
        return answer


def _guessed(scope: Scope) -> bool:
    """Whether a request says any token."""
    headers = Headers(scope=scope)
    return "authorization" in headers or COOKIE in headers.get("cookie", "") or b"token=" in scope["query_string"]


def _name_of(host: str) -> str | None:
    """The name in a Host header without its port, in lower case; None for what is none."""
    try:
        parts = urlsplit(f"//{host}")
        name, _ = parts.hostname, parts.port
    except ValueError:
        return None
    plain = parts.netloc == host and "@" not in host and not parts.path
    return name.rstrip(".") if name and plain else None
