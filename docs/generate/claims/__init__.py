"""Statements that one reads about hardware, each checked against the catalogue and the predictions."""
