"""How fast chipwise is. Run `make bench`, or `python -m bench` in the root of the repository.

Figures go to `docs` with their machine and date; nothing here is a test.
"""
