"""The core: algorithms, and what makes a fitted model of one. Pure: no I/O, no service code."""
