"""Queries of a model or of predictions that get their result at once: one file each."""
