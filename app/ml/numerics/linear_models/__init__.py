"""Losses, paths and errors of linear fits."""
