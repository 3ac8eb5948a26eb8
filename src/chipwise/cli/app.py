"""All commands, by name: a command is imported when it runs, so that help and errors come at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import cyclopts
from cyclopts import App, Group, Parameter

from chipwise import __version__
from chipwise.errors import UsageError

GROUPS = {
    "Choose": {
        "planning:plan": "Rank chips, counts and layouts for a workload: time, throughput, cost and bottleneck.",
        "planning:compare": "The best plan of each of some chips, side by side.",
        "planning:fit": "Does it fit: memory by kind on every chip, smallest count, largest batch and context, what "
        "would help.",
        "machines:local": "What a machine of your own can run, in which format and how fast, with the commands; or "
        "what to buy.",
        "machines:fleet": "Many demands on what you own, rent and call: which runs where, at which hours, what it "
        "costs, and what one machine more or fewer would change.",
        "planning:train": "Rank chips, counts and layouts for a training run: step time, days, cost, goodput and "
        "bottleneck.",
        "planning:rl": "Reinforcement learning on one fleet: sampling answers, scoring, training and handing weights "
        "over, together or apart: time of a step, days, cost and bottleneck.",
        "sweep:sweep": "Ask one verb over a grid or random cells: CSV, Parquet and a report, resumable after a kill.",
    },
    "Look into one deployment": {
        "planning:estimate": "One plan in full: its times, what they are made of, its memory.",
        "planning:explain": "The bottleneck of a plan and what would help: shares of time, elasticities, memory by "
        "kind.",
        "machines:simulate": "A deployment request by request: recorded arrivals, a rate, or all at once; percentiles"
        " with their interval.",
        "kernel:kernel": "One operator on one or several chips: mapping, bytes per memory level, roofline, time.",
        "kernel:trace": "The operators, parameters and memory of your own model: a PyTorch module, ONNX, or files of "
        "weights.",
    },
    "Keep an answer and launch it": {
        "saving:launch": "Files that start a saved plan with a tool, and the benchmark that verifies its estimate.",
        "saving:replay": "Make a saved answer again from the facts saved with it; the same to nine digits, or what "
        "differs.",
        "saving:diff": "What changed between two saved answers and why: the model of cost, prices, catalogue, "
        "question.",
        "serving:watch": "Hold the TTFT and TPOT of a running vLLM against the predicted intervals of its plan, for "
        "Prometheus.",
    },
    "Evidence and accuracy": {
        "evidence:evidence": "Published results and your own: list, show, search, match, claim, import, export.",
        "claim:claim": "Statements about hardware, checked: list, check.",
        "measure:measure": "Time what runs here: operators of this machine, a model, an endpoint; it goes to your "
        "store.",
        "suites:predict": "Predict the measured columns of a table of rows; measured columns in it are ignored.",
        "suites:calibrate": "Fit parameters to your own measurements, starting from those shipped.",
        "suites:validate": "Refit without each part of a table of measurements in turn, and report the errors on it.",
    },
    "Catalogue": {
        "catalogue:chips": "Chips: list, search, show, compare.",
        "catalogue:systems": "Machines, pods and slices: list, show.",
        "catalogue:models": "Bundled models: list, search, show.",
        "catalogue:runtimes": "Serving software: list, show.",
        "catalogue:offers": "Prices: rental offers, tokens of APIs.",
    },
    "Serve, check and look up": {
        "serving:web": "Serve the page and the HTTP API: GET /, POST /v1/<verb>, GET /v1/docs.",
        "serving:mcp": "Serve the verbs as tools of the Model Context Protocol, for agents.",
        "about:doctor": "Verify the installation and its data files, or describe this machine.",
        "about:glossary": "Glossary of terms.",
        "about:completion": "A script that completes commands and options: source <(chipwise completion bash).",
    },
}
"""What commands are for, and where each is, with the first line of its docstring."""
COMMANDS = {place: summary for commands in GROUPS.values() for place, summary in commands.items()}


def read(type_: Any, tokens: Sequence[cyclopts.Token]) -> Any:
    """The value of an option. cyclopts alone would round 2.6 to 3 where a whole number is asked for, and read no $5M
    where other figures have suffixes."""
    if type_ in (int, int | None):
        try:
            return int(tokens[0].value)
        except ValueError:
            raise ValueError("not a whole number") from None
    if type_ in (float, float | None):
        from chipwise.units import parse_quantity

        try:
            return parse_quantity(tokens[0].value.strip().removeprefix("$"), "", "", low=-math.inf)
        except UsageError:
            raise ValueError("not a number, as in 2.5 or 5M") from None
    return cyclopts.convert(type_, tokens)


app = App(
    name="chipwise",
    help="Which chips do you need to run this model, how fast will it be, what will it cost, and how do you know?",
    version=__version__,
    version_flags=["--version"],
    help_flags=["--help", "-h"],
    help_format="plaintext",
    default_parameter=Parameter(converter=read, negative=()),
)

for at, (title, commands) in enumerate(GROUPS.items()):
    group = Group(title, sort_key=at)
    for nth, (place, summary) in enumerate(commands.items()):
        app.command(f"chipwise.cli.{place}", name=place.partition(":")[2], help=summary, group=group, sort_key=nth)
app["--help"].group = app["--version"].group = Group("Options", sort_key=len(GROUPS))
