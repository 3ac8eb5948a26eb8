"""Answers that stay put: a refactor leaves them alone, a change of the model shows here."""

import sys
from pathlib import Path

if __name__ != "golden":  # `python -m tests.golden`: what the tests share is found as pytest finds it
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
