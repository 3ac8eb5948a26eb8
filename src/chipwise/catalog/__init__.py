"""Facts: chips, systems, runtimes, model configurations, offers, prices and published results, each with its source.

TOML and CSV with strict loaders; no physics.
"""
