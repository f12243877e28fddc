"""Requests a second, latency and CPU time of this service beside its rivals: python -m tests.benchmarks.serving."""
