"""Suites: tables of published measurements predicted row by row, errors on rows that no fit saw, and fits made anew.

`predicting` and `validating` name every suite; a module per suite answers rows, `*_folds` leaves cells out in turn,
`refit_*` are run as modules and ship what they fit.
"""
