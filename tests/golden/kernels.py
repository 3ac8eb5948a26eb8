"""Kernels: every operator in several shapes, on GPUs, TPUs, Trainium, CPUs and dataflow chips, in many formats."""

from __future__ import annotations

from typing import Any

from .asking import commands, figure
from .net import Answer, Kind

LINES = """
kernel gemm --m 8192 --n 8192 --k 8192 --chip h100,h200,b200-sxm,mi300x,tpu-v5p,tpu-v6e,trainium2,gaudi3
kernel gemm --m 1 --n 4096 --k 4096 --chip h100,a100-sxm4-80gb,rtx-4090,mi300x,tpu-v5e,epyc-9654
kernel gemm --m 16 --n 28672 --k 8192 --chip h100,l4,l40s,a10g,t4,v100-sxm2-32gb
kernel gemm --m 100 --n 3000 --k 5000 --chip h100,b300-sxm,mi355x,tpu-v7x,inferentia2,trainium1
kernel gemm --m 512 --n 4096 --k 14336 --chip tpu-v1,tpu-v2,tpu-v3,tpu-v4,tpu-8i
kernel gemm --m 256 --n 8192 --k 8192 --dtype fp8 --chip h100,b200-sxm,mi300x,gaudi3,tpu-v7x,rtx-4090
kernel gemm --m 64 --n 7168 --k 2048 --dtype fp8_block --chip h100,h200,b200-sxm
kernel gemm --m 4096 --n 4096 --k 4096 --dtype int8 --chip a100-sxm4-80gb,t4,tpu-v5e,xeon-6980p,qaic100-ultra
kernel gemm --m 128 --n 8192 --k 8192 --dtype nvfp4 --chip b200-sxm,b300-sxm,rtx-5090
kernel gemm --m 8 --n 8192 --k 8192 --dtype int4 --chip h100,rtx-4090,mi300x,m4-max
kernel gemm --m 128 --n 5760 --k 2880 --dtype mxfp4 --chip h100,b200-sxm,mi355x
kernel gemm --m 2048 --n 2048 --k 2048 --dtype fp32 --chip h100,a100-sxm4-80gb,v100-pcie-16gb,epyc-9965
kernel gemm --m 2048 --n 2048 --k 2048 --dtype fp16 --chip v100-sxm2-16gb,rtx-3090,mi100,mi210,mi250x
kernel gemm --m 128 --n 128 --k 64 --batch 256 --chip h100,mi300x,tpu-v6e
kernel gemm --m 512 --n 4096 --k 4096 --chip groq-lpu1,sn30,sn40l,wse2-cs2,wse3-cs3,ipu-mk2-gc200
kernel gemm --m 1 --n 4096 --k 4096 --chip groq-lpu1,sn50,wse3-cs3,tt-wormhole-n300,tt-blackhole-p150
kernel gemm --m 64 --n 4096 --k 4096 --chip m1,m3-ultra,m5-max,graviton4,xeon-8480plus,igpu-radeon-8060s
kernel gemm --m 64 --n 4096 --k 4096 --chip arc-b580,arc-pro-b60,rx-7900-xtx,gb10-dgx-spark,jetson-agx-orin-64
kernel gemm --m 256 --n 8192 --k 8192 --chip h100 --set hbm=4TB/s,bf16=1.2PFLOPS
kernel attention --kv 4096 --heads 32 --kv-heads 8 --batch 64 --chip h100,h200,b200-sxm,mi300x,tpu-v6e,trainium2
kernel attention --kv 131072 --heads 64 --kv-heads 8 --chip h100,mi355x,gaudi3,tpu-v5e,epyc-9654
kernel attention --kv 4096 --q 4096 --heads 32 --kv-heads 8 --chip h100,a100-sxm4-80gb,rtx-4090,tpu-v5p,mi300x
kernel attention --kv 16384 --q 512 --heads 32 --kv-heads 8 --batch 4 --chip h100,b300-sxm,l40s,trainium2
kernel attention --kv 8192 --q 8192 --heads 16 --head-dim 256 --window 1024 --chip h100,tpu-v6e,mi300x
kernel attention --kv 8192 --heads 64 --kv-heads 8 --head-dim 64 --window 128 --batch 32 --chip b200-sxm,rtx-5090
kernel attention --kv 4096 --heads 32 --kv-heads 8 --batch 64 --dtype fp8 --chip h100,b200-sxm,mi300x
kernel attention --kv 2048 --heads 32 --chip m4-max,xeon-6980p,groq-lpu1,wse3-cs3,sn40l
kernel attention --kv 1000 --heads 40 --kv-heads 40 --batch 7 --chip l4,t4,a10,v100-sxm2-32gb,mi210
kernel conv --size 56 --channels 64 --filters 64 --images 32 --chip h100,a100-sxm4-80gb,tpu-v4,mi300x
kernel conv --size 224 --channels 3 --filters 64 --kernel 7 --stride 2 --pad 3 --chip h100,tpu-v1,tpu-v5e,t4
kernel conv --size 14 --channels 256 --filters 1024 --kernel 1 --pad 0 --images 64 --chip h100,trainium1,epyc-9654
kernel conv --size 28 --channels 128 --filters 128 --dtype int8 --images 8 --chip tpu-v1,t4,qaic100-std,inferentia1
kernel experts --tokens 64 --hidden 2048 --inter 768 --experts 128 --top-k 8 --chip h100,b200-sxm,mi300x,tpu-v6e
kernel experts --tokens 4096 --hidden 7168 --inter 2048 --experts 256 --top-k 8 --ranks 8 --chip h200,b200-sxm
kernel experts --tokens 256 --hidden 7168 --inter 2048 --experts 256 --top-k 8 --dtype fp8_block --chip h200,b300-sxm
kernel experts --tokens 32 --hidden 2880 --inter 2880 --experts 128 --top-k 4 --dtype mxfp4 --chip h100,b200-sxm,mi355x
kernel experts --tokens 1 --hidden 4096 --inter 14336 --experts 8 --top-k 2 --chip rtx-4090,m3-ultra,epyc-9654
kernel experts --tokens 512 --hidden 4096 --inter 1536 --experts 128 --top-k 8 --routing balanced --chip h100,mi300x
kernel experts --tokens 512 --hidden 4096 --inter 1536 --experts 128 --top-k 8 --dtype nvfp4 --chip b200-sxm,gb300-nvl72
kernel norm --m 64 --n 8192 --chip h100,b200-sxm,mi300x,tpu-v6e,trainium2,gaudi3
kernel norm --m 8192 --n 4096 --chip h100,a100-sxm4-80gb,tpu-v5e,epyc-9654,m4-max,sn40l
kernel softmax --m 4096 --n 4096 --chip h100,mi300x,tpu-v5p,l4
kernel softmax --m 32 --n 128256 --chip h100,rtx-4090,trainium2,xeon-8480plus
kernel elementwise --m 8192 --n 8192 --chip h100,b200-sxm,mi355x,tpu-v7x,gaudi2
kernel elementwise --m 128 --n 28672 --kind gated --chip h100,mi300x,tpu-v6e
kernel elementwise --m 4096 --n 4096 --kind quantise --chip h100,b200-sxm
kernel copy --bytes 1GB --chip h100,gh200-96gb,gb200-nvl72,mi300x,l4,tpu-v5e
kernel copy --bytes 64MB --way on-chip --chip h100,b200-sxm,rtx-4090
kernel copy --bytes 16kB --way to-host --chip h100,a100-pcie-80gb
kernel collective all_reduce --bytes 64MB --ranks 8 --chip h100,b200-sxm,a100-sxm4-80gb,mi300x,tpu-v5e,trainium2,gaudi3
kernel collective all_reduce --bytes 16kB --ranks 8 --chip h100,h200,mi355x,l40s
kernel collective all_reduce --bytes 1GB --ranks 64 --chip h100,gb200-nvl72,tpu-v5p
kernel collective all_reduce --bytes 256MB --ranks 16 --apart 8 --chip h100,b200-sxm
kernel collective all_reduce --bytes 1GB --ranks 512 --oversubscription 3 --chip h100
kernel collective all_gather --bytes 32MB --ranks 8 --chip h100,mi300x,tpu-v6e,rtx-4090
kernel collective reduce_scatter --bytes 32MB --ranks 8 --chip h200,a100-sxm4-40gb,trainium1
kernel collective all_to_all --bytes 16MB --ranks 8 --chip h100,b200-sxm,mi300x,tpu-v5e
kernel collective all_to_all --bytes 16MB --ranks 64 --chip h100,gb300-nvl72
kernel collective broadcast --bytes 8MB --ranks 8 --chip h100,tpu-v4
kernel collective p2p --bytes 8MB --ranks 2 --chip h100,a100-pcie-80gb,mi250x,l4
kernel collective p2p --bytes 1MB --ranks 2 --apart 8 --chip h100,b200-sxm
kernel amdahl --serial 5% --chip h100,tpu-v5e,m4-max
"""


def priced(report: Any) -> Answer:
    """By chip: time, what it is made of, and the work that was counted."""
    if "kernels" not in report:
        return {name: value for name, value in report.items() if name not in ("schema_version", "assumptions")}
    found: Answer = {}
    for k in report["kernels"]:
        levels = {v["name"]: v["bytes"] for v in k["levels"]}
        found[k["chip"]] = {
            "time_s": figure(k["time_s"]),
            "bound": k["bound"],
            "exposed_s": k["exposed_s"],
            "roofline_s": k["roofline_s"],
            "flops": k["flops"],
            "bytes": k["bytes"],
            "levels": levels,
            "mapping": k["mapping"],
        }
    return found | {r["chip"]: r["reason"] for r in report["refused"]}


KIND = Kind("kernels", commands(LINES.strip().splitlines, priced))
