"""Sampling of rows: folds, draws and their order."""
