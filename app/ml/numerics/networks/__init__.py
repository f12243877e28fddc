"""Feed-forward networks: their layers, back-propagation of the error, and the ways to train them."""
