"""A hundred written tasks, answered by a script in place of an agent that sees nothing but the tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import anyio
import pytest
from agents import text_of
from docs.generate.console import on_the_day
from docs.generate.tasks import TASKS, Task

from chipwise.mcp import server
from mcp import Client


@pytest.fixture(scope="module", autouse=True)
def _the_day() -> Iterator[None]:
    with on_the_day():
        yield


async def _answered(client: Client, task: Task) -> tuple[bool, bool, str]:
    """Whether the first call was answered, whether the task was answered rightly, and what was seen."""
    first = await client.call_tool(task.tool, dict(task.given))
    seen = first
    if task.then is not None:
        told = text_of(first) if first.is_error else first.structured_content
        if first.is_error != task.refused:
            return not first.is_error, False, text_of(first)
        tool, given = task.then(told)
        seen = await client.call_tool(tool, given)
    if seen.is_error or seen.structured_content is None:
        return not first.is_error, False, text_of(seen)
    assert len(text_of(seen)) < 8_000
    right = task.right()
    try:
        found = task.read(seen.structured_content)
    except (LookupError, ValueError, StopIteration) as error:  # an agent that does not find what it needs
        found = error
    return not first.is_error, found == right, f"{found} instead of {right}"


def test_a_hundred_tasks() -> None:
    async def play() -> list[tuple[bool, bool, str]]:
        async with Client(server.create_server()) as client:
            return [await _answered(client, task) for task in TASKS]

    answers = anyio.run(play)
    wrong = [f"{t.kind}: {t.text}: {said}" for t, (_, right, said) in zip(TASKS, answers, strict=True) if not right]
    at_once = sum(first for first, _, _ in answers)
    assert len(TASKS) >= 100
    assert set(Counter(t.kind for t in TASKS)) == {"choose", "size", "refute", "launch", "debug", "compare"}
    assert len(wrong) <= 0.05 * len(TASKS), wrong
    assert at_once >= 0.9 * len(TASKS)
