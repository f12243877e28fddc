"""How good predictions are: splits, metrics with their error bars, costs and rejection."""
