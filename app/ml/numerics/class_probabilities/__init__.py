"""Maps from the probabilities of a classifier to calibrated ones."""
