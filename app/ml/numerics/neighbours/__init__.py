"""Distances, and the nearest rows."""
