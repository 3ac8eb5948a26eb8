"""The scripts of others are those that VERSIONS names: a check for advisories goes by that table."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

import pytest

import chipwise.web

FOLDER = Path(chipwise.web.__file__).parent / "static" / "vendor"
# how a script says its version itself; bundles of modules do not
SAYS = re.compile(r'\bversion="([\d.]+)"|"use strict";var n="([\d.]+)";')
SILENT = ("vega-interpreter.min.js",)


class Script(NamedTuple):
    file: str
    package: str
    version: str
    licence: str
    sha256: str


TABLE = FOLDER.joinpath("VERSIONS").read_text().split("\n\n")[1].splitlines()
SCRIPTS = [Script(*line.split()) for line in TABLE[1:]]


def test_every_script_is_named_once_and_has_its_licence() -> None:
    assert TABLE[0].split() == list(Script._fields)
    assert sorted(s.file for s in SCRIPTS) == sorted(p.name for p in FOLDER.glob("*.js"))
    assert all((FOLDER / s.file.replace(".min.js", ".LICENSE")).is_file() for s in SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda s: s.file)
def test_a_script_is_the_one_that_is_named(script: Script) -> None:
    content = (FOLDER / script.file).read_bytes()
    assert hashlib.sha256(content).hexdigest() == script.sha256
    said = {a or b for a, b in SAYS.findall(content.decode())}
    assert said == (set() if script.file in SILENT else {script.version})
