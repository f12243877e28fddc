"""Evaluation of predictions: splits, metrics with their error bars, costs and rejection."""
