"""Compiled loops of maps."""
