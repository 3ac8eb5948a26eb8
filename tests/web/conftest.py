"""One server for all tests of the web face that need no other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from serving import served


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The address of a server with the usual access and limits."""
    with served() as found:
        yield found
