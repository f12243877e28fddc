"""Kernels of support vector machines and Gaussian processes: k(x, y) of two rows, one file each."""
