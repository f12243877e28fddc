"""Calculators of learning theory: one file each, found by `app.ml.operations`."""
