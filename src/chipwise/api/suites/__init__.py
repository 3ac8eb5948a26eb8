"""Suites: tables of published measurements predicted row by row, errors on rows that no fit saw, and fits made anew.

A suite is a value of `suite`, which writes prediction, folds, intervals and refits once; a module per suite says what
is its own, `doors` names them all, `refit` is run as a module and ships what it fits.
"""
