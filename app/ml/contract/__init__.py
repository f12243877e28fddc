"""What everything else speaks of: data, columns, labels, and what an algorithm is."""
