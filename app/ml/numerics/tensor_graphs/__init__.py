"""Building blocks of the graphs that exported models are: classes, trees, distances and kernels as tensors."""
