"""Seconds from the submitted form to the ranked plans, as the browser waits for them: server, worker and templates."""

from __future__ import annotations

import threading
import time
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from bench.timing import median_s

__all__ = ["answer_seconds"]

FORM = {"model": "meta-llama/Llama-3.1-70B", "in": "2000", "out": "300", "ttft": "1s", "tpot": "40ms"}


def answer_seconds(times: int = 5) -> float:
    """Median seconds of the default question with another load each time, so that no answer is known already.

    The server has just been started, as `chipwise web` does; drawing comes on top of it.
    """
    import uvicorn

    from chipwise.web.app import create_app

    server = uvicorn.Server(uvicorn.Config(create_app(), port=0, log_level="critical"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    loads = iter(range(10, 10 + times + 1))

    def ask() -> None:
        query = urlencode({**FORM, "rate": f"{next(loads)}/s"})
        said = {"HX-Request": "true", "HX-Target": "section#result"}
        address = Request(f"http://127.0.0.1:{port}/plan?{query}", headers=said)
        with urlopen(address, timeout=60) as answer:
            assert b"data-rank" in answer.read()

    ask()
    try:
        return median_s(ask, times)
    finally:
        server.should_exit = True
        thread.join(20)
