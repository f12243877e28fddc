"""JSON and Arrow tables of a model's inputs, and profiles of their columns."""
