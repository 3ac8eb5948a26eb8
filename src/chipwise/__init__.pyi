# Written by `python -m docs.generate.stub`: not to be changed by hand.
# ruff: noqa
# fmt: off
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Optional, TypeAlias, overload

from chipwise.api.python import diff as diff
from chipwise.api.python import launch as launch
from chipwise.api.python import replay as replay
from chipwise.api.python import step as step
from chipwise.api.python import trace as trace
from chipwise.api.sweep import sweep as sweep
from chipwise.errors import ChipwiseError as ChipwiseError
from chipwise.workload.pipeline import Pipeline
from chipwise.report.catalogue import ChipsReport
from chipwise.report.catalogue import EvidenceReport
from chipwise.report.catalogue import ModelsReport
from chipwise.report.catalogue import OffersReport
from chipwise.report.catalogue import RuntimesReport
from chipwise.report.catalogue import SystemsReport
from chipwise.report.desk import LocalReport
from chipwise.report.evidence import ClaimReport
from chipwise.report.evidence import MatchReport
from chipwise.report.fit import FitReport
from chipwise.report.frontier import FrontierReport
from chipwise.report.kernel import AmdahlReport
from chipwise.report.kernel import KernelReport
from chipwise.report.media import MediaExplainReport
from chipwise.report.media import MediaReport
from chipwise.report.moved import MovedReport
from chipwise.report.operators import LoadReport
from chipwise.report.operators import OperatorsReport
from chipwise.report.plans import PlanRecord
from chipwise.report.plans import PlanReport
from chipwise.report.portfolio import PortfolioReport
from chipwise.report.records import Figure
from chipwise.report.reinforce import RlReport
from chipwise.report.sensitivity import SensitivityReport
from chipwise.report.simulated import SimulationReport
from chipwise.report.statements import StatementsReport
from chipwise.report.training import TrainReport

__version__: str

Path: TypeAlias = str | PathLike[str]
Number: TypeAlias = float | str | None
"""A quantity, as in `10` or `"10/s"`."""
Names: TypeAlias = str | Sequence[str | float] | None
Table: TypeAlias = str | Mapping[str, Any] | None
"""Values by name, as in `{"tp": 8}` or `"tp=8"`."""
Model: TypeAlias = Path | Mapping[str, Any] | Pipeline
"""A name, a path, the keys of a configuration, or what `trace` made of a module."""

class ServedPlan(PlanRecord):
    """A plan that serves tokens."""
    tpot_s: Figure
    tokens_per_s_per_user: Figure

class Plans(PlanReport):
    """Plans that serve tokens, best first."""
    plans: tuple[ServedPlan, ...]
    @property
    def best(self) -> ServedPlan: ...
    def __iter__(self) -> Iterator[ServedPlan]: ...
    @overload
    def __getitem__(self, at: int) -> ServedPlan: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[ServedPlan]: ...

class Explained(Plans):
    """One plan that serves tokens, and when a CPU would do a request of this size sooner."""
    amdahl: AmdahlReport | None

def check_statement(
    text: str | None = ...,
) -> StatementsReport: ...
def chips(
    search: str | None = ..., *, chips: Names = ..., vendor: str | None = ..., limit: str | int = ...,
) -> ChipsReport: ...
def claim(
    model: Model, *, result: str, in_: Number = ..., out: Number = ..., ttft: str | None = ...,
    tpot: str | None = ..., task: Literal['serve', 'batch', 'local'] = ..., precision: str | None = ...,
    runtime: str | None = ..., percentile: Number = ..., level: Literal['stock', 'tuned'] = ...,
    software: str | None = ..., sample: Table = ..., accuracy: Number = ..., against: Names = ...,
    count: str | int | None = ...,
) -> ClaimReport: ...
@overload
def compare(
    model: Model, *, chips: Names, scale: Table = ..., tokens: Number = ..., deadline: str | None = ...,
    max_usd: str | float | None = ..., in_: Number = ..., out: Number = ..., images: Names = ...,
    cv: Number | Table = ..., log: PathLike[str] | str | None = ..., prefix_hit: Number = ...,
    common_prefix: Number = ..., sharers: Number = ..., rate: Number = ..., ttft: str | None = ...,
    tpot: str | None = ..., e2e: str | None = ..., percentile: Number = ..., confidence: Number = ...,
    utilisation: Number = ..., day: Names = ..., own_chips: str | None = ..., precision: str | None = ...,
    kv: str | None = ..., runtime: str | None = ..., policy: Table = ..., set_: Table = ..., share: Table = ...,
    speculate: Table = ..., lora: Table = ..., disaggregate: bool = ..., prefill: Table = ...,
    software: str | None = ..., level: Literal['stock', 'tuned'] = ..., harness: str | None = ...,
    host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ..., provider: str = ..., region: str = ...,
    owning: Table = ..., price_of: Table = ..., evidence: Literal['all', 'none', 'published', 'own'] = ...,
    parameters: PathLike[str] | str | None = ..., offload: Table = ..., have: Table = ...,
    host_memory: Number = ..., max_chips: str | int | None = ..., max_usd_per_h: str | float | None = ...,
    max_watts: Number = ..., spare: str | int = ..., samples: Number = ...,
    task: Literal['serve', 'batch', 'local'] = ..., by: Literal['chip', 'runtime', 'format', 'provider'] = ...,
) -> Plans: ...
@overload
def compare(
    model: Model, *, chips: Names, deadline: str | None = ..., max_usd: str | float | None = ...,
    rate: Number = ..., e2e: str | None = ..., percentile: Number = ..., confidence: Number = ...,
    utilisation: Number = ..., day: Names = ..., own_chips: str | None = ..., precision: str | None = ...,
    runtime: str | None = ..., set_: Table = ..., share: Table = ..., software: str | None = ...,
    level: Literal['stock', 'tuned'] = ..., host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ...,
    provider: str = ..., region: str = ..., owning: Table = ..., price_of: Table = ...,
    evidence: Literal['all', 'none', 'published', 'own'] = ..., parameters: PathLike[str] | str | None = ...,
    batch: str | int | None = ..., resolution: Names | Number = ..., frames: str | int | None = ...,
    steps: str | int | None = ..., guidance: str | float | None = ..., settings: Table = ..., training: bool = ...,
    spread: Table = ..., offload: Table = ..., aside: Names = ..., have: Table = ..., host_memory: Number = ...,
    max_chips: str | int | None = ..., max_usd_per_h: str | float | None = ..., max_watts: Number = ...,
    spare: str | int = ..., samples: Number = ..., task: Literal['serve', 'batch', 'local'] = ...,
    by: Literal['chip', 'runtime', 'format', 'provider'] = ...,
) -> MediaReport: ...
@overload
def estimate(
    model: Model, *, chip: PathLike[str] | str, count: str | int | None = ..., tp: str | int = ...,
    pp: str | int = ..., dp: str | int = ..., ep: str | int = ..., replicas: str | int = ...,
    concurrency: str | float | None = ..., rate: Number = ..., host_memory: Number = ..., in_: Number = ...,
    out: Number = ..., images: Names = ..., cv: Number | Table = ..., log: PathLike[str] | str | None = ...,
    prefix_hit: Number = ..., common_prefix: Number = ..., sharers: Number = ..., own_chips: str | None = ...,
    precision: str | None = ..., kv: str | None = ..., runtime: str | None = ..., policy: Table = ...,
    set_: Table = ..., share: Table = ..., speculate: Table = ..., lora: Table = ..., disaggregate: bool = ...,
    prefill: Table = ..., software: str | None = ..., level: Literal['stock', 'tuned'] = ...,
    harness: str | None = ..., host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ...,
    provider: str = ..., region: str = ..., owning: Table = ..., price_of: Table = ...,
    evidence: Literal['all', 'none', 'published', 'own'] = ..., parameters: PathLike[str] | str | None = ...,
    offload: Table = ..., task: Literal['serve', 'batch', 'local'] = ...,
) -> Plans: ...
@overload
def estimate(
    model: Model, *, chip: PathLike[str] | str, rate: Number = ..., host_memory: Number = ...,
    own_chips: str | None = ..., precision: str | None = ..., runtime: str | None = ..., set_: Table = ...,
    share: Table = ..., software: str | None = ..., level: Literal['stock', 'tuned'] = ..., host: str | None = ...,
    price: Literal['rent', 'spot', 'own'] = ..., provider: str = ..., region: str = ..., owning: Table = ...,
    price_of: Table = ..., evidence: Literal['all', 'none', 'published', 'own'] = ...,
    parameters: PathLike[str] | str | None = ..., batch: str | int | None = ..., resolution: Names | Number = ...,
    frames: str | int | None = ..., steps: str | int | None = ..., guidance: str | float | None = ...,
    settings: Table = ..., training: bool = ..., spread: Table = ..., offload: Table = ..., aside: Names = ...,
    task: Literal['serve', 'batch', 'local'] = ...,
) -> MediaReport: ...
def evidence(
    search: str | None = ..., *, benchmark: str | None = ..., chip: PathLike[str] | str | None = ...,
    scenario: str | None = ..., round_: str | None = ..., submitter: str | None = ..., own: bool = ...,
    best: bool = ..., limit: str | int = ...,
) -> EvidenceReport: ...
@overload
def explain(
    model: Model, *, chip: PathLike[str] | str, count: str | int | None = ..., tp: str | int = ...,
    pp: str | int = ..., dp: str | int = ..., ep: str | int = ..., replicas: str | int = ...,
    concurrency: str | float | None = ..., rate: Number = ..., host_memory: Number = ..., in_: Number = ...,
    out: Number = ..., images: Names = ..., cv: Number | Table = ..., log: PathLike[str] | str | None = ...,
    prefix_hit: Number = ..., common_prefix: Number = ..., sharers: Number = ..., own_chips: str | None = ...,
    precision: str | None = ..., kv: str | None = ..., runtime: str | None = ..., policy: Table = ...,
    set_: Table = ..., share: Table = ..., speculate: Table = ..., lora: Table = ..., disaggregate: bool = ...,
    prefill: Table = ..., software: str | None = ..., level: Literal['stock', 'tuned'] = ...,
    harness: str | None = ..., host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ...,
    provider: str = ..., region: str = ..., owning: Table = ..., price_of: Table = ...,
    evidence: Literal['all', 'none', 'published', 'own'] = ..., parameters: PathLike[str] | str | None = ...,
    offload: Table = ..., task: Literal['serve', 'batch', 'local'] = ..., serial: Number = ...,
) -> Explained: ...
@overload
def explain(
    model: Model, *, chip: PathLike[str] | str, rate: Number = ..., host_memory: Number = ...,
    own_chips: str | None = ..., precision: str | None = ..., runtime: str | None = ..., set_: Table = ...,
    share: Table = ..., software: str | None = ..., level: Literal['stock', 'tuned'] = ..., host: str | None = ...,
    price: Literal['rent', 'spot', 'own'] = ..., provider: str = ..., region: str = ..., owning: Table = ...,
    price_of: Table = ..., evidence: Literal['all', 'none', 'published', 'own'] = ...,
    parameters: PathLike[str] | str | None = ..., batch: str | int | None = ..., resolution: Names | Number = ...,
    frames: str | int | None = ..., steps: str | int | None = ..., guidance: str | float | None = ...,
    settings: Table = ..., training: bool = ..., spread: Table = ..., offload: Table = ..., aside: Names = ...,
    task: Literal['serve', 'batch', 'local'] = ..., serial: Number = ...,
) -> MediaExplainReport: ...
@overload
def fit(
    model: Model, *, own_chips: str | None = ..., precision: str | None = ..., kv: str | None = ...,
    runtime: str | None = ..., policy: Table = ..., set_: Table = ..., share: Table = ..., offload: Table = ...,
    chips: Names = ..., software: str | None = ..., count: str | int | None = ..., context: Number = ...,
    host_memory: Number = ..., lora: Table = ...,
) -> FitReport: ...
@overload
def fit(
    model: Model, *, own_chips: str | None = ..., precision: str | None = ..., runtime: str | None = ...,
    set_: Table = ..., share: Table = ..., batch: str | int = ..., resolution: Names | Number = ...,
    frames: str | int | None = ..., steps: str | int | None = ..., guidance: str | float | None = ...,
    settings: Table = ..., training: bool = ..., spread: Table = ..., offload: Table = ..., aside: Names = ...,
    chips: Names = ..., software: str | None = ..., host_memory: Number = ...,
) -> MediaReport: ...
def fleet(
    fleet: Table, *, gap: Number = ..., seconds: str | float = ..., simulate: bool = ...,
) -> PortfolioReport: ...
def frontier(
    model: Model, *, chips: Names, in_: Number = ..., out: Number = ..., images: Names = ...,
    cv: Number | Table = ..., log: PathLike[str] | str | None = ..., prefix_hit: Number = ...,
    common_prefix: Number = ..., sharers: Number = ..., own_chips: str | None = ..., precision: str | None = ...,
    kv: str | None = ..., runtime: str | None = ..., policy: Table = ..., set_: Table = ..., share: Table = ...,
    speculate: Table = ..., lora: Table = ..., disaggregate: bool = ..., prefill: Table = ...,
    software: str | None = ..., level: Literal['stock', 'tuned'] = ..., harness: str | None = ...,
    host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ..., provider: str = ..., region: str = ...,
    owning: Table = ..., price_of: Table = ..., evidence: Literal['all', 'none', 'published', 'own'] = ...,
    parameters: PathLike[str] | str | None = ..., max_chips: str | int | None = ..., formats: Table = ...,
) -> FrontierReport: ...
def kernel(
    op: Literal['gemm', 'attention', 'conv', 'experts', 'norm', 'softmax', 'elementwise', 'copy', 'collective'], *,
    chips: Names, dtype: str | None = ..., m: str | int | None = ..., n: str | int | None = ...,
    k: str | int | None = ..., batch: str | int | None = ..., kv: str | int | None = ..., q: str | int | None = ...,
    heads: str | int | None = ..., kv_heads: str | int | None = ..., head_dim: str | int | None = ...,
    value_dim: str | int | None = ..., window: str | int | None = ..., compute: str | None = ...,
    bidirectional: bool = ..., prompt: bool = ..., size: str | int | None = ..., channels: str | int | None = ...,
    filters: str | int | None = ..., kernel: str | int | None = ..., stride: str | int | None = ...,
    pad: str | int | None = ..., images: str | int | None = ..., tokens: str | int | None = ...,
    hidden: str | int | None = ..., inter: str | int | None = ..., experts: str | int | None = ...,
    top_k: str | int | None = ..., routing: str | None = ..., matrices: str | int | None = ...,
    kind: str | None = ..., bytes_: Number = ..., ranks: str | int | None = ..., apart: str | int | None = ...,
    oversubscription: str | float | None = ..., way: str | None = ..., runtime: str | None = ...,
    library: str | None = ..., launch: str | None = ..., fabric: str | None = ..., domain: str | int | None = ...,
    algorithm: str | None = ..., copies: str | int | None = ..., rotating: bool = ..., quantised: bool = ...,
    fetched: bool = ..., set_: Table = ...,
) -> KernelReport: ...
def load(
    model: Model, *, chip: PathLike[str] | str, count: str | int | None = ..., tp: str | int = ...,
    pp: str | int = ..., dp: str | int = ..., ep: str | int = ..., replicas: str | int = ...,
    concurrency: str | float | None = ..., rate: Number = ..., host_memory: Number = ..., in_: Number = ...,
    out: Number = ..., images: Names = ..., cv: Number | Table = ..., log: PathLike[str] | str | None = ...,
    prefix_hit: Number = ..., common_prefix: Number = ..., sharers: Number = ..., own_chips: str | None = ...,
    precision: str | None = ..., kv: str | None = ..., runtime: str | None = ..., policy: Table = ...,
    set_: Table = ..., share: Table = ..., speculate: Table = ..., lora: Table = ..., disaggregate: bool = ...,
    prefill: Table = ..., software: str | None = ..., level: Literal['stock', 'tuned'] = ...,
    harness: str | None = ..., host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ...,
    provider: str = ..., region: str = ..., owning: Table = ..., price_of: Table = ...,
    evidence: Literal['all', 'none', 'published', 'own'] = ..., parameters: PathLike[str] | str | None = ...,
    batch: str | int | None = ..., resolution: Names | Number = ..., frames: str | int | None = ...,
    steps: str | int | None = ..., guidance: str | float | None = ..., settings: Table = ..., training: bool = ...,
    spread: Table = ..., offload: Table = ..., aside: Names = ..., task: Literal['serve', 'batch', 'local'] = ...,
    ttft: str | None = ..., tpot: str | None = ...,
) -> LoadReport: ...
def local(
    *, have: Table = ..., host_memory: Number = ..., max_usd: str | float | None = ...,
    min_tps: str | float | None = ..., context: Number = ..., use: str | None = ..., models: Names = ...,
    most: str | int = ..., precision: str | None = ..., kv: str | None = ..., policy: Table = ...,
    set_: Table = ..., share: Table = ..., environment: str | None = ...,
) -> LocalReport: ...
def match(
    model: Model, *, in_: Number = ..., out: Number = ..., ttft: str | None = ..., tpot: str | None = ...,
    task: Literal['serve', 'batch', 'local'] = ..., precision: str | None = ..., runtime: str | None = ...,
    percentile: Number = ..., level: Literal['stock', 'tuned'] = ..., software: str | None = ...,
    sample: Table = ..., accuracy: Number = ..., chip: PathLike[str] | str | None = ...,
    count: str | int | None = ..., concurrency: str | float | None = ..., limit: str | int = ...,
) -> MatchReport: ...
def models(
    model: Model | None = ..., *, search: str | None = ..., limit: str | int = ...,
) -> ModelsReport: ...
def offers(
    *, chip: PathLike[str] | str | None = ..., provider: str | None = ..., limit: str | int = ...,
) -> OffersReport: ...
def operators(
    model: Model, *, chip: PathLike[str] | str, count: str | int | None = ..., tp: str | int = ...,
    pp: str | int = ..., dp: str | int = ..., ep: str | int = ..., replicas: str | int = ...,
    concurrency: str | float | None = ..., rate: Number = ..., host_memory: Number = ..., in_: Number = ...,
    out: Number = ..., images: Names = ..., cv: Number | Table = ..., log: PathLike[str] | str | None = ...,
    prefix_hit: Number = ..., common_prefix: Number = ..., sharers: Number = ..., own_chips: str | None = ...,
    precision: str | None = ..., kv: str | None = ..., runtime: str | None = ..., policy: Table = ...,
    set_: Table = ..., share: Table = ..., speculate: Table = ..., lora: Table = ..., disaggregate: bool = ...,
    prefill: Table = ..., software: str | None = ..., level: Literal['stock', 'tuned'] = ...,
    harness: str | None = ..., host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ...,
    provider: str = ..., region: str = ..., owning: Table = ..., price_of: Table = ...,
    evidence: Literal['all', 'none', 'published', 'own'] = ..., parameters: PathLike[str] | str | None = ...,
    batch: str | int | None = ..., resolution: Names | Number = ..., frames: str | int | None = ...,
    steps: str | int | None = ..., guidance: str | float | None = ..., settings: Table = ..., training: bool = ...,
    spread: Table = ..., offload: Table = ..., aside: Names = ..., task: Literal['serve', 'batch', 'local'] = ...,
) -> OperatorsReport: ...
@overload
def plan(
    model: Model, *, scale: Table = ..., tokens: Number = ..., deadline: str | None = ...,
    max_usd: str | float | None = ..., in_: Number = ..., out: Number = ..., images: Names = ...,
    cv: Number | Table = ..., log: PathLike[str] | str | None = ..., prefix_hit: Number = ...,
    common_prefix: Number = ..., sharers: Number = ..., rate: Number = ..., ttft: str | None = ...,
    tpot: str | None = ..., e2e: str | None = ..., percentile: Number = ..., confidence: Number = ...,
    utilisation: Number = ..., day: Names = ..., own_chips: str | None = ..., precision: str | None = ...,
    kv: str | None = ..., runtime: str | None = ..., policy: Table = ..., set_: Table = ..., share: Table = ...,
    speculate: Table = ..., lora: Table = ..., disaggregate: bool = ..., prefill: Table = ...,
    software: str | None = ..., level: Literal['stock', 'tuned'] = ..., harness: str | None = ...,
    host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ..., provider: str = ..., region: str = ...,
    owning: Table = ..., price_of: Table = ..., evidence: Literal['all', 'none', 'published', 'own'] = ...,
    parameters: PathLike[str] | str | None = ..., offload: Table = ..., chips: Names = ..., have: Table = ...,
    host_memory: Number = ..., max_chips: str | int | None = ..., max_usd_per_h: str | float | None = ...,
    max_watts: Number = ..., spare: str | int = ..., samples: Number = ...,
    task: Literal['serve', 'batch', 'local'] = ..., by: Literal['chip', 'runtime', 'format', 'provider'] = ...,
) -> Plans: ...
@overload
def plan(
    model: Model, *, deadline: str | None = ..., max_usd: str | float | None = ..., rate: Number = ...,
    e2e: str | None = ..., percentile: Number = ..., confidence: Number = ..., utilisation: Number = ...,
    day: Names = ..., own_chips: str | None = ..., precision: str | None = ..., runtime: str | None = ...,
    set_: Table = ..., share: Table = ..., software: str | None = ..., level: Literal['stock', 'tuned'] = ...,
    host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ..., provider: str = ..., region: str = ...,
    owning: Table = ..., price_of: Table = ..., evidence: Literal['all', 'none', 'published', 'own'] = ...,
    parameters: PathLike[str] | str | None = ..., batch: str | int | None = ..., resolution: Names | Number = ...,
    frames: str | int | None = ..., steps: str | int | None = ..., guidance: str | float | None = ...,
    settings: Table = ..., training: bool = ..., spread: Table = ..., offload: Table = ..., aside: Names = ...,
    chips: Names = ..., have: Table = ..., host_memory: Number = ..., max_chips: str | int | None = ...,
    max_usd_per_h: str | float | None = ..., max_watts: Number = ..., spare: str | int = ..., samples: Number = ...,
    task: Literal['serve', 'batch', 'local'] = ..., by: Literal['chip', 'runtime', 'format', 'provider'] = ...,
) -> MediaReport: ...
def rl(
    model: Model, *, price: Literal['rent', 'spot', 'own'] = ..., provider: str = ..., region: str = ...,
    owning: Table = ..., price_of: Table = ..., chips: Names = ..., counts: Names | Number = ...,
    prompts: str | int = ..., samples: str | int | None = ..., steps: str | int = ..., in_: Number = ...,
    out: Number = ..., cv: Number = ..., longest: Number = ..., algorithm: Literal['grpo', 'ppo', 'distill'] = ...,
    teacher: Model | None = ..., reference: bool = ..., method: Literal['full', 'lora'] = ...,
    placement: Literal['best', 'together', 'apart'] = ..., train_share: Number = ..., precision: str = ...,
    rollout_precision: str | None = ..., trainer: str | None = ..., runtime: str | None = ..., layout: Table = ...,
) -> RlReport: ...
def runtimes(
    *, runtime: str | None = ..., chip: PathLike[str] | str | None = ...,
) -> RuntimesReport: ...
def sensitivity(
    model: Model, *, chip: PathLike[str] | str, count: str | int | None = ..., tp: str | int = ...,
    pp: str | int = ..., dp: str | int = ..., ep: str | int = ..., replicas: str | int = ...,
    concurrency: str | float | None = ..., rate: Number = ..., host_memory: Number = ..., in_: Number = ...,
    out: Number = ..., images: Names = ..., cv: Number | Table = ..., log: PathLike[str] | str | None = ...,
    prefix_hit: Number = ..., common_prefix: Number = ..., sharers: Number = ..., own_chips: str | None = ...,
    precision: str | None = ..., kv: str | None = ..., runtime: str | None = ..., policy: Table = ...,
    set_: Table = ..., share: Table = ..., speculate: Table = ..., lora: Table = ..., disaggregate: bool = ...,
    prefill: Table = ..., software: str | None = ..., level: Literal['stock', 'tuned'] = ...,
    harness: str | None = ..., host: str | None = ..., price: Literal['rent', 'spot', 'own'] = ...,
    provider: str = ..., region: str = ..., owning: Table = ..., price_of: Table = ...,
    evidence: Literal['all', 'none', 'published', 'own'] = ..., parameters: PathLike[str] | str | None = ...,
    batch: str | int | None = ..., resolution: Names | Number = ..., frames: str | int | None = ...,
    steps: str | int | None = ..., guidance: str | float | None = ..., settings: Table = ..., training: bool = ...,
    spread: Table = ..., offload: Table = ..., aside: Names = ..., task: Literal['serve', 'batch', 'local'] = ...,
) -> SensitivityReport: ...
def simulate(
    model: Model, *, cache_tiers: Table = ..., scale: Table = ..., chip: PathLike[str] | str | None = ...,
    count: str | int | None = ..., tp: str | int = ..., pp: str | int = ..., dp: str | int = ...,
    ep: str | int = ..., replicas: str | int = ..., concurrency: str | float | None = ..., rate: Number = ...,
    host_memory: Number = ..., in_: Number = ..., out: Number = ..., images: Names = ..., cv: Number | Table = ...,
    log: PathLike[str] | str | None = ..., prefix_hit: Number = ..., common_prefix: Number = ...,
    sharers: Number = ..., own_chips: str | None = ..., precision: str | None = ..., kv: str | None = ...,
    runtime: str | None = ..., policy: Table = ..., set_: Table = ..., share: Table = ..., speculate: Table = ...,
    lora: Table = ..., disaggregate: bool = ..., prefill: Table = ..., software: str | None = ...,
    level: Literal['stock', 'tuned'] = ..., harness: str | None = ..., host: str | None = ...,
    batch: str | int | None = ..., resolution: Names | Number = ..., frames: str | int | None = ...,
    steps: str | int | None = ..., guidance: str | float | None = ..., settings: Table = ..., training: bool = ...,
    spread: Table = ..., offload: Table = ..., aside: Names = ..., plan: str | int = ...,
    requests: str | int | None = ..., burstiness: str | float | None = ..., seed: str | int = ...,
    route: Optional[Literal['least', 'turn', 'prefix', 'queue']] = ..., ttft: str | None = ...,
    tpot: str | None = ..., e2e: str | None = ...,
) -> SimulationReport: ...
def systems(
    *, system: str | None = ..., chip: PathLike[str] | str | None = ...,
) -> SystemsReport: ...
def train(
    model: Model, *, tokens: Number = ..., deadline: str | None = ..., max_usd: str | float | None = ...,
    seq: Number = ..., global_batch: str | int = ..., counts: Names | Number = ..., layout: Table = ...,
    method: str | None = ..., trainer: str | None = ..., memory: Table = ..., adapter: Table = ...,
    objective: str | None = ..., documents: Table = ..., known_to_run: bool = ..., failures: Table = ...,
    storage: Table = ..., phases: Table = ..., evaluate: Table = ..., network: Table = ..., curves: bool = ...,
    price: Literal['rent', 'spot', 'own'] = ..., provider: str = ..., region: str = ..., owning: Table = ...,
    price_of: Table = ..., own_chips: str | None = ..., task: Literal['train', 'finetune'] = ...,
    chips: Names = ..., have: Table = ..., confidence: Number = ..., max_chips: str | int | None = ...,
    max_usd_per_h: str | float | None = ..., precision: str = ..., parameters: PathLike[str] | str | None = ...,
    set_: Table = ...,
) -> TrainReport: ...
