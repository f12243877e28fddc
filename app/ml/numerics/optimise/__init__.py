"""Minimisers of smooth functions."""
