"""Rollouts: stored rows of [T, N] transitions, gathered by index."""
