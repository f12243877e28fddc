"""Graphs of rows: similarities, Laplacians, cuts and values of nodes."""
