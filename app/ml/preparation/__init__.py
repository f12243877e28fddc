"""Table → matrix: learned from the training rows once and kept with the model."""
