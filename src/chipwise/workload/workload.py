"""How a model is used: the task, the lengths, the load and the limits."""

from __future__ import annotations

from dataclasses import field, replace
from math import ceil
from typing import Literal

from chipwise.catalog.preferences import preferences
from chipwise.errors import UsageError
from chipwise.values import dataclass
from chipwise.workload.arrivals import Arrivals
from chipwise.workload.lengths import Lengths, PrefixCache

Task = Literal["serve", "batch", "local"]

CONFIDENCE = preferences().confidence
"""With which targets are to hold where nothing else is asked."""
USUAL_TTFT_S, USUAL_TPOT_S = 2.0, 0.05
"""unit: s. Chosen: people wait two seconds for an answer to begin, and read slower than 20 tokens a second; moves the
targets of serving where none is named, and which named ones count as exacting."""
UTILISATION = preferences().utilisation
"""Of the load at which a fleet misses its targets or is full: what it is given where nothing else is asked."""
PACE = preferences().desk_tokens_per_s
"""Tokens per second that a lone user wants where nothing else is asked."""


@dataclass(frozen=True, slots=True)
class Picture:
    """`count` pictures of so many pixels."""

    count: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Job:
    """Batch work with an end: `tokens` of output in all, within `deadline_s` and for at most `max_usd` (None: no
    limit). Raises `UsageError` for what is out of range."""

    tokens: float
    deadline_s: float | None = None
    max_usd: float | None = None

    def __post_init__(self) -> None:
        for name in ("tokens", "deadline_s", "max_usd"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1e19:
                raise UsageError(f"{name}: {value:g} is out of range", "more than zero", field=name)


@dataclass(frozen=True, slots=True)
class Workload:
    """Mean lengths in tokens, load and targets.

    `serve`: many users, `rate_per_s` requests (None: show what one replica can take). `batch`: as many tokens
    as possible, no targets; `job` says how many in all and by when (None: there is no end). `local`: one user, one
    machine. `ttft_s` bounds the time to the first token and `tpot_s` the time per further token, `e2e_s` the whole
    answer (None: no limit): means, or what the share `percentile` of requests does not exceed; plans keep them with the
    probability `confidence` (`firm`: the user's word; else less is taken where the rest costs too much), at no more
    than `utilisation` of the load that they could carry. `lengths` are distributions with those means (None: all
    requests alike), `prefix` what a prefix cache answers (None: nothing), `pictures` what comes with every request
    beside its text, `log` the requests that lengths and load are those of. A lone user wants `pace_per_s` tokens per
    second, and room for a conversation of `room_tokens`, of which the request is a part (0: for the request alone).

    Raises `UsageError` for lengths or targets that cannot be.
    """

    task: Task = "serve"
    prompt_tokens: float = 2000.0
    output_tokens: float = 300.0
    rate_per_s: float | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None
    percentile: float | None = None
    confidence: float = CONFIDENCE
    utilisation: float = UTILISATION
    lengths: Lengths | None = None
    prefix: PrefixCache | None = None
    pictures: tuple[Picture, ...] = ()
    job: Job | None = None
    log: Arrivals | None = field(default=None, compare=False)
    pace_per_s: float = PACE
    room_tokens: float = 0.0
    firm: bool = True

    def __post_init__(self) -> None:
        for name in ("prompt_tokens", "output_tokens"):
            if not 1 <= getattr(self, name) <= 1e8:
                raise UsageError(f"{name}: {getattr(self, name):g} is out of range", "1 to 100 million tokens")
        for name in ("rate_per_s", "ttft_s", "tpot_s", "e2e_s"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1e9:
                raise UsageError(f"{name}: {value:g} is out of range", "more than zero")
        for name, least, most in (("confidence", 0.5, 0.99), ("utilisation", 0.05, 1.0)):
            if not least <= getattr(self, name) <= most:
                raise UsageError(
                    f"--{name} {100.0 * getattr(self, name):.6g}% is out of range", f"{least:.0%} to {most:.0%}"
                )
        if self.percentile is not None and not 0.5 <= self.percentile <= 0.999:
            raise UsageError(f"percentile: {self.percentile:g} is out of range", "p50 to p99.9")
        if self.job is not None and self.task != "batch":
            raise UsageError(
                f"--tokens says nothing about --task {self.task}", "a job has --task batch", field="tokens"
            )

    @classmethod
    def spread(cls, lengths: Lengths, task: Task = "serve") -> Workload:
        """A workload of requests with those lengths, without load or targets."""
        return cls(task, lengths.prompt_tokens, lengths.output_tokens, lengths=lengths)

    @property
    def exacting(self) -> bool:
        """Whether a target, or how surely it holds, was asked for beyond what users of a chat take for granted."""
        times = ((self.ttft_s, USUAL_TTFT_S), (self.tpot_s, USUAL_TPOT_S))
        sooner = any(asked is not None and asked < usual for asked, usual in times)
        return sooner or self.e2e_s is not None or self.percentile is not None or self.confidence > CONFIDENCE

    @property
    def driven(self) -> bool:
        """Whether many users send so many requests a second, whatever serves them."""
        return self.task == "serve" and self.rate_per_s is not None

    @property
    def limited(self) -> bool:
        """Whether a target bounds the load."""
        return any(target is not None for target in (self.ttft_s, self.tpot_s, self.e2e_s))

    @property
    def pieces(self) -> float | None:
        """Whole requests of its job, None where there is none."""
        if self.job is None:
            return None
        return float(max(ceil(self.job.tokens / self.output_tokens * (1.0 - 1e-12)), 1))

    @property
    def due_per_s(self) -> float | None:
        """Requests per second that finish its job by the deadline, None where nothing is due."""
        if self.job is None or self.job.deadline_s is None:
            return None
        return (self.pieces or 1.0) / self.job.deadline_s

    @property
    def served(self) -> Lengths:
        """The lengths of its requests, alike where nothing else is known."""
        return self.lengths or Lengths(self.prompt_tokens, self.output_tokens)

    def longer(self, tokens: float) -> Workload:
        """The same with so many more tokens in every prompt."""
        lengths = None if self.lengths is None else self.lengths.longer(tokens)
        return replace(self, prompt_tokens=self.prompt_tokens + tokens, lengths=lengths)

    @property
    def context(self) -> float:
        """Tokens of a finished request of mean lengths, or of the conversation that room is kept for."""
        return max(self.prompt_tokens + self.output_tokens, self.room_tokens)
