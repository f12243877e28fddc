"""Which rows: folds, draws and their order."""
