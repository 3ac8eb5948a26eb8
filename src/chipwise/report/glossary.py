"""The words of the field as chipwise uses them."""

from __future__ import annotations

GLOSSARY: dict[str, str] = {
    "chip": "one accelerator, or CPU socket, as it is rented or counted",
    "device": "what software sees; some packages hold two (TPU v7x, MI250X)",
    "scale-up domain": "chips joined by one fast fabric: NVSwitch, torus, NeuronLink",
    "workload": "how a model is used: task, lengths, load and targets",
    "serve, batch, local": "many users with targets; as many tokens as possible; one user on one machine",
    "runtime": "the serving software with its policies: memory share, cache pages, chunk budget",
    "precision": "number formats by tensor class; W4A16 has 4-bit weights and multiplies in 16 bit",
    "layout": "tp shards heads and widths, pp splits layers into stages, dp replicates attention, ep spreads experts",
    "replica": "an independent copy of the deployment; requests are shared among them",
    "batch": "sequences that decode at once in each replica",
    "concurrency": "requests in flight in a replica: decoding, in prefill or waiting for it",
    "plan": "chips, count, layout, precision, batch and runtime: a deployment you can launch",
    "estimate": "a predicted figure as mid [low-high]; the interval is meant to hold 80 % of outcomes",
    "basis": "how well a figure is supported: measured > published > calibrated > modelled",
    "bottleneck": "the resource with the largest exposed time: compute, memory, on-chip "
    "(bandwidth of caches and scratchpads, where kernels feed few rows at a time), network, launch, host, queue",
    "exposed, hidden": "seconds of a resource that pass, and those that pass behind another; exposed ones add up",
    "TTFT": "time to the first token, from arrival: queue, prefill mixed into other work, host",
    "TPOT": "mean time per output token after the first: (end - first token) / (output tokens - 1)",
    "harness": "a benchmark client: it may start all clients at once, draw lengths, stream tokens in groups; no plan "
    "holds any of that unless --harness names one",
    "level": "stock: what the defaults of a runtime give; tuned: what submissions to benchmarks reach with it",
    "open, closed traffic": "random arrivals at a rate; clients that each wait for their answer",
    "ITL": "time between two consecutive tokens of a request",
    "p95, p99": "what 95 or 99 % of requests do not exceed, by a formula for Poisson arrivals where it holds",
    "spare": "extra replicas for redundancy: one may fail and the rest still serve the load (N+1)",
    "prefix cache": "keys and values of prompt tokens seen before: not computed again, still attended to",
    "speculation": "a cheap draft proposes tokens and one pass verifies them; you supply the acceptance rate",
    "disaggregated": "prefill and decode run on separate workers, caches are sent from one to the other",
    "anchored": "a prediction moved by how far published rows near it were from their own predictions",
    "joules per token": "energy of the chips per output token, prompts included: watts over tokens per second; with "
    "hosts, fans and power supplies it is that at the wall",
    "wall power": "watts at the plugs of whole machines: chips, host, fans, network cards, losses of power supplies; "
    "cooling of the building comes on top",
    "PUE": "power usage effectiveness: what the meter of a building reads over what its machines draw",
    "kWh/M": "energy of the chips per million output tokens: without hosts, fans and cooling",
    "goodput": "of serving: requests per second that meet their targets; of training: share of the time that makes "
    "progress, the rest goes to failures, restarts and checkpoints",
    "MFU": "model FLOPs of the work done, over time and dense peak (PaLM paper)",
    "HFU": "as MFU, but of all FLOPs that run: what is recomputed counts too",
    "ZeRO": "data-parallel ranks share out what each would keep: 1 optimiser states, 2 gradients too, 3 weights too",
    "FSDP": "fully sharded data parallel, ZeRO stage 3: a layer's weights are gathered when needed, then dropped",
    "recompute": "activations are computed again in the backward pass instead of stored: trades time for memory",
    "virtual stages (vp)": "pieces of the model that each pipeline stage holds in turn: the bubble shrinks by as much",
    "bubble": "time that pipeline stages wait for the first micro-batch to come and the last to leave",
    "gathered K/V": "context parallelism by all-gather: each rank takes keys and values of the whole sequence, "
    "in place of passing them round a ring",
    "offload": "optimiser states in host memory: frees memory of the chip, takes time on the host link",
    "stragglers": "what a step takes longer because all wait for the slowest host; grows with their number",
    "prefill, decode": "processing the prompt, all its tokens at once; producing tokens, one per pass",
    "cache, KV": "keys and values kept per token of a running sequence",
    "tight": "fits, with under 10 % of usable memory left for the cache; in training, more than the aim of 88 % "
    "and at most the limit of 95 %",
    "front": "the Pareto-optimal plans: none is both cheaper and faster; plans without a price are left out",
    "tie": "plans whose figures lie inside each other's intervals: not distinguishable by the model",
    "saturated": "more requests arrive than are served: queues grow without end at any batch",
    "GB, GiB": "10^9 and 2^30 bytes",
}
