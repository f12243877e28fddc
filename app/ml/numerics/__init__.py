"""Parts that algorithms are built from, each tested alone."""
