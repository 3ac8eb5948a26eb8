"""`launch`: a saved plan as files that start it with a tool of one's choice; for a part of a chip they say the share of
the memory, and its neighbours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from chipwise.api.launch_network import network_of
from chipwise.api.loaded import find_chip, load
from chipwise.api.local import OUTPUT
from chipwise.api.portfolio import placed_options
from chipwise.api.portfolio_chain import ChainStep
from chipwise.api.requests.command import about
from chipwise.api.requests.desk import LocalRequest
from chipwise.api.requests.field import pairs
from chipwise.api.requests.parts import OwnChips, Serving, shared
from chipwise.api.requests.planning import EstimateRequest, PlanRequest
from chipwise.api.requests.portfolio import FleetRequest
from chipwise.api.requests.reinforce import RlRequest
from chipwise.api.requests.training import TrainRequest
from chipwise.api.saving import answered, asked_again, check_answer, open_saved, reading, request_of
from chipwise.api.train_input import adapters_of
from chipwise.catalog.checkpoints import published_as, same_maker
from chipwise.catalog.chip import Chip
from chipwise.catalog.configs import BY_DIMENSIONS, BY_SIZE, INLINE
from chipwise.catalog.machine import parse_machine
from chipwise.catalog.networks import BY_COUNTS, ID, find, is_built_in
from chipwise.catalog.offer import load_offers
from chipwise.catalog.override import Share
from chipwise.catalog.quality import quality_of, quality_words
from chipwise.catalog.runtime import get_runtime, override
from chipwise.catalog.runtime_spec import Policies
from chipwise.catalog.snapshot import use
from chipwise.catalog.software import shipped
from chipwise.catalog.system import get_system
from chipwise.catalog.token_prices import load_api_vendors
from chipwise.catalog.tools import get_tool, tools_of
from chipwise.catalog.trainer import KERNELS, get_trainer
from chipwise.errors import CommandText, Sentence, UsageError, shorten
from chipwise.parallel.layout import Spread
from chipwise.predict.training.objective import OBJECTIVES
from chipwise.report.launch.bench import CLIENTS
from chipwise.report.launch.chains import ChainLink, ChainMember, ChainSpec, chain_files
from chipwise.report.launch.files import LaunchFile
from chipwise.report.launch.spec import (
    ApiCall,
    Guess,
    Launched,
    LaunchMachine,
    LaunchNetwork,
    LaunchPasses,
    LoopSpec,
    PipelineSpec,
    Placed,
    ServeSpec,
    SharedCard,
    TrainSpec,
)
from chipwise.report.launch.targets import check_tool, launch_files, own_tool
from chipwise.report.portfolio import pooled
from chipwise.report.records import LayoutRecord
from chipwise.report.saved import Saved
from chipwise.report.simulated import FollowingRecord
from chipwise.report.training import TrainLayoutRecord, duration
from chipwise.tracing.sources import is_code
from chipwise.units import format_seconds
from chipwise.workload.graph import Graph

SERVED = ("plan", "compare", "estimate", "explain")
GENERATED = ("width", "height", "frames", "steps", "guidance", "tokens", "targets", "beams", "audio_s")
"""Sizes that a network is called with."""
MADE = "./model"  # stands for weights and configuration of a network that was given by its dimensions
ALIKE = ("half", "fp8")
"""Sets of formats of which software loads one as another; those of 8 bits differ in their scales."""
BLOCK = 1024  # tokens that the longest sequence is rounded up to
PLACED = ("host_layers", "host_experts", "prompts_on_host")
ADMITTED = 4096  # tokens of a sequence that a server takes at least, where that reserves no memory and one fits
LONGER = 2.0  # times the mean, prompts of a loop that are kept
DEVIATIONS = 4.0  # of lengths above their mean that there is room for


def launch(path: str, target: str = "", rank: int = 1) -> tuple[LaunchFile, ...]:
    """The files that launch the plan of that rank in a saved answer, with a tool or (none named) with the one of the
    plan's own software. Raises the errors of `launched`."""
    return launched(path, target, rank)[0]


def launched(path: str, target: str = "", rank: int = 1) -> tuple[tuple[LaunchFile, ...], int, str]:
    """The same with the number of the plan, and why it is another one, as `started` gives them.

    Its question is asked again under the facts saved with it, and what is launched is that answer: figures of a file
    are not trusted. Raises `UsageError` for a file that holds no such plan, or another one than its question leads to,
    or a tool that cannot start it, `UnknownNameError` for an unknown tool.
    """
    saved = open_saved(path)
    if target and target != CHAIN:
        check_tool(target)
    again = asked_again(saved)
    found = started(again, target, rank)
    mine, theirs = (_told(s, found[1]) for s in (saved, again))
    if mine is not None and theirs is not None and mine != theirs:
        what = next(name for name in TOLD if mine[name] != theirs[name])
        raise UsageError(
            f"{path}: plan {found[1]} was changed, or comes from another version: its question leads to another {what}",
            Sentence(CommandText(f"replay {shorten(path)}", "shows what differs")),
        )
    return found


def usual_tool(saved: Saved, rank: int = 1) -> str:
    """The tool that starts the software of a plan. Raises the errors of `spec_of`, and `UsageError` where none does."""
    spec = spec_of(saved, rank)
    plan = _numbered(_plans(saved), rank) or {}
    trainer = get_trainer(plan["stack"]) if saved.verb == "train" else None
    usual = (trainer.tool,) if trainer else tools_of(str(plan.get("runtime", "")))
    # of some chips nobody rents out machines, and their maker sells tokens
    sold = any(vendor.chip and vendor.chip == plan.get("chip") for vendor in load_api_vendors().values())
    return own_tool(spec, ("api", *usual) if sold else usual)


def started(saved: Saved, target: str = "", rank: int = 1) -> tuple[tuple[LaunchFile, ...], int, str]:
    """The files that start a plan of an answer with a tool, the number of that plan, and where it is not the one that
    was asked for, why: where the first plan uses other software, the cheapest plan of the answer that the tool starts.
    Raises the errors of `launch`."""
    if target == CHAIN:
        return chain_files(chain_of(saved, rank)), rank, ""
    target = target or usual_tool(saved, rank)
    try:
        return launch_files(spec_of(saved, rank), target), rank, ""
    except UsageError:
        others = _plans(saved) if rank == 1 and saved.verb in ("plan", "compare") else []
        paid = [p for p in others if p.get("rank") != 1 and p.get("runtime")]
        paid.sort(key=lambda p: (p["price"] is None, p["price"]["mid"] if p["price"] else p["chips"]))
        for plan in paid:
            with suppress(UsageError):
                files = launch_files(spec_of(saved, plan["rank"]), target)
                first = others[0]
                taken = f"plan {plan['rank']}, {plan['chips']}x {plan['chip']} with {plan['runtime']}"
                words = f"plan 1 runs {first['runtime']}: these files start {taken}"
                return files, plan["rank"], words
        raise


CHAIN = "chain"
"""In place of a tool: all members of the chain of a fleet that a placement belongs to, with a client."""


def chain_of(saved: Saved, rank: int = 1) -> ChainSpec:
    """What launch files need of the chain that a placement of a fleet is a step of. Raises `UsageError` for another
    answer, and a placement of no chain."""
    if saved.verb != "fleet":
        hint = Sentence(CommandText("fleet FLEET.toml --save FILE"), ", whose demand has steps")
        raise UsageError(f"--for {CHAIN} is of a saved fleet, this is a saved {saved.verb}", hint, field="for")
    check_answer(saved)
    rows = saved.report["fleet"]["placements"]
    with reading(saved.tables), use(saved.snapshot):
        demands = cast(FleetRequest, request_of(saved.verb, saved.request)).asked().demands
    mine = {d.name: d for d in demands}
    steps = {r["rank"]: d.step for r in rows if (d := mine.get(r["demand"])) and d.step}
    if rank not in steps:
        ranks = " or ".join(map(str, steps))
        none = f"--plan {ranks}" if steps else "none of its demands has steps"
        raise UsageError(f"placement {rank} is no step of a chain", none, field="plan")
    chain = steps[rank].chain
    links = tuple(_link(saved, d.step, d.name) for d in demands if d.step and d.whole == chain.name)
    targets = ", ".join(f"{name} within {format_seconds(s)}" for name, s in chain.limits)
    return ChainSpec(f"{chain.name}: {chain.asked}, {targets}", links, chain.limits)


def _link(saved: Saved, step: ChainStep, demand: str) -> ChainLink:
    """A step of a chain with all places where it runs."""
    rows = [r for r in saved.report["fleet"]["placements"] if r["demand"] == demand]
    members = tuple(ChainMember(*_member(saved, row), row["share"]) for row in rows)
    return ChainLink(step.name, members, step.calls, round(step.output), round(step.passes))


def _member(saved: Saved, row: Mapping[str, Any]) -> tuple[ServeSpec | PipelineSpec | None, ApiCall | None]:
    """What starts a placement, or the API that it calls."""
    api = row.get("api")
    if api:
        usd = (api["usd_per_million_in"], api["usd_per_million_out"])
        return None, ApiCall(api["provider"], api["model"], api["base_url"], api["key"], *usd, api["date"])
    spec = spec_of(saved, row["rank"])
    return (spec if isinstance(spec, ServeSpec | PipelineSpec) else None), None


def _plans(saved: Saved) -> list[dict[str, Any]]:
    """The plans of an answer, and those of other software on the chip of the first."""
    return [*(saved.report.get("plans") or ()), *(saved.report.get("software") or ())]


def _at_desk(saved: Saved, rank: int) -> Saved:
    """The plan that a row of `local` stands for, asked under the same facts: its model on that machine, in its format,
    with its engine. Raises `UsageError` for a row that is not there."""
    row = next((r for r in saved.report["models"] if r["rank"] == rank), None)
    if row is None:
        raise UsageError(f"no model {rank} in it", f"1 to {len(saved.report['models'])}")
    asked = cast(LocalRequest, request_of(saved.verb, saved.request))
    have = asked.have or row["machine"]
    read = saved.report["prompt_tokens"]
    changed = {"in_": f"{read:.10g}", "out": f"{max(row['context'] - read, 1.0):.10g}", "have": have, "max_usd": None}
    plan = about(
        asked, PlanRequest, **{n: row[n] for n in ("model", "runtime", "precision", "kv")}, **changed, task="local"
    )
    with reading(saved.tables), use(saved.snapshot):
        found = answered("plan", plan).saved
    return _at_load(found, row, read)


def _at_load(saved: Saved, row: Mapping[str, Any], read: float) -> Saved:
    """A plan that has room for the whole context, under the load that `local` answered for: its first plan with the
    lengths and times of the row, the room kept."""
    read = min(read, row["context"] - OUTPUT)
    pace = row["tokens_per_s"]
    tpot = {**pace, "mid": 1.0 / pace["mid"], "low": 1.0 / pace["high"], "high": 1.0 / pace["low"]}
    times = {"ttft_s": row["ttft_s"], "tpot_s": tpot, "prefill_s": row["ttft_s"]["mid"], "decode_s": tpot["mid"]}
    first, *others = saved.report["plans"]
    lengths = {"prompt_tokens": read, "output_tokens": OUTPUT, "room_tokens": row["context"]}
    report = {
        **saved.report,
        "workload": {**saved.report["workload"], **lengths},
        "plans": [{**first, **times}, *others],
    }
    request = {**saved.request, "in": f"{read:.10g}", "out": f"{OUTPUT:.10g}"}
    return replace(saved, report=report, request=request)


def _in_fleet(saved: Saved, rank: int) -> Saved:
    """The deployment that a placement of a fleet stands for, asked under the same facts: at the most that it is given.
    Raises `UsageError` for one that is not there, and for tokens of an API."""
    rows = saved.report["fleet"]["placements"]
    row = next((r for r in rows if r["rank"] == rank), None)
    if row is None:
        raise UsageError(f"no placement {rank} in it", f"1 to {len(rows)}", field="plan")
    if not row["chips"]:
        raise UsageError(f"placement {rank} calls {row['supply']}", "--plan names one that runs on chips", field="plan")
    with reading(saved.tables), use(saved.snapshot):
        asked = cast(FleetRequest, request_of(saved.verb, saved.request)).asked()
        question = asked.question_of(row)
        if isinstance(question, TrainRequest):
            alone = replace(question, chips=row["chip"], counts=str(row["chips"]))
            return answered("train", alone).saved
        part = row["sharing"]["part"] if pooled(row) else 1.0
        rate = None if question.rate is None else f"{row['rate_per_s'] / part:.6g}/s"
        deployed = placed_options(question, row, round(row["replicas"]), rate)
        return answered("estimate", about(question, EstimateRequest, **deployed)).saved


TOLD = ("chip", "chips", "replicas", "layout", "precision", "kv", "runtime", "stack", "system")
"""What of a plan its launch files say, as far as the plan has it."""


def _told(saved: Saved, rank: int) -> dict[str, Any] | None:
    """What launch files say of a plan, None where there is no such plan to launch."""
    plans = _plans(saved) if saved.verb in (*SERVED, "train", "rl") else ()
    plan = _numbered(plans, rank)
    return None if plan is None else {name: plan.get(name) for name in TOLD}


def spec_of(saved: Saved, rank: int = 1) -> Launched:
    """What launch files need of a saved plan, read under the facts that it was saved with."""
    check_answer(saved)
    try:
        return _spec(saved, rank)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise UsageError(
            f"a saved plan of another kind: {shorten(str(error))}", "save it again with this version"
        ) from None


def _spec(saved: Saved, rank: int) -> Launched:
    card, adapters = None, tuple[str, ...]()
    if saved.verb == "local":
        saved, rank = _at_desk(saved, rank), 1
    if saved.verb == "fleet":
        placed = _in_fleet(saved, rank)
        card = card_of(saved.report, rank)
        row = next(r for r in saved.report["fleet"]["placements"] if r["rank"] == rank)
        adapters = tuple(row.get("adapters") or ())
        saved, rank = placed, 1
    plans = _plans(saved)
    if saved.verb not in (*SERVED, "train", "rl") or not plans:
        raise UsageError(
            f"a saved {saved.verb} holds no plan to launch",
            Sentence("save one: ", CommandText("plan MODEL --save FILE")),
        )
    plan = _numbered(plans, rank)
    if plan is None:
        raise UsageError(f"no plan {rank} in it", f"1 to {len(plans)}", field="plan")
    with use(saved.snapshot), reading(saved.tables):
        if "samples_per_s" in plan:
            return _generate(saved, plan, card)
        if saved.verb == "rl":
            return _loop(saved, plan)
        return _train(saved, plan) if saved.verb == "train" else _serve(saved, plan, card, adapters)


def _numbered(plans: Sequence[dict[str, Any]], rank: int) -> dict[str, Any] | None:
    """A plan by its rank, or by its place where plans were compared and not ranked."""
    return next((p for i, p in enumerate(plans) if (p["rank"] or i + 1) == rank), None)


def _generate(saved: Saved, plan: Mapping[str, Any], card: SharedCard | None = None) -> PipelineSpec:
    """A request of a model that generates no tokens. Raises `UsageError` for a step of its training."""
    report, latency = saved.report, plan["latency_s"]
    if report["trained"]:
        raise UsageError(f"{report['model']}: a training step is launched by what built it", "save a request of it")
    settings, chip = report["settings"], find_chip(plan["chip"], {}, _own(saved.request))
    if saved.request.get("aside"):
        raise UsageError(
            f"{saved.request['aside']}: no script here leaves parts to the host", "ask again without --aside"
        )
    asked = _model(saved)
    each_chips = plan["chips"] // plan["replicas"]
    devices = each_chips * chip.devices_per_package
    made = max(plan["batch"] // plan["parts"], 1) if plan.get("parts") else plan["batch"]
    entry, weights = _published(asked, report["model"])
    each = f"{format_seconds(latency['mid'])} for {made} {report['unit']}{'s' * (made > 1)}"
    return PipelineSpec(
        title=f"{report['model']} on {each_chips} x {chip.id}",
        model=entry,
        machine=LaunchMachine(chip.id, chip.vendor, devices, devices),
        runtime=plan["runtime"],
        precision=plan["precision"],
        replicas=plan["replicas"],
        spare=plan["spare"],
        spread=tuple(Spread.of(plan["spread"]).shares.items()),
        offload=plan["offload"],
        batch=plan["batch"],
        sizes=tuple((name, float(settings[name])) for name in GENERATED if name in settings),
        cached=float(settings.get("cached", 0.0)),
        seconds=latency["mid"],
        interval=(latency["low"] / latency["mid"], latency["high"] / latency["mid"]),
        expected=(f"predicted: {each}", *beside_others(card)),
        parameters=float(report["parameters"]),
        code=asked if is_code(asked) else "",
        settings=tuple(
            (name, str(said))
            for name, said in pairs(saved.request.get("settings"), "--settings").items()
            if name not in settings
        ),
        parts=plan.get("parts", 0),
        weights=weights,
        rate_per_s=report["rate_per_s"] or 0.0,
    )


def _published(asked: str, model: str) -> tuple[str, str]:
    """The name that the table has for a network that was asked for, of others the name of its answer, and that of its
    weights on the hub, "" where nobody knows it."""
    if not is_built_in(asked) or asked.startswith(BY_COUNTS):
        return model, ""
    found = find(asked)
    library, _, *repository = (*get_tool("torch").models.get(found.entry.name, ()), "", "")
    own = repository[0] if library == "transformers" else ""
    return found.entry.name, asked if ID.match(asked) else found.alike or own


def _adapted(request: Mapping[str, Any], named: Sequence[str]) -> Mapping[str, Any]:
    """Names and rank of the low-rank adapters of a question, `named` where a fleet says how they are called."""
    found = Serving(lora=request.get("lora")).values["lora"]
    if found is None:
        return {}
    count, adapter = found
    names = tuple(named) or tuple(f"adapter-{i}" for i in range(1, min(count, MOST_ADAPTERS) + 1))
    return {"adapters": names, "adapter_rank": adapter.rank}


MOST_ADAPTERS = 64
"""Adapters whose names a file holds."""


def _serve(
    saved: Saved, plan: Mapping[str, Any], card: SharedCard | None = None, adapters: Sequence[str] = ()
) -> ServeSpec:
    request, report = saved.request, saved.report
    model, workload, layout = report["model"], report["workload"], plan["layout"]
    chip, placed = _placed(saved, plan)
    policies = get_runtime(plan["runtime"]).policies_on(chip)
    policies = override(policies, pairs(request.get("policy"), "--policy"))
    tp, pp, dp, ep = (int(layout[n]) for n in ("tp", "pp", "dp", "ep"))
    shape = LayoutRecord(tp, pp, dp, ep, layout["label"])
    found = load(_model(saved))
    own = found.graph.model.precision.name
    precision = plan["precision"]
    loaded, convert, weights = _weights(saved, plan, own)
    spread = (workload["prompt_cv"], workload["output_cv"])
    longest = _longest(plan, workload, policies)
    guess = _guess(request, found.graph)
    own_text = "random text of a benchmark is not accepted as often as yours, measure on your own" if guess else ""
    notes = {"weights": weights, "guesses": own_text}
    return ServeSpec(
        title=f"{model['name']}: {plan['chips']}x {chip.id}, {shape.label}, {precision}",
        model=loaded,
        machine=_machine(chip, plan["system"], len(placed.cards) if placed else tp * pp * dp),
        replicas=max(1, int(plan["replicas"])),
        runtime=plan["runtime"],
        tp=tp,
        pp=pp,
        dp=dp,
        ep=ep,
        experts=max(block.axes.get("E", 0) for _, block in found.graph.distinct()),
        precision=precision,
        convert=convert,
        stored=own,
        kv=str(request.get("kv") or ""),
        length=min(longest, model["max_context"] or longest),
        sequences=policies.max_sequences,
        budget_tokens=policies.max_batched_tokens,
        memory_share=memory_told(
            share_of(request),
            policies,
            chip,
            tp * pp * dp > 1,
            sum(size for name, size in plan["memory"]["items"].items() if name.startswith("weights")),
            card.taken if card else 0.0,
        ),
        card=card,
        **_adapted(request, adapters),
        block_tokens=policies.kv_block_tokens,
        prompt_tokens=round(workload["prompt_tokens"]),
        output_tokens=round(workload["output_tokens"]),
        concurrency=max(1, round(plan["concurrency"])),
        rate_per_s=workload["rate_per_s"],
        expected=(_predicted(plan), *(f"{of}: {said}" for of, said in notes.items() if said)),
        guess=guess,
        spare=plan["spare"],
        prompt_workers=plan["prompt_workers"],
        cached_tokens=round(workload["cached_share"] * workload["prompt_tokens"]),
        spread=spread,
        measured=_measured(saved, plan),
        placed=placed,
        network=_network(saved),
        passes=LaunchPasses(
            plan["prefill_s"], plan["decode_s"], plan["batch"], interval=_ends(plan["tpot_s"] or plan["ttft_s"])
        ),
        api=_called(report, plan["chip"]),
        scaling=FollowingRecord.of(plan["scaling"]) if plan.get("scaling") else None,
        cache_tokens=plan["memory"]["cache_tokens"] or 0,
    )


def _weights(saved: Saved, plan: Mapping[str, Any], own: str) -> tuple[str, str, str]:
    """What the software of a plan is told to load, the format that it turns that into ("": none), and what is to be
    known of it. Weights in another format than the configuration's `own` are a published checkpoint; where none is
    known, or one of others alone and the software makes them itself, it is asked to; else a folder that is not there,
    so that no other weights are served in their place."""
    name, precision, runtime = saved.report["model"]["name"], plan["precision"], get_runtime(plan["runtime"])
    hub = _hub(saved, name)
    if precision == own or any({precision, own} <= set(shipped().sets[alike]) for alike in ALIKE):
        return hub, "", ""
    published = published_as(name, precision) if hub == name else ""
    known = quality_words(quality_of(name, precision, published))
    if precision in runtime.converts and not (published and same_maker(published, name)):
        return hub, precision, f"{own} turned into {precision} while they are loaded: {known}"
    if published:
        return published, "", f"{name} in {precision}, as {published} has them: {known}"
    need = f"a checkpoint in {precision} is needed, {name} is {own}"
    if any("made" in get_tool(tool).weights for tool in tools_of(runtime.id)):
        return hub, "", need
    folder = f"./{Path(name).name}-{precision}"
    return folder, "", f"{need}, and none is known: {folder} stands for your own"


def _placed(saved: Saved, plan: Mapping[str, Any]) -> tuple[Chip, Placed | None]:
    """The chip of a plan, of a machine of several parts its first cards, and where in that the model lies."""
    parts, placed = plan.get("parts"), plan.get("placed")
    if not parts:
        return find_chip(plan["chip"], pairs(saved.request.get("set"), "--set"), _own(saved.request)), None
    chip = parse_machine(parts[0]["chip"]).cards[0][0]
    if not placed:
        return chip, None
    dealt = zip((n for n in placed["cards"] if n), (int(part["count"]) for part in parts), strict=False)
    cards = tuple(round(n / count) for n, count in dealt for _ in range(count))
    return chip, Placed(cards, *(placed[n] for n in PLACED))


def _longest(plan: Mapping[str, Any], workload: Mapping[str, Any], policies: Policies) -> int:
    """Tokens of the longest sequence: far above the mean, and where that reserves no memory what servers are asked."""
    room = sum(workload[f"{of}_tokens"] * (1.0 + DEVIATIONS * workload[f"{of}_cv"]) for of in ("prompt", "output"))
    longest: int = math.ceil(max(room, workload.get("room_tokens", 0.0)) / BLOCK) * BLOCK
    if policies.kv_reservation != "slots":
        longest = max(longest, min(ADMITTED, plan["memory"]["cache_tokens"] // BLOCK * BLOCK))
    return longest


def _predicted(plan: Mapping[str, Any]) -> str:
    """Times of a plan at its load, in words."""
    each = f" in each of {plan['replicas']:.0f} replicas" if plan["replicas"] > 1 else ""
    tpot = _span(plan["tpot_s"]) if plan["tpot_s"] else "-"
    flying = f"{plan['concurrency']:.0f} request{'' if round(plan['concurrency']) == 1 else 's'} in flight"
    return f"predicted: TTFT {_span(plan['ttft_s'])}, TPOT {tpot} (80 %), {flying}{each}"


def _called(report: Mapping[str, Any], chip: str) -> ApiCall | None:
    """The cheapest API of an answer whose address is known, that of the maker of the chip before others."""
    found = [api for api in report.get("apis") or () if api.get("base_url")]
    sold = min(found, key=lambda api: api.get("chip") != chip, default=None)
    if sold is None:
        return None
    usd = (sold["usd_per_million_in"], sold["usd_per_million_out"])
    return ApiCall(sold["provider"], sold["model"], sold["base_url"], sold["key"], *usd, sold["date"])


def _measured(saved: Saved, plan: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What each benchmark client should read off the plan: the answer to its own question, asked with that harness."""
    asked = request_of(saved.verb, saved.request)
    if not isinstance(asked, PlanRequest | EstimateRequest):
        return ()
    given = asked.deployed(plan) if isinstance(asked, PlanRequest) else {}
    deployment = about(asked, EstimateRequest, **{**given, "evidence": "none"})
    at_rate = deployment.rate is not None
    found = {}
    for harness in dict.fromkeys(names[at_rate] for names in CLIENTS.values()):
        answer = replace(deployment, harness=harness).report().plans[0]
        tpot = f", TPOT {_span(asdict(answer.tpot_s))}" if answer.tpot_s else ""
        found[harness] = f"TTFT {_span(asdict(answer.ttft_s))}{tpot} (80 %)"
    return tuple(found.items())


def _network(saved: Saved) -> LaunchNetwork | None:
    """The network's dimensions, None where it has no single width."""
    try:
        return network_of(_model(saved))
    except (UsageError, LookupError, TypeError, AttributeError, ValueError):
        return None


def _ends(figure: Mapping[str, float]) -> tuple[float, float]:
    """Ends of an interval over its middle."""
    return figure["low"] / figure["mid"], figure["high"] / figure["mid"]


def _own(request: Mapping[str, Any]) -> Mapping[str, Chip]:
    """The chips that the question brought itself."""
    return OwnChips(own_chips=request.get("own_chips")).values["own_chips"] or {}


def _guess(request: Mapping[str, Any], graph: Graph) -> Guess | None:
    """What `--speculate` asked for, as `Serving` reads it."""
    tactics = Serving(speculate=request.get("speculate")).tactics()
    if tactics.speculation is None:
        return None
    return Guess(tactics.speculation.draft_tokens, not tactics.lookup and graph.extra("mtp") is not None)


def _train(saved: Saved, plan: Mapping[str, Any]) -> TrainSpec:
    report, layout = saved.report, plan["layout"]
    chip = find_chip(plan["chip"], pairs(saved.request.get("set"), "--set"), _own(saved.request))
    per_step = plan["global_batch"] * plan["seq"]
    adapters = adapters_of(pairs(saved.request.get("adapter"), "--adapter"))
    kept = {**pairs(plan.get("policy") or None, "--memory"), **pairs(saved.request.get("memory"), "--memory")}
    held = get_trainer(plan["stack"]).memory.changed(kept)
    fixed = pairs(saved.request.get("layout"), "--layout")
    devices = layout["tp"] * layout["pp"] * layout["cp"] * layout["dp"]
    network = network_of(_model(saved))
    return TrainSpec(
        title=f"{report['model']['name']}: {plan['chips']}x {chip.id}, {layout['label']}, {plan['precision']}",
        model=_hub(saved, report["model"]["name"]),
        machine=_machine(chip, plan["system"], devices, devices // plan["chips"]),
        network=network,
        tp=layout["tp"],
        pp=layout["pp"],
        vp=layout["vp"],
        cp=layout["cp"],
        ep=layout["ep"],
        dp=layout["dp"],
        sharding=layout["sharding"],
        shard_ranks=layout["shard_ranks"],
        selective=layout["recompute"] == "selective",
        recomputed=_recomputed(layout["recompute"]),
        schedule=layout["schedule"],
        offload=layout["offload"],
        stash=layout["stash"],
        micro_batch=layout["micro_batch"],
        global_batch=plan["global_batch"],
        seq=plan["seq"],
        precision=plan["precision"],
        steps=max(1, math.ceil(report["tokens"] / per_step)),
        tuned=_tuned(report["task"], saved.request.get("method"), network),
        expected=(
            f"predicted: {_span(plan['step_s'])} a step (80 %), {plan['mfu'] * 100:.0f} % MFU, "
            f"{duration(plan['days']['mid'])} with failures",
            f"memory: {plan['memory_bytes'] / 1e9:.1f} of {plan['capacity_bytes'] / 1e9:.1f} GB on the fullest device "
            f"(optimiser {held.optimizer}, gradients {held.gradients}, loss {held.loss})",
            *(["documents: the loader masks attention between them"] if saved.request.get("documents") else []),
            *([f"{MADE}: a folder of your own with config.json and tokenizer"] if _by_dimensions(saved) else []),
        ),
        optimizer=kept.get("optimizer", ""),
        master=held.master,
        gradients=held.gradients,
        loss=held.loss,
        save_steps=max(1, round(plan["checkpoint_s"] / plan["step_s"]["mid"])),
        # all NVIDIA GPUs with 4-bit units are Blackwell or later
        one_queue=chip.vendor == "nvidia" and "fp4" not in chip.matrix,
        rank=adapters.rank,
        targets=adapters.targets,
        dora=adapters.dora,
        passes=LaunchPasses(step_s=plan["step_s"]["mid"], interval=_ends(plan["step_s"])),
        objective=report["objective"],
        together=OBJECTIVES[report["objective"]].together,
        **{f"{setting}_by": fixed.get(setting, "") for setting in KERNELS},
    )


def _loop(saved: Saved, plan: Mapping[str, Any]) -> LoopSpec:
    asked = cast(RlRequest, request_of(saved.verb, saved.request)).asked()
    chip = find_chip(plan["chip"])
    each = chip.devices_per_package
    together = plan["placement"] == "together"
    held = -(-plan["chips"] // plan["hosts"]) * each
    step, days = _span(plan["step_s"]), duration(plan["days"]["mid"])
    return LoopSpec(
        title=f"{saved.report['model']['name']}: {plan['chips']}x {chip.id}, {plan['placement']}, {plan['layout']}",
        model=_hub(saved, saved.report["model"]["name"]),
        machine=LaunchMachine(chip.id, chip.vendor, plan["chips"] * each, held),
        train_devices=plan["train_chips"] * each,
        sample_devices=0 if together else plan["rollout_chips"] * each,
        layout=TrainLayoutRecord(**plan["training"]),
        runtime=plan["runtime"],
        tp=plan["tp"],
        pp=plan["pp"],
        prompts=asked.answers.prompts,
        samples=asked.answers.samples,
        longest_prompt=math.ceil(asked.answers.prompt_tokens * LONGER / BLOCK) * BLOCK,
        longest=math.ceil(asked.answers.longest),
        steps=asked.steps,
        updates=asked.answers.updates,
        critic=asked.critic,
        reference=asked.reference,
        method=asked.method,
        precision=plan["precision"],
        rollout_precision=plan["rollout_precision"],
        expected=(f"predicted: {step} a step (80 %), {days} for {asked.steps:,} steps",),
        teacher=asked.teacher,
        depth=network.layers if (network := _network(saved)) else 0,
    )


def _tuned(task: str, method: str | None, network: LaunchNetwork) -> str:
    """How published weights are trained on, "" where training starts from random ones."""
    how = method or ("lora" if task == "finetune" and network.causal else "full")
    return "" if task == "train" and how == "full" else how


def _recomputed(words: str) -> float:
    """The share of layers in `none`, `selective`, `full` or `50% of layers`."""
    return float(words.partition("%")[0]) / 100.0 if "%" in words else float(words == "full")


def _machine(chip: Chip, system: str, devices: int, per_chip: int = 0) -> LaunchMachine:
    """Hosts of the plan's system, and rented machines with as many chips as one of them gives; `per_chip`: devices of
    one that the trainer sees, 0: those of the package."""
    per_chip = per_chip or chip.devices_per_package
    held = get_system(system).chips_per_host if system else max(1, devices // per_chip)
    chips = min(held, max(1, -(-devices // per_chip)))
    offers = sorted(
        (
            o
            for o in load_offers()
            if o.chip == chip.id and o.chips and o.chips >= chips and o.usd_per_h and not o.doubt
        ),
        key=lambda o: (o.chips or 0, o.usd_per_h or 0.0),
    )
    return LaunchMachine(
        chip.id,
        chip.vendor,
        devices,
        held * per_chip,
        tuple((o.provider, o.instance, o.region, (o.chips or 0) * per_chip) for o in offers),
        chip.kind == "cpu",
    )


def _model(saved: Saved) -> str:
    return str(saved.request["model"])


def _by_dimensions(saved: Saved) -> bool:
    """Whether the network of an answer has no configuration but what was asked."""
    text = _model(saved).strip()
    return text.startswith((BY_DIMENSIONS, INLINE)) or bool(BY_SIZE.match(text))


def _hub(saved: Saved, name: str) -> str:
    """What a tool is told to load: the user's own folder, or the name on the hub; of a network that was given by its
    dimensions, which no hub has, `MADE`."""
    if _by_dimensions(saved):
        return MADE
    given = Path(_model(saved))
    if not {str(given), str(given / "config.json")} & saved.tables.keys():
        return name
    return str(given.parent if given.name == "config.json" else given)


def _span(figure: Mapping[str, float]) -> str:
    return f"{format_seconds(figure['mid'])} [{format_seconds(figure['low'])} to {format_seconds(figure['high'])}]"


def share_of(request: Mapping[str, Any]) -> Share:
    """The share of its chip that a question asks about."""
    said = request.get("share")
    return shared(said, "--share") if said else Share()


def card_of(report: Mapping[str, Any], rank: int) -> SharedCard | None:
    """The card of a placement of a fleet, None where it is its own."""
    rows = report["fleet"]["placements"]
    row = next(r for r in rows if r["rank"] == rank)
    if not row.get("sharing") or pooled(row):
        return None
    card = [r for r in rows if r.get("sharing") and _on(r) == _on(row)]
    before = [r["sharing"]["memory"] for r in card if r["rank"] < rank]
    cuts = tuple(filter(None, map(_instance, card)))
    others, asleep = tuple(row["sharing"]["others"]), bool(row["sharing"].get("turn"))
    taken = 0.0 if asleep else sum(before)
    return SharedCard(others, _instance(row), cuts, len(before), taken, asleep)


def beside_others(card: SharedCard | None) -> tuple[str, ...]:
    """That a request runs on part of a card, and how the script gets it."""
    if card is None:
        return ()
    cut = f": CUDA_VISIBLE_DEVICES names its instance, {card.instance}" if card.instance else ""
    return (f"shares its card with {', '.join(card.others)}, while they have work{cut}",)


def _on(row: Mapping[str, Any]) -> tuple[str, set[str]]:
    """The supply of a shared card, and the demands on it."""
    return row["supply"], {row["demand"], *row["sharing"]["others"]}


def _instance(row: Mapping[str, Any]) -> str:
    return str(row["sharing"]["share"].partition("mig=")[2])


def memory_told(share: Share, policies: Policies, chip: Chip, several: bool, weights: float, taken: float) -> float:
    """The share of its base that the runtime is told: what it reserves has no option of its own where the base is
    the memory before loading (SGLang: 1 - reserved / free, as it sets the share itself). On a part of a chip it is
    that part of what the runtime finds there, where others have `taken` theirs before; an instance is found as a chip.
    """
    part = share.of(chip)
    whole = part if share.instance else chip
    capacity, found = part.memory.found_bytes, whole.memory.found_bytes
    outside = policies.context_bytes + (policies.collective_bytes if several else 0.0)
    free = capacity / chip.devices_per_package - outside
    told = policies.memory_share
    if policies.memory_base == "free_before_load" and free > 0.0:
        told = max(told - policies.reserved_bytes / free, 0.0)
    elif capacity == found or not found:
        return told
    if policies.memory_base == "free_after_load":
        left = found * (1.0 - taken) - weights
        return round(min(told * max(capacity - weights, 0.0) / left, 1.0), 3) if left > 0.0 else told
    return round(told * (capacity / found if found else 1.0), 3)
