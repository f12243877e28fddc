"""Every supervised algorithm with its defaults beside its peer: python -m tests.benchmarks.quality."""
