"""Densities of rows, class by class."""
