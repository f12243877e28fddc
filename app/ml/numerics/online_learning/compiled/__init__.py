"""Compiled rounds of online learners."""
