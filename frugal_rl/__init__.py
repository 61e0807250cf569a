"""Frugal RL: plan what a run will hold, store only what changes, rebuild the rest bit for bit."""

__version__ = "0.1.0"
