"""Real Postgres and real Redis from wheels, for a machine that has none."""
