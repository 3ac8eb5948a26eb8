"""Bring the generated parts of the docs up to date, or fail if they are stale."""

from __future__ import annotations

import os

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import argparse
import sys
from pathlib import Path

from docs.generate.console import on_the_day
from docs.generate.drawings import DRAWN
from docs.generate.drawn import refresh_drawn
from docs.generate.notebook import notebooks, refresh_notebook
from docs.generate.pages import Problem, pages, refresh


def main(arguments: list[str]) -> int:
    """0 where nothing was stale, or all was brought up to date."""
    parser = argparse.ArgumentParser(prog="python -m docs.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if anything is stale")
    parser.add_argument("parts", nargs="*", metavar="PAGE | pictures", help="docs/PAGE.md, or pictures; all if none")
    given = parser.parse_args(arguments)
    check, wanted = given.check, {Path(a).resolve() for a in given.parts}
    pictures = "pictures" in given.parts or not wanted
    chosen = [p for p in (*pages(), *notebooks()) if not wanted or p in wanted]
    found: list[Problem] = []
    failed = False
    with on_the_day():
        if pictures:
            found += [Problem(f"{name}.svg", "another chart") for name in refresh_drawn(write=not check)]
            for problem in found:
                print(f"{problem.page}: {problem.what}", file=sys.stderr)
        for path in chosen:
            try:
                renew = refresh_notebook if path.suffix == ".ipynb" else refresh
                problem = renew(path, write=not check)
            except ValueError as error:
                problem, failed = Problem(path.name, str(error)), True
            if problem is not None:
                found.append(problem)
                print(f"{problem.page}: {problem.what}", file=sys.stderr)
    print(
        f"{len(chosen)} pages, {len(DRAWN) if pictures else 0} pictures, {len(found)} {'stale' if check else 'changed'}"
    )
    return 1 if failed or (check and found) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
