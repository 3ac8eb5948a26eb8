"""Which pictures the pages have: the question of each, its chart, and what it shows in words."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DRAWN", "SHOTS", "Drawn"]

LLAMA = "chipwise plan meta-llama/Llama-3.1-70B --rate 10/s --in 2000 --out 300 --ttft 1s --tpot 40ms"
SMALL = (
    "chipwise plan meta-llama/Llama-3.1-8B --rate 5/s --in 1000 --out 200 --chips l40s,h100-sxm5-80gb,mi300x,tpu-v6e"
)
INSIDE = "'meta-llama/Llama-3.1-70B', chip='h100-sxm5-80gb', tp=4, concurrency=64"
TRAIN = "chipwise plan meta-llama/Llama-3.1-70B --task train --tokens 1T --chips h100-sxm5-80gb --counts 512"


@dataclass(frozen=True)
class Drawn:
    """A picture: the page it stands on, the command or Python that it is of with the name of its chart, or the name of
    what `gallery` makes; `alt` for those who do not see it, `caption` for all."""

    name: str
    page: str
    alt: str
    caption: str
    question: str = ""
    chart: str | None = None
    made: str = ""
    kind: str = "svg"


DRAWN = (
    Drawn(
        "plan-tpot", "index.md",
        "Bars of four plans, each a chip, with the milliseconds per output token and a line for the interval.",
        "Time per output token of the four plans above; lines are 80 % intervals.", SMALL, "tpot",
    ),
    Drawn(
        "plan-front", "choose.md",
        "Plans as points: dollars per hour against tokens per second of one user, the Pareto-optimal ones joined.",
        "Cost against speed. No plan is both cheaper and faster than one on the line.", LLAMA, "pareto",
    ),
    Drawn(
        "plan-cost", "choose.md",
        "Bars of plans on twelve kinds of chip with the dollars per hour of each.",
        "Cost of the first plans; lines go from the cheapest offer to the dearest.", LLAMA, "cost",
    ),
    Drawn(
        "ways-to-pay", "choose.md",
        "Three lines of dollars a month against requests per second: an API, rented chips and owned chips.",
        "An API costs what you use, chips cost what you hold: the cheapest way depends on the load.",
        "chipwise plan meta-llama/Llama-3.1-70B --rate RATE --in 2000 --out 300 --ttft 1s --tpot 40ms",
        made="ways",
    ),
    Drawn(
        "fit-memory", "choose.md",
        "Stacked bars of the memory of five chips: weights, workspace and what is left for the cache.",
        "Where the memory of each chip goes.",
        "chipwise fit meta-llama/Llama-3.1-70B --chips rtx-5090,l40s,a100-sxm4-80gb,h200-sxm-141gb,mi300x --context 8k",
        "memory",
    ),
    Drawn(
        "front-of-speed", "choose.md",
        "Curves of chips: output tokens per second of a chip against output tokens per second of a user.",
        "Throughput against speed per user. Up and to the right is better.",
        "cw.frontier('meta-llama/Llama-3.1-70B', chips='h100-sxm5-80gb,h200-sxm-141gb,b200-sxm,mi300x')",
        "frontier",
    ),
    Drawn(
        "what-would-help", "choose.md",
        "Bars to the left and right of today's cost of 1,000 requests: what each assumption changes when it is varied.",
        "What would change the cost of 1,000 requests on this plan, the strongest first.",
        f"cw.sensitivity({INSIDE})", "tornado",
    ),
    Drawn(
        "desk-speed", "desk.md",
        "Bars of the time per output token of an 8-billion-parameter model on four desktop chips with intervals.",
        "One user on a desktop: time per output token with its 80 % interval.",
        "chipwise plan meta-llama/Llama-3.1-8B --task local --precision q4_k_m"
        " --chips rtx-4090,rtx-5090,m4-max,rtx-3090",
        "tpot",
    ),
    Drawn(
        "fleet-hours", "fleet.md",
        "Stacked columns of a day in three slices: how many owned machines each of two demands uses.",
        "Machines of the hall by the hour. The nightly job takes what chat leaves.",
        made="fleet",
    ),
    Drawn(
        "day-of-load", "production.md",
        "Columns of requests per second through a day, and above them lines of what the replicas of the hour can carry.",  # noqa: E501
        "Replicas that follow the load of a day.",
        "chipwise plan meta-llama/Llama-3.1-70B --day 2,2,1,4,9,10,8,5 --spare 1 --chips h200-sxm-141gb", "day",
    ),
    Drawn(
        "image-stages", "stories/game-tools.md",
        "A timeline of one image: text encoder, denoising steps and decoder, each as long as it takes.",
        "Where the time of one image goes.",
        "chipwise estimate sdxl --chip rtx-4090 --resolution 1024x1024 --steps 30", "timeline",
    ),
    Drawn(
        "video-stages", "stories/video-backend.md",
        "A timeline of one video: text encoder, denoising steps and decoder; denoising fills almost all of it.",
        "Where the time of one video goes.",
        "chipwise estimate wan2.2 --chip h100-sxm5-80gb --resolution 1280x720 --frames 81 --steps 40 --offload model",
        "timeline",
    ),
    Drawn(
        "training-turnaround", "stories/research-team.md",
        "Training plans as points: dollars against days, for 32 and 128 chips of three kinds.",
        "More chips end sooner, and cost more for the same tokens.",
        "chipwise plan meta-llama/Llama-3.1-8B --tokens 100B --counts 32,128 --chips h100-sxm5-80gb,mi300x,tpu-v5p"
        " --task train",
        "turnaround",
    ),
    Drawn(
        "training-scaling", "how/training.md",
        "A falling curve: the efficiency of training against the number of chips, from 64 to 16,384.",
        "Strong scaling: the same batch on more chips keeps less and less of their speed.",
        "chipwise plan meta-llama/Llama-3.1-8B --tokens 1T --counts 64,256,1024 --curves --chips h100-sxm5-80gb"
        " --task train",
        "strong",
    ),
    Drawn(
        "training-step", "how/training.md",
        "A timeline of two pipeline stages: micro-batches forwards and backwards, with gaps at both ends.",
        "One step of training in its pipeline.", TRAIN, "timeline",
    ),
    Drawn(
        "training-parts", "how/training.md",
        "One bar of a training step: compute takes four fifths, the rest goes to memory, network and small parts.",
        "What a step of training waits for.", TRAIN, "step",
    ),
    Drawn(
        "kernel-roofline", "how/roofline.md",
        "A matrix product as a point under the roofline of a chip, on its slope where memory decides.",
        "A product of 64 rows stands under the slope: memory decides.",
        "chipwise kernel gemm --m 64 --n 8192 --k 8192 --chip h100-sxm5-80gb", "roofline",
    ),
    Drawn(
        "kernel-time", "how/systolic.md",
        "Bars of the time of one matrix product on a GPU and on a TPU, cut by what takes it.",
        "The same product on a GPU and on a systolic array.",
        "chipwise kernel gemm --m 16 --n 4096 --k 4096 --chips h100-sxm5-80gb,tpu-v5e", "time",
    ),
    Drawn(
        "pass-decode", "how/serving.md",
        "Bars of the operators of one decode pass with the time of each; products of the feed-forward part lead.",
        "Anatomy of one decode pass.", f"cw.operators({INSIDE})", "decode",
    ),
    Drawn(
        "pass-prefill", "how/serving.md",
        "Bars of the operators of a prefill pass with the time of each.",
        "Anatomy of one prefill pass.", f"cw.operators({INSIDE})", "prefill",
    ),
    Drawn(
        "load-tpot", "how/serving.md",
        "A rising curve of milliseconds per token against requests at once, inside the band of its interval.",
        "Time per output token under rising load, with its 80 % band.",
        "cw.load('meta-llama/Llama-3.1-70B', chip='h100-sxm5-80gb', tp=4)", "tpot",
    ),
    Drawn(
        "operators-roofline", "concepts/memory-bound.md",
        "Operators of decoding and of prefill as points under one roofline: decoding left, prefill right.",
        "Operators of one model under the roofline of its chip.", f"cw.operators({INSIDE})", "roofline",
    ),
    Drawn(
        "queue", "how/time.md",
        "Three rising lines of the time to the first token against requests per second: half of all requests, 95 % and"
        " 99 %.",
        "The queue: one request in a hundred waits several times as long as the median.",
        "chipwise simulate llama-3.1-8b --chip h100 --rate RATE --in 1000 --out 200 --cv 1 --requests 1000",
        made="queue",
    ),
    Drawn(
        "sweep-map", "how/sweep.md",
        "A heat map: chips in rows, requests at once in columns, milliseconds per output token as colour.",
        "A sweep as a map: time per output token by chip and load.",
        made="sweep",
    ),
    Drawn(
        "coverage", "concepts/intervals.md",
        "Bars of the share of measured rows inside the 80 % interval, by suite, with a line at 80 %.",
        "How often the 80 % interval held the measured value, by suite. All figures: the accuracy page.",
        made="coverage",
    ),
    Drawn(
        "rooms", "structure.md",
        "A table of squares: packages in rows, the packages that they import in columns. All squares lie on one side.",
        "Who imports whom, counted from the code: every import points down the list.",
        made="rooms",
    ),
    Drawn(
        "landscape", "catalogue/index.md",
        "Chips as points: memory bandwidth against operations per second, coloured by vendor.",
        "All chips of the catalogue by bandwidth and peak.", "cw.chips()", "landscape",
    ),
)  # fmt: skip

SHOTS = (
    Drawn(
        "page-wide", "index.md",
        "The page in the browser: the form on the left, the verdict, three charts and a table on the right.",
        "The page, 1,400 pixels wide.", "chipwise web", kind="webp",
    ),
    Drawn(
        "page-narrow", "how/web.md",
        "The same page on a telephone: its menu in lines, and the form for the question below it.",
        "The page, 390 pixels wide.", "chipwise web", kind="webp",
    ),
)  # fmt: skip
"""Pictures of the page in a browser, which `docs.generate.shots` takes."""
