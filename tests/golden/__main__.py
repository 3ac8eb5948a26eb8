"""Make golden answers anew and say what changed by how much; with --diff the differences from a revision as a table."""

import argparse
import sys
from time import process_time

from .kinds import KINDS
from .table import RevisionError, differences, markdown

SHOWN = 5
MOST = 40

parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)}; default: all")
parser.add_argument(
    "--diff",
    nargs="?",
    const="HEAD",
    metavar="REV",
    help="print as Markdown how the answers in the working tree differ from those of this revision [default: HEAD]",
)
parser.add_argument("--ask", action="store_true", help="with --diff: ask now, and leave the files as they are")
parser.add_argument("--most", type=int, default=MOST, help=f"with --diff: rows of a table [default: {MOST}]")
asked = parser.parse_args()
if asked.diff in KINDS:  # --diff KIND ...: that is no revision
    asked.kinds.insert(0, asked.diff)
    asked.diff = "HEAD"
unknown = [name for name in asked.kinds if name not in KINDS]
if unknown:
    parser.error(f"no golden answers are called '{unknown[0]}': one of {', '.join(KINDS)}")
wanted = {name: kind for name, kind in KINDS.items() if name in asked.kinds or not asked.kinds}
if asked.diff is not None:
    try:
        print(markdown(differences(wanted, asked.diff, asked.ask), asked.most))
    except RevisionError as error:
        sys.exit(f"--diff {asked.diff}: {error}")
    sys.exit()
for name, kind in wanted.items():
    if kind.missing:
        print(f"{name}: left as it is: {kind.missing}")
        continue
    began = process_time()
    told = kind.renew().told(SHOWN)
    print(f"{name} ({process_time() - began:.1f} s): {told}", flush=True)
