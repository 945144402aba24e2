"""Where values and gradients are lost on their way: what leaves the graph, what becomes zero, what is not finite."""
