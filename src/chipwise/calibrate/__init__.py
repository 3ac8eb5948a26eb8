"""Fitted numbers: priors, fits from measured rows, and the one value that holds them all."""
