"""Parameters that several routes share."""
