"""web and mcp: chipwise for browsers and for agents."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

from cyclopts import Parameter

from chipwise.cli.options import whole
from chipwise.errors import MissingExtraError, UsageError

__all__ = ["mcp", "web"]

Port = Annotated[int, whole("the port; 0: any that is free")]


def web(
    *,
    port: Port = 8321,
    host: Annotated[str, Parameter(help="the address to listen on; beyond this machine a token is asked")] = (
        "127.0.0.1"
    ),
    token: Annotated[
        str | None, Parameter(help="what askers must show; default beyond this machine: a new one")
    ] = None,
    name: Annotated[
        str, Parameter(help="names under which a proxy shows this server, separated by commas")
    ] = "",
    no_open: Annotated[bool, Parameter(name="--no-open", help="do not open a browser")] = False,
) -> None:
    """Serve the page and the HTTP API: GET /, POST /v1/<verb>, GET /v1/docs."""
    serve = _face("web.serve", "the page and the HTTP API")
    names = frozenset(n.strip().lower() for n in name.split(",") if n.strip())
    serve(host, _port(port), token=token, names=names, browser=not no_open, say=_say)


def mcp(
    *,
    http: Annotated[
        bool, Parameter(help="streamable HTTP on this machine instead of stdin and stdout")
    ] = False,
    port: Port = 8322,
    files: Annotated[bool, Parameter(help="let tools read model and chip files of this machine")] = False,
) -> None:
    """Serve the verbs as tools of the Model Context Protocol, for agents."""
    serve = _face("mcp.serve", "the server for agents")
    serve(http_port=_port(port) if http else None, files=files, say=_say)


def _face(module: str, need: str) -> Any:
    """The serving function of another face. Its packages come with an extra."""
    try:
        return import_module(f"chipwise.{module}").serve
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] == "chipwise":
            raise
        raise MissingExtraError(need, "serve") from None


def _port(port: int) -> int:
    if not 0 <= port <= 65_535:
        raise UsageError(f"--port {port}: not a port", "0 to 65535")
    return port


def _say(text: str) -> None:
    """On stderr: stdout belongs to the protocol."""
    print(text, file=sys.stderr, flush=True)
