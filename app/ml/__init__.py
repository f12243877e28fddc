"""The core: algorithms, and what makes a fitted model of one. Pure: no I/O, no service code.

`LION 3.2` in a docstring names chapter and section of Battiti & Brunato (2014), The LION Way.
"""
