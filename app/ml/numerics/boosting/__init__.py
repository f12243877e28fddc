"""Sums of trees."""
