"""Codecs: one representation of a field each, NumPy and torch halves side by side."""
