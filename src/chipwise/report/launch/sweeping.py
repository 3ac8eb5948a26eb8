"""A sweep on a machine of a cluster or of a cloud: a Kubernetes job with its volume, and a SkyPilot task."""

from __future__ import annotations

import math

from chipwise import __version__
from chipwise.catalog.tools import get_tool
from chipwise.report.launch.command import comment, here_document
from chipwise.report.launch.markup import Own, Yaml, yaml
from chipwise.report.launch.spec import LaunchFile, SweepSpec

NAME = "chipwise-sweep"
CORES = 16
"""Of the machine, a process on each. Chosen: what most clouds rent and most clusters have free; a file says where to
change it."""
GIB_EACH = 1
"""GiB: memory of a process. Chosen: five times what one takes that plans over all chips."""
CELL_BYTES = 2000
"""bytes: of a cell in all files of a folder together. Chosen: more than twice what an estimate with its usual columns
takes."""
USER = 10001
"""Whom the image runs as: the Dockerfile of the project."""
RETRIES = 20
"""Times that a pod which ends early is started again: each goes on with the cells that are missing."""
DESIGN, RESULTS = "sweep.toml", "results"


def _command(spec: SweepSpec, folder: str, workers: int | None) -> tuple[str, ...]:
    """What starts it, word by word, and goes on with it."""
    said = () if workers is None else ("--workers", str(workers))
    return "sweep", DESIGN, "--out", folder, *said


def sweep_kubernetes(spec: SweepSpec) -> tuple[LaunchFile, ...]:
    """A job of one pod whose cells stay on a volume, so that whatever ends it the next pod goes on with them."""
    tool, labels = get_tool("kubernetes"), {"app": NAME}
    size = math.ceil(spec.cells * CELL_BYTES / 2.0**30)
    files = Own({name: "\n".join(lines) + "\n" for name, lines in spec.files})
    design: Yaml = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": files}
    volume: Yaml = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": NAME},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": f"{size}Gi"}}},
    }
    container: Yaml = {
        "name": "sweep",
        "image": f"chipwise:{__version__}",
        "args": [*_command(spec, f"/{RESULTS}/{RESULTS}", CORES)],
        "workingDir": "/sweep",
        "resources": {"requests": {"cpu": CORES, "memory": f"{CORES * GIB_EACH}Gi"}},
        "volumeMounts": [
            {"name": "design", "mountPath": "/sweep"},
            {"name": RESULTS, "mountPath": f"/{RESULTS}"},
        ],
    }
    pod: Yaml = {
        "restartPolicy": "OnFailure",
        "securityContext": {"fsGroup": USER},
        "containers": [container],
        "volumes": [
            {"name": "design", "configMap": {"name": NAME}},
            {"name": RESULTS, "persistentVolumeClaim": {"claimName": NAME}},
        ],
    }
    job: Yaml = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": NAME},
        "spec": {"backoffLimit": RETRIES, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }
    notes = (
        f"image: docker build -t REGISTRY/chipwise:{__version__} . in a checkout, push it, and name REGISTRY below",
        f"another size of machine: cpu and --workers are one number; memory {GIB_EACH} GiB for each",
        f"results: on the volume {NAME}, in {RESULTS}",
    )
    return (
        LaunchFile(
            "job.yaml",
            comment(spec, tool, notes) + "---\n".join(yaml(d, tool) for d in (design, volume, job)),
        ),
    )


def sweep_skypilot(spec: SweepSpec) -> tuple[LaunchFile, ...]:
    """A task on one machine, started in a checkout of chipwise. What is launched again goes on."""
    tool = get_tool("skypilot")
    files = "".join(here_document(name, "\n".join(lines) + "\n") for name, lines in spec.files)
    words = " ".join(_command(spec, f"~/{RESULTS}", None))
    task: Yaml = {
        "name": NAME,
        "workdir": ".",
        "resources": {"cpus": f"{CORES}+", "memory": f"{CORES * GIB_EACH}+"},
        "setup": "python3 -m venv ~/venv\n~/venv/bin/pip install '.[parquet]'\n",
        "run": f"mkdir -p ~/sweep && cd ~/sweep\n{files}~/venv/bin/chipwise {words}\n",
    }
    notes = (
        f"in a checkout of chipwise {__version__}: sky launch -c {NAME} task.yaml; the same command goes on with it",
        f"results: rsync -Pavz {NAME}:{RESULTS} . and then sky down {NAME}",
    )
    return (LaunchFile("task.yaml", comment(spec, tool, notes) + yaml(task, tool)),)
