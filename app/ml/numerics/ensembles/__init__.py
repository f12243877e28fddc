"""Combining the predictions of several models."""
