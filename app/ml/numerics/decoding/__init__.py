"""Numbers in texts → float64, without a Python object for each."""
