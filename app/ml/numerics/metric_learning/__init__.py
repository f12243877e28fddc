"""Metrics that are learned: factors L of the distance ‖L(x − y)‖."""
