"""A chain of models: the files of all its members, a script that starts its servers, and a client that calls them in
order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

from chipwise.errors import UsageError
from chipwise.report.launch.bench import PORT
from chipwise.report.launch.command import comment_line
from chipwise.report.launch.files import LaunchFile
from chipwise.report.launch.pipelines import planned_script
from chipwise.report.launch.spec import ApiCall, PipelineSpec, ServeSpec
from chipwise.report.launch.targets import launch_files, own_tool
from chipwise.values import dataclass

APART = 10
"""count: between the ports of two members. Chosen: more than share a card; moves only numbers of ports."""


@dataclass(frozen=True, slots=True)
class ChainMember:
    """Where a step of a chain runs, of which it does a `share`: a server or script that a `spec` starts, or an API."""

    spec: ServeSpec | PipelineSpec | None
    api: ApiCall | None
    share: float


@dataclass(frozen=True, slots=True)
class ChainLink:
    """A step of a chain: so many `calls` of a model for each request, which writes `output` tokens (0: a network
    without tokens) and passes on each `passes` of them."""

    name: str
    members: tuple[ChainMember, ...]
    calls: int = 1
    output: int = 0
    passes: int = 0


@dataclass(frozen=True, slots=True)
class ChainSpec:
    """A chain of a fleet with its `limits`: which time, seconds."""

    title: str
    links: tuple[ChainLink, ...]
    limits: tuple[tuple[str, float], ...]
    expected: tuple[str, ...] = ()


def chain_files(spec: ChainSpec) -> tuple[LaunchFile, ...]:
    """The files of all members in a folder each, a script that starts their servers, and the client. Raises
    `UsageError` where no tool here starts the server of a language model."""
    files: list[LaunchFile] = []
    servers: list[tuple[str, int]] = []
    steps, used = [], set[str]()
    notes = [*spec.expected]
    for link in spec.links:
        places, scripts = [], list[LaunchFile]()
        for member in link.members:
            folder = _folder(link.name, used)
            places.append({"share": round(member.share, 6), **_called(member, len(servers))})
            if isinstance(member.spec, ServeSpec):
                started = replace(member.spec, before=APART * len(servers))
                servers.append((folder, PORT + started.servers_before))
                files += _inside(folder, launch_files(started, own_tool(started, ())))
            elif member.spec is not None:
                scripts += _inside(folder, _script(member.spec))
        step = {"name": link.name, "variable": _variable(link.name), "places": places}
        steps.append({**step, "calls": link.calls, "output": link.output, "passes": link.passes})
        notes += _notes(link, scripts)
        files += scripts
    head = "".join(map(comment_line, (spec.title, *notes)))
    client = planned_script("client.py", "chain", head, {"steps": steps, "limits": dict(spec.limits)})
    start = LaunchFile("start.sh", _start(head, servers), script=True)
    return (*([start] if servers else []), client, *files)


def _folder(name: str, used: set[str]) -> str:
    """A folder for a member, which no other has."""
    plain = _plain(name)
    found = next(f for n in count(1) if (f := plain if n == 1 else f"{plain}-{n}") not in used)
    used.add(found)
    return found


def _called(member: ChainMember, before: int) -> dict[str, str]:
    """What the client needs of a place: address, model and the variable of a key."""
    if member.api is not None:
        return {"address": member.api.base_url, "model": member.api.model, "key": member.api.key}
    if isinstance(member.spec, ServeSpec):
        port = PORT + replace(member.spec, before=APART * before).servers_before
        return {"address": f"http://127.0.0.1:{port}/v1", "model": member.spec.model, "key": ""}
    return {"address": "", "model": "", "key": ""}


def _script(spec: PipelineSpec) -> tuple[LaunchFile, ...]:
    """The script that times a request of a network, none where no tool here has one."""
    try:
        return launch_files(spec, own_tool(spec, ()))
    except UsageError:
        return ()


def _inside(folder: str, files: Sequence[LaunchFile]) -> list[LaunchFile]:
    return [replace(file, name=f"{folder}/{file.name}") for file in files]


def _notes(link: ChainLink, scripts: Sequence[LaunchFile]) -> Iterator[str]:
    """What is to be known of a step that these files do not start."""
    variable, api = _variable(link.name), next((m.api for m in link.members if m.api), None)
    if api is not None:
        yield f"{link.name} is called at {api.provider}, with the key in {api.key}"
    if not link.output:
        what = f"{link.name}: a server of your own that answers a POST of what it reads with what it makes"
        timed = f"; {scripts[0].name} times one request" if scripts else ""
        yield f"{what}, at the address in {variable}{timed}"
    several = max((m.spec.replicas for m in link.members if isinstance(m.spec, ServeSpec)), default=1)
    if several > 1:
        yield f"{link.name} has {several} replicas: {variable} is the address that shares them out"


def _start(head: str, servers: Sequence[tuple[str, int]]) -> str:
    """The script that starts servers, all or those that are named, and waits until they answer."""
    each = "".join(f'run {folder} {port} "$@"\n' for folder, port in servers)
    return (
        f"#!/usr/bin/env bash\n{head}"
        "# all on this machine: bash start.sh; on several: bash start.sh STEP on each, and STEP_URL for the client\n"
        "set -euo pipefail\nset -m  # each server is a group, which ends with this script\n"
        "trap 'for group in $(jobs -p); do kill -- \"-$group\"; done' EXIT\n\n"
        "run() {\n"
        "  folder=$1 port=$2; shift 2\n"
        '  if [ $# -gt 0 ] && [[ " $* " != *" $folder "* ]]; then return; fi\n'
        '  (cd "$(dirname "$0")/$folder" && exec bash serve.sh) &\n'
        '  until curl -sf "http://127.0.0.1:$port/v1/models" > /dev/null; do\n'
        '    kill -0 $! || { echo "$folder ended" >&2; exit 1; }\n'
        "    sleep 2\n"
        "  done\n"
        '  echo "$folder answers on port $port"\n'
        "}\n\n"
        f"{each}wait\n"
    )


def _plain(name: str) -> str:
    """A name as a folder."""
    return re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-") or "step"


def _variable(name: str) -> str:
    """The variable that holds the address of a step."""
    return f"{_plain(name).upper().replace('-', '_')}_URL"
