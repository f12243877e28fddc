"""Online learning: hypotheses that are corrected round after round, and finite classes of them."""
