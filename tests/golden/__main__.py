"""`python -m tests.golden [KIND ...]`: make golden answers anew, and say what changed by how much."""

import sys
from time import process_time

from .kinds import KINDS

SHOWN = 5

wanted = sys.argv[1:] or list(KINDS)
unknown = [name for name in wanted if name not in KINDS]
if unknown:
    sys.exit(f"no golden answers are called '{unknown[0]}': one of {', '.join(KINDS)}")
for name in wanted:
    kind = KINDS[name]
    if kind.missing:
        print(f"{name}: left as it is: {kind.missing}")
        continue
    began = process_time()
    told = kind.renew().told(SHOWN)
    print(f"{name} ({process_time() - began:.1f} s): {told}", flush=True)
