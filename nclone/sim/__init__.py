"""The simulator: Numba kernels that advance many worlds by many frames in one call."""
