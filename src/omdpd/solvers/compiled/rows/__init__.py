"""Kernels on what was visited: sorted keys, the rows of a layered graph, and estimates over them."""
