"""Dependence of a target on one column: correlations, contrasts of classes, tables of counts, information."""
