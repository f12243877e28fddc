"""Gaussian processes: likelihoods of their parameters, exact and sparse posteriors, and the next points to measure."""
