"""Paths over a level: lattice, reachability, distance tables and the graph observation."""
