"""What several requests ask alike: the use, the software, the money, the place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from math import inf
from typing import TYPE_CHECKING, Any, Literal

from chipwise.api.cache_tiers import GivenTiers
from chipwise.api.media_asked import Sampling
from chipwise.api.placing import Given, Terms
from chipwise.api.requests.field import (
    NAMES,
    NUMBER,
    OBJECT,
    PAIRS,
    RATES,
    SHARE,
    STRINGS,
    Asked,
    Reading,
    as_list,
    as_text,
    as_word,
    ask,
    count_of,
    duration,
    figure,
    option_of,
    outer,
    pairs,
    printable,
    share,
    split,
    whole,
)
from chipwise.api.tactics import Tactics
from chipwise.calibrate.parameters import Parameters, load_parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.chip_reader import read_chips
from chipwise.catalog.chips import get_chip, load_chips
from chipwise.catalog.harness import get_harness
from chipwise.catalog.machine import copies, counted, memory_bytes
from chipwise.catalog.override import Share
from chipwise.catalog.price import Pricing
from chipwise.catalog.releases import beyond, dated, runtime_named
from chipwise.catalog.system import parse_have
from chipwise.errors import Sentence, Setting, UsageError, check_known, shorten
from chipwise.parallel.layout import SHARES, Layout, Spread
from chipwise.parallel.placement import Offloaded
from chipwise.predict.events.scaling import ScalingGiven
from chipwise.predict.speculative import LOOKED_UP, Speculation
from chipwise.tracing.sources import is_pipeline
from chipwise.units import parse_quantity
from chipwise.values import dataclass
from chipwise.workload.arrivals import Arrivals, read_log
from chipwise.workload.curve import RateCurve, read_curve
from chipwise.workload.lengths import MOST_SHARERS, PrefixCache
from chipwise.workload.lengths import Lengths as Distribution
from chipwise.workload.lora import Adapter
from chipwise.workload.media.assemble import reads_text
from chipwise.workload.workload import CONFIDENCE, USUAL_TPOT_S, USUAL_TTFT_S, UTILISATION, Picture, Task, Workload

if TYPE_CHECKING:
    from chipwise.api.media_asked import Sampling

TTFT = "target for the time to the first token, e.g. 500ms; default 2s (serve)"
TPOT = "target for the time per output token, e.g. 30ms; default 50ms (serve)"
LENGTH = figure("", low=1, high=1e8)
RATE = figure("1/s", low=1e-9, high=1e8)


def _spread(text: str, option: str) -> tuple[float, float]:
    both = pairs(text, option) if "=" in text else {"in": text, "out": text}
    strange = sorted(set(both) - {"in", "out"})
    if strange:
        raise UsageError(f"{option}: no lengths are called '{shorten(strange[0])}'", "for example in=1.2,out=0.6")
    given = {name: parse_quantity(said, "", option, low=0, high=10) for name, said in both.items()}
    return given.get("in", 0.0), given.get("out", 0.0)


def _percentile(text: str, option: str) -> float | None:
    said = text.strip().lower().removeprefix("p")
    if said == "mean":
        return None
    # 0.99 is what numerical libraries call p99
    value = parse_quantity(said, "", option, low=0.0, high=inf)
    return value if 0.5 <= value < 1.0 else parse_quantity(said, "", option, low=50.0, high=99.9) / 100.0


def _guessed(text: str, option: str) -> tuple[Speculation, bool]:
    """Tokens guessed ahead, and whether by lookup. Without an acceptance it is looked up (`Tactics.of`)."""
    given = pairs(text, option)
    hint = "for example accept=0.7,draft=3, or with=lookup too"
    strange = sorted(set(given) - {"accept", "draft", "with"})
    if strange:
        raise UsageError(f"{option}: no part is called '{shorten(strange[0])}'", hint)
    if "accept" not in given and "with" in given:
        raise UsageError(f"{option}: no acceptance of a lookup, which depends on the text", hint)
    if given.get("with", "lookup") != "lookup":
        raise UsageError(f"{option}: cannot guess with '{shorten(given['with'])}'", hint)
    draft = parse_quantity(given.get("draft", "3"), "", "draft", low=1, high=64)
    if "accept" not in given:
        return Speculation(int(draft), 0.0, published=LOOKED_UP), False
    return Speculation(int(draft), share(given["accept"], "accept") or 0.0), "with" in given


def _adapters(text: str, option: str) -> tuple[int, Adapter]:
    """How many adapters, and what one of them is."""
    given = pairs(text, option)
    strange = sorted(set(given) - {"rank", "count", "targets"})
    if strange or "rank" not in given:
        what = f"no adapter has a {strange[0]}" if strange else "no rank"
        raise UsageError(f"{option}: {what}", "for example rank=16,count=8,targets=q_proj+v_proj")
    rank = int(parse_quantity(given["rank"], "", "rank", low=1, high=65_536))
    count = int(parse_quantity(given.get("count", "1"), "", "count", low=1, high=1e6))
    return count, Adapter(rank, tuple(given.get("targets", "all-linear").split("+")))


LORA = "low-rank adapters, e.g. rank=16,count=8"
ADAPTERS = Reading(_adapters, as_text, (OBJECT,))


def shared(text: str, option: str) -> Share:
    """What other work leaves of a chip."""
    given = pairs(text, option)
    hint = "for example gpu=60%,memory=16GB, or mig=3g.40gb alone"
    strange = sorted(set(given) - ({"mig"} if "mig" in given else {"gpu", "memory"}))
    if strange:
        raise UsageError(f"{option}: no part is called '{shorten(strange[0])}'", hint)
    if "mig" in given:
        return Share(instance=given["mig"].lower())
    gpu = share(given["gpu"], f"{option} gpu") if "gpu" in given else 1.0
    if not gpu:
        raise UsageError(f"{option}: nothing of the chip is left", hint)
    said = given.get("memory", "")
    if said.rstrip().endswith("%"):
        part = share(said, f"{option} memory")
        if not part:
            raise UsageError(f"{option}: nothing of the memory is left", hint)
        return Share(gpu, memory=part)
    memory = parse_quantity(said, "B", f"{option} memory", low=1e6, high=1e14) if "memory" in given else None
    return Share(gpu, memory)


def _offloaded(text: str, option: str) -> Offloaded | str:
    """What of a model lies where in a machine; of models without tokens a word."""
    if text.strip().lower() in WAITING:
        return text.strip().lower()
    given = {name.replace("_", "-"): said for name, said in pairs(text, option).items()}
    hint = "for example gpu-layers=30, cpu-experts=24 or split=3/1; of models without tokens model or sequential"
    strange = sorted(set(given) - {"gpu-layers", "cpu-experts", "split"})
    if strange:
        raise UsageError(f"{option}: no part is called '{shorten(strange[0])}'", hint)
    counts = {
        name: whole(given[name], f"{option} {name}", low=0, high=10_000) if name in given else None
        for name in ("gpu-layers", "cpu-experts")
    }
    shares = given.get("split", "").split("/") if "split" in given else []
    split_ = tuple(parse_quantity(part, "", f"{option} split", low=1e-6, high=1e6) for part in shares)
    return Offloaded(counts["gpu-layers"], counts["cpu-experts"], split_)


def _prompt_workers(text: str, option: str) -> tuple[Layout, int]:
    """The layout of a worker for prompts, and how many there are."""
    given = pairs(text, option)
    strange = sorted(set(given) - {"workers", "tp", "pp", "dp", "ep"})
    if strange:
        raise UsageError(f"{option}: no part is called '{shorten(strange[0])}'", "for example workers=2,tp=4")
    counts = {name: whole(said, f"{option} {name}", low=1, high=100_000) for name, said in given.items()}
    workers = counts.pop("workers", 1)
    return Layout(**{name: float(n) for name, n in counts.items()}), workers


def _scaled(text: str, option: str) -> ScalingGiven:
    """How replicas follow the load."""
    given = pairs(text, option)
    check_known("figure of scaling", sorted(given), SCALED)
    found: dict[str, Any] = {}
    for name, said in given.items():
        if name == "least":
            found["least"] = whole(said, f"{option} least", low=1, high=100_000)
        elif name == "target":
            found["target"] = parse_quantity(said, "", f"{option} target", low=1e-3, high=1e6)
        else:
            low = 0.0 if name == "hold" else 1e-3
            found[f"{name}_s"] = duration(low, units=("s", "min")).read(said, f"{option} {name}")
    return ScalingGiven(**found)


def _tiers(text: str, option: str) -> GivenTiers:
    """Tiers below a cache."""
    given = pairs(text, option)
    check_known("figure of tiers", sorted(given), TIERS)
    for name, needs, example in (
        ("disk", "host", "256GB"),
        ("disk", "disk_rate", "6GB/s"),
        ("disk_rate", "disk", "2TB"),
    ):
        if name in given and needs not in given:
            raise UsageError(f"{option}: {name} needs {needs}", f"for example {needs}={example}")
    if "host" not in given:
        raise UsageError(f"{option} names no room", "for example host=256GB")
    found = {
        f"{name.partition('_')[0]}_bytes{'_per_s' * name.endswith('_rate')}": parse_quantity(
            said, "B/s" if name.endswith("_rate") else "B", f"{option} {name}", low=1e6, high=1e18
        )
        for name, said in given.items()
    }
    return GivenTiers(**found)


def _figures(text: str, option: str) -> dict[str, float]:
    return {name: parse_quantity(said, "", name, high=1e12) for name, said in pairs(text, option).items()}


def _pictures(text: str, option: str) -> tuple[Picture, ...]:
    """How many pictures of which sizes."""
    found = []
    for part in split(text):
        match = re.fullmatch(r"(?:(\d{1,4})\*)?(\d{1,6})x(\d{1,6})", part.strip().lower())
        if not match or not all(int(n) for n in match.groups("1")):
            raise UsageError(f"{option}: '{shorten(part)}' is no picture", "width x height in pixels, e.g. 1280x720")
        found.append(Picture(*(int(n) for n in match.groups("1"))))
    return tuple(found)


def _sides(value: Any) -> str:
    """`(1280, 720)` as text."""
    return "x".join(map(as_word, value)) if isinstance(value, tuple | list) else as_word(value)


def _sizes(value: Any) -> str:
    """Pictures of `[(1280, 720), "2*336x336"]` as text; two numbers are one picture."""
    one = not isinstance(value, tuple | list) or all(isinstance(side, int) for side in value)
    return _sides(value) if one else ",".join(map(_sides, value))


def _tokens(text: str, option: str) -> int:
    return whole(text, option, low=1, high=1e7)


def _counts(text: str, option: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(whole(part, option, low=1, high=1e6) for part in split(text)))


def _own_chips(text: str, option: str) -> Mapping[str, Chip]:
    """The chips of a table, by id; the catalogue's own reader reads it."""
    if len(text) > OWN_CHARS:
        raise UsageError(f"{option}: {len(text):,} characters are no table of chips", f"at most {OWN_CHARS:,}")
    if "=" not in text:
        what = f"{option}: {shorten(text)} is no TOML text"
        raise UsageError(what, "a file is named where a chip is: --chip FILE.toml, --chips FILE.toml")
    found = read_chips(text, option, load_chips().entries)
    for chip in found.values():
        printable(option, chip.name)
    if not found:
        raise UsageError(f"{option}: no chip stands in this text", 'as in [my-chip] with name, memory = "48 GB", ...')
    return found


TIERS = ("host", "disk", "host_rate", "disk_rate")
SCALED = ("target", "least", "start", "hold", "every")
OWN_CHARS = 50_000
"""Characters of a table of chips that is given as text."""
WAITING = ("none", "model", "sequential")
"""Which parts of a model without tokens wait on the host."""
HOST_MEMORY = "memory of the host, for what does not fit on the card, e.g. 128GB"
HOST_BYTES = Reading(memory_bytes, as_word, (NUMBER,))
COUNTS = Reading(_counts, as_list, (NUMBER, STRINGS))
"""Whole numbers by commas, or a list of them."""
DAY = "--day is already a load"
SPREAD = Reading(_spread, as_text, (NUMBER, OBJECT))
PERCENTILE = Reading(_percentile, as_word, (NUMBER,))


@dataclass(frozen=True, kw_only=True)
class LengthOptions(Asked):
    """How long prompts and answers are."""

    in_: str = ask("mean prompt tokens", "2000", name="in", reading=LENGTH)
    out: str = ask("mean output tokens", "300", reading=LENGTH)
    images: str | None = ask(
        "images in every prompt, e.g. 1280x720 or 2*1024x1024,336x336; their tokens add to --in",
        reading=Reading(_pictures, _sizes, (STRINGS,)),
    )
    cv: str | None = ask(
        "coefficient of variation of lengths, e.g. 0.8 or in=1.2,out=0.6; default: all equal", reading=SPREAD
    )
    log: str | None = ask(
        "request log instead of --in and --out: CSV or JSON lines with prompt_tokens, output_tokens and, where known, "
        "timestamp; traces and outputs of benchmark clients as they are, .gz too",
        file=True,
    )
    prefix_hit: str | None = ask("share of prompt tokens served from the prefix cache, e.g. 30%", reading=SHARE)
    common_prefix: str | None = ask(
        "tokens of the prefix that all prompts share, stored once, e.g. 1k; needs --prefix-hit",
        reading=figure("", low=0, high=1e8),
    )
    sharers: str | None = ask(
        "beams or answers that share one prompt in the cache, e.g. 4; needs --prefix-hit",
        reading=figure("", low=1, high=MOST_SHARERS),
    )

    def workload(self, task: Task) -> Workload:
        """The workload without load or targets. Raises `UsageError` for lengths that cannot be."""
        log = self._read()
        spread = Distribution(self.values["in_"], self.values["out"], *(self.values["cv"] or ()))
        if log is not None:
            spread = log.lengths
        alike = not (spread.prompt_cv or spread.output_cv)
        return Workload(
            task=task,
            prompt_tokens=spread.prompt_tokens,
            output_tokens=spread.output_tokens,
            lengths=None if alike else spread,
            prefix=self._prefix(),
            pictures=self.values["images"] or (),
            log=log,
        )

    def _read(self) -> Arrivals | None:
        """The requests of the log, None where none is named. Raises `UsageError` for lengths said twice."""
        if self.log is None:
            return None
        if self.cv is not None:
            raise UsageError("--log and --cv exclude each other", "the log holds its own spread")
        return read_log(self.log)

    def _prefix(self) -> PrefixCache | None:
        found, hint = self.values["prefix_hit"], "the part of prompt tokens that is found"
        kept = {name: self.values[name] for name in ("common_prefix", "sharers")}
        for name, value in kept.items():
            if not found and value:
                raise UsageError(f"--{name.replace('_', '-')} needs --prefix-hit", hint, field=name)
        return PrefixCache(found, kept["common_prefix"] or 0.0, kept["sharers"] or 1.0) if found else None


@dataclass(frozen=True, kw_only=True)
class TierOptions(Asked):
    """Where prefixes lie that a cache has no room for."""

    cache_tiers: str | None = ask(
        "room for prefixes below the cache of each replica, e.g. host=256GB,disk=2TB,disk_rate=6GB/s; host_rate is the "
        "link of a chip where it differs; for a --log with hash_ids",
        reading=Reading(_tiers, as_text, (OBJECT,)),
    )


@dataclass(frozen=True, kw_only=True)
class ScaleOptions(Asked):
    """How replicas follow the load."""

    scale: str | None = ask(
        "replicas follow the load, e.g. target=8,least=2,start=90s,hold=5min: requests per replica, fewest, time "
        "to start and to stop one",
        reading=Reading(_scaled, as_text, (OBJECT,)),
    )


@dataclass(frozen=True, kw_only=True)
class Targets(LengthOptions):
    """How the model is used: lengths, load, and what is asked of the time."""

    rate: str | None = ask("requests per second, e.g. 10/s; default: each replica at full load", reading=RATE)
    ttft: str | None = ask(TTFT, reading=duration())
    tpot: str | None = ask(TPOT, reading=duration())
    e2e: str | None = ask("target for the time of a whole answer, e.g. 20s", reading=duration())
    percentile: str | None = ask("what targets hold for, e.g. p99; default: the mean", reading=PERCENTILE)
    confidence: str | None = ask(
        "required probability that targets hold; 50% plans on midpoints; default: 90%, 75% where more is dear",
        reading=SHARE,
    )
    utilisation: str | None = ask(
        "load of a plan as a share of the most that keeps the targets; default: 70%", reading=SHARE
    )
    day: str | None = ask(
        "requests per second over a day in equal slices, e.g. 2,2,1,4,9, or a file of them; sized for its peak",
        file=True,
        reading=RATES,
    )

    def workload_of(self, task: Task) -> Workload:
        """The workload with its load and targets; a served one without targets gets the stated ones."""
        ttft_s, tpot_s = self.values["ttft"], self.values["tpot"]
        if task == "serve" and self.e2e is None:
            ttft_s, tpot_s = ttft_s or USUAL_TTFT_S, tpot_s or USUAL_TPOT_S
        workload, rate, curve = self.workload(task), self.values["rate"], self.curve()
        if curve is not None and (task != "serve" or rate is not None):
            raise UsageError(DAY, "without --rate, and with --task serve", field="day")
        log = workload.log
        if curve is not None:
            rate = curve.peak
        elif log is not None and log.rate_per_s is not None and task == "serve":
            # a log that knows its times is a load
            log = log if rate is None else log.at_rate(rate)
            rate = log.rate_per_s
        return replace(
            workload,
            log=log,
            rate_per_s=rate,
            ttft_s=ttft_s,
            tpot_s=tpot_s,
            e2e_s=self.values["e2e"],
            percentile=self.values["percentile"],
            confidence=CONFIDENCE if self.confidence is None else self.values["confidence"],
            firm=self.confidence is not None,
            utilisation=UTILISATION if self.utilisation is None else self.values["utilisation"],
        )

    def curve(self) -> RateCurve | None:
        """The arrivals of a day, None where none were given."""
        return None if self.day is None else read_curve(self.day)


def _resolution(text: str, option: str) -> tuple[int, int]:
    """Width and height: `1280x720`, or one number for both."""
    parts = [part.strip() for part in text.lower().replace("*", "x").split("x")]
    if len(parts) > 2 or not all(part[:1].isdecimal() for part in parts):
        hint = "width and height, e.g. 1024 or 832x480"
        raise UsageError(f"{option}: cannot read '{shorten(text)}'", hint)
    sides = [whole(part, option, low=1, high=100_000) for part in parts]
    return sides[0], sides[-1]


def _spread_over(text: str, option: str) -> Spread:
    """How devices share a request."""
    given = pairs(text, option)
    strange = sorted(set(given) - set(SHARES))
    if strange:
        hint = f"one of {', '.join(SHARES)}, e.g. ulysses=4,cfg=2"
        raise UsageError(f"{option}: devices do not share by '{shorten(strange[0])}'", hint)
    degrees = {SHARES[n]: whole(said, f"{option} {n}", low=1, high=4096) for n, said in given.items()}
    return Spread(**degrees)


def _setting(said: str) -> float | str:
    """The value of a setting: a number, a share such as 40%, or a word."""
    try:
        return float(said.removesuffix("%")) * (0.01 if said.endswith("%") else 1.0)
    except ValueError:
        return said


OPTIONS = {"batch": "--batch 4", "precision": "--precision fp8", "trained": "--training", "name": "chipwise fit sdxl"}
"""What a pipeline is told beside the settings of its family, and how that is asked."""


@dataclass(frozen=True, kw_only=True)
class SampleOptions(Asked):
    """Models that generate no tokens: what they make or read, and how devices share it."""

    batch: int | None = ask("models without tokens: samples at once, e.g. 4; default: 1, of a plan the best")
    resolution: str | None = ask(
        "models of images and video: width and height, e.g. 1280x720",
        reading=Reading(_resolution, _sides, (NUMBER, STRINGS)),
    )
    frames: int | None = ask("models of video: frames of a clip, e.g. 81")
    steps: int | None = ask("generators of images and video: denoising steps, e.g. 28")
    guidance: float | None = ask("the same: guidance scale; above 1 every step takes two passes, e.g. 7.5")
    settings: str | None = ask(
        "models without tokens: further sizes of the family, e.g. tokens=128 or audio_s=30,part=encoder", reading=PAIRS
    )
    training: bool = ask("models without tokens: one training step, not a request", False)
    spread: str | None = ask(
        "models without tokens: how devices share a request, e.g. ulysses=4,cfg=2; also dp, ring, tp, pipefusion, "
        "fsdp=1, tables=1",
        reading=Reading(_spread_over, as_text, (OBJECT,)),
    )
    offload: str | None = ask(
        "what lies on the host: gpu-layers=30 (the other layers), cpu-experts=24 (routed experts of the first layers), "
        "split=3/1 (two kinds of cards); default: as little as can be. Models without tokens: none, model "
        "(one part at a time) or sequential",
        reading=Reading(_offloaded, as_text, (OBJECT,)),
    )
    aside: str | None = ask("models without tokens: parts that the host computes, e.g. text_encoder", reading=NAMES)

    def _settings(self) -> dict[str, Any]:
        """Settings by name. Raises `UsageError` for one that is an option, or was given as one too."""
        settings = {name: _setting(said) for name, said in (self.values["settings"] or {}).items()}
        lengths = {name: LENGTHS[name] for name in self._given() & {*LENGTHS}}
        both = next((name for name, size in lengths.items() if size in settings), None)
        if both is not None:
            what = f"{lengths[both]} is given twice: as {option_of(both)} and in --settings"
            raise UsageError(what, "keep the one that is meant", field=both)
        settings |= {size: self.values[name] for name, size in lengths.items()}
        own = next((n for n in settings if n in OPTIONS), None)
        if own is not None:
            hint = f"as in {OPTIONS[own]}"
            raise UsageError(f"{own} is no setting: it is asked by itself", hint, field="settings")
        sizes = {f.name for f in fields(SampleOptions)} - {"settings"}
        twice = next((n for n in settings if n in self._given() & sizes), None)
        if twice is not None:
            what = f"{twice} is given twice: as {option_of(twice)} and in --settings"
            raise UsageError(what, "keep the one that is meant", field=twice)
        return settings

    def _given(self) -> set[str]:
        """Fields that are not as they are where nothing is said."""
        return {f.name for f in fields(self) if getattr(self, f.name) != f.default}

    def sampling(self) -> Sampling:
        """What this asks of a model that generates no tokens. Raises `UsageError` for a count that is none."""
        counts = {"batch": ("samples", 10_000_000), "frames": ("frames", 100_000), "steps": ("steps", 100_000)}
        for name, (what, most) in counts.items():
            count_of(getattr(self, name), option_of(name), what, most)
        settings = self._settings()
        spread = self.values["spread"]
        return Sampling(
            self.batch,
            self.values["resolution"],
            self.frames,
            self.steps,
            self.guidance,
            settings,
            self.training,
            **({} if spread is None else {"spread": spread}),
            offload=self._waiting(),
            aside=tuple(self.values["aside"] or ()),
            host_memory=self.values.get("host_memory"),
        )

    def _waiting(self) -> Any:
        """Which parts wait on the host."""
        said = self.values["offload"] or "none"
        if isinstance(said, Offloaded):
            hint = "model (one part at a time), sequential or none"
            raise UsageError("--offload: layers and experts are of language models", hint, field="offload")
        return said

    def placed(self) -> Offloaded:
        """What of a language model lies on the host. Raises `UsageError` for a word of other models."""
        said = self.values["offload"] or Offloaded()
        if isinstance(said, str):
            hint = "for example gpu-layers=30 or cpu-experts=24"
            raise UsageError(f"--offload {said} is of models without tokens", hint, field="offload")
        return said

    def idle(self) -> tuple[str, ...]:
        """Fields of this question that say nothing about models without tokens, beside those of language models."""
        return ()

    def common(self) -> tuple[str, ...]:
        """Fields of language models that this question asks of models without tokens too."""
        return ()

    def media(self, model: str) -> bool:
        """Whether the model generates no tokens. Raises `UsageError` for an option that says nothing about its kind."""
        found = tokenless(model)
        alike = {"batch"} if type(self).batch is not None else set()
        alike |= {"offload"} if isinstance(self, PlaceOptions) else set()
        of_samples = {f.name for f in fields(SampleOptions)} - alike | {"samples"}
        strange = {*TOKENS, *self.idle()} - {*self.common()} if found else of_samples
        if found and reads_text(model):
            strange -= {*LENGTHS}
        for f in fields(self):
            if f.name in strange & self._given():
                kind = "generates no tokens" if found else "is a language model"
                what = f"{option_of(f.name)} says nothing about {model}, which {kind}"
                raise UsageError(what, self._instead(f.name, network=found), field=outer(f))
        return found

    def _instead(self, name: str, *, network: bool) -> str:
        """What says the same of the other kind of model: of a `network` without tokens, or of a language model."""
        if not network:
            of_tokens = "--concurrency or --batch of fit, --in and --out size its requests"
            return OF_TOKENS.get(name, of_tokens)
        hint, field = OF_SAMPLES.get(name, ("", ""))
        known = hint and (not field or hasattr(self, field))
        return hint.format(said=getattr(self, name)) if known else "leave it out"


def tokenless(model: str) -> bool:
    """Whether a text names a model that generates no tokens, or files which are one."""
    return is_pipeline(model)


TOKENS = (
    "in_", "out", "images", "cv", "log", "prefix_hit", "common_prefix", "sharers", "ttft", "tpot", "kv", "policy",
    "speculate", "disaggregate", "prefill", "harness", "tp", "pp", "dp", "ep", "lora", "context", "tokens",
    "concurrency", "count", "replicas", "scale", "cache_tiers",
)  # fmt: skip
"""Fields that ask about language models alone."""
LENGTHS = {"in_": "tokens", "out": "targets"}
"""Settings of models that read texts, by the fields that say the same of language models."""
_COPIES = "--chip 8xh100 is eight of them; --spread shares a request, e.g. ulysses=4"
_WHOLE = "the target for a whole answer is --e2e, e.g. 10min"
OF_SAMPLES: Mapping[str, tuple[str, str]] = {
    "count": (_COPIES, ""),
    "replicas": (_COPIES, ""),
    "ttft": (_WHOLE, "e2e"),
    "tpot": (_WHOLE, "e2e"),
    "tokens": ("a job of --task batch is --samples, e.g. 10k", "samples"),
    "lora": ("an adapter that is merged into the weights adds no time: leave it out", ""),
}
"""What is said instead of such a field about a network without tokens, and the field that it needs."""
OF_TOKENS: Mapping[str, str] = {
    "samples": "a job of --task batch is --tokens, samples times --out, e.g. 1B",
    "offload": "estimate --offload places its layers",
}
"""What is said of a language model instead of a field of samples."""


@dataclass(frozen=True, kw_only=True)
class OwnChips(Asked):
    """Chips that are in no catalogue."""

    own_chips: str | None = ask(
        'chips of your own as TOML text, which chip and chips may name; like = "h100-sxm5-80gb" lends one its software',
        reading=Reading(_own_chips, as_word, names=False),
    )


@dataclass(frozen=True, kw_only=True)
class SoftwareOptions(OwnChips):
    """What runs the model."""

    precision: str | None = ask("override the checkpoint's precision, e.g. fp8 or int4")
    kv: str | None = ask("number format of the cache, e.g. fp8; default: the checkpoint's, else 16 bit")
    runtime: str | None = ask(
        "serving software; best compares all that support the model; default: the chip's usual one"
    )
    policy: str | None = ask("runtime settings, e.g. memory_share=0.95,max_sequences=64", reading=PAIRS)
    set_: str | None = ask(
        "override chip figures, e.g. hbm=4TB/s,bf16=1.2PFLOPS, or system=0GB", name="set", reading=PAIRS
    )
    share: str | None = ask(
        "what other work leaves of the chip, e.g. gpu=60%,memory=16GB (a renderer, a second model)",
        reading=Reading(shared, as_text, (OBJECT,)),
    )

    def terms(self, numbers: Parameters | None = None) -> Terms:
        """What this says of the terms of a verb, under these fitted numbers (None: those shipped)."""

        return Terms(
            self.precision,
            self.kv,
            self.runtime,
            self.values["policy"] or {},
            self.values["set_"] or {},
            parameters=numbers,
            share=self.values["share"] or Share(),
            own_chips=self.values["own_chips"] or {},
        )


@dataclass(frozen=True, kw_only=True)
class Serving(SoftwareOptions):
    """How that software is run."""

    speculate: str | None = ask(
        "speculative decoding, e.g. accept=0.7,draft=3; with=lookup needs no draft",
        reading=Reading(_guessed, as_text, (OBJECT,)),
    )
    lora: str | None = ask(LORA, reading=ADAPTERS)
    disaggregate: bool = ask("process prompts on separate workers (disaggregated prefill)", False)
    prefill: str | None = ask(
        "separate workers for prompts and their layout, e.g. workers=2,tp=4; default: as many as keep up",
        reading=Reading(_prompt_workers, as_text, (OBJECT,)),
    )
    software: str | None = ask(
        "date, version or MLPerf round of the software, e.g. 2025-06, vllm 0.11 or v5.0; default: the newest"
    )
    level: Literal["stock", "tuned"] = ask(
        "stock: what defaults give; tuned: what benchmark submissions reach", "stock"
    )
    harness: str | None = ask("benchmark client whose figures to predict, e.g. vllm-bench or inferencex; default: none")
    host: str | None = ask(
        "processor of the machine, by name or clock, e.g. epyc-9654 or 4.2GHz; default: of the system of the chip"
    )

    def terms(self, numbers: Parameters | None = None) -> Terms:
        """The same, with how the software is run; a version that names its software chooses that."""
        runtime = self.runtime or runtime_named(self.software or "")
        return replace(super().terms(numbers), runtime=runtime, tactics=self.tactics())

    def tactics(self) -> Tactics:
        """How the software is run."""

        speculation, lookup = self.values["speculate"] or (None, False)
        prefill = self.values["prefill"]
        return Tactics(
            speculation,
            lookup,
            self.disaggregate or prefill is not None,
            dated(self.software or "", self.runtime or ""),
            get_harness(self.harness),
            prefill,
            self.level,
            self.host or "",
            self.values["lora"],
            beyond(self.software or "", self.runtime or ""),
        )


PAID = ("max_usd_per_h", "max_usd", "price", "provider", "region", "owning", "price_of")
"""Options about money, which say nothing of chips that one has."""


@dataclass(frozen=True, kw_only=True)
class Money(Asked):
    """How chips are paid."""

    price: Literal["rent", "spot", "own"] = ask("rent on demand, rent spot instances, or own", "rent")
    provider: str = ask("offers of these providers only, separated by commas, e.g. aws,gcp", "")
    region: str = ask("offers of this region or the nearest", "")
    owning: str | None = ask(
        "ownership costs, e.g. capex_usd=30000,years=4,usd_per_kwh=0.12,pue=1.3",
        reading=Reading(_figures, as_text, (OBJECT,)),
    )

    price_of: str | None = ask(
        "your own price per chip and hour in USD, e.g. h100=2.10,mi455x=6",
        reading=Reading(_figures, as_text, (OBJECT,)),
    )

    def owned(self) -> Mapping[str, int] | None:
        """The chips that one has by `--have`, with their counts; None where chips are to be paid. Raises `UsageError`
        for limits and prices of chips that nobody pays by the hour."""
        said: str | None = getattr(self, "have", None)
        if said is None:
            return None
        have = dict(parse_have(said, self.values.get("own_chips") or {}))
        if getattr(self, "chips", None):
            hint = "--have names the chips already"
            raise UsageError("--have and --chips exclude each other", hint, field="have")
        for name in PAID:
            given = getattr(self, name, None)
            if given and given != "rent":
                what = f"{option_of(name)} is about money, and chips of --have cost nothing by the hour"
                hint = f"leave it out, or price the same chips: --chips {','.join(have)} --price own"
                raise UsageError(what, hint, field=name)
        return have

    def pricing(self) -> Pricing:
        """The pricing that this stands for. Raises `UsageError` for figures of owning where one rents."""
        figures = self.values["owning"] or {}
        if figures and self.price != "own":
            raise UsageError(
                "--owning is for chips that one owns", Sentence("add ", Setting("price", "own")), field="owning"
            )
        return Pricing(self.price, self.provider, self.region, figures, self.values["price_of"] or {})


@dataclass(frozen=True, kw_only=True)
class PlaceOptions(Asked):
    """One deployment: the chip and how the model is spread over it."""

    chip: str = ask(
        "a chip, several or a machine for rent, which replicas fill (8xh100, p5.48xlarge), a TOML file of your own, or "
        "parts of a machine such as rtx-4090+epyc-9654",
        MISSING,
        file=True,
    )
    count: int | None = ask("chips of one replica; default: what the layout needs")
    tp: int = ask("tensor parallelism", 1)
    pp: int = ask("pipeline stages", 1)
    dp: int = ask("attention replicas that share experts", 1)
    ep: int = ask("expert parallelism", 1)
    replicas: int = ask("replicas of the layout that share the load", 1)
    concurrency: float | None = ask(
        "concurrent clients, each with one request in flight; default: as many as fit, with --task local one"
    )
    rate: str | None = ask(
        "requests per second with random arrivals, e.g. 10/s, instead of --concurrency", reading=RATE
    )

    host_memory: str | None = ask(HOST_MEMORY, reading=HOST_BYTES)

    def layout(self) -> Layout:
        """The degrees as a layout. Raises `UsageError` for a degree, count or load that cannot be."""
        count_of(self.count, "--count", "chips")
        count_of(self.replicas, "--replicas", "replicas", 100_000)
        degrees = {name: getattr(self, name) for name in ("tp", "pp", "dp", "ep")}
        for name, degree in degrees.items():
            if not 1 <= degree <= 100_000:
                raise UsageError(f"--{name} {degree}: not a degree of parallelism", "at least 1", field=name)
        if self.concurrency is not None and not 0 < self.concurrency < 1e7:
            what = f"--concurrency {self.concurrency:g} is out of range"
            raise UsageError(what, "more than 0", field="concurrency")
        return Layout(**{name: float(degree) for name, degree in degrees.items()})

    def given(self) -> Given:
        """The deployment and its load; so many chips of servers (`8xh100`, `2xp5.48xlarge`) are filled with replicas.
        Raises `UsageError` for a degree, count or load that cannot be."""

        layout, placed = self.layout(), self.placed() if isinstance(self, SampleOptions) else Offloaded()
        chip, replicas = self.chip, self.replicas
        several = None if getattr(self, "task", "serve") == "local" else counted(self.chip, dealt=True)
        if several is not None and self.host_memory is None:
            chip, count = several
            each = max(int(layout.devices) // get_chip(chip).devices_per_package, 1)
            replicas = copies(count, each, self.chip, "--tp, --pp, --dp or --ep")
            if self.replicas not in (1, replicas):
                what = f"--replicas {self.replicas}: {count} chips are {replicas} replicas of {each}"
                raise UsageError(what, f"leave it out, or name the chip: --chip {chip}", field="replicas")
        return Given(
            chip, layout, self.count, self.concurrency, self.arrivals(), replicas, self.values["host_memory"], placed
        )

    def arrivals(self) -> float | None:
        """Requests per second, None where clients or capacity set the load. Raises `UsageError` for two loads."""
        if self.rate is not None and self.concurrency is not None:
            hint = "open arrivals or a number of clients"
            raise UsageError("--rate and --concurrency are two loads", hint, field="rate")
        found: float | None = self.values["rate"]
        return found


@dataclass(frozen=True, kw_only=True)
class JobOptions(Asked):
    """Work with an end: how much, by when, for how much."""

    tokens: str | None = ask(
        "training: total tokens, e.g. 15T; default: 1T, of finetune 100M; batch: output tokens, e.g. 1B",
        reading=figure("", low=1, high=1e18),
    )
    deadline: str | None = ask("training and batch: deadline, e.g. 30d or 24h", reading=duration(1.0, 1e12, ("d", "h")))
    max_usd: float | None = ask("training and batch: total budget in dollars")


@dataclass(frozen=True, kw_only=True)
class TrainOptions(JobOptions):
    """What is trained, how far, and within which limits."""

    seq: str | None = ask(
        "training: sequence length in tokens; default: 4096, capped at the model's limit",
        reading=Reading(_tokens, as_word, (NUMBER,)),
    )
    global_batch: int = ask("training: sequences per step; 0: 4 M tokens per step, fine-tuning 0.25 M", 0)
    counts: str | None = ask("training: chips to try, e.g. 64,256", reading=COUNTS)
    layout: str | None = ask(
        "training: parts of the layout to fix, e.g. tp=8,pp=4,schedule=interleaved,zero=3,recompute=full,"
        "offload=1,attention=flash3,dispatch=deepep",
        reading=PAIRS,
    )
    method: str | None = ask("training: full, lora or qlora; of finetune lora")
    trainer: str | None = ask(
        "training: the trainer with its own defaults, e.g. nemo or torchtitan; usual: the chip's usual one, tuned; "
        "best: the best of all that can; default: best, but usual where chip, count and layout or batch are given"
    )
    memory: str | None = ask(
        "training: override what the trainer keeps in memory, e.g. optimizer=adamw-8bit,master=no,gradients=bf16,"
        "loss=chunked",
        reading=PAIRS,
    )
    adapter: str | None = ask(
        "training: low-rank adapters, e.g. rank=64,targets=attention,dora=yes; default: rank 16 on all linear layers",
        reading=PAIRS,
    )
    objective: str | None = ask(
        "training: next-token, masked, contrastive, contrastive-cached or dpo; batches count sequences, a pair is two; "
        "default: by the model"
    )
    documents: str | None = ask("training: packed documents that attend apart, e.g. mean=1200,cv=1.5", reading=PAIRS)
    known_to_run: bool = ask("training: the run exists; do not refuse its layout for predicted memory", False)
    failures: str | None = ask(
        "training: failures and checkpoints, e.g. mtbf=50000h,spares=2,repair=24h. mtbf: mean time between failures of "
        "one chip; save, block, restart, start: seconds to write a checkpoint, to pause for it, to restart, to start; "
        "default: from their bytes; spares, repair: standby hosts and repair time; preempt, wait: mean time between "
        "preemptions, and until hosts return; like: a fleet of known failures, llama-3, rsc-1 or stepfun",
        reading=PAIRS,
    )
    storage: str | None = ask(
        "training: checkpoint storage, e.g. write=2GB/s,most=2TB/s,keep=3,price=0.023: bandwidth of one host, of all "
        "hosts, checkpoints kept, dollars per GB and month; token=4B: bytes of a training token",
        reading=PAIRS,
    )
    phases: str | None = ask(
        "training: phases, e.g. ramp=50B:256,context=100B:131072: grow the batch from 256 sequences over the first "
        "50 B tokens; train the last 100 B in sequences of 131,072 tokens",
        reading=PAIRS,
    )
    evaluate: str | None = ask(
        "training: evaluation, e.g. every=1000,tokens=10M: steps between evaluations, and tokens of each", reading=PAIRS
    )
    network: str | None = ask(
        "training: the network, e.g. nic=200Gb/s,domain=8,oversubscription=3,leaf=16, or host=100GbE: bandwidth beyond "
        "the fabric in one direction, per chip or per host; chips per scale-up domain; oversubscription of leaf "
        "switches; hosts per leaf switch",
        reading=PAIRS,
    )
    curves: bool = ask("training: also weak and strong scaling; as csv nothing else", False)


def numbers_of(file: str | None) -> Parameters | None:
    """The parameters of a file; None: those shipped."""

    return None if file is None else load_parameters(file)
