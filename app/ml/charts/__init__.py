"""Building blocks of Vega-Lite specifications, which the plots share."""
