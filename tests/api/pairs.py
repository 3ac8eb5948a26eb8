"""Pairs of questions of which the second asks for less, or leaves an option out: its plan is never worse.

For tests, and for thousands in `bench`.

A pair is drawn from one number, so that it can be asked again alone. `worse` says what does not hold of one; a question
that has no plan, or none that keeps its targets, promises nothing.
"""

from __future__ import annotations

import random
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from chipwise.api.requests.doors import read_request
from chipwise.api.requests.planning import PlanRequest
from chipwise.catalog.chips import get_chip
from chipwise.catalog.preferences import preferences
from chipwise.catalog.price import Pricing
from chipwise.cost.device import Device
from chipwise.errors import ChipwiseError
from chipwise.report.assemble import contenders
from chipwise.report.media import MediaPlan, MediaReport
from chipwise.report.plans import PlanReport
from chipwise.report.train_assemble import ENDED
from chipwise.report.training import TrainReport
from chipwise.report.training import over as ended
from chipwise.search.deployments import few_of

__all__ = ["ASKED", "Answer", "Pair", "answer", "command", "pairs", "worse"]

Question = Mapping[str, Any]

ASKED = ("serve", "batch", "owned", "desk", "networks", "training")
"""The kinds of questions that are asked."""

SAME = 1e-6
SEARCHED = 0.02
"""Of the throughput of a batch: where it lies between two points of the grid is searched, not solved."""
LIKELY = 0.02
"""Of a probability that no plan keeps: the likeliest within a per cent may be any."""

MODELS = (
    "meta-llama/Llama-3.1-8B",
    "Qwen/Qwen3-8B",
    "Qwen/Qwen3-32B",
    "Qwen/Qwen3-30B-A3B",
    "openai/gpt-oss-20b",
    "openai/gpt-oss-120b",
    "google/gemma-3-27b-it",
    "meta-llama/Llama-3.1-70B",
    "mistralai/Mixtral-8x7B-v0.1",
    "deepseek-ai/DeepSeek-V3",
)
PACKED = ("openai/gpt-oss-20b", "openai/gpt-oss-120b", "deepseek-ai/DeepSeek-V3")
"""Checkpoints of 4 or 8 bits: no wider format is tried unless it is asked for."""
CHIPS = (
    "h100-sxm5-80gb",
    "h200-sxm-141gb",
    "b200-sxm",
    "a100-sxm4-80gb",
    "mi300x",
    "l40s",
    "l4",
    "rtx-4090",
    "tpu-v6e",
    "trainium2",
    "gaudi3",
)
DESKS = ("rtx-4090", "rtx-3090", "m4-max:64gb", "l40s")
DESK_MODELS = ("Qwen/Qwen3-8B", "Qwen/Qwen3-14B", "Qwen/Qwen3-32B", "meta-llama/Llama-3.1-8B")
NETWORKS = (
    "resnet50",
    "mobilenet_v2",
    "yolov8n",
    "whisper-large-v3",
    "efficientnet_b0",
    "unet3d",
    "dlrm-v2",
    "sdxl",
    "bge-m3",
)
TRAINED = ("meta-llama/Llama-3.1-8B", "Qwen/Qwen3-8B", "Qwen/Qwen3-30B-A3B")
TRAINERS_CHIPS = (
    "h100-sxm5-80gb",
    "h200-sxm-141gb",
    "a100-sxm4-80gb",
    "b200-sxm",
    "mi300x",
    "gb200-nvl72",
    "trainium1",
)
TIMES = ("ttft", "tpot", "e2e")


@dataclass(frozen=True)
class Pair:
    """Two questions of a verb each. `equal`: both mean the same, and have the same answer. `slack` is what the cost of
    the second may be above that of the first."""

    kind: str
    tight: tuple[str, Question]
    loose: tuple[str, Question]
    equal: bool = False
    slack: float = SAME

    def __str__(self) -> str:
        return f"{self.kind}\n    {command(*self.tight)}\n    {command(*self.loose)}"


def command(verb: str, question: Question) -> str:
    """A question as a command line."""
    words = ["chipwise", verb, *([question["model"]] if "model" in question else [])]
    for name, value in question.items():
        if name != "model":
            words += [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join(words)


@dataclass(frozen=True)
class Answer:
    """What is compared of an answer: what its cheapest plan and its first cost, whether targets are `kept` and how
    likely, in which formats; `unit` is of the cost; `figures` are what equal questions have alike."""

    cost: float
    first: float
    kept: bool = True
    chance: float = 1.0
    formats: frozenset[str] = frozenset()
    unit: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    plans: str = ""


def answer(verb: str, question: Question) -> Answer | ChipwiseError:
    """The answer to a question, or why there is none."""
    asked = read_request(verb, {**question, **({} if verb in ("local", "train") else {"evidence": "none"})})
    try:
        if isinstance(asked, PlanRequest) and not asked.media(asked.model):
            found = asked.ranked(None, published=False).report
            return _planned(asked, found)
        report = asked.run()
    except ChipwiseError as error:
        return error
    if verb == "local":
        found = report.models[0]
        at = {"ttft_s": found.ttft_s.mid, "pace": 1.0 / found.tokens_per_s.mid}
        return Answer(at["pace"], at["pace"], figures=at, formats=_one(found), plans=found.precision)
    return _trained(report) if verb == "train" else _network(report)


def _trained(report: TrainReport) -> Answer:
    """What is compared of plans of a training run: dollars, or days where no price is known. What the first may cost
    more, where no deadline says what a day is worth, are `sooner` of the cost."""
    first, least = report.plans[0], report.cheapest or report.plans[0]
    chance = 1.0 if first.chance is None else first.chance
    if first.usd is None or least.usd is None:
        days = first.days.mid
        return Answer(least.days.mid, days, report.kept, chance, _one(first), "days")
    said = f"{first.chips}x {first.chip} {first.stack} {first.precision} {first.days.mid:.3g} d"
    over = preferences().sooner if first.chance is None else preferences().evidence
    if ended(least) and not ended(first):
        over = (1.0 + over) * ENDED - 1.0
    cost = first.usd.mid * (1.0 + preferences().evidence) / (1.0 + over)
    return Answer(least.usd.mid, cost, report.kept, chance, _one(first), "$", plans=said)


def _network(report: MediaReport) -> Answer:
    """What is compared of plans of a network without tokens: dollars of a job, an hour of the rate asked, else of a
    thousand samples; of chips without a price the chips, or of one's own seconds of a sample."""
    first = report.plans[0]

    def cost(plan: MediaPlan) -> float:
        if plan.job is not None and plan.job.usd is not None:
            return plan.job.usd.mid
        if report.rate_per_s is not None:
            return float(plan.chips) if plan.price is None else plan.price.mid
        if plan.usd_per_1000 is not None:
            return plan.usd_per_1000.mid
        return 1.0 / plan.samples_per_s.mid if report.owned else float(plan.chips)

    unit = "chips" if first.price is None else "$"
    chance = 1.0 if first.chance is None else first.chance
    figures = {"samples_per_s": first.samples_per_s.mid / first.chips, "latency_s": first.latency_s.mid}
    words = f"{first.chips}x {first.chip} {first.runtime} {first.precision} b{first.batch} {chance:.3f}"
    kept = chance >= report.confidence - 0.002
    least = cost(report.cheapest or first)
    return Answer(least, cost(first), kept, chance, _one(first), unit, figures, words)


def _one(plan: Any) -> frozenset[str]:
    return frozenset([plan.precision])


def _planned(asked: PlanRequest, report: PlanReport) -> Answer:
    """What is compared of plans of a language model."""
    c = contenders(report.plans, asked.workload_of(asked.task))
    first, saves = report.plans[0], report.saves
    least = report.cheapest or first
    cost = float(c.cost[0])
    figures = {"tokens_per_s": first.tokens_per_s.mid / first.chips, "ttft_s": first.ttft_s.mid, "pace": first.pace.mid}
    chance = 1.0 if first.chance is None else first.chance
    words = "; ".join(
        f"{p.chips}x {p.chip} {p.spread} {p.precision} {p.runtime} {'-' if p.chance is None else f'{p.chance:.3f}'}"
        for p in ((first,) if least is first else (first, least))
    )
    unit = "chips" if first.price is None else "$"
    formats = _one(first) | _one(least)
    return Answer(cost * (1.0 - saves), cost, report.kept, chance, formats, unit, figures, words)


LAST = frozenset({"int4"})
"""Formats that are tried only where nothing else has a plan."""


def worse(pair: Pair, tight: Answer | ChipwiseError, loose: Answer | ChipwiseError) -> str:
    """What of the second answer is worse than the first; nothing where it is not."""
    if isinstance(tight, ChipwiseError):
        return f"has a plan, the same in other words none: {tight}" if pair.equal and _is(loose) else ""
    if isinstance(loose, ChipwiseError):
        return f"no plan any more: {loose}"
    if pair.equal:
        for name, value in tight.figures.items():
            other = loose.figures.get(name)
            if other is not None and not np.isclose(other, value, rtol=pair.slack):
                return f"{name} {value:.6g}, then {other:.6g} ({tight.plans} | {loose.plans})"
        return ""
    if tight.unit != loose.unit or (tight.unit == "chips" and pair.slack == SEARCHED):
        return ""  # of chips without a price a batch counts tokens alone
    if tight.formats & LAST != loose.formats & LAST:
        return ""
    most, evidence = 1.0 + pair.slack, 1.0 + preferences().evidence
    said = f"{tight.plans} | {loose.plans}"
    if tight.kept and not loose.kept:
        return f"kept, then not ({said})"
    if not loose.kept:
        dim = pair.kind.split()[-1] in TIMES and loose.chance < tight.chance - LIKELY
        return f"{tight.chance:.3f} likely, then {loose.chance:.3f} ({said})" if dim else ""
    # certainty that nobody named is bought where it is not too dear: then it is what costs more
    surer = loose.chance >= preferences().confidence - LIKELY > tight.chance
    if tight.kept and loose.cost > tight.cost * most and not surer:
        return f"cheapest {tight.cost:.6g}, then {loose.cost:.6g} ({said})"
    if loose.first > loose.cost * evidence * most:
        return f"first {loose.first:.6g}, cheapest {loose.cost:.6g} ({said})"
    return ""


def _is(found: Answer | ChipwiseError) -> bool:
    return isinstance(found, Answer)


def pairs(count: int, seed: int, asked: tuple[str, ...] = ASKED) -> Iterator[Pair]:
    """So many pairs, a few of each question, so that questions are answered once for several."""
    drawers = {
        "serve": (_serve, 12),
        "batch": (_batch, 2),
        "owned": (_owned, 2),
        "desk": (_desk, 1),
        "networks": (_networks, 3),
        "training": (_training, 3),
    }
    names, weights = [*asked], [drawers[name][1] for name in asked]
    made, place = 0, 0
    while made < count:
        draw = random.Random(f"{seed}:{place}")
        place += 1
        for pair in drawers[draw.choices(names, weights)[0]][0](draw):
            if made < count:
                made += 1
                yield pair


MANY = 4
"""Pairs of one question."""


def _loosened(draw: random.Random, verb: str, q: Question, changes: Mapping[str, Question | None]) -> Iterator[Pair]:
    """Some of the changes that make a question looser: values in place of its own, None for options left out."""
    for kind in draw.sample(sorted(changes), min(MANY, len(changes))):
        changed = {**q, **(changes[kind] or {})}
        loose = {name: value for name, value in changed.items() if value is not None}
        slack = SEARCHED if q.get("task") == "batch" else SAME
        # at one count trainers are weighed by days, though checkpoints, which are paid for too, differ in size
        slack = preferences().evidence if kind == "without trainer" else slack
        yield Pair(kind, (verb, q), (verb, loose), slack=slack)


def _ms(seconds: float) -> str:
    return f"{1000.0 * seconds:.4g}ms"


def _lengths(draw: random.Random) -> dict[str, Any]:
    return {"in": round(2 ** draw.uniform(6, 13)), "out": round(2 ** draw.uniform(1, 10.5))}


def _stronger(draw: random.Random, chip: str) -> dict[str, Question]:
    """The chip with more of something."""
    device, packages = Device.of(get_chip(chip)), get_chip(chip).devices_per_package
    by = draw.choice((1.05, 1.3, 2.0))
    hbm = by * packages * float(np.asarray(device.memory_bytes_per_s))
    memory = get_chip(chip).memory
    room = by * (memory.usable_bytes or memory.label_bytes or 0.0)
    more = {
        "more bandwidth": {"set": f"hbm={hbm / 1e12:.9f}TB/s"},
        "more memory": {"set": f"memory={room / 1e9:.6f}GB"},
    }
    known = {name: rate for name, rate in get_chip(chip).matrix.items() if name in ("bf16", "fp8")}
    if known:
        rates = ",".join(f"{name}={by * rate * packages / 1e12:.6f}TFLOPS" for name, rate in known.items())
        more["more FLOPs"] = {"set": rates}
    return more


def _serve(draw: random.Random) -> Iterator[Pair]:
    """A rate with targets."""
    chips = draw.sample(CHIPS, draw.choice((1, 1, 2)))
    q: dict[str, Any] = {"model": draw.choice(MODELS), "chips": ",".join(chips), **_lengths(draw)}
    rate = 10 ** draw.uniform(-0.7, 1.5)
    q["rate"] = f"{rate:.3f}/s"
    seconds = {"tpot": 10 ** draw.uniform(-2.1, -0.9), "ttft": 10 ** draw.uniform(-0.7, 0.8)}
    seconds["e2e"] = seconds["ttft"] + q["out"] * seconds["tpot"]
    if draw.random() < 0.8:
        q["tpot"] = _ms(seconds["tpot"])
    if draw.random() < 0.6:
        q["ttft"] = _ms(seconds["ttft"])
    if draw.random() < 0.2:
        q["e2e"] = _ms(seconds["e2e"])
    if draw.random() < 0.25:
        q["percentile"] = draw.choice(("p95", "p99"))
    if draw.random() < 0.35:
        q["confidence"] = draw.choice(("80%", "95%", "99%"))
    if draw.random() < 0.15:
        q["precision"] = draw.choice(("fp8", "bf16"))
    if draw.random() < 0.25:
        q["runtime"] = draw.choice(("vllm", "sglang", "trtllm"))
    if draw.random() < 0.15:
        q["max_chips"] = draw.choice((2, 4, 8, 16))
    if draw.random() < 0.15:
        q["max_usd_per_h"] = draw.choice((5, 20, 60))
    if draw.random() < 0.1:
        q["spare"] = 1
    by = draw.choice((1.02, 1.1, 1.3, 2.0))
    changes: dict[str, Any] = {f"looser {n}": {n: _ms(by * seconds[n])} for n in TIMES if n in q}
    if {"tpot", "ttft", "e2e"} <= q.keys():  # else a default takes its place
        changes["without e2e"] = {"e2e": None}
    changes |= {
        "lower rate": {"rate": f"{rate / by:.3f}/s"},
        "lower confidence": {"confidence": draw.choice(("50%", "76%", "79%"))},
        "more of a replica": {"utilisation": draw.choice(("75%", "90%"))},
        "without chips": {"chips": ",".join([*chips, *draw.sample([c for c in CHIPS if c not in chips], 1)])},
    }
    if "percentile" in q:
        changes["mean"] = {"percentile": None}
        if q["percentile"] == "p99":
            changes["p95"] = {"percentile": "p95"}
    if q["model"] in PACKED:
        q.pop("precision", None)
    for name in ("runtime", "precision", "max_chips", "max_usd_per_h", "spare"):
        if name in q:
            changes[f"without {name}"] = {name: None}
    if len(chips) == 1:
        changes |= _stronger(draw, chips[0])
    if _scarce(chips):
        changes.pop("without max_chips", None)
    yield from _loosened(draw, "plan", q, changes)


def _scarce(chips: list[str]) -> bool:
    """Whether a market as a whole sells only a few of one of them."""
    from chipwise.catalog.snapshot import today

    return bool(few_of([get_chip(c) for c in chips], lambda c: Pricing().basis(c, today())))


def _batch(draw: random.Random) -> Iterator[Pair]:
    """A batch, or users at full load."""
    chips = draw.sample(CHIPS, draw.choice((1, 2)))
    q: dict[str, Any] = {"model": draw.choice(MODELS), "chips": ",".join(chips), **_lengths(draw), "task": "batch"}
    if draw.random() < 0.5:
        q |= {"tokens": draw.choice(("10M", "300M")), "deadline": draw.choice(("6h", "2d"))}
    if draw.random() < 0.4:
        q["runtime"] = draw.choice(("vllm", "sglang", "trtllm"))
    if draw.random() < 0.3:
        q["max_chips"] = draw.choice((2, 8))
    if draw.random() < 0.2:
        q["precision"] = "fp8"
    more = [c for c in CHIPS if c not in chips]
    changes: dict[str, Any] = {"without chips": {"chips": ",".join([*chips, draw.choice(more)])}}
    if "tokens" in q:
        changes["later deadline"] = {"deadline": draw.choice(("3d", "10d"))}
        changes["lower confidence"] = {"confidence": "60%"}
    if q["model"] in PACKED:
        q.pop("precision", None)
    for name in ("runtime", "max_chips", "precision"):
        if name in q:
            changes[f"without {name}"] = {name: None}
    if len(chips) == 1:
        changes |= _stronger(draw, chips[0])
    yield from _loosened(draw, "plan", q, changes)


def _owned(draw: random.Random) -> Iterator[Pair]:
    """The market restricted to one chip, and that chip owned; more of what one has."""
    chip = draw.choice(CHIPS)
    q: dict[str, Any] = {"model": draw.choice(MODELS), **_lengths(draw)}
    one = {**q, "task": "batch"}
    yield Pair("owned", ("plan", {**one, "chips": chip, "max_chips": 1}), ("plan", {**one, "have": f"1x{chip}"}), True)
    count = draw.choice((2, 4, 8))
    served = {**q, "rate": f"{10 ** draw.uniform(-0.7, 0.7):.3f}/s", "tpot": _ms(10 ** draw.uniform(-2.0, -1.0))}
    have = {**served, "have": f"{count}x{chip}"}
    yield Pair("more of the chip", ("plan", have), ("plan", {**have, "have": f"{2 * count}x{chip}"}))
    yield from _loosened(
        draw,
        "plan",
        have,
        {"looser tpot": {"tpot": "200ms"}, "lower confidence": {"confidence": "60%"}, "lower rate": {"rate": "0.1/s"}},
    )


def _desk(draw: random.Random) -> Iterator[Pair]:
    """A desk, asked by either verb."""
    chip, model = draw.choice(DESKS), draw.choice(DESK_MODELS)
    lengths = {"in": 1000, "out": 200}
    yield Pair(
        "desk",
        ("local", {"models": model, "have": chip, "context": "1200"}),
        ("plan", {"model": model, "task": "local", "have": chip, **lengths}),
        True,
    )
    card = chip
    q = {"model": model, "task": "local", **lengths}
    yield Pair("owned", ("plan", {**q, "chips": card, "max_chips": 1}), ("plan", {**q, "have": card}), True)


def _networks(draw: random.Random) -> Iterator[Pair]:
    """A network without tokens: a rate, a job, or one's own chips."""
    chips = draw.sample(CHIPS, draw.choice((1, 2)))
    q: dict[str, Any] = {"model": draw.choice(NETWORKS)}
    kind = draw.choice(("rate", "rate", "job", "owned"))
    if kind == "owned":
        one = {**q, "task": "batch"}
        market = {**one, "chips": chips[0], "max_chips": 1}
        yield Pair("owned network", ("plan", market), ("plan", {**one, "have": f"1x{chips[0]}"}), True)
        q |= {"have": f"{draw.choice((1, 4, 8))}x{chips[0]}"}
    else:
        q |= {"chips": ",".join(chips)}
    rate, e2e = 10 ** draw.uniform(0, 4), 10 ** draw.uniform(-1.5, 0.7)
    by = draw.choice((1.1, 2.0, 5.0))
    changes: dict[str, Any] = {}
    if kind == "job":
        samples, hours = 10 ** draw.uniform(3, 8), draw.choice((0.5, 2.0, 12.0))
        q |= {"task": "batch", "samples": f"{samples:.0f}"}
        if draw.random() < 0.6:
            q["deadline"] = f"{hours}h"
            changes["later deadline"] = {"deadline": f"{by * hours:g}h"}
        if draw.random() < 0.4:
            q["max_usd"] = draw.choice((5, 50, 500))
            changes["without max_usd"] = {"max_usd": None}
    else:
        q |= {"rate": f"{rate:.4g}/s", "e2e": _ms(e2e)}
        changes |= {"looser e2e": {"e2e": _ms(by * e2e)}, "lower rate": {"rate": f"{rate / by:.4g}/s"}}
        if draw.random() < 0.25:
            q["percentile"] = draw.choice(("p95", "p99"))
            changes["mean"] = {"percentile": None}
        if draw.random() < 0.2:
            q["spare"] = 1
            changes["without spare"] = {"spare": None}
    if draw.random() < 0.5:
        q["batch"] = draw.choice((1, 4, 16, 64, 256))
        changes["without batch"] = {"batch": None}
    if {"e2e", "deadline"} & q.keys() and draw.random() < 0.3:
        q["confidence"] = "99%"
    if draw.random() < 0.2:
        q["precision"] = draw.choice(("bf16", "fp16"))
        changes["without precision"] = {"precision": None}
    if draw.random() < 0.2:
        q["offload"] = draw.choice(("model", "none"))
        changes["without offload"] = {"offload": None}
    if kind == "rate":
        changes["without chips"] = {"chips": ",".join([*chips, *draw.sample(CHIPS, 1)])}
        if draw.random() < 0.2:
            q["max_chips"] = draw.choice((2, 8))
            changes["without max_chips"] = {"max_chips": None}
        if draw.random() < 0.2:
            q["max_usd_per_h"] = draw.choice((5, 50))
            changes["without max_usd_per_h"] = {"max_usd_per_h": None}
    if {"e2e", "deadline"} & q.keys():
        changes["lower confidence"] = {"confidence": "70%"}
    if len(chips) == 1 and changes:
        changes |= _stronger(draw, chips[0])
    if _scarce(chips):
        changes.pop("without max_chips", None)
    yield from _loosened(draw, "plan", q, changes)


def _training(draw: random.Random) -> Iterator[Pair]:
    """A training run with a deadline or without."""
    chips = draw.sample(TRAINERS_CHIPS, draw.choice((1, 1, 2)))
    q: dict[str, Any] = {"model": draw.choice(TRAINED), "chips": ",".join(chips)}
    q["task"] = draw.choice(("train", "finetune"))
    few = q["task"] == "finetune"
    tokens = draw.choice((0.01, 0.1, 1.0) if few else (10.0, 100.0))
    q["tokens"] = f"{tokens}B"
    changes: dict[str, Any] = {"smaller job": {"tokens": f"{tokens / 2:g}B"}}
    if few:
        q["method"] = draw.choice(("full", "lora", "qlora"))
    if draw.random() < 0.7:
        q["deadline"] = draw.choice(("6h", "2d") if few else ("10d", "30d", "90d"))
        changes |= {"later deadline": {"deadline": "180d"}, "lower confidence": {"confidence": "60%"}}
    if draw.random() < 0.3:
        q["trainer"] = draw.choice(("megatron", "torchtitan", "fsdp"))
    if draw.random() < 0.4:
        q["counts"] = draw.choice(("2,8", "8") if few else ("64", "64,128"))
    if draw.random() < 0.2:
        q["max_usd"] = draw.choice((20, 500) if few else (5_000, 50_000))
    if draw.random() < 0.2:
        q["max_usd_per_h"] = draw.choice((10, 40) if few else (100, 400))
    if draw.random() < 0.2:
        q["global_batch"] = 256
    if draw.random() < 0.2:
        q["max_chips"] = draw.choice((4, 8) if few else (64, 256))
    for name in ("trainer", "counts", "max_usd", "max_usd_per_h", "max_chips"):
        # without a deadline a trainer that nobody measured has to be better beyond its own error, and a library that
        # `launch` writes no files for is planned where it is named alone
        if name in q and (name != "trainer" or ("deadline" in q and q["trainer"] != "fsdp")):
            changes[f"without {name}"] = {name: None}
    yield from _loosened(draw, "train", q, changes)
