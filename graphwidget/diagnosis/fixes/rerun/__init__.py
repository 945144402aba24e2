"""Which statements build the reused part of a graph, and where to run them again."""
