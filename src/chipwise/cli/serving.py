"""web, mcp and watch: chipwise for browsers, for agents, and next to a running server."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

from cyclopts import Parameter

from chipwise.api import watching
from chipwise.cli.options import Output, whole
from chipwise.errors import MissingExtraError, UsageError
from chipwise.report.watched import watch_view
from chipwise.units import parse_quantity

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
    name: Annotated[str, Parameter(help="names under which a proxy shows this server, separated by commas")] = "",
    demo: Annotated[bool, Parameter(help="for everybody: no token, tighter limits", negative=())] = False,
    no_open: Annotated[bool, Parameter(name="--no-open", help="do not open a browser")] = False,
) -> None:
    """Serve the page and the HTTP API: GET /, POST /v1/<verb>, GET /v1/docs."""
    serve = _face("web.app", "the page and the HTTP API")
    names = frozenset(n.strip().lower() for n in name.split(",") if n.strip())
    serve(host, _port(port), token=token, names=names, demo=demo, browser=not no_open, say=_say)


def mcp(
    *,
    http: Annotated[bool, Parameter(help="streamable HTTP on this machine instead of stdin and stdout")] = False,
    port: Port = 8322,
    files: Annotated[bool, Parameter(help="let tools read model and chip files of this machine")] = False,
) -> None:
    """Serve the verbs as tools of the Model Context Protocol, for agents."""
    serve = _face("mcp.serve", "the server for agents")
    serve(http_port=_port(port) if http else None, files=files, say=_say)


def watch(
    url: Annotated[str, Parameter(help="a running vLLM, e.g. http://localhost:8000")],
    *,
    saved: Annotated[str, Parameter(help="the plan that it runs: a file that --save wrote")],
    plan: Annotated[int, Parameter(help="which plan of the answer, by its number")] = 1,
    once: Annotated[bool, Parameter(help="say how it compares since it was started, and end", negative=())] = False,
    port: Annotated[int, whole("the port for Prometheus; 0: any that is free")] = 9409,
    every: Annotated[str, Parameter(help="how often to read the server")] = "15s",
    window: Annotated[str, Parameter(help="the time that is averaged over")] = "5min",
    output: Output = Output(),  # noqa: B008
) -> None:
    """Hold the TTFT and TPOT of a running vLLM against the predicted intervals of its plan, for Prometheus."""
    expected = watching.expected_of(saved, plan)
    if once:
        report = watching.watch_once(url, expected)
        output.show((watch_view(report),), report)
        return
    every_s = parse_quantity(every, "s", "--every", low=1.0, high=3600.0)
    window_s = parse_quantity(window, "s", "--window", low=every_s, high=86_400.0)
    watching.serve_watch(watching.Watch(url, expected, window_s), _port(port), every_s, _say)


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
