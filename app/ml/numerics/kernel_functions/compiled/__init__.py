"""Compiled loops over pairs of rows."""
