"""Comparison of rows over time with those a model was trained on."""
