"""Loops compiled by numba. Their types stand in their signatures: nothing here is annotated, and no argument has a
keyword.
"""
