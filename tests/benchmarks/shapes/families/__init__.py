"""Cases by family of algorithms: each file has a function `cases`."""
