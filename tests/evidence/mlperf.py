"""A row of the table of MLPerf results, for the tests that read one."""

from __future__ import annotations

ROW = {
    "row_id": "x",
    "round": "v5.1",
    "chip": "h200-sxm-141gb",
    "accelerator": "H200-SXM",
    "variant": "",
    "power_limit_w": "700",
    "chips_total": "8",
    "nodes": "1",
    "framework": "TensorRT 10.11, CUDA 12.9",
    "model": "llama2-70b-99.9",
    "model_base": "llama2-70b",
    "scenario": "Offline",
    "weight_precision": "fp8",
    "unit": "Tokens/s",
    "submitter": "Someone",
}
