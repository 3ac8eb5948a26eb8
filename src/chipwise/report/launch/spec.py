"""What a launch file needs to know of a plan."""

from __future__ import annotations

from dataclasses import field, fields, is_dataclass
from typing import ClassVar

from chipwise.errors import UsageError, shorten
from chipwise.report.answer import Answer
from chipwise.report.launch.files import LaunchFile
from chipwise.report.records import SCHEMA_VERSION
from chipwise.report.simulated import FollowingRecord
from chipwise.report.table import Column, Table
from chipwise.report.training import TrainLayoutRecord
from chipwise.values import dataclass

DEGREES = ("devices", "per_host", "tp", "pp", "vp", "cp", "ep", "dp", "shard_ranks", "micro_batch", "layers")
MOST_DEVICES = 1_000_000
LARGEST = 1e18  # of any figure


FILES = (Column("file", "name"), Column("text", "text", prose=True))
"""What is said of a file that starts a plan."""


@dataclass(frozen=True, slots=True, repr=False)
class LaunchReport(Answer[LaunchFile]):
    """The answer to `launch`: the files that start a plan with a tool. They are to be read before they are run.
    `other` says why it is another plan than the one that was asked for, "" where it is that one."""

    rows: ClassVar[str] = "files"

    tool: str
    plan: int
    files: tuple[LaunchFile, ...]
    other: str = ""
    schema_version: str = field(default=SCHEMA_VERSION)

    def tables(self, command: str = "", *, everything: bool = False) -> tuple[Table, ...]:
        """The files."""
        return (Table.of(self.files, FILES),)


@dataclass(frozen=True, slots=True)
class LaunchMachine:
    """Where one replica, or a whole training run, stands: hosts with so many devices of a chip each.

    `instances` are rented machines by provider: (provider, type, region, devices). `cpu`: the host's own processors."""

    chip: str
    vendor: str
    devices: int
    per_host: int
    instances: tuple[tuple[str, str, str, int], ...] = ()
    cpu: bool = False

    @property
    def hosts(self) -> int:
        """Hosts that it takes."""
        return -(-self.devices // self.per_host)

    @property
    def devices_of_host(self) -> int:
        """Devices that one host gives."""
        return min(self.devices, self.per_host)


@dataclass(frozen=True, slots=True)
class Guess:
    """Tokens guessed ahead of every pass, by the model's own `module` for it or by lookup in the prompt."""

    tokens: int
    module: bool


@dataclass(frozen=True, slots=True)
class Placed:
    """Layers of each device, the first layers whole on the host, the first whose routed experts are, and whether the
    processor works on its part of prompts."""

    cards: tuple[int, ...]
    host_layers: int
    host_experts: int
    prompts_on_host: bool


@dataclass(frozen=True, slots=True)
class LaunchPasses:
    """Predicted seconds of a prompt's pass, of a decoding pass of `batch` sequences, and of a training step; `interval`
    are the ends of 80 % over the middle."""

    prefill_s: float = 0.0
    decode_s: float = 0.0
    batch: float = 0.0
    step_s: float = 0.0
    interval: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class ApiCall:
    """The same weights from a vendor's API: its address, the variable that holds a key, what it calls the model, and
    dollars per million tokens in and out on a day."""

    provider: str
    model: str
    base_url: str
    key: str
    usd_in: float
    usd_out: float
    date: str


@dataclass(frozen=True, slots=True)
class SharedCard:
    """A card that a server shares with `others`, of which so many are started `before` it with `taken` of the memory;
    or its `instance` of the `cuts` that the card is cut into ("": they take turns). `asleep`: one of them is awake at a
    time."""

    others: tuple[str, ...]
    instance: str = ""
    cuts: tuple[str, ...] = ()
    before: int = 0
    taken: float = 0.0
    asleep: bool = False


@dataclass(frozen=True, slots=True)
class ServeSpec:
    """A served model. `convert` is the format that the runtime turns weights into when it loads them, "" where
    the checkpoint, which has them `stored` so, holds them as they run; `kv` is "" for the runtime's own;
    `memory_share`, `sequences` and `budget_tokens` are the policies that the plan was priced with, per device group;
    `memory_share` is of the base that the runtime takes it of, what it reserves already taken off.

    `experts` are those of a layer, 0 of a dense model. `spare` of the replicas are beyond what carries the load,
    `prompt_workers` work off prompts for all of them; `cached_tokens` of a prompt are found in the cache; `spread` are
    standard deviation over mean of prompt and output lengths; `measured` says by harness what a benchmark client should
    read off this deployment; `placed` where parts of the model lie in a machine of several (None: on its devices);
    `network` is None where it is no decoder of one width; `passes` are predicted; `api` sells the same tokens (None:
    nobody of a known address does); `scaling` is how replicas may follow the load (None: no policy was found);
    `cache_tokens` are those that the cache of a replica holds (0: it has none); `card` is shared (None: its devices are
    its own); `adapters` are low-rank ones of at most `adapter_rank` that it serves by these names."""

    title: str
    model: str
    machine: LaunchMachine
    replicas: int
    runtime: str
    tp: int
    pp: int
    dp: int
    ep: int
    experts: int
    precision: str
    convert: str
    kv: str
    length: int
    sequences: int
    budget_tokens: int
    memory_share: float
    block_tokens: int
    prompt_tokens: int
    output_tokens: int
    concurrency: int
    rate_per_s: float | None
    expected: tuple[str, ...]
    stored: str = ""
    guess: Guess | None = None
    spare: int = 0
    prompt_workers: int = 0
    cached_tokens: int = 0
    spread: tuple[float, float] = (0.0, 0.0)
    measured: tuple[tuple[str, str], ...] = ()
    placed: Placed | None = None
    network: LaunchNetwork | None = None
    passes: LaunchPasses = LaunchPasses()
    api: ApiCall | None = None
    scaling: FollowingRecord | None = None
    cache_tokens: int = 0
    card: SharedCard | None = None
    adapters: tuple[str, ...] = ()
    adapter_rank: int = 0
    before: int = 0

    @property
    def servers_before(self) -> int:
        """Ports that others on its machine have before it."""
        return self.before + (self.card.before if self.card else 0)

    @property
    def wide(self) -> bool:
        """Whether experts lie on several hosts, so that tokens travel over the network."""
        return self.machine.hosts > 1 and self.dp > 1 and self.ep > 1

    @property
    def copies(self) -> int:
        """Copies of experts that fill up what `ep` does not divide."""
        return -self.experts % self.ep


@dataclass(frozen=True, slots=True)
class Latent:
    """Widths of latent attention: of the latents of queries (0: none) and of keys and values, and of a head's parts."""

    q_rank: int
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True)
class Rope:
    """Rotary positions: base of their wavelengths, and how they are stretched by `factor`: "" not at all, "llama3",
    "yarn" with its factors on attention, or another way by its name."""

    base: float
    stretch: str = ""
    factor: float = 1.0
    mscale: float = 1.0
    mscale_all: float = 0.0


@dataclass(frozen=True, slots=True)
class Router:
    """How tokens choose experts: `score` is softmax or sigmoid, `scale` a factor on the chosen scores; of so many
    `groups` of experts a token takes some (1: all are one group); `bias` balances them."""

    score: str = "softmax"
    scale: float = 1.0
    groups: int = 1
    groups_chosen: int = 1
    bias: bool = False


@dataclass(frozen=True, slots=True)
class LaunchNetwork:
    """The dimensions of a trained model; no experts: 0. `plain`: its layers are alike, of softmax or latent attention
    and a gated feed-forward layer, or after `dense_layers` of these routed experts. `shared` is the width of what every
    token takes beside its experts. `rope` and `norm_epsilon` are those of the configuration; None: it has none.
    Not `causal`: an encoder, whose tokens see all."""

    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    experts: int
    top_k: int
    expert_ffn: int
    tied: bool
    plain: bool = True
    rope: Rope | None = None
    norm_epsilon: float | None = None
    qk_norm: bool = False
    qkv_bias: bool = False
    latent: Latent | None = None
    dense_layers: int = 0
    shared: int = 0
    router: Router = Router()
    causal: bool = True

    @property
    def active(self) -> float:
        """About how many parameters a token passes through, tables among them: what learning rates go by."""
        attention = self.hidden * self.head_dim * 2 * (self.heads + self.kv_heads)
        dense = 3 * self.hidden * self.ffn
        routed = 3 * self.hidden * (self.expert_ffn * self.top_k + self.shared)
        plain = self.dense_layers if self.experts else self.layers
        tables = (1 if self.tied else 2) * self.vocabulary * self.hidden
        return float(self.layers * attention + plain * dense + (self.layers - plain) * routed + tables)


@dataclass(frozen=True, slots=True)
class TrainSpec:
    """A training run: layout, batch, and the dimensions of the network. `tuned` is "" from random weights, else how
    published weights are trained on: full, lora or qlora; `rank`, `targets` and `dora` are those of adapters;
    `optimizer` is "" for the trainer's own; `master`, `gradients` and `loss` are kept as `catalog.trainer.MemoryPolicy`
    says. `recomputed` is the share of layers that run again in the backward pass, `offload` that of the optimiser in
    host memory, `stash` that of what layers save; `schedule` is "" without stages.
    `objective` is what is learned, of examples of `together` sequences; `attention_by`, `dispatch_by` and `experts_by`
    are kernels fixed by name, of `catalog.trainer.KERNELS`, "" for the trainer's own.
    `save_steps` are those between two checkpoints; `one_queue`: a GPU before Blackwell, where kernels overlap with
    communication in the right order only when they are launched through one queue."""

    title: str
    model: str
    machine: LaunchMachine
    network: LaunchNetwork
    tp: int
    pp: int
    vp: int
    cp: int
    ep: int
    dp: int
    sharding: str
    shard_ranks: int
    selective: bool
    recomputed: float
    schedule: str
    offload: float
    micro_batch: int
    global_batch: int
    seq: int
    precision: str
    steps: int
    tuned: str
    expected: tuple[str, ...]
    save_steps: int
    one_queue: bool
    rank: int = 16
    targets: str = "linear"
    dora: bool = False
    optimizer: str = ""
    gradients: str = "fp32"
    loss: str = "whole"
    passes: LaunchPasses = LaunchPasses()
    stash: float = 0.0
    master: bool = True
    objective: str = "next-token"
    together: int = 1
    attention_by: str = ""
    dispatch_by: str = ""
    experts_by: str = ""

    @property
    def examples(self) -> int:
        """Examples of a micro-batch: sequences, or pairs of them."""
        return self.micro_batch // self.together


@dataclass(frozen=True, slots=True)
class PipelineSpec:
    """A request of a model that generates no tokens: `batch` samples of some `sizes` (width, height, frames, steps,
    guidance, tokens, audio_s), made by `replicas` (`spare` ones among them) that each `spread` it over devices (degree
    by way) and keep parts on the host (`offload`). `parameters` are those of the whole network. `cached`: the share
    of steps that are skipped. `seconds` are predicted, `interval` the ends of 80 % over the middle. `code` is the
    user's own `FILE.py:function` that builds it, "" of a network by name; `settings` are those that are no sizes,
    such as a layout of memory, by name. `parts`: windows of a recording, `batch` of which are at work together.
    `weights` are its name on the hub, "" where nobody knows it; `rate_per_s` of all requests, 0 where none was
    asked."""

    title: str
    model: str
    machine: LaunchMachine
    runtime: str
    precision: str
    replicas: int
    spread: tuple[tuple[str, int], ...]
    offload: str
    batch: int
    sizes: tuple[tuple[str, float], ...]
    cached: float
    seconds: float
    interval: tuple[float, float]
    expected: tuple[str, ...]
    spare: int = 0
    parameters: float = 0.0
    code: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    parts: int = 0
    weights: str = ""
    rate_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class LoopSpec:
    """A loop of reinforcement learning: `prompts` of a step with `samples` answers each, of `longest` tokens at most.
    `train_devices` train; `sample_devices` sample beside them, 0: the same ones do. An engine has `tp` devices in each
    of `pp` stages; `updates` steps of the optimiser follow on the answers of a step. Of a `teacher` the logits are
    matched, "" where answers earn rewards. `depth`: layers of the model, 0 where that is not known."""

    title: str
    model: str
    machine: LaunchMachine
    train_devices: int
    sample_devices: int
    layout: TrainLayoutRecord
    runtime: str
    tp: int
    pp: int
    prompts: int
    samples: int
    longest_prompt: int
    longest: int
    steps: int
    updates: int
    critic: bool
    reference: bool
    method: str
    precision: str
    rollout_precision: str
    expected: tuple[str, ...]
    teacher: str = ""
    depth: int = 0

    @property
    def outer(self) -> tuple[int, int]:
        """Layers of the first and of the last stage that trains, where stages do not share them evenly: the others hold
        as many as the fullest; (0, 0) where all do."""
        pp = self.layout.pp
        if pp == 1 or not self.depth % pp:
            return 0, 0
        left = self.depth - (pp - 2) * -(-self.depth // pp)
        return left - left // 2, left // 2


@dataclass(frozen=True, slots=True)
class SweepSpec:
    """A sweep of so many `cells`: its design and the user's files that it names, by name, line by line."""

    title: str
    cells: int
    files: tuple[tuple[str, tuple[str, ...]], ...]
    expected: tuple[str, ...] = ()


Spec = ServeSpec | TrainSpec
Launched = Spec | PipelineSpec | LoopSpec | SweepSpec


def check_spec(spec: Launched) -> None:
    """Raises `UsageError` for a plan that no file may hold: a name with a control character or one that a tool would
    take for an option, a figure below zero, not finite or beyond all machines, a degree below 1."""
    names = () if isinstance(spec, SweepSpec) else (spec.model, getattr(spec, "weights", ""))
    for name in (n for n in names if n.startswith("-")):
        raise UsageError(
            f"model: '{shorten(name)}' begins like an option", "give the folder another name, or ./ before it"
        )
    _check("plan", spec)


def _check(name: str, value: object) -> None:
    if is_dataclass(value):
        for part in fields(value):
            found = getattr(value, part.name)
            if found is not None or "None" not in str(part.type):
                _check(part.name, found)
    elif isinstance(value, tuple):
        for part in value:
            _check(name, part)
    elif isinstance(value, str):
        if not value.isprintable():
            raise UsageError(
                f"{name}: '{shorten(value)}' holds a control character", "give the model or its folder another name"
            )
    elif isinstance(value, int | float):
        low, high = (1, MOST_DEVICES) if name in DEGREES else (0, LARGEST)
        if not low <= value <= high:  # nor is what is no number
            raise UsageError(
                f"{name}: {shorten(repr(value), 30)} is not between {low} and {high:.0e}", "save the plan again"
            )
    else:
        raise UsageError(f"{name}: '{shorten(str(value))}' is of another kind", "save the plan again")
