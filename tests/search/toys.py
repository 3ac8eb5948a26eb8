"""Small deployments for the search: three chips of one formula, two models that fit on few of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chipwise.calibrate.parameters import shipped_parameters
from chipwise.catalog.chips import get_chip
from chipwise.catalog.runtime import get_runtime
from chipwise.cost.device import Device
from chipwise.predict.passes import Requests
from chipwise.predict.service import Loads
from chipwise.search.evaluate import engines_of
from chipwise.search.memory import memory_of
from chipwise.search.space import Deployment, Group
from chipwise.workload.build import build
from chipwise.workload.graph import Graph
from chipwise.workload.model import FFN, Dense, Layer, Model, MoE, SelfAttention
from chipwise.workload.precision import uniform
from chipwise.workload.workload import Workload

CHIPS = ("h100-sxm5-80gb", "a100-sxm4-80gb", "l4")
RATES = (shipped_parameters().efficiency("simt", "vllm"), shipped_parameters().overheads("simt", "vllm"))


def network(ffn: FFN, layers: int, heads: int = 32) -> Graph:
    layer = Layer(SelfAttention(heads, 8, 128), ffn)
    return build(Model("toy", "llama", 4096, 128_000, ((layers, layer),), uniform("bf16")))


DENSE = network(Dense(14336), 32)  # 8 B parameters, 16 GB
LARGE = network(Dense(28672), 80, heads=64)  # about 37 B, 74 GB
MIXTURE = network(MoE(32, 4, 2048), 24)  # 20 B, of which 4 of 32 experts are active


def deployment(chip: str, *, max_sequences: int = 64) -> Deployment:
    """One chip under vLLM, with the same policies on every chip so that they share a group."""
    runtime, found = get_runtime("vllm"), get_chip(chip)
    policies = replace(runtime.policies_on(get_chip("h100-sxm5-80gb")), max_sequences=max_sequences)
    return Deployment(found, Device.of(found), runtime, policies)


def loads(graph: Graph, group: Group, workload: Workload) -> Loads:
    """The engine of a group of one, ready to be loaded."""
    policies = group.deployments[0].policies
    requests = Requests.of(workload, policies)
    local = workload.task == "local"
    memory, stages = memory_of(graph, group, requests), 1.0 if local else group.layout.pp
    room = np.asarray(memory.running(stages)).reshape(1)
    limit = np.minimum(room, policies.max_sequences)
    return engines_of(graph, group, requests, limit, *RATES, local=local).under(RATES[1].service)


DEPLOYMENTS = tuple(deployment(chip) for chip in CHIPS)
