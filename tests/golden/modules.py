"""Modules of the user's own, traced: a pass, a training step, on chips of several makers."""

from __future__ import annotations

from .asking import commands
from .net import Kind
from .networks import networks

LINES = """
estimate nets.py:mlp --chip h100
estimate nets.py:mlp --chip tpu-v5e
estimate nets.py:encoder --chip l4 --runtime compile
estimate nets.py:convolutions --chip a100-sxm4-80gb
estimate nets.py:decoder --chip h100 --training
estimate nets.py:convolutions --chip h100 --training
explain nets.py:decoder --chip mi300x
plan nets.py:encoder --rate 20000/s --e2e 100ms --chips h100,l4
estimate nets.py:nothing --chip h100
"""

KIND = Kind("modules", commands(LINES.strip().splitlines, networks), packages=("torch",))
