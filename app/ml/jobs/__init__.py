"""The kinds of work: one file each, nothing else lives here."""
