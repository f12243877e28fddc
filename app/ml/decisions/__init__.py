"""Decisions on models: the inputs that vary and their limits, the goals, and the inputs that reach them best."""
