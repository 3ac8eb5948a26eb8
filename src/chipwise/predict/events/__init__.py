"""Requests through time: an engine of events over the seconds of passes (`predict.steptable`).

`engine` runs replicas and says who gets a request, `rank` schedules one of them, `cache` keeps its blocks, `jobs` is
work without tokens, `turns` models that sleep by turns. None knows a model or a chip.
"""
