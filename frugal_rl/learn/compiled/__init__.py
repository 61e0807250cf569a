"""`algo.engine=compiled`: perceptrons forward, backward and through Adam in compiled kernels."""
