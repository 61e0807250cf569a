"""Contracts that any environment or codec can be checked with, and a toy environment."""
