"""fleet: demands, supplies and what holds for all of them, as one TOML file or the same as an object."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields, replace
from math import gcd
from pathlib import Path
from typing import Any

from chipwise.api.portfolio import portfolio
from chipwise.api.portfolio_chain import Chain, ChainStep, asked_at
from chipwise.api.portfolio_time import through_time
from chipwise.api.portfolio_ways import DAY_S, WAIT_S, Demand, FleetAsked, Pool, Supply, check_names
from chipwise.api.requests.command import command_line
from chipwise.api.requests.field import OBJECT, SHARE, Asked, Reading, as_text, ask, outer, split
from chipwise.api.requests.parts import tokenless
from chipwise.api.requests.planning import PlanRequest
from chipwise.api.requests.tenants import pooled, together
from chipwise.api.requests.training import TrainRequest
from chipwise.catalog.chips import get_chip
from chipwise.catalog.files import read_text
from chipwise.catalog.price import Pricing
from chipwise.errors import ChipwiseError, CommandText, Sentence, UnknownNameError, UsageError, shorten
from chipwise.report.portfolio import API, FIRST, OWN, RENT, WHOLE, PortfolioReport
from chipwise.search.assignment import Effort
from chipwise.search.deployments import machine_for
from chipwise.tracing.sources import is_code
from chipwise.units import duration_words, format_count, format_number, parse_quantity
from chipwise.values import dataclass
from chipwise.workload.arrivals import read_times
from chipwise.workload.workload import CONFIDENCE, Workload

MOST_BYTES = 1_000_000
MOST_TABLES = 200
"""Demands, or supplies, of one file."""
MOST_CHIPS = 1_000_000
"""Of one supply."""
ASKED = (
    "in", "out", "images", "cv", "log", "prefix_hit", "common_prefix", "sharers", "rate", "day", "ttft", "tpot", "e2e",
    "percentile", "confidence", "utilisation", "tokens", "deadline", "precision", "kv", "runtime", "policy",
    "speculate", "software", "level", "lora",
)  # fmt: skip
"""What a demand may say of serving and of jobs: options of `plan` that are about the model and its use."""
TRAINED = (
    "tokens",
    "deadline",
    "seq",
    "global_batch",
    "precision",
    "confidence",
    "method",
    "trainer",
    "layout",
    "adapter",
    "memory",
)
"""What it may say of training: options of `train`."""
SERVED = ("name", "model", "priority", "on", "licence")
"""What every demand may say that is one model."""
DEMAND = (*SERVED, "task", "start", "adapters")
LOADED = ("rate", "day", "log", "ttft", "e2e", "percentile", "confidence")
"""What a chain of models may say of its load and its targets."""
CHAIN = ("name", "priority", "on", *LOADED, "step")
"""What a demand may say that is a chain of models."""
STEP = ("name", "model", "on", "calls", "licence")
"""What each of its steps may say, whatever its model."""
OF_TOKENS = (
    "passes", "in", "out", "images", "cv", "prefix_hit", "common_prefix", "sharers", "tpot", "utilisation", "precision",
    "kv", "runtime", "policy", "speculate", "software", "level",
)  # fmt: skip
"""What it may say of a language model."""
OF_NETWORK = (
    "settings", "resolution", "frames", "steps", "guidance", "utilisation", "precision", "runtime", "software", "level",
)  # fmt: skip
"""What it may say of a model that generates no tokens."""
SAMPLED = ("rate", "day", "log", "e2e", "percentile", "confidence")
"""What a demand may say of the load and the target of such a model."""
MADE = ("task", "samples", "deadline", "start", "confidence")
"""What it may say of a job of one."""
MOST_STEPS = 5
"""Of a chain."""
MOST_CALLS = 10_000
"""Of a step for one request."""
SUPPLY = {
    OWN: ("name", "price", "chip", "count", "max", "machine", "spare_machines"),
    RENT: ("name", "price", "chip", "count", "max", "machine", "provider", "region", "preempt", "wait"),
    API: ("name", "price", "provider", "ttft", "tpot"),
}
"""What a supply may say, by how it is had."""
PAID = {"on-demand": RENT, "spot": RENT, "own": OWN, "api": API}
"""How a supply is had, by its price in words; a number is dollars per chip and hour."""
LIMITS = ("usd_per_h", "watts", "usd_per_kwh", "mixing", "licences")
TABLES = ("demand", "supply", "limits")
TASKS = ("serve", "batch", "train", "finetune")
EXAMPLE = Sentence(
    "for example ",
    CommandText("""fleet '{"demand": [{"model": "Qwen/Qwen3-32B", "rate": "5/s"}], "supply": [{"chip": "h100"}]}'"""),
)
FLEET = (
    "a TOML file: lists demand (model; rate, day, or tokens and deadline) and supply (chip, count, price: own, "
    "on-demand, spot, api, $/h); limits (usd_per_h, watts, usd_per_kwh, mixing, licences); a demand with a list "
    "step (model, out, calls) is a chain with one ttft or e2e"
)
TOLD = FLEET.replace("a TOML file", "an object")


def _said(value: Any) -> str:
    return json.dumps(value) if isinstance(value, Mapping) else as_text(value)


@dataclass(frozen=True, kw_only=True)
class FleetRequest(Asked):
    """Many demands on what you own, rent and call: which runs where, at which hours, what it costs, and what one
    machine more or fewer would change."""

    fleet: str = ask(
        FLEET, MISSING, file=True, reading=Reading(lambda text, _: text, _said, (OBJECT,), names=False, told=TOLD)
    )
    gap: str = ask("distance from the least cost at which to stop", "1%", reading=SHARE)
    seconds: float = ask("the most seconds for the assignment; a third of it for each machine more or fewer", 30.0)
    simulate: bool = ask("check the targets of served demands request by request, in their worst hours", False)

    def run(self) -> PortfolioReport:
        """The assignment. Raises `UsageError` and `UnknownNameError` for a file that cannot be used, and the errors of
        `api.portfolio.portfolio`."""
        asked = self.asked()
        report = portfolio(asked)
        return through_time(asked, report) if self.simulate else report

    def asked(self) -> FleetAsked:
        """The demands and supplies of the file."""
        if not 0.1 <= self.seconds <= 3600.0:
            raise UsageError(f"--seconds {self.seconds:g} is out of range", "0.1 to 3600", field="seconds")
        document = fleet_document(self.fleet)
        limits = _table(document.get("limits", {}), "[limits]", LIMITS)
        supplies = [_supply(table) for table in document.get("supply", ())]
        if not supplies:
            hint = 'add [[supply]] chip = "h100", with count = 8 and price = "own" for chips that you have'
            raise UsageError("the fleet has no supply", hint, field="fleet")
        tables = together(document.get("demand", ()))
        demands = tuple(demand for i, table in enumerate(tables, 1) for demand in _demands(i, table, supplies))
        if not demands:
            raise UsageError("the fleet has no demand", EXAMPLE, field="fleet")
        found = FleetAsked(
            demands,
            tuple(supplies),
            _number(limits, "usd_per_h", "", float("inf")),
            _number(limits, "watts", "W", float("inf")),
            _number(limits, "usd_per_kwh", "", 0.0),
            _flag(limits, "mixing"),
            Effort(self.seconds, self.values["gap"]),
            licences=tuple(name.lower() for name in _texts(limits, "licences")),
        )
        check_names(found)
        _check_licences(found)
        return replace(found, pools=tuple(_pools(tables, found)))


def _check_licences(asked: FleetAsked) -> None:
    """Raises `UsageError` for a demand without a licence where licences are limited."""
    for demand in asked.demands if asked.licences else ():
        if not demand.licence:
            what = f"[limits] names licences, and demand {shorten(demand.name, 40)} says none of its model"
            hint = f'licence = "{asked.licences[0]}": the page of its weights says which'
            raise UsageError(what, hint, field="fleet")


def _pools(tables: Sequence[Mapping[str, Any]], asked: FleetAsked) -> Iterator[Pool]:
    """Demands with one model that the same replicas may serve, and what these are asked about: all of them."""
    at = {d.name: i for i, d in enumerate(asked.demands)}
    served = [
        (i, table)
        for table in tables
        if "step" not in table and (i := at.get(_called(table))) is not None and asked.demands[i].step is None
    ]
    for some, table in pooled([table for _, table in served]):
        mine = [served[i][0] for i in some]
        try:
            question = _demand("together", "demands together", table, asked.supplies).question
        except ChipwiseError:
            continue  # such as a beginning that all share, longer than the mean prompt
        if isinstance(question, PlanRequest):
            rates = [sum(r := asked.demands[d].rates_per_s) / len(r) for d in mine]
            yield Pool(tuple(mine), question, tuple(rate / sum(rates) for rate in rates))


def _called(table: Mapping[str, Any]) -> str:
    """The name of a demand: its own, else that of its model."""
    model = table.get("model")
    return _text(table, "name") or (model.rpartition("/")[2] if isinstance(model, str) else "")


def is_inline(text: str) -> bool:
    """Whether a fleet is given itself, and not as the name of its file."""
    return text.lstrip().startswith("{") or "\n" in text or "=" in text


def fleet_document(text: str) -> dict[str, Any]:
    """The tables of a fleet: of its TOML or JSON text, or of the file of that name. Raises `UsageError` for anything
    else."""
    named = "the fleet" if is_inline(text) else shorten(text)
    try:
        if text.lstrip().startswith("{"):
            document = json.loads(text)
        else:
            document = tomllib.loads(
                text if is_inline(text) else read_text(Path(text), MOST_BYTES, "a TOML file of a fleet")
            )
    except (tomllib.TOMLDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise UsageError(f"{named}: cannot be read: {shorten(str(error))}", EXAMPLE, field="fleet") from None
    _known(document, named, TABLES)
    for kind in TABLES[:2]:
        tables = document.get(kind, [])
        if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
            raise UsageError(f"{named}: {kind} is not a list of tables", f"write [[{kind}]]", field="fleet")
        if len(tables) > MOST_TABLES:
            raise UsageError(f"{named}: {len(tables)} tables [[{kind}]]", f"at most {MOST_TABLES}", field="fleet")
    return dict(document)


def _known(table: Mapping[str, Any], where: str, names: tuple[str, ...]) -> None:
    for name in table:
        if name not in names:
            error = UnknownNameError(f"key of {where}", name, names, f"it has {', '.join(names)}")
            error.field = "fleet"
            raise error


def _table(table: Any, where: str, names: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(table, dict):
        raise UsageError(f"{where} is not a table", EXAMPLE, field="fleet")
    _known(table, where, names)
    return table


def _number(table: Mapping[str, Any], name: str, unit: str, default: float) -> float:
    """A quantity of a table."""
    if name not in table:
        return default
    value = table[name]
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UsageError(f"{name}: {shorten(str(value))} is not a number", "for example 100", field="fleet")
    return parse_quantity(str(value), unit, name, low=0.0, high=1e12)


def _count(table: Mapping[str, Any], name: str, default: int, low: int) -> int:
    value = table.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= MOST_CHIPS:
        raise UsageError(f"{name}: {shorten(str(value))} is not a count", f"a whole number from {low}", field="fleet")
    return value


def _flag(table: Mapping[str, Any], name: str) -> bool:
    value = table.get(name, True)
    if not isinstance(value, bool):
        raise UsageError(f"{name}: {shorten(str(value))} is not true or false", f"{name} = false", field="fleet")
    return value


def _text(table: Mapping[str, Any], name: str, default: str = "") -> str:
    value = table.get(name, default)
    if not isinstance(value, str) or not all(c.isprintable() for c in value):
        raise UsageError(f"{name}: {shorten(str(value))} is not a text", f'{name} = "..."', field="fleet")
    return value


def _texts(table: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A list of texts, or one with commas."""
    value = table.get(name, [])
    value = list(split(value)) if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise UsageError(f"{name}: {shorten(str(value))} is not a list of names", f'{name} = ["..."]', field="fleet")
    return tuple(value)


@contextmanager
def _within(where: str) -> Iterator[None]:
    """Errors in a table say which."""
    try:
        yield
    except ChipwiseError as error:
        error.what = error.what if error.field == "fleet" else f"{where}: {error.what}"
        error.args, error.field = (error.what,), "fleet"
        raise


def _supply(table: Mapping[str, Any]) -> Supply:
    """The supply of a table: chips on demand where it does not say how they are had."""
    paid = table.get("price", "on-demand")
    usd = not isinstance(paid, str)
    said = "on-demand" if usd else _choice(table, "price", tuple(PAID))
    kind = PAID[said]
    _known(table, f"[[supply]] with price = {paid if usd else said}", SUPPLY[kind])
    name = _text(table, "name")
    if kind == API:
        providers = tuple(p.lower() for p in _texts(table, "provider"))
        ttft_s, tpot_s = _answering(table, providers)
        return Supply(name or "APIs", API, providers=providers, ttft_s=ttft_s, tpot_s=tpot_s)
    chip = _text(table, "chip")
    if not chip:
        raise UsageError("[[supply]] names no chip", 'for example chip = "h100"', field="fleet")
    with _within("[[supply]]"):
        chip = get_chip(chip).id
        given = {chip: _number(table, "price", "", 0.0)} if usd else {}
        provider = ",".join(_texts(table, "provider"))
        pricing = Pricing("spot" if said == "spot" else "rent", provider, _text(table, "region"), given=given)
        found = _machines(Supply(name or (f"own {chip}" if kind == OWN else chip), kind, chip), table)
        preempt_s, wait_s = _preempted(table)
        return replace(found, pricing=pricing, preempt_s=preempt_s, wait_s=wait_s)


def _answering(table: Mapping[str, Any], providers: Sequence[str]) -> tuple[float | None, float | None]:
    """How fast an API answers, as its user measured. Raises `UsageError` for one time alone, a time without a unit, and
    times of several vendors."""
    said = [name for name in ("ttft", "tpot") if name in table]
    if not said:
        return None, None
    if len(said) == 1:
        other = "tpot" if said == ["ttft"] else "ttft"
        what = f"[[supply]] with price = api says {said[0]} and not {other}"
        raise UsageError(what, 'both, as you measured them: ttft = "600ms", tpot = "12ms"', field="fleet")
    if len(providers) != 1:
        what = f"ttft and tpot are of one API, and the supply has {len(providers) or 'all'} of them"
        raise UsageError(what, 'name it: provider = "groq"', field="fleet")
    _with_units(table, said, "ms")
    return _number(table, "ttft", "s", 0.0), _number(table, "tpot", "s", 0.0)


def _with_units(table: Mapping[str, Any], names: Sequence[str], unit: str) -> None:
    """Raises `UsageError` for a time without a unit."""
    for name in names:
        if name in table and not isinstance(table[name], str):
            what = f"{name} = {shorten(str(table[name]))} has no unit"
            raise UsageError(what, f'{name} = "{shorten(str(table[name]))}{unit}"', field="fleet")


def _preempted(table: Mapping[str, Any]) -> tuple[float, float]:
    """Seconds after which a machine of a supply is taken away in the mean, and until there is another one. Raises
    `UsageError` for a time without a unit, and for a wait for nothing."""
    if "wait" in table and "preempt" not in table:
        what = "[[supply]] waits for machines that nobody takes away"
        raise UsageError(what, 'preempt = "20h": the mean time between preemptions of a machine', field="fleet")
    _with_units(table, ("preempt", "wait"), "h")
    preempt_s, wait_s = _number(table, "preempt", "s", float("inf")), _number(table, "wait", "s", WAIT_S)
    if preempt_s < wait_s:
        what = f"preempt = {table['preempt']}: machines are away longer than they are there"
        raise UsageError(what, f"at least the wait for another one, {wait_s:g}s", field="fleet")
    return preempt_s, wait_s


def _machines(supply: Supply, table: Mapping[str, Any]) -> Supply:
    """So many chips in machines: of the usual size, or of one that adds up to the chips that one owns. Raises
    `UsageError` where the size that was said does not."""
    if "count" in table and "max" in table:
        raise UsageError("[[supply]] has count and max", "either says how many chips there are", field="fleet")
    most = "max" if "max" in table else "count"
    count = _count(table, most, 1, 1) if most in table else None
    system = machine_for(get_chip(supply.chip))
    usual = min(system.chips_per_host if system else 1, count or MOST_CHIPS)
    own = supply.kind == OWN and count is not None
    machine = _count(table, "machine", gcd(count, usual) if own and count else usual, 1)
    if own and count and count % machine:
        what = f"machines of {machine} chips do not add up to {count}"
        raise UsageError(what, f"for example machine = {gcd(count, machine)}", field="fleet")
    return replace(supply, chips=count, per_machine=machine, spare=_count(table, "spare_machines", 0, 0))


def _choice(table: Mapping[str, Any], name: str, choices: tuple[str, ...]) -> str:
    value = _text(table, name, choices[0])
    if value not in choices:
        raise UsageError(f"{name} = {shorten(value)}", f"one of {', '.join(choices)}", field="fleet", instead=choices)
    return value


def _demands(i: int, table: Mapping[str, Any], supplies: Sequence[Supply]) -> list[Demand]:
    """The demands of a table: of a chain all steps. A network without tokens that is served is a chain of one step."""
    if "step" in table:
        return _chain(i, table, supplies)
    model = table.get("model")
    name = _called(table) or f"{i}"
    where = f"demand {shorten(name, 40)}"
    _check_model(where, model)
    if not tokenless(str(model)):
        return [_demand(name, where, table, supplies)]
    if "samples" in table or table.get("task") == "batch":
        return [_demand(name, where, {"task": "batch", **table}, supplies)]
    _known(table, f"{where}, a network without tokens", (*SERVED, *OF_NETWORK, *SAMPLED))
    if "e2e" not in table:
        what = f"{where}: {shorten(str(model))} generates no tokens: say how long a request may take"
        raise UsageError(what, 'for example e2e = "6s"', field="fleet")
    step = {key: table[key] for key in ("model", "licence", *OF_NETWORK) if key in table}
    whole = {key: value for key, value in table.items() if key not in step}
    return _chain(i, {**whole, "name": name, "step": [step]}, supplies)


def _demand(name: str, where: str, table: Mapping[str, Any], supplies: Sequence[Supply]) -> Demand:
    """A demand of its table that is one model."""
    usual = "batch" if "tokens" in table and "rate" not in table else "serve"
    task = _choice({"task": usual, **table}, "task", TASKS)
    training = task in TASKS[2:]
    network = tokenless(str(table["model"]))
    of_model = (*SERVED, *OF_NETWORK, *MADE) if network else (*DEMAND, *(TRAINED if training else ASKED))
    _known(table, where, of_model)
    usable = _usable(where, _texts(table, "on"), supplies)
    common = {
        "name": name,
        "adapters": _texts(table, "adapters"),
        "priority": _count(table, "priority", 0, -1000),
        "on": tuple(s.name for s in usable),
        "licence": _text(table, "licence").lower(),
    }
    given = {key: value for key, value in table.items() if key not in DEMAND or key == "model"}
    chips = ",".join(dict.fromkeys(filter(None, (s.chip for s in usable)))) or None
    with _within(where):
        if training:
            return _run(_question(TrainRequest, given | {"task": task}), chips, common)
        return _used(_question(PlanRequest, given | {"task": task}), chips, common, table)


def _chain(i: int, table: Mapping[str, Any], supplies: Sequence[Supply]) -> list[Demand]:
    """The steps of a chain of its table, in their order."""
    name = _text(table, "name") or f"{i}"
    where = f"demand {shorten(name, 40)}"
    _known(table, f"{where}, a chain", CHAIN)
    named = _step_tables(where, table["step"])
    with _within(where):
        load = {key: table[key] for key in LOADED if key in table}
        rates, chain = _load(name, _question(PlanRequest, load | {"model": "chain"}))
    found: list[Demand] = []
    pieces = 1
    for n, (called, said) in enumerate(named.items(), 1):
        step = ChainStep(chain, called, last=n == len(named), alone=len(named) == 1)
        here = f"step {shorten(called, 40)} of {where}"
        with _within(here):
            its = {"on": table.get("on", []), **said}
            one = _step(here, step, its, [pieces * r for r in rates], supplies)
        found.append(replace(one, priority=_count(table, "priority", 0, -1000)))
        pieces *= one.step.pieces if one.step else 1
    return found


def _step_tables(where: str, tables: Any) -> Mapping[str, Mapping[str, Any]]:
    """The tables of a chain's steps by their names. Raises `UsageError` for none, too many and two of one name."""
    if not isinstance(tables, list) or not tables or not all(isinstance(t, dict) for t in tables):
        raise UsageError(f"{where}: step is not a list of tables", "write [[demand.step]]", field="fleet")
    if len(tables) > MOST_STEPS:
        raise UsageError(f"{where} has {len(tables)} steps", f"at most {MOST_STEPS}", field="fleet")
    found: dict[str, Mapping[str, Any]] = {}
    for step in tables:
        name = _text(step, "name") or str(step.get("model", "")).rpartition("/")[2]
        if name in found:
            hint = "a step runs once, in this order: name each"
            raise UsageError(f"{where}: two steps are called {name}", hint, field="fleet")
        found[name] = step
    return found


def _load(name: str, question: PlanRequest) -> tuple[tuple[float, ...], Chain]:
    """Requests per second in the slices of a chain's day, and what its steps have in common. Raises `UsageError` for no
    load and no target."""
    came = None if question.log is None else read_times(question.log).rate_per_s
    rates, words = _rates(question, came)
    said = {word: question.values[key] for word, key in ((FIRST, "ttft"), (WHOLE, "e2e"))}
    limits = tuple((word, s) for word, s in said.items() if s is not None)
    if not limits:
        what = "a chain has a target for the time of all its steps, and this has none"
        raise UsageError(what, 'ttft = "1.5s" (until the last step begins to answer), or e2e = "6s"')
    sure = CONFIDENCE if question.confidence is None else question.values["confidence"]
    Workload(confidence=sure)  # says what it may be
    return rates, Chain(name, words, limits, sure, question.values["percentile"], question.log or "")


def _step(
    where: str, step: ChainStep, table: Mapping[str, Any], rates: Sequence[float], supplies: Sequence[Supply]
) -> Demand:
    """A step of a chain, of which so many pieces a second come in the slices of the day."""
    model = table.get("model")
    _check_model(where, model)
    network = tokenless(str(model))
    _known(table, where, (*STEP, *(OF_NETWORK if network else OF_TOKENS)))
    usable = _usable(where, _texts(table, "on"), supplies)
    chips = ",".join(dict.fromkeys(filter(None, (s.chip for s in usable)))) or None
    calls = _count(table, "calls", 1, 1)
    if calls > MOST_CALLS:
        raise UsageError(f"calls = {calls} is out of range", f"1 to {MOST_CALLS:,}", field="fleet")
    rates = [r * calls for r in rates]
    given = {key: value for key, value in table.items() if key not in (*STEP, "passes") or key == "model"}
    given |= {"rate": f"{max(rates):.10g}/s", "confidence": f"{100.0 * step.chain.confidence:.10g}%"}
    if step.chain.percentile is not None:
        given["percentile"] = f"p{100.0 * step.chain.percentile:.10g}"
    question = _question(PlanRequest, given)
    question.media(question.model)  # what is said of the wrong kind of model
    step = replace(step, calls=calls)
    if network:
        question = replace(question, batch=calls if calls > 1 else None)
    else:
        step = _writing(step, table, question)
    targets = step.targets(1.0)
    question = replace(question, **asked_at(question, targets[len(targets) // 2]))
    if network:
        question.generating().pipeline(question.model, question.precision)
    return Demand(
        name=step.label,
        question=question,
        asked=f"{format_number(max(rates))} calls/s",
        command=command_line("plan", replace(question, chips=chips)),
        rates_per_s=tuple(rates),
        on=tuple(s.name for s in usable),
        licence=_text(table, "licence").lower(),
        step=step,
    )


def _writing(step: ChainStep, table: Mapping[str, Any], question: PlanRequest) -> ChainStep:
    """A step that writes tokens. Raises `UsageError` where it passes on more than it writes, or to no further step."""
    output = question.workload_of("serve").output_tokens
    passes = _number(table, "passes", "", output)
    if not 1.0 <= passes <= output or (step.last and "passes" in table):
        what = f"passes = {passes:g} of {output:g} tokens{', to no further step' if step.last else ''}"
        raise UsageError(what, f"1 to {output:g}, in a step that another follows", field="fleet")
    return replace(step, passes=passes, output=output, tpot=question.tpot)


def _check_model(where: str, model: Any) -> None:
    """Raises `UsageError` for no model, and for one that is code."""
    if not model:
        raise UsageError(f"{where} has no model", 'for example model = "Qwen/Qwen3-32B"', field="fleet")
    if isinstance(model, str) and is_code(model):
        hint = "trace it with chipwise plan, or give its config.json"
        raise UsageError(f"{where}: {shorten(model)}: code is not run for a fleet", hint, field="fleet")


def _usable(where: str, on: tuple[str, ...], supplies: Sequence[Supply]) -> list[Supply]:
    """The supplies that a demand names, all where it names none. Raises `UnknownNameError`."""
    names = [s.name for s in supplies]
    for name in on:
        if name not in names:
            raise UnknownNameError(f"supply of {where}", name, names)
    return [s for s in supplies if not on or s.name in on]


def _question(kind: Any, given: Mapping[str, Any]) -> Any:
    names = {outer(f): f.name for f in fields(kind)}
    return kind(**{names[key]: value for key, value in given.items()})


def _run(question: TrainRequest, chips: str | None, common: Mapping[str, Any]) -> Demand:
    """A run of training, which needs a deadline: without one the fewest chips would do."""
    if question.values["deadline"] is None:
        raise UsageError("a run of training needs a deadline", 'for example deadline = "30d"')
    tokens = question.values["tokens"] or 0.0
    asked = f"{question.task}, {format_count(tokens)} tokens in {duration_words(question.values['deadline'])}"
    return Demand(
        question=question, asked=asked, command=command_line("train", replace(question, chips=chips)), **common
    )


def _used(question: PlanRequest, chips: str | None, common: Mapping[str, Any], table: Mapping[str, Any]) -> Demand:
    """A model that is served, or a job."""
    if question.task == "batch":
        return _job(question, chips, common, table)
    if "start" in table:
        raise UsageError("start is the hour in which a job may begin", "leave it out of what is served")
    alone_came = question.log is not None and question.rate is None and question.day is None
    came = question.workload_of("serve").rate_per_s if alone_came else None
    rates, words = _rates(question, came)
    alone = replace(question, day=None, rate=f"{max(rates):.10g}/s")
    alone.workload_of("serve")  # what is wrong with it is said before the search
    return Demand(
        question=alone,
        asked=words,
        command=command_line("plan", replace(alone, chips=chips)),
        rates_per_s=rates,
        **common,
    )


def _rates(question: PlanRequest, came: float | None) -> tuple[tuple[float, ...], str]:
    """Requests per second in the slices of a day, where nothing is said those that `came` in its log, and the most of
    them in words. Raises `UsageError` for no load, and for two."""
    curve, rate = question.curve(), question.values["rate"]
    if rate is None and curve is None:
        rate = came
    if (curve is None) == (rate is None):
        said = "two loads, rate and day" if rate else "no load"
        raise UsageError(f"it has {said}", 'rate = "10/s", or day = [2, 2, 9, ...] for a curve')
    rates = (rate,) if curve is None else curve.rates_per_s
    return rates, f"{format_number(max(rates))} requests/s{' at the peak' if curve else ''}"


def _job(question: PlanRequest, chips: str | None, common: Mapping[str, Any], table: Mapping[str, Any]) -> Demand:
    """So many tokens by a deadline: within a day it comes again every day and runs in the hours from its start, else it
    does its part of the tokens every day."""
    network = bool(question.media(question.model))
    kind, amount = ("samples", "10k") if network else ("tokens", "1B")
    tokens, deadline = question.values[kind], question.values["deadline"] or DAY_S
    if tokens is None or question.rate is not None or question.day is not None:
        raise UsageError("a job has an amount and no rate", f'{kind} = "{amount}", deadline = "12h"')
    start = _number(table, "start", "", 0.0)
    if start >= 24.0 or start % 1.0:
        raise UsageError(f"start = {start:g} is not an hour of the day", "0 to 23")
    within = min(deadline / DAY_S * 24.0, 24.0)
    if within < 1.0:
        raise UsageError("a job has at least an hour", 'deadline = "1h" or more')
    words = f"{format_count(tokens)} {kind} in {duration_words(deadline)}"
    full = replace(question, tokens=None, samples=None, deadline=None)
    if network:  # what is wrong with it is said before the search
        full.generating().pipeline(full.model, full.precision)
    else:
        full.workload_of("batch")
    return Demand(
        question=full,
        asked=words,
        command=command_line("plan", replace(question, chips=chips)),
        tokens=tokens * min(DAY_S / deadline, 1.0),
        hours=(start, within),
        **common,
    )
