"""Reinforcement learning on answers that a model samples itself: a batch of answers until the last has ended, and a
loop of sampling, scoring, training and handing weights over."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from chipwise.units import Array
from chipwise.values import dataclass

PIECES = 400  # steps of the integral over the length of answers
FORWARD = 1.0 / 3.0
"""share of a training step: its forward pass alone. Exact: the backward pass has two products for each of the forward
pass."""

JUDGED = 1.0 / 2.0
"""share of a training step on frozen weights: its forward pass alone. Exact: the backward pass has one product for each
of the forward pass."""

UPDATES = 4
"""count: steps of the optimiser on the answers of a step. Source: recipes of NVIDIA-NeMo/RL (train_global_batch_size
512 of 2,048 answers) and volcengine/verl (ppo_mini_batch_size 256 of 1,024 prompts)."""

LOOP = 2.04
"""ratio: of a step of a loop over its sampling, scoring and training priced alone, as benchmarks run them. Source:
median of ten published loops of NVIDIA-NeMo/RL (docs/about/performance-summary.md, v0.4 and v0.6: 8B to 671B on 16 to
128 H100 and GB200); told from the other nine, a loop is off by a factor of 1.09 in the median. What it is made of
(engines that return log-probabilities and keep 60 % of the memory, packing, preparation of batches) is published for
none of them."""
LOOP_SPREAD = 0.3
"""logarithm: half of the 80 % interval of that ratio. Source: 8 of the same ten loops lie within it."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What is sampled in a step: `samples` answers to each of `prompts`; lengths are log-normal with mean `tokens` and
    deviation over mean `cv`, none above `longest`."""

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

    def alive(self, position: Array) -> Array:
        """Share of the answers that are longer than so many tokens."""
        if self.cv <= 0:
            return np.where(position < self.tokens, 1.0, 0.0)
        sigma = float(np.sqrt(np.log1p(self.cv**2)))
        at = (np.log(np.maximum(position, 1e-9) / self.tokens) + 0.5 * sigma**2) / sigma
        beyond = np.array([NormalDist().cdf(-x) for x in np.ravel(at)]).reshape(np.shape(at))
        return np.where(position < self.longest, beyond, 0.0)


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
    """Seconds until engines on other devices have new weights: max(W / n, S) / B.

    Trainers send all W bytes once, each of n its part, at B bytes/s of a device in one direction; engines pass on what
    arrives while they receive (a pipelined broadcast), so that every one of their devices takes its shard S once,
    however many there are. Start-up of the exchanges, milliseconds, is left out.
    """
    return max(weights / trainers, shard) / bytes_per_s


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
