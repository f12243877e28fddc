"""Compiled loops over rows and centres."""
