"""This machine: what it is (`prints`, `machine`, `asking`), measured rather than assumed."""
