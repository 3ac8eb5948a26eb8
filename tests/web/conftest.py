"""One server for all tests of the web face that need no other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import httpx
import pytest
from serving import served

PATIENCE_S = 60.0


@pytest.fixture(scope="session", autouse=True)
def _patience() -> Iterator[None]:
    """On a machine that is busy with other tests an answer may take longer than the five seconds of the client."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("get", "post", "options", "request", "Client"):
            patch.setattr(httpx, name, partial(getattr(httpx, name), timeout=PATIENCE_S))
        yield


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The address of a server with the usual access and limits."""
    with served() as found:
        yield found
