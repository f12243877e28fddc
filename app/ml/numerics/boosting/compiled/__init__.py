"""Loops that grow the trees of a sum, compiled by numba."""
