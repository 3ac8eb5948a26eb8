"""`python -m chipwise`."""

from chipwise.cli import main

main()
