"""doctor, glossary and completion."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from cyclopts import Parameter

from chipwise import api
from chipwise.catalog.harness import load_harnesses
from chipwise.cli.app import app
from chipwise.cli.options import Output
from chipwise.errors import ChipwiseError, UnknownNameError
from chipwise.report.glossary import GLOSSARY
from chipwise.report.machine import machine_view
from chipwise.report.table import Table


def doctor(
    *,
    devices: Annotated[
        bool, Parameter(name="--devices", help="what this machine is, in the catalogue's terms")
    ] = False,
    from_: Annotated[
        str | None, Parameter(name="--from", help="another machine: a folder or file of what its tools printed")
    ] = None,
    output: Output = Output(),  # noqa: B008
) -> None:
    """Verify the installation and its data files, or describe this machine."""
    if devices or from_ is not None:
        report = api.devices(from_)
        output.show(machine_view(report), report)
        return
    found = api.doctor()
    rows = [(c.name, "ok" if c.ok else "FAIL", c.detail) for c in found]
    output.show((Table(("check", "", "detail"), rows),), found)
    if not all(c.ok for c in found):
        raise ChipwiseError("the installation is not whole", "reinstall chipwise")


def glossary(word: str | None = None, *, output: Output = Output()) -> None:  # noqa: B008
    """Glossary of terms."""
    wanted = (word or "").lower()
    bare = wanted.replace(" ", "")
    found = {k: v for k, v in GLOSSARY.items() if bare in k.lower().replace(" ", "")}
    found = found or {k: v for k, v in GLOSSARY.items() if f"{wanted}:" in v.lower()}
    if wanted == "harness":
        found |= {f"--harness {h.id}": h.meaning for h in load_harnesses().values()}
    if not found:
        raise UnknownNameError("word", word or "", GLOSSARY)
    output.show((Table(("word", "means"), list(found.items())),), found)


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="the shell to complete in")]) -> None:
    """A script that completes commands and options: source <(chipwise completion bash)."""
    sys.stdout.write(app.generate_completion(prog_name="chipwise", shell=shell))
