"""What two calls share: the reused part of a graph, its carriers, writes to what it saved, its place in the program."""
