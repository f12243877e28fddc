"""Pictures of Vega-Lite specifications, drawn in a child process."""
