"""Algorithms beside their fastest rivals over shapes of tables: python -m tests.benchmarks.shapes."""
