"""Random numbers inside loops compiled by numba."""
