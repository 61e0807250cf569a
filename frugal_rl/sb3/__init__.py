"""Adapters between our stores and environments and stock Stable-Baselines3."""
