"""Compiled loops of clusterings."""
