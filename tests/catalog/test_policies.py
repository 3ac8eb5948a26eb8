"""A policy that is set moves an answer, or is refused with the reason."""

from __future__ import annotations

import pytest

import chipwise as cw
from chipwise.catalog.chips import get_chip
from chipwise.catalog.runtime import POLICY_NAMES, get_runtime
from chipwise.errors import UsageError

PLACE = {
    "model": "meta-llama/Llama-3.1-8B",
    "chip": "h100",
    "tp": 2,
    "in_": 3000,
    "out": 300,
    "evidence": "none",
}


def numbers(runtime: str) -> dict[str, float]:
    policies = get_runtime(runtime).policies_on(get_chip("h100"))
    found = {name: getattr(policies, name) for name in POLICY_NAMES}
    return {name: value for name, value in found.items() if not isinstance(value, str)}


@pytest.mark.parametrize(
    ("runtime", "unread"),
    [
        ("vllm", {"reserved_bytes", "workspace_bytes", "micro_batch_tokens"}),
        ("sglang", {"workspace_bytes", "micro_batch_tokens"}),
        ("trtllm", {"reserved_bytes", "workspace_bytes", "micro_batch_tokens"}),
    ],
)
def test_every_policy_moves_an_answer_or_is_refused(runtime: str, unread: set[str]) -> None:
    before = cw.estimate(**PLACE, runtime=runtime).plans
    for name, value in numbers(runtime).items():
        other = {
            "kv_block_tokens": 1024,
            "stream_interval": 20,
            "reserved_bytes": 9e9,
            "max_sequences": 16,
        }.get(name, value / 2 or 9e9)
        said = str(int(other)) if isinstance(value, int) else f"{other:.10g}"
        if name in unread:
            with pytest.raises(UsageError, match="changes nothing here"):
                cw.estimate(**PLACE, runtime=runtime, policy={name: said})
            continue
        after = cw.estimate(**PLACE, runtime=runtime, policy={name: said}).plans
        assert after != before, f"{runtime}: {name} moves nothing"


def test_tokens_held_back_delay_the_first() -> None:
    plain, grouped = (
        cw.estimate(**PLACE, runtime="trtllm", concurrency=8, policy={"stream_interval": n}).plans[0]
        for n in (1, 11)
    )
    assert grouped.ttft_s.mid - plain.ttft_s.mid == pytest.approx(10 * plain.tpot_s.mid)
    assert grouped.tpot_s == plain.tpot_s
