"""Points of a space of variables: drawing them, searching among them, and the prices of their limits."""
