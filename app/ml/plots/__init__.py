"""Plots of a model version: one file each, found by `app.ml.operations`."""
