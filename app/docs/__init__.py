"""The user guide: Markdown pages beside this file, and a page for each algorithm that is made from its own file."""
