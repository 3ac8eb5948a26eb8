"""A sweep elsewhere: on one machine a Kubernetes job or a SkyPilot task, on many a RayJob of KubeRay."""

from __future__ import annotations

import math
from collections.abc import Mapping

from chipwise import __version__
from chipwise.catalog.tools import get_tool
from chipwise.report.launch.command import comment, here_document
from chipwise.report.launch.files import LaunchFile
from chipwise.report.launch.markup import Own, Yaml, yaml
from chipwise.report.launch.spec import SweepSpec

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
MACHINES = 4
"""That Ray spreads a sweep over. Chosen: a few; a file says where to change it."""
HEAD_CORES = 2
"""Of the machine that hands cells out and writes rows, one process. Chosen: one for Ray beside it."""
RAY_IMAGE = "rayproject/ray:2.56.1-py311"
"""What the image of a RayJob begins with: an image of Ray with a Python that chipwise runs on."""
RAY_GROUP = 100
"""The group of the user of Ray's images."""
DESIGN, RESULTS = "sweep.toml", "results"


def _command(spec: SweepSpec, folder: str, workers: int | None) -> tuple[str, ...]:
    """What starts it, word by word, and goes on with it."""
    said = () if workers is None else ("--workers", str(workers))
    return "sweep", DESIGN, "--out", folder, *said


def sweep_kubernetes(spec: SweepSpec) -> tuple[LaunchFile, ...]:
    """A job of one pod whose cells stay on a volume, so that whatever ends it the next pod goes on with them."""
    tool, labels = get_tool("kubernetes"), {"app": NAME}
    container: Yaml = {
        "name": "sweep",
        "image": f"chipwise:{__version__}",
        "args": [*_command(spec, f"/{RESULTS}/{RESULTS}", CORES)],
        "workingDir": "/sweep",
        "resources": {"requests": {"cpu": CORES, "memory": f"{CORES * GIB_EACH}Gi"}},
        **MOUNTED,
    }
    pod: Yaml = {
        "restartPolicy": "OnFailure",
        "securityContext": {"fsGroup": USER},
        "containers": [container],
        **VOLUMES,
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
        LaunchFile("job.yaml", comment(spec, tool, notes) + "---\n".join(yaml(d, tool) for d in (*_kept(spec), job))),
    )


MOUNTED: Mapping[str, Yaml] = {
    "volumeMounts": [{"name": "design", "mountPath": "/sweep"}, {"name": RESULTS, "mountPath": f"/{RESULTS}"}]
}
VOLUMES: Mapping[str, Yaml] = {
    "volumes": [
        {"name": "design", "configMap": {"name": NAME}},
        {"name": RESULTS, "persistentVolumeClaim": {"claimName": NAME}},
    ]
}


def _kept(spec: SweepSpec) -> tuple[Yaml, Yaml]:
    """The design and its files, and a volume on which cells stay."""
    size = math.ceil(spec.cells * CELL_BYTES / 2.0**30)
    files = Own({name: "\n".join(lines) + "\n" for name, lines in spec.files})
    room: Yaml = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": f"{size}Gi"}}}
    return (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": files},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": NAME}, "spec": room},
    )


def sweep_kuberay(spec: SweepSpec) -> tuple[LaunchFile, ...]:
    """A RayJob: its head hands cells out to workers on other machines and keeps the rows on a volume."""
    tool, image = get_tool("kuberay"), f"chipwise-ray:{__version__}"
    room: Yaml = {"cpu": CORES, "memory": f"{CORES * GIB_EACH}Gi"}
    all_of_it: Yaml = {"requests": room, "limits": room}
    little: Yaml = {"cpu": HEAD_CORES, "memory": f"{2 * HEAD_CORES * GIB_EACH}Gi"}
    its: Yaml = {"requests": little, "limits": little}
    head: Yaml = {"name": "head", "image": image, "resources": its, **MOUNTED}
    worker: Yaml = {"name": "worker", "image": image, "resources": all_of_it}
    words = " ".join(_command(spec, f"/{RESULTS}/{RESULTS}", None))
    cluster: Yaml = {
        "headGroupSpec": {
            "rayStartParams": {"num-cpus": "0"},
            "template": {"spec": {"securityContext": {"fsGroup": RAY_GROUP}, "containers": [head], **VOLUMES}},
        },
        "workerGroupSpecs": [
            {
                "groupName": "cells",
                "replicas": MACHINES,
                "minReplicas": MACHINES,
                "maxReplicas": MACHINES,
                "rayStartParams": {"num-cpus": str(CORES)},
                "template": {"spec": {"containers": [worker]}},
            }
        ],
    }
    job: Yaml = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": NAME},
        "spec": {
            "entrypoint": f"env --chdir=/sweep chipwise {words} --on ray --address auto",
            "shutdownAfterJobFinishes": True,
            "backoffLimit": RETRIES,
            "rayClusterSpec": cluster,
        },
    }
    notes = (
        f"image: in a checkout, a Dockerfile of three lines, FROM {RAY_IMAGE}, COPY --chown=ray . /src and",
        "  RUN pip install '/src[parquet]', built as REGISTRY/" + image + ", pushed, and REGISTRY named below",
        f"machines: replicas, minReplicas and maxReplicas; of each {CORES} cores, one cell at a time on each",
        f"results: on the volume {NAME}, in {RESULTS}; a cluster that ends early is started again and goes on",
    )
    text = comment(spec, tool, notes) + "---\n".join(yaml(d, tool) for d in (*_kept(spec), job))
    return (LaunchFile("rayjob.yaml", text),)


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
