"""Writes the comparison into the action's own comment of a pull request: `python -I comment.py TEXT`.

That comment begins with a mark of its own, made of the questions that it is about, and is a bot's: no other one is ever
edited. What no longer changes is said where a comment stands, and nowhere else. The variables REPOSITORY and NUMBER say
which pull request, QUESTIONS and CHANGED what was compared; GH_TOKEN is for `gh`, which asks GitHub.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

NO_MORE = "\nNo change any more: answers are those of the base again.\n"
LINES = ".[] | {id, body, kind: .user.type}"
"""What is read of each comment, a line of JSON for each (jq)."""


def gh(*words: str) -> str:
    """What GitHub answers. Raises `CalledProcessError` where it refuses."""
    return subprocess.run(["gh", "api", *words], check=True, stdout=subprocess.PIPE, text=True).stdout


def mark(questions: str) -> str:
    """How a comment about these questions begins."""
    return f"<!-- chipwise {hashlib.sha256(questions.encode()).hexdigest()[:12]} -->"


def own(comments: str, begin: str) -> int | None:
    """The number of the comment that begins so, None without one."""
    said = map(json.loads, filter(None, comments.splitlines()))
    found = (c["id"] for c in said if c["kind"] == "Bot" and c["body"].startswith(begin))
    return next(found, None)


def main() -> None:
    """Edit the comment, or write the first one where anything changed."""
    text = Path(sys.argv[1]).read_text("utf-8")
    begin, changed = mark(os.environ["QUESTIONS"]), os.environ["CHANGED"] == "true"
    place = f"repos/{os.environ['REPOSITORY']}/issues"
    number = f"{place}/{os.environ['NUMBER']}/comments"
    try:
        known = own(gh("--paginate", f"{number}?per_page=100", "--jq", LINES), begin)
        if known is None and not changed:
            return
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".md") as body:
            body.write(f"{begin}\n{text}{'' if changed else NO_MORE}")
            body.flush()
            where = (number,) if known is None else ("--method", "PATCH", f"{place}/comments/{known}")
            gh(*where, "--field", f"body=@{body.name}")
    except (OSError, subprocess.CalledProcessError):
        print("::warning::the comment could not be written; the comparison is in the summary")


if __name__ == "__main__":
    main()
