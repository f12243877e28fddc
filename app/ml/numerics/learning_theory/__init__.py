"""Learning theory: what rows can promise of a class of functions, and combinatorics of small classes."""
