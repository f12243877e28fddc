"""Questions to a model or to predictions that get their result at once: one file each."""
