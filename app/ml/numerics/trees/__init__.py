"""Growing, pruning and walking trees."""
