"""HTTP and nothing else: routes, and what stands around them."""
