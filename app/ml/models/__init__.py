"""A fitted model, its bytes, and what is kept beside it: intervals, golden rows, hashes of training rows."""
