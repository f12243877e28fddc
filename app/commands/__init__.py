"""Commands of the console that look after a database."""
