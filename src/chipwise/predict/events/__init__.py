"""Requests through time: an engine of events over the seconds of passes (`predict.steptable`).

`engine` runs replicas, `rank` schedules one of them, `cache` keeps its blocks, `routing` says who gets a request. None
knows a model or a chip.
"""
