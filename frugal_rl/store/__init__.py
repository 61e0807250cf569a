"""Stores: what changes, kept in compact columns and indexed as a rollout or as trajectories."""
