"""Networks without tokens through diffusers: the script runs against a stand-in of the library and checks the plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import chipwise as cw
from chipwise.api.launching import launch as launch_saved
from chipwise.errors import UsageError

STAND_IN = """
import json, os
class DiffusionPipeline:
    transformer = None
    @classmethod
    def from_pretrained(cls, weights, torch_dtype):
        made = cls(); made.said = {"weights": weights, "dtype": str(torch_dtype), "calls": 0}; return made
    def to(self, device): self.said["placed"] = "device"
    def enable_model_cpu_offload(self, device): self.said["placed"] = "model"
    def enable_sequential_cpu_offload(self, device): self.said["placed"] = "sequential"
    def __call__(self, prompt, generator, **sizes):
        self.said |= {"prompts": len(prompt), "sizes": sizes, "calls": self.said["calls"] + 1}
        open(os.environ["SAID"], "w").write(json.dumps(self.said))
        return self
"""


def saved(tmp_path: Path, model: str, **said: object) -> str:
    path = tmp_path / "plan.json"
    verb = cw.plan if "chips" in said else cw.estimate
    verb(model, **said).save(str(path))
    return str(path)


def test_the_script_makes_the_request_and_checks_it(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    plan = saved(tmp_path, "sdxl", chip="rtx-4090", offload="model", batch=2, steps=20, resolution="768x512")
    (file,) = launch_saved(plan, "diffusers")
    library = tmp_path / "library" / "diffusers"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text(STAND_IN)
    (library / "utils.py").write_text("export_to_video = None\n")
    script = tmp_path / file.name
    script.write_text(file.text)
    said = tmp_path / "said.json"
    ran = subprocess.run(
        [sys.executable, str(script), "--runs", "1"],
        env={**os.environ, "PYTHONPATH": str(library.parent), "SAID": str(said)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "s predicted" in ran.stdout
    assert "outside the interval of rtx-4090" in ran.stdout  # a stand-in makes nothing
    did = json.loads(said.read_text())
    assert did["weights"] == "stabilityai/stable-diffusion-xl-base-1.0"
    assert (did["dtype"], did["placed"], did["prompts"], did["calls"]) == ("torch.bfloat16", "model", 2, 2)
    sizes = {"width": 768, "height": 512, "num_inference_steps": 20, "guidance_scale": 5.0}
    assert did["sizes"] == sizes


def test_a_ranked_plan_shares_a_request_among_its_devices(tmp_path: Path) -> None:
    asked = {"rate": "10/h", "e2e": "2min", "resolution": "832x480", "runtime": "eager", "spread": "ulysses=8"}
    plan = saved(tmp_path, "wan2.2", chips="h100-sxm5-80gb", **asked)
    (file,) = launch_saved(plan, "diffusers")
    assert "torchrun --nproc-per-node 8 run_diffusers.py" in file.text
    assert "'ulysses': 8," in file.text
    assert "'num_frames': 81" in file.text
    compile(file.text, file.name, "exec")


def test_guidance_against_a_second_prompt_has_one(tmp_path: Path) -> None:
    (file,) = launch_saved(saved(tmp_path, "qwen-image", chip="h200-sxm-141gb", batch=2), "diffusers")
    assert "'true_cfg_scale'" in file.text
    assert "'negative_prompt': [' ', ' ']" in file.text


@pytest.mark.parametrize(
    ("model", "said", "target", "words"),
    [
        ("resnet50", {"chip": "l4"}, "diffusers", "has no pipeline in diffusers"),
        ("sdxl", {"chip": "l4"}, "vllm", "generates no tokens"),
        ("sdxl", {"chip": "l4", "runtime": "tensorrt"}, "diffusers", "under PyTorch"),
        ("flux", {"chip": "h100-sxm5-80gb", "precision": "fp8-weight-only"}, "diffusers", "more than diffusers"),
        ("hunyuanvideo", {"chip": "h200", "spread": "ulysses=2"}, "diffusers", "cannot share a request"),
        ("wan2.2", {"chip": "h100-sxm5-80gb", "spread": "cfg=2"}, "diffusers", "not by cfg"),
        ("resnet50", {"chip": "l4", "training": True}, "diffusers", "training step"),
    ],
)
def test_what_diffusers_does_not_start_is_refused(
    model: str, said: dict[str, object], target: str, words: str, tmp_path: Path
) -> None:
    plan = saved(tmp_path, model, **said)
    with pytest.raises(UsageError) as refused:
        launch_saved(plan, target)
    assert words in f"{refused.value} {refused.value.hint}"
    assert refused.value.hint
