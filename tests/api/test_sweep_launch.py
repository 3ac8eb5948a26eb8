"""A sweep started elsewhere: what its files hold is what was asked, and what they run is the sweep."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.api.test_like import copy_of

from chipwise.api.requests.sweep import read_sweep
from chipwise.api.sweep import RESULTS
from chipwise.api.sweep_run import launch_sweep
from chipwise.catalog.tools import get_tool
from chipwise.errors import ChipwiseError
from chipwise.report.launch.markup import documented
from command_line import Run

DESIGN = """
# what a shell or YAML could take for its own: ${HOME} `id` $(id) 'END' "x: y" - END
verb = "kernel"
fixed = {op = "gemm", n = 1024, k = 1024, dtype = "bf16"}
[grid]
chips = ["h100", "mine.toml"]
m = [1, 64]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sweep and a chip of the user's own that it names, where chipwise is started."""
    copy_of("h200-sxm-141gb", tmp_path)
    (tmp_path / "asked.toml").write_text(DESIGN, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def documents(target: str) -> list[Any]:
    """What a target writes, read by a parser of YAML, every name of it documented."""
    (file,) = launch_sweep("asked.toml", target)
    found = list(yaml.safe_load_all(file.text))
    for node in found:
        documented({n: v for n, v in node.items() if n != "data"}, get_tool(target))
    return found


def held(folder: Path, design: Path) -> bool:
    """Whether a written design asks what the first one does, of the same chip."""
    same = (design.parent / "mine.toml").read_text("utf-8").strip()
    return (
        read_sweep(str(design)).digest == read_sweep("asked.toml").digest
        and same == (folder / "mine.toml").read_text("utf-8").strip()
    )


def test_a_job_of_kubernetes_holds_the_design_and_keeps_its_cells(folder: Path) -> None:
    design, volume, job = documents("kubernetes")
    other = folder / "other"
    other.mkdir()
    for name, text in design["data"].items():
        (other / name).write_text(text, "utf-8")
    assert held(folder, other / "sweep.toml")
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"][:2] == ["sweep", "sweep.toml"]
    out = container["args"][container["args"].index("--out") + 1]
    mounts = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
    kinds = {v["name"]: v for v in pod["volumes"]}
    assert kinds["design"]["configMap"]["name"] == design["metadata"]["name"]
    assert container["workingDir"] == mounts["design"]
    kept = next(n for n, v in kinds.items() if "persistentVolumeClaim" in v)
    assert kinds[kept]["persistentVolumeClaim"]["claimName"] == volume["metadata"]["name"]
    assert out.startswith(f"{mounts[kept]}/")  # a folder of its own: a new volume is not always empty
    assert pod["restartPolicy"] == "OnFailure"
    workers = int(container["args"][container["args"].index("--workers") + 1])
    assert container["resources"]["requests"]["cpu"] == workers


def test_a_ray_job_hands_the_cells_to_other_machines(folder: Path) -> None:
    design, volume, job = documents("kuberay")
    other = folder / "other"
    other.mkdir()
    for name, text in design["data"].items():
        (other / name).write_text(text, "utf-8")
    assert held(folder, other / "sweep.toml")
    spec = job["spec"]
    words = spec["entrypoint"].split()
    mounts = spec["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    places = {m["name"]: m["mountPath"] for m in mounts}
    assert words[:5] == ["env", f"--chdir={places['design']}", "chipwise", "sweep", "sweep.toml"]
    assert words[-4:] == ["--on", "ray", "--address", "auto"]
    assert words[words.index("--out") + 1].startswith(f"{places['results']}/")
    pod = spec["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    claims = {v["name"]: v.get("persistentVolumeClaim", {}).get("claimName") for v in pod["volumes"]}
    assert claims["results"] == volume["metadata"]["name"]
    (workers,) = spec["rayClusterSpec"]["workerGroupSpecs"]
    assert workers["replicas"] == workers["minReplicas"] == workers["maxReplicas"] > 1
    (container,) = workers["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == container["resources"]["requests"]
    assert spec["rayClusterSpec"]["headGroupSpec"]["rayStartParams"] == {"num-cpus": "0"}, "it answers no cells itself"


def test_a_task_of_skypilot_runs_the_sweep(folder: Path) -> None:
    """The command is run as SkyPilot would, but for a machine and an installation of its own."""
    (task,) = documents("skypilot")
    home = folder / "home"
    (home / "venv" / "bin").mkdir(parents=True)
    program = home / "venv" / "bin" / "chipwise"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m chipwise "$@" --workers 1\n')
    program.chmod(0o755)
    path = {"PATH": "/usr/bin:/bin", "HOME": str(home), "PYTHONPATH": ":".join(sys.path)}
    subprocess.run(["bash", "-c", f"set -e\n{task['run']}"], cwd=home, env=path, check=True, capture_output=True)
    assert held(folder, home / "sweep" / "sweep.toml")
    rows = list(csv.DictReader((home / "results" / RESULTS).read_text("utf-8").splitlines()))
    assert [(row["chips"], row["m"], row["error"]) for row in rows] == [
        (chip, m, "") for chip in ("h100", "mine.toml") for m in ("1", "64")
    ]


@pytest.mark.parametrize(
    ("design", "target", "said"),
    [
        (DESIGN, "", "--for kubernetes or skypilot or kuberay"),
        (DESIGN, "vllm", "launch it --for kubernetes, skypilot, kuberay"),
        (DESIGN, "kubernete", "did you mean kubernetes, kuberay?"),
        (DESIGN.replace("mine.toml", "far/mine.toml"), "skypilot", "far/mine.toml: a file in another folder"),
        (DESIGN.replace("mine.toml", "h100x"), "skypilot", "did you mean h100"),
    ],
)
def test_what_cannot_be_started_elsewhere_is_refused(folder: Path, design: str, target: str, said: str) -> None:
    (folder / "far").mkdir()
    copy_of("h200-sxm-141gb", folder / "far")
    (folder / "asked.toml").write_text(design, "utf-8")
    with pytest.raises(ChipwiseError) as error:
        launch_sweep("asked.toml", target)
    assert said in str(error.value)


def test_the_command_line_starts_sweeps_and_has_no_plan_of_them(folder: Path, run: Run) -> None:
    assert "--plan is of a saved answer" in run("launch", "asked.toml", "--for", "skypilot", "--plan", "2").refused(2)
    ran = run("launch", "asked.toml", "--for", "skypilot", "--out", "files")
    assert (ran.code, ran.out) == (0, "files/task.yaml\n")
