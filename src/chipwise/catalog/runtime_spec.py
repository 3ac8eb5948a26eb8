"""What a serving runtime is: its policies on a chip and its rows of the support matrix.

Tables of the capability `serves`, besides fields of `Runtime`:

```
policies    figure = value, or { is = value, source = ..., grade = ..., note = ... }; `like` a preset
tier        a list: from_bytes, chips, except, until (a month), and the figures that differ there
on          a list: chips, native, mixed ("int4/fp8": weights/activations), weights_only, no_experts, kv, half
backends    kind of chips (generation, family, vendor, any) -> kernels of its own, the default first; source
features, architectures     is, and where that was read
```
A row of `on` with an empty `native` and no `weights_only` records that the chips are not supported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, field, fields, replace
from functools import cache
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

from chipwise.catalog.chip import Chip, Provenance
from chipwise.catalog.schema import known_keys, read_flag, read_text, read_texts, record
from chipwise.catalog.software import CITED, Software, SoftwareTable
from chipwise.errors import UnknownNameError, UsageError, shorten
from chipwise.units import parse_quantity
from chipwise.values import dataclass

Access = Literal["public", "vendor", "internal"]
MemoryBase = Literal["total", "free_before_load", "free_after_load"]
State = Literal["yes", "weights_only", "no", "unknown"]
Operator = Literal[
    "attention", "latent_attention", "latent_prompt", "latent_layer", "layer", "experts", "all_reduce", "prompt_pass",
    "decode_pass", "product", "block_product", "selected_prompt",
]  # fmt: skip
Feature = Literal[
    "tp", "pp", "ep", "cp", "attention_dp", "lora", "disaggregated", "padded_heads", "engines",
    # experts spread over a network, copies of experts that fill what ep does not divide, two halves of a batch in turn
    "wide_ep", "spare_experts", "two_batches",
]  # fmt: skip

_SIXTEEN = ("bf16", "fp16", "fp32")


@dataclass(frozen=True, slots=True)
class Policies:
    """How a runtime divides the memory of one device and forms its batches. Bytes are per device.

    budget = memory_share x base - reserved_bytes, where base and what the budget holds follow `memory_base`:

    - `total` (vLLM): base is the whole memory; the budget holds weights, workspace, graphs and KV cache.
      Context and collective buffers live outside it, so they must fit in the rest.
    - `free_before_load` (SGLang): base is what context and collective buffers leave; the budget holds the
      same.
    - `free_after_load` (TensorRT-LLM): base is what context, collective buffers, weights, workspace and
      graphs leave; the budget is the KV cache.

    The workspace counts only where it is `profiled`; where it is `reserved`, it is in `reserved_bytes`.
    """

    memory_base: MemoryBase
    memory_share: float
    reserved_bytes: float
    context_bytes: float
    """Driver context and libraries of one process."""
    collective_bytes: float
    """Communication buffers, only where more than one device works on one stage of a model."""
    graph_bytes: float
    """Captured graphs or compiled programs."""
    workspace: Literal["profiled", "reserved"]
    """`profiled`: the runtime measures its peak at start, with `max_batched_tokens` and `max_sequences`."""
    workspace_bytes: float
    """A published peak, for use where nothing better is known about the model."""
    kv_block_tokens: int
    kv_reservation: Literal["slots", "full", "growing"]
    """At admission: room for prompt and whole output, as a slot for the longest sequence that is allocated at start
    (`slots`) or as long as the request may get (`full`); or for the prompt, growing as tokens come."""
    kv_reserved_share: float
    """Share of the output that a running request takes up when the cache is full (1 where it is not `growing`)."""
    kv_format: str
    """Default format of the KV cache; `model` = the 16-bit type of the model."""
    max_batched_tokens: int
    """Tokens of one iteration; a longer prompt is cut into chunks of that size."""
    max_sequences: int
    prefill: Literal["mixed", "alone"]
    """Whether prompts share an iteration with decoding requests."""
    look_passes: int = 1
    """Decoding passes from one look for new requests to the next."""
    gather_passes: int = 0
    """Passes that a first prompt waits, while others decode, for more to fill the budget of a pass, or to give one to
    each attention replica."""
    batch: Literal["continuous", "static"] = "continuous"
    """`static`: requests of a batch start together, and the next batch when all have ended."""
    micro_batch_tokens: int = 0
    """Tokens of an iteration that go through the model at a time, where a local runtime cuts it; 0: it does not."""
    preemption: Literal["recompute", "swap"] = "recompute"
    """What becomes of the cache of a sequence that has to make room: it is computed anew, or moved to the host and
    back."""
    token_table: Literal["device", "host"] = "device"
    """Where the embedding lies: on cards with memory of their own a local runtime keeps it with the host."""
    tower: Literal["always", "asked"] = "always"
    """When what sees is loaded: with the model, or, where it is a file of its own, for requests with pictures."""
    sampler_bytes: float = 0.0
    """Of a profiled workspace, for each entry of the vocabulary of each sequence: logits in float32, and what the
    sampler makes of them, after activations are gone; 0: no more than the logits, beside activations."""
    state_share: float = 1.0
    """Share of the room for caches that states of recurrent layers have for themselves, and tokens the rest; 1: both
    share all of it."""
    state_copies: int = 1
    """States that such a pool keeps for each running sequence: its own, and those of what was computed before."""
    backend: str = ""
    """Whose kernels it was built with, where it brings several kinds of its own: cuda, vulkan, ...; "": it does not."""


FIGURES = tuple(f.name for f in fields(Policies))
"""Names of the policy figures."""
_OPTIONAL = tuple(f.name for f in fields(Policies) if f.default is not MISSING)
_SHARES = ("memory_share", "kv_reserved_share", "state_share")


@cache
def _kinds() -> Mapping[str, Any]:
    """The type of every policy figure: asking for them takes longer than reading a runtime."""
    return get_type_hints(Policies)


def _figure(where: str, name: str, value: object) -> Any:
    """A policy figure of the type and range that its field asks for."""
    kind = _kinds()[name]
    if kind is str or get_origin(kind) is Literal:
        return read_text(where, value, get_args(kind) or None)
    if name.endswith("_bytes"):
        return parse_quantity(read_text(where, value), "B", where)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UsageError(f"{where}: expected a number, found {shorten(repr(value))}")
    if kind is int and name != "gather_passes" and (not isinstance(value, int) or value < 1):
        raise UsageError(f"{where}: {value} is not a count", "a whole number of at least 1")
    if name in _SHARES and not 0 < value <= 1:
        raise UsageError(f"{where}: {value} is no share", "more than 0 and at most 1")
    return value


def _figures(
    table: SoftwareTable, where: str, entry: Mapping[str, Any], default: Provenance
) -> tuple[dict[str, Any], dict[str, Provenance]]:
    """Policy figures and the provenance of each: its own for `{ is = value, source = ..., ... }`."""
    values: dict[str, Any] = {}
    own: dict[str, Provenance] = {}
    for name, value in entry.items():
        spot, own[name] = f"{where}.{name}", default
        if isinstance(value, dict):
            own[name] = table.cited(spot, known_keys(value, CITED, spot, ("is",)), default)
            value = value["is"]
        values[name] = _figure(spot, name, value)
    return values, own


def _policies(
    table: SoftwareTable, where: str, entry: object, default: Provenance
) -> tuple[dict[str, Any], dict[str, Provenance]]:
    """All policy figures: those of the preset that `like` names, then the table's own."""
    said = dict(known_keys(entry, ("like", *FIGURES), where))
    like = said.pop("like", None)
    values, own = _figures(table, where, said, default)
    shared = {n: known_keys(preset, FIGURES, f"preset.{n}") for n, preset in table.presets.items()}
    if like is not None:
        preset = shared[read_text(f"{where}.like", like, shared)]
        theirs, theirs_own = _figures(table, f"preset.{like}", preset, Provenance((), "assumed"))
        values, own = theirs | values, theirs_own | own
    known_keys(values, _OPTIONAL[:-1], where, [f for f in FIGURES if f not in _OPTIONAL])  # backends follow the chip
    return values, own


@dataclass(frozen=True, slots=True)
class PolicyTier:
    """Policies that differ on devices with at least `from_bytes` of memory, on some chips, or in software up to the
    month `until` ("": in the newest)."""

    from_bytes: float
    chips: frozenset[str]
    excluded: frozenset[str]
    changes: Mapping[str, Any]
    own: Mapping[str, Provenance]
    until: str = ""

    def applies(self, chip: Chip, month: str = "") -> bool:
        """Whether the tier holds on the chip in software of a month; a chip of unknown memory is in no tier with a
        bound."""
        known = chip.support_id
        if self.until and not "" < month <= self.until:
            return False
        if known in self.excluded or (self.chips and known not in self.chips):
            return False
        memory = chip.memory.found_bytes
        return memory / chip.devices_per_package >= self.from_bytes

    @classmethod
    def read(cls, table: SoftwareTable, where: str, entry: object, default: Provenance) -> Self:
        """One entry of `tier`. Raises `UsageError`."""
        said = known_keys(entry, ("from_bytes", "chips", "except", "until", *CITED, *FIGURES), where)
        figures = {name: value for name, value in said.items() if name in FIGURES}
        changes, own = _figures(table, where, figures, table.cited(where, said, default))
        bound = parse_quantity(read_text(f"{where}.from_bytes", said.get("from_bytes", "0 B")), "B", where)
        chips, excluded = (table.chips(f"{where}.{key}", said.get(key, [])) for key in ("chips", "except"))
        return cls(bound, chips, excluded, changes, own, read_text(f"{where}.until", said.get("until", "")))


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the support matrix: what a runtime does on some chips.

    `native` holds (weight format, class of activation) pairs whose product is computed in that class;
    `weights_only` are formats that are stored so and multiplied in `half`, the 16-bit type; for `no_experts` it has no
    kernel that multiplies experts. `experimental`: whoever makes it says that it is not ready there.
    """

    chips: frozenset[str]
    native: frozenset[tuple[str, str]]
    weights_only: frozenset[str]
    kv: frozenset[str]
    half: str
    provenance: Provenance
    no_experts: frozenset[str] = frozenset()
    experimental: bool = False

    @property
    def runs(self) -> bool:
        """False for a row which records that the chips are not supported."""
        return bool(self.native or self.weights_only)

    @classmethod
    def read(cls, table: SoftwareTable, where: str, entry: object, default: Provenance) -> Self:
        """One entry of `on`. Raises `UsageError`."""
        optional = ("mixed", "weights_only", "kv", "half", "no_experts", "experimental", *CITED)
        said = known_keys(entry, optional, where, ("chips", "native"))
        native = {(name, table.formats[name]) for name in table.formats_of(f"{where}.native", said["native"])}
        for pair in read_texts(f"{where}.mixed", said.get("mixed", [])):
            weight, _, act = pair.partition("/")
            act = read_text(f"{where}.mixed", act, table.formats.values())
            native.add((read_text(f"{where}.mixed", weight, table.formats), act))
        rule = cls(
            chips=table.chips(f"{where}.chips", said["chips"]),
            native=frozenset(native),
            weights_only=frozenset(table.formats_of(f"{where}.weights_only", said.get("weights_only", []))),
            kv=frozenset(table.formats_of(f"{where}.kv", said.get("kv", ["bf16", "fp16"]))),
            half=read_text(f"{where}.half", said.get("half", "bf16"), table.formats),
            provenance=table.cited(where, said, default),
            no_experts=frozenset(table.formats_of(f"{where}.no_experts", said.get("no_experts", []))),
            experimental=read_flag(f"{where}.experimental", said.get("experimental", False)),
        )
        if not rule.runs and not rule.provenance.note:
            raise UsageError(f"{where}: a row without formats records that chips are not supported", "say why in note")
        return rule


@dataclass(frozen=True, slots=True)
class KernelRow:
    """Whose kernels run an operator, on some runtimes, generations of chips, data types, architectures of models and
    backends of local runtimes, in software up to the month `until`; empty = all. A `latent_layer` is what stands
    between the kernels of a layer with latent attention, a `layer` the same of others. Of a `prompt_pass` the library
    says how passes with prompts start: "eager", each kernel by the host, or in "pieces" that were captured; of a
    `decode_pass` "eager" where the rest is captured. A `selected_prompt` is attention of queries that each select
    entries of a latent cache. `experts` of local runtimes are "host_sorted" where the host sorts their rows, "single"
    where each expert moreover is a product for itself, "single_prompts" where it is one in prompts alone, sorted well
    ("_unfused": with a kernel for every operator between products). A `product` is a plain one; its row names
    libraries older than runtimes of language models."""

    operator: Operator
    library: str
    runtimes: frozenset[str] = frozenset()
    generations: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    architectures: frozenset[str] = frozenset()
    backends: frozenset[str] = frozenset()
    until: str = ""

    def fits(self, runtime: str, generation: str, dtype: str, month: str, architecture: str, backend: str) -> bool:
        """Whether the row speaks of them; `month` as in 2025-06, "" is the newest software; `architecture` of no model
        in particular and `backend` of runtimes without: ""."""
        return (
            (not self.backends or backend in self.backends)
            and (not self.architectures or architecture in self.architectures)
            and (not self.runtimes or runtime in self.runtimes)
            and (not self.generations or generation in self.generations)
            and (not self.types or dtype in self.types)
            and (not self.until or "" < month <= self.until)
        )


@dataclass(frozen=True, slots=True)
class Offload:
    """How a runtime keeps a part of a model in the memory of the host, and what of it the processor works on.

    `holds` names what may lie there: whole `layers`, or the routed `experts` of layers that are on the cards. From
    `streams_from` tokens of a pass on (0: never) products of weights there are made on the first card, which fetches
    these over its bus for every `micro_batch` tokens. `second_socket` is what another socket adds to the memory speed
    of the first (0: it is left idle), each with a copy of what lies there. `unequal`: cards of several kinds share a
    model by layers. `matrix_units`: products of the host use those of the processor, else its vector
    lanes. `alone`: it runs models without a host part too.
    """

    holds: frozenset[Literal["layers", "experts"]]
    provenance: Provenance
    streams_from: int = 0
    micro_batch: int = 512
    second_socket: float = 0.0
    unequal: bool = False
    matrix_units: bool = True
    alone: bool = True


@dataclass(frozen=True, slots=True)
class CacheBelow:
    """Memories below the device's in which a runtime keeps prefixes that its cache has no room for: the `host`'s, and
    below it a `disk`. `through` is the part of the software, or beside it, that does so, with its first release."""

    holds: frozenset[Literal["host", "disk"]]
    through: str
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class Sleeping:
    """How a server of a runtime sleeps on chips of these `vendors`: its weights go to the host's memory, its cache is
    dropped, its process stays. Weights go and come back at the share `link` of the host's link, and take `start_s`
    besides either way."""

    link: float
    start_s: float
    vendors: frozenset[str]
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class ServiceHabits:
    """What a vendor is known to run behind its own API. `stored`: the format in which it keeps 16-bit checkpoints, ""
    where none narrower is known. `drafts_since`: the date since which a small model drafts for its large ones
    (speculative decoding), "" where none is known to."""

    provenance: Provenance
    stored: str = ""
    drafts_since: str = ""


@dataclass(frozen=True, slots=True)
class Support:
    """Whether a combination runs. `compute` is the type in which the products are then calculated."""

    state: State
    reason: str
    compute: str | None
    provenance: Provenance

    def __bool__(self) -> bool:
        """True for what can be launched as far as known: `yes` and `weights_only`."""
        return self.state in ("yes", "weights_only")


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime(Software):
    """A serving stack. `access` other than `public`: users cannot launch it themselves, see `note`.

    `latent_as` is the runtime whose measured kernels of latent attention stand for its own. `converts` are formats that
    it turns 16-bit weights into when it loads them, `made_for` classes of formats that it was made for. `published_as`
    is what published results call it where that is not its id. `narrow_cache` are formats of checkpoints
    beside which it keeps the cache in 8 bit. `offload`: how it shares a model with the host, None: not at all.
    `cache_below`: where it keeps prefixes that its cache has no room for, None: nowhere. `sleeping`: how its servers
    sleep, None: they do not.
    `backends`, of runtimes that bring kernels of their own: which kinds, by generation, family or vendor of chips.
    `stores`: formats whose weights it keeps in files of its own, by another mix. `service`: how its vendor serves with
    it, None where nothing is known of that. `unfused_experts`: kernels that routed experts take of it for one of a
    local runtime that fuses them. `called`: what its users call it where that software does not run itself, "" where
    they call it by its own name. `vouched`: its makers validate models of `architectures`, and say so of no others.
    """

    capability: ClassVar[str] = "serves"

    access: Access
    policies: Policies
    tiers: tuple[PolicyTier, ...]
    rules: tuple[Rule, ...]
    architectures: frozenset[str]
    features: frozenset[Feature]
    own: Mapping[str, Provenance] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)
    listed_chips: frozenset[str] = frozenset()
    latent_as: str = ""
    converts: frozenset[str] = frozenset()
    made_for: frozenset[str] = frozenset()
    published_as: str = ""
    narrow_cache: frozenset[str] = frozenset()
    offload: Offload | None = None
    cache_below: CacheBelow | None = None
    sleeping: Sleeping | None = None
    backends: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stores: Mapping[str, str] = field(default_factory=dict)
    service: ServiceHabits | None = None
    unfused_experts: float = 1.0
    called: str = ""
    vouched: bool = False

    @classmethod
    def read(cls, table: SoftwareTable, where: str, entry: Mapping[str, Any], common: Mapping[str, Any]) -> Self:
        """The runtime of one table `serves`. Raises `UsageError`."""
        tables = ("policies", "on", "architectures", "features")
        plain = dict(known_keys(entry, entry, where, tables))
        default: Provenance = common["default"]
        values, own = _policies(table, f"{where}.policies", plain.pop("policies"), default)
        for key in ("architectures", "features"):
            part = known_keys(plain[key], CITED, f"{where}.{key}", ("is",))
            plain[key], own[key] = part["is"], table.cited(f"{where}.{key}", part, default)
        said = plain.pop("backends", {})
        own["backend"] = table.cited(f"{where}.backends", {k: v for k, v in said.items() if k in CITED}, default)
        plain["backends"] = {kind: names for kind, names in said.items() if kind not in CITED}
        kinds: dict[str, type[Any]] = {
            "offload": Offload, "cache_below": CacheBelow, "sleeping": Sleeping, "service": ServiceHabits
        }  # fmt: skip
        parts: dict[str, Any] = {
            key: table.part(kind, f"{where}.{key}", plain.pop(key), default)
            for key, kind in kinds.items()
            if key in plain
        }
        tiers = [
            PolicyTier.read(table, f"{where}.tier[{i}]", row, default) for i, row in enumerate(plain.pop("tier", []))
        ]
        rules = [Rule.read(table, f"{where}.on[{i}]", row, default) for i, row in enumerate(plain.pop("on"))]
        legal = {
            "converts": table.formats, "narrow_cache": table.formats, "made_for": table.formats.values()
        }  # fmt: skip
        for key in legal.keys() & plain.keys():
            read_texts(f"{where}.{key}", plain[key], legal[key])
        read_text(f"{where}.latent_as", plain.get("latent_as", ""), ("", *table.names("serves")))
        if (service := parts.get("service")) and service.stored:
            read_text(f"{where}.service.stored", service.stored, table.formats)
        return record(
            cls, plain, where, policies=Policies(**values), tiers=tuple(tiers), rules=tuple(rules), own=own,
            formats=table.formats, listed_chips=table.listed, **parts, **common,
        )  # fmt: skip

    @property
    def unasked(self) -> bool:
        """Whether plans take it where it is not asked for."""
        return not self.named and (self.offload is None or self.offload.alone)

    def backends_on(self, chip: Chip) -> tuple[str, ...]:
        """Kinds of kernels of its own that a local runtime has for a chip, the default first; none for others."""
        kinds = (chip.generation, chip.family, chip.software_vendor, "any")
        return next((self.backends[kind] for kind in kinds if kind in self.backends), ())

    def policies_on(self, chip: Chip) -> Policies:
        """The policies on one chip: the defaults with every tier that applies, later tiers winning."""
        changes: dict[str, Any] = {}
        for tier in self.tiers:
            if tier.applies(chip):
                changes.update(tier.changes)
        return replace(self.policies, backend=next(iter(self.backends_on(chip)), ""), **changes)

    def policies_until(self, chip: Chip, month: str) -> Mapping[str, Any]:
        """The policies of software of a month on one chip, as in 2024-04, as far as they were others then."""
        dated = (tier.changes for tier in self.tiers if tier.until and tier.applies(chip, month))
        return {name: value for changes in dated for name, value in changes.items()}

    def provenance(self, figure: str, chip: Chip | None = None) -> Provenance:
        """Source and grade of a policy figure, of `architectures` or of `features`; on `chip` if given.

        Raises `UnknownNameError` for a figure that does not exist.
        """
        known = (*FIGURES, "architectures", "features")
        if figure not in known:
            raise UnknownNameError("figure of a runtime", figure, known)
        found = self.own.get(figure, self.default)
        for tier in self.tiers if chip is not None else ():
            if chip is not None and figure in tier.changes and tier.applies(chip):
                found = tier.own[figure]
        return found

    def rule(self, chip: Chip) -> Rule | None:
        """The row of the support matrix for a chip, None where there is none."""
        wanted = chip.support_id
        for rule in self.rules:
            if wanted in rule.chips:
                return rule
        return None

    def untested(self, chip: Chip, architecture: str) -> tuple[str, ...]:
        """What its makers do not vouch for where it runs such a model (`supports`) on a chip, in words."""
        rule, beyond = self.rule(chip), self.vouched and architecture not in self.architectures
        return (
            *((f"{architecture} models under {self.name}",) if beyond else ()),
            *((f"{self.name} on {chip.id}",) if rule is not None and rule.experimental else ()),
        )

    def supports(
        self,
        chip: Chip,
        weight_format: str,
        activation: str = "bf16",
        kv_format: str = "bf16",
        architecture: str | None = None,
    ) -> Support:
        """Whether the runtime runs such weights, activations, KV cache and architecture on a chip.

        `weights_only`: it runs, but multiplies in 16 bits whatever activations were asked for.
        `architecture` is the `model_type` of the model's config; None leaves it out of the question.
        Raises `UnknownNameError` for a number format that no runtime knows.
        """
        weight, kv = (self._format(name) for name in (weight_format, kv_format))
        act = self.formats.get(activation.lower(), activation.lower())
        if act not in self.formats.values():
            raise UnknownNameError("number format", activation, self.formats)
        rule = self.rule(chip)
        if rule is None:
            return Support("no", f"{self.name} does not list {chip.name}", None, self.default)
        source = rule.provenance
        note = f" ({source.note})" if source.note else ""
        if not rule.runs:
            return Support("no", source.note, None, source)
        state, compute, reason = self._multiplies(rule, weight, act, f"on {chip.id}")
        reason += note
        if state == "no":
            return Support(state, reason, None, source)
        if kv not in rule.kv:
            listed = ", ".join(sorted(rule.kv))
            return Support("no", f"{self.name} has no {kv} cache on {chip.id}, only {listed}{note}", None, source)
        if architecture is not None and architecture not in self.architectures:
            reason = f"architecture '{architecture}' is not in the list read for {self.name}; else: {reason}"
            return Support("unknown", reason, compute, self.provenance("architectures"))
        return Support(state, reason, compute, source)

    def _multiplies(self, rule: Rule, weight: str, act: str, where: str) -> tuple[State, str, str]:
        """(whether, in which format, why) weights are multiplied with activations."""
        if (weight, act) in rule.native:
            return "yes", act, f"{self.name} multiplies {weight} weights in {act} {where}"
        if weight in rule.weights_only:
            compute = act if act in _SIXTEEN and (act, act) in rule.native else rule.half
            return ("weights_only", compute, f"{self.name} stores {weight} weights {where} and multiplies in {compute}")
        acts = " or ".join(sorted(a for w, a in rule.native if w == weight))
        if acts:
            return "no", act, f"{self.name} runs {weight} weights {where} only with {acts} activations"
        return "no", act, f"{self.name} does not run {weight} weights {where}"

    def _format(self, name: str) -> str:
        if name.lower() not in self.formats:
            raise UnknownNameError("number format", name, self.formats, f"one of {', '.join(self.formats)}")
        return name.lower()
