"""How a number gets its error bar."""
