"""A task for an agent, answered by tool calls alone."""

from __future__ import annotations

from typing import Any

import pytest
from agents import talk

from mcp import Client

CALLS = 10


class Agent:
    """A script in place of a language model: what it writes comes from answers of tools."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.calls: list[str] = []

    async def ask(self, tool: str, **given: Any) -> dict[str, Any]:
        self.calls.append(tool)
        answer = await self.client.call_tool(tool, given)
        assert not answer.is_error, answer
        assert answer.structured_content is not None
        return answer.structured_content


async def serve_qwen(client: Client) -> tuple[Agent, dict[str, Any], dict[str, Any], str]:
    """Serve Qwen3-235B to 50 users under 40 ms per token for under 60 $/h: what do I rent, and does this MLPerf
    lead (H200 on llama2-70b Server) matter?"""
    agent = Agent(client)
    users, out, tpot_s = 50, 300, 0.040
    model = (await agent.ask("models", search="qwen3-235b-a22b"))["models"][0]["name"]
    rate = users / (out * tpot_s)  # each user waits for an answer, then asks again
    plans = await agent.ask(
        "plan", model=model, rate=f"{rate:.3g}/s", out=out, tpot=f"{tpot_s * 1e3:g}ms", max_usd_per_h=60
    )
    best = plans["plans"][0]
    found = await agent.ask("evidence", search="h200 llama2-70b server")
    rows = found["results"]
    lead = next((row["id"] for row in rows if row["chips"] == 8), rows[0]["id"])
    claim = await agent.ask(
        "claim", result=lead, model=model, tpot=f"{tpot_s * 1e3:g}ms", out=out, count=8, precision=best["precision"]
    )
    match = await agent.ask("match", model=model, chip=best["chip"], count=best["chips"])
    dollars = best["usd_per_h"]
    ties = f" (a tie with #{', #'.join(map(str, best['ties_with']))})" if best.get("ties_with") else ""
    answer = (
        f"Rent {best['plan']}{ties}: {dollars['mid']} [{dollars['low']}-{dollars['high']}] $/h, TPOT "
        f"{best['tpot_ms']['mid']} [{best['tpot_ms']['low']}-{best['tpot_ms']['high']}] ms, {best['basis']}, bound by "
        f"{best['bottleneck']}. The lead {lead}: {claim['verdict']}. Nearest measurement: {match['verdict']}."
    )
    return agent, best, claim, answer


def test_what_to_rent_and_whether_a_lead_matters() -> None:
    agent, best, claim, answer = talk("stdio", serve_qwen)
    assert len(agent.calls) < CALLS
    assert best["usd_per_h"]["mid"] < 60
    assert best["tpot_ms"]["mid"] <= 40
    assert best["requests_per_s"] == pytest.approx(50 / 12, rel=0.02)
    assert claim["supported"] is False
    assert claim["verdict"] in answer
    assert "not advice" in answer
    assert any(rival["ratio_at_your_workload"] for rival in claim["rivals"])
    assert best["plan"] in answer
