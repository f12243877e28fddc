"""Conjunctions of conditions on columns."""
