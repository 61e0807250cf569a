"""Levels: the byte format, drawings, bundled levels and generators."""
