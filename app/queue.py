"""The broker: it carries a job's id and nothing else, and may vanish at any time."""
