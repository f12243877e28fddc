"""Bodies of requests in JSON, CSV, Arrow and npy, and how a format is negotiated."""
