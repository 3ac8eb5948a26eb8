"""Reinforcement learning on answers that a model samples itself: a batch of answers until the last has ended, and a
loop of sampling, scoring, training and handing weights over."""

from __future__ import annotations

from functools import cached_property
from statistics import NormalDist

import numpy as np

from chipwise.numeric import root
from chipwise.units import Array
from chipwise.values import dataclass

PIECES = 400  # steps of the integral over the length of answers
HALVINGS = 50  # of the interval in which the median length lies
FAR = 8.0
"""ratio: deviations that the median may lie above the cut. Chosen: beyond it all answers are cut; moves nothing."""
FORWARD = 1.0 / 3.0
"""share of a training step: its forward pass alone. Exact: the backward pass has two products for each of the forward
pass."""

JUDGED = 1.0 / 2.0
"""share of a training step on frozen weights: its forward pass alone. Exact: the backward pass has one product for each
of the forward pass."""

UPDATES = 4
"""count: most steps of the optimiser on the answers of a step. Source: recipes of NVIDIA-NeMo/RL
(train_global_batch_size 512 of 2,048 answers) and volcengine/verl (ppo_mini_batch_size 256 of 1,024 prompts)."""
UPDATED = 512
"""count: answers of a step of the optimiser, at least. Source: recipes of NVIDIA-NeMo/RL, of 2,048 answers and of 512
alike."""

TAKEN = 65e9
"""B/s: of the whole model, at which engines take new weights: tensors are gathered whole, every device of an engine
sees them all and keeps its part. Source: MoonshotAI/checkpoint-engine, README (61 to 76 GB/s in six rows: four models,
8 to 256 H800 and H20); NVIDIA-NeMo/RL, pull request 1379 (36 to 96 GB/s: Qwen3-235B-A22B and DeepSeek-V3)."""
PAGED = 2.8e9
"""B/s: of a device's tensors into host memory that is allocated as they move, not pinned. Source: sgl-project/sglang,
pull request 32032 (2.8 GB/s, H200); NVIDIA-NeMo/RL, issue 3976 (1.8 GB/s, H100)."""

LOOP = 1.78
"""ratio: of sampling, scoring and training in a loop over the same priced alone, as benchmarks run them. Source: median
of ten published loops of NVIDIA-NeMo/RL (docs/about/performance-summary.md, v0.4 and v0.6: 8B to 671B on 16 to 128 H100
and GB200); told from the other nine, a loop is off by a factor of 1.05 in the median. What it is made of (engines that
return log-probabilities and keep 60 % of the memory, preparation of batches) is published for none of them."""
LOOP_SPREAD = 0.2
"""logarithm: half of the 80 % interval of that ratio. Source: 9 of the same ten loops lie within it, 2 of 4 others."""


@dataclass(frozen=True)
class Answers:
    """What is sampled in a step: `samples` answers to each of `prompts`. Lengths are log-normal with deviation over
    mean `cv`, cut at `longest`, so that their mean is `tokens` behind the cut."""

    prompts: int
    samples: int
    prompt_tokens: float
    tokens: float
    cv: float
    longest: float

    @property
    def count(self) -> int:
        """Answers of a step."""
        return self.prompts * self.samples

    @property
    def updates(self) -> int:
        """Steps of the optimiser on them, a power of two."""
        return min(1 << max(self.count // UPDATED, 1).bit_length() - 1, UPDATES)

    @property
    def sigma(self) -> float:
        """Deviation of the logarithm of lengths before the cut."""
        return float(np.sqrt(np.log1p(self.cv**2)))

    @cached_property
    def middle(self) -> float:
        """Logarithm of the median length: that with which the mean behind the cut is `tokens`."""
        if self.cv <= 0 or self.longest <= self.tokens:
            return float(np.log(self.tokens))
        s, cut, phi = self.sigma, float(np.log(self.longest)), NormalDist().cdf

        def mean(m: float) -> float:
            return float(np.exp(m + 0.5 * s**2)) * phi((cut - m) / s - s) + self.longest * phi((m - cut) / s)

        low = float(np.log(self.tokens)) - s**2
        return float(root(lambda m: mean(float(m)) < self.tokens, low, cut + FAR * s, HALVINGS)[0])

    def alive(self, position: Array) -> Array:
        """Share of the answers that are longer than so many tokens."""
        if self.cv <= 0:
            return np.where(position < self.tokens, 1.0, 0.0)
        at = (np.log(np.maximum(position, 1e-9)) - self.middle) / self.sigma
        beyond = np.array([NormalDist().cdf(-x) for x in np.ravel(at)]).reshape(np.shape(at))
        return np.where(position < self.longest, beyond, 0.0)

    @property
    def packed_cv(self) -> float:
        """Deviation over mean of prompt and answer, as they are packed: E[l^2] = 2 sum of l P(length > l)."""
        if self.cv <= 0:
            return 0.0
        grid = np.linspace(0.0, self.longest, PIECES + 1)
        at = 0.5 * (grid[1:] + grid[:-1])
        alive, width = self.alive(at), float(grid[1])
        spread = 2.0 * float((at * alive).sum()) * width - (float(alive.sum()) * width) ** 2
        return float(np.sqrt(max(spread, 0.0))) / (self.prompt_tokens + self.tokens)


@dataclass(frozen=True, slots=True)
class Decoder:
    """A replica as it generates: seconds of a pass by sequences in it (rising), the most that its memory holds, and
    seconds of a prompt."""

    batches: Array
    pass_s: Array
    most: float
    prompt_s: float

    def at(self, sequences: Array) -> Array:
        """Seconds of a pass with so many sequences, linear in between."""
        return np.interp(np.clip(sequences, 1.0, self.most), self.batches, self.pass_s)


def rollout_s(a: Answers, d: Decoder, replicas: int) -> tuple[float, float]:
    """Seconds until all answers of a step have ended, and the share of them in which a replica has less than half of
    the sequences that it began with.

    Prompts first, each once for all its samples. Answers that memory does not hold wait and take places that become
    free: the excess at the pace of a full batch. Then the batch drains: at position t as many sequences are left as
    have longer answers, at least one until the last has ended, T = integral of pass(b alive(t)) dt.
    """
    each = max(a.count / replicas, 1.0)
    held = min(each, d.most)
    prompts = max(a.prompts / replicas, 1.0) * d.prompt_s
    waiting = (each - held) * a.tokens / held * float(d.at(np.array(held)))
    grid = np.linspace(0.0, a.longest if a.cv > 0 else a.tokens, PIECES + 1)
    middle, width = 0.5 * (grid[1:] + grid[:-1]), float(grid[1] - grid[0])
    left = held * a.alive(middle)
    # the longest of all of them: half an answer is expected beyond it
    running = left * max(each / held, 1.0) * replicas >= 0.5
    passed = np.where(running, d.at(left), 0.0) * width
    total = prompts + waiting + float(passed.sum())
    return total, float(passed[left < 0.5 * held].sum()) / total


def handed_s(weights: float, shard: float, trainers: float, bytes_per_s: float) -> float:
    """Seconds until engines have new weights: max(max(W / n, S) / B, W / T).

    Trainers send all W bytes once, each of n its part, at B bytes/s of a device in one direction; engines pass on what
    arrives while they receive (a pipelined broadcast), so that every one of their devices takes its shard S once,
    however many there are. T is `TAKEN`. Start-up of the exchanges, milliseconds, is left out.
    """
    return max(max(weights / trainers, shard) / bytes_per_s, weights / TAKEN)


def parked_s(state: float, host_bytes_per_s: float) -> float:
    """Seconds in which a trainer's state of a device leaves for host memory (`PAGED`) and comes back over the link."""
    return state / min(PAGED, host_bytes_per_s) + state / host_bytes_per_s


@dataclass(frozen=True, slots=True)
class Loop:
    """Seconds of a step by part. `together`: all chips sample, then train, and `swap` is what moves to host memory and
    back in between; apart, sampling and training go on side by side on their own chips, one step off policy."""

    rollout: float
    scoring: float
    training: float
    sync: float
    swap: float
    together: bool

    @property
    def total(self) -> float:
        """Seconds of a step."""
        learning = self.scoring + self.training
        if self.together:
            return self.rollout + learning + self.sync + self.swap
        return max(self.rollout, learning) + self.sync

    @property
    def idle(self) -> float:
        """Share of a step in which the chips of the faster side wait for the other."""
        learning = self.scoring + self.training
        return 0.0 if self.together else abs(self.rollout - learning) / self.total
