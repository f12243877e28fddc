"""Loops of preparation, compiled by numba."""
