"""Tries an installed chipwise, away from its sources: `python -I tests/installed.py COMMAND`."""

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import chipwise

COMMAND = str(Path(sys.argv[1]).resolve())
PLAN = ("plan", "meta-llama/Llama-3.1-70B", "--rate", "10/s", "--tpot", "40ms", "--chips", "h100,mi300x")


def said(*arguments: str) -> str:
    """What a command prints."""
    return subprocess.run([COMMAND, *arguments], check=True, capture_output=True, text=True).stdout


def served() -> int:
    """The status of a question over HTTP."""
    asked = json.dumps({"model": "meta-llama/Llama-3.1-8B", "chips": "l4"}).encode()
    server = subprocess.Popen([COMMAND, "web", "--no-open", "--port", "0"], stderr=subprocess.PIPE, text=True)
    try:
        found = re.search(r"http://[^/]+", server.stderr.readline())
        request = urllib.request.Request(f"{found.group()}/v1/fit", asked, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status
    finally:
        server.terminate()
        server.wait(30)


assert Path(sys.prefix) in Path(chipwise.__file__).parents, f"{chipwise.__file__} is not what was installed"
assert said("--version").strip() == chipwise.__version__
assert "h100" in said(*PLAN)
assert json.loads(said(*PLAN, "--format", "json"))["plans"]
assert said("doctor")
assert served() == 200
print(f"chipwise {chipwise.__version__} works on Python {sys.version.partition(' ')[0]}")
