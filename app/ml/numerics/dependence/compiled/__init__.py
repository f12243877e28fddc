"""Compiled loops over sorted values."""
