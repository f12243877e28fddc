"""Compiled loops of networks."""
