"""Derived fields of N++ in torch, on the device that needs them."""
