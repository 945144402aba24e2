"""Live autograd nodes to the columns of one snapshot: the walk, the slots, the numbers by which nodes are known."""
