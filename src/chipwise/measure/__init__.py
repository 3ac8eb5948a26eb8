"""Measuring the machine that one sits at."""
