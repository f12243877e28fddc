"""Values of possible measurements of a random function: which of them to make next."""
