"""Logs of requests as tools write them, and streams that are drawn."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from chipwise.errors import UsageError
from chipwise.workload.arrivals import Arrivals, read_log
from chipwise.workload.curve import read_curve
from chipwise.workload.lengths import Lengths

TWO = [(100.0, 10.0), (300.0, 30.0)]
REPORT = {
    "benchmarks": [
        {
            "metrics": {},
            "requests": {
                "successful": [
                    {"request_id": i, "prompt_tokens": p, "output_tokens": o, "request_start_time": 1.7e9 + i}
                    for i, (p, o) in enumerate(TWO)
                ],
                "errored": [],
            },
        }
    ]
}


@pytest.mark.parametrize(
    ("name", "text", "seconds"),
    [
        ("a.csv", "prompt_tokens,output_tokens\n100,10\n300,30\n", None),
        ("a.csv", "output_tokens;x;Input Length\n10;;100\n30;;300\n", None),
        ("a.jsonl", '{"prompt_tokens": 100, "output_tokens": 10}\n\n{"prompt_tokens": 300, "output_tokens": 30}', None),
        (
            "azure.csv",
            "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,100,10\n"
            "2023-11-16 18:17:05.48,300,30\n",
            1.50004,
        ),
        (
            "BurstGPT.csv",
            "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,GPT-4,100,10,110,API\n"
            "7,ChatGPT,300,30,330,API\n9,ChatGPT,50,0,50,API\n",
            2.0,
        ),
        (
            "mooncake.jsonl",
            '{"timestamp": 27000, "input_length": 100, "output_length": 10, "hash_ids": [0]}\n'
            '{"timestamp": 27250, "input_length": 300, "output_length": 30, "hash_ids": [0]}\n',
            0.25,
        ),
        (
            "sim.jsonl",
            '{"input_toks": 100, "output_toks": 10, "arrival_time_ns": 1000000000}\n'
            '{"input_toks": 300, "output_toks": 30, "arrival_time_ns": 1200000000}\n',
            0.2,
        ),
        (
            "run.jsonl",
            '{"input_toks": 100, "output_toks": 10, "arrival_time": 1777142838.5, "queued_ts": 479748.3}\n'
            '{"input_toks": 300, "output_toks": 30, "arrival_time": 1777142838.75, "queued_ts": 479749.3}\n',
            0.25,
        ),
        (
            "ms.csv",
            "arrived_at,num_prefill_tokens,num_decode_tokens\n1700000000000,100,10\n1700000000500,300,30\n",
            0.5,
        ),
        ("bench.json", json.dumps({"input_lens": [100, 300], "output_lens": [10, 30], "ttfts": [0.1, 0.2]}), None),
        (
            "bench.json",
            json.dumps({"input_lens": [100, 300], "output_lens": [10, 30], "start_times": [3.0, 3.5]}, indent=1),
            0.5,
        ),
        ("guide.json", json.dumps(REPORT), 1.0),
        ("guide.json", json.dumps(REPORT, indent=2), 1.0),
    ],
)
def test_logs_are_read_as_they_are(tmp_path: Path, name: str, text: str, seconds: float | None) -> None:
    for file, content in ((name, text.encode()), (f"{name}.gz", gzip.compress(text.encode()))):
        (tmp_path / file).write_bytes(content)
        found = read_log(str(tmp_path / file))
        assert list(zip(found.prompt, found.output, strict=True)) == TWO
        assert found.span_s == pytest.approx(seconds or 0.0)
        assert (found.time_s is None) == (seconds is None)
    lengths = found.lengths
    assert (lengths.prompt_tokens, lengths.output_tokens) == (200, 20)
    assert lengths.prompt_cv == pytest.approx(0.5)
    assert lengths.correlation == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", "prompt,output\n1,2\n", "no column of prompt_tokens and output_tokens among prompt, output"),
        ("a.csv", "prompt_tokens,tokens\n1,2\n", "no column of output_tokens"),
        ("a.csv", "prompt_tokens,output_tokens\n100,10\n100,ten\n", "line 3: output_tokens is 'ten'"),
        ("a.csv", "prompt_tokens,output_tokens\n100\n", "line 2: output_tokens is None"),
        ("a.csv", "prompt_tokens,output_tokens\n100,-5\n", "line 2: output_tokens is -5: out of range"),
        ("a.csv", "prompt_tokens,output_tokens\n", "no requests"),
        ("a.csv", "prompt_tokens,output_tokens\n0,0\n", "no request of the log has tokens"),
        ("a.csv", "timestamp,prompt_tokens,output_tokens\n1,5,5\nlater,5,5\n", "line 3: timestamp is 'later', no time"),
        ("a.csv", "timestamp,prompt_tokens,output_tokens\n1,5,5\n,5,5\n", "line 3: timestamp is '', no time"),
        ("a.jsonl", '{"prompt_tokens": 1, "output_tokens": 1}\n[1, 2]\n', "line 2"),
        ("a.jsonl", '{"prompt_tokens": 1, "output_tokens": 1}\nnot json', "line 2"),
        ("a.jsonl", '{"prompt_tokens": 1, "output_tokens": 1, "hash_ids": 5}\n', "line 1: hash_ids is no list"),
        ("a.json", '{"input_lens": [1, 2],\n "output_lens": [1]}', "different lengths"),
        ("a.json", "{\n broken", "line 2: no JSON"),
        ("b.csv", None, "cannot be read"),
        ("b.csv.gz", "\x1f\x8bnothing", "cannot be read"),
    ],
)
def test_logs_that_cannot_be_read(tmp_path: Path, name: str, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError) as caught:
        read_log(str(tmp_path / name))
    assert words in f"{caught.value} {caught.value.hint}"


def test_what_was_assumed_is_said(tmp_path: Path) -> None:
    rows = ["timestamp,prompt_tokens,output_tokens", "60,10,1", "0,20,2", "61,30,0", "900,0,0", "30,0,4"]
    rows += [f"{1000 + i},5,5" for i in range(3)]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    found = read_log(str(tmp_path / "a.csv"))
    assert found.prompt[:4].tolist() == [20, 1, 10, 30]
    assert found.output[:4].tolist() == [2, 4, 1, 1]
    assert found.time_s is not None
    assert found.time_s[:4].tolist() == [0, 30, 60, 61]
    said = "; ".join(found.said)
    for words in ("1 requests without tokens left out as failed (first in line 5)",
                  "no output tokens", "no prompt tokens",
                  "out of order in 2 places", "nothing arrives for 15.7 minutes"):  # fmt: skip
        assert words in said


def test_times_in_coarse_steps_are_spread(tmp_path: Path) -> None:
    lines = [
        json.dumps({"timestamp": 3000 * (i // 6) + (i // 6) % 2, "input_length": 9, "output_length": 2, "hash_ids": []})
        for i in range(60)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    found = read_log(str(tmp_path / "a.jsonl"))
    assert found.time_s is not None
    assert np.diff(found.time_s) == pytest.approx(0.5, abs=0.01)
    assert any("steps of 3" in words for words in found.said)


def test_a_log_knows_how_its_arrivals_scatter() -> None:
    lengths = Lengths(100.0, 10.0)
    poisson = Arrivals.drawn(lengths, 20_000, 10.0)
    assert poisson.rate_per_s == pytest.approx(10.0, rel=0.03)
    assert poisson.dispersion(1.0) == pytest.approx(1.0, abs=0.1)
    assert poisson.random
    bursts = Arrivals.drawn(lengths, 20_000, 10.0, burstiness=3.0)
    # a renewal process counts with the squared variation of its gaps, over windows long enough
    assert bursts.dispersion(60.0) == pytest.approx(9.0, rel=0.25)
    assert not bursts.random
    clock = Arrivals.drawn(lengths, 2000, 10.0, burstiness=0.0)
    assert clock.time_s is not None
    assert np.diff(clock.time_s) == pytest.approx(0.1)
    assert Arrivals.drawn(lengths, 5, None).span_s == 0.0
    assert not Arrivals.drawn(lengths, 5, None).random


def test_draws_are_repeated_by_seed_and_have_their_moments() -> None:
    lengths = Lengths(1000.0, 200.0, 1.0, 0.5, correlation=0.6)
    one, same, other = (Arrivals.drawn(lengths, 40_000, 5.0, seed=seed) for seed in (1, 1, 2))
    assert one.time_s is not None
    assert np.array_equal(one.prompt, same.prompt)
    assert np.array_equal(one.time_s, same.time_s)
    assert not np.array_equal(one.prompt, other.prompt)
    assert one.prompt.mean() == pytest.approx(1000, rel=0.03)
    assert one.prompt.std() / one.prompt.mean() == pytest.approx(1.0, rel=0.07)
    assert one.output.std() / one.output.mean() == pytest.approx(0.5, rel=0.05)
    again = Arrivals.drawn(one.lengths, 40_000, 5.0)
    assert again.prompt.mean() == pytest.approx(one.prompt.mean(), rel=0.03)


def test_public_traces_say_what_they_are(truth: Path) -> None:
    code = read_log(str(truth / "traces" / "azure_llm_2023_code.csv"))
    assert len(code) == 8819
    assert code.rate_per_s == pytest.approx(2.567, abs=0.001)
    assert code.dispersion(1.0) == pytest.approx(13, abs=0.5)
    assert code.busiest(60.0) == pytest.approx(4.2, abs=0.1)
    assert not code.random
    talk = read_log(str(truth / "traces" / "azure_llm_2023_conv.csv"))
    assert talk.random
    chats = read_log(str(truth / "traces" / "mooncake_conversation.jsonl.gz"))
    assert chats.block_tokens == 512
    assert chats.reused == pytest.approx(0.374, abs=0.001)
    recorded = read_log(str(truth / "traces" / "llmservingsim_rtxpro6000_llama-3.1-8b.requests.jsonl"))
    same = read_log(str(truth / "request_traces" / "rtxpro6000_llama-3.1-8b.jsonl"))
    assert recorded.time_s == pytest.approx(same.time_s, abs=1e-5)
    assert "10.3/s" in same.line
    assert "busiest 60 s 4.2 x" in code.line


def test_a_device_has_no_end_and_is_no_log() -> None:
    with pytest.raises(UsageError, match="cannot be read") as caught:
        read_log("/dev/zero")
    assert "a device" in str(caught.value.hint)
    with pytest.raises(UsageError, match="cannot be read"):
        read_curve("/dev/zero")
