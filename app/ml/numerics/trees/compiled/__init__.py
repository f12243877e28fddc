"""Loops compiled by numba. Their types stand in their signatures: nothing here is annotated or asked by name."""
