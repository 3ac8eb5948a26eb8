"""Answers that stay put: a refactor leaves them alone, a change of the model shows here."""
