"""From a request and a table to a fitted model and its report."""
