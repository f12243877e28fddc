"""Centres, and the cells about them."""
