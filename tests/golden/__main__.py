"""`python -m tests.golden`: regenerate the golden plans."""

from tests.golden.plans import FILE, regenerate, stored

regenerate()
print(f"{FILE}: {len(stored())} plans")
