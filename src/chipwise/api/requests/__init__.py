"""What one can ask, as plain records that every face shares.

A request is a frozen dataclass of text and numbers; its fields carry their help, so that the command line
builds its options, and the other doors their schemas, from the same lines. `run()` reads it and answers.
"""
