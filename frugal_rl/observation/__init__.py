"""Observations: declared once, stored compactly, rebuilt exactly. Imports no torch."""
