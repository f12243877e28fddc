"""Compiled loops of densities."""
