"""What the verbs about serving are told beside model and workload: the terms, and a deployment given in full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import date

from chipwise.api.context import Context, OwnAnchors
from chipwise.api.loaded import check_length, find_chip, load_generating, scaled_positions, shown
from chipwise.api.tactics import Tactics
from chipwise.calibrate.parameters import Parameters, shipped_parameters
from chipwise.catalog.chip import Chip
from chipwise.catalog.environment import Environment
from chipwise.catalog.machine import joined
from chipwise.catalog.override import Share, told, with_figures
from chipwise.catalog.price import OwnCosts, Pricing, Rent
from chipwise.catalog.runtime import get_runtime
from chipwise.catalog.snapshot import today as day
from chipwise.errors import InfeasibleError
from chipwise.parallel.layout import Layout
from chipwise.parallel.placement import Offloaded
from chipwise.predict.events.scaling import ScalingGiven
from chipwise.search.deployments import deployments
from chipwise.search.space import Deployment
from chipwise.values import dataclass
from chipwise.workload.labels import format_name
from chipwise.workload.workload import Workload

WHOLE = Share()
ANYWHERE = Environment()
BEST = "best"
"""In place of the name of a runtime: all that can are compared."""
BEST_PLACED = Offloaded()


@dataclass(frozen=True)
class Terms:
    """Under what a model is asked about; every field has the default of a question that leaves it out.

    `precision` replaces that of the checkpoint, `kv` that of its cache; `policy` replaces figures of the runtime,
    `changes` those of the chips; `tactics` is how the software is run, `pricing` how chips are paid on the day `today`
    (None: the user has them),
    `parameters` are fitted numbers in place of those shipped. `share` is what other work leaves of a chip,
    `environment` what its surroundings do. `own`: where what the user measured is found, which moves what is
    predicted for the same deployments (None: it does not count). `own_chips` are in no catalogue. `scaling`
    is what is said of replicas that follow the load.
    """

    precision: str | None = None
    kv: str | None = None
    runtime: str | None = None
    policy: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, str] = field(default_factory=dict)
    tactics: Tactics = field(default_factory=Tactics)
    pricing: Pricing | None = field(default_factory=Pricing)
    today: date | None = None
    parameters: Parameters | None = None
    share: Share = WHOLE
    environment: Environment = ANYWHERE
    own: OwnAnchors | None = None
    own_chips: Mapping[str, Chip] = field(default_factory=dict)
    scaling: ScalingGiven = field(default_factory=ScalingGiven)

    def chip(self, name: str) -> Chip:
        """A chip by name with the user's figures, and what other work leaves of it. Raises the errors of
        `find_chip`."""
        return self.shared(find_chip(name, self.changes, self.own_chips))

    def part(self, name: str) -> Chip:
        """A part of a machine by name, as it is sold (`card` has the user's figures). Raises the errors of
        `find_chip`."""
        return find_chip(name, None, self.own_chips)

    def shared(self, chip: Chip) -> Chip:
        """What other work and the surroundings leave of a chip."""
        return self.environment.of(self.share.of(chip))

    def card(self, chip: Chip) -> Chip:
        """A card of a machine with the user's figures, and what other work leaves of it."""
        return self.shared(with_figures(chip, self.changes) if self.changes else chip)

    @property
    def numbers(self) -> Parameters:
        """The fitted numbers: those given, else those shipped."""
        return self.parameters or shipped_parameters()

    def basis(self, chip_id: str) -> Rent | OwnCosts | None:
        """How a chip is paid; None where no price is known, or the user has it."""
        return self.pricing.basis(chip_id, self.today or day()) if self.pricing else None

    @property
    def named(self) -> str | None:
        """The software that was asked for by name, None where it may be any."""
        return None if self.runtime == BEST else self.runtime

    @property
    def said(self) -> tuple[str, ...]:
        """What the user said of chips, as lines of assumptions."""
        return (*told(self.changes), *self.share.words, *self.environment.words)

    def _stored(self, model: str) -> str | None:
        """The precision, under a runtime that is named that of its own file of it."""
        files = get_runtime(self.named).stores if self.named else {}
        if not files:
            return self.precision
        label = format_name(self.precision or load_generating(model).graph.model.precision.name)
        return files.get(label, self.precision)

    def context(self, model: str, workload: Workload, *, owned: bool = False, longer: bool = False) -> Context:
        """The model with its load, numbers and prices; chips that are `owned` have none. `longer`: a sequence beyond
        what the model was trained on is noted, not refused.

        Raises `UsageError` and `UnknownNameError` for a model that cannot be read or run so long.
        """
        found, workload = shown(load_generating(model, self._stored(model), self.kv), workload)
        if longer:
            found = scaled_positions(found, workload.context)
        else:
            check_length(found, workload.context)
        return Context(
            found,
            self.tactics.drawn(workload),
            self.numbers,
            self.today or day(),
            None if owned else self.pricing,
            self.policy,
            self.tactics.of(found.graph),
            self.own,
        )


@dataclass(frozen=True)
class Given:
    """One deployment and its load: `layout` of one replica, and `concurrency` clients or `rate_per_s` requests of all
    `replicas` (neither: as many as fit, of a local user one). `count` checks the chips of the layout. Where `chip` is a
    machine of several parts (`rtx-4090+epyc-9654`), `host_memory` bytes are its processor's and `offload` says what
    lies where."""

    chip: str
    layout: Layout = field(default_factory=Layout)
    count: int | None = None
    concurrency: float | None = None
    rate_per_s: float | None = None
    replicas: int = 1
    host_memory: float | None = None
    offload: Offloaded = BEST_PLACED

    @property
    def parted(self) -> bool:
        """Whether several parts of a machine share the model."""
        return self.offload != BEST_PLACED or self.host_memory is not None or joined(self.chip)


def placed(
    model: str, workload: Workload, chip: str, terms: Terms | None = None, *, together: float = 1.0
) -> tuple[Context, Deployment]:
    """The model with its load, numbers and prices, and the deployment, in a machine that joins `together` devices. A
    sequence beyond what the model was trained on is noted. Raises `InfeasibleError` where no runtime launches it,
    `UsageError` and `UnknownNameError` for bad input."""
    terms = terms or Terms()
    context = terms.context(model, workload, longer=True)
    hardware, graph = terms.chip(chip), context.found.graph
    local = workload.task == "local"
    offered, refused = deployments(
        graph.model, (hardware,), terms.runtime, local=local, policy=terms.policy, together=together if local else 1.0
    )
    able, unable = context.tactics.on(offered, graph, terms.policy)
    if not able:
        why = refused[0][2] if refused else unable[0].detail
        raise InfeasibleError(f"{hardware.id}: no plan", why)
    return context, able[0]
