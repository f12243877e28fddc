"""The catalogue: one file is one algorithm, and nothing else lives here."""
