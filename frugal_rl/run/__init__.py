"""Runs: composed, planned, trained, evaluated, saved and resumed."""
