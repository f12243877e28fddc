"""Maps: cells in a plane, each with a row that it stands for."""
