"""A scheduler that looks at every sequence in every pass: what the engine must agree with; and a machine that
both are told of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.predict.events.rank import Rules
from chipwise.predict.steptable import StepTable
from chipwise.units import Array
from chipwise.workload.arrivals import Arrivals
from chipwise.workload.step import Step


@dataclass
class _Sequence:
    number: int
    prompt: int  # tokens to compute before the next one comes
    coming: int  # tokens of output
    computed: int = 0
    held: int = 0
    away: int = 0  # tokens that wait on the host

    @property
    def decodes(self) -> bool:
        return self.computed == self.prompt


def naive(requests: Arrivals, rules: Rules, table: StepTable) -> dict[str, Array]:
    """When the first pass of each request begins, and its first and last token come; how many were preempted."""
    assert requests.time_s is not None
    times = requests.time_s
    total, size = rules.blocks, rules.block_tokens
    began, first, last = (np.full(len(requests), np.nan) for _ in range(3))
    waiting: list[_Sequence] = []
    running: list[_Sequence] = []
    ghosts: list[_Sequence] = []
    now, arrived, preempted, started = 0.0, 0, 0, False

    def blocks(s: _Sequence) -> int:
        tokens = s.prompt + s.coming - 1 if rules.whole else max(s.prompt if not s.decodes else s.held, 1)
        return -(-tokens // size)

    while arrived < len(requests) or waiting or running:
        while arrived < len(requests) and times[arrived] <= now:
            waiting.append(_Sequence(arrived, int(requests.prompt[arrived]), int(requests.output[arrived])))
            arrived += 1
        if not waiting and not running:
            now = float(times[arrived])
            started = False
            continue
        cut = False

        moved = 0

        def make_room(now_running: list[_Sequence]) -> bool:
            nonlocal preempted, moved
            found = False
            while not rules.whole:
                need = sum(-(-(s.held + 1) // size) if s.decodes else blocks(s) for s in now_running)
                if need <= total:
                    break
                victim = now_running.pop()
                preempted += 1
                found = True
                if rules.moved_s is not None:
                    victim.away = victim.held if victim.decodes else victim.computed
                    if victim.decodes:
                        victim.prompt = victim.computed = victim.held
                    moved += victim.away
                    waiting.insert(0, victim)
                    continue
                tokens = victim.held + 1 if victim.decodes else victim.prompt
                waiting.insert(0, _Sequence(victim.number, tokens, victim.coming))
            return found

        if not rules.alone:
            cut = make_room(running)
        decoding = [s for s in running if s.decodes]
        budget = rules.budget - (0 if rules.alone else len(decoding))
        chunks: list[tuple[_Sequence, int]] = []
        tokens, pairs, back = 0, 0.0, 0
        if not cut and not (rules.static and started and decoding):
            for s in running:
                if not s.decodes and tokens < budget:
                    chunks.append((s, min(s.prompt - s.computed, budget - tokens)))
                    tokens += chunks[-1][1]
            while waiting and tokens < budget and len(running) < rules.most:
                s = waiting[0]
                grown = 0 if rules.alone else 1
                if (
                    sum(-(-(r.held + grown) // size) if r.decodes and not rules.whole else blocks(r) for r in running)
                    + (-(-(s.held + 1) // size) if s.decodes and not rules.whole else blocks(s))
                    + back
                    > total
                ):
                    break
                running.append(waiting.pop(0))
                moved, s.away = moved + s.away, 0
                if s.decodes:
                    if rules.alone:
                        back += -(-(s.held + 1) // size) - blocks(s)  # room for its next token is kept
                    else:
                        decoding.append(s)
                        budget -= 1
                    continue
                chunks.append((s, min(s.prompt - s.computed, budget - tokens)))
                tokens += chunks[-1][1]
        if rules.alone and chunks:
            decoding = []
        if rules.alone and not chunks:
            make_room(running)
            decoding = [s for s in running if s.decodes]
        seconds = moved * (rules.moved_s or 0.0)
        for s, chunk in chunks:
            pairs += chunk * (s.computed + chunk / 2.0)
            if np.isnan(began[s.number]):
                began[s.number] = now
        if chunks:
            seconds += table.prompts(len(decoding), tokens, pairs)
        if decoding:
            batch = decoding + ghosts
            seconds += table.line(len(batch), sum(s.held for s in batch) / len(batch)).seconds
            started = True
        now += seconds
        for s in ghosts if decoding else []:
            s.held += 1
        for s in decoding:
            s.held += 1
            s.coming -= 1
        for s, chunk in chunks:
            s.computed += chunk
            if s.decodes:
                s.held = s.prompt
                s.coming -= 1
                if np.isnan(first[s.number]):
                    first[s.number] = now
        for s in [s for s in running if s.coming == 0]:
            last[s.number] = now
            running.remove(s)
            if rules.static and s in decoding:
                ghosts.append(s)  # of a batch that ends together each is computed to the end
        started = started and bool(running)
        ghosts = ghosts if running else []
    return {"began": began, "first": first, "last": last, "preempted": np.array(preempted)}


def machine_seconds(step: Step) -> Array:
    """A machine: 5 ms a pass, and something for every token and every token held."""
    total = np.full(np.shape(step.tokens), 5e-3)
    for one, columns in step.by_segment():
        (s,) = one.segments
        new = np.asarray(s.batch) * np.asarray(s.q)
        total[..., slice(None) if columns is None else columns] += new * (4e-5 + 2e-8 * np.asarray(s.kv))
    return total
