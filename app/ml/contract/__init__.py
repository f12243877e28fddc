"""The core's contract: data, columns, labels and algorithms, which all other rooms use."""
