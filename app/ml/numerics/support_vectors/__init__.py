"""Support vector machines: one quadratic programme for classes, numbers and densities."""
